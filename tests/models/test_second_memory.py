"""forgetting="on-trial": what an alarm begins, who answers, and that nothing is lost on the way."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kmeander import FSKM, Batch, ForgetfulKMeans, Step
from kmeander.exceptions import InputError
from kmeander.models.trial import Contender, Trial
from tests import naive
from tests.streams import batches_of

SETTINGS: dict[str, Any] = {
    "init": "previous", "rho": "two-speed", "refine": "split-merge", "forgetting": "on-trial",
}  # fmt: skip
PLACES = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])


def rows_at(rng: np.random.Generator, offset: float, n_rows: int = 200) -> NDArray[np.float64]:
    return offset + PLACES[rng.integers(3, size=n_rows)] + rng.normal(size=(n_rows, 2))


def stream(offsets: list[float], seed: int = 0) -> Iterator[Batch]:
    rng = np.random.default_rng(seed)
    for index, offset in enumerate(offsets):
        yield Batch(index, rows_at(rng, offset))


def learned(offsets: list[float], **changed: Any) -> tuple[FSKM, list[Step]]:
    model = FSKM(3, **{**SETTINGS, **changed}, random_state=0)
    return model, [model.step(batch) for batch in stream(offsets)]


def test_a_calm_stream_has_one_memory_and_is_learned_as_with_fixed_forgetting() -> None:
    model, steps = learned([0.0] * 30)
    assert {step.memory for step in steps[1:]} == {"whole"}
    assert model.learned.trial == Trial()
    fixed, plain = learned([0.0] * 30, forgetting="fixed")
    for step, expected in zip(steps, plain, strict=True):
        known = step.to_dict()
        known.pop("memory", None)
        assert known == expected.to_dict()
    assert fixed.window.n_points == model.window.n_points


def test_after_a_jump_for_good_the_fresh_memory_answers_and_the_past_weighs_next_to_nothing() -> (
    None
):
    model, steps = learned([0.0] * 10 + [100.0] * 6)
    assert [step.memory for step in steps[9:]] == ["whole"] + 6 * ["fresh"]
    assert steps[10].history_kept < 0.01
    assert [step.history_kept for step in steps[11:]] == 5 * [1.0]
    assert steps[10].centroids is not None
    found = np.sort(steps[10].centroids.sum(axis=1))
    np.testing.assert_allclose(found, [200.0, 220.0, 220.0], atol=1.0)
    # The whole memory goes on beside it, with all that it knew.
    other = model.learned.trial.other
    assert other is not None
    assert other.window.n_batches == 16
    assert other.window.kept is None
    assert model.window.kept is not None


def test_a_false_alarm_costs_a_batch_and_is_not_believed_the_next_time() -> None:
    offsets = [0.0] * 10 + [100.0] + [0.0] * 9 + [100.0] + [0.0] * 4
    _, steps = learned(offsets)
    assert [step.memory for step in steps[9:12]] == ["whole", "fresh", "whole"]
    assert steps[20].memory == "whole"  # an alarm, too
    assert steps[20].drift_z is not None
    assert steps[20].drift_z > 3.1
    assert steps[20].history_kept == 1.0
    errors = [step.prequential_error or 0.0 for step in steps]
    adaptive = [
        step.prequential_error or 0.0 for step in learned(offsets, forgetting="adaptive")[1]
    ]
    assert sum(errors[21:]) < sum(adaptive[21:])


def test_a_fresh_memory_that_loses_for_five_batches_is_given_up() -> None:
    model, _ = learned([0.0] * 10 + [100.0, 0.0])
    known = model.learned
    assert not known.trial.is_fresh
    assert known.trial.other is not None
    hopeless = known.trial.other._replace(score=1e9)
    model.learned = known._replace(trial=known.trial._replace(other=hopeless))
    rng = np.random.default_rng(1)
    n_beside, first = 0, (0.0, 0.0)
    for index in range(12, 20):
        assert model.step(Batch(index, rows_at(rng, 0.0))).memory == "whole"
        n_beside += model.learned.trial.other is not None
        first = first if index > 12 else model.learned.trial.first_errors
    assert n_beside == 4 - known.trial.n_batches
    assert model.learned.trial == Trial(first_errors=first)
    assert first[0] > first[1] > 0


def test_who_answers_is_who_has_forecast_better_since_the_alarm() -> None:
    """By plain loops: scores of both memories, each batch under the centroids before it."""
    model = FSKM(3, **SETTINGS, random_state=0)
    scores: list[float] = []
    n_compared = 0
    for batch in stream([0.0] * 10 + [3.0, 0.5, 3.0, 1.0, 2.0, 2.0, 0.0, 0.0, 2.0, 0.0] * 2):
        trial, centroids = model.learned.trial, model.centroids
        if trial.other is not None and centroids is not None:
            own = naive.kmeans_error(batch.points, centroids)
            its = naive.kmeans_error(batch.points, trial.other.centroids)
            scores = [0.9 * trial.score + own, 0.9 * trial.other.score + its]
        step = model.step(batch)
        after = model.learned.trial
        if trial.other is None or after.other is None or after.n_batches != trial.n_batches + 1:
            continue  # no trial, or another one
        n_compared += 1
        has_switched = scores[1] < scores[0]
        assert (after.is_fresh != trial.is_fresh) == has_switched
        assert (step.memory == "fresh") == after.is_fresh
        front, behind = sorted(scores) if has_switched else scores
        assert (after.score, after.other.score) == pytest.approx((front, behind))
    assert n_compared > 5


def test_trust_is_in_the_first_batches_after_earlier_alarms() -> None:
    other = Contender(FSKM(2).window, np.zeros((2, 1)), None)
    trial = Trial(other, is_fresh=True)
    assert trial.trusts_fresh  # before anything is known
    once = trial.after(own_error=2.0, other_error=1.0)
    assert once.first_errors == (2.0, 1.0)
    assert not once.trusts_fresh
    assert once.after(0.5, 9.0).first_errors == (2.0, 1.0)  # that was the second batch
    again = Trial(other, is_fresh=False, first_errors=once.first_errors)
    assert again.after(own_error=9.0, other_error=1.0).first_errors == pytest.approx((2.4, 9.7))
    assert again.after(own_error=9.0, other_error=1.0).trusts_fresh


def test_the_first_alarms_of_a_stream_begin_nothing() -> None:
    model, steps = learned([0.0, 0.0, 100.0, 100.0])
    assert steps[2].drift_z is not None
    assert steps[2].drift_z > 3.1
    assert {step.memory for step in steps[1:]} == {"whole"}
    assert model.learned.trial.other is None


def test_the_window_is_at_a_fixed_point_of_lloyd_whoever_answers() -> None:
    model = FSKM(3, **SETTINGS, random_state=0)
    memories = set()
    for batch in stream([0.0] * 8 + [100.0] * 3 + [0.0] * 3 + [100.0] * 3):
        step = model.step(batch)
        memories.add(step.memory)
        window = model.window
        points = np.concatenate([one.points for one in window.batches])
        weights = np.concatenate(
            [
                decay * one.weights_or_ones
                for decay, one in zip(window.decay, window.batches, strict=True)
            ]
        )
        assert step.centroids is not None
        assert step.masses is not None
        places = step.centroids.tolist()
        labels = np.array([naive.nearest(point, places) for point in points.tolist()])
        for k in range(3):
            mine = np.flatnonzero(labels == k)
            assert step.masses[k] == pytest.approx(weights[mine].sum())
            mean = weights[mine] @ points[mine] / weights[mine].sum()
            np.testing.assert_allclose(step.centroids[k], mean, atol=1e-8)
    assert {"whole", "fresh"} <= memories


def test_both_memories_share_what_they_remember() -> None:
    model, _ = learned([0.0] * 20 + [100.0] * 14)
    other = model.learned.trial.other
    assert other is not None
    mine, its = model.window.batches, other.window.batches
    assert 14 <= len(mine) < len(its)
    assert all(one is another for one, another in zip(mine, its[-len(mine) :], strict=True))
    # Beside the newest three, all are means.
    assert sum(batch.n_points for batch in its) <= 7 * 200


def test_ids_go_on_where_the_other_memory_takes_over() -> None:
    """A short visit elsewhere: the clusters come back under the numbers that they had."""
    _, steps = learned([0.0] * 12 + [100.0] + [0.0] * 8)
    before, after = steps[11], steps[-1]
    assert before.centroids is not None
    assert after.centroids is not None
    assert before.ids is not None
    assert after.ids is not None
    there = {
        tuple(np.round(place / 20).astype(int).tolist()): number
        for place, number in zip(before.centroids, before.ids.tolist(), strict=True)
    }
    now = {
        tuple(np.round(place / 20).astype(int).tolist()): number
        for place, number in zip(after.centroids, after.ids.tolist(), strict=True)
    }
    assert now.keys() == there.keys()
    assert len(set(now.values())) == 3


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rho": 0.6},
        {"rho": "auto", "refine": None},
        {"init": "hungarian"},
        {"max_points": 90},
        {"max_batches": 5},
        {"metric": "cosine"},
        {"max_iter": 2},
    ],
    ids=str,
)
def test_a_stream_survives_a_restart_bit_for_bit(more: dict[str, Any]) -> None:
    model = FSKM(4, **{**SETTINGS, **more}, random_state=3)
    batches = batches_of(26)
    has_trial = []
    for batch in batches[:9]:
        model.step(batch)
    resumed = FSKM.from_state(model.state())
    for batch in batches[9:]:
        has_trial.append(model.learned.trial.other is not None)
        assert resumed.step(batch) == model.step(batch)
        resumed = FSKM.from_state(pickle.loads(pickle.dumps(resumed.state())))
    assert any(has_trial)


def test_threads_do_not_change_a_single_bit() -> None:
    models = [FSKM(6, **SETTINGS, n_threads=n, random_state=0) for n in (1, 3)]
    rng = np.random.default_rng(0)
    for index in range(9):
        rows = rng.normal(size=(4000, 5)) + (7.0 if index > 6 else 0.0)
        alone, together = (model.step(Batch(index, rows)) for model in models)
        assert alone == together
    assert models[0].learned.trial.other is not None


def test_a_step_that_fails_changes_nothing() -> None:
    model, _ = learned([0.0] * 10 + [100.0])
    before = model.state()
    with pytest.raises(InputError, match="index"):
        model.step(Batch(0, [[0.0, 0.0]]))
    after = model.state()
    assert after["trial"]["other"]["centroids"] is before["trial"]["other"]["centroids"]


def test_another_forgetting_ends_the_trial_and_goes_on_with_who_answers() -> None:
    estimator = ForgetfulKMeans(3, **{**SETTINGS, "refine": "swaps"}, random_state=0)
    rng = np.random.default_rng(0)
    for offset in [0.0] * 10 + [100.0] * 2:
        estimator.partial_fit(rows_at(rng, offset))
    assert estimator.step_.to_dict()["memory"] == "fresh"
    estimator.set_params(forgetting="adaptive", rho=0.6)
    estimator.partial_fit(rows_at(rng, 100.0))
    assert estimator.step_.memory is None
    assert "memory" not in estimator.step_.to_dict()
    assert (estimator.step_.prequential_error or 0.0) < 3.0


def test_prepared_rows_may_change_their_units_while_two_memories_are_there() -> None:
    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(3, **SETTINGS, prepare="auto", random_state=0)
    memories = []
    for offset in [0.0] * 10 + [100.0] * 2 + [4000.0] * 6:
        model.partial_fit(rows_at(rng, offset))
        memories.append(model.step_.memory)
    assert "fresh" in memories
    assert np.isfinite(model.cluster_centers_).all()
