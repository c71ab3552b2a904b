"""Cluster tracking: what a batch did to the ids, its events, and the reasons for a drift."""

from __future__ import annotations

from math import dist
from typing import NamedTuple

from kmeander import _kernel
from kmeander.arrays import Centroids, frozen
from kmeander.events import Event, Explanation
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.window import Window
from kmeander.records import Ids, Step
from kmeander.tracking.drift_test import DriftTest
from kmeander.tracking.explain import explain
from kmeander.tracking.id_matching import match_ids
from kmeander.tracking.lineage import Lineage
from kmeander.tracking.significance import (
    FALSE_ALARMS,
    Change,
    Changes,
    Evidence,
    Levels,
    levels_for,
    significant_changes,
)


class Before(NamedTuple):
    """The clusters as they were before a batch."""

    lineage: Lineage
    centroids: Centroids
    window: Window  # the batches remembered, partitioned by the centroids
    step: Step | None = None  # of the batch before


class Tracked(NamedTuple):
    """Ids and events of one batch."""

    lineage: Lineage
    events: tuple[Event, ...] = ()
    why: Explanation | None = None


def track(
    before: Before,
    arrival: DriftTest,
    window: Window,
    fit: WindowFit,
    index: int,
    *,
    swapped: tuple[int, ...] = (),
    limits: Limits | None = None,
    false_alarms: float = FALSE_ALARMS,
) -> Tracked:
    """Follow the clusters through batch `index`.

    Parameters
    ----------
    before : Before
    arrival : DriftTest
        The batch under the centroids before it.
    window : Window
        The aged batches and the newest, partitioned by the centroids before (the newest is not).
    fit : WindowFit
        Where Lloyd ended.
    index : int
    swapped : tuple of int
        Rows whose centroids local search has put elsewhere.
    limits : Limits, optional
    false_alarms : float
        Expected in 1000 batches of a stream that does not change.
    """
    limits = Limits() if limits is None else limits
    lineage, centroids = before.lineage, before.centroids
    assert fit.moved is not None
    levels = levels_for(len(centroids), false_alarms)
    # Where all older batches were forgotten at once, they are compared as they were before that.
    has_forgotten = len(window.batches) == 1 and len(before.window.batches) > 0
    compared = fit
    if has_forgotten:
        newest = window.batches[-1]
        then = before.window.joined_by(newest.points, newest.weights)
        compared = fit_window(then, centroids, limits, only_assign=True)
    changes = significant_changes(
        compared.found, compared.window, lineage.since, index, fit.moved, levels
    )
    events: list[Event] = []
    if arrival.z is not None and arrival.z > levels.drift and _begins(arrival, before.step, levels):
        assert arrival.estimate is not None
        epsilon, se = arrival.estimate
        events.append(Event("drift", value=epsilon, was=se, z=arrival.z))
    matched = lineage
    born: set[int] = set()
    # Only a centroid that has left its own cluster can have become another one's.
    suspects: list[int] = []
    if changes.elsewhere or fit.reseeded or swapped:
        suspects = sorted({*changes.elsewhere, *fit.reseeded, *swapped})
        found = match_ids(
            lineage, window, fit, centroids, arrival.partition, suspects, index, before.window
        )
        matched = found.lineage
        events += found.events
        born = set(matched.ids.tolist()) - set(lineage.ids.tolist())
    if changes.moved or changes.shares:
        ids = lineage.ids if has_forgotten else matched.ids  # of the rows that were compared
        if suspects or has_forgotten:
            changes = _confirmed(changes, fit.sums, ids, matched, centroids)
        n_batches = compared.window.n_batches
        reported, matched = _move_and_share_events(
            changes, ids, matched, born, n_batches, centroids, index
        )
        events += reported
    why = None
    if events and events[0].kind == "drift":
        why = explain(
            before.window,
            window.batches[-1],
            arrival.partition,
            centroids,
            lineage.ids,
            limits.threads,
        )
    return Tracked(
        matched._replace(variance=frozen(changes.evidence_row(Evidence.VARIANCE))),
        tuple(events),
        why,
    )


def _begins(arrival: DriftTest, last: Step | None, levels: Levels) -> bool:
    """Whether a drift begins: while centroids catch up with one, the error is still too large."""
    if last is None or last.drift_z is None or last.drift_epsilon is None:
        return True
    assert arrival.estimate is not None
    return last.drift_z <= levels.drift or arrival.estimate.epsilon > last.drift_epsilon


def _confirmed(
    changes: Changes, known: _kernel.ClusterSums, ids: Ids, lineage: Lineage, before: Centroids
) -> Changes:
    """Return the changes of which the cluster itself shows at least half.

    Changes are found in the cells of the old centroids. Where a centroid was put elsewhere, points
    of a new cluster may have come to an old one's cell: that cluster has neither moved nor grown.
    """
    masses, sums = known.masses[-1], known.sums[-1]
    total = float(masses.sum())
    rows = {number: row for row, number in enumerate(lineage.ids.tolist())}

    def has_moved(change: Change) -> bool:
        row = rows.get(int(ids[change.row]))
        if row is None or masses[row] <= 0:
            return False
        mean = sums[row] / masses[row]
        return dist(mean.tolist(), before[change.row].tolist()) >= change.value / 2

    def has_changed_share(change: Change) -> bool:
        row = rows.get(int(ids[change.row]))
        assert change.was is not None
        share = 0.0 if row is None else masses.item(row) / total
        return bool((share - change.was) / (change.value - change.was) >= 0.5)

    return changes._replace(
        moved=[change for change in changes.moved if has_moved(change)],
        shares=[change for change in changes.shares if has_changed_share(change)],
    )


def _move_and_share_events(
    changes: Changes,
    ids: Ids,
    lineage: Lineage,
    born: set[int],
    n_batches: int,
    before: Centroids,
    index: int,
) -> tuple[list[Event], Lineage]:
    """Return moves and changes of share, and the lineage with `since` reset for those clusters.

    Rows of the changes are those of `ids`.
    """
    places = {number: row for row, number in enumerate(lineage.ids.tolist()) if number not in born}
    events, rows = [], {}
    for change in changes.moved:
        cluster = int(ids[change.row])
        if cluster in places:
            events.append(Event("moved", cluster, value=change.value, z=change.z))
            rows[change.row] = places[cluster]
    for change in changes.shares:
        cluster = int(ids[change.row])
        if cluster in places:
            assert change.was is not None
            kind = "grew" if change.value > change.was else "shrank"
            events.append(Event(kind, cluster, value=change.value, was=change.was, z=change.z))
            rows[change.row] = places[cluster]
    since, home = lineage.since.copy(), lineage.home.copy()
    home_variance, home_share = lineage.home_variance.copy(), lineage.home_share.copy()
    # A chapter as long as the window says where a cluster was; a shorter one is part of a change.
    for then, row in rows.items():
        if index - since[row] >= n_batches - 1:
            home[row], home_variance[row] = before[then], lineage.variance[then]
            home_share[row] = changes.evidence_row(Evidence.SHARE_BEFORE)[then]
        since[row] = index
    return events, lineage._replace(
        since=frozen(since),
        home=frozen(home),
        home_variance=frozen(home_variance),
        home_share=frozen(home_share),
    )
