from __future__ import annotations

import inspect
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import kmeander
from kmeander import (
    FSKM,
    PSKM,
    Batch,
    CheckpointError,
    ForgetfulKMeans,
    PrivilegedKMeans,
    load,
)
from kmeander.models.settings import DEFAULTS, Init
from kmeander.storage import checkpoint
from tests.streams import INITS, drifting_stream

Estimator = ForgetfulKMeans | PrivilegedKMeans
ALL: list[Estimator] = [*(ForgetfulKMeans(init=init) for init in INITS), PrivilegedKMeans()]


def expected_failures(estimator: Estimator) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "the check shuffles the rows of one side, so the seedings differ; KMeans fails it, too"
        )
    }


@parametrize_with_checks(ALL, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_scikit_learns_own_checks(estimator: Estimator, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_scikit_learns_kmeans_fails_the_check_that_we_fail() -> None:
    with pytest.raises(AssertionError, match="is not equivalent to fitting with removed"):
        check_sample_weight_equivalence_on_dense_data("KMeans", KMeans())


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_fitting_with_weights_is_fitting_with_repeated_rows(estimator: Estimator) -> None:
    """What that check is after, with the rows in the same order."""
    rng = np.random.default_rng(0)
    points = rng.random((15, 30))
    weights = rng.integers(0, 5, size=15)
    repeated = clone(estimator).set_params(random_state=0).fit(points.repeat(weights, axis=0))
    weighted = clone(estimator).set_params(random_state=0).fit(points, sample_weight=weights)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(weighted.transform(points), repeated.transform(points), rtol=1e-10)


@pytest.mark.parametrize("init", INITS)
def test_forgetful_kmeans_is_fskm(init: Init) -> None:
    stream = drifting_stream(5)
    estimator = ForgetfulKMeans(4, init=init, random_state=3)
    model = FSKM(4, **{**DEFAULTS, "init": init}, random_state=3)
    for index, points in enumerate(stream):
        estimator.partial_fit(points, elapsed=1.5)
        step = model.step(Batch(index, points, elapsed=1.5))
        assert estimator.step_ == step
        assert step.centroids is not None and step.masses is not None
        assert estimator.cluster_centers_.tolist() == step.centroids.tolist()
        assert estimator.cluster_weights_.tolist() == step.masses.tolist()
        assert estimator.surrogate_error_ == step.surrogate_error
        assert estimator.inertia_ == pytest.approx(step.mass * step.surrogate_error)
        assert (estimator.n_iter_, estimator.n_steps_) == (step.n_iter, index + 1)
        assert estimator.labels_.tolist() == estimator.predict(points).tolist()


def test_privileged_kmeans_is_pskm() -> None:
    stream = drifting_stream(5)
    estimator, model = PrivilegedKMeans(4, random_state=3), PSKM(4, random_state=3)
    concept = 0
    for index, points in enumerate(stream):
        drift = index == 3
        concept += drift
        estimator.partial_fit(points, drift=drift)
        assert estimator.step_ == model.step(Batch(index, points, concept=concept))


def test_fit_forgets_everything() -> None:
    stream = drifting_stream(3)
    fresh = ForgetfulKMeans(4, random_state=0).fit(stream[2])
    used = ForgetfulKMeans(4, random_state=0).partial_fit(stream[0]).partial_fit(stream[1])
    used.fit(stream[2])
    assert used.step_ == fresh.step_
    assert used.n_steps_ == 1


def test_everybody_has_the_same_defaults() -> None:
    """The estimator's, those of `kmeander.run`, and those of the command line."""
    from kmeander.commands.run import run as command

    parameters = inspect.signature(command).parameters
    params = ForgetfulKMeans().get_params()
    for name, value in DEFAULTS.items():
        assert params[name] == value
        if name != "rho":  # None there: --half-life may be given instead
            assert parameters[name].default == value
            assert inspect.signature(kmeander.run).parameters[name].default == value


def test_as_in_paper_is_plain_fskm_whatever_the_defaults() -> None:
    plain = ForgetfulKMeans.as_in_paper(5, rho=0.457, random_state=1)
    assert plain.get_params() == {
        "n_clusters": 5,
        "init": "hungarian",
        "rho": 0.457,
        "refine": None,
        "forgetting": "fixed",
        "max_batches": None,
        "max_points": None,
        "max_iter": 300,
        "tol": 0.0,
        "n_threads": None,
        "alarm_rate": 0.001,
        "season": None,
        "prepare": None,
        "metric": "euclidean",
        "random_state": 1,
    }


def test_score_and_transform_follow_from_the_centroids() -> None:
    points = drifting_stream(1)[0]
    estimator = ForgetfulKMeans(4, random_state=0).fit(points)
    distances = np.linalg.norm(points[:, None] - estimator.cluster_centers_, axis=2)
    np.testing.assert_allclose(estimator.transform(points), distances, rtol=1e-12)
    squared = distances.min(axis=1) ** 2
    assert estimator.score(points) == pytest.approx(-squared.sum())
    assert estimator.score(points) == pytest.approx(-estimator.inertia_)
    weights = np.arange(60.0)
    assert estimator.score(points, sample_weight=weights) == pytest.approx(-weights @ squared)
    np.testing.assert_allclose(
        ForgetfulKMeans(4, random_state=0).fit_transform(points), distances, rtol=1e-12
    )
    assert estimator.fit_predict(points).tolist() == estimator.labels_.tolist()


def test_float32_is_kept_where_it_counts() -> None:
    points = drifting_stream(1)[0].astype(np.float32)
    estimator = ForgetfulKMeans(4, random_state=0).fit(points)
    assert estimator.transform(points).dtype == np.float32
    assert estimator.cluster_centers_.dtype == np.float64
    wide = ForgetfulKMeans(4, random_state=0).fit(points.astype(np.float64))
    assert wide.cluster_centers_.tobytes() == estimator.cluster_centers_.tobytes()


def test_pickle_and_clone() -> None:
    stream = drifting_stream(3)
    estimator = ForgetfulKMeans(4, rho=0.7, random_state=0).partial_fit(stream[0])
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.partial_fit(stream[1]).step_ == estimator.partial_fit(stream[1]).step_
    blank = clone(estimator)
    assert blank.get_params() == estimator.get_params()
    assert not hasattr(blank, "cluster_centers_")


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_save_and_load_go_on_as_if_nothing_had_happened(
    estimator: Estimator, tmp_path: Path
) -> None:
    names = ["a", "b", "c"]
    stream = [pd.DataFrame(points, columns=names) for points in drifting_stream(4)]
    estimator = clone(estimator).set_params(n_clusters=4, random_state=5)
    estimator.partial_fit(stream[0]).partial_fit(stream[1])
    estimator.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.labels_.tolist() == estimator.labels_.tolist()
    assert loaded.step_ == estimator.step_
    for points in stream[2:]:
        assert loaded.partial_fit(points).step_ == estimator.partial_fit(points).step_
    assert checkpoint.to_bytes(loaded._model.state()) == checkpoint.to_bytes(
        estimator._model.state()
    )


def test_an_estimator_without_data_or_with_a_generator_can_be_saved(tmp_path: Path) -> None:
    ForgetfulKMeans(3, rho=0.9).save(tmp_path / "blank")
    assert load(tmp_path / "blank").get_params() == ForgetfulKMeans(3, rho=0.9).get_params()
    estimator = ForgetfulKMeans(3, random_state=np.random.RandomState(0)).fit(drifting_stream(1)[0])
    estimator.save(tmp_path / "drawn")
    assert load(tmp_path / "drawn").random_state == estimator._model.seed


def test_pipelines_names_and_frames() -> None:
    stream = [pd.DataFrame(points, columns=["a", "b", "c"]) for points in drifting_stream(2)]
    pipeline = make_pipeline(StandardScaler(), ForgetfulKMeans(4, random_state=0))
    pipeline.set_output(transform="pandas")
    distances = pipeline.fit_transform(stream[0])
    assert isinstance(distances, pd.DataFrame)
    assert distances.columns.tolist() == [f"forgetfulkmeans{k}" for k in range(4)]
    assert distances.index.tolist() == stream[0].index.tolist()
    assert pipeline.predict(stream[1]).shape == (60,)
    estimator = ForgetfulKMeans(4, random_state=0).partial_fit(stream[0])
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    assert estimator.get_feature_names_out().tolist() == distances.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        estimator.partial_fit(stream[1].rename(columns={"a": "z"}))


def test_stopping_at_max_iter_warns() -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))
    message = (
        r"^Lloyd stopped at max_iter=1 before the labels settled at batch 0\. "
        r"Raise max_iter, or tol to accept less\.$"
    )
    for learn in ("fit", "partial_fit"):
        estimator = ForgetfulKMeans(10, max_iter=1, random_state=0)
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            getattr(estimator, learn)(points)
        assert Path(caught[0].filename) == Path(__file__)  # it points at the user's line
        assert estimator.labels_.tolist() == estimator.predict(points).tolist()


