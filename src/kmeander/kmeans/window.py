"""The window: the batches that are remembered, and what they weigh."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kmeander import _kernel
from kmeander.arrays import Labels, Masses, Points, Weights
from kmeander.kmeans.forgetting import AGE_ROUNDING, Tail
from kmeander.kmeans.metric import Metric

# With two speeds a batch leaves where alarms have left it less than this share of its weight.
_LEAST_KEPT = 1e-6


@dataclass(frozen=True)
class Summary:
    """What is known of the batches that one batch of weighted means stands for."""

    # Weighted squared distances of the points to their means, without the decay of the age: what
    # the means hide of any error, wherever the centroids are.
    within: float
    n_batches: int
    span: float  # age of the oldest batch less that of the youngest, which is the age of all


@dataclass(eq=False)
class Remembered:
    """One batch in the window, or several that have become one of weighted means. Never changed.

    `handle` is points and weights once more, as the kernel reads them.
    """

    points: Points
    weights: Weights | None
    summary: Summary | None = None
    known: InitVar[_kernel.BatchHandle | None] = None  # where the kernel has read them already
    handle: _kernel.BatchHandle = field(init=False, repr=False)
    n_points: int = field(init=False)  # or means
    mass: float = field(init=False)  # weight of all points, without decay
    within: float = field(init=False, default=0.0)  # what its points hide of any error
    n_batches: int = field(init=False, default=1)  # that it stands for
    span: float = field(init=False, default=0.0)  # age of the oldest of those less the youngest's

    def __post_init__(self, known: _kernel.BatchHandle | None) -> None:
        self.n_points = len(self.points)
        self.mass = float(self.n_points if self.weights is None else self.weights.sum())
        self.handle = known or _kernel.BatchHandle(self.points, self.weights, self.mass)
        if self.summary is not None:
            self.within, self.n_batches = self.summary.within, self.summary.n_batches
            self.span = self.summary.span

    @classmethod
    def newest(
        cls,
        points: Points,
        weights: Weights | None,
        within: float | None = None,
        handle: _kernel.BatchHandle | None = None,
    ) -> Remembered:
        """Return a batch as it comes; a summary of its rows where `within` is what they hide."""
        summary = None if within is None else Summary(within, n_batches=1, span=0.0)
        return cls(points, weights, summary, handle)

    def __reduce__(self) -> tuple[type[Remembered], tuple[Any, ...]]:
        return Remembered, (self.points, self.weights, self.summary)

    def rescaled(self, factors: Weights, metric: Metric) -> Remembered:
        """Return the batch with each column multiplied by its factor."""
        points = metric.rescaled(self.points, factors)
        summary = self.summary
        if summary is not None and summary.within > 0 and not metric.on_sphere:
            before, after = np.var(self.points, axis=0).sum(), np.var(points, axis=0).sum()
            growth = after / before if before > 0 else float((factors * factors).mean())
            summary = replace(summary, within=summary.within * float(growth))
        return Remembered(points, self.weights, summary)

    @property
    def weights_or_ones(self) -> Weights:
        """Weight of each point."""
        return np.ones(self.n_points) if self.weights is None else self.weights

    @cached_property
    def size(self) -> float:
        """Number of points of equal weight that say as much (Kish's effective sample size)."""
        if self.weights is None:
            return float(len(self.points))
        relative = self.weights / self.weights.max()
        return float(relative.sum() ** 2 / (relative * relative).sum())


@dataclass(eq=False)
class Window:
    """Batches in order of arrival, a batch aged t weighing ``rho**t``, or by two speeds.

    With a `tail` it weighs as `Tail` says, times what alarms have left of it, `kept`, one number
    for each batch; None where there was no alarm.

    `partition` is that of the first batches: of all, once Lloyd has run, of none in a new window.
    `newest` is that of the newest batch, where one was found for it alone.

    Windows are never changed: each method returns a new one that shares the points.
    """

    rho: float
    batches: tuple[Remembered, ...] = ()
    ages: tuple[float, ...] = ()
    partition: _kernel.Partition | None = None
    newest: _kernel.Partition | None = None
    tail: Tail | None = None
    kept: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.batches)

    def __reduce__(self) -> tuple[type[Window], tuple[Any, ...]]:
        return Window, (
            self.rho, self.batches, self.ages, self.partition, self.newest, self.tail, self.kept
        )  # fmt: skip

    @cached_property
    def handle(self) -> _kernel.WindowHandle:
        """Batches and what they weigh, as the kernel reads them."""
        handles = tuple([batch.handle for batch in self.batches])
        decay = self.weights_by_age
        if self.kept is not None:
            decay = [kept * weight for kept, weight in zip(self.kept, decay, strict=True)]
        return _kernel.WindowHandle(handles, decay)

    @cached_property
    def weights_by_age(self) -> list[float]:
        """What each batch weighs by its age, if no alarm has taken anything from it."""
        rho, tail = self.rho, self.tail
        return [rho**age if tail is None else tail.weight(rho, age) for age in self.ages]

    @property
    def share_kept(self) -> float:
        """Share of its weight that the newest batch keeps when the next one arrives."""
        return self.rho if self.tail is None else self.tail.weight(self.rho, 1.0)

    @cached_property
    def has_summaries(self) -> bool:
        """Whether any batch is one of weighted means."""
        return any(batch.summary is not None for batch in self.batches)

    @property
    def has_weights(self) -> bool:
        """Whether any point has a weight of its own."""
        return self.handle.has_weights

    @property
    def n_points(self) -> int:
        """Rows in all batches."""
        return self.handle.n_points

    @property
    def decay(self) -> Weights:
        """The weight of each batch."""
        return self.handle.decay

    @property
    def mass(self) -> float:
        """Decayed weight of all points."""
        return self.handle.mass

    @property
    def n_effective(self) -> float:
        """Points of equal weight whose mean would scatter as the decayed mean of these."""
        return self.handle.n_effective

    @property
    def within(self) -> float:
        """What summaries hide of any sum of squared distances, decayed."""
        if not self.has_summaries:
            return 0.0
        pairs = zip(self.batches, self.decay.tolist(), strict=True)
        return float(sum(decay * batch.within for batch, decay in pairs if batch.summary))

    @property
    def n_batches(self) -> int:
        """Batches remembered, each of those in a summary counted."""
        if not self.has_summaries:
            return len(self.batches)
        return sum(batch.n_batches for batch in self.batches)

    def n_recent(self, n_points: int, least_decay: float) -> int:
        """Return how many of the newest batches have that number of points, if they weigh enough.

        Beside the newest, a batch counts that weighs `least_decay` of it at least.
        """
        n_found, n_recent, weights = self.batches[-1].n_points, 1, self.weights_by_age
        least = least_decay * weights[-1]
        while n_recent < len(weights) and n_found < n_points:
            if weights[-1 - n_recent] < least:
                break
            n_recent += 1
            n_found += self.batches[-n_recent].n_points
        return n_recent

    @property
    def n_summarised(self) -> int:
        """Batches remembered by a summary."""
        if not self.has_summaries:
            return 0
        return sum(batch.n_batches for batch in self.batches if batch.summary)

    @property
    def n_divided(self) -> int:
        """Batches that `partition` covers: all, or all but the newest; none where there is none."""
        if self.partition is None:
            return 0
        return len(self.batches) - (self.partition.n_points < self.n_points)

    @property
    def labels(self) -> list[Labels]:
        """Clusters of the points of each batch that `partition` covers."""
        if self.partition is None:
            return []
        labels, found, begin = self.partition.labels, [], 0
        for batch in self.batches:
            if begin == len(labels):
                break
            found.append(labels[begin : begin + len(batch.points)])
            begin += len(batch.points)
        return found

    def newest_labels(self, n_points: int) -> Labels:
        """Clusters of the newest points, in a window that Lloyd has run on."""
        assert self.partition is not None
        return self.partition.labels[-n_points:]

    def cluster_masses(self, n_clusters: int) -> Masses:
        """Decayed weight of each cluster; with the ages after an arrival this is w*."""
        if self.partition is None or not self.batches:
            return np.zeros(n_clusters)
        masses = np.empty(n_clusters)
        _kernel.cluster_masses(self.handle, self.partition, masses)
        return masses

    def aged(
        self,
        elapsed: float,
        oldest_age: float,
        max_batches: int | None,
        rho: float | None = None,
        tail: Tail | None = None,
    ) -> Window:
        """Let time pass and make room for one more batch.

        Batches leave once their age reaches `oldest_age`; the oldest leave, too, where with the
        one to come there would be more than `max_batches`. They leave before w* is computed
        (Algorithm 2). From now on all weigh by `rho`, where it is given, and by `tail`. Batches in
        one summary leave together, when it is the turn of the middle one.
        """
        ages = [age + elapsed for age in self.ages]
        # Seventy times 0.1 add up to a little less than 7.
        due = oldest_age * (1 - AGE_ROUNDING)
        n_gone = 0
        while n_gone < len(ages) and ages[n_gone] + self.batches[n_gone].span / 2 >= due:
            n_gone += 1
        if max_batches is not None and not self.has_summaries:
            n_gone = max(n_gone, len(ages) + 1 - max_batches)
        elif max_batches is not None:
            n_before = self.n_batches + 1  # counted from the newest, the one to come included
            for place, batch in enumerate(self.batches, start=1):
                if n_before - (batch.n_batches - 1) / 2 > max_batches:
                    n_gone = max(n_gone, place)
                n_before -= batch.n_batches
        older = Window(
            self.rho if rho is None else rho, self.batches, tuple(ages), self.partition,
            tail=tail, kept=self.kept,
        )  # fmt: skip
        aged = older._without_oldest(n_gone)
        if not self.has_summaries:  # then these have none either
            vars(aged)["has_summaries"] = False
        return aged

    def joined_by(
        self,
        points: Points,
        weights: Weights | None,
        partition: _kernel.Partition | None = None,
        within: float | None = None,
        handle: _kernel.BatchHandle | None = None,
    ) -> Window:
        """Append the newest batch, with age 0, and its partition where one is known.

        It is a summary of its rows where `within` says what the points hide. `handle` is points and
        weights as the kernel reads them, where it has read them already.
        """
        return self.followed_by(Remembered.newest(points, weights, within, handle), partition)

    def followed_by(self, newest: Remembered, partition: _kernel.Partition | None = None) -> Window:
        """Append a batch that may be in another window, too, and its partition where known."""
        joined = Window(
            self.rho,
            (*self.batches, newest),
            (*self.ages, 0.0),
            self.partition,
            partition,
            self.tail,
            None if self.kept is None else (*self.kept, 1.0),
        )
        vars(joined)["has_summaries"] = newest.summary is not None or self.has_summaries
        return joined

    def rescaled(
        self,
        factors: Weights,
        metric: Metric,
        made: dict[Remembered, Remembered] | None = None,
    ) -> Window:
        """Return the window with each column multiplied by its factor, not yet partitioned.

        Where the factors differ, what summaries hide is taken to grow as their means' scatter does.
        `made` has what batches have become in a window that shares them; what is made is added.
        """
        made = {} if made is None else made
        for batch in self.batches:
            if batch not in made:
                made[batch] = batch.rescaled(factors, metric)
        batches = tuple([made[batch] for batch in self.batches])
        return Window(self.rho, batches, self.ages, tail=self.tail, kept=self.kept)

    def reduced(self, share: float) -> Window:
        """Return the window with that share of all weights, for good.

        Batches that alarms have left next to nothing of leave.
        """
        if share == 1.0:
            return self
        kept = [share * one for one in self.kept or (1.0,) * len(self)]
        n_gone = sum([one < _LEAST_KEPT for one in kept])  # the oldest: they were in every alarm
        return replace(self, kept=tuple(kept))._without_oldest(n_gone)

    def _without_oldest(self, n_gone: int) -> Window:
        partition = self.partition
        if partition is not None and n_gone > 0:
            n_points = sum([batch.n_points for batch in self.batches[:n_gone]])
            partition = partition.without(n_gone, n_points)
        kept = None if self.kept is None else self.kept[n_gone:]
        return Window(
            self.rho, self.batches[n_gone:], self.ages[n_gone:], partition,
            tail=self.tail, kept=kept,
        )  # fmt: skip

    def divided(self, partition: _kernel.Partition | None) -> Window:
        """Return the window under a new partition of all its points, or under none."""
        divided = object.__new__(Window)
        # What has been worked out of the weights stays true.
        vars(divided).update(vars(self), partition=partition, newest=None)
        return divided

    def n_shared(self, other: Window) -> int:
        """Return how many of the newest batches are the same as in `other`."""
        pairs = zip(reversed(self.batches), reversed(other.batches), strict=False)
        n_same = 0
        for mine, theirs in pairs:
            if mine is not theirs:
                break
            n_same += 1
        return n_same
