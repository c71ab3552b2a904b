"""Recorded batches to numbers: a row per stream and method, and a row per variant."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from kmeander.experiments.beyond.contestants import DEFAULT, RIVER
from kmeander.experiments.beyond.other_streams.natural import NOT_SCORED
from kmeander.experiments.beyond.other_streams.returning import EPSILONS
from kmeander.experiments.beyond.other_streams.synthetic import KINDS
from kmeander.experiments.beyond.other_streams.variants import (
    BEST_OF_TEN,
    EARLIER,
    NAMED,
    PEERS,
)

Row = dict[str, Any]
Numbers = dict[str, list[Row]]
Value = TypeVar("Value")

NAMES = ("synthetic", "natural", "returning", "work", "variants")
# Among whom the best is looked for, in hindsight.
RIVALS, ALL_PEERS = tuple(NAMED), (*PEERS, RIVER)
# All others are the default with a part taken out or exchanged; the earlier default counts as one.
_NO_VARIANTS = {DEFAULT, BEST_OF_TEN, "PSKM", *NAMED, *ALL_PEERS} - {EARLIER}
# Batches since the return, the newest included, whose errors are shown. That of the second is the
# first after one batch was learned.
T_OF_VISITS = (1, 2, 3)


def numbers_of(records: Iterable[Row]) -> Numbers:
    """Return all tables, of the records of all cells."""
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in records:
        panels[row["panel"]].append(row)
    found: Numbers = {
        "synthetic": synthetic_rows(panels["synthetic"]),
        "natural": natural_rows(panels["natural"]),
        "returning": returning_rows(panels["returning"]),
        "work": [row for panel, rows in panels.items() for row in work_rows(panel, rows)],
    }
    found["variants"] = variant_rows(found)
    return found


def synthetic_rows(records: Sequence[Row]) -> list[Row]:
    """Return each method's SKM error over that of the best of ten restarts, the mean over drifts.

    One row per kind of stream, batches since the drift, and method.
    """
    measured = [row for row in records if not math.isnan(row["skm_error"])]
    best = {
        (row["stream"], row["seed"], row["batch"]): row["skm_error"]
        for row in measured
        if row["method"] == BEST_OF_TEN
    }
    grouped = _grouped(measured, lambda row: (row["stream"], row["since_drift"], row["method"]))
    return [
        {
            "stream": stream,
            "since_drift": t,
            "method": method,
            "n": len(rows),
            "over_restarts": float(
                np.mean(
                    [
                        row["skm_error"] / best[row["stream"], row["seed"], row["batch"]]
                        for row in rows
                    ]
                )
            ),
        }
        for (stream, t, method), rows in grouped.items()
    ]


def natural_rows(records: Sequence[Row]) -> list[Row]:
    """Return each method's mean error of the next batch, and how it compares.

    The first four batches do not count. `over_best` is the mean over that of the best of the named
    settings on this stream, in hindsight; `first_half` and `second_half` are the same, of parts.
    `over_it` is the default's mean over this method's, on the batches that both have.
    `largest_batch` is the share of the largest batch in the sum of all.
    """
    scored = [row for row in records if row["batch"] >= NOT_SCORED]
    curves = {
        place: _curve(rows)
        for place, rows in _grouped(scored, lambda row: (row["stream"], row["method"])).items()
    }
    found = []
    for (stream, method), curve in curves.items():
        half = len(curve) // 2
        rivals = [curves[stream, name] for name in RIVALS if (stream, name) in curves]
        default = curves.get((stream, DEFAULT))
        whole = len(curve) == max(len(rival) for rival in rivals)
        found.append(
            {
                "stream": stream,
                "method": method,
                "batches": len(curve),
                "error": float(curve.mean()),
                "over_best": _over(curve, rivals) if whole else math.nan,
                "first_half": _over(curve[:half], [r[:half] for r in rivals])
                if whole
                else math.nan,
                "second_half": _over(curve[half:], [r[half:] for r in rivals])
                if whole
                else math.nan,
                "over_it": math.nan
                if default is None
                else float(default[: len(curve)].mean() / curve.mean()),
                "largest_batch": float(curve.max() / curve.sum()),
            }
        )
    return found


def _curve(rows: Sequence[Row]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the error of each batch, the mean over the seeds."""
    by_batch = _grouped(rows, lambda row: row["batch"])
    return np.array(
        [
            np.mean([row["prequential_error"] for row in by_batch[batch]])
            for batch in sorted(by_batch)
        ]
    )


def _over(curve: Any, rivals: Sequence[Any]) -> float:
    return float(curve.mean() / min(rival.mean() for rival in rivals))


