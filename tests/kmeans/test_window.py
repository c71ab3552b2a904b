from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander import Batch, InputError, max_batches_for, rho_for_drift, rho_for_half_life
from kmeander.kmeans.lloyd import Limits, fit_window, measure
from kmeander.kmeans.stored_window import state_of
from kmeander.kmeans.window import Window
from tests import naive


@given(rho=st.floats(0.001, 0.99), negligible=st.floats(0.001, 0.5))
def test_max_batches_is_the_smallest_power_below(rho: float, negligible: float) -> None:
    assert max_batches_for(rho, negligible) == naive.max_batches_for(rho, negligible)


def test_rho_and_window_of_the_paper() -> None:
    """tau = 10, m = 2; 0.01**(1/5) to the fifth is 0.010000000000000002 and counts as 0.01."""
    rhos = [rho_for_drift(epsilon, stable_for=10) for epsilon in (0.5, 1.0, 2.0)]
    assert [round(rho, 3) for rho in rhos] == [0.457, 0.398, 0.347]
    assert [max_batches_for(rho) for rho in rhos] == [6, 5, 5]
    assert max_batches_for(0.99) == 459
    assert max_batches_for(0.001) == 1
    assert round(rho_for_drift(0.5, 20, m=2), 3) == 0.676
    assert round(rho_for_drift(0.5, 20, m=1), 3) == 0.822


@given(batches=st.floats(0.1, 1000))
def test_half_life_is_the_age_at_which_half_is_left(batches: float) -> None:
    assert rho_for_half_life(batches) ** batches == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: max_batches_for(1.0),
            "rho must lie in (0, 1), got 1.0. It is the share of a batch's weight kept when the "
            "next one arrives; kmeander.rho_for_half_life(batches=...) picks it from the number of "
            "batches after which half is forgotten.",
        ),
        (
            lambda: max_batches_for(0.5, negligible=0),
            "negligible must lie in (0, 1), got 0. It is the weight at which a batch is let go.",
        ),
        (
            lambda: rho_for_half_life(-2),
            "batches must be a finite number above 0, got -2. It is the number of batches after "
            "which half is forgotten.",
        ),
        (
            lambda: rho_for_drift(0.005, 10),
            "epsilon must exceed negligible=0.01, got 0.005. A smaller drift needs no "
            "forgetting: use rho close to 1.",
        ),
        (
            lambda: rho_for_drift(1.0, float("nan")),
            "stable_for must be a finite number above 0, got nan.",
        ),
    ],
)
def test_bad_arguments_are_explained(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


def window_of(*sizes: int, rho: float = 0.5, elapsed: float = 1.0) -> Window:
    window = Window(rho)
    for size in sizes:
        window = window.aged(elapsed, max_batches_for(rho), None)
        window = window.joined_by(np.arange(2.0 * size).reshape(size, 2), None)
    return window


def test_batches_weigh_rho_to_the_power_of_their_age() -> None:
    window = window_of(4, 2, 8)
    assert window.decay.tolist() == [0.25, 0.5, 1.0]
    assert window.mass == 4 * 0.25 + 2 * 0.5 + 8
    assert window.n_points == 14


def test_ages_may_be_real() -> None:
    window = window_of(1, 1, elapsed=0.5)
    assert list(window.ages) == [0.5, 0.0]
    assert window.decay.tolist() == [0.5**0.5, 1.0]


def test_a_batch_leaves_when_its_age_reaches_t_max() -> None:
    """rho = 0.5 remembers 7 batches, of ages 0 to 6."""
    window = window_of(*[1] * 20)
    assert list(window.ages) == [6, 5, 4, 3, 2, 1, 0]
    assert len(window.aged(1.0, 7, None)) == 6
    assert len(window.aged(6.9, 7, None)) == 1
    assert len(window.aged(7.0, 7, None)) == 0


def test_max_batches_makes_room_for_the_one_to_come() -> None:
    window = window_of(1, 2, 3, 4)
    kept = window.aged(1.0, 7, 3)
    assert [len(batch.points) for batch in kept.batches] == [3, 4]
    assert len(window.aged(1.0, 7, 1)) == 0
    assert len(window) == 4  # the window itself never changes


def test_cluster_masses_are_decayed_counts_by_label() -> None:
    window = window_of(40, 40, rho=0.5)
    fit = fit_window(window, np.array([[0.0, 1.0], [50.0, 51.0]]), Limits())
    counts = [np.bincount(labels, minlength=2) for labels in fit.window.labels]
    expected = 0.5 * counts[0] + counts[1]
    assert fit.window.cluster_masses(2).tolist() == expected.tolist()
    assert fit.window.cluster_masses(2).sum() == window.mass


def test_small_batches_keep_no_sums_and_lose_nothing() -> None:
    """Below four points a cluster, sums would outweigh the points; they are made anew."""
    centroids = np.array([[0.0, 1.0], [8.0, 9.0]])
    small = fit_window(window_of(7, 7), centroids, Limits())
    large = fit_window(window_of(8, 8), centroids, Limits())
    assert small.window.partition is not None and large.window.partition is not None
    assert small.window.partition.sums is None
    assert large.window.partition.sums is not None
    assert small.window.cluster_masses(2).sum() == 7 * 0.5 + 7
    again = fit_window(small.window, small.centroids, Limits())
    assert again.centroids.tobytes() == small.centroids.tobytes()


def test_kept_sums_are_those_of_the_labels(rng: np.random.Generator) -> None:
    window = Window(0.7)
    for _ in range(3):
        weights = rng.random(50)
        window = window.aged(1.0, 99, None).joined_by(rng.normal(size=(50, 3)), weights)
        fit = fit_window(window, rng.normal(size=(4, 3)), Limits())
        window = fit.window
    assert window.partition is not None and window.partition.sums is not None
    sums = window.partition.sums
    for b, (batch, labels) in enumerate(zip(window.batches, window.labels, strict=True)):
        assert batch.weights is not None
        for k in range(4):
            mine = labels == k
            weights, points = batch.weights[mine], batch.points[mine]
            assert sums.masses[b, k] == pytest.approx(weights.sum())
            expected = (weights[:, None] * points).sum(axis=0)
            np.testing.assert_allclose(sums.sums[b, k], expected, atol=1e-12)
            if mine.any():
                mean = expected / weights.sum()
                scatter = (weights[:, None] * (points - mean) ** 2).sum()
                assert sums.scatter[b, k] == pytest.approx(scatter)


def test_what_the_kernel_holds_is_put_away_and_taken_out(rng: np.random.Generator) -> None:
    """A batch, a window and its partition can be pickled once the kernel has seen them."""
    batch = Batch(0, rng.normal(size=(40, 2)), rng.random(40) + 0.5)
    centroids = rng.normal(size=(3, 2))
    measured = measure(batch.handle, centroids, 1)
    window = Window(0.5).joined_by(batch.points, batch.weights, measured.partition)
    fit = fit_window(window.aged(1.0, 9, None).joined_by(batch.points, None), centroids, Limits())
    for known in (window, fit.window):
        again = pickle.loads(pickle.dumps(known))
        assert str(state_of(again)) == str(state_of(known))
        one, other = (fit_window(w, centroids + 1.0, Limits()) for w in (known, again))
        assert one.centroids.tobytes() == other.centroids.tobytes()
        assert one.n_distances == other.n_distances
    copied = pickle.loads(pickle.dumps(batch))
    assert measure(copied.handle, centroids, 1).error == measured.error
