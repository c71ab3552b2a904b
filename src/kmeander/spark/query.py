"""A started query whose failures are sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from kmeander.exceptions import KmeanderError
from kmeander.spark.sessions import in_words


class LearningQuery:
    """A `StreamingQuery` that says in one sentence what ended it, where kmeander did.

    Everything else is Spark's own.
    """

    def __init__(self, query: StreamingQuery, on_end: Callable[[], None] = lambda: None) -> None:
        self._query = query
        self._on_end = on_end

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait until the query ends, or raise what ended it."""
        try:
            return self._query.awaitTermination(timeout)  # type: ignore[arg-type]
        except StreamingQueryException as error:
            known = in_words(str(error))
            if known is None:
                raise
            raise known from error
        finally:
            if not self._query.isActive:
                self._on_end()

    def stop(self) -> None:
        """Stop the query."""
        self._query.stop()
        self._on_end()

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until all that is there now is learned, or raise what ended the query."""
        try:
            self._query.processAllAvailable()
        except StreamingQueryException as error:
            known = in_words(str(error))
            if known is None:
                raise
            raise known from error

    def exception(self) -> KmeanderError | StreamingQueryException | None:
        """Return what ended the query, if anything did."""
        found = self._query.exception()
        return found if found is None else in_words(str(found)) or found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def __repr__(self) -> str:
        return f"LearningQuery({self._query!r})"
