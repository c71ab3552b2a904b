"""What a terminal shows of a run: the lines that change, drawn anew several times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kmeander.commands.progress import EventLines, Pace, style_of
from kmeander.commands.words import count

if TYPE_CHECKING:
    from kmeander.runs.records import Progress

BAR = 24  # characters
# How alarming a batch is that costs so many times more before it was learned than after.
DRIFTS = ((1.5, "red"), (1.1, "yellow"))


class LiveScreen:
    """How far a run is, at what pace, with which error, and what happened last.

    Until the first batch is learned there is a bar that moves, since with many clusters the first
    ones take a while to choose.

    Parameters
    ----------
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pace, self._lines = Pace(), EventLines()
        self._progress: Progress | None = None
        self._parts: dict[str, str] = {}
        self._first: tuple[int, float] | None = None  # rows of the first batch, and since when
        self._newest: tuple[int, Text] | None = None  # the last batch with events, and those

    def begin(self, n_rows: int) -> None:
        """Take note that the first batch is being learned."""
        self._first = n_rows, self._clock()

    def take(self, progress: Progress) -> Text | None:
        """Take note of how far the run is; return a line to stay, where there is something new."""
        self._progress, self._parts = progress, self._pace.parts(progress)
        line, last = self._lines.line(progress), progress.summary.last
        if line is None or last is None:
            return None
        said = Text(line, style_of(last))
        self._newest = last.index, said
        return said

    def now(self) -> Group | Text | Table:
        """Return what is to be shown now."""
        if self._progress is not None:
            return self._running(self._progress)
        if self._first is None:
            return Text("waiting for rows", style="dim")
        n_rows, since = self._first
        table = Table.grid(padding=(0, 2))
        table.add_row(
            Text(f"choosing the first clusters of {count(n_rows, 'row')}"),
            ProgressBar(pulse=True, width=BAR, animation_time=self._clock()),
            Text(f"{self._clock() - since:.0f} s", style="dim"),
        )
        return table

    def _running(self, progress: Progress) -> Group:
        parts = self._parts
        text = Text(no_wrap=True, overflow="ellipsis")
        if "read" in parts:
            text.append(f"{parts['read']:>4}  ", "bold")
        text.append(f"batch {parts['batch']}  {parts['rows']} rows  ")
        if "time" in parts:
            text.append(f"{parts['time']}  ")
        text.append(parts["rate"], "cyan")
        if "error" in parts:
            text.append("  error ").append(parts["error"], "green")
            text.append(f" {parts['line']}", "green")
        if "drift" in parts:
            ratio = float(parts["drift"])
            style = next((style for least, style in DRIFTS if ratio > least), "")
            text.append("  drift ").append(f"x{parts['drift']}", style)
        if "lag" in parts:
            text.append(f"  {parts['lag']} rows behind")
        if "bad" in parts:
            text.append(f"  bad {parts['bad']}", "red")
        return Group(text, self._last_event(progress))

    def _last_event(self, progress: Progress) -> Text:
        """Return the last event in words, and how long ago that was."""
        last = progress.summary.last
        if self._newest is None or last is None:
            return Text("nothing has happened so far", style="dim")
        index, said = self._newest
        ago = last.index - index
        when = "now" if ago == 0 else f"{count(ago, 'batch')} ago"
        text = Text(f"last event {when}: ", style="dim", no_wrap=True, overflow="ellipsis")
        return text.append(said)
