"""Two figures: false alarms stream by stream, and the share of each change that is noticed.

Everything drawn is a number of the CSV file beside it. Artists carry names (`gid`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullLocator

from kmeander.experiments.alarms.cells import WITHIN
from kmeander.experiments.alarms.rivals import RIVALS
from kmeander.experiments.alarms.streams import LIMIT
from kmeander.experiments.figures import COLOURS, STYLE

Row = dict[str, Any]

_WITHIN, _ABOVE, _NO_LIMIT = COLOURS["HI"], "#D55E00", COLOURS["PSKM"]
# Colour and marker of each rival.
_RIVALS = {
    "rule": ("#000000", "o"),
    "ks": (COLOURS["PC"], "s"),
    "adwin_error": (COLOURS["WI"], "^"),
    "adwin_columns": (COLOURS["CC"], "v"),
}
_TICKS = (0, 1, 10, 100, 1000)
# The streams whose changes are drawn: those with every change.
_DRAWN = ("K4-d3-n200", "K10-d8-n500")
_N_COLUMNS = 4


def draw_rates(rates: Sequence[Row]) -> Figure:
    """Draw a bar for each stream, and a mark for each rival; the axis is linear below 1."""
    with mpl.rc_context(STYLE):
        # Names are a little wider in print than where the layout measures them.
        layout = ConstrainedLayoutEngine(w_pad=0.15)
        figure = Figure(figsize=(5.8, 1.2 + 0.17 * len(rates)), layout=layout)
        axes = figure.subplots()
        axes.set_gid("axes:alarms")
        for place, row in enumerate(rates):
            value = row["alarmed_per_1000"]
            colour = _ABOVE if row["rejected"] else _WITHIN
            if math.isnan(row["limit_per_1000"]):
                colour = _NO_LIMIT
            (bar,) = axes.barh(
                place, value, height=0.7, color=colour,
                hatch="////" if row["rejected"] else None, edgecolor="w", lw=0.3,
            )  # fmt: skip
            bar.set_gid(f"alarms:{row['stream']}")
        for key, (colour, marker) in _RIVALS.items():
            there = [
                (row[f"{key}_per_1000"], place)
                for place, row in enumerate(rates)
                if not math.isnan(row[f"{key}_per_1000"])
            ]
            if there:
                axes.plot(
                    *zip(*there, strict=True), ls="", marker=marker, ms=3, mfc="w", mec=colour,
                    mew=0.7, label=RIVALS[key], gid=f"rival:{key}", zorder=5,
                )  # fmt: skip
        axes.axvline(LIMIT, color="k", lw=0.8, ls="--", zorder=4, gid="limit")
        axes.set_yticks(range(len(rates)), [row["stream"] for row in rates])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rates) - 0.4, -0.6)
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(-0.05, 2000)
        axes.set_xticks(_TICKS)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("alarmed batches per 1000, none of them a change")
        axes.set_title(
            f"bars: kmeander (grey: nothing promised); dashed: the limit, {LIMIT:g}; "
            "hatched: a test at 1 % rejects it",
            pad=4,
        )
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=len(_RIVALS), frameon=False)
    return figure


def draw_power(rows: Sequence[Row]) -> Figure:
    """Draw the share of runs that noticed each change of the streams that have every change."""
    chosen = [row for row in rows if row["stream"] in _DRAWN] or list(rows)
    streams = list(dict.fromkeys(row["stream"] for row in chosen))
    changes = list(dict.fromkeys(row["change"] for row in chosen))
    n_lines = math.ceil(len(changes) / _N_COLUMNS)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.16, 0.5 + 1.15 * n_lines * len(streams)), layout="constrained")
        parts = figure.subfigures(len(streams), 1, squeeze=False)[:, 0]
        for part, stream in zip(parts, streams, strict=True):
            part.suptitle(stream, fontsize=7, fontweight="bold")
            grid = part.subplots(n_lines, _N_COLUMNS, squeeze=False, sharex=True, sharey=True)
            by_change = {row["change"]: row for row in chosen if row["stream"] == stream}
            for axes, change in zip(grid.flat, changes, strict=False):
                if change in by_change:
                    _draw_change(axes, by_change[change])
            for axes in list(grid.flat)[len(changes) :]:
                axes.set_axis_off()
            part.supxlabel("batches since the change", fontsize=6.5)
            part.supylabel("share of runs that noticed it", fontsize=6.5)
        handles, labels = parts[0].axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_change(axes: Any, row: Row) -> None:
    places = range(len(WITHIN))
    axes.set_title(row["change"], pad=2)
    lines = [("", "kmeander", _WITHIN, "D", 1.4)]
    lines += [(f"{key}_", RIVALS[key], *_RIVALS[key], 0.7) for key in _RIVALS]
    for key, label, colour, marker, width in lines:
        shares = [row[f"{key}within_{t}"] for t in WITHIN]
        if not any(map(math.isnan, shares)):
            axes.plot(
                places, shares, color=colour, marker=marker, ms=2.5, lw=width, label=label,
                gid=f"power:{row['stream']}:{row['change']}:{label}", clip_on=False,
                zorder=5 if not key else 3,
            )  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_xticks(places, [str(t) for t in WITHIN])
