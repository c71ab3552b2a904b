"""The plots of the page: each is given its data, and draws it."""

from __future__ import annotations

from typing import Any

from bokeh.models import (
    CDSView,
    ColumnDataSource,
    GroupFilter,
    HoverTool,
    LabelSet,
    NumeralTickFormatter,
    PlainText,
    Range1d,
)
from bokeh.plotting import figure

from kmeander.page import series

TOOLS = "pan,xwheel_zoom,box_zoom,reset,save"
ERRORS = [
    ("prequential", "before learning", "#d55e00", "solid"),
    ("newest", "after learning", "#0072b2", "solid"),
    ("surrogate", "all batches remembered", "#7f7f7f", "dotted"),
]


def legend_html() -> str:
    """Return what the lines of the errors are, to stand below the plot, where it covers nothing."""
    dashes = {"solid": "", "dotted": "2 3", "dashed": "6 4"}
    items = "".join(
        f'<span><svg width="28" height="8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
        f'stroke="{color}" stroke-width="2.5" stroke-dasharray="{dashes[dash]}"/></svg>{label}'
        "</span>"
        for _, label, color, dash in [*ERRORS, ("", "drift", "#d55e00", "dashed")]
    )
    return f'<p class="legend">{items}</p>'


class Drawing:
    """Plots over time that share one range.

    Parameters
    ----------
    time : Range1d
    events : ColumnDataSource
    view : CDSView
        Of the events that are to be shown.
    has_times : bool
        Whether the stream says when things happened.
    """

    def __init__(
        self, time: Range1d, events: ColumnDataSource, view: CDSView, *, has_times: bool
    ) -> None:
        self._time, self._events, self._view = time, events, view
        self._has_times = has_times

    def errors(self, source: ColumnDataSource) -> Any:
        """Return the errors, with a line at each drift and a legend that covers nothing."""
        plot = self._plot("How well rows fit the clusters", "mean squared distance",
                          "Errors over time: peaks are batches that fitted badly.")  # fmt: skip
        for name, _, color, dash in ERRORS:
            line = plot.line("batch", name, source=source, color=color, line_dash=dash,
                             line_width=1.8)  # fmt: skip
        self._mark_drifts(plot)
        plot.add_tools(
            HoverTool(
                renderers=[line], mode="vline",
                tooltips=[("batch", "@batch"), *[("when", "@when")] * self._has_times,
                          ("before learning", "@prequential{0.0000}"),
                          ("after", "@newest{0.0000}"),
                          ("all remembered", "@surrogate{0.0000}")],
            )
        )  # fmt: skip
        return plot

    def drift_size(self, source: ColumnDataSource) -> Any:
        """Return how far each batch's error lies above what was expected."""
        plot = self._plot("How much more error than expected", "share more",
                          "Size of the drift of each batch, the paper's epsilon, with the band "
                          "that holds 95 %.")  # fmt: skip
        plot.varea("batch", "low", "high", source=source, fill_alpha=0.25, color="#0072b2")
        line = plot.line("batch", "epsilon", source=source, color="#0072b2", line_width=1.8)
        self._mark_drifts(plot)
        plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
        plot.add_tools(
            HoverTool(
                renderers=[line], mode="vline",
                tooltips=[("batch", "@batch"), ("more than expected", "@epsilon{0.0 %}"),
                          ("95 % band", "@low{0.0 %} to @high{0.0 %}")],
            )
        )  # fmt: skip
        return plot

    def shares(self, source: ColumnDataSource) -> Any:
        """Return the shares of the clusters, stacked."""
        plot = self._plot("Shares of the clusters", "share of the weight",
                          "Shares of the clusters over time, stacked.", y_range=(0, 1))  # fmt: skip
        patches = plot.patches(
            "xs", "ys", source=source, fill_color="color", line_color="color",
            fill_alpha=0.85, line_width=0.5,
        )  # fmt: skip
        plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
        plot.add_tools(
            HoverTool(renderers=[patches], tooltips=[("cluster", "@cluster"), ("now", "@share")])
        )
        return plot

    def courses(self, source: ColumnDataSource, column: str) -> Any:
        """Return one column of the centre of each cluster over time."""
        plot = self._plot("One column of each cluster", column,
                          "One column of the centre of each cluster over time.")  # fmt: skip
        lines = plot.multi_line(
            "xs", "y0", source=source, line_color="color", line_width=2, line_alpha=0.9,
        )  # fmt: skip
        self._mark_drifts(plot)
        plot.add_tools(HoverTool(renderers=[lines], tooltips=[("cluster", "@cluster")]))
        self.course_lines = lines
        return plot

    def lives(self, source: ColumnDataSource, rows: Range1d) -> Any:
        """Return a bar for each id, and a mark for each event."""
        plot = self._plot("Lives of the clusters", "cluster",
                          "From when to when each cluster lived.", y_range=rows)  # fmt: skip
        bars = plot.hbar(
            "row", left="left", right="right", height=0.6, source=source, color="color",
            alpha="alpha",
        )  # fmt: skip
        plot.scatter(
            "batch", "row", source=self._events, view=self._view, color="color", size=9,
            fill_alpha="alpha", line_color="#1c2127", line_width=0.5, marker="diamond",
        )  # fmt: skip
        plot.ygrid.visible = False
        plot.add_tools(
            HoverTool(
                renderers=[bars],
                tooltips=[("cluster", "@name"), ("", "@came"), ("", "@went")],
            )
        )
        return plot

    def _plot(self, title: str, label: str, described: str, **settings: Any) -> Any:
        plot = figure(
            title=title, height=290, min_width=300, sizing_mode="stretch_width", tools=TOOLS,
            x_range=self._time, output_backend="canvas",
            html_attributes={"role": "img", "aria-label": described}, **settings,
        )  # fmt: skip
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        plot.xaxis.axis_label = PlainText(text="batch")
        plot.yaxis.axis_label = PlainText(text=label)
        plot.xaxis.formatter.use_scientific = False
        plot.axis.axis_label_text_font_style = "normal"
        return plot

    def _mark_drifts(self, plot: Any) -> None:
        for name, alpha in (("drift", 0.8), ("drift ?", series.FAINT)):
            drifts = self._view.filter & GroupFilter(column_name="event", group=name)
            plot.vspan(
                x="batch", source=self._events, view=CDSView(filter=drifts),
                line_color="color", line_dash="dashed", line_alpha=alpha,
            )  # fmt: skip


