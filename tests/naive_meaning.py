"""What clusters are to people, as plain loops: columns, words and rows that set them apart.

Rows are lists of numbers; a batch is a list of (row, weight, cluster). Written from the definitions
in the docstrings of `ClusterProfile` and `Contrast`, and in the BERTopic paper, of class-based
tf-idf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = Sequence[tuple[Sequence[float], float, int]]  # of one batch: a point, its weight, its id


def standardised_differences(
    batches: Sequence[Rows], decay: Sequence[float], number: int
) -> list[tuple[float, float, float]]:
    """Mean of a cluster, of the rest, and their difference in standard deviations, by column."""
    weighed = [
        (row, d * weight, cluster)
        for rows, d in zip(batches, decay, strict=True)
        for row, weight, cluster in rows
    ]
    found = []
    for column in range(len(weighed[0][0])):
        inside = _mean([(row[column], w) for row, w, cluster in weighed if cluster == number])
        outside = _mean([(row[column], w) for row, w, cluster in weighed if cluster != number])
        middle = _mean([(row[column], w) for row, w, _ in weighed])
        variance = _mean([((row[column] - middle) ** 2, w) for row, w, _ in weighed])
        found.append((inside, outside, (inside - outside) / math.sqrt(variance)))
    return found


def spread(
    batches: Sequence[Rows], decay: Sequence[float], number: int, centroid: Sequence[float]
) -> float:
    """Root of the mean squared distance of a cluster's points to its centroid."""
    squares = [
        (sum((x - c) ** 2 for x, c in zip(row, centroid, strict=True)), d * weight)
        for rows, d in zip(batches, decay, strict=True)
        for row, weight, cluster in rows
        if cluster == number
    ]
    return math.sqrt(_mean(squares))


def trend(batches: Sequence[Rows], number: int) -> float:
    """Share of a cluster in the newer half of the batches, less that in the older."""
    half = len(batches) // 2

    def share(part: Sequence[Rows]) -> float:
        weights = [(weight, cluster) for rows in part for _, weight, cluster in rows]
        return sum(w for w, cluster in weights if cluster == number) / sum(w for w, _ in weights)

    return share(batches[half:]) - share(batches[:half])


def _mean(values: Sequence[tuple[float, float]]) -> float:
    return math.fsum(x * w for x, w in values) / math.fsum(w for _, w in values)


def telling_words(
    texts: Sequence[tuple[Sequence[str], float, int]], n_words: int, lift: float, support: float
) -> dict[int, list[str]]:
    """Class-based tf-idf: tf of the word in the cluster * log(1 + mean words / f of the word).

    Parameters
    ----------
    texts : sequence
        Words of a text, each once, its weight, and its cluster.
    n_words : int
    lift : float
        How many times as frequent as outside a word must be.
    support : float
        Of the cluster's most frequent word, the share that it must have.
    """
    clusters = sorted({cluster for _, _, cluster in texts})
    count: dict[tuple[int, str], float] = {}
    for words, weight, cluster in texts:
        for word in words:
            count[cluster, word] = count.get((cluster, word), 0.0) + weight
    size = {c: sum(n for (other, _), n in count.items() if other == c) for c in clusters}
    average = sum(size.values()) / len(clusters)
    found = {}
    for cluster in clusters:
        most = max((n for (c, _), n in count.items() if c == cluster), default=0.0)
        scores = []
        for (c, word), n in count.items():
            if c != cluster:
                continue
            everywhere = sum(count.get((other, word), 0.0) for other in clusters)
            outside = sum(size.values()) - size[cluster]
            is_rare = n / size[c] * outside >= lift * (everywhere - n)
            if is_rare and n >= support * most:
                scores.append((-n / size[c] * math.log(1 + average / everywhere), word))
        found[cluster] = [word for _, word in sorted(scores)[:n_words]]
    return found


@dataclass
class KeptRows:
    """Rows of one cluster near its centroid: of a batch of now, of then, and of one between."""

    n_rows: int
    n_kept: int
    batches: list[tuple[int, list[Any]]] = field(default_factory=list)

    def learn(self, index: int, rows: Sequence[tuple[float, Any]], n_batches: int) -> None:
        """Take the nearest of (distance, what the row says); of those that say the same, one."""
        nearest: list[Any] = []
        for _, said in sorted(rows, key=lambda pair: pair[0]):
            if said not in nearest and len(nearest) < self.n_rows:
                nearest.append(said)
        if not nearest:
            return
        if len(self.batches) > 1 and self.batches[-1][0] - self.batches[-2][0] < n_batches / 2:
            self.batches.pop()
        self.batches.append((index, nearest))
        self.batches = self.batches[-self.n_kept :]
