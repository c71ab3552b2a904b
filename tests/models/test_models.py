"""FSKM and PSKM: against the plain loops, and what the paper and the design promise of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import (
    FSKM,
    PSKM,
    Batch,
    InputError,
    Step,
    kmeans_error,
    max_batches_for,
    skm_error,
    surrogate_error,
)
from kmeander.arguments import generator_for
from kmeander.kmeans.lloyd import Limits, weighted_lloyd
from kmeander.kmeans.seeding import kmeans
from kmeander.models.base import StreamModel
from kmeander.storage import checkpoint
from tests import naive
from tests.strategies import COARSE, tables
from tests.streams import INITS, drifting_stream, rows_of

Array = NDArray[np.float64]


def steps_of(model: StreamModel, stream: list[Array]) -> list[Step]:
    return [model.step(Batch(index, points)) for index, points in enumerate(stream)]


@pytest.mark.parametrize("init", ["previous", "hungarian"])
@pytest.mark.parametrize("seed", range(6))
def test_fskm_equals_the_plain_loops_along_a_stream(init: str, seed: int) -> None:
    """Real ages, weights, changing sizes and drifts; every batch's outcome is compared."""
    rng = np.random.default_rng(seed)
    rho, k = 0.6, 4
    model = FSKM(k, init=init, rho=rho, random_state=seed)
    plain = naive.FSKM(k, init, rho, max_batches_for(rho), seed)
    for index, points in enumerate(drifting_stream(10, 30, n_clusters=k, seed=seed)):
        points = points[: rng.integers(15, 31)]
        weights = rng.integers(1, 4, size=len(points)).astype(float)
        elapsed = float(rng.choice([0.5, 1.0, 2.5]))
        expected = plain.step(points, weights, elapsed)
        step = model.step(Batch(index, points, weights, elapsed))
        assert expected.margin > 1e-9  # nothing on this stream hangs on rounding
        assert step.centroids is not None and step.masses is not None
        order = rows_of(step.centroids, expected.centroids)
        again = np.array(expected.centroids)[order]
        np.testing.assert_allclose(step.centroids, again, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(step.masses, np.array(expected.masses)[order], rtol=1e-10)
        assert step.surrogate_error == pytest.approx(expected.error, rel=1e-10)
        assert step.initial_error == pytest.approx(expected.errors[0], rel=1e-10)
        # One pass more where a cluster goes on in a row that another centroid has come to.
        assert step.n_iter == expected.n_iter + (order != np.arange(k)).any()
        assert model.labels is not None and model.window.partition is not None
        labels = model.window.partition.labels
        assert order[labels].tolist() == expected.labels
        assert model.labels.tolist() == labels[-len(points) :].tolist()
        plain.take(again.tolist(), labels.tolist())


@pytest.mark.parametrize("init", INITS)
def test_the_fields_of_a_step_are_what_they_say(init: str) -> None:
    stream = drifting_stream(9, 50)
    model = FSKM(4, init=init, rho=0.5, random_state=1)
    before: Array | None = None
    for index, points in enumerate(stream):
        step = model.step(Batch(index, points))
        window = stream[max(0, index - 6) : index + 1]
        assert step.centroids is not None and step.masses is not None
        assert (step.index, step.n_points, step.rho, step.waiting) == (index, 50, 0.5, False)
        assert step.n_batches == len(window)
        assert step.mass == sum(50 * 0.5**age for age in range(len(window)))
        assert step.masses.sum() == pytest.approx(step.mass)
        assert step.surrogate_error == pytest.approx(surrogate_error(window, step.centroids, 0.5))
        assert step.batch_error == pytest.approx(kmeans_error(points, step.centroids))
        assert step.surrogate_error <= step.initial_error + 1e-12  # type: ignore[operator]
        assert step.converged
        if before is None:
            assert step.prequential_error is None
            assert step.moved is None
        else:
            assert step.moved is not None
            assert step.prequential_error == pytest.approx(kmeans_error(points, before))
            np.testing.assert_allclose(step.moved, np.linalg.norm(step.centroids - before, axis=1))
        before = step.centroids


def test_previous_starts_from_the_previous_centroids() -> None:
    stream = drifting_stream(2)
    model = FSKM(4, init="previous", rho=0.5, random_state=0)
    first, second = steps_of(model, stream)
    assert first.centroids is not None and second.centroids is not None
    weights = np.repeat([0.5, 1.0], 60)
    expected = weighted_lloyd(np.concatenate(stream), first.centroids, weights)
    np.testing.assert_allclose(second.centroids, expected.centroids, rtol=1e-12)
    assert second.n_iter == expected.n_iter
    assert second.n_distances_plain == expected.n_iter * 120 * 4  # nothing else is measured
    assert second.n_distances < second.n_distances_plain / 2  # 60 points have bounds already


def test_distances_of_a_step_add_up() -> None:
    """Hungarian: K-means on the batch (seeding and passes), matching, window."""
    stream = drifting_stream(2)
    model = FSKM(4, rho=0.5, random_state=3)
    model.step(Batch(0, stream[0]))
    step = model.step(Batch(1, stream[1]))
    on_batch = kmeans(stream[1], None, 4, generator_for(3, 1), Limits())
    assert on_batch.n_distances_plain == 60 * 3 + on_batch.n_iter * 60 * 4
    assert 60 * 3 + 60 * 4 <= on_batch.n_distances < on_batch.n_distances_plain
    expected = on_batch.n_distances_plain + 4 * 4 + step.n_iter * 120 * 4
    assert step.n_distances_plain == expected
    assert on_batch.n_distances + 4 * 4 < step.n_distances < expected


@pytest.mark.parametrize("init", INITS)
def test_ids_stay_with_clusters_that_move_slowly(init: str) -> None:
    """Four far clusters wander; each id must follow its own, whatever the initialisation."""
    rng = np.random.default_rng(5)
    centres = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0]])
    model = FSKM(4, init=init, rho=0.3, random_state=7)
    owner: NDArray[np.int64] | None = None
    for index in range(15):
        points = np.repeat(centres + index * 2.0, 20, axis=0) + rng.normal(size=(80, 2))
        step = model.step(Batch(index, points))
        assert step.centroids is not None
        distances = np.linalg.norm(step.centroids[:, None] - (centres + index * 2.0), axis=2)
        now = distances.argmin(axis=1)
        if owner is None:
            assert sorted(now.tolist()) == [0, 1, 2, 3]
            owner = now
        assert now.tolist() == owner.tolist()


