"""PSKM, Privileged Streaming K-means: Algorithm 1 of the paper, its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from kmeander.arguments import generator_for
from kmeander.kmeans.lloyd import LloydResult, fit_window
from kmeander.kmeans.starts import Clusters, Start, start_current
from kmeander.kmeans.window import Window
from kmeander.models.base import StreamModel
from kmeander.models.beginning import begin
from kmeander.models.settings import MetricName, PrivilegedSettings
from kmeander.models.stages import (
    Searched,
    assigned_by,
    checked_batch,
    current_of,
    look_for_changes,
    record,
    seen_from,
)
from kmeander.preparation import Preparation
from kmeander.records import Batch, Step
from kmeander.tracking.drift_test import measure_arrival
from kmeander.tracking.tracker import Before, track

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


class PSKM(StreamModel):
    """Privileged Streaming K-means, Algorithm 1 of the paper: each batch names its concept.

    A batch whose `concept` differs from that of the batch before begins anew: everything is
    forgotten and K-means starts on that batch alone. Otherwise Lloyd goes on from the centroids it
    has, over all batches since the drift, none of which is ever forgotten: memory grows until the
    next drift.

    Parameters
    ----------
    n_clusters : int
    max_iter, tol, n_threads, alarm_rate, season, prepare, metric, random_state
        As for `FSKM`.

    Examples
    --------
    >>> model = PSKM(1, random_state=0)
    >>> for index, (value, concept) in enumerate([(1.0, 0), (3.0, 0), (9.0, 1)]):
    ...     print(model.step(Batch(index, [[value]], concept=concept)).centroids.tolist())
    [[1.0]]
    [[2.0]]
    [[9.0]]
    """

    settings: PrivilegedSettings

    def __init__(
        self,
        n_clusters: int,
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
        settings = PrivilegedSettings(
            n_clusters, max_iter, tol, n_threads, alarm_rate, season, prepare, metric
        )
        super().__init__(settings, random_state)

    @classmethod
    def settings_from(cls, plain: Mapping[str, Any]) -> PrivilegedSettings:
        """Make the settings of a state."""
        return PrivilegedSettings(**plain)

    def step(
        self,
        batch: Batch,
        *,
        previous: ArrayLike | None = None,
        current: LloydResult | None = None,
    ) -> Step:
        """Learn one batch; see `StreamModel.step` for the parameters."""
        begun = perf_counter()
        settings, known = self.settings, self.learned
        batch = checked_batch(known, batch, settings, previous, current)
        is_drift = batch.concept != known.concept
        if known.centroids is None:
            if is_drift:  # nor are points of another concept waited with
                known = known._replace(
                    waiting_points=None, waiting_weights=None, waiting_within=0.0
                )
            self.learned, step = begin(known, batch, settings, self.seed, begun)
            return step
        if previous is not None:
            known = seen_from(known, previous, settings)
        assert known.centroids is not None
        assert known.lineage is not None
        arrival = measure_arrival(
            batch,
            known.window,
            known.centroids,
            known.expected_error,
            known.estimates,
            settings.limits,
        )
        tested = look_for_changes(known, batch, arrival, settings)
        window, start = known.window, Start(known.centroids)
        if is_drift:
            n_clusters = len(known.centroids)
            start = start_current(
                Clusters(known.centroids, window.cluster_masses(n_clusters)),
                current_of(batch, current, n_clusters, settings, self.seed),
                lambda: generator_for(self.seed, batch.index, 1),
            )
            window = Window(settings.first_rho)
        start = assigned_by(arrival.partition, start, batch, known.centroids)
        window = window.joined_by(
            batch.points, batch.weights, start.newest, batch.within, batch.handle
        )
        fit = fit_window(window, start.centroids, settings.limits, before=known.centroids)
        before = Before(known.lineage, known.centroids, known.window, known.estimates, known.step)
        tracked = track(before, arrival, tested, window, fit, batch.index, limits=settings.limits)
        # Only here, so that an exception changes nothing.
        found = Searched(window, start)
        self.learned, step = record(
            known, batch, arrival, found, tracked, begun, settings.limits, n_far=tested.n_far,
            choice=known.k_choice.kept(),
        )  # fmt: skip
        return step
