"""The command line as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("kmeander"))


def kmeander(*words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words], input=stdin, capture_output=True, text=True, check=False, timeout=300
    )
