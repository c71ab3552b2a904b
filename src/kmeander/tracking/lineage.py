"""Lineage of clusters: ids that last, and what became of the clusters that ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.arrays import Centroids, frozen
from kmeander.events import Event
from kmeander.exceptions import InputError
from kmeander.records import Ids, Step

NOBODY = -1


def endings(events: Iterable[Event]) -> Iterator[tuple[int, int]]:
    """Yield the ids that ended, each with the one that it is part of now, or -1."""
    for event in events:
        if event.kind in ("died", "absorbed") and event.cluster is not None:
            yield event.cluster, NOBODY if event.other is None else event.other


class Lineage(NamedTuple):
    """The ids of the clusters, and all that ended. Never changed: each step makes a new one.

    Parameters
    ----------
    ids : ndarray of shape (n_clusters,)
        Id of the cluster in each row of the centroids.
    next_id : int
        The id that comes next; ids are never used again.
    since : ndarray of shape (n_clusters,)
        Batch with which the present chapter of each cluster began: its first, or that at which it
        last moved, grew or shrank. What it is compared with is not older.
    home, home_variance, home_share : ndarray
        Mean of each cluster, variance about it and share of the batches, before the changes that
        are not yet as old as the window.
    variance : ndarray of shape (n_clusters,)
        Variance of each cluster after the newest batch.
    ended : tuple of (int, int)
        Ids that ended, in that order, each with the id of which it is a part now, or -1.
    """

    ids: Ids
    next_id: int
    since: NDArray[np.int64]
    home: Centroids
    home_variance: NDArray[np.float64]
    home_share: NDArray[np.float64]
    variance: NDArray[np.float64]
    ended: tuple[tuple[int, int], ...] = ()

    @classmethod
    def begun(cls, centroids: Centroids, index: int) -> Lineage:
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
            variance=unknown,
        )

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        ended = frozen(np.array(self.ended, dtype=np.int64).reshape(-1, 2))
        return {**self._asdict(), "ended": ended}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Lineage:
        """Make a lineage of what `state` returned."""
        values: dict[str, Any] = {
            name: frozen(value) if isinstance(value, np.ndarray) else value
            for name, value in state.items()
        }
        ended = tuple((int(old), int(heir)) for old, heir in values.pop("ended").tolist())
        return cls(**values, ended=ended)


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
