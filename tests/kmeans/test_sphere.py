"""metric="cosine": plain loops over angles, bounds of chords, means that keep their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kmeander import (
    InputError,
    kmeans_error,
    kmeans_plusplus,
    skm_error,
    surrogate_error,
    weighted_lloyd,
)
from kmeander.kmeans.lloyd import Limits, fit_window, nearest
from kmeander.kmeans.local_search import swap_centroids
from kmeander.kmeans.metric import COSINE, EUCLIDEAN
from kmeander.kmeans.window import Window
from kmeander.kmeans.window_coreset import summarise
from tests import naive_sphere
from tests.kmeans.test_lloyd import CLEAR, Problem
from tests.strategies import problems
from tests.streams import random_window

ANGLES = Limits(metric=COSINE)
SEEDS = st.integers(0, 2**32 - 1)


def with_directions(problem: Problem) -> Problem:
    """Without rows or centroids of zeros."""
    points, weights, start = problem
    rows = points.any(axis=1)
    assume(weights[rows].any() and start.any(axis=1).all())
    return points[rows], weights[rows], start


def on_sphere(seed: int, n_clusters: int, n_batches: int, dtype: Any = np.float64) -> Any:
    """A window of directions, and centroids that are badly placed."""
    window, starts = random_window(seed, n_clusters, 3, n_batches, dtype=dtype)
    found = Window(rho=0.7)
    for batch in window.batches:
        points = COSINE.points(batch.points)
        found = found.aged(1.0, np.inf, None).joined_by(points, batch.weights)
    return found, COSINE.points(starts)


def summarised(seed: int, n_clusters: int) -> Any:
    """A window whose old batches are means, which lie within the sphere."""
    window, starts = on_sphere(seed, n_clusters, 3)
    fit = fit_window(window, starts, ANGLES)
    return summarise(fit.window, 4 * n_clusters, fit.centroids, ANGLES).window, fit.centroids


def lengths(rows: Any) -> Any:
    return np.sqrt((np.asarray(rows, np.float64) ** 2).sum(axis=1))


@given(problem=problems())
def test_lloyd_equals_the_plain_loops(problem: Problem) -> None:
    points, weights, start = with_directions(problem)
    expected = naive_sphere.lloyd(points, weights, start)
    assume(expected.margin > CLEAR)
    found = weighted_lloyd(points, start, weights, metric="cosine")
    assert found.labels.tolist() == expected.labels
    np.testing.assert_allclose(found.centroids, expected.centroids, rtol=1e-10, atol=1e-10)
    plain = naive_sphere.error(points, expected.centroids, weights)
    assert found.error == pytest.approx(plain, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.masses, expected.masses)


@given(problem=problems())
def test_the_result_is_a_fixed_point_on_the_sphere(problem: Problem) -> None:
    points, weights, start = with_directions(problem)
    found = weighted_lloyd(points, start, weights, metric="cosine")
    np.testing.assert_allclose(lengths(found.centroids), 1, rtol=1e-14)
    labels = nearest(COSINE.points(points), found.centroids, 1)[0]
    assert labels.tolist() == found.labels.tolist()
    before = kmeans_error(points, start, weights, metric="cosine")
    assert found.error <= before + 1e-14


@given(problem=problems(), powers=st.lists(st.integers(-60, 60), min_size=16, max_size=16))
def test_only_directions_count(problem: Problem, powers: list[int]) -> None:
    """Powers of two, so that not even rounding differs."""
    points, weights, start = with_directions(problem)
    scaled = points * 2.0 ** np.array(powers[: len(points)])[:, np.newaxis]
    one = weighted_lloyd(points, start, weights, metric="cosine")
    other = weighted_lloyd(scaled, start * 4, weights, metric="cosine")
    assert one.centroids.tobytes() == other.centroids.tobytes()
    assert one.error == other.error


@given(problem=problems(), rho=st.floats(0.1, 1.0))
def test_errors_equal_the_plain_loops(problem: Problem, rho: float) -> None:
    points, weights, centroids = with_directions(problem)
    plain = naive_sphere.error(points, centroids, weights)
    found = kmeans_error(points, centroids, weights, metric="cosine")
    assert found == pytest.approx(plain, abs=1e-12)
    decayed = [rho] * len(points) + [1.0] * len(points)
    plain = naive_sphere.error([*points, *points[::-1]], centroids, decayed)
    found = surrogate_error([points, points[::-1]], centroids, rho, metric="cosine")
    assert found == pytest.approx(plain, abs=1e-12)


def test_errors_are_worked_out_by_hand() -> None:
    """At 0 and 90 degrees of a centroid 1 - cosine is 0 and 1, at 60 degrees a half."""
    rows = [[3.0, 0.0], [0.0, 5.0], [1.0, 3**0.5]]
    assert kmeans_error(rows, [[9.0, 0.0]], metric="cosine") == pytest.approx(0.5)
    assert skm_error([rows, rows[:1]], [[9.0, 0.0]], metric="cosine") == pytest.approx(0.375)
    found = weighted_lloyd([[2.0, 0.0], [0.0, 1.0]], [[1.0, 2.0]], metric="cosine")
    np.testing.assert_allclose(found.centroids, [[0.5**0.5, 0.5**0.5]])
    assert found.error == pytest.approx(1 - 0.5**0.5)


def test_a_mean_without_direction_keeps_its_centroid() -> None:
    found = weighted_lloyd([[1.0, 0.0], [-1.0, 0.0]], [[0.0, 2.0]], metric="cosine")
    assert found.centroids.tolist() == [[0.0, 1.0]]
    assert found.error == 1.0 and found.converged


def test_seeds_are_rows_of_length_1() -> None:
    found = kmeans_plusplus(
        [[3.0, 4.0], [6.0, 8.0], [0.0, 2.0]], 2, random_state=0, metric="cosine"
    )
    assert sorted(found.tolist()) == [[0.0, 1.0], [0.6, 0.8]]


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: weighted_lloyd(rows, [[1.0, 0.0]], metric="cosine"),
        lambda rows: kmeans_error(rows, [[1.0, 0.0]], metric="cosine"),
        lambda rows: kmeans_plusplus(rows, 2, metric="cosine"),
    ],
)
def test_a_row_of_zeros_is_refused_by_name(call: Any) -> None:
    with pytest.raises(InputError) as refused:
        call([[1.0, 1.0], [0.0, -0.0], [2.0, 1.0]])
    assert str(refused.value) == (
        'X holds only zeros at row 1, and metric="cosine" compares directions, which zeros do not '
        "have. Leave such rows out."
    )


def test_centroids_of_zeros_and_batches_are_named() -> None:
    with pytest.raises(InputError, match=r"^centroids holds only zeros at row 1, and "):
        kmeans_error([[1.0]], [[1.0], [0.0]], metric="cosine")
    with pytest.raises(InputError, match=r"^batches\[1\] holds only zeros at row 0, and "):
        skm_error([[[1.0]], [[0.0]]], [[1.0]], metric="cosine")


def test_another_metric_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        kmeans_error([[1.0]], [[1.0]], metric="manhattan")
    assert str(refused.value) == "metric must be one of 'euclidean', 'cosine', got 'manhattan'."


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e119])
def test_rows_of_any_size_have_a_direction(dtype: Any, size: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        rows = (np.array([[3.0, 4.0], [-4.0, 3.0]]) * size).astype(dtype)
    assume_finite = np.isfinite(rows).all() and rows.all()
    if not assume_finite:
        return
    found = COSINE.points(rows)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, [[0.6, 0.8], [-0.8, 0.6]], rtol=1e-6)


@given(seed=SEEDS, n_clusters=st.integers(1, 6), n_batches=st.integers(1, 4), old=st.booleans())
def test_the_expected_error_is_that_of_the_plain_loops(
    seed: int, n_clusters: int, n_batches: int, old: bool
) -> None:
    window, starts = summarised(seed, n_clusters) if old else on_sphere(seed, n_clusters, n_batches)
    fit = fit_window(window, starts, ANGLES)
    assume(fit.converged)
    plain = naive_sphere.expected_error(
        [batch.points.tolist() for batch in window.batches],
        [batch.weights_or_ones.tolist() for batch in window.batches],
        window.decay.tolist(),
        [labels.tolist() for labels in fit.window.labels],
        n_clusters,
    )
    hidden = window.within / window.mass / 2
    assert fit.expected_error == pytest.approx(plain + hidden, rel=1e-9, abs=1e-12)


@given(seed=SEEDS, n_clusters=st.integers(2, 10))
def test_means_cost_what_their_rows_do(seed: int, n_clusters: int) -> None:
    """As long as each mean's rows go to one cluster, as they do where there is but one."""
    window, starts = on_sphere(seed, n_clusters, 3)
    fit = fit_window(window, starts, ANGLES)
    found = summarise(fit.window, 4 * n_clusters, fit.centroids, ANGLES).window
    found = Window(found.rho, found.batches, found.ages)
    for batch in found.batches:
        assert (lengths(batch.points) <= 1 + 1e-12).all()
    one = np.asarray(COSINE.points(np.random.default_rng(seed).normal(size=(1, 3))), np.float64)
    whole = fit_window(window, one, ANGLES, only_assign=True).error
    assert fit_window(found, one, ANGLES, only_assign=True).error == pytest.approx(whole, rel=1e-9)


