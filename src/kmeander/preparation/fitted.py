"""A preparation that has seen rows: table to points and back, revised as the stream goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Points, frozen
from kmeander.exceptions import InputError
from kmeander.preparation.layout import ColumnLayout
from kmeander.preparation.matching import matched
from kmeander.preparation.plan import ColumnPlan, plans_for
from kmeander.preparation.rows import Column, Rows
from kmeander.preparation.rules import Preparation, rule
from kmeander.preparation.scaling import UNKNOWN_UNIT, Numbers, Scale

# Standard deviation of values that are spread evenly over a range of 1.
_EVEN = 12**-0.5
# How much the levels of a new batch count in which one is the most frequent.
_KEPT = 0.5


class Prepared(NamedTuple):
    """Rows as points."""

    points: Points
    filled: dict[str, int]  # by column, how many values were missing
    kept: NDArray[np.bool_] | None = None  # which rows are there, where some were left out


@dataclass(frozen=True, eq=False)
class FittedPreparation:
    """Rules and what was learned of the rows so far. Never changed: `after` returns a new one.

    Parameters
    ----------
    rules : Preparation
    columns : tuple of Column
        Those of the table.
    plans : tuple of ColumnPlan
        What is done with each.
    scale : Scale
        Of all numbers among them, in order.
    frequencies : dict of str to ndarray
        Running counts of the levels of each category, others last.

    Examples
    --------
    >>> rows = Rows.of_numbers(np.array([[0.0, 5.0], [4.0, 5.0]]))
    >>> fitted = FittedPreparation.learned(Preparation(scale="standard"), rows)
    >>> fitted.prepared(rows).points[:, 0].tolist()
    [-1.0, 1.0]
    """

    rules: Preparation
    columns: tuple[Column, ...]
    plans: tuple[ColumnPlan, ...]
    scale: Scale
    frequencies: Mapping[str, Numbers]

    @classmethod
    def learned(cls, rules: Preparation, rows: Rows) -> Self:
        """Decide what is done with each column, and learn medians, spreads and levels."""
        is_whole = rows.is_whole  # first, since it refuses what is too large
        plans = plans_for(rows, rules)
        places = rows.places
        taken: list[int] = []
        groups: list[int] = []
        given: dict[int, tuple[float, float]] = {}
        for group, (column, plan) in enumerate(zip(rows.columns, plans, strict=True)):
            if plan.action not in ("scale", "limits", "as is"):
                continue
            begin = len(taken)
            taken += range(places[column.name].start, places[column.name].stop)
            groups += [group] * column.width
            known = _given(plan, rules)
            if known is not None:
                given |= dict.fromkeys(range(begin, len(taken)), known)
        numbered = np.unique(np.array(groups, dtype=np.int64), return_inverse=True)[1]
        values = np.asarray(rows.values[:, np.array(taken, dtype=np.intp)], dtype=np.float64)
        scale = Scale.learned(
            rules.scale, values, numbered.astype(np.int64), given, is_whole=is_whole
        )
        fitted = cls(rules, rows.columns, plans, scale, {})
        return replace(fitted, frequencies=fitted._counted(rows))

    @classmethod
    def fixed(cls, names: Sequence[str], shift: Numbers, unit: Numbers) -> Self:
        """Return a preparation of numbers by a shift and a unit that never change."""
        columns = tuple([Column(name) for name in names])
        plans = tuple([ColumnPlan(name, "number", "limits", outputs=(name,)) for name in names])
        given = dict(enumerate(zip(shift.tolist(), unit.tolist(), strict=True)))
        nothing = np.empty((0, len(names)))
        scale = Scale.learned("none", nothing, np.arange(len(names)), given)
        rules = Preparation(missing="error", categories="error", identifiers="keep")
        return cls(rules, columns, plans, replace(scale, fill=frozen(shift.copy())), {})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the prepared columns."""
        return tuple([name for plan in self.plans for name in plan.outputs])

    def get_feature_names_out(self) -> NDArray[np.object_]:
        """Return the names of the prepared columns, as scikit-learn has them."""
        return np.array(self.names, dtype=object)

    @cached_property
    def _layout(self) -> ColumnLayout:
        return ColumnLayout.of(self.columns, self.plans)

    @cached_property
    def unit(self) -> Numbers:
        """What 1 in each prepared column is in the stream's units; of a level, in shares."""
        unit = np.full(len(self.names), (2 / self.rules.category_weight) ** 0.5)
        unit[self._layout.put] = self.scale.unit
        return frozen(unit)

    @cached_property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Which prepared columns have not varied yet, and so weigh nothing."""
        unknown: NDArray[np.bool_] = self.unit == UNKNOWN_UNIT
        return unknown

    @cached_property
    def shift(self) -> Numbers:
        """What 0 in each prepared column is in the stream's units."""
        shift = np.zeros(len(self.names))
        shift[self._layout.put] = self.scale.shift
        return frozen(shift)

    @property
    def fills(self) -> dict[str, float | str]:
        """What stands for a missing value now, by column; of a vector, for its first number.

        Where that is a level without a column of its own, a text that is no level.
        """
        numbers, begin = self._fill.tolist(), 0
        found: dict[str, float | str] = {}
        for column, plan in zip(self.columns, self.plans, strict=True):
            if plan.action == "one-hot":
                place = int(np.argmax(self.frequencies[plan.name]))
                longer = f"{max(plan.levels, key=len, default='')}?"
                found[plan.name] = (*plan.levels, longer)[place]
            elif plan.action != "exclude":
                found[plan.name] = numbers[begin]
                begin += column.width
        return found

    @property
    def _fill(self) -> Numbers:
        """What stands for each missing number."""
        fill = self.scale.fill
        return np.where(self._layout.booleans, np.rint(fill), fill)

    def after(self, rows: Rows) -> tuple[FittedPreparation, Numbers | None]:
        """Return the preparation once it has seen more rows.

        And by what points prepared so far must be multiplied, powers of two, if at all.
        """
        rows = matched(rows, self.columns)
        scale, factors = self.scale.after(self._layout.numbers(rows.values), is_whole=rows.is_whole)
        frequencies = self.frequencies
        if frequencies:
            new = self._counted(rows)
            frequencies = {name: _KEPT * old + new[name] for name, old in frequencies.items()}
        following = object.__new__(type(self))
        # What has been worked out of the plans stays true; units may not.
        vars(following).update(vars(self), scale=scale, frequencies=frequencies)
        if factors is None:
            return following, None
        for name in ("unit", "is_unknown"):
            vars(following).pop(name, None)
        restating = np.ones(len(self.names))
        restating[self._layout.put] = factors
        return following, restating

    def prepared(self, rows: Rows) -> Prepared:
        """Return rows as points; rows are left out where the rules say so."""
        rows = matched(rows, self.columns)
        rows, filled, kept = self._without_gaps(rows)
        layout = self._layout
        numbers = layout.numbers(rows.values)
        scaled: Any = numbers - self.scale.shift
        scaled /= self.scale.unit
        if filled:
            filling = (self._fill - self.scale.shift) / self.scale.unit
            scaled = np.where(np.isnan(numbers), filling, scaled)
        if rows.values.dtype == np.float32:
            scaled = scaled.astype(np.float32)
        if not layout.categories:
            return Prepared(scaled, filled, kept)
        points: Any = np.zeros((len(rows), len(self.names)), dtype=scaled.dtype)
        points[:, layout.put] = scaled
        every, weight = np.arange(len(rows)), (self.rules.category_weight / 2) ** 0.5
        for name, source, begin in layout.categories:
            points[every, begin + self._codes(name, rows.values[:, source], rows)] = weight
        return Prepared(points, filled, kept)

    def kept(self, rows: Rows) -> NDArray[np.bool_] | None:
        """Return which rows are not left out for what they lack; None where all stay."""
        if self.rules.missing != "skip" or rows.is_whole:
            return None
        bad: Any = self._missing(rows).any(axis=1)
        return ~bad if bad.any() else None

    def _without_gaps(self, rows: Rows) -> tuple[Rows, dict[str, int], NDArray[np.bool_] | None]:
        """Return the rows that stay, how many values are to be filled, and which rows stay."""
        if rows.is_whole:
            return rows, {}, None
        missing = self._missing(rows)
        if self.rules.missing == "median":
            return rows, self._filled_counts(missing), None
        bad: Any = missing.any(axis=1)  # mypy loses the type
        if not bad.any():
            return rows, {}, None
        if self.rules.missing == "error":
            row = int(np.argmax(bad))
            names = [name for column in self.columns for name in column.names]
            raise InputError(
                f"nothing is in column {names[int(np.argmax(missing[row]))]!r} of row {row}. Fill "
                f"it, or let the preparation do so with {rule('missing', 'median')}, or leave "
                f"such rows out with {rule('missing', 'skip')}."
            )
        return rows.taken(~bad), {}, ~bad

    def restored(self, centroids: Centroids) -> Centroids:
        """Return centroids in the stream's units: of a level, the share of the cluster."""
        restored: Centroids = centroids * self.unit + self.shift
        return restored

    def restored_columns(self, centroids: Centroids) -> dict[str, list[Any]]:
        """Return centroids in the columns of the table, of a category its most frequent level."""
        restored = self.restored(centroids)
        found: dict[str, list[Any]] = {}
        begin = 0
        for plan in self.plans:
            part = restored[:, begin : begin + len(plan.outputs)]
            begin += len(plan.outputs)
            if plan.action == "exclude":
                continue
            if plan.action == "one-hot":
                words = [*plan.levels, "(other)"]
                found[plan.name] = [words[place] for place in part.argmax(axis=1).tolist()]
            else:
                found |= {name: part[:, i].tolist() for i, name in enumerate(plan.outputs)}
        return found

    def describe(self) -> list[dict[str, Any]]:
        """Return what is done with each column now: its plan, and `center` and `unit` of numbers.

        `unit` is None where a column has not varied yet, and so weighs nothing.
        """
        described, begin = [], 0
        for plan in self.plans:
            entry = plan.to_dict()
            if plan.action in ("scale", "limits", "as is"):
                part = slice(begin, begin + len(plan.outputs))
                unknown = self.scale.unit[part] == UNKNOWN_UNIT
                entry["center"] = self.scale.shift[part].tolist()
                units = self.scale.unit[part].tolist()
                entry["unit"] = [
                    None if has_none else unit
                    for has_none, unit in zip(unknown.tolist(), units, strict=True)
                ]
                begin += len(plan.outputs)
            described.append(entry)
        return described

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain arrays, numbers, lists and dicts."""
        return {
            "rules": self.rules.to_dict(),
            "columns": [list(column) for column in self.columns],
            "plans": [plan.to_dict() for plan in self.plans],
            "scale": self.scale.to_dict(),
            "frequencies": dict(self.frequencies),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make a preparation of what `to_dict` returned."""
        return cls(
            Preparation.from_dict(plain["rules"]),
            tuple([Column(*column) for column in plain["columns"]]),
            tuple([ColumnPlan.from_dict(plan) for plan in plain["plans"]]),
            Scale.from_dict(plain["scale"]),
            {name: frozen(counts) for name, counts in plain["frequencies"].items()},
        )

    def _missing(self, rows: Rows) -> NDArray[np.bool_]:
        """Return where nothing is, but for columns that are left out."""
        missing: NDArray[np.bool_] = np.isnan(rows.values)
        for place, plan in zip(rows.places.values(), self.plans, strict=True):
            if plan.action == "exclude":
                missing[:, place] = False
        return missing

    def _filled_counts(self, missing: NDArray[np.bool_]) -> dict[str, int]:
        counts, begin, found = missing.sum(axis=0).tolist(), 0, {}
        for column in self.columns:
            n_missing = max(counts[begin : begin + column.width], default=0)
            begin += column.width
            if n_missing:
                found[column.name] = n_missing
        return found

    def _counted(self, rows: Rows) -> dict[str, Numbers]:
        """Return how often each level comes, others last."""
        found = {}
        for name, source, _ in self._layout.categories:
            values = rows.values[:, source]
            slots = self._slots(name, rows)[values[~np.isnan(values)].astype(np.intp)]
            n_slots = len(self._layout.levels[name]) + 1
            found[name] = frozen(np.bincount(slots, minlength=n_slots).astype(np.float64))
        return found

    def _slots(self, name: str, rows: Rows) -> NDArray[np.intp]:
        """Return which of the level's columns stands for each level of `rows`."""
        known = self._layout.levels[name]
        others = len(known)
        return np.array([known.get(level, others) for level in rows.levels[name]], dtype=np.intp)

    def _codes(self, name: str, values: NDArray[Any], rows: Rows) -> NDArray[np.intp]:
        missing = np.isnan(values)
        codes = np.full(len(values), int(np.argmax(self.frequencies[name])), dtype=np.intp)
        codes[~missing] = self._slots(name, rows)[values[~missing].astype(np.intp)]
        return codes


def _given(plan: ColumnPlan, rules: Preparation) -> tuple[float, float] | None:
    """Return the shift and unit of a column where they are known."""
    if plan.action == "limits":
        assert rules.limits is not None
        low, high = rules.limits[plan.name]
        return (low + high) / 2, (high - low) * _EVEN
    if plan.kind == "boolean":
        return 0.0, rules.category_weight**-0.5
    return (0.0, 1.0) if plan.action == "as is" else None
