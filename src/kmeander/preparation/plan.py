"""What is done with each column, decided once by its first rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError
from kmeander.preparation.rows import Column, Levels, Rows
from kmeander.preparation.rules import Preparation, rule

# Rows below which nobody can tell a column of ids, or of free text, from one of values.
ENOUGH_TO_JUDGE = 50
# The same, where the name says it, too.
ENOUGH_WITH_NAME = 8
# Share of rows with a text of their own above which a column does not hold categories.
MOSTLY_DIFFERENT = 0.5
# Why a category is left out by a rule, and not for what is in it.
HOLDS_TEXT = "it holds text"
_NAMES_ROWS = re.compile(r"(^|[_\W])(id|uuid|guid|key|index|row|nr|no)$|(?<=[a-z])I[dD]$", re.I)
NAMES_TIMES = re.compile(r"(^|[_\W])(ts|time|timestamp|date|datetime|epoch|when)([_\W]|$)", re.I)


@dataclass(frozen=True)
class ColumnPlan:
    """What is done with one column, and why.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "category", "vector", "time", "nothing"}
    action : {"scale", "limits", "as is", "one-hot", "exclude"}
    why : str
        Half a sentence for people; empty where the kind says enough.
    outputs : tuple of str
        Names of the prepared columns that it becomes.
    levels : tuple of str
        Of a category, those with a column of their own.
    n_missing : int
        Among the first rows.
    """

    name: str
    kind: str
    action: str
    why: str = ""
    outputs: tuple[str, ...] = ()
    levels: Levels = ()
    n_missing: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**vars(self), "outputs": list(self.outputs), "levels": list(self.levels)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ColumnPlan:
        """Make a plan of what `to_dict` returned."""
        tuples = {name: tuple(plain[name]) for name in ("outputs", "levels")}
        return cls(**{**plain, **tuples})

    def way_to_keep(self) -> str:
        """Return the rule that keeps a column that is left out; nothing where none does.

        Examples
        --------
        >>> ColumnPlan("id", "number", "exclude", "it grows with every row").way_to_keep()
        'identifiers = "keep"'
        """
        if self.action != "exclude" or self.kind in ("time", "nothing"):
            return ""
        if self.why == HOLDS_TEXT:
            return rule("categories", "one-hot")
        return rule("identifiers", "keep")

    def words(self) -> str:
        """Return it as a sentence.

        Examples
        --------
        >>> ColumnPlan("ts", "time", "exclude", "it says when a row happened").words()
        "column 'ts' is left out: it says when a row happened."
        """
        did = {
            "scale": "is scaled",
            "limits": "is scaled by its limits",
            "as is": "is taken as it is",
            "one-hot": f"becomes {len(self.outputs)} columns",
            "exclude": "is left out",
        }[self.action]
        return f"column {self.name!r} {did}{': ' if self.why else ''}{self.why}."


def plans_for(rows: Rows, rules: Preparation) -> tuple[ColumnPlan, ...]:
    """Decide what is done with each column of a stream that begins with `rows`."""
    for what, given in (("limits", rules.limits), ("levels", rules.levels)):
        unknown = next((name for name in given or () if name not in rows.names), None)
        if unknown is not None:
            raise InputError(
                f"{what} names column {unknown!r}, which the rows do not have. They have "
                f"{', '.join(map(repr, rows.names))}."
            )
    _check_kinds(rows.columns, rules)
    places = rows.places
    plans = [
        _plan(column, rows, rows.values[:, places[column.name]], rules) for column in rows.columns
    ]
    if any(plan.outputs for plan in plans):
        return tuple(plans)
    # A stream of nothing but growing numbers: better those than nothing.
    plans = [
        plan
        if column.kind != "number"
        else _numbers(column, rules, plan.n_missing, "there is no other column")
        for plan, column in zip(plans, rows.columns, strict=True)
    ]
    if any(plan.outputs for plan in plans):
        return tuple(plans)
    ways = dict.fromkeys(way for plan in plans if (way := plan.way_to_keep()))
    raise InputError(
        "no column is left to cluster: "
        + "; ".join(f"{plan.name!r}: {plan.why}" for plan in plans)
        + (f". Of the preparation, {' and '.join(ways)} would keep columns." if ways else ".")
    )


def _check_kinds(columns: Sequence[Column], rules: Preparation) -> None:
    """Refuse limits of what is no number, and levels of what is no text."""
    for column in columns:
        if column.kind == "nothing":
            continue
        if column.name in (rules.limits or ()) and column.kind not in ("number", "vector"):
            raise InputError(
                f"limits names column {column.name!r}, which holds {column.contents}. Only numbers "
                "have limits: leave it out of them."
            )
        if column.name in (rules.levels or ()) and column.kind != "category":
            raise InputError(
                f"levels names column {column.name!r}, which holds {column.contents}. Only text "
                "has levels: leave it out of them, or make text of the column."
            )


def _plan(column: Column, rows: Rows, values: NDArray[Any], rules: Preparation) -> ColumnPlan:
    missing = np.isnan(values).any(axis=1)
    n_missing = int(missing.sum())
    if column.kind == "time":
        return ColumnPlan(
            column.name, "time", "exclude", "it says when a row happened", n_missing=n_missing
        )
    if column.kind == "nothing":
        return ColumnPlan(
            column.name, "nothing", "exclude", "there is nothing in it", n_missing=n_missing
        )
    if column.kind == "boolean":
        return ColumnPlan(
            column.name, "boolean", "as is", outputs=(column.name,), n_missing=n_missing
        )
    if column.kind == "category":
        return _category(column, values[~missing, 0], rows.levels[column.name], rules, n_missing)
    if column.kind == "number" and rules.identifiers == "exclude" and not _is_ruled(column, rules):
        why = _why_identifier(column.name, values[~missing, 0])
        if why:
            return ColumnPlan(column.name, "number", "exclude", why, n_missing=n_missing)
    return _numbers(column, rules, n_missing)


def _is_ruled(column: Column, rules: Preparation) -> bool:
    return column.name in (rules.limits or ())


def _numbers(column: Column, rules: Preparation, n_missing: int, why: str = "") -> ColumnPlan:
    action = "as is" if rules.scale == "none" else "scale"
    if _is_ruled(column, rules):
        action = "limits"
    return ColumnPlan(
        column.name, column.kind, action, why, tuple(column.names), n_missing=n_missing
    )


def _category(
    column: Column, codes: NDArray[Any], known: Levels, rules: Preparation, n_missing: int
) -> ColumnPlan:
    name = column.name
    given = (rules.levels or {}).get(name)
    if given is None:
        if rules.categories == "error":
            raise InputError(
                f"column {name!r} holds text, such as {known[0] if known else ''!r}. Leave it out, "
                f"or allow {rule('categories', 'one-hot')}."
            )
        counts = np.bincount(codes.astype(np.intp), minlength=len(known))
        n_levels = int(np.count_nonzero(counts))
        why = ""
        if rules.categories == "exclude":
            why = HOLDS_TEXT
        elif len(codes) >= ENOUGH_TO_JUDGE and n_levels > MOSTLY_DIFFERENT * len(codes):
            why = f"it holds text that is different in {n_levels} of {len(codes)} rows"
        if why and not (rules.identifiers == "keep" and rules.categories == "one-hot"):
            return ColumnPlan(name, "category", "exclude", why, n_missing=n_missing)
        order = sorted(range(len(known)), key=lambda code: (-counts[code], known[code]))
        given = tuple([known[code] for code in order[: rules.max_levels]])
    outputs = (*(f"{name}={level}" for level in given), f"{name} (other)")
    return ColumnPlan(name, "category", "one-hot", "", outputs, tuple(given), n_missing)


def _why_identifier(name: str, values: NDArray[Any]) -> str:
    """Return why a column of numbers names rows or times; nothing where it does not."""
    if len(values) < ENOUGH_WITH_NAME:
        return ""
    is_enough = len(values) >= ENOUGH_TO_JUDGE
    steps = np.diff(values)
    is_named = NAMES_TIMES.search(name) or _NAMES_ROWS.search(name)
    if (steps > 0).all() and (is_enough or is_named):
        return "it grows with every row, as a number of rows or a time does"
    if not (values == np.rint(values)).all():
        return ""
    if NAMES_TIMES.search(name) and (steps >= 0).all() and (steps > 0).any():
        return "it only grows, and its name says that it is a time"
    if is_enough and _NAMES_ROWS.search(name) and len(np.unique(values)) == len(values):
        return "it is different in every row, and its name says that it is an id"
    return ""
