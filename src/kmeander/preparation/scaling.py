"""Units of columns: their spread over the first rows, revised by powers of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import frozen

Numbers = NDArray[np.float64]

# Rows over which units are learned at once, and rows of which a later look consists.
FIRST_ROWS, ROWS_OF_A_LOOK = 500, 100
# Rows of a batch that are looked at: sorting more would cost more than it says.
MOST_FIRST, MOST_LATER = 10_000, 256
# Looks in a row that must find a spread beyond this factor before a unit follows it.
PATIENCE, FACTOR = 3, 2.0
# Unit of a column that has not varied yet: it weighs nothing.
UNKNOWN_UNIT = 2.0**80
# Share of a value that rounding alone may make.
ROUNDING = 1e-12
# How much a new look counts in the running median.
_NEWEST = 0.5
# The quantiles between which the range of a column lies, and that range for a normal variable, in
# standard deviations. A range finds clusters better than a standard deviation does, since columns
# with clusters at both ends then vary more than those with one in the middle (Milligan and Cooper,
# "A study of standardization of variables in cluster analysis", 1988).
_OUTSIDE, _NORMAL_RANGE = 0.01, 4.652695748081682


class SpreadLook(NamedTuple):
    """What a sample of rows says of each column."""

    median: Numbers  # NaN where the column has no value
    mean: Numbers
    spread: Numbers  # 0 where the column does not vary


def look_at(sample: Numbers, scale: str, *, is_whole: bool = False) -> SpreadLook:
    """Return median, mean and spread of the columns of a sample, in which NaN is nothing.

    `is_whole` says that there is none.

    Examples
    --------
    >>> look = look_at(np.array([[0.0, 7.0], [2.0, 7.0], [4.0, np.nan]]), "standard")
    >>> look.median.tolist(), look.spread.round(3).tolist()
    ([2.0, 7.0], [1.633, 0.0])
    """
    n_rows, n_columns = sample.shape
    if not n_rows:
        nothing = np.full(n_columns, np.nan)
        return SpreadLook(nothing, nothing, np.zeros(n_columns))
    ordered = np.sort(sample.T, axis=1)  # NaN last
    counts: Any = n_rows
    if not is_whole:
        counts = n_rows - np.isnan(ordered).sum(axis=1)
    rank = _Ranks(ordered, counts)
    median = (rank.at(0.5, down=True) + rank.at(0.5, down=False)) / 2
    spread = np.zeros(n_columns)
    if scale != "standard":
        high, low = rank.at(1 - _OUTSIDE, down=False), rank.at(_OUTSIDE, down=True)
        spread = (high - low) / _NORMAL_RANGE
    mean = median
    if scale == "standard" or not (spread > 0).all():
        present = ordered if is_whole else np.where(np.isnan(ordered), 0.0, ordered)
        mean = present.sum(axis=1) / np.maximum(counts, 1)
        apart = present - mean[:, np.newaxis]
        if not is_whole:
            apart[np.isnan(ordered)] = 0.0
        deviation = np.sqrt((apart * apart).sum(axis=1) / np.maximum(counts, 1))
        spread = np.where(spread > 0, spread, deviation)
    largest = np.maximum(np.abs(ordered[:, 0]), np.abs(rank.at(1.0, down=True)))
    return SpreadLook(median, mean, np.where(spread > ROUNDING * largest, spread, 0.0))


class _Ranks:
    """Values by their rank in each row, of rows that are sorted, with NaN last."""

    def __init__(self, ordered: Numbers, counts: Any) -> None:
        self._ordered, self._is_whole = ordered, isinstance(counts, int)
        self._last = np.maximum(counts - 1, 0)
        self._rows = np.arange(len(ordered))

    def at(self, share: float, *, down: bool) -> Numbers:
        """Return the value below which a share of them lies; between two, the lower or upper."""
        rank = (np.floor if down else np.ceil)(share * self._last)
        columns = int(rank) if self._is_whole else rank.astype(np.intp)
        found: Numbers = self._ordered[self._rows, columns]
        return found


@dataclass(frozen=True, eq=False)
class Scale:
    """Shift and unit of each number of a row, and what is needed to follow them.

    Parameters
    ----------
    word : {"robust", "standard", "none"}
    shift, unit : ndarray of shape (n_numbers,)
        A value v becomes ``(v - shift) / unit``. The shift never changes, the unit does by powers
        of two.
    follows : ndarray of bool
        Which units are learned, and not given.
    groups : ndarray of int
        Numbers with one group share one unit, as those of a vector do.
    fill : ndarray of shape (n_numbers,)
        Running median.
    n_seen : int
        Rows so far, as long as that matters.
    kept : ndarray of shape (n_rows, n_numbers)
        Rows that the next look has, too.
    streak : ndarray of int
        Looks in a row, for each number, that found another spread.
    is_rested : bool
        Whether the batch before was not looked at: on a calm stream every second one is.
    """

    word: str
    shift: Numbers
    unit: Numbers
    follows: NDArray[np.bool_]
    groups: NDArray[np.int64]
    fill: Numbers
    n_seen: int
    kept: Numbers
    streak: NDArray[np.int64]
    is_rested: bool = True

    @classmethod
    def learned(
        cls,
        word: str,
        values: Numbers,
        groups: NDArray[np.int64],
        given: Mapping[int, tuple[float, float]],
        *,
        is_whole: bool = False,
    ) -> Scale:
        """Learn from the first rows; `given` has the shift and unit of numbers that are known."""
        n_numbers = values.shape[1]
        first = np.asarray(values[:: 1 + len(values) // MOST_FIRST], dtype=np.float64)
        look = look_at(first, word, is_whole=is_whole)
        centre = look.mean if word == "standard" else look.median
        shift = np.nan_to_num(centre)
        spread = _shared(look.spread, groups)
        unit = np.where(spread > 0, spread, UNKNOWN_UNIT)
        follows = np.ones(n_numbers, dtype=bool)
        for place, (its_shift, its_unit) in given.items():
            shift[place], unit[place], follows[place] = its_shift, its_unit, False
        return cls(
            word=word,
            shift=frozen(shift),
            unit=frozen(unit),
            follows=frozen(follows),
            groups=frozen(groups),
            fill=frozen(np.nan_to_num(look.median)),
            n_seen=min(len(values), FIRST_ROWS),
            kept=frozen(first if len(values) < FIRST_ROWS else first[:0]),
            streak=frozen(np.zeros(n_numbers, dtype=np.int64)),
        )

    def after(self, values: Numbers, *, is_whole: bool = False) -> tuple[Scale, Numbers | None]:
        """Return the scale after more rows, and what old points must be multiplied by, if any."""
        if not self.is_rested and self._is_calm:
            return self._with(is_rested=True), None
        sample = np.asarray(values[:: 1 + (len(values) - 1) // MOST_LATER], dtype=np.float64)
        kept = np.concatenate([self.kept, sample]) if len(self.kept) else sample
        is_first = self.n_seen < FIRST_ROWS
        n_seen = min(self.n_seen + len(values), FIRST_ROWS)
        if not is_first and len(kept) < ROWS_OF_A_LOOK:
            return self._with(kept=frozen(np.array(kept))), None
        is_whole = is_whole and not (len(self.kept) and bool(np.isnan(self.kept).any()))
        look = look_at(kept, self.word, is_whole=is_whole)
        fill = np.where(
            np.isnan(look.median),
            self.fill,
            look.median if is_first else self.fill + _NEWEST * (look.median - self.fill),
        )
        following = self._with(
            fill=frozen(fill),
            n_seen=n_seen,
            is_rested=False,
            kept=frozen(np.array(kept) if n_seen < FIRST_ROWS else kept[:0].copy()),
        )
        if not self.follows.any():
            return following, None
        spread = _shared(look.spread, self.groups)
        ratio = np.where(self.follows & (spread > 0), spread, self.unit) / self.unit
        is_unknown = self.unit == UNKNOWN_UNIT
        is_off = (ratio > FACTOR) | (ratio < 1 / FACTOR)
        streak = np.where(is_off, self.streak + 1, 0)
        due = is_off & (is_unknown | is_first | (streak >= PATIENCE))
        if not due.any():
            return following._with(streak=frozen(streak)), None
        grown = np.where(due, np.exp2(np.rint(np.log2(ratio))), 1.0)
        unit = self.unit * grown
        # What has not varied is 0 in any unit, so that the exact one costs no bit either.
        unit[due & is_unknown] = spread[due & is_unknown]
        streak[due] = 0
        return following._with(unit=frozen(unit), streak=frozen(streak)), self.unit / unit

    @property
    def _is_calm(self) -> bool:
        """Whether every unit is known, and no spread has left its own."""
        is_known = self.n_seen >= FIRST_ROWS and not (self.unit == UNKNOWN_UNIT).any()
        return bool(is_known and not self.streak.any())

    def _with(self, **changed: Any) -> Scale:
        scale = object.__new__(Scale)
        vars(scale).update(vars(self), **changed)
        return scale

    def to_dict(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        return {**vars(self), "follows": self.follows.astype(np.int64)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Scale:
        """Make a scale of what `to_dict` returned."""
        values: dict[str, Any] = {
            name: frozen(value) if isinstance(value, np.ndarray) else value
            for name, value in plain.items()
        }
        return cls(**{**values, "follows": frozen(plain["follows"].astype(bool))})


def _shared(spread: Numbers, groups: NDArray[np.int64]) -> Numbers:
    """Return the spread of each number, that of a group where it is one of several."""
    if not len(groups) or groups[-1] == len(groups) - 1:  # each is a group of its own
        return spread
    total = np.bincount(groups, spread * spread)
    mean: Numbers = np.sqrt(total / np.bincount(groups))
    return mean[groups]
