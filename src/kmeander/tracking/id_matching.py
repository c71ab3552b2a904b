"""Matching of cluster ids after a batch: an id goes with its points, not with its row.

"Moved, or new?" of docs/explanation/alarms.md has the rules in words.
"""

from __future__ import annotations

from math import dist, fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, frozen
from kmeander.events import Event
from kmeander.kmeans.lloyd import WindowFit
from kmeander.kmeans.window import Window
from kmeander.tracking.lineage import NOBODY, Lineage

Table = NDArray[np.float64]
Vector = NDArray[np.float64]

# A cluster that has this share of another's points, or owes it this share of its own, is the same.
SAME = 0.5
# A cluster that gets less than this share of what it used to get lacks mass.
LACKING = 0.1
# A cluster that grew by this share of what another lost, and whose mean is as near to the common
# mean as this share of their distance, has taken it over.
GAINED = 0.5
NEAR = 0.25
# A newcomer that lies more than this number of radii from where a cluster was did not come from it.
RADII_APART = 4.0


class Matched(NamedTuple):
    """The lineage after a batch, and the clusters that began and ended with it."""

    lineage: Lineage
    begun: list[Event]
    ended: list[Event]


class _Past(NamedTuple):
    """Clusters as they were, one per row."""

    homes: Centroids
    variance: Vector
    shares: Vector  # of the points that they used to get


def match_ids(
    lineage: Lineage,
    window: Window,
    fit: WindowFit,
    before: Centroids,
    arrived: _kernel.Partition,
    suspects: list[int],
    index: int,
    remembered: Window | None = None,
) -> Matched:
    """Decide which ids go on, end and begin, by where the points went.

    Parameters
    ----------
    lineage : Lineage
        Before the batch.
    window : Window
        The batches before Lloyd ran, the newest included; its partition is that by `before`.
    fit : WindowFit
        After it.
    before : ndarray of shape (n_clusters, n_features)
        Centroids before the batch.
    arrived : Partition
        Which of `before` is nearest to each point of the newest batch.
    suspects : list of int
        Rows whose centroid is not where it was, in order; all others keep their ids.
    index : int
        Number of the batch.
    remembered : Window, optional
        The batches before this one came, if others than those of `window`.
    """
    flow, newest = _flows(window, fit, arrived, len(before))
    # Where clusters were before what is happening now, if it began as lately as the window.
    is_recent = index - lineage.since <= 2 * window.n_batches
    if len(suspects) == 1:
        (row,) = suspects
        home, radius = before[row], lineage.variance[row]
        if is_recent[row]:
            home, radius = lineage.home[row], lineage.home_variance[row]
        if _stays(row, flow, home, float(radius), fit.centroids):
            return Matched(lineage, [], [])
    gets = newest.sum(axis=1)
    past = _Past(
        np.where(is_recent[:, np.newaxis], lineage.home, before),
        np.where(is_recent, lineage.home_variance, lineage.variance),
        np.where(is_recent, lineage.home_share, gets),
    )
    older = flow.sum(axis=1) - gets * window.batches[-1].mass
    if len(window) == 1 and remembered is not None:
        older = remembered.cluster_masses(len(before))
    used_to_get = np.maximum(older / max(float(older.sum()), 1e-300), past.shares)
    is_lacking = (gets <= LACKING * used_to_get).tolist()
    sources = _sources(flow, suspects, is_lacking, fit, past._replace(shares=used_to_get))
    changed = [row for row in suspects if sources[row] != row]
    if not changed:
        return Matched(lineage, [], [])
    ids, since = lineage.ids.copy(), lineage.since.copy()
    home, home_variance = lineage.home.copy(), lineage.home_variance.copy()
    home_share = lineage.home_share.copy()
    batches, held, parents = lineage.batches.copy(), lineage.held.copy(), lineage.parents.copy()
    next_id = lineage.next_id
    for row in changed:
        since[row], source = index, sources[row]
        if source == NOBODY:
            ids[row], next_id = next_id, next_id + 1
            home[row], home_variance[row], home_share[row] = fit.centroids[row], np.inf, 0.0
        else:
            ids[row] = lineage.ids[source]
            home[row], home_variance[row] = past.homes[source], past.variance[source]
            home_share[row] = lineage.home_share[source]
            batches[row], held[row] = lineage.batches[source], lineage.held[source]
            parents[row] = lineage.parents[source]
    begun = [row for row in changed if sources[row] == NOBODY]
    lost = sorted(set(changed) - {sources[row] for row in changed})
    ends = [_end(row, flow, is_lacking[row], sources, lineage.ids, ids, fit, past) for row in lost]
    starts = [_start(row, flow, newest, sources, ids, fit.centroids, past) for row in begun]
    matched = lineage._replace(
        ids=frozen(ids),
        next_id=next_id,
        since=frozen(since),
        home=frozen(home),
        home_variance=frozen(home_variance),
        home_share=frozen(home_share),
        batches=frozen(batches),
        held=frozen(held),
        parents=frozen(parents),
    )
    return Matched(matched, starts, ends)


def _flows(
    window: Window, fit: WindowFit, newest: _kernel.Partition, n_clusters: int
) -> tuple[Table, Table]:
    """Return the weight that went from each row before to each row now.

    First the decayed weight in all batches, then that in the newest, as a share of it. Its points
    come from the nearest of the old centroids.
    """
    flow, arrived = np.empty((2, n_clusters, n_clusters))
    _kernel.flows(window.handle, window.partition, newest, fit.found, flow, arrived)
    arrived /= window.batches[-1].mass
    return flow, arrived


