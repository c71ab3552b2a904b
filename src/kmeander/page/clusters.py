"""The clusters as they are now, as a table: name, share, trend, and what sets each apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from kmeander.events import called
from kmeander.html_cards import plural
from kmeander.page.palette import color_of
from kmeander.page.thinning import thinned
from kmeander.page.timeline import Timeline
from kmeander.records import ClusterProfile
from kmeander.records.event_time import in_words
from kmeander.records.profile import LONGEST_ROW

# Clusters in the table; the others are summed up in its last line.
MOST_ROWS = 20
# Points of the small line that shows how a share went.
SPARK_POINTS, SPARK_WIDTH, SPARK_HEIGHT = 60, 96, 20
# Columns that are named, and how far from the others, in standard deviations, they must be.
MOST_COLUMNS, APART = 2, 0.5
# A share that changes by less than this is steady.
STEADY = 0.02


@dataclass(frozen=True)
class ClusterRow:
    """One cluster, for people.

    Parameters
    ----------
    number : int
        Its id.
    name : str
        What it is called.
    share : float
    course : tuple of float
        Its share at batches up to now.
    apart : str
        What sets it apart from the others.
    since : str
        When it came.
    example : str
        A row near its centroid, by its text or what names it; empty where nothing does.
    """

    number: int
    name: str
    share: float
    course: tuple[float, ...]
    apart: str
    since: str
    example: str = ""

    @property
    def trend(self) -> str:
        """Where its share goes, in a word or two."""
        change = self.share - self.course[0]
        if abs(change) < STEADY:
            return "steady"
        return f"{'up' if change > 0 else 'down'} {abs(change) * 100:.0f} points"


def cluster_rows(timeline: Timeline) -> list[ClusterRow]:
    """Return the clusters of the newest batch, the largest first."""
    newest = timeline.moments[-1]
    recent = thinned(list(timeline.moments)[-500:], SPARK_POINTS)
    courses: dict[int, list[float]] = {number: [] for number in newest.ids}
    for moment in recent:
        for number, share in zip(moment.ids, moment.shares.tolist(), strict=True):
            if number in courses:
                courses[number].append(share)
    sets_apart = _apart(timeline)
    known = {one.id: one for one in timeline.profiles or ()}
    order = np.argsort(-newest.shares, kind="stable").tolist()
    return [
        ClusterRow(
            newest.ids[row],
            called(newest.ids[row], timeline.names),
            float(newest.shares[row]),
            tuple(courses[newest.ids[row]]),
            _words_of(known.get(newest.ids[row])) or sets_apart[row],
            _since(timeline, newest.ids[row]),
            _example_of(known.get(newest.ids[row])),
        )
        for row in order
    ]


def _words_of(profile: ClusterProfile | None) -> str:
    return "" if profile is None else profile.apart()


def _example_of(profile: ClusterProfile | None) -> str:
    if profile is None or not profile.recent:
        return ""
    words = profile.recent[0].words()
    return words if len(words) <= LONGEST_ROW else f"{words[: LONGEST_ROW - 3]}..."


def _since(timeline: Timeline, number: int) -> str:
    life = timeline.lives[number]
    when = in_words(life.first_time, life.first_time)
    return f"batch {life.begin:,}{when and f', {when}'}"


def _apart(timeline: Timeline) -> list[str]:
    """Return what sets each cluster apart from the others, by row, from its centroid."""
    step = timeline.last
    assert step is not None
    if step.centroids is None or step.masses is None:  # a file that says less than a run writes
        return [""] * len(timeline.moments[-1].ids)
    names = timeline.columns
    shown = step.centroids if timeline.units is None else timeline.units.restored(step.centroids)
    n_clusters = len(step.centroids)
    if n_clusters < 2:
        return [""] * n_clusters
    masses = np.where(step.masses > 0, step.masses, 0.0)
    rest = _means_of_others(shown, masses)
    scale = step.centroids.std(axis=0)
    difference = (step.centroids - _means_of_others(step.centroids, masses)) / np.where(
        scale > 0, scale, np.inf
    )
    found = []
    for row in range(n_clusters):
        order = np.argsort(-np.abs(difference[row]), kind="stable")[:MOST_COLUMNS]
        found.append(
            ", ".join(
                f"{names[place]} {'high' if difference[row, place] > 0 else 'low'} "
                f"({shown[row, place]:.3g} against {rest[row, place]:.3g})"
                for place in order.tolist()
                if abs(difference[row, place]) > APART
            )
        )
    return found


def _means_of_others(
    values: NDArray[np.float64], masses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each row, the weighted mean of all other rows."""
    left = masses.sum() - masses
    sums = masses @ values - masses[:, np.newaxis] * values
    others: NDArray[np.float64] = sums / np.where(left > 0, left, 1.0)[:, np.newaxis]
    return others


def clusters_html(rows: Sequence[ClusterRow]) -> str:
    """Return the table as HTML; nothing in it is taken for HTML."""
    shown = rows[:MOST_ROWS]
    body = "".join(
        f'<tr><th scope="row"><span class="dot" style="background:{color_of(row.number)}" '
        f'aria-hidden="true"></span>{escape(row.name)}</th><td class="share">{row.share:.1%}</td>'
        f'<td class="trend">{_spark(row)} <span>{row.trend}</span></td>'
        f'<td class="apart">{escape(row.apart)}{_said(row.example)}</td>'
        f'<td class="since">{escape(row.since)}</td></tr>'
        for row in shown
    )
    rest = rows[MOST_ROWS:]
    if rest:
        share = sum(row.share for row in rest)
        body += (
            f'<tr><td colspan="5">and {plural(len(rest), "smaller cluster")}, together '
            f"{share:.1%}</td></tr>"
        )
    return (
        f"<h2>Clusters now</h2><table><caption>{plural(len(rows), 'cluster')}, the largest first"
        '</caption><thead><tr><th scope="col">cluster</th><th scope="col">share</th>'
        '<th scope="col">share, recently</th><th scope="col">what sets it apart</th>'
        f'<th scope="col">since</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _said(example: str) -> str:
    return f'<div class="example">such as {escape(example)}</div>' if example else ""


def _spark(row: ClusterRow) -> str:
    """Return the course of a share as a small line."""
    course = row.course if len(row.course) > 1 else row.course * 2
    top = max(max(course), 1e-12)
    points = " ".join(
        f"{place * SPARK_WIDTH / (len(course) - 1):.1f},"
        f"{SPARK_HEIGHT - 1 - share / top * (SPARK_HEIGHT - 2):.1f}"
        for place, share in enumerate(course)
    )
    return (
        f'<svg width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}" role="img" '
        f'aria-label="from {course[0]:.1%} to {course[-1]:.1%}"><polyline points="{points}" '
        f'fill="none" stroke="{color_of(row.number)}" stroke-width="2"/></svg>'
    )
