"""Others that choose K themselves, tuned on the first tenth of a stream by the truth there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

Points = NDArray[np.float64]
Labels = NDArray[np.int64]
Learner = Callable[[Points], Labels]
# From the batches of the first tenth and their truth to what learns a batch and labels its rows.
Rival = Callable[[Sequence[Points], Sequence[Labels]], Learner]


def silhouette(tenth: Sequence[Points], truths: Sequence[Labels]) -> Learner:  # noqa: ARG001
    """K-means at each batch anew, with the K of 2 to 20 that has the best silhouette."""

    def learn(points: Points) -> Labels:
        fits = [KMeans(k, n_init=1, random_state=0).fit(points) for k in range(2, 21)]
        scores = [float(silhouette_score(points, fit.labels_)) for fit in fits]
        best: Labels = fits[int(np.argmax(scores))].labels_
        return best

    return learn


def of_river(make: Callable[..., Any], grid: dict[str, list[Any]]) -> Rival:
    """One of river's, with those settings of a grid that do best on the first tenth."""

    def rival(tenth: Sequence[Points], truths: Sequence[Labels]) -> Learner:
        spread = float(np.mean([points.std(axis=0).mean() for points in tenth]))
        best, best_index = None, -np.inf
        for values in product(*grid.values()):
            settings = dict(zip(grid, values, strict=True))
            learn = _learner(make(spread, **settings))
            labels = [learn(points) for points in tenth]
            index = adjusted_rand_score(np.concatenate(truths), np.concatenate(labels))
            if index > best_index:
                best, best_index = settings, index
        assert best is not None
        return _learner(make(spread, **best))

    return rival


def _learner(model: Any) -> Learner:
    def learn(points: Points) -> Labels:
        rows = [dict(enumerate(row)) for row in points.tolist()]
        for row in rows:
            model.learn_one(row)
        return np.array([model.predict_one(row) for row in rows])

    return learn


def _dbstream(spread: float, radius: float) -> Any:
    from river.cluster import DBSTREAM

    return DBSTREAM(clustering_threshold=radius * spread, fading_factor=0.005, cleanup_interval=100)


def _denstream(spread: float, radius: float) -> Any:
    from river.cluster import DenStream

    return DenStream(epsilon=radius * spread, decaying_factor=0.002, beta=0.5, mu=4.0,
                     n_samples_init=500)  # fmt: skip


def _clustream(_: float, n_clusters: int) -> Any:
    from river.cluster import CluStream

    return CluStream(n_macro_clusters=n_clusters, max_micro_clusters=100, time_window=1000, seed=0)


RIVALS: dict[str, Rival] = {
    "silhouette": silhouette,
    "DBSTREAM": of_river(_dbstream, {"radius": [0.2, 0.5, 1.0]}),
    "DenStream": of_river(_denstream, {"radius": [0.1, 0.2, 0.4]}),
    "CluStream": of_river(_clustream, {"n_clusters": [3, 6, 8, 12, 15]}),
}
