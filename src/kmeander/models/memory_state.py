"""A model's memory as plain arrays, numbers, lists and dicts, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kmeander.kmeans.window import Window
from kmeander.models.rho_choice import Ladder
from kmeander.models.state import Memory
from kmeander.records import Step
from kmeander.tracking.drift_test import Estimate
from kmeander.tracking.lineage import Lineage


def to_state(memory: Memory) -> dict[str, Any]:
    """Return everything that `memory` holds."""
    return {
        "n_steps": memory.n_steps,
        "n_features": memory.n_features,
        "centroids": memory.centroids,
        "window": memory.window.state(),
        "waiting_points": memory.waiting_points,
        "waiting_weights": memory.waiting_weights,
        "waiting_within": memory.waiting_within,
        "concept": memory.concept,
        "step": None if memory.step is None else memory.step.to_dict(),
        "expected_error": memory.expected_error,
        "usual": [[known.epsilon, known.se] for known in memory.usual],
        "ladder": None if memory.ladder is None else list(memory.ladder.scores),
        "lineage": None if memory.lineage is None else memory.lineage.state(),
    }


def from_state(state: Mapping[str, Any]) -> Memory:
    """Make the memory that `to_state` returned; one of an early version may lack some of it."""
    # Arrays from a pickle can be written to; nothing here may.
    for array in (state["centroids"], state["waiting_points"], state["waiting_weights"]):
        if array is not None:
            array.flags.writeable = False
    step, lineage = _step_and_lineage(state)
    return Memory(
        window=Window.from_state(state["window"]),
        n_steps=state["n_steps"],
        n_features=state["n_features"],
        centroids=state["centroids"],
        waiting_points=state["waiting_points"],
        waiting_weights=state["waiting_weights"],
        waiting_within=state.get("waiting_within", 0.0),
        concept=state["concept"],
        step=step,
        expected_error=state.get("expected_error"),
        usual=tuple(Estimate(*known) for known in state.get("usual", ())),
        ladder=Ladder(tuple(state["ladder"])) if state.get("ladder") else None,
        lineage=lineage,
    )


def _step_and_lineage(state: Mapping[str, Any]) -> tuple[Step | None, Lineage | None]:
    """Return the last Step and the lineage; a state of before there were ids begins them anew."""
    stored, known = state["step"], state.get("lineage")
    step = None if stored is None else Step.from_dict(stored)
    if state["centroids"] is None:
        return step, None
    lineage = Lineage.begun(state["centroids"], 0) if known is None else Lineage.from_state(known)
    return step if step is None else replace(step, ids=lineage.ids, ended=lineage.ended), lineage
