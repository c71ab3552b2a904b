"""Files whose checksum fits and whose contents do not: one sentence, and no model."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kmeander
from kmeander import CheckpointError, ForgetfulKMeans
from kmeander.models import FSKM
from kmeander.storage import checkpoint, model_file
from tests.streams import drifting_stream

PREFIX = struct.Struct("<8sIQ")


@pytest.fixture
def state() -> dict[str, Any]:
    estimator = ForgetfulKMeans(3, random_state=0)
    for points in drifting_stream(3, n_points=30, n_features=2):
        estimator.partial_fit(points)
    return model_file.to_state("ForgetfulKMeans", estimator.get_params(), estimator._model, None)


def sealed(header: Any) -> bytes:
    """A file of this header, without arrays, with a checksum that fits."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    whole = PREFIX.pack(checkpoint.MAGIC, 1, len(text)) + text
    return whole + hashlib.sha256(whole).digest()


HEADERS = {
    "no object": [],
    "no arrays": {"state": {}},
    "nested": b"[" * 5000 + b"]" * 5000,
    "no array of that number": {"state": {"x": {"$array": 1}}, "arrays": []},
    "an array of the number -1": {"state": {"x": {"$array": -1}}, "arrays": []},
    "a type of its own": {"state": {}, "arrays": [{"dtype": "|O", "shape": [1]}]},
    "a negative length": {"state": {}, "arrays": [{"dtype": "<f8", "shape": [-1]}]},
    "a giant length": {"state": {}, "arrays": [{"dtype": "<f8", "shape": [2**62]}]},
    "a state that is no object": {"state": 3, "arrays": []},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_that_kmeander_does_not_write_is_refused(header: Any) -> None:
    with pytest.raises(CheckpointError, match="x has a checksum that fits, but contents that"):
        checkpoint.from_bytes(sealed(header), "x")


def nan_in_points(model: dict[str, Any]) -> None:
    model["window"]["points"][-1] = np.full_like(model["window"]["points"][-1], np.nan)


def infinite_points(model: dict[str, Any]) -> None:
    model["window"]["points"][-1] = np.full_like(model["window"]["points"][-1], np.inf)


def labels_of_no_cluster(model: dict[str, Any]) -> None:
    model["window"]["labels"] = model["window"]["labels"] + np.int32(3)


def bounds_that_are_not_numbers(model: dict[str, Any]) -> None:
    lower = model["window"]["bounds"]["lower"]
    model["window"]["bounds"]["lower"] = np.full_like(lower, np.nan)


def masses_of_other_points(model: dict[str, Any]) -> None:
    model["window"]["totals"]["masses"] = model["window"]["totals"]["masses"] + 1.0


def ids_twice(model: dict[str, Any]) -> None:
    model["lineage"]["ids"] = np.zeros_like(model["lineage"]["ids"])


def a_billion_clusters(model: dict[str, Any]) -> None:
    model["settings"]["n_clusters"] = 10**9


def text_for_a_number(model: dict[str, Any]) -> None:
    model["n_steps"] = "three"


def nothing_for_a_window(model: dict[str, Any]) -> None:
    model["window"] = None


def ages_that_grow(model: dict[str, Any]) -> None:
    model["window"]["ages"].reverse()


SPOILT: list[Callable[[dict[str, Any]], None]] = [
    nan_in_points, infinite_points, labels_of_no_cluster, bounds_that_are_not_numbers,
    masses_of_other_points, ids_twice, a_billion_clusters, text_for_a_number,
    nothing_for_a_window, ages_that_grow,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_state_that_no_stream_leads_to_is_refused(
    state: dict[str, Any], spoil: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    spoil(state["model"])
    path = tmp_path / "model"
    checkpoint.write(path, state)
    with pytest.raises(CheckpointError, match="the state of FSKM is none that kmeander has writt"):
        kmeander.load(path)
    with pytest.raises(CheckpointError):  # as the checkpoint of a run has it
        FSKM.from_state(checkpoint.read(path)["model"])


def test_the_refusal_says_what_is_wrong(state: dict[str, Any]) -> None:
    text_for_a_number(state["model"])
    with pytest.raises(CheckpointError) as caught:
        FSKM.from_state(state["model"])
    assert str(caught.value) == (
        "the state of FSKM is none that kmeander has written: it has n_steps 'three', which must "
        "be a whole number of at least 0. Use an older copy."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("params", 3), ("params", {"n_clusters": 3, "x": 1}), ("feature_names_in", [1]),
     ("feature_names_in", ["a"]), ("estimator", "x"), ("instruction_set", 5), ("standardize", {})],
)  # fmt: skip
def test_a_model_file_of_other_parts_is_refused(
    state: dict[str, Any], name: str, value: Any, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    checkpoint.write(path, {**state, name: value})
    with pytest.raises(CheckpointError):
        kmeander.load(path)


def prepared() -> dict[str, Any]:
    """The state of a model that prepares a category, a truth and two numbers."""
    rng = np.random.default_rng(0)
    estimator = ForgetfulKMeans(3, prepare="auto", random_state=0)
    for _ in range(3):
        columns = {name: rng.normal(size=60) for name in "ab"}
        colours = pd.Series(rng.choice(["red", "green"], size=60))
        estimator.partial_fit(pd.DataFrame({**columns, "c": colours, "d": columns["a"] > 0}))
    state: dict[str, Any] = estimator._model.state()
    return state


PREPARED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a group of a giant number": lambda it: it["scale"].update(groups=np.array([0, 1, 2**62])),
    "rows of one number kept": lambda it: it["scale"].update(kept=np.zeros(3)),
    "an infinite median": lambda it: it["scale"].update(fill=np.full(3, np.inf)),
    "a unit of 0": lambda it: it["scale"].update(unit=np.zeros(3)),
    "a scale of no kind": lambda it: it["scale"].update(word="log"),
    "counts of other levels": lambda it: it["frequencies"].update(c=np.ones(2)),
    "counts of no column": lambda it: it["frequencies"].update(z=np.ones(3)),
    "a column without a plan": lambda it: it["plans"].pop(),
    "a plan of another column": lambda it: it["plans"][0].update(name="z"),
    "a plan that does what nobody knows": lambda it: it["plans"][0].update(action="guess"),
    "a plan that makes too much": lambda it: it["plans"][0].update(outputs=["a", "b"]),
    "a column of width 0": lambda it: it["columns"][0].__setitem__(2, 0),
    "two columns of one name": lambda it: it["columns"][0].__setitem__(0, "b"),
}


@pytest.mark.parametrize("spoil", PREPARED.values(), ids=PREPARED)
def test_a_preparation_that_no_stream_leads_to_is_refused(
    spoil: Callable[[dict[str, Any]], object],
) -> None:
    state = prepared()
    assert FSKM.from_state(state).n_steps == 3
    spoil(state["preparation"])
    with pytest.raises(CheckpointError, match="the state of FSKM is none that kmeander has writt"):
        FSKM.from_state(state)


@pytest.mark.parametrize("name", ["model", "feature_names_in"])
def test_a_model_file_without_a_part_is_refused(
    name: str, state: dict[str, Any], tmp_path: Path
) -> None:
    del state[name]
    checkpoint.write(tmp_path / "model", state)
    with pytest.raises(CheckpointError, match=f"it has no {name}"):
        kmeander.load(tmp_path / "model")


def spoil_form(state: dict[str, Any]) -> None:
    state["position"]["source"]["place"]["forms"] = {"a": {"shape": "round"}}


RUNS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no source": lambda state: state["position"].pop("source"),
    "no period": lambda state: state["position"].pop("period"),
    "an identity that is a number": lambda state: state.update(identity=3),
    "a model without settings": lambda state: state["model"].pop("settings"),
    "a column of no known form": spoil_form,
}


@pytest.mark.parametrize("spoil", RUNS.values(), ids=RUNS)
def test_a_checkpoint_of_a_run_that_lacks_or_invents_a_part_is_refused(
    spoil: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(60)))
    settings: dict[str, Any] = {"checkpoint": tmp_path / "c", "batch_size": 20}
    kmeander.run(path, 2, **settings)
    newest = max((tmp_path / "c").glob("*.ckpt"))
    state = checkpoint.read(newest)
    spoil(state)
    checkpoint.write(newest, state)
    with pytest.raises(CheckpointError, match="holds a checkpoint that kmeander has not written"):
        kmeander.run(path, 2, **settings)


def test_a_model_of_a_column_that_does_not_vary_is_taken() -> None:
    """Its scores are as large as the kernel writes any."""
    model = ForgetfulKMeans(3, prepare="auto", random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        model.partial_fit(np.column_stack([rng.normal(size=100), np.full(100, 5.0)]))
    assert FSKM.from_state(model._model.state()).n_steps == 30


def test_a_state_that_was_not_touched_is_taken(state: dict[str, Any]) -> None:
    assert FSKM.from_state(state["model"]).n_steps == 3


def test_a_model_that_fills_missing_values_is_taken(tmp_path: Path) -> None:
    """The rows that its preparation keeps hold NaN, as they came."""
    model = ForgetfulKMeans(2, prepare="auto", random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        points = rng.normal(size=(60, 3))
        points[rng.random(points.shape) < 0.1] = np.nan
        model.partial_fit(points)
    model.save(tmp_path / "model")
    assert kmeander.load(tmp_path / "model").n_steps_ == 3
