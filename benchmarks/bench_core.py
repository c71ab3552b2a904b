"""The core beside scikit-learn: same window, same start, same stopping rule, one thread each.

    python -m benchmarks.bench_core [--json FILE]

Times are medians over the batches of a stream; machines are noisy, so read the ratios. Beside each
stands whether both ended at the same labels: a faster wrong answer is no win. Batches at which a
cluster lost all its mass are counted apart, since the two then take another point by other rules;
for those the ratio of the errors is shown.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import sklearn
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import kmeander
from kmeander import FSKM, Batch, _kernel
from kmeander.lloyd import Limits, fit_window

Array = NDArray[np.float64]

RHO, WINDOW, N_MEASURED = 0.7, 12, 12
# (batch size, clusters, features): times faster than scikit-learn that is asked for
ASKED = {
    (500, 10, 8): 2.0,
    (500, 25, 20): 2.0,
    (5000, 25, 20): 0.7,
    (5000, 100, 32): 0.7,
    (2000, 64, 128): 0.7,
}


def mixture_stream(n: int, k: int, d: int, seed: int = 0) -> Iterator[Array]:
    """Gaussian mixtures whose centres move every ten batches."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(k, d))
    index = 0
    while True:
        if index and index % 10 == 0:
            centres += rng.normal(scale=1.0, size=(k, d))
        yield centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
        index += 1


