"""The cells of the measurement, like those of the paper's grid: a process computes each.

A cell is one seed of one stream; one file holds its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kmeander.arrays import Points
from kmeander.experiments.alarms.changes import ABRUPT, BASES
from kmeander.experiments.alarms.measure import EventRecord, Observer
from kmeander.experiments.alarms.pools import EPSILON, GAUSSIAN, N_CLUSTERS, drawn, drifted
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.program import program_digest
from kmeander.experiments.storage import AnyCell

# Batches from the change on in which it may be noticed, one less than their number.
WITHIN = (0, 1, 4, 12)
_N_WATCHED = max(WITHIN) + 1
# Seeds of streams with a change begin this much later.
SEEDS_OF_CHANGES = 1000
RUNS_PER_REPETITION = 20
# Batches of a pool before it drifts: while noise is just known, and later.
CALM_POOLS = (20, 60)
# Streams that change again and again need few repetitions: each has dozens of changes.
REPETITIONS_OF_ABRUPT = 3
# Rivals cost several times as much as kmeander; so many repetitions suffice for comparison.
REPETITIONS_OF_RIVALS = 1


@dataclass(frozen=True)
class Length:
    """How many batches of each stream, how many seeds, and the first of them.

    Examples
    --------
    >>> list(Length(repetitions=2, seed=1000).seeds)
    [1000, 1001]
    """

    n_batches: int = 1000
    repetitions: int = 1
    seed: int = 0

    @property
    def seeds(self) -> range:
        """Seeds of the streams that do not change."""
        return range(self.seed, self.seed + self.repetitions)

    @property
    def seeds_of_changes(self) -> range:
        """Seeds of the streams that change: 20 runs per repetition."""
        first = self.seed + SEEDS_OF_CHANGES
        return range(first, first + RUNS_PER_REPETITION * self.repetitions)

    def seeds_of_drifts(self, pool: str, n_natural: int) -> range:
        """Seeds of a pool that drifts: natural pools have as many runs together as one base."""
        n_runs = RUNS_PER_REPETITION * self.repetitions
        return self.seeds_of_changes[: n_runs if pool == GAUSSIAN else max(n_runs // n_natural, 1)]

    def has_rivals(self, seed: int) -> bool:
        """Whether rivals take part in the runs of that seed."""
        if seed in self.seeds:
            return seed in self.seeds[:REPETITIONS_OF_RIVALS]
        return seed in self.seeds_of_changes[: RUNS_PER_REPETITION * REPETITIONS_OF_RIVALS]


@dataclass(frozen=True)
class _AlarmCell:
    """One seed of one stream."""

    stream: str
    seed: int
    rivals: bool = False
    program: str = ""

    @property
    def dataset(self) -> str:
        """Key of the points that it takes; most streams make their own."""
        return ""

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch."""
        return ("default",)

    def _observer(
        self, n_clusters: int, n_threads: int | None, season: int | None = None
    ) -> Observer:
        return Observer(
            self.stream, n_clusters, self.seed,
            season=season, with_rivals=self.rivals, n_threads=n_threads,
        )  # fmt: skip


@dataclass(frozen=True)
class UnchangingCell(_AlarmCell):
    """A stream that does not change, learned for some batches: every alarm is a false one."""

    n_batches: int = 1000

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"still-{self.stream}-s{self.seed}"

    @property
    def n_clusters(self) -> int:
        """K."""
        return STREAMS[self.stream].n_clusters

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per batch."""
        del points
        stream = STREAMS[self.stream]
        observer = self._observer(stream.n_clusters, n_threads, stream.season)
        return observer.learn(islice(stream.batches(self.seed), self.n_batches))


@dataclass(frozen=True)
class ChangeCell(_AlarmCell):
    """A stream that changes once, in each of its ways, each from the same model."""

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"change-{self.stream}-s{self.seed}"

    @property
    def n_clusters(self) -> int:
        """K."""
        return BASES[self.stream].n_clusters

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per change and batch, from the change on."""
        del points
        base = BASES[self.stream]
        observer = self._observer(base.n_clusters, n_threads)
        observer.learn(islice(base.batches(self.seed, base.changes[0]), base.calm))
        records = []
        for change in base.changes:
            batches = islice(base.batches(self.seed, change), base.calm, base.calm + _N_WATCHED)
            records += observer.fork().learn(batches, change)
        return records


