"""Models with metric="cosine": errors are those of plain loops over angles, whatever is summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kmeander import FSKM, PSKM, Batch, ForgetfulKMeans, InputError, PrivilegedKMeans, load
from kmeander.kmeans.coreset import Compressor
from kmeander.kmeans.metric import COSINE
from kmeander.preparation import Preparation, rows_of
from tests import naive_sphere
from tests.streams import INITS

RHO = 0.5


def directions(n_batches: int, n: int = 60, seed: int = 0) -> list[Any]:
    """Rows about four directions, each row of a length of its own; the directions turn."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 3))
    batches = []
    for t in range(n_batches):
        rows = (centres + 0.1 * t)[rng.integers(4, size=n)] + 0.15 * rng.normal(size=(n, 3))
        batches.append(rows * rng.lognormal(sigma=2, size=(n, 1)))
    return batches


def lengths(rows: Any) -> Any:
    return np.sqrt((rows**2).sum(axis=1))


def check(step: Any, batches: list[Any]) -> None:
    """Errors are 1 - cosine over the rows as they came, of centroids of length 1."""
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
    decays = [RHO**age for age in range(len(batches))][::-1]
    weights = [w for w, batch in zip(decays, batches, strict=True) for _ in batch]
    rows = np.concatenate(batches)
    plain = naive_sphere.error(rows, step.centroids, weights)
    assert step.surrogate_error == pytest.approx(plain, rel=1e-9)
    assert step.batch_error == pytest.approx(naive_sphere.error(batches[-1], step.centroids))


@pytest.mark.parametrize("refine", [None, "swaps"])
@pytest.mark.parametrize("init", INITS)
def test_steps_tell_errors_as_angles(init: str, refine: str | None) -> None:
    model, seen = FSKM(4, init=init, rho=RHO, refine=refine, metric="cosine", random_state=0), []
    before: Any = None
    for index, rows in enumerate(directions(5)):
        step = model.step(Batch(index, rows))
        seen.append(rows)
        check(step, seen)
        if before is not None:
            plain = naive_sphere.error(rows, before.centroids)
            assert step.prequential_error == pytest.approx(plain, rel=1e-9)
            assert step.drift_epsilon == pytest.approx(plain / before.expected_error - 1)
        before = step


def test_a_long_memory_keeps_means_within_the_sphere() -> None:
    model = FSKM(4, rho=0.9, max_points=150, metric="cosine", random_state=0)
    batches = directions(12)
    for index, rows in enumerate(batches):
        step = model.step(Batch(index, rows))
    assert step.n_summarised > 0
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
    for batch in model.window.batches:
        assert (lengths(batch.points) <= 1 + 1e-12).all()
    whole = FSKM(4, rho=0.9, metric="cosine", random_state=0)
    for index, rows in enumerate(batches):
        exact = whole.step(Batch(index, rows))
    assert step.surrogate_error == pytest.approx(exact.surrogate_error, rel=0.05)


def test_a_batch_of_means_costs_what_its_rows_do() -> None:
    """Where there is but one centroid no mean's rows would be divided."""
    rows = directions(1, n=400)[0]
    compressor = Compressor(64)
    compressor.add(COSINE.points(rows))
    coreset = compressor.coreset()
    assert coreset is not None
    model = FSKM(1, metric="cosine", random_state=0)
    step = model.step(coreset.batch(0))
    assert step.centroids is not None
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
    plain = naive_sphere.error(rows, step.centroids)
    assert step.surrogate_error == pytest.approx(plain, rel=1e-9)


def test_means_of_rows_that_kept_their_length_are_refused() -> None:
    batch = Batch.of_means(0, [[2.0, 0.0], [0.0, 1.0]], [1, 1], within=0.0, n_rows=2)
    model = FSKM(2, metric="cosine")
    before = model.state()
    with pytest.raises(InputError) as refused:
        model.step(batch)
    assert str(refused.value) == (
        'means has one of length 2, and metric="cosine" takes means of rows of length 1, which are '
        "no longer. Divide rows by their length first."
    )
    assert repr(model.state()) == repr(before)


def test_rho_is_chosen_on_the_sphere() -> None:
    model = FSKM(4, rho="auto", metric="cosine", random_state=0)
    for index, rows in enumerate(directions(8)):
        step = model.step(Batch(index, rows))
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
    assert model.learned.rho_choice is not None
    assert len(set(model.learned.rho_choice.scores)) > 1


def test_a_model_goes_on_to_the_same_bits() -> None:
    batches = directions(6)
    whole = FSKM(4, refine="swaps", metric="cosine", random_state=3)
    steps = [whole.step(Batch(index, rows)) for index, rows in enumerate(batches)]
    model = FSKM(4, refine="swaps", metric="cosine", random_state=3)
    for index, rows in enumerate(batches[:3]):
        model.step(Batch(index, rows))
    again = FSKM.from_state(model.state())
    assert again.settings.metric == "cosine"
    for index, rows in enumerate(batches[3:], start=3):
        assert again.step(Batch(index, rows)) == steps[index]


def test_a_state_of_before_there_were_metrics_is_euclidean() -> None:
    state = FSKM(2, random_state=0).state()
    del state["settings"]["metric"]
    assert FSKM.from_state(state).settings.metric == "euclidean"


