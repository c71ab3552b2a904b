"""Events of a stream on Spark as notices, for those that `kmeander.run` would tell, too."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from kmeander.events import Event
from kmeander.models import FSKM
from kmeander.records import Step
from kmeander.runs.operations.notices import Notices

_LOG = logging.getLogger("kmeander.spark")


class Messenger:
    """Sends the events of a stream, from whatever process learns it.

    Parameters
    ----------
    source : str
        The stream.
    columns : sequence of str, optional
        Names of the features.
    kinds, url, command
        As for `Notices`.
    """

    def __init__(
        self,
        source: str,
        columns: Sequence[str] | None,
        kinds: Sequence[str],
        url: str | None,
        command: str | None,
    ) -> None:
        Notices(kinds, url, command)  # refuses what is wrong before anything is learned
        self._source, self._columns = source, columns
        self._asked = kinds, url, command
        self._notices: Notices | None = None

    def take(
        self, step: Step, model: FSKM, waiting: Mapping[str, list[str]]
    ) -> dict[str, list[str]]:
        """Send what a Step tells, and return what waits: at first what an earlier process left."""
        if self._notices is None:
            self._notices = Notices(*self._asked)
            self._notices.open(waiting, _LOG.warning)
        preparation = model.learned.preparation
        names = self._columns if preparation is None else preparation.names
        scale = None if preparation is None else preparation.unit.tolist()

        def words(step: Step, event: Event) -> list[str]:
            return step.words_of(event, names, scale)

        self._notices.take(step, self._source, words)
        for said in self._notices.news():
            _LOG.warning(said)
        return {name: texts for name, texts in self._notices.waiting().items() if texts}

    def __getstate__(self) -> dict[str, Any]:
        # Threads and what waits for them stay where they are.
        return {**self.__dict__, "_notices": None}
