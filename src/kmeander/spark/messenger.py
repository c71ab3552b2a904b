"""Events of a stream on Spark as notices, and its metrics, as `kmeander.run` has them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kmeander.events import Event
from kmeander.models import FSKM
from kmeander.records import Step
from kmeander.runs.operations.activity import READ, Activity, Snapshot
from kmeander.runs.operations.listener import listening, parse_address
from kmeander.runs.operations.notices import Notices
from kmeander.runs.records import RunSummary

_LOG = logging.getLogger("kmeander.spark")


class Messenger:
    """Sends the events of a stream and serves its metrics, from whatever process learns it.

    Parameters
    ----------
    source : str
        The stream.
    columns : sequence of str, optional
        Names of the features.
    kinds, url, command
        As for `Notices`.
    metrics : str or int, optional
        Where metrics are served.
    """

    def __init__(
        self,
        source: str,
        columns: Sequence[str] | None,
        kinds: Sequence[str],
        url: str | None,
        command: str | None,
        metrics: str | int | None = None,
    ) -> None:
        Notices(kinds, url, command)  # refuses what is wrong before anything is learned
        if metrics is not None:
            parse_address(metrics)
        self._source, self._columns = source, columns
        self._asked, self._metrics = (kinds, url, command), metrics
        self._here: _Process | None = None

    def enter(self, stage: str) -> None:
        """Note that a stage of a batch begins."""
        self._process.activity.enter(stage)

    def rest(self) -> None:
        """Note that a batch is over, and that its state is saved."""
        self._process.activity.enter(READ)
        self._process.activity.commit()

    def close(self) -> None:
        """End what serves metrics in this process."""
        if self._here is not None:
            self._here.stack.close()
            self._here = None

    @property
    def _process(self) -> _Process:
        if self._here is None:
            self._here = _Process(self._metrics)
        return self._here

    def take(
        self, step: Step, model: FSKM, waiting: Mapping[str, list[str]], n_bad: int
    ) -> dict[str, list[str]]:
        """Send what a Step tells, and return what waits: at first what an earlier process left."""
        here = self._process
        here.summary.add(step)
        here.summary.n_bad += n_bad
        if here.notices is None:
            here.notices = Notices(*self._asked)
            here.notices.open(waiting, _LOG.warning)
        preparation = model.learned.preparation
        names = self._columns if preparation is None else preparation.names
        scale = None if preparation is None else preparation.unit.tolist()

        def words(step: Step, event: Event) -> list[str]:
            return step.words_of(event, names, scale)

        here.notices.take(step, self._source, words)
        for said in here.notices.news():
            _LOG.warning(said)
        return {name: texts for name, texts in here.notices.waiting().items() if texts}

    def __getstate__(self) -> dict[str, Any]:
        # Threads and what waits for them stay where they are.
        return {**self.__dict__, "_here": None}


class _Process:
    """What the process that learns knows of itself."""

    def __init__(self, metrics: str | int | None) -> None:
        self.notices: Notices | None = None
        self.summary, self.activity = RunSummary(), Activity()
        self.stack = ExitStack()
        if metrics is not None:
            self.stack.enter_context(listening(metrics, self._look, _LOG.info))

    def _look(self) -> Snapshot:
        counts = {} if self.notices is None else self.notices.counts()
        return self.summary.snapshot(self.activity, counts)
