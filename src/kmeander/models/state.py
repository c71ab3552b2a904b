"""State of a model: all that it has learned, replaced as a whole, saved as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmeander.arrays import Centroids, Labels, Points, Weights, frozen
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.local_search import Rest
from kmeander.kmeans.stored_window import state_of, window_from
from kmeander.kmeans.window import Remembered, Window
from kmeander.meaning.memory import Memory
from kmeander.models.k_state import KChoice
from kmeander.models.rho_choice import RhoChoice, Speeds
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.trial import Contender, Trial
from kmeander.preparation import FittedPreparation
from kmeander.records import Batch, Step
from kmeander.tracking.change_test import Chapter
from kmeander.tracking.drift_test import Estimate
from kmeander.tracking.lineage import Lineage


class State(NamedTuple):
    """All that a model has learned. Replaced as a whole, so a batch is learned or it is not."""

    window: Window
    n_steps: int = 0
    n_features: int | None = None
    centroids: Centroids | None = None
    # Points seen before there were K distinct ones: the distinct ones, with their weights.
    waiting_points: Points | None = None
    waiting_weights: Weights | None = None
    waiting_within: float = 0.0  # what they hide, where some of them were means
    concept: int | None = None
    step: Step | None = None
    # What the next batch should cost if nothing changes, and the latest estimates of epsilon.
    expected_error: float | None = None
    estimates: tuple[Estimate, ...] = ()
    rho_choice: RhoChoice | None = None  # where the model chooses rho itself
    trial: Trial = Trial()  # where an alarm begins a second memory
    rest: Rest = Rest()  # of split-merge, where the model uses it
    lineage: Lineage | None = None  # None as long as there are no centroids
    chapter: Chapter | None = None  # the same, and in a state of before there were any
    preparation: FittedPreparation | None = None  # where rows are prepared
    memory: Memory = Memory()  # of the clusters, for people
    k_choice: KChoice = KChoice()  # of the number of clusters

    @classmethod
    def empty(cls, settings: PrivilegedSettings) -> State:
        """Return the state of a model that has seen nothing."""
        choices = settings.choices
        choice = RhoChoice((0.0,) * len(choices), choices) if choices else None
        return cls(Window(settings.first_rho, tail=settings.tail), rho_choice=choice)

    def with_waiting(self, batch: Batch) -> tuple[Points, Weights | None]:
        """Return the points kept so far and the batch as one batch of age 0."""
        if self.waiting_points is None or self.waiting_weights is None:
            return batch.points, batch.weights
        weights = np.ones(batch.n_points) if batch.weights is None else batch.weights
        points = np.concatenate([self.waiting_points, batch.points])
        points.flags.writeable = False
        return points, frozen(np.concatenate([self.waiting_weights, weights]))

    def within(self, batch: Batch) -> float | None:
        """Return what those points hide of any error; None where each of them is a row."""
        if batch.within is None and self.waiting_within == 0:
            return None
        return self.waiting_within + (batch.within or 0.0)

    def rows_of(self, labels: Labels) -> Labels:
        """Return the row that users see for each cluster: some rows may be free."""
        places = self.k_choice.places
        return labels if places is None else places.rows[labels].astype(labels.dtype)

    def rescaled(self, factors: Weights, limits: Limits) -> State:
        """Return the same in other units: each column of a point is multiplied by its factor.

        Which centroid is nearest depends on the units, so the window is clustered anew from where
        the centroids are; clusters keep their ids.
        """
        if self.waiting_points is not None:
            return self._replace(
                waiting_points=limits.metric.rescaled(self.waiting_points, factors)
            )
        if self.centroids is None:
            return self
        assert self.lineage is not None
        keep_sums, made = self.rho_choice is not None, dict[Remembered, Remembered]()
        fit = fit_window(
            self.window.rescaled(factors, limits.metric, made),
            limits.metric.centroids(frozen(self.centroids * factors)),
            limits,
            keep_sums=keep_sums,
        )
        trial, other = self.trial, self.trial.other
        if other is not None:
            places = limits.metric.centroids(frozen(other.centroids * factors))
            window = other.window.rescaled(factors, limits.metric, made)
            anew = fit_window(window, places, limits, keep_sums=keep_sums)
            other = Contender(anew.window, anew.centroids, anew.expected_error, other.score)
            trial = trial._replace(other=other)
        return self._replace(
            window=fit.window,
            centroids=fit.centroids,
            expected_error=fit.expected_error,
            trial=trial,
            lineage=self.lineage.rescaled(factors, fit.centroids, limits.metric),
            chapter=None
            if self.chapter is None
            else self.chapter.next(
                fit.window, fit.centroids, self.lineage.ids, self.chapter.season
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain arrays, numbers, lists and dicts, under names that last."""
        return {
            "n_steps": self.n_steps,
            "n_features": self.n_features,
            "centroids": self.centroids,
            "window": state_of(self.window),
            "waiting_points": self.waiting_points,
            "waiting_weights": self.waiting_weights,
            "waiting_within": self.waiting_within,
            "concept": self.concept,
            "step": None if self.step is None else self.step.to_dict(),
            "expected_error": self.expected_error,
            "usual": [[known.epsilon, known.se] for known in self.estimates],
            "ladder": None if self.rho_choice is None else list(self.rho_choice.scores),
            "trial": self.trial.state(self.window),
            "rest": list(self.rest),
            "lineage": None if self.lineage is None else self.lineage.state(),
            "chapter": None if self.chapter is None else self.chapter.state(),
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "memory": self.memory.to_dict(),
            **self.k_choice.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], choices: tuple[Speeds, ...] = ()) -> State:
        """Make a state of what `to_dict` returned; one of an early version may lack some of it.

        `choices` are those that rho is chosen among.
        """
        # Arrays from a pickle can be written to; nothing here may.
        for array in (plain["centroids"], plain["waiting_points"], plain["waiting_weights"]):
            if array is not None:
                array.flags.writeable = False
        step, lineage = _step_and_lineage(plain)
        window, ladder = window_from(plain["window"]), plain.get("ladder")
        return cls(
            window=window,
            n_steps=plain["n_steps"],
            n_features=plain["n_features"],
            centroids=plain["centroids"],
            waiting_points=plain["waiting_points"],
            waiting_weights=plain["waiting_weights"],
            waiting_within=plain.get("waiting_within", 0.0),
            concept=plain["concept"],
            step=step,
            expected_error=plain.get("expected_error"),
            estimates=tuple(Estimate(*known) for known in plain.get("usual", ())),
            rho_choice=RhoChoice(tuple(ladder), choices) if ladder and choices else None,
            trial=Trial.from_state(plain.get("trial"), window),
            rest=Rest(*plain.get("rest", ())),
            lineage=lineage,
            chapter=Chapter.from_state(plain["chapter"]) if plain.get("chapter") else None,
            preparation=(
                FittedPreparation.from_dict(plain["preparation"])
                if plain.get("preparation")
                else None
            ),
            memory=Memory.from_dict(plain["memory"]) if plain.get("memory") else Memory(),
            k_choice=KChoice.from_dict(plain),
        )


def _step_and_lineage(plain: Mapping[str, Any]) -> tuple[Step | None, Lineage | None]:
    """Return the last Step and the lineage; a state of before there were ids begins them anew."""
    stored, known = plain["step"], plain.get("lineage")
    step = None if stored is None else Step.from_dict(stored)
    if plain["centroids"] is None:
        return step, None
    lineage = Lineage.begun(plain["centroids"], 0) if known is None else Lineage.from_state(known)
    return step if step is None else replace(
        step, ids=lineage.ids, ended=lineage.whereabouts
    ), lineage
