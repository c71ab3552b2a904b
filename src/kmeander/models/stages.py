"""The stages of a step that FSKM and PSKM share, in the order in which a batch meets them."""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kmeander import _kernel
from kmeander.arguments import generator_for
from kmeander.arrays import Centroids, checked_centroids, frozen_copy
from kmeander.exceptions import InputError, InputTypeError, argument
from kmeander.kmeans.lloyd import Limits, LloydResult, WindowFit, fit_window
from kmeander.kmeans.local_search import Rest, split_and_merge, swap_centroids
from kmeander.kmeans.metric import Metric
from kmeander.kmeans.seeding import kmeans
from kmeander.kmeans.starts import Current, Start
from kmeander.kmeans.window import Remembered, Window
from kmeander.models.describing import remembered
from kmeander.models.k_state import KChoice
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.state import State
from kmeander.records import Batch, Step
from kmeander.tracking.change_test import BatchChanges, Chapter
from kmeander.tracking.drift_test import BASELINE_SIZE, DriftTest
from kmeander.tracking.modality import LABELS_PER_CLUSTER, LEAST_DECAY, Misfits, misfits
from kmeander.tracking.tracker import Tracked

# Of rows of length 1, but for the rounding of those in single precision.
LONGEST_MEAN = 1 + 1e-6


def checked_batch(
    known: State,
    batch: Batch,
    settings: PrivilegedSettings,
    previous: ArrayLike | None,
    current: LloydResult | None,
) -> Batch:
    """Refuse a batch, or centroids that are shared, that do not go on from what is known.

    Returns the batch as points of the metric.
    """
    if not isinstance(batch, Batch):
        raise InputTypeError(
            f"step takes a kmeander.Batch, got {type(batch).__name__}. Wrap the points: "
            f"Batch({known.n_steps}, points)."
        )
    if batch.index != known.n_steps:
        raise InputError(
            f"batch has index {batch.index}, but the model has taken {known.n_steps} batches. "
            "A batch was lost or came twice; pass them in order, each once."
        )
    n_features = batch.points.shape[1]
    if known.n_features is not None and known.n_features != n_features:
        raise InputError(
            f"batch {batch.index} has {n_features} columns, the batches before it have "
            f"{known.n_features}. All batches of a stream need the same columns."
        )
    if known.centroids is None and (previous is not None or current is not None):
        raise InputError(
            "previous and current must be left out until the model has centroids; the first "
            "batch begins with a K-means of its own."
        )
    if current is not None and known.centroids is not None:
        _check_current(current, len(known.centroids), n_features)
    return placed(batch, settings.limits.metric)


def placed(batch: Batch, metric: Metric) -> Batch:
    """Return a batch as points of the metric: on the sphere rows get length 1.

    Means are taken to be those of such rows, so none may be longer.
    """
    if not metric.on_sphere:
        return batch
    if batch.n_means is None:
        return batch.with_points(metric.points(batch.points))
    longest = math.sqrt((batch.points.astype(np.float64) ** 2).sum(axis=1).max())
    if longest > LONGEST_MEAN:
        raise InputError(
            f"means has one of length {longest:g}, and {argument('metric', metric.name)} takes "
            "means of rows of length 1, which are no longer. Divide rows by their length first."
        )
    return batch


def _check_current(current: LloydResult, n_clusters: int, n_features: int) -> None:
    if not isinstance(current, LloydResult):
        raise InputTypeError(
            f"current must be a LloydResult, as weighted_lloyd returns, got "
            f"{type(current).__name__}."
        )
    n_current, n_columns = current.centroids.shape
    if n_current > n_clusters or n_columns != n_features:
        raise InputError(
            f"current has {n_current} centroids of {n_columns} columns, the model has "
            f"{n_clusters} of {n_features}."
        )


def seen_from(known: State, previous: ArrayLike, settings: PrivilegedSettings) -> State:
    """Return what is known as if `previous` had been the centroids so far."""
    assert known.n_features is not None
    metric = settings.limits.metric
    centroids: Centroids = np.asarray(
        metric.points(checked_centroids(previous, known.n_features, "previous"), "previous"),
        np.float64,
    )
    n_clusters = 0 if known.centroids is None else len(known.centroids)
    if len(centroids) != n_clusters:
        raise InputError(f"previous has {len(centroids)} centroids, the model has {n_clusters}.")
    fit = fit_window(known.window, frozen_copy(centroids), settings.limits, only_assign=True)
    return known._replace(
        centroids=fit.centroids, window=fit.window, expected_error=fit.expected_error
    )


