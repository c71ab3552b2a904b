"""A Step: what one batch did to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import (
    Centroids,
    Masses,
    frozen,
)
from kmeander.events import Event, Explanation
from kmeander.exceptions import InputError, shown
from kmeander.html_cards import MOST_ROWS, card, plural
from kmeander.plain_values import each_of, record_values
from kmeander.records.columns import Columns
from kmeander.records.event_time import checked_text, in_words
from kmeander.records.noise import Noise
from kmeander.records.profile import ClusterProfile, Profiles

Ids = NDArray[np.int64]


# Fields of a Step that are not written and do not count in comparisons.
_IN_MEMORY = {"seconds", "ended", "names", "columns"}
# Those that are only written where there is something.
_WHERE_KNOWN = {"memory", "filled", "first_time", "last_time", "profiles"}


# What `memory` may be.
_MEMORIES = ("whole", "fresh")


def _checked_memory(value: Any) -> str:
    if value not in _MEMORIES:
        raise InputError(f"there is no memory {shown(value)}.")
    return str(value)


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """What one batch did to the model.

    Errors are means of squared distances, in the paper's sense; None stands where there is none.

    Parameters
    ----------
    index : int
        Number of the batch, from 0.
    n_points : int
        Rows of the batch.
    waiting : bool
        The stream has not yet shown as many distinct points as there are clusters: the points are
        kept, nothing is learned, and the fields that describe clusters are None or empty.
    rho : float
        Share of weight that a batch keeps when its age grows by one; where the memory has two
        speeds, the newest batch.
    n_batches : int
        Batches in the window, this one included.
    mass : float
        Their decayed weight.
    prequential_error : float or None
        Error of the batch under the centroids before it was learned.
    initial_error : float or None
        Surrogate error of the centroids that Lloyd started from.
    surrogate_error : float or None
        Surrogate error of the centroids that Lloyd ended with.
    batch_error : float or None
        Error of the batch under those.
    centroids : ndarray of shape (n_clusters, n_features) or None
    masses : ndarray of shape (n_clusters,) or None
        Decayed weight of each cluster.
    moved : ndarray of shape (n_clusters,) or None
        Distance from each centroid's place before the batch; None for the first.
    reseeded : tuple of int
        Clusters that lost all their mass and took the costliest point instead.
    n_iter : int
        Assignment passes over the window, the last one included.
    converged : bool
        Whether the last pass left the labels, or `tol` was met, before `max_iter`.
    n_distances : int
        Distances computed: seeding, K-means on the batch, matching and the window.
    n_distances_plain : int
        The count of a plain Lloyd that takes the same passes.
    n_summarised : int
        Of the batches in the window, how many are remembered by weighted means; see `max_points`
        of `FSKM`.
    expected_error : float or None
        What the prequential error of the next batch should be if nothing changes: the mean error
        of the batches in the window, each under centroids that have not learned it.
    drift_epsilon : float or None
        Estimate of the paper's epsilon: the prequential error is ``1 + drift_epsilon`` times what
        was expected.
    drift_se : float or None
        Its standard error.
    drift_z : float or None
        How many standard deviations it lies above the baseline of this stream, as far as that is
        known; None where nothing scatters, or the batch is one point.
    history_kept : float
        Share of their weight that the batches before this one kept, beside rho, although it
        contradicts them: 1 where it does not; see `forgetting` of `FSKM`.
    swapped : tuple of int
        Clusters whose centroid was put elsewhere by local search, before Lloyd or after it; see
        `refine` of `FSKM`.
    merged : tuple of tuple of int
        Pairs of clusters that have become one, by row as in `swapped` and `reseeded`: there is no
        valley between them. Fewer clusters would do. Looked for at every few batches, on rows that
        have come since the last time, with at most 1 false alarm in 200 times; so is `holds_two`.
    holds_two : tuple of int
        Clusters with a valley in their midst: more clusters would fit better.
    ids : ndarray of shape (n_clusters,) or None
        Id of the cluster in each row of `centroids`. It lasts as long as the cluster, and is never
        used again.
    events : tuple of Event
        What happened to the clusters.
    why : Explanation or None
        At a drift: the share of each cluster and column in it.
    noise : Noise or None
        What is known of the noise between batches; None where nothing was tested.
    n_far : int
        Rows that lie farther from all clusters than is usual in this stream.
    provisional : tuple of int
        Ids of newborn clusters that have not lasted yet: they are reported once they have.
    asleep : tuple of (int, int)
        Ids that no centroid follows at present and that may come back, each with the id of the
        cluster that its points are part of now, or -1.
    dropped : tuple of (int, int)
        Provisional ids that ended with this batch, in the same form.
    ended : tuple of (int, int)
        All ids that have no row now, each with the id of the cluster that it is part of now, or -1,
        for `remap`. In memory only, as it grows: `events` and `dropped` have those of this batch.
    memory : {"whole", "fresh"} or None
        Which memory answered, with ``forgetting="on-trial"``: all errors, masses and the window are
        its own. None with any other forgetting, and in that case not written.
    n_means : int or None
        Number of weighted means as which the batch came, and by which it is remembered; None where
        it came as the rows themselves.
    filled : dict of str to int, or None
        Missing values of the batch that were filled, by column, where rows were prepared: all
        errors and distances are then in prepared units. None where rows were learned as they came,
        and in that case not written.
    first_time, last_time : str or None
        When the first and the last row of the batch happened: ISO 8601, in UTC. None where nobody
        said, and in that case not written.
    profiles : Profiles or None
        What each cluster is, the largest first, at batches where a run looks; otherwise None, and
        in that case not written. Not compared, as it says nothing that the batch did.
    names : mapping of int to str, or None
        Names of clusters, by id, as far as they are known. In memory only: `profiles` have them.
    columns : Columns or None
        Names and units of the columns, for words and frames. In memory only, as `seconds`; a steps
        file has them once, in its first line.
    seconds : float or None
        Time taken. In memory only: not written, not compared.
    """

    index: int
    n_points: int
    waiting: bool
    rho: float
    n_batches: int
    mass: float
    prequential_error: float | None = None
    initial_error: float | None = None
    surrogate_error: float | None = None
    batch_error: float | None = None
    centroids: Centroids | None = None
    masses: Masses | None = None
    moved: NDArray[np.float64] | None = None
    reseeded: tuple[int, ...] = ()
    n_iter: int = 0
    converged: bool = False
    n_distances: int = 0
    n_distances_plain: int = 0
    n_summarised: int = 0
    expected_error: float | None = None
    drift_epsilon: float | None = None
    drift_se: float | None = None
    drift_z: float | None = None
    history_kept: float = 1.0
    swapped: tuple[int, ...] = ()
    merged: tuple[tuple[int, int], ...] = ()
    holds_two: tuple[int, ...] = ()
    ids: Ids | None = None
    events: tuple[Event, ...] = ()
    why: Explanation | None = None
    noise: Noise | None = None
    n_far: int = 0
    provisional: tuple[int, ...] = ()
    asleep: tuple[tuple[int, int], ...] = ()
    dropped: tuple[tuple[int, int], ...] = ()
    ended: tuple[tuple[int, int], ...] = ()
    memory: str | None = None
    n_means: int | None = None
    filled: dict[str, int] | None = None
    first_time: str | None = None
    last_time: str | None = None
    profiles: Profiles | None = None
    names: Mapping[int, str] | None = None
    columns: Columns | None = None
    seconds: float | None = None

    @classmethod
    def made(cls, **values: Any) -> Step:
        """Return the Step of these values, one for each field.

        As the class itself would, in a quarter of the time: it sets frozen fields one by one.
        """
        assert values.keys() == cls.__dataclass_fields__.keys()
        step = object.__new__(cls)
        vars(step).update(values)
        return step

    def of_prepared(self, filled: dict[str, int], rescaled: Sequence[Event]) -> Step:
        """Return the Step of rows that were prepared: what was filled, and units that changed."""
        return self.having(filled=filled, events=(*self.events, *rescaled))

    def having(self, **values: Any) -> Step:
        """Return the Step with other values of some fields."""
        assert values.keys() <= vars(self).keys()
        step = object.__new__(type(self))
        vars(step).update(vars(self), **values)
        return step

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters after the batch; None while the model waits."""
        return None if self.centroids is None else len(self.centroids)

    def with_columns(self, columns: Columns | None) -> Step:
        """Return the Step, knowing names and units of its columns."""
        if columns is None or columns is self.columns:
            return self
        return self.having(columns=columns)

    def when(self) -> str:
        """Return when its rows happened, for people; nothing where nobody said.

        Examples
        --------
        >>> known = {"n_points": 9, "waiting": True, "rho": 0.6, "n_batches": 0, "mass": 9.0}
        >>> times = {"first_time": "2026-06-03T00:00:00Z", "last_time": "2026-06-03T23:50:00Z"}
        >>> Step(0, **known, **times).when(), Step(0, **known).when()
        ('2026-06-03 00:00 to 23:50 UTC', '')
        """
        return in_words(self.first_time, self.last_time)

    def words(
        self, columns: Sequence[str] | None = None, scale: Sequence[float] | None = None
    ) -> list[str]:
        """Return what happened, an event each, with the reasons for a drift after it.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns; by default those that the Step knows.
        scale : sequence of float, optional
            Where columns were standardised: how large one unit is in the units of the stream.
        """
        return [said for event in self.events for said in self.words_of(event, columns, scale)]

    def words_of(
        self,
        event: Event,
        columns: Sequence[str] | None = None,
        scale: Sequence[float] | None = None,
    ) -> list[str]:
        """Return one of its events in words, and the reasons for a drift."""
        said = event.words(self.names)
        if event.kind != "drift" or self.why is None:
            return [said]
        if columns is None and self.columns is not None:
            columns, scale = self.columns.names, self.columns.scale
        return [said, *self.why.words(columns, scale, self.names)]

    def to_dict(self) -> dict[str, Any]:
        """Return the Step as plain lists and numbers, without what is in memory only."""
        plain: dict[str, Any] = {}
        for entry in fields(self):
            if entry.name in _IN_MEMORY:
                continue
            value = getattr(self, entry.name)
            if entry.name in _WHERE_KNOWN and value is None:
                continue
            if isinstance(value, np.ndarray):
                value = value.tolist()
            elif entry.name == "events":
                value = [event.to_dict() for event in value]
            elif isinstance(value, Explanation):
                value = value.to_dict()
            elif isinstance(value, Noise):
                value = dict(vars(value))
            elif isinstance(value, Profiles):
                value = [profile.to_dict() for profile in value]
            elif isinstance(value, tuple):
                value = [list(one) if isinstance(one, tuple) else one for one in value]
            plain[entry.name] = value
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Step:
        """Make a Step from what `to_dict` returned; unknown keys are ignored."""
        if not isinstance(plain, dict):
            raise InputError(f"not a Step: {shown(plain)}.")
        missing = [entry.name for entry in fields(cls)[:6] if entry.name not in plain]
        if missing:
            raise InputError(
                f"not a Step: {', '.join(map(repr, missing))} missing among the keys "
                f"{sorted(plain)}."
            )
        made = {
            "events": each_of(Event.from_dict, "events"),
            "why": Explanation.from_dict,
            "noise": lambda known: Noise(**record_values(Noise, known, "the noise")),
            "memory": _checked_memory,
            "first_time": checked_text,
            "last_time": checked_text,
            "profiles": lambda known: Profiles(
                each_of(ClusterProfile.from_dict, "profiles")(known)
            ),
        }
        values = record_values(cls, plain, "the step", others=made, leave_out=_IN_MEMORY)
        for name in ("centroids", "masses", "moved", "ids"):
            if values[name] is not None:
                frozen(values[name])
        return cls(**values)

    def __repr__(self) -> str:
        happened = "; ".join(self.words()) or ("waiting" if self.waiting else "nothing happened")
        when = self.when()
        head = f"Step {self.index}{when and f', {when}'}: {plural(self.n_points, 'row')}"
        if self.centroids is None:
            return f"{head}, no clusters yet\n  {happened}"
        n_ids = plural(len(self.centroids), "cluster")
        return f"{head}, {n_ids}, rho {self.rho:.3g}\n  {self._errors()}\n  {happened}"

    def _errors(self) -> str:
        """Return the errors of the batch in half a sentence."""
        if self.prequential_error is None or self.batch_error is None:
            return f"error {_short(self.batch_error)}"
        return (
            f"error {_short(self.prequential_error)} before learning, "
            f"{_short(self.batch_error)} after, {_short(self.surrogate_error)} over the window"
        )

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        if self.ids is None or self.masses is None:
            return card(repr(self).splitlines()[0], self.words())
        order = np.argsort(-self.masses, kind="stable")[:MOST_ROWS]
        table = [(str(self.ids[place]), f"{self.masses[place] / self.mass:.1%}") for place in order]
        n_more = len(self.ids) - len(order)
        more = [f"and {plural(n_more, 'smaller cluster')}"] if n_more else []
        lines = [self._errors(), *(self.words() or ["nothing happened"])]
        return card(
            repr(self).splitlines()[0], lines, table=(("cluster", "share"), table), after=more
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Step):
            return False
        one, two = (step.having(profiles=None).to_dict() for step in (self, other))
        return one == two

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
