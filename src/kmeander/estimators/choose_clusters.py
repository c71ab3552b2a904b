"""Choosing the number of clusters: K-means for several K, compared by silhouette or BIC."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.arguments import generator_for, one_of, seed_from, whole_number
from kmeander.arrays import Labels, Points, Weights, checked_points, checked_weights
from kmeander.exceptions import InputError, InputTypeError
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.local_search import CANDIDATES, swap_centroids
from kmeander.kmeans.seeding import draw_seeds
from kmeander.kmeans.window import Window
from kmeander.models.cluster_range import ClusterRange
from kmeander.models.k_choice import first_clusters

if TYPE_CHECKING:
    from kmeander.arguments import RandomState

# Which is better, a higher or a lower score.
CRITERIA = {
    "silhouette": max,
    "davies_bouldin": min,
    "calinski_harabasz": max,
    "bic": max,
}

# Beside those, which score each K: the rule by which K follows a stream.
RULE = "valleys"

# Rows that the silhouette looks at: its time grows with their square.
SILHOUETTE_ROWS = 2000


@dataclass(frozen=True)
class Suggestion:
    """The number of clusters suggested, and what each candidate scores.

    ``print`` shows the scores as a table, the best of each column with a star.

    Parameters
    ----------
    n_clusters : int
        The candidate that is best by `criterion`, or 1, where BIC prefers that to all others.
    criterion : str
    followed : int or None
        With how many clusters a model would begin whose `n_clusters` is the range of the
        candidates: by valleys of the density, see ``criterion="valleys"``.
    scores : dict of dict of float
        ``scores[criterion][n_clusters]``. For ``"davies_bouldin"`` lower is better, for the others
        higher; nan where there is no score: of one cluster only BIC can speak.
    """

    n_clusters: int
    criterion: str
    scores: Mapping[str, Mapping[int, float]]
    followed: int | None = None

    def best(self, criterion: str) -> int | None:
        """Return the best candidate by another criterion; None where none has a score.

        Of equal ones the smallest.
        """
        known = self.scores[one_of("criterion", criterion, CRITERIA)]
        defined = {k: score for k, score in known.items() if not math.isnan(score)}
        return CRITERIA[criterion](defined, key=defined.__getitem__) if defined else None

    def __str__(self) -> str:
        names = list(self.scores)
        lines = ["   K" + "".join(f"{name:>20}" for name in names)]
        best = {name: self.best(name) for name in names}
        for k in self.scores["bic"]:
            cells = [
                f"{self.scores[name][k]:>19.6g}{'*' if best[name] == k else ' '}" for name in names
            ]
            lines.append(f"{k:>4}" + "".join(cells).rstrip())
        return "\n".join([*lines, self._verdict(best.get(self.criterion))])

    def _verdict(self, best: int | None) -> str:
        others = "" if self.followed in (None, self.n_clusters) else f"; {self.followed} by {RULE}"
        if self.criterion == RULE or self.n_clusters == best:
            ending = "" if self.n_clusters == 1 else "s"
            return f"{self.n_clusters} cluster{ending} by {self.criterion}{others}"
        # Of one cluster nobody but BIC can speak.
        return f"{self.n_clusters} cluster by bic ({self.criterion} alone has {best})"


def suggest_clusters(
    X: ArrayLike,
    candidates: Iterable[int] = range(1, 11),
    *,
    criterion: str = "silhouette",
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Suggestion:
    """Suggest how many clusters to look for, from the first window of a stream.

    Each candidate K is tried: k-means++, local search by swaps, Lloyd; then scored.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Scaled as the stream will be.
    candidates : iterable of int, default=range(1, 11)
    criterion : {"silhouette", "davies_bouldin", "calinski_harabasz", "bic", "valleys"}, \