@pytest.mark.parametrize("init", INITS)
def test_a_resumed_stream_gives_the_same_steps_bit_for_bit(init: str) -> None:
    """Stopped after any batch, the state written to bytes and read again."""
    stream = drifting_stream(8)
    undisturbed = steps_of(FSKM(4, init=init, random_state=2), stream)
    for stop in range(len(stream)):
        model = FSKM(4, init=init, random_state=2)
        steps_of(model, stream[:stop])
        data = checkpoint.to_bytes(model.state())
        resumed = FSKM.from_state(checkpoint.from_bytes(data, "memory"))
        assert checkpoint.to_bytes(resumed.state()) == data
        rest = [resumed.step(Batch(i, stream[i])) for i in range(stop, len(stream))]
        assert rest == undisturbed[stop:]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    stream = drifting_stream(5)
    states = []
    for seed in (1, 1, 2):
        model = FSKM(4, random_state=seed)
        steps_of(model, stream)
        states.append(checkpoint.to_bytes(model.state()))
    assert states[0] == states[1]
    assert states[0] != states[2]


def test_generators_are_drawn_from_once() -> None:
    one = FSKM(4, random_state=np.random.default_rng(9))
    other = FSKM(4, random_state=np.random.default_rng(9))
    assert one.seed == other.seed
    assert (
        FSKM(2, random_state=np.random.RandomState(3)).seed
        == FSKM(2, random_state=np.random.RandomState(3)).seed
    )
    assert FSKM(2).seed != FSKM(2).seed