@dataclass(frozen=True)
class AbruptCell(_AlarmCell):
    """A stream that changes again and again."""

    n_batches: int = 1000

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"abrupt-{self.stream}-s{self.seed}"

    @property
    def n_clusters(self) -> int:
        """K."""
        return ABRUPT[self.stream].n_clusters

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per batch."""
        del points
        stream = ABRUPT[self.stream]
        observer = self._observer(stream.n_clusters, n_threads)
        return observer.learn(islice(stream.batches(self.seed), self.n_batches), "again and again")


@dataclass(frozen=True)
class _PoolCell(_AlarmCell):
    @property
    def dataset(self) -> str:
        """Key of the pool."""
        return self.stream

    @property
    def n_clusters(self) -> int:
        """K."""
        return N_CLUSTERS


@dataclass(frozen=True)
class PoolCell(_PoolCell):
    """Rows of a pool, drawn independently: every alarm is a false one."""

    n_batches: int = 1000

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"still-pool-{self.stream}-s{self.seed}"

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per batch."""
        batches = drawn(points, self.seed, "still", self.stream)
        return self._observer(N_CLUSTERS, n_threads).learn(islice(batches, self.n_batches))


@dataclass(frozen=True)
class EpsilonCell(_PoolCell):
    """A pool that drifts by epsilon 0.02 after 20 batches, and after 60."""

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"epsilon-{self.stream}-s{self.seed}"

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per change and batch, from the change on."""
        observer = self._observer(N_CLUSTERS, n_threads)
        before = drawn(points, self.seed, "before", self.stream)
        after = drifted(points, self.seed)
        n_learned, records = 0, []
        for calm in CALM_POOLS:
            observer.learn(islice(before, calm - n_learned))
            n_learned = calm
            batches = drawn(after, self.seed, "after", self.stream, calm)
            records += observer.fork().learn(islice(batches, _N_WATCHED), drift_after(calm))
        return records


def drift_after(calm: int) -> str:
    """Return the name of a pool's drift."""
    return f"epsilon {EPSILON:g} after {calm} batches"


def cells_of(
    length: Length,
    pools: Mapping[str, Points],
    streams: Sequence[str] = tuple(STREAMS),
    bases: Sequence[str] = tuple(BASES),
    abrupt: Sequence[str] = tuple(ABRUPT),
) -> list[AnyCell]:
    """Return every cell."""
    return list(_cells(length, pools, streams, bases, abrupt, program_digest()))


def _cells(
    length: Length,
    pools: Mapping[str, Points],
    streams: Sequence[str],
    bases: Sequence[str],
    abrupt: Sequence[str],
    program: str,
) -> Iterator[AnyCell]:
    n_natural = len(pools.keys() - {GAUSSIAN})
    for seed in length.seeds:
        rivals = length.has_rivals(seed)
        for name in streams:
            yield UnchangingCell(name, seed, rivals, program, length.n_batches)
        for name in pools:
            yield PoolCell(name, seed, rivals, program, length.n_batches)
    for seed in length.seeds[:REPETITIONS_OF_ABRUPT]:
        for name in abrupt:
            n_batches = min(ABRUPT[name].n_batches, length.n_batches * 3 // 2)
            yield AbruptCell(name, seed, length.has_rivals(seed), program, n_batches)
    for seed in length.seeds_of_changes:
        for name in bases:
            yield ChangeCell(name, seed, length.has_rivals(seed), program)
    for name in pools:
        for seed in length.seeds_of_drifts(name, n_natural):
            yield EpsilonCell(name, seed, length.has_rivals(seed), program)
