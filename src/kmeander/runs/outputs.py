"""The outputs of a run, opened by what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kmeander.runs.description import Description
from kmeander.sinks import Sink, StepLines, assignment_sink
from kmeander.sinks.assignments import check_keys
from kmeander.sinks.centroids import CentroidTable
from kmeander.sinks.rejected_rows import RejectedRowLines


def sinks_of(
    run: Description, facts: Callable[[], dict[str, Any]], *, in_parts: bool
) -> dict[str, Sink]:
    """Return the outputs of a run by the names of arguments, in the order in which rows reach them.

    Parameters
    ----------
    run : Description
    facts : callable
        Returns what the first line of the steps says, once the first batch is learned.
    in_parts : bool
        Whether assignments must be complete at every commit.
    """
    outputs, selection = run.outputs, run.source.selection
    sinks: dict[str, Sink] = {}
    if outputs.steps is not None:
        sinks["steps"] = StepLines(outputs.steps, facts, run.words, outputs.part_size)
    if outputs.assignments is not None:
        if selection.id_column is not None:
            check_keys([selection.id_column], "assignments")
        sinks["assignments"] = assignment_sink(
            outputs.assignments, in_parts=in_parts, sending=outputs.sending
        )
    if outputs.bad_rows is not None:
        sinks["bad_rows"] = RejectedRowLines(outputs.bad_rows)
    if outputs.centroids is not None:
        sinks["centroids"] = CentroidTable(outputs.centroids, selection.features, run.named)
    return sinks
