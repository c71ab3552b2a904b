"""How a batch's weight decays with its age: rho, from how long batches should count."""

from __future__ import annotations

import math
from typing import NamedTuple

from kmeander.arguments import is_finite, positive_number, share_kept
from kmeander.exceptions import ArgumentError, argument

# rho**T computed as 0.010000000000000002 still counts as 0.01: about a thousand roundings.
AGE_ROUNDING = 1e-12

# What counts as no difference in the paper: of an error, and of a batch's weight.
NEGLIGIBLE = 0.01


class Tail(NamedTuple):
    """The slow part of a memory with two speeds.

    A batch aged t weighs ``(1 - share) * rho**t + share * slow**t``.
    """

    share: float
    slow: float

    def weight(self, rho: float, age: float) -> float:
        """Return what a batch of that age weighs, beside one of age 0.

        Examples
        --------
        >>> [round(TAIL.weight(FAST, age), 4) for age in (0, 1, 2, 10)]
        [1.0, 0.3195, 0.1144, 0.018]
        """
        return (1 - self.share) * float(rho**age) + self.share * float(self.slow**age)


# Where a memory with two speeds begins: nearly all of a batch's weight fades within three batches,
# the rest within sixty.
FAST, TAIL = 0.3, Tail(share=0.03, slow=0.95)
# Age at which a batch leaves: it weighs a thousandth then.
LONGEST_TAIL = 64


def rho_for_drift(
    epsilon: float, stable_for: float, m: float = 2.0, negligible: float = NEGLIGIBLE
) -> float:
    """Return the rho that forgets a drift within a fraction of the time between drifts.

    The paper's heuristic: ``epsilon * rho**(stable_for / m) = negligible``.

    Parameters
    ----------
    epsilon : float
        Size of the drifts: the error grows to ``1 + epsilon`` times its value at one.
    stable_for : float
        Batches between two drifts, on average (tau in the paper).
    m : float, default=2.0
        The difference becomes negligible within ``stable_for / m`` batches.
    negligible : float, default=0.01
        What counts as no difference.

    Examples
    --------
    >>> round(rho_for_drift(epsilon=0.5, stable_for=10), 3)
    0.457
    """
    positive_number("epsilon", epsilon)
    positive_number("stable_for", stable_for)
    positive_number("m", m)
    positive_number("negligible", negligible)
    if epsilon <= negligible:
        raise ArgumentError(
            f"{argument('epsilon')} must exceed negligible={negligible:g}, got {epsilon!r}. "
            "A smaller drift needs no forgetting: use rho close to 1."
        )
    return _between_zero_and_one(
        (negligible / epsilon) ** (m / stable_for),
        f"{argument('epsilon', epsilon)}, {argument('stable_for', stable_for)} and "
        f"{argument('m', m)}",
        "stable_for",
    )


def rho_for_half_life(batches: float) -> float:
    """Return the rho with which a batch weighs half after that many batches.

    Examples
    --------
    >>> rho_for_half_life(1)
    0.5
    """
    return rho_after_half(batches, "batches")


def rho_after_half(batches: float, name: str) -> float:
    """Do what `rho_for_half_life` does; `name` is what messages call the argument.

    Examples
    --------
    >>> rho_after_half(-1, "half_life")
    Traceback (most recent call last):
        ...
    kmeander.exceptions.ArgumentError: half_life must be a finite number above 0, got -1. It is \
the number of batches after which half is forgotten.
    """
    if not (is_finite(batches) and batches > 0):
        raise ArgumentError(
            f"{argument(name)} must be a finite number above 0, got {batches!r}. It is the number "
            "of batches after which half is forgotten."
        )
    return _between_zero_and_one(0.5 ** (1.0 / batches), argument(name, batches), name)


def max_batches_for(rho: float, negligible: float = NEGLIGIBLE) -> int:
    """Return T_max, the smallest T with ``rho**T <= negligible``.

    Examples
    --------
    >>> max_batches_for(0.5)
    7
    >>> max_batches_for(rho_for_drift(epsilon=1.0, stable_for=10))
    5
    """
    rho = share_kept(rho, below_one=True)
    if not (is_finite(negligible) and 0 < negligible < 1):
        raise ArgumentError(
            f"negligible must lie in (0, 1), got {negligible!r}. It is the weight at which a "
            "batch is let go."
        )
    return max(1, math.ceil(math.log(negligible) / math.log(rho) * (1 - AGE_ROUNDING)))


def _between_zero_and_one(rho: float, arguments: str, name: str) -> float:
    """Return `rho`, or say to which side the argument `name` must go."""
    if 0 < rho < 1:
        return float(rho)
    raise ArgumentError(
        f"{arguments} would need a rho of {rho:g}. No rho strictly between 0 and 1 forgets "
        f"{'so fast' if rho == 0 else 'so slowly'}: choose a {'larger' if rho == 0 else 'smaller'} "
        f"{argument(name)}."
    )
