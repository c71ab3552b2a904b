"""What tells this program from any other, so that no stored cell is of another one.

The version number alone would not: what a model learns may change between two versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kmeander import _kernel

# Rooms whose code decides what a model learns.
LEARNING = ("drifts", "kmeans", "models", "records", "tracking")


@cache
def program_digest(rooms: Sequence[str] = ("",)) -> str:
    """Return the digest of the kernel and of the Python files of some rooms, by default of all."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for room in rooms:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    digest.update(Path(str(_kernel.__file__)).read_bytes())
    return digest.hexdigest()
