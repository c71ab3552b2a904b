"""Rejected rows to a file of JSON lines: where each stood, why it was set aside, what it was."""

from __future__ import annotations

import json

from kmeander.sinks.contract import LearnedBatch
from kmeander.sinks.line_sink import LineSink


class RejectedRowLines(LineSink):
    """Writes one JSON line per bad row."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "bad_rows")

    def write(self, learned: LearnedBatch) -> None:
        """Write the bad rows that came with a batch."""
        lines = [
            json.dumps(
                {**rejected.place, "reason": rejected.reason, "text": rejected.text},
                ensure_ascii=False,
            )
            for rejected in learned.rejected_rows
        ]
        if lines:
            self.append("\n".join(lines) + "\n")
