"""Changes that should be noticed: what a stream of independent rows becomes at a given batch.

Lengths are in standard deviations of a cluster. Directions are drawn, so that no column is special.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kmeander.arrays import Points
from kmeander.experiments.alarms.streams import APART, Mixture, Random
from kmeander.experiments.protocol import seed_of

# Batches before the change.
CALM = 60


@dataclass(frozen=True)
class Base:
    """A stream of independent rows, which changes in several ways.

    Examples
    --------
    >>> [name for name in BASES]
    ['K4-d3-n200', 'K10-d8-n500']
    """

    name: str
    n_clusters: int
    n_features: int
    n_rows: int

    def mixture(self, seed: int) -> Mixture:
        """Return its clusters before the change."""
        rng = np.random.default_rng(seed_of(seed, "clusters", self.name))
        return Mixture.drawn(rng, self.n_clusters, self.n_features)

    def before(self, seed: int) -> Iterator[Points]:
        """Yield the batches before the change."""
        rng = np.random.default_rng(seed_of(seed, "before", self.name))
        mixture = self.mixture(seed)
        for _ in range(CALM):
            yield mixture.rows(rng, self.n_rows)

    def after(self, seed: int, change: str) -> Iterator[Points]:
        """Yield the batches from the change on, without end."""
        rng = np.random.default_rng(seed_of(seed, "after", self.name, change))
        changed = CHANGES[change](self.mixture(seed), rng)
        while True:
            yield changed.rows(rng, self.n_rows)


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


BASES = {
    base.name: base for base in (Base("K4-d3-n200", 4, 3, 200), Base("K10-d8-n500", 10, 8, 500))
}
CHANGES: dict[str, Callable[[Mixture, Random], Mixture]] = {
    **{f"one cluster moves {by:g} sd": partial(one_moves, by=by) for by in (0.5, 1.0, 2.0, 4.0)},
    **{f"all clusters move {by:g} sd": partial(all_move, by=by) for by in (0.25, 0.4)},
    "share x 1.4": partial(share_grows, times=1.4),
    **{f"new cluster {100 * share:g} %": partial(newcomer, share=share) for share in (0.02, 0.05)},
    "radii + 10 %": partial(radii_grow, times=1.1),
    "one column + 0.2 sd": partial(column_moves, by=0.2),
}
