"""One cell of the paper's grid: a drifting stream made from a dataset, learned by all methods.

Every method starts from the same C* and C^0 at every batch (section IV of the paper): C* is what
the run with PC converged to at the batch before, C^0 is one K-means on the new batch. PSKM alone
keeps its own centroids, and is given the drifts.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np

from kmeander.arguments import generator_for, positive_number, whole_number
from kmeander.arrays import Points
from kmeander.drifts.concepts import DriftStream, drifting_concepts
from kmeander.exceptions import InputError
from kmeander.experiments.theorem2 import hungarian_bound
from kmeander.kmeans.forgetting import max_batches_for, rho_for_drift
from kmeander.kmeans.lloyd import Limits, LloydResult, mean_error
from kmeander.kmeans.seeding import kmeans
from kmeander.models import FSKM, PSKM
from kmeander.records import Batch, Step

# The paper's names of the initialisations, in the order of its figures.
INITS = {"PC": "previous", "CC": "current", "WI": "weighted", "HI": "hungarian"}
METHODS = (*INITS, "PSKM")

# A burn-in ends when its first batch weighs less than this.
BURNT_IN = 1e-4


@dataclass(frozen=True)
class Setting:
    """One point of the grid.

    Parameters
    ----------
    n_clusters : int
    epsilon : float
        Size of the drifts.
    m : float, default=2.0
        The surrogate error has forgotten a drift after 1/m of the time to the next.
    batch_size : int, default=500
    n_concepts : int, default=10
        The first one is the data as they are.
    batches_per_concept : int, default=10

    Examples
    --------
    >>> setting = Setting(n_clusters=5, epsilon=0.5)
    >>> round(setting.rho, 3), setting.n_burn_in
    (0.457, 12)
    """

    n_clusters: int
    epsilon: float
    m: float = 2.0
    batch_size: int = 500
    n_concepts: int = 10
    batches_per_concept: int = 10

    def __post_init__(self) -> None:
        meanings = {
            "n_clusters": "the number of clusters K",
            "batch_size": "the number of rows per batch",
            "n_concepts": "the number of concepts, one more than there are drifts",
            "batches_per_concept": "the number of batches between two drifts",
        }
        for name, meaning in meanings.items():
            whole_number(name, getattr(self, name), at_least=1, meaning=meaning)
        positive_number("epsilon", self.epsilon)
        positive_number("m", self.m)

    @property
    def rho(self) -> float:
        """The paper's choice for drifts of that size, so far apart."""
        return rho_for_drift(self.epsilon, self.batches_per_concept, self.m)

    @property
    def n_burn_in(self) -> int:
        """Batches of the first concept that go before the first one measured."""
        # Rounding must not add a batch: 0.398 to the tenth is 1e-4 exactly.
        exact = math.log(BURNT_IN) / math.log(self.rho)
        return max(max_batches_for(self.rho), math.ceil(exact - 1e-9))


@dataclass(frozen=True)
class Cell:
    """A dataset, a setting and a repetition: what one process computes and one file holds."""

    dataset: str
    setting: Setting
    repetition: int = 0
    seed: int = 0

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch, in that order."""
        return METHODS

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.setting.n_clusters

    @property
    def name(self) -> str:
        """What the cell's file is called, without its ending."""
        setting = self.setting
        return (
            f"{self.dataset}-K{setting.n_clusters}-epsilon{setting.epsilon:g}-m{setting.m:g}"
            f"-r{self.repetition}"
        )

    def seed_for(self, purpose: str) -> int:
        """Return a seed that no other cell and no other purpose has.

        It leaves out m: different memories are compared on the same stream.
        """
        setting = self.setting
        words = (self.dataset, setting.n_clusters, float(setting.epsilon), self.repetition)
        return seed_of(self.seed, *words, purpose)

    def run(self, points: Points, n_threads: int | None = 1) -> list[Record]:
        """Return the cell's records, as `run_cell` does."""
        return run_cell(self, points, n_threads=n_threads)


def seed_of(seed: int, *words: object) -> int:
    """Return a seed that no other words have."""
    return (seed << 32) + zlib.crc32(repr(words).encode())


@dataclass(frozen=True)
class Record:
    """What one batch did to one method: the Step without its arrays, and where it belongs.

    Errors are the paper's; `skm_error` is that of the converged centroids over all batches since
    the drift. `since_drift` counts them, the newest included: T in the paper. For the first
    concept, which no drift began, it counts from the start of the burn-in. `theorem2_bound` is
    known for HI alone, and NaN elsewhere.
    """

    dataset: str
    n_clusters: int
    epsilon: float
    m: float
    repetition: int
    method: str
    batch: int
    concept: int
    since_drift: int
    rho: float
    n_batches: int
    mass: float
    prequential_error: float
    initial_error: float
    theorem2_bound: float
    surrogate_error: float
    batch_error: float
    skm_error: float
    n_iter: int
    converged: bool
    n_reseeded: int
    n_distances: int
    n_distances_plain: int


