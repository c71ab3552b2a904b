"""What happened to the clusters, and why: records, and the words for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kmeander.exceptions import InputError, shown
from kmeander.html_cards import card
from kmeander.plain_values import each_of, record_values

# In the order in which they are listed.
KINDS = (
    "drift", "born", "split", "returned", "died", "absorbed", "moved", "grew", "shrank", "trend",
    "rescaled",
)  # fmt: skip
# With which the number of clusters may change.
CHANGES_OF_K = ("split", "returned", "died", "absorbed")
# Ratio that stands for one to nothing, as JSON has no infinity: the largest of single precision.
FROM_NOTHING = 3.4e38
_IN_VECTOR = re.compile(r"\[\d+\]$")
# Those that are tests, of which an unchanging stream shows few.
ALARMS = ("drift", "moved", "grew", "shrank", "trend")


@dataclass(frozen=True)
class Event:
    """One thing that happened to one cluster, or to the stream.

    Parameters
    ----------
    kind : str
        ``"drift"``: the batch's error under the old centroids is above what was expected;
        ``"born"``: a new cluster where there was none; ``"split"``: a new cluster out of `other`;
        ``"returned"``: a cluster lies where one with this id ended not long ago;
        ``"died"``: a cluster that gets no points any more was given up; ``"absorbed"``: its points
        are those of `other` now; ``"moved"``, ``"grew"``, ``"shrank"``: its mean, or its share of
        the batch, differs from before beyond what is usual; ``"trend"``: it has walked slowly;
        ``"rescaled"``: the unit of a column follows its spread, which has changed for some batches.
    cluster : int or None
        Id of the cluster; None for a drift.
    other : int or None
        Id of the cluster that it came from, or that it is part of now.
    value : float or None
        How much: of a drift epsilon, of a move the distance, of a trend the distance in standard
        deviations of the cluster, of a unit how many times its former self it is, or None where the
        column begins to vary; otherwise the share of the batch.
    was : float or None
        Share before, of a cluster that grew or shrank; standard error of epsilon for a drift.
    z : float or None
        How many standard deviations of a normal variable are as rare as this, on a stream that
        does not change and whose noise between batches is the one learned.
    over : int or None
        Found in the last so many batches together; None in the newest alone.
    unconfirmed : bool
        The noise of the stream is not known yet: see `Noise`. Not counted as an alarm.
    column : str or None
        Of a unit that changed: that of the prepared column.

    Examples
    --------
    >>> Event("moved", 7, value=2.125, z=8.3).words()
    'cluster 7 moved by 2.12 (z 8.3)'
    >>> Event("absorbed", 12, other=10).words()
    'cluster 12 was absorbed by 10'
    >>> Event("grew", 3, value=0.3, was=0.2, z=4.5, over=4, unconfirmed=True).words()
    'cluster 3 grew from 20.0% to 30.0% over the last 4 batches (z 4.5, unconfirmed)'
    """

    kind: str
    cluster: int | None = None
    other: int | None = None
    value: float | None = None
    was: float | None = None
    z: float | None = None
    over: int | None = None
    unconfirmed: bool = False
    column: str | None = None

    def words(self, names: Mapping[int, str] | None = None) -> str:
        """Return it as half a sentence, with the names that clusters have, by id.

        Examples
        --------
        >>> Event("absorbed", 12, other=10).words({10: "night shift"})
        'cluster 12 was absorbed by 10 (night shift)'
        """
        if self.kind == "rescaled":
            if self.value is None:
                return f"{self.column} begins to vary, and counts from now on"
            return (
                f"{self.column} is rescaled: its spread is about {_times(self.value)} what it was"
            )
        doubts = [] if self.z is None else [f"z {self.z:.1f}"]
        doubts += ["unconfirmed"] if self.unconfirmed else []
        z = "" if self.over is None else f" over the last {self.over} batches"
        z += f" ({', '.join(doubts)})" if doubts else ""
        value, was = self.value or 0.0, self.was or 0.0
        cluster = f"cluster {called(self.cluster, names)}"
        other = called(self.other, names)
        return {
            "drift": _drift_words(self.value) + z,
            "born": f"{cluster} was born with {value:.1%} of the batch",
            "split": f"{cluster} split from {other}",
            "returned": f"{cluster} returned",
            "died": f"{cluster} died",
            "absorbed": f"{cluster} was absorbed by {other}",
            "moved": f"{cluster} moved by {value:.3g}{z}",
            "grew": f"{cluster} grew from {was:.1%} to {value:.1%}{z}",
            "shrank": f"{cluster} shrank from {was:.1%} to {value:.1%}{z}",
            "trend": f"{cluster} has walked {value:.1f} standard deviations{z}",
        }[self.kind]

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        return card(self.words())

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; what there is none of is left out."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        if not self.unconfirmed:
            del known["unconfirmed"]
        return known

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Event:
        """Make an event of what `to_dict` returned; unknown keys are ignored."""
        if not isinstance(plain, dict) or plain.get("kind") not in KINDS:
            raise InputError(
                f"not an event: {shown(plain)}. Its kind must be one of {', '.join(KINDS)}."
            )
        return cls(**record_values(cls, plain, "the event"))


def plain_name(number: int) -> str:
    """Return what a cluster is called that has no name."""
    return f"cluster {number}"


def called(number: int | None, names: Mapping[int, str] | None) -> str:
    """Return an id with its name, where it has one.

    Examples
    --------
    >>> called(3, {3: "night shift"}), called(4, {3: "night shift"})
    ('3 (night shift)', '4')
    """
    name = None if names is None or number is None else names.get(number)
    return str(number) if name is None else f"{number} ({name})"


def _drift_words(epsilon: float | None) -> str:
    """Return what a drift did to the error; rows may lie elsewhere without costing more."""
    if epsilon is None or epsilon <= 0:
        return "drift without a larger error"
    return f"drift: error {_times(1 + epsilon)} what was expected"


def _times(ratio: float) -> str:
    """Return a ratio in words, the same for all of them."""
    return f"{ratio:.3g} times" if ratio < 999.5 else f"{ratio:,.0f} times"


@dataclass(frozen=True)
class Part:
    """What one cluster did to the error.

    Parameters
    ----------
    cluster : int
        Its id.
    feature : int
        Column along which it did most.
    share : float
        Share of the cluster, all columns taken together, in the change of the error.
    cause : {"moved", "spread", "share"}
        What did most along that column: the mean moved, the points spread, or more or fewer came.
    amount : float
        By how far the mean moved; ratio of the variances; ratio of the shares of points.
    """

    cluster: int
    feature: int
    share: float
    cause: str
    amount: float

    def words(
        self,
        columns: Sequence[str] | None = None,
        scale: Sequence[float] | None = None,
        names: Mapping[int, str] | None = None,
    ) -> str:
        """Return it as half a sentence.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns.
        scale : sequence of float, optional
            Where columns were standardised: how large one unit is in the units of the stream.
        names : mapping of int to str, optional
            Names of clusters, by id.

        Examples
        --------
        >>> Part(7, 1, 0.62, "moved", 2.1).words(["rpm", "temp"])
        'cluster 7 moved by 2.1 along temp; 62% of the change'
        >>> Part(7, 0, 0.62, "moved", 2.1).words(["vector[0]"], names={7: "bug, crash"})
        'cluster 7 (bug, crash) moved; 62% of the change'
        """
        name = f"column {self.feature}" if columns is None else columns[self.feature]
        # Of a vector no single number says anything.
        along = "" if _IN_VECTOR.search(name) else f" along {name}"
        amount, is_new = self.amount, self.amount >= FROM_NOTHING
        if self.cause == "moved":
            amount *= 1.0 if scale is None else scale[self.feature]
            did = f"moved by {amount:.3g}{along}" if along else "moved"
        elif self.cause == "spread":
            word = "spread out" if amount >= 1 else "drew together"
            did = f"{word}{along}"
            if along:
                did += ", where it did not vary" if is_new else f" to {_times(amount)} the variance"
        elif is_new:
            did = "grew from nothing"
        else:
            did = f"{'grew' if amount >= 1 else 'shrank'} to {_times(amount)} its share"
        return f"cluster {called(self.cluster, names)} {did}; {self.share:.0%} of the change"

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Part:
        """Make a part of its plain values."""
        return cls(**record_values(cls, plain, "the part"))


@dataclass(frozen=True)
class Explanation:
    """Where the change of the error at a drift comes from.

    The error of the new batch under the old centroids, less that of the batches remembered under
    the same, is a sum over clusters and columns, so every one of them has an exact share in it.
    Shares sum to one; one that eased the error has a negative share.

    Parameters
    ----------
    difference : float
        That difference.
    clusters : tuple of (int, float)
        Id and share of each cluster.
    features : tuple of float
        Share of each column.
    parts : tuple of Part
        What the clusters with the largest shares did, the largest first.
    """

    difference: float
    clusters: tuple[tuple[int, float], ...]
    features: tuple[float, ...]
    parts: tuple[Part, ...]

    def words(
        self,
        columns: Sequence[str] | None = None,
        scale: Sequence[float] | None = None,
        names: Mapping[int, str] | None = None,
    ) -> list[str]:
        """Return one half sentence for each part."""
        return [part.words(columns, scale, names) for part in self.parts]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "difference": self.difference,
            "clusters": [list(pair) for pair in self.clusters],
            "features": list(self.features),
            "parts": [dict(vars(part)) for part in self.parts],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Explanation:
        """Make an explanation of what `to_dict` returned."""
        made = {"parts": each_of(Part.from_dict, "parts")}
        return cls(**record_values(cls, plain, "the explanation", others=made))
