"""The criterion for K: the values of the plain loops, and what it says of shapes that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.window import Window
from kmeander.tracking import number_of_clusters as rule
from tests import naive_number_of_clusters as naive

Array = NDArray[np.float64]


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(20, 200),
    d=st.integers(1, 5),
    gap=st.sampled_from([0.0, 2.0, 6.0]),
    weighted=st.booleans(),
)
def test_a_saving_is_that_of_the_plain_loops(
    seed: int, n: int, d: int, gap: float, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    points[:, 0] += gap * (rng.random(n) < 0.4)
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else np.ones(n)
    expected = naive.saving_within(points.tolist(), weights.tolist())
    found = rule.saving_within((points, weights))
    assume(bool(np.isfinite(expected + found)))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(share=st.floats(0.01, 0.99))
def test_the_most_that_one_cluster_saves_is_that_of_the_two_shapes(share: float) -> None:
    assert rule.most_saved(share) == pytest.approx(naive.most_saved(share))


def cut_saves(draw: Any, share: float) -> float:
    """Return what part of its variance a large sample saves, cut so that `share` is above."""
    places = np.sort(draw(200_000))
    parts = np.split(places, [int(len(places) * (1 - share))])
    within = sum(float(np.square(part - part.mean()).sum()) for part in parts)
    return 1 - within / float(np.square(places - places.mean()).sum())


@pytest.mark.parametrize("share", [0.5, 0.3, 0.2, 0.1])
def test_the_border_is_where_flat_and_exponential_clusters_lie(share: float) -> None:
    rng = np.random.default_rng(0)
    flat = cut_saves(lambda n: rng.uniform(size=n), share)
    tail = cut_saves(lambda n: rng.exponential(size=n), share)
    normal = cut_saves(lambda n: rng.normal(size=n), share)
    assert rule.most_saved(share) == pytest.approx(max(flat, tail), abs=0.005)
    assert normal < rule.most_saved(share)


def rows_of(kind: str, size: tuple[int, int], rng: np.random.Generator) -> Array:
    if kind == "exponential":
        return rng.exponential(size=size)
    if kind == "t3":
        return rng.standard_t(3, size=size) / 3**0.5
    if kind == "uniform":
        return rng.uniform(-(3**0.5), 3**0.5, size=size)
    return rng.normal(size=size)


def window_of(points: Array, centroids: Array) -> Any:
    return fit_window(Window(0.5).joined_by(points, None), centroids, Limits())


@pytest.mark.parametrize("d", [2, 8, 30])
@pytest.mark.parametrize("kind", ["normal", "exponential", "t3", "uniform"])
def test_one_cluster_is_seldom_two_and_two_are_never_one(kind: str, d: int) -> None:
    n_two = n_one = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        points = rows_of(kind, (400, d), rng)
        points[::2, 0] += 40.0
        points[::4, 0] += 5.0  # two of three lie five standard deviations apart
        places = np.zeros((3, d))
        places[:, 0] = [0.0, 40.0, 45.0]
        fit = window_of(points, places)
        found = rule.judge(fit.window, fit.centroids, fit.masses)
        n_two += len(found.holds_two)
        n_one += len(found.are_one)
    assert n_two <= 2
    assert n_one == 0


@pytest.mark.parametrize("d", [2, 8, 30])
def test_two_under_one_centroid_and_one_under_two_are_seen(d: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(600, d))
        points[::2, 0] += 40.0
        points[::4, 0] += 6.0
        rng.shuffle(points)
        places = np.zeros((3, d))
        places[:, 0] = [-1.0, 1.0, 41.5]
        fit = window_of(points, places)
        found = rule.judge(fit.window, fit.centroids, fit.masses)
        assert found.holds_two == (2,)
        assert found.are_one == ((0, 1),) or d == 30


def test_rows_that_do_not_vary_say_nothing() -> None:
    fit = window_of(np.ones((50, 2)), np.array([[1.0, 1.0], [5.0, 5.0]]))
    assert rule.judge(fit.window, fit.centroids, fit.masses) == rule.AgainstK()
    assert rule.halves(fit.window, 0) is None
