"""What a run was, in a few lines: figures, Markdown and JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from kmeander.events import KINDS
from kmeander.exceptions import printable
from kmeander.page.clusters import cluster_rows
from kmeander.page.moments import Happened
from kmeander.page.status import status_of
from kmeander.page.timeline import Timeline
from kmeander.records.event_time import in_words


@dataclass(frozen=True)
class Figure:
    """One number for the head of the page.

    Parameters
    ----------
    name, value : str
    hint : str
        What it means, with the paper's term for it.
    """

    name: str
    value: str
    hint: str = ""


def figures(timeline: Timeline) -> list[Figure]:
    """Return the numbers at the top of the page, in words that need no paper."""
    last = timeline.last
    assert last is not None
    found = [
        Figure("batches", f"{timeline.n_batches:,}", "What arrived at once, and was learned."),
        Figure("rows", f"{timeline.n_points:,}"),
        Figure("columns", f"{len(timeline.columns):,}"),
        Figure("clusters", _n_clusters(timeline), "K, which you chose; provisional ones are new."),
        *(Figure(name, value) for name, value in _times(timeline).items()),
        Figure(
            "ids so far",
            f"{sum(life.is_told for life in timeline.lives.values()):,}",
            "Every cluster that ever was has an id of its own.",
        ),
        Figure(
            "drifts",
            f"{timeline.counts.get('drift', 0):,}",
            "Batches whose rows fit the clusters worse than expected, beyond chance.",
        ),
        Figure("events", f"{sum(timeline.counts.values()):,}", "All confirmed changes."),
    ]
    if timeline.n_unconfirmed:
        found.append(
            Figure(
                "unconfirmed events",
                f"{timeline.n_unconfirmed:,}",
                "Seen before it was known how much batches differ when nothing happens.",
            )
        )
    if timeline.n_far:
        found.append(
            Figure("far rows", f"{timeline.n_far:,}", "Rows farther from all clusters than usual.")
        )
    found += _distances(timeline)
    found.append(
        Figure(
            "memory",
            _half_life(last.rho),
            f"rho = {last.rho:.4g}: the share of its weight that a batch keeps when another comes.",
        )
    )
    return found


def _distances(timeline: Timeline) -> list[Figure]:
    """Return how far rows lie from their centres, now and before."""
    last = timeline.last
    assert last is not None
    by_angle = timeline.facts.get("settings", {}).get("metric") == "cosine"
    what = "mean of 1 - cosine" if by_angle else "root of the mean squared distance"
    of = "mean angle to the centre, as 1 - cosine" if by_angle else "typical distance to the centre"
    before = last.expected_error
    value = _typical(last.batch_error, by_angle=by_angle)
    if before is not None and last.batch_error is not None:
        value += f", expected {_typical(before, by_angle=by_angle)}"
    return [
        Figure(
            of,
            value,
            f"Of the newest batch's rows, once it is learned ({what}); expected is what batches "
            "before it had when they were new. In the paper: the root of the error E of the batch.",
        ),
        Figure(
            "window error",
            _short(last.surrogate_error),
            "Mean squared distance over all batches remembered, where old ones count less: the "
            "paper's surrogate error.",
        ),
    ]


def _typical(error: float | None, *, by_angle: bool) -> str:
    if error is None:
        return "-"
    return f"{error if by_angle else max(error, 0.0) ** 0.5:.4g}"


def _half_life(rho: float) -> str:
    """Return after how many batches half of the weight is forgotten.

    Examples
    --------
    >>> _half_life(0.5), _half_life(1.0)
    ('half forgotten after 1 batch', 'nothing is forgotten')
    """
    if not 0 < rho < 1:
        return "nothing is forgotten"
    batches = math.log(0.5) / math.log(rho)
    return f"half forgotten after {batches:.3g} batch{'' if round(batches, 2) == 1 else 'es'}"


def numbers(timeline: Timeline) -> dict[str, str]:
    """Return them by name."""
    return {figure.name: figure.value for figure in figures(timeline)}


def _times(timeline: Timeline) -> dict[str, str]:
    """Return when the stream began, and how far it has come."""
    assert timeline.last is not None
    first, last = timeline.first_time, timeline.last.last_time
    if first is None or last is None:
        return {}
    return {"from": in_words(first, first), "to": in_words(last, last)}


def noise_words(timeline: Timeline) -> list[str]:
    """Return what is known of the noise between batches, and of a cycle, as sentences."""
    assert timeline.last is not None
    noise, cycle = timeline.last.noise, timeline.cycles.cycle
    found = [] if noise is None else [noise.words()]
    found += [] if cycle is None else [cycle.words(of="run")]
    return [f"{words[0].upper()}{words[1:]}." for words in found]


def _n_clusters(timeline: Timeline) -> str:
    if not timeline.moments:
        return "-"
    assert timeline.last is not None
    shown = str(len(timeline.moments[-1].ids))
    n_provisional = len(timeline.last.provisional)
    return f"{shown}, {n_provisional} provisional" if n_provisional else shown


def as_plain(timeline: Timeline) -> dict[str, Any]:
    """Return the run as plain values, for JSON."""
    assert timeline.last is not None
    last, cycle, status = timeline.last, timeline.cycles.cycle, status_of(timeline)
    return {
        "source": timeline.facts.get("source"),
        "status": {
            "mood": status.mood,
            "headline": status.headline,
            "sentences": list(status.sentences),
            "advice": list(status.advice),
        },
        "settings": timeline.facts.get("settings", {}),
        "columns": timeline.columns,
        "n_batches": timeline.n_batches,
        "n_points": timeline.n_points,
        "first_time": timeline.first_time,
        "last_time": last.last_time,
        "n_distances": timeline.n_distances,
        "n_distances_plain": timeline.n_distances_plain,
        "surrogate_error": last.surrogate_error,
        "batch_error": last.batch_error,
        "counts": {kind: timeline.counts[kind] for kind in KINDS if kind in timeline.counts},
        "n_unconfirmed": timeline.n_unconfirmed,
        "n_far": timeline.n_far,
        "noise": None if last.noise is None else {**vars(last.noise), "words": last.noise.words()},
        "cycle": None if cycle is None else {**cycle._asdict(), "words": cycle.words(of="run")},
        "provisional": list(last.provisional),
        "clusters": [
            {
                "cluster": row.number,
                "name": timeline.names.get(row.number),
                "share": row.share,
                "apart": row.apart,
                "born": timeline.lives[row.number].begin,
            }
            for row in cluster_rows(timeline)
        ],
        "events": [
            {"batch": one.batch, **_known(one), **one.event.to_dict(), "words": one.words}
            for one in timeline.events
        ],
        "notes": timeline.notes,
    }


def _known(one: Happened) -> dict[str, str]:
    """Return the times of an event, where they are known."""
    times = {"first_time": one.first_time, "last_time": one.last_time}
    return {name: time for name, time in times.items() if time is not None}


def as_markdown(timeline: Timeline, most_events: int = 200) -> str:
    """Return the run as Markdown: what it was, the clusters now, what happened."""
    status = status_of(timeline)
    lines = [f"# kmeander: {_cell(str(timeline.facts.get('source', 'a run')))}", ""]
    lines += [f"**{_cell(status.headline)}**", ""]
    lines += [f"{_cell(one)}\n" for one in (*status.sentences, *status.advice)]
    lines += [f"*{_cell(note)}*" for note in timeline.notes]
    lines += [f"- {name}: {_cell(value)}" for name, value in numbers(timeline).items()]
    for words in noise_words(timeline):
        lines += ["", _cell(words)]
    lines += [
        "", "## Clusters now", "", "| cluster | share | recently | what sets it apart | since |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {_cell(row.name)} | {row.share:.1%} | {row.trend} | {_cell(row.apart)} "
        f"| {_cell(row.since)} |"
        for row in cluster_rows(timeline)
    ]
    events = list(timeline.events)
    lines += ["", "## Events", ""]
    if len(events) > most_events:
        lines += [f"The newest {most_events} of {len(events):,}.", ""]
    has_times = timeline.first_time is not None
    lines += ["| batch | when | event | |", "|---|---|---|---|"] if has_times else [
        "| batch | event | |", "|---|---|---|"
    ]  # fmt: skip
    lines += [
        f"| {one.batch} | {f'{one.when} | ' if has_times else ''}{one.event.kind} "
        f"| {_cell(one.words)} |"
        for one in events[-most_events:]
    ]
    if not events:
        lines.append(f"| | {'| ' if has_times else ''}none | |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is."""
    safe = printable(escape(text, quote=False).replace("\n", " ")).replace("\\", "\\\\")
    for sign in "|*_`[]":
        safe = safe.replace(sign, f"\\{sign}")
    return safe


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
