"""Everybody on the same stream, each in a process of its own, one after the other.

A process is forked for each run, so that its peak memory is that run's, and no library's threads
disturb another. Streams are drawn, windows joined and results scored outside the timed parts.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.contestants import RHO, WINDOW, Contestant, Kmeander, Learned, Reference, Time
from benchmarks.peers import River, ScikitLearnLloyd
from benchmarks.streams import Array, RawWindow, Shape, Stream, mixture
from kmeander import kmeans_error, surrogate_error

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """How long a stream is run: repetitions with other seeds, batches measured in each.

    The first batch measured is the first that finds a window of `WINDOW` batches full. Every
    `scored_every`-th has its surrogate error taken. Who refits the window, other than the
    `awaited`, stops when `patience` seconds have gone; river, who must learn the whole stream, only
    shows how fast it is on a few rows where it would need more.
    """

    n_repetitions: int
    n_measured: int
    scored_every: int = 1
    patience: float = 15.0
    awaited: tuple[type[Contestant], ...] = (Kmeander, ScikitLearnLloyd)

    @property
    def n_batches(self) -> int:
        return WINDOW + self.n_measured


@dataclass
class Run:
    """What one contestant did in all repetitions with so many threads."""

    name: str
    n_threads: int | None
    seconds: list[list[float]] = field(default_factory=list)  # per repetition and batch
    cpu_seconds: list[list[float]] = field(default_factory=list)  # the same, of processors
    n_distances: list[float] = field(default_factory=list)
    n_distances_plain: list[float] = field(default_factory=list)
    same_labels: list[bool] = field(default_factory=list)
    error_ratios_where_reseeded: list[float] = field(default_factory=list)
    prequential_errors: list[float] = field(default_factory=list)
    surrogate_errors: list[float] = field(default_factory=list)
    peak_mib: float | None = None
    extrapolated: bool = False  # it would have taken too long: timed on a few rows

    @property
    def all_seconds(self) -> list[float]:
        return [s for repetition in self.seconds for s in repetition]

    @property
    def mean_ms(self) -> float:
        return 1e3 * _mean_of_all(self.seconds)

    def times_slower(self, than: Run, *, by_cpu: bool = False) -> float:
        """Ratio of the mean times over all batches, those of drifts included."""
        pairs = self._same_batches(than, by_cpu)
        return sum(sum(mine) for mine, _ in pairs) / sum(sum(other) for _, other in pairs)

    def times_slower_spread(self, than: Run) -> tuple[float, float]:
        """The same for each repetition: the least and the most."""
        ratios = [sum(mine) / sum(other) for mine, other in self._same_batches(than, False)]
        return min(ratios), max(ratios)

    def _same_batches(self, than: Run, by_cpu: bool) -> list[tuple[list[float], list[float]]]:
        """Times of both at the batches that this one has done, per repetition."""
        mine = self.cpu_seconds if by_cpu else self.seconds
        others = than.cpu_seconds if by_cpu else than.seconds
        if self.extrapolated:
            return [([_mean_of_all(mine)], [_mean_of_all(others)])]
        pairs = zip(mine, others, strict=False)
        return [(times, other[: len(times)]) for times, other in pairs]

    @property
    def n_batches(self) -> int:
        """Batches measured."""
        return sum(map(len, self.seconds))

    @property
    def distance_share(self) -> float | None:
        """Distances measured, as a share of a plain Lloyd's on the same passes."""
        if not self.n_distances or not self.n_distances_plain:
            return None
        return sum(self.n_distances) / sum(self.n_distances_plain)

    def summary(self) -> dict[str, Any]:
        """Everything as plain numbers, for JSON."""
        milliseconds = [1e3 * s for s in self.all_seconds]
        low, median, high = np.quantile(milliseconds, [0.1, 0.5, 0.9]).tolist()
        return {
            **asdict(self),
            "mean_ms": self.mean_ms,
            "median_ms": median,
            "spread_ms": [low, high],
            "n_batches": self.n_batches,
            "distance_share": self.distance_share,
        }


def _mean_of_all(repetitions: list[list[float]]) -> float:
    return statistics.fmean(s for repetition in repetitions for s in repetition)


def race(
    stream: Stream, plan: Plan, contestants: Sequence[type[Contestant]], n_threads: int | None
) -> dict[str, Run]:
    """Let everybody run the stream; the first must be kmeander, which the others start from."""
    assert issubclass(contestants[0], Kmeander)
    runs = {kind.name: Run(kind.name, n_threads) for kind in contestants}
    for seed in range(plan.n_repetitions):
        references: dict[int, Reference] = {}
        centroids: dict[str, dict[int, Array]] = {}
        for kind in contestants:
            if kind.once and seed > 0:
                continue
            lap = in_a_fork(_lap, kind, stream, plan, seed, n_threads, references)
            if kind is contestants[0]:
                references = {
                    i: learned.reference
                    for i, learned in lap.learned.items()
                    if learned.reference is not None
                }
            _note(runs[kind.name], lap, plan)
            centroids[kind.name] = {
                i: learned.centroids
                for i, learned in lap.learned.items()
                if learned.centroids is not None and not lap.extrapolated
            }
        scores = in_a_fork(_scores, stream, plan, seed, centroids)
        for name, (prequential, surrogate) in scores.items():
            runs[name].prequential_errors += prequential
            runs[name].surrogate_errors += surrogate
    return runs


@dataclass(frozen=True)
class Lap:
    """One contestant, one seed."""

    learned: dict[int, Learned]
    peak_mib: float | None
    extrapolated: bool = False


