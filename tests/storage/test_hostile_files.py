"""Files whose checksum fits and whose contents do not: one sentence, and no model."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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
