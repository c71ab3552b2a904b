"""What a run says of itself: its settings, its columns, its identity, and changes in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Points
from kmeander.events import Event
from kmeander.models import FSKM
from kmeander.preparation import FittedPreparation
from kmeander.records import Columns, Step
from kmeander.runs.projection import projection
from kmeander.runs.records import Outputs
from kmeander.sources import Source
from kmeander.sources.batching import Batching


@dataclass(frozen=True, eq=False)
class Description:
    """The parts of a run that outputs and checkpoints name."""

    source: Source
    model: FSKM
    batching: Batching
    outputs: Outputs

    @property
    def preparation(self) -> FittedPreparation | None:
        """What has been learned of preparing rows, where they are prepared."""
        return self.model.learned.preparation

    @property
    def columns(self) -> list[str]:
        """Names of the columns of a point."""
        preparation = self.preparation
        return list(self.source.selection.features if preparation is None else preparation.names)

    def known_columns(self) -> Columns:
        """Names of the columns, and their units as they are now."""
        preparation = self.preparation
        if preparation is None:
            return Columns(tuple(self.columns))
        return Columns(preparation.names, preparation.shift, preparation.unit)

    def settings(self) -> dict[str, Any]:
        """Return the model's settings that can change a result."""
        settings = {**self.model.settings.to_dict(), "random_state": self.model.seed}
        del settings["n_threads"]
        return settings

    def words(self, step: Step) -> list[str]:
        """Return what happened, in words, with the names of the columns."""
        return step.words(self.columns, self._scale)

    def words_of(self, step: Step, event: Event) -> list[str]:
        """Return one event of a Step in words."""
        return step.words_of(event, self.columns, self._scale)

    @property
    def _scale(self) -> list[float] | None:
        preparation = self.preparation
        return None if preparation is None else preparation.unit.tolist()

    def named(self, centroids: Centroids) -> dict[str, NDArray[np.float64]]:
        """Return the columns of centroids, in the stream's units."""
        preparation = self.preparation
        restored = centroids if preparation is None else preparation.restored(centroids)
        return {name: restored[:, place] for place, name in enumerate(self.columns)}

    def facts(self, first_points: Points) -> dict[str, Any]:
        """Return what describes the whole run, for the first line of the steps."""
        from kmeander import __version__

        preparation = self.preparation
        selection = self.source.selection
        return {
            "kmeander": __version__,
            "source": self.source.name,
            "columns": self.columns,
            "id_column": selection.id_column,
            "time_column": selection.time_column,
            "weight_column": selection.weight_column,
            "text_column": selection.text_column,
            "batch_size": self.batching.size,
            "batch_seconds": self.batching.seconds,
            "every_seconds": None if self.batching.every is None else self.batching.every / 1e6,
            "settings": self.settings(),
            "standardize": None
            if preparation is None
            else {"mean": preparation.shift.tolist(), "scale": preparation.unit.tolist()},
            "preparation": None if preparation is None else preparation.describe(),
            "projection": projection(first_points),
        }

    def identity(self) -> dict[str, Any]:
        """Return what must be the same when a run goes on, by the names of arguments."""
        selection = self.source.selection
        # Earlier runs did not know these: they stand in checkpoints only where they were given.
        newer = {
            "weight_column": selection.weight_column,
            "time_unit": selection.time_unit,
            "text_column": selection.text_column,
        }
        return {
            "source": self.source.identity,
            "n_clusters": self.settings()["n_clusters"],
            "columns": list(selection.features),
            "id_column": selection.id_column,
            "time_column": selection.time_column,
            **{name: value for name, value in newer.items() if value is not None},
            "every": self.batching.every,
            "metric": self.model.settings.metric,
            "prepare": self.settings()["prepare"],
            "random_state": self.model.seed,
            "steps": self.outputs.steps,
            "assignments": self.outputs.assignments,
            "bad_rows": self.outputs.bad_rows,
            "centroids": self.outputs.centroids,
        }
