"""Swaps: the answer of the plain loops, exact bounds, an error that only falls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kmeander import FSKM, Batch, Step
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.local_search import CANDIDATES, Refined, swap_centroids
from kmeander.kmeans.window import Window
from tests import naive
from tests.streams import INITS, batches_of, random_window

CLEAR = 1e-9


def squared_to_all(points: Any, centroids: Any) -> Any:
    return ((np.asarray(points, dtype=float)[:, np.newaxis] - centroids) ** 2).sum(axis=2)


def weights_of(window: Window) -> Any:
    return np.concatenate(
        [
            decay * (np.ones(len(batch.points)) if batch.weights is None else batch.weights)
            for batch, decay in zip(window.batches, window.decay, strict=True)
        ]
    )


def error_of(refined: Refined) -> Any:
    return fit_window(refined.window, refined.centroids, Limits(), only_assign=True).error


@given(
    seed=st.integers(0, 2**32 - 1),
    n_clusters=st.integers(2, 12),
    n_features=st.integers(1, 5),
    n_batches=st.integers(1, 4),
    n_candidates=st.integers(1, 12),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_swaps_are_those_of_the_plain_loops(
    seed: int, n_clusters: int, n_features: int, n_batches: int, n_candidates: int, dtype: Any
) -> None:
    window, starts = random_window(seed, n_clusters, n_features, n_batches, dtype=dtype)
    refined = swap_centroids(
        window, starts, n_candidates, np.random.default_rng(seed), Limits(n_threads=1)
    )
    points = np.concatenate([batch.points for batch in window.batches])
    uniforms = np.random.default_rng(seed).random(n_candidates)
    plain = naive.swaps(points, weights_of(window), starts, uniforms)
    assume(plain.margin > CLEAR)
    np.testing.assert_array_equal(refined.centroids, plain.centroids)
    assert refined.swapped == tuple(plain.swapped)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_clusters=st.integers(2, 40),
    n_candidates=st.integers(1, 30),
)
def test_labels_and_bounds_are_true_after_swaps(
    seed: int, n_clusters: int, n_candidates: int
) -> None:
    window, starts = random_window(seed, n_clusters, 3, 3)
    refined = swap_centroids(window, starts, n_candidates, np.random.default_rng(seed), Limits())
    partition = refined.window.partition
    assert partition is not None
    assert partition.bounds is not None
    points = np.concatenate([batch.points for batch in window.batches])
    distances = np.sqrt(squared_to_all(points, refined.centroids))
    rows = np.arange(len(points))
    own = distances[rows, partition.labels]
    np.testing.assert_allclose(own, distances.min(axis=1), rtol=1e-9)
    assert (partition.bounds.upper >= own).all()
    distances[rows, partition.labels] = np.inf
    assert (partition.bounds.lower <= distances.min(axis=1)).all()
    np.testing.assert_array_equal(partition.bounds.snapshot, refined.centroids)


@given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(2, 20))
def test_swaps_only_lower_the_error(seed: int, n_clusters: int) -> None:
    window, starts = random_window(seed, n_clusters, 2, 2)
    before = fit_window(window, starts, Limits(), only_assign=True)
    refined = swap_centroids(window, starts, 20, np.random.default_rng(seed), Limits())
    if refined.swapped:
        assert error_of(refined) < before.error
    else:
        np.testing.assert_array_equal(refined.centroids, starts)


def test_a_centroid_leaves_two_clusters_that_are_one_for_one_that_is_two() -> None:
    """Two centroids share the left cluster, one holds both on the right: Lloyd would stay there."""
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0], [100.0], [110.0]], 50, axis=0) + rng.normal(size=(150, 1))
    starts = np.array([[-1.0], [1.0], [105.0]])
    window = Window(rho=1.0).joined_by(points, None)
    stuck = fit_window(window, starts, Limits())
    refined = swap_centroids(window, stuck.centroids, 5, np.random.default_rng(0), Limits())
    freed = fit_window(refined.window, refined.centroids, Limits())
    assert stuck.error > 10
    assert freed.error < 2
    assert sorted(np.round(freed.centroids.ravel() / 10).tolist()) == [0, 10, 11]
    assert np.round(freed.centroids[2, 0] / 10) >= 10  # what was on the right is there still


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_threads_do_not_change_a_single_bit(n_threads: int) -> None:
    rng = np.random.default_rng(1)
    window = Window(rho=0.5)
    for _ in range(3):  # enough work for threads to be started
        window = window.aged(1.0, np.inf, None).joined_by(rng.normal(size=(90_000, 20)), None)
    starts = np.asarray(window.batches[0].points[:12], dtype=np.float64)
    alone, together = (
        swap_centroids(window, starts, 10, np.random.default_rng(2), Limits(n_threads=n))
        for n in (1, n_threads)
    )
    assert alone.swapped
    assert together.centroids.tobytes() == alone.centroids.tobytes()
    assert together.n_distances == alone.n_distances


def steps_of(model: FSKM, n_batches: int = 12) -> list[Step]:
    return [model.step(batch) for batch in batches_of(n_batches)]


@pytest.mark.parametrize("init", INITS)
def test_a_refined_stream_survives_a_restart_bit_for_bit(init: str) -> None:
    model = FSKM(4, init=init, refine="swaps", forgetting="adaptive", random_state=3)
    batches = batches_of(12)
    for batch in batches[:7]:
        model.step(batch)
    resumed = FSKM.from_state(model.state())
    for batch in batches[7:]:
        assert resumed.step(batch) == model.step(batch)


def test_the_labels_of_a_refined_model_are_those_of_the_nearest_centroids() -> None:
    model = FSKM(5, init="previous", refine=10, random_state=0)
    for batch in batches_of(10):
        step = model.step(batch)
        assert model.labels is not None
        squared = squared_to_all(batch.points, step.centroids)
        np.testing.assert_array_equal(model.labels, squared.argmin(axis=1))
        assert step.batch_error == pytest.approx(squared.min(axis=1).mean())


def test_distances_of_swaps_are_counted() -> None:
    window, starts = random_window(5, 8, 3, 3)
    refined = swap_centroids(window, starts, 10, np.random.default_rng(0), Limits())
    assert window.n_points < refined.n_distances
    assert refined.n_distances_plain == (10 + 8) * window.n_points


def test_one_cluster_has_nothing_to_swap() -> None:
    window = Window(rho=1.0).joined_by(np.array([[0.0], [1.0], [9.0]]), None)
    refined = swap_centroids(window, np.array([[0.0]]), 10, np.random.default_rng(0), Limits())
    assert refined.swapped == ()
    np.testing.assert_array_equal(refined.centroids, [[0.0]])


def test_swaps_try_twenty_candidates() -> None:
    named, counted = (
        steps_of(FSKM(4, refine=refine, random_state=0)) for refine in ("swaps", CANDIDATES)
    )
    assert named == counted
    assert CANDIDATES == 20


@pytest.mark.parametrize("refine", ["swap", 0, -1, 2.5, True, ("swaps",)])
def test_any_other_refine_is_refused(refine: Any) -> None:
    with pytest.raises(InputError, match="refine must be"):
        FSKM(2, refine=refine)


def test_a_batch_object_is_all_that_is_needed() -> None:
    step = FSKM(2, refine="swaps", random_state=0).step(Batch(0, [[0.0], [0.1], [5.0]]))
    assert step.centroids is not None
    assert sorted(np.round(step.centroids.ravel(), 2).tolist()) == [0.05, 5.0]
