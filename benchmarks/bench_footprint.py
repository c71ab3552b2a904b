"""What kmeander costs besides time: its import, the bytes of a model, a long stream's memory.

python -m benchmarks.bench_footprint [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.contestants import RHO, WINDOW, timed
from benchmarks.streams import Shape, mixture
from kmeander import FSKM, Batch

SHAPES = (
    Shape(500, 10, 8),
    Shape(500, 25, 20),
    Shape(5000, 25, 20),
    Shape(5000, 100, 32),
    Shape(2000, 64, 128),
)


def import_milliseconds() -> float:
    """`import kmeander` on top of `import numpy`."""
    code = (
        "import time, numpy; t = time.perf_counter(); import kmeander; "
        "print(time.perf_counter() - t)"
    )
    costs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    return 1e3 * statistics.median(costs)


def help_seconds() -> float:
    """`kmeander --help`."""
    program = str(Path(sys.executable).with_name("kmeander"))
    return statistics.median(
        timed(subprocess.run, [program, "--help"], capture_output=True, check=True)[0].wall
        for _ in range(5)
    )


def model_bytes(model: FSKM) -> int:
    """Bytes of all arrays a model holds between two batches."""
    seen: dict[int, int] = {}
    partition = model.window.partition
    assert partition is not None
    for batch in model.window.batches:
        for held in vars(batch).values():
            if isinstance(held, np.ndarray):
                seen[id(held)] = held.nbytes
    step = model.last_step
    for held in (model.centroids, step and step.masses, step and step.moved):
        if isinstance(held, np.ndarray):
            seen[id(held)] = held.nbytes
    # Read out of the kernel, each time as another object.
    known: list[NDArray[Any]] = [partition.labels]
    if (bounds := partition.bounds) is not None:
        known += [bounds.upper, bounds.lower, bounds.snapshot]
    if (sums := partition.sums) is not None:
        known += [sums.masses, sums.sums, sums.scatter]
    return sum(seen.values()) + sum(held.nbytes for held in known)


@dataclass(frozen=True)
class Memory:
    """Bytes of a model after a stream, and the process's MiB at every tenth of it."""

    points_bytes: int
    extra_bytes: int
    n_points: int
    resident_mib: list[float]

    @property
    def allowed_bytes(self) -> float:
        return max(0.4 * self.points_bytes, 24 * self.n_points)


def memory(shape: Shape, n_batches: int) -> Memory:
    """Learn so many batches and look."""
    model = FSKM(
        shape.n_clusters,
        init="previous",
        rho=RHO,
        max_batches=WINDOW,
        n_threads=1,
        random_state=0,
    )
    process = psutil.Process()
    resident = []
    for index, points in zip(range(n_batches), mixture(shape).batches(0), strict=False):
        model.step(Batch(index, points))
        if index % (n_batches // 10) == n_batches // 10 - 1:
            resident.append(process.memory_info().rss / 2**20)
    points_bytes = sum(batch.points.nbytes for batch in model.window.batches)
    extra = model_bytes(model) - points_bytes
    return Memory(points_bytes, extra, model.window.n_points, resident)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a long stream of 1,000 batches")
    n_batches = 1_000 if parser.parse_args().quick else 10_000
    print(f"import kmeander, on top of numpy: {import_milliseconds():.1f} ms (asked: at most 40)")
    print(f"kmeander --help: {help_seconds():.2f} s (asked: under 0.5)")
    print("\nMemory of a model beside its points (asked: at most 40 % or 24 bytes a point)")
    for shape in SHAPES:
        found = memory(shape, 20)
        print(
            f"  {shape!s:<14} {100 * found.extra_bytes / found.points_bytes:>5.1f} %, "
            f"{found.extra_bytes / found.n_points:.1f} bytes a point "
            f"({100 * found.extra_bytes / found.allowed_bytes:.0f} % of what is allowed)"
        )
    long = memory(SHAPES[0], n_batches)
    print(f"\nResident MiB at every tenth of {n_batches:,} batches of {SHAPES[0]}:")
    print("  " + " ".join(f"{mib:.1f}" for mib in long.resident_mib))


if __name__ == "__main__":
    main()
