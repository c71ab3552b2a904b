"""How rows are drawn: clusters, noise that lasts, devices with states, cycles.

Lengths are in standard deviations of a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Points

Random = np.random.Generator
Noise = Callable[[Random, tuple[int, ...]], Points]
Size = Callable[[Random], int]

# Distance of the nearest two clusters, unless a stream says otherwise.
APART = 8.0
DAY, WEEK = 24, 7
WEEKDAY, WEEKEND = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
FEWEST_ROWS, MOST_ROWS = 40, 1000


@dataclass(frozen=True, eq=False)
class Mixture:
    """Clusters from which rows are drawn independently.

    Parameters
    ----------
    centres : ndarray of shape (n_clusters, n_features)
    shares : ndarray of shape (n_clusters,)
        Probability that a row belongs to each cluster.
    radius : float, default=1
        Standard deviation of every column within a cluster.
    noise : callable, optional
        What is added to a centre, for radius 1; normal by default.
    """

    centres: Points
    shares: NDArray[np.float64]
    radius: float = 1.0
    noise: Noise = Random.standard_normal

    @classmethod
    def drawn(cls, rng: Random, n_clusters: int, n_features: int, apart: float = APART) -> Mixture:
        """Return clusters of equal share in random places."""
        centres = spread_out(rng, n_clusters, n_features, apart)
        return cls(centres, np.full(n_clusters, 1 / n_clusters))

    def rows(self, rng: Random, n_rows: int) -> Points:
        """Return that many rows."""
        members = rng.choice(len(self.centres), size=n_rows, p=self.shares)
        shape = (n_rows, self.centres.shape[1])
        rows: Points = self.centres[members] + self.radius * self.noise(rng, shape)
        return rows


def spread_out(rng: Random, n_clusters: int, n_features: int, apart: float) -> Points:
    """Return centres of which the nearest two have that distance, and the others not much more.

    The first of many normal points, then always the one farthest from those chosen.
    """
    candidates = rng.normal(size=(40 * n_clusters, n_features))
    chosen = [candidates[0]]
    nearest = np.linalg.norm(candidates - chosen[0], axis=1)
    for _ in range(n_clusters - 1):
        smallest = nearest.max()
        chosen.append(candidates[nearest.argmax()])
        nearest = np.minimum(nearest, np.linalg.norm(candidates - chosen[-1], axis=1))
    centres: Points = np.array(chosen) * (apart / smallest)
    return centres


def lognormal(rng: Random, shape: tuple[int, ...]) -> Points:
    """Return lognormal numbers (sigma 1.5, median 1): their standard deviation is 9, not 1."""
    return rng.lognormal(sigma=1.5, size=shape)


def student(rng: Random, shape: tuple[int, ...]) -> Points:
    """Return numbers with Student's t distribution, 3 degrees of freedom, of variance 1."""
    drawn: Points = rng.standard_t(3, size=shape) / math.sqrt(3)
    return drawn


def any_size(rng: Random) -> int:
    """Return a number of rows from 40 to 1000, its logarithm uniform."""
    return round(math.exp(rng.uniform(math.log(FEWEST_ROWS), math.log(MOST_ROWS))))


def always(size: int) -> Size:
    """Return what gives every batch that many rows."""
    return lambda _: size


def independent(
    rng: Random,
    n_clusters: int,
    n_features: int,
    *,
    size: Size,
    apart: float = APART,
    noise: Noise = Random.standard_normal,
) -> Iterator[Points]:
    """Yield batches of independent rows: customers, requests, parts from many machines."""
    mixture = replace(Mixture.drawn(rng, n_clusters, n_features, apart), noise=noise)
    while True:
        yield mixture.rows(rng, size(rng))


def with_far_rows(
    rng: Random, n_clusters: int, n_features: int, *, n_rows: int, every: int, far: float
) -> Iterator[Points]:
    """Yield batches of independent rows, one row in `every` batches `far` away: broken readings."""
    for rows in independent(rng, n_clusters, n_features, size=always(n_rows)):
        is_far = rng.random(n_rows) < 1 / (every * n_rows)
        directions = rng.normal(size=(int(is_far.sum()), n_features))
        rows[is_far] = far * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        yield rows


def with_batch_offset(
    rng: Random, n_clusters: int, n_features: int, *, size: Size, offset: float
) -> Iterator[Points]:
    """Yield batches whose rows share an offset: samples of a plate, a shift, an hour's weather."""
    for rows in independent(rng, n_clusters, n_features, size=size):
        yield rows + rng.normal(scale=offset, size=n_features)


