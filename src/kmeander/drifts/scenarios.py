"""Gradual drift, and clusters that appear, vanish, split and merge: streams with their truth.

Beside the drifts of the paper (`drift`) these are what a stream clusterer meets; the truth is
recorded with each, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.arguments import generator_for, seed_from, whole_number
from kmeander.arrays import checked_points
from kmeander.drifts.concepts import DriftStream, random_directions
from kmeander.drifts.magnitude import Concept
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits
from kmeander.kmeans.seeding import kmeans

if TYPE_CHECKING:
    from kmeander.arguments import RandomState

Ids = NDArray[np.int64]

# Centres that part, or a newcomer and its model, end this many radii apart: two clusters to anyone.
RADII_APART = 5.0


@dataclass(frozen=True, eq=False)
class ClusterConcept:
    """A concept whose clusters are known.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    clusters : ndarray of shape (n_points,)
        Id of each row's cluster. An id is never given twice.
    change : str
        What led to it: ``"start"``, ``"appear"``, ``"vanish"``, ``"split"`` or ``"merge"``.
    involved : tuple of int
        Ids that the change concerns: the newcomer, the one gone, the parted, or the one kept and
        the one given up.
    """

    points: Concept
    clusters: Ids
    change: str = "start"
    involved: tuple[int, ...] = ()

    @property
    def ids(self) -> list[int]:
        """Ids of the clusters that there are."""
        return [int(number) for number in np.unique(self.clusters)]


def evolve_clusters(
    X: ArrayLike,
    n_clusters: int,
    changes: Sequence[str],
    *,
    random_state: RandomState = None,
) -> list[ClusterConcept]:
    """Make concepts out of `X` in which one cluster after the other changes.

    The clusters are those that K-means finds in `X`. Which of them changes is drawn at random,
    except that the two nearest merge.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The first concept.
    n_clusters : int
        How many clusters it has.
    changes : sequence of {"appear", "vanish", "split", "merge"}
        What leads from each concept to the next. A newcomer is a copy of another cluster's rows,
        elsewhere; a cluster that splits is cut in two halves, which move apart; two that merge
        meet in their common mean.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    list of ClusterConcept
        One more than there are changes.

    Examples
    --------
    >>> X = [[0.0], [1.0], [50.0], [51.0], [90.0], [91.0]]
    >>> start, fewer = evolve_clusters(X, 3, ["merge"], random_state=0)
    >>> len(start.ids), len(fewer.ids), sorted(fewer.points.ravel().tolist())
    (3, 2, [0.0, 1.0, 70.0, 70.0, 71.0, 71.0])
    """
    points = checked_points(X).astype(np.float64)
    whole_number("n_clusters", n_clusters, at_least=1, meaning="the number of clusters K")
    for change in changes:
        if change not in CHANGES:
            raise InputError(
                f"changes must be drawn from {', '.join(map(repr, CHANGES))}, got {change!r}."
            )
    seed = seed_from(random_state)
    found = kmeans(points, None, n_clusters, generator_for(seed, 0), Limits())
    concepts = [ClusterConcept(points, found.labels.astype(np.int64))]
    next_id = len(found.centroids)
    for index, change in enumerate(changes, start=1):
        concepts.append(CHANGES[change](concepts[-1], next_id, generator_for(seed, index)))
        next_id += change in ("appear", "split")
    return concepts


def _appear(before: ClusterConcept, new_id: int, rng: np.random.Generator) -> ClusterConcept:
    model = before.points[before.clusters == rng.choice(before.ids)]
    way = random_directions(1, model.shape[1], rng)[0]
    # Beyond everything there is, in that direction: a newcomer lands on nobody.
    centre = before.points.mean(axis=0)
    reach = float(((before.points - centre) * way).sum(axis=1).max())
    offset = centre - model.mean(axis=0) + (reach + RADII_APART * _radius(model)) * way
    return ClusterConcept(
        np.concatenate([before.points, model + offset]),
        np.concatenate([before.clusters, np.full(len(model), new_id)]),
        "appear",
        (new_id,),
    )


def _vanish(before: ClusterConcept, new_id: int, rng: np.random.Generator) -> ClusterConcept:  # noqa: ARG001
    _need_two(before, "vanish")
    gone = int(rng.choice(before.ids))
    stays = before.clusters != gone
    return ClusterConcept(before.points[stays], before.clusters[stays], "vanish", (gone,))


def _split(before: ClusterConcept, new_id: int, rng: np.random.Generator) -> ClusterConcept:
    able = [number for number in before.ids if (before.clusters == number).sum() > 1]
    if not able:
        raise InputError("no cluster has two points, so none can split. Pass more rows.")
    parted = int(rng.choice(able))
    members = np.flatnonzero(before.clusters == parted)
    way = random_directions(1, before.points.shape[1], rng)[0]
    along = (before.points[members] * way).sum(axis=1)
    far = members[np.argsort(along, kind="stable")[len(members) // 2 :]]
    near = np.setdiff1d(members, far)
    points, clusters = before.points.copy(), before.clusters.copy()
    push = RADII_APART / 2 * _radius(before.points[members]) * way
    points[far] += push
    points[near] -= push
    clusters[far] = new_id
    return ClusterConcept(points, clusters, "split", (parted, new_id))


def _merge(before: ClusterConcept, new_id: int, rng: np.random.Generator) -> ClusterConcept:  # noqa: ARG001
    _need_two(before, "merge")
    ids = before.ids
    centres = [before.points[before.clusters == number].mean(axis=0) for number in ids]
    _, one, other = min(
        (float(((centres[i] - centres[j]) ** 2).sum()), i, j)
        for j in range(len(ids))
        for i in range(j)
    )
    both = np.isin(before.clusters, [ids[one], ids[other]])
    middle = before.points[both].mean(axis=0)
    points, clusters = before.points.copy(), before.clusters.copy()
    for which in (one, other):
        points[before.clusters == ids[which]] += middle - centres[which]
    clusters[both] = ids[one]
    return ClusterConcept(points, clusters, "merge", (ids[one], ids[other]))


CHANGES: dict[str, Callable[[ClusterConcept, int, np.random.Generator], ClusterConcept]] = {
    "appear": _appear,
    "vanish": _vanish,
    "split": _split,
    "merge": _merge,
}


def _radius(points: Concept) -> float:
    """Return the root of the mean squared distance to the mean; 1 for points all equal."""
    squared = ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    return float(np.sqrt(squared)) if squared > 0 else 1.0


def _need_two(concept: ClusterConcept, change: str) -> None:
    if len(concept.ids) < 2:
        raise InputError(
            f"{change!r} needs at least two clusters, there is {len(concept.ids)} left. Start with "
            "a larger n_clusters or leave out some changes."
        )


class GradualStream(DriftStream):
    """Batches from one concept after the other, each new one mixed in over several batches.

    In the first `transition` batches of a new concept a row comes from it with a probability that
    rises in equal steps; the others still come from the concept before.

    Parameters
    ----------
    concepts, batch_size, batches_per_concept, random_state
        As for `DriftStream`.
    transition : int, default=5
        Batches that hold rows of both concepts; 0 is an abrupt drift.

    Examples
    --------
    >>> stream = GradualStream(
    ...     [[[0.0]], [[1.0]]], batch_size=2000, batches_per_concept=5, transition=4, random_state=0
    ... )
    >>> [round(float(batch.mean()), 1) for batch, _ in stream]  # share of the new concept
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """

    def __init__(
        self,
        concepts: Sequence[ArrayLike],
        batch_size: int = 500,
        batches_per_concept: int = 10,
        transition: int = 5,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(concepts, batch_size, batches_per_concept, random_state)
        self.transition = whole_number(
            "transition", transition, at_least=0, meaning="the number of batches with both concepts"
        )
        if transition > self.batches_per_concept:
            raise InputError(
                f"transition must not exceed batches_per_concept={self.batches_per_concept}, got "
                f"{transition!r}. A concept must arrive before the next one begins."
            )

    def share_of_new(self, index: int) -> float:
        """Return the probability with which a row of batch `index` is of its own concept."""
        within = index % self.batches_per_concept
        if self.concept(index) == 0 or within >= self.transition:
            return 1.0
        return (within + 1) / (self.transition + 1)

    def _concepts_of_rows(self, index: int, rng: np.random.Generator) -> NDArray[np.int64]:
        of_old = rng.random(self.batch_size) >= self.share_of_new(index)
        return super()._concepts_of_rows(index, rng) - of_old
