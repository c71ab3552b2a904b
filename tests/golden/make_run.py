"""Write a run's checkpoint again: ``python -m tests.golden.make_run`` (only for a new layout)."""

import tempfile
from pathlib import Path

from kmeander import run
from tests import golden
from tests.streams import golden_stream

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run(golden_stream()[:3], 3, prepare="auto", checkpoint=folder)
        golden.RUN.write_bytes(max(Path(folder).glob("*.ckpt")).read_bytes())
