"""The figures that were asked for: each is measured here, and compared with what was asked."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import RHO, WINDOW, Kmeander, KmeanderHungarian, timed
from benchmarks.peers import MiniBatch, ScikitLearnHungarian, ScikitLearnLloyd
from benchmarks.race import Run, in_a_fork, n_cores
from benchmarks.streams import RawWindow, Shape, mixture
from kmeander import FSKM, Batch
from kmeander.arguments import generator_for
from kmeander.kmeans.lloyd import Limits, nearest
from kmeander.kmeans.seeding import kmeans

# Times faster than scikit-learn's lloyd on the same window, one thread each.
FASTER_THAN_LLOYD = {
    Shape(500, 10, 8): 12.0,
    Shape(500, 25, 20): 8.0,
    Shape(5000, 25, 20): 10.0,
    Shape(5000, 100, 32): 8.0,
    Shape(2000, 64, 128): 5.0,
    Shape(50000, 50, 20): 10.0,
    Shape(5000, 256, 256): 3.0,
}
# Times faster than the same steps in scikit-learn and SciPy.
FASTER_THAN_HUNGARIAN = dict.fromkeys(list(FASTER_THAN_LLOYD)[:5], 5.0)
# MiniBatchKMeans's time over kmeander's.
MINIBATCH = {
    Shape(500, 10, 8): 1.0,
    Shape(500, 25, 20): 1.0,
    Shape(1000, 25, 20): 1.0,
    Shape(5000, 25, 20): 0.5,
}
TWO_THREADS_AT, TWO_THREADS = Shape(50000, 50, 20), 1.6
COUNTED, COUNTED_PREVIOUS, COUNTED_HUNGARIAN = Shape(500, 50, 20), 0.05, 0.12
GROWTH, GROWTH_AT = 1.05, (1000, 2000, 4000, 8000, 16000, 32000, 64000)
LONG_WINDOW, LONG_RHO, LONG_BATCHES, SHORT_BATCHES = 3.0, 0.95, 50, 5


@dataclass(frozen=True)
class Goal:
    """One figure: at least or at most so much; nothing where it is only reported."""

    name: str
    measured: float
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it is reached; None where nothing was asked."""
        if self.at_least is None and self.at_most is None:
            return None
        enough = self.at_least is None or self.measured >= self.at_least
        return enough and (self.at_most is None or self.measured <= self.at_most)

    @property
    def asked_text(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "reported" if self.at_most is None else f"<= {self.at_most:g}"

    def summary(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


Runs = Mapping[Shape, Mapping[str, Run]]


def goals_of_the_races(alone: Runs) -> Iterator[Goal]:
    """What the tables say, one thread each."""
    for shape, runs in alone.items():
        if shape in FASTER_THAN_LLOYD:
            ours, lloyd = runs[Kmeander.name], runs[ScikitLearnLloyd.name]
            yield Goal(
                f"{shape}: times faster than scikit-learn lloyd",
                lloyd.times_slower(ours),
                at_least=FASTER_THAN_LLOYD[shape],
                note=_spread(lloyd, ours),
            )
            yield Goal(
                f"{shape}: share of batches with scikit-learn's labels, none emptied",
                statistics.fmean(lloyd.same_labels) if lloyd.same_labels else 1.0,
                at_least=1.0,
            )
    for shape, runs in alone.items():
        if shape in FASTER_THAN_HUNGARIAN:
            ours, theirs = runs[KmeanderHungarian.name], runs[ScikitLearnHungarian.name]
            yield Goal(
                f"{shape}: hungarian, times faster than scikit-learn + SciPy",
                theirs.times_slower(ours),
                at_least=FASTER_THAN_HUNGARIAN[shape],
                note=_spread(theirs, ours),
            )
    for shape, runs in alone.items():
        ours, theirs = runs[Kmeander.name], runs[MiniBatch.name]
        yield Goal(
            f"{shape}: MiniBatchKMeans.partial_fit's time over kmeander's",
            theirs.times_slower(ours),
            at_least=MINIBATCH.get(shape),
            note=_spread(theirs, ours),
        )


def _spread(theirs: Run, ours: Run) -> str:
    least, most = theirs.times_slower_spread(ours)
    return (
        f"({least:.2f}-{most:.2f} over {len(ours.seconds)} repetitions; by processor time "
        f"{theirs.times_slower(ours, by_cpu=True):.2f})"
    )


def goals_of_their_own(n_batches: int, *, large: bool) -> Iterator[Goal]:
    """Counts, growth, threads and long windows, which need streams of their own."""
    if large and n_cores() > 1:
        yield Goal(
            f"{TWO_THREADS_AT}: two threads, times faster than one",
            in_a_fork(speed_of_two_threads),
            at_least=TWO_THREADS,
        )
    for init, most in (("previous", COUNTED_PREVIOUS), ("hungarian", COUNTED_HUNGARIAN)):
        yield Goal(
            f"{COUNTED}: window distances, share of plain Lloyd's, {init}",
            in_a_fork(window_distance_share, init, n_batches),
            at_most=most,
        )
    yield Goal(
        f"K 25, d 20: exponent of a full pass's time in N, {GROWTH_AT[0]} to {GROWTH_AT[-1]}",
        in_a_fork(exponent_of_a_pass),
        at_most=GROWTH,
    )
    for n_points in (500, 5000):
        shape = Shape(n_points, 25, 20)
        yield Goal(
            f"{shape}, settled: time of {LONG_BATCHES} batches over that of {SHORT_BATCHES}",
            in_a_fork(time_of_a_long_window, shape, n_batches),
            at_most=LONG_WINDOW,
        )


def window_distance_share(init: str, n_batches: int) -> float:
    """Distances of Lloyd on the window alone, as a share of plain Lloyd's on the same passes."""
    k, seed = COUNTED.n_clusters, 0
    model = FSKM(k, init=init, rho=RHO, max_batches=WINDOW, n_threads=1, random_state=seed)
    computed = plain = 0
    batches = mixture(COUNTED).batches(seed)
    for index, points in zip(range(WINDOW + n_batches), batches, strict=False):
        batch = Batch(index, points)
        current = None
        if init != "previous" and index:
            # What the model would find itself; made here to know what it cost.
            rng = generator_for(model.seed, index)
            current = kmeans(batch.points, None, k, rng, Limits(n_threads=1))
        step = model.step(batch, current=current)
        if index >= WINDOW:
            computed += step.n_distances
            plain += step.n_iter * model.window.n_points * k
            if current is not None:
                computed -= current.n_distances + k * len(current.centroids)
    return computed / plain


def speed_of_two_threads() -> float:
    """Time of one thread over that of two, which take turns batch by batch, windows being full."""
    unused = RawWindow(RHO, 1)
    one, two = (Kmeander(TWO_THREADS_AT, 0, n_threads) for n_threads in (1, 2))
    seconds = {one: 0.0, two: 0.0}
    batches = mixture(TWO_THREADS_AT).batches(0)
    for index, points in zip(range(WINDOW + 10), batches, strict=False):
        for model in (one, two):
            spent = model.learn(index, points, unused, None).time.wall
            seconds[model] += spent if index >= WINDOW else 0.0
    return seconds[one] / seconds[two]


def exponent_of_a_pass() -> float:
    """Slope of log time over log N of one pass in which every distance is measured."""
    rng = np.random.default_rng(0)
    centroids = rng.normal(size=(25, 20))
    seconds = dict.fromkeys(GROWTH_AT, np.inf)
    points = {n: rng.normal(size=(n, 20)) for n in GROWTH_AT}
    # The least of many: what disturbs only adds. Sizes take turns, each with as many rows in all,
    # so that all are disturbed alike: short turns find quiet moments more easily than long ones.
    for _ in range(25):
        for n in GROWTH_AT:
            n_calls = GROWTH_AT[-1] // n
            spent = sum(timed(nearest, points[n], centroids, 1)[0].cpu for _ in range(n_calls))
            seconds[n] = min(seconds[n], spent / n_calls)
    slope, _ = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)
    return float(slope)


class Long(Kmeander):
    """A long memory."""

    name = "long"
    rho, max_batches = LONG_RHO, LONG_BATCHES


class Short(Long):
    """The same forgetting, cut off early."""

    name = "short"
    max_batches = SHORT_BATCHES


def time_of_a_long_window(shape: Shape, n_batches: int) -> float:
    """Ratio of mean times per batch on a stream that does not change, windows being full."""
    unused = RawWindow(RHO, 1)
    long, short = Long(shape, 0, 1), Short(shape, 0, 1)
    times: dict[str, list[float]] = {long.name: [], short.name: []}
    batches = mixture(shape, drifting=False).batches(0)
    for index, points in zip(range(LONG_BATCHES + n_batches), batches, strict=False):
        for model in (long, short):
            spent = model.learn(index, points, unused, None).time
            if index >= LONG_BATCHES:
                times[model.name].append(spent.wall)
    return statistics.fmean(times[long.name]) / statistics.fmean(times[short.name])
