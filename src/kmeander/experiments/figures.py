"""The figures of the paper, drawn from tables of numbers and from nothing else.

Every box, line and band is put where a row of the figure's CSV file says. Artists carry names
(`gid`), so that they can be found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from kmeander.experiments.protocol import METHODS
from kmeander.experiments.tables import Score

Row = dict[str, Any]

# Okabe and Ito's colours, which colour-blind readers can tell apart, also by lightness.
COLOURS = {"PC": "#E69F00", "CC": "#CC79A7", "WI": "#009E73", "HI": "#0072B2", "PSKM": "#BBBBBB"}
BAND_COLOURS = {"95%": "#D6E9F5", "68%": "#A6CFE8"}

# Widths of one and two columns of the paper, in inches.
ONE_COLUMN, TWO_COLUMNS = 3.5, 7.16
STYLE: Any = {
    "font.size": 6.5,
    "axes.titlesize": 6.5,
    "axes.labelsize": 6.5,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
}


def draw_scores(rows: Sequence[Row], score: Score) -> Figure:
    """Draw a score as box plots: columns epsilon, rows K, and T along each axis."""
    epsilons = sorted({row["epsilon"] for row in rows})
    numbers = sorted({row["n_clusters"] for row in rows})
    with mpl.rc_context(STYLE):
        tight = ConstrainedLayoutEngine(w_pad=0.01, h_pad=0.02, wspace=0.01, hspace=0.02)
        figure = Figure(figsize=(ONE_COLUMN, 0.55 + 1.25 * len(numbers)), layout=tight)
        grid = figure.subplots(
            len(numbers), len(epsilons), squeeze=False, sharex=True, sharey="row"
        )
        for i, n_clusters in enumerate(numbers):
            for j, epsilon in enumerate(epsilons):
                axes = grid[i, j]
                axes.set_gid(f"axes:K={n_clusters}:epsilon={epsilon:g}")
                here = [
                    row
                    for row in rows
                    if row["n_clusters"] == n_clusters and row["epsilon"] == epsilon
                ]
                _draw_boxes(axes, here)
                if i == 0:
                    axes.set_title(f"$\\varepsilon$ = {epsilon:g}", pad=3)
                if j == 0:
                    axes.set_ylabel(f"K = {n_clusters}")
            # Nothing lies below the best method. Only now does the row know how high it reaches.
            top = max(row["high"] for row in rows if row["n_clusters"] == n_clusters)
            height = top - score.least if np.isfinite(top) and top > score.least else 1.0
            grid[i, 0].set_ylim(score.least - 0.03 * height, score.least + 1.04 * height)
        grid[-1, len(epsilons) // 2].set_xlabel("T, batches since the drift")
        figure.align_ylabels()
        figure.suptitle(f"{score.title} ({score.axis}), m = {rows[0]['m']:g}", fontsize=7)
        present = [method for method in METHODS if any(row["method"] == method for row in rows)]
        handles = [
            Patch(facecolor=COLOURS[name], edgecolor="k", lw=0.4, label=name) for name in present
        ]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=len(present), frameon=False,
            handlelength=1, handleheight=1, columnspacing=1.2,
        )  # fmt: skip
    return figure


def _draw_boxes(axes: Any, rows: Sequence[Row]) -> None:
    shown = sorted({row["since_drift"] for row in rows})
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        of_method = [row for row in rows if row["method"] == method]
        groups = np.array([shown.index(row["since_drift"]) for row in of_method])
        drawn = axes.bxp(
            [_stats(row) for row in of_method],
            positions=groups + (place - (len(methods) - 1) / 2) * width,
            widths=0.86 * width,
            patch_artist=True,
            showfliers=False,
            showcaps=False,
            boxprops={"facecolor": COLOURS[method], "linewidth": 0.35},
            medianprops={"color": "k", "linewidth": 0.9},
            whiskerprops={"linewidth": 0.4},
            manage_ticks=False,
        )
        for i, row in enumerate(of_method):
            name = f"T={row['since_drift']}:{method}"
            drawn["boxes"][i].set_gid(f"box:{name}")
            drawn["medians"][i].set_gid(f"median:{name}")
            drawn["whiskers"][2 * i].set_gid(f"low:{name}")
            drawn["whiskers"][2 * i + 1].set_gid(f"high:{name}")
    axes.set_xticks(range(len(shown)), [str(t) for t in shown])
    axes.tick_params(axis="x", length=0)
    for edge in range(1, len(shown)):
        axes.axvline(edge - 0.5, color="0.88", lw=0.5, zorder=0)
    axes.locator_params(axis="y", nbins=4)


def _stats(row: Row) -> Row:
    return {
        "whislo": row["low"],
        "q1": row["q1"],
        "med": row["median"],
        "q3": row["q3"],
        "whishi": row["high"],
    }


def draw_theorem1(rows: Sequence[Row]) -> Figure:
    """Draw Figure 1: the difference of the two errors over T, with both bands of Theorem 1."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(TWO_COLUMNS, 2.4), layout="constrained")
        panels = sorted({row["panel"] for row in rows})
        for axes, panel in zip(
            figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True
        ):
            here = sorted(
                (row for row in rows if row["panel"] == panel), key=lambda row: row["since_drift"]
            )
            axes.set_gid(f"axes:{panel}")
            _draw_bands(axes, here)
            axes.set_title(
                f"({panel})  N = {here[0]['batch_size']}, $\\rho$ = {here[0]['rho']:.3f}", pad=3
            )
            axes.set_xlabel("T, batches since the drift")
        figure.suptitle(
            f"SKM error minus surrogate error of one centroid after a drift ({rows[0]['dataset']})",
            fontsize=7,
        )
        figure.axes[0].set_ylabel(r"$(E_* - E_\rho)\;/\;E$")
        handles = [
            Line2D([], [], color="#D55E00", lw=1, label=r"expected, $\rho^T \varepsilon$"),
            Patch(facecolor=BAND_COLOURS["68%"], label="68 % band of Theorem 1"),
            Patch(facecolor=BAND_COLOURS["95%"], label="95 % band of Theorem 1"),
            Patch(facecolor="w", edgecolor="k", lw=0.5, label="measured"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw_bands(axes: Any, rows: Sequence[Row]) -> None:
    t = np.array([row["since_drift"] for row in rows])
    expected = np.array([row["expected"] for row in rows])
    for share, colour in BAND_COLOURS.items():
        half = np.array([row[f"band_{share}"] for row in rows])
        band = axes.fill_between(t, expected - half, expected + half, color=colour, lw=0)
        band.set_gid(f"band:{share}")
    (line,) = axes.plot(t, expected, color="#D55E00", lw=1, zorder=3)
    line.set_gid("expected")
    drawn = axes.bxp(
        [_stats(row) for row in rows],
        positions=t,
        widths=0.6,
        patch_artist=True,
        showfliers=False,
        showcaps=False,
        boxprops={"facecolor": "w", "linewidth": 0.5},
        medianprops={"color": "k", "linewidth": 0.9},
        whiskerprops={"linewidth": 0.5},
        manage_ticks=False,
    )
    for row, median in zip(rows, drawn["medians"], strict=True):
        median.set_gid(f"median:T={row['since_drift']}")
    axes.axhline(0, color="0.6", lw=0.4, zorder=1)
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_xlim(0.3, t.max() + 0.7)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PDF and PNG beside each other; the same figure gives the same bytes."""
    # Laid out once, and not again for each file.
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None, "Producer": None})
    figure.savefig(path.with_suffix(".png"), dpi=300, metadata={"Software": None})
