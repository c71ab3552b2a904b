"""``kmeander check``: what the beginning of a stream holds, and how to run it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kmeander.commands.panels import keywords, with_panels
from kmeander.commands.reading_options import ReadingOptions
from kmeander.commands.values import METRIC, names


@with_panels
def check(
    source: Annotated[str, typer.Argument(help="As for kmeander run.")],
    rows: Annotated[int, typer.Option(help="How many to look at.")] = 5000,
    columns: Annotated[
        str | None, typer.Option(help="Columns to look at, with commas between (default all).")
    ] = None,
    exclude: Annotated[str | None, typer.Option(help="Columns to leave out.")] = None,
    prepare: Annotated[
        str, typer.Option(metavar="auto|none|FILE", help="How rows would be prepared.")
    ] = "auto",
    metric: Annotated[
        str, typer.Option(metavar=METRIC, help="Distance between rows, as for kmeander run.")
    ] = "euclidean",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Look at the beginning of SOURCE: what its columns hold, and what becomes of them.

    Example: kmeander check readings.csv
    """
    from kmeander.runs.check import check as check_stream

    found = check_stream(
        source,
        rows=rows,
        columns=None if columns is None else names(columns),
        exclude=[] if exclude is None else names(exclude),
        prepare=prepare,
        metric=metric,
        **keywords(reading),
    )
    print(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else found)