def _lap(
    kind: type[Contestant],
    stream: Stream,
    plan: Plan,
    seed: int,
    n_threads: int | None,
    references: dict[int, Reference],
) -> Lap:
    with threadpool_limits(n_threads):
        if issubclass(kind, River):
            seconds = _river_seconds(kind, stream, seed)
            if seconds * plan.n_batches > plan.patience:
                return Lap({WINDOW: Learned(Time(seconds, seconds), None)}, None, extrapolated=True)
        _warm(kind, n_threads)
        contestant = kind(stream.shape, seed, n_threads)
        begin = 0 if kind.warm_up is None else WINDOW - kind.warm_up
        window = RawWindow(RHO, WINDOW)
        learned = {}
        before = _status_mib("VmRSS")
        for index, points in zip(range(plan.n_batches), stream.batches(seed), strict=False):
            if kind.warm_up is not None:
                window.add(points)
            if index >= begin:
                learned[index] = contestant.learn(index, points, window, references.get(index))
            spent = sum(one.time.wall for one in learned.values())
            if kind.warm_up is not None and kind not in plan.awaited and spent > plan.patience:
                break
        peak = _status_mib("VmHWM")
    # References of all batches would hold the whole stream's labels.
    learned = {i: one for i, one in learned.items() if i >= WINDOW - 1}
    return Lap(learned, None if peak is None or before is None else peak - before)


def _warm(kind: type[Contestant], n_threads: int | None) -> None:
    """First calls load and look up things: let them, on a few rows, before anything is timed.

    Drifts are among them, at which ids end and begin, since after a fork every page of a library
    is mapped anew where it is first used. What was imported before the fork is nobody's garbage:
    looking through it would copy its pages into this process. And the threads of linear algebra,
    which a fork starts anew, are busy waiting for a while, on the processor that is to be timed.
    """
    if issubclass(kind, River):
        return
    tiny = Shape(200, 8, 4)
    window = RawWindow(RHO, WINDOW)
    contestant = kind(tiny, 0, n_threads)
    reference = None
    for index, points in zip(range(32), mixture(tiny).batches(0), strict=False):
        window.add(points)
        if kind.warm_up is not None:
            start = points[: tiny.n_clusters]
            labels = np.zeros(sum(map(len, window.batches)), dtype=np.int32)
            reference = Reference(start, labels, 2, False, 1.0)
        contestant.learn(index, points, window, reference)
    gc.collect()
    gc.freeze()
    time.sleep(0.2)


def _river_seconds(kind: type[River], stream: Stream, seed: int) -> float:
    """Seconds that a batch would take, from few rows, more and more until they take long enough."""
    points = next(stream.batches(seed))
    n_rows = 4
    while True:
        n_rows = min(4 * n_rows, len(points))
        few = Shape(n_rows, stream.shape.n_clusters, stream.shape.n_features)
        contestant = kind(few, seed, 1)
        # The second time, since the first also draws the centres.
        for _ in range(2):
            seconds = contestant.learn(0, points[:n_rows], RawWindow(RHO, WINDOW), None).time.wall
        if seconds > 0.3 or n_rows == len(points):
            return seconds * len(points) / n_rows


def _note(run: Run, lap: Lap, plan: Plan) -> None:
    measured = [lap.learned[i] for i in range(WINDOW, plan.n_batches) if i in lap.learned]
    run.seconds.append([one.time.wall for one in measured])
    run.cpu_seconds.append([one.time.cpu for one in measured])
    run.extrapolated = run.extrapolated or lap.extrapolated
    for one in measured:
        if one.n_distances is not None and one.n_distances_plain is not None:
            run.n_distances.append(one.n_distances)
            run.n_distances_plain.append(one.n_distances_plain)
        if one.same_labels is not None:
            run.same_labels.append(one.same_labels)
        if one.error_ratio is not None:
            run.error_ratios_where_reseeded.append(one.error_ratio)
    if lap.peak_mib is not None:
        run.peak_mib = max(lap.peak_mib, run.peak_mib or 0.0)


def _scores(
    stream: Stream, plan: Plan, seed: int, centroids: dict[str, dict[int, Array]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Prequential and surrogate errors of everybody's centroids, by one and the same function."""
    scores: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in centroids}
    window = RawWindow(RHO, WINDOW)
    for index, points in zip(range(plan.n_batches), stream.batches(seed), strict=False):
        window.add(points)
        if index < WINDOW:
            continue
        for name, found in centroids.items():
            prequential, surrogate = scores[name]
            if index > WINDOW and index - 1 in found:
                prequential.append(kmeans_error(points, found[index - 1]))
            if index in found and (index - WINDOW) % plan.scored_every == 0:
                surrogate.append(surrogate_error(list(window.batches), found[index], RHO))
    return scores


def in_a_fork(call: Callable[..., T], *arguments: Any) -> T:
    """Run `call` in a forked process and return what it returns."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, call, arguments))
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError:
        outcome = None
    except KeyboardInterrupt:
        process.terminate()
        raise
    process.join()
    if process.exitcode != 0 or outcome is None:
        raise RuntimeError(f"{call.__name__} failed in its process (exit {process.exitcode})")
    result: T = outcome[0]
    return result


def _send(sender: Any, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sender.send((call(*arguments),))
    sender.close()


def _status_mib(entry: str) -> float | None:
    """A line of this process's memory in MiB, where the system tells (Linux)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    found = re.search(rf"{entry}:\s+(\d+) kB", status.read_text(encoding="ascii"))
    return None if found is None else int(found[1]) / 1024


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
