"""A stream of sensor readings as CSV on standard output, to try `kmeander run` with.

    python examples/readings.py > readings.csv

Four machines, 20,000 rows; every 5,000 rows they change the way they run.
"""

from __future__ import annotations

import sys

import numpy as np


def main(n_rows: int = 20_000, n_machines: int = 4) -> None:
    rng = np.random.default_rng(0)
    print("temp,load,flow")
    for row in range(n_rows):
        if row % 5_000 == 0:
            centres = rng.uniform([20, 0, 1], [90, 100, 9], size=(n_machines, 3))
        temp, load, flow = centres[rng.integers(n_machines)] + rng.normal(size=3) * [3, 4, 0.4]
        print(f"{temp:.2f},{load:.2f},{flow:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
