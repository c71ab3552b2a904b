"""Preparation: the rules by which rows of a table become points."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from kmeander.arguments import finite_number, is_finite, one_of, whole_number
from kmeander.exceptions import (
    ArgumentError,
    InputError,
    argument,
    arguments_written_by,
    in_python,
)

SCALES = ("robust", "standard", "none")
MISSING = ("median", "skip", "error")
CATEGORIES = ("one-hot", "exclude", "error")
IDENTIFIERS = ("exclude", "keep")
WORDS = ("auto", "none")
MOST_LEVELS = 1000


@dataclass(frozen=True)
class Preparation:
    """How the rows of a table become the points that are clustered.

    K-means sees only lengths. So columns are put on one scale, missing values are filled, and
    categories become numbers. What that needs (medians, spreads, levels) is learned from the first
    rows, belongs to the model, and is saved with it. Weights of rows do not count there.

    Parameters
    ----------
    scale : {"robust", "standard", "none"}, default="robust"
        The unit of a column: the range of its middle 98 %, as a standard deviation; its standard
        deviation; or as it is. A column that does not vary weighs nothing until it does. Where
        the spread of a column has changed by more than a factor of two for some batches its unit
        follows, by a power of two, and the Step holds the event ``rescaled``.
    limits : mapping of str to (low, high), optional
        Columns whose limits are known: scaled as if values were spread evenly between them, which
        never changes.
    missing : {"median", "skip", "error"}, default="median"
        Fill a missing number by the median of its column so far, and a missing category by the most
        frequent one; leave the row out; or refuse it.
    categories : {"one-hot", "exclude", "error"}, default="one-hot"
        A column of text becomes one column for each of its most frequent levels, and one for all
        others; or is left out, or refused.
    max_levels : int, default=20
        The most levels of a column that get a column of their own.
    levels : mapping of str to list of str, optional
        Columns whose levels are known; those get columns, in that order.
    category_weight : float, default=2.0
        What two different categories add to a squared distance: as much as two values of a scaled
        number do on average.
    identifiers : {"exclude", "keep"}, default="exclude"
        What is done with columns that name rows or say when they happened: numbers that only grow,
        numbers of rows, times, text that is different in nearly every row.

    Examples
    --------
    >>> Preparation(limits={"humidity": (0, 100)}).scale
    'robust'
    >>> Preparation(scale="log")
    Traceback (most recent call last):
    kmeander.exceptions.ArgumentError: scale must be one of 'robust', 'standard', 'none', got 'log'.
    """

    scale: str = "robust"
    limits: Mapping[str, tuple[float, float]] | None = None
    missing: str = "median"
    categories: str = "one-hot"
    max_levels: int = 20
    levels: Mapping[str, Sequence[str]] | None = None
    category_weight: float = 2.0
    identifiers: str = "exclude"

    def __post_init__(self) -> None:
        with arguments_written_by(in_python):  # in a file, too, rules have their names in Python
            self._check()

    def _check(self) -> None:
        one_of("scale", self.scale, SCALES)
        one_of("missing", self.missing, MISSING)
        one_of("categories", self.categories, CATEGORIES)
        one_of("identifiers", self.identifiers, IDENTIFIERS)
        weight = finite_number(
            "category_weight",
            self.category_weight,
            rule="a finite number above 0: the squared distance of two categories",
            fits=is_finite(self.category_weight) and self.category_weight > 0,
        )
        max_levels = whole_number(
            "max_levels",
            self.max_levels,
            at_least=1,
            at_most=MOST_LEVELS,
            meaning="the most levels of a column that get a column of their own",
        )
        vars(self).update(
            category_weight=weight,
            max_levels=max_levels,
            limits=_checked_limits(self.limits),
            levels=_checked_levels(self.levels, max_levels),
        )

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        for name in ("limits", "levels"):
            if plain[name] is not None:
                plain[name] = {column: list(values) for column, values in plain[name].items()}
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], place: str = "prepare") -> Self:
        """Make rules of what `to_dict` returned; `place` is where messages say they stand."""
        known = [entry.name for entry in fields(cls)]
        for name in plain:
            if name not in known:
                raise InputError(
                    f"{place} has a key {name!r}, which is no rule. Use {', '.join(known)}."
                )
        try:
            return cls(**plain)
        except ArgumentError as error:
            raise InputError(f"{place}: {error}") from error

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """Read rules from a TOML file, whose keys are the parameters.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "rules.toml")
        ...     _ = file.write_text('missing = "skip"')
        ...     Preparation.from_toml(file).missing
        'skip'
        """
        import tomllib

        name = os.fspath(path)
        try:
            plain = tomllib.loads(Path(name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"{argument('prepare', name)} cannot be read: {why}. It is auto, none or a file of "
                "rules in TOML."
            ) from error
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{name} is not TOML: {error}.") from error
        return cls.from_dict(plain, name)


def rule(name: str, value: str) -> str:
    """Return a rule as messages advise it: as a file of rules has it.

    Examples
    --------
    >>> rule("missing", "skip")
    'missing = "skip"'
    """
    return f'{name} = "{value}"'


def preparation_of(value: Any) -> Preparation | None:
    """Return the rules that `prepare` means: words, rules, or rules as plain values.

    Examples
    --------
    >>> preparation_of("auto") == Preparation(), preparation_of("none")
    (True, None)
    """
    if value is None or isinstance(value, Preparation):
        return value
    if isinstance(value, Mapping):
        return Preparation.from_dict(value)
    if value == "auto":
        return Preparation()
    if value == "none":
        return None
    if isinstance(value, os.PathLike) or (isinstance(value, str) and value.endswith(".toml")):
        return Preparation.from_toml(value)
    raise ArgumentError(
        f"{argument('prepare')} must be auto, none, a TOML file of rules or a "
        f"kmeander.Preparation, got {value!r}."
    )


def _from_dict(plain: Mapping[str, Any]) -> Preparation:
    return Preparation(**plain)


def _checked_limits(limits: Any) -> Mapping[str, tuple[float, float]] | None:
    if limits is None:
        return None
    checked = {}
    for column, pair in _by_column("limits", limits, "a low and a high value").items():
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ArgumentError(
                f"limits of column {column!r} must be a low and a high value, got {pair!r}."
            )
        low, high = pair
        if not (is_finite(low) and is_finite(high) and low < high):
            raise ArgumentError(
                f"limits of column {column!r} must be two finite numbers, the lower "
                f"one first, got {low!r} and {high!r}."
            )
        checked[column] = (float(low), float(high))
    return MappingProxyType(checked)


def _checked_levels(levels: Any, max_levels: int) -> Mapping[str, tuple[str, ...]] | None:
    if levels is None:
        return None
    checked = {}
    for column, given in _by_column("levels", levels, "a list of texts").items():
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise ArgumentError(
                f"levels of column {column!r} must be a list of texts, got {given!r}."
            )
        wrong = next((level for level in given if not isinstance(level, str)), None)
        if wrong is not None:
            raise ArgumentError(f"levels of column {column!r} must be texts, got {wrong!r}.")
        twice = next((level for level in given if list(given).count(level) > 1), None)
        if twice is not None:
            raise ArgumentError(
                f"levels of column {column!r} names {twice!r} twice. Each level once."
            )
        if len(given) > max_levels:
            raise ArgumentError(
                f"levels of column {column!r} has {len(given)} levels, at most "
                f"max_levels={max_levels} get columns. Raise that, or leave out the "
                "rare ones, which count as others."
            )
        checked[column] = tuple(given)
    return MappingProxyType(checked)


def _by_column(name: str, given: Any, what: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(column, str) for column in given):
        return given
    raise ArgumentError(f"{name} must map names of columns to {what}, got {given!r}.")
