"""Whole streams of any kind: kmeander's answer is plain Lloyd's, batch for batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import FSKM, Batch, Step, max_batches_for
from kmeander.arrays import Points
from tests import naive
from tests.kernel.test_kernel import without_bounds
from tests.streams import INITS, rows_of

Array = NDArray[np.float64]

# Where something was decided by less than this, rounding may have decided it.
CLEAR = 1e-9
CLOSE: Any = {"rtol": 1e-10, "atol": 1e-10}


@dataclass(frozen=True)
class Stream:
    n_clusters: int
    rho: float
    seed: int
    batches: list[Batch]


@st.composite
def streams(draw: st.DrawFn, max_clusters: int, max_features: int, max_rows: int) -> Stream:
    """Batches of changing size and kind, the first with as many distinct points as clusters."""
    k = draw(st.integers(1, max_clusters))
    d = draw(st.integers(1, max_features))
    # Hypothesis chooses what happens; a generator fills in the numbers.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = rng.normal(scale=3.0, size=(k, d))
    batches = []
    for index in range(draw(st.integers(2, 7))):
        if draw(st.sampled_from(["drift", "stay", "stay"])) == "drift":
            centres = centres + rng.normal(scale=2.0, size=(k, d))
        n = draw(st.integers(1, max_rows))
        rows: Array = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
        kind = draw(st.sampled_from(["fine", "fine", "ties", "twins", "constant"]))
        if kind == "ties":
            rows = np.round(2 * rows) / 2
        elif kind == "twins":
            rows = rows[rng.integers(1 + n // 3, size=n)]
        elif kind == "constant":
            rows = np.repeat(rows[:1], n, axis=0)
        if index == 0:
            distinct = rng.permutation(np.arange(float(k * d))).reshape(k, d) - d
            rows = np.concatenate([distinct, rows])
        points: Points = rows.astype(np.float32) if draw(st.booleans()) else rows
        weights = None
        if draw(st.booleans()):
            weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=len(rows))
            weights[: k if index == 0 else 1] = 1.0
        elapsed = draw(st.sampled_from([1.0, 1.0, 0.5, 2.5, 64.0]))
        batches.append(Batch(index, points, weights, elapsed))
    rho = draw(st.sampled_from([0.3, 0.6, 0.9]))
    return Stream(k, rho, draw(st.integers(0, 1000)), batches)


def weights_of(batch: Batch) -> NDArray[np.float64]:
    return np.ones(batch.n_points) if batch.weights is None else batch.weights


@pytest.mark.parametrize("init", INITS)
@given(stream=streams(max_clusters=4, max_features=3, max_rows=14))
def test_any_stream_equals_the_plain_loops(init: str, stream: Stream) -> None:
    """The plain loops go their own way, and are set right only where rounding decided."""
    model = FSKM(stream.n_clusters, init=init, rho=stream.rho, random_state=stream.seed)
    oldest = max_batches_for(stream.rho)
    plain = naive.FSKM(stream.n_clusters, init, stream.rho, oldest, stream.seed)
    for batch in stream.batches:
        before = model.centroids
        expected = plain.step(batch.points, weights_of(batch), batch.elapsed)
        step = model.step(batch)
        partition = model.window.partition
        assert partition is not None and step.centroids is not None and step.masses is not None
        labels = partition.labels.tolist()
        clear = expected.margin > CLEAR
        event(f"clear: {clear}, reseeded: {bool(step.reseeded)}")
        if clear:
            order = order_of(step, expected)
            event(f"in other rows: {(order != np.arange(len(order))).any()}")
            assert order[labels].tolist() == expected.labels
            np.testing.assert_allclose(step.centroids, centroids_of(expected)[order], **CLOSE)
            np.testing.assert_allclose(step.masses, np.array(expected.masses)[order], **CLOSE)
            assert step.surrogate_error == pytest.approx(expected.error, rel=1e-10, abs=1e-20)
            assert step.initial_error == pytest.approx(expected.errors[0], rel=1e-10, abs=1e-20)
            assert bool(step.reseeded) == expected.reseeded
        assert_fixed_point(step, labels, plain)
        newest = (batch.points, weights_of(batch))
        assert_error(step.batch_error, newest, step.centroids)
        if before is not None:
            assert_error(step.prequential_error, newest, before)
        plain.take(step.centroids if not clear else centroids_of(expected)[order].tolist(), labels)


def centroids_of(expected: Any) -> Array:
    return np.array(expected.centroids, dtype=np.float64)


def order_of(step: Step, expected: Any) -> NDArray[np.int64]:
    """In which rows the model has the clusters of the plain loops; twins are told by their mass."""
    assert step.centroids is not None and step.masses is not None
    return rows_of(
        np.column_stack([step.centroids, step.masses]),
        np.column_stack([centroids_of(expected), expected.masses]),
    )


def assert_error(
    error: float | None, newest: tuple[Points, NDArray[np.float64]], centroids: Any
) -> None:
    points, weights = newest
    expected = naive.kmeans_error(points, centroids, weights)
    assert error == pytest.approx(expected, rel=1e-10, abs=1e-20)


def assert_fixed_point(step: Step, labels: list[int], plain: naive.FSKM) -> None:
    """Every label is that of a nearest centroid, every centroid the mean of its points."""
    assert step.converged
    assert step.centroids is not None and step.masses is not None
    points = [x for batch in plain.window for x in batch.points]
    weights = [plain.rho**batch.age * w for batch in plain.window for w in batch.weights]
    for x, label in zip(points, labels, strict=True):
        distances = [naive.squared_distance(x, c) for c in step.centroids]
        assert distances[label] <= min(distances) * (1 + CLEAR) + 1e-25
    for k in range(len(step.centroids)):
        members = [i for i, label in enumerate(labels) if label == k and weights[i] > 0]
        mass = sum(weights[i] for i in members)
        assert step.masses[k] == pytest.approx(mass, rel=1e-10)
        if members:
            mean = np.average(
                [np.asarray(points[i], dtype=np.float64) for i in members],
                axis=0,
                weights=[weights[i] for i in members],
            )
            np.testing.assert_allclose(step.centroids[k], mean, **CLOSE)
    expected = naive.kmeans_error(points, step.centroids, weights)
    assert step.surrogate_error == pytest.approx(expected, rel=1e-10, abs=1e-20)


@pytest.mark.parametrize("init", INITS)
@given(stream=streams(max_clusters=20, max_features=9, max_rows=200))
def test_what_is_carried_changes_no_bit_of_any_stream(init: str, stream: Stream) -> None:
    """A model that has to measure its window anew at every batch says the same."""
    model = FSKM(stream.n_clusters, init=init, rho=stream.rho, random_state=stream.seed)
    for batch in stream.batches:
        forgetful = FSKM.from_state(without_bounds(model.state()))
        step, measured = model.step(batch), forgetful.step(batch)
        assert step.to_dict() == {**measured.to_dict(), "n_distances": step.n_distances}
        one, other = model.window.partition, forgetful.window.partition
        assert one is not None and other is not None
        assert one.labels.tolist() == other.labels.tolist()


def test_rounding_does_not_accumulate_over_ten_thousand_batches() -> None:
    """Far from zero, with clusters that wander, and sums that are carried all the way.

    The model that has learned 10,000 batches has, to the bit, what one has that is given its last
    window and adds everything up anew; and that is what the plain sums say.
    """
    rng = np.random.default_rng(0)
    model = FSKM(3, init="previous", rho=0.7, max_batches=5, n_threads=1, random_state=0)
    centres = 1e4 + rng.normal(scale=5.0, size=(3, 2))
    n_batches = 10_000
    for index in range(n_batches):
        centres += rng.normal(scale=0.05, size=centres.shape)
        members = rng.integers(3, size=12)
        weights = rng.random(12) + 0.1
        batch = Batch(index, centres[members] + rng.normal(size=(12, 2)), weights)
        if index % 500 and index < n_batches - 3:
            model.step(batch)
            continue
        forgetful = FSKM.from_state(without_bounds(model.state()))
        step, measured = model.step(batch), forgetful.step(batch)
        assert step.to_dict() == {**measured.to_dict(), "n_distances": step.n_distances}
        assert_sums_are_plain(model, step)


def assert_sums_are_plain(model: FSKM, step: Step) -> None:
    window = model.window
    assert window.partition is not None and window.partition.sums is not None
    assert step.centroids is not None and step.surrogate_error is not None
    for i, (batch, labels) in enumerate(zip(window.batches, window.labels, strict=True)):
        for k in range(model.n_clusters):
            mine = labels == k
            assert batch.weights is not None
            total = (batch.weights[mine, np.newaxis] * batch.points[mine]).sum(axis=0)
            np.testing.assert_allclose(window.partition.sums.sums[i, k], total, rtol=1e-14)
    points = np.concatenate([batch.points for batch in window.batches])
    weights = np.concatenate(
        [
            rho * weights_of(Batch(0, batch.points, batch.weights))
            for rho, batch in zip(window.decay, window.batches, strict=True)
        ]
    )
    labels = window.partition.labels
    for k in range(model.n_clusters):
        mine = labels == k
        if weights[mine].sum() > 0:
            mean = np.average(points[mine], axis=0, weights=weights[mine])
            np.testing.assert_allclose(step.centroids[k], mean, rtol=1e-14)
    expected = naive.kmeans_error(points, step.centroids, weights)
    assert step.surrogate_error == pytest.approx(expected, rel=1e-9)
