"""How unusual rows are for their clusters, in plain loops from the definitions.

A batch is (decay, points, weights, labels): what it weighs, its rows, and their clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tests.naive import nearest, squared_distance


class Ordinary:
    """What is known of each cluster, with and without a batch or a row."""

    def __init__(self, batches: Sequence[tuple[float, Any, Any, Any]], centroids: Any) -> None:
        self.centroids = [[float(v) for v in c] for c in centroids]
        self.k = len(self.centroids)
        self.rows = [
            (b, x, decay * float(w), int(c))
            for b, (decay, points, weights, labels) in enumerate(batches)
            for x, w, c in zip(points, weights, labels, strict=True)
        ]
        largest = max(abs(v) for c in self.centroids for v in c)
        self.rounding = len(self.centroids[0]) * (8 * 2.0**-52 * largest) ** 2
        weights = [w for _, _, w, _ in self.rows]
        total = math.fsum(weights)
        # The weight of one row: as many of it as say as much as these weigh as much.
        self.one = math.fsum(w * w for w in weights) / total
        spent = math.fsum(w * squared_distance(x, self.centroids[c]) for _, x, w, c in self.rows)
        self.of_all = spent / total

    def relative(self, distance: float, spread: float) -> float:
        """Squares up to what rounding makes of equal rows are none."""
        if distance <= self.rounding:
            return 0.0
        return math.sqrt(distance / spread) if spread > self.rounding else math.inf

    def rows_of(self, k: int, batch: int | None, row: Any) -> list[Any]:
        """Those of a cluster but for a batch, or a row."""
        return [r for r in self.rows if r[3] == k and r[0] != batch and r is not row]

    def spread(self, k: int, batch: int | None = None, row: Any = None) -> float:
        """Mean squared distance in a cluster, with one more row of what is usual in all."""
        rows = self.rows_of(k, batch, row)
        spent = math.fsum(w * squared_distance(x, self.centroids[k]) for _, x, w, _ in rows)
        mass = math.fsum(w for _, _, w, _ in rows)
        return (spent + self.one * self.of_all) / (mass + self.one)

    def score(self, x: Any) -> float:
        k = nearest(x, self.centroids)
        return self.relative(squared_distance(x, self.centroids[k]), self.spread(k))

    def mass(self, k: int, batch: int | None = None) -> float:
        return math.fsum(w for b, _, w, c in self.rows if c == k and batch in (None, b))

    def centre(self, k: int, batch: int | None = None, row: Any = None) -> list[float]:
        rows = self.rows_of(k, batch, row)
        mass = math.fsum(w for _, _, w, _ in rows)
        columns = range(len(self.centroids[0]))
        return [math.fsum(w * float(x[j]) for _, x, w, _ in rows) / mass for j in columns]

    def scores(self) -> list[tuple[float, float]]:
        """Score and weight of each row, as if its batch, or else it alone, had not been learned."""
        found = []
        for row in self.rows:
            b, x, w, own = row
            known = [
                self.mass(k) > 0 and self.mass(k) - self.mass(k, b) >= self.mass(k, b) * (1 - 1e-9)
                for k in range(self.k)
            ]
            of_batch = [self.centre(k, b) if known[k] else self.centroids[k] for k in range(self.k)]
            k = nearest(x, of_batch)
            if known[k]:
                spread = self.spread(k, b)
                found.append((self.relative(squared_distance(x, of_batch[k]), spread), w))
            elif k != own:
                found.append((self.relative(squared_distance(x, of_batch[k]), self.spread(k)), w))
            elif self.mass(k) - w <= 1e-9 * self.mass(k):
                found.append((math.inf, w))
            else:
                centre = self.centre(k, row=row)
                spread = self.spread(k, row=row)
                found.append((self.relative(squared_distance(x, centre), spread), w))
        return found


def threshold(scores: Sequence[tuple[float, float]], rate: float, one: float) -> float:
    """The least score that rows of a share of 1 - rate do not pass, one more row counted as over.

    `one` is the weight of that row.
    """
    total = math.fsum(w for _, w in scores) + one
    for score, _ in sorted(scores):
        if math.fsum(w for s, w in scores if s <= score) >= (1 - rate) * total * (1 - 1e-12):
            return score
    return math.inf
