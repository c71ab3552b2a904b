"""Columns that set a cluster apart: its mean and that of all other points, in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Masses
from kmeander.preparation import FittedPreparation
from kmeander.records.profile import Contrast

# Standard deviations by which a column must differ to be named, and to go on being true.
NAMED, COLUMN_TRUE = 0.5, 0.25
# Columns that a profile names.
MOST = 3

_Numbers = NDArray[np.float64]


class ColumnKinds(NamedTuple):
    """What the columns of a point are to people.

    Parameters
    ----------
    names : list of str
    speaks : ndarray of bool
        Which say anything: a number inside a vector does not.
    is_share, is_level : ndarray of bool
        Which columns are shares, and which of these belong to the levels of a category.
    """

    names: list[str]
    speaks: NDArray[np.bool_]
    is_share: NDArray[np.bool_]
    is_level: NDArray[np.bool_]

    @classmethod
    def of(
        cls, preparation: FittedPreparation | None, names: Sequence[str] | None, n_columns: int
    ) -> ColumnKinds:
        """Return the kinds of prepared columns, or of those that were learned as they came."""
        if preparation is None:
            known = names if names is not None else [f"x{place}" for place in range(n_columns)]
            no = np.zeros(n_columns, dtype=bool)
            return cls(list(known), ~no, no, no)
        kinds = [plan.kind for plan in preparation.plans for _ in plan.outputs]
        speaks = np.array([kind != "vector" for kind in kinds], dtype=bool)
        is_share = np.array([kind in ("boolean", "category") for kind in kinds], dtype=bool)
        is_level = np.array([kind == "category" for kind in kinds], dtype=bool)
        return cls(list(preparation.names), speaks, is_share, is_level)


class Differences(NamedTuple):
    """How each cluster differs from all other points in each column, and its words."""

    kinds: ColumnKinds
    means: _Numbers  # of clusters, in the user's units
    rests: _Numbers  # of all other points
    differences: _Numbers  # in standard deviations of the column; 0 where nobody could say
    order: NDArray[np.intp]  # columns of each cluster, the strongest first

    @classmethod
    def of(
        cls,
        centroids: Centroids,
        masses: Masses,
        deviations: _Numbers,
        kinds: ColumnKinds,
        preparation: FittedPreparation | None,
    ) -> Differences:
        """Return the differences of clusters whose columns have these standard deviations."""
        mass = masses.sum()
        others = mass - masses
        has_rest = others > 1e-9 * mass
        rests = (masses @ centroids - masses[:, np.newaxis] * centroids) / np.where(
            has_rest, others, 1.0
        )[:, np.newaxis]
        tells = kinds.speaks & (deviations > 0)
        differences = (centroids - rests) / np.where(deviations > 0, deviations, 1.0)
        differences *= tells & has_rest[:, np.newaxis] & (masses > 0)[:, np.newaxis]
        # Of a category the levels that are frequent say all; those that are rare say it again.
        differences = np.where(kinds.is_level & (differences < 0), 0.0, differences)
        if preparation is not None:
            centroids, rests = preparation.restored(centroids), preparation.restored(rests)
        order = np.argsort(-np.abs(differences), axis=1, kind="stable")
        return cls(kinds, centroids, rests, differences, order)

    def contrasts(self, row: int, least: float = NAMED, most: int | None = MOST) -> list[Contrast]:
        """Return the columns in which a cluster differs by at least so much, the first first."""
        found = []
        for place in self.order[row, :most].tolist():
            difference = self.differences.item(row, place)
            if abs(difference) < least:
                break
            found.append(
                Contrast(
                    self.kinds.names[place],
                    self.means.item(row, place),
                    self.rests.item(row, place),
                    difference,
                    is_share=bool(self.kinds.is_share[place]),
                )
            )
        return found
