"""forgetting="on-trial": at an alarm a second memory begins, and who forecasts better answers.

The whole memory has seen every batch and forgets by `rho` alone. The fresh one begins at an alarm
as the whole one, of which it keeps what makes the gap negligible. A false alarm then costs a batch
or two instead of all that was known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kmeander import _kernel
from kmeander.kmeans.lloyd import Limits, fit_window, measure
from kmeander.kmeans.local_search import swap_centroids
from kmeander.kmeans.window import Remembered
from kmeander.models.state import State
from kmeander.models.trial import Contender, Trial
from kmeander.records import Batch
from kmeander.tracking.drift_test import DriftTest

# The fresh memory forgets slowly, for it holds little but the present concept.
FRESH_RHO = 0.8
# Of epsilon, without which chance and change cannot be told apart.
_LEAST_ESTIMATES = 4
# Batches after which a fresh memory that does not answer is given up.
_LONGEST_TRIAL = 5
# Candidates of local search for the memory that does not answer, and its updates of the centroids.
_OTHER_SWAPS, _OTHER_UPDATES = 3, 1


class Turn(NamedTuple):
    """Which memory answers to a batch."""

    known: State  # with that memory in front
    newest: _kernel.Partition  # of the batch, by its centroids
    has_switched: bool = False  # other centroids than those that the batch was measured with
    has_begun: bool = False  # a fresh memory, with this batch
    history_kept: float = 1.0  # by the batches that the one that answers remembers
    n_distances: int = 0
    memory: str | None = None  # which one answers, where there may be two


def take_turns(known: State, batch: Batch, arrival: DriftTest, limits: Limits) -> Turn:
    """Let both memories forecast the batch, and decide which one is to learn it and answer.

    Parameters
    ----------
    known : State
    batch : Batch
    arrival : DriftTest
        The batch under the centroids of the memory that has answered so far.
    limits : Limits
    """
    trial, n_distances = known.trial, 0
    assert known.centroids is not None
    if trial.other is not None and len(trial.other.centroids) != len(known.centroids):
        trial = Trial(first_errors=trial.first_errors)  # K has changed: who answers goes on alone
    theirs, its_error = arrival.partition, arrival.error
    if trial.other is not None:
        found = measure(batch.handle, trial.other.centroids, limits.threads, limits.metric)
        hidden = limits.metric.error_share * ((batch.within or 0.0) / batch.mass)
        theirs, its_error = found.partition, found.error + hidden
        n_distances = batch.n_points * len(trial.other.centroids)
        trial = trial.after(arrival.error, its_error)
    known = known._replace(trial=trial)
    if arrival.is_drift and len(known.estimates) >= _LEAST_ESTIMATES:
        return _begun(known, arrival, theirs, its_error, n_distances)
    if trial.other is not None and trial.other.score < trial.score:
        switched = _switched(known)
        return Turn(switched, theirs, True, n_distances=n_distances, memory=_name_of(switched))
    if trial.other is not None and not trial.is_fresh and trial.n_batches >= _LONGEST_TRIAL:
        known = known._replace(trial=Trial(first_errors=trial.first_errors))
    return Turn(known, arrival.partition, n_distances=n_distances, memory=_name_of(known))


def _begun(
    known: State, arrival: DriftTest, theirs: _kernel.Partition, its_error: float, n_distances: int
) -> Turn:
    """Begin a fresh memory from the better one; it answers if that was right before."""
    trial, own = known.trial, _answering(known)
    whole, better, newest = own, own, arrival.partition
    if trial.is_fresh:
        assert trial.other is not None
        whole = trial.other
        if its_error < arrival.error:
            better, newest = whole, theirs
    fresh = Contender(better.window.reduced(arrival.history_kept), better.centroids, None)
    answers, other = (fresh, whole) if trial.trusts_fresh else (whole, fresh)
    if answers is whole:
        newest = theirs if trial.is_fresh else arrival.partition
    known = known._replace(
        window=answers.window,
        centroids=answers.centroids,
        expected_error=answers.expected_error,
        trial=Trial(other._replace(score=0.0), answers is fresh, 0.0, 0, trial.first_errors),
    )
    has_switched = answers.centroids is not own.centroids
    kept = arrival.history_kept if answers is fresh else 1.0
    return Turn(known, newest, has_switched, True, kept, n_distances, _name_of(known))


def _name_of(known: State) -> str:
    return "fresh" if known.trial.is_fresh else "whole"


def _answering(known: State) -> Contender:
    assert known.centroids is not None
    return Contender(known.window, known.centroids, known.expected_error, known.trial.score)


def _switched(known: State) -> State:
    """Return what is known with the memories in each other's places."""
    trial = known.trial
    assert trial.other is not None
    return known._replace(
        window=trial.other.window,
        centroids=trial.other.centroids,
        expected_error=trial.other.expected_error,
        trial=trial._replace(
            other=_answering(known), is_fresh=not trial.is_fresh, score=trial.other.score
        ),
    )


def whole_memory(known: State) -> Contender:
    """Return the memory that has seen every batch."""
    trial = known.trial
    return trial.other if trial.is_fresh and trial.other is not None else _answering(known)


def keep_up(
    other: Contender,
    newest: Remembered,
    rng: np.random.Generator,
    limits: Limits,
    *,
    keep_sums: bool,
) -> tuple[Contender, int]:
    """Let the memory that does not answer, aged, learn the batch at little cost.

    Returns it, and the distances that it took.
    """
    window = other.window.followed_by(newest)
    found = swap_centroids(window, other.centroids, _OTHER_SWAPS, rng, limits)
    few = replace(limits, max_iter=min(_OTHER_UPDATES, limits.max_iter))
    fit = fit_window(found.window, found.centroids, few, keep_sums=keep_sums)
    learned = Contender(fit.window, fit.centroids, fit.expected_error, other.score)
    return learned, found.n_distances + fit.n_distances
