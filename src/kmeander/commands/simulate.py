"""``kmeander simulate``: a stream that changes, made from a file, with the truth in columns."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kmeander.commands.values import names
from kmeander.commands.words import say


class StreamKind(StrEnum):
    """How the stream changes."""

    drift = "drift"
    gradual = "gradual"
    clusters = "clusters"


class Write(StrEnum):
    """What is written."""

    stream = "stream"
    concepts = "concepts"


def simulate(
    data: Annotated[str, typer.Argument(help="CSV file with a header, or Parquet file.")],
    out: Annotated[str, typer.Option(help="Folder for the Parquet file.")],
    kind: Annotated[
        StreamKind, typer.Option(help="Abrupt drifts, gradual ones, or clusters that come and go.")
    ] = StreamKind.drift,
    write: Annotated[
        Write, typer.Option(help="The stream of batches, or the concepts it is drawn from.")
    ] = Write.stream,
    n_clusters: Annotated[int, typer.Option("--clusters", help="Clusters that move.")] = 10,
    epsilon: Annotated[float, typer.Option(help="The error grows by this share at a drift.")] = 1.0,
    n_concepts: Annotated[
        int, typer.Option("--concepts", help="Concepts, the data included.")
    ] = 10,
    changes: Annotated[
        str, typer.Option(help="For --kind clusters: what happens to them, one after the other.")
    ] = "appear,split,merge,vanish",
    method: Annotated[
        str, typer.Option(metavar="root|paper", help="How the size is met.")
    ] = "root",
    batch_size: Annotated[int, typer.Option(help="Rows per batch.")] = 500,
    batches_per_concept: Annotated[int, typer.Option(help="Batches per concept.")] = 10,
    transition: Annotated[
        int, typer.Option(help="For --kind gradual: batches that mix two concepts.")
    ] = 5,
    columns: Annotated[
        str | None, typer.Option(help="Columns to use, with commas between (default all).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
) -> None:
    """Make a stream whose clusters drift, and write it with the truth beside every row.

    Example: kmeander simulate readings.csv --out simulated --clusters 8 --epsilon 0.5
    """
    from kmeander.runs.simulate import Simulation

    simulation = Simulation(
        data,
        columns=None if columns is None else names(columns),
        kind=kind.value,
        n_clusters=n_clusters,
        epsilon=epsilon,
        n_concepts=n_concepts,
        changes=tuple(change.strip() for change in changes.split(",")),
        method=method,
        batch_size=batch_size,
        batches_per_concept=batches_per_concept,
        transition=transition,
        seed=seed,
    )
    path = simulation.write(out, what=write.value)
    say(f"{path}: {simulation.describe(write.value)}")
    if write.value == "stream":
        # The truth stands in columns of numbers, too, and must not be clustered.
        chosen = ",".join(simulation.features)
        say(f"To cluster it: kmeander run {path} --columns {chosen}")
