"""Options of every command that reads a stream, in the panels of its --help.

Fields are named as the arguments of `kmeander.run` are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from kmeander.commands.values import FORMAT, ORDER, names, pairs, refuse_listed_secrets


@dataclass(frozen=True)
class ReadingOptions:
    """How the rows of the stream are written, and how Kafka's brokers are reached."""

    panel: ClassVar[str] = "Source"
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar=FORMAT,
            help="Of the rows, where the ending of the file does not say it.",
        ),
    ] = None
    header: Annotated[
        str | None, typer.Option(help="Names of the columns of CSV without a header line."), names
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="What stands between columns of CSV; also tab, space."),
    ] = None
    decimal: Annotated[str | None, typer.Option(metavar=".|,", help="Decimal sign of CSV.")] = None
    encoding: Annotated[str | None, typer.Option(help="Of text, such as latin-1.")] = None
    comment: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Leave out lines that begin with it.")
    ] = None
    na_values: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS", help="Words for a missing value, beside NA, null, - and the like."
        ),
        names,
    ] = None
    order: Annotated[str, typer.Option(metavar=ORDER, help="Of the files of a folder.")] = "name"
    kafka_options: Annotated[
        list[str] | None,
        typer.Option(
            "--kafka-option",
            metavar="KEY=VALUE",
            callback=refuse_listed_secrets,
            help="Setting of librdkafka; may be given again.",
        ),
        pairs,
    ] = None
    kafka_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings of librdkafka, KEY=VALUE on each line: the place for passwords.",
        ),
    ] = None
