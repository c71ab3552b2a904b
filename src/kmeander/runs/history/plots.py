"""Plots of a stream with Matplotlib, each on axes that the caller may give."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError, shown
from kmeander.page import series
from kmeander.page.palette import EVENT_COLORS, color_of
from kmeander.page.timeline import Timeline
from kmeander.records import Columns, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lines that get a name beside their end, and ids that get a line of their own.
_MOST_NAMES = 30
_BEFORE, _AFTER, _WINDOW = "#d55e00", "#0072b2", "#7f7f7f"


def axes(ax: Axes | None) -> Axes:
    """Return where to draw: the caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    if find_spec("matplotlib") is None:
        raise InputError("plots need Matplotlib: pip install matplotlib")
    import matplotlib.pyplot as plt

    made: Axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")[1]
    return made


def errors(timeline: Timeline, ax: Axes) -> Axes:
    """Draw the errors, and a line at each confirmed drift."""
    moments = list(timeline.moments)
    known = series.errors(moments)
    x = _places(moments)
    lines = [
        ("prequential", "before learning", _BEFORE, "-"),
        ("newest", "after learning", _AFTER, "-"),
        ("surrogate", "all batches remembered", _WINDOW, ":"),
    ]
    for name, label, color, style in lines:
        ax.plot(x, known[name], color=color, linestyle=style, linewidth=1.4, label=label)
    at = dict(zip(known["batch"].tolist(), x, strict=True))
    drifts = [
        at[one.batch]
        for one in timeline.events
        if one.event.kind == "drift" and not one.event.unconfirmed and one.batch in at
    ]
    for place, where in enumerate(drifts):
        ax.axvline(
            where, color=EVENT_COLORS["drift"], linestyle="--", linewidth=1, alpha=0.6, zorder=0,
            label="_" if place else "drift",
        )  # fmt: skip
    ax.set_ylabel("mean squared distance")
    ax.set_ylim(bottom=0)
    _name_time(ax, moments)
    # Above the plot, where it covers nothing.
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2,
        fontsize="small", handlelength=1.5, columnspacing=1.2,
    )  # fmt: skip
    return ax


def shares(timeline: Timeline, ax: Axes) -> Axes:
    """Draw the shares of the clusters, stacked."""
    moments = list(timeline.moments)
    ids = sorted({number for moment in moments for number in moment.ids})
    table = np.zeros((len(ids), len(moments)))
    row_of = {number: row for row, number in enumerate(ids)}
    for place, moment in enumerate(moments):
        table[[row_of[number] for number in moment.ids], place] = moment.shares
    x = _places(moments)
    kept = np.sort(np.argsort(-table.sum(axis=1), kind="stable")[:_MOST_NAMES])
    layers, colors = table[kept], [color_of(ids[row]) for row in kept]
    names = [timeline.name_of(ids[row]) for row in kept]
    if len(ids) > len(kept):
        layers = np.vstack([layers, table.sum(axis=0) - layers.sum(axis=0)])
        colors, names = [*colors, "#a0a0a0"], [*names, f"{len(ids) - len(kept)} others"]
    ax.stackplot(x, layers, colors=colors, linewidth=0)
    middle = np.cumsum(layers, axis=0) - layers / 2
    there = layers[:, -1] > 0.02
    _name_ends(
        ax, x[-1], middle[there, -1], [name for name, is_there in zip(names, there, strict=True)
                                      if is_there], None,
    )  # fmt: skip
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_ylabel("share of the weight")
    _name_time(ax, moments)
    return ax


def lives(timeline: Timeline, ax: Axes) -> Axes:
    """Draw a bar for each id, and a mark for each event."""
    moments = list(timeline.moments)
    batches, x = [moment.index for moment in moments], _places(moments)
    at = dict(zip(batches, x, strict=True))
    known = series.lives(timeline, batches[0])
    for row, number in zip(known["row"], known["cluster"], strict=True):
        life = timeline.lives[int(number)]
        begin, end = at[max(life.begin, batches[0])], at[life.end]
        ax.plot(
            [begin, end], [row, row], color=known["color"][row], alpha=known["alpha"][row],
            linewidth=5, solid_capstyle="butt",
        )  # fmt: skip
    marks = series.events(timeline, known, batches[0])
    for kind in dict.fromkeys(marks["kind"]):
        chosen = [place for place, one in enumerate(marks["kind"])
                  if one == kind and not np.isnan(marks["row"][place])
                  and marks["batch"][place] in at]  # fmt: skip
        if chosen:
            ax.scatter(
                [at[marks["batch"][place]] for place in chosen],
                [marks["row"][place] for place in chosen],
                marker="D", s=28, color=EVENT_COLORS[kind], edgecolors="#1c2127", linewidths=0.5,
                label=kind, zorder=3,
            )  # fmt: skip
    names = [timeline.name_of(int(number)) for number in known["cluster"]]
    ax.set_yticks(known["row"], names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_ylabel("cluster")
    _name_time(ax, moments)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False, borderaxespad=0.2,
            fontsize="small", handletextpad=0.2, columnspacing=1.0,
        )  # fmt: skip
    return ax


