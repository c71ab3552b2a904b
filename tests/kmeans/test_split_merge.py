"""Split-merge: the exchanges of the plain loops, an error that only falls, rests when settled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kmeander import FSKM, Batch, _kernel
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.local_search import Rest, split_and_merge
from kmeander.kmeans.window import Window
from tests import naive
from tests.streams import INITS, batches_of, random_window

CLEAR = 1e-9


def weights_of(window: Window) -> Any:
    return np.concatenate(
        [
            decay * batch.weights_or_ones
            for batch, decay in zip(window.batches, window.decay, strict=True)
        ]
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    n_clusters=st.integers(2, 12),
    n_features=st.integers(1, 5),
    n_batches=st.integers(1, 4),
    n_passes=st.integers(0, 3),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_exchanges_are_those_of_the_plain_loops(
    seed: int, n_clusters: int, n_features: int, n_batches: int, n_passes: int, dtype: Any
) -> None:
    window, starts = random_window(seed, n_clusters, n_features, n_batches, dtype=dtype)
    limits = Limits(max_iter=max(n_passes, 1), n_threads=1)
    fit = fit_window(window, starts, limits, only_assign=n_passes == 0)
    uniforms = np.random.default_rng(seed).random(2 * n_clusters)
    found = np.array(fit.centroids, order="C")
    assert fit.window.partition is not None
    split, removed, n_distances = _kernel.exchange(
        window.handle, fit.window.partition, found, uniforms, 1
    )
    points = np.concatenate([batch.points for batch in window.batches])
    plain = naive.exchanges(points, weights_of(window), fit.centroids, uniforms)
    assume(plain.margin > CLEAR)
    assert split == plain.split
    assert removed == plain.removed
    np.testing.assert_allclose(found, plain.centroids, rtol=1e-9, atol=1e-9)
    assert n_distances >= window.n_points


@given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(2, 20))
def test_split_merge_only_lowers_the_error_and_ends_where_lloyd_ends(
    seed: int, n_clusters: int
) -> None:
    window, starts = random_window(seed, n_clusters, 2, 3)
    before = fit_window(window, starts, Limits())
    fit, elsewhere = split_and_merge(before, np.random.default_rng(seed), Limits())
    assert fit.error < before.error if elsewhere else fit.error == before.error
    assert fit.n_distances > before.n_distances
    assert fit.initial_error == before.initial_error
    again = fit_window(fit.window, fit.centroids, Limits())
    np.testing.assert_allclose(again.centroids, fit.centroids, rtol=1e-12, atol=1e-12)
    assert again.n_iter == 1


def three_groups(n_points: int = 50) -> tuple[Window, Any]:
    """Two centroids share the left group, one holds both on the right: Lloyd stays there."""
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0], [100.0], [110.0]], n_points, axis=0)
    points += rng.normal(size=points.shape)
    return Window(rho=1.0).joined_by(points, None), np.array([[-1.0], [1.0], [105.0]])


def test_two_groups_get_the_centroid_that_one_group_can_spare() -> None:
    window, starts = three_groups()
    stuck = fit_window(window, starts, Limits())
    fit, elsewhere = split_and_merge(stuck, np.random.default_rng(0), Limits())
    assert stuck.error > 10
    assert fit.error < 2
    assert len(elsewhere) == 1
    assert sorted(np.round(fit.centroids.ravel() / 10).tolist()) == [0, 10, 11]


def test_a_row_alone_takes_no_centroid_from_a_cluster() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([np.repeat([[0.0], [3.0]], 50, axis=0), [[40.0]]])
    points += rng.normal(size=points.shape)
    window = Window(rho=1.0).joined_by(points, None)
    fit = fit_window(window, np.array([[0.0], [4.0]]), Limits())
    assert split_and_merge(fit, np.random.default_rng(0), Limits())[1] == ()


def test_one_cluster_and_equal_points_have_nothing_to_exchange() -> None:
    window = Window(rho=1.0).joined_by(np.array([[0.0], [1.0], [9.0]]), None)
    fit = fit_window(window, np.array([[0.0]]), Limits())
    assert split_and_merge(fit, np.random.default_rng(0), Limits())[1] == ()
    window = Window(rho=1.0).joined_by(np.full((9, 2), 3.0), None)
    fit = fit_window(window, np.full((3, 2), 3.0), Limits())
    assert split_and_merge(fit, np.random.default_rng(0), Limits())[1] == ()


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_threads_do_not_change_a_single_bit(n_threads: int) -> None:
    rng = np.random.default_rng(1)
    modes = rng.normal(scale=3.0, size=(24, 20))
    window = Window(rho=0.5)
    for _ in range(3):  # enough work for threads to be started
        rows = modes[rng.integers(24, size=60_000)] + rng.normal(size=(60_000, 20))
        window = window.aged(1.0, np.inf, None).joined_by(rows, None)
    starts = np.asarray(window.batches[0].points[:12], dtype=np.float64)
    fits = [fit_window(window, starts, Limits(n_threads=n)) for n in (1, n_threads)]
    (alone, exchanged), (together, also) = (
        split_and_merge(fit, np.random.default_rng(2), Limits(n_threads=n))
        for fit, n in zip(fits, (1, n_threads), strict=True)
    )
    assert exchanged
    assert exchanged == also
    assert together.centroids.tobytes() == alone.centroids.tobytes()
    assert together.n_distances == alone.n_distances


@pytest.mark.parametrize("init", INITS)
def test_a_stream_survives_a_restart_bit_for_bit(init: str) -> None:
    model = FSKM(4, init=init, refine="split-merge", forgetting="adaptive", random_state=3)
    batches = batches_of(16)
    for batch in batches[:7]:
        model.step(batch)
    resumed = FSKM.from_state(model.state())
    for batch in batches[7:]:
        assert resumed.step(batch) == model.step(batch)
    assert resumed.learned.rest == model.learned.rest


def test_rests_grow_until_something_is_found() -> None:
    rest, lengths = Rest(), []
    for _ in range(5):
        rest = rest.after(has_found=False)
        lengths.append(rest.n_left)
    assert lengths == [2, 4, 8, 8, 8]
    assert rest.after(has_found=True) == Rest()


def test_where_nothing_changes_split_merge_rests_and_a_drift_wakes_it() -> None:
    rng = np.random.default_rng(0)
    modes = rng.normal(scale=9.0, size=(4, 3))
    model = FSKM(4, refine="split-merge", forgetting="adaptive", random_state=0)
    for index in range(30):
        model.step(Batch(index, modes[rng.integers(4, size=200)] + rng.normal(size=(200, 3))))
    assert model.learned.rest.length == 8
    step = model.step(Batch(30, 90 + modes[rng.integers(4, size=200)] + rng.normal(size=(200, 3))))
    assert step.history_kept < 1
    assert model.learned.rest.length < 8


def test_with_twice_as_many_modes_split_merge_ends_lower_than_swaps() -> None:
    errors = {}
    for refine in ("swaps", "split-merge"):
        rng = np.random.default_rng(5)
        modes = rng.normal(scale=3.0, size=(50, 20))
        model = FSKM(25, init="previous", rho=0.6, refine=refine, random_state=0)
        for index in range(6):
            rows = modes[rng.integers(50, size=500)] + rng.normal(size=(500, 20))
            step = model.step(Batch(index, rows))
        errors[refine] = step.surrogate_error
    assert errors["split-merge"] is not None
    assert errors["swaps"] is not None
    assert errors["split-merge"] < 0.99 * errors["swaps"]
