"""What a stored memory of clusters must be before one is made of it: a file may be damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kmeander.exceptions import InputError, shown
from kmeander.plain_values import PlainValues, is_number, is_text, is_whole

_LONGEST_ID = 18  # digits


def check_memory(memory: PlainValues) -> None:
    """Refuse a memory whose parts are not of the kinds that belong together."""
    for name, fits, rule in (
        ("births", _is_birth, "a batch and a time"),
        ("named", _are_texts, "parts of a name"),
        ("given", is_text, "names"),
    ):
        _check_each(memory.inside(name), fits, rule)
    words, examples = memory.inside("words", None), memory.inside("examples", None)
    if words is not None:
        _check_each(words, _are_counts, "words and their counts")
    if examples is not None:
        _check_each(examples, _are_examples, "rows")


def _check_each(by_cluster: PlainValues, fits: Callable[[Any], bool], rule: str) -> None:
    for number in by_cluster.names():
        if not number.isdecimal() or len(number) > _LONGEST_ID:
            raise InputError(f"its memory has a cluster {shown(number)}, which is no id.")
        if not by_cluster.fits(number, fits):
            raise InputError(f"its memory of cluster {number} does not hold {rule}.")


def _is_birth(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    batch, time = value
    return is_whole(batch) and batch >= 0 and (time is None or is_text(time))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(is_text, value))


def _are_counts(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    words, counts = value
    if not _are_texts(words) or not isinstance(counts, list | tuple) or len(words) != len(counts):
        return False
    return all(is_number(count) and count > 0 for count in counts)


def _are_examples(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(
        isinstance(near, list | tuple) and near and all(map(_is_row, near)) for near in value
    )


def _is_row(value: Any) -> bool:
    if not isinstance(value, dict) or not is_whole(value.get("batch")):
        return False
    is_said = all(value.get(name) is None or is_text(value[name]) for name in ("id", "text"))
    return is_said and is_number(value.get("distance"))
