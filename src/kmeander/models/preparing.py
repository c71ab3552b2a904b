"""The stage before a step: rows of a table to a batch, and what is known in its units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kmeander.arrays import Weights, checked_points
from kmeander.events import Event
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits
from kmeander.models.state import State
from kmeander.preparation import FittedPreparation, Preparation, Rows
from kmeander.preparation.rules import rule
from kmeander.records import Batch, Captions, Times


class PreparedBatch(NamedTuple):
    """A batch of prepared points, and all that is known restated in their units."""

    known: State
    batch: Batch
    filled: dict[str, int]
    rescaled: tuple[Event, ...] = ()


def prepare_batch(
    known: State,
    rules: Preparation,
    rows: Rows,
    weights: ArrayLike | None,
    elapsed: float,
    concept: int | None,
    times: Times | None,
    captions: Captions | None,
    limits: Limits,
) -> PreparedBatch:
    """Prepare rows for a model that knows `known`."""
    if not len(rows):
        raise InputError("X has no rows; at least 1 is needed. Skip empty batches.")
    rescaled: tuple[Event, ...] = ()
    if known.preparation is None:
        fitted = FittedPreparation.learned(rules, rows)
    else:
        before = known.preparation
        fitted, factors = before.after(rows)
        if factors is not None:
            known = known.rescaled(factors, limits)
            rescaled = _events(before, fitted, factors)
    points, filled, kept = fitted.prepared(rows)
    if kept is not None:
        if not len(points):
            raise InputError(
                f"every row of the batch lacks a value, and {rule('missing', 'skip')} leaves "
                f"such rows out. Skip the batch, or fill with {rule('missing', 'median')}."
            )
        weights = None if weights is None else np.asarray(weights)[kept]
        captions = None if captions is None else captions.taken(kept)
    points.flags.writeable = False  # nobody else has them
    batch = Batch.of_points(
        known.n_steps, checked_points(points), weights, elapsed, concept, times, captions
    )
    return PreparedBatch(known._replace(preparation=fitted), batch, filled, rescaled)


def _events(
    before: FittedPreparation, after: FittedPreparation, factors: Weights
) -> tuple[Event, ...]:
    """Return an event for each column whose unit has changed."""
    found = []
    for place in np.flatnonzero(factors != 1).tolist():
        growth = None if before.is_unknown[place] else float(1 / factors[place])
        found.append(Event("rescaled", value=growth, column=after.names[place]))
    return tuple(found)
