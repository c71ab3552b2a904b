"""Births and ends that last: which new clusters are reported, and which ended ones may come back.

Local search moves a centroid to where it lowers the error, and may move it back with the next
batch. Neither is news. So a newborn cluster has its number at once, but is reported when it has
lasted; a cluster that ended is asleep for a while, and has its number back if a centroid returns to
its place. Where the change test finds a change, both are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import dist
from typing import NamedTuple

import numpy as np

from kmeander.arrays import Centroids, frozen
from kmeander.events import Event
from kmeander.kmeans.lloyd import WindowFit
from kmeander.tracking.lineage import LASTED, NOBODY, Lineage, Sleeper, endings

# A newborn cluster has lasted when it has had this share of `LASTED` batches in a row, or half of
# an equal share where there are many clusters, and this number of rows in all.
LASTING_SHARE = 0.02
LASTING_ROWS = 10.0
# One that begins with this share of a batch is reported at once.
LARGE_SHARE = 0.2
# Batches after which the end of a cluster that is asleep is reported.
SLEEPING_BATCHES = 50


class Settled(NamedTuple):
    """The lineage after a batch, and the births and ends that are reported."""

    lineage: Lineage
    events: tuple[Event, ...]


def settle(
    before: Lineage,
    matched: Lineage,
    begun: Sequence[Event],
    ended: Sequence[Event],
    fit: WindowFit,
    centroids: Centroids,
    index: int,
    *,
    at_once: bool,
) -> Settled:
    """Decide what is reported of the clusters that began and ended, now or lately.

    Nothing is where none did and all is settled.

    Parameters
    ----------
    before : Lineage
        Before the batch.
    matched : Lineage
        After it, in the order of the rows of `fit`; newborn clusters have new ids.
    begun, ended : sequence of Event
        What `match_ids` found.
    fit : WindowFit
    centroids : ndarray of shape (n_clusters, n_features)
        Before the batch.
    index : int
    at_once : bool
        Whether the change test found a change.
    """
    rows_before = {number: row for row, number in enumerate(before.ids.tolist())}
    asleep, unreported, ends = list(matched.asleep), [], []
    for event in ended:
        assert event.cluster is not None
        row = rows_before[event.cluster]
        heir = NOBODY if event.other is None else event.other
        if before.is_provisional[row]:  # its birth was not reported
            unreported.append((event.cluster, heir))
        elif at_once:
            ends.append(event)
        else:
            asleep.append(
                Sleeper(event.cluster, heir, index, centroids[row], before.variance.item(row))
            )
    # Their numbers go to what comes to their rows: until one has lasted there is none to name.
    free = {rows_before[number]: number for number, _ in unreported}
    births, lineage = _with_births(before, matched, begun, asleep, free, fit, at_once)
    dropped = [pair for pair in unreported if pair[0] in free.values()]
    due = [one for one in asleep if at_once or index - one.since >= SLEEPING_BATCHES]
    asleep = [one for one in asleep if one not in due]
    heirs = {
        **dict(matched.ended),
        **dict(dropped),
        **{one.number: one.heir for one in (*asleep, *due)},
        **dict(endings(ends)),
    }
    alive = set(lineage.ids.tolist())
    ends += [_end_of(one, heirs, alive) for one in due]
    pairs = endings(ends)
    lineage = lineage._replace(
        asleep=tuple(asleep),
        dropped=tuple(dropped),
        ended=(*matched.ended, *dropped, *pairs),
        is_settled=not (asleep or dropped or lineage.is_provisional.any()),
    )
    return Settled(lineage, (*births, *ends))


def _with_births(
    before: Lineage,
    matched: Lineage,
    begun: Sequence[Event],
    asleep: list[Sleeper],
    free: dict[int, int],
    fit: WindowFit,
    at_once: bool,
) -> tuple[list[Event], Lineage]:
    """Return the births that are reported, and the lineage.

    Clusters that come back are taken from `asleep`; numbers that can be used again, by row, from
    `free`.
    """
    masses = fit.sums.masses[-1]
    shares = masses / masses.sum()
    n_rows = fit.window.batches[-1].size
    least = min(LASTING_SHARE, 0.5 / len(shares))
    rows = {number: row for row, number in enumerate(matched.ids.tolist())}
    ids, next_id = matched.ids.copy(), before.next_id
    batches, held, parents = matched.batches.copy(), matched.held.copy(), matched.parents.copy()
    born = {}
    for event in begun:
        assert event.cluster is not None
        row = rows[event.cluster]
        sleeper = _nearest(asleep, fit.centroids[row])
        if sleeper is not None:
            asleep.remove(sleeper)
            ids[row], batches[row] = sleeper.number, LASTED
            continue
        if row in free:
            ids[row] = free.pop(row)
        else:
            ids[row], next_id = next_id, next_id + 1
        batches[row], held[row] = 0, 0.0
        parents[row] = _reported_parent(event.other, before)
        born[row] = _birth_of(int(ids[row]), parents.item(row), event.value)
    reported = []
    for row in (batches < LASTED).nonzero()[0].tolist():
        share = shares.item(row)
        lasts = share >= least
        batches[row] = batches[row] + 1 if lasts else 0
        held[row] = held[row] + share * n_rows if lasts else 0.0
        has_lasted = batches[row] >= LASTED and held[row] >= LASTING_ROWS
        if has_lasted or (lasts and at_once) or (row in born and share >= LARGE_SHARE):
            batches[row] = LASTED
            reported.append(born.get(row) or _birth_of(int(ids[row]), parents.item(row), share))
        else:
            batches[row] = min(int(batches[row]), LASTED - 1)
    lineage = matched._replace(
        ids=frozen(ids), next_id=next_id, batches=frozen(batches), held=frozen(held),
        parents=frozen(parents),
    )  # fmt: skip
    return reported, lineage


def _nearest(asleep: Sequence[Sleeper], centroid: Centroids) -> Sleeper | None:
    """Return the cluster asleep whose place a centroid has come back to."""
    place = centroid.tolist()
    gaps = [(dist(one.home.tolist(), place) ** 2, one) for one in asleep]
    near = [(gap, at) for at, (gap, one) in enumerate(gaps) if gap <= one.variance]
    return asleep[min(near)[1]] if near else None


def _reported_parent(parent: int | None, before: Lineage) -> int:
    """Return where a newborn cluster comes from, in numbers that were reported; -1 from nowhere."""
    if parent is None:
        return NOBODY
    rows = np.flatnonzero((before.ids == parent) & before.is_provisional)
    return before.parents.item(int(rows[0])) if len(rows) else parent


def _birth_of(number: int, parent: int, share: float | None) -> Event:
    if parent == NOBODY:
        return Event("born", number, value=share)
    return Event("split", number, parent, value=share)


def _end_of(sleeper: Sleeper, heirs: Mapping[int, int], alive: Set[int]) -> Event:
    """Return what has become of a cluster by now."""
    heir = sleeper.heir
    while heir != NOBODY and heir not in alive:
        heir = heirs.get(heir, NOBODY)
    if heir == NOBODY:
        return Event("died", sleeper.number)
    return Event("absorbed", sleeper.number, heir)