def feature(steps: Sequence[Step], column: str, ax: Axes) -> Axes:
    """Draw one column of each centroid over time."""
    known = [step for step in steps if step.centroids is not None and step.ids is not None]
    if not known:
        raise InputError("this history has no clusters yet.")
    lines: dict[int, list[tuple[int, float]]] = {}
    for place, step in enumerate(known):
        assert step.centroids is not None
        assert step.ids is not None
        columns = step.columns or Columns.unnamed(step.centroids.shape[1])
        if column not in columns.names:
            raise InputError(
                f"there is no column {shown(column)}. The columns are {', '.join(columns.names)}."
            )
        values = columns.restored(step.centroids)[:, columns.names.index(column)]
        for number, value in zip(step.ids.tolist(), values.tolist(), strict=True):
            lines.setdefault(number, []).append((place, value))
    x = _places(known)
    for number, points in lines.items():
        places = [place for place, _ in points]
        whole = np.full(places[-1] - places[0] + 1, np.nan)  # a gap where it was asleep
        whole[np.array(places) - places[0]] = [value for _, value in points]
        ax.plot(x[places[0] : places[-1] + 1], whole, color=color_of(number), linewidth=1.6)
    living = [number for number, points in lines.items() if points[-1][0] == len(known) - 1]
    _name_ends(
        ax, x[-1], np.array([lines[number][-1][1] for number in living]),
        [str(number) for number in living], [color_of(number) for number in living],
    )  # fmt: skip
    for number, points in lines.items():
        if number not in living and len(lines) <= _MOST_NAMES:
            place, value = points[-1]
            ax.annotate(
                f"{number} †", (x[place], value), xytext=(3, 0), textcoords="offset points",
                color=color_of(number), fontsize="small", va="center",
            )  # fmt: skip
    ax.set_ylabel(column)
    _name_time(ax, known)
    return ax


def places(timeline: Timeline, ax: Axes) -> Axes:
    """Draw the clusters on two axes, and the ways that they came."""
    frames = series.frames(timeline)
    ways = series.trails(frames)
    for xs, ys, color in zip(ways["xs"], ways["ys"], ways["color"], strict=True):
        ax.plot(xs, ys, color=color, alpha=0.4, linewidth=1)
    now = series.at_frame(frames, frames["frame"][-1])
    ax.scatter(
        now["x"], now["y"], s=np.square(now["size"]) / 2, c=now["color"], alpha=0.85,
        edgecolors="#1c2127", linewidths=0.5, zorder=2,
    )  # fmt: skip
    if len(now["x"]) <= _MOST_NAMES:
        for x, y, size, number in zip(now["x"], now["y"], now["size"], now["cluster"], strict=True):
            ax.annotate(
                timeline.name_of(int(number)), (x, y), va="center", fontsize="small", zorder=3,
                xytext=(3 + size / 2.5, 0), textcoords="offset points",
            )  # fmt: skip
    ax.margins(0.15)
    ax.set_xlabel(timeline.axes[0])
    ax.set_ylabel(timeline.axes[1])
    return ax


def _places(moments: Sequence[Any]) -> NDArray[Any]:
    """Return where each batch stands on the axis: at its time, where there are times."""
    times = [moment.first_time for moment in moments]
    if all(time is not None for time in times):
        return np.array([time.removesuffix("Z") for time in times], dtype="datetime64[us]")
    return np.array([moment.index for moment in moments])


def _name_time(ax: Axes, moments: Sequence[Any]) -> None:
    has_times = all(moment.first_time is not None for moment in moments)
    ax.set_xlabel("" if has_times else "batch")
    if has_times:
        dates: Any = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _name_ends(
    ax: Axes, x: Any, heights: NDArray[np.float64], names: Sequence[str],
    colors: Sequence[str] | None,
) -> None:  # fmt: skip
    """Write names beside the ends of lines, one above the other where they would touch."""
    if not 0 < len(names) <= _MOST_NAMES:
        return
    low, high = ax.get_ylim()
    least = (high - low) * 0.055
    order = np.argsort(heights, kind="stable")
    above = -np.inf
    for place in order:
        height = max(float(heights[place]), above + least)
        above = height
        ax.annotate(
            names[place], (x, height), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize="small", color=None if colors is None else colors[place],
            annotation_clip=False,
        )  # fmt: skip
