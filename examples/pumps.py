"""Readings of pumps in a waterworks as CSV on standard output: the stream of the tutorial.

    python examples/pumps.py > pumps.csv

Twenty pumps are read once an hour for thirty days, 480 rows a day. They run in four ways. On day
12 the water gets warmer, and pumps under full load run hotter. From day 15 on those under normal
load grow louder, day by day, as their bearings wear. On day 22 a new control ends the difference
between idling and running at night, and drives half of the full load harder.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

FIRST = datetime(2026, 6, 1, tzinfo=UTC)
SPREAD = [1.5, 3.0, 1.2]
SHARES = [0.2, 0.2, 0.35, 0.125, 0.125]


def ways_to_run(day: int) -> NDArray[np.float64]:
    """Return temp, load and noise of idling, night, normal load and full load (twice)."""
    ways = np.array(
        [[24, 4, 41], [31, 28, 52], [42, 55, 60], [55, 88, 68], [55, 88, 68]], dtype=np.float64
    )
    if day >= 12:
        ways[3:, 0] += 9
    ways[2, 2] += 0.4 * max(0, day - 14)
    if day >= 22:
        ways[:2] = [28, 16, 47]
        ways[4] += [8, 14, 7]
    return ways


def main(n_days: int = 30, n_pumps: int = 20) -> None:
    rng = np.random.default_rng(6)
    print("time,pump,temp,load,noise")
    for day in range(n_days):
        for hour in range(24):
            time = FIRST + timedelta(days=day, hours=hour)
            ways = rng.choice(5, size=n_pumps, p=SHARES)
            readings = ways_to_run(day)[ways] + rng.normal(size=(n_pumps, 3)) * SPREAD
            for pump, (temp, load, noise) in enumerate(readings.tolist(), start=1):
                print(f"{time:%Y-%m-%dT%H:%MZ},P{pump:02},{temp:.1f},{load:.1f},{noise:.1f}")


if __name__ == "__main__":
    main()