def autoregressive(rng: Random, lasting: float, shape: tuple[int, ...]) -> Iterator[Points]:
    """Yield noise that lasts, an AR(1) process of variance 1: `lasting` is its autocorrelation."""
    noise = np.asarray(rng.normal(size=shape))
    while True:
        yield noise
        noise = lasting * noise + math.sqrt(1 - lasting**2) * rng.normal(size=shape)


def lasting_states(
    rng: Random, leaving: float, n_devices: int, n_clusters: int
) -> Iterator[NDArray[np.int64]]:
    """Yield the cluster of each device, which it leaves for another with probability `leaving`."""
    states = np.arange(n_devices) % n_clusters
    while True:
        yield states
        leaves = rng.random(n_devices) < leaving
        steps = rng.integers(1, n_clusters, size=n_devices)
        states = np.where(leaves, (states + steps) % n_clusters, states)


def devices(
    rng: Random,
    n_clusters: int,
    n_features: int,
    *,
    n_devices: int = 20,
    size: Size,
    lasting: float = 0.0,
    leaving: float = 0.0,
) -> Iterator[Points]:
    """Yield batches in which each device is read again and again: sensors, machines, patients."""
    centres = spread_out(rng, n_clusters, n_features, APART)
    noise = autoregressive(rng, lasting, (n_devices, n_features))
    states = lasting_states(rng, leaving, n_devices, n_clusters)
    while True:
        n_readings = round(size(rng) / n_devices)
        yield np.concatenate([centres[next(states)] + next(noise) for _ in range(n_readings)])


def one_lasting_column(
    rng: Random, n_clusters: int, n_features: int, *, n_rows: int, lasting: float
) -> Iterator[Points]:
    """Yield independent rows but for column 0 of cluster 0, an AR(1) process: one slow sensor."""
    mixture = Mixture.drawn(rng, n_clusters, n_features)
    sensor = autoregressive(rng, lasting, ())
    while True:
        members = rng.integers(n_clusters, size=n_rows)
        rows = mixture.centres[members] + rng.normal(size=(n_rows, n_features))
        readings = [float(next(sensor)) for _ in range(int((members == 0).sum()))]
        rows[members == 0, 0] = mixture.centres[0, 0] + readings
        yield rows


def new_devices(
    rng: Random, n_clusters: int, n_features: int, *, offset: float
) -> Iterator[Points]:
    """Yield 10 rows of each of 20 devices never seen before, each off by its own: users, trips."""
    n_devices, n_readings = 20, 10
    centres = spread_out(rng, n_clusters, n_features, APART)
    states = np.arange(n_devices) % n_clusters
    while True:
        own = centres[states] + rng.normal(scale=offset, size=(n_devices, n_features))
        rows = own + rng.normal(size=(n_readings, n_devices, n_features))
        yield rows.reshape(-1, n_features)


def cycles(
    rng: Random, n_clusters: int, n_features: int, *, n_rows: int, day: float, week: bool
) -> Iterator[Points]:
    """Yield hours in which column 0 follows a sine, `day` from low to high: temperatures, loads.

    With `week` it is half as high at weekends, and clusters have other shares then.
    """
    working = Mixture.drawn(rng, n_clusters, n_features)
    if week:
        working = replace(working, shares=WEEKDAY)
    for hour in count():
        free = week and is_weekend(hour // DAY)
        rows = (replace(working, shares=WEEKEND) if free else working).rows(rng, n_rows)
        rows[:, 0] += (0.5 if free else 1.0) * day / 2 * math.sin(2 * math.pi * hour / DAY)
        yield rows


def weekdays(rng: Random, n_clusters: int, n_features: int, *, n_rows: int) -> Iterator[Points]:
    """Yield days; at weekends clusters have other shares: shops, offices, commuters."""
    mixture = Mixture.drawn(rng, n_clusters, n_features)
    for day in count():
        yield replace(mixture, shares=WEEKEND if is_weekend(day) else WEEKDAY).rows(rng, n_rows)


def walking(
    rng: Random, n_clusters: int, n_features: int, *, n_rows: int, step: float
) -> Iterator[Points]:
    """Yield rows around centres that walk, each by `step` a batch in a direction drawn anew."""
    mixture = Mixture.drawn(rng, n_clusters, n_features)
    while True:
        yield mixture.rows(rng, n_rows)
        ways = rng.normal(size=mixture.centres.shape)
        ways *= step / np.linalg.norm(ways, axis=1, keepdims=True)
        mixture = replace(mixture, centres=mixture.centres + ways)


def is_weekend(day: int) -> bool:
    """Return whether that day, of a stream that begins on a Monday, is one of rest."""
    return day % WEEK >= 5
