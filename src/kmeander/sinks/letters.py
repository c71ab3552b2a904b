"""Bad rows to a dead-letter file: where each stood, why it was set aside, what it was."""

from __future__ import annotations

import json

from kmeander.sinks.contract import Learnt
from kmeander.sinks.line_sink import LineSink


class DeadLetters(LineSink):
    """Writes one JSON line per bad row."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "--bad-rows")

    def write(self, learnt: Learnt) -> None:
        """Write the bad rows that came with a batch."""
        lines = [
            json.dumps(
                {**letter.place, "reason": letter.reason, "text": letter.text}, ensure_ascii=False
            )
            for letter in learnt.letters
        ]
        if lines:
            self.append("\n".join(lines) + "\n")
