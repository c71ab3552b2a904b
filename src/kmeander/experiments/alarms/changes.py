"""Changes that should be noticed: what a stream becomes at a given batch.

Lengths are in standard deviations of a cluster. Directions are drawn, so that no column is special.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, repeat

import numpy as np

from kmeander.arrays import Points
from kmeander.drifts.scenarios import evolve_clusters
from kmeander.experiments.alarms.generators import APART, Mixture, Random, autoregressive
from kmeander.experiments.protocol import seed_of

# Batches before the change, unless a stream says otherwise.
CALM = 60
Change = Callable[[Mixture, Random], Mixture]


def _direction(rng: Random, n_features: int) -> Points:
    drawn = rng.normal(size=n_features)
    unit: Points = drawn / np.linalg.norm(drawn)
    return unit


def one_moves(mixture: Mixture, rng: Random, *, by: float) -> Mixture:
    """Move cluster 0."""
    centres = mixture.centres.copy()
    centres[0] += by * _direction(rng, centres.shape[1])
    return replace(mixture, centres=centres)


def all_move(mixture: Mixture, rng: Random, *, by: float) -> Mixture:
    """Move all clusters in the same direction, as a sensor does that is off."""
    shift = by * _direction(rng, mixture.centres.shape[1])
    return replace(mixture, centres=mixture.centres + shift)


def share_grows(mixture: Mixture, _: Random, *, times: float) -> Mixture:
    """Let cluster 0 have that many times its share; the others keep their proportions."""
    shares = mixture.shares.copy()
    shares[0] *= times
    shares[1:] *= (1 - shares[0]) / shares[1:].sum()
    return replace(mixture, shares=shares)


def newcomer(mixture: Mixture, rng: Random, *, share: float) -> Mixture:
    """Add a cluster, as far from the others as the nearest two of these are, or farther."""
    scale = 1.5 * mixture.centres.std(axis=0)
    while True:
        place = mixture.centres.mean(axis=0) + scale * rng.normal(size=len(scale))
        if np.linalg.norm(mixture.centres - place, axis=1).min() >= APART:
            break
    return replace(
        mixture,
        centres=np.vstack([mixture.centres, place]),
        shares=np.append(mixture.shares * (1 - share), share),
    )


def radii_grow(mixture: Mixture, _: Random, *, times: float) -> Mixture:
    """Let all clusters scatter more."""
    return replace(mixture, radius=mixture.radius * times)


def column_moves(mixture: Mixture, _: Random, *, by: float) -> Mixture:
    """Add a constant to column 0."""
    centres = mixture.centres.copy()
    centres[:, 0] += by
    return replace(mixture, centres=centres)


CHANGES: dict[str, Change] = {
    **{f"one cluster moves {by:g} sd": partial(one_moves, by=by) for by in (0.5, 1.0, 2.0, 4.0)},
    **{f"all clusters move {by:g} sd": partial(all_move, by=by) for by in (0.25, 0.4)},
    "share x 1.4": partial(share_grows, times=1.4),
    **{f"new cluster {100 * share:g} %": partial(newcomer, share=share) for share in (0.02, 0.05)},
    "radii + 10 %": partial(radii_grow, times=1.1),
    "one column + 0.2 sd": partial(column_moves, by=0.2),
}
_FIRST = ("one cluster moves 2 sd", "one cluster moves 4 sd", "new cluster 5 %")


def independent_rows(rng: Random, mixtures: Iterable[Mixture], n_rows: int) -> Iterator[Points]:
    """Yield a batch of independent rows of each mixture."""
    for mixture in mixtures:
        yield mixture.rows(rng, n_rows)


def rows_of_devices(
    rng: Random, mixtures: Iterable[Mixture], n_rows: int, *, lasting: float = 0.0, leaving: float
) -> Iterator[Points]:
    """Yield a batch of 20 devices for each mixture, which go on as they were when it changes.

    `lasting` is the autocorrelation of a device's noise, `leaving` the probability to leave a
    state, less for one of a larger share. A cluster that a later mixture has beyond those of the
    first takes its share of the devices for good.
    """
    n_devices, n_states = 20, 0
    noise: Iterator[Points] | None = None
    states = np.zeros(n_devices, dtype=np.int64)
    for mixture in mixtures:
        if noise is None:
            n_states = len(mixture.centres)
            states = np.arange(n_devices) % n_states
            noise = autoregressive(rng, lasting, (n_devices, mixture.centres.shape[1]))
        shares = mixture.shares[:n_states] / mixture.shares[:n_states].sum()
        taken = math.ceil(n_devices * mixture.shares[n_states:].sum() - 1e-9)
        readings = []
        for _ in range(n_rows // n_devices):
            seen = states.copy()
            seen[:taken] = n_states
            readings.append(mixture.centres[seen] + mixture.radius * next(noise))
            leaves = rng.random(n_devices) < leaving / (n_states * shares[states])
            steps = rng.integers(1, n_states, size=n_devices)
            states = np.where(leaves, (states + steps) % n_states, states)
        yield np.concatenate(readings)


@dataclass(frozen=True)
class Base:
    """A stream that changes once, in several ways.

    Parameters
    ----------
    name : str
    n_clusters, n_features, n_rows : int
        K, d, and the rows of a batch.
    calm : int, default=60
        Batches before the change.
    changes : tuple of str
        Keys of `CHANGES`.
    rows : callable
        Yields a batch for each mixture; independent rows by default.

    Examples
    --------
    >>> [name for name in BASES][:2]
    ['K4-d3-n200', 'K10-d8-n500']
    """

    name: str
    n_clusters: int
    n_features: int
    n_rows: int
    calm: int = CALM
    changes: tuple[str, ...] = tuple(CHANGES)
    rows: Callable[[Random, Iterable[Mixture], int], Iterator[Points]] = field(
        default=independent_rows, repr=False
    )

    def mixture(self, seed: int) -> Mixture:
        """Return its clusters before the change."""
        rng = np.random.default_rng(seed_of(seed, "clusters", self.name))
        return Mixture.drawn(rng, self.n_clusters, self.n_features)

    def batches(self, seed: int, change: str) -> Iterator[Points]:
        """Yield batches without end; those before the change are the same for every change."""
        before = self.mixture(seed)
        rng = np.random.default_rng(seed_of(seed, "change", self.name, change))
        after = CHANGES[change](before, rng)
        rng = np.random.default_rng(seed_of(seed, "rows", self.name))
        return self.rows(rng, chain(repeat(before, self.calm), repeat(after)), self.n_rows)


def _bases() -> Iterator[Base]:
    yield Base("K4-d3-n200", 4, 3, 200)
    yield Base("K10-d8-n500", 10, 8, 500)
    for calm in (3, 6):
        yield Base(f"K4-d3-n200-at-{calm}", 4, 3, 200, calm, _FIRST)
        yield Base(f"K10-d8-n500-at-{calm}", 10, 8, 500, calm, _FIRST)
    moves = [f"one cluster moves {by} sd" for by in (1, 2, 4)]
    yield Base(
        "ar-0.9", 4, 3, 200, changes=(*moves, "new cluster 5 %"),
        rows=partial(rows_of_devices, lasting=0.9, leaving=0.0),
    )  # fmt: skip
    yield Base(
        "states-0.2", 4, 3, 200,
        changes=(*moves, "all clusters move 0.4 sd", "share x 1.4", "new cluster 5 %"),
        rows=partial(rows_of_devices, leaving=0.2),
    )  # fmt: skip


BASES = {base.name: base for base in _bases()}


@dataclass(frozen=True)
class Abrupt:
    """A stream that changes again and again: every change should be reported in its own batch.

    Parameters
    ----------
    name : str
    every : int
        Batches from one change to the next.
    n_batches : int
        Of the whole stream, in a full run.
    change : callable
        What happens each time.
    """

    name: str
    every: int
    n_batches: int
    change: Change = field(repr=False)

    n_clusters: int = 4
    n_features: int = 3
    n_rows: int = 200

    def batches(self, seed: int) -> Iterator[Points]:
        """Yield batches without end, the first `every` without a change."""
        rng = np.random.default_rng(seed_of(seed, "abrupt", self.name))
        mixture = Mixture.drawn(rng, self.n_clusters, self.n_features)
        for batch in count():
            if batch and batch % self.every == 0:
                mixture = self.change(mixture, rng)
            yield mixture.rows(rng, self.n_rows)


def any_moves(mixture: Mixture, rng: Random, *, by: float) -> Mixture:
    """Move a cluster, any of them, to where it does not run into another."""
    number = int(rng.integers(len(mixture.centres)))
    others = np.delete(mixture.centres, number, axis=0)
    while True:
        place = mixture.centres[number] + by * _direction(rng, others.shape[1])
        if np.linalg.norm(others - place, axis=1).min() >= APART - 1:
            break
    centres = mixture.centres.copy()
    centres[number] = place
    return replace(mixture, centres=centres)


def all_new(mixture: Mixture, rng: Random) -> Mixture:
    """Put all clusters elsewhere."""
    return Mixture.drawn(rng, *mixture.centres.shape)


def new_shares(mixture: Mixture, rng: Random) -> Mixture:
    """Draw all shares anew, uniformly among those that sum to 1."""
    return replace(mixture, shares=rng.dirichlet(np.ones(len(mixture.shares))))


@dataclass(frozen=True)
class Evolving:
    """A stream whose clusters appear, split, merge and vanish in turn, one change at a time."""

    name: str
    every: int
    n_batches: int

    n_clusters: int = 5
    n_features: int = 3
    n_rows: int = 200

    def batches(self, seed: int) -> Iterator[Points]:
        """Yield batches without end, the first `every` without a change."""
        rng = np.random.default_rng(seed_of(seed, "abrupt", self.name))
        rows = Mixture.drawn(rng, self.n_clusters, self.n_features).rows(rng, 4000)
        for number in count():
            concepts = evolve_clusters(
                rows, self.n_clusters, ("appear", "split", "merge", "vanish"), random_state=rng
            )
            for concept in concepts if number == 0 else concepts[1:]:
                for _ in range(self.every):
                    yield concept.points[rng.integers(len(concept.points), size=self.n_rows)]
            rows = concepts[-1].points


def _abrupt() -> Iterator[Abrupt | Evolving]:
    for every, n_batches, sizes in ((50, 1500, (1.5, 3, 6)), (10, 500, (3, 6))):
        for by in sizes:
            change = partial(any_moves, by=by)
            yield Abrupt(f"every-{every}-moves-{by:g}sd", every, n_batches, change)
        yield Abrupt(f"every-{every}-all-new", every, n_batches, all_new)
    yield Abrupt("every-50-new-shares", 50, 1500, new_shares)
    yield Evolving("every-50-appear-split-merge-vanish", 50, 1500)


ABRUPT = {stream.name: stream for stream in _abrupt()}
