"""Batches that come as weighted means: nothing of mass, mean and error is lost on the way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import FSKM, PSKM, Batch, ForgetfulKMeans, InputError, Step
from kmeander.kmeans.coreset import Compressor, Coreset, lexicographic, merged
from kmeander.storage import checkpoint
from tests.strategies import COARSE, FINE, problems, tables
from tests.streams import INITS, drifting_stream

Array = NDArray[np.float64]


def compressed(points: Array, size: int, cuts: list[int]) -> Coreset:
    compressor = Compressor(size)
    for begin, end in pairwise([0, *sorted(cuts), len(points)]):
        compressor.add(points[begin:end])
    found = compressor.coreset()
    assert found is not None
    return found


def assert_stands_for(found: Coreset, points: Array, centroids: Array) -> None:
    """Weight, mean and error of any centroid are those of the rows."""
    assert found.n_rows == len(points)
    assert found.masses.sum() == pytest.approx(len(points), rel=1e-12)
    size = np.abs(points).max() + 1.0
    mean = found.masses @ found.means / len(points)
    np.testing.assert_allclose(mean, points.mean(axis=0), atol=1e-12 * size)
    for c in centroids:
        exact = ((points - c) ** 2).sum()
        summarised = (found.masses * ((found.means - c) ** 2).sum(axis=1)).sum() + found.within
        assert summarised == pytest.approx(exact, rel=1e-9, abs=1e-12 * size**2)


@given(
    problem=problems(),
    size=st.integers(1, 3),
    repeats=st.integers(1, 30),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)
def test_a_coreset_keeps_mass_mean_and_error_however_rows_come(
    problem: tuple[Array, Array, Array], size: int, repeats: int, cuts: list[int]
) -> None:
    """Compressed once, or again and again: there are up to sixteen rows for each mean, and more."""
    points, _, centroids = problem
    rows = np.concatenate([points + step for step in range(repeats)])
    found = compressed(rows, size, [cut for cut in cuts if cut <= len(rows)])
    assert len(found.means) <= size
    assert_stands_for(found, rows, centroids)


@given(table=tables(st.integers(1, 30), 2, FINE), cuts=st.lists(st.integers(0, 30), max_size=4))
def test_parts_are_merged_alike_in_any_order(table: Array, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(table)), len(table)]
    parts = [compressed(table[a:b], 4, []) for a, b in pairwise(edges) if b > a]
    whole, backwards = merged(parts, 4), merged(parts[::-1], 4)
    assert whole is not None and backwards is not None
    assert_stands_for(whole, table, table[:1])
    assert whole.means.tobytes() == backwards.means.tobytes()
    assert whole.masses.tobytes() == backwards.masses.tobytes()
    assert (whole.within, whole.n_rows) == (backwards.within, backwards.n_rows)


def test_few_rows_are_their_own_coreset_and_none_have_none() -> None:
    found = compressed(np.array([[3.0, 1.0], [2.0, 2.0]]), 2, [])
    assert (sorted(found.means.tolist()), found.masses.tolist()) == (
        [[2.0, 2.0], [3.0, 1.0]],
        [1.0, 1.0],
    )
    assert found.within == 0.0
    assert Compressor(5).coreset() is None
    with pytest.raises(InputError, match=r"size must be a whole number of at least 1, got 0\."):
        Compressor(0)


def test_float32_rows_are_compressed_as_their_float64_copies(rng: np.random.Generator) -> None:
    points = rng.normal(size=(500, 3)).astype(np.float32)
    narrow, wide = compressed(points, 7, []), compressed(points.astype(np.float64), 7, [])  # type: ignore[arg-type]
    assert narrow.means.tobytes() == wide.means.tobytes()
    assert narrow.within == wide.within


def test_memory_does_not_grow_with_the_rows(rng: np.random.Generator) -> None:
    compressor = Compressor(10)
    for _ in range(400):
        compressor.add(rng.normal(size=(50, 2)))
        held = compressor._n_waiting + sum(len(part.means) for part in compressor._means)
        assert held <= 2 * 16 * 10
    found = compressor.coreset()
    assert found is not None and found.n_rows == 20_000


@given(table=tables(st.integers(1, 30), 3, COARSE))
def test_rows_are_ordered_as_lists_are(table: Array) -> None:
    ordered = table[lexicographic(table)]
    assert ordered.tolist() == sorted(table.tolist())


def test_a_batch_of_means_is_learnt_as_its_weighted_points() -> None:
    """But for the errors, which include what the means hide, and what the Step says.

    Means do not tell how points vary, so that clusters may be followed to other rows.
    """
    for model in (FSKM(4, random_state=0), PSKM(4, random_state=0)):
        twin = type(model)(4, random_state=0)
        for index, points in enumerate(drifting_stream(5, n_points=300)):
            found = compressed(points, 50, [])
            step = model.step(found.batch(index))
            plain = twin.step(Batch(index, found.means, found.masses))
            assert step.centroids is not None and plain.centroids is not None
            assert sorted(step.centroids.tolist()) == sorted(plain.centroids.tolist())
            assert (step.n_points, step.n_means) == (300, 50)
            assert (plain.n_points, plain.n_means) == (50, None)
            assert step.n_summarised == step.n_batches == plain.n_batches
            assert plain.n_summarised == 0
            assert (step.centroids[model.labels] == plain.centroids[twin.labels]).all()


@pytest.mark.parametrize("init", INITS)
def test_errors_of_a_batch_of_means_are_those_of_its_rows(init: str) -> None:
    """Where clusters lie apart no mean is shared, and everything is exact."""
    rng = np.random.default_rng(4)
    centres = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    exact, model = (FSKM(3, init=init, rho=0.8, random_state=0) for _ in range(2))
    for index in range(6):
        points = np.repeat(centres + 5 * index, 200, axis=0) + rng.normal(size=(600, 2))
        expected = exact.step(Batch(index, points))
        step = model.step(compressed(points, 60, [100, 250]).batch(index))
        for name in ("surrogate_error", "initial_error", "batch_error", "prequential_error"):
            if name == "initial_error" and index == 0:
                continue  # drawn from other points
            value = getattr(expected, name)
            assert getattr(step, name) == (None if value is None else pytest.approx(value))
        assert step.mass == pytest.approx(expected.mass)
        assert step.centroids is not None and expected.centroids is not None
        order, other = (np.lexsort(s.centroids.T) for s in (step, expected))  # type: ignore[union-attr]
        np.testing.assert_allclose(step.centroids[order], expected.centroids[other], atol=1e-9)


def test_means_that_are_too_few_wait_with_all_that_they_hide() -> None:
    model = FSKM(3, random_state=0)
    first = model.step(Batch.of_means(0, [[0.0]], [10.0], within=4.0, n_rows=10))
    assert (first.waiting, first.n_points, first.n_means, first.mass) == (True, 10, 1, 10.0)
    copy = FSKM.from_state(checkpoint.from_bytes(checkpoint.to_bytes(model.state()), "memory"))
    step = copy.step(Batch(1, [[1.0], [2.0]]))
    assert (step.waiting, step.n_points, step.n_means, step.mass) == (False, 2, None, 12.0)
    assert step.surrogate_error == pytest.approx(4.0 / 12.0)
    assert copy.labels is not None and len(copy.labels) == 2


def test_summaries_of_summaries_stay_within_the_cap() -> None:
    model = FSKM(4, rho=0.95, max_points=300, random_state=0)
    for index, points in enumerate(drifting_stream(30, n_points=400)):
        step = model.step(compressed(points, 80, []).batch(index))
    assert model.window.n_points <= 300
    assert step.mass == pytest.approx(sum(400 * 0.95**age for age in range(30)), rel=1e-9)


def test_steps_of_means_are_resumed_bit_for_bit() -> None:
    stream = [compressed(points, 40, []) for points in drifting_stream(10, n_points=200)]
    undisturbed = FSKM(4, rho=0.7, random_state=1)
    steps = [undisturbed.step(found.batch(index)) for index, found in enumerate(stream)]
    model = FSKM(4, rho=0.7, random_state=1)
    for index, found in enumerate(stream):
        model = FSKM.from_state(checkpoint.from_bytes(checkpoint.to_bytes(model.state()), "m"))
        assert model.step(found.batch(index)) == steps[index]
    assert Step.from_dict(steps[-1].to_dict()) == steps[-1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"within": -1.0, "n_rows": 3}, "within must be a finite number of at least 0: the "
         "squared distances of rows to their means, got -1.0."),
        ({"within": 0.0, "n_rows": 0}, "n_rows must be a whole number of at least 1, got 0. It is "
         "the rows behind the means."),
    ],
)  # fmt: skip
def test_bad_summaries_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Batch.of_means(0, [[1.0]], [2.0], **values)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_an_estimator_goes_on_from_means() -> None:
    """What a stream of means has taught serves as any model does."""
    model = ForgetfulKMeans(4, random_state=0).partial_fit(drifting_stream(1)[0])
    model._model.step(compressed(drifting_stream(1)[0], 30, []).batch(1))
    assert len(model.partial_fit(drifting_stream(1)[0]).labels_) == 60
    assert model.step_.n_batches == 3


def test_weights_of_rows_count_in_a_coreset(rng: np.random.Generator) -> None:
    """A row of weight 3 is as good as three rows: masses, means and what they hide add up."""
    points = rng.normal(size=(400, 3))
    weights = rng.integers(1, 4, size=400).astype(float)
    compressor = Compressor(20)
    for begin in range(0, 400, 150):
        compressor.add(points[begin : begin + 150], weights[begin : begin + 150])
    found = compressor.coreset()
    assert found is not None
    assert found.masses.sum() == weights.sum()
    assert found.n_rows == 400
    np.testing.assert_allclose(found.masses @ found.means, weights @ points)
    total = weights @ (points**2).sum(axis=1)
    np.testing.assert_allclose(found.masses @ (found.means**2).sum(axis=1) + found.within, total)
