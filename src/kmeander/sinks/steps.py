"""Steps to JSON lines and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from kmeander.exceptions import InputError, StreamError
from kmeander.json_text import from_json
from kmeander.records import Step
from kmeander.sinks.contract import LearnedBatch
from kmeander.sinks.line_sink import LineSink
from kmeander.storage.growing import lines_of
from kmeander.tracking.lineage import endings


class StepLines(LineSink):
    """Writes one line per Step; facts of the whole run stand under `run` in the first.

    Where something happened, `words` says it with the names of the columns.

    Parameters
    ----------
    path : str
        ``-`` is standard output.
    facts : callable
        Returns the facts, when the first line is written.
    words : callable
        Says what happened.
    """

    def __init__(
        self, path: str, facts: Callable[[], dict[str, Any]], words: Callable[[Step], list[str]]
    ) -> None:
        super().__init__(path, "steps")
        self._facts = facts
        self._words = words

    def write(self, learned: LearnedBatch) -> None:
        """Write one line."""
        if learned.step is None:
            return
        line = learned.step.to_dict()
        if learned.step.events:
            line["words"] = self._words(learned.step)
        if learned.step.index == 0:
            line["run"] = self._facts()
        try:
            text = json.dumps(line, allow_nan=False, separators=(",", ":"))
        except ValueError as error:
            raise StreamError(
                f"batch {learned.step.index} has numbers that are not finite, to which no stream "
                "leads: what the run went on from is damaged. Restore it from a copy."
            ) from error
        self.append(text + "\n")


def read_steps(path: str | os.PathLike[str]) -> Iterator[Step]:
    """Yield the Steps that a run wrote to `path`."""
    ended: tuple[tuple[int, int], ...] = ()
    for number, line in enumerate(lines_of(path), start=1):
        try:
            step = Step.from_dict(from_json(line))
        except ValueError as error:
            raise InputError(f"{path} line {number} is not a Step: {error}") from error
        if step.events or step.dropped:
            ended = (*ended, *endings(step.events), *step.dropped)
        yield replace(step, ended=(*ended, *step.asleep))


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what stands under `run` in the first line that a run wrote to `path`."""
    with closing(lines_of(path)) as lines:
        line = next(lines, b"")
    try:
        facts: dict[str, Any] = from_json(line)["run"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not begin with the facts of a run.") from error
    return facts
