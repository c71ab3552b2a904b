"""What preparing rows costs: ``python -m benchmarks.bench_prepare``.

Steps, runs, and reading CSV, each with and without; the median of ratios of pairs, one after the
other, by processor time, one thread.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as arrow_csv

from benchmarks.streams import Shape, mixture
from kmeander import ForgetfulKMeans, Preparation, run
from kmeander.preparation import FittedPreparation, rows_of
from kmeander.sources import FileSource, Reading, Wanted

SHAPES = (Shape(500, 10, 8), Shape(5000, 25, 20), Shape(2000, 64, 128))
N_BATCHES, PAIRS = 40, 5
FILE_ROWS, FILE_COLUMNS = 50_000, 20
# How much longer a step and a run may take; how fast reading must be beside pyarrow's own.
LONGEST, READING = 1.2, 0.7


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a piece of work."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def ratio(work: Callable[[], object], plain: Callable[[], object]) -> float:
    """Return how many times as long `work` takes as `plain` does."""
    return statistics.median(seconds(work) / seconds(plain) for _ in range(PAIRS))


def steps(shape: Shape) -> float:
    """Return how many times as long steps take with preparation."""
    batches = list(islice(mixture(shape).batches(0), N_BATCHES))

    fitted = FittedPreparation.learned(Preparation(), rows_of(batches[0]))
    points = [fitted.prepared(rows_of(batch)).points for batch in batches]

    def learn(prepare: str | None, batches: list[Any]) -> None:
        model = ForgetfulKMeans(shape.n_clusters, prepare=prepare, random_state=0, n_threads=1)
        for batch in batches:
            model.partial_fit(batch)

    learn("auto", batches)
    # The same clusters of the same points, so that nothing but preparing them differs.
    return ratio(lambda: learn("auto", batches), lambda: learn(None, points))


def runs(path: Path) -> float:
    """Return how many times as long a run over a CSV file takes with preparation."""

    def whole(prepare: str | None) -> None:
        run(path, 10, batch_size=5000, prepare=prepare, n_threads=1)

    whole("auto")
    return ratio(lambda: whole("auto"), lambda: whole(None))


def reading(path: Path) -> float:
    """Return the speed of reading and preparing CSV beside that of pyarrow's reading alone."""

    def prepared() -> None:
        source = FileSource(str(path), Wanted(rules=Preparation()), Reading())
        source.start()
        fitted: FittedPreparation | None = None
        for block in source.blocks():
            assert block is not None
            if fitted is None:
                fitted = FittedPreparation.learned(Preparation(), block.table)
            else:
                fitted, _ = fitted.after(block.table)
            fitted.prepared(block.table)
        source.close()

    def plain() -> None:
        options = arrow_csv.ReadOptions(use_threads=False)
        for _ in arrow_csv.open_csv(path, options):
            pass

    prepared()
    return 1 / ratio(prepared, plain)


def main() -> int:
    """Print the figures, and whether they are those that were asked for."""
    found = {f"step, {shape}": (steps(shape), LONGEST) for shape in SHAPES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        rows = np.random.default_rng(0).normal(size=(FILE_ROWS, FILE_COLUMNS))
        names = ",".join(f"x{i}" for i in range(FILE_COLUMNS))
        np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=names, comments="")
        found["run over CSV"] = runs(path), LONGEST
        speed = reading(path)
    for name, (measured, longest) in found.items():
        print(f"{name}: {measured:.2f} times as long (asked: at most {longest})")
    print(f"reading and preparing CSV: {speed:.2f} of pyarrow's speed (asked: at least {READING})")
    return int(speed < READING or any(measured > longest for measured, longest in found.values()))


if __name__ == "__main__":
    sys.exit(main())
