"""Pools: rows of real streams, drawn independently, and what a small drift makes of them.

Real rows are not normal: they have skew, atoms and columns that depend on one another. Drawn
independently they form a stream that does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kmeander.arrays import Points
from kmeander.drifts.concepts import simulate_drifts
from kmeander.exceptions import InputError
from kmeander.experiments import readers
from kmeander.experiments.alarms.generators import Mixture
from kmeander.experiments.protocol import seed_of

# The pool that is made: rows of ten normal clusters, so near that they touch.
GAUSSIAN = "gaussian"
FOLDER = "natural"
MAX_ROWS, N_ROWS, N_CLUSTERS = 20_000, 500, 10
_APART = 6.0
# Size of the drift: the error under the old centroids grows by this share.
EPSILON = 0.02


def gaussian_pool() -> Points:
    """Return the pool that is made."""
    rng = np.random.default_rng(0)
    return Mixture.drawn(rng, N_CLUSTERS, 8, _APART).rows(rng, MAX_ROWS)


def load_pools(folder: Path) -> dict[str, Points]:
    """Return the pool of every Parquet file in ``folder/natural``, by its name.

    Columns are standardised, and those that never vary left out; of a long file 20,000 rows are
    drawn, always the same.
    """
    below = folder / FOLDER
    files = readers.files_in(below) if below.is_dir() else []
    pools = {
        file.path.stem: _pool(file) for file in files if file.path.suffix.lower() == ".parquet"
    }
    if not pools:
        raise InputError(
            f"{below} holds no Parquet files. Put streams there whose rows are to be drawn "
            "independently, or name no folder, to use the Gaussian pool alone."
        )
    return pools


def _pool(file: readers.DataFile) -> Points:
    _, names = readers.parquet_columns(file)
    rng = np.random.default_rng(seed_of(0, "pool", file.path.stem))
    found = readers.sampled(readers.parquet(names)(file), MAX_ROWS, rng)
    if found is None or len(found.points) < N_ROWS:
        raise InputError(f"{file} has fewer than {N_ROWS} rows, which one batch takes.")
    spread = found.points.std(axis=0)
    pool: Points = (found.points - found.points.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    return pool


def drawn(pool: Points, seed: int, *words: object) -> Iterator[Points]:
    """Yield batches of 500 rows of the pool, each drawn independently, without end."""
    rng = np.random.default_rng(seed_of(seed, "pool", *words))
    while True:
        yield pool[rng.integers(len(pool), size=N_ROWS)]


def drifted(pool: Points, seed: int) -> Points:
    """Return the pool after a drift of epsilon 0.02."""
    _, after = simulate_drifts(
        pool, N_CLUSTERS, EPSILON, 2, random_state=seed_of(seed, "drift") % 2**32
    )
    return after