def returning_rows(records: Sequence[Row]) -> list[Row]:
    """Return the error of a batch before it is learned, above that of the concept's best of ten.

    One row per size of drift, method, kind of visit and batches since it began. The first visit is
    that of B: A's is the start of the stream.
    """
    best = {
        (row["stream"], row["seed"], row["batch"]): row["prequential_error"]
        for row in records
        if row["method"] == BEST_OF_TEN
    }
    learned = [
        row
        for row in records
        if row["method"] != BEST_OF_TEN and row["visit"] > 0 and row["since_drift"] in T_OF_VISITS
    ]
    grouped = _grouped(
        learned,
        lambda row: (
            row["epsilon"], row["method"], "first" if row["visit"] == 1 else "return",
            row["since_drift"],
        ),
    )  # fmt: skip
    found = []
    for (epsilon, method, visit, t), rows in grouped.items():
        excess = [
            row["prequential_error"] / best[row["stream"], row["seed"], row["batch"]] - 1
            for row in rows
        ]
        found.append(
            {
                "epsilon": epsilon,
                "method": method,
                "visit": visit,
                "since_drift": t,
                "n": len(excess),
                "median": float(np.median(excess)),
                "mean": float(np.mean(excess)),
            }
        )
    return found


def work_rows(panel: str, records: Sequence[Row]) -> list[Row]:
    """Return what each method computed and kept on each stream.

    `passes` are distances over those of one pass over every batch, all points to all centroids;
    `over_HI` distances over HI's, `batches_kept` the most rows kept over the size of a batch.
    """
    grouped = _grouped(
        [row for row in records if row["method"] != BEST_OF_TEN],
        lambda row: (row["stream"], row["method"]),
    )
    total = {place: sum(row["n_distances"] for row in rows) for place, rows in grouped.items()}
    return [
        {
            "panel": panel,
            "stream": stream,
            "method": method,
            "passes": total[stream, method]
            / sum(row["n_points"] * row["n_clusters"] for row in rows),
            "over_HI": total[stream, method] / total[stream, "HI"],
            "batches_kept": max(row["rows_kept"] / row["n_points"] for row in rows),
        }
        for (stream, method), rows in grouped.items()
        if method != RIVER
    ]


def variant_rows(numbers: Numbers) -> list[Row]:
    """Return what each variant of the default changes: above 0 is what its part earns."""
    synthetic = {
        (row["stream"], row["since_drift"], row["method"]): row["over_restarts"]
        for row in numbers["synthetic"]
    }
    natural = {(row["stream"], row["method"]): row["error"] for row in numbers["natural"]}
    returning = {
        (row["epsilon"], row["method"]): row["median"]
        for row in numbers["returning"]
        if (row["visit"], row["since_drift"]) == ("return", 2)
    }
    work = {(row["panel"], row["stream"], row["method"]): row["over_HI"] for row in numbers["work"]}
    methods = dict.fromkeys(
        row["method"] for name in ("synthetic", "natural", "returning") for row in numbers[name]
    )
    found = []
    for method in methods:
        if method in _NO_VARIANTS:
            continue
        after = _changes(synthetic, method)
        ahead = _changes(natural, method)
        distances = _changes(work, method)
        worst_after = max(after, key=lambda place: after[place], default=None)
        worst_ahead = max(ahead, key=lambda place: ahead[place], default=None)
        found.append(
            {
                "method": method,
                "synthetic": _mean(after.values()),
                **{
                    f"synthetic_T{t}": _mean(v for place, v in after.items() if place[1] == t)
                    for t in (1, 10)
                },
                "synthetic_most": math.nan if worst_after is None else after[worst_after],
                "synthetic_where": ""
                if worst_after is None
                else f"{worst_after[0]}, T = {worst_after[1]}",
                "natural": _mean(ahead.values()),
                "natural_most": math.nan if worst_ahead is None else ahead[worst_ahead],
                "natural_where": "" if worst_ahead is None else worst_ahead[0],
                **{
                    f"return_{epsilon:g}": returning.get((epsilon, method), math.nan)
                    - returning.get((epsilon, DEFAULT), math.nan)
                    for epsilon in EPSILONS
                },
                "distances": _mean(distances.values()),
            }
        )
    return found


def _changes(values: dict[Any, float], method: str) -> dict[Any, float]:
    """Return what exceeds the default's, as a share of it, wherever both are known."""
    return {
        place[:-1]: values[place] / values[*place[:-1], DEFAULT] - 1
        for place in values
        if place[-1] == method and values.get((*place[:-1], DEFAULT))
    }


def _mean(changes: Iterable[float]) -> float:
    """Return the geometric mean of ratios less one; NaN without any."""
    return geometric_mean(1 + change for change in changes) - 1


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean; NaN of none."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def _grouped(rows: Iterable[Row], place: Callable[[Row], Hashable]) -> dict[Any, list[Row]]:
    """Return the rows with equal places together, in the order in which those first come."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(place(row), []).append(row)
    return found


def is_kind(name: str, modes_per_cluster: int) -> bool:
    """Return whether a synthetic stream has that many modes per cluster."""
    return KINDS[name].modes_per_cluster == modes_per_cluster
