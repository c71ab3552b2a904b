"""The page of a run, for a report, a notebook and the live page alike."""

from __future__ import annotations

from html import escape
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    CDSView,
    ColumnDataSource,
    CustomJS,
    CustomJSFilter,
    Div,
    InlineStyleSheet,
    Range1d,
    Select,
    Slider,
    Toggle,
)

from kmeander.events import KINDS
from kmeander.page import in_browser, series
from kmeander.page.clusters import cluster_rows, clusters_html
from kmeander.page.drawing import Drawing, legend_html, map_plot, name_rows
from kmeander.page.head import figures_html, loadings, title_html
from kmeander.page.moments import Moment
from kmeander.page.thinning import thinned
from kmeander.page.timeline import Timeline

HEADING = (
    "<h2>What happened</h2><details><summary>How to read it</summary>z says how rare a change is "
    "where nothing happens: as rare as a normal variable so many standard deviations from its "
    "mean. A question mark means not confirmed: it is not known yet how much batches differ when "
    "nothing happens. Choose a batch to look at its time in all plots, and again to go back."
    "</details>"
)


class Layout:
    """Sources of data, the texts, and the plots that show them.

    Parameters
    ----------
    timeline : Timeline
    extra : dict, optional
        More figures.
    is_live : bool, default=False
        Whether Python stays at hand: then only what is looked at is sent.
    """

    def __init__(
        self, timeline: Timeline, extra: dict[str, str] | None = None, *, is_live: bool = False
    ) -> None:
        self._extra, self._is_live = extra, is_live
        self.style = InlineStyleSheet(css=in_browser.WIDGETS)
        self._text = InlineStyleSheet(css=in_browser.TEXT)
        self.errors, self.epsilons = ColumnDataSource(), ColumnDataSource()
        self.areas, self.lives = ColumnDataSource(), ColumnDataSource()
        self.events, self.frames = ColumnDataSource(), ColumnDataSource()
        self.now, self.trails = ColumnDataSource(), ColumnDataSource()
        self.courses = ColumnDataSource()
        self.time = Range1d(0, 1)
        self.rows = Range1d(-1, 1)
        self.head = self._div("status", "polite")
        self.list, self.table, self.figures = self._div(), self._div(), self._div()
        self.axes, legend, heading = self._div(), self._div(), self._div()
        legend.text = legend_html()
        heading.text = HEADING
        self.legend, self.heading = legend, heading
        self.frame = Slider(
            start=0, end=1, value=0, title="Clusters", show_value=False, margin=(5, 16, 5, 16),
            sizing_mode="stretch_width", stylesheets=[self.style],
        )  # fmt: skip
        self.kinds = self._select("Kind of event", [("", "all kinds")])
        self.clusters = self._select("Cluster", [("", "all clusters")])
        names = [timeline.columns[place] for place in timeline.followed]
        self.column = self._select("Column", names, value=names[_most_telling(timeline)])
        self.more = Button(label="Show more", width=140, stylesheets=[self.style], tags=[0])
        # For the live page, where new events come.
        self.seen = Toggle(label="Mark all as seen", width=220, stylesheets=[self.style])
        self.view = CDSView(
            filter=CustomJSFilter(
                args=self._of("kinds", "clusters", "seen"), code=in_browser.IS_SHOWN
            )
        )
        self._axes_of_map = timeline.axes
        self.update(timeline)
        self._draw(timeline)
        self._react()
        self.theme = CustomJS(args={"plots": self.plots}, code=in_browser.THEME)

    def _div(self, role: str | None = None, live: str | None = None) -> Any:
        attributes = {} if role is None else {"role": role, "aria-live": live}
        return Div(
            sizing_mode="stretch_width", disable_math=True, stylesheets=[self._text],
            html_attributes=attributes,
        )  # fmt: skip

    def _select(self, title: str, options: list[Any], **more: Any) -> Any:
        return Select(title=title, options=options, width=170, stylesheets=[self.style], **more)

    def _of(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _draw(self, timeline: Timeline) -> None:
        drawing = Drawing(
            self.time, self.events, self.view, has_times=timeline.first_time is not None
        )
        self.plots = [
            drawing.errors(self.errors),
            drawing.courses(self.courses, self.column.value),
            drawing.shares(self.areas),
            drawing.lives(self.lives, self.rows),
            map_plot(self.now, self.trails, self._axes_of_map),
            drawing.drift_size(self.epsilons),
        ]
        self._lives_plot, self._course_lines = self.plots[3], drawing.course_lines
        if not self._is_live:
            self._course_lines.glyph.ys = self._shown_column()
        name_rows(self._lives_plot, self.lives.data)

    def _react(self) -> None:
        """Tie what is chosen to what is shown, in the browser."""
        glyphs = [
            getattr(self._course_lines, name)
            for name in ("glyph", "nonselection_glyph", "selection_glyph", "muted_glyph")
            if hasattr(getattr(self._course_lines, name), "ys")
        ]
        courses = {"glyphs": glyphs, "axis": self.plots[1].yaxis[0]}
        self._on(self.frame, "value", in_browser.SHOW_FRAME, "frame", "frames", "now")
        self._on(self.column, "value", in_browser.SHOW_COLUMN, "column", "courses", **courses)
        self._on(self.events.selected, "indices", in_browser.ZOOM, "events", "time")
        self._on(self.seen, "active", in_browser.SEE, "seen", "events")
        shown = ("kinds", "clusters", "seen", "more", "events", "list")
        self.listing = CustomJS(args=self._of(*shown), code=in_browser.LIST_EVENTS)
        self.choosing = CustomJS(args=self._of("events"), code=in_browser.CHOOSE)
        for select in (self.kinds, self.clusters):
            self._on(select, "value", "events.change.emit()", "events")
            select.js_on_change("value", self.listing)
        self.events.js_on_change("data", self.listing)
        self.seen.js_on_change("active", self.listing)
        self.more.js_on_event(
            "button_click", CustomJS(args=self._of("more", "events"), code=in_browser.MORE),
            self.listing,
        )  # fmt: skip

    def _on(self, model: Any, what: str, code: str, *names: str, **more: Any) -> None:
        model.js_on_change(what, CustomJS(args={**self._of(*names), **more}, code=code))

    def begin(self, document: Any) -> None:
        """Have the browser do what it does once the page is there."""
        document.js_on_event("document_ready", self.theme, self.listing, self.choosing)

    def update(self, timeline: Timeline) -> None:
        """Show the timeline as it is now."""
        moments: list[Moment] = thinned(timeline.moments, series.MOST_BATCHES)
        first = moments[0].index if moments else 0
        rows = cluster_rows(timeline)
        self.head.text = title_html(timeline)
        self.table.text = clusters_html(rows)
        self.figures.text = figures_html(timeline, self._extra, n_drawn=len(moments))
        self.axes.text = _axes_html(timeline)
        self.errors.data = series.errors(moments)
        self.epsilons.data = series.epsilons(moments)
        self.areas.data = series.areas(moments)
        lives = series.lives(timeline, first)
        self.lives.data = lives
        chosen = self.events.selected.indices
        events = series.events(timeline, lives, first)
        self._offer(events)
        self.events.data = events
        if not chosen:
            last = moments[-1].index if moments else 1
            self.time.update(start=first - 0.5, end=last + 0.5)
            self.time.update(reset_start=first - 0.5, reset_end=last + 0.5)
        self.rows.update(start=len(lives["row"]), end=-1)
        self.courses.data = self._courses(timeline, moments)
        frames = series.frames(timeline)
        at_end = self.frame.value == self.frame.end or not self.frames.data
        self.frames.data = frames
        last_frame = frames["frame"][-1] if frames["frame"] else 0
        self.frame.end = max(last_frame, 1)
        if at_end or self.frame.value > last_frame:
            self.frame.value = last_frame
        self.now.data = series.at_frame(frames, int(self.frame.value))
        if self.now.data["batch"]:
            self.frame.title = f"Clusters at batch {self.now.data['batch'][0]}"
        self.trails.data = series.trails(frames)

    def _courses(self, timeline: Timeline, moments: list[Moment]) -> series.Columns:
        places = list(range(len(timeline.followed)))
        if self._is_live:
            places = [self.column.options.index(self.column.value)]
        found = series.courses(moments, places)
        if self._is_live:  # which draws what it is sent
            found["y0"] = found[f"y{places[0]}"]
            if places[0]:
                del found[f"y{places[0]}"]
        return found

    def _shown_column(self) -> str:
        return f"y{self.column.options.index(self.column.value)}"

    def _offer(self, events: series.Columns) -> None:
        """Offer those kinds and clusters that there are events of."""
        counts = {kind: events["kind"].count(kind) for kind in KINDS if kind in events["kind"]}
        kinds = [("", "all kinds"), *((kind, f"{kind} ({n})") for kind, n in counts.items())]
        ids = sorted({int(one) for about in events["about"] for one in about.split()})
        clusters = [("", "all clusters"), *((str(n), f"cluster {n}") for n in ids)]
        for select, options in ((self.kinds, kinds), (self.clusters, clusters)):
            if select.options != options:
                select.options = options
                if select.value not in [value for value, _ in options]:
                    select.value = ""

    def refresh_axes(self) -> None:
        """Name the life lines anew, after an update."""
        name_rows(self._lives_plot, self.lives.data)

    def root(self, *controls: Any) -> Any:
        """Return the whole page, the root of a document."""
        errors, courses, shares, lives, places, size = self.plots
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "min_width": 300}
        half: dict[str, Any] = {**wide, "styles": {"flex": "1 1 26rem"}}
        wrap: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap"}}
        filters = [self.kinds, self.clusters, *([self.seen] if self._is_live else [])]
        return column(
            self.head,
            *controls,
            row(
                column(self.heading, row(*filters, **wrap), self.list, self.more, **half),
                column(self.table, **half),
                **wrap,
            ),
            row(
                column(errors, self.legend, **half), column(courses, self.column, **half), **wrap
            ),
            row(column(shares, **half), column(lives, **half), **wrap),
            row(
                column(places, self.frame, self.axes, **half),
                column(size, self.figures, **half),
                **wrap,
            ),
            sizing_mode="stretch_width",
        )  # fmt: skip


def _most_telling(timeline: Timeline) -> int:
    """Return which of the columns that are followed is drawn first: the one of the newest drift."""
    step = timeline.last
    for happened in reversed(timeline.events):
        if happened.feature is not None and happened.feature in timeline.followed:
            return timeline.followed.index(happened.feature)
    assert step is not None
    assert step.centroids is not None
    spreads = step.centroids[:, list(timeline.followed)].std(axis=0)
    return int(spreads.argmax())


def _axes_html(timeline: Timeline) -> str:
    if timeline.features is not None:
        return ""
    across, upwards = loadings(timeline)
    return (
        f"<p class='noise'>Principal components of the first batch. Across: {escape(across)}. "
        f"Upwards: {escape(upwards)}.</p>"
    )
