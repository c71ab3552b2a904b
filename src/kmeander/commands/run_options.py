"""Options of ``kmeander run``, in the panels of its --help; each is written here and only here.

Fields are named as the arguments of `kmeander.run` are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from kmeander.commands.settings_file import read_settings
from kmeander.commands.short_help import show_all
from kmeander.commands.values import (
    FORGETTING,
    INIT,
    LATE,
    LOG,
    METRIC,
    START,
    TIME_UNIT,
    clusters_of,
    kinds_of,
    no_longer_standardize,
    refine_of,
    rho_of,
)
from kmeander.commands.values import names as named_with_commas


@dataclass(frozen=True)
class ModelOptions:
    """The model and how it forgets."""

    panel: ClassVar[str] = "Model"
    n_clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            help="Number of clusters; 2-30 or auto: as many as the stream has.",
            metavar="NUMBER|LOW-HIGH|auto",
        ),
        clusters_of,
    ] = "8"
    rho: Annotated[
        str | None,
        typer.Option(
            help="Share of weight a batch keeps when the next arrives (default 0.6), auto, or "
            "two-speed.",
            metavar="NUMBER|auto|two-speed",
        ),
        rho_of,
    ] = None
    half_life: Annotated[
        float | None,
        typer.Option(help="Batches after which half is forgotten, instead of --rho."),
    ] = None
    max_points: Annotated[
        int | None,
        typer.Option(
            help="Remember at most so many points; older batches become fewer weighted means.",
        ),
    ] = None
    init: Annotated[str, typer.Option(metavar=INIT, help="Where Lloyd starts at each batch.")] = (
        "previous"
    )
    refine: Annotated[
        str,
        typer.Option(
            help="Local search at each batch: swaps, split-merge (beside swaps), so many swaps to "
            "try, or none.",
            metavar="swaps|split-merge|NUMBER|none",
        ),
        refine_of,
    ] = "swaps"
    forgetting: Annotated[
        str,
        typer.Option(
            metavar=FORGETTING,
            help="Forget more where a batch contradicts the past, do so in a second memory beside "
            "the whole one, or always by rho.",
        ),
    ] = "adaptive"
    season: Annotated[
        str | None,
        typer.Option(
            help="Batches after which the stream repeats itself, or with --every a time, as 1d.",
            metavar="NUMBER|PERIOD",
        ),
    ] = None
    alarm_rate: Annotated[
        float,
        typer.Option(help="Share of the batches of an unchanging stream that may raise an alarm."),
    ] = 0.001
    random_state: Annotated[int, typer.Option("--seed", help="Seed of the random choices.")] = 0
    n_threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            help="Threads (default all cores); never changes a result.",
        ),
    ] = None


@dataclass(frozen=True)
class BatchOptions:
    """Where one batch ends and the next begins."""

    panel: ClassVar[str] = "Batches"
    batch_size: Annotated[
        int | None,
        typer.Option(help="Rows per batch (default 500)."),
    ] = None
    batch_seconds: Annotated[
        float | None,
        typer.Option(help="A batch ends, too, so long after its first row."),
    ] = None
    time_column: Annotated[
        str | None,
        typer.Option(help="Column that says when a row happened, for records and pages to say."),
    ] = None
    time_unit: Annotated[
        str | None,
        typer.Option(metavar=TIME_UNIT, help="Of numbers in --time-column (known by their size)."),
    ] = None
    every: Annotated[
        str | None,
        typer.Option(help="A batch holds the rows of one period of --time-column, such as 10m."),
    ] = None
    late_rows: Annotated[
        str,
        typer.Option(metavar=LATE, help="Rows of a period that is over: learn them now, or not."),
    ] = "keep"


@dataclass(frozen=True)
class ColumnOptions:
    """What is clustered of the rows."""

    panel: ClassVar[str] = "Rows and columns"
    columns: Annotated[
        str | None,
        typer.Option(help="Columns to cluster, with commas between (default all)."),
        named_with_commas,
    ] = None
    exclude: Annotated[
        str | None, typer.Option(help="Columns to leave out."), named_with_commas
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(help="Column that names the rows in outputs."),
    ] = None
    weight_column: Annotated[
        str | None,
        typer.Option(help="Column that says how many points a row stands for."),
    ] = None
    text_column: Annotated[
        str | None,
        typer.Option(help="Column of texts, whose words name the clusters."),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='Names of clusters in TOML: 3 = "night shift".'),
    ] = None
    prepare: Annotated[
        str,
        typer.Option(
            metavar="auto|none|FILE",
            help="Put columns on one scale, fill gaps, encode categories, leave out ids and times; "
            "or learn rows as they are; or rules in TOML.",
        ),
    ] = "auto"
    metric: Annotated[
        str,
        typer.Option(
            metavar=METRIC,
            help="Distance between rows: straight, or by direction, as embeddings are compared.",
        ),
    ] = "euclidean"
    standardize: Annotated[
        bool | None, typer.Option("--standardize", hidden=True), no_longer_standardize
    ] = None
    bad_rows: Annotated[
        str,
        typer.Option(
            metavar="error|skip|FILE",
            help="Rows that are no numbers: refuse, leave out, or leave out and write to FILE.",
        ),
    ] = "error"


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    panel: ClassVar[str] = "Outputs"
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="One JSON line per batch (default stdout, unless it is a terminal); with / at the "
            "end a folder of parts.",
        ),
    ] = None
    steps_part: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|day",
            help="Of a folder of --steps: a part begins at this size (64MB), or with each day of "
            "event time.",
        ),
    ] = None
    assignments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The cluster of every row: .parquet (with --checkpoint a folder of parts), "
            ".csv, .ndjson, or kafka://host:port/topic.",
        ),
    ] = None
    kafka_transactions: Annotated[
        bool,
        typer.Option(
            "--kafka-transactions",
            help="Each batch of --assignments on a topic is a transaction.",
        ),
    ] = False
    centroids: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The clusters: .csv or .parquet."),
    ] = None
    model_out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The model, for kmeander predict and kmeander.load.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Go on from here after a stop or a crash."),
    ] = None
    checkpoint_every: Annotated[int, typer.Option(help="Batches between two commits.")] = 10
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Begin anew where outputs are not empty and --checkpoint is new."
        ),
    ] = False


@dataclass(frozen=True)
class TerminalOptions:
    """What is shown while it runs."""

    panel: ClassVar[str] = "Outputs"
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="At the end, what kmeander report makes of the run: .html, .md or .json.",
        ),
    ] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the run live, as kmeander watch does, at an address that is said.",
        ),
    ] = False
    log: Annotated[
        str | None,
        typer.Option(metavar=LOG, help="Write lines to stderr for a log: with UTC time and level."),
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False


@dataclass(frozen=True)
class OperationOptions:
    """How others learn what goes on."""

    panel: ClassVar[str] = "Operation"
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT|HOST:PORT",
            help="Serve /metrics, for Prometheus, and /health, on 127.0.0.1 unless it says more.",
        ),
    ] = None
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Send each event there, as a CloudEvent, until it is taken."
        ),
    ] = None
    on_event: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Start this for each event, which it reads as JSON."),
    ] = None
    notify_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND,...",
            help="Kinds of events that are sent (default drift,moved,grew,shrank,trend).",
        ),
        kinds_of,
    ] = None
    stop_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND,...", help="End after the batch with such an event, with exit code 3."
        ),
        kinds_of,
    ] = None


@dataclass(frozen=True)
class ExitOptions:
    """What the program says by the way it ends."""

    panel: ClassVar[str] = "Operation"
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND,...", help="Exit with 3 at the end if there was such an event, confirmed."
        ),
        kinds_of,
    ] = None


@dataclass(frozen=True)
class SourceOptions:
    """How far the stream is read, and from where."""

    panel: ClassVar[str] = "Source"
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Wait for more at the end of the file."),
    ] = False
    idle_exit: Annotated[
        float | None,
        typer.Option(help="End once nothing has come for so many seconds."),
    ] = None
    group: Annotated[str, typer.Option(help="Kafka's consumer group.")] = "kmeander"
    start: Annotated[
        str,
        typer.Option(metavar=START, help="Where to begin with a topic, without a checkpoint."),
    ] = "earliest"


@dataclass(frozen=True)
class HelpOptions:
    """What --help leaves out."""

    panel: ClassVar[str] = "Help"
    help_all: Annotated[
        bool,
        typer.Option(
            "--help-all", is_eager=True, callback=show_all, help="Show every option and exit."
        ),
    ] = False


@dataclass(frozen=True)
class SettingsOptions:
    """Options from a file, and into one."""

    panel: ClassVar[str] = "Settings file"
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=read_settings,
            is_eager=True,
            help="Take options from a TOML file; those given here win.",
        ),
    ] = None
    write_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write what was given to a new file for --config, and end.",
        ),
    ] = None
