"""Cluster tracking: what a batch did to the ids, its events, and the reasons for a drift."""

from __future__ import annotations

from collections.abc import Iterable
from math import dist, hypot, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, frozen
from kmeander.events import KINDS, Event, Explanation
from kmeander.kmeans.lloyd import Limits, WindowFit, reordered
from kmeander.kmeans.window import Window
from kmeander.records import Ids, Noise, Step
from kmeander.tracking.change_test import BatchChanges, Change, ChangeKind, Chapter
from kmeander.tracking.drift_test import DriftTest, Estimate
from kmeander.tracking.explain import explain
from kmeander.tracking.id_matching import match_ids
from kmeander.tracking.lasting import settle
from kmeander.tracking.lineage import Lineage

# Evidence that something changed, although no single cluster may be named.
_OF_ALL = {ChangeKind.COLUMN, ChangeKind.FAR}
# Until the noise of a stream is known, an event is confirmed if the cluster moved by this number of
# standard deviations, or the error is this number of times what was expected; and not in the very
# first batches, in which a stream shows what it has.
BEYOND_NOISE_SD = 3.5
BEYOND_NOISE_ERROR = 2.0
BEYOND_NOISE_BATCHES = 4


class Before(NamedTuple):
    """The clusters as they were before a batch."""

    lineage: Lineage
    centroids: Centroids
    window: Window  # the batches remembered, partitioned by the centroids
    estimates: tuple[Estimate, ...] = ()
    step: Step | None = None  # of the batch before


class Tracked(NamedTuple):
    """Ids and events of one batch, and the fit with each cluster in its row."""

    lineage: Lineage
    fit: WindowFit
    chapter: Chapter
    swapped: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()
    why: Explanation | None = None


def track(
    before: Before,
    arrival: DriftTest,
    tested: BatchChanges,
    window: Window,
    fit: WindowFit,
    index: int,
    *,
    swapped: tuple[int, ...] = (),
    limits: Limits | None = None,
) -> Tracked:
    """Follow the clusters through batch `index`.

    Parameters
    ----------
    before : Before
    arrival : DriftTest
        The batch under the centroids before it.
    tested : BatchChanges
        The batch beside those before it.
    window : Window
        The aged batches and the newest, partitioned by the centroids before (the newest is not).
    fit : WindowFit
        Where Lloyd ended.
    index : int
    swapped : tuple of int
        Rows whose centroid local search has put elsewhere.
    limits : Limits, optional
    """
    limits = Limits() if limits is None else limits
    assert fit.moved is not None
    variance = variance_of(fit)
    is_alarm = bool(tested.changes)
    displaced: list[int] = []
    if is_alarm or tested.chapter.test.n_in_chapter <= window.n_batches:
        displaced = np.flatnonzero(fit.moved * fit.moved > variance).tolist()
    matched, begun, ended = before.lineage, [], []
    # Only a centroid that has left its own cluster can have become another one's.
    if displaced or fit.reseeded or swapped:
        suspects = sorted({*displaced, *fit.reseeded, *swapped})
        found = match_ids(
            before.lineage, window, fit, before.centroids, arrival.partition, suspects, index,
            before.window,
        )  # fmt: skip
        matched, begun, ended = found.lineage, found.begun, found.ended
    rows = _in_own_rows(
        before, _InRows(matched._replace(variance=frozen(variance)), fit, swapped), limits
    )
    events: list[Event] = []
    if begun or ended or not rows.lineage.is_settled:
        settled = settle(
            before.lineage, rows.lineage, begun, ended, rows.fit, before.centroids, index,
            at_once=is_alarm,
        )  # fmt: skip
        # A cluster that fell asleep may have woken with the same batch where another one was.
        rows = _in_own_rows(before, rows._replace(lineage=settled.lineage), limits)
        events = list(settled.events)
    lineage, fit, swapped = rows
    if is_alarm:
        changed, lineage = _changes_told(before, arrival, tested, lineage, fit, index, events)
        events = sorted(events + changed, key=lambda event: KINDS.index(event.kind))
    why = None
    if events and events[0].kind == "drift":
        why = explain(
            before.window, window.batches[-1], arrival.partition, before.centroids,
            before.lineage.ids, limits.threads,
        )  # fmt: skip
    chapter = tested.chapter
    if is_alarm:
        chapter = chapter.next(fit.window, fit.centroids, lineage.ids, chapter.season)
    return Tracked(lineage, fit, chapter, swapped, tuple(events), why)


