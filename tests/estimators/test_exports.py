"""A model in other systems: scikit-learn's KMeans, ONNX, MLflow, Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kmeander import ForgetfulKMeans, Preparation, PrivilegedKMeans
from kmeander.preparation import rows_of
from tests.strategies import COARSE, FINE, tables


def is_clear(points: Any, centroids: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows have a nearest centroid that rounding to float32 cannot change."""
    points = np.asarray(points, dtype=np.float64)
    squared = ((points[:, np.newaxis] - centroids) ** 2).sum(axis=2)
    size = (points**2).sum(axis=1) + (centroids**2).sum(axis=1).max()
    if squared.shape[1] == 1:
        return np.ones(len(points), dtype=bool)
    best = np.sort(squared, axis=1)
    clear: NDArray[np.bool_] = best[:, 1] - best[:, 0] > 1e-5 * size
    return clear


@given(
    st.sampled_from([COARSE, FINE]).flatmap(lambda values: tables(st.integers(8, 20), 2, values)),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 4),
)
def test_labels_of_scikit_learns_kmeans_are_those_of_predict(
    rows: NDArray[np.float64], kind: type, n_clusters: int
) -> None:
    rows = rows.astype(kind)
    model = ForgetfulKMeans(n_clusters, random_state=0).partial_fit(rows[:4]).partial_fit(rows)
    if not hasattr(model, "cluster_centers_"):  # too few distinct points so far
        return
    given_away = model.to_sklearn()
    clear = is_clear(rows, model.cluster_centers_)
    assert given_away.predict(rows)[clear].tolist() == model.predict(rows)[clear].tolist()
    assert given_away.cluster_centers_.dtype == kind


def test_scikit_learns_kmeans_has_what_a_fitted_one_has() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    model = PrivilegedKMeans(3, random_state=0).partial_fit(frame)
    given_away = model.to_sklearn()
    check_is_fitted(given_away)
    fitted = KMeans(3, random_state=0).fit(frame)
    assert vars(given_away).keys() == vars(fitted).keys()
    assert given_away.get_params() == fitted.get_params()
    assert given_away.feature_names_in_.tolist() == ["a", "b"]
    assert given_away.labels_.tolist() == model.labels_.tolist()
    assert given_away.inertia_ == model.inertia_
    assert given_away.transform(frame) == pytest.approx(model.transform(frame))
    assert given_away.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_what_is_given_away_does_not_follow_the_stream() -> None:
    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(2, random_state=0).partial_fit(rng.normal(size=(50, 2)))
    given_away = model.to_sklearn()
    before = given_away.cluster_centers_.copy()
    model.partial_fit(rng.normal(9, 1, size=(50, 2)))
    given_away.cluster_centers_[:] += 1  # nor is it the model's own
    assert (given_away.cluster_centers_ == before + 1).all()
    assert (model.to_sklearn().cluster_centers_ == model.cluster_centers_).all()


def test_the_global_generator_is_not_drawn_from() -> None:
    model = ForgetfulKMeans(2, random_state=0).fit([[0.0], [1.0], [9.0]])
    before = str(np.random.get_state())  # noqa: NPY002  # the global one is meant
    model.to_sklearn()
    assert str(np.random.get_state()) == before  # noqa: NPY002


