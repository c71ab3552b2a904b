"""Faults on purpose: each module tries one kind, and counts what was lost, duplicated or wrong.

A module has one function, ``rows(quick: bool) -> Iterator[Row]``, and a line in `KINDS`.
"""

KINDS = (
    "kills",
    "power_loss",
    "input_output_errors",
    "long_streams",
    "brokers",
    "poison",
)
