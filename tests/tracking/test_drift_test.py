"""How far a batch contradicts what was learned: estimates, their chance, and what is forgotten."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from kmeander import FSKM, PSKM, Batch, Step, _kernel
from kmeander.exceptions import InputError
from kmeander.kmeans.forgetting import NEGLIGIBLE
from kmeander.kmeans.lloyd import Limits, fit_window, measure
from kmeander.tracking.drift_test import ALARM_Z, DriftTest, Estimate, ages_to_keep
from tests import naive
from tests.streams import random_window

ESTIMATES = st.lists(st.tuples(st.floats(-0.9, 5.0), st.floats(0.01, 0.5)), min_size=1, max_size=20)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_clusters=st.integers(1, 6),
    n_batches=st.integers(1, 4),
)
def test_the_expected_error_is_that_of_the_plain_loops(
    seed: int, n_clusters: int, n_batches: int
) -> None:
    window, starts = random_window(seed, n_clusters, 2, n_batches)
    fit = fit_window(window, starts, Limits())
    assume(fit.converged)
    weights = [
        np.ones(len(batch.points)) if batch.weights is None else batch.weights
        for batch in window.batches
    ]
    plain = naive.expected_error(
        [batch.points for batch in window.batches],
        weights,
        window.decay,
        fit.window.labels,
        n_clusters,
    )
    assert fit.expected_error == pytest.approx(plain, rel=1e-9)


def test_the_expected_error_of_one_batch_is_worked_out_by_hand() -> None:
    """0, 2 and 7 without each: means 4.5, 3.5 and 1, so 20.25, 2.25 and 36."""
    step = FSKM(1, random_state=0).step(Batch(0, [[0.0], [2.0], [7.0]]))
    assert step.expected_error == pytest.approx((20.25 + 2.25 + 36) / 3)


def test_the_expected_error_of_two_batches_is_worked_out_by_hand() -> None:
    """Each under the mean of the other, the older one weighing half as much."""
    model = FSKM(1, rho=0.5, random_state=0)
    model.step(Batch(0, [[0.0], [1.0], [2.0]]))
    step = model.step(Batch(1, [[4.0], [8.0]]))
    older, newer = 36 + 25 + 16, 9 + 49
    assert step.expected_error == pytest.approx((0.5 * older + newer) / (0.5 * 3 + 2))


@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_a_batch_is_measured_with_its_standard_error(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    points, centroids = rng.normal(size=(80, 3)), rng.normal(size=(5, 3))
    weights = rng.choice([0.5, 1.0, 3.0], size=80) if weighted else None
    found = measure(Batch(0, points, weights).handle, centroids, 1)
    squared = ((points[:, np.newaxis] - centroids) ** 2).sum(axis=2).min(axis=1)
    shares = np.full(80, 1 / 80) if weights is None else weights / weights.sum()
    error = (shares * squared).sum()
    se = np.sqrt((shares**2 * (squared - error) ** 2).sum())
    assert found.error == pytest.approx(error)
    assert found.relative_se == pytest.approx(se / error)


def test_huge_values_have_a_standard_error() -> None:
    found = measure(Batch(0, [[-1e120], [1e120], [0.0]]).handle, np.array([[0.0]]), 1)
    # Off the mean by a half, a half and one, in units of it.
    assert found.relative_se == pytest.approx(np.sqrt(0.25 + 0.25 + 1) / 3)
    assert found.error == pytest.approx(2e240 / 3)


@given(usual=ESTIMATES, epsilon=st.floats(-0.9, 5.0), se=st.floats(0.01, 0.5))
def test_z_is_that_of_the_plain_loops(
    usual: list[tuple[float, float]], epsilon: float, se: float
) -> None:
    z = Estimate(epsilon, se).z([Estimate(*known) for known in usual], n_points=10**9)
    plain = naive.z_of_estimate(epsilon, se, usual)
    assume(abs(plain) < 100)
    assert z == pytest.approx(plain, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("n_points", [3, 5, 10, 50, 500])
@pytest.mark.parametrize("t", [0.5, 2.0, 3.0, 5.0])
def test_with_few_points_z_is_as_rare_as_students_t(n_points: int, t: float) -> None:
    usual = [Estimate(0.0, 0.1)] * 5
    z = Estimate(0.1 * t, 0.1).z(usual, n_points)
    assert z is not None
    rare = stats.t.sf(t, n_points - 1)
    assert NormalDist().inv_cdf(1 - rare) == pytest.approx(z, rel=0.03)


def test_nothing_is_said_where_nothing_scatters() -> None:
    assert Estimate(9.0, 0.1).z([Estimate(0.0, 0.1)] * 5, 1) is None
    assert Estimate(9.0, 0.0).z([Estimate(0.0, 0.0)] * 5, 500) is None


def test_a_stream_that_always_changes_is_not_in_alarm() -> None:
    restless = [Estimate(epsilon, 0.05) for epsilon in (1.0, 3.0, 0.5, 2.0, 1.5, 2.5)]
    calm = [Estimate(epsilon, 0.05) for epsilon in (0.0, 0.03, -0.05, 0.02, -0.01, 0.0)]
    assert arrival(2.0, restless).is_drift is False
    assert arrival(2.0, calm).is_drift is True


def arrival(epsilon: float, usual: list[Estimate], se: float = 0.05) -> DriftTest:
    estimate = Estimate(epsilon, se)
    return DriftTest(
        1.0, _kernel.Partition(np.zeros(0, np.int32)), estimate, estimate.z(usual, 500)
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 100.0])
def test_an_alarm_keeps_what_makes_the_gap_negligible(epsilon: float) -> None:
    """rho**T * epsilon is 0.01 at once, not after T batches."""
    kept = arrival(epsilon, [Estimate(0.0, 0.05)] * 5).history_kept
    assert kept * epsilon == pytest.approx(NEGLIGIBLE)
    for rho in (0.3, 0.9):
        assert rho ** ages_to_keep(kept, rho) == pytest.approx(kept)


def test_without_an_alarm_all_is_kept() -> None:
    calm = [Estimate(0.0, 0.05)] * 5
    for quiet in (
        arrival(0.1, calm),
        arrival(-0.5, calm),
        DriftTest(1.0, arrival(0, calm).partition),
    ):
        assert quiet.history_kept == 1.0
    assert ages_to_keep(1.0, 0.5) == 0.0
    assert ages_to_keep(0.5, 1.0) == np.inf


def stationary(n_batches: int, seed: int, n_points: int = 200) -> list[Batch]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(5, 3))
    return [
        Batch(i, centres[rng.integers(5, size=n_points)] + rng.normal(size=(n_points, 3)))
        for i in range(n_batches)
    ]


def model(**settings: Any) -> FSKM:
    return FSKM(5, init="previous", refine="swaps", random_state=0, **settings)


def test_false_alarms_are_rare_on_stationary_streams() -> None:
    """At most one batch in 200 (asked), on 20 streams of 200 batches."""
    steps = [
        step
        for seed in range(20)
        for learner in [model(forgetting="adaptive", rho=0.6)]
        for step in map(learner.step, stationary(200, seed))
    ]
    n_alarms = sum(step.history_kept < 1 for step in steps)
    assert n_alarms <= len(steps) / 200
    z = np.array([step.drift_z for step in steps if step.drift_z is not None])
    assert abs(z.mean()) < 0.2
    assert 0.8 < z.std() < 1.2


def test_without_drift_adaptive_forgetting_costs_nothing() -> None:
    """The SKM error stays within 0.5 % of that of fixed forgetting (asked)."""
    excess = []
    for seed in range(10):
        batches = stationary(60, seed)
        points = np.concatenate([batch.points for batch in batches])
        errors = []
        for forgetting in ("fixed", "adaptive"):
            learner = model(forgetting=forgetting, rho=0.6)
            step = [learner.step(batch) for batch in batches][-1]
            assert step.centroids is not None
            errors.append(measure(Batch(0, points).handle, step.centroids, 1).error)
        excess.append(errors[1] / errors[0] - 1)
    assert np.mean(excess) < 0.005


def jumping(n_batches: int = 24, jump_at: int = 12) -> list[Batch]:
    rng = np.random.default_rng(7)
    centres = rng.normal(scale=4.0, size=(2, 5, 3))
    return [
        Batch(i, centres[int(i >= jump_at), rng.integers(5, size=200)] + rng.normal(size=(200, 3)))
        for i in range(n_batches)
    ]


def test_a_jump_is_seen_when_it_comes_and_forgotten_at_once() -> None:
    steps = [
        step for learner in [model(forgetting="adaptive")] for step in map(learner.step, jumping())
    ]
    alarms = [step.index for step in steps if step.history_kept < 1]
    assert alarms == [12]
    seen = steps[12]
    assert seen.drift_z is not None and seen.drift_z > ALARM_Z
    assert seen.drift_epsilon is not None and seen.prequential_error is not None
    expected = steps[11].expected_error
    assert expected is not None
    assert seen.drift_epsilon == pytest.approx(seen.prequential_error / expected - 1)
    assert seen.history_kept == pytest.approx(NEGLIGIBLE / seen.drift_epsilon)
    # What is left of twelve batches of 200 points, each worth 200.
    assert seen.mass == pytest.approx(200 + 200 * seen.history_kept, rel=0.01)


@pytest.mark.parametrize("jump_at", [1, 2, 3, 4, 5])
def test_a_jump_is_seen_however_soon_it_comes(jump_at: int) -> None:
    learner = model(forgetting="adaptive")
    steps = [learner.step(batch) for batch in jumping(jump_at=jump_at)]
    assert [step.index for step in steps if step.history_kept < 1] == [jump_at]


def test_fixed_forgetting_says_the_same_and_forgets_nothing() -> None:
    fixed = [step for learner in [model()] for step in map(learner.step, jumping())]
    assert fixed[12].drift_z is not None and fixed[12].drift_z > ALARM_Z
    assert {step.history_kept for step in fixed} == {1.0}


def test_with_rho_1_the_history_leaves_whole() -> None:
    learner = model(forgetting="adaptive", rho=1.0, max_batches=20)
    steps = [learner.step(batch) for batch in jumping()]
    assert [step.n_batches for step in steps[11:14]] == [12, 1, 2]


def test_the_privileged_model_estimates_drifts_too() -> None:
    learner = PSKM(5, random_state=0)
    steps = [learner.step(batch) for batch in jumping()]
    assert steps[12].drift_z is not None and steps[12].drift_z > ALARM_Z


def test_estimates_survive_a_restart() -> None:
    learner = model(forgetting="adaptive")
    batches = jumping()
    for batch in batches[:10]:
        learner.step(batch)
    resumed = FSKM.from_state(learner.state())
    for batch in batches[10:]:
        step = resumed.step(batch)
        assert step == learner.step(batch)
        assert Step.from_dict(step.to_dict()) == step


def test_constant_points_are_no_drift() -> None:
    learner = FSKM(2, init="previous", forgetting="adaptive", random_state=0)
    for index in range(8):
        step = learner.step(Batch(index, [[0.0], [1.0], [1.0]]))
    assert step.drift_epsilon is None
    assert step.drift_z is None
    assert step.history_kept == 1.0


@pytest.mark.parametrize("forgetting", ["adapt", None, 1, ["fixed"]])
def test_any_other_forgetting_is_refused(forgetting: Any) -> None:
    with pytest.raises(
        InputError, match="forgetting must be one of 'fixed', 'adaptive', 'on-trial', got"
    ):
        FSKM(2, forgetting=forgetting)


def test_a_jump_after_errors_near_zero_is_learned() -> None:
    """Its epsilon is so large that squares of it are infinite."""
    rng = np.random.default_rng(0)
    model = FSKM(2, forgetting="adaptive", random_state=0)
    for index in range(4):
        scale = 1.0 if index == 3 else 1e-110
        step = model.step(Batch(index, rng.normal(size=(50, 2)) * scale))
    assert step.drift_epsilon is not None and step.drift_epsilon > 1e200
    assert step.drift_z is not None and 3 < step.drift_z < 10
