"""Recorded batches to the numbers of the figure and of the goals: a row per thing compared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kmeander.experiments.beyond.contestants import DEFAULT, FIXED
from kmeander.experiments.tables import Score, Steps
from kmeander.scores import Box, normalise

Row = dict[str, Any]

MEASURED = ("skm_error", "prequential_error", "n_distances", "n_distances_plain", "seconds")

# Those among whom the goals are set: the paper's best, the privileged one, and kmeander's defaults.
AMONG = ("HI", "WI", "PSKM", DEFAULT)
GOAL = Score(
    "skm_error", "SKM error", "share above the best of four", "skm_error", AMONG, normalise
)


def steps_of(table: pa.Table, methods: tuple[str, ...]) -> Steps:
    """Arrange the batches after the first drift."""
    return Steps.of(table, methods, MEASURED)


def errors_since_drift(steps: Steps) -> list[Row]:
    """Return each method's errors above the least of all methods, per batches since the drift."""
    skm, prequential = (
        Score(name, name, "", name, steps.methods, normalise)
        for name in ("skm_error", "prequential_error")
    )
    rows = []
    for t in (int(value) for value in np.unique(steps.since_drift)):
        before, after = (steps.scores(score, since_drift=t) for score in (prequential, skm))
        for method in steps.methods:
            box = Box.of(after[method])
            rows.append(
                {
                    "method": method,
                    "since_drift": t,
                    "n": box.n,
                    "skm_mean": float(after[method].mean()),
                    "skm_q1": box.q1,
                    "skm_median": box.median,
                    "skm_q3": box.q3,
                    "prequential_mean": float(before[method].mean()),
                    "prequential_median": Box.of(before[method]).median,
                }
            )
    return rows


def among_four(steps: Steps) -> list[Row]:
    """Return mean and median of the SKM error above the least of the four, at the paper's T."""
    return [
        {
            "method": method,
            "since_drift": t,
            "n": len(values),
            "mean": float(values.mean()),
            "median": float(np.median(values)),
        }
        for t in steps.shown
        for method, values in steps.scores(GOAL, since_drift=t).items()
    ]


def beside_pskm(steps: Steps) -> list[Row]:
    """Return each method's SKM error beside that of PSKM, as a share of it, per K."""
    errors = steps.columns["skm_error"]
    of_pskm = errors[:, [steps.methods.index("PSKM")]]
    beside = errors / of_pskm - 1
    later = steps.since_drift > 1
    rows = []
    for n_clusters in steps.cluster_numbers:
        here = steps.where(n_clusters=n_clusters)
        for i, method in enumerate(steps.methods):
            values = beside[here, i]
            rows.append(
                {
                    "method": method,
                    "n_clusters": n_clusters,
                    **vars(Box.of(values)),
                    "share_within_1%": float((errors[here, i] <= 1.01 * of_pskm[here, 0]).mean()),
                    "share_below_from_T=2": _share(beside[here & later, i] < 0),
                }
            )
    return rows


def costs(steps: Steps) -> list[Row]:
    """Return what each method spent: distances as shares of plain HI's count, and time."""
    plain = steps.columns["n_distances_plain"][:, steps.methods.index("HI")]
    seconds = steps.columns["seconds"]
    return [
        {
            "method": method,
            "distances_of_plain_HI": float(steps.columns["n_distances"][:, i].sum() / plain.sum()),
            "mean_share_of_plain_HI": float((steps.columns["n_distances"][:, i] / plain).mean()),
            "milliseconds_median": 1e3 * float(np.median(seconds[:, i])),
            "milliseconds_mean": 1e3 * float(seconds[:, i].mean()),
            "skm_mean": float(_above_best(steps, "skm_error")[:, i].mean()),
            "prequential_mean": float(_above_best(steps, "prequential_error")[:, i].mean()),
        }
        for i, method in enumerate(steps.methods)
    ]


def in_order(table: pa.Table) -> list[Row]:
    """Return each method's mean prequential error, over all seeds and batches but the first."""
    return [
        {
            "dataset": dataset,
            "n_clusters": n_clusters,
            "method": method,
            "n": len(rows),
            "prequential_error": float(np.mean([row["prequential_error"] for row in rows])),
            "standard_error": _error_over_seeds(rows),
            "milliseconds_median": 1e3 * float(np.median([row["seconds"] for row in rows])),
        }
        for (dataset, n_clusters, method), rows in _grouped(
            [row for row in table.to_pylist() if row["batch"] > 0],
            ("dataset", "n_clusters", "method"),
        )
    ]


def _error_over_seeds(rows: list[Row]) -> float:
    """Return the standard error of the mean, seeds being what varies; NaN with one."""
    means = [
        np.mean([row["prequential_error"] for row in same])
        for _, same in _grouped(rows, ("repetition",))
    ]
    return float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")


def at_rest(table: pa.Table) -> list[Row]:
    """Return, for each dataset and K without drift, alarms and the error that adapting costs."""
    found = []
    for (dataset, n_clusters), rows in _grouped(table.to_pylist(), ("dataset", "n_clusters")):
        skm = {
            method: np.array([row["skm_error"] for row in rows if row["method"] == method])
            for method in (DEFAULT, FIXED)
        }
        adaptive = [row for row in rows if row["method"] == DEFAULT]
        found.append(
            {
                "dataset": dataset,
                "n_clusters": n_clusters,
                "n": len(adaptive),
                "false_alarms": sum(row["history_kept"] < 1 for row in adaptive),
                # Of the batches at which it was measured.
                "skm_above_fixed": float(np.nanmean(skm[DEFAULT]) / np.nanmean(skm[FIXED]) - 1),
            }
        )
    return found


def _above_best(steps: Steps, column: str) -> NDArray[np.float64]:
    return normalise(steps.columns[column])


def _share(chosen: NDArray[np.bool_]) -> float:
    return float(chosen.mean()) if chosen.size else float("nan")


def _grouped(rows: list[Row], keys: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield the rows with equal keys together, in the order in which those first come."""
    first: dict[tuple[Any, ...], int] = {}

    def place(row: Row) -> int:
        return first.setdefault(tuple(row[key] for key in keys), len(first))

    for _, same in groupby(sorted(rows, key=place), key=place):
        together = list(same)
        yield tuple(together[0][key] for key in keys), together
