"""Concepts that drift by a given amount, and streams drawn from them (Appendix A of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.arguments import generator_for, one_of, positive_number, seed_from, whole_number
from kmeander.arrays import LARGEST_VALUE, Centroids, Points, checked_points
from kmeander.drifts.magnitude import MAGNITUDES, Concept, Shift
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits
from kmeander.kmeans.seeding import kmeans
from kmeander.records import Batch

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


@overload
def simulate_drifts(
    X: ArrayLike,
    n_clusters: int,
    epsilon: float,
    n_concepts: int,
    *,
    method: str = "root",
    return_centroids: Literal[False] = False,
    random_state: RandomState = None,
) -> list[Concept]: ...
@overload
def simulate_drifts(
    X: ArrayLike,
    n_clusters: int,
    epsilon: float,
    n_concepts: int,
    *,
    method: str = "root",
    return_centroids: Literal[True],
    random_state: RandomState = None,
) -> tuple[list[Concept], list[Centroids]]: ...
def simulate_drifts(
    X: ArrayLike,
    n_clusters: int,
    epsilon: float,
    n_concepts: int,
    *,
    method: str = "root",
    return_centroids: bool = False,
    random_state: RandomState = None,
) -> list[Concept] | tuple[list[Concept], list[Centroids]]:
    """Make concepts out of `X`, each a (1+epsilon)-drift of the one before (Appendix A).

    K-means finds the centroids C of a concept; then each of its clusters moves in a direction of
    its own, drawn uniformly from the sphere, all by the same distance: the one at which the error
    of the moved points under C is ``1 + epsilon`` times that of the points before [1]_.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The first concept.
    n_clusters : int
    epsilon : float
        Size of each drift, above 0.
    n_concepts : int
        How many concepts to return, `X` included.
    method : {"root", "paper"}, default="root"
        How the distance is found. ``"root"`` brackets it and meets the error's growth,
        ``epsilon * E``, to 0.1 %. ``"paper"`` is the paper's iteration, which stops as soon as the
        new error is within 5 % of ``(1 + epsilon) * E``: it comes from below, so drifts are
        smaller than asked for, and below an epsilon of about 0.5 the tolerance swallows them.
    return_centroids : bool, default=False
        Also return the centroids of each concept.
    random_state : int, Generator, RandomState or None
        Decides the K-means seedings and the directions.

    Returns
    -------
    concepts : list of ndarray of shape (n_points, n_features)
        Row i of each is row i of `X`, moved.
    centroids : list of ndarray of shape (n_clusters, n_features)
        With `return_centroids`: ``centroids[i]`` are those of ``concepts[i]``.

    Notes
    -----
    In the paper's first step the error must be read as a sum over the points; with the mean of
    equation (1) the iteration starts, and walks in steps, ``sqrt(K * |X|)`` times too short.

    Examples
    --------
    >>> X = [[0.0], [2.0], [10.0], [14.0]]
    >>> (before, after), (centroids, _) = simulate_drifts(
    ...     X, n_clusters=1, epsilon=3.0, n_concepts=2, return_centroids=True, random_state=0
    ... )
    >>> from kmeander import kmeans_error
    >>> ratio = kmeans_error(after, centroids) / kmeans_error(before, centroids)
    >>> round(ratio, 6)
    4.0

    References
    ----------
    .. [1] Bidaurrazaga, Pérez, Capó, "K-means for Evolving Data Streams", ICDM 2021.
    """
    concepts, centroids = drifting_concepts(
        checked_points(X),
        whole_number("n_clusters", n_clusters, at_least=1, meaning="the number of clusters K"),
        positive_number("epsilon", epsilon),
        whole_number("n_concepts", n_concepts, at_least=1, meaning="the number of concepts"),
        method=method,
        seed=seed_from(random_state),
        all_centroids=return_centroids,
    )
    return (concepts, centroids) if return_centroids else concepts


def drifting_concepts(
    points: Points,
    n_clusters: int,
    epsilon: float,
    n_concepts: int,
    *,
    method: str = "root",
    seed: int = 0,
    all_centroids: bool = False,
    n_threads: int | None = None,
) -> tuple[list[Concept], list[Centroids]]:
    """Do what `simulate_drifts` does, arguments checked before.

    The last concept's centroids take one more K-means; without `all_centroids` it is left out.
    """
    one_of("method", method, MAGNITUDES)
    limits = Limits(n_threads=n_threads)
    concepts: list[Concept] = [points.astype(np.float64)]
    centroids: list[Centroids] = []
    for index in range(n_concepts - 1 + all_centroids):
        rng = generator_for(seed, index)
        found = kmeans(concepts[-1], None, n_clusters, rng, limits)
        centroids.append(found.centroids)
        if index < n_concepts - 1:
            directions = random_directions(len(found.centroids), points.shape[1], rng)
            shift = Shift(concepts[-1], found.labels, found.centroids, directions, n_threads)
            moved = shift.by(MAGNITUDES[method](shift, epsilon))
            farthest = float(np.abs(moved).max())
            if not farthest <= LARGEST_VALUE:
                raise InputError(
                    f"concept {index + 1} would reach values of {farthest:g}, beyond "
                    f"±{LARGEST_VALUE:g}. Drifts of epsilon={epsilon:g} are too large for so many "
                    "in a row; ask for smaller or fewer."
                )
            concepts.append(moved)
    return concepts, centroids


def random_directions(
    n_directions: int, n_features: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return unit vectors drawn uniformly from the sphere; for one column, signs."""
    drawn = rng.normal(size=(n_directions, n_features))
    lengths = np.sqrt((drawn * drawn).sum(axis=1, keepdims=True))
    directions: NDArray[np.float64] = drawn / lengths
    return directions


