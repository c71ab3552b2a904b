"""A Batch: points that arrived together, checked once, when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from kmeander import _kernel
from kmeander.arguments import finite_number, is_finite, positive_number, whole_number
from kmeander.arrays import Points, Weights, checked_points, checked_weights
from kmeander.records.captions import Captions

# When the first and the last row of a batch happened, as text.
Times = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Batch:
    """Points that arrived together, copied and checked.

    Parameters
    ----------
    index : int
        How many batches came before it.
    points : array-like of shape (n_points, n_features)
        float32 stays float32, everything else becomes float64.
    weights : array-like of shape (n_points,), optional
        Each point counts as that many; by default all count as one.
    elapsed : float, default=1.0
        Ages that the batches before it grow by on its arrival.
    concept : int, optional
        Which distribution the points come from. Only PSKM and scores may look at it.
    times : tuple of str, optional
        When the first and the last of its rows happened, for the Step to say: ISO 8601, in UTC.
    captions : Captions, optional
        What names each row, or what it says, for profiles of clusters to show.

    Attributes
    ----------
    n_points : int
        Number of points, or of means where it is a summary.
    n_rows : int
        Rows that arrived: as many as points, unless those are means; see `of_means`.
    within : float or None
        Weighted squared distances of the rows to their means; None where the points are the rows.

    Examples
    --------
    >>> Batch(0, [[1.0, 2.0], [3.0, 4.0]]).n_points
    2
    """

    index: int
    points: Points
    weights: Weights | None = None
    elapsed: float = 1.0
    concept: int | None = None
    times: Times | None = None
    captions: Captions | None = None
    n_points: int = field(init=False)
    n_rows: int = field(init=False)
    within: float | None = field(init=False, default=None)

    def __init__(
        self,
        index: int,
        points: ArrayLike,
        weights: ArrayLike | None = None,
        elapsed: float = 1.0,
        concept: int | None = None,
        times: Times | None = None,
        captions: Captions | None = None,
    ) -> None:
        checked = checked_points(points, copy=True)
        # At once: frozen fields set one by one take longer than all the checks.
        vars(self).update(
            index=whole_number("index", index, at_least=0, meaning="the batch's place"),
            points=checked,
            weights=checked_weights(weights, len(checked)),
            elapsed=positive_number("elapsed", elapsed),
            concept=None if concept is None else _checked_concept(concept),
            times=times,
            captions=captions,
            n_points=len(checked),
            n_rows=len(checked),
        )

    @classmethod
    def of_points(
        cls,
        index: int,
        points: Points,
        weights: ArrayLike | None = None,
        elapsed: float = 1.0,
        concept: int | None = None,
        times: Times | None = None,
        captions: Captions | None = None,
    ) -> Batch:
        """Make a batch of points that `checked_points` has copied; the rest is checked here."""
        batch = cls.__new__(cls)
        vars(batch).update(
            index=index,
            points=points,
            weights=None if weights is None else checked_weights(weights, len(points)),
            elapsed=elapsed if elapsed == 1.0 else positive_number("elapsed", elapsed),
            concept=concept,
            times=times,
            captions=captions,
            n_points=len(points),
            n_rows=len(points),
        )
        return batch

    @classmethod
    def of_means(
        cls,
        index: int,
        means: ArrayLike,
        masses: ArrayLike,
        *,
        within: float,
        n_rows: int,
        elapsed: float = 1.0,
        times: Times | None = None,
    ) -> Batch:
        """Make a batch that is a summary: weighted means of rows that stayed elsewhere.

        Parameters
        ----------
        index : int
        means : array-like of shape (n_means, n_features)
        masses : array-like of shape (n_means,)
            Weight of the rows behind each mean.
        within : float
            Weighted squared distances of the rows to their means: what the means lack of the error
            of any centroids. Errors include it.
        n_rows : int
            Rows behind all means.
        elapsed, times
            As for `Batch`.

        Examples
        --------
        >>> batch = Batch.of_means(0, [[0.5], [8.0]], [2, 1], within=0.5, n_rows=3)
        >>> batch.n_points, batch.n_rows
        (2, 3)
        """
        batch = cls(index, means, masses, elapsed, times=times)
        vars(batch).update(
            within=finite_number(
                "within",
                within,
                rule="a finite number of at least 0: the squared distances of rows to their means",
                fits=is_finite(within) and within >= 0,
            ),
            n_rows=whole_number(
                "n_rows", n_rows, at_least=1, at_most=2**63 - 1, meaning="the rows behind the means"
            ),
        )
        return batch

    def with_points(self, points: Points) -> Batch:
        """Return the batch with these points, which `checked_points` has seen, in place of its."""
        batch = type(self).__new__(type(self))
        vars(batch).update(self.__getstate__(), points=points)
        return batch

    @property
    def n_means(self) -> int | None:
        """Number of means where it is a summary; None where its points are rows."""
        return None if self.within is None else self.n_points

    @cached_property
    def mass(self) -> float:
        """Weight of all points."""
        return float(len(self.points) if self.weights is None else self.weights.sum())

    @cached_property
    def handle(self) -> _kernel.BatchHandle:
        """Points and weights as the kernel reads them."""
        return _kernel.BatchHandle(self.points, self.weights, self.mass)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "handle"}


def _checked_concept(concept: int) -> int:
    return whole_number("concept", concept, at_least=0, meaning="the number of a distribution")
