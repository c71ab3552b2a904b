from __future__ import annotations

import itertools
import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import InputError, kmeans_error, kmeans_plusplus, weighted_lloyd
from kmeander.arguments import generator_for
from kmeander.kmeans.lloyd import Limits, nearest
from kmeander.kmeans.seeding import kmeans
from tests import naive
from tests.strategies import COARSE, problems, tables

Array = NDArray[np.float64]
Problem = tuple[Array, Array, Array]


# Where something was decided by less than this, rounding may decide it the other way.
CLEAR = 1e-9


@given(problem=problems())
def test_lloyd_equals_the_plain_loops(problem: Problem) -> None:
    points, weights, start = problem
    expected = naive.lloyd(points, weights, start)
    assume(expected.margin > CLEAR)
    found = weighted_lloyd(points, start, weights)
    assert found.labels.tolist() == expected.labels
    np.testing.assert_allclose(found.centroids, expected.centroids, rtol=1e-10, atol=1e-10)
    assert found.error == pytest.approx(expected.error, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.masses, expected.masses)
    assert found.converged
    # A mean that misses the plain loops' by its last digit may cost or save the pass that finds
    # nothing to do.
    assert abs(found.n_iter - expected.n_iter) <= 1


@given(problem=problems())
def test_weighted_equals_repeated(problem: Problem) -> None:
    points, weights, start = problem
    counts = weights.astype(int)
    weighted = weighted_lloyd(points, start, weights)
    plain = naive.lloyd(points, weights, start)
    # A cluster that loses its mass takes one row, which stands for more where it has weight.
    assume(not plain.reseeded)
    assume(plain.margin > CLEAR)
    repeated = weighted_lloyd(np.repeat(points, counts, axis=0), start)
    np.testing.assert_allclose(weighted.centroids, repeated.centroids, rtol=1e-10, atol=1e-10)
    assert weighted.error == pytest.approx(repeated.error, rel=1e-9, abs=1e-10)
    assert np.repeat(weighted.labels, counts).tolist() == repeated.labels.tolist()


@given(problem=problems(), power=st.integers(-20, 20))
def test_scaling_all_weights_changes_nothing(problem: Problem, power: int) -> None:
    """By a power of two, so that not even rounding differs."""
    points, weights, start = problem
    plain = weighted_lloyd(points, start, weights)
    scaled = weighted_lloyd(points, start, weights * 2.0**power)
    assert scaled.centroids.tobytes() == plain.centroids.tobytes()
    assert scaled.labels.tobytes() == plain.labels.tobytes()
    assert scaled.error == plain.error


@given(problem=problems())
def test_the_error_never_rises_over_iterations(problem: Problem) -> None:
    points, weights, start = problem
    errors = [kmeans_error(points, start, weights)]
    errors += [weighted_lloyd(points, start, weights, max_iter=n).error for n in range(1, 8)]
    rounding = 1e-12 * max(errors) + (1e-14 * np.abs(points).max()) ** 2
    for before, after in itertools.pairwise(errors):
        assert after <= before + rounding


@given(problem=problems())
def test_the_result_is_a_fixed_point(problem: Problem) -> None:
    """Labels are those of the nearest centroids, centroids the means of their labels."""
    points, weights, start = problem
    found = weighted_lloyd(points, start, weights)
    assert found.converged
    assert nearest(points, found.centroids, 1)[0].tolist() == found.labels.tolist()
    for k, centroid in enumerate(found.centroids):
        mine = (found.labels == k) & (weights > 0)
        assert found.masses[k] == weights[found.labels == k].sum()
        if mine.any():
            mean = np.average(points[mine], axis=0, weights=weights[mine])
            np.testing.assert_allclose(centroid, mean, rtol=1e-10, atol=1e-10)
    again = weighted_lloyd(points, found.centroids, weights)
    assert again.centroids.tobytes() == found.centroids.tobytes()
    assert again.n_iter == 1


@given(problem=problems())
def test_no_cluster_stays_empty_while_a_point_is_away_from_its_centroid(problem: Problem) -> None:
    points, weights, start = problem
    found = weighted_lloyd(points, start, weights)
    if (found.masses == 0).any():
        assert found.error <= 1e-20 * max(1.0, np.abs(points).max() ** 2)


