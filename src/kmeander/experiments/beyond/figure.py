"""One figure: the default beside the others, in error, against PSKM, in cost and in file order.

Everything drawn is a number of the CSV files beside it. Artists carry names (`gid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from kmeander.experiments.beyond.contestants import DEFAULT, MINI_BATCH, RIVER
from kmeander.experiments.figures import COLOURS, STYLE, TWO_COLUMNS

Row = dict[str, Any]

_VERMILION, _BLACK = "#D55E00", "#000000"


@dataclass(frozen=True)
class Look:
    """How a method is drawn, the same in every panel: never by colour alone."""

    colour: str
    marker: str
    line: Any = "-"
    width: float = 0.8


LOOKS = {
    "PC": Look(COLOURS["PC"], "v"),
    "CC": Look(COLOURS["CC"], "^"),
    "WI": Look(COLOURS["WI"], "s"),
    "HI": Look(COLOURS["HI"], "D"),
    "PSKM": Look("#444444", "o", "-", 1.8),
    DEFAULT: Look(_VERMILION, "*", "-", 1.8),
    "default without swaps": Look(_VERMILION, "1", ":"),
    "default, fixed forgetting": Look(_VERMILION, "2", "--"),
    "default, Hungarian start": Look(_VERMILION, "+", "-."),
    MINI_BATCH: Look(_BLACK, "x", (0, (4, 2, 1, 2))),
    RIVER: Look(_BLACK, "3", (0, (1, 1))),
}

# Those whose boxes stand beside PSKM.
BESIDE = ("PC", "CC", "WI", "HI", DEFAULT)


def draw(numbers: dict[str, list[Row]]) -> Figure:
    """Draw what `tables` made of a run."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(TWO_COLUMNS, 5.3), layout="constrained")
        panels = figure.subplots(2, 2)
        _draw_errors(panels[0, 0], numbers["since_drift"])
        _draw_beside(panels[0, 1], numbers["beside_pskm"])
        _draw_costs(panels[1, 0], numbers["costs"])
        _draw_order(panels[1, 1], numbers["in_order"])
        present = [name for name in LOOKS if any(r["method"] == name for r in numbers["costs"])]
        handles = [
            Line2D(
                [], [], color=look.colour, marker=look.marker, ls=look.line, lw=look.width,
                ms=_size(name), label=name,
            )
            for name, look in LOOKS.items()
            if name in present
        ]  # fmt: skip
        figure.legend(
            handles=handles, loc="outside lower center", ncols=4, frameon=False, handlelength=3.4
        )
    return figure


def _size(method: str) -> float:
    return 8.0 if method == DEFAULT else 4.5