def test_fskm_never_looks_at_the_concept() -> None:
    stream = drifting_stream(6)
    blind, told = FSKM(4, random_state=0), FSKM(4, random_state=0)
    for index, points in enumerate(stream):
        batch = Batch(index, points)
        assert blind.step(batch) == told.step(Batch(index, points, concept=index))


def test_elapsed_counts_as_so_many_batches() -> None:
    """After 1.5 ages the old batch weighs rho**1.5; after T_max it is gone."""
    stream = drifting_stream(3)
    model = FSKM(4, rho=0.5, random_state=0)
    model.step(Batch(0, stream[0]))
    assert model.step(Batch(1, stream[1], elapsed=1.5)).mass == 60 + 60 * 0.5**1.5
    last = model.step(Batch(2, stream[2], elapsed=7.0))
    assert (last.n_batches, last.mass) == (1, 60.0)


def test_when_all_is_forgotten_ids_go_to_the_nearest() -> None:
    model = FSKM(2, rho=0.5, random_state=0)
    first = model.step(Batch(0, [[0.0], [1.0], [100.0], [101.0]]))
    then = model.step(Batch(1, [[104.0], [105.0], [3.0], [4.0]], elapsed=50.0))
    assert first.centroids is not None and then.centroids is not None
    assert (then.centroids - first.centroids).ravel().tolist() == [
        pytest.approx(3.0 if c < 50 else 4.0) for c in first.centroids.ravel()
    ]


def test_without_forgetting_max_batches_is_a_sliding_window() -> None:
    stream = drifting_stream(6)
    model = FSKM(4, rho=1.0, max_batches=3, random_state=0)
    step = steps_of(model, stream)[-1]
    assert step.centroids is not None
    assert (step.n_batches, step.mass) == (3, 180.0)
    assert step.surrogate_error == pytest.approx(skm_error(stream[3:], step.centroids))


def test_float32_and_float64_batches_may_alternate() -> None:
    stream = drifting_stream(4)
    mixed = [points.astype(np.float32) if i % 2 else points for i, points in enumerate(stream)]
    model, wide = FSKM(4, random_state=0), FSKM(4, random_state=0)
    for index, points in enumerate(mixed):
        narrow = model.step(Batch(index, points))
        assert narrow == wide.step(Batch(index, points.astype(np.float64)))
    assert [batch.points.dtype for batch in model.window.batches] == [np.float64, np.float32] * 2


def test_a_batch_is_a_copy() -> None:
    points = np.array([[0.0], [1.0], [5.0]])
    weights = np.array([1.0, 2.0, 3.0])
    model = FSKM(2, random_state=0)
    model.step(Batch(0, points, weights))
    before = checkpoint.to_bytes(model.state())
    points[:] = 99.0
    weights[:] = 99.0
    assert checkpoint.to_bytes(model.state()) == before


@pytest.mark.parametrize("model_class", [FSKM, PSKM])
def test_before_k_distinct_points_the_model_waits(model_class: type[FSKM] | type[PSKM]) -> None:
    model = model_class(3, random_state=0)
    first = model.step(Batch(0, [[1.0], [1.0]]))
    assert first.waiting
    assert (first.surrogate_error, first.centroids, first.moved) == (None, None, None)
    assert (first.n_batches, first.mass) == (0, 2.0)
    second = model.step(Batch(1, [[2.0], [1.0]], [0.5, 1.0], elapsed=1000.0))
    assert second.waiting
    assert model.n_distinct == 2
    assert (second.mass, model.centroids, model.labels) == (3.5, None, None)
    third = model.step(Batch(2, [[2.0], [7.0]]))
    assert not third.waiting
    # Nothing has aged: three points at 1, 1.5 at 2 and one at 7.
    assert third.centroids is not None and third.masses is not None
    masses = dict(zip(third.centroids.ravel().tolist(), third.masses.tolist(), strict=True))
    assert masses == {1.0: 3.0, 2.0: 1.5, 7.0: 1.0}
    assert (third.n_points, third.n_batches, third.mass) == (2, 1, 5.5)
    assert model.labels is not None
    assert third.centroids[model.labels].ravel().tolist() == [2.0, 7.0]
    assert third.prequential_error is None


