"""Cells that stand still, and what a batch adds to them, in plain loops from the definitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.naive import nearest

CLIP = 3.0


def units(weights: Any) -> list[float]:
    """Weights of which the mean is 1."""
    return [w * len(weights) / math.fsum(weights) for w in weights]


def clipped(score: float) -> float:
    return max(-CLIP, min(CLIP, score))


class Cells:
    """Nearest of the centroids with which a chapter begins, and the spread of each in its columns.

    `batches` are those of the window then, each with points, weights and labels.
    """

    def __init__(self, batches: Sequence[tuple[Any, Any, Any]], centroids: Any) -> None:
        self.centres = [[float(v) for v in c] for c in centroids]
        self.k, self.d = len(self.centres), len(self.centres[0])
        rows = [row for points, w, labels in batches for row in zip(points, units(w), labels,
                                                                   strict=True)]  # fmt: skip
        mass = [math.fsum(w for _, w, c in rows if c == cell) for cell in range(self.k)]
        self.sd = [[0.0] * self.d for _ in range(self.k)]
        for j in range(self.d):
            limited = []
            for cell in range(self.k):
                squares = [(w, (float(x[j]) - self.centres[cell][j]) ** 2)
                           for x, w, c in rows if c == cell]  # fmt: skip
                mean = math.fsum(w * s for w, s in squares) / mass[cell] if mass[cell] else 0.0
                limited.append(math.fsum(w * min(s, CLIP**2 * mean) for w, s in squares))
            of_all = math.fsum(limited) / math.fsum(mass)
            least = max(1e-11 * max(abs(c[j]) for c in self.centres), 1e-300)
            for cell in range(self.k):
                variance = (limited[cell] + 10 * of_all) / (mass[cell] + 10)
                self.sd[cell][j] = max(math.sqrt(variance), least)
        self.n_independent = self._independent(*batches[-1])

    def scores(self, point: Any, cell: int) -> list[float]:
        return [
            (float(x) - c) / s
            for x, c, s in zip(point, self.centres[cell], self.sd[cell], strict=True)
        ]

    def _independent(self, points: Any, _: Any, labels: Any) -> float:
        """Columns that would vary independently as much: tr(R)^2 / tr(R^2) of up to 128 rows."""
        n = min(len(points), 128)
        if n < 3 or self.d == 1:
            return float(self.d)
        chosen = [r * len(points) // n for r in range(n)]
        rows = [[clipped(s) for s in self.scores(points[i], labels[i])] for i in chosen]
        trace = math.fsum(s * s for row in rows for s in row) / n
        products = [
            math.fsum(a * b for a, b in zip(rows[r], rows[s], strict=True)) ** 2
            for r in range(n) for s in range(r)
        ]  # fmt: skip
        mean = math.fsum(products) / len(products)
        return max(1.0, min(float(self.d), trace**2 / mean)) if mean > 0 else float(self.d)


@dataclass
class Tally:
    """Sums over rows by cell: of weights and their squares, of scores, of mean squared scores."""

    mass: list[float]
    squares: list[float]
    spread: list[float]
    spread_squares: list[float]
    scores: list[list[float]]
    score_squares: list[list[float]]

    @classmethod
    def empty(cls, k: int, d: int) -> Tally:
        tables = [[[0.0] * d for _ in range(k)] for _ in range(2)]
        return cls(*([0.0] * k for _ in range(4)), *tables)  # type: ignore[arg-type]

    def rows(self, cell: int) -> float:
        """Kish's effective number of rows."""
        return self.mass[cell] ** 2 / self.squares[cell] if self.squares[cell] > 0 else 0.0

    def all_rows(self) -> float:
        return math.fsum(self.mass) ** 2 / math.fsum(self.squares)


def tally(cells: Cells, points: Any, weights: Any) -> tuple[Tally, list[float]]:
    """What a batch adds, and how far away each row is."""
    found, far = Tally.empty(cells.k, cells.d), []
    for point, w in zip(points, units(weights), strict=True):
        c = nearest([float(x) for x in point], cells.centres)
        raw = cells.scores(point, c)
        scores = [clipped(s) for s in raw]
        mean = math.fsum(s * s for s in scores) / cells.d
        far.append(math.fsum(s * s for s in raw) / cells.d)
        found.mass[c] += w
        found.squares[c] += w * w
        found.spread[c] += w * mean
        found.spread_squares[c] += w * mean * mean
        for j, s in enumerate(scores):
            found.scores[c][j] += w * s
            found.score_squares[c][j] += w * s * s
    return found, far


def together(parts: Iterable[tuple[float, Tally]], k: int, d: int) -> Tally:
    """Tallies added up, each of its rows counting as much as is said."""
    total = Tally.empty(k, d)
    for share, one in parts:
        for c in range(k):
            total.mass[c] += share * one.mass[c]
            total.squares[c] += share**2 * one.squares[c]
            total.spread[c] += share * one.spread[c]
            total.spread_squares[c] += share * one.spread_squares[c]
            for j in range(d):
                total.scores[c][j] += share * one.scores[c][j]
                total.score_squares[c][j] += share * one.score_squares[c][j]
    return total
