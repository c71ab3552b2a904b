from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from kmeander import InputError, initialise
from kmeander.arguments import generator_for
from kmeander.kmeans import starts
from kmeander.kmeans.lloyd import LloydResult
from kmeander.kmeans.starts import INITIALISATIONS, Clusters, Start
from tests import naive
from tests.strategies import COARSE, FINE, tables

Array = NDArray[np.float64]
Pair = tuple[Array, Array, Array, Array]


@st.composite
def pairs(draw: st.DrawFn, max_clusters: int = 6) -> Pair:
    """Two sets of centroids, the second at most as large, with masses of which some are 0."""
    values = draw(st.sampled_from([COARSE, FINE]))
    previous = draw(tables(st.integers(1, max_clusters), 2, values))
    current = draw(tables(st.integers(1, len(previous)), 2, values))
    mass = st.one_of(st.just(0.0), st.floats(0.01, 100.0))
    previous_mass = draw(hnp.arrays(np.float64, len(previous), elements=mass))
    current_mass = draw(hnp.arrays(np.float64, len(current), elements=st.floats(0.01, 100.0)))
    return previous, previous_mass, current, current_mass


@given(pair=pairs())
def test_hungarian_matching_costs_least_of_all_permutations(pair: Pair) -> None:
    previous, previous_mass, current, current_mass = pair
    _, matching = initialise.hungarian(*pair)
    assert sorted(matching[matching >= 0].tolist()) == list(range(len(current)))
    cost = sum(
        naive.merge_cost(previous_mass[k], previous[k], current_mass[j], current[j])
        for k, j in enumerate(matching.tolist())
        if j >= 0
    )
    best = naive.best_matching_cost(
        previous, previous_mass.tolist(), current, current_mass.tolist()
    )
    assert cost == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(pair=pairs())
def test_hungarian_takes_the_weighted_mean_of_each_pair(pair: Pair) -> None:
    previous, previous_mass, current, current_mass = pair
    centroids, matching = initialise.hungarian(*pair)
    for k, j in enumerate(matching.tolist()):
        expected = (
            naive.weighted_mean(previous_mass[k], previous[k], current_mass[j], current[j])
            if j >= 0
            else previous[k].tolist()
        )
        np.testing.assert_allclose(centroids[k], expected, rtol=1e-10, atol=1e-10)


@given(pair=pairs())
def test_hungarian_keeps_the_total_mass_where_it_is(pair: Pair) -> None:
    """Pairs share out all mass, so the common centre of mass does not move."""
    previous, previous_mass, current, current_mass = pair
    centroids, matching = initialise.hungarian(*pair)
    masses = previous_mass + np.where(matching >= 0, current_mass[matching], 0.0)
    assert masses.sum() == pytest.approx(previous_mass.sum() + current_mass.sum())
    moment = previous_mass @ previous + current_mass @ current
    np.testing.assert_allclose(masses @ centroids, moment, rtol=1e-9, atol=1e-6)


@given(pair=pairs(), seed=st.integers(0, 1000))
def test_weighted_keeps_the_total_mass(pair: Pair, seed: int) -> None:
    previous, previous_mass, current, current_mass = pair
    merged = starts._merge(
        Clusters(previous, previous_mass), Clusters(current, current_mass), generator_for(seed, 0)
    )
    total = previous_mass.sum() + current_mass.sum()
    assert merged.masses.sum() == pytest.approx(total)
    moment = previous_mass @ previous + current_mass @ current
    np.testing.assert_allclose(merged.masses @ merged.centroids, moment, rtol=1e-9, atol=1e-6)


@given(pair=pairs(), seed=st.integers(0, 1000))
def test_weighted_is_kmeans_on_the_union_in_the_order_of_the_previous(
    pair: Pair, seed: int
) -> None:
    previous, previous_mass, current, current_mass = pair
    found = initialise.weighted(*pair, random_state=seed)
    assert found.shape == previous.shape
    union = np.concatenate([previous, current])
    masses = np.concatenate([previous_mass, current_mass])
    uniforms = generator_for(seed, 0).random(len(previous))
    fit = naive.kmeans(union[masses > 0], masses[masses > 0].tolist(), uniforms.tolist())
    if fit.margin <= 1e-9:
        return
    # The same centroids, matched at the least cost; previous ones fill up where they are fewer.
    for centroid in fit.centroids:
        assert np.isclose(found, centroid, rtol=1e-9, atol=1e-9).all(axis=1).any()
    _, matching = initialise.hungarian(previous, previous_mass, fit.centroids, fit.masses)
    cost = sum(
        naive.merge_cost(previous_mass[k], previous[k], fit.masses[j], fit.centroids[j])
        for k, j in enumerate(matching.tolist())
        if j >= 0
    )
    best = naive.best_matching_cost(previous, previous_mass.tolist(), fit.centroids, fit.masses)
    assert cost == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_a_cluster_without_mass_goes_the_shortest_way() -> None:
    """Costs are 0 for clusters 1 and 2; their ids still follow what is near."""
    centroids, matching = initialise.hungarian(
        [[0.0], [10.0], [20.0]], [5, 0, 0], [[21.0], [11.0], [1.0]], [1, 1, 1]
    )
    assert matching.tolist() == [2, 1, 0]
    assert centroids.ravel().tolist() == pytest.approx([1 / 6, 11.0, 21.0])


