"""``kmeander run``: cluster the rows of a file batch by batch."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kmeander.models import FSKM
    from kmeander.records import Step
    from kmeander.runner import RunSummary
    from kmeander.sources import FileSource


class Init(StrEnum):
    """Where Lloyd starts at each batch."""

    hungarian = "hungarian"
    weighted = "weighted"
    current = "current"
    previous = "previous"


def run(
    source: Annotated[
        str, typer.Argument(help="CSV file with a header, Parquet file, or - for CSV on stdin.")
    ],
    clusters: Annotated[int, typer.Option(help="Number of clusters.", min=1)] = 8,
    batch_size: Annotated[int, typer.Option(help="Rows per batch.", min=1)] = 500,
    rho: Annotated[
        float | None,
        typer.Option(help="Share of weight a batch keeps when the next arrives (default 0.5)."),
    ] = None,
    half_life: Annotated[
        float | None, typer.Option(help="Batches after which half is forgotten, instead of --rho.")
    ] = None,
    init: Annotated[Init, typer.Option(help="Where Lloyd starts at each batch.")] = Init.hungarian,
    columns: Annotated[
        str | None, typer.Option(help="Columns to cluster, with commas between (default all).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random choices.", min=0)] = 0,
    threads: Annotated[
        int | None, typer.Option(help="Threads (default all cores); never changes a result.", min=1)
    ] = None,
    steps: Annotated[
        Path | None,
        typer.Option(help="Write one JSON line per batch here (default stdout if it is a pipe)."),
    ] = None,
) -> None:
    """Cluster the rows of SOURCE batch by batch.

    Example: kmeander run readings.csv --clusters 8 --half-life 5 | jq .surrogate_error
    """
    from kmeander.models import FSKM
    from kmeander.runner import run as run_batches
    from kmeander.sources import FileSource
    from kmeander.window import rho_for_half_life

    if rho is not None and half_life is not None:
        raise typer.BadParameter("give --rho or --half-life, not both")
    if rho is not None and not 0 < rho < 1:
        raise typer.BadParameter(f"--rho must lie between 0 and 1, got {rho:g}")
    if half_life is not None and not half_life > 0:
        raise typer.BadParameter(f"--half-life must be above 0, got {half_life:g}")
    if half_life is not None:
        rho = rho_for_half_life(half_life)
    model = FSKM(
        clusters,
        init=init.value,
        rho=0.5 if rho is None else rho,
        n_threads=threads,
        random_state=seed,
    )
    if steps is not None and steps.exists() and source != "-" and steps.samefile(source):
        raise typer.BadParameter(f"--steps {steps} would overwrite the source")
    chosen = [name.strip() for name in columns.split(",")] if columns else None
    rows = FileSource(source, batch_size, chosen)
    with ExitStack() as stack:
        outlets = [*_step_file(steps, model, rows, stack), *_progress(rows, stack)]
        summary = run_batches(rows, model, outlets)
    _tell(summary, rows.name)


def _step_file(
    path: Path | None, model: FSKM, rows: FileSource, stack: ExitStack
) -> list[Callable[[Step], None]]:
    """Return what writes the Steps: nothing where they would only flood a terminal."""
    from kmeander import __version__
    from kmeander.sinks import JsonLines

    if path is None and (sys.stdout is None or sys.stdout.isatty()):
        return []
    facts = {
        "kmeander": __version__,
        "source": rows.path,
        "columns": rows.columns,
        "batch_size": rows.batch_size,
        "settings": {**model.settings(), "random_state": model.seed},
    }
    try:
        file = sys.stdout if path is None else stack.enter_context(path.open("w", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--steps {path} cannot be written: {error.strerror}.") from error
    return [JsonLines(file, facts).write]


def _progress(rows: FileSource, stack: ExitStack) -> list[Callable[[Step], None]]:
    """Return what shows progress: a bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        return []
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows  error {task.fields[error]}"),
        console=Console(stderr=True),
        transient=True,
    )
    stack.enter_context(bar)
    task = bar.add_task("learning", total=rows.n_rows, error="-")

    def show(step: Step) -> None:
        error = "-" if step.surrogate_error is None else f"{step.surrogate_error:.4g}"
        bar.update(task, advance=step.n_points, error=error)

    return [show]


def _tell(summary: RunSummary, name: str) -> None:
    """Say on stderr what the run did."""

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    say(
        f"{name}: {_count(summary.n_points, 'row')} in {_count(summary.n_batches, 'batch')}, "
        f"learnt in {summary.seconds:.2f} s."
    )
    last = summary.last
    if last is None or last.surrogate_error is None or last.masses is None:
        say("The stream has not shown enough distinct points yet: nothing was learnt.")
        return
    say(
        f"Surrogate error {last.surrogate_error:.6g}, newest batch {last.batch_error:.6g}; "
        f"window of {_count(last.n_batches, 'batch')}, rho {last.rho:.4g}."
    )
    shares = " ".join(f"{mass / last.mass:.1%}" for mass in last.masses)
    say(f"Shares of the clusters now: {shares}")
    if summary.n_reseeded:
        say(f"Clusters that lost all their points and were seeded anew: {summary.n_reseeded}.")
    if summary.n_unconverged:
        say(f"Batches that stopped at max_iter: {summary.n_unconverged}.")


def _count(number: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"
