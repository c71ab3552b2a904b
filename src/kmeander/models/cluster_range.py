"""How many clusters a model may have: one number, or a range in which it follows the stream."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from kmeander.arguments import whole_number
from kmeander.exceptions import ArgumentError, argument, shown

# What `n_clusters` may be.
ClusterCount = int | tuple[int, int] | str

# The ends of "auto": one cluster says nothing, and of more than fifty nobody reads the names.
AUTO = (2, 50)


class ClusterRange(NamedTuple):
    """The fewest and the most clusters that a model may have."""

    low: int
    high: int

    @property
    def is_followed(self) -> bool:
        """Whether the number follows the stream."""
        return self.low < self.high

    def nearest(self, n_clusters: int) -> int:
        """Return the number within the range that is nearest to another."""
        return min(max(n_clusters, self.low), self.high)

    def words(self) -> str:
        """Return it as the command line takes it."""
        return f"{self.low}-{self.high}" if self.is_followed else f"{self.low}"


def checked_count(value: Any) -> tuple[ClusterCount, ClusterRange]:
    """Return what `n_clusters` is in its plain form, and the range that it means.

    Examples
    --------
    >>> checked_count(8), checked_count([2, 30])
    ((8, ClusterRange(low=8, high=8)), ((2, 30), ClusterRange(low=2, high=30)))
    >>> checked_count("auto")
    ('auto', ClusterRange(low=2, high=50))
    """
    if isinstance(value, str) and value == "auto":
        return value, ClusterRange(*AUTO)
    if isinstance(value, tuple | list):
        if len(value) != 2 or not all(map(_is_whole, value)):
            raise ArgumentError(
                f"{argument('n_clusters')} must be a number of clusters, two of them such as "
                f'(2, 30), or "auto", got {shown(value)}.'
            )
        low, high = int(value[0]), int(value[1])
        if low < 1:
            raise ArgumentError(
                f"{argument('n_clusters')} must begin with at least 1, got {shown(value)}. The "
                "first is the fewest clusters that there may be."
            )
        if low > high:
            raise ArgumentError(
                f"{argument('n_clusters')} must begin with the smaller number, got "
                f"{shown(value)}. Pass ({high}, {low})."
            )
        return (low, high), ClusterRange(low, high)
    if isinstance(value, str):
        raise ArgumentError(
            f"{argument('n_clusters')} must be a number of clusters, two of them such as (2, 30), "
            f'or "auto", got {shown(value)}.'
        )
    number = whole_number("n_clusters", value, at_least=1, meaning="the number of clusters K")
    return number, ClusterRange(number, number)


def fixed_count(value: Any) -> tuple[int, ClusterRange]:
    """Return a number of clusters that is given once and for all."""
    if isinstance(value, tuple | list | str):
        raise ArgumentError(
            f"{argument('n_clusters')} must be one number here, got {shown(value)}. Only "
            "ForgetfulKMeans and FSKM follow the number of clusters of a stream."
        )
    number = whole_number("n_clusters", value, at_least=1, meaning="the number of clusters K")
    return number, ClusterRange(number, number)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
