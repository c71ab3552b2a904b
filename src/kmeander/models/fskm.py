"""FSKM and PSKM, the algorithms of the paper: one batch in, one Step out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kmeander.arguments import generator_for, share_kept, whole_number
from kmeander.arrays import Centroids
from kmeander.exceptions import InputError
from kmeander.kmeans.forgetting import max_batches_for
from kmeander.kmeans.lloyd import LloydResult
from kmeander.kmeans.starts import INITIALISATIONS, Clusters, Start, start_current
from kmeander.kmeans.window import Window
from kmeander.kmeans.window_coreset import summarise
from kmeander.models.base import StreamModel
from kmeander.models.rho_choice import LONGEST, RHOS, Ladder
from kmeander.models.state import Clock, Memory
from kmeander.records import Batch
from kmeander.tracking.drift_test import Arrival, ages_to_keep

if TYPE_CHECKING:
    from kmeander.arguments import RandomState

FORGETTING = ("fixed", "adaptive")

# What measures best (docs/decisions.md): the defaults of everything that people meet. FSKM's own
# are the paper's.
DEFAULTS: dict[str, Any] = {
    "init": "previous",
    "rho": 0.6,
    "refine": "swaps",
    "forgetting": "adaptive",
}


class FSKM(StreamModel):
    """Forgetful Streaming K-means, Algorithm 2 of the paper.

    Parameters
    ----------
    n_clusters : int
    init : {"hungarian", "weighted", "current", "previous"}, default="hungarian"
        Where Lloyd starts at each batch: HI, WI, CC or PC.
    rho : float or "auto", default=0.5
        Share of weight that a batch keeps when its age grows by one. ``"auto"`` chooses among
        half-lives of half a batch to four, by how well the centroids that each would have had
        forecast the batches so far; the window is then as long as the longest needs.
    refine : {None, "swaps"} or int, default=None
        Local search before Lloyd: so many points (20 with ``"swaps"``) are tried as centroids, each
        in the place of the one whose removal costs least, and kept where the surrogate error falls.
        None is the paper's algorithm.
    forgetting : {"fixed", "adaptive"}, default="fixed"
        ``"adaptive"``: where a batch contradicts the ones before it, beyond chance and beyond what
        is usual in the stream, those lose so much weight at once that the error they would add is
        negligible: they keep ``0.01 / epsilon`` of it. ``"fixed"`` is the paper's algorithm.
    max_batches : int, optional
        Cap on the batches remembered. A batch leaves, in any case, once its age reaches
        ``max_batches_for(rho)``; with ``rho=1`` none does, so the cap must be given.
    max_points : int, optional
        Cap on the points remembered, at least ``2 * n_clusters``. Beyond it old batches become
        fewer weighted means that stand for their points: the decayed weight and mean are those of
        the points, and so is their share of the errors; only a mean whose points would be divided
        between two clusters goes to one whole. The newest batch is always whole, and at least half
        of `max_points` is left to the others.
    max_iter, tol, n_threads
        As for `weighted_lloyd`, for the K-means on the batch and for the window, each.
    random_state : int, Generator, RandomState or None
        Decides the seedings; one seed is drawn at once and kept in the state.

    Examples
    --------
    >>> model = FSKM(2, rho=0.5, random_state=0)
    >>> step = model.step(Batch(0, [[0.0], [1.0], [10.0], [11.0]]))
    >>> sorted(step.centroids.ravel().tolist()), step.surrogate_error
    ([0.5, 10.5], 0.25)
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        init: str = "hungarian",
        rho: float | str = 0.5,
        refine: str | int | None = None,
        forgetting: str = "fixed",
        max_batches: int | None = None,
        max_points: int | None = None,
        max_iter: int = 300,
        tol: float = 0.0,
        n_threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        if not isinstance(init, str) or init not in INITIALISATIONS:
            raise InputError(
                f"init must be one of {', '.join(map(repr, INITIALISATIONS))}, got {init!r}."
            )
        if not isinstance(forgetting, str) or forgetting not in FORGETTING:
            raise InputError(
                f"forgetting must be one of {', '.join(map(repr, FORGETTING))}, got {forgetting!r}."
            )
        if isinstance(rho, str) and rho != "auto":
            raise InputError(f'rho must be a number in (0, 1] or "auto", got {rho!r}.')
        self._chooses_rho = isinstance(rho, str)
        rho = LONGEST if self._chooses_rho else share_kept(rho)
        if max_batches is not None:
            max_batches = whole_number(
                "max_batches", max_batches, at_least=1, meaning="the most batches remembered"
            )
        elif rho == 1.0:
            raise InputError(
                "max_batches must be given with rho=1, which never forgets: without it the window "
                "would grow without end."
            )
        super().__init__(
            n_clusters,
            rho=rho,
            refine=refine,
            max_iter=max_iter,
            tol=tol,
            n_threads=n_threads,
            random_state=random_state,
        )
        self.init = init
        self.forgetting = forgetting
        self.max_batches = max_batches
        self._oldest_age = max_batches_for(rho) if rho < 1 else math.inf
        self.max_points = self._checked_max_points(max_points)

    def _checked_max_points(self, max_points: int | None) -> int | None:
        if max_points is None:
            return None
        return whole_number(
            "max_points",
            max_points,
            at_least=2 * self.n_clusters,
            meaning=(
                "the most points remembered, two or more for each cluster; leave it out to keep "
                "every point"
            ),
        )

    def _blank(self) -> Memory:
        return Memory(Window(self.rho), ladder=Ladder() if self._chooses_rho else None)

    def _with_ladder(self, memory: Memory, batch: Batch) -> tuple[Memory, int]:
        """Return the memory after every rho to choose from has forecast the batch.

        And the number of distances that it took.
        """
        if not self._chooses_rho:
            return memory._replace(ladder=None) if memory.ladder else memory, 0
        assert memory.centroids is not None
        partition = memory.window.partition
        if memory.ladder is None or partition is None or partition.totals is None:
            return memory._replace(ladder=memory.ladder or Ladder()), 0  # rho was given until now
        ladder = memory.ladder.after(memory.window, batch, memory.centroids, self.limits)
        return memory._replace(ladder=ladder), len(RHOS) * batch.n_points * self.n_clusters

    def _prepare(self) -> None:
        if self.init != "previous":
            import scipy.optimize  # noqa: F401  # half a second, once: not the batch's time

    def settings(self) -> dict[str, Any]:
        """Return the parameters that a new model with the same settings takes."""
        return {
            **super().settings(),
            "init": self.init,
            "rho": "auto" if self._chooses_rho else self.rho,
            "refine": self.refine,
            "forgetting": self.forgetting,
            "max_batches": self.max_batches,
            "max_points": self.max_points,
        }

    def _continue(
        self,
        memory: Memory,
        batch: Batch,
        clock: Clock,
        arrival: Arrival,
        current: LloydResult | None,
    ) -> Memory:
        kept = arrival.history_kept if self.forgetting == "adaptive" else 1.0
        # Where rho is chosen, what is forgotten must not come back with a longer memory.
        elapsed = batch.elapsed + ages_to_keep(kept, self.rho)
        memory, n_forecast = self._with_ladder(memory, batch)
        assert memory.centroids is not None
        rho = self.rho if memory.ladder is None else memory.ladder.rho
        aged = memory.window.aged(elapsed, self._oldest_age, self.max_batches, rho=rho)
        if self.init == "previous":  # which looks at neither w* nor C^0
            start = Start(memory.centroids)
        else:
            start = INITIALISATIONS[self.init](
                Clusters(memory.centroids, aged.cluster_masses(self.n_clusters)),
                self._current(batch, current),
                # On its own, so that it does not matter who made C^0.
                lambda: generator_for(self.seed, batch.index, 1),
            )
        if self.max_points is not None:
            found = summarise(
                aged,
                max(self.max_points - batch.n_points, self.max_points // 2),
                memory.centroids,
                self.limits,
                oldest_age=self._oldest_age,
                max_batches=self.max_batches,
            )
            aged = found.window
            start = start.plus(found.n_distances)
        start = _told(start, arrival, batch, memory.centroids)
        if n_forecast:
            start = start.plus(n_forecast)
        window = aged.joined_by(batch.points, batch.weights, start.newest, batch.within, batch.rows)
        return self._learn(memory, window, start, batch, clock, arrival, kept)


def _told(start: Start, arrival: Arrival, batch: Batch, before: Centroids) -> Start:
    """Return the start with what the arrival has found out about the batch, if it begins there.

    Its distances then count: they are those of the first pass.
    """
    if start.centroids is not before:
        return start
    n_measured = batch.n_points * len(before)  # which a plain Lloyd counts among its passes
    return Start(before, start.n_distances + n_measured, start.n_distances_plain, arrival.partition)


class PSKM(StreamModel):
    """Privileged Streaming K-means, Algorithm 1 of the paper: it is told of drifts.

    A batch whose `concept` differs from that of the batch before begins anew: everything is
    forgotten and K-means starts on that batch alone. Otherwise Lloyd goes on from the centroids it
    has, over all batches since the drift, none of which is ever forgotten: memory grows until the
    next drift.

    Parameters
    ----------
    n_clusters : int
    max_iter, tol, n_threads, random_state
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

    def __init__(
        self,
        n_clusters: int,
        *,
        max_iter: int = 300,
        tol: float = 0.0,
        n_threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            rho=1.0,
            max_iter=max_iter,
            tol=tol,
            n_threads=n_threads,
            random_state=random_state,
        )

    def _begin(self, memory: Memory, batch: Batch, clock: Clock, *, wait: bool) -> Memory:
        if batch.concept != memory.concept:
            memory = memory._replace(waiting_points=None, waiting_weights=None, waiting_within=0.0)
        return super()._begin(memory, batch, clock, wait=wait)

    def _continue(
        self,
        memory: Memory,
        batch: Batch,
        clock: Clock,
        arrival: Arrival,
        current: LloydResult | None,
    ) -> Memory:
        assert memory.centroids is not None
        window = memory.window
        start = Start(memory.centroids)
        if batch.concept != memory.concept:
            before = Clusters(memory.centroids, window.cluster_masses(self.n_clusters))
            found = self._current(batch, current)
            start = start_current(before, found, lambda: generator_for(self.seed, batch.index, 1))
            window = Window(self.rho)
        start = _told(start, arrival, batch, memory.centroids)
        window = window.joined_by(
            batch.points, batch.weights, start.newest, batch.within, batch.rows
        )
        return self._learn(memory, window, start, batch, clock, arrival)
