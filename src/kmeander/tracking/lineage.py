"""Lineage of clusters: ids that last, and what became of the clusters that ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.arrays import Centroids, Masses, frozen
from kmeander.events import Event
from kmeander.exceptions import InputError
from kmeander.kmeans.metric import Metric
from kmeander.records import Ids, Step

NOBODY = -1
# Batches for which a newborn cluster must last before it is reported.
LASTED = 10


def endings(events: Iterable[Event]) -> Iterator[tuple[int, int]]:
    """Yield the ids that ended, each with the one that it is part of now, or -1."""
    for event in events:
        if event.kind in ("died", "absorbed") and event.cluster is not None:
            yield event.cluster, NOBODY if event.other is None else event.other


class Sleeper(NamedTuple):
    """A cluster that no centroid follows at present, and that may come back to its place."""

    number: int
    heir: int  # the id of the cluster that its points are part of, or -1
    since: int  # batch with which it fell asleep
    home: Centroids  # (n_features,)
    variance: float


class Lineage(NamedTuple):
    """The ids of the clusters, and all that ended. Never changed: each step makes a new one.

    Parameters
    ----------
    ids : ndarray of shape (n_clusters,)
        Id of the cluster in each row of the centroids.
    next_id : int
        The id that comes next; ids are never used again.
    since : ndarray of shape (n_clusters,)
        Batch with which the present chapter of each cluster began: its first, or the last change.
    home, home_variance, home_share : ndarray
        Mean of each cluster, variance about it and share of the batches, before the changes that
        are not yet as old as the window.
    variance : ndarray of shape (n_clusters,)
        Variance of each cluster after the newest batch.
    batches, held : ndarray of shape (n_clusters,)
        For how many batches a newborn cluster has lasted, and with how many rows in all; see
        `settle`.
    parents : ndarray of shape (n_clusters,)
        Id of the cluster that a newborn one came from, or -1.
    asleep : tuple of Sleeper
    dropped : tuple of (int, int)
        Newborn clusters that did not last and ended with the newest batch, as in `ended`.
    ended : tuple of (int, int)
        Ids that ended, in that order, each with the id of which it is a part now, or -1.
    is_settled : bool
        Whether all clusters have lasted, and none is asleep or has just been dropped.
    """

    ids: Ids
    next_id: int
    since: NDArray[np.int64]
    home: Centroids
    home_variance: NDArray[np.float64]
    home_share: NDArray[np.float64]
    variance: NDArray[np.float64]
    batches: NDArray[np.int64]
    held: NDArray[np.float64]
    parents: NDArray[np.int64]
    asleep: tuple[Sleeper, ...] = ()
    dropped: tuple[tuple[int, int], ...] = ()
    ended: tuple[tuple[int, int], ...] = ()
    is_settled: bool = True

    @property
    def is_provisional(self) -> NDArray[np.bool_]:
        """Which clusters are newborn and have not lasted yet."""
        return self.batches < LASTED

    @property
    def whereabouts(self) -> tuple[tuple[int, int], ...]:
        """Ids without a row, ended or asleep, each with the id that its points are part of now."""
        return (*self.ended, *((one.number, one.heir) for one in self.asleep))

    @classmethod
    def begun(
        cls, centroids: Centroids, index: int, variance: NDArray[np.float64] | None = None
    ) -> Lineage:
        """Return the lineage of clusters that batch `index` began."""
        n_clusters = len(centroids)
        unknown = frozen(np.full(n_clusters, np.inf))
        return cls(
            ids=frozen(np.arange(n_clusters, dtype=np.int64)),
            next_id=n_clusters,
            since=frozen(np.full(n_clusters, index, dtype=np.int64)),
            home=centroids,
            home_variance=unknown,
            home_share=frozen(np.zeros(n_clusters)),
            variance=unknown if variance is None else frozen(variance),
            **_established(n_clusters),
        )

    def reordered(self, order: NDArray[np.int64]) -> Lineage:
        """Return the lineage of the same clusters in other rows: that in order[r] is in row r."""
        return self._replace(
            ids=frozen(self.ids[order]),
            since=frozen(self.since[order]),
            home=frozen(self.home[order]),
            home_variance=frozen(self.home_variance[order]),
            home_share=frozen(self.home_share[order]),
            variance=frozen(self.variance[order]),
            batches=frozen(self.batches[order]),
            held=frozen(self.held[order]),
            parents=frozen(self.parents[order]),
        )

    def changed(
        self,
        rows: list[int],
        index: int,
        n_batches: int,
        centroids: Centroids,
        masses: Masses,
        variances: NDArray[np.float64],
    ) -> Lineage:
        """Begin a new chapter of the clusters in `rows`: after a change, of all that go on.

        Where they were before is remembered, if the chapter before was as long as the window of
        `n_batches`; a shorter one is part of the same change. `centroids`, `masses` and `variances`
        are those before the batch.
        """
        if not rows:
            return self
        since, home, share = self.since.copy(), self.home.copy(), self.home_share.copy()
        variance = self.home_variance.copy()
        for row in rows:
            if index - since[row] >= n_batches - 1:
                home[row], variance[row] = centroids[row], variances[row]
                share[row] = masses[row] / masses.sum()
            since[row] = index
        return self._replace(
            since=frozen(since), home=frozen(home), home_variance=frozen(variance),
            home_share=frozen(share),
        )  # fmt: skip

    def rescaled(
        self, factors: NDArray[np.float64], centroids: Centroids, metric: Metric
    ) -> Lineage:
        """Return the lineage of the same clusters in other units, in which they lie there.

        How far their points scatter about them in those units shows with the next batch; of
        clusters that are asleep it is taken to grow as the units do on average.
        """
        unknown = frozen(np.full(len(centroids), np.inf))
        growth = float((factors * factors).mean())
        asleep = tuple(
            one._replace(
                home=frozen(metric.rescaled(one.home[np.newaxis], factors)[0]),
                variance=one.variance * growth,
            )
            for one in self.asleep
        )
        return self._replace(home=centroids, home_variance=unknown, variance=unknown, asleep=asleep)

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        state = self._asdict()
        del state["is_settled"]  # follows from the rest
        for name in ("ended", "dropped"):
            state[name] = frozen(np.array(state[name], dtype=np.int64).reshape(-1, 2))
        state["asleep"] = [one._asdict() for one in self.asleep]
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Lineage:
        """Make a lineage of what `state` returned."""
        values: dict[str, Any] = {
            **_established(len(state["ids"])),  # which an early version does not have
            **{name: frozen(value) if isinstance(value, np.ndarray) else value
               for name, value in state.items()},
        }  # fmt: skip
        for name in ("ended", "dropped"):
            pairs = values.get(name, np.empty((0, 2), dtype=np.int64)).tolist()
            values[name] = tuple((int(old), int(heir)) for old, heir in pairs)
        values["asleep"] = tuple(
            Sleeper(**{**one, "home": frozen(one["home"])}) for one in values.get("asleep", ())
        )
        lineage = cls(**values)
        is_settled = not (lineage.asleep or lineage.dropped or lineage.is_provisional.any())
        return lineage._replace(is_settled=is_settled)


def _established(n_clusters: int) -> dict[str, Any]:
    """Return the columns of clusters that were there from the first."""
    return {
        "batches": frozen(np.full(n_clusters, LASTED, dtype=np.int64)),
        "held": frozen(np.zeros(n_clusters)),
        "parents": frozen(np.full(n_clusters, NOBODY, dtype=np.int64)),
    }


def remap(labels: ArrayLike, from_step: Step, to_step: Step) -> NDArray[np.int64]:
    """Carry stored labels forward: which clusters they belong to some batches later.

    Parameters
    ----------
    labels : array-like of int
        Ids of clusters at `from_step`, as sinks write them; for rows of `cluster_centers_`, as
        `predict` returns them, take ``from_step.ids[labels]``. -1 stays.
    from_step, to_step : Step
        Of the same run, the latter not older; both from a model, or from `read_steps`.

    Returns
    -------
    ndarray of int64
        The same id where the cluster is still there, the id of the cluster that absorbed it, and so
        on, where it is not, and -1 where it died. Points of a cluster from which another split are
        given its own id: without the points nobody can say which of them went.

    Examples
    --------
    >>> from kmeander import FSKM, Batch
    >>> model = FSKM(2, rho=0.5, random_state=0)
    >>> first = model.step(Batch(0, [[0.0], [1.0], [9.0]]))
    >>> later = model.step(Batch(1, [[0.0], [1.0], [9.0]]))
    >>> remap([0, 1, 1], first, later).tolist()
    [0, 1, 1]
    """
    array = np.asarray(labels)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"labels must be whole numbers, got an array of {array.dtype}.")
    if from_step.ids is None or to_step.ids is None:
        which = "from_step" if from_step.ids is None else "to_step"
        raise InputError(
            f"{which} is batch {(from_step if from_step.ids is None else to_step).index}, which "
            "has no ids: the model was still waiting, or an older kmeander wrote it."
        )
    if to_step.index < from_step.index:
        raise InputError(
            f"to_step is batch {to_step.index}, before from_step, batch {from_step.index}. Labels "
            "can only be carried forward."
        )
    known = from_step.ids.tolist()
    strangers = sorted(set(np.unique(array).tolist()) - {*known, NOBODY})
    if strangers:
        raise InputError(
            f"labels holds {strangers[0]}, which is no cluster of batch {from_step.index}; those "
            f"are {', '.join(map(str, known))}. Rows of the centroids become ids by "
            "from_step.ids[labels]."
        )
    alive = set(to_step.ids.tolist())
    heirs = dict(to_step.ended)
    after: dict[int, int] = {NOBODY: NOBODY}
    for number in known:
        heir = number
        while heir != NOBODY and heir not in alive:
            if heir not in heirs:
                raise InputError(
                    f"to_step does not know what became of cluster {heir}: the two Steps are of "
                    "different runs, or to_step was read without those before it. Read both with "
                    "read_steps from the first line on."
                )
            heir = heirs[heir]
        after[number] = heir
    found, inverse = np.unique(array, return_inverse=True)
    carried = np.array([after[number] for number in found.tolist()], dtype=np.int64)
    return carried[inverse].reshape(array.shape) if array.size else array.astype(np.int64)
