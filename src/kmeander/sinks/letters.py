"""Bad rows to a dead-letter file: where each stood, why it was set aside, what it was."""

from __future__ import annotations

import json

from kmeander.sinks.appended import AppendedFile
from kmeander.sinks.contract import Learnt, Position, Sink


class DeadLetters(Sink):
    """Writes one JSON line per bad row."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._file = AppendedFile(path, "--bad-rows")

    def open(self, position: Position | None) -> None:
        """Begin anew, or cut the file back to `position`."""
        self._file.open(position)

    def write(self, learnt: Learnt) -> None:
        """Write the bad rows that came with a batch."""
        for letter in learnt.letters:
            line = {**letter.place, "reason": letter.reason, "text": letter.text}
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if learnt.letters:
            self._file.flush()

    def commit(self) -> Position:
        """Make all lines last."""
        return self._file.commit()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
