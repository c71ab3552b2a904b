"""What FSKM and PSKM share: waiting for K distinct points, learning a window, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kmeander.arguments import generator_for, seed_from, whole_number
from kmeander.arrays import (
    Centroids,
    Labels,
    Points,
    checked_centroids,
    frozen,
    frozen_copy,
)
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import (
    Limits,
    LloydResult,
    fit_window,
)
from kmeander.kmeans.local_search import candidates_of, swap_centroids
from kmeander.kmeans.seeding import draw_seeds, kmeans
from kmeander.kmeans.starts import Current, Start
from kmeander.kmeans.window import Window
from kmeander.models import memory_state
from kmeander.models.state import Clock, Memory
from kmeander.models.step_checks import check_step
from kmeander.records import Batch, Ids, Step
from kmeander.tracking.drift_test import Arrival, arrive, usual_after
from kmeander.tracking.lineage import Lineage
from kmeander.tracking.modality import misfits_at
from kmeander.tracking.tracker import Followed, follow

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


class StreamModel(ABC):
    """One batch in, one Step out; the children say what is remembered and where Lloyd starts.

    A model is not meant for two threads at once; what it hands out is never changed later.
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        rho: float,
        refine: str | int | None = None,
        max_iter: int = 300,
        tol: float = 0.0,
        n_threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = whole_number(
            "n_clusters", n_clusters, at_least=1, meaning="the number of clusters K"
        )
        self.rho = rho
        self.limits = Limits(max_iter, tol, n_threads)
        self.seed = seed_from(random_state)
        self.refine = refine
        self._n_candidates = candidates_of(refine)
        self._memory = self._blank()

    @property
    def n_steps(self) -> int:
        """Batches taken so far, those of the wait included."""
        return self._memory.n_steps

    @property
    def n_features(self) -> int | None:
        """Columns of the stream; None before the first batch."""
        return self._memory.n_features

    @property
    def centroids(self) -> Centroids | None:
        """The centroids, or None while the stream has not shown K distinct points."""
        return self._memory.centroids

    @property
    def cluster_ids(self) -> Ids | None:
        """Id of the cluster in each row of the centroids; None where there are none."""
        lineage = self._memory.lineage
        return None if lineage is None else lineage.ids

    @property
    def n_distinct(self) -> int:
        """Distinct points kept while waiting; 0 otherwise."""
        waiting = self._memory.waiting_points
        return 0 if waiting is None else len(waiting)

    @property
    def concept(self) -> int | None:
        """Concept of the newest batch."""
        return self._memory.concept

    @property
    def window(self) -> Window:
        """The batches remembered."""
        return self._memory.window

    @property
    def last_step(self) -> Step | None:
        """The Step of the newest batch."""
        return self._memory.step

    @property
    def labels(self) -> Labels | None:
        """Clusters of the newest batch's points, or means; None while waiting."""
        memory = self._memory
        if memory.centroids is None or memory.step is None:
            return None
        assert memory.window.partition is not None
        return memory.window.partition.labels[-(memory.step.n_means or memory.step.n_points) :]

    def step(
        self,
        batch: Batch,
        *,
        previous: ArrayLike | None = None,
        current: LloydResult | None = None,
    ) -> Step:
        """Learn one batch.

        Learning may be interrupted (Ctrl-C) between two passes; the model is then as before.

        Parameters
        ----------
        batch : Batch
            Its `index` must be the number of batches learnt before.
        previous : array-like of shape (n_clusters, n_features), optional
            Take these for C*, the centroids before the batch, instead of the model's own; the
            batches remembered are first assigned to them. For experiments in which several
            methods share C*.
        current : LloydResult, optional
            Take this for C^0, the K-means on the batch, instead of computing it. Its distances
            are charged to the methods that use it.
        """
        self._prepare()
        clock = Clock()
        memory = self._memory
        check_step(memory, batch, self.n_clusters, previous, current)
        if memory.centroids is None:
            learnt = self._begin(memory, batch, clock, wait=True)
        else:
            if previous is not None:
                memory = self._seen_from(memory, previous)
            assert memory.centroids is not None
            arrival = arrive(
                batch,
                memory.window,
                memory.centroids,
                memory.expected_error,
                memory.usual,
                self.limits,
            )
            learnt = self._continue(memory, batch, clock, arrival, current)
        return self._commit(learnt)

    def fit(self, batch: Batch) -> Step:
        """Forget everything and learn `batch`, even if it has fewer distinct points than K.

        The centroids that are then left over keep mass 0.
        """
        clock = Clock()
        self.check_fit(batch)
        blank = self._blank()
        return self._commit(self._begin(blank, batch, clock, wait=False))

    def check_fit(self, batch: Batch) -> None:
        """Refuse a batch that `fit` cannot learn."""
        if batch.index != 0:
            raise InputError(
                f"batch has index {batch.index}, but fit begins a stream: it must be 0. step goes "
                "on with one."
            )
        if batch.n_points < self.n_clusters:
            raise InputError(
                f"X has {batch.n_points} rows, n_clusters={self.n_clusters} needs at least as many "
                "to fit. Pass more rows or ask for fewer clusters; partial_fit waits for more."
            )

    def take_over(self, other: StreamModel) -> None:
        """Go on from where `other` is, with the settings of this model.

        For a change of rho or of the initialisation in mid-stream. K cannot change.
        """
        if other.n_clusters != self.n_clusters:
            raise InputError(
                f"n_clusters is {self.n_clusters}, but the stream was begun with "
                f"{other.n_clusters}. The number of clusters cannot change while a stream is "
                "learnt; fit begins a new one."
            )
        self.seed = other.seed
        self._memory = other._memory

    def state(self) -> dict[str, Any]:
        """Return everything that the model is as plain arrays, numbers, lists and dicts."""
        return {
            "model": type(self).__name__,
            "settings": self.settings(),
            "seed": self.seed,
            **memory_state.to_state(self._memory),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Make the model that `state` describes; it goes on as the original would."""
        if state.get("model") != cls.__name__:
            raise InputError(
                f"the state is that of {state.get('model', 'no model')}, not of {cls.__name__}."
            )
        model = cls(**state["settings"], random_state=state["seed"])
        model._memory = memory_state.from_state(state)
        return model

    def settings(self) -> dict[str, Any]:
        """Return the parameters that a new model with the same settings takes."""
        return {"n_clusters": self.n_clusters, **vars(self.limits)}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({settings}, random_state={self.seed})"

    def _blank(self) -> Memory:
        """Return the memory of a model that has seen nothing."""
        return Memory(Window(self.rho))

    def _prepare(self) -> None:  # noqa: B027  # most need nothing
        """Load what the step will need."""

    def _commit(self, learnt: Memory) -> Step:
        assert learnt.step is not None
        self._memory = learnt
        return learnt.step

    def _begin(self, memory: Memory, batch: Batch, clock: Clock, *, wait: bool) -> Memory:
        """Learn the first K distinct points, or keep what there is and wait."""
        points, weights = memory.with_waiting(batch)
        rng = generator_for(self.seed, batch.index)
        seeds = draw_seeds(points, weights, self.n_clusters, rng, self.limits.n_threads)
        n_surplus = self.n_clusters - len(seeds.rows)
        if wait and n_surplus > 0:
            # Every point is one of the seeds: they are kept, with the weight each stands for.
            labels = seeds.partition.labels
            masses = np.bincount(labels, weights, len(seeds.rows)).astype(np.float64)
            step = Step(
                index=batch.index,
                n_points=batch.n_rows,
                n_means=_n_means(batch),
                waiting=True,
                rho=self.rho,
                n_batches=0,
                mass=float(masses.sum()),
                n_distances=seeds.n_distances,
                n_distances_plain=seeds.n_distances_plain,
                seconds=clock.seconds(),
            )
            kept: Points = points[seeds.rows]
            kept.flags.writeable = False
            return Memory(
                window=memory.window,
                n_steps=batch.index + 1,
                n_features=points.shape[1],
                waiting_points=kept,
                waiting_weights=frozen(masses),
                waiting_within=memory.within(batch) or 0.0,
                concept=batch.concept,
                step=step,
                ladder=memory.ladder,
            )
        # Where there are too few distinct points (fit only) the surplus centroids lie on the
        # first: a tie goes to the lowest index, so they stay without mass.
        surplus = np.repeat(seeds.centroids[:1], n_surplus, axis=0)
        start = Start(
            np.concatenate([seeds.centroids, surplus]), seeds.n_distances, seeds.n_distances_plain
        )
        known = seeds.partition if n_surplus == 0 else None
        window = Window(self.rho).joined_by(points, weights, known, memory.within(batch))
        return self._learn(memory, window, start, batch, clock)

    @abstractmethod
    def _continue(
        self,
        memory: Memory,
        batch: Batch,
        clock: Clock,
        arrival: Arrival,
        current: LloydResult | None,
    ) -> Memory:
        """Learn a batch after the first."""

    def _learn(
        self,
        memory: Memory,
        window: Window,
        start: Start,
        batch: Batch,
        clock: Clock,
        arrival: Arrival | None = None,
        history_kept: float = 1.0,
    ) -> Memory:
        """Run Lloyd on the window and write down what happened."""
        swapped: tuple[int, ...] = ()
        arrived = window
        if self._n_candidates:
            rng = generator_for(self.seed, batch.index, 2)
            refined = swap_centroids(window, start.centroids, self._n_candidates, rng, self.limits)
            window, swapped = refined.window, refined.swapped
            start = start._replace(centroids=refined.centroids)
            start = start.plus(refined.n_distances, plain=refined.n_distances_plain)
        fit = fit_window(
            window,
            start.centroids,
            self.limits,
            before=memory.centroids,
            keep_totals=memory.ladder is not None,
        )
        estimate = None if arrival is None else arrival.estimate
        epsilon, se = (None, None) if estimate is None else (estimate.epsilon, estimate.se)
        z = None if arrival is None else arrival.z
        if memory.lineage is None or memory.centroids is None or fit.moved is None:
            followed = Followed(Lineage.begun(fit.centroids, batch.index), (), None)
        else:
            assert arrival is not None  # where there are centroids, the batch was measured
            followed = follow(
                memory.lineage,
                arrived,
                fit,
                memory.centroids,
                fit.moved,
                arrival.partition,
                batch.index,
                remembered=memory.window,
                swapped=swapped,
                drift=(epsilon, se, z),
                last=memory.step,
                n_threads=self.limits.n_threads,
            )
        misfits = misfits_at(batch.index, fit.window, fit.centroids, fit.masses)
        step = Step.made(
            index=batch.index,
            n_points=batch.n_rows,
            n_means=_n_means(batch),
            waiting=False,
            rho=window.rho,
            n_batches=window.n_batches,
            n_summarised=window.n_summarised,
            mass=window.mass,
            prequential_error=None if arrival is None else arrival.error,
            initial_error=fit.initial_error,
            surrogate_error=fit.error,
            batch_error=fit.newest_error,
            centroids=fit.centroids,
            masses=fit.masses,
            moved=fit.moved,
            reseeded=fit.reseeded,
            n_iter=fit.n_iter,
            converged=fit.converged,
            n_distances=start.n_distances + fit.n_distances,
            n_distances_plain=start.n_distances_plain + fit.n_distances_plain,
            expected_error=fit.expected_error,
            drift_epsilon=epsilon,
            drift_se=se,
            drift_z=z,
            history_kept=history_kept,
            swapped=swapped,
            merged=misfits.merged,
            holds_two=misfits.holds_two,
            ids=followed.lineage.ids,
            events=followed.events,
            why=followed.why,
            ended=followed.lineage.ended,
            seconds=clock.seconds(),
        )
        return Memory(
            window=fit.window,
            n_steps=batch.index + 1,
            n_features=batch.points.shape[1],
            centroids=fit.centroids,
            concept=batch.concept,
            step=step,
            expected_error=fit.expected_error,
            usual=usual_after(memory.usual, arrival),
            ladder=memory.ladder,
            lineage=followed.lineage,
        )

    def _current(self, batch: Batch, current: LloydResult | None) -> Current:
        def found() -> LloydResult:
            if current is not None:
                # Whether its bounds are those of this batch's points, only the caller knows.
                return replace(current, partition=None)
            rng = generator_for(self.seed, batch.index)
            return kmeans(batch.points, batch.weights, self.n_clusters, rng, self.limits)

        return found

    def _seen_from(self, memory: Memory, previous: ArrayLike) -> Memory:
        """Return the memory as if `previous` had been the centroids so far."""
        assert memory.n_features is not None
        centroids = checked_centroids(previous, memory.n_features, "previous")
        if len(centroids) != self.n_clusters:
            raise InputError(
                f"previous has {len(centroids)} centroids, the model has {self.n_clusters}."
            )
        fit = fit_window(memory.window, frozen_copy(centroids), self.limits, only_assign=True)
        return memory._replace(
            centroids=fit.centroids,
            window=fit.window,
            expected_error=fit.expected_error,
        )


def _n_means(batch: Batch) -> int | None:
    return None if batch.within is None else batch.n_points
