"""Estimators with `prepare`: tables of any kind in, the user's columns out."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from kmeander import ForgetfulKMeans, Preparation, PrivilegedKMeans, load
from kmeander.exceptions import InputError
from kmeander.river import ForgetfulKMeans as RiverKMeans


def frame(seed: int, n_rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n_rows)
    made = pd.DataFrame({
        "id": np.arange(n_rows) + 1000 * seed,
        "watts": rng.normal([900.0, 1100.0], 20)[0] + 200 * kind + rng.normal(0, 20, n_rows),
        "color": np.where(kind == 0, "red", "blue"),
        "on": kind == 1,
    })  # fmt: skip
    made.loc[rng.integers(n_rows, size=5), "watts"] = None
    return made


@pytest.fixture
def model() -> ForgetfulKMeans:
    learned = ForgetfulKMeans(2, prepare="auto", random_state=0)
    for seed in range(4):
        learned.partial_fit(frame(seed))
    return learned


def test_a_frame_of_mixed_columns_is_learned_and_shown_in_its_columns(
    model: ForgetfulKMeans,
) -> None:
    shown = model.centers_frame()
    assert list(shown.columns) == ["watts", "color", "on"]
    assert sorted(zip(shown["color"], shown["on"].round(), strict=True)) == [
        ("blue", 1.0), ("red", 0.0)
    ]  # fmt: skip
    assert shown.index.tolist() == model.cluster_ids_.tolist()
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["id", "watts", "color", "on"]
    assert model.step_.filled is not None and model.step_.filled["watts"] >= 4


def test_predicting_prepares_as_learning_did(model: ForgetfulKMeans) -> None:
    newest = frame(3)
    assert model.predict(newest).tolist() == model.labels_.tolist()
    assert model.predict(pa.Table.from_pandas(newest)).tolist() == model.labels_.tolist()
    assert model.transform(newest).argmin(axis=1).tolist() == model.labels_.tolist()
    assert model.score(newest) <= 0


def test_saved_pickled_and_cloned_it_goes_on_as_it_would(
    model: ForgetfulKMeans, tmp_path: Path
) -> None:
    model.save(tmp_path / "model.km")
    loaded, pickled = load(tmp_path / "model.km"), pickle.loads(pickle.dumps(model))
    assert loaded.get_params() == model.get_params()
    expected = model.partial_fit(frame(9)).step_
    for other in (loaded, pickled):
        assert other.partial_fit(frame(9)).step_ == expected
    assert clone(model).prepare == "auto"


def test_rows_that_are_left_out_have_no_cluster() -> None:
    X = np.array([[0.0, 1.0], [np.nan, 1.0], [5.0, 2.0], [5.5, 2.0]])
    model = ForgetfulKMeans(2, prepare=Preparation(missing="skip"), random_state=0)
    weights = [1.0, 1.0, 1.0, 2.0]
    labels = model.partial_fit(X, sample_weight=weights).labels_
    assert labels[1] == -1 and (labels[[0, 2, 3]] >= 0).all()
    assert model.predict(X).tolist() == labels.tolist()
    assert np.isnan(model.transform(X)[1]).all()
    assert model.score(X, sample_weight=weights) <= 0
    with pytest.raises(InputError, match="every row of the batch lacks a value"):
        model.partial_fit(np.full((2, 2), np.nan))


def test_fit_prepares_and_forgets_what_was_prepared_before(model: ForgetfulKMeans) -> None:
    model.fit(frame(1)[["color", "on"]])
    assert model.n_features_in_ == 2
    assert model.fit_predict(frame(1)).shape == (200,)
    assert PrivilegedKMeans(2, prepare="auto").fit(frame(0)).n_features_in_ == 4


def test_by_default_rows_are_learned_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = ForgetfulKMeans(2, random_state=0).partial_fit(X)
    assert model.step_.filled is None and "filled" not in model.step_.to_dict()
    assert model.centers_frame().to_numpy().tolist() == model.cluster_centers_.tolist()


def test_rivers_door_prepares_dicts() -> None:
    rows = frame(0).drop(columns="id").to_dict("records")
    model = RiverKMeans(2, batch_size=50, prepare="auto", seed=0)
    for row in rows:
        model.learn_one({name: value for name, value in row.items() if value == value})
    assert {centre["color"] for centre in model.centers.values()} == {"red", "blue"}
    red: dict[Any, Any] = {"color": "red", "watts": 900}
    blue: dict[Any, Any] = {"color": "blue", "watts": 1100}
    assert model.predict_one(red) != model.predict_one(blue)
    many = model.predict_many(frame(0).drop(columns="id"))
    assert len(set(many)) == 2
