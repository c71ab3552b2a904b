"""Which methods learn which streams, with which seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kmeander.arrays import Points
from kmeander.experiments.alarms.pools import N_CLUSTERS, load_pools
from kmeander.experiments.beyond.contestants import DEFAULT, RIVER
from kmeander.experiments.beyond.other_streams import natural, returning, synthetic
from kmeander.experiments.beyond.other_streams.cells import StreamCell, settings_of
from kmeander.experiments.beyond.other_streams.natural import NaturalCell, NaturalStream
from kmeander.experiments.beyond.other_streams.returning import EPSILONS, ReturningCell
from kmeander.experiments.beyond.other_streams.synthetic import KINDS, SyntheticCell
from kmeander.experiments.beyond.other_streams.variants import (
    ABLATIONS,
    ON_NATURAL,
    ON_RETURNING,
    ON_SYNTHETIC,
)

# Seeds on which the default is developed, and those that are kept for reporting.
DEVELOPING, REPORTING = range(3), range(100, 105)
# Kinds of cells, with which the names of their files begin.
PANELS = (SyntheticCell.panel, NaturalCell.panel, ReturningCell.panel)
# What takes part where there are no files: a few seconds.
QUICK_KINDS = ("N500-K25-d20-K-move", "N500-K25-d20-2K-jump")
# Concepts that return take a reference over all rows of a pool.
MOST_SEEDS_RETURNING = 2


@dataclass(frozen=True, eq=False)
class Plan:
    """What is run.

    Parameters
    ----------
    seeds : sequence of int
    kinds : sequence of str
        Names of synthetic streams.
    streams : dict of NaturalStream
    pools : dict of ndarray
        Rows from which returning concepts are drawn.
    river : bool, default=False
        Whether river's KMeans takes part.
    variants : sequence of str
        The variants of the default that take part; by default all.
    """

    seeds: Sequence[int] = DEVELOPING
    kinds: Sequence[str] = tuple(KINDS)
    streams: Mapping[str, NaturalStream] = field(default_factory=dict)
    pools: Mapping[str, Points] = field(default_factory=dict)
    river: bool = False
    variants: Sequence[str] = tuple(ABLATIONS)

    @classmethod
    def of_folder(cls, folder: Path | None, seeds: Sequence[int], *, river: bool = False) -> Plan:
        """Return the plan for the files of a folder; without one, a few synthetic streams."""
        if folder is None:
            return cls(seeds[:1], QUICK_KINDS, river=river)
        has_natural = (folder / natural.FOLDER).is_dir()
        return cls(
            seeds,
            streams=natural.load_streams(folder),
            pools=load_pools(folder) if has_natural else {},
            river=river,
        )

    @property
    def of_default(self) -> tuple[str, ...]:
        """The default and its variants."""
        return (DEFAULT, *self.variants)

    def cells(self) -> list[StreamCell]:
        """Return every cell, in a fixed order."""
        return [*self._synthetic(), *self._natural(), *self._returning()]

    def data(self) -> dict[str, Points]:
        """Return the points of every cell, by key."""
        made = {
            synthetic.empty_key(kind.n_features): np.empty((0, kind.n_features))
            for kind in KINDS.values()
        }
        pools = {returning.pool_key(name): pool for name, pool in self.pools.items()}
        return {**made, **natural.points_by_key(self.streams), **pools}

    def facts(self) -> dict[str, Any]:
        """Return what the page says of it."""
        return {
            "seeds": list(self.seeds),
            "kinds": list(self.kinds),
            "streams": {
                name: [*stream.points.shape, stream.batch_size, stream.n_clusters]
                for name, stream in self.streams.items()
            },
            "pools": {name: list(pool.shape) for name, pool in self.pools.items()},
            "variants": list(self.variants),
        }

    def _synthetic(self) -> Iterator[StreamCell]:
        for name in self.kinds:
            for seed in self.seeds[: KINDS[name].most_seeds]:
                for method in (*ON_SYNTHETIC, *self.of_default):
                    yield SyntheticCell(
                        name, method, seed, *settings_of(method), KINDS[name].n_clusters, 0.0
                    )

    def _natural(self) -> Iterator[StreamCell]:
        river = (RIVER,) if self.river else ()
        for name, stream in self.streams.items():
            for seed in self.seeds:
                # Slow: one seed is enough to see where it stands.
                peers = river if seed == self.seeds[0] else ()
                for method in (*ON_NATURAL, *peers, *self.of_default):
                    yield NaturalCell(
                        name, method, seed, *settings_of(method), stream.n_clusters,
                        0.0, stream.batch_size,
                    )  # fmt: skip

    def _returning(self) -> Iterator[StreamCell]:
        for pool in self.pools:
            for epsilon in EPSILONS:
                for seed in self.seeds[:MOST_SEEDS_RETURNING]:
                    for method in (*ON_RETURNING, *self.of_default):
                        yield ReturningCell(
                            returning.stream_name(pool, epsilon), method, seed,
                            *settings_of(method), N_CLUSTERS, epsilon, pool,
                        )  # fmt: skip
