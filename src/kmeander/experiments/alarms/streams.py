"""Streams that do not change, each a way in which rows of real streams depend on one another.

Cycles are not changes here: who knows the stream expects them, so an alarm at every sunrise is a
false one. Two streams that do change, slowly, stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kmeander.arrays import Points
from kmeander.experiments.alarms.generators import (
    APART,
    DAY,
    WEEK,
    Random,
    always,
    any_size,
    cycles,
    devices,
    independent,
    lognormal,
    new_devices,
    one_lasting_column,
    student,
    walking,
    weekdays,
    with_batch_offset,
    with_far_rows,
)
from kmeander.experiments.protocol import seed_of

# Alarmed batches per 1000 that a stream may have; where two cycles are nested and given, more.
LIMIT, NESTED_LIMIT = 1.5, 2.0


@dataclass(frozen=True)
class Stream:
    """A stream without a change.

    Parameters
    ----------
    name : str
        Of its files, and in tables.
    n_clusters, n_features : int
        K and d.
    stands_for : str
        The real stream that it imitates.
    generate : callable
        Yields batches without end, all random choices by the generator that it is given.
    independent : bool, default=False
        Whether all rows are drawn independently from one distribution.
    season : int, optional
        Batches of the cycle that the model is given.
    limit : float, default=1.5
        Alarmed batches per 1000 that it may have; None where none is promised.
    rows_of : str, optional
        Name of the stream whose rows these are; its own by default.

    Examples
    --------
    >>> stream = STREAMS["independent-K4-d3-n200"]
    >>> next(stream.batches(seed=0)).shape
    (200, 3)
    """

    name: str
    n_clusters: int
    n_features: int
    stands_for: str
    generate: Callable[[Random, int, int], Iterator[Points]]
    independent: bool = False
    season: int | None = None
    limit: float | None = LIMIT
    rows_of: str = ""

    def batches(self, seed: int) -> Iterator[Points]:
        """Yield batches without end; the same seed gives the same bytes."""
        rng = np.random.default_rng(seed_of(seed, "alarms", self.rows_of or self.name))
        return self.generate(rng, self.n_clusters, self.n_features)

    def with_season(self, season: int, limit: float | None = LIMIT) -> Stream:
        """Return the same rows, and a model that is given a season."""
        name = f"{self.name}-season-{season}"
        return replace(self, name=name, season=season, limit=limit, rows_of=self.name)


def _independent(n_clusters: int, n_features: int, n_rows: int, apart: float = APART) -> Stream:
    distance = "" if apart == APART else f"-{apart:g}sd"
    return Stream(
        f"independent-K{n_clusters}-d{n_features}-n{n_rows}{distance}", n_clusters, n_features,
        "customers or requests that do not know each other",
        partial(independent, size=always(n_rows), apart=apart), independent=True,
    )  # fmt: skip


def _small(name: str, stands_for: str, generate: Callable[..., Iterator[Points]]) -> Stream:
    return Stream(name, 4, 3, stands_for, generate)


_200 = always(200)
_DAY = _small(
    "day-3sd", "temperature by the hour",
    partial(cycles, n_rows=200, day=3.0, week=False),
)  # fmt: skip
_WEEKDAYS = _small("weekdays", "customers by the day", partial(weekdays, n_rows=200))
# One season does not describe both cycles, so no limit is promised unless it covers both.
_DAY_AND_WEEK = replace(
    _small(
        "day-and-week", "the load of a network by the hour",
        partial(cycles, n_rows=200, day=3.0, week=True),
    ),
    limit=None,
)  # fmt: skip
STREAMS = {
    stream.name: stream
    for stream in (
        _independent(4, 3, 200),
        _independent(4, 8, 500),
        _independent(10, 3, 200),
        _independent(10, 8, 500, apart=20.0),
        _independent(10, 8, 500, apart=3.0),
        *(
            _small(
                f"ar-{lasting:g}", "20 sensors, each read 10 times a batch",
                partial(devices, size=_200, lasting=lasting),
            )
            for lasting in (0.5, 0.9, 0.98, 0.998)
        ),
        *(
            _small(
                f"states-{leaving:g}", "20 machines that stay in a mode of operation",
                partial(devices, size=_200, leaving=leaving),
            )
            for leaving in (0.2, 0.02)
        ),
        Stream(
            "ar-0.9-states-0.05-K10-d8-n500", 10, 8, "20 machines with modes and slow sensors",
            partial(devices, size=always(500), lasting=0.9, leaving=0.05),
        ),
        _small(
            "one-device", "one machine, every reading of it",
            partial(devices, n_devices=1, size=_200, lasting=0.9, leaving=0.02),
        ),
        _small(
            "one-lasting-column", "a slow sensor at one of the machines",
            partial(one_lasting_column, n_rows=200, lasting=0.99),
        ),
        _small(
            "new-devices-0.5sd", "other users in every batch, with 10 rows each",
            partial(new_devices, offset=0.5),
        ),
        _small(
            "batch-offset-0.15sd", "laboratory batches, each calibrated anew",
            partial(with_batch_offset, size=_200, offset=0.15),
        ),
        replace(
            _small(
                "sizes", "requests, by the minute: 40 to 1000 of them",
                partial(independent, size=any_size),
            ),
            independent=True,
        ),
        _small(
            "sizes-batch-offset-0.15sd", "laboratory batches of 40 to 1000 samples",
            partial(with_batch_offset, size=any_size, offset=0.15),
        ),
        _small(
            "sizes-ar-0.5", "20 sensors, each read 2 to 50 times a batch",
            partial(devices, size=any_size, lasting=0.5),
        ),
        replace(
            _small(
                "lognormal-1.5", "amounts of money, durations",
                partial(independent, size=_200, noise=lognormal),
            ),
            independent=True,
        ),
        replace(
            _small("t3", "returns of shares", partial(independent, size=_200, noise=student)),
            independent=True,
        ),
        replace(
            _small(
                "far-rows", "a broken reading in 100 batches, 100 sd away",
                partial(with_far_rows, n_rows=200, every=100, far=100.0),
            ),
            independent=True,
        ),
        _DAY,
        _DAY.with_season(DAY),
        _WEEKDAYS,
        _WEEKDAYS.with_season(WEEK),
        _DAY_AND_WEEK,
        _DAY_AND_WEEK.with_season(DAY, limit=None),
        _DAY_AND_WEEK.with_season(DAY * WEEK, limit=NESTED_LIMIT),
        *(
            replace(
                _small(
                    f"walk-{step:g}sd", "habits that shift slowly: a real change, not a false one",
                    partial(walking, n_rows=200, step=step),
                ),
                limit=None,
            )
            for step in (0.02, 0.05)
        ),
    )
}  # fmt: skip
