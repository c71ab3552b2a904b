"""Coreset of old batches: weighted means of their points, so that a long memory stays small.

With ``rho**t`` each arrival makes all batches weigh less by the same factor, so points of different
ages may share a mean for ever; with two speeds each batch is summarised alone. A mean has the
weight of its points, and what they add to any error beyond what it adds is a constant, kept with
the batch; so errors and centroids are exact as long as no cluster wants only some of the points
behind a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kmeander import _kernel
from kmeander.arrays import Centroids, Labels, frozen
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.window import Remembered, Summary, Window

# Batches are summarised together up to a quarter of all points, and half of those are left ...
_SHARE_OF_POINTS = 1 / 4
# ... and up to an eighth of the time that is remembered: they leave together.
_SHARE_OF_TIME = 1 / 8

# With two speeds a batch becomes a quarter as many points each time that it comes of these ages.
THINNED_AT, _THINNED_TO = (3.0, 10.0, 32.0), 4


@dataclass(frozen=True, eq=False)
class Summarised:
    """A window that fits, and the distances it took to find the clusters of its new points."""

    window: Window
    n_distances: int


@dataclass(frozen=True, eq=False)
class _Part:
    """One batch of a window, with its own partition."""

    batch: Remembered
    age: float
    decay: float
    partition: _kernel.Partition
    kept: float = 1.0  # what alarms have left of its weight

    @property
    def n_points(self) -> int:
        return len(self.batch.points)

    @property
    def weight_of_a_point(self) -> float:
        return self.decay * self.batch.mass / self.n_points


@dataclass(frozen=True)
class _Together:
    """How much is summarised together at most."""

    n_points: float
    span: float
    n_batches: float

    def allows(self, parts: Sequence[_Part]) -> bool:
        return (
            sum(part.n_points for part in parts) <= self.n_points
            and sum(part.batch.n_batches for part in parts) <= self.n_batches
            and _span(parts) <= self.span
        )


def summarise(
    window: Window,
    max_points: int,
    centroids: Centroids,
    limits: Limits,
    *,
    oldest_age: float = math.inf,
    max_batches: int | None = None,
) -> Summarised:
    """Return the window with as many batches summarised as it takes to hold `max_points`.

    Again and again the batch whose points weigh least, and the lightest of those beside it, become
    one batch of half as many points, but at least one for each cluster. So in the end all points
    weigh about the same, however old they are.

    Parameters
    ----------
    window : Window
        Partitioned by `centroids`; returned as it is if it holds no more.
    max_points : int
    centroids : ndarray of shape (n_clusters, n_features)
    limits : Limits
        Only its number of threads matters.
    oldest_age : float
        Age at which batches leave.
    max_batches : int, optional
        The most batches remembered.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> window = Window(rho=0.5).joined_by(points, None)
    >>> window = fit_window(window, np.array([[0.5], [8.5]]), Limits()).window
    >>> summary, = summarise(window, 2, np.array([[0.5], [8.5]]), Limits()).window.batches
    >>> summary.points.ravel().tolist(), summary.weights.tolist(), summary.within
    ([0.5, 8.5], [2.0, 2.0], 1.0)
    """
    n_points, n_distances = window.n_points, 0
    if n_points <= max_points:
        return Summarised(window, 0)
    together = _Together(
        n_points=_SHARE_OF_POINTS * max_points,
        span=_SHARE_OF_TIME * oldest_age,
        n_batches=math.inf if max_batches is None else _SHARE_OF_TIME * max_batches,
    )
    parts = _parts_of(window)
    while n_points > max_points:
        run = _lightest_run(parts, together)
        merged, n_measured = _merged(parts[run], window, centroids, limits)
        n_points += merged.n_points - sum(part.n_points for part in parts[run])
        n_distances += n_measured
        parts[run] = [merged]
    return Summarised(_window_of(parts, window), n_distances)


def thin(
    window: Window,
    ages_before: Sequence[float],
    centroids: Centroids,
    limits: Limits,
    made: dict[Remembered, Remembered] | None = None,
) -> Summarised:
    """Return the window with each batch that has come of a certain age as fewer weighted means.

    As a quarter of its points, but at least one for each of its clusters, at the ages of
    `THINNED_AT`, each time. So batches of one size are never more points than five and a half of
    them, and few points change at a time.

    Parameters
    ----------
    window : Window
        Partitioned by `centroids`.
    ages_before : sequence of float
        Ages of its batches when they were last looked at.
    centroids : ndarray of shape (n_clusters, n_features)
    limits : Limits
        Only its number of threads matters.
    made : dict, optional
        What batches have become in another window that shares them: here they become the same. What
        is made is added.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> window = Window(rho=0.5).joined_by(points, None)
    >>> window = fit_window(window, np.array([[0.5], [8.5]]), Limits()).window
    >>> older = window.aged(3.0, math.inf, None)
    >>> thinned = thin(older, window.ages, np.array([[0.5], [8.5]]), Limits()).window
    >>> thinned.batches[0].points.ravel().tolist(), thinned.batches[0].weights.tolist()
    ([0.5, 8.5], [2.0, 2.0])
    """
    partition, n_distances, begin = window.partition, 0, 0
    assert partition is not None
    made = {} if made is None else made
    labels, bounds = partition.labels, partition.bounds
    batches, pieces, uppers, lowers = list(window.batches), [], [], []
    unchanged = 0  # where the points begin that are yet to be taken over
    for place, (batch, before, age) in enumerate(
        zip(window.batches, ages_before, window.ages, strict=True)
    ):
        end = begin + batch.n_points
        n_times = sum([before < at <= age for at in THINNED_AT])
        if n_times:
            n_means = max(batch.n_points // _THINNED_TO**n_times, len(np.unique(labels[begin:end])))
            if batch not in made and n_means < batch.n_points:
                made[batch] = _as_means(batch, n_means)
            if batch in made:
                fewer = batches[place] = made[batch]
                found = _divided(fewer, centroids, limits)
                n_distances += found.n_distances
                of_fewer = found.window.partition
                assert of_fewer is not None
                pieces += [labels[unchanged:begin], of_fewer.labels]
                if bounds is not None:
                    assert of_fewer.bounds is not None
                    uppers += [bounds.upper[unchanged:begin], of_fewer.bounds.upper]
                    lowers += [bounds.lower[unchanged:begin], of_fewer.bounds.lower]
                unchanged = end
        begin = end
    if not pieces:
        return Summarised(window, 0)
    pieces.append(labels[unchanged:])
    if bounds is not None:
        uppers.append(bounds.upper[unchanged:])
        lowers.append(bounds.lower[unchanged:])
        bounds = _kernel.Bounds(
            np.concatenate(uppers), np.concatenate(lowers), bounds.snapshot, bounds.axes
        )
    thinned = replace(
        window, batches=tuple(batches), partition=_kernel.Partition(np.concatenate(pieces), bounds)
    )
    return Summarised(thinned, n_distances)


def _as_means(batch: Remembered, n_means: int) -> Remembered:
    """Return a batch as that number of means, or fewer."""
    means, masses = np.empty((n_means, batch.points.shape[1])), np.empty(n_means)
    n_found, hidden = _kernel.summarise(batch.points, batch.weights, means, masses)
    summary = Summary(batch.within + hidden, batch.n_batches, batch.span)
    if n_found < n_means:  # a view would keep the room for all of them
        means, masses = means[:n_found].copy(), masses[:n_found].copy()
    return Remembered(frozen(means), frozen(masses), summary)


def _divided(batch: Remembered, centroids: Centroids, limits: Limits) -> WindowFit:
    """Return a batch and the clusters of its means."""
    return fit_window(Window(1.0, (batch,), (0.0,)), centroids, limits, only_assign=True)


def _lightest_run(parts: Sequence[_Part], together: _Together) -> slice:
    """Return which batches are to be summarised next: one, or several that are side by side."""
    weights = [part.weight_of_a_point for part in parts]
    for lightest in sorted(range(len(parts)), key=weights.__getitem__):
        first, last = lightest, lightest
        while True:
            wider = [(first - 1, last)] if first > 0 else []
            wider += [(first, last + 1)] if last + 1 < len(parts) else []
            wider = [(a, b) for a, b in wider if together.allows(parts[a : b + 1])]
            if not wider:
                break
            first, last = min(wider, key=lambda run: weights[run[0] if run[0] < first else run[1]])
        run = slice(first, last + 1)
        if _n_means(parts[run]) < sum(part.n_points for part in parts[run]):
            return run
    # So few points that each batch has no more than one for a cluster: they must share.
    return slice(0, len(parts))


def _n_means(parts: Sequence[_Part]) -> int:
    """How many means are to stand for these batches: half as many, but one for each cluster."""
    n_points = sum(part.n_points for part in parts)
    n_clusters = len(np.unique(np.concatenate([part.partition.labels for part in parts])))
    return max(n_points // 2, n_clusters)


def _merged(
    parts: Sequence[_Part], window: Window, centroids: Centroids, limits: Limits
) -> tuple[_Part, int]:
    """Return batches as one of half as many points, and the distances this took."""
    youngest = parts[-1]
    if window.tail is None and window.kept is None:
        decays = [window.rho ** (part.age - youngest.age) for part in parts]
    else:  # their ratios change with time; those of now stay
        decays = [part.decay / youngest.decay for part in parts]
    pairs = list(zip(decays, (part.batch for part in parts), strict=True))
    points = np.concatenate([batch.points for _, batch in pairs])
    weights = np.concatenate([decay * batch.weights_or_ones for decay, batch in pairs])
    n_means = min(_n_means(parts), len(points) - 1)
    means, masses = np.empty((n_means, points.shape[1])), np.empty(n_means)
    n_found, hidden = _kernel.summarise(points, weights, means, masses)
    summary = Summary(
        within=hidden + sum(decay * batch.within for decay, batch in pairs),
        n_batches=sum(batch.n_batches for _, batch in pairs),
        span=_span(parts),
    )
    if n_found < n_means:  # a view would keep the room for all of them
        means, masses = means[:n_found].copy(), masses[:n_found].copy()
    batch = Remembered(frozen(means), frozen(masses), summary)
    fit = fit_window(Window(1.0, (batch,), (0.0,)), centroids, limits, only_assign=True)
    assert fit.window.partition is not None
    part = _Part(batch, youngest.age, youngest.decay, fit.window.partition, youngest.kept)
    return part, fit.n_distances


def _span(parts: Sequence[_Part]) -> float:
    """Age of the oldest batch behind all parts less that of the youngest."""
    return parts[0].age + parts[0].batch.span - parts[-1].age


def _parts_of(window: Window) -> list[_Part]:
    assert window.partition is not None
    parts, rest = [], window.partition
    kept = window.kept or (1.0,) * len(window)
    columns = zip(window.batches, window.ages, window.decay.tolist(), kept, strict=True)
    for batch, age, decay, share in columns:
        n_points = len(batch.points)
        parts.append(_Part(batch, age, decay, rest.of_first_batch(n_points), share))
        rest = rest.without(1, n_points)
    return parts


def _window_of(parts: Sequence[_Part], before: Window) -> Window:
    """Put the parts together; of the partition all is known that was known before."""
    assert before.partition is not None
    each = [part.partition for part in parts]
    labels: Labels = np.concatenate([known.labels for known in each])
    bounds, sums = before.partition.bounds, before.partition.sums
    if bounds is not None:
        of_each = [known.bounds for known in each if known.bounds is not None]
        bounds = _kernel.Bounds(
            np.concatenate([known.upper for known in of_each]),
            np.concatenate([known.lower for known in of_each]),
            bounds.snapshot,
            bounds.axes,
        )
    if sums is not None:
        sums_of_each = [known.sums for known in each if known.sums is not None]
        sums = _kernel.ClusterSums(
            np.concatenate([known.masses for known in sums_of_each]),
            np.concatenate([known.sums for known in sums_of_each]),
            np.concatenate([known.scatter for known in sums_of_each]),
        )
    return Window(
        before.rho,
        tuple(part.batch for part in parts),
        tuple(part.age for part in parts),
        _kernel.Partition(labels, bounds, sums),
        tail=before.tail,
        kept=None if before.kept is None else tuple(part.kept for part in parts),
    )