_FROM_STEP = (
    "rho", "n_batches", "mass", "prequential_error", "initial_error", "surrogate_error",
    "batch_error", "n_iter", "converged", "n_distances", "n_distances_plain",
)  # fmt: skip


def run_cell(cell: Cell, points: Points, *, n_threads: int | None = 1) -> list[Record]:
    """Run every method over the cell's stream; the burn-in is learned and not recorded.

    Returns
    -------
    list of Record
        Ordered by batch, then by method.
    """
    setting = cell.setting
    burn_in, stream = streams_of(cell, points, n_threads)
    methods = Methods(setting, cell.seed_for("methods"), n_threads)
    since_drift: list[Batch] = []
    for batch in burn_in.batches():
        methods.burn_in(batch)
        since_drift.append(batch)
    records: list[Record] = []
    for batch in stream.batches(first_index=len(burn_in)):
        index = batch.index - len(burn_in)
        if stream.is_drift(index):
            since_drift = []
        since_drift.append(batch)
        concept_so_far = np.concatenate([seen.points for seen in since_drift])
        # Drawn for the place in the stream, so that it does not depend on the burn-in's length.
        rng = generator_for(cell.seed_for("seedings"), index)
        current = kmeans(batch.points, None, setting.n_clusters, rng, Limits(n_threads=n_threads))
        steps, bound = methods.step(batch, current)
        for method, step in steps.items():
            assert step.centroids is not None
            records.append(
                Record(
                    dataset=cell.dataset,
                    n_clusters=setting.n_clusters,
                    epsilon=setting.epsilon,
                    m=setting.m,
                    repetition=cell.repetition,
                    method=method,
                    batch=index,
                    concept=stream.concept(index),
                    since_drift=len(since_drift),
                    skm_error=mean_error(concept_so_far, None, step.centroids, n_threads),
                    n_reseeded=len(step.reseeded),
                    theorem2_bound=bound if method == "HI" else math.nan,
                    **{name: getattr(step, name) for name in _FROM_STEP},
                )
            )
    return records


def streams_of(
    cell: Cell, points: Points, n_threads: int | None
) -> tuple[DriftStream, DriftStream]:
    """Return the cell's burn-in and its stream."""
    setting = cell.setting
    check_enough(cell.dataset, points, setting.n_clusters)
    concepts, _ = drifting_concepts(
        points,
        setting.n_clusters,
        setting.epsilon,
        setting.n_concepts,
        seed=cell.seed_for("drifts"),
        n_threads=n_threads,
    )
    burn_in = DriftStream(
        concepts[:1], setting.batch_size, setting.n_burn_in, cell.seed_for("burn-in")
    )
    stream = DriftStream(
        concepts, setting.batch_size, setting.batches_per_concept, cell.seed_for("stream")
    )
    return burn_in, stream


class Methods:
    """All methods side by side, with C* and C^0 in common."""

    def __init__(self, setting: Setting, seed: int, n_threads: int | None) -> None:
        self.forgetful = {
            name: FSKM(
                setting.n_clusters,
                init=init,
                rho=setting.rho,
                n_threads=n_threads,
                random_state=seed,
            )
            for name, init in INITS.items()
        }
        self.privileged = PSKM(setting.n_clusters, n_threads=n_threads, random_state=seed)

    def burn_in(self, batch: Batch) -> None:
        """Learn a batch that is not measured."""
        self.forgetful["PC"].step(batch)
        self.privileged.step(batch)

    def step(self, batch: Batch, current: LloydResult) -> tuple[dict[str, Step], float]:
        """Learn a batch with every method, from the same C* and from `current`, C^0.

        Also return the bound of Theorem 2 for HI.
        """
        before = self.forgetful["PC"]
        assert before.centroids is not None
        aged = before.window.aged(batch.elapsed, max_batches_for(before.window.rho), None)
        bound = hungarian_bound(before.centroids, aged, current)
        for name, model in self.forgetful.items():
            if name != "PC":
                # What step(previous=C*) would bring about, without assigning the window anew.
                model.take_over(before)
        steps = {name: model.step(batch, current=current) for name, model in self.forgetful.items()}
        steps["PSKM"] = self.privileged.step(batch, current=current)
        return steps, bound


def check_enough(dataset: str, points: Points, n_clusters: int) -> None:
    """Refuse more clusters than there are rows."""
    if len(points) < n_clusters:
        raise InputError(
            f"{dataset} has {len(points)} rows, fewer than the {n_clusters} clusters asked for. "
            "Ask for fewer clusters or leave the dataset out."
        )
