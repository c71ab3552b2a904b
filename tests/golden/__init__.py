"""Stored results and checkpoints, beside the modules that write them anew."""

from pathlib import Path

_HERE = Path(__file__).parent
MODEL = _HERE / "forgetful-format-1.ckpt"
RUN = _HERE / "run-layout-1.ckpt"
STOPPED = _HERE / "stopped-layout-1"
GRID = _HERE / "grid-steps.csv"
