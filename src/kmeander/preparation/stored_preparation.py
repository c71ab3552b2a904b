"""What a stored preparation must be before a model goes on with it: files may be hostile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError, shown
from kmeander.plain_values import PlainValues, are_moderate, is_text, is_whole
from kmeander.preparation.rows import KINDS
from kmeander.preparation.rules import SCALES

_NUMBERS = ("scale", "limits", "as is")
_ACTIONS = (*_NUMBERS, "one-hot", "exclude")


def check_preparation(preparation: PlainValues, n_features: int | None) -> None:
    """Refuse parts that are not of the kinds and shapes that belong together.

    Parameters
    ----------
    preparation : PlainValues
    n_features : int or None
        Numbers in each point, where that is known.
    """
    preparation.inside("rules")  # which see to themselves
    columns = preparation.items("columns", each=_is_column, rule="columns")
    plans = preparation.items("plans", each=lambda one: isinstance(one, dict), rule="objects")
    if len(columns) != len(plans) or len({name for name, *_ in columns}) != len(columns):
        raise InputError("it has a preparation of which each column has not one plan.")
    n_numbers = n_outputs = 0
    levels: dict[str, int] = {}
    for (name, _, width), plan in zip(columns, plans, strict=True):
        action, n_levels, n_made = _checked_plan(PlainValues(plan, "a plan"), name)
        expected = {"one-hot": n_levels + 1, "exclude": 0}.get(action, width)
        if n_made != expected:
            raise InputError(f"its plan of column {shown(name)} makes {n_made} columns of it.")
        n_numbers += width * (action in _NUMBERS)
        n_outputs += n_made
        if action == "one-hot":
            levels[name] = n_levels
    if n_features not in (None, n_outputs):
        raise InputError(f"its preparation makes {n_outputs} numbers of a row, not {n_features}.")
    _check_frequencies(preparation.inside("frequencies"), levels)
    _check_scale(preparation.inside("scale"), n_numbers)


def _is_column(value: Any) -> bool:
    """Whether a value is a name, what the column holds, and how many numbers that is."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 3
        and is_text(value[0])
        and value[1] in KINDS
        and is_whole(value[2])
        and value[2] >= 1
    )


def _checked_plan(plan: PlainValues, column: str) -> tuple[str, int, int]:
    """Return what is done with a column, and how many levels and outputs that has."""
    action = plan.text("action")
    if plan.text("name") != column or plan.text("kind") not in KINDS or action not in _ACTIONS:
        raise InputError(f"it has a plan of column {shown(column)} that is none.")
    plan.text("why")
    plan.whole("n_missing", 0, least=0)
    n_levels, n_outputs = (
        len(plan.items(name, each=is_text, rule="texts")) for name in ("levels", "outputs")
    )
    return action, n_levels, n_outputs


def _check_frequencies(frequencies: PlainValues, levels: dict[str, int]) -> None:
    if sorted(frequencies.names()) != sorted(levels):
        raise InputError("it has frequencies of levels of other columns than its categories.")
    for name, n_levels in levels.items():
        frequencies.array(name, shape=(n_levels + 1,), fits=_are_counts, rule="of counts")


def _check_scale(scale: PlainValues, n_numbers: int) -> None:
    if scale.text("word") not in SCALES:
        raise InputError("it has a scale of a kind that there is not.")
    shape = (n_numbers,)
    scale.array("unit", shape=shape, fits=_are_units, rule="of numbers above 0")
    for name in ("shift", "fill"):
        scale.array(name, shape=shape, fits=are_moderate)
    scale.whole("n_seen", least=0)
    scale.truth("is_rested", None)
    whole: dict[str, Any] = {"dtypes": (np.int64,), "shape": shape}
    scale.array("follows", **whole, fits=lambda found: bool(np.isin(found, (0, 1)).all()))
    scale.array("streak", **whole, fits=lambda found: bool((found >= 0).all()))
    scale.array("groups", **whole, fits=_are_groups, rule="of groups, one after the other")
    scale.array("kept", shape=(None, n_numbers), fits=lambda found: are_moderate(_present(found)))


def _present(found: NDArray[Any]) -> NDArray[Any]:
    """Return the values that are there: rows may lack some, which are NaN."""
    present: NDArray[Any] = found[~np.isnan(found)]
    return present


def _are_units(found: NDArray[Any]) -> bool:
    return are_moderate(found) and bool((found > 0).all())


def _are_counts(found: NDArray[Any]) -> bool:
    return are_moderate(found) and bool((found >= 0).all())


def _are_groups(found: NDArray[Any]) -> bool:
    """Whether groups are numbered in order, each beside itself."""
    steps = np.diff(found)
    return not len(found) or bool(found[0] == 0 and np.isin(steps, (0, 1)).all())