def variance_of(fit: WindowFit) -> NDArray[np.float64]:
    """Return the variance of each cluster's points about the mean of their batch."""
    window, points_per_mass, is_whole = fit.window, None, None
    if window.has_weights:
        points_per_mass = np.array([batch.size / batch.mass for batch in window.batches])
    if window.has_summaries:
        is_whole = np.array([batch.summary is None for batch in window.batches])
    variance = np.empty(len(fit.centroids))
    _kernel.find_variance(fit.found, points_per_mass, is_whole, variance)
    return variance


class _InRows(NamedTuple):
    """Clusters in the rows that they have."""

    lineage: Lineage
    fit: WindowFit
    swapped: tuple[int, ...]


def _in_own_rows(before: Before, now: _InRows, limits: Limits) -> _InRows:
    """Return the same clusters, each that goes on in the row that it had before."""
    known = before.lineage.ids
    order = None if now.lineage.ids is known else _rows_kept(known, now.lineage.ids)
    if order is None:
        return now
    return _InRows(
        now.lineage.reordered(order),
        reordered(now.fit, order, limits, before.centroids),
        tuple(sorted(np.argsort(order)[list(now.swapped)].tolist())),
    )


def _rows_kept(before: Ids, now: Ids) -> NDArray[np.int64] | None:
    """Return which row of now goes where, so that every id that goes on has its row; None if so.

    A cluster keeps its row for as long as it lives; newborn clusters take the rows that are free.
    """
    rows = {number: row for row, number in enumerate(before.tolist())}
    order = np.full(len(now), -1, dtype=np.int64)
    newborn = []
    for row, number in enumerate(now.tolist()):
        if number in rows:
            order[rows[number]] = row
        else:
            newborn.append(row)
    # Newborn clusters that have a free row already stay there.
    staying = [row for row in newborn if order[row] < 0]
    order[staying] = staying
    moving = [row for row in newborn if row not in staying]
    order[np.flatnonzero(order < 0)] = moving
    return None if (order == np.arange(len(now))).all() else order


def _changes_told(
    before: Before,
    arrival: DriftTest,
    tested: BatchChanges,
    lineage: Lineage,
    fit: WindowFit,
    index: int,
    structure: Iterable[Event],
) -> tuple[list[Event], Lineage]:
    """Return what the change test found as events, each thing once, and the lineage after it.

    A change of one cluster is an event of that cluster; what concerns all of them, or no single
    one, is a drift.
    """
    is_early = tested.noise.n_batches <= Noise.ENOUGH
    may_be_beyond = tested.noise.n_batches >= BEYOND_NOISE_BATCHES
    new = set(lineage.ids.tolist()) - set(before.lineage.ids.tolist())
    rows = {number: row for row, number in enumerate(lineage.ids.tolist()) if number not in new}
    of_cluster: list[Event] = []
    for change in _strongest(tested.changes):
        number = int(tested.chapter.ids[change.cell])
        row = rows.get(number)
        if row is None or not _is_of_cluster(change, row, before, fit):
            continue
        if change.kind is ChangeKind.TREND:
            event = Event("trend", number, value=change.value, over=change.n_batches)
        elif change.kind is ChangeKind.PLACE:
            # In a season the centroid before the batch is that of another phase.
            in_season = tested.chapter.season is not None
            value = change.value if in_season else _distance(change, row, before, fit)
            sd = _radius(before.lineage, row)
            event = Event(
                "moved", number, value=value, z=change.z, over=_over(change),
                unconfirmed=is_early and not (may_be_beyond and value >= BEYOND_NOISE_SD * sd),
            )  # fmt: skip
        else:
            kind = "grew" if change.value > change.was else "shrank"
            event = Event(
                kind, number, value=change.value, was=change.was, z=change.z, over=_over(change),
                unconfirmed=is_early,
            )  # fmt: skip
        of_cluster.append(event)
    events = sorted(of_cluster, key=lambda event: rows[event.cluster or 0])
    concerns_all = [
        change
        for change in tested.changes
        if change.kind in _OF_ALL or (change.kind is ChangeKind.SPREAD and change.cell < 0)
    ]
    # What began or ended explains what the newest batch shows, not what was there before it.
    is_explained = any(True for _ in structure) and any(
        change.n_batches == 1 for change in tested.changes
    )
    if concerns_all or not (of_cluster or is_explained):
        events = [
            _drift(concerns_all or list(tested.changes), before, arrival, is_early, may_be_beyond),
            *events,
        ]
    assert before.step is not None
    assert before.step.masses is not None
    return events, lineage.changed(
        sorted(rows.values()), index, fit.window.n_batches, before.centroids, before.step.masses,
        before.lineage.variance,
    )  # fmt: skip