def test_waiting_costs_no_memory() -> None:
    """A million equal rows are one point with a weight."""
    model = FSKM(2, random_state=0)
    for index in range(100):
        model.step(Batch(index, np.full((10_000, 2), 0.1)))
    assert model.n_distinct == 1
    assert len(checkpoint.to_bytes(model.state())) < 2000
    step = model.step(Batch(100, [[0.5, 0.5]]))
    assert step.masses is not None
    assert sorted(step.masses.tolist()) == [1.0, 1e6]


def test_a_waiting_model_resumes() -> None:
    model = FSKM(3, random_state=0)
    model.step(Batch(0, [[1.0], [2.0]]))
    resumed = FSKM.from_state(model.state())
    batch = Batch(1, [[5.0]])
    assert resumed.step(batch) == model.step(batch)


@pytest.mark.parametrize("init", INITS)
@given(small=tables(st.integers(1, 3), 2, COARSE))
def test_a_batch_smaller_than_k_is_learnt(init: str, small: Array) -> None:
    start = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0]])
    model = FSKM(4, init=init, rho=0.5, random_state=0)
    model.step(Batch(0, np.repeat(start, 5, axis=0)))
    step = model.step(Batch(1, small))
    assert not step.waiting
    assert step.centroids is not None and step.masses is not None
    assert np.isfinite(step.centroids).all()
    assert step.masses.sum() == pytest.approx(10.0 + len(small))


def test_a_cluster_that_loses_its_mass_is_reseeded_and_named() -> None:
    model = FSKM(2, init="previous", rho=0.5, max_batches=1, random_state=0)
    first = model.step(Batch(0, [[0.0], [100.0]]))
    assert first.reseeded == ()
    step = model.step(Batch(1, [[-1.0], [1.0], [9.0]]))
    assert step.centroids is not None and first.centroids is not None
    lost = int(first.centroids.ravel().tolist().index(100.0))
    assert step.reseeded == (lost,)
    assert step.centroids[lost].tolist() == [9.0]
    # A full pass, then 3 costs and 3 distances to the new place; the next pass need not be full.
    assert 6 + 3 + 3 < step.n_distances <= 2 * 6 + 3 + 3
    assert step.n_distances_plain == 2 * 6


def test_shared_centroids_replace_the_models_own() -> None:
    """As in the paper's experiments: C* and C^0 handed in, and each method charged for its use."""
    stream = drifting_stream(3)
    shared = FSKM(4, init="previous", rho=0.5, random_state=0)
    steps_of(shared, stream[:2])
    assert shared.centroids is not None
    current = kmeans(stream[2], None, 4, generator_for(11, 0), Limits())
    for init in INITS:
        model = FSKM(4, init=init, rho=0.5, random_state=5)
        steps_of(model, stream[:2])
        step = model.step(Batch(2, stream[2]), previous=shared.centroids, current=current)
        assert step.prequential_error == pytest.approx(kmeans_error(stream[2], shared.centroids))
        extra = step.n_distances_plain - step.n_iter * 180 * 4
        if init == "previous":
            own = FSKM.from_state(shared.state()).step(Batch(2, stream[2]))
            # What was tested before is each model's own.
            theirs = {"n_distances": step.n_distances, "noise": step.to_dict()["noise"]}
            assert step.to_dict() == {**own.to_dict(), **theirs}
            assert extra == 0
        elif init == "weighted":
            assert extra > current.n_distances_plain + 16
        else:
            assert extra == current.n_distances_plain + 16


