"""History: the Steps of a stream, from a run, a file, or a loop of one's own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kmeander.arguments import whole_number
from kmeander.exceptions import InputError
from kmeander.html_cards import MOST_ROWS, card, plural
from kmeander.page.timeline import Timeline, read_timeline
from kmeander.records import Columns, Step
from kmeander.records.event_time import in_words
from kmeander.runs.history.frames import (
    Kind,
    as_frame,
    chosen_kind,
    clusters_table,
    events_table,
    steps_table,
)
from kmeander.runs.history.report import Report
from kmeander.sinks import read_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PathLike = str | os.PathLike[str]

# Steps kept in memory, and the bytes of their centroids.
KEEP = 10_000
_MOST_BYTES = 256 * 2**20


class History:
    """What happened to a stream, batch by batch: as frames, as plots, as a report.

    Parameters
    ----------
    steps : path-like or iterable of Step, optional
        A file or a folder that a run wrote, which is read whenever something is asked of it, so
        that it may still grow; or Steps to begin with.
    columns : sequence of str, optional
        Names of the columns, where Steps do not know them.
    keep : int, default=10000
        Steps that are kept in memory, the newest; fewer where their centroids fill 256 MB. Of a
        file none is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from kmeander import ForgetfulKMeans
    >>> rng = np.random.default_rng(0)
    >>> model, history = ForgetfulKMeans(2, random_state=0), History(columns=["temp"])
    >>> for hour in range(24):
    ...     centres = [[20.0], [60.0 if hour < 12 else 90.0]]
    ...     _ = model.partial_fit(np.repeat(centres, 100, axis=0) + rng.normal(size=(200, 1)))
    ...     history.append(model.step_)
    >>> history
    History of 24 batches, 4,800 rows; events: 1 drift, 1 moved
    >>> history.events()[["batch", "kind", "cluster"]].values.tolist()
    [[12, 'drift', <NA>], [12, 'moved', 0]]
    >>> history.clusters()["temp"].round().tail(2).tolist()
    [90.0, 20.0]
    """

    def __init__(
        self,
        steps: PathLike | Iterable[Step] | None = None,
        *,
        columns: Sequence[str] | None = None,
        keep: int = KEEP,
    ) -> None:
        self._path = os.fspath(steps) if isinstance(steps, str | os.PathLike) else None
        self._columns = None if columns is None else Columns(tuple(map(str, columns)))
        self._keep = whole_number("keep", keep, at_least=0, meaning="the Steps kept in memory")
        self._kept: deque[Step] = deque()
        self._n_bytes = 0
        self._facts: Mapping[str, Any] = {}
        self._kind: Kind | None = None
        if steps is not None and not isinstance(steps, str | os.PathLike):
            for step in steps:
                self.append(step)

    @classmethod
    def of_run(
        cls, steps: PathLike | None, kept: History, facts: Mapping[str, Any], kind: Kind | None
    ) -> History:
        """Return the history of a run: of its steps file, or what was kept in memory.

        Parameters
        ----------
        steps : path-like or None
        kept : History
        facts : mapping
            What the first line of a steps file says.
        kind : {"pandas", "polars", None}
            What the stream came as.
        """
        history = kept if steps is None else cls(steps)
        history._facts, history._kind = facts, kind
        return history

    @property
    def keeps(self) -> bool:
        """Whether it keeps Steps in memory."""
        return self._keep > 0

    def append(self, step: Step) -> None:
        """Add the newest Step, such as ``model.step_``."""
        if self._path is not None:
            raise InputError(
                f"this history is that of {self._path}, which a run writes. Begin one of your own: "
                "kmeander.History()."
            )
        if not isinstance(step, Step):
            raise InputError(
                f"append takes a Step, such as model.step_, not {type(step).__name__}."
            )
        if not self._keep:
            return
        if step.columns is None:
            step = step.with_columns(self._columns)
        self._kept.append(step)
        self._n_bytes += _n_bytes(step)
        while len(self._kept) > self._keep or (self._n_bytes > _MOST_BYTES and len(self._kept) > 1):
            self._n_bytes -= _n_bytes(self._kept.popleft())

    def __iter__(self) -> Iterator[Step]:
        if self._path is None:
            return iter(tuple(self._kept))
        return (
            step if step.columns is not None else step.with_columns(self._columns)
            for step in read_steps(self._path)
        )

    def __len__(self) -> int:
        return len(self._kept) if self._path is None else sum(1 for _ in self)

    def __getitem__(self, place: int) -> Step:
        """Return one Step by its place; of a file that means reading it."""
        return self._kept[place] if self._path is None else list(self)[place]

    def to_frame(self, frames: Kind | None = None) -> Any:
        """Return one row for each batch: errors, counts, the size of the drift.

        Parameters
        ----------
        frames : {"pandas", "polars"}, optional
            Which library makes the frame: by default that of the input, or what is installed. In
            pandas event time is the index, where there is one; in polars the first column.
        """
        return as_frame(steps_table(self), chosen_kind(frames, self._kind))

    def events(self, frames: Kind | None = None) -> Any:
        """Return one row for each event, with its words; `frames` as for `to_frame`."""
        return as_frame(events_table(self), chosen_kind(frames, self._kind))

    def clusters(self, frames: Kind | None = None) -> Any:
        """Return one row for each cluster at each batch: its share, and its centre by column.

        Centres are in the units of the stream; `frames` as for `to_frame`.
        """
        return as_frame(clusters_table(self), chosen_kind(frames, self._kind))

    def report(self, path: PathLike | None = None) -> Report:
        """Return the page that ``kmeander report`` writes; a notebook shows it.

        Parameters
        ----------
        path : path-like, optional
            Write it there, too.
        """
        from kmeander.page import need_bokeh

        need_bokeh()
        from kmeander.page.report import as_page

        report = Report(as_page(self.timeline()))
        if path is not None:
            report.save(path)
        return report

    def plot_errors(self, ax: Axes | None = None) -> Axes:
        """Draw the error before and after learning, with drifts marked.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        """
        from kmeander.runs.history import plots

        return plots.errors(self.timeline(), plots.axes(ax))

    def plot_shares(self, ax: Axes | None = None) -> Axes:
        """Draw the share of each cluster over time, stacked; `ax` as for `plot_errors`."""
        from kmeander.runs.history import plots

        return plots.shares(self.timeline(), plots.axes(ax))

    def plot_lives(self, ax: Axes | None = None) -> Axes:
        """Draw from when to when each cluster lived, and its events; `ax` as for `plot_errors`."""
        from kmeander.runs.history import plots

        return plots.lives(self.timeline(), plots.axes(ax))

    def plot_feature(self, column: str, ax: Axes | None = None) -> Axes:
        """Draw one column of the centre of each cluster over time, in the units of the stream.

        Parameters
        ----------
        column : str
        ax : matplotlib.axes.Axes, optional
        """
        from kmeander.runs.history import plots

        return plots.feature(list(self), column, plots.axes(ax))

    def plot_map(self, ax: Axes | None = None) -> Axes:
        """Draw where the clusters are and came from, on two principal components.

        `ax` as for `plot_errors`.
        """
        from kmeander.runs.history import plots

        return plots.places(self.timeline(), plots.axes(ax))

    def timeline(self) -> Timeline:
        """Return what plots and pages are made of."""
        if self._path is not None:
            return read_timeline(self._path)
        timeline = Timeline()
        timeline.facts = self._known_facts()
        for step in self:
            timeline.take(step, step.index + 1)
        if not timeline.moments:
            raise InputError(
                "this history has no clusters yet: append Steps of a model that has learned some."
            )
        return timeline

    def _known_facts(self) -> dict[str, Any]:
        """Return what the first line of a steps file would say."""
        known = next((step.columns for step in self if step.columns is not None), None)
        if self._facts or known is None:
            return dict(self._facts)
        facts: dict[str, Any] = {"columns": list(known.names)}
        if known.unit is not None and known.shift is not None:
            facts["standardize"] = {"mean": known.shift.tolist(), "scale": known.unit.tolist()}
        return facts

    def __repr__(self) -> str:
        return self._summary()[0]

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: the newest events."""
        summary, happened = self._summary()
        newest = [(str(batch), when, words) for batch, when, words in reversed(happened)]
        if not newest:
            return card(summary)
        has_times = any(when for _, when, _ in newest)
        heads = ("batch", "when", "what happened") if has_times else ("batch", "what happened")
        rows = [row if has_times else (row[0], row[2]) for row in newest]
        return card(summary, table=(heads, rows))

    def _summary(self) -> tuple[str, list[tuple[int, str, str]]]:
        n_batches = n_points = n_unconfirmed = 0
        counts: dict[str, int] = {}
        happened: deque[tuple[int, str, str]] = deque(maxlen=MOST_ROWS)
        first = last = None
        for step in self:
            n_batches, n_points = n_batches + 1, n_points + step.n_points
            first, last = first or step.first_time, step.last_time or last
            for event in step.events:
                n_unconfirmed += event.unconfirmed
                if not event.unconfirmed:
                    counts[event.kind] = counts.get(event.kind, 0) + 1
            if step.events:
                happened.append((step.index, step.when(), "; ".join(step.words())))
        named = ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "none"
        doubt = f"; {n_unconfirmed} unconfirmed" if n_unconfirmed else ""
        when = in_words(first, last)
        counted = f"{plural(n_batches, 'batch')}, {plural(n_points, 'row')}"
        summary = f"History of {counted}{when and f', {when}'}; events: {named}{doubt}"
        return summary, list(happened)


def _n_bytes(step: Step) -> int:
    """Return about how much memory a Step takes."""
    n_centroids = 0 if step.centroids is None else step.centroids.nbytes
    return n_centroids + 2000 + 100 * len(step.ended) + 500 * len(step.events)
