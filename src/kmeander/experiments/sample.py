"""Datasets made in code, for a first run without any file."""

from __future__ import annotations

import numpy as np

from kmeander.arrays import Points
from kmeander.experiments.datasets import LoadedDataset


def sample_datasets() -> list[LoadedDataset]:
    """Return two datasets that look like real ones: uneven, skewed, correlated, with outliers."""
    rng = np.random.default_rng(20211207)
    return [
        LoadedDataset("sample-places", "Places (made up)", _places(rng), "built in"),
        LoadedDataset("sample-sensors", "Sensors (made up)", _sensors(rng), "built in"),
    ]


def _places(rng: np.random.Generator, n_rows: int = 8000) -> Points:
    """Longitudes and latitudes around towns of very different size, and some between them."""
    n_towns = 40
    towns = rng.uniform([-5.0, 50.0], [1.5, 57.0], size=(n_towns, 2))
    sizes = 1.0 / np.arange(1, n_towns + 1)
    home = rng.choice(n_towns, size=n_rows, p=sizes / sizes.sum())
    width = (0.02 + 0.25 * np.sqrt(sizes))[home, np.newaxis]
    places = towns[home] + width * rng.normal(size=(n_rows, 2))
    stray = rng.random(n_rows) < 0.03
    places[stray] = rng.uniform([-5.0, 50.0], [1.5, 57.0], size=(stray.sum(), 2))
    return places


def _sensors(rng: np.random.Generator, n_rows: int = 6000, n_columns: int = 8) -> Points:
    """Readings of machines in several states, on scales of their own, with heavy tails."""
    n_states = 6
    shares = rng.dirichlet(np.full(n_states, 1.5))
    state = rng.choice(n_states, size=n_rows, p=shares)
    level = rng.normal(scale=2.0, size=(n_states, n_columns))
    mixing = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns)
    noise = rng.standard_t(df=4, size=(n_rows, n_columns))
    hour = rng.uniform(0, 2 * np.pi, size=(n_rows, 1))
    wave = np.sin(hour + np.linspace(0, np.pi, n_columns))
    # Column by column, so that no BLAS decides the last digits.
    mixed = np.stack([(noise * mixing[:, j]).sum(axis=1) for j in range(n_columns)], axis=1)
    readings = level[state] + mixed + 0.5 * wave
    scaled: Points = readings * np.exp(rng.normal(scale=0.7, size=n_columns))
    return scaled
