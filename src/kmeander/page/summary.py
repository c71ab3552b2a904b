"""What a run was, in a few lines: for a page, as Markdown and as JSON."""

from __future__ import annotations

from html import escape
from typing import Any

from kmeander.events import KINDS
from kmeander.exceptions import printable
from kmeander.page.timeline import Happened, Timeline
from kmeander.records.event_time import in_words

STYLE = """
<style>
:host { color: #1c2127; }
h1 { font-size: 1.35rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .5rem 1rem;
     margin: .5rem 0; }
dl > div { min-width: 0; }
dt { font-size: .78rem; color: #5b6570; }
dd { margin: 0; font-size: 1.05rem; font-weight: 600; overflow-wrap: anywhere; }
.noise { margin: .4rem 0; }
details { font-size: .85rem; overflow-wrap: anywhere; }
.note { color: #a34700; margin: .2rem 0; font-size: .9rem; }
@media (prefers-color-scheme: dark) {
  :host { color: #e6e9ec; } dt { color: #a3adb8; } .note { color: #ffb27a; }
}
</style>
"""


def numbers(timeline: Timeline) -> dict[str, str]:
    """Return what stands at the top of the page, by name."""
    last = timeline.last
    assert last is not None
    settings = timeline.facts.get("settings", {})
    shown = {
        "batches": f"{timeline.n_batches:,}",
        "rows": f"{timeline.n_points:,}",
        "columns": f"{len(timeline.columns):,}",
        "clusters": _n_clusters(timeline),
        **_times(timeline),
        "ids so far": f"{sum(life.is_told for life in timeline.lives.values()):,}",
        "drifts": f"{timeline.counts.get('drift', 0):,}",
        "events": f"{sum(timeline.counts.values()):,}",
        **({"unconfirmed events": f"{timeline.n_unconfirmed:,}"} if timeline.n_unconfirmed else {}),
        **({"far rows": f"{timeline.n_far:,}"} if timeline.n_far else {}),
        "surrogate error now": _short(last.surrogate_error),
        "newest batch's error": _short(last.batch_error),
        "rho": f"{last.rho:.4g}",
        "start of Lloyd": str(settings.get("init", "-")),
    }
    if timeline.n_distances_plain:
        share = timeline.n_distances / timeline.n_distances_plain
        shown["distances computed"] = f"{share:.1%} of plain Lloyd's"
    return shown


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


def as_html(
    timeline: Timeline, extra: dict[str, str] | None = None, n_drawn: int | None = None
) -> str:
    """Return the head of the page; nothing in it is taken for HTML.

    Where fewer batches are drawn than there are, it says which.
    """
    items = {**numbers(timeline), **(extra or {})}
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in items.items()
    )
    shown_notes = list(timeline.notes)
    if n_drawn is not None and n_drawn < len(timeline.moments):
        shown_notes.append(
            f"{n_drawn:,} of {len(timeline.moments):,} batches are drawn: of each stretch the one "
            "with the largest error before learning, so that no drift is lost. Lives and events "
            "are complete."
        )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in shown_notes)
    noise = "".join(f'<p class="noise">{escape(words)}</p>' for words in noise_words(timeline))
    facts = {
        **timeline.facts.get("settings", {}),
        "columns": ", ".join(timeline.columns),
        "kmeander": timeline.facts.get("kmeander", "unknown"),
        "batch size": timeline.facts.get("batch_size"),
        "standardised": "yes" if timeline.facts.get("standardize") else "no",
    }
    more = "".join(
        f"<div>{escape(str(name))}: {escape(str(value))}</div>" for name, value in facts.items()
    )
    source = escape(str(timeline.facts.get("source", "a run")))
    return (
        f"{STYLE}<h1>kmeander: {source}</h1>{notes}<dl>{shown}</dl>{noise}"
        f"<details><summary>Settings and columns</summary>{more}</details>"
    )


def as_plain(timeline: Timeline) -> dict[str, Any]:
    """Return the run as plain values, for JSON."""
    assert timeline.last is not None
    last, cycle = timeline.last, timeline.cycles.cycle
    return {
        "source": timeline.facts.get("source"),
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
            {"cluster": number, "share": share, "born": timeline.lives[number].begin}
            for number, share in zip(
                timeline.moments[-1].ids, timeline.moments[-1].shares.tolist(), strict=True
            )
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
    lines = [f"# kmeander: {_cell(str(timeline.facts.get('source', 'a run')))}", ""]
    lines += [f"*{_cell(note)}*" for note in timeline.notes]
    lines += [f"- {name}: {_cell(value)}" for name, value in numbers(timeline).items()]
    for words in noise_words(timeline):
        lines += ["", _cell(words)]
    lines += ["", "## Clusters now", "", "| cluster | share | since batch | |", "|---|---|---|---|"]
    newest = timeline.moments[-1]
    for number, share in zip(newest.ids, newest.shares.tolist(), strict=True):
        life = timeline.lives[number]
        lines.append(f"| {number} | {share:.1%} | {life.begin} | {_cell(life.came)} |")
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
