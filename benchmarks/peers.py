"""The peers: scikit-learn, faiss and river, each used as its documentation shows.

Libraries are imported where they are used, so that nobody runs in a process that another library
has filled with thread pools.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans

from benchmarks.contestants import Contestant, Learned, Reference, timed
from benchmarks.streams import Array, RawWindow, Shape


class ScikitLearnLloyd(Contestant):
    """`KMeans.fit` on the ready-made window, from where kmeander started, until nothing changes."""

    name = "scikit-learn lloyd"
    algorithm = "lloyd"
    warm_up = 0

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        assert reference is not None
        together, weights = window.joined()
        model = KMeans(
            self.shape.n_clusters,
            init=reference.start,
            n_init=1,
            tol=0,
            algorithm=self.algorithm,
            copy_x=True,
        )
        spent, _ = timed(model.fit, together, sample_weight=weights)
        plain = model.n_iter_ * len(together) * self.shape.n_clusters
        return Learned(
            spent,
            model.cluster_centers_,
            plain if self.algorithm == "lloyd" else None,
            plain,
            None if reference.reseeded else bool((model.labels_ == reference.labels).all()),
            reference.error * weights.sum() / model.inertia_ if reference.reseeded else None,
        )


class ScikitLearnElkan(ScikitLearnLloyd):
    """The same with Elkan's bounds, made anew in each fit."""

    name = "scikit-learn elkan"
    algorithm = "elkan"


class Faiss(Contestant):
    """`faiss.Kmeans.train` on the ready-made window in float32, from where kmeander started.

    It has no stopping rule, so it is told how many passes kmeander took; and it is kept from
    training on a sample, which it does by default.
    """

    name = "faiss"
    warm_up = 0

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        super().__init__(shape, seed, n_threads)
        import faiss

        self.faiss: Any = faiss
        if n_threads is not None:
            faiss.omp_set_num_threads(n_threads)

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        assert reference is not None
        together, weights = (array.astype(np.float32) for array in window.joined())
        model = self.faiss.Kmeans(
            self.shape.n_features,
            self.shape.n_clusters,
            niter=reference.n_iter,
            max_points_per_centroid=len(together),
            min_points_per_centroid=1,
        )
        start = reference.start.astype(np.float32)
        spent, _ = timed(model.train, together, weights=weights, init_centroids=start)
        n_distances = reference.n_iter * len(together) * self.shape.n_clusters
        return Learned(spent, model.centroids.astype(np.float64), n_distances, n_distances)


class MiniBatch(Contestant):
    """`MiniBatchKMeans.partial_fit`: one pass over the newest batch, no window, no forgetting."""

    name = "MiniBatchKMeans"

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        super().__init__(shape, seed, n_threads)
        self.model = MiniBatchKMeans(shape.n_clusters, n_init=1, random_state=seed)

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        spent, _ = timed(self.model.partial_fit, points)
        n_distances = len(points) * self.shape.n_clusters
        return Learned(spent, self.model.cluster_centers_.copy(), n_distances, n_distances)


class River(Contestant):
    """river learns one dict at a time; making the dicts is not counted."""

    parallel = False
    once = True

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        super().__init__(shape, seed, n_threads)
        self.model = self._made()

    @abstractmethod
    def _made(self) -> Any:
        """Return the model."""

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        rows = [dict(enumerate(row)) for row in points.tolist()]
        spent, _ = timed(self._learn_rows, rows)
        return Learned(spent, self._centroids())

    def _learn_rows(self, rows: list[dict[int, float]]) -> None:
        for row in rows:
            self.model.learn_one(row)

    def _centroids(self) -> Array | None:
        centres = self.model.centers
        if len(centres) < self.shape.n_clusters:
            return None
        columns = range(self.shape.n_features)
        return np.array([[centres[k][j] for j in columns] for k in sorted(centres)])


class RiverKMeans(River):
    """`cluster.KMeans`, with the halflife and sigma of its documentation."""

    name = "river KMeans"

    def _made(self) -> Any:
        from river import cluster

        return cluster.KMeans(self.shape.n_clusters, halflife=0.1, sigma=3, seed=self.seed)


class RiverStreamKMeans(River):
    """`cluster.STREAMKMeans`, a chunk being a batch, with the values of its documentation."""

    name = "river STREAMKMeans"

    def _made(self) -> Any:
        from river import cluster

        return cluster.STREAMKMeans(
            chunk_size=self.shape.n_points,
            n_clusters=self.shape.n_clusters,
            halflife=0.5,
            sigma=1.5,
            seed=self.seed,
        )


class ScikitLearnHungarian(Contestant):
    """FSKM with the Hungarian start as one would write it with scikit-learn and SciPy.

    K-means on the batch, matching by Ward's cost, weighted means, K-means on the window from
    there. It goes its own way; joining the window is not counted.
    """

    name = "scikit-learn + SciPy"
    warm_up = 1

    def __init__(self, shape: Shape, seed: int, n_threads: int | None) -> None:
        super().__init__(shape, seed, n_threads)
        self.centroids: Array | None = None
        self.labels: Any = None

    def learn(
        self,
        index: int,
        points: Array,
        window: RawWindow,
        reference: Reference | None,
    ) -> Learned:
        together, weights = window.joined()
        if self.centroids is None:
            assert reference is not None
            spent, _ = timed(self._fit_window, together, weights, reference.start)
        else:
            spent, _ = timed(self._step, index, points, together, weights)
        return Learned(spent, self.centroids)

    def _step(self, index: int, points: Array, together: Array, weights: Array) -> None:
        k = self.shape.n_clusters
        assert self.centroids is not None
        newest = KMeans(k, n_init=1, tol=0, random_state=index).fit(points)
        gained = np.bincount(newest.labels_, minlength=k)
        remembered = self.labels[-(len(together) - len(points)) :]
        kept = np.bincount(remembered, weights[: len(remembered)], minlength=k)
        share = kept[:, np.newaxis] * gained / (kept[:, np.newaxis] + gained)
        squared = cdist(self.centroids, newest.cluster_centers_, "sqeuclidean")
        _, partner = linear_sum_assignment(share * squared)
        gained = gained[partner]
        pulled = kept[:, np.newaxis] * self.centroids
        pulled += gained[:, np.newaxis] * newest.cluster_centers_[partner]
        self._fit_window(together, weights, pulled / (kept + gained)[:, np.newaxis])

    def _fit_window(self, together: Array, weights: Array, start: Array) -> None:
        model = KMeans(self.shape.n_clusters, init=start, n_init=1, tol=0)
        model.fit(together, sample_weight=weights)
        self.centroids, self.labels = model.cluster_centers_, model.labels_
