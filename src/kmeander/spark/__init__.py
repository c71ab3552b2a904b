"""The same model on Spark Structured Streaming: one micro-batch, one job, one step.

`learn` follows a stream and keeps its model in a checkpoint, `assign` adds the cluster of each row
to any frame, `register` does so in SQL, `load` returns the newest model as an estimator, and
`KafkaRows` sends rows with their clusters to a topic, each once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pyarrow as pa  # noqa: F401
    import pyspark.sql  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"kmeander.spark needs {error.name}: pip install 'kmeander[spark]', and Java 17."
    ) from error

if TYPE_CHECKING:
    from kmeander.spark.assigning import assign, register
    from kmeander.spark.kafka import KafkaRows
    from kmeander.spark.learning import learn
    from kmeander.spark.models import load

__all__ = ["KafkaRows", "assign", "learn", "load", "register"]

_HOMES = {
    "KafkaRows": "kafka",
    "assign": "assigning",
    "learn": "learning",
    "load": "models",
    "register": "assigning",
}


# Executors import modules of this package, too, and need none of these.
def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kmeander.spark' has no attribute {name!r}")
    value = getattr(import_module(f"kmeander.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