def test_predict_sees_the_old_model_or_the_new_one_never_a_mixture() -> None:
    """All clusters move by 1000 at every batch, so a mixture would show as a mixed distance."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=100.0, size=(8, 4))
    estimator = ForgetfulKMeans(8, init="previous", rho=0.001, random_state=0)
    estimator.partial_fit(np.repeat(centres, 50, axis=0))
    probe = np.concatenate([centres + 1000.0 * move for move in range(40)])
    over = threading.Event()
    seen: list[Any] = []

    def watch() -> None:
        while not over.is_set():
            seen.append(estimator.transform(probe))

    watcher = threading.Thread(target=watch)
    watcher.start()
    states = [estimator.transform(probe)]
    for move in range(1, 40):
        estimator.partial_fit(np.repeat(centres + 1000.0 * move, 50, axis=0))
        states.append(estimator.transform(probe))
    over.set()
    watcher.join()
    known = {state.tobytes() for state in states}
    assert len(known) > 30
    assert seen
    assert all(state.tobytes() in known for state in seen)


def test_inputs_are_not_touched() -> None:
    points = drifting_stream(1)[0]
    weights = np.linspace(0, 2, 60)
    copies = points.copy(), weights.copy()
    ForgetfulKMeans(4, random_state=0).fit(points, sample_weight=weights).predict(points)
    assert (points == copies[0]).all()
    assert (weights == copies[1]).all()
    points.flags.writeable = False
    ForgetfulKMeans(4, random_state=0).partial_fit(points).partial_fit(points)


def test_what_is_shown_cannot_damage_the_model() -> None:
    estimator = ForgetfulKMeans(4, random_state=0).fit(drifting_stream(1)[0])
    with pytest.raises(ValueError, match="read-only"):
        estimator.cluster_centers_[0] = 0.0


def test_predict_does_not_notice_a_bad_batch_in_another_thread() -> None:
    """Nor a batch of other columns that fit is busy with."""
    points = drifting_stream(1, n_points=200)[0]
    estimator = ForgetfulKMeans(4, random_state=0).partial_fit(points)
    expected = estimator.predict(points).tolist()
    bad = points.copy()
    bad[0, 0] = np.nan
    over = threading.Event()
    wrong: list[object] = []

    def watch() -> None:
        while not over.is_set():
            try:
                if estimator.predict(points).tolist() != expected:
                    wrong.append("labels")
            except Exception as error:  # whatever it is, it is wrong
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    watchers = [threading.Thread(target=watch) for _ in range(3)]
    try:
        for watcher in watchers:
            watcher.start()
        for _ in range(200):
            for refused in (bad, np.zeros((2, 7))):
                with pytest.raises(ValueError):
                    estimator.fit(refused)
                with pytest.raises(ValueError):
                    estimator.partial_fit(refused)
    finally:
        over.set()
        sys.setswitchinterval(interval)
        for watcher in watchers:
            watcher.join()
    assert wrong == []


def test_a_warning_turned_into_an_error_leaves_the_model_as_it_was() -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))
    estimator = ForgetfulKMeans(10, max_iter=1, random_state=0)
    with pytest.raises(ConvergenceWarning):  # the test run makes errors of warnings
        estimator.partial_fit(points)
    assert not hasattr(estimator, "n_steps_")


def test_a_refused_fit_does_not_draw_from_the_generator() -> None:
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    with pytest.raises(ValueError, match="needs at least as many to fit"):
        ForgetfulKMeans(9, random_state=generator).fit(np.zeros((3, 2)))
    assert generator.bit_generator.state == before


def test_numpy_scalars_are_parameters_like_any_other(tmp_path: Path) -> None:
    points = drifting_stream(1)[0]
    estimator = ForgetfulKMeans(
        np.int64(3),  # type: ignore[arg-type]
        rho=np.float32(0.5),  # type: ignore[arg-type]
        max_batches=np.int64(4),  # type: ignore[arg-type]
        max_iter=np.int32(50),  # type: ignore[arg-type]
        random_state=np.int64(7),  # type: ignore[arg-type]
    )
    estimator.fit(points).save(tmp_path / "model")
    assert load(tmp_path / "model").step_ == estimator.step_


def test_what_load_could_not_make_again_is_not_saved(tmp_path: Path) -> None:
    class Mine(ForgetfulKMeans):
        pass

    with pytest.raises(CheckpointError, match="a Mine cannot be saved"):
        Mine(2).save(tmp_path / "mine")
    with pytest.raises(CheckpointError, match="nothing has been drawn yet"):
        ForgetfulKMeans(2, random_state=np.random.default_rng(0)).save(tmp_path / "undrawn")
    with pytest.raises(FileNotFoundError) as caught:
        ForgetfulKMeans(2).save(tmp_path / "nowhere" / "model")
    assert str(caught.value) == (
        f"{tmp_path / 'nowhere' / 'model'} cannot be written: there is no folder "
        f"{tmp_path / 'nowhere'}."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_pickled_model_cannot_be_damaged_through_what_it_shows() -> None:
    estimator = pickle.loads(pickle.dumps(ForgetfulKMeans(4).fit(drifting_stream(1)[0])))
    for shown in (estimator.cluster_centers_, estimator.cluster_weights_, estimator.labels_):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 0


def test_frames_are_answered_with_the_names_of_their_columns() -> None:
    frame = pd.DataFrame({"temp": [1.0, 2.0], "load": [3.0, np.nan]})
    with pytest.raises(ValueError) as caught:
        ForgetfulKMeans(1).fit(frame)
    assert str(caught.value) == (
        "X holds NaN at row 1, column 'load'. Every value must be finite; drop or fill such rows "
        "first."
    )
    dated = pd.DataFrame({"a": [1.0], "when": [pd.Timestamp("2026-01-01")]})
    with pytest.raises(ValueError) as caught:
        ForgetfulKMeans(1).fit(dated)
    assert str(caught.value) == (
        "X has columns that are no numbers: 'when' (datetime64[ns]). Leave them out, convert dates "
        'and durations to numbers, or let prepare="auto" leave out times.'
    )


def test_drift_is_yes_or_no() -> None:
    with pytest.raises(ValueError) as caught:
        PrivilegedKMeans(1).partial_fit([[1.0]], drift="no")  # type: ignore[arg-type]
    assert str(caught.value) == "drift must be True or False, got 'no'."


def test_the_first_batch_counts_its_passes_and_keeps_to_max_iter() -> None:
    points = np.random.default_rng(0).normal(size=(2000, 2))
    whole = ForgetfulKMeans(10, random_state=0).fit(points)
    assert whole.n_iter_ > 5
    with pytest.warns(ConvergenceWarning):
        short = ForgetfulKMeans(10, random_state=0, max_iter=3).fit(points)
    assert short.n_iter_ == 4


def test_a_kernel_of_another_kind_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ForgetfulKMeans(1).fit([[1.0]]).save(tmp_path / "model")
    monkeypatch.setattr("kmeander.storage.model_file.INSTRUCTION_SET", "another")
    with pytest.warns(UserWarning, match="results agree to rounding, not to the last bit"):
        load(tmp_path / "model")
