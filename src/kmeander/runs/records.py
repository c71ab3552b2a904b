"""Records around a run: what it is asked to do, its progress, its summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kmeander.html_cards import plural
from kmeander.records import Step
from kmeander.runs.operations.activity import LEARNING, Activity, Deliveries, Snapshot
from kmeander.runs.operations.notices import Notices
from kmeander.sinks import Sending
from kmeander.sinks.part_size import PartSize
from kmeander.tracking.cycle import Cycle, CycleSearch

if TYPE_CHECKING:
    import threading

    from kmeander.storage.checkpoint_folder import CheckpointFolder


@dataclass
class RunSummary:
    """What a run did, since it was started or resumed.

    Parameters
    ----------
    n_batches, n_points : int
        Batches and rows learned.
    n_distances, n_reseeded, n_unconverged : int
        Sums of what their Steps say.
    n_bad, n_late : int
        Rows that were set aside; rows that came after their time.
    n_waiting : int
        When a run is stopped while its stream pauses: rows that wait for their batch to be
        complete. They are read again when it goes on.
    filled : dict
        How many missing values were filled, by column.
    n_distinct : int
        Distinct points seen while there are fewer of them than clusters; 0 once it has learned.
    seconds : float
        Time spent learning.
    resumed_at : int or None
        Batches that an earlier run had learned.
    stopped : bool
        Whether the run was asked to stop before the stream ended.
    last : Step or None
        The newest.
    events : dict
        How many events of each kind there were, the unconfirmed ones left out.
    events_since_end : dict
        The same since a run of this stream last came to its end: with a checkpoint those before a
        stop or a crash are among them.
    stopped_on : str or None
        The kind of event on which the run was to stop, and did.
    deliveries : dict
        How the notices of each receiver got on.
    n_unconfirmed : int
        Events that were reported while the noise of the stream was not known.
    cycles : CycleSearch
        Looks whether batches repeat themselves, where no season is given.
    words : callable
        Says what happened at a Step, with the names of the columns.
    """

    n_batches: int = 0
    n_points: int = 0
    n_distances: int = 0
    n_reseeded: int = 0
    n_unconverged: int = 0
    n_bad: int = 0
    n_late: int = 0
    n_waiting: int = 0
    filled: dict[str, int] = field(default_factory=dict)
    n_distinct: int = 0
    seconds: float = 0.0
    resumed_at: int | None = None
    stopped: bool = False
    last: Step | None = None
    events: dict[str, int] = field(default_factory=dict)
    events_since_end: dict[str, int] = field(default_factory=dict)
    stopped_on: str | None = None
    deliveries: dict[str, Deliveries] = field(default_factory=dict)
    n_unconfirmed: int = 0
    cycles: CycleSearch = field(default_factory=CycleSearch, repr=False, compare=False)
    words: Callable[[Step], list[str]] = field(default=Step.words, repr=False)

    @property
    def cycle(self) -> Cycle | None:
        """The cycle of a stream that repeats itself, where no season was given."""
        return self.cycles.cycle

    def in_words(self) -> str:
        """Return in half a sentence what was learned, and what happened.

        Examples
        --------
        >>> RunSummary(n_batches=2, n_points=900, events={"drift": 1}).in_words()
        '2 batches, 900 rows; events: 1 drift'
        """
        named = ", ".join(f"{number} {kind}" for kind, number in self.events.items()) or "none"
        doubt = f"; {self.n_unconfirmed} unconfirmed" if self.n_unconfirmed else ""
        return (
            f"{plural(self.n_batches, 'batch')}, {plural(self.n_points, 'row')}; "
            f"events: {named}{doubt}"
        )

    def snapshot(self, activity: Activity, deliveries: dict[str, Deliveries]) -> Snapshot:
        """Return the run as it is now, as metrics and health say it."""
        return Snapshot(
            activity.status(),
            self.n_batches,
            self.n_points,
            dict(self.events),
            self.n_unconfirmed,
            self.last,
            n_bad=self.n_bad,
            n_late=self.n_late,
            stage_seconds=activity.seconds,
            lag=activity.lag,
            checkpoint_age=activity.checkpoint_age,
            deliveries=deliveries,
        )

    def add(self, step: Step) -> None:
        """Count one more Step."""
        self.n_batches += 1
        self.n_points += step.n_points
        self.n_distances += step.n_distances
        self.n_reseeded += len(step.reseeded)
        self.n_unconverged += not (step.waiting or step.converged)
        self.seconds += step.seconds or 0.0
        for name, n_missing in (step.filled or {}).items():
            self.filled[name] = self.filled.get(name, 0) + n_missing
        self.last = step
        for event in step.events:
            if event.unconfirmed:
                self.n_unconfirmed += 1
            else:
                for counts in (self.events, self.events_since_end):
                    counts[event.kind] = counts.get(event.kind, 0) + 1


@dataclass(frozen=True)
class Progress:
    """How far a run is, after each batch and whenever the stream pauses.

    Parameters
    ----------
    summary : RunSummary
    share_read : float or None
        How much of the stream has been read, where its length is known.
    lag : int or None
        Rows that wait to be read, where that is known.
    status : callable
        Returns ``"learning"``, ``"waiting"`` or ``"stalled"``, whichever is true when it is asked;
        any thread may ask.
    """

    summary: RunSummary
    share_read: float | None
    lag: int | None
    status: Callable[[], str] = field(default=lambda: LEARNING, repr=False)


@dataclass(frozen=True)
class Outputs:
    """Where things are written; see `kmeander.run`."""

    steps: str | None = None
    assignments: str | None = None
    centroids: str | None = None
    model_out: str | None = None
    bad_rows: str | None = None
    overwrite: bool = False
    part_size: PartSize | None = None
    sending: Sending = field(default_factory=Sending)

    @property
    def paths(self) -> dict[str, str]:
        """Where each output goes, by the name of its argument."""
        named = ("steps", "assignments", "centroids", "model_out", "bad_rows")
        found = {name: getattr(self, name) for name in named}
        return {name: path for name, path in found.items() if path is not None}


@dataclass(frozen=True)
class RowRules:
    """What is done with rows before they are learned.

    Parameters
    ----------
    refuse_bad : bool
        Whether a bad row ends the run; otherwise it is left out.
    may_exclude : bool
        Whether a column can still be left out: none was asked for by name.
    """

    refuse_bad: bool = True
    may_exclude: bool = True


@dataclass(frozen=True)
class Commits:
    """When a run commits, and where to.

    Parameters
    ----------
    folder : CheckpointFolder or None
        None where a run cannot go on after a stop.
    every : int
        Batches between two commits.
    """

    folder: CheckpointFolder | None = None
    every: int = 10


@dataclass(frozen=True)
class Control:
    """How a run is watched and ended from outside.

    Parameters
    ----------
    notify : callable
        Given sentences for people.
    on_progress : callable or None
        Given a `Progress` after each batch.
    stop : threading.Event or None
        Once set, the run ends after the batch at hand.
    idle_exit : float or None
        Seconds of silence after which the stream counts as ended.
    on_step : callable or None
        Given each Step once its batch is learned and written; what it raises ends the run.
    stop_on : tuple of str
        Kinds of events after whose batch the run ends.
    notices : Notices
        Receivers of events.
    metrics : str or None
        Where metrics and health are served.
    on_first_rows : callable or None
        Given the number of rows of the first batch before it is learned.
    """

    notify: Callable[[str], None]
    on_progress: Callable[[Progress], None] | None = None
    stop: threading.Event | None = None
    idle_exit: float | None = None
    on_step: Callable[[Step], None] | None = None
    stop_on: tuple[str, ...] = ()
    notices: Notices = field(default_factory=Notices)
    metrics: str | None = None
    on_first_rows: Callable[[int], None] | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the run was asked to stop."""
        return self.stop is not None and self.stop.is_set()
