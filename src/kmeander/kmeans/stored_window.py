"""A window as plain arrays and numbers, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kmeander import _kernel
from kmeander.kmeans.forgetting import Tail
from kmeander.kmeans.window import Remembered, Summary, Window

_BOUNDS = ("upper", "lower", "snapshot")


def state_of(window: Window, n_left_out: int = 0) -> dict[str, Any]:
    """Return everything as arrays and numbers, but for so many of the newest batches."""
    batches = window.batches[: len(window) - n_left_out]
    partition = window.partition
    bounds = None if partition is None else partition.bounds
    sums = None if partition is None else partition.sums
    return {
        "rho": window.rho,
        "ages": list(window.ages),
        "points": [batch.points for batch in batches],
        "weights": [batch.weights for batch in batches],
        "summaries": [
            None if batch.summary is None else dict(vars(batch.summary)) for batch in batches
        ],
        "labels": None if partition is None else partition.labels,
        "bounds": _fields(bounds, *_BOUNDS, *_axes_of(bounds)),
        "totals": _fields(sums, "masses", "sums", "scatter"),
        "tail": None if window.tail is None else list(window.tail),
        "kept": None if window.kept is None else list(window.kept),
    }


def window_from(state: Mapping[str, Any], newest: tuple[Remembered, ...] = ()) -> Window:
    """Make a window from what `state` returned, and the batches that it left out."""
    bounds, totals = state["bounds"], state["totals"]
    # Arrays from a pickle can be written to; nothing here may.
    for array in (
        *state["points"],
        *state["weights"],
        state["labels"],
        *(bounds or {}).values(),
        *(totals or {}).values(),
    ):
        if array is not None:
            array.flags.writeable = False
    partition = None
    if state["labels"] is not None:
        partition = _kernel.Partition(
            state["labels"],
            None if bounds is None else _kernel.Bounds(**bounds),
            None if totals is None else _kernel.ClusterSums(**totals),
        )
    summaries = [None if known is None else Summary(**known) for known in state["summaries"]]
    tail, kept = state.get("tail"), state.get("kept")
    return Window(
        state["rho"],
        (*map(Remembered, state["points"], state["weights"], summaries), *newest),
        tuple(state["ages"]),
        partition,
        tail=None if tail is None else Tail(*tail),
        kept=None if kept is None else tuple(kept),
    )


def _axes_of(bounds: _kernel.Bounds | None) -> tuple[str, ...]:
    # Few windows have any, and versions before there were any can read all others.
    return () if bounds is None or bounds.axes is None else ("axes",)


def _fields(record: Any, *names: str) -> dict[str, Any] | None:
    return None if record is None else {name: getattr(record, name) for name in names}
