"""JSON from outside; values out of it or of a checkpoint: what they must be, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kmeander.exceptions import InputError, shown

_WHOLE = 2**63  # beyond it no array holds a number
_LARGEST = 1e150  # beyond it squares are infinite


def from_json(text: str | bytes) -> Any:
    """Return what `text` holds; a ValueError says why it cannot be read.

    Text nested a thousand times is valid JSON, but no reader of Python's follows it that far.

    Examples
    --------
    >>> from_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> from_json("[" * 5000 + "]" * 5000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class PlainValues:
    """Values by name, of which nothing is known yet.

    A value that is missing, or None, is its default; where that is ``...``, it is refused.

    Parameters
    ----------
    values : dict
    what : str
        What messages call them.

    Examples
    --------
    >>> step = PlainValues({"index": 3, "mass": "heavy"}, "the step")
    >>> step.whole("index"), step.number("rho", 0.5)
    (3, 0.5)
    >>> step.number("mass")
    Traceback (most recent call last):
    kmeander.exceptions.InputError: the step has mass 'heavy', which must be a finite number.
    """

    def __init__(self, values: Any, what: str) -> None:
        if not isinstance(values, Mapping):
            raise InputError(f"{what} is {shown(values)}, which must be an object.")
        self._values = values
        self._what = what

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def fits(self, name: str, fits: Callable[[Any], bool]) -> bool:
        """Whether a value is there and fits."""
        return name in self._values and fits(self._values[name])

    def names(self) -> list[str]:
        """Return all names that there are."""
        return list(self._values)

    def _taken(
        self, name: str, default: Any, rule: str, fits: Callable[[Any], bool], *, least: float
    ) -> Any:
        value: Any = self._values.get(name)
        if value is None and default is not ...:
            return default
        if not fits(value) or (least > -math.inf and value < least):
            bound = f" of at least {least:g}" if least > -math.inf else ""
            raise InputError(
                f"{self._what} has {name} {shown(value)}, which must be {rule}{bound}."
            )
        return value

    def whole(self, name: str, default: Any = ..., *, least: float = -math.inf) -> Any:
        """Return a whole number."""
        return self._taken(name, default, "a whole number", is_whole, least=least)

    def number(self, name: str, default: Any = ..., *, least: float = -math.inf) -> Any:
        """Return a finite number as a float."""
        value = self._taken(name, default, "a finite number", is_number, least=least)
        return value if value is None else float(value)

    def truth(self, name: str, default: Any = ...) -> Any:
        """Return true or false."""
        return self._taken(name, default, "true or false", _is_truth, least=-math.inf)

    def text(self, name: str, default: Any = ...) -> Any:
        """Return a text that can be written."""
        return self._taken(name, default, "text", is_text, least=-math.inf)

    def file(self, name: str) -> Any:
        """Return the name of a file, which need not be UTF-8."""
        return self._taken(name, ..., "the name of a file", _is_string, least=-math.inf)

    def items(
        self, name: str, default: Any = ..., *, each: Callable[[Any], bool], rule: str
    ) -> Any:
        """Return a list of which every item fits, as a tuple; items that are lists are tuples."""

        def fits(value: Any) -> bool:
            return isinstance(value, list | tuple) and all(map(each, value))

        value = self._taken(name, default, f"a list of {rule}", fits, least=-math.inf)
        if not isinstance(value, list | tuple):
            return value
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)

    def counts(self, name: str, default: Any = ...) -> Any:
        """Return whole numbers by name, as a dict."""
        value = self._taken(name, default, "whole numbers by name", _are_counts, least=-math.inf)
        return value if value is None else dict(value)

    def array(
        self,
        name: str,
        default: Any = ...,
        *,
        dtypes: tuple[DTypeLike, ...] = (np.float64,),
        shape: tuple[int | None, ...],
        fits: Callable[[NDArray[Any]], bool] | None = None,
        rule: str = "of finite numbers",
    ) -> Any:
        """Return an array of one of some types and of a shape, in which None is any length.

        A list is made one of the first type. All numbers must be finite, or what `fits` asks.
        """
        value = self._values.get(name)
        if value is None and default is not ...:
            return default
        array = value
        if isinstance(value, list | tuple):
            try:
                array = np.array(value, dtype=dtypes[0])
            except (TypeError, ValueError, OverflowError):
                array = None
        accepted = (
            isinstance(array, np.ndarray)
            and any(array.dtype == dtype for dtype in dtypes)
            and len(array.shape) == len(shape)
            and all(asked in (None, there) for asked, there in zip(shape, array.shape, strict=True))
            and (fits or _are_finite)(array)
        )
        if not accepted:
            lengths = " x ".join("any" if length is None else str(length) for length in shape)
            raise InputError(
                f"{self._what} has {name} {shown(value)}, which must be an array ({lengths}) "
                f"{rule}."
            )
        return array

    def inside(self, name: str, default: Any = ...) -> Any:
        """Return the values of an object inside this one."""
        value = self._values.get(name)
        if value is None and default is not ...:
            return default
        return PlainValues(value, f"{self._what}: {name}")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number that an array can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return is_whole(value)