def test_an_empty_cluster_takes_the_costliest_point() -> None:
    """Worked by hand: nobody is near 100; of 0, 1, 2 and 9 the last costs most, twice over."""
    found = weighted_lloyd([[0.0], [1.0], [2.0], [9.0]], [[1.0], [100.0]], [1, 1, 1, 2])
    assert found.centroids.tolist() == [[1.0], [9.0]]
    assert found.labels.tolist() == [0, 0, 0, 1]
    assert (found.n_iter, found.n_distances_plain) == (2, 2 * 8)
    # A full pass, 4 costs, 4 distances to the new place; then the point that moved is measured.
    assert 8 + 4 + 4 < found.n_distances <= 2 * 8 + 4 + 4


def test_two_empty_clusters_do_not_take_twins() -> None:
    points = [[0.0], [0.0], [10.0], [10.0], [-7.0]]
    found = weighted_lloyd(points, [[0.0], [1000.0], [2000.0]])
    assert found.centroids.tolist() == [[0.0], [10.0], [-7.0]]
    assert found.error == 0.0


def test_without_a_point_to_take_an_empty_cluster_stays_where_it_is() -> None:
    found = weighted_lloyd([[3.0], [3.0]], [[3.0], [50.0]])
    assert found.centroids.tolist() == [[3.0], [50.0]]
    assert found.masses.tolist() == [2.0, 0.0]


def test_points_without_weight_are_labelled_but_do_not_pull() -> None:
    found = weighted_lloyd([[0.0], [2.0], [100.0]], [[0.0]], [1, 1, 0])
    assert found.centroids.tolist() == [[1.0]]
    assert found.labels.tolist() == [0, 0, 0]
    assert found.error == 1.0


def test_iterations_and_distances_are_counted() -> None:
    """Passes: split at 1|3, means 0.5 and 6; split at 3|10, means 4/3 and 10; no change."""
    found = weighted_lloyd([[0.0], [1.0], [3.0], [10.0]], [[0.0], [2.5]])
    assert found.centroids.ravel().tolist() == pytest.approx([4 / 3, 10.0])
    assert found.n_iter == 3
    assert found.n_distances_plain == 3 * 4 * 2
    assert 4 * 2 < found.n_distances <= 3 * 4 * 2


def test_max_iter_bounds_the_updates_and_says_so(rng: np.random.Generator) -> None:
    points = rng.normal(size=(500, 2))
    found = weighted_lloyd(points, points[:10], max_iter=2)
    assert not found.converged
    assert found.n_iter == 3
    assert nearest(points, found.centroids, 1)[0].tolist() == found.labels.tolist()


def test_tol_stops_where_scikit_learn_stops(rng: np.random.Generator) -> None:
    from sklearn.cluster import KMeans

    points = rng.normal(size=(3000, 3)) * [1, 5, 25]
    for tol in (1e-4, 1e-2, 0.0):
        theirs = KMeans(10, init=points[:10], n_init=1, tol=tol, algorithm="lloyd").fit(points)
        ours = weighted_lloyd(points, points[:10], tol=tol)
        assert ours.converged
        # They do not count the pass that brings the labels up to date after tol has stopped it.
        assert ours.n_iter == theirs.n_iter_ + (tol > 0)
        assert ours.labels.tolist() == theirs.labels_.tolist()
        np.testing.assert_allclose(ours.centroids, theirs.cluster_centers_, rtol=1e-9)


@given(problem=problems(max_rows=30), seed=st.integers(0, 2**32))
def test_seeding_equals_the_plain_loops(problem: Problem, seed: int) -> None:
    points, weights, _ = problem
    uniforms = generator_for(seed, 0).random(8)
    rows = naive.kmeans_plusplus(points, weights, uniforms.tolist())
    if len(rows) == 8:
        seeds = kmeans_plusplus(points, 8, weights, random_state=seed)
        assert seeds.tolist() == points[rows].tolist()
    else:
        n_distinct = len(np.unique(points[weights > 0], axis=0))
        assert len(rows) == n_distinct
        with pytest.raises(InputError) as caught:
            kmeans_plusplus(points, 8, weights, random_state=seed)
        assert str(caught.value) == (
            f"X has {n_distinct} distinct points of weight above 0, n_clusters=8 needs at least "
            "as many."
        )


