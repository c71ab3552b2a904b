"""What a model and its rivals make of a stream, batch by batch: a record for each batch."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from kmeander.arrays import Points
from kmeander.events import ALARMS
from kmeander.experiments.alarms.rivals import Rival, rivals_of
from kmeander.experiments.protocol import seed_of
from kmeander.models.fskm import FSKM
from kmeander.models.settings import DEFAULTS
from kmeander.records import Batch, Step

# Of clusters that are reported as new.
_BIRTHS = ("born", "split")


@dataclass(frozen=True)
class EventRecord:
    """How many events of each kind came with one batch, and what else happened.

    `batch` counts from 0: from the change on where there is one, and from the start where there
    are none (`change` is empty) or many.

    Parameters
    ----------
    stream, change : str
    seed, batch : int
    drift, moved, grew, shrank, trend : int
        The events that are tests, which the promise is about.
    confirmed : int
        How many of these are confirmed.
    others : int
        Births, splits and ends.
    births : int
        Births and splits alone.
    new_ids : int
        Ids of the Step that no Step before it had, reported as new or not.
    rows_changed : int
        Clusters with a centroid before and after, but in another row.
    error : float
        Of the batch before it was learned; NaN where there is none.
    rule, ks, adwin_error, adwin_columns : int or None
        Whether each rival gave an alarm; None where it did not take part.
    """

    stream: str
    change: str
    seed: int
    batch: int
    drift: int
    moved: int
    grew: int
    shrank: int
    trend: int
    confirmed: int
    others: int
    births: int
    new_ids: int
    rows_changed: int
    error: float
    rule: int | None = None
    ks: int | None = None
    adwin_error: int | None = None
    adwin_columns: int | None = None


class Observer:
    """A model with kmeander's defaults that learns a stream, and the rivals that watch it.

    Parameters
    ----------
    stream : str
        Name of the stream, from which the model's seed comes, too.
    n_clusters, seed : int
    season : int, optional
    with_rivals : bool, default=False
    n_threads : int or None, default=1
    """

    def __init__(
        self,
        stream: str,
        n_clusters: int,
        seed: int,
        *,
        season: int | None = None,
        with_rivals: bool = False,
        n_threads: int | None = 1,
    ) -> None:
        self.stream, self.seed = stream, seed
        # Seeds of NumPy's older generators, which scikit-learn's checks ask for, have 32 bits.
        self.model = FSKM(
            n_clusters, random_state=seed_of(seed, "model", stream) % 2**32, season=season,
            n_threads=n_threads, **DEFAULTS,
        )  # fmt: skip
        self._n_learned = 0
        self._seen: set[int] = set()
        self._last: Step | None = None
        self._rivals: dict[str, Rival] = rivals_of(n_clusters) if with_rivals else {}

    def learn(self, batches: Iterable[Points], change: str = "") -> list[EventRecord]:
        """Return a record of each batch, counted from 0."""
        return [
            self._learn(points, change, batch)
            for batch, points in zip(count(), batches, strict=False)
        ]

    def fork(self) -> Observer:
        """Return an observer that goes on from here on its own."""
        return copy.deepcopy(self)

    def _learn(self, points: Points, change: str, batch: int) -> EventRecord:
        step = self.model.step(Batch(self._n_learned, points))
        record = record_of(
            step, self._last, self._seen, self.stream, self.seed, change, batch,
            {name: int(rival.alarms(points, step, self.model))
             for name, rival in self._rivals.items()},
        )  # fmt: skip
        self._n_learned += 1
        self._last = step
        self._seen |= set() if step.ids is None else set(step.ids.tolist())
        return record


def record_of(
    step: Step,
    last: Step | None,
    seen: set[int],
    stream: str,
    seed: int,
    change: str = "",
    batch: int = 0,
    rivals: dict[str, int] | None = None,
) -> EventRecord:
    """Return what a Step has; `last` is the one before it, `seen` are the ids of all before it."""
    kinds = [event.kind for event in step.events]
    rows = _rows_of(step)
    before = {} if last is None else _rows_of(last)
    return EventRecord(
        stream=stream,
        change=change,
        seed=seed,
        batch=batch,
        drift=kinds.count("drift"),
        moved=kinds.count("moved"),
        grew=kinds.count("grew"),
        shrank=kinds.count("shrank"),
        trend=kinds.count("trend"),
        confirmed=sum(event.kind in ALARMS and not event.unconfirmed for event in step.events),
        others=sum(kind not in ALARMS for kind in kinds),
        births=sum(kind in _BIRTHS for kind in kinds),
        new_ids=len(rows.keys() - seen),
        rows_changed=sum(before.get(number, row) != row for number, row in rows.items()),
        error=float("nan") if step.prequential_error is None else step.prequential_error,
        **(rivals or {}),
    )


def _rows_of(step: Step) -> dict[int, int]:
    ids = [] if step.ids is None else step.ids.tolist()
    return {number: row for row, number in enumerate(ids)}