def is_text(value: Any) -> bool:
    """Whether a value is text that can be written: no half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _are_finite(array: NDArray[Any]) -> bool:
    return bool(np.isfinite(array).all())


def are_moderate(array: NDArray[Any]) -> bool:
    """Whether the squares of all numbers are finite."""
    return bool((np.abs(array) <= _LARGEST).all())


def is_pair(value: Any) -> bool:
    """Whether a value is a pair of whole numbers."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_whole, value))


def is_share(value: Any) -> bool:
    """Whether a value is a whole number and a number."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and is_whole(value[0])
        and is_number(value[1])
    )


def is_plain(value: Any) -> bool:
    """Whether a value is text, a number, true, false or nothing, or lists and dicts of such."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain(inside) for key, inside in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _are_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and is_whole(number) for key, number in value.items()
    )


# How the fields of a record are taken, by their annotation.
_TAKEN_AS: dict[str, Callable[[PlainValues, str, Any], Any]] = {
    "int": PlainValues.whole,
    "int | None": PlainValues.whole,
    "float": PlainValues.number,
    "float | None": PlainValues.number,
    "bool": PlainValues.truth,
    "str": PlainValues.text,
    "str | None": PlainValues.text,
    "dict[str, int] | None": PlainValues.counts,
    "tuple[int, ...]": lambda values, name, default: values.items(
        name, default, each=is_whole, rule="whole numbers"
    ),
    "tuple[float, ...]": lambda values, name, default: values.items(
        name, default, each=is_number, rule="finite numbers"
    ),
    "tuple[tuple[int, int], ...]": lambda values, name, default: values.items(
        name, default, each=is_pair, rule="pairs of whole numbers"
    ),
    "tuple[tuple[int, float], ...]": lambda values, name, default: values.items(
        name, default, each=is_share, rule="pairs of a whole number and a number"
    ),
    "Centroids | None": lambda values, name, default: values.array(
        name, default, shape=(None, None), fits=are_moderate
    ),
    "Masses | None": lambda values, name, default: values.array(
        name,
        default,
        shape=(None,),
        fits=lambda found: are_moderate(found) and bool((found >= 0).all()),
    ),
    "NDArray[np.float64] | None": lambda values, name, default: values.array(
        name, default, shape=(None,)
    ),
    "Ids | None": lambda values, name, default: values.array(
        name, default, dtypes=(np.int64,), shape=(None,)
    ),
}


def record_values(
    record: type[Any],
    plain: Any,
    what: str,
    *,
    others: Mapping[str, Callable[[Any], Any]] | None = None,
    leave_out: frozenset[str] | set[str] = frozenset(),
) -> dict[str, Any]:
    """Return what makes a record of plain values, each field as its annotation says.

    Parameters
    ----------
    record : dataclass
    plain : dict
        Keys that are no fields are ignored.
    what : str
        What messages call it.
    others : dict, optional
        For fields of other types, what makes one of a value.
    leave_out : set of str, optional
        Fields that are not looked for.
    """
    values = PlainValues(plain, what)
    found: dict[str, Any] = {}
    for entry in fields(record):
        if entry.name in leave_out:
            continue
        default = ... if entry.default is MISSING else entry.default
        if others is None or entry.name not in others:
            found[entry.name] = _TAKEN_AS[str(entry.type)](values, entry.name, default)
        elif plain.get(entry.name) is not None:
            found[entry.name] = others[entry.name](plain[entry.name])
        elif default is not ...:
            found[entry.name] = default
        else:
            raise InputError(f"{what} has no {entry.name}.")
    return found


def each_of(make: Callable[[Any], Any], what: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes a tuple of a list, each item by `make`."""

    def made(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple):
            raise InputError(f"{what} is {shown(values)}, which must be a list.")
        return tuple(map(make, values))

    return made