def mixed_frame(*, with_gaps: bool) -> pd.DataFrame:
    """Numbers, words and truths, an id that is left out, and rare words without a column."""
    rng = np.random.default_rng(1)
    n = 400
    frame = pd.DataFrame(
        {
            "id": range(n),
            "flow": rng.normal(0, 5, n) + np.repeat([0, 40], n // 2),
            "color": rng.choice(["red", "blue", "mauve", "puce"], n, p=[0.5, 0.4, 0.05, 0.05]),
            "load": rng.normal(size=n),
            "on": rng.random(n) < 0.3,
            "shape": rng.choice(["round", "square"], n),
        }
    )
    if with_gaps:
        frame.loc[::7, "load"] = np.nan
        frame.loc[::11, "color"] = None
        frame.loc[5::11, "color"] = np.nan
    return frame


@pytest.mark.parametrize("with_gaps", [True, False])
def test_a_pipeline_prepares_rows_as_the_model_does(with_gaps: bool) -> None:
    frame = mixed_frame(with_gaps=with_gaps)
    rules = Preparation(max_levels=2, missing="median" if with_gaps else "error")
    model = ForgetfulKMeans(4, prepare=rules, random_state=0)
    for begin in range(0, len(frame), 100):
        model.partial_fit(frame[begin : begin + 100])
    pipeline = model.to_sklearn()
    assert isinstance(pipeline, Pipeline)
    later = mixed_frame(with_gaps=with_gaps)
    later.loc[::13, "color"] = "never seen"
    preparation = model._learned.preparation
    assert preparation is not None
    expected = preparation.prepared(rows_of(later)).points
    assert pipeline[:-1].transform(later) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    clear = is_clear(expected, model.cluster_centers_)
    assert clear.sum() > 390
    assert pipeline.predict(later)[clear].tolist() == model.predict(later)[clear].tolist()
    # The columns are found by name.
    assert pipeline.predict(later[later.columns[::-1]]).tolist() == pipeline.predict(later).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_pipeline_takes_arrays_where_the_model_did(kind: type) -> None:
    rows: Any = np.random.default_rng(2).normal(size=(500, 3)).astype(kind)
    rows[::9, 1] = np.nan
    model = ForgetfulKMeans(4, prepare="auto", random_state=0).partial_fit(rows)
    assert model.to_sklearn().predict(rows).tolist() == model.predict(rows).tolist()


def test_a_pipeline_takes_objects_where_the_model_did() -> None:
    rows = np.array([[1.0, "r"], [2.0, "b"], [None, "q"], [4.0, None]] * 30, dtype=object)
    model = ForgetfulKMeans(2, prepare="auto", random_state=0).partial_fit(rows)
    assert model.to_sklearn().predict(rows).tolist() == model.predict(rows).tolist()


def test_what_transformers_cannot_say_is_said_in_a_sentence() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    skipping = ForgetfulKMeans(2, prepare=Preparation(missing="skip"), random_state=0)
    with pytest.raises(ValueError) as caught:
        skipping.partial_fit(rows).to_sklearn()
    assert str(caught.value) == (
        "to_sklearn cannot say that rows are left out where something is missing: a Pipeline gives "
        'one label for each row. Learn with missing = "median".'
    )
    frame = pd.DataFrame({"v": [[0.0, 1.0], [5.0, 6.0], [5.0, 7.0]] * 20})
    with pytest.raises(ValueError) as caught:
        ForgetfulKMeans(2, prepare="auto", random_state=0).partial_fit(frame).to_sklearn()
    assert str(caught.value) == (
        "to_sklearn cannot take the vectors of column 'v' apart, since no transformer of "
        "scikit-learn does. Learn them as an array, or as columns of numbers."
    )


@pytest.mark.parametrize(
    "ask", [lambda model: model.to_sklearn(), lambda model: model.to_arrow(),
            lambda model: model.novelty_threshold(0.1), lambda model: model.score_samples([[0.0]])],
)  # fmt: skip
def test_a_model_that_waits_has_nothing_to_give(ask: Any) -> None:
    model = ForgetfulKMeans(3, random_state=0).partial_fit([[0.0], [1.0]])
    with pytest.raises(NotFittedError, match="2 distinct points so far"):
        ask(model)


def test_arrow_has_ids_masses_and_centroids() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 3))
    model = ForgetfulKMeans(4, random_state=0).partial_fit(rows).partial_fit(rows + 5)
    table = model.to_arrow()
    assert table.column_names == ["cluster", "mass", "centroid"]
    assert table["cluster"].to_pylist() == model.cluster_ids_.tolist()
    assert table["mass"].to_pylist() == model.cluster_weights_.tolist()
    assert np.array(table["centroid"].to_pylist()).tolist() == model.cluster_centers_.tolist()


