"""Recorded steps to normalised scores, grouped by batches since the drift."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from kmeander.exceptions import InputError
from kmeander.experiments.protocol import INITS, METHODS
from kmeander.scores import Box, Scores, normalise, relative

# Batches since the drift that the paper shows.
SHOWN = (1, 2, 4, 10)


@dataclass(frozen=True)
class Score:
    """What is measured: a column of the records, the methods compared, and how it is scaled."""

    key: str
    title: str
    axis: str
    column: str
    methods: tuple[str, ...]
    scale: Callable[[ArrayLike], Scores]

    @property
    def least(self) -> float:
        """The score of the best method."""
        return float(self.scale([1.0])[0])


_FSKM = tuple(INITS)
_ABOVE_BEST = "share above the best"
_TIMES_FEWEST = "times the fewest"
SCORES = {
    score.key: score
    for score in (
        Score(
            "initial_surrogate_error", "Initial surrogate error", _ABOVE_BEST,
            "initial_error", _FSKM, normalise,
        ),
        Score(
            "converged_surrogate_error", "Converged surrogate error", _ABOVE_BEST,
            "surrogate_error", _FSKM, normalise,
        ),
        Score(
            "converged_skm_error", "Converged SKM error", _ABOVE_BEST,
            "skm_error", METHODS, normalise,
        ),
        Score(
            "distances", "Distances, as plain Lloyd counts them", _TIMES_FEWEST,
            "n_distances_plain", _FSKM, relative,
        ),
        Score(
            "distances_computed", "Distances really computed", _TIMES_FEWEST,
            "n_distances", _FSKM, relative,
        ),
    )
}  # fmt: skip
MEASURED = (
    *{score.column: None for score in SCORES.values()}, "n_iter", "n_reseeded", "theorem2_bound",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Steps:
    """All records of a run after the first drift, one row per batch and one column per method."""

    methods: tuple[str, ...]
    epsilon: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    m: NDArray[np.float64]
    since_drift: NDArray[np.int64]
    datasets: NDArray[Any]
    columns: dict[str, NDArray[np.float64]]

    @classmethod
    def of(
        cls,
        table: pa.Table,
        methods: tuple[str, ...] = METHODS,
        measured: Iterable[str] = MEASURED,
    ) -> Steps:
        """Arrange the records of these methods that `storage.load` returned.

        The first concept is left out, as by the authors: no drift went before it.
        """
        names = table.column("method").to_numpy()
        if len(names) % len(methods) or (names.reshape(-1, len(methods)) != methods).any():
            raise InputError(
                "the records are not ordered by batch and method: every batch needs "
                f"{', '.join(methods)}, in that order."
            )
        drifted = table.column("concept").to_numpy().reshape(-1, len(methods))[:, 0] > 0

        def column(name: str) -> NDArray[Any]:
            values: NDArray[Any] = table.column(name).to_numpy().reshape(-1, len(methods))
            chosen: NDArray[Any] = values[drifted]
            return chosen

        return cls(
            methods=methods,
            epsilon=column("epsilon")[:, 0],
            n_clusters=column("n_clusters")[:, 0],
            m=column("m")[:, 0],
            since_drift=column("since_drift")[:, 0],
            datasets=column("dataset")[:, 0],
            columns={name: column(name).astype(np.float64) for name in sorted(measured)},
        )

    def only(self, m: float) -> Steps:
        """Return the batches of the settings with that m."""
        chosen = self.m == m
        return Steps(
            methods=self.methods,
            epsilon=self.epsilon[chosen],
            n_clusters=self.n_clusters[chosen],
            m=self.m[chosen],
            since_drift=self.since_drift[chosen],
            datasets=self.datasets[chosen],
            columns={name: values[chosen] for name, values in self.columns.items()},
        )

    def where(
        self,
        *,
        since_drift: int | None = None,
        epsilon: float | None = None,
        n_clusters: int | None = None,
    ) -> NDArray[np.bool_]:
        """Return which batches are meant."""
        chosen = np.ones(len(self.epsilon), dtype=bool)
        if since_drift is not None:
            chosen &= self.since_drift == since_drift
        if epsilon is not None:
            chosen &= self.epsilon == epsilon
        if n_clusters is not None:
            chosen &= self.n_clusters == n_clusters
        return chosen

    def reseeded_since_drift(self, method: str) -> NDArray[np.float64]:
        """Return how often the method has seeded a cluster anew since the drift, per batch."""
        total = np.cumsum(self.columns["n_reseeded"][:, self.methods.index(method)])
        first = np.maximum.accumulate(np.where(self.since_drift == 1, np.arange(len(total)), 0))
        before: NDArray[np.float64] = np.where(first > 0, total[first - 1], 0.0)
        return total - before

    def scores(self, score: Score, **where: Any) -> dict[str, Scores]:
        """Return the scores of each method over the batches that `where` means."""
        positions = [self.methods.index(method) for method in score.methods]
        values = self.columns[score.column][self.where(**where)][:, positions]
        scaled = score.scale(values) if len(values) else values
        return {method: scaled[:, i] for i, method in enumerate(score.methods)}

    @property
    def ms(self) -> list[float]:
        """Values of m, ascending."""
        return [float(value) for value in np.unique(self.m)]

    @property
    def epsilons(self) -> list[float]:
        """Sizes of drift, ascending."""
        return [float(value) for value in np.unique(self.epsilon)]

    @property
    def cluster_numbers(self) -> list[int]:
        """Numbers of clusters, ascending."""
        return [int(value) for value in np.unique(self.n_clusters)]

    @property
    def shown(self) -> list[int]:
        """The batches since the drift that the paper shows, as far as concepts last that long."""
        return [t for t in SHOWN if self.where(since_drift=t).any()]


def boxes(steps: Steps, score: Score) -> list[dict[str, Any]]:
    """Return the numbers of a figure: a row per setting, batches since the drift, and method.

    All batches must be of one m (`Steps.only`).
    """
    (m,) = steps.ms
    return [
        {
            "m": m,
            "n_clusters": n_clusters,
            "epsilon": epsilon,
            "since_drift": t,
            "method": method,
            **vars(Box.of(values)),
        }
        for n_clusters in steps.cluster_numbers
        for epsilon in steps.epsilons
        for t in steps.shown
        for method, values in steps.scores(
            score, since_drift=t, epsilon=epsilon, n_clusters=n_clusters
        ).items()
    ]


def medians(steps: Steps) -> list[dict[str, Any]]:
    """Return the median of each score and method over everything, per batches since the drift."""
    rows = []
    for score in SCORES.values():
        per_t = {t: steps.scores(score, since_drift=t) for t in steps.shown}
        for method in score.methods:
            values = {f"T={t}": Box.of(per_t[t][method]).median for t in steps.shown}
            rows.append({"score": score.key, "method": method, **values})
    return rows


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of equal keys; numbers in full, so that they read back as they were."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the rows that `write_csv` wrote, numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines += [list(row) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
