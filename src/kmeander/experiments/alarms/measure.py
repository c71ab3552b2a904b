"""What the event rule makes of a stream: its events, batch by batch, of kmeander's defaults.

Each stream and seed is a cell like the ones of the paper's grid: one process computes it, one file
holds it.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kmeander import _kernel
from kmeander.arrays import Points
from kmeander.estimators.forgetful import ForgetfulKMeans
from kmeander.experiments.alarms.changes import BASES, CHANGES
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.protocol import seed_of
from kmeander.experiments.storage import AnyCell
from kmeander.records import Step

# The events that are tests, which the promise is about.
ALARMS = ("drift", "moved", "grew", "shrank")
# Batches from the change on in which it may be noticed, one less than their number.
WITHIN = (0, 1, 4, 12)
# Seeds of streams with a change begin this much later.
SEEDS_OF_CHANGES = 1000
RUNS_PER_REPETITION = 20


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


@dataclass(frozen=True)
class EventRecord:
    """How many events of each kind came with one batch.

    `batch` counts from 0: from the start of a stream that does not change (`change` is empty), from
    the change where there is one. `others` are births, splits and ends.
    """

    stream: str
    change: str
    seed: int
    batch: int
    drift: int
    moved: int
    grew: int
    shrank: int
    others: int
    new_ids: int


def records_of(
    steps: Iterable[Step], stream: str, seed: int, change: str = "", known: Iterable[int] = ()
) -> list[EventRecord]:
    """Return what each Step has; `known` are the ids made before."""
    seen = set(known)
    records = []
    for batch, step in enumerate(steps):
        kinds = [event.kind for event in step.events]
        ids = set() if step.ids is None else set(step.ids.tolist())
        records.append(
            EventRecord(
                stream=stream,
                change=change,
                seed=seed,
                batch=batch,
                drift=kinds.count("drift"),
                moved=kinds.count("moved"),
                grew=kinds.count("grew"),
                shrank=kinds.count("shrank"),
                others=sum(kind not in ALARMS for kind in kinds),
                new_ids=len(ids - seen),
            )
        )
        seen |= ids
    return records


@dataclass(frozen=True)
class StreamCell:
    """A stream that does not change, learned for some batches: every alarm is a false one."""

    stream: str
    n_batches: int
    seed: int
    program: str = ""

    @property
    def dataset(self) -> str:
        """Key of the stream."""
        return self.stream

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"still-{self.stream}-s{self.seed}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch."""
        return ("default",)

    @property
    def n_clusters(self) -> int:
        """K."""
        return STREAMS[self.stream].n_clusters

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per batch; the stream makes its own points."""
        del points
        model = _model(self.n_clusters, seed_of(self.seed, "model", self.stream), n_threads)
        batches = islice(STREAMS[self.stream].batches(self.seed), self.n_batches)
        steps = (model.partial_fit(batch).step_ for batch in batches)
        return records_of(steps, self.stream, self.seed)


@dataclass(frozen=True)
class ChangeCell:
    """A stream that changes after 60 batches, in each of the ways, each from the same model."""

    base: str
    seed: int
    program: str = ""

    @property
    def dataset(self) -> str:
        """Key of the stream."""
        return self.base

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        return f"change-{self.base}-s{self.seed}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch."""
        return ("default",)

    @property
    def n_clusters(self) -> int:
        """K."""
        return BASES[self.base].n_clusters

    def run(self, points: Points, n_threads: int | None = 1) -> list[EventRecord]:
        """Return a record per change and batch, from the change on."""
        del points
        base = BASES[self.base]
        model = _model(base.n_clusters, seed_of(self.seed, "model", self.base), n_threads)
        known: set[int] = set()
        for batch in base.before(self.seed):
            known |= set(model.partial_fit(batch).cluster_ids_.tolist())
        records = []
        for change in CHANGES:
            goes_on = copy.deepcopy(model)
            batches = islice(base.after(self.seed, change), max(WITHIN) + 1)
            steps = (goes_on.partial_fit(batch).step_ for batch in batches)
            records += records_of(steps, self.base, self.seed, change, known)
        return records


def cells_of(
    length: Length, streams: Sequence[str] = tuple(STREAMS), bases: Sequence[str] = tuple(BASES)
) -> list[AnyCell]:
    """Return every cell."""
    program = program_digest()
    return [
        *(
            StreamCell(name, length.n_batches, seed, program)
            for name in streams
            for seed in length.seeds
        ),
        *(ChangeCell(name, seed, program) for name in bases for seed in length.seeds_of_changes),
    ]


def program_digest() -> str:
    """Return what tells this program from any other, so that no stored cell is of another rule.

    The version number alone would not: the rule may change between two versions.
    """
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    digest.update(Path(str(_kernel.__file__)).read_bytes())
    return digest.hexdigest()


def _model(n_clusters: int, seed: int, n_threads: int | None) -> ForgetfulKMeans:
    # Seeds of NumPy's older generators, which scikit-learn's checks ask for, have 32 bits.
    return ForgetfulKMeans(n_clusters, random_state=seed % 2**32, n_threads=n_threads)