@pytest.mark.parametrize("init", INITS)
def test_it_does_not_matter_who_made_the_current_centroids(init: str) -> None:
    stream = drifting_stream(2)
    alone, helped = (FSKM(4, init=init, random_state=5) for _ in range(2))
    alone.step(Batch(0, stream[0]))
    helped.step(Batch(0, stream[0]))
    current = kmeans(stream[1], None, 4, generator_for(5, 1), Limits())
    batch = Batch(1, stream[1])
    step, own = helped.step(batch, current=current), alone.step(batch)
    # The bounds that the model's own K-means leaves are used, those of a stranger's are not.
    assert step.to_dict() == {**own.to_dict(), "n_distances": step.n_distances}
    assert own.n_distances <= step.n_distances


def test_pskm_runs_lloyd_on_all_batches_since_the_drift() -> None:
    stream = drifting_stream(6)
    model = PSKM(4, random_state=0)
    concepts = [0, 0, 0, 1, 1, 1]
    for index, points in enumerate(stream):
        before = model.centroids
        step = model.step(Batch(index, points, concept=concepts[index]))
        since = stream[0 if index < 3 else 3 : index + 1]
        assert step.centroids is not None
        assert step.n_batches == len(since)
        assert step.surrogate_error == pytest.approx(skm_error(since, step.centroids))
        if index not in (0, 3):
            assert before is not None
            expected = weighted_lloyd(np.concatenate(since), before)
            np.testing.assert_allclose(step.centroids, expected.centroids, rtol=1e-12)
    again = PSKM.from_state(model.state())
    batch = Batch(6, stream[0], concept=2)
    assert again.step(batch) == model.step(batch)


def test_pskm_drops_what_it_waited_with_at_a_drift() -> None:
    model = PSKM(2, random_state=0)
    model.step(Batch(0, [[1.0]], concept=0))
    assert model.step(Batch(1, [[2.0]], concept=1)).waiting
    assert model.n_distinct == 1


@pytest.mark.parametrize("index", [0, 2])
def test_a_lost_or_repeated_batch_is_refused(index: int) -> None:
    model = FSKM(2, random_state=0)
    model.step(Batch(0, [[0.0], [1.0]]))
    before = checkpoint.to_bytes(model.state())
    with pytest.raises(InputError) as caught:
        model.step(Batch(index, [[0.0], [1.0]]))
    assert str(caught.value) == (
        f"batch has index {index}, but the model has taken 1 batches. A batch was lost or came "
        "twice; pass them in order, each once."
    )
    assert checkpoint.to_bytes(model.state()) == before


def test_fit_begins_a_stream() -> None:
    model = FSKM(2, random_state=0)
    model.step(Batch(0, [[0.0], [1.0]]))
    before = checkpoint.to_bytes(model.state())
    with pytest.raises(InputError) as caught:
        model.fit(Batch(5, [[0.0], [1.0]]))
    assert str(caught.value) == (
        "batch has index 5, but fit begins a stream: it must be 0. step goes on with one."
    )
    assert checkpoint.to_bytes(model.state()) == before
    assert model.fit(Batch(0, [[0.0], [1.0]])).index == 0
    assert model.n_steps == 1


def test_the_state_of_another_model_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        PSKM.from_state(FSKM(2, random_state=0).state())
    assert str(caught.value) == "the state is that of FSKM, not of PSKM."


def test_seconds_are_measured_but_not_compared_or_written() -> None:
    step = FSKM(2, random_state=0).step(Batch(0, [[0.0], [1.0]]))
    assert step.seconds is not None and step.seconds > 0
    assert step == replace(step, seconds=None)
    assert "seconds" not in step.to_dict()
    assert Step.from_dict(step.to_dict()) == step


