"""Long memory: what summaries keep exactly, how few they are, and how little they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import (
    FSKM,
    Batch,
    ForgetfulKMeans,
    Step,
    _kernel,
    surrogate_error,
    weighted_lloyd,
)
from kmeander.kmeans.lloyd import Limits, _mean_variance, fit_window
from kmeander.kmeans.window import Remembered, Summary, Window
from kmeander.kmeans.window_coreset import summarise
from kmeander.storage import checkpoint
from tests import naive
from tests.strategies import COARSE, FINE, problems, tables
from tests.streams import INITS, drifting_stream, rows_of

Array = NDArray[np.float64]


def kernel_summaries(
    points: Array, weights: Array | None, n_summaries: int
) -> tuple[Array, Array, float]:
    means, masses = np.empty((n_summaries, points.shape[1])), np.empty(n_summaries)
    n_found, within = _kernel.summarise(points, weights, means, masses)
    return means[:n_found], masses[:n_found], within


@given(problem=problems(), n_summaries=st.integers(1, 16))
def test_the_kernel_cuts_as_the_plain_loops_do(
    problem: tuple[Array, Array, Array], n_summaries: int
) -> None:
    """And every summary is the mean of its rows, with their weight and their scatter."""
    points, weights, _ = problem
    groups, margin = naive.summaries(points, weights, n_summaries)
    assume(margin > 1e-9)
    means, masses, within = kernel_summaries(points, weights, n_summaries)
    expected = [naive.mean_of(points, weights, rows) for rows in groups]
    np.testing.assert_allclose(means, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(masses, [weights[rows].sum() for rows in groups], rtol=1e-14)
    scatter = sum(
        weights[i] * naive.squared_distance(points[i], mean)
        for rows, mean in zip(groups, expected, strict=True)
        for i in rows
    )
    assert within == pytest.approx(scatter, rel=1e-10, abs=1e-18)


@given(problem=problems(), n_summaries=st.integers(1, 16))
def test_summaries_add_the_same_to_the_error_of_any_centroid(
    problem: tuple[Array, Array, Array], n_summaries: int
) -> None:
    """Weight, mean and within-error are those of the rows, however the cuts fall."""
    points, weights, centroids = problem
    means, masses, within = kernel_summaries(points, weights, n_summaries)
    assert 0 < len(means) <= n_summaries
    assert (masses > 0).all()
    assert masses.sum() == pytest.approx(weights.sum(), rel=1e-13)
    for c in centroids:
        exact = (weights * ((points - c) ** 2).sum(axis=1)).sum()
        summarised = (masses * ((means - c) ** 2).sum(axis=1)).sum() + within
        assert summarised == pytest.approx(exact, rel=1e-10)


def test_equal_rows_become_one_whatever_their_number_and_values() -> None:
    points = np.repeat([[1e9 + 0.1, -3.7], [0.3, 1e-9]], [5, 7], axis=0)
    means, masses, within = kernel_summaries(points, None, 8)
    assert sorted(map(tuple, means.tolist())) == sorted({tuple(row) for row in points.tolist()})
    assert (sorted(masses.tolist()), within) == ([5.0, 7.0], 0.0)


def test_float32_rows_give_the_summaries_of_their_float64_copies(rng: np.random.Generator) -> None:
    points = rng.normal(size=(50, 3)).astype(np.float32)
    narrow = kernel_summaries(points, None, 20)  # type: ignore[arg-type]
    wide = kernel_summaries(points.astype(np.float64), None, 20)
    assert [np.asarray(a).tobytes() for a in narrow] == [np.asarray(a).tobytes() for a in wide]


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, Array, int]:
    """A partitioned window of several batches, the centroids, and a cap on its points."""
    values = draw(st.sampled_from([COARSE, FINE]))
    columns = draw(st.integers(1, 3))
    window = Window(draw(st.floats(0.3, 1.0)))
    for _ in range(draw(st.integers(1, 6))):
        points = draw(tables(st.integers(1, 12), columns, values))
        weights = None
        if draw(st.booleans()):
            drawn = draw(st.lists(st.integers(0, 3), min_size=12, max_size=12))
            weights = np.array(drawn[: len(points)], dtype=np.float64)
            weights[0] += 1
        elapsed = draw(st.sampled_from([0.5, 1.0, 2.0]))
        window = window.aged(elapsed, np.inf, None).joined_by(points, weights)
    centroids = draw(tables(st.integers(1, 4), columns, values))
    fit = fit_window(window, centroids, Limits())
    return fit.window, fit.centroids, draw(st.integers(1, 40))


def decayed_rows(window: Window) -> tuple[Array, Array]:
    points = np.concatenate([batch.points for batch in window.batches]).astype(np.float64)
    weights = [
        decay * (np.ones(len(batch.points)) if batch.weights is None else batch.weights)
        for decay, batch in zip(window.decay, window.batches, strict=True)
    ]
    return points, np.concatenate(weights)


@given(drawn=windows(), oldest_age=st.sampled_from([np.inf, 8.0]))
def test_a_window_keeps_mass_mean_and_error_to_rounding(
    drawn: tuple[Window, Array, int], oldest_age: float
) -> None:
    window, centroids, max_points = drawn
    found = summarise(window, max_points, centroids, Limits(), oldest_age=oldest_age).window
    assert found.n_points <= max_points or found is window
    assert found.n_batches == window.n_batches
    assert list(found.ages) == sorted(found.ages, reverse=True)
    assert found.ages[-1] == window.ages[-1]
    points, weights = decayed_rows(window)
    means, masses = decayed_rows(found)
    assert found.mass == pytest.approx(window.mass, rel=1e-12)
    size = np.abs(points).max() + 1.0
    np.testing.assert_allclose(
        masses @ means / masses.sum(), weights @ points / weights.sum(), atol=1e-12 * size
    )
    for c in (*centroids, points[0]):
        exact = (weights * ((points - c) ** 2).sum(axis=1)).sum()
        summarised = (masses * ((means - c) ** 2).sum(axis=1)).sum() + found.within
        assert summarised == pytest.approx(exact, rel=1e-9)
    assert _mean_variance(found) == pytest.approx(_mean_variance(window), rel=1e-9, abs=1e-15)


@given(drawn=windows())
def test_the_partition_of_a_summarised_window_is_that_of_a_full_pass(
    drawn: tuple[Window, Array, int],
) -> None:
    """So are its sums, and Lloyd goes on from it as from nothing known."""
    window, centroids, max_points = drawn
    summarised = summarise(window, max_points, centroids, Limits())
    found = summarised.window
    assert found.partition is not None
    bare = Window(found.rho, found.batches, found.ages)
    fresh = fit_window(bare, centroids, Limits(), only_assign=True).window.partition
    assert fresh is not None
    assert found.partition.labels.tolist() == fresh.labels.tolist()
    if found.partition.sums is not None:
        assert fresh.sums is not None
        for name in ("masses", "sums", "scatter"):
            known, expected = getattr(found.partition.sums, name), getattr(fresh.sums, name)
            assert known.tobytes() == expected.tobytes()
    later = centroids + 0.25
    carried = fit_window(found, later, Limits())
    blank = fit_window(bare, later, Limits())
    assert carried.window.partition is not None and blank.window.partition is not None
    labels = carried.window.partition.labels.tolist()
    assert labels == blank.window.partition.labels.tolist()
    assert carried.centroids.tobytes() == blank.centroids.tobytes()


def test_clusters_that_lie_apart_are_never_mixed(rng: np.random.Generator) -> None:
    """So at the present centroids the error is that of the points."""
    window = Window(0.9)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    for _ in range(10):
        points = centres.repeat(20, axis=0) + rng.normal(size=(80, 2))
        window = window.aged(1.0, 99, None).joined_by(points, None)
    fit = fit_window(window, centres, Limits())
    found = summarise(fit.window, 80, fit.centroids, Limits()).window
    after = fit_window(found, fit.centroids, Limits())
    assert found.n_points <= 80
    assert after.initial_error == pytest.approx(fit.error, rel=1e-12)
    np.testing.assert_allclose(after.masses, fit.masses, rtol=1e-12)


def test_points_end_up_weighing_about_the_same(rng: np.random.Generator) -> None:
    """Decay alone would make the oldest weigh 0.9**43, a ninetieth of the newest."""
    window = Window(0.9)
    for _ in range(60):
        window = window.aged(1.0, 99, None).joined_by(rng.normal(size=(50, 2)), None)
        fit = fit_window(window, np.zeros((1, 2)), Limits())
        window = summarise(fit.window, 400, fit.centroids, Limits(), oldest_age=44).window
    weight = [d * b.mass / len(b.points) for d, b in zip(window.decay, window.batches, strict=True)]
    assert max(weight) < 8 * min(weight)


def test_what_leaves_together_leaves_in_the_middle() -> None:
    """A summary of ages 4 to 8 leaves when batch 6 would; one of 5 batches at its third."""
    point = np.zeros((1, 1))
    summary = Remembered(point, np.ones(1), Summary(0.0, n_batches=5, span=4.0))
    window = Window(0.5, (summary, Remembered(point, None)), (4.0, 1.0))
    assert len(window.aged(0.9, 7, None)) == 2
    assert len(window.aged(1.0, 7, None)) == 1
    assert window.n_batches == 6
    assert [len(window.aged(1.0, np.inf, cap)) for cap in (5, 4, 2, 1)] == [2, 1, 1, 0]


def steps_of(model: FSKM, stream: list[Array]) -> list[Step]:
    return [model.step(Batch(index, points)) for index, points in enumerate(stream)]


@pytest.mark.parametrize("init", INITS)
def test_a_cap_that_is_never_reached_changes_no_bit(init: str) -> None:
    stream = drifting_stream(12)
    free = steps_of(FSKM(4, init=init, rho=0.8, random_state=0), stream)
    capped = steps_of(FSKM(4, init=init, rho=0.8, max_points=720, random_state=0), stream)
    assert free == capped
    assert [step.n_summarised for step in capped] == [0] * 12


@pytest.mark.parametrize("init", INITS)
def test_a_step_is_plain_lloyd_on_the_summarised_window(init: str) -> None:
    stream = drifting_stream(30)
    model = FSKM(4, init=init, rho=0.95, max_points=300, random_state=0)
    for index, points in enumerate(stream):
        before = model.centroids
        step = model.step(Batch(index, points))
        assert step.centroids is not None
        window = model.window
        newest = window.batches[-1]
        assert newest.summary is None and newest.points.tolist() == points.tolist()
        assert window.n_points <= 300
        assert step.n_batches == index + 1
        assert step.mass == pytest.approx(sum(60 * 0.95**age for age in range(index + 1)))
        rows, weights = decayed_rows(window)
        if before is not None and init == "previous":
            expected = weighted_lloyd(rows, before, weights)
            order = rows_of(step.centroids, expected.centroids)
            np.testing.assert_allclose(step.centroids, expected.centroids[order], rtol=1e-10)
            # One pass more where a cluster goes on in a row that another centroid has come to.
            assert step.n_iter == expected.n_iter + (order != np.arange(4)).any()
            assert step.n_distances_plain - step.n_iter * len(rows) * 4 < 300 * 4
        again = weighted_lloyd(rows, step.centroids, weights)
        assert window.partition is not None
        assert again.labels.tolist() == window.partition.labels.tolist()
        hidden = window.within / window.mass
        assert step.surrogate_error == pytest.approx(again.error + hidden, rel=1e-10)
        # Points behind one mean share a centroid, which need not be the nearest of each.
        assert step.surrogate_error is not None
        exact = surrogate_error(stream[: index + 1], step.centroids, 0.95)
        assert exact <= step.surrogate_error * (1 + 1e-12)
    assert step.n_summarised > 20


def test_errors_stay_close_to_those_of_every_point() -> None:
    """At a tenth of the points, from the same start, scored on the exact window."""
    stream = drifting_stream(120, n_points=100, n_features=4, n_clusters=5)
    exact = FSKM(5, init="previous", rho=0.95, random_state=0)
    small = FSKM(5, init="previous", rho=0.95, max_points=900, random_state=0)
    excess = []
    for index, points in enumerate(stream):
        before = exact.centroids
        step = exact.step(Batch(index, points))
        other = small.step(Batch(index, points), previous=before)
        assert step.surrogate_error is not None and other.centroids is not None
        window = stream[max(0, index - 89) : index + 1]
        reached = surrogate_error(window, other.centroids, 0.95)
        excess.append(reached / step.surrogate_error - 1)
    assert abs(np.mean(excess)) < 0.01


def test_memory_stays_bounded_and_weighs_what_it_should() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(3, init="previous", rho=0.99, max_points=500, random_state=0)
    for index in range(1200):
        step = model.step(Batch(index, rng.normal(size=(20, 2))))
        assert model.window.n_points <= 500
        assert len(model.window) <= 500 // 20 + 16
    whole = sum(20 * 0.99**age for age in range(459))
    assert step.mass == pytest.approx(whole, rel=0.01)
    assert abs(step.n_batches - 459) < 459 / 8


def test_batches_of_one_point_are_summarised_with_many_others() -> None:
    rng = np.random.default_rng(1)
    model = FSKM(2, init="previous", rho=0.99, max_points=60, random_state=0)
    for index in range(600):
        side = 10.0 * (index % 2)
        step = model.step(Batch(index, rng.normal(side, 1.0, size=(1, 2))))
        assert model.window.n_points <= 60
    assert step.centroids is not None
    assert np.abs(np.sort(step.centroids.mean(axis=1)) - [0, 10]).max() < 0.5


def test_a_sliding_window_without_forgetting_may_be_summarised() -> None:
    model = FSKM(2, init="previous", rho=1.0, max_batches=64, max_points=200, random_state=0)
    rng = np.random.default_rng(2)
    for index in range(300):
        step = model.step(Batch(index, rng.normal(size=(10, 2))))
        assert index < 64 or abs(step.n_batches - 64) <= 4
    assert step.mass == pytest.approx(10 * step.n_batches)


def test_batches_larger_than_the_cap_leave_half_of_it_to_the_others() -> None:
    model = FSKM(4, rho=0.9, max_points=100, random_state=0)
    for index, points in enumerate(drifting_stream(8, n_points=300)):
        model.step(Batch(index, points))
        assert len(model.window.batches[-1].points) == 300
        assert index == 0 or 25 <= model.window.n_points - 300 <= 50


@pytest.mark.parametrize("init", INITS)
def test_a_resumed_stream_with_summaries_gives_the_same_steps(init: str) -> None:
    stream = drifting_stream(16)
    settings = {"init": init, "rho": 0.95, "max_points": 200, "random_state": 2}
    undisturbed = steps_of(FSKM(4, **settings), stream)  # type: ignore[arg-type]
    assert undisturbed[-1].n_summarised > 0
    for stop in range(1, len(stream), 3):
        model = FSKM(4, **settings)  # type: ignore[arg-type]
        steps_of(model, stream[:stop])
        data = checkpoint.to_bytes(model.state())
        resumed = FSKM.from_state(checkpoint.from_bytes(data, "memory"))
        assert resumed.settings.max_points == 200
        assert checkpoint.to_bytes(resumed.state()) == data
        rest = [resumed.step(Batch(i, stream[i])) for i in range(stop, len(stream))]
        assert rest == undisturbed[stop:]


def test_threads_do_not_change_a_bit_of_a_summary() -> None:
    stream = drifting_stream(6, n_points=4000, n_features=8, n_clusters=8)
    states = []
    for n_threads in (1, 3):
        model = FSKM(8, rho=0.95, max_points=6000, n_threads=n_threads, random_state=0)
        steps_of(model, stream)
        state = model.state()
        del state["settings"]
        states.append(checkpoint.to_bytes(state))
    assert states[0] == states[1]


def test_the_cap_may_come_and_go_in_mid_stream() -> None:
    stream = drifting_stream(12)
    model = ForgetfulKMeans(4, rho=0.95, forgetting="fixed", random_state=0)
    for points in stream[:8]:
        model.partial_fit(points)
    assert model.step_.n_summarised == 0
    model.set_params(max_points=200)
    model.partial_fit(stream[8])
    assert model.step_.n_summarised > 0
    model.set_params(max_points=None)
    model.partial_fit(stream[9])
    assert (model.step_.n_batches, model.surrogate_error_ > 0) == (10, True)
    assert model.inertia_ == pytest.approx(model.surrogate_error_ * model.step_.mass)
