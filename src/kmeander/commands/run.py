"""``kmeander run``: cluster a stream batch by batch."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.commands.panels import keywords, with_panels
from kmeander.commands.reading_options import ReadingOptions
from kmeander.commands.report import check_report, write_report
from kmeander.commands.run_options import (
    BatchOptions,
    ColumnOptions,
    ExitOptions,
    HelpOptions,
    ModelOptions,
    OperationOptions,
    OutputOptions,
    SettingsOptions,
    SourceOptions,
    TerminalOptions,
)
from kmeander.commands.service import service_of_systemd
from kmeander.commands.settings_file import write_settings
from kmeander.commands.showing import show_progress
from kmeander.commands.signals import stop_on_signals
from kmeander.commands.values import fewest_clusters
from kmeander.commands.watch import watched
from kmeander.commands.words import LOGS, count, counted_events, end_on_alarm, log_as, say
from kmeander.events import called
from kmeander.exceptions import argument
from kmeander.storage.filesystem import is_one

if TYPE_CHECKING:
    from kmeander.records import Step
    from kmeander.runs.records import RunSummary


# Clusters whose shares the summary names.
SHARES_SHOWN = 12
# Columns whose missing values it counts.
COLUMNS_SHOWN = 5


@with_panels
def run(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, NDJSON, Parquet or Arrow file (also compressed), a folder or glob of "
            "them, - for stdin, kafka://host:port/topic, or drift:FILE."
        ),
    ],
    context: typer.Context,
    model: ModelOptions,
    batches: BatchOptions,
    columns: ColumnOptions,
    outputs: OutputOptions,
    terminal: TerminalOptions,
    operation: OperationOptions,
    ending: ExitOptions,
    reading: ReadingOptions,
    origin: SourceOptions,
    settings: SettingsOptions,
    help_all: HelpOptions,  # noqa: ARG001  # its callback has seen it
) -> None:
    """Cluster the rows of SOURCE batch by batch.

    Example: kmeander run readings.csv --clusters 8 --half-life 5 | jq .surrogate_error
    """
    from kmeander.runs.api import run as run_stream

    _check(source, model, outputs, terminal)
    if settings.write_config is not None:
        # Which refuses words that mean nothing.
        keywords(model, batches, columns, outputs, operation, ending, reading, origin)
        write_settings(context, settings.write_config)
        if not terminal.quiet:
            say(f"Written; next: kmeander run --config {shlex.quote(settings.write_config)}")
        return
    log_as(terminal.log)
    fail_on = keywords(ending).get("fail_on", [])
    quiet, assignments = terminal.quiet, outputs.assignments
    steps = outputs.steps
    if steps is None and sys.stdout is not None and not sys.stdout.isatty():
        steps = None if assignments == "-" or terminal.report else "-"
    with ExitStack() as stack:
        if terminal.watch or terminal.report:
            steps = stack.enter_context(
                _steps_to_read(steps, "--watch" if terminal.watch else "--report")
            )
        if terminal.watch:
            assert steps is not None
            stack.enter_context(watched(steps))
        service = stack.enter_context(service_of_systemd())
        show = show_progress(stack, quiet=quiet, log=terminal.log)
        summary = run_stream(
            source,
            **keywords(
                model, batches, columns, replace(outputs, steps=steps), operation, reading, origin
            ),
            stop=stack.enter_context(stop_on_signals(quiet=quiet)),
            on_progress=show.progress if service is None else service.heard_by(show.progress),
            on_first_rows=show.first_rows,
            tell=(lambda _: None) if quiet else _warn,
            keep_steps=0,
        ).summary
        if terminal.report and summary.last is not None:
            assert steps is not None
            write_report(steps, terminal.report)
    if not quiet:
        name = "standard input" if source == "-" else source
        _say_summary(
            summary, name, fewest_clusters(model.n_clusters), resumable=bool(outputs.checkpoint)
        )
    if summary.stopped_on is not None:
        fail_on.append(summary.stopped_on)
    elif summary.stopped and outputs.checkpoint:
        return  # it is not over: its events are in the checkpoint
    end_on_alarm(fail_on, summary.events_since_end, quiet=quiet)


def _warn(line: str) -> None:
    say(line, "warning")


def _check(
    source: str, model: ModelOptions, outputs: OutputOptions, terminal: TerminalOptions
) -> None:
    """Refuse options that do not go together, or have no such value."""
    if terminal.log is not None and terminal.log not in LOGS:
        raise typer.BadParameter(f"--log must be text or json, got {terminal.log!r}")
    if terminal.report is not None:
        check_report(terminal.report)
        others = [source, outputs.steps, outputs.assignments, outputs.centroids, outputs.model_out]
        if any(other is not None and is_one(terminal.report, other) for other in others):
            raise typer.BadParameter(
                f"--report {terminal.report} would overwrite what the run reads or writes: name "
                "another file"
            )
        if outputs.checkpoint is not None and outputs.steps is None:
            raise typer.BadParameter(
                "--report with --checkpoint needs --steps FILE: a run that goes on reports what "
                "came before from there"
            )
    if terminal.watch and terminal.quiet:
        raise typer.BadParameter("--watch says where the page is, --quiet says nothing: give one")
    if model.rho is not None and model.half_life is not None:
        raise typer.BadParameter("give --rho or --half-life, not both")


@contextmanager
def _steps_to_read(steps: str | None, option: str) -> Iterator[str]:
    """Yield the file of the steps, one that is thrown away afterwards if none was asked for."""
    if steps == "-":
        raise typer.BadParameter(f"{option} needs --steps FILE where standard output is a pipe")
    if steps is not None:
        yield steps
        return
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "steps.jsonl")


def _say_summary(summary: RunSummary, name: str, n_clusters: int, *, resumable: bool) -> None:
    """Say on stderr what the run did."""
    from kmeander.runs.operations.notices import said_of

    if summary.resumed_at is not None and not (summary.n_batches or summary.n_bad):
        say(f"{name}: nothing new since batch {summary.resumed_at}.")
    else:
        _say_counts(summary, name)
    for line in said_of(summary.deliveries, resumable=resumable):
        say(line, "warning")
    if summary.stopped:
        _say_stop(summary, resumable=resumable)
    if summary.last is not None:
        _say_clusters(summary, summary.last, n_clusters)


def _say_counts(summary: RunSummary, name: str) -> None:
    say(
        f"{name}: {count(summary.n_points, 'row')} in {count(summary.n_batches, 'batch')}, "
        f"learned in {summary.seconds:.2f} s."
    )
    if summary.n_bad:
        say(f"Bad rows set aside: {summary.n_bad:,}.")
    if summary.n_late:
        say(f"Late rows: {summary.n_late:,}.")
    if summary.filled:
        most = sorted(summary.filled.items(), key=lambda pair: -pair[1])
        named = ", ".join(f"{number:,} in {name}" for name, number in most[:COLUMNS_SHOWN])
        others = most[COLUMNS_SHOWN:]
        more = f", and more in {count(len(others), 'other column')}" if others else ""
        say(f"Missing values filled: {named}{more}.")


def _say_stop(summary: RunSummary, *, resumable: bool) -> None:
    because = "" if summary.stopped_on is None else f", as asked, on {summary.stopped_on}"
    line = f"Stopped{because}. With --checkpoint a run can go on where it stopped."
    if resumable:
        line = f"Stopped{because}; the same command goes on from here."
    if summary.n_waiting:
        line += f" {count(summary.n_waiting, 'row')} wait for their batch to be complete."
    say(line)


def _say_clusters(summary: RunSummary, last: Step, n_clusters: int) -> None:
    if last.surrogate_error is None or last.masses is None:
        say(
            f"Nothing was learned: {count(n_clusters, 'cluster')} need as many distinct points, "
            f"the stream has shown {summary.n_distinct:,}. Ask for fewer: "
            f"{argument('n_clusters', max(1, summary.n_distinct))}."
        )
        return
    say(
        f"Surrogate error {last.surrogate_error:.6g}, newest batch {last.batch_error:.6g}; "
        f"window of {count(last.n_batches, 'batch')}, rho {last.rho:.4g}."
    )
    say(f"Shares of the clusters now: {_shares(last)}")
    if summary.events or summary.n_unconfirmed:
        say(f"Events: {counted_events(summary.events, summary.n_unconfirmed)}.")
    for known in (last.noise, summary.cycle):
        if known is not None:
            words = known.words()
            say(f"{words[0].upper()}{words[1:]}.")
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
    words = ", ".join(
        f"{called(number, step.names)}: {mass / step.mass:.1%}" for number, mass in shown
    )
    return words + (
        f", and {count(len(pairs) - len(shown), 'other')}" if pairs[SHARES_SHOWN:] else ""
    )
