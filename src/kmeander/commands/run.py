"""``kmeander run``: cluster a stream batch by batch."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.commands.progress import show_progress
from kmeander.commands.run_options import (
    Forgetting,
    Format,
    Init,
    Late,
    Order,
    Start,
    refine_of,
    rho_of,
)
from kmeander.commands.signals import stop_on_signals
from kmeander.commands.watch import watched
from kmeander.commands.words import count, names, pairs, say

if TYPE_CHECKING:
    from kmeander.records import Step
    from kmeander.runs.records import RunSummary


# Under which heading --help shows an option.
MODEL = "Model"
BATCHES = "Batches"
COLUMNS = "Rows and columns"
OUTPUTS = "Outputs"
SOURCE = "Source"

# Clusters whose shares the summary names.
SHARES_SHOWN = 12


def run(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, NDJSON, Parquet or Arrow file (also compressed), a folder or glob of "
            "them, - for stdin, kafka://host:port/topic, or drift:FILE."
        ),
    ],
    clusters: Annotated[
        int, typer.Option(help="Number of clusters.", min=1, rich_help_panel=MODEL)
    ] = 8,
    rho: Annotated[
        str | None,
        typer.Option(
            help="Share of weight a batch keeps when the next arrives (default 0.6), or auto.",
            metavar="NUMBER|auto",
            rich_help_panel=MODEL,
        ),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(
            help="Batches after which half is forgotten, instead of --rho.", rich_help_panel=MODEL
        ),
    ] = None,
    max_points: Annotated[
        int | None,
        typer.Option(
            help="Remember at most so many points; older batches become fewer weighted means.",
            min=2,
            rich_help_panel=MODEL,
        ),
    ] = None,
    init: Annotated[
        Init, typer.Option(help="Where Lloyd starts at each batch.", rich_help_panel=MODEL)
    ] = Init.previous,
    refine: Annotated[
        str,
        typer.Option(
            help="Local search at each batch: swaps, so many swaps to try, or none.",
            metavar="swaps|NUMBER|none",
            rich_help_panel=MODEL,
        ),
    ] = "swaps",
    forgetting: Annotated[
        Forgetting,
        typer.Option(
            help="Forget more where a batch contradicts the past, or always by rho.",
            rich_help_panel=MODEL,
        ),
    ] = Forgetting.adaptive,
    seed: Annotated[
        int, typer.Option(help="Seed of the random choices.", min=0, rich_help_panel=MODEL)
    ] = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads (default all cores); never changes a result.",
            min=1,
            rich_help_panel=MODEL,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Rows per batch (default 500).", min=1, rich_help_panel=BATCHES),
    ] = None,
    batch_seconds: Annotated[
        float | None,
        typer.Option(
            help="A batch ends, too, so long after its first row.", rich_help_panel=BATCHES
        ),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            help="Column that says when a row happened; with --every.", rich_help_panel=BATCHES
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="A batch holds the rows of one period, such as 10m.", rich_help_panel=BATCHES
        ),
    ] = None,
    late_rows: Annotated[
        Late,
        typer.Option(
            help="Rows of a period that is over: learn them now, or not.", rich_help_panel=BATCHES
        ),
    ] = Late.keep,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns to cluster, with commas between (default all).", rich_help_panel=COLUMNS
        ),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Columns to leave out.", rich_help_panel=COLUMNS)
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(help="Column that names the rows in --assignments.", rich_help_panel=COLUMNS),
    ] = None,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Scale columns by mean and spread of the first batch.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
    bad_rows: Annotated[
        str,
        typer.Option(
            metavar="error|skip|FILE",
            help="Rows that are no numbers: refuse, leave out, or leave out and write to FILE.",
            rich_help_panel=COLUMNS,
        ),
    ] = "error",
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="One JSON line per batch (default stdout, unless it is a terminal).",
            rich_help_panel=OUTPUTS,
        ),
    ] = None,
    assignments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The cluster of every row: .parquet (with --checkpoint a folder of parts), "
            ".ndjson, or kafka://host:port/topic.",
            rich_help_panel=OUTPUTS,
        ),
    ] = None,
    centroids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The clusters: .csv or .parquet.", rich_help_panel=OUTPUTS
        ),
    ] = None,
    model_out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The model, for kmeander predict and kmeander.load.",
            rich_help_panel=OUTPUTS,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Go on from here after a stop or a crash.", rich_help_panel=OUTPUTS
        ),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(help="Batches between two commits.", min=1, rich_help_panel=OUTPUTS)
    ] = 10,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Of the rows, where no ending tells it.", rich_help_panel=SOURCE
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            help="Names of the columns of CSV without a header line.", rich_help_panel=SOURCE
        ),
    ] = None,
    order: Annotated[
        Order, typer.Option(help="Of the files of a folder.", rich_help_panel=SOURCE)
    ] = Order.name,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Wait for more at the end of the file.", rich_help_panel=SOURCE
        ),
    ] = False,
    idle_exit: Annotated[
        float | None,
        typer.Option(help="End once nothing has come for so many seconds.", rich_help_panel=SOURCE),
    ] = None,
    group: Annotated[
        str, typer.Option(help="Kafka's consumer group.", rich_help_panel=SOURCE)
    ] = "kmeander",
    start: Annotated[
        Start,
        typer.Option(
            help="Where to begin with a topic, without a checkpoint.", rich_help_panel=SOURCE
        ),
    ] = Start.earliest,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Setting of librdkafka; may be given again.",
            rich_help_panel=SOURCE,
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the run live at http://127.0.0.1:5006/, as kmeander watch does.",
            rich_help_panel=OUTPUTS,
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say nothing but errors.", rich_help_panel=OUTPUTS)
    ] = False,
) -> None:
    """Cluster the rows of SOURCE batch by batch.

    Example: kmeander run readings.csv --clusters 8 --half-life 5 | jq .surrogate_error
    """
    from kmeander.runs.api import run as run_stream

    if rho is not None and half_life is not None:
        raise typer.BadParameter("give --rho or --half-life, not both")
    if half_life is not None and not half_life > 0:
        raise typer.BadParameter(f"--half-life must be above 0, got {half_life:g}")
    if (time_column is None) != (every is None):
        raise typer.BadParameter("--time-column and --every go together")
    if steps is None and sys.stdout is not None and not sys.stdout.isatty():
        steps = None if assignments == "-" else "-"
    with ExitStack() as stack:
        if watch:
            steps = stack.enter_context(_steps_to_watch(steps))
            stack.enter_context(watched(steps, quiet=quiet))
        stop = stack.enter_context(stop_on_signals(quiet=quiet))
        summary = run_stream(
            source,
            clusters,
            rho=rho_of(rho),
            half_life=half_life,
            max_points=max_points,
            init=init.value,
            refine=refine_of(refine),
            forgetting=forgetting.value,
            n_threads=threads,
            random_state=seed,
            format=None if format_ is None else format_.value,
            header=names(header),
            columns=names(columns),
            exclude=names(exclude) or (),
            id_column=id_column,
            standardize=standardize,
            order=order.value,
            follow=follow,
            idle_exit=idle_exit,
            batch_size=batch_size,
            batch_seconds=batch_seconds,
            time_column=time_column,
            every=every,
            late_rows=late_rows.value,
            bad_rows=bad_rows,
            steps=steps,
            assignments=assignments,
            centroids=centroids,
            model_out=model_out,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            group=group,
            start=start.value,
            kafka_options=pairs(kafka_option),
            on_progress=show_progress(stack, quiet=quiet),
            tell=(lambda _: None) if quiet else say,
            stop=stop,
        )
    if not quiet:
        _say_summary(
            summary, "standard input" if source == "-" else source, resumable=bool(checkpoint)
        )


@contextmanager
def _steps_to_watch(steps: str | None) -> Iterator[str]:
    """Yield the file of the steps, one that is thrown away afterwards if none was asked for."""
    if steps == "-":
        raise typer.BadParameter("--watch needs --steps FILE where standard output is a pipe")
    if steps is not None:
        yield steps
        return
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "steps.jsonl")


def _say_summary(summary: RunSummary, name: str, *, resumable: bool) -> None:
    """Say on stderr what the run did."""
    if summary.resumed_at is not None and not (summary.n_batches or summary.n_bad):
        say(f"{name}: nothing new since batch {summary.resumed_at}.")
    else:
        _say_counts(summary, name)
    if summary.stopped:
        _say_stop(summary, resumable=resumable)
    if summary.last is not None:
        _say_clusters(summary, summary.last)


def _say_counts(summary: RunSummary, name: str) -> None:
    say(
        f"{name}: {count(summary.n_points, 'row')} in {count(summary.n_batches, 'batch')}, "
        f"learned in {summary.seconds:.2f} s."
    )
    if summary.n_bad:
        say(f"Bad rows set aside: {summary.n_bad:,}.")
    if summary.n_late:
        say(f"Late rows: {summary.n_late:,}.")


def _say_stop(summary: RunSummary, *, resumable: bool) -> None:
    line = "Stopped. With --checkpoint a run can go on where it stopped."
    if resumable:
        line = "Stopped; the same command goes on from here."
    if summary.n_waiting:
        line += f" {count(summary.n_waiting, 'row')} wait for their batch to be complete."
    say(line)


def _say_clusters(summary: RunSummary, last: Step) -> None:
    if last.surrogate_error is None or last.masses is None:
        say("The stream has not shown enough distinct points yet: nothing was learned.")
        return
    say(
        f"Surrogate error {last.surrogate_error:.6g}, newest batch {last.batch_error:.6g}; "
        f"window of {count(last.n_batches, 'batch')}, rho {last.rho:.4g}."
    )
    say(f"Shares of the clusters now: {_shares(last)}")
    if summary.events:
        counted = ", ".join(f"{number:,} {kind}" for kind, number in summary.events.items())
        say(f"Events: {counted}.")
    if summary.n_reseeded:
        say(f"Clusters that lost all their points and were seeded anew: {summary.n_reseeded:,}.")
    if summary.n_unconverged:
        say(f"Batches that stopped at max_iter: {summary.n_unconverged:,}.")


def _shares(step: Step) -> str:
    """Return id and share of the heaviest clusters, by id."""
    assert step.masses is not None
    assert step.ids is not None
    pairs = sorted(zip(step.masses.tolist(), step.ids.tolist(), strict=True), reverse=True)
    shown = sorted((number, mass) for mass, number in pairs[:SHARES_SHOWN])
    words = ", ".join(f"{number}: {mass / step.mass:.1%}" for number, mass in shown)
    return words + (
        f", and {count(len(pairs) - len(shown), 'other')}" if pairs[SHARES_SHOWN:] else ""
    )