def _stays(row: int, flow: Table, home: Centroids, variance: float, centroids: Centroids) -> bool:
    """Whether the only suspect is what it was: most of its points were its own.

    As `_sources` would say, with less to look at.
    """
    own, gap = flow.item(row, row), dist(home.tolist(), centroids[row].tolist())
    is_far = gap * gap > 1e290 * variance
    return not is_far and own > 0 and own >= SAME * fsum(flow[:, row].tolist())


def _sources(
    flow: Table, suspects: list[int], is_lacking: list[bool], fit: WindowFit, past: _Past
) -> list[int]:
    """Return for each row the row whose id it has from now on; -1 for a new cluster.

    The largest flows are served first, of those that make two clusters the same; a flow that leads
    away from where the cluster was counts less. The last points of a cluster that gets none any
    more do not make it stay where most came from another that goes on, unless the two have become
    one.
    """
    sources = list(range(len(flow)))
    for row in suspects:
        sources[row] = NOBODY
    gave, got = flow[suspects].tolist(), flow[:, suspects].T.tolist()
    got_in_all = [fsum(flows) for flows in got]
    ranked = []
    for then, flows in zip(suspects, gave, strict=True):
        enough = SAME * fsum(flows)
        for now, into in zip(suspects, got_in_all, strict=True):
            went = flows[now]
            if went > 0 and (went >= enough or went >= SAME * into):
                gap = dist(past.homes[then].tolist(), fit.centroids[now].tolist())
                # A cluster of one point has hardly a radius: then all is far.
                rank = went / (1.0 + gap * gap / max(past.variance.item(then), 1e-300))
                ranked.append((-rank, then, now))
    free = set(suspects)
    for rank, then, now in sorted(ranked):
        if rank < 0 and then in free and sources[now] == NOBODY:
            free.discard(then)
            sources[now] = then
    for row, flows, into in zip(suspects, got, got_in_all, strict=True):
        own = sources[row]
        if own == NOBODY or not is_lacking[own] or flows[own] >= SAME * into:
            continue
        flows[own] = 0.0
        other = flows.index(max(flows))
        if other in sources and not _is_of_both(row, own, np.array([other]), fit, past)[0]:
            sources[row] = NOBODY
    return sources


def _is_of_both(
    rows: int | NDArray[np.intp], one: int, others: NDArray[np.intp], fit: WindowFit, past: _Past
) -> NDArray[np.bool_]:
    """Whether the newest points of `rows` have the mean of `one` and each of `others` together."""
    homes, shares = past.homes, past.shares
    masses = np.maximum(fit.sums.masses[-1, rows], 1e-300)
    means = fit.sums.sums[-1, rows] / masses[..., np.newaxis]
    part = shares[others] / np.maximum(shares[others] + shares[one], 1e-300)
    ways = homes[others] - homes[one]
    off = means - homes[one] - part[:, np.newaxis] * ways
    near: NDArray[np.bool_] = (off**2).sum(axis=-1) <= NEAR**2 * (ways**2).sum(axis=-1)
    return near


def _end(
    row: int,
    flow: Table,
    is_lacking: bool,
    sources: list[int],
    ids_before: NDArray[np.int64],
    ids: NDArray[np.int64],
    fit: WindowFit,
    past: _Past,
) -> Event:
    """Return what became of the cluster that was in `row`."""
    cluster = int(ids_before[row])
    flows = flow[row].tolist()
    # To clusters that were there before.
    went = [
        amount if source != NOBODY else 0.0 for amount, source in zip(flows, sources, strict=True)
    ]
    heir = went.index(max(went))
    if went[heir] <= 0 or is_lacking:
        heir = _taker(row, np.array(sources), fit, past)
    return Event("died", cluster) if heir == NOBODY else Event("absorbed", cluster, int(ids[heir]))


def _taker(row: int, sources: NDArray[np.intp], fit: WindowFit, past: _Past) -> int:
    """Return the row of the cluster that has taken over the points that `row` used to get, or -1.

    When two clusters become one, the one that is left has the share of both, and the mean of both.
    """
    masses = fit.sums.masses[-1]
    lost, gained = past.shares[row], masses / masses.sum() - past.shares[sources]
    rows = np.flatnonzero((sources != NOBODY) & (gained >= GAINED * lost) & (masses > 0))
    if lost > 0 and len(rows):
        rows = rows[_is_of_both(rows, row, sources[rows], fit, past)]
        if len(rows):
            return int(rows[np.argmax(gained[rows])])
    return NOBODY


def _start(
    row: int,
    flow: Table,
    newest: Table,
    sources: list[int],
    ids: NDArray[np.int64],
    centroids: Centroids,
    past: _Past,
) -> Event:
    """Return where the cluster that is now in `row` comes from."""
    cluster, share = int(ids[row]), float(newest[:, row].sum())
    going_on = set(sources)  # by their rows before
    came = [
        amount if then in going_on else 0.0 for then, amount in enumerate(flow[:, row].tolist())
    ]
    source = came.index(max(came))
    if came[source] <= 0:
        return Event("born", cluster, value=share)
    parent = sources.index(source)
    home, squared = past.homes[source].tolist(), RADII_APART**2 * past.variance.item(source)
    child_is_apart, parent_is_apart = (
        dist(centroids[place].tolist(), home) ** 2 > squared for place in (row, parent)
    )
    # Where both are apart the cluster has gone in two directions.
    if child_is_apart and not parent_is_apart:
        return Event("born", cluster, value=share)
    return Event("split", cluster, int(ids[parent]), value=share)
