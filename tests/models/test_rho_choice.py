"""rho="auto": every rho forecasts each batch, and the best forecaster is taken."""

from __future__ import annotations

import numpy as np
import pytest

from kmeander import FSKM, Batch, ForgetfulKMeans
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.models.rho_choice import LONGEST, RHOS, SCORE_HALF_LIFE, RhoChoice, means
from tests import naive
from tests.streams import batches_of, random_window


def walking(n_batches: int, stride: float, n_points: int = 100) -> list[Batch]:
    """Two clusters, one of which moves on by `stride` at every batch."""
    rng = np.random.default_rng(0)
    return [
        Batch(
            index,
            np.concatenate([np.zeros((n_points, 2)), np.full((n_points, 2), 50 + stride * index)])
            + rng.normal(size=(2 * n_points, 2)),
        )
        for index in range(n_batches)
    ]


def test_there_are_half_lives_of_half_a_batch_to_four() -> None:
    assert [float(np.log(0.5) / np.log(rho)) for rho in RHOS] == pytest.approx([0.5, 1, 2, 4])


@pytest.mark.parametrize("rho", RHOS)
def test_means_are_those_of_the_plain_loops(rho: float) -> None:
    window, starts = random_window(3, 4, 2, 4)
    window = fit_window(window, starts, Limits(), keep_sums=True).window
    points = np.concatenate([batch.points for batch in window.batches])
    labels = np.concatenate(window.labels)
    weights = np.concatenate(
        [
            rho**age * (np.ones(len(batch.points)) if batch.weights is None else batch.weights)
            for batch, age in zip(window.batches, window.ages, strict=True)
        ]
    )
    found = means(window, rho, np.full((4, 2), np.nan))
    for k in range(4):
        rows = np.flatnonzero(labels == k).tolist()
        if weights[rows].sum() > 0:
            np.testing.assert_allclose(found[k], naive.mean_of(points, weights, rows))


def test_a_cluster_that_weighs_nothing_stays_where_it_is() -> None:
    window, starts = random_window(3, 4, 2, 2)
    far = np.concatenate([starts, [[1e6, 1e6]]])
    window = fit_window(window, far, Limits(), only_assign=True).window
    assert means(window, 0.5, far)[4].tolist() == [1e6, 1e6]


def test_scores_are_decayed_shares_of_the_mean_error() -> None:
    batches = walking(4, 2.0)
    model = FSKM(2, rho="auto", init="previous", random_state=0)
    choice = RhoChoice()
    for batch in batches:
        if model.centroids is not None:
            errors = np.array(
                [
                    naive.kmeans_error(batch.points, means(model.window, rho, model.centroids))
                    for rho in RHOS
                ]
            )
            scores = 0.5 ** (1 / SCORE_HALF_LIFE) * np.array(choice.scores) + errors / errors.mean()
            choice = choice.after(model.window, batch, model.centroids, Limits(n_threads=1))
            assert choice.scores == pytest.approx(scores)
        model.step(batch)
    assert model.state()["ladder"] == list(choice.scores)


def test_a_stream_that_stands_still_is_remembered_long_and_one_that_runs_is_not() -> None:
    chosen = []
    for stride in (0.0, 4.0):
        model = FSKM(2, rho="auto", random_state=0)
        steps = [model.step(batch) for batch in walking(20, stride)]
        chosen.append(steps[-1].rho)
    assert chosen == [LONGEST, min(RHOS)]


def test_the_window_is_as_long_as_the_longest_memory_needs() -> None:
    model = FSKM(2, rho="auto", random_state=0)
    steps = [model.step(batch) for batch in walking(40, 4.0, n_points=10)]
    assert steps[-1].n_batches == 27
    assert steps[-1].mass == pytest.approx(20 / (1 - min(RHOS)), rel=1e-3)


def test_forecasts_are_counted() -> None:
    """Those of the present rho are forecast like all others; nothing else differs."""
    batches = walking(2, 0.0)  # as long as all agree
    given, chosen = [FSKM(2, rho=rho, init="previous", random_state=0) for rho in (LONGEST, "auto")]
    for batch in batches:
        plain, choosing = given.step(batch), chosen.step(batch)
        n_forecast = 0 if batch.index == 0 else len(RHOS) * batch.n_points * 2
        assert choosing.n_distances == plain.n_distances + n_forecast
        assert choosing.rho == plain.rho


def test_a_model_that_chooses_rho_survives_a_restart() -> None:
    model = FSKM(4, rho="auto", refine="swaps", forgetting="adaptive", random_state=1)
    batches = batches_of(14)
    for batch in batches[:6]:
        model.step(batch)
    resumed = FSKM.from_state(model.state())
    for batch in batches[6:]:
        assert resumed.step(batch) == model.step(batch)


def test_rho_may_become_auto_in_mid_stream_and_back() -> None:
    estimator = ForgetfulKMeans(2, rho=0.3, random_state=0)
    for batch in walking(4, 0.0):
        estimator.partial_fit(batch.points)
    estimator.set_params(rho="auto")
    for batch in walking(6, 0.0):
        estimator.partial_fit(batch.points)
    assert estimator.step_.rho == LONGEST
    estimator.set_params(rho=0.3).partial_fit(walking(1, 0.0)[0].points)
    assert estimator.step_.rho == 0.3


def test_batches_smaller_than_the_number_of_clusters_are_forecast_too() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(5, rho="auto", random_state=0)
    for index in range(30):
        step = model.step(Batch(index, rng.normal(size=(3, 2))))
    assert step.rho in RHOS
    assert any(model.state()["ladder"])


def test_a_batch_of_means_counts_what_its_means_hide() -> None:
    """Four rows and the two means that stand for them are forecast with the same errors."""
    model = FSKM(2, rho="auto", init="previous", random_state=0)
    for batch in walking(3, 2.0):
        model.step(batch)
    assert model.centroids is not None
    rows = Batch(3, [[0.0, 0.0], [2.0, 0.0], [50.0, 50.0], [52.0, 50.0]])
    means_of_rows = Batch.of_means(3, [[1.0, 0.0], [51.0, 50.0]], [2, 2], within=4.0, n_rows=4)
    ladders = [
        RhoChoice().after(model.window, batch, model.centroids, Limits(n_threads=1))
        for batch in (rows, means_of_rows)
    ]
    assert ladders[0].scores == pytest.approx(ladders[1].scores)