def test_without_any_mass_every_cluster_goes_the_shortest_way() -> None:
    centroids, matching = initialise.hungarian([[0.0], [10.0]], [0, 0], [[9.0], [1.0]], [3, 4])
    assert matching.tolist() == [1, 0]
    assert centroids.tolist() == [[1.0], [9.0]]


def test_fewer_new_clusters_leave_the_others_where_they_are() -> None:
    centroids, matching = initialise.hungarian([[0.0], [10.0], [20.0]], [1, 1, 1], [[12.0]], [1])
    assert matching.tolist() == [-1, 0, -1]
    assert centroids.tolist() == [[0.0], [11.0], [20.0]]


def found_on_batch(centroids: list[list[float]], masses: list[float]) -> LloydResult:
    labels = np.zeros(1, dtype=np.int32)
    return LloydResult(np.array(centroids), labels, np.array(masses), 0.0, 4, True, 100, 120)


def start(init: str, previous: list[list[float]], masses: list[float], found: LloydResult) -> Start:
    clusters = Clusters(np.array(previous), np.array(masses))
    return INITIALISATIONS[init](clusters, lambda: found, lambda: generator_for(0, 0))


def test_each_initialisation_starts_as_the_paper_says() -> None:
    previous, masses = [[0.0], [10.0]], [1.0, 1.0]
    found = found_on_batch([[14.0], [2.0]], [3.0, 1.0])
    starts = {init: start(init, previous, masses, found) for init in INITIALISATIONS}
    centroids = {init: s.centroids.ravel().tolist() for init, s in starts.items()}
    assert centroids["previous"] == [0.0, 10.0]
    assert centroids["current"] == [2.0, 14.0]  # in the order of the previous ones
    assert centroids["hungarian"] == [1.0, 13.0]
    assert centroids["weighted"] == [1.0, 13.0]  # the same two groups


def test_current_fills_up_with_the_previous_centroids_left_over() -> None:
    found = found_on_batch([[12.0]], [3.0])
    filled = start("current", [[0.0], [10.0], [20.0]], [1.0, 1.0, 1.0], found)
    assert filled.centroids.ravel().tolist() == [0.0, 12.0, 20.0]


def test_distances_of_each_initialisation_are_counted() -> None:
    """PC none; the others the K-means on the batch and K * K of the matching."""
    previous, masses = [[0.0], [10.0]], [1.0, 1.0]
    found = found_on_batch([[14.0], [2.0]], [3.0, 1.0])
    counts = {}
    for init in INITIALISATIONS:
        begun = start(init, previous, masses, found)
        counts[init] = (begun.n_distances, begun.n_distances_plain)
    assert counts["previous"] == (0, 0)
    assert counts["current"] == counts["hungarian"] == (100 + 4, 120 + 4)
    merged = starts._merge(
        Clusters(np.array(previous), np.array(masses)),
        Clusters(found.centroids, found.masses),
        generator_for(0, 0),
    )
    assert merged.n_distances_plain == 4 * (2 - 1) + merged.n_iter * 4 * 2
    assert counts["weighted"] == (100 + 4 + merged.n_distances, 124 + merged.n_distances_plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([[0.0]], [1], [[1.0], [2.0]], [1, 1]),
            "current has 2 centroids, previous has 1. There cannot be more new clusters than "
            "there are ids to continue.",
        ),
        (
            ([[0.0]], [1], [[1.0, 2.0]], [1]),
            "current has 2 columns, the points have 1. Both must come from the same features.",
        ),
        (
            ([[0.0], [1.0]], [1], [[1.0]], [1]),
            "previous_mass must hold one mass per centroid, shape (2,), got shape (1,).",
        ),
        (
            ([[0.0]], [1], [[1.0]], [-2]),
            "current_mass must lie between 0 and 1e+30, got [-2.0].",
        ),
    ],
)
def test_bad_arguments_are_explained(arguments: tuple[Any, Any, Any, Any], message: str) -> None:
    for function in (initialise.hungarian, initialise.weighted):
        with pytest.raises(InputError) as caught:
            function(*arguments)
        assert str(caught.value) == message
