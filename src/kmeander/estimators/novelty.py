"""How unusual rows are, for both estimators."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from kmeander.estimators.fitted import FittedKMeans
from kmeander.estimators.reading import in_place
from kmeander.models.state import State
from kmeander.tracking.novelty import Novelty


class ScoringKMeans(FittedKMeans):
    """How unusual rows are, and which score is unusual."""

    _novelty: Novelty | None

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how unusual each row is for its cluster: more is more unusual.

        That is its distance to the nearest centroid, divided by the root of the mean squared
        distance of the cluster's rows: about 1 is usual. `novelty_threshold` says how much is
        unusual. The sign is not that of scikit-learn's outlier detectors. Rows that the preparation
        leaves out have NaN.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Examples
        --------
        >>> from kmeander import ForgetfulKMeans
        >>> model = ForgetfulKMeans(2, random_state=0).fit([[0.0], [2.0], [50.0], [54.0]])
        >>> model.score_samples([[0.0], [7.0], [54.0]]).round(1).tolist()
        [0.8, 4.9, 1.1]
        """
        points, learned, kept = self._points_and_state(X)
        return in_place(self._novelty_of(learned).scores(points), kept, np.nan)

    def novelty_threshold(self, rate: float) -> float:
        """Return the score that a share `rate` of ordinary rows passes.

        Found among the rows that are remembered, each scored as if its batch had not been learned,
        so that rows of one batch may depend on one another. What the next batches hold beyond what
        these have shown, a drift above all, passes more often.

        Parameters
        ----------
        rate : float
            Above 0 and below 1.

        Examples
        --------
        >>> import numpy as np
        >>> from kmeander import ForgetfulKMeans
        >>> rng = np.random.default_rng(0)
        >>> model = ForgetfulKMeans(2, random_state=0)
        >>> for _ in range(10):
        ...     _ = model.partial_fit(rng.normal(size=(500, 2)))
        >>> new = model.score_samples(rng.normal(size=(100_000, 2)))
        >>> bool(0.005 < (new > model.novelty_threshold(0.01)).mean() < 0.02)
        True
        """
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        return self._novelty_of(self._learned).threshold(rate)

    def _novelty_of(self, learned: State) -> Novelty:
        """Return what is known of distances; found once for each state."""
        known = self._novelty
        if known is None or known.window is not learned.window:
            assert learned.centroids is not None
            known = Novelty(learned.window, learned.centroids, self._model.settings.limits)
            self._novelty = known
        return known