default="silhouette"
        What decides; all are computed. The first three are scikit-learn's indices; the silhouette
        is that of a random 2000 rows where there are more. BIC is that of X-means [1]_: clusters
        are Gaussians, all round and equally wide; it finds too many where they are not. Of one
        cluster only BIC can speak: where 1 is a candidate and BIC prefers it to all others, it is
        suggested whatever the criterion. ``"valleys"`` is the rule by which
        ``n_clusters=(low, high)`` follows a stream, between the smallest and the largest candidate;
        where it says otherwise than the criterion, what is printed says so.
    sample_weight : array-like of shape (n_points,), optional
        How many points a row stands for. The indices of scikit-learn, which know no weights, are
        computed on rows drawn by weight, up to 2000.
    random_state : int, Generator, RandomState or None
    n_threads : int, optional

    Returns
    -------
    Suggestion

    References
    ----------
    .. [1] Pelleg, Moore, "X-means: Extending K-means with Efficient Estimation of the Number of
       Clusters", ICML 2000.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2)) + rng.choice([0.0, 8.0, 16.0], size=600)[:, np.newaxis]
    >>> found = suggest_clusters(X, range(1, 6), random_state=0)
    >>> found.n_clusters, found.best("bic")
    (3, 3)
    >>> print(found)
       K          silhouette      davies_bouldin   calinski_harabasz                 bic
       1                nan                 nan                 nan            -3994.82
       2           0.682841            0.407876             1782.61            -3568.13
       3           0.843323*           0.216885*            13781.5*           -2359.81*
       4           0.652313            0.691561             10485.1            -2441.16
       5           0.486255            0.972312             9001.39            -2503.92
    3 clusters by silhouette
    """
    points = checked_points(X)
    weights = checked_weights(sample_weight, len(points))
    one_of("criterion", criterion, [*CRITERIA, RULE])
    tried = _checked_candidates(candidates, criterion)
    limits, seed = Limits(n_threads=n_threads), seed_from(random_state)
    rows = _sampled_rows(len(points), weights, generator_for(seed, 0))
    scores: dict[str, dict[int, float]] = {name: {} for name in CRITERIA}
    followed = tried[0]
    for k in tried:
        fit = _kmeans(points, weights, k, generator_for(seed, 1, k), limits)
        if k == tried[0]:
            among = ClusterRange(k, tried[-1])
            followed = len(first_clusters(fit, among, seed, 0, limits).centroids)
        assert fit.window.partition is not None
        scores["bic"][k] = _bic(fit, points.shape[1])
        indices = _indices(points, fit.window.partition.labels, rows, weighted=weights is not None)
        for name, score in indices.items():
            scores[name][k] = score
    found = Suggestion(tried[0], criterion, scores, followed)
    if criterion == RULE:
        return replace(found, n_clusters=followed)
    best = 1 if found.best("bic") == 1 < tried[-1] else found.best(criterion)
    if best is None:
        raise InputError(
            f"criterion={criterion!r} has no score for any of the candidates {tried}: it needs at "
            f"least one K between 2 and the number of rows, {len(points)}, less 1. Pass more rows."
        )
    return replace(found, n_clusters=best)


def _checked_candidates(candidates: Any, criterion: str) -> list[int]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise InputTypeError(
            f"candidates must be numbers of clusters to try, such as range(2, 11), got "
            f"{candidates!r}."
        )
    tried = sorted(
        {
            whole_number("candidates", k, at_least=1, meaning="a number of clusters to try, each")
            for k in candidates
        }
    )
    if not tried:
        raise InputError("candidates is empty. Pass the numbers of clusters to try: range(2, 11).")
    if tried == [1] and criterion not in ("bic", RULE):
        raise InputError(
            f"candidates holds only 1, of which criterion={criterion!r} cannot speak. Add larger "
            'ones, or use criterion="bic".'
        )
    return tried


def _kmeans(
    points: Points, weights: Weights | None, k: int, rng: np.random.Generator, limits: Limits
) -> WindowFit:
    seeds = draw_seeds(points, weights, k, rng, limits.threads)
    if len(seeds.rows) < k:
        raise InputError(
            f"X has {len(seeds.rows)} distinct points of weight above 0, but {k} clusters are "
            "among the candidates. Pass more rows or smaller candidates."
        )
    window = Window(1.0).joined_by(points, weights, seeds.partition)
    # A chance for each centroid, beside those that serve a stream at every batch.
    refined = swap_centroids(window, seeds.centroids, CANDIDATES + k, rng, limits)
    return fit_window(refined.window, refined.centroids, limits)


def _bic(fit: WindowFit, n_features: int) -> float:
    """Return log likelihood less half the parameters times log n; Pelleg and Moore, section 3.2.

    Their variance lacks the division by the number of columns, without which it is not that of one
    coordinate of a round Gaussian.
    """
    n_clusters, n = len(fit.masses), fit.window.mass
    if n <= n_clusters:
        return math.nan
    variance = fit.error * n / (n_features * (n - n_clusters))
    if variance == 0:
        return math.inf  # every cluster is a single place
    masses = fit.masses[fit.masses > 0]
    log_likelihood = (
        float((masses * np.log(masses / n)).sum())
        - n * n_features / 2 * math.log(2 * math.pi * variance)
        - (n - n_clusters) * n_features / 2
    )
    n_parameters = (n_clusters - 1) + n_clusters * n_features + 1
    return log_likelihood - n_parameters / 2 * math.log(n)


def _sampled_rows(
    n_points: int, weights: Weights | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    if weights is not None:
        return rng.choice(n_points, min(n_points, SILHOUETTE_ROWS), p=weights / weights.sum())
    if n_points <= SILHOUETTE_ROWS:
        return np.arange(n_points)
    return np.sort(rng.choice(n_points, SILHOUETTE_ROWS, replace=False))


def _indices(
    points: Points, labels: Labels, rows: NDArray[np.int64], *, weighted: bool
) -> dict[str, float]:
    from sklearn import metrics

    some, some_labels = points[rows], labels[rows]
    # Equally many rows for each index where weights decide how often each of them counts.
    every, every_labels = (some, some_labels) if weighted else (points, labels)
    return {
        "silhouette": _index(metrics.silhouette_score, some, some_labels),
        "davies_bouldin": _index(metrics.davies_bouldin_score, every, every_labels),
        "calinski_harabasz": _index(metrics.calinski_harabasz_score, every, every_labels),
    }


def _index(index: Any, points: Points, labels: Labels) -> float:
    """Return a score of scikit-learn, which is defined for 2 to n - 1 clusters."""
    if not 2 <= len(np.unique(labels)) < len(labels):
        return math.nan
    return float(index(points, labels))