def timed(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = call(*arguments, **options)
    return time.perf_counter() - begun, result


def compare_with_scikit_learn(n: int, k: int, d: int) -> dict[str, Any]:
    """Learn a stream with PC and refit scikit-learn on the same window at every batch."""
    model = FSKM(k, init="previous", rho=RHO, max_batches=WINDOW, n_threads=1, random_state=0)
    limits = Limits(n_threads=1)
    ours, steps, theirs, same, reseeded = [], [], [], [], []
    stream = mixture_stream(n, k, d)
    for index in range(WINDOW + N_MEASURED):
        points = next(stream)
        if index < WINDOW:
            model.step(Batch(index, points))
            continue
        start = model.centroids
        assert start is not None
        window = model.window.aged(1.0, np.inf, WINDOW).joined_by(points, None)
        together = np.concatenate([batch.points for batch in window.batches])
        weights = np.repeat(window.decay, [len(batch.points) for batch in window.batches])
        peer = KMeans(k, init=start, n_init=1, tol=0, algorithm="lloyd")
        seconds, _ = timed(peer.fit, together, sample_weight=weights)
        theirs.append(seconds)
        seconds, fit = timed(fit_window, window, start, limits)
        ours.append(seconds)
        assert fit.window.partition is not None
        labels = fit.window.partition.labels
        if fit.reseeded:
            reseeded.append(fit.error * window.mass / peer.inertia_)
        else:
            same.append((labels == peer.labels_).all() and fit.n_iter == peer.n_iter_)
        batch = Batch(index, points)
        seconds, _ = timed(model.step, batch)
        steps.append(seconds)
    return {
        "n": n,
        "k": k,
        "d": d,
        "kmeander_ms": 1e3 * statistics.median(ours),
        "step_ms": 1e3 * statistics.median(steps),
        "scikit_learn_ms": 1e3 * statistics.median(theirs),
        "ratio": statistics.median([b / a for a, b in zip(ours, theirs, strict=True)]),
        "ratio_spread": [
            min(b / a for a, b in zip(ours, theirs, strict=True)),
            max(b / a for a, b in zip(ours, theirs, strict=True)),
        ],
        "asked": ASKED[n, k, d],
        "same_labels_and_passes": bool(all(same)),
        "n_compared": len(same),
        "error_ratios_where_reseeded": reseeded,
    }


def import_cost() -> dict[str, float]:
    """Milliseconds of `import kmeander` on top of `import numpy`; seconds of `kmeander --help`."""
    code = (
        "import time, numpy; t = time.perf_counter(); import kmeander; "
        "print(time.perf_counter() - t)"
    )
    costs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    program = str(Path(sys.executable).with_name("kmeander"))
    helps = [
        timed(subprocess.run, [program, "--help"], capture_output=True, check=True)[0]
        for _ in range(5)
    ]
    return {
        "import_ms": 1e3 * statistics.median(costs),
        "help_s": statistics.median(helps),
    }


def model_bytes(model: FSKM) -> int:
    """Bytes of all arrays a model holds between two batches."""
    seen: dict[int, int] = {}
    partition = model.window.partition
    assert partition is not None
    for part in (*model.window.batches, partition, partition.bounds, partition.totals):
        for held in () if part is None else vars(part).values():
            if isinstance(held, np.ndarray):
                seen[id(held)] = held.nbytes
    step = model.last_step
    for held in (model.centroids, step and step.masses, step and step.moved):
        if isinstance(held, np.ndarray):
            seen[id(held)] = held.nbytes
    return sum(seen.values())


def memory(n: int, k: int, d: int, n_batches: int) -> dict[str, Any]:
    """Bytes of a model beside its points, and the process's growth over a long stream."""
    model = FSKM(k, init="previous", rho=RHO, max_batches=WINDOW, n_threads=1, random_state=0)
    stream = mixture_stream(n, k, d)
    process = psutil.Process()
    resident = []
    for index in range(n_batches):
        model.step(Batch(index, next(stream)))
        if index % (n_batches // 10) == n_batches // 10 - 1:
            resident.append(process.memory_info().rss / 2**20)
    points = sum(batch.points.nbytes for batch in model.window.batches)
    extra = model_bytes(model) - points
    allowed = max(0.4 * points, 24 * model.window.n_points)
    return {
        "n": n,
        "k": k,
        "d": d,
        "points_bytes": points,
        "extra_bytes": extra,
        "extra_share": extra / points,
        "extra_bytes_per_point": extra / model.window.n_points,
        "allowed_bytes": allowed,
        "n_batches": n_batches,
        "resident_mib": resident,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results here, too")
    arguments = parser.parse_args()
    print(
        f"kmeander {kmeander.__version__} ({_kernel.instruction_set()}), "
        f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}\n"
    )
    results: dict[str, Any] = {"lloyd": [], "memory": []}
    print(f"Weighted Lloyd on a window of {WINDOW} batches, rho {RHO}, from the previous centroids")
    print("  N     K   d     kmeander  whole step  scikit-learn   ratio (least-most)   asked  same")
    with threadpool_limits(1):
        for n, k, d in ASKED:
            row = compare_with_scikit_learn(n, k, d)
            results["lloyd"].append(row)
            low, high = row["ratio_spread"]
            print(
                f"  {n:<5} {k:<3} {d:<4} {row['kmeander_ms']:>7.2f} ms {row['step_ms']:>8.2f} ms "
                f"{row['scikit_learn_ms']:>9.2f} ms   {row['ratio']:>5.1f} ({low:.1f}-{high:.1f})"
                f"{'':<6} >= {row['asked']}  {'yes' if row['same_labels_and_passes'] else 'NO'}, "
                f"{row['n_compared']} batches"
                + "".join(f"; error x {r:.3f}" for r in row["error_ratios_where_reseeded"])
            )
    results |= import_cost()
    print(f"\nimport kmeander, on top of numpy: {results['import_ms']:.1f} ms (asked: at most 40)")
    print(f"kmeander --help: {results['help_s']:.2f} s (asked: under 0.5)")
    print("\nMemory of a model beside its points (asked: at most 40 % or 24 bytes a point)")
    for n, k, d in ASKED:
        row = memory(n, k, d, 20)
        results["memory"].append(row)
        print(
            f"  {n:<5} {k:<3} {d:<4} {100 * row['extra_share']:>5.1f} %, "
            f"{row['extra_bytes_per_point']:.1f} bytes a point "
            f"({100 * row['extra_bytes'] / row['allowed_bytes']:.0f} % of what is allowed)"
        )
    long = memory(500, 10, 8, 10_000)
    results["long_stream"] = long
    print("\nResident MiB at every 1,000 of 10,000 batches of 500, 10, 8:")
    print("  " + " ".join(f"{mib:.1f}" for mib in long["resident_mib"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
