"""What there is to say of a run while it runs, and how it is said line by line."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kmeander.commands.words import compact, say
from kmeander.exceptions import printable

if TYPE_CHECKING:
    from kmeander.records import Step
    from kmeander.runs.records import Progress

BARS = "▁▂▃▄▅▆▇█"
SECONDS_PER_LINE = 10.0
WORDS_PER_LINE = 4


def sparkline(values: list[float]) -> str:
    """Return values as a row of bars, the smallest lowest.

    Examples
    --------
    >>> sparkline([1.0, 2.0, 3.0])
    '▁▅█'
    >>> sparkline([2.0, 2.0])
    '▁▁'
    """
    if not values:
        return ""
    low, high = min(values), max(values)
    width = (high - low) or 1.0
    return "".join(BARS[round((value - low) / width * (len(BARS) - 1))] for value in values)


class EventLines:
    """Turns the events of each batch into one line, given once."""

    def __init__(self) -> None:
        self._last_index = -1

    def line(self, progress: Progress) -> str | None:
        """Return what happened at the newest batch, and when, if it was not shown yet."""
        step = progress.summary.last
        if step is None or step.index == self._last_index or not step.events:
            return None
        self._last_index = step.index
        return event_line(step.index, progress.summary.words(step), step.when())


def event_line(index: int, words: list[str], when: str = "") -> str:
    """Return one line for the events of a batch.

    Examples
    --------
    >>> event_line(7, ["cluster 3 died"])
    'batch 7: cluster 3 died'
    >>> event_line(7, ["a", "b", "c", "d", "e", "f"])
    'batch 7: a; b; c; d; and 2 more'
    >>> event_line(7, ["cluster 3 died"], "2026-06-03 00:00 to 23:50 UTC")
    'batch 7, 2026-06-03 00:00 to 23:50 UTC: cluster 3 died'
    """
    shown = words[:WORDS_PER_LINE]
    if len(words) > len(shown):
        shown.append(f"and {len(words) - len(shown)} more")
    return printable(f"batch {index}{when and f', {when}'}: {'; '.join(shown)}")


def style_of(step: Step) -> str:
    """Return the style in which the events are shown, of a batch."""
    kinds = {event.kind for event in step.events if not event.unconfirmed}
    if not kinds:
        return "dim"
    if "drift" in kinds:
        return "bold red"
    return "yellow" if kinds & {"born", "split", "died", "absorbed"} else "cyan"


class Pace:
    """Turns snapshots of a run into the words that describe it."""

    def __init__(self) -> None:
        self._errors: deque[float] = deque(maxlen=30)
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), 0)], maxlen=50)
        self._last_batch = -1

    def parts(self, progress: Progress) -> dict[str, str]:
        """Return what there is to show, by name."""
        summary, last = progress.summary, progress.summary.last
        now = time.monotonic()
        if now - self._marks[-1][0] > 0.2:
            self._marks.append((now, summary.n_points))
        begun, n_then = self._marks[0]
        rate = (summary.n_points - n_then) / max(now - begun, 1e-3)
        shown = {
            "batch": str((summary.resumed_at or 0) + summary.n_batches),
            "rows": f"{summary.n_points:,}",
            "rate": f"{compact(rate)} rows/s",
        }
        if last is not None and last.last_time is not None:
            from kmeander.records.event_time import in_words

            shown["time"] = in_words(last.last_time, last.last_time)
        if last is not None and last.surrogate_error is not None:
            if last.index != self._last_batch:
                self._last_batch = last.index
                self._errors.append(last.surrogate_error)
            shown["error"] = f"{last.surrogate_error:.4g}"
            shown["line"] = sparkline(list(self._errors))
            if last.prequential_error is not None and last.batch_error:
                shown["drift"] = f"{last.prequential_error / last.batch_error:.2f}"
        if progress.lag is not None:
            shown["lag"] = f"{progress.lag:,}"
        if progress.share_read is not None:
            shown["read"] = f"{progress.share_read:.0%}"
        if summary.n_bad:
            shown["bad"] = f"{summary.n_bad:,}"
        return shown


def lines() -> Callable[[Progress], None]:
    """Return what writes the events of each batch, and now and then how far the run is."""
    pace, events = Pace(), EventLines()
    due = time.monotonic() + SECONDS_PER_LINE

    def show(progress: Progress) -> None:
        nonlocal due
        line, last = events.line(progress), progress.summary.last
        if line is not None and last is not None:
            is_alarm = any(not event.unconfirmed for event in last.events)
            say(line, "warning" if is_alarm else "info")
        parts = pace.parts(progress)
        if time.monotonic() >= due:
            due = time.monotonic() + SECONDS_PER_LINE
            parts.pop("line", None)
            say(", ".join(f"{name} {value}" for name, value in parts.items() if name != "rate")
                + f", {parts['rate']}")  # fmt: skip

    return show
