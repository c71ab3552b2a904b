"""What a line of a steps file must be, beside a Step, before it is drawn."""

from __future__ import annotations

from typing import Any

from kmeander.events import CHANGES_OF_K
from kmeander.exceptions import InputError, shown
from kmeander.plain_values import PlainValues, are_moderate, is_text
from kmeander.records import Step


def checked_facts(facts: Any, number: int) -> dict[str, Any]:
    """Return what describes the run, once it is what it is taken for."""
    if not isinstance(facts, dict):
        raise InputError(f"line {number}: `run` must be an object, got {shown(facts)}.")
    given = PlainValues(facts, f"line {number}: `run`")
    columns = given.items("columns", None, each=is_text, rule="names")
    given.inside("settings", None)
    for name, rows in (("standardize", "scale"), ("projection", "components")):
        inside = given.inside(name, None)
        if inside is None:
            continue
        mean = inside.array("mean", shape=(None,), fits=are_moderate)
        shape = (len(mean),) if rows == "scale" else (2, len(mean))
        found = inside.array(rows, shape=shape, fits=are_moderate)
        if rows == "scale" and not (found > 0).all():
            raise InputError(f"line {number}: `run` has a scale that is not above 0.")
        if columns is not None and len(columns) != len(mean):
            raise InputError(
                f"line {number}: `run` has {len(columns)} columns, {name} has {len(mean)}."
            )
    return facts


def check_shape(before: Step | None, step: Step, number: int) -> None:
    """Refuse a Step of another shape than the one before."""
    if before is None or before.centroids is None or step.centroids is None:
        return
    # Where the number of clusters follows the stream, events say what became of it.
    may_differ = any(event.kind in CHANGES_OF_K for event in step.events)
    first = 1 if may_differ else 0
    if before.centroids.shape[first:] != step.centroids.shape[first:]:
        raise InputError(
            f"line {number} has {step.centroids.shape[0]} clusters of {step.centroids.shape[1]} "
            f"columns, the line before {before.centroids.shape[0]} of {before.centroids.shape[1]}: "
            "the file holds more than one run."
        )


def check_lengths(step: Step, number: int) -> None:
    """Refuse a Step whose parts do not fit one another."""
    assert step.centroids is not None
    for name in ("masses", "ids"):
        if len(getattr(step, name)) != len(step.centroids):
            raise InputError(f"line {number} has {name} that do not fit its centroids.")
    assert step.masses is not None
    if not (step.masses <= step.mass * (1 + 1e-6)).all():
        raise InputError(f"line {number} has masses above that of all clusters, {step.mass:g}.")
