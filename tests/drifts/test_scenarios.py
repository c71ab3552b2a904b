"""Streams that change otherwise: slowly, or cluster by cluster, with the truth recorded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import DriftStream, InputError
from kmeander.drifts.scenarios import CHANGES, ClusterConcept, GradualStream, evolve_clusters

CHANGED_BY = {"appear": 1, "split": 1, "vanish": -1, "merge": -1}
TOWNS = np.array([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0], [60.0, 60.0]])


def towns(seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.repeat(TOWNS, [30, 20, 40, 25], axis=0) + rng.normal(size=(115, 2))


def means(concept: ClusterConcept) -> dict[int, NDArray[np.float64]]:
    return {k: concept.points[concept.clusters == k].mean(axis=0) for k in concept.ids}


def test_a_newcomer_lands_where_nobody_was() -> None:
    for seed in range(10):
        before, after = evolve_clusters(towns(), 4, ["appear"], random_state=seed)
        (new,) = after.involved
        assert after.change == "appear" and new == 4
        assert set(after.ids) == {*before.ids, 4}
        assert (after.points[: len(before.points)] == before.points).all()
        newcomer = after.points[after.clusters == new]
        gaps = ((newcomer[:, np.newaxis] - before.points) ** 2).sum(axis=2)
        radius = newcomer.std(axis=0).max()
        assert np.sqrt(gaps.min()) > radius


def test_a_cluster_that_vanishes_takes_all_its_rows_along() -> None:
    before, after = evolve_clusters(towns(), 4, ["vanish"], random_state=0)
    (gone,) = after.involved
    stays = before.clusters != gone
    assert (after.points == before.points[stays]).all()
    assert after.ids == [k for k in before.ids if k != gone]


def test_a_cluster_that_splits_becomes_two_far_apart() -> None:
    before, after = evolve_clusters(towns(), 4, ["split"], random_state=0)
    old, new = after.involved
    assert new == 4 and old in before.ids
    others = before.clusters != old
    assert (after.points[others] == before.points[others]).all()
    halves = [(after.clusters == k).sum() for k in (old, new)]
    assert abs(halves[0] - halves[1]) <= 1
    centre = means(after)
    gap = np.linalg.norm(centre[old] - centre[new])
    spread = max(after.points[after.clusters == k].std(axis=0).max() for k in (old, new))
    assert gap > 5 * spread


def test_the_two_nearest_clusters_merge_in_their_common_mean() -> None:
    before, after = evolve_clusters(towns(), 4, ["merge"], random_state=0)
    kept, given_up = after.involved
    centres = means(before)
    pair = {kept, given_up}
    nearest = min(
        ((i, j) for i in before.ids for j in before.ids if i < j),
        key=lambda ij: float(np.linalg.norm(centres[ij[0]] - centres[ij[1]])),
    )
    assert pair == set(nearest)
    assert after.ids == [k for k in before.ids if k != given_up]
    both = np.isin(before.clusters, list(pair))
    assert means(after)[kept] == pytest.approx(before.points[both].mean(axis=0))
    for k in pair:
        assert after.points[before.clusters == k].mean(axis=0) == pytest.approx(means(after)[kept])


@settings(max_examples=25)
@given(changes=st.lists(st.sampled_from(sorted(CHANGES)), max_size=6), seed=st.integers(0, 999))
def test_the_truth_of_any_sequence_of_changes_is_consistent(changes: list[str], seed: int) -> None:
    sizes = list(itertools.accumulate((CHANGED_BY[change] for change in changes), initial=4))
    if 0 in sizes:
        with pytest.raises(InputError, match="needs at least two clusters, there is 1 left"):
            evolve_clusters(towns(), 4, changes, random_state=seed)
        return
    concepts = evolve_clusters(towns(), 4, changes, random_state=seed)
    assert [concept.change for concept in concepts] == ["start", *changes]
    assert [len(concept.ids) for concept in concepts] == sizes
    seen = set(concepts[0].ids)
    for before, after in itertools.pairwise(concepts):
        assert len(after.points) == len(after.clusters)
        assert np.isfinite(after.points).all()
        new = set(after.ids) - set(before.ids)
        assert not new & seen  # an id is never given twice
        seen |= new
    again = evolve_clusters(towns(), 4, changes, random_state=seed)
    assert all((a.points == b.points).all() for a, b in zip(concepts, again, strict=True))


def test_impossible_changes_are_refused() -> None:
    with pytest.raises(InputError) as raised:
        evolve_clusters(towns(), 4, ["explode"])
    assert str(raised.value) == (
        "changes must be drawn from 'appear', 'vanish', 'split', 'merge', got 'explode'."
    )
    with pytest.raises(InputError) as raised:
        evolve_clusters(towns(), 1, ["vanish"])
    assert str(raised.value) == (
        "'vanish' needs at least two clusters, there is 1 left. Start with a larger n_clusters or "
        "leave out some changes."
    )
    with pytest.raises(InputError) as raised:
        evolve_clusters([[0.0], [1.0]], 2, ["split"])
    assert str(raised.value) == "no cluster has two points, so none can split. Pass more rows."


def test_a_gradual_stream_moves_over_in_equal_steps() -> None:
    zeros, ones, twos = ([[float(i)]] for i in range(3))
    stream = GradualStream([zeros, ones, twos], 4000, 6, transition=3, random_state=0)
    shares = [1.0] * 6 + [0.25, 0.5, 0.75, 1, 1, 1] * 2
    assert [stream.share_of_new(i) for i in range(18)] == shares
    for index, (batch, is_drift) in enumerate(stream):
        concept = index // 6
        assert is_drift == (index in (6, 12))
        assert set(batch.ravel()) <= {concept, concept - 1.0}
        assert (batch == concept).mean() == pytest.approx(shares[index], abs=0.03)
        concepts, _ = stream.draw(index)
        assert (concepts == batch.ravel()).all()  # the truth, row by row


def test_without_a_transition_a_gradual_stream_is_abrupt() -> None:
    concepts = [[[0.0]], [[1.0]]]
    gradual = GradualStream(concepts, 20, 3, transition=0, random_state=0)
    abrupt = DriftStream(concepts, 20, 3, random_state=0)
    for (a, _), (b, _) in zip(gradual, abrupt, strict=True):
        assert (a == b).all()
    with pytest.raises(InputError) as raised:
        GradualStream(concepts, 20, 3, transition=4)
    assert str(raised.value) == (
        "transition must not exceed batches_per_concept=3, got 4. A concept must arrive before the "
        "next one begins."
    )
