"""Write a run's checkpoint again: ``python -m tests.golden.make_run`` (only for a new layout)."""

import tempfile
from pathlib import Path

from kmeander import run
from tests.runs.test_resume import GOLDEN
from tests.storage.test_checkpoint import golden_stream

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run(golden_stream()[:3], 3, standardize=True, checkpoint=folder)
        GOLDEN.write_bytes(max(Path(folder).glob("*.ckpt")).read_bytes())
