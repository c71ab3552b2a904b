"""Ctrl-C ends a call of the kernel soon, whichever loop it is in, and changes nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from kmeander import ForgetfulKMeans
from kmeander.storage import checkpoint

SOON = 0.5  # seconds of processor time, which others on the machine do not lengthen
MOMENTS = (0.1, 0.3, 0.5, 0.7)  # shares of the least time of two: a first call takes longer


class StoppedError(Exception):
    """What the handler raises, as that of Ctrl-C raises KeyboardInterrupt."""


@pytest.fixture
def stop_after() -> Iterator[Callable[[float], None]]:
    """Send a signal after so much work; `StoppedError` says how late it was."""
    due = 0.0

    def handle(number: int, frame: FrameType | None) -> None:
        raise StoppedError(time.process_time() - due)

    def start(seconds: float) -> None:
        nonlocal due
        due = time.process_time() + seconds
        signal.setitimer(signal.ITIMER_PROF, seconds)

    before = signal.signal(signal.SIGPROF, handle)
    yield start
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def learn_first(n_threads: int) -> Callable[[], ForgetfulKMeans]:
    points = np.random.default_rng(0).normal(size=(150_000, 16))
    return lambda: ForgetfulKMeans(
        60, tol=0.5, random_state=0, n_threads=n_threads
    ).partial_fit(points)  # fmt: skip


def learn_next(**options: Any) -> Callable[[], ForgetfulKMeans]:
    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(20, tol=0.5, random_state=0, n_threads=1, **options)
    model.partial_fit(rng.normal(size=(150_000, 8)))
    following = rng.normal(size=(150_000, 8)) + 0.2
    saved = checkpoint.to_bytes(model._model.state())
    known = model._model.learned

    def learn() -> ForgetfulKMeans:
        model._model.learned = known
        assert checkpoint.to_bytes(model._model.state()) == saved  # as it was before
        return model.partial_fit(following)

    return learn


LOOPS: dict[str, Callable[[], Callable[[], object]]] = {
    "seeding and Lloyd": lambda: learn_first(1),
    "with threads": lambda: learn_first(2),
    "window, swaps and tests": learn_next,
    "summaries": lambda: learn_next(rho=0.99, max_points=10_000),
}


def seconds_of(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_signal_is_heeded_within_half_a_second(
    loop: Callable[[], Callable[[], object]], stop_after: Callable[[float], None]
) -> None:
    work = loop()
    whole = min(seconds_of(work), seconds_of(work))
    for moment in MOMENTS:
        stop_after(moment * whole)
        with pytest.raises(StoppedError) as caught:
            work()
        assert caught.value.args[0] < SOON
    work()  # as if nothing had been
