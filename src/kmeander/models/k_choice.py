"""K that follows: after Lloyd clusters are parted, joined or given up where that lasts.

`follow` is the stage of a step; `first_clusters` begins a stream; `with_clusters` changes K by
hand. All three decide by the criterion of `kmeander.tracking.number_of_clusters`.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from kmeander.arguments import generator_for
from kmeander.arrays import Centroids, frozen
from kmeander.events import KINDS, Event
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.local_search import CANDIDATES, swap_centroids
from kmeander.kmeans.seeding import draw_seeds
from kmeander.models.changed_k import Clustering, most_gained, nearest_gone
from kmeander.models.cluster_range import ClusterRange
from kmeander.models.k_state import KChoice, Missing
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.state import State
from kmeander.records import Ids
from kmeander.tracking.lineage import Sleeper, endings
from kmeander.tracking.number_of_clusters import (
    are_apart,
    halves,
    judge,
    least_share,
    most_alike,
    noise_of,
)
from kmeander.tracking.tracker import Before, Tracked

# Batches after which a cluster that ended is not recognised any more.
RETURNS_WITHIN = 50
# A cluster is missing where it gets this share of the rows that it used to get, or less, in two
# batches in which it should have had this number of rows in all.
MISSING_SHARE = 0.1
MISSING_ROWS = 12.0
# Evidence lasts for two batches, and for more where rows depend on one another, up to this many.
MOST_LASTING = 12
# Rows of the first batch for each cluster from which joining begins.
FIRST_ROWS = 8


def follow(
    known: State, before: Before, tracked: Tracked, settings: PrivilegedSettings, index: int
) -> tuple[Tracked, KChoice]:
    """Part, join or give up clusters where that has been right for two batches.

    Parameters
    ----------
    known : State
        Before the batch.
    before : Before
    tracked : Tracked
        The batch, learned and followed with as many clusters as before.
    settings : PrivilegedSettings
    index : int
        Number of the batch.
    """
    choice = known.k_choice.kept()
    if not settings.follows_k:
        return tracked, choice
    tracked, gone = _recognised(before, tracked, choice.gone, index)
    fit = tracked.fit
    noise = noise_of(tracked.chapter.noise)
    verdict = judge(fit.window.divided(fit.found), fit.centroids, fit.masses, noise)
    n_lasting = min(1 + ceil(noise), MOST_LASTING)  # batches
    n_two, n_one = len(verdict.holds_two), len(verdict.are_one)
    two_for = choice.two_for + 1 if n_two else 0
    one_for = choice.one_for + 1 if n_one else 0
    now = Clustering.of(before, tracked, choice.places, gone, settings, index)
    missing = _missing(known, tracked, choice.missing)
    low, high = settings.clusters
    ids = tracked.lineage.ids.tolist()
    for one in missing:
        if one.is_small and 0 < two_for < n_lasting:
            continue  # local search may have taken its centroid from the two
        if one.n_batches >= n_lasting and one.is_sure(MISSING_ROWS) and now.n_clusters > low:
            now = now.without(ids.index(one.number))
            ids = now.lineage.ids.tolist()
    for pair in verdict.are_one[: choice.n_one] if one_for >= n_lasting else ():
        numbers = [int(tracked.lineage.ids[row]) for row in pair]
        if now.n_clusters > low and all(number in ids for number in numbers):
            found = now.joined(*(ids.index(number) for number in numbers))
            if found is not None:
                now, n_one = found, n_one - 1
                ids = now.lineage.ids.tolist()
    for row in verdict.holds_two[: choice.n_two] if two_for >= n_lasting else ():
        number = int(tracked.lineage.ids[row])
        if now.n_clusters < high and number in ids:
            found = now.parted(ids.index(number))
            if found is not None:
                now, n_two = found, n_two - 1
                ids = now.lineage.ids.tolist()
    choice = choice._replace(
        n_two=n_two,
        n_one=n_one,
        two_for=two_for if n_two else 0,
        one_for=one_for if n_one else 0,
        missing=tuple(one for one in missing if one.number in ids),
        gone=tuple(one for one in now.gone if index - one.since < RETURNS_WITHIN),
        places=now.places,
    )
    return now.tracked(), choice


def first_clusters(
    fit: WindowFit, clusters: ClusterRange, seed: int, index: int, limits: Limits
) -> WindowFit:
    """Return the first batch in as many clusters as it has.

    More than enough are joined, pair by pair, as long as any pair is one; then those that hold two
    are parted.
    """
    window = fit.window
    points = np.concatenate([batch.points for batch in window.batches])
    weights = np.concatenate([batch.weights_or_ones for batch in window.batches])
    most = min(clusters.high, max(clusters.low, len(points) // FIRST_ROWS))
    rng = generator_for(seed, index, 4)
    seeds = draw_seeds(points, weights, most, rng, limits.threads)
    if len(seeds.rows) > clusters.low:
        start = limits.metric.centroids(seeds.centroids)
        refined = swap_centroids(window.divided(None), start, CANDIDATES, rng, limits)
        many = fit_window(refined.window, refined.centroids, limits)
        fit = _joined(many, clusters.low, limits)
    return _parted(fit, clusters.high, limits)._replace(reseeded=())


def _joined(fit: WindowFit, low: int, limits: Limits) -> WindowFit:
    while len(fit.centroids) > low:
        pair = most_alike(fit.window.divided(fit.found), fit.centroids, fit.masses)
        if pair is None:
            return fit
        centroids = _without_pair(fit.centroids, fit.masses, pair)
        start = limits.metric.centroids(frozen(centroids))
        fit = fit_window(fit.window.divided(None), start, limits).following(fit)
    return fit


def _without_pair(centroids: Centroids, masses: Centroids, pair: tuple[int, int]) -> Centroids:
    one, other = pair
    share = float(masses[other] / max(masses[one] + masses[other], 1e-300))
    kept = np.array(centroids)
    kept[one] += share * (centroids[other] - centroids[one])
    return np.delete(kept, other, axis=0)


def _parted(fit: WindowFit, high: int, limits: Limits) -> WindowFit:
    refused: set[bytes] = set()
    while len(fit.centroids) < high:
        window = fit.window.divided(fit.found)
        rows = [
            row
            for row in judge(window, fit.centroids, fit.masses).holds_two
            if fit.centroids[row].tobytes() not in refused
        ]
        found = halves(window, rows[0]) if rows else None
        if found is None:
            return fit
        start = limits.metric.centroids(
            frozen(np.concatenate([np.delete(fit.centroids, rows[0], axis=0), found.means]))
        )
        again = fit_window(fit.window.divided(None), start, limits)
        n = len(start)
        window = again.window.divided(again.found)
        if are_apart(window, again.centroids, again.masses, (n - 2, n - 1)):
            fit = again.following(fit)
        else:
            refused.add(fit.centroids[rows[0]].tobytes())
    return fit


def with_clusters(known: State, settings: PrivilegedSettings) -> State:
    """Return what is known with as many clusters as the settings allow, the nearest number.

    Clusters are parted where that saves most of the error, and joined where it costs least.
    """
    if known.centroids is None or known.lineage is None or known.chapter is None:
        return known
    wanted = settings.clusters.nearest(len(known.centroids))
    if wanted == len(known.centroids):
        return known
    now = Clustering.standing(known, settings)
    while now.n_clusters > wanted:
        now = now.joined_by_force(*now.cheapest_pair())
    while now.n_clusters < wanted:
        row = most_gained(now.fit)
        found = None if row is None else now.parted(row, by_force=True)
        if found is None:
            break
        now = found
    tracked = now.tracked()
    choice = known.k_choice._replace(
        n_two=0, n_one=0, two_for=0, one_for=0, missing=(), places=now.places,
        events=(*known.k_choice.events, *tracked.events),
    )  # fmt: skip
    step = known.step and replace(
        known.step, centroids=tracked.fit.centroids, masses=tracked.fit.masses,
        ids=tracked.lineage.ids, moved=tracked.fit.moved, surrogate_error=tracked.fit.error,
        ended=tracked.lineage.whereabouts, reseeded=(), swapped=(), merged=(), holds_two=(),
    )  # fmt: skip
    return known._replace(
        step=step,
        window=tracked.fit.window,
        centroids=tracked.fit.centroids,
        expected_error=tracked.fit.expected_error,
        lineage=tracked.lineage,
        chapter=tracked.chapter,
        k_choice=choice,
    )


def _missing(known: State, tracked: Tracked, before: tuple[Missing, ...]) -> tuple[Missing, ...]:
    """Return the clusters that get hardly any rows, with what they would have had."""
    fit, lineage = tracked.fit, tracked.lineage
    newest = fit.sums.masses[-1]
    batch = fit.window.batches[-1]
    n_rows = batch.size / noise_of(tracked.chapter.noise)
    found = n_rows * newest / batch.mass
    so_far = {one.number: one for one in before}
    assert known.step is not None
    assert known.step.masses is not None
    assert known.lineage is not None
    shares = dict(
        zip(known.lineage.ids.tolist(), known.step.masses / known.step.masses.sum(), strict=False)
    )
    least = least_share(len(fit.masses)) * float(fit.masses.sum())
    if not before and lineage.ids is known.lineage.ids and not (fit.masses < least).any():
        expected = known.step.masses * (n_rows / known.step.masses.sum())
        if (found > MISSING_SHARE * expected).all():
            return ()
    missing = []
    for row, number in enumerate(lineage.ids.tolist()):
        one = so_far.get(number) or Missing(
            number, float(shares.get(number, 0.0)), 0, 0.0, 0.0, is_small=False
        )
        one = one._replace(
            n_batches=one.n_batches + 1,
            expected=one.expected + one.share * n_rows,
            found=one.found + float(found[row]),
            is_small=bool(fit.masses[row] < least),
        )
        if one.is_small or (one.share > 0 and one.found <= MISSING_SHARE * one.expected):
            missing.append(one)
    return tuple(missing)


def _recognised(
    before: Before, tracked: Tracked, gone: tuple[Sleeper, ...], index: int
) -> tuple[Tracked, tuple[Sleeper, ...]]:
    """Give newborn clusters the ids of those that ended where they lie, and note who ended."""
    lineage, ids = tracked.lineage, tracked.lineage.ids.copy()
    events, left = list(tracked.events), list(gone)
    for row in np.flatnonzero(ids >= before.lineage.next_id).tolist():
        one = nearest_gone(tuple(left), tracked.fit.centroids[row])
        if one is None or one.number in ids:
            continue
        left.remove(one)
        events = [event for event in events if event.cluster != int(ids[row])]
        events.append(Event("returned", one.number))
        events = [
            Event(event.kind, event.cluster, one.number)
            if event.other == int(ids[row]) else event for event in events
        ]  # fmt: skip
        ids[row] = one.number
    if len(left) < len(gone):
        events.sort(key=lambda event: KINDS.index(event.kind))
        tracked = tracked._replace(
            lineage=lineage._replace(ids=frozen(ids)), events=tuple(events),
            chapter=tracked.chapter._replace(ids=frozen(_renamed(tracked, ids))),
        )  # fmt: skip
    rows = {number: row for row, number in enumerate(before.lineage.ids.tolist())}
    for number, heir in endings(tracked.events):
        if number in rows:
            row = rows[number]
            left.append(
                Sleeper(
                    number,
                    heir,
                    index,
                    before.centroids[row],
                    before.lineage.variance.item(row),
                )
            )
    return tracked, tuple(left)


def _renamed(tracked: Tracked, ids: Ids) -> Ids:
    """Return the ids of the chapter's cells, where it began with this batch the new ones."""
    is_new = (tracked.chapter.ids == tracked.lineage.ids).all()
    return ids if is_new else tracked.chapter.ids
