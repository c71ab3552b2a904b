"""The loop: batches from a source through a model into a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kmeander.records import Batch, Step
from kmeander.stream_model import StreamModel


@dataclass
class RunSummary:
    """What a run did."""

    n_batches: int = 0
    n_points: int = 0
    n_distances: int = 0
    n_reseeded: int = 0
    n_unconverged: int = 0
    seconds: float = 0.0
    last: Step | None = None

    def add(self, step: Step) -> None:
        """Count one more Step."""
        self.n_batches += 1
        self.n_points += step.n_points
        self.n_distances += step.n_distances
        self.n_reseeded += len(step.reseeded)
        self.n_unconverged += not (step.waiting or step.converged)
        self.seconds += step.seconds or 0.0
        self.last = step


def run(
    batches: Iterable[Batch], model: StreamModel, sinks: Iterable[Callable[[Step], None]]
) -> RunSummary:
    """Learn every batch and hand each Step to every sink."""
    outlets = list(sinks)
    summary = RunSummary()
    for batch in batches:
        step = model.step(batch)
        summary.add(step)
        for outlet in outlets:
            outlet(step)
    return summary