@given(seed=SEEDS, n_clusters=st.integers(2, 10), old=st.booleans())
def test_swaps_only_lower_the_error_and_stay_on_the_sphere(
    seed: int, n_clusters: int, old: bool
) -> None:
    window, starts = summarised(seed, n_clusters) if old else on_sphere(seed, n_clusters, 2)
    before = fit_window(window, starts, ANGLES, only_assign=True).error
    refined = swap_centroids(window, starts, 10, np.random.default_rng(seed), ANGLES)
    np.testing.assert_allclose(lengths(refined.centroids), 1, rtol=1e-12)
    after = fit_window(refined.window, refined.centroids, ANGLES)
    assert after.initial_error <= before + 1e-12
    assert after.error <= after.initial_error + 1e-12
    np.testing.assert_allclose(lengths(after.centroids), 1, rtol=1e-14)


@given(seed=SEEDS, dtype=st.sampled_from([np.float32, np.float64]), n_clusters=st.integers(1, 8))
def test_bounds_that_are_carried_change_nothing(seed: int, dtype: Any, n_clusters: int) -> None:
    """From one window to the next, as from scratch; and for any number of threads."""
    window, starts = on_sphere(seed, n_clusters, 3, dtype)
    fit = fit_window(window, starts, ANGLES)
    rows = COSINE.points(np.random.default_rng(seed).normal(size=(30, 3)).astype(dtype))
    following = fit.window.aged(1.0, np.inf, None).joined_by(rows, None)
    carried = fit_window(following, fit.centroids, ANGLES)
    bare = Window(following.rho, following.batches, following.ages)
    for threads in (1, 3):
        fresh = fit_window(bare, fit.centroids, Limits(n_threads=threads, metric=COSINE))
        assert fresh.centroids.tobytes() == carried.centroids.tobytes()
        assert fresh.error == carried.error


def test_euclidean_leaves_everything_as_it_is() -> None:
    rows = np.array([[0.0, 3.0]])
    assert EUCLIDEAN.points(rows) is rows
    assert EUCLIDEAN.centroids(rows) is rows
    assert EUCLIDEAN.error_share == 1.0