def test_settings_may_change_between_batches() -> None:
    stream = drifting_stream(3)
    model = FSKM(4, rho=0.5, random_state=0)
    steps_of(model, stream[:2])
    slower = FSKM(4, rho=0.9, init="previous", random_state=1)
    slower.take_over(model)
    step = slower.step(Batch(2, stream[2]))
    assert step.mass == pytest.approx(60 * (1 + 0.9 + 0.81))


def test_the_prequential_error_counts_weights() -> None:
    rng = np.random.default_rng(0)
    stream = drifting_stream(3)
    for init in INITS:
        model = FSKM(4, init=init, random_state=0)
        for index, points in enumerate(stream):
            before = model.centroids
            weights = rng.integers(0, 9, size=len(points)) + 1.0
            step = model.step(Batch(index, points, weights))
            if before is not None:
                expected = kmeans_error(points, before, weights)
                assert step.prequential_error == pytest.approx(expected)


def test_waiting_counts_the_distances_it_takes() -> None:
    """Two equal rows, both against the one seed."""
    step = FSKM(3, random_state=0).step(Batch(0, [[1.0], [1.0]]))
    assert step.n_distances == step.n_distances_plain == 2


def test_the_limits_hold_for_the_kmeans_on_the_batch_too() -> None:
    stream = drifting_stream(2, n_points=300)
    model = FSKM(8, init="current", max_iter=1, random_state=0)
    model.step(Batch(0, stream[0]))
    step = model.step(Batch(1, stream[1]))
    on_batch = 300 * 7 + 2 * 300 * 8
    # A pass that puts clusters in their rows; no centroid moves once more.
    assert step.n_iter == 3 and not step.converged
    assert step.n_distances_plain == on_batch + 8 * 8 + 3 * 600 * 8


def test_a_model_that_takes_over_keeps_the_seed() -> None:
    model, other = FSKM(4, random_state=1), FSKM(4, random_state=2)
    steps_of(model, drifting_stream(1))
    other.take_over(model)
    assert other.seed == 1
    assert repr(other) == (
        "FSKM(n_clusters=4, max_iter=300, tol=0.0, n_threads=None, alarm_rate=0.001, "
        "season=None, prepare=None, metric='euclidean', init='hungarian', "
        "rho=0.5, refine=None, forgetting='fixed', max_batches=None, max_points=None, "
        "random_state=1)"
    )


def test_pskm_keeps_the_row_of_the_cluster_that_the_points_came_from() -> None:
    """Wherever the matching of the start has put it: those at 1.2 are nearest to what was at 2."""
    model = PSKM(2, random_state=0)
    first = model.step(Batch(0, [[0.0]] * 99 + [[2.0]], concept=0))
    then = model.step(Batch(1, [[1.2]] * 50 + [[-1.6]] * 50, concept=1))
    assert first.centroids is not None and then.centroids is not None
    moves = dict(
        zip(first.centroids.ravel().tolist(), then.centroids.ravel().tolist(), strict=True)
    )
    assert moves == {0.0: -1.6, 2.0: 1.2}
    assert then.ids is not None and then.ids.tolist() == [0, 1]


def test_what_step_is_handed_is_checked() -> None:
    stream = drifting_stream(2)
    model = FSKM(4, random_state=0)
    with pytest.raises(TypeError, match=r"step takes a kmeander\.Batch, got ndarray"):
        model.step(stream[0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be left out until the model has centroids"):
        model.step(Batch(0, stream[0]), previous=stream[0][:4])
    model.step(Batch(0, stream[0]))
    before = checkpoint.to_bytes(model.state())
    five = kmeans(stream[1], None, 5, generator_for(0, 0), Limits())
    with pytest.raises(InputError, match="current has 5 centroids of 3 columns, the model has 4"):
        model.step(Batch(1, stream[1]), current=five)
    with pytest.raises(TypeError, match="current must be a LloydResult"):
        model.step(Batch(1, stream[1]), current=stream[1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="previous has 3 centroids, the model has 4"):
        model.step(Batch(1, stream[1]), previous=stream[0][:3])
    assert checkpoint.to_bytes(model.state()) == before
