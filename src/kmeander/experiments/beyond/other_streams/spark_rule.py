"""The rule of Spark's StreamingKMeans, written from its description: one update a batch.

Every row goes to its nearest centroid. A centroid that stands for a weight n, and gets m rows with
mean x, moves to (a n c + m x) / (a n + m), a being decayFactor, and stands for a n + m.
"""

from __future__ import annotations

import numpy as np

from kmeander.arrays import Centroids, Points
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.seeding import kmeans_plusplus

# A centroid of less weight than this, as a share of the greatest, is given up: the heaviest is
# divided in two, which lie this far apart, as a share of each coordinate.
_DYING = 1e-8
_APART = 1e-14


class SparkRule:
    """Streaming K-means with ``decayFactor``, in units of batches.

    It begins with k-means++ on the first batch, with weights of 0.

    Examples
    --------
    >>> model = SparkRule(1, decay=0.5, seed=0)
    >>> for points in ([[0.0], [2.0]], [[4.0], [6.0]]):
    ...     model.learn(np.array(points))
    >>> model.centroids.tolist(), model.weights.tolist()
    ([[3.6666666666666665]], [3.0])
    """

    centroids: Centroids

    def __init__(self, n_clusters: int, decay: float, seed: int) -> None:
        self.decay = decay
        self.seed = seed
        self.n_clusters = n_clusters
        self.weights = np.zeros(0)

    def learn(self, points: Points) -> None:
        """Move the centroids by the points of a batch."""
        if not len(self.weights):
            self.centroids = kmeans_plusplus(points, self.n_clusters, random_state=self.seed)
            self.weights = np.zeros(self.n_clusters)
        labels = nearest(points, self.centroids, 1)[0]
        before = self.weights * self.decay
        counts = np.bincount(labels, minlength=self.n_clusters).astype(np.float64)
        sums = np.zeros_like(self.centroids)
        np.add.at(sums, labels, points)
        after = before + counts
        known = after > 0
        moved = (before[:, np.newaxis] * self.centroids + sums)[known] / after[known, np.newaxis]
        centroids = self.centroids.copy()
        centroids[known] = moved
        self.centroids, self.weights = centroids, after
        self._divide_the_heaviest()

    def _divide_the_heaviest(self) -> None:
        least, most = int(self.weights.argmin()), int(self.weights.argmax())
        if self.weights[least] >= _DYING * self.weights[most]:
            return
        half = (self.weights[least] + self.weights[most]) / 2
        self.weights[[least, most]] = half
        here = self.centroids[most].copy()
        step = _APART * np.maximum(np.abs(here), 1.0)
        self.centroids[most], self.centroids[least] = here + step, here - step