def map_plot(now: ColumnDataSource, trails: ColumnDataSource, axes: tuple[str, str]) -> Any:
    """Return where the clusters are, and the ways that they came."""
    plot = figure(
        title="Where the clusters are", height=340, min_width=300,
        sizing_mode="stretch_width", tools=TOOLS.replace("xwheel", "wheel"),
        html_attributes={"role": "img", "aria-label": "Where the clusters are."},
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.x_range.range_padding = plot.y_range.range_padding = 0.2
    plot.axis.axis_label_text_font_style = "normal"
    plot.xaxis.axis_label = PlainText(text=axes[0])
    plot.yaxis.axis_label = PlainText(text=axes[1])
    plot.multi_line("xs", "ys", source=trails, color="color", alpha=0.35)
    dots = plot.scatter(
        "x", "y", source=now, size="size", marker="marker", color="color", alpha=0.85,
        line_color="#1c2127", line_width=0.5,
    )  # fmt: skip
    if len(now.data["x"]) <= series.MOST_NAMES:
        plot.add_layout(
            LabelSet(x="x", y="y", text="name", source=now, text_font_size="12px",
                     x_offset=10, y_offset=8)
        )  # fmt: skip
    plot.add_tools(
        HoverTool(renderers=[dots], tooltips=[("cluster", "@name"), ("batch", "@batch")])
    )
    return plot


def name_rows(plot: Any, lives: dict[str, Any]) -> None:
    """Write the names of the clusters beside their lives."""
    names = dict(zip(lives["row"], lives["name"], strict=True))
    axis = plot.yaxis[0]
    if axis.major_label_overrides != names:
        axis.visible = len(names) <= series.MOST_NAMES
        axis.ticker = list(names)
        axis.major_label_overrides = names
