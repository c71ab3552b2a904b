"""The plots of a run, for a report and for the live page alike."""

from __future__ import annotations

from typing import Any

from bokeh.layouts import column, row
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CustomJS,
    CustomJSFilter,
    DataTable,
    Div,
    GroupFilter,
    HoverTool,
    InlineStyleSheet,
    MultiChoice,
    NumberFormatter,
    PlainText,
    Range1d,
    Slider,
    TableColumn,
    Toggle,
)
from bokeh.plotting import figure

from kmeander.events import KINDS
from kmeander.page import in_browser, series
from kmeander.page.summary import as_html
from kmeander.page.thinning import thinned
from kmeander.page.timeline import Moment, Timeline

TOOLS = "pan,xwheel_zoom,box_zoom,reset,save"


class Layout:
    """Sources of data, and the plots that show them.

    Parameters
    ----------
    timeline : Timeline
    extra : dict, optional
        More numbers for the head of the page.
    """

    def __init__(self, timeline: Timeline, extra: dict[str, str] | None = None) -> None:
        self._extra = extra
        self.style = InlineStyleSheet(css=in_browser.WIDGETS)
        self._has_times = timeline.first_time is not None
        self.errors, self.epsilons = ColumnDataSource(), ColumnDataSource()
        self.areas, self.lives = ColumnDataSource(), ColumnDataSource()
        self.events, self.frames = ColumnDataSource(), ColumnDataSource()
        self.now, self.trails = ColumnDataSource(), ColumnDataSource()
        self.time = Range1d(0, 1)
        self.rows = Range1d(-1, 1)
        whole = InlineStyleSheet(css=".bk-clearfix { display: block; width: 100%; }")
        self.head = Div(sizing_mode="stretch_width", disable_math=True, stylesheets=[whole])
        self.frame = Slider(
            start=0, end=1, value=0, title="Clusters", show_value=False,
            sizing_mode="stretch_width", stylesheets=[self.style],
        )  # fmt: skip
        self.kinds = MultiChoice(
            options=list(KINDS), title="Show only these events, in the table and in the plots",
            sizing_mode="stretch_width", stylesheets=[self.style],
        )  # fmt: skip
        # For the live page, where new events come.
        self.seen = Toggle(label="Mark all as seen", width=220, stylesheets=[self.style])
        self.seen.js_on_change(
            "active", CustomJS(args=self._of("seen", "events"), code=in_browser.SEE)
        )
        self.update(timeline)
        self.frame.js_on_change(
            "value", CustomJS(args=self._of("frame", "frames", "now"), code=in_browser.SHOW_FRAME)
        )
        self.events.selected.js_on_change(
            "indices", CustomJS(args=self._of("events", "time"), code=in_browser.ZOOM)
        )
        self.kinds.js_on_change(
            "value", CustomJS(args=self._of("events"), code="events.change.emit()")
        )
        self.view = CDSView(
            filter=CustomJSFilter(args=self._of("kinds", "seen"), code=in_browser.IS_SHOWN)
        )
        self.plots = [
            self._errors_plot(),
            self._epsilon_plot(),
            self._areas_plot(),
            self._lives_plot(),
            self._map_plot(timeline.axes),
        ]
        self.theme = CustomJS(args={"plots": self.plots}, code=in_browser.THEME)

    def _of(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def update(self, timeline: Timeline) -> None:
        """Show the timeline as it is now."""
        moments: list[Moment] = thinned(timeline.moments, series.MOST_BATCHES)
        first = moments[0].index if moments else 0
        self.head.text = as_html(timeline, self._extra, n_drawn=len(moments))
        self.errors.data = series.errors(moments)
        self.epsilons.data = series.epsilons(moments)
        self.areas.data = series.areas(moments)
        lives = series.lives(timeline, first)
        self.lives.data = lives
        chosen = self.events.selected.indices
        self.events.data = series.events(timeline, lives, first)
        if not chosen:
            last = moments[-1].index if moments else 1
            self.time.update(start=first - 0.5, end=last + 0.5)
            self.time.update(reset_start=first - 0.5, reset_end=last + 0.5)
        self.rows.update(start=len(lives["row"]), end=-1)
        frames = series.frames(list(timeline.moments))
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

    def _plot(self, title: str, label: str, **settings: Any) -> Any:
        plot = figure(
            title=title, height=290, min_width=300, sizing_mode="stretch_width", tools=TOOLS,
            x_range=self.time, output_backend="canvas", **settings,
        )  # fmt: skip
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        plot.xaxis.axis_label = PlainText(text="batch")
        plot.yaxis.axis_label = PlainText(text=label)
        plot.xaxis.formatter.use_scientific = False
        plot.axis.axis_label_text_font_style = "normal"
        return plot

    def _mark_drifts(self, plot: Any) -> None:
        for name, alpha, label in (("drift", 0.8, {"legend_label": "drift"}),
                                   ("drift ?", series.FAINT, {})):  # fmt: skip
            drifts = self.view.filter & GroupFilter(column_name="event", group=name)
            plot.vspan(
                x="batch", source=self.events, view=CDSView(filter=drifts), line_color="color",
                line_dash="dashed", line_alpha=alpha, **label,
            )  # fmt: skip

    def _errors_plot(self) -> Any:
        plot = self._plot("Errors", "mean squared distance")
        lines = [
            ("prequential", "before learning", "#d55e00", "solid"),
            ("newest", "after learning", "#0072b2", "solid"),
            ("surrogate", "surrogate, over the window", "#7f7f7f", "dotted"),
        ]
        for name, label, color, dash in lines:
            line = plot.line(
                "batch", name, source=self.errors, color=color, line_dash=dash, line_width=1.8,
                legend_label=label,
            )  # fmt: skip
        self._mark_drifts(plot)
        plot.add_tools(
            HoverTool(
                renderers=[line], mode="vline",
                tooltips=[("batch", "@batch"), *[("when", "@when")] * self._has_times,
                          ("before learning", "@prequential{0.0000}"),
                          ("after", "@newest{0.0000}"), ("surrogate", "@surrogate{0.0000}")],
            )
        )  # fmt: skip
        _place_legend(plot)
        return plot

    def _epsilon_plot(self) -> Any:
        plot = self._plot("Drift: estimate of epsilon, with its 95 % band", "epsilon, relative")
        plot.varea("batch", "low", "high", source=self.epsilons, fill_alpha=0.25, color="#0072b2")
        line = plot.line("batch", "epsilon", source=self.epsilons, color="#0072b2", line_width=1.8)
        self._mark_drifts(plot)
        plot.add_tools(
            HoverTool(
                renderers=[line], mode="vline",
                tooltips=[("batch", "@batch"), ("epsilon", "@epsilon{0.000}"),
                          ("band", "@low{0.000} to @high{0.000}")],
            )
        )  # fmt: skip
        _place_legend(plot)
        return plot

    def _areas_plot(self) -> Any:
        plot = self._plot("Shares of the clusters", "share of decayed weight", y_range=(0, 1))
        patches = plot.patches(
            "xs", "ys", source=self.areas, fill_color="color", line_color="color",
            fill_alpha=0.85, line_width=0.5,
        )  # fmt: skip
        plot.yaxis.formatter = _percent()
        plot.add_tools(
            HoverTool(renderers=[patches], tooltips=[("cluster", "@cluster"), ("now", "@share")])
        )
        return plot

    def _lives_plot(self) -> Any:
        plot = self._plot("Lives of the clusters", "id", y_range=self.rows)
        bars = plot.hbar(
            "row", left="left", right="right", height=0.6, source=self.lives, color="color",
            alpha="alpha",
        )  # fmt: skip
        plot.scatter(
            "batch", "row", source=self.events, view=self.view, color="color", size=8,
            fill_alpha="alpha",
            line_color="#1c2127", line_width=0.5, marker="diamond",
        )  # fmt: skip
        plot.yaxis.visible = len(self.lives.data["row"]) <= 30
        names = dict(zip(self.lives.data["row"], self.lives.data["cluster"], strict=True))
        plot.yaxis.ticker = list(names)
        plot.yaxis.major_label_overrides = names
        plot.ygrid.visible = False
        plot.add_tools(
            HoverTool(
                renderers=[bars],
                tooltips=[("cluster", "@cluster"), ("", "@came"), ("", "@went")],
            )
        )
        self._life_axis = plot.yaxis[0]
        return plot

    def _map_plot(self, axes: tuple[str, str]) -> Any:
        plot = figure(
            title="Where the clusters are, the larger the heavier", height=340, min_width=300,
            sizing_mode="stretch_width", tools=TOOLS.replace("xwheel", "wheel"),
        )  # fmt: skip
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        plot.x_range.range_padding = plot.y_range.range_padding = 0.2
        plot.axis.axis_label_text_font_style = "normal"
        plot.xaxis.axis_label = PlainText(text=axes[0])
        plot.yaxis.axis_label = PlainText(text=axes[1])
        plot.multi_line("xs", "ys", source=self.trails, color="color", alpha=0.35)
        dots = plot.scatter(
            "x", "y", source=self.now, size="size", marker="marker", color="color", alpha=0.85,
            line_color="#1c2127", line_width=0.5,
        )  # fmt: skip
        if len(self.now.data["x"]) <= 30:
            from bokeh.models import LabelSet

            plot.add_layout(
                LabelSet(
                    x="x", y="y", text="cluster", source=self.now, text_font_size="11px",
                    text_color="#808890", x_offset=8, y_offset=6,
                )
            )  # fmt: skip
        plot.add_tools(
            HoverTool(renderers=[dots], tooltips=[("cluster", "@cluster"), ("batch", "@batch")])
        )
        return plot

    def refresh_axes(self) -> None:
        """Name the life lines anew, after an update."""
        names = dict(zip(self.lives.data["row"], self.lives.data["cluster"], strict=True))
        if self._life_axis.major_label_overrides != names:
            self._life_axis.visible = len(names) <= 30
            self._life_axis.ticker = list(names)
            self._life_axis.major_label_overrides = names

    def _table(self) -> Any:
        return DataTable(
            source=self.events,
            view=self.view,
            columns=[
                TableColumn(field="batch", title="batch", width=60,
                            formatter=NumberFormatter(format="0,0")),
                *[TableColumn(field="when", title="when", width=210)] * self._has_times,
                TableColumn(field="event", title="event", width=80),
                TableColumn(field="cluster", title="cluster", width=60),
                TableColumn(field="words", title="what happened", width=1500),
            ],
            index_position=None, reorderable=False, height=280, sizing_mode="stretch_width",
            stylesheets=[self.style], autosize_mode="none",
        )  # fmt: skip

    def root(self, *controls: Any) -> Any:
        """Return the whole page, the root of a document."""
        errors, epsilon, shares, lives, places = self.plots
        wide = {"sizing_mode": "stretch_width", "min_width": 300}
        wrap: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap"}}
        hint = Div(
            text="Choose a row to look at its time in the plots; choose it again with Ctrl to go "
            "back. A question mark and faint marks: not confirmed yet.",
            disable_math=True, stylesheets=[self.style],
            styles={"color": "#808890"},
        )  # fmt: skip
        return column(
            self.head,
            *controls,
            row(errors, epsilon, **wrap),
            row(shares, lives, **wrap),
            row(
                column(places, self.frame, **wide),
                column(self.kinds, self._table(), hint, **wide),
                **wrap,
            ),
            sizing_mode="stretch_width",
        )


def _place_legend(plot: Any) -> None:
    plot.legend.location = "top_left"
    plot.legend.label_text_font_size = "11px"
    plot.legend.background_fill_alpha = 0.4  # a peak behind it shows
    plot.legend.padding = 4
    plot.legend.spacing = 0
    plot.legend.click_policy = "hide"


def _percent() -> Any:
    from bokeh.models import NumeralTickFormatter

    return NumeralTickFormatter(format="0 %")
