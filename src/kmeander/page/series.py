"""Columns for drawing, made of a timeline: nothing here knows how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmeander.events import Event
from kmeander.page.moments import Moment
from kmeander.page.palette import EVENT_COLORS, OTHERS, color_of, marker_of
from kmeander.page.thinning import thinned
from kmeander.page.timeline import Timeline

Columns = dict[str, Any]

# How much is drawn at most.
MOST_BATCHES = 1000
MOST_FRAMES = 150
MOST_AREAS = 120
MOST_LIVES = 60
MOST_EVENTS = 2000
MOST_COURSES, COURSE_POINTS = 60, 200
# Names that are written into a plot.
MOST_NAMES = 30
# What is not sure yet: unconfirmed events, provisional clusters.
FAINT = 0.3
# A band of this number of standard errors holds 95 %.
BAND = 1.96


def errors(moments: Sequence[Moment]) -> Columns:
    """Return the three errors over time."""
    return {
        "batch": np.array([moment.index for moment in moments]),
        "when": [moment.when for moment in moments],
        "prequential": np.array([moment.prequential for moment in moments]),
        "newest": np.array([moment.batch for moment in moments]),
        "surrogate": np.array([moment.surrogate for moment in moments]),
    }


def epsilons(moments: Sequence[Moment]) -> Columns:
    """Return the estimates of epsilon with their band."""
    epsilon = np.array([moment.epsilon for moment in moments])
    # Beyond that a band is drawn nowhere, and its end would be infinite.
    se = np.clip([moment.epsilon_se for moment in moments], -1e300, 1e300)
    return {
        "batch": np.array([moment.index for moment in moments]),
        "epsilon": epsilon,
        "low": epsilon - BAND * se,
        "high": epsilon + BAND * se,
    }


def areas(moments: Sequence[Moment]) -> Columns:
    """Return one polygon per id, stacked; the smallest together where there are too many."""
    batches = np.array([moment.index for moment in moments], dtype=float)
    table: dict[int, Any] = {}
    for place, moment in enumerate(moments):
        for number, share in zip(moment.ids, moment.shares.tolist(), strict=True):
            if number not in table:
                table[number] = np.zeros(len(moments))
            table[number][place] = share
    kept = set(sorted(table, key=lambda n: (-table[n].sum(), n))[:MOST_AREAS])
    layers = [(str(n), color_of(n), table[n]) for n in sorted(kept)]
    if len(table) > len(kept):
        rest = sum((table[n] for n in table if n not in kept), np.zeros(len(moments)))
        layers.append((f"{len(table) - len(kept)} others", OTHERS, rest))
    columns: Columns = {"xs": [], "ys": [], "cluster": [], "color": [], "share": []}
    low = np.zeros(len(moments))
    for name, color, share in layers:
        high = low + share
        there = np.flatnonzero(share > 0)
        first, last = (there[0], there[-1] + 1) if len(there) else (0, 0)
        part = slice(max(first - 1, 0), min(last + 1, len(moments)))
        columns["xs"].append(np.concatenate([batches[part], batches[part][::-1]]))
        columns["ys"].append(np.concatenate([low[part], high[part][::-1]]))
        columns["cluster"].append(name)
        columns["color"].append(color)
        columns["share"].append(f"{share[-1]:.1%}")
        low = high
    return columns


def lives(timeline: Timeline, first: int) -> Columns:
    """Return a line for each id since batch `first`, the longest lived if there are too many."""
    known = [life for life in timeline.lives.values() if life.end >= first]
    known.sort(key=lambda life: (life.begin - life.end, life.cluster))
    known = sorted(known[:MOST_LIVES], key=lambda life: life.cluster)
    return {
        "row": list(range(len(known))),
        "left": [max(life.begin, first) - 0.5 for life in known],
        "right": [life.end + 0.5 for life in known],
        "cluster": [str(life.cluster) for life in known],
        "name": [timeline.name_of(life.cluster) for life in known],
        "color": [color_of(life.cluster) for life in known],
        "came": [life.came for life in known],
        "went": [life.went or "lives" for life in known],
        "alpha": [1.0 if life.is_told else FAINT for life in known],
    }


def events(timeline: Timeline, lines: Columns, first: int) -> Columns:
    """Return the events since batch `first`, the newest if there are too many."""
    rows = dict(zip(lines["cluster"], lines["row"], strict=True))
    known = [one for one in timeline.events if one.batch >= first][-MOST_EVENTS:]
    happened = [one.event for one in known]
    cluster = ["" if event.cluster is None else str(event.cluster) for event in happened]
    return {
        "batch": [one.batch for one in known],
        "when": [one.when for one in known],
        "kind": [event.kind for event in happened],
        "event": [_named(event) for event in happened],
        "cluster": cluster,
        "about": [_about(event) for event in happened],
        "words": [one.words for one in known],
        "color": [EVENT_COLORS[event.kind] for event in happened],
        "alpha": [FAINT if event.unconfirmed else 1.0 for event in happened],
        "row": [float(rows.get(name, np.nan)) for name in cluster],
    }


def _about(event: Event) -> str:
    """Return the ids that an event is about."""
    return " ".join(str(number) for number in (event.cluster, event.other) if number is not None)


def _named(event: Event) -> str:
    """Return the kind of an event, with a question mark where it is unconfirmed."""
    return f"{event.kind} ?" if event.unconfirmed else event.kind


def courses(moments: Sequence[Moment], places: Sequence[int]) -> Columns:
    """Return the course of each cluster's centre, a line for each id.

    Parameters
    ----------
    moments : sequence of Moment
    places : sequence of int
        Which of the columns that are followed; the n-th of them is ``y{n}``.
    """
    chosen = thinned(moments, COURSE_POINTS)
    weights: dict[int, float] = {}
    for moment in chosen:
        for number, share in zip(moment.ids, moment.shares.tolist(), strict=True):
            weights[number] = weights.get(number, 0.0) + share
    kept = sorted(sorted(weights, key=lambda n: (-weights[n], n))[:MOST_COURSES])
    row_of = {number: row for row, number in enumerate(kept)}
    table = np.full((len(kept), len(places), len(chosen)), np.nan, dtype=np.float32)
    for at, moment in enumerate(chosen):
        assert moment.centres is not None
        rows = [row for row, number in enumerate(moment.ids) if number in row_of]
        taken = [row_of[moment.ids[row]] for row in rows]
        table[taken, :, at] = moment.centres[np.ix_(rows, list(places))]
    batches = np.array([moment.index for moment in chosen], dtype=np.float32)
    there = ~np.isnan(table[:, 0]) if places else np.zeros((len(kept), len(chosen)), dtype=bool)
    parts = []
    for row in range(len(kept)):
        where = np.flatnonzero(there[row])
        parts.append(slice(where[0], where[-1] + 1) if len(where) else slice(0, 0))
    found: Columns = {
        "xs": [batches[part] for part in parts],
        "cluster": [str(number) for number in kept],
        "color": [color_of(number) for number in kept],
    }
    for n, place in enumerate(places):
        found[f"y{place}"] = [table[row, n, part] for row, part in enumerate(parts)]
    return found


def frames(timeline: Timeline) -> Columns:
    """Return where the clusters are at some moments, one moment after the other."""
    chosen = thinned(timeline.moments, MOST_FRAMES)
    columns: Columns = {"frame": [], "batch": [], "x": [], "y": [], "size": [], "cluster": []}
    for frame, moment in enumerate(chosen):
        for number, place, share in zip(moment.ids, moment.places, moment.shares, strict=True):
            columns["frame"].append(frame)
            columns["batch"].append(moment.index)
            columns["x"].append(float(place[0]))
            columns["y"].append(float(place[1]))
            columns["size"].append(6.0 + 34.0 * float(share) ** 0.5)
            columns["cluster"].append(number)
    ids = columns["cluster"]
    columns["color"] = [color_of(number) for number in ids]
    columns["marker"] = [marker_of(number) for number in ids]
    columns["name"] = [timeline.name_of(number) for number in ids]
    columns["cluster"] = [str(number) for number in ids]
    return columns


def at_frame(columns: Columns, frame: int) -> Columns:
    """Return the rows of one frame."""
    rows = [place for place, number in enumerate(columns["frame"]) if number == frame]
    return {name: [values[place] for place in rows] for name, values in columns.items()}


def trails(columns: Columns) -> Columns:
    """Return the way of each id through the frames."""
    ways: dict[str, tuple[list[float], list[float], str]] = {}
    rows = zip(columns["cluster"], columns["x"], columns["y"], columns["color"], strict=True)
    for name, x, y, color in rows:
        way = ways.setdefault(name, ([], [], color))
        way[0].append(x)
        way[1].append(y)
    return {
        "xs": [way[0] for way in ways.values()],
        "ys": [way[1] for way in ways.values()],
        "cluster": list(ways),
        "color": [way[2] for way in ways.values()],
    }
