"""What stands first on the page: is all well, and if not, what happened and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from kmeander.events import KINDS
from kmeander.html_cards import plural
from kmeander.page.moments import Happened
from kmeander.page.timeline import Timeline
from kmeander.records.event_time import in_words

# A change is news for so many batches.
NEWS = 10

# Sentences that are said of it; the list of events has them all.
MOST_SENTENCES = 4

# What to do about each kind of event.
ADVICE = {
    "drift": "The clusters follow already. If the change was planned, nothing needs doing; if not, "
    "look at the clusters and columns that are named.",
    "born": "Rows that fitted no cluster have one now: look at what sets it apart.",
    "split": "One group has become two: look at what sets the new one apart.",
    "returned": "A group that had gone is back, and has its id again.",
    "died": "Its rows come no more; its id is never used again.",
    "absorbed": "Two groups have become one. kmeander.remap carries stored ids forward.",
    "moved": "Its rows are the same group elsewhere: ids that were stored stay right.",
    "grew": "More rows than usual are in it. Ids stay right.",
    "shrank": "Fewer rows than usual are in it. Ids stay right.",
    "trend": "It walks slowly; no single batch shows it. Look at it over a longer time.",
    "rescaled": "A unit has followed its column. Clusters are the same.",
}


@dataclass(frozen=True)
class Status:
    """How a stream is.

    Parameters
    ----------
    mood : {"quiet", "changed"}
    headline : str
    sentences : tuple of str
        What happened last, in full.
    advice : tuple of str
        What to do about it.
    """

    mood: str
    headline: str
    sentences: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def status_of(timeline: Timeline) -> Status:
    """Return how the stream is, as far as its Steps tell."""
    newest = timeline.last
    assert newest is not None
    confirmed = [one for one in timeline.events if not one.event.unconfirmed]
    told = [one for one in confirmed if one.event.kind != "rescaled"]
    if not told:
        n_hints = timeline.n_unconfirmed
        hint = ""
        if n_hints:
            hint = f" {plural(n_hints, 'change')} not confirmed: the stream's noise is not known."
        return Status(
            "quiet",
            f"Quiet: nothing has changed in {plural(timeline.n_batches, 'batch')}.{hint}",
        )
    batch = told[-1].batch
    last = sorted(
        (one for one in told if one.batch == batch), key=lambda one: KINDS.index(one.event.kind)
    )
    ago = newest.index - batch
    when = _time_of(last[0])
    sentences = tuple(_sentence(one) for one in last[:MOST_SENTENCES])
    if last[MOST_SENTENCES:]:
        n_more = len(last) - MOST_SENTENCES
        sentences = (*sentences, f"And {plural(n_more, 'change')} more in the same batch.")
    if ago > NEWS:
        return Status(
            "quiet",
            f"Quiet since batch {batch:,}{when}: {plural(ago, 'batch')} without a change.",
            sentences,
        )
    kind = last[0].event.kind
    named = "Drift" if kind == "drift" else _named(last[0])
    place = "in the newest batch" if ago == 0 else f"{plural(ago, 'batch')} ago"
    kinds = dict.fromkeys(one.event.kind for one in last)
    return Status(
        "changed",
        f"{named} {place}{when or f', batch {batch:,}'}.",
        sentences,
        tuple(ADVICE[kind] for kind in kinds)[:3],
    )


def _time_of(one: Happened) -> str:
    return f" at {in_words(one.first_time, one.first_time)}" if one.first_time is not None else ""


def _named(one: Happened) -> str:
    """Return an event in a few words."""
    words = {"born": "was born", "split": "split off", "trend": "walks"}
    did = words.get(one.event.kind, one.event.kind)
    return f"Cluster {one.event.cluster} {did}"


def _sentence(one: Happened) -> str:
    words = one.words
    return f"{words[:1].upper()}{words[1:]}."


def status_html(status: Status) -> str:
    """Return it as HTML; nothing in it is taken for HTML."""
    mark = {"quiet": "&#10003;", "changed": "!"}[status.mood]
    label = {"quiet": "quiet", "changed": "changed"}[status.mood]
    happened = "".join(f"<p>{escape(one)}</p>" for one in status.sentences)
    before = "Last change: " if status.mood == "quiet" and happened else ""
    happened = f'<div class="happened">{before and f"<b>{before}</b>"}{happened}</div>'
    advice = "".join(f"<li>{escape(one)}</li>" for one in status.advice)
    if advice:
        advice = f'<div class="advice"><b>What to do</b><ul>{advice}</ul></div>'
    return (
        f'<section class="status {label}" aria-label="Status"><h2><span class="mark" '
        f'aria-hidden="true">{mark}</span>{escape(status.headline)}</h2>'
        f"{happened if status.sentences else ''}{advice}</section>"
    )
