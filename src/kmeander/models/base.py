"""Base class of FSKM and PSKM: what both show, and their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from kmeander.arguments import seed_from
from kmeander.arrays import Centroids, Labels, Points
from kmeander.exceptions import CheckpointError, InputError, argument, shown
from kmeander.kmeans.lloyd import LloydResult
from kmeander.kmeans.window import Window
from kmeander.models.beginning import begin
from kmeander.models.describing import described, with_name
from kmeander.models.k_choice import with_clusters
from kmeander.models.preparing import prepare_batch
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.stages import placed
from kmeander.models.state import State
from kmeander.models.stored_state import check_state
from kmeander.plain_values import is_plain
from kmeander.preparation import Rows
from kmeander.records import Batch, Captions, Ids, Profiles, Step, Times

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


# What values of other kinds raise where a state is made of them.
_NO_STATE = (InputError, TypeError, KeyError, ValueError, AttributeError, OverflowError)


class StreamModel(ABC):
    """One batch in, one Step out. `step` of a model is its list of stages, in order.

    A model is not meant for two threads at once; what it hands out is never changed later.
    """

    settings: PrivilegedSettings

    def __init__(self, settings: PrivilegedSettings, random_state: RandomState) -> None:
        self.settings = settings
        self.seed = seed_from(random_state)
        self.learned = State.empty(settings)

    @classmethod
    def of(cls, settings: Any, random_state: RandomState) -> Self:
        """Return a model with these settings."""
        model = cls.__new__(cls)
        StreamModel.__init__(model, settings, random_state)
        return model

    @classmethod
    @abstractmethod
    def settings_from(cls, plain: Mapping[str, Any]) -> PrivilegedSettings:
        """Make the settings that `PrivilegedSettings.to_dict` returned."""

    @abstractmethod
    def step(
        self,
        batch: Batch,
        *,
        previous: ArrayLike | None = None,
        current: LloydResult | None = None,
    ) -> Step:
        """Learn one batch.

        Learning may be interrupted (Ctrl-C) at any time; the model is then as before.

        Parameters
        ----------
        batch : Batch
            Its `index` must be the number of batches learned before.
        previous : array-like of shape (n_clusters, n_features), optional
            Take these for C*, the centroids before the batch, instead of the model's own; the
            batches remembered are first assigned to them. For experiments in which several
            methods share C*.
        current : LloydResult, optional
            Take this for C^0, the K-means on the batch, instead of computing it. Its distances
            are charged to the methods that use it.
        """

    def learn(
        self,
        rows: Rows,
        weights: ArrayLike | None = None,
        *,
        elapsed: float = 1.0,
        concept: int | None = None,
        times: Times | None = None,
        captions: Captions | None = None,
        anew: bool = False,
    ) -> Step:
        """Learn rows of a table, prepared as the settings say; `anew` as `fit` does.

        Parameters
        ----------
        rows : Rows
            As ``kmeander.preparation.rows_of`` makes of a table.
        weights, elapsed, concept, times, captions
            As for `Batch`.
        anew : bool, default=False
            Forget everything before.
        """
        before, rules = self.learned, self.settings.rules
        known = State.empty(self.settings) if anew else before
        if rules is None:
            batch = Batch(known.n_steps, rows.values, weights, elapsed, concept, times, captions)
            return self.fit(batch) if anew else self.step(batch)
        ready = prepare_batch(
            known, rules, rows, weights, elapsed, concept, times, captions, self.settings.limits
        )
        begun = perf_counter()
        self.learned = ready.known
        try:
            if anew:
                self.check_fit(ready.batch)
                batch = placed(ready.batch, self.settings.limits.metric)
                self.learned, step = begin(
                    ready.known, batch, self.settings, self.seed, begun, wait=False
                )
            else:
                step = self.step(ready.batch)
        except BaseException:
            self.learned = before
            raise
        step = step.of_prepared(ready.filled, ready.rescaled)
        self.learned = self.learned._replace(step=step)
        return step

    def fit(self, batch: Batch) -> Step:
        """Forget everything and learn `batch`, even if it has fewer distinct points than K.

        The centroids that are then left over keep mass 0.
        """
        begun = perf_counter()
        self.check_fit(batch)
        batch = placed(batch, self.settings.limits.metric)
        empty = State.empty(self.settings)
        self.learned, step = begin(empty, batch, self.settings, self.seed, begun, wait=False)
        return step

    @property
    def n_clusters(self) -> int:
        """The number of clusters at present, or the fewest that a stream begins with."""
        known = self.learned.centroids
        return self.settings.clusters.low if known is None else len(known)

    @property
    def n_steps(self) -> int:
        """Batches taken so far, the ones kept while waiting included."""
        return self.learned.n_steps

    @property
    def n_features(self) -> int | None:
        """Columns of the stream; None before the first batch."""
        return self.learned.n_features

    @property
    def centroids(self) -> Centroids | None:
        """The centroids, or None while the stream has not shown K distinct points."""
        return self.learned.centroids

    @property
    def cluster_ids(self) -> Ids | None:
        """Id of the cluster in each row of the centroids; None where there are none."""
        lineage = self.learned.lineage
        return None if lineage is None else lineage.ids

    @property
    def n_distinct(self) -> int:
        """Distinct points kept while waiting; 0 otherwise."""
        waiting = self.learned.waiting_points
        return 0 if waiting is None else len(waiting)

    @property
    def concept(self) -> int | None:
        """Concept of the newest batch."""
        return self.learned.concept

    @property
    def window(self) -> Window:
        """The batches remembered."""
        return self.learned.window

    @property
    def last_step(self) -> Step | None:
        """The Step of the newest batch."""
        return self.learned.step

    @property
    def points(self) -> Points | None:
        """The newest batch's points, or means; None while waiting."""
        step = self.learned.step
        if self.learned.centroids is None or step is None:
            return None
        return self.window.batches[-1].points[-(step.n_means or step.n_points) :]

    @property
    def labels(self) -> Labels | None:
        """Clusters of the newest batch's points, or means; None while waiting."""
        learned = self.learned
        if learned.centroids is None or learned.step is None:
            return None
        return learned.window.newest_labels(learned.step.n_means or learned.step.n_points)

    def check_fit(self, batch: Batch) -> None:
        """Refuse a batch that `fit` cannot learn."""
        if batch.index != 0:
            raise InputError(
                f"batch has index {batch.index}, but fit begins a stream: it must be 0. step goes "
                "on with one."
            )
        low = self.settings.clusters.low
        if batch.n_points < low:
            needs = low if self.settings.follows_k else "as many"
            raise InputError(
                f"X has {batch.n_points} rows, n_clusters={self.settings.n_clusters!r} needs at "
                f"least {needs} to fit. Pass more rows or ask for fewer clusters; partial_fit "
                "waits for more."
            )

    def take_over(self, other: StreamModel) -> None:
        """Go on from where `other` is, with the settings of this model.

        For a change of rho or of the initialisation in mid-stream. Where `other` has more or fewer
        clusters than the settings allow, clusters are joined where that costs least, or parted
        where it saves most.
        """
        if other.n_steps and other.settings.rules != self.settings.rules:
            raise InputError(
                f"{argument('prepare')} cannot change while a stream is learned: points of "
                "different preparations cannot be compared. Use that with which the stream was "
                "begun, or begin anew."
            )
        if other.n_steps and other.settings.metric != self.settings.metric:
            raise InputError(
                f"{argument('metric')} is {self.settings.metric!r}, but the stream was begun with "
                f"{other.settings.metric!r}, and its points lie elsewhere. Use that, or begin anew."
            )
        self.seed = other.seed
        self.learned = with_clusters(other.learned, self.settings)

    def describe(self, columns: Sequence[str] | None = None) -> Profiles:
        """Return what each cluster is now, the largest first.

        Names that are made for it stay with the clusters for as long as they are true.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns, where rows are not prepared.
        """
        profiles, self.learned = described(self.learned, self.settings.limits, columns)
        return profiles

    def name(self, cluster: int, name: str) -> None:
        """Give a living cluster a name, which stays with its id."""
        self.learned = with_name(self.learned, cluster, name)

    def give_names(self, names: Mapping[int, str]) -> None:
        """Name clusters, those included that do not live yet."""
        memory = self.learned.memory.with_names(names)
        self.learned = self.learned._replace(memory=memory)

    def acknowledge(self) -> None:
        """Take the present as the baseline: what has changed so far is not reported again."""
        known = self.learned
        if known.chapter is None or known.centroids is None or known.lineage is None:
            return
        chapter = known.chapter.next(
            known.window, known.centroids, known.lineage.ids, self.settings.season
        )
        self.learned = known._replace(chapter=chapter)

    def state(self) -> dict[str, Any]:
        """Return everything that the model is as plain arrays, numbers, lists and dicts."""
        return {
            "model": type(self).__name__,
            "settings": self.settings.to_dict(),
            "seed": self.seed,
            **self.learned.to_dict(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Make the model that `state` describes; it goes on as the original would."""
        found = state.get("model", "no model") if isinstance(state, Mapping) else "no model"
        if not isinstance(found, str) or found != cls.__name__:
            name = found if isinstance(found, str) else shown(found)
            raise InputError(f"the state is that of {name}, not of {cls.__name__}.")
        try:
            if not all(map(is_plain, (state["seed"], *state["settings"].values()))):
                raise InputError("it has settings that are no plain values.")
            model = cls.of(cls.settings_from(state["settings"]), state["seed"])
            check_state(state, model.settings.clusters, len(model.settings.choices))
            model.learned = State.from_dict(state, model.settings.choices)
        except _NO_STATE as error:
            raise CheckpointError(
                f"the state of {cls.__name__} is none that kmeander has written: {error} Use an "
                "older copy."
            ) from error
        return model

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.to_dict().items())
        return f"{type(self).__name__}({settings}, random_state={self.seed})"
