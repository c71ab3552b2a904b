"""ForgetfulKMeans and PrivilegedKMeans: FSKM and PSKM behind scikit-learn's API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from kmeander.arguments import truth
from kmeander.estimators.base import StreamKMeans
from kmeander.estimators.turns import turn_of
from kmeander.models import FSKM, PSKM
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.settings import (
    IN_PAPER,
    Forgetting,
    Init,
    MetricName,
    PrivilegedSettings,
    Refine,
    Rho,
    Settings,
)
from kmeander.preparation import Preparation
from kmeander.storage import model_file

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


class ForgetfulKMeans(StreamKMeans):
    """K-means that follows a stream and forgets its past (FSKM, and better).

    Each batch updates the centroids by weighted Lloyd over the batches remembered, a batch aged t
    weighing ``rho**t``, unless `rho` says otherwise. Cluster k stays cluster k from batch to batch.
    By default local search keeps Lloyd from bad local minima, and a batch that contradicts the past
    makes the model forget it at once; `as_in_paper` gives plain FSKM [1]_.

    Parameters
    ----------
    n_clusters : int, (int, int) or "auto", default=8
        The number of clusters, K; see `suggest_clusters`. A range such as ``(2, 30)``, or
        ``"auto"``, which is ``(2, 50)``: as many as the stream has at the moment. A cluster is
        parted where it has held two for two batches, two are joined where they have been one, and
        one that gets no rows any more is given up; what rows without modes show is no reason.
        `set_params` may change it in the midst of a stream.
    init : {"previous", "hungarian", "weighted", "current"}, default="previous"
        Where Lloyd starts at each batch: the previous centroids (PC), the cheapest; the matched
        means of those and the new batch's (HI), a weighted K-means on both (WI), or the new batch's
        alone (CC).
    rho : float, "auto" or "two-speed", default=0.6
        Share of weight that a batch keeps when the next one arrives; see `rho_for_half_life` and
        `rho_for_drift`. ``"auto"`` chooses among half-lives of half a batch to four, by how well
        each would have forecast the batches so far; ``step_.rho`` says which. ``"two-speed"``
        forgets most of a batch within a few others and the rest within sixty, so that what is rare
        is not forgotten: a batch aged t weighs ``(1 - a) * r**t + a * 0.95**t``, r and a chosen in
        the same way. Old batches are kept as weighted means, all together as many rows as seven
        batches.
    refine : {"swaps", "split-merge", None} or int, default="swaps"
        Local search before Lloyd: this number of points (20 with ``"swaps"``) is tried as
        centroids, each in the place of the one whose removal costs least, and kept where the error
        falls. ``"split-merge"`` does so, too, and after Lloyd gives centroids that are missed least
        to clusters that gain most in two halves: better where a stream has more groups than K.
    forgetting : {"adaptive", "on-trial", "fixed"}, default="adaptive"
        With ``"adaptive"`` a batch that contradicts the ones before it, beyond chance and beyond
        the usual changes of the stream, takes all weight from them but ``0.01 / epsilon``. Epsilon
        is the relative growth of the error (``step_.drift_epsilon``, ``step_.drift_z``). With
        ``"on-trial"`` that happens in a second memory, and the whole one is kept beside it until it
        is clear which forecasts better (``step_.memory`` says which one answers): a false alarm
        then costs little.
    max_batches : int, optional
        Cap on the batches remembered. In any case a batch leaves once its age reaches
        ``max_batches_for(rho)``: as many batches where each makes the others older by 1, more where
        `elapsed` is smaller. Needed with ``rho=1``.
    max_points : int, optional
        Cap on the points remembered, at least ``2 * n_clusters``; for `rho` near 1. Beyond it old
        batches become fewer weighted means of nearby points, which keep the weight, the mean and
        the error of the points that they stand for. The newest batch is always whole,
        and at least half of `max_points` is left to the others.
    max_iter : int, default=300
        The most updates of the centroids, in the K-means on the batch and on the window, each.
    tol : float, default=0.0
        Stop once the squared moves of the centroids sum to at most `tol` times the mean variance
        of the columns; 0 goes on until no label changes.
    prepare : {None, "auto"} or Preparation, default=None
        How the rows of a table become points: ``"auto"`` puts columns on one scale, fills what is
        missing, turns categories into numbers, and leaves out ids and times; see `Preparation`. By
        default rows are learned as they are. `kmeander.run` and ``kmeander run`` default to
        ``"auto"``.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With ``"cosine"`` rows are compared by direction, as embeddings are: rows and centroids
        are taken at length 1, errors and distances are 1 - cosine, a row of zeros is refused.
        ``prepare="auto"`` then leaves the scale of numbers as it is.
    n_threads : int, optional
        By default KMEANDER_NUM_THREADS, or all cores. It never changes a result.
    alarm_rate : float, default=0.001
        Share of the batches of a stream that does not change which may raise an alarm (``drift``,
        ``moved``, ``grew``, ``shrank`` and ``trend`` together). Learning does not look at alarms;
        but they decide which row a new cluster takes, and local search draws row by row.
    season : int, optional
        Batches after which the stream repeats itself, such as 24 where a batch is an hour: each is
        then compared with the same phase of past cycles. As for `alarm_rate`, learning does not
        look at it.
    random_state : int, RandomState, Generator or None, default=None
        Decides the k-means++ seedings. Read at the first batch, when one seed is drawn and kept;
        None takes it from the system, not from NumPy's global generator.

    Attributes
    ----------
    n_clusters_ : int
        How many clusters there are.
    cluster_centers_ : ndarray of shape (n_rows, n_features)
        In prepared columns and units, where rows are prepared; see `centers_frame`. There are as
        many rows as clusters, unless K has fallen: a cluster keeps its row, so one that is given up
        leaves its last centroid there, with weight 0 and id -1, until a newborn takes the row.
        Nothing is predicted to be in it. Free rows at the end are cut off.
    cluster_ids_ : ndarray of shape (n_rows,)
        Id of the cluster in each row of `cluster_centers_`: it lasts as long as the cluster does,
        and is never given to another. ``cluster_ids_[labels]`` are the ids of points.
    cluster_weights_ : ndarray of shape (n_rows,)
        Decayed weight of each cluster.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the newest batch, by row.
    ids_ : ndarray of shape (n_samples,)
        The same by id: ``cluster_ids_[labels_]``.
    inertia_ : float
        Decayed sum of squared distances over the window.
    surrogate_error_ : float
        The same as a mean.
    n_iter_ : int
        Assignment passes at the newest batch.
    n_steps_ : int
        Batches taken so far.
    step_ : Step
        What the newest batch did.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has names.

    References
    ----------
    .. [1] Bidaurrazaga, Pérez, Capó, "K-means for Evolving Data Streams", ICDM 2021.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> model = ForgetfulKMeans(n_clusters=2, random_state=0)
    >>> for hour in range(10):
    ...     low, high = rng.normal(0 + hour, 1, (50, 1)), rng.normal(100 - hour, 1, (50, 1))
    ...     _ = model.partial_fit(np.concatenate([low, high]))
    >>> np.sort(model.cluster_centers_.ravel()).round().tolist()
    [7.0, 92.0]
    """

    _model_class = FSKM
    _parameters = Settings.names()

    def __init__(
        self,
        n_clusters: ClusterCount = Settings.n_clusters,
        *,
        init: Init = Settings.init,
        rho: Rho = Settings.rho,
        refine: Refine = Settings.refine,
        forgetting: Forgetting = Settings.forgetting,
        max_batches: int | None = Settings.max_batches,
        max_points: int | None = Settings.max_points,
        max_iter: int = Settings.max_iter,
        tol: float = Settings.tol,
        n_threads: int | None = Settings.n_threads,
        alarm_rate: float = Settings.alarm_rate,
        season: int | None = Settings.season,
        prepare: Preparation | str | None = Settings.prepare,
        metric: MetricName = Settings.metric,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.rho = rho
        self.refine = refine
        self.forgetting = forgetting
        self.max_batches = max_batches
        self.max_points = max_points
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads
        self.alarm_rate = alarm_rate
        self.season = season
        self.prepare = prepare
        self.metric = metric
        self.random_state = random_state

    @classmethod
    def as_in_paper(cls, n_clusters: ClusterCount = Settings.n_clusters, **params: Any) -> Self:
        """Return plain FSKM of the paper, whatever the defaults of this class are.

        That is ``init="hungarian"``, ``rho=0.5``, ``refine=None`` and ``forgetting="fixed"``.

        Parameters
        ----------
        n_clusters : int, default=8
        **params
            As for the class, in place of those.
        """
        return cls(n_clusters, **{**IN_PAPER, **params})

    def partial_fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        elapsed: float = 1.0,
        rows: ArrayLike | None = None,
        texts: ArrayLike | None = None,
    ) -> Self:
        """Learn one batch. Threads may share an estimator: their batches are learned in turn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        elapsed : float, default=1.0
            Ages since the previous batch: 2.5 forgets as much as two and a half ordinary batches.
        rows, texts : array-like of shape (n_samples,), optional
            What names each row, and what it says: `describe` shows those of rows near the centroid,
            and names clusters by the words of their texts.
        """
        with turn_of(self):
            return self._learn(X, sample_weight, elapsed, None, rows, texts)

    def _settings(self) -> Settings:
        return Settings(**{name: getattr(self, name) for name in self._parameters})


class PrivilegedKMeans(StreamKMeans):
    """K-means over the batches since the last drift, which the caller must announce (PSKM).

    The paper's baseline [1]_. It forgets everything at a drift and nothing between two, so its
    memory grows until the next.

    Parameters
    ----------
    n_clusters : int, default=8
    max_iter, tol, n_threads, alarm_rate, season, prepare, metric, random_state
        As for `ForgetfulKMeans`.

    Attributes
    ----------
    cluster_centers_, cluster_ids_, cluster_weights_, labels_, inertia_, surrogate_error_, \