class DriftStream:
    """Batches drawn from one concept after the other.

    Every row of a batch is drawn from its concept independently of all others, as Theorem 1
    assumes. A batch depends on the seed and its index alone: the stream may be iterated again,
    and from anywhere.

    Parameters
    ----------
    concepts : sequence of array-like of shape (n_points, n_features)
        As from `simulate_drifts`; they may differ in rows, not in columns.
    batch_size : int, default=500
    batches_per_concept : int, default=10
    random_state : int, Generator, RandomState or None

    Yields
    ------
    batch : ndarray of shape (batch_size, n_features)
    is_drift : bool
        Whether a new concept begins with this batch; False for the first batch of all.

    Examples
    --------
    >>> stream = DriftStream([[[0.0]], [[5.0]]], batch_size=2, batches_per_concept=2)
    >>> [(batch.ravel().tolist(), is_drift) for batch, is_drift in stream]
    [([0.0, 0.0], False), ([0.0, 0.0], False), ([5.0, 5.0], True), ([5.0, 5.0], False)]
    """

    def __init__(
        self,
        concepts: Sequence[ArrayLike],
        batch_size: int = 500,
        batches_per_concept: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.concepts = _checked_concepts(concepts)
        self.batch_size = whole_number(
            "batch_size", batch_size, at_least=1, meaning="the number of rows per batch"
        )
        self.batches_per_concept = whole_number(
            "batches_per_concept",
            batches_per_concept,
            at_least=1,
            meaning="the number of batches drawn from each concept",
        )
        self.seed = seed_from(random_state)

    def __len__(self) -> int:
        return len(self.concepts) * self.batches_per_concept

    def __iter__(self) -> Iterator[tuple[Points, bool]]:
        for index in range(len(self)):
            yield self.batch(index), self.is_drift(index)

    def concept(self, index: int) -> int:
        """Return which concept batch `index` belongs to."""
        return index // self.batches_per_concept

    def is_drift(self, index: int) -> bool:
        """Return whether a new concept begins with batch `index`."""
        return index > 0 and index % self.batches_per_concept == 0

    def batch(self, index: int) -> Points:
        """Return the rows of batch `index`."""
        concepts, rows = self.draw(index)
        drawn = np.empty((self.batch_size, self.concepts[0].shape[1]))
        for concept in np.unique(concepts):
            chosen = concepts == concept
            drawn[chosen] = self.concepts[concept][rows[chosen]]
        return drawn

    def draw(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each row of batch `index`, its concept and which row of that it is."""
        if not 0 <= index < len(self):
            raise InputError(f"index must lie in [0, {len(self)}), got {index!r}.")
        rng = generator_for(self.seed, index)
        concepts = self._concepts_of_rows(index, rng)
        sizes = np.array([len(concept) for concept in self.concepts])
        return concepts, rng.integers(sizes[concepts])

    def batches(self, first_index: int = 0) -> Iterator[Batch]:
        """Yield the stream as `Batch` records that carry their concept, numbered from there."""
        for index in range(len(self)):
            yield Batch(first_index + index, self.batch(index), concept=self.concept(index))

    def _concepts_of_rows(self, index: int, rng: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG002
        return np.full(self.batch_size, self.concept(index), dtype=np.int64)


def _checked_concepts(concepts: Sequence[ArrayLike]) -> list[Points]:
    # Copied: what becomes of the caller's arrays must not change the stream.
    checked = [
        checked_points(concept, f"concepts[{i}]").copy() for i, concept in enumerate(concepts)
    ]
    if not checked:
        raise InputError("concepts is empty. A stream needs at least one concept to draw from.")
    for i, concept in enumerate(checked):
        if concept.shape[1] != checked[0].shape[1]:
            raise InputError(
                f"concepts[{i}] has {concept.shape[1]} columns, concepts[0] has "
                f"{checked[0].shape[1]}. All concepts need the same columns."
            )
    return checked
