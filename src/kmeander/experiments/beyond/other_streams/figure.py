"""One figure: the default and its rivals on synthetic, natural and returning streams.

Everything drawn is a number of the CSV files beside it. Artists carry names (`gid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from kmeander.experiments.beyond.contestants import DEFAULT
from kmeander.experiments.beyond.figure import LOOKS, Look
from kmeander.experiments.beyond.other_streams.tables import Numbers, Row
from kmeander.experiments.beyond.other_streams.variants import (
    AUTO,
    EARLIER,
    FIXED_RHOS,
    HUNGARIAN,
)
from kmeander.experiments.figures import STYLE, TWO_COLUMNS

_GREY, _GREEN, _VERMILION = "#777777", "#009E73", "#D55E00"
_LOOKS = {
    DEFAULT: LOOKS[DEFAULT],
    EARLIER: Look(_VERMILION, "o"),
    HUNGARIAN: Look(_GREEN, "P"),
    AUTO: Look(_GREEN, "X"),
    "PC": LOOKS["PC"],
    "HI": LOOKS["HI"],
    "PSKM": LOOKS["PSKM"],
    **{
        f"fixed {rho:g}": Look(_GREY, marker)
        for rho, marker in zip(FIXED_RHOS, ("1", "2", "3", "4"), strict=True)
    },
}
# A mark beyond stands at the edge.
_MOST = 1.6


def draw(numbers: Numbers) -> Figure:
    """Draw what `tables` made of a run."""
    n_lines = max(
        len({row["stream"] for row in numbers["synthetic"]}),
        len({row["stream"] for row in numbers["natural"]}),
    )
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(TWO_COLUMNS, 1.8 + 0.4 * n_lines), layout="constrained")
        panels = figure.subplots(2, 2)
        _draw_synthetic(panels[0, 0], numbers["synthetic"], 1, "(a)")
        _draw_synthetic(panels[0, 1], numbers["synthetic"], 10, "(b)")
        panels[0, 1].set_yticklabels([])
        _draw_natural(panels[1, 0], numbers["natural"])
        _draw_returning(panels[1, 1], numbers["returning"])
        handles = [
            Line2D([], [], ls="", color=look.colour, marker=look.marker, ms=_size(name), label=name)
            for name, look in _LOOKS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _size(method: str) -> float:
    return 8.0 if method == DEFAULT else 5.0


def _draw_synthetic(axes: Any, rows: Sequence[Row], t: int, letter: str) -> None:
    here = [row for row in rows if row["since_drift"] == t]
    values = [(row["method"], row["stream"], row["over_restarts"]) for row in here]
    _draw_ratios(axes, values, f"axes:synthetic:T={t}")
    axes.set_title(f"{letter}  SKM error over ten restarts, T = {t}", pad=4)


def _draw_natural(axes: Any, rows: Sequence[Row]) -> None:
    values = [
        (row["method"], row["stream"], row["over_best"]) for row in rows if row["method"] in _LOOKS
    ]
    _draw_ratios(axes, values, "axes:natural")
    axes.set_title("(c)  error of the next batch over the best setting", pad=4)


def _draw_ratios(axes: Any, values: Sequence[tuple[str, str, float]], name: str) -> None:
    axes.set_gid(name)
    if not values:
        _say_nothing(axes)
        return
    streams = list(dict.fromkeys(stream for _, stream, _ in values))
    for method, look in _LOOKS.items():
        of_method = [(stream, ratio) for known, stream, ratio in values if known == method]
        if not of_method:
            continue
        (drawn,) = axes.plot(
            [min(ratio, _MOST) for _, ratio in of_method],
            [streams.index(stream) for stream, _ in of_method],
            ls="", color=look.colour, marker=look.marker, ms=_size(method) - 1,
            zorder=4 if method == DEFAULT else 3, clip_on=False,
        )  # fmt: skip
        drawn.set_gid(f"{name}:{method}")
    axes.axvline(1, color="k", lw=0.6, zorder=1)
    axes.set_xlim(0.94, _MOST)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(streams)), streams)
    axes.set_ylim(len(streams) - 0.5, -0.5)


def _draw_returning(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_gid("axes:returning")
    axes.set_title("(d)  excess at T = 2 of a visit, median", pad=4)
    here = [row for row in rows if row["since_drift"] == 2]
    if not here:
        _say_nothing(axes)
        return
    places = list(dict.fromkeys((row["epsilon"], row["visit"]) for row in here))
    for method, look in _LOOKS.items():
        of_method = [row for row in here if row["method"] == method]
        if not of_method:
            continue
        (drawn,) = axes.plot(
            [row["median"] for row in of_method],
            [places.index((row["epsilon"], row["visit"])) for row in of_method],
            ls="", color=look.colour, marker=look.marker, ms=_size(method) - 1,
            zorder=4 if method == DEFAULT else 3,
        )  # fmt: skip
        drawn.set_gid(f"axes:returning:{method}")
    axes.axvline(0, color="k", lw=0.6, zorder=1)
    axes.set_yticks(range(len(places)), [f"{visit}\nepsilon {e:g}" for e, visit in places])
    axes.set_ylim(len(places) - 0.5, -0.5)


def _say_nothing(axes: Any) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no natural stream\nin the folder", ha="center", va="center")
