"""Ten million rows through one run with every growing output: memory stays flat, no row is lost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import kmeander
from faults.table import Row
from kmeander.arrays import Points

N_ROWS = 10_000_000
BATCH = 5_000
# The peak after so much of the stream is that of the whole, but for this.
EARLY, GROWTH = 0.2, 1.1


def rows(quick: bool) -> Iterator[Row]:
    """Yield one row; each row of the stream is a trial."""
    n_batches = (N_ROWS // 20 if quick else N_ROWS) // BATCH
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, whose memory is that of the run.
        done = subprocess.run(
            [sys.executable, "-m", __name__, folder, str(n_batches)],
            capture_output=True,
            text=True,
            check=True,
        )
        early, whole = json.loads(done.stdout)
        seen = np.concatenate(
            [
                pq.read_table(part, columns=["row"])["row"].to_numpy()
                for part in sorted(Path(folder, "rows").glob("part-*.parquet"))
            ]
        )
        n_steps = len(Path(folder, "steps.jsonl").read_bytes().splitlines())
    n_rows = n_batches * BATCH
    times = np.bincount(seen, minlength=n_rows)
    is_wrong = whole > GROWTH * early or n_steps != n_batches or len(times) != n_rows
    print(f"peak {early:.0f} MiB after a fifth, {whole:.0f} MiB at the end", file=sys.stderr)
    yield Row(
        f"{n_rows:,} rows through one run, in flat memory",
        n_rows,
        lost=int((times == 0).sum()),
        duplicated=int((times > 1).sum()),
        wrong=int(is_wrong),
    )


def _stream(n_batches: int, peaks: list[float]) -> Iterator[Points]:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=5.0, size=(10, 8))
    for index in range(n_batches):
        if index % 200 == 199:
            centres[index // 200 % 10] = rng.normal(scale=5.0, size=8)
        if index == int(EARLY * n_batches):
            peaks.append(_peak())
        yield centres[rng.integers(10, size=BATCH)] + rng.normal(size=(BATCH, 8))
    peaks.append(_peak())


def _peak() -> float:
    """Return the most MiB that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(folder: str, n_batches: int) -> None:
    """Run, and print the two peaks."""
    peaks: list[float] = []
    outputs: dict[str, Any] = {
        "steps": f"{folder}/steps.jsonl",
        "assignments": f"{folder}/rows/",
        "centroids": f"{folder}/clusters.csv",
        "checkpoint": f"{folder}/checkpoint",
    }
    kmeander.run(_stream(n_batches, peaks), 10, **outputs, tell=lambda _: None)
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
