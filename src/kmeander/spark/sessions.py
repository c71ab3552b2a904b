"""What differs between versions of Spark, and between a classic session and Spark Connect."""

from __future__ import annotations

import os
import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kmeander.exceptions import InputError, KmeanderError, StreamError

try:
    from py4j.protocol import Py4JError
except ImportError:  # a client of Spark Connect alone
    _OF_SPARK: tuple[type[Exception], ...] = (PySparkException,)
else:
    _OF_SPARK = (PySparkException, Py4JError)

OLDEST = (3, 5)
_NO_PACKAGE = "No module named 'kmeander"
# What Spark says of a file whose column is not of the type that the schema gives it.
_RETYPED = re.compile(
    r"(?:reading|in) file (?P<file>\S+?)\.? [^\n]{0,80}?[Cc]olumn:? \[(?P<column>.+?)\]"
    r"(?:, Expected: |\. Expected Spark type )(?P<asked>\w+)"
    r"(?:, Found: |, actual Parquet type )(?P<found>\w+)"
)
_UNSAID = re.compile(r"terminated with exception:\s*(?:\Z|JVM stacktrace)")
# An exception of kmeander's within those of Spark, a traceback of many lines.
_OURS = re.compile(r"kmeander\.exceptions\.(?P<kind>\w+): (?P<words>[^\n]+)")


def check_version(spark: SparkSession) -> None:
    """Refuse a Spark that lacks what is needed here."""
    version = tuple(int(part) for part in re.findall(r"\d+", spark.version)[:2])
    if version < OLDEST:
        raise StreamError(
            f"kmeander.spark needs Spark {'.'.join(map(str, OLDEST))} or newer, this session is "
            f"of {spark.version}."
        )


def is_connect(session_or_frame: SparkSession | DataFrame) -> bool:
    """Whether it is one of Spark Connect, whose driver is elsewhere."""
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect")


def master_of(spark: SparkSession) -> str:
    """Return where the tasks of a session run; empty where it does not say."""
    if is_connect(spark):
        return spark.conf.get("spark.master", "") or ""
    return str(spark.sparkContext.master)


def parallelism(frame: DataFrame) -> int:
    """How many tasks run at once."""
    if is_connect(frame):
        cores = re.fullmatch(r"local\[(\d+)\]", master_of(frame.sparkSession))
        return int(cores[1]) if cores else os.cpu_count() or 1
    return max(1, int(frame.sparkSession.sparkContext.defaultParallelism))


def records_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Run a job, and return its few rows; as Arrow where this Spark can (4.0)."""
    try:
        if hasattr(frame, "toArrow"):
            return list(frame.toArrow().to_pylist())
        return [row.asDict() for row in frame.collect()]
    except _OF_SPARK as error:
        known = in_words(str(error))
        if known is None:
            raise
        raise known from error


def in_words(text: str) -> KmeanderError | None:
    r"""Return what is known of the many lines that Spark makes of an exception.

    Examples
    --------
    >>> in_words("Traceback ...\nkmeander.exceptions.InputError: y holds NaN.\n\n at ...")
    InputError('y holds NaN.')
    """
    if _NO_PACKAGE in text:
        return StreamError(
            "the Python of Spark's executors cannot import kmeander. Install it there; on one "
            "machine set PYSPARK_PYTHON to this Python (sys.executable) before the session starts."
        )
    retyped = _RETYPED.search(text)
    if retyped is not None:
        return InputError(
            f"column {retyped['column']!r} is {retyped['found']} in {retyped['file']}, while the "
            f"schema of the stream says {retyped['asked']}. Write that file with the type of the "
            "others, or read the stream with a schema that fits all."
        )
    ours = list(_OURS.finditer(text))
    if ours:
        return kind_of(ours[-1]["kind"])(ours[-1]["words"].strip())
    if _UNSAID.search(text):
        return StreamError(
            "a batch could not be learned, and Spark Connect 3.5 does not hand on why: look for "
            "kmeander.exceptions in the log of its server. Spark 4 hands it on."
        )
    return None


def kind_of(name: str) -> type[KmeanderError]:
    """Return the class of kmeander's exceptions with that name."""
    from kmeander import exceptions

    found = getattr(exceptions, name, KmeanderError)
    return found if isinstance(found, type) and issubclass(found, KmeanderError) else KmeanderError
