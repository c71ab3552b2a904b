"""What a contestant is, and those that are kmeander."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams import Array, RawWindow, Shape
from kmeander import FSKM, Batch, Step

RHO, WINDOW = 0.7, 12

T = TypeVar("T")


class Time(NamedTuple):
    """Seconds by the clock on the wall, and seconds that processors worked for us.

    Whoever else uses the machine adds to the first alone.
    """

    wall: float
    cpu: float


def timed(call: Callable[..., T], *arguments: Any, **options: Any) -> tuple[Time, T]:
    """How long a call took, and what it returned."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    result = call(*arguments, **options)
    return Time(time.perf_counter() - begun, time.process_time() - begun_cpu), result


@dataclass(frozen=True)
class Reference:
    """Where kmeander started on a window and ended: what refits of that window start from."""

    start: Array
    labels: NDArray[np.int32]
    n_iter: int
    reseeded: bool
    error: float


@dataclass(frozen=True)
class Learned:
    """What a contestant did with one batch; None stands where it does not say."""

    time: Time
    centroids: Array | None
    n_distances: float | None = None
    n_distances_plain: float | None = None
    # For those that end where kmeander must end: same labels; and the error relative to kmeander's
    # where a cluster lost all its points, since each then has a rule of its own.
    same_labels: bool | None = None
    error_ratio: float | None = None
    reference: Reference | None = None


class Contestant(ABC):
    """Learns a stream batch by batch and says how long each took.

    `name` is its name in tables and `parallel` whether it can use more than one core. One that
    refits the whole window, ready-made, begins `warm_up` batches before the first that is measured;
    None says that it learns the stream from its beginning. `once` says that it is so slow that one
    repetition must do.
    """

    name: str
    parallel = True
    once = False
    warm_up: int | None = None

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        self.shape, self.seed, self.n_threads = shape, seed, n_threads

    @abstractmethod
    def learn(
        self, index: int, points: Array, window: RawWindow, reference: Reference | None
    ) -> Learned:
        """Learn the newest batch, which for those that refit `window` already ends with."""


class Kmeander(Contestant):
    """`FSKM.step`, timed whole: checking and copying the batch, starting, Lloyd, the Step."""

    name = "kmeander"
    init = "previous"
    rho, max_batches = RHO, WINDOW

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        super().__init__(shape, seed, n_threads)
        self.model = FSKM(
            shape.n_clusters,
            init=self.init,
            rho=self.rho,
            max_batches=self.max_batches,
            n_threads=n_threads,
            random_state=seed,
        )

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        start = self.model.centroids
        spent, step = timed(self._step, index, points)
        partition = self.model.window.partition
        assert partition is not None and step.centroids is not None
        assert step.surrogate_error is not None
        made = None
        if start is not None:
            made = Reference(
                start, partition.labels, step.n_iter, bool(step.reseeded), step.surrogate_error
            )
        return Learned(
            spent,
            step.centroids,
            step.n_distances,
            step.n_distances_plain,
            reference=made,
        )

    def _step(self, index: int, points: Array) -> Step:
        return self.model.step(Batch(index, points))


class KmeanderHungarian(Kmeander):
    """The same with the default start: K-means on the batch, matching, window."""

    name = "kmeander hungarian"
    init = "hungarian"


class PlainKernel(Kmeander):
    """The same kernel that carries nothing: every bound and sum is thrown away at each batch.

    Its count is that of a Lloyd that measures everything in every pass.
    """

    name = "plain kernel"

    def learn(
        self, index: int, points: Array, window: RawWindow, reference: Reference | None
    ) -> Learned:
        self.model = FSKM.from_state(without_bounds(self.model.state()))
        learned = super().learn(index, points, window, reference)
        plain = learned.n_distances_plain
        same = None
        if reference is not None and learned.reference is not None:
            same = bool(np.array_equal(learned.reference.labels, reference.labels))
        return Learned(learned.time, learned.centroids, plain, plain, same)


def without_bounds(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a model that has to measure its window anew."""
    return {**state, "window": {**state["window"], "bounds": None, "totals": None}}
