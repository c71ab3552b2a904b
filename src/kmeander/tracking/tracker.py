"""What a batch did to the clusters: ids, events, and the reasons for a drift."""

from __future__ import annotations

from dataclasses import replace
from math import dist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, frozen
from kmeander.events import Event, Explanation
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.partition import Partition, Totals
from kmeander.kmeans.window import Window
from kmeander.records import Ids, Step
from kmeander.tracking.explain import explain
from kmeander.tracking.id_matching import settle_ids
from kmeander.tracking.lineage import Lineage
from kmeander.tracking.significance import (
    FALSE_ALARMS,
    Change,
    Changes,
    Levels,
    changes_beyond_noise,
    levels_for,
)


class Followed(NamedTuple):
    """Ids and events of one batch."""

    lineage: Lineage
    events: tuple[Event, ...]
    why: Explanation | None


def follow(
    lineage: Lineage,
    window: Window,
    fit: WindowFit,
    before: Centroids,
    moved: NDArray[np.float64],
    newest: Partition,
    index: int,
    *,
    remembered: Window | None = None,
    swapped: tuple[int, ...] = (),
    drift: tuple[float | None, float | None, float | None] = (None, None, None),
    last: Step | None = None,
    n_threads: int | None = None,
    false_alarms: float = FALSE_ALARMS,
) -> Followed:
    """Say what batch `index` did.

    Parameters
    ----------
    lineage : Lineage
        Before the batch.
    window : Window
        Its batches with the newest, partitioned by `before` (the newest is not).
    fit : WindowFit
        Where Lloyd ended.
    before : ndarray of shape (n_clusters, n_features)
        Centroids before the batch.
    moved : ndarray of shape (n_clusters,)
        How far each row of the centroids is from where it was.
    newest : Partition
        Which of `before` is nearest to each point of the newest batch.
    index : int
    remembered : Window, optional
        The batches that were remembered before this one came, partitioned by `before`.
    swapped : tuple of int
        Rows that were put elsewhere on purpose.
    drift : tuple of float or None
        Epsilon, its standard error and z.
    last : Step, optional
        Of the batch before.
    n_threads : int, optional
    false_alarms : float
        Expected in 1000 batches of a stream that does not change.
    """
    levels = levels_for(len(before), false_alarms)
    # Where all older batches were forgotten at once, they are compared as they were before that.
    has_forgotten = len(window.batches) == 1 and remembered is not None and len(remembered) > 0
    compared = fit
    if has_forgotten:
        assert remembered is not None
        window_then = remembered.joined_by(window.batches[-1].points, window.batches[-1].weights)
        compared = fit_window(window_then, before, Limits(n_threads=n_threads), only_assign=True)
    changes = changes_beyond_noise(
        compared.found, compared.window, lineage.since, index, moved, levels
    )
    events: list[Event] = []
    if _is_drift(drift, last, levels):
        events.append(Event("drift", value=drift[0], was=drift[1], z=drift[2]))
    settled = lineage
    new: set[int] = set()
    # Only a centroid that has left its own cluster can have become another one's.
    suspects: list[int] = []
    if changes.elsewhere or fit.reseeded or swapped:
        suspects = sorted({*changes.elsewhere, *fit.reseeded, *swapped})
        found = settle_ids(lineage, window, fit, before, newest, suspects, index, remembered)
        settled = found.lineage
        events += found.events
        new = set(settled.ids.tolist()) - set(lineage.ids.tolist())
    if changes.moved or changes.shares:
        ids = lineage.ids if has_forgotten else settled.ids  # of the rows that were compared
        if suspects or has_forgotten:
            changes = _confirmed(changes, fit.totals, ids, settled, before)
        told, settled = _tell(changes, ids, settled, new, compared.window.n_batches, before, index)
        events += told
    is_drift = bool(events) and events[0].kind == "drift"
    why = None
    if is_drift:
        why = explain(
            remembered or window, window.batches[-1], newest, before, lineage.ids, n_threads
        )
    return Followed(settled.varying(frozen(changes.variance)), tuple(events), why)


def _confirmed(
    changes: Changes, totals: Totals, ids: Ids, lineage: Lineage, before: Centroids
) -> Changes:
    """Return the changes of which the cluster itself shows at least half.

    Changes are found in the cells of the old centroids. Where a centroid was put elsewhere, points
    of a new cluster may have come to an old one's cell: that cluster has neither moved nor grown.
    """
    masses, sums = totals.masses[-1], totals.sums[-1]
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


def _is_drift(
    drift: tuple[float | None, float | None, float | None], last: Step | None, levels: Levels
) -> bool:
    """Whether a drift begins: while centroids catch up with one, the error is still too large."""
    epsilon, _, z = drift
    if z is None or epsilon is None or z <= levels.drift:
        return False
    if last is None or last.drift_z is None or last.drift_epsilon is None:
        return True
    return last.drift_z <= levels.drift or epsilon > last.drift_epsilon


def _tell(
    changes: Changes,
    ids: Ids,
    lineage: Lineage,
    new: set[int],
    n_batches: int,
    before: Centroids,
    index: int,
) -> tuple[list[Event], Lineage]:
    """Return moves and changes of share, and the lineage with the chapters that they end.

    Rows of the changes are those of `ids`.
    """
    places = {number: row for row, number in enumerate(lineage.ids.tolist()) if number not in new}
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
            home_share[row] = changes.share_before[then]
        since[row] = index
    return events, replace(
        lineage,
        since=frozen(since),
        home=frozen(home),
        home_variance=frozen(home_variance),
        home_share=frozen(home_share),
    )
