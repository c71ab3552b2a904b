"""Steps to JSON lines and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from kmeander.exceptions import InputError, StreamError, argument
from kmeander.plain_values import from_json
from kmeander.records import Columns, Step
from kmeander.sinks.contract import LearnedBatch, Position, explained
from kmeander.sinks.large_centroids import FOLDER, CentroidFiles, with_centroids
from kmeander.sinks.line_sink import LineSink
from kmeander.sinks.part_size import PartSize
from kmeander.storage.reading import lines_of
from kmeander.storage.rotating import RotatingFolder, is_folder
from kmeander.tracking.lineage import endings

ENDING = ".jsonl"


class StepLines(LineSink):
    """Writes one line per Step; facts of the whole run stand under `run` in the first.

    In a folder of parts they stand in the first line of each. Where something happened, `words`
    says it with the names of the columns. Centroids that would make long lines have files of their
    own.

    Parameters
    ----------
    path : str
        ``-`` is standard output; a folder of this machine gets parts.
    facts : callable
        Returns the facts, when the first line is written.
    words : callable
        Says what happened.
    part_size : PartSize, optional
        When a part is full.
    """

    def __init__(
        self,
        path: str,
        facts: Callable[[], dict[str, Any]],
        words: Callable[[Step], list[str]],
        part_size: PartSize | None = None,
    ) -> None:
        self._parts: RotatingFolder | None = None
        name = argument("steps", path)
        with explained(name):
            self._centroids = None if path == "-" else CentroidFiles(path, name)
            if path != "-" and is_folder(path):
                self._parts = RotatingFolder(path, name, ENDING, beside=[FOLDER])
        if self._parts is None and part_size is not None:
            raise InputError(
                f"{argument('steps_part')} says when a part of a folder is full, but "
                f"{argument('steps', path)} is none. End it with /."
            )
        super().__init__(path, "steps", self._parts)
        self._part_size = part_size or PartSize()
        self._facts = facts
        self._words = words
        self._head: dict[str, Any] | None = None  # the first line of the open part

    def open(self, position: Position | None) -> None:
        """Empty it, or cut it back to `position`."""
        super().open(position)
        if position is None and self._centroids is not None:
            self._centroids.clear()
        if self._parts is not None and not self.at_beginning:
            self._head = _head_of(self._parts.first_line(), self.name)

    def write(self, learned: LearnedBatch) -> None:
        """Write one line."""
        step = learned.step
        if step is None:
            return
        line = step.to_dict()
        if self._centroids is not None:
            line = self._centroids.apart(line, step)
        if step.events:
            line["words"] = self._words(step)
        if self._parts is not None:
            self._begin_part(self._parts, line)
        elif step.index == 0:
            line["run"] = self._facts()
        try:
            text = json.dumps(line, allow_nan=False, separators=(",", ":"))
        except ValueError as error:
            raise StreamError(
                f"batch {step.index} has numbers that are not finite, to which no stream "
                "leads: what the run went on from is damaged. Restore it from a copy."
            ) from error
        self.append(text + "\n")

    def _begin_part(self, parts: RotatingFolder, line: dict[str, Any]) -> None:
        """Begin another part where one is due, and describe the run in its first line."""
        head = self._head
        if head is not None and not self._part_size.is_full(parts.size, head, line):
            return
        if head is not None:
            with explained(self.name):
                parts.rotate()
        line["run"] = self._facts() if head is None else head["run"]
        self._head = line


def _head_of(line: bytes, name: str) -> dict[str, Any]:
    try:
        head: dict[str, Any] = from_json(line)
        if isinstance(head["run"], dict):
            return head
    except (ValueError, KeyError, TypeError):
        pass
    raise StreamError(
        f"{name} has an open part that does not begin with the facts of a run: it was changed. "
        f"Restore it, or begin anew with another {argument('checkpoint')}."
    )


def read_steps(path: str | os.PathLike[str]) -> Iterator[Step]:
    """Yield the Steps that a run wrote to `path`."""
    ended: tuple[tuple[int, int], ...] = ()
    names: dict[int, str] = {}
    columns: Columns | None = None
    for number, line in enumerate(lines_of(path), start=1):
        try:
            plain = with_centroids(from_json(line), path)
            step = Step.from_dict(plain)
            if columns is None:
                columns = Columns.of(plain.get("run") or {})
        except ValueError as error:
            raise InputError(f"{path} line {number} is not a Step: {error}") from error
        if step.events or step.dropped:
            ended = (*ended, *endings(step.events), *step.dropped)
        if step.profiles is not None:
            names = {**names, **step.profiles.names()}
        if columns is not None:
            columns = columns.after(step.events)
        yield replace(step, ended=(*ended, *step.asleep), names=names, columns=columns)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what stands under `run` in the first line that is left of a run's Steps."""
    with closing(lines_of(path)) as lines:
        line = next(lines, b"")
    try:
        facts: dict[str, Any] = from_json(line)["run"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not begin with the facts of a run.") from error
    return facts
