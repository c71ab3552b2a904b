"""How many bytes of rows the driver can take before its memory, or Spark's limit, ends."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from kmeander.spark.sessions import is_connect

# Rows lie in the driver's Python as they come, joined, and sorted.
_COPIES = 3
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_NO_LIMIT = float("inf")


def bytes_to_spare(spark: SparkSession) -> float:
    """Return how many bytes of rows may come to the driver now.

    The least of a third of the memory that this machine (or its container) has left, half of the
    heap of the driver's JVM, through which rows pass, and what Spark lets come back from one job.
    """
    limits = [_memory_left() / _COPIES]
    if not is_connect(spark):  # there the driver is elsewhere, and what it may have is not told
        heap = _bytes_of(spark.conf.get("spark.driver.memory", "1g") or "1g")
        results = _bytes_of(spark.conf.get("spark.driver.maxResultSize", "1g") or "1g")
        limits += [heap / 2, results or _NO_LIMIT]
    return min(limits)


def _bytes_of(text: str) -> float:
    """Return a size as Spark writes it in bytes.

    Examples
    --------
    >>> _bytes_of("1g"), _bytes_of("512MB"), _bytes_of("0"), _bytes_of("2048")
    (1073741824.0, 536870912.0, 0.0, 2048.0)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)b?\s*", text.lower())
    return _NO_LIMIT if found is None else float(int(found[1]) * _UNITS[found[2]])


def _memory_left() -> float:
    """Return the bytes that this process may still take, as far as the system tells."""
    left = _NO_LIMIT
    with suppress(OSError, ValueError, IndexError):  # none but Linux tells it here
        known = Path("/proc/meminfo").read_text(encoding="ascii")
        left = float(known.split("MemAvailable:")[1].split()[0]) * 1024
    with suppress(OSError, ValueError, IndexError):  # no limit is "max"
        folder = Path("/sys/fs/cgroup")
        most = float((folder / "memory.max").read_text(encoding="ascii"))
        used = float((folder / "memory.current").read_text(encoding="ascii"))
        kept = (folder / "memory.stat").read_text(encoding="ascii")
        # What was read from files is counted, and given back when it is needed.
        files = float(kept.split("\ninactive_file ")[1].split()[0])
        left = min(left, most - used + files)
    return left