def run_onnx(model: Any, feed: dict[str, Any], types: Any) -> NDArray[np.int64]:
    """Convert with skl2onnx, and return the labels that onnxruntime gives."""
    import onnxruntime
    from skl2onnx import to_onnx

    onnx = to_onnx(model, initial_types=types)
    session = onnxruntime.InferenceSession(
        onnx.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    labels: NDArray[np.int64] = session.run(None, feed)[0].ravel()
    return labels


@pytest.mark.slow
@pytest.mark.parametrize("prepare", [None, "auto"])
def test_onnx_gives_the_same_labels(prepare: str | None) -> None:
    from skl2onnx.common.data_types import FloatTensorType

    rng = np.random.default_rng(3)
    rows = rng.normal(rng.choice([0.0, 6.0], (2000, 1)), 1, (2000, 4)).astype(np.float32)
    if prepare is not None:
        rows[::8, 2] = np.nan
    model = ForgetfulKMeans(5, prepare=prepare, random_state=0).partial_fit(rows)
    found = run_onnx(model.to_sklearn(), {"rows": rows}, [("rows", FloatTensorType([None, 4]))])
    points: Any = rows
    if model._learned.preparation is not None:
        points = model._learned.preparation.prepared(rows_of(rows)).points
    clear = is_clear(points, model.cluster_centers_)
    assert clear.sum() > 1990
    assert found[clear].tolist() == model.predict(rows)[clear].tolist()


@pytest.mark.slow
def test_onnx_takes_words() -> None:
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    frame = mixed_frame(with_gaps=False).drop(columns="on")
    rules = Preparation(max_levels=2, missing="error")
    model = ForgetfulKMeans(4, prepare=rules, random_state=0).partial_fit(frame)
    is_text = {name: frame[name].dtype == object for name in frame}
    types = [
        (name, (StringTensorType if is_text[name] else FloatTensorType)([None, 1]))
        for name in frame
    ]
    feed: dict[str, Any] = {
        str(name): frame[[name]].to_numpy(object if is_text[name] else np.float32) for name in frame
    }
    assert run_onnx(model.to_sklearn(), feed, types).tolist() == model.predict(frame).tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:::mlflow")  # its own, when it is imported
@pytest.mark.filterwarnings("ignore:.*Any type hint:UserWarning")
@pytest.mark.parametrize("prepare", [None, "auto"])
def test_mlflow_saves_and_loads(
    prepare: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow.sklearn

    rows = np.random.default_rng(4).normal(size=(300, 3))
    model = ForgetfulKMeans(4, prepare=prepare, random_state=0).partial_fit(rows)
    mlflow.sklearn.save_model(
        model.to_sklearn(),
        tmp_path / "model",
        pip_requirements=["scikit-learn"],
        # What scikit-learn's own imputer keeps, and skops does not know.
        skops_trusted_types=["numpy.dtype"] if prepare else None,
    )
    loaded = mlflow.sklearn.load_model(str(tmp_path / "model"))
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("prepare", [None, Preparation(scale="none", missing="median")])
def test_with_the_cosine_rows_are_put_on_the_sphere_first(prepare: Preparation | None) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(400, 4)) * rng.uniform(1, 9, (400, 1)), columns=[*"abcd"])
    model = ForgetfulKMeans(5, metric="cosine", prepare=prepare, random_state=0)
    pipeline = model.partial_fit(frame[:200]).partial_fit(frame[200:]).to_sklearn()
    assert isinstance(pipeline, Pipeline)
    assert pipeline.predict(frame).tolist() == model.predict(frame).tolist()
    assert pipeline.feature_names_in_.tolist() == [*"abcd"]
    # Squared distances on the sphere are twice 1 - cosine.
    assert pipeline.transform(frame) ** 2 / 2 == pytest.approx(model.transform(frame))
    assert -pipeline.score(frame) / 2 == pytest.approx(-model.score(frame))