def look_for_changes(
    known: State, batch: Batch, arrival: DriftTest, settings: PrivilegedSettings
) -> BatchChanges:
    """Compare the batch with those before it in their chapter, before it is learned."""
    assert known.centroids is not None
    assert known.lineage is not None
    chapter, window, ids = known.chapter, known.window, known.lineage.ids
    if chapter is None:  # a state of before there were chapters
        chapter = Chapter.first(window, known.centroids, ids, settings.season)
    elif chapter.season != settings.season:
        chapter = chapter.next(window, known.centroids, ids, settings.season)
    return chapter.after(batch, arrival.partition, settings.alarm_rate)


def current_of(
    batch: Batch, current: LloydResult | None, k: int, settings: PrivilegedSettings, seed: int
) -> Current:
    """Return how to get C^0, the K-means on the batch alone, if somebody asks for it."""

    def found() -> LloydResult:
        if current is not None:
            # Whether its bounds are those of this batch's points, only the caller knows.
            return replace(current, partition=None)
        rng = generator_for(seed, batch.index)
        return kmeans(batch.points, batch.weights, k, rng, settings.limits)

    return found


def assigned_by(newest: _kernel.Partition, start: Start, batch: Batch, before: Centroids) -> Start:
    """Return the start with the assignment of the batch that the drift test has made.

    It holds where Lloyd begins at the centroids before the batch; the test then counts as the
    first pass.
    """
    if start.centroids is not before:
        return start
    n_measured = batch.n_points * len(before)  # which a plain Lloyd counts among its passes
    return Start(before, start.n_distances + n_measured, start.n_distances_plain, newest)


class Searched(NamedTuple):
    """Where local search ended."""

    window: Window
    start: Start  # for Lloyd
    swapped: tuple[int, ...] = ()


def search(
    window: Window, start: Start, settings: PrivilegedSettings, seed: int, index: int
) -> Searched:
    """Try to put centroids where they are needed more, where the settings ask for it."""
    n_candidates = settings.refinement.n_candidates
    if not n_candidates:
        return Searched(window, start)
    rng = generator_for(seed, index, 2)
    found = swap_centroids(window, start.centroids, n_candidates, rng, settings.limits)
    start = Start(
        found.centroids,
        start.n_distances + found.n_distances,
        start.n_distances_plain + found.n_distances_plain,
        start.newest,
    )
    return Searched(found.window, start, found.swapped)


def seen_by(centroids: Centroids, aged: Window, newest: Remembered, limits: Limits) -> Window:
    """Return the window with a batch, all batches before it divided by these centroids."""
    if not aged.batches:
        return aged.followed_by(newest)
    return fit_window(aged, centroids, limits, only_assign=True).window.followed_by(newest)


class Converged(NamedTuple):
    """Where local search and Lloyd ended."""

    found: Searched
    fit: WindowFit
    swapped: tuple[int, ...]  # clusters whose centroid was put elsewhere by any search
    rest: Rest  # of split-merge, from now on

    def after(self, other: Converged) -> Converged:
        """Return the same, with the distances of another try."""
        start, fit = other.found.start, other.fit
        more = self.found.start.plus(
            start.n_distances + fit.n_distances, start.n_distances_plain + fit.n_distances_plain
        )
        return self._replace(found=self.found._replace(start=more))


def learn_from(
    window: Window,
    start: Start,
    known: State,
    index: int,
    settings: PrivilegedSettings,
    seed: int,
    before: Centroids | None,
    *,
    has_drifted: bool = False,
) -> Converged:
    """Search where the settings ask for it, run Lloyd, and split-merge where that does not rest.

    How far the centroids end from `before` is found on the way.
    """
    found = search(window, start, settings, seed, index)
    keep_sums = known.rho_choice is not None
    fit = fit_window(
        found.window, found.start.centroids, settings.limits, before=before, keep_sums=keep_sums
    )
    if not settings.refinement.splits:
        return Converged(found, fit, found.swapped, known.rest)
    rest = Rest() if has_drifted else known.rest
    if rest.n_left > 0:
        return Converged(found, fit, found.swapped, rest._replace(n_left=rest.n_left - 1))
    fit, elsewhere = split_and_merge(
        fit,
        generator_for(seed, index, 3),
        settings.limits,
        before=before,
        keep_sums=keep_sums,
    )
    swapped = tuple(sorted({*found.swapped, *elsewhere}))
    return Converged(found, fit, swapped, rest.after(has_found=bool(elsewhere)))