def test_seeding_draws_by_weighted_squared_distance() -> None:
    """From 0 (weight 1), 1 (weight 6) and 3 (weight 2): second draws in known proportions."""
    points, weights = [[0.0], [1.0], [3.0]], [1, 6, 2]
    pairs = [
        tuple(kmeans_plusplus(points, 2, weights, random_state=seed).ravel())
        for seed in range(4000)
    ]
    first = {x: np.mean([a == x for a, _ in pairs]) for x in (0.0, 1.0, 3.0)}
    assert first[0.0] == pytest.approx(1 / 9, abs=0.02)
    assert first[1.0] == pytest.approx(6 / 9, abs=0.03)
    after_one = [b for a, b in pairs if a == 1.0]  # 0: 1 * 1, 3: 2 * 4
    assert np.mean([b == 3.0 for b in after_one]) == pytest.approx(8 / 9, abs=0.03)


@given(points=tables(st.integers(1, 30), 2, COARSE), n_clusters=st.integers(1, 12))
def test_kmeans_finds_as_many_clusters_as_there_are_distinct_points(
    points: Array, n_clusters: int
) -> None:
    n_distinct = len(np.unique(points, axis=0))
    found = kmeans(points, None, n_clusters, generator_for(0, 0), Limits(n_threads=1))
    assert len(found.centroids) == min(n_clusters, n_distinct)
    assert (found.masses > 0).all()


def test_kmeans_counts_seeding_and_passes() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = kmeans(points, None, 2, generator_for(0, 0), Limits())
    assert found.n_distances_plain == 4 * (2 - 1) + found.n_iter * 4 * 2


@pytest.mark.parametrize("n_points", [10_000, 1_000_000])
def test_the_mean_of_equal_points_is_that_point(n_points: int) -> None:
    """Added up plainly, 0.1 a million times misses it, and an empty cluster would take a twin."""
    points = np.repeat([[0.1], [0.7]], n_points // 2, axis=0)
    found = weighted_lloyd(points, [[0.1], [0.7], [0.7]], np.full(n_points, 0.3))
    assert found.centroids.ravel().tolist() == [0.1, 0.7, 0.7]
    assert found.masses[2] == 0.0
    assert (found.n_iter, found.error) == (1, 0.0)


def test_far_from_zero_no_digits_are_lost() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200_000, 1)) + 1.7e9
    found = weighted_lloyd(points, [[0.0]])
    assert found.centroids[0, 0] == pytest.approx(1.7e9 + (points - 1.7e9).mean(), abs=1e-6)
    assert found.error == pytest.approx((points - 1.7e9).var(), rel=1e-9)


def test_a_large_constant_column_hides_nothing() -> None:
    """A time stamp in nanoseconds, say: the distances along the other column still count."""
    values = [0, 0, 0, 1000, 1000, 3000]
    points = np.array([[1.7e18, v] for v in values])
    found = weighted_lloyd(points, [[1.7e18, 0.0], [1.7e18, -1e9]])
    assert found.masses.tolist() == [5.0, 1.0]
    assert (found.centroids[:, 0] == 1.7e18).all()
    assert found.error == 200_000.0


def test_an_empty_cluster_does_not_take_the_only_point_of_another() -> None:
    found = weighted_lloyd([[4.0], [10.0], [20.0]], [[22.0], [1000.0], [5.0], [13.0]])
    assert found.centroids.ravel().tolist() == [20.0, 1000.0, 4.0, 10.0]
    assert found.masses.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_learning_can_be_interrupted_and_changes_nothing() -> None:
    from kmeander import FSKM, Batch
    from kmeander.storage import checkpoint

    rng = np.random.default_rng(0)
    model = FSKM(60, init="previous", random_state=0, n_threads=1)
    model.step(Batch(0, rng.normal(size=(500, 10))))
    before = checkpoint.to_bytes(model.state())
    large = Batch(1, rng.normal(size=(400_000, 10)))
    # A shell without job control starts what runs in the background with SIGINT ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.step(large)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert checkpoint.to_bytes(model.state()) == before


@pytest.mark.parametrize("tol", [1e-3, 1e-2])
def test_tol_is_scaled_by_the_weighted_variance(tol: float) -> None:
    """A far row that counts nothing must not loosen it; one that counts twice is there twice."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(size=(1500, 2)), [[1e6, 1e6]]])
    weights = np.append(rng.integers(1, 4, size=1500), 0)
    weighted = weighted_lloyd(points, points[:8], weights, tol=tol)
    repeated = weighted_lloyd(np.repeat(points, weights, axis=0), points[:8], tol=tol)
    assert weighted.n_iter == repeated.n_iter
    np.testing.assert_allclose(weighted.centroids, repeated.centroids, rtol=1e-10)
