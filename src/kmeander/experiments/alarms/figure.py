"""One figure: false alarms per 1000 batches, a bar for each stream, with the limit.

Everything drawn is a number of the CSV file beside it. Artists carry names (`gid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullLocator

from kmeander.experiments.alarms.tables import LIMIT
from kmeander.experiments.figures import COLOURS, STYLE

_WITHIN, _ABOVE = COLOURS["HI"], "#D55E00"
_TICKS = (0, 1, 10, 100, 1000)


def draw(rates: Sequence[dict[str, Any]]) -> Figure:
    """Draw the rows that `tables.alarm_rates` returned; the axis is linear below 1."""
    with mpl.rc_context(STYLE):
        # Names are a little wider in print than where the layout measures them.
        layout = ConstrainedLayoutEngine(w_pad=0.15)
        figure = Figure(figsize=(5.2, 0.8 + 0.17 * len(rates)), layout=layout)
        axes = figure.subplots()
        axes.set_gid("axes:alarms")
        for place, row in enumerate(rates):
            value = row["alarmed_per_1000"]
            (bar,) = axes.barh(
                place, value, height=0.7, color=_ABOVE if row["rejected"] else _WITHIN,
                hatch="////" if row["rejected"] else None, edgecolor="w", lw=0.3,
            )  # fmt: skip
            bar.set_gid(f"alarms:{row['stream']}")
            axes.annotate(
                f"{value:.3g}", (value, place), (3, 0), textcoords="offset points", va="center",
                fontsize=5.5, zorder=5, bbox={"facecolor": "w", "lw": 0, "pad": 0.5},
            )  # fmt: skip
        line = axes.axvline(LIMIT, color="k", lw=0.8, ls="--", zorder=4)
        line.set_gid("limit")
        axes.set_yticks(range(len(rates)), [row["stream"] for row in rates])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rates) - 0.4, -0.6)
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(0, 2000)
        axes.set_xticks(_TICKS)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("alarmed batches per 1000, none of them a change")
        axes.set_title(
            f"dashed: the limit, {LIMIT:g}; hatched: a binomial test at 1 % rejects it", pad=4
        )
    return figure
