"""FSKM, Forgetful Streaming K-means: Algorithm 2 of the paper, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from numpy.typing import ArrayLike

from kmeander.arguments import generator_for
from kmeander.arrays import Centroids
from kmeander.kmeans.forgetting import max_batches_for
from kmeander.kmeans.lloyd import LloydResult
from kmeander.kmeans.starts import INITIALISATIONS, Clusters, Start, start_current
from kmeander.kmeans.window import Remembered, Summary, Window
from kmeander.kmeans.window_coreset import summarise, thin
from kmeander.models.base import StreamModel
from kmeander.models.beginning import begin
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.k_choice import follow
from kmeander.models.rho_choice import RhoChoice, Speeds
from kmeander.models.second_memory import FRESH_RHO, Turn, keep_up, take_turns, whole_memory
from kmeander.models.settings import Options, Settings
from kmeander.models.stages import (
    Converged,
    assigned_by,
    checked_batch,
    current_of,
    learn_from,
    look_for_changes,
    record,
    seen_by,
    seen_from,
)
from kmeander.models.state import State
from kmeander.models.trial import Contender, Trial
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
        ``"two-speed"`` a batch aged t weighs ``(1 - a) * r**t + a * 0.95**t``: mostly the newest
        batches count, but what is rare is remembered up to an age of 64. Of four such pairs, from
        r = 0.1 and a = 0.002 to 0.95 alone, the best forecaster is taken. At an age of 3, 10 and 32
        a batch becomes a quarter as many weighted means, so all are the rows of seven batches.
    refine : {None, "swaps", "split-merge"} or int, default=None
        Local search before Lloyd: this number of points (20 with ``"swaps"``) is tried as
        centroids, each in the place of the one whose removal costs least, and kept where the
        surrogate error falls. ``"split-merge"`` does so, too, and after Lloyd gives centroids that
        are missed least to clusters that gain most in two halves; where that finds nothing it rests
        for 2, 4, then 8 batches. None is the paper's algorithm.
    forgetting : {"fixed", "adaptive", "on-trial"}, default="fixed"
        ``"adaptive"``: where a batch contradicts the ones before it, beyond chance and beyond the
        usual changes of the stream, those lose enough weight at once that the error they would add
        is negligible: they keep ``0.01 / epsilon`` of it. With ``"on-trial"`` they lose it in a
        second memory alone, which begins with that batch, also from C^0; the whole memory goes on
        beside it. Who has forecast better since then answers (``Step.memory``); at once the second
        one does only if earlier ones were right. ``"fixed"`` is the paper's algorithm.
    max_batches : int, optional
        Cap on the batches remembered. A batch leaves, in any case, once its age reaches
        ``max_batches_for(rho)``; with ``rho=1`` none does, so the cap must be given.
    max_points : int, optional
        Cap on the points remembered, at least ``2 * n_clusters``; two memories share it. Beyond it
        old batches become fewer weighted means that stand for their points: the decayed weight and
        mean are those of the points, and so is their share of the errors; only a mean whose points
        would be divided between two clusters goes to one whole. The newest batch is always whole,
        and at least half of `max_points` is left to the others.
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
        remembered, has_drifted = known.window, arrival.is_drift
        n_forecast = 0
        if settings.choices or known.rho_choice is not None:
            known, n_forecast = self._with_rho_choice(known, batch)
        if settings.has_trials:
            turn = take_turns(known, batch, arrival, limits)
        else:
            forgets = has_drifted and settings.forgetting == "adaptive"
            kept = arrival.history_kept if forgets else 1.0
            # Until now settings may have allowed two memories.
            turn = Turn(known._replace(trial=Trial()), arrival.partition, history_kept=kept)
        known, kept = turn.known, turn.history_kept
        answering = known.centroids
        assert answering is not None
        aged = age(known, batch, settings, kept if settings.forgetting == "adaptive" else 1.0)
        start = Start(answering)  # PC, which looks at neither w* nor C^0
        if settings.init != "previous":
            start = self._start(answering, aged.window, batch, current)
        summary = None if batch.within is None else Summary(batch.within, n_batches=1, span=0.0)
        newest, n_following = Remembered(batch.points, batch.weights, summary, batch.handle), 0
        if aged.other is not None:
            known, n_following = self._followed(known, aged.other, newest, batch.index)
        n_besides = n_forecast + turn.n_distances + aged.n_distances + n_following
        if n_besides:
            start = start.plus(n_besides)
        start = assigned_by(turn.newest, start, batch, answering)
        window = aged.window.followed_by(newest, start.newest)
        done = learn_from(
            window, start, known, batch.index, settings, self.seed, centroids,
            has_drifted=has_drifted,
        )  # fmt: skip
        if turn.has_begun and known.trial.is_fresh:
            done = self._best(done, aged.window, known, batch, newest, current, centroids)
        if turn.has_switched:
            window = seen_by(centroids, aged.window, newest, limits)
        before = Before(lineage, centroids, remembered, known.estimates, known.step)
        tracked = track(
            before, arrival, tested, window, done.fit, batch.index,
            swapped=done.swapped, limits=limits,
        )  # fmt: skip
        choice = known.k_choice
        if settings.follows_k or choice.events:
            tracked, choice = follow(known, before, tracked, settings, batch.index)
        # Only here, so that an exception changes nothing.
        self.learned, step = record(
            known, batch, arrival, done.found, tracked, begun, limits, kept, tested.n_far,
            done.rest, choice, turn.memory,
        )  # fmt: skip
        return step

    def _with_rho_choice(self, known: State, batch: Batch) -> tuple[State, int]:
        """Return what is known once every rho to choose from has forecast the batch.

        And the number of distances that it took.
        """
        choices, choice = self.settings.choices, known.rho_choice
        if not choices:
            return known._replace(rho_choice=None) if choice else known, 0
        whole = whole_memory(known)
        partition = whole.window.partition
        if choice is None or choice.choices != choices:  # rho was given until now, or another word
            return known._replace(rho_choice=RhoChoice((0.0,) * len(choices), choices)), 0
        if partition is None or partition.sums is None:
            return known, 0
        choice = choice.after(whole.window, batch, whole.centroids, self.settings.limits)
        n_distances = len(choices) * batch.n_points * len(whole.centroids)
        return known._replace(rho_choice=choice), n_distances

    def _followed(
        self, known: State, other: Contender, newest: Remembered, index: int
    ) -> tuple[State, int]:
        """Return what is known once the memory that does not answer has learned the batch."""
        other, n_distances = keep_up(
            other, newest, generator_for(self.seed, index, 4), self.settings.limits,
            keep_sums=known.rho_choice is not None,
        )  # fmt: skip
        return known._replace(trial=known.trial._replace(other=other)), n_distances

    def _best(
        self,
        done: Converged,
        aged: Window,
        known: State,
        batch: Batch,
        newest: Remembered,
        current: LloydResult | None,
        before: Centroids,
    ) -> Converged:
        """Return the better end of Lloyd: that one, or from C^0, the K-means on the batch alone."""
        settings, index = self.settings, batch.index
        assert known.centroids is not None
        start = start_current(
            Clusters(known.centroids, aged.cluster_masses(len(known.centroids))),
            current_of(batch, current, len(known.centroids), settings, self.seed),
            lambda: generator_for(self.seed, index, 1),
        )
        window = aged.followed_by(newest, start.newest)
        anew = learn_from(
            window, start, known, index, settings, self.seed, before, has_drifted=True
        )
        return anew.after(done) if anew.fit.error < done.fit.error else done.after(anew)

    def _start(
        self, centroids: Centroids, aged: Window, batch: Batch, current: LloydResult | None
    ) -> Start:
        """Return where Lloyd starts: CC, WI or HI."""
        start = INITIALISATIONS[self.settings.init](
            Clusters(centroids, aged.cluster_masses(len(centroids))),
            current_of(batch, current, len(centroids), self.settings, self.seed),
            # On its own, so that it does not matter who made C^0.
            lambda: generator_for(self.seed, batch.index, 1),
        )
        placed = self.settings.limits.metric.centroids(start.centroids, centroids)
        return start._replace(centroids=placed)


class Aged(NamedTuple):
    """The windows that a batch is to join, and the distances that it took to thin them."""

    window: Window
    other: Contender | None  # that does not answer
    n_distances: int


def age(known: State, batch: Batch, settings: Settings, kept: float) -> Aged:
    """Let the time pass until the batch, for all that is remembered.

    At a drift the batches keep the share `kept` of their weight.
    """
    other = known.trial.other
    is_fresh = known.trial.is_fresh
    window = _aged(known, known.window, batch, settings, kept=kept, is_fresh=is_fresh)
    made: dict[Remembered, Remembered] = {}  # so that both memories share what they remember
    assert known.centroids is not None
    has_two = other is not None
    n_distances = 0
    if settings.tail is not None or settings.max_points is not None:
        window, n_distances = _condensed(
            window, known.window, known.centroids, batch, settings, made, has_two=has_two
        )
    if other is not None:
        aged = _aged(known, other.window, batch, settings, kept=1.0, is_fresh=not is_fresh)
        aged, n_more = _condensed(
            aged, other.window, other.centroids, batch, settings, made, has_two=has_two
        )
        other, n_distances = other._replace(window=aged), n_distances + n_more
    return Aged(window, other, n_distances)


def _aged(
    known: State, window: Window, batch: Batch, settings: Settings, *, kept: float, is_fresh: bool
) -> Window:
    """Return a window without the batches that are due, the others older."""
    elapsed, most = batch.elapsed, settings.max_batches
    if is_fresh:
        rho = FRESH_RHO if settings.choices else min(FRESH_RHO, settings.first_rho)
        return window.aged(elapsed, max_batches_for(rho), most, rho=rho)
    choice = known.rho_choice
    speeds = Speeds(settings.first_rho, settings.tail) if choice is None else choice.best
    if speeds.tail is not None or settings.has_trials:
        older = window.aged(elapsed, settings.oldest_age, most, rho=speeds.rho, tail=speeds.tail)
        return older.reduced(kept)
    # Where rho is chosen, what is forgotten must not come back with a longer memory.
    elapsed += ages_to_keep(kept, settings.first_rho)
    return window.aged(elapsed, settings.oldest_age, most, rho=speeds.rho)


def _condensed(
    aged: Window,
    before: Window,
    centroids: Centroids,
    batch: Batch,
    settings: Settings,
    made: dict[Remembered, Remembered],
    *,
    has_two: bool,
) -> tuple[Window, int]:
    """Return a window with old batches as means where settings say so, and the distances."""
    n_distances = 0
    if settings.tail is not None and aged.batches:
        ages_before = before.ages[-len(aged) :]
        thinned = thin(aged, ages_before, centroids, settings.limits, made)
        aged, n_distances = thinned.window, thinned.n_distances
    if settings.max_points is None:
        return aged, n_distances
    most = max(settings.max_points - batch.n_points, settings.max_points // 2)
    found = summarise(
        aged,
        max(most // 2, len(centroids)) if has_two else most,
        centroids,
        settings.limits,
        oldest_age=settings.oldest_age,
        max_batches=settings.max_batches,
    )
    return found.window, n_distances + found.n_distances