def test_pskm_begins_anew_on_the_sphere() -> None:
    batches = directions(4)
    model = PSKM(4, metric="cosine", random_state=0)
    for index, rows in enumerate(batches):
        step = model.step(Batch(index, rows, concept=int(index >= 2)))
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
    plain = naive_sphere.error(np.concatenate(batches[2:]), step.centroids)
    assert step.surrogate_error == pytest.approx(plain, rel=1e-9)


def test_the_metric_cannot_change_in_mid_stream() -> None:
    estimator = ForgetfulKMeans(4, random_state=0).partial_fit(directions(1)[0])
    centres = estimator.cluster_centers_
    with pytest.raises(InputError) as refused:
        estimator.set_params(metric="cosine").partial_fit(directions(1)[0])
    assert str(refused.value) == (
        "metric is 'cosine', but the stream was begun with 'euclidean', and its points lie "
        "elsewhere. Use that, or begin anew."
    )
    assert estimator.cluster_centers_ is centres


@pytest.mark.parametrize("kind", [ForgetfulKMeans, PrivilegedKMeans])
def test_the_estimator_answers_in_angles(kind: Any, tmp_path: Any) -> None:
    rows = directions(1)[0]
    model = kind(4, metric="cosine", random_state=0).fit(rows)
    cosines = np.array([[naive_sphere.cosine(x, c) for c in model.cluster_centers_] for x in rows])
    np.testing.assert_allclose(model.transform(rows), 1 - cosines, atol=1e-12)
    assert model.predict(rows).tolist() == cosines.argmax(axis=1).tolist()
    assert model.labels_.tolist() == model.predict(rows * 8).tolist()
    costs = (1 - cosines).min(axis=1)
    assert model.score(rows) == pytest.approx(-costs.sum())
    assert model.inertia_ == pytest.approx(costs.sum())
    assert model.surrogate_error_ == pytest.approx(costs.mean())
    model.save(tmp_path / "model.km")
    again = load(tmp_path / "model.km")
    assert again.metric == "cosine"
    assert again.predict(rows).tolist() == model.labels_.tolist()


def test_scikit_learns_pipeline_has_the_same_clusters() -> None:
    rows = directions(1)[0]
    model = ForgetfulKMeans(4, metric="cosine", random_state=0).fit(rows)
    given_away = model.to_sklearn()
    assert given_away.predict(rows).tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(given_away.transform(rows) ** 2 / 2, model.transform(rows))


def test_rows_are_unusual_by_their_angle() -> None:
    """Scores of ordinary rows pass the threshold as often as asked; length does not count."""
    model = ForgetfulKMeans(4, rho=0.8, metric="cosine", random_state=0)
    batches = directions(6, n=300)
    for rows in batches:
        model.partial_fit(rows)
    scores = model.score_samples(batches[-1])
    np.testing.assert_array_equal(model.score_samples(batches[-1] * 4), scores)
    assert 0.7 < np.sqrt((scores**2).mean()) < 1.3
    assert (model.score_samples(-batches[-1]) > model.novelty_threshold(0.01)).mean() > 0.5
    # Each row's batch is left out of a centroid, which is again one of length 1.
    assert (scores > model.novelty_threshold(0.05)).mean() < 0.1


@pytest.mark.parametrize("call", ["partial_fit", "fit", "predict", "transform", "score"])
def test_zeros_are_refused_and_change_nothing(call: str) -> None:
    model = ForgetfulKMeans(2, metric="cosine", random_state=0).partial_fit(directions(1)[0])
    before = repr(model._model.state())
    bad = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(InputError, match=r"^X holds only zeros at row 1, and "):
        getattr(model, call)(bad)
    assert repr(model._model.state()) == before


def test_auto_preparation_leaves_directions_as_they_are() -> None:
    """Another origin or unit would change every angle."""
    rows = directions(1)[0]
    plain = ForgetfulKMeans(4, metric="cosine", random_state=0).fit(rows)
    prepared = ForgetfulKMeans(4, metric="cosine", prepare="auto", random_state=0).fit(rows)
    np.testing.assert_array_equal(prepared.cluster_centers_, plain.cluster_centers_)
    assert prepared._model.settings.rules == Preparation(scale="none")


def test_units_that_are_revised_keep_directions() -> None:
    """A point of length 1 in new units has the direction that its row has in them."""
    rng = np.random.default_rng(0)
    rules = Preparation(scale="robust", identifiers="keep")
    model = FSKM(2, rho=0.9, prepare=rules, metric="cosine", random_state=0)
    rows = []
    for t in range(12):
        values = rng.normal([0, 3, 0], size=(600, 3))
        values[:, 2] *= 1 if t < 3 else 8
        rows.append(values)
        step = model.learn(rows_of(values))
        if any(event.kind == "rescaled" for event in step.events):
            break
    else:
        pytest.fail("no unit was revised")
    assert model.learned.preparation is not None
    prepared = model.learned.preparation.prepared(rows_of(rows[-2])).points
    found = model.window.batches[-2].points
    np.testing.assert_allclose(found, COSINE.points(prepared), rtol=1e-12, atol=1e-12)
    assert step.centroids is not None
    np.testing.assert_allclose(lengths(step.centroids), 1, rtol=1e-12)
