"""What a model keeps of its number of clusters: evidence against it, free rows, ids that ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, frozen
from kmeander.events import Event
from kmeander.tracking.lineage import Sleeper

Rows = NDArray[np.int64]


class Missing(NamedTuple):
    """A cluster that gets hardly any rows any more, or has too few to be one."""

    number: int
    share: float  # that it had
    n_batches: int
    expected: float  # rows in those batches, had it kept its share
    found: float
    is_small: bool  # fewer of all rows than a part must have to be a cluster

    def is_sure(self, n_rows: float) -> bool:
        """Whether it lacks so many rows at least, or is small."""
        return self.is_small or self.expected >= n_rows


class Places(NamedTuple):
    """Rows of the centroids as users see them: a cluster keeps its own, some may be free.

    Parameters
    ----------
    rows : ndarray of shape (n_clusters,)
        Row of each living cluster, in ascending order.
    last : ndarray of shape (n_rows, n_features)
        Last centroid of each row; of those that are free it stays.
    """

    rows: Rows
    last: Centroids

    @classmethod
    def of(cls, centroids: Centroids) -> Places:
        """Return those of clusters without a free row."""
        return cls(np.arange(len(centroids)), centroids)

    def spread(self, values: NDArray[Any], free: Any) -> NDArray[Any]:
        """Return values of the living clusters by row, and `free` in rows that are free."""
        spread = np.full((len(self.last), *values.shape[1:]), free, dtype=values.dtype)
        spread[self.rows] = values
        return spread

    def centers(self, centroids: Centroids) -> Centroids:
        """Return the centroids by row: those of the living, and the last of each free row."""
        centers = self.last.copy()
        centers[self.rows] = centroids
        return frozen(centers)

    def without(self, cluster: int, centroids: Centroids) -> Places:
        """Return the rows once a cluster is given up; free rows at the end are cut off."""
        last = self.last.copy()
        last[self.rows] = centroids
        rows = np.delete(self.rows, cluster)
        return Places(rows, frozen(last[: rows[-1] + 1]))

    def with_one(self, centroids: Centroids) -> tuple[Places, int]:
        """Return the rows with a newborn in the first that is free, and its place among them."""
        last = self.last.copy()
        last[self.rows] = centroids
        taken = set(self.rows.tolist())
        row = next(row for row in range(len(last) + 1) if row not in taken)
        if row == len(last):
            last = np.concatenate([last, last[:1]])
        at = int(np.searchsorted(self.rows, row))
        return Places(np.insert(self.rows, at, row), frozen(last)), at

    @property
    def has_free(self) -> bool:
        """Whether any row is free."""
        return len(self.rows) < len(self.last)


class KChoice(NamedTuple):
    """What is known of the number of clusters beside the clusters. Never changed.

    Parameters
    ----------
    n_two, n_one : int
        Clusters that held two after the newest batch, and pairs that were one, as far as nothing
        was done about them. Only what lasts changes K.
    two_for, one_for : int
        For how many batches there has been some.
    missing : tuple of Missing
    gone : tuple of Sleeper
        Clusters that ended lately and may return.
    places : Places or None
        None as long as every row has a cluster.
    events : tuple of Event
        What a change by hand did, to be reported with the next batch.
    """

    n_two: int = 0
    n_one: int = 0
    two_for: int = 0
    one_for: int = 0
    missing: tuple[Missing, ...] = ()
    gone: tuple[Sleeper, ...] = ()
    places: Places | None = None
    events: tuple[Event, ...] = ()

    def kept(self) -> KChoice:
        """Return what is left of it once its events are reported."""
        return self if not self.events else self._replace(events=())

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; nothing where K has never changed."""
        if self == KChoice():
            return {}
        plain = self._asdict()
        plain["missing"] = [list(one) for one in self.missing]
        plain["gone"] = [one._asdict() for one in self.gone]
        plain["places"] = None if self.places is None else self.places._asdict()
        plain["events"] = [event.to_dict() for event in self.events]
        return {"k_choice": plain}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> KChoice:
        """Make it of a model's state."""
        plain = state.get("k_choice")
        if plain is None:
            return cls()
        places = plain["places"]
        return cls(
            plain["n_two"],
            plain["n_one"],
            plain["two_for"],
            plain["one_for"],
            tuple(Missing(*one) for one in plain["missing"]),
            tuple(Sleeper(**{**one, "home": frozen(one["home"])}) for one in plain["gone"]),
            None if places is None else Places(frozen(places["rows"]), frozen(places["last"])),
            tuple(map(Event.from_dict, plain["events"])),
        )
