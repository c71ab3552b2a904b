"""What a run writes: Steps, the cluster of every row, the clusters, rows that were set aside.

Every sink keeps one small contract (`contract.Sink`): write a batch, make it last, go on from
there.
"""

from __future__ import annotations

from kmeander.exceptions import InputError, argument
from kmeander.sinks.assignments import CSV, LINES, AssignmentCsv, AssignmentLines, AssignmentParquet
from kmeander.sinks.contract import LearnedBatch, RejectedRow, Sink, explained
from kmeander.sinks.kafka import AssignmentTopic, Sending
from kmeander.sinks.steps import StepLines, read_facts, read_steps
from kmeander.storage import filesystem_of
from kmeander.wire.kafka import SCHEME

__all__ = [
    "LearnedBatch",
    "RejectedRow",
    "Sending",
    "Sink",
    "StepLines",
    "assignment_sink",
    "read_facts",
    "read_steps",
]


def assignment_sink(
    path: str,
    *,
    in_parts: bool,
    output: str = "assignments",
    sending: Sending | None = None,
) -> Sink:
    """Return what writes the cluster of every row to `path`.

    Parameters
    ----------
    path : str
        A Kafka topic, standard output (``-``), or a file or folder whose ending says the format.
    in_parts : bool
        Whether Parquet must be able to go on after a crash.
    output : str
        The argument that names it, for messages.
    sending : Sending, optional
        To a topic.
    """
    if path.startswith(SCHEME):
        return AssignmentTopic(path, sending or Sending())
    if path == "-" or path.lower().endswith(LINES):
        return AssignmentLines(path, output)
    if path.lower().endswith(CSV):
        return AssignmentCsv(path, output)
    with explained(argument(output, path)):
        found = filesystem_of(path).info(path)
    is_folder = path.endswith("/") or (found is not None and found.kind == "folder")
    if is_folder or path.lower().endswith((".parquet", ".pq")):
        return AssignmentParquet(path, in_parts=in_parts or is_folder, output=output)
    raise InputError(
        f"{argument(output, path)}: its ending does not say the format. Use .parquet, .csv, "
        ".ndjson or .jsonl, a folder for parts of Parquet, or kafka://host:port/topic."
    )
