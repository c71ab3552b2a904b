"""Steps to JSON lines and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from kmeander.exceptions import InputError
from kmeander.records import Step


class JsonLines:
    """Writes one line per Step; facts of the whole run stand under `run` in the first.

    Parameters
    ----------
    file : text file
        Open for writing; the caller closes it.
    run : dict
        Settings, columns and whatever else describes the run.
    """

    def __init__(self, file: TextIO, run: dict[str, Any]) -> None:
        self._file = file
        self._run: dict[str, Any] | None = run

    def write(self, step: Step) -> None:
        """Write one Step, at once."""
        line = step.to_dict()
        if self._run is not None:
            line["run"] = self._run
            self._run = None
        json.dump(line, self._file, allow_nan=False, separators=(",", ":"))
        self._file.write("\n")
        self._file.flush()


def read_steps(path: str | os.PathLike[str]) -> Iterator[Step]:
    """Yield the Steps that `JsonLines` wrote to `path`."""
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Step.from_dict(json.loads(line))
            except (json.JSONDecodeError, InputError) as error:
                raise InputError(f"{path} line {number} is not a Step: {error}") from error
