"""``kmeander report``: what happened in a run, as a page, as Markdown or as JSON."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.commands.values import kinds_of, names
from kmeander.commands.words import count, counted_events, end_on_alarm, say
from kmeander.page import need_bokeh
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import is_one
from kmeander.storage.reading import lines_of

if TYPE_CHECKING:
    from kmeander.page.timeline import Timeline


class ReportFormat(StrEnum):
    """How the report is written."""

    html = "html"
    json = "json"
    md = "md"


def report(
    steps: Annotated[str, typer.Argument(help="What kmeander run --steps wrote.")],
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Default report.html; - is standard output."),
    ] = None,
    format_: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="By default, by the ending of the file."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Draw centroids by these two columns, not by the first window's PCA.",
        ),
    ] = None,
    bad_rows: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What run --bad-rows wrote, to count them."),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND,...", help="Exit with 3 if there was such an event, confirmed."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Show what happened in a run: one file that opens anywhere, without a network.

    Example: kmeander report steps.jsonl --out report.html --fail-on drift
    """
    from kmeander.page.timeline import read_timeline

    kinds = kinds_of(fail_on or [])
    chosen = None if features is None else names(features)
    if chosen is not None and len(chosen) != 2:
        raise typer.BadParameter(f"--features needs two columns, got {len(chosen)}")
    wanted = _format(format_, out)
    if wanted is ReportFormat.html:
        need_bokeh()
    target = out or f"report.{wanted.value}"
    for path in (steps, bad_rows):
        if path is not None and is_one(target, path):
            raise typer.BadParameter(
                f"--out {target} would overwrite what the report is made of: name another file"
            )
    timeline = read_timeline(steps, chosen)
    extra = {} if bad_rows is None else {"bad rows": f"{_n_lines(bad_rows):,}"}
    _write(_made(timeline, wanted, extra), target)
    if not quiet:
        for note in timeline.notes:
            say(note)
        counted = counted_events(timeline.counts, timeline.n_unconfirmed)
        say(f"{target}: {count(timeline.n_batches, 'batch')}; events: {counted}.")
    end_on_alarm(kinds, timeline.counts, quiet=quiet)


def check_report(target: str) -> None:
    """Refuse a report that cannot be made, before anything is learned for it."""
    if _format(None, target, "--report") is ReportFormat.html:
        need_bokeh()


def write_report(steps: str, target: str) -> None:
    """Write the report of a run whose steps are there."""
    from kmeander.page.timeline import read_timeline

    _write(_made(read_timeline(steps, None), _format(None, target), {}), target)


def _format(given: ReportFormat | None, out: str | None, option: str = "--out") -> ReportFormat:
    if given is not None:
        return given
    if out is None or out == "-":
        return ReportFormat.html
    ending = Path(out).suffix.lower()
    known = {f".{one.value}": one for one in ReportFormat} | {".htm": ReportFormat.html}
    if ending not in known:
        way_out = ", or say --format" if option == "--out" else ""
        raise typer.BadParameter(
            f"{option} {out} ends in none of {', '.join(known)}: name it so{way_out}"
        )
    return known[ending]


def _made(timeline: Timeline, wanted: ReportFormat, extra: dict[str, str]) -> str:
    from kmeander.page.summary import as_markdown, as_plain

    if wanted is ReportFormat.md:
        return as_markdown(timeline)
    if wanted is ReportFormat.json:
        return json.dumps({**as_plain(timeline), **extra}, indent=1, ensure_ascii=False) + "\n"
    from kmeander.page.report import as_page

    return as_page(timeline, extra)


def _write(text: str, target: str) -> None:
    if target == "-":
        sys.stdout.write(text)
    else:
        with filesystem_of(target).written(target) as file:
            file.write(text.encode())


def _n_lines(path: str) -> int:
    return sum(1 for _ in lines_of(path))
