"""Checks of single arguments: each returns the value it accepts or says what to pass instead."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from kmeander.exceptions import ArgumentError, argument, shown

if TYPE_CHECKING:
    RandomState = int | np.random.Generator | np.random.RandomState | None

THREADS_VARIABLE = "KMEANDER_NUM_THREADS"


def whole_number(
    name: str, value: Any, *, at_least: int, meaning: str, at_most: int = 2**31 - 1
) -> int:
    """Return `value` as an int of at least `at_least`."""
    if type(value) is int and at_least <= value <= at_most:  # at once, without asking for its kind
        return value
    if not isinstance(value, bool) and isinstance(value, Integral):
        number = int(value)
        if at_least <= number <= at_most:
            return number
        if number > at_most:
            raise ArgumentError(
                f"{argument(name)} must be at most {at_most}, got {number}. It is {meaning}."
            )
    raise ArgumentError(
        f"{argument(name)} must be a whole number of at least {at_least}, got {shown(value)}. "
        f"It is {meaning}."
    )


def finite_number(name: str, value: Any, *, rule: str, fits: bool | None = None) -> float:
    """Return `value` as a finite float; `fits` is the verdict of the caller's own `rule`."""
    if is_finite(value) and fits is not False:
        return float(value)
    raise ArgumentError(f"{argument(name)} must be {rule}, got {shown(value)}.")


def is_finite(value: Any) -> bool:
    """Whether `value` is a finite real number (a bool is not)."""
    if type(value) is float:
        return math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def positive_number(name: str, value: Any) -> float:
    """Return `value` as a float above 0."""
    return finite_number(
        name, value, rule="a finite number above 0", fits=is_finite(value) and value > 0
    )


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the words `allowed`."""
    words = tuple(allowed)
    if isinstance(value, str) and value in words:
        return value
    raise ArgumentError(
        f"{argument(name)} must be one of {', '.join(map(repr, words))}, got {shown(value)}."
    )


def list_of_names(name: str, value: Any) -> None:
    """Refuse a text where a list of names should be: it would be taken letter by letter."""
    if isinstance(value, str):
        meant = json.dumps([part.strip() for part in value.split(",")], ensure_ascii=False)
        raise ArgumentError(
            f"{argument(name)} must be a list of names, got {shown(value)}: pass {meant}."
        )


def share_kept(value: Any, *, below_one: bool = False) -> float:
    """Return `value` as a forgetting parameter rho."""
    if is_finite(value) and 0 < value <= 1 and not (below_one and value == 1):
        return float(value)
    interval = "(0, 1)" if below_one else "(0, 1]"
    raise ArgumentError(
        f"{argument('rho')} must lie in {interval}, got {shown(value)}. It is the share of a "
        "batch's weight kept when the next one arrives; "
        f"{argument('batches', ..., of='rho_for_half_life')} picks it from the number of batches "
        "after which half is forgotten."
    )


def thread_count(n_threads: Any) -> int:
    """Return the number of threads to use; None means the environment's, or all cores."""
    name = "n_threads"
    if n_threads is None:
        asked = os.environ.get(THREADS_VARIABLE, "").strip()
        if not asked:
            return (
                len(os.sched_getaffinity(0))
                if hasattr(os, "sched_getaffinity")
                else (os.cpu_count() or 1)
            )
        name = THREADS_VARIABLE
        n_threads = int(asked) if asked.isdecimal() else asked
    return whole_number(
        name, n_threads, at_least=1, meaning="the number of threads; leave it out for all cores"
    )


def seed_from(random_state: RandomState) -> int:
    """Return the seed itself, or one drawn from a generator or from the system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return whole_number(
        "random_state",
        random_state,
        at_least=0,
        at_most=2**128,
        meaning="a seed; a numpy Generator, a RandomState or None also serve",
    )


def truth(name: str, value: Any) -> bool:
    """Return `value` if it is a bool."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ArgumentError(f"{argument(name)} must be True or False, got {shown(value)}.")


def generator_for(seed: int, *keys: int) -> np.random.Generator:
    """Return the generator of a batch and a purpose: it depends on nothing that happened before.

    A resumed stream and an undisturbed one therefore draw the same numbers.
    """
    # What numpy.random.default_rng makes, without asking what it was given.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=keys)))