def record(
    known: State,
    batch: Batch,
    arrival: DriftTest | None,
    found: Searched,
    tracked: Tracked,
    begun: float,
    limits: Limits,
    history_kept: float = 1.0,
    n_far: int = 0,
    rest: Rest = Rest(),  # noqa: B008  # a tuple
    choice: KChoice = KChoice(),  # noqa: B008  # a tuple
    answered_by: str | None = None,
) -> tuple[State, Step]:
    """Write down what happened: what is known from now on, and the Step."""
    fit = tracked.fit
    estimates, error = known.estimates, None
    epsilon = se = z = None
    if arrival is not None:
        error, z = arrival.error, arrival.z
        if arrival.estimate is not None:
            epsilon, se = arrival.estimate
            estimates = (*estimates, arrival.estimate)[-BASELINE_SIZE:]
    window, lineage, start = fit.window, tracked.lineage, found.start
    provisional: tuple[int, ...] = ()
    asleep: tuple[tuple[int, int], ...] = ()
    ended = lineage.ended
    if not lineage.is_settled:
        provisional = tuple(lineage.ids[lineage.is_provisional].tolist())
        asleep = tuple([(one.number, one.heir) for one in lineage.asleep])
        ended = lineage.whereabouts
    first_time, last_time = batch.times or (None, None)
    memory, names = known.memory, known.memory.names
    if batch.captions is not None or lineage.ids is not (known.lineage and known.lineage.ids):
        memory = remembered(known, batch, tracked, limits)
        names = {**names, **memory.names}
    # Whenever the rows to be looked at are new: each is looked at once, in batches of any size.
    against_k = Misfits()
    n_looked_at = window.n_recent(LABELS_PER_CLUSTER * len(fit.centroids), LEAST_DECAY)
    if batch.index % n_looked_at == 0:
        against_k = misfits(window, fit.centroids, fit.masses)
    step = Step.made(
        index=batch.index,
        n_points=batch.n_rows,
        n_means=batch.n_means,
        waiting=False,
        rho=window.share_kept,
        n_batches=window.n_batches,
        n_summarised=window.n_summarised,
        mass=window.handle.mass,
        prequential_error=error,
        initial_error=fit.initial_error,
        surrogate_error=fit.error,
        batch_error=fit.newest_error,
        centroids=fit.centroids,
        masses=fit.masses,
        moved=fit.moved,
        reseeded=fit.reseeded,
        n_iter=fit.n_iter,
        converged=fit.converged,
        n_distances=start.n_distances + fit.n_distances,
        n_distances_plain=start.n_distances_plain + fit.n_distances_plain,
        expected_error=fit.expected_error,
        drift_epsilon=epsilon,
        drift_se=se,
        drift_z=z,
        history_kept=history_kept,
        swapped=tracked.swapped,
        merged=against_k.merged,
        holds_two=against_k.holds_two,
        ids=lineage.ids,
        events=(*known.k_choice.events, *tracked.events),
        why=tracked.why,
        noise=tracked.chapter.noise,
        n_far=n_far,
        provisional=provisional,
        asleep=asleep,
        dropped=lineage.dropped,
        ended=ended,
        memory=answered_by,
        filled=None,
        first_time=first_time,
        last_time=last_time,
        profiles=None,
        names=names,
        columns=None,
        seconds=perf_counter() - begun,
    )
    learned = State(
        window=window,
        n_steps=batch.index + 1,
        n_features=batch.points.shape[1],
        centroids=fit.centroids,
        concept=batch.concept,
        step=step,
        expected_error=fit.expected_error,
        estimates=estimates,
        rho_choice=known.rho_choice,
        trial=known.trial,
        rest=rest,
        lineage=lineage,
        chapter=tracked.chapter,
        preparation=known.preparation,
        memory=memory,
        k_choice=choice,
    )
    return learned, step
