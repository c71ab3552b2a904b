"""One estimator, several threads: no batch is lost, whoever comes first."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sklearn.base import clone

from kmeander import ForgetfulKMeans, PrivilegedKMeans
from kmeander.estimators.turns import turn_of

N_THREADS, N_BATCHES, N_ROWS = 4, 10, 200


@pytest.fixture(autouse=True)
def eager_threads() -> Iterator[None]:
    """Python changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(learn: Callable[[int], object]) -> None:
    """Call `learn` in several threads, for some batches each, all beginning at the same time."""
    start = threading.Barrier(N_THREADS)

    def work(thread: int) -> None:
        start.wait()
        for batch in range(N_BATCHES):
            learn(thread * N_BATCHES + batch)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def batches() -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N_THREADS * N_BATCHES, N_ROWS, 3))


def test_partial_fit_from_several_threads_loses_no_batch() -> None:
    stream = batches()
    model = ForgetfulKMeans(5, rho=1.0, max_batches=100, forgetting="fixed", random_state=0)
    at_once(lambda number: model.partial_fit(stream[number]))
    assert model.n_steps_ == N_THREADS * N_BATCHES
    assert model.cluster_weights_.sum() == N_THREADS * N_BATCHES * N_ROWS
    # In whatever order they came, each came once.
    learned = np.concatenate([batch.points for batch in model._model.window.batches])
    assert np.array_equal(np.sort(learned, axis=0), np.sort(stream.reshape(-1, 3), axis=0))


def test_drifts_said_from_several_threads_are_all_counted() -> None:
    stream = batches()
    model = PrivilegedKMeans(5, random_state=0)
    at_once(lambda number: model.partial_fit(stream[number], drift=number % 2 == 1))
    assert model.n_steps_ == N_THREADS * N_BATCHES
    assert model._model.concept == N_THREADS * N_BATCHES // 2


def test_rows_from_several_threads_all_wait_or_are_learned() -> None:
    river = pytest.importorskip("kmeander.river")
    model = river.ForgetfulKMeans(n_clusters=3, batch_size=7, seed=0)
    stream = batches()

    def learn(number: int) -> None:
        for row in stream[number, :20]:
            model.learn_one(dict(enumerate(row.tolist())))

    at_once(learn)
    assert 7 * model.step.index + 7 + model.n_waiting == N_THREADS * N_BATCHES * 20


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # which is what is tested
def test_a_fork_while_a_thread_learns_leaves_the_child_free_to_learn() -> None:
    stream = batches()
    model = ForgetfulKMeans(5, random_state=0).partial_fit(stream[0])
    with turn_of(model):  # as a thread does that is in the kernel
        forked = threading.Thread(target=_learn_in_child, args=(model, stream[1]))
        forked.start()
        forked.join(60)
    assert not forked.is_alive()


def _learn_in_child(model: ForgetfulKMeans, points: np.ndarray) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if model.partial_fit(points).n_steps_ == 2 else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child waits for a thread that it does not have")


def test_copies_wait_for_nobody() -> None:
    model = ForgetfulKMeans(5, random_state=0).partial_fit(batches()[0])
    copies = [clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    turns = {id(turn_of(one)) for one in (model, *copies)}
    assert len(turns) == 4
