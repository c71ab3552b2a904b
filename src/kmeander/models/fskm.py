"""FSKM, Forgetful Streaming K-means: Algorithm 2 of the paper, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import ArrayLike

from kmeander.arguments import generator_for
from kmeander.arrays import Centroids
from kmeander.kmeans.lloyd import LloydResult
from kmeander.kmeans.starts import INITIALISATIONS, Clusters, Start
from kmeander.kmeans.window import Window
from kmeander.kmeans.window_coreset import summarise, thin
from kmeander.models.base import StreamModel
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.k_choice import follow
from kmeander.models.rho_choice import RHOS, RhoChoice
from kmeander.models.settings import Options, Settings
from kmeander.models.stages import (
    assigned_by,
    begin,
    checked_batch,
    converge,
    current_of,
    look_for_changes,
    record,
    search,
    seen_from,
)
from kmeander.models.state import State
from kmeander.records import Batch, Step
from kmeander.tracking.drift_test import ages_to_keep, measure_arrival
from kmeander.tracking.tracker import Before, track

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


class FSKM(StreamModel):
    """Forgetful Streaming K-means, Algorithm 2 of the paper.

    Parameters
    ----------
    n_clusters : int
    init : {"hungarian", "weighted", "current", "previous"}, default="hungarian"
        Where Lloyd starts at each batch: HI, WI, CC or PC.
    rho : float, "auto" or "two-speed", default=0.5
        Share of weight that a batch keeps when its age grows by one. ``"auto"`` chooses among
        half-lives of half a batch to four, by how well the centroids that each would have had
        forecast the batches so far; the window is then as long as the longest needs. With
        ``"two-speed"`` a batch aged t weighs ``0.97 * 0.3**t + 0.03 * 0.95**t``: mostly the newest
        batches count, but what is rare is remembered up to an age of 64. At an age of 3, 10 and 32
        a batch becomes a quarter as many weighted means, so all are the rows of seven batches.
    refine : {None, "swaps", "split-merge"} or int, default=None
        Local search before Lloyd: this number of points (20 with ``"swaps"``) is tried as
        centroids, each in the place of the one whose removal costs least, and kept where the
        surrogate error falls. ``"split-merge"`` does so, too, and after Lloyd gives centroids that
        are missed least to clusters that gain most in two halves; where that finds nothing it rests
        for 2, 4, then 8 batches. None is the paper's algorithm.
    forgetting : {"fixed", "adaptive"}, default="fixed"
        ``"adaptive"``: where a batch contradicts the ones before it, beyond chance and beyond the
        usual changes of the stream, those lose enough weight at once that the error they would add
        is negligible: they keep ``0.01 / epsilon`` of it. ``"fixed"`` is the paper's algorithm.
    max_batches : int, optional
        Cap on the batches remembered. A batch leaves, in any case, once its age reaches
        ``max_batches_for(rho)``; with ``rho=1`` none does, so the cap must be given.
    max_points : int, optional
        Cap on the points remembered, at least ``2 * n_clusters``. Beyond it old batches become
        fewer weighted means that stand for their points: the decayed weight and mean are those of
        the points, and so is their share of the errors; only a mean whose points would be divided
        between two clusters goes to one whole. The newest batch is always whole, and at least half
        of `max_points` is left to the others.
    max_iter : int, default=300
    tol : float, default=0.0
    n_threads : int, optional
        As for `weighted_lloyd`, for the K-means on the batch and for the window, each.
    alarm_rate : float, default=0.001
        Share of the batches of a stream that does not change which may raise an alarm (``drift``,
        ``moved``, ``grew``, ``shrank`` and ``trend`` together). Learning does not look at alarms;
        but they decide which row a new cluster takes, and local search draws row by row.
    season : int, optional
        Batches after which the stream repeats itself, such as 24 where a batch is an hour: each is
        then compared with the same phase of past cycles. As for `alarm_rate`, learning does not
        look at it.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As for `ForgetfulKMeans`.
    prepare : {None, "auto"} or Preparation, optional
        How `learn` turns rows of a table into points; `step` takes points.
    random_state : int, Generator, RandomState or None
        Decides the seedings; one seed is drawn at once and kept in the state.

    Examples
    --------
    >>> model = FSKM(2, rho=0.5, random_state=0)
    >>> step = model.step(Batch(0, [[0.0], [1.0], [10.0], [11.0]]))
    >>> sorted(step.centroids.ravel().tolist()), step.surrogate_error
    ([0.5, 10.5], 0.25)
    """

    settings: Settings

    def __init__(
        self,
        n_clusters: ClusterCount,
        *,
        random_state: RandomState = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(Settings.in_paper(n_clusters, options), random_state)

    @classmethod
    def settings_from(cls, plain: Mapping[str, Any]) -> Settings:
        """Make the settings of a state; those that an early version lacks are the paper's."""
        options = {name: value for name, value in plain.items() if name != "n_clusters"}
        return Settings.in_paper(plain["n_clusters"], options)  # type: ignore[arg-type]

    def step(
        self,
        batch: Batch,
        *,
        previous: ArrayLike | None = None,
        current: LloydResult | None = None,
    ) -> Step:
        """Learn one batch; see `StreamModel.step` for the parameters."""
        if self.settings.init != "previous":
            import scipy.optimize  # noqa: F401  # half a second, once: not the batch's time
        begun = perf_counter()
        settings, limits = self.settings, self.settings.limits
        known = self.learned
        batch = checked_batch(known, batch, settings, previous, current)
        if known.centroids is None:
            self.learned, step = begin(known, batch, settings, self.seed, begun)
            return step
        if previous is not None:
            known = seen_from(known, previous, settings)
        centroids, lineage = known.centroids, known.lineage
        assert centroids is not None
        assert lineage is not None
        arrival = measure_arrival(
            batch, known.window, centroids, known.expected_error, known.estimates, limits
        )
        tested = look_for_changes(known, batch, arrival, settings)
        has_drifted = arrival.is_drift
        forgets = has_drifted and settings.forgetting == "adaptive"
        kept = arrival.history_kept if forgets else 1.0
        known, n_forecast = self._with_rho_choice(known, batch)
        aged = self._aged(known, batch.elapsed, kept)
        start = self._start(centroids, aged, batch, current)
        aged, n_summarising = self._condensed(known, aged, batch, centroids)
        if n_forecast or n_summarising:
            start = start.plus(n_forecast + n_summarising)
        start = assigned_by(arrival, start, batch, centroids)
        window = aged.joined_by(
            batch.points, batch.weights, start.newest, batch.within, batch.handle
        )
        found = search(window, start, settings, self.seed, batch.index)
        fit, swapped, rest = converge(
            found, settings, self.seed, batch.index, known, has_drifted=has_drifted
        )
        before = Before(lineage, centroids, known.window, known.estimates, known.step)
        tracked = track(
            before, arrival, tested, window, fit, batch.index, swapped=swapped, limits=limits
        )
        choice = known.k_choice
        if settings.follows_k or choice.events:
            tracked, choice = follow(known, before, tracked, settings, batch.index)
        # Only here, so that an exception changes nothing.
        self.learned, step = record(
            known,
            batch,
            arrival,
            found,
            tracked,
            begun,
            limits,
            kept,
            tested.n_far,
            rest,
            choice,
        )
        return step

    def _with_rho_choice(self, known: State, batch: Batch) -> tuple[State, int]:
        """Return what is known once every rho to choose from has forecast the batch.

        And the number of distances that it took.
        """
        if not self.settings.chooses_rho:
            return known._replace(rho_choice=None) if known.rho_choice else known, 0
        assert known.centroids is not None
        partition = known.window.partition
        if known.rho_choice is None or partition is None or partition.sums is None:
            # rho was given until now
            return known._replace(rho_choice=known.rho_choice or RhoChoice()), 0
        limits = self.settings.limits
        choice = known.rho_choice.after(known.window, batch, known.centroids, limits)
        n_distances = len(RHOS) * batch.n_points * len(known.centroids)
        return known._replace(rho_choice=choice), n_distances

    def _aged(self, known: State, elapsed: float, kept: float) -> Window:
        """Return the window without the batches that are due, the others by `elapsed` older.

        At a drift they become as much older as leaves them the share of weight to be kept.
        """
        settings, choice = self.settings, known.rho_choice
        if settings.tail is not None:
            aged = known.window.aged(
                elapsed, settings.oldest_age, settings.max_batches,
                rho=settings.first_rho, tail=settings.tail,
            )  # fmt: skip
            return aged.reduced(kept)
        # Where rho is chosen, what is forgotten must not come back with a longer memory.
        older = elapsed if kept == 1.0 else elapsed + ages_to_keep(kept, settings.first_rho)
        rho = settings.first_rho if choice is None else choice.rho
        return known.window.aged(older, settings.oldest_age, settings.max_batches, rho=rho)

    def _start(
        self, centroids: Centroids, aged: Window, batch: Batch, current: LloydResult | None
    ) -> Start:
        """Return where Lloyd starts: PC, CC, WI or HI."""
        if self.settings.init == "previous":  # which looks at neither w* nor C^0
            return Start(centroids)
        start = INITIALISATIONS[self.settings.init](
            Clusters(centroids, aged.cluster_masses(len(centroids))),
            current_of(batch, current, len(centroids), self.settings, self.seed),
            # On its own, so that it does not matter who made C^0.
            lambda: generator_for(self.seed, batch.index, 1),
        )
        placed = self.settings.limits.metric.centroids(start.centroids, centroids)
        return start._replace(centroids=placed)

    def _condensed(
        self, known: State, aged: Window, batch: Batch, centroids: Centroids
    ) -> tuple[Window, int]:
        """Return the window with old batches as means where settings say so, and the distances."""
        settings, n_distances = self.settings, 0
        if settings.tail is not None and aged.batches:
            ages_before = known.window.ages[-len(aged) :]
            thinned = thin(aged, ages_before, centroids, settings.limits)
            aged, n_distances = thinned.window, thinned.n_distances
        if settings.max_points is None:
            return aged, n_distances
        found = summarise(
            aged,
            max(settings.max_points - batch.n_points, settings.max_points // 2),
            centroids,
            settings.limits,
            oldest_age=settings.oldest_age,
            max_batches=settings.max_batches,
        )
        return found.window, n_distances + found.n_distances
