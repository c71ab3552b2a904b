"""The outputs of a run: checked before anything is read, and opened by what was asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from kmeander.exceptions import ArgumentError, InputError, KmeanderError, argument
from kmeander.runs.description import Description
from kmeander.runs.records import Outputs
from kmeander.sinks import Sink, StepLines, assignment_sink
from kmeander.sinks.assignments import check_keys
from kmeander.sinks.centroids import CentroidTable
from kmeander.sinks.contract import explained
from kmeander.sinks.part_size import PartSize
from kmeander.sinks.rejected_rows import RejectedRowLines
from kmeander.sources import Reading
from kmeander.sources.batching import BAD_ROWS
from kmeander.sources.files import would_read
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import is_address, is_one, split
from kmeander.wire.kafka import SCHEME

PathLike = str | os.PathLike[str]


def text_of(path: PathLike | None) -> str | None:
    """Return a path as text."""
    return None if path is None else os.fspath(path)


def part_size_of(steps_part: str | None, time_column: str | None) -> PartSize | None:
    """Return when a part of the steps is full; None where that was not said."""
    size = None if steps_part is None else PartSize.of(steps_part)
    if size is not None and size.n_bytes is None and time_column is None:
        raise ArgumentError(
            f"{argument('steps_part', 'day')} goes by event time, and needs "
            f"{argument('time_column', ...)} to say where that stands."
        )
    return size


def file_of(bad_rows: PathLike) -> str | None:
    """Return the file to which bad rows go, if any; a word that is no choice is not one."""
    if bad_rows in BAD_ROWS:
        return None
    path = os.fspath(bad_rows)
    if isinstance(bad_rows, str) and path != "-" and "." not in path and Path(path).name == path:
        raise ArgumentError(
            f"{argument('bad_rows')} must be {', '.join(map(json.dumps, BAD_ROWS))} or a file such "
            f"as bad.ndjson, got {bad_rows!r}."
        )
    return path


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


def closing_of(sink: Sink) -> Callable[..., None]:
    """Return what closes an output at the end; an error before that is the one to report."""

    def close(_: object, error: BaseException | None, __: object) -> None:
        with nullcontext() if error is None else suppress(KmeanderError):
            sink.close()

    return close
