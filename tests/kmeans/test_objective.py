from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import (
    InputError,
    kmeans_error,
    skm_error,
    surrogate_error,
    theorem1_bound,
    theorem1_gap,
)
from tests import naive
from tests.strategies import FINE, problems, tables

Array = NDArray[np.float64]

streams = st.lists(tables(st.integers(1, 12), 3, FINE), min_size=1, max_size=5)
centroid_sets = tables(st.integers(1, 5), 3, FINE)


@given(problem=problems())
def test_kmeans_error_equals_the_plain_loops(problem: tuple[Array, Array, Array]) -> None:
    points, weights, centroids = problem
    expected = naive.kmeans_error(points, centroids, weights.tolist())
    assert kmeans_error(points, centroids, weights) == pytest.approx(expected, rel=1e-10)
    assert kmeans_error(points, centroids) == pytest.approx(
        naive.kmeans_error(points, centroids), rel=1e-10
    )


@given(batches=streams, rho=st.floats(0.05, 1.0), centroids=centroid_sets)
def test_surrogate_error_equals_the_plain_loops(
    batches: list[Array], rho: float, centroids: Array
) -> None:
    """The vectorised value is the one the definition gives, point by point."""
    expected = naive.surrogate_error(batches, rho, centroids)
    assert surrogate_error(batches, centroids, rho) == pytest.approx(expected, rel=1e-10)


@given(batches=streams, centroids=centroid_sets)
def test_without_forgetting_the_surrogate_is_the_plain_error(
    batches: list[Array], centroids: Array
) -> None:
    plain = kmeans_error(np.concatenate(batches), centroids)
    assert surrogate_error(batches, centroids, 1.0) == pytest.approx(plain, rel=1e-10)
    assert skm_error(batches, centroids) == pytest.approx(plain, rel=1e-10)
    assert skm_error(batches, centroids) == pytest.approx(naive.skm_error(batches, centroids))


def test_values_worked_out_by_hand() -> None:
    centroids = [[0.0, 0.0], [10.0, 0.0]]
    old, new = [[1.0, 0.0], [10.0, 2.0]], [[0.0, 3.0]]  # squared distances 1, 4 and 9
    assert kmeans_error(old, centroids) == 2.5
    assert kmeans_error(old, centroids, [3, 1]) == 1.75
    assert skm_error([old, new], centroids) == 14 / 3
    assert surrogate_error([old, new], centroids, 0.5) == (0.5 * 5 + 9) / (0.5 * 2 + 1)


@given(rho=st.floats(0.01, 0.99), n_batches=st.integers(1, 400), batch_size=st.integers(1, 10_000))
def test_the_bound_is_hoeffdings_for_the_theorems_weights(
    rho: float, n_batches: int, batch_size: int
) -> None:
    """gamma from the sum of squared ranges of the proof, added up term by term."""
    inside = math.fsum((1 / n_batches - rho**t * (1 - rho)) ** 2 for t in range(n_batches))
    outside = rho ** (2 * n_batches) * (1 - rho) / (1 + rho)  # the geometric rest
    expected = 2.0 * math.sqrt((inside + outside) / (2 * batch_size) * math.log(2 / 0.05))
    bound = theorem1_bound(rho, n_batches, batch_size, 2.0, 0.05)
    assert bound == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("n_batches", [1, 3, 8])
@pytest.mark.parametrize("delta", [0.05, 0.32])
def test_theorem_1_holds_in_simulated_draws(n_batches: int, delta: float) -> None:
    """Points within [0, 1] and [0, 2] around c = 0; 300 streams of 60 batches, 40 points each."""
    rng = np.random.default_rng(n_batches)
    rho, batch_size, n_old = 0.7, 40, 60
    error = 1 / 3  # of x**2, x uniform on [0, 1]; after the drift of sqrt(2) x: twice as much
    gap = theorem1_gap(rho, n_batches, epsilon=1.0, error=error)
    gamma = theorem1_bound(rho, n_batches, batch_size, value_range=2.0, delta=delta)
    inside = 0
    for _ in range(300):
        old = rng.random((n_old, batch_size, 1))
        new = math.sqrt(2) * rng.random((n_batches, batch_size, 1))
        skm = skm_error(list(new), [[0.0]])
        surrogate = surrogate_error([*old, *new], [[0.0]], rho)
        inside += abs(skm - surrogate - gap) < gamma
    assert inside >= (1 - delta) * 300


def test_the_gap_is_what_the_errors_expect() -> None:
    """Averaged over many streams the difference itself is the gap, not only within gamma of it."""
    rng = np.random.default_rng(0)
    rho, n_batches = 0.6, 3
    differences = []
    for _ in range(2000):
        old, new = rng.random((40, 20, 1)), math.sqrt(2) * rng.random((n_batches, 20, 1))
        differences.append(
            skm_error(list(new), [[0.0]]) - surrogate_error([*old, *new], [[0.0]], rho)
        )
    standard_error = np.std(differences) / math.sqrt(len(differences))
    assert abs(np.mean(differences) - theorem1_gap(rho, n_batches, 1.0, 1 / 3)) < 4 * standard_error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: surrogate_error([], [[0.0]], 0.5),
            "batches must be a sequence of at least one batch, got [].",
        ),
        (
            lambda: surrogate_error([[[1.0]], [[1.0, 2.0]]], [[0.0]], 0.5),
            "batches[1] has 2 columns, the centroids have 1.",
        ),
        (
            lambda: surrogate_error([[[1.0]], [[math.inf]]], [[0.0]], 0.5),
            "batches[1] holds infinity at row 0, column 0. Every value must be finite; drop or "
            "clip such rows first.",
        ),
        (
            lambda: kmeans_error([[1.0]], [[0.0, 1.0]]),
            "centroids has 2 columns, the points have 1. Both must come from the same features.",
        ),
        (
            lambda: theorem1_bound(0.5, 3, 10, 1.0, 1.0),
            "delta must lie in (0, 1), got 1.0. It is a probability.",
        ),
        (
            lambda: theorem1_bound(0.5, 0, 10, 1.0, 0.1),
            "n_batches must be a whole number of at least 1, got 0. It is the number of batches "
            "since the drift.",
        ),
        (
            lambda: theorem1_gap(0.5, 1, float("nan"), 1.0),
            "epsilon must be a finite number, got nan.",
        ),
    ],
)
def test_bad_arguments_are_explained(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