n_iter_, n_steps_, step_, n_features_in_, feature_names_in_
        As for `ForgetfulKMeans`, without decay: `surrogate_error_` is the SKM error.

    References
    ----------
    .. [1] Bidaurrazaga, Pérez, Capó, "K-means for Evolving Data Streams", ICDM 2021.

    Examples
    --------
    >>> model = PrivilegedKMeans(n_clusters=1, random_state=0)
    >>> model.partial_fit([[1.0]]).partial_fit([[3.0]]).cluster_centers_.tolist()
    [[2.0]]
    >>> model.partial_fit([[9.0]], drift=True).cluster_centers_.tolist()
    [[9.0]]
    """

    _model_class = PSKM
    _parameters = PrivilegedSettings.names()

    def __init__(
        self,
        n_clusters: ClusterCount = PrivilegedSettings.n_clusters,
        *,
        max_iter: int = PrivilegedSettings.max_iter,
        tol: float = PrivilegedSettings.tol,
        n_threads: int | None = PrivilegedSettings.n_threads,
        alarm_rate: float = PrivilegedSettings.alarm_rate,
        season: int | None = PrivilegedSettings.season,
        prepare: Preparation | str | None = PrivilegedSettings.prepare,
        metric: MetricName = PrivilegedSettings.metric,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads
        self.alarm_rate = alarm_rate
        self.season = season
        self.prepare = prepare
        self.metric = metric
        self.random_state = random_state

    def partial_fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        drift: bool = False,
        rows: ArrayLike | None = None,
        texts: ArrayLike | None = None,
    ) -> Self:
        """Learn one batch. Threads may share an estimator: their batches are learned in turn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        drift : bool, default=False
            Whether a new concept begins with `X`.
        rows, texts : array-like of shape (n_samples,), optional
            As for `ForgetfulKMeans`.
        """
        with turn_of(self):
            known = getattr(self, "_model", None)
            concept = (0 if known is None else known.concept) + truth("drift", drift)
            return self._learn(X, sample_weight, 1.0, concept, rows, texts)

    def _settings(self) -> PrivilegedSettings:
        return PrivilegedSettings(**{name: getattr(self, name) for name in self._parameters})


_ESTIMATORS: dict[str, type[ForgetfulKMeans] | type[PrivilegedKMeans]] = {
    "ForgetfulKMeans": ForgetfulKMeans,
    "PrivilegedKMeans": PrivilegedKMeans,
}


def load(path: str | os.PathLike[str]) -> ForgetfulKMeans | PrivilegedKMeans:
    """Return the estimator that `save` wrote to `path`; it goes on where it was.

    A model whose run prepared its rows takes rows as the stream had them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ForgetfulKMeans(2, random_state=0).fit([[0.0], [1.0]]).save(f"{folder}/model")
    ...     load(f"{folder}/model").n_steps_
    1
    """
    return from_saved(model_file.read(path))


def from_saved(state: Mapping[str, Any]) -> ForgetfulKMeans | PrivilegedKMeans:
    """Return the estimator of a saved state."""
    estimator_class = _ESTIMATORS[state["estimator"]]
    params = {**state["params"]}
    if isinstance(params["n_clusters"], list):
        params["n_clusters"] = tuple(params["n_clusters"])
    if estimator_class is ForgetfulKMeans:
        params = {**IN_PAPER, **params}  # a file from before some were parameters
    rules = params.get("prepare")
    if isinstance(rules, Mapping):
        params = {**params, "prepare": Preparation.from_dict(rules)}
    estimator = estimator_class(**params)
    if state.get("model") is not None:
        model = estimator._model_class.from_state(state["model"])
        estimator._resume(model, state.get("feature_names_in"))
    return estimator
