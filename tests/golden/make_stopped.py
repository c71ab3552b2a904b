"""Write a run's folder as a crash leaves it: ``python -m tests.golden.make_stopped FOLDER``.

Only for a new layout, by the version that writes it. The one of layout 1 was written with
``standardize=True``, which has become a preparation since.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kmeander import run

N_ROWS = 60
SETTINGS: dict[str, Any] = {
    "n_clusters": 2,
    "batch_size": 6,
    "id_column": "id",
    "steps": "steps.jsonl",
    "assignments": "rows/",
    "bad_rows": "bad.ndjson",
    "checkpoint": "checkpoint",
    "checkpoint_every": 2,
}


class _CrashError(Exception):
    """Ends a run between two commits."""


def _crash(progress: Any) -> None:
    if progress.summary.n_batches == 5:
        raise _CrashError


def main(folder: Path) -> None:
    """Run until after the fourth batch is committed and the fifth is written."""
    folder.mkdir()
    os.chdir(folder)
    rows = np.random.default_rng(0).integers(0, 40, size=(N_ROWS, 2)) / 4
    lines = [f"r{i},{a},{b}" for i, (a, b) in enumerate(rows.tolist())]
    lines[7] = "r7,n/a,1"
    Path("readings.csv").write_text("id,a,b\n" + "\n".join(lines) + "\n")
    try:
        run("readings.csv", **SETTINGS, on_progress=_crash)
    except _CrashError:
        Path("checkpoint/lock").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
