"""rho="two-speed": the plain loops' answer, thinned batches, alarms, and what it is good for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import FSKM, Batch, ForgetfulKMeans
from kmeander.kmeans.forgetting import FAST, TAIL
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.window import Window
from kmeander.kmeans.window_coreset import thin
from kmeander.models.rho_choice import CHOICES, FIRST, TWO_SPEEDS, RhoChoice, Speeds, means
from tests import naive
from tests.streams import INITS, batches_of, random_window, rows_of

CLEAR = 1e-9
DEFAULTS: dict[str, Any] = {
    "init": "previous", "rho": "two-speed", "refine": "swaps", "forgetting": "adaptive",
}  # fmt: skip


def weight_of(model: FSKM, age: float) -> float:
    """What a batch of that age weighs by the speeds that were chosen."""
    assert model.learned.rho_choice is not None
    rho, tail = model.learned.rho_choice.best
    assert tail is not None
    return tail.weight(rho, age)


@given(
    seed=st.integers(0, 2**32 - 1),
    elapsed=st.lists(st.sampled_from([0.5, 1.0, 1.0, 2.5, 30.0]), min_size=3, max_size=9),
    has_weights=st.booleans(),
)
def test_any_stream_equals_the_plain_loops(
    seed: int, elapsed: list[float], has_weights: bool
) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(3, 2))
    with pytest.MonkeyPatch.context() as only_one:  # choosing has tests of its own
        only_one.setitem(CHOICES, "two-speed", (Speeds(FAST, TAIL),))
        model = FSKM(3, init="previous", rho="two-speed", random_state=seed % 1000)
    plain = naive.TwoSpeeds(3, seed % 1000)
    for index, passed in enumerate([1.0, *elapsed]):
        rows = centres[rng.integers(3, size=14)] + rng.normal(size=(14, 2))
        weights = rng.choice([0.5, 1.0, 3.0], size=14) if has_weights else np.ones(14)
        expected = plain.step(rows.tolist(), weights.tolist(), passed)
        step = model.step(Batch(index, rows, weights if has_weights else None, passed))
        if expected.margin < CLEAR:
            event("not clear")
            return
        assert step.centroids is not None
        assert step.masses is not None
        order = rows_of(step.centroids, expected.centroids)
        np.testing.assert_allclose(
            step.centroids, np.array(expected.centroids)[order], rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(step.masses, np.array(expected.masses)[order], rtol=1e-9)
        error = expected.error + plain.hidden / sum(expected.masses)
        assert step.surrogate_error == pytest.approx(error, rel=1e-9)
        assert step.rho == pytest.approx(0.97 * 0.3 + 0.03 * 0.95)
        if (order != np.arange(3)).any():
            return  # the plain loops do not keep a cluster's row
        event(f"thinned: {step.n_summarised > 0}")


@given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(2, 8))
def test_thinning_keeps_masses_means_and_errors(seed: int, n_clusters: int) -> None:
    window, starts = random_window(seed, n_clusters, 3, 4)
    fit = fit_window(window, starts, Limits())
    older = fit.window.aged(3.0, np.inf, None, tail=TAIL)
    thinned = thin(older, fit.window.ages, fit.centroids, Limits()).window
    assert thinned.n_points < older.n_points
    assert thinned.mass == pytest.approx(older.mass)
    assert thinned.n_batches == older.n_batches
    assert thinned.ages == older.ages
    for was, now in zip(older.batches, thinned.batches, strict=True):
        np.testing.assert_allclose(
            now.weights_or_ones @ now.points, was.weights_or_ones @ was.points, atol=1e-9
        )
    place = np.ones((1, 3))
    errors = [
        fit_window(Window(one.rho, one.batches, one.ages, tail=TAIL), place, Limits(),
                   only_assign=True).error
        for one in (older, thinned)
    ]  # fmt: skip
    assert errors[1] == pytest.approx(errors[0])
    # What is known of the points is true: the nearest centroid, and bounds.
    partition = thinned.partition
    assert partition is not None
    assert partition.bounds is not None
    points = np.concatenate([batch.points for batch in thinned.batches])
    distances = np.sqrt(((points[:, np.newaxis] - fit.centroids) ** 2).sum(axis=2))
    rows = np.arange(len(points))
    own = distances[rows, partition.labels]
    np.testing.assert_allclose(own, distances.min(axis=1), rtol=1e-9, atol=1e-12)
    assert (partition.bounds.upper >= own).all()
    distances[rows, partition.labels] = np.inf
    assert (partition.bounds.lower <= distances.min(axis=1)).all()


def test_where_no_batch_comes_of_age_nothing_is_thinned() -> None:
    window, starts = random_window(0, 3, 2, 4)
    fit = fit_window(window, starts, Limits())
    assert fit.window.ages == (3.0, 2.0, 1.0, 0.0)
    older = fit.window.aged(0.5, np.inf, None)
    found = thin(older, fit.window.ages, fit.centroids, Limits())
    assert found.window is older
    assert found.n_distances == 0


def test_sixty_four_batches_are_the_rows_of_seven() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(4, **DEFAULTS, random_state=0)
    for index in range(80):
        step = model.step(Batch(index, rng.normal(size=(300, 2))))
    assert step.n_batches == 64
    assert step.n_summarised == 61
    assert model.window.n_points <= 7 * 300
    expected = sum(weight_of(model, age) for age in range(64)) * 300
    assert step.mass == pytest.approx(expected)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("more", [{}, {"max_points": 90}, {"refine": "split-merge"}])
def test_a_stream_survives_a_restart_bit_for_bit(init: str, more: dict[str, Any]) -> None:
    settings = {**DEFAULTS, "init": init, **more}
    model = FSKM(4, **settings, random_state=3)
    batches = batches_of(20)
    for batch in batches[:9]:
        model.step(batch)
    assert model.window.kept is not None  # there was an alarm
    resumed = FSKM.from_state(model.state())
    for batch in batches[9:]:
        assert resumed.step(batch) == model.step(batch)


def test_threads_do_not_change_a_single_bit() -> None:
    models = [FSKM(6, **DEFAULTS, n_threads=n, random_state=0) for n in (1, 3)]
    rng = np.random.default_rng(0)
    for index in range(6):
        rows = rng.normal(size=(4000, 5))
        alone, together = (model.step(Batch(index, rows)) for model in models)
        assert alone == together


def test_an_alarm_takes_weight_for_good_and_what_weighs_nothing_leaves() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(2, **DEFAULTS, random_state=0)
    places = np.array([[0.0], [10.0]])
    kept = []
    for index in range(24):
        far = 1000.0 * (index // 8)
        rows = far + places[rng.integers(2, size=200)] + rng.normal(size=(200, 1))
        kept.append(model.step(Batch(index, rows)).history_kept)
    assert [index for index, one in enumerate(kept) if one < 1] == [8, 16]
    assert len(model.window) == 8  # all others have lost more than all but a millionth
    rows = 2010.0 + places[rng.integers(2, size=200)] + rng.normal(size=(200, 1))
    step = model.step(Batch(24, rows))
    assert step.history_kept < 1
    assert model.window.kept == pytest.approx((step.history_kept,) * 8 + (1.0,))
    weights = [step.history_kept * weight_of(model, age) for age in range(8, 0, -1)]
    np.testing.assert_allclose(model.window.decay, [*weights, 1.0])


def test_what_is_rare_is_remembered() -> None:
    """Every twelfth batch brings a group that is far from all others."""

    def errors(rho: Any) -> NDArray[np.float64]:
        rng = np.random.default_rng(0)
        model = FSKM(3, **{**DEFAULTS, "rho": rho, "forgetting": "fixed"}, random_state=0)
        found = []
        for index in range(60):
            rows = rng.normal(size=(200, 2)) + 8.0 * rng.integers(3, size=(200, 1))
            if index % 12 == 11:
                rows[:40] += [0.0, 300.0]
            found.append(model.step(Batch(index, rows)).prequential_error or 0.0)
        return np.array(found)

    short, two_speed = errors(0.6), errors("two-speed")
    assert two_speed[12:].mean() < short[12:].mean() / 10


def test_the_tail_has_the_same_share_of_all_weight_as_in_a_mixture_of_two_memories() -> None:
    ages = np.arange(4000)
    shares = []
    for rho, tail in TWO_SPEEDS:
        assert tail is not None
        fast, slow = (1 - tail.share) * rho**ages, tail.share * tail.slow**ages
        shares.append(slow.sum() / (fast.sum() + slow.sum()))
    assert shares[:3] == pytest.approx([0.03, 0.3, 0.3], abs=0.01)
    assert TWO_SPEEDS[3].rho == TAIL.slow  # one speed: that of the tail


def test_speeds_are_scored_by_decayed_errors_outliers_at_full_cost() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(2, init="previous", rho="two-speed", random_state=0)
    scores = np.zeros(len(TWO_SPEEDS))
    for index in range(5):
        rows = rng.normal(size=(40, 2)) + 9.0 * rng.integers(2, size=(40, 1))
        if index:
            assert model.centroids is not None
            places = [means(model.window, rho, model.centroids, tail) for rho, tail in TWO_SPEEDS]
            errors = [naive.kmeans_error(rows, place) for place in places]
            scores = 0.5**0.1 * scores + np.array(errors)
        model.step(Batch(index, rows))
    assert model.state()["ladder"] == pytest.approx(scores.tolist())


def test_of_equal_forecasts_the_longest_memory_is_taken_and_the_first_before_any() -> None:
    assert RhoChoice((0.0,) * 4, TWO_SPEEDS).best == FIRST["two-speed"]
    assert RhoChoice((2.0, 1.0, 1.0, 3.0), TWO_SPEEDS).best == TWO_SPEEDS[2]


def test_a_stream_that_moves_is_forgotten_fast_and_one_that_stands_still_slowly() -> None:
    chosen = []
    for stride in (0.0, 4.0):
        rng = np.random.default_rng(0)
        model = FSKM(2, init="previous", rho="two-speed", random_state=0)
        for index in range(20):
            rows = rng.normal(size=(100, 2)) + 50.0 * rng.integers(2, size=(100, 1))
            model.step(Batch(index, rows + stride * index))
        assert model.learned.rho_choice is not None
        chosen.append(model.learned.rho_choice.best)
    assert chosen == [TWO_SPEEDS[-1], TWO_SPEEDS[0]]


def test_the_estimator_takes_it_and_pickles() -> None:
    import pickle

    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(3, rho="two-speed", random_state=0)
    for _ in range(6):
        model.partial_fit(rng.normal(size=(50, 2)))
    copy = pickle.loads(pickle.dumps(model))
    rows = rng.normal(size=(50, 2))
    assert copy.partial_fit(rows).step_ == model.partial_fit(rows).step_
    assert model.inertia_ == pytest.approx(model.surrogate_error_ * model.cluster_weights_.sum())
