"""The outputs of a run: checked before anything is read, and opened by what was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kmeander.exceptions import ArgumentError, InputError, argument
from kmeander.runs.description import Description
from kmeander.runs.records import Outputs
from kmeander.sinks import Sink, StepLines, assignment_sink
from kmeander.sinks.assignments import check_keys
from kmeander.sinks.centroids import CentroidTable
from kmeander.sinks.contract import explained
from kmeander.sinks.rejected_rows import RejectedRowLines
from kmeander.sources import Reading
from kmeander.sources.files import would_read
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import is_address, is_one, split
from kmeander.wire.kafka import SCHEME


def check_outputs(outputs: Outputs, source: Any, reading: Reading) -> None:
    """Refuse to write over the source, or two things to one file."""
    for option, path in outputs.paths.items():
        for other, its_path in outputs.paths.items():
            if other < option and is_one(path, its_path):
                raise ArgumentError(
                    f"{argument(option)} and {argument(other)} cannot both be {path}: one would "
                    "overwrite the other."
                )
        check_beside(option, path, source, reading)
    if outputs.sending.transactions and not (outputs.assignments or "").startswith(SCHEME):
        raise ArgumentError(
            f"{argument('kafka_transactions', True)} is for "
            f"{argument('assignments', 'kafka://host:port/topic')}: other outputs have none."
        )
    if outputs.model_out is not None:
        files, (folder, _) = filesystem_of(outputs.model_out), split(outputs.model_out)
        with explained(argument("model_out", outputs.model_out)):
            is_missing = files.can_append and files.info(folder) is None
        if is_missing:
            raise InputError(
                f"{argument('model_out', outputs.model_out)} cannot be written: there is no folder "
                f"{folder}."
            )


def check_beside(option: str, path: str, source: Any, reading: Reading) -> None:
    """Refuse to write an output over its source, or among the files that it means."""
    if not isinstance(source, str | os.PathLike):
        return
    if _is_same(path, os.fspath(source)):
        raise ArgumentError(
            f"{argument(option, path)} would overwrite the source. Name another file."
        )
    if would_read(os.fspath(source), path, reading):
        raise ArgumentError(
            f"{argument(option, path)} would lie among the files of the source, and be read as "
            "one of them by the next run. Name another folder."
        )


def _is_same(path: str, source: str) -> bool:
    if is_address(path) or is_address(source):
        return path == source
    return Path(source).exists() and Path(path).exists() and Path(path).samefile(source)


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