def _strongest(changes: Iterable[Change]) -> list[Change]:
    """Return for each cell and kind the change over the fewest batches: those of single clusters.

    A cluster that moved has no trend, too.
    """
    found: dict[tuple[ChangeKind, int], Change] = {}
    for change in changes:
        if change.kind in (ChangeKind.PLACE, ChangeKind.SHARE, ChangeKind.TREND):
            found.setdefault((change.kind, change.cell), change)
    return [
        change
        for (kind, cell), change in found.items()
        if kind is not ChangeKind.TREND or (ChangeKind.PLACE, cell) not in found
    ]


def _over(change: Change) -> int | None:
    return change.n_batches if change.n_batches > 1 else None


def _distance(change: Change, row: int, before: Before, fit: WindowFit) -> float:
    """Return how far a cluster moved: by its newest points, or over the batches of the change."""
    if change.n_batches > 1:
        return change.value
    mean = fit.sums.sums[-1, row] / max(fit.sums.masses.item(-1, row), 1e-300)
    return dist(mean.tolist(), before.centroids[row].tolist())


def _radius(lineage: Lineage, row: int) -> float:
    """Return the standard deviation of a cluster's columns."""
    return sqrt(lineage.variance.item(row) / lineage.home.shape[1])


def _is_of_cluster(change: Change, row: int, before: Before, fit: WindowFit) -> bool:
    """Whether the cluster itself shows at least half of a change in its cell by the newest batch.

    Points of a new cluster may have come to an old one's cell: that one has neither moved nor
    grown.
    """
    if change.n_batches > 1:  # too slow for the newest batch to show it
        return True
    masses = fit.sums.masses[-1]
    if change.kind is ChangeKind.PLACE:
        return bool(masses[row] > 0) and _distance(change, row, before, fit) >= change.value / 2
    share = masses.item(row) / float(masses.sum())
    return bool((share - change.was) / (change.value - change.was) >= 0.5)


def _drift(
    changes: list[Change], before: Before, arrival: DriftTest, is_early: bool, may_be_beyond: bool
) -> Event:
    """Return the drift that these changes are, with the estimate of epsilon over their batches."""
    change = max(changes, key=lambda change: change.z)
    shortest = min(change.n_batches for change in changes)
    newest = [] if arrival.estimate is None else [arrival.estimate]
    estimates = [*before.estimates, *newest][-shortest:]
    value = se = None
    if estimates:
        value = sum(estimate.epsilon for estimate in estimates) / len(estimates)
        se = hypot(*(estimate.se for estimate in estimates)) / len(estimates)
    is_beyond = may_be_beyond and value is not None and 1 + value >= BEYOND_NOISE_ERROR
    return Event(
        "drift", value=value, was=se, z=change.z or None, over=shortest if shortest > 1 else None,
        unconfirmed=is_early and not is_beyond,
    )  # fmt: skip
