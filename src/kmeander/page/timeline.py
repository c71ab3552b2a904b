"""A steps file as a timeline: batches, lives of clusters, events; no drawing yet."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError, argument
from kmeander.page.line_checks import check_lengths, check_shape, checked_facts
from kmeander.page.lives import Life, follow_lives
from kmeander.page.moments import Happened, Moment, Vector
from kmeander.plain_values import from_json
from kmeander.records import Columns, Profiles, Step
from kmeander.sinks.large_centroids import with_centroids
from kmeander.storage.reading import lines_of
from kmeander.tracking.cycle import CycleSearch

# Columns that are drawn over time, and numbers that are kept of a batch for that.
MOST_FOLLOWED, MOST_NUMBERS = 24, 2048
# Characters of a name that plots have room for.
LONGEST_NAME = 24


@dataclass(eq=False)
class Timeline:
    """A run, batch by batch, as far as it has been read.

    Parameters
    ----------
    facts : dict
        What stands under `run` in the first line; empty where there is none.
    features : sequence of str, optional
        Two columns to draw centroids by, instead of the projection of the first window.
    keep : int, optional
        The number of newest batches that are kept.
    path : path-like, optional
        Where the lines come from: beside it are the centroids of large models.

    Attributes
    ----------
    counts : dict
        How many events of each kind there were, the unconfirmed ones left out.
    n_unconfirmed : int
        Those.
    n_far : int
        Far rows of all batches.
    cycles : CycleSearch
        Looks whether batches repeat themselves, where no season was given.
    first_time : str or None
        When the first row happened, where the file says.
    followed : tuple of int
        The columns that are drawn over time: all, or those in which clusters differ most.
    names : dict
        Names of clusters, by id, as far as they have any.
    profiles : Profiles or None
        What the clusters were when a run last looked.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    features: Sequence[str] | None = None
    keep: int | None = None
    path: str | os.PathLike[str] = ""
    moments: deque[Moment] = field(default_factory=deque)
    lives: dict[int, Life] = field(default_factory=dict)
    events: deque[Happened] = field(default_factory=deque)
    n_batches: int = 0
    n_points: int = 0
    n_distances: int = 0
    n_distances_plain: int = 0
    n_waiting: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    n_unconfirmed: int = 0
    n_far: int = 0
    cycles: CycleSearch = field(default_factory=CycleSearch)
    first_time: str | None = None
    last: Step | None = None
    notes: list[str] = field(default_factory=list)
    followed: tuple[int, ...] = ()
    names: dict[int, str] = field(default_factory=dict)
    profiles: Profiles | None = None

    def __post_init__(self) -> None:
        self.moments = deque(self.moments, maxlen=self.keep)
        self.events = deque(self.events, maxlen=None if self.keep is None else 1000)
        self._plane: tuple[Vector, NDArray[np.float64]] | None = None
        self._has_ids: bool | None = None
        self.units: Columns | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        known = self.facts.get("columns")
        if known is not None:
            return [str(name) for name in known]
        n_features = 0
        if self.last is not None and self.last.centroids is not None:
            n_features = self.last.centroids.shape[1]
        return [f"x{index}" for index in range(n_features)]

    @property
    def scale(self) -> list[float] | None:
        """What a unit of the model is in the stream's, where columns were standardised."""
        scaled = self.facts.get("standardize")
        return None if not scaled else [float(value) for value in scaled["scale"]]

    @property
    def axes(self) -> tuple[str, str]:
        """What the two axes of the projection are called."""
        if self.features is not None:
            return self.features[0], self.features[1]
        return "first principal component", "second principal component"

    @property
    def components(self) -> list[list[float]]:
        """What the axes of the projection are made of: a number for each column."""
        return [] if self._plane is None else self._plane[1].tolist()

    def name_of(self, cluster: int) -> str:
        """Return what people call a cluster: its id, and its name where it has one."""
        name = self.names.get(cluster)
        if name is not None and len(name) > LONGEST_NAME:
            name = f"{name[: LONGEST_NAME - 3]}..."
        return str(cluster) if name is None else f"{cluster} {name}"

    def add(self, line: str, number: int) -> None:
        """Take in one line of the file."""
        plain = _parsed(line, number)
        if self.n_batches == 0:
            self.facts = checked_facts(plain.get("run") or {}, number)
            self._check_features()
        try:
            step = Step.from_dict(with_centroids(plain, self.path))
        except (InputError, TypeError, ValueError, KeyError) as error:
            reason = str(error).rstrip(".")
            raise InputError(f"line {number} is not a Step: {reason}. {_way_out()}") from error
        self.take(step, number)

    def take(self, step: Step, number: int) -> None:
        """Take in one Step, which messages call line `number`."""
        self._check_order(step, number)
        step = self._with_names(step)
        self.n_batches += 1
        if self.first_time is None:
            self.first_time = step.first_time
        self.n_points += step.n_points
        self.n_distances += step.n_distances
        self.n_distances_plain += step.n_distances_plain
        self.n_waiting += step.waiting
        self.n_far += step.n_far
        before, self.last = self.last, step
        if step.centroids is None or step.masses is None or step.mass <= 0:
            return
        step = self._with_ids(step, number)
        check_shape(before, step, number)
        check_lengths(step, number)
        self._check_columns(step, number)
        self.last = step
        if self.facts.get("settings", {}).get("season") is None:
            self.cycles.add(step)
        follow_lives(self.lives, step, is_first=not self.moments)
        words = tuple(step.words(self.columns, self.scale))
        self._count_events(step)
        assert step.ids is not None
        assert step.masses is not None
        self.moments.append(
            Moment(
                step.index,
                step.n_points,
                _number(step.surrogate_error),
                _number(step.batch_error),
                _number(step.prequential_error),
                _number(step.drift_epsilon),
                _number(step.drift_se),
                tuple(step.ids.tolist()),
                step.masses / step.mass,
                self._places(step),
                step.events,
                words,
                step.when(),
                step.first_time,
                self._centres(step),
            )
        )

    def _with_names(self, step: Step) -> Step:
        """Return a Step that knows the names of its clusters, as far as they have any."""
        if step.profiles is not None:
            self.profiles = step.profiles
            self.names = {**self.names, **step.profiles.names()}
        elif step.names is not None:
            self.names = {**self.names, **step.names}
        return step if step.names is not None else step.having(names=self.names)

    def _check_features(self) -> None:
        if self.features is None:
            return
        known = self.columns
        for name in self.features:
            if name not in known:
                raise InputError(
                    f"has no column {name!r}, which {argument('features')} names. Its columns are "
                    f"{', '.join(known)}."
                )

    def _check_columns(self, step: Step, number: int) -> None:
        """Refuse what names a column that there is not."""
        assert step.centroids is not None
        n_columns, n_named = step.centroids.shape[1], len(self.columns)
        if n_columns != n_named:
            raise InputError(
                f"line {number} has {n_columns} columns, the first line names {n_named}."
            )
        for part in () if step.why is None else step.why.parts:
            if not 0 <= part.feature < n_columns:
                raise InputError(
                    f"line {number} speaks of column {part.feature}, there are {n_columns}."
                )

    def _check_order(self, step: Step, number: int) -> None:
        if self.last is not None and step.index != self.last.index + 1:
            raise InputError(
                f"line {number} is batch {step.index}, the line before is batch {self.last.index}: "
                "lines are missing, or the file holds more than one run."
            )

    def _with_ids(self, step: Step, number: int) -> Step:
        if self._has_ids is None:
            self._has_ids = step.ids is not None
            if not self._has_ids:
                self.notes.append(
                    "An older kmeander wrote this file: it has no ids and no events, so clusters "
                    "are numbered by their rows."
                )
        if self._has_ids != (step.ids is not None):
            raise InputError(
                f"line {number} has {'no ' if step.ids is None else ''}ids, unlike the lines "
                "before it: two versions of kmeander wrote to one file. Run the stream again, into "
                "another file."
            )
        assert step.centroids is not None
        return step if self._has_ids else replace(step, ids=np.arange(len(step.centroids)))

    def _count_events(self, step: Step) -> None:
        for event in step.events:
            words = "; ".join(step.words_of(event, self.columns, self.scale))
            parts = step.why.parts if event.kind == "drift" and step.why is not None else ()
            feature = parts[0].feature if parts else None
            self.events.append(
                Happened(step.index, event, words, step.first_time, step.last_time, feature)
            )
            if event.unconfirmed:
                self.n_unconfirmed += 1
            else:
                self.counts[event.kind] = self.counts.get(event.kind, 0) + 1

    def _centres(self, step: Step) -> NDArray[np.float32]:
        """Return the centroids in the columns that are followed, in the units of the stream."""
        assert step.centroids is not None
        known = step.columns or self.units or Columns.of(self.facts)
        if known is None:
            known = Columns.unnamed(step.centroids.shape[1])
        if step.columns is None:
            known = known.after(step.events)
        self.units = known
        if not self.followed:
            most = max(1, min(MOST_FOLLOWED, MOST_NUMBERS // len(step.centroids)))
            spread = step.centroids.std(axis=0)
            kept = np.argsort(-spread, kind="stable")[:most]
            self.followed = tuple(sorted(kept.tolist()))
        with np.errstate(over="ignore"):
            return known.restored(step.centroids)[:, list(self.followed)].astype(np.float32)

    def _places(self, step: Step) -> Vector:
        assert step.centroids is not None
        if self._plane is None:
            self._plane = self._make_plane(step.centroids.shape[1])
        origin, components = self._plane
        return (step.centroids - origin) @ components.T

    def _make_plane(self, n_features: int) -> tuple[Vector, NDArray[np.float64]]:
        components = np.zeros((2, n_features))
        origin = np.zeros(n_features)
        if self.features is not None:
            scaled = self.facts.get("standardize")
            for axis, name in enumerate(self.features):
                column = self.columns.index(name)
                components[axis, column] = scaled["scale"][column] if scaled else 1.0
                if scaled:
                    origin[column] = -scaled["mean"][column] / scaled["scale"][column]
            return origin, components
        known = self.facts.get("projection")
        if known and len(known["mean"]) == n_features:
            return np.array(known["mean"]), np.array(known["components"])
        components[0, 0] = components[1, min(1, n_features - 1)] = 1.0
        return origin, components


def read_timeline(path: str | os.PathLike[str], features: Sequence[str] | None = None) -> Timeline:
    """Return the timeline of the steps file at `path`.

    A last line that is cut off is left out, with a note: the run may still be writing it.
    """
    timeline = Timeline(features=features, path=path)
    try:
        _take(timeline, (line.decode("utf-8") for line in lines_of(path)), path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}. {_way_out()}"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text, so it holds no Steps. {_way_out()}") from error
    if timeline.last is None:
        raise InputError(f"{path} holds no Steps yet. {_way_out()}")
    if not timeline.moments:
        raise InputError(
            f"{path}: all {timeline.n_batches} batches so far wait for enough distinct points; "
            "there are no clusters to show yet."
        )
    return timeline


def _take(timeline: Timeline, lines: Iterable[str], path: str | os.PathLike[str]) -> None:
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n") and not _is_whole(line):
            timeline.notes.append(
                f"Line {number} is cut off and left out; the run may still be writing it."
            )
            return
        try:
            timeline.add(line, number)
        except InputError as error:
            raise InputError(f"{path} {error}") from error


def _is_whole(line: str) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    return True


def _parsed(line: str, number: int) -> dict[str, Any]:
    try:
        plain = from_json(line)
    except ValueError as error:
        raise InputError(f"line {number} is not JSON ({error}). {_way_out()}") from error
    if not isinstance(plain, dict):
        raise InputError(f"line {number} is not a Step but {type(plain).__name__}. {_way_out()}")
    return plain


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _way_out() -> str:
    return f"{argument('steps', of='run')} writes such a file."