def _draw_errors(axes: Any, rows: Sequence[Row]) -> None:
    """Draw means over T; on a logarithmic axis, so that small differences of the best show, too."""
    axes.set_gid("axes:since_drift")
    for name, look in LOOKS.items():
        of_method = [row for row in rows if row["method"] == name]
        if not of_method:
            continue
        (line,) = axes.plot(
            [row["since_drift"] for row in of_method],
            [row["skm_mean"] for row in of_method],
            color=look.colour, ls=look.line, lw=look.width, marker=look.marker, ms=_size(name) - 1,
            zorder=4 if name in ("PSKM", DEFAULT) else 3,
        )  # fmt: skip
        line.set_gid(f"skm_mean:{name}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(_percent())
    axes.yaxis.set_minor_locator(NullLocator())
    last = max(row["since_drift"] for row in rows)
    for name, words in (("PSKM", "PSKM"), (DEFAULT, "default")):
        (height,) = (
            row["skm_mean"] for row in rows if (row["method"], row["since_drift"]) == (name, last)
        )
        if height > 0:
            axes.annotate(
                words, (last, height), (8, 0), textcoords="offset points", va="center",
                color=LOOKS[name].colour, weight="bold", annotation_clip=False,
            )  # fmt: skip
    axes.set_xticks(sorted({row["since_drift"] for row in rows}))
    axes.set_xlabel("T, batches since the drift")
    axes.set_title(
        "(a)  SKM error above the best method of the batch, mean; lower is better", pad=4
    )


def _draw_beside(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_gid("axes:beside_pskm")
    numbers = sorted({row["n_clusters"] for row in rows})
    width = 0.8 / len(BESIDE)
    for place, name in enumerate(BESIDE):
        of_method = [row for row in rows if row["method"] == name]
        groups = np.array([numbers.index(row["n_clusters"]) for row in of_method])
        drawn = axes.bxp(
            [
                {
                    "whislo": row["low"], "q1": row["q1"], "med": row["median"],
                    "q3": row["q3"], "whishi": row["high"], "fliers": [],
                }
                for row in of_method
            ],
            positions=groups + (place - (len(BESIDE) - 1) / 2) * width,
            widths=0.82 * width, patch_artist=True, showfliers=False, showcaps=False,
            boxprops={"facecolor": LOOKS[name].colour, "linewidth": 0.4},
            medianprops={"color": "k", "linewidth": 1.1},
            whiskerprops={"linewidth": 0.5},
            manage_ticks=False,
        )  # fmt: skip
        for row, box, median in zip(of_method, drawn["boxes"], drawn["medians"], strict=True):
            box.set_gid(f"box:K={row['n_clusters']}:{name}")
            median.set_gid(f"median:K={row['n_clusters']}:{name}")
    axes.axhline(0, color=LOOKS["PSKM"].colour, lw=1.8, zorder=1)
    axes.annotate(
        "PSKM", (1, 0), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", color=LOOKS["PSKM"].colour,
    )  # fmt: skip
    axes.set_xticks(range(len(numbers)), [f"K = {number}" for number in numbers])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+.0%}" if value else "0%")
    )
    axes.set_title("(b)  SKM error beside PSKM, which is told of every drift", pad=4)


def _draw_costs(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_gid("axes:costs")
    for row in rows:
        name = row["method"]
        (point,) = axes.plot(
            row["distances_of_plain_HI"], row["skm_mean"], ls="", color=LOOKS[name].colour,
            marker=LOOKS[name].marker, ms=1.4 * _size(name),
        )  # fmt: skip
        point.set_gid(f"cost:{name}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(_percent())
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.axvline(1, color=LOOKS["HI"].colour, lw=0.6, ls="--", zorder=1)
    axes.annotate(
        "plain HI", (1, 1), (-2, -2), xycoords=("data", "axes fraction"),
        textcoords="offset points", rotation=90, ha="right", va="top", color=LOOKS["HI"].colour,
    )  # fmt: skip
    for name, offset in (("PSKM", (-8, -13)), (DEFAULT, (7, 5))):
        (row,) = (row for row in rows if row["method"] == name)
        axes.annotate(
            name, (row["distances_of_plain_HI"], row["skm_mean"]), offset,
            textcoords="offset points", color=LOOKS[name].colour, weight="bold",
        )  # fmt: skip
    axes.set_xlabel("distances really computed, as a share of plain HI's count")
    axes.set_title("(c)  the same error, over all T, and what it costs", pad=4)


def _draw_order(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_gid("axes:in_order")
    axes.set_title("(d)  prequential error in file order, times that of HI", pad=4)
    if not rows:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no recording among the datasets", ha="center", va="center")
        return
    places = list(dict.fromkeys((row["dataset"], row["n_clusters"]) for row in rows))
    of_hi = {
        (row["dataset"], row["n_clusters"]): row["prequential_error"]
        for row in rows
        if row["method"] == "HI"
    }
    for name in dict.fromkeys(row["method"] for row in rows):
        here = [row for row in rows if row["method"] == name]
        keys = [(row["dataset"], row["n_clusters"]) for row in here]
        (line,) = axes.plot(
            [
                row["prequential_error"] / of_hi[key]
                for row, key in zip(here, keys, strict=True)
            ],
            [places.index(key) for key in keys],
            ls="", color=LOOKS[name].colour, marker=LOOKS[name].marker, ms=1.4 * _size(name),
        )  # fmt: skip
        line.set_gid(f"order:{name}")
    axes.axvline(1, color=LOOKS["HI"].colour, lw=0.6, zorder=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(places)), [f"{dataset}\nK = {k}" for dataset, k in places])
    axes.set_ylim(len(places) - 0.5, -0.5)


def _percent() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{100 * value:g} %")
