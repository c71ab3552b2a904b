"""``kmeander predict``: the clusters of a saved model for every row of a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from kmeander.commands.panels import keywords, with_panels
from kmeander.commands.reading_options import ReadingOptions
from kmeander.commands.signals import stop_on_signals
from kmeander.commands.words import count, say


@with_panels
def predict(
    source: Annotated[str, typer.Argument(help="As for kmeander run; - is CSV on stdin.")],
    model: Annotated[str, typer.Option(help="What --model-out or save wrote.")],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help=".parquet, .csv, .ndjson, kafka://host:port/topic, or - for NDJSON on stdout.",
        ),
    ] = "-",
    id_column: Annotated[str | None, typer.Option(help="Column that names the rows.")] = None,
    bad_rows: Annotated[
        str,
        typer.Option(metavar="error|skip", help="Rows that are no numbers: refuse or leave out."),
    ] = "error",
    n_threads: Annotated[
        int | None,
        typer.Option("--threads", help="Threads (default all cores); never changes a result."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Assign the rows of SOURCE to the clusters of a saved model.

    Example: kmeander predict today.csv --model model.km --out clusters.parquet
    """
    from kmeander.runs.predict import predict as predict_stream

    with stop_on_signals(quiet=quiet) as stop:
        summary = predict_stream(
            source,
            model,
            out=out,
            id_column=id_column,
            bad_rows=bad_rows,
            n_threads=n_threads,
            **keywords(reading),
            tell=(lambda _: None) if quiet else say,
            stop=stop,
        )
    if not quiet:
        say(f"{source}: {count(summary.n_points, 'row')} assigned.")
        if summary.n_bad:
            say(f"Bad rows left out: {summary.n_bad:,}.")
