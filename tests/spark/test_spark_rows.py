"""Rows on Spark as `kmeander run` takes them: weights, event time, gaps, and those set aside."""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kmeander import ForgetfulKMeans, InputError, InputTypeError, Preparation, load
from kmeander.spark.storage import Checkpoints
from kmeander.storage import checkpoint
from tests.kafka_broker import free_ports
from tests.spark.streams import (
    COLUMNS,
    CONNECT,
    MASTER,
    SCHEMA,
    Array,
    estimator,
    files,
    learn_all,
    on_spark,
    session,
    state_bytes,
    stream_of_points,
    write_batches,
    write_file,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark

MINUTE = 60 * 10**6


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session() as running:
        yield running


def learned(state: Path) -> Any:
    found = load(sorted((state / "model").glob("*.ckpt"))[-1])
    assert isinstance(found, ForgetfulKMeans)
    return found


def by_row_then_weight(points: Array, weights: Array) -> Any:
    columns = [weights, *(points[:, j] for j in range(points.shape[1] - 1, -1, -1))]
    return np.lexsort(columns)


def table(points: Array, **more: Any) -> dict[str, Any]:
    return {**{name: points[:, j] for j, name in enumerate(COLUMNS)}, **more}


def test_weights_and_times_are_those_of_the_local_model(
    spark: SparkSession, tmp_path: Path, rng: np.random.Generator
) -> None:
    batches = stream_of_points(4)
    twin = estimator()
    ages = [1.0, 3.0, 1e-9, 2.0]  # of ten minutes each: the third batch is of a period before
    newest = [5, 35, 31, 55]
    for index, points in enumerate(batches):
        weights = rng.integers(1, 4, size=len(points)).astype(float)
        times = np.array([newest[index] * MINUTE - i for i in range(len(points))])
        stamps = times.astype("datetime64[us]")
        write_file(tmp_path / "in", f"{index:05}", table(points, w=weights, at=stamps))
        order = by_row_then_weight(points, weights)
        twin.partial_fit(points[order], sample_weight=weights[order], elapsed=ages[index])
    stream = files(spark, tmp_path / "in", f"{SCHEMA}, w double, at timestamp_ntz").repartition(3)
    how: dict[str, Any] = {"weight_column": "w", "time_column": "at", "every": "10m"}
    told = learn_all(stream, tmp_path / "state", summary="exact", **how)
    assert [step.surrogate_error for _, step in told][-1] == twin.surrogate_error_
    found = learned(tmp_path / "state")
    assert found.cluster_centers_.tobytes() == twin.cluster_centers_.tobytes()
    assert found._model.window.ages == twin._model.window.ages
    assert [step.last_time for _, step in told] == [
        f"1970-01-01T00:{minute:02}:00Z" for minute in newest
    ]
    # As means of the rows, they have the same mass.
    means = learn_all(stream, tmp_path / "means", summary="coreset", coreset_size=40, **how)
    for (_, step), (_, exact) in zip(means, told, strict=True):
        assert step.mass == pytest.approx(exact.mass)
        assert step.n_means == 40
        assert (step.first_time, step.last_time) == (exact.first_time, exact.last_time)


@pytest.mark.spark_core
def test_bad_rows_are_set_aside_counted_and_written(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    batches = stream_of_points(3)
    twin = estimator()
    for index, points in enumerate(batches):
        weights = np.ones(len(points))
        good = np.ones(len(points), dtype=bool)
        if index == 1:
            points[3, 0], points[5, 1], points[7, 2] = np.nan, np.inf, 1e200
            weights[9], weights[11] = -1.0, np.nan
            good[[3, 5, 7, 9, 11]] = False
        write_file(tmp_path / "in", f"{index:05}", table(points, w=weights))
        order = by_row_then_weight(points[good], weights[good])
        twin.partial_fit(points[good][order], sample_weight=weights[good][order])
    stream = files(spark, tmp_path / "in", f"{SCHEMA}, w double").repartition(2)
    with caplog.at_level(logging.WARNING, "kmeander.spark"):
        learn_all(stream, tmp_path / "state", weight_column="w", bad_rows=tmp_path / "bad")
    found = learned(tmp_path / "state")
    assert found.cluster_centers_.tobytes() == twin.cluster_centers_.tobytes()
    saved = Checkpoints(str(tmp_path / "state" / "model"), 2).read(2)
    assert saved["spark"]["n_bad"] == 5
    lines = [
        json.loads(line)
        for file in (tmp_path / "bad" / "batch=1").glob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert [path.name for path in (tmp_path / "bad").iterdir()] == ["batch=1"]
    reasons = sorted(line["reason"] for line in lines)
    assert len(reasons) == 5
    assert reasons[0] == "column 'w' holds -1. A weight is a number of at least 0"
    assert reasons[1] == "column 'w' holds nan. A weight is a number of at least 0"
    assert reasons[2].startswith("column 'x' holds NaN, in the row [nan, ")
    assert reasons[3].startswith("column 'y' holds infinity, in the row [")
    assert reasons[4].endswith(", 1e+200]. Values must lie within ±1e+120")
    assert {"x", "w"} <= set(json.loads(lines[0]["text"])) <= {"x", "y", "z", "w"}


def test_a_batch_of_bad_rows_teaches_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = stream_of_points(3)
    write_batches(tmp_path / "in", [batches[0], batches[1] * np.nan, batches[2]])
    told = learn_all(files(spark, tmp_path / "in"), tmp_path / "state")
    assert [batch_id for batch_id, _ in told] == [0, 2]


def test_gaps_are_filled_where_the_model_prepares_rows(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    batches = stream_of_points(3)
    twin = estimator(prepare=Preparation(identifiers="keep"))
    for points in batches:
        points[::7, 1] = np.nan
        filled = np.where(np.isnan(points), np.inf, points)
        twin.partial_fit(points[np.lexsort([filled[:, j] for j in (2, 1, 0)])])
    write_batches(tmp_path / "in", batches)
    stream = files(spark, tmp_path / "in").repartition(3)
    model = estimator(prepare="auto")
    told = learn_all(stream, tmp_path / "state", model=model, summary="exact")
    assert [step.filled for _, step in told] == [{"y": 18}] * 3
    found = learned(tmp_path / "state")
    assert found.cluster_centers_.tobytes() == twin.cluster_centers_.tobytes()
    rows = [tuple(None if np.isnan(x) else x for x in row) for row in batches[-1].tolist()]
    frame = spark.createDataFrame(rows, SCHEMA)
    assigned = ks.assign(frame, tmp_path / "state").collect()
    assert [row.cluster for row in assigned] == twin.predict(batches[-1]).tolist()


def test_columns_of_weights_and_times_are_looked_at_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_file(tmp_path / "in", "0", {"x": [0.0], "y": [0.0], "z": [0.0]})
    stream = files(spark, tmp_path / "in")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"every": "10m"},
         "every counts time, and needs time_column=... to say where that stands."),
        ({"weight_column": "w"},
         "weight_column is 'w', which the frame does not have: its columns are ['x', 'y', 'z']."),
        ({"time_column": "x"},
         "column 'x' is double, which is no time. Cast it to timestamp, as with to_timestamp or "
         "timestamp_millis."),
    ]  # fmt: skip
    for how, message in cases:
        with pytest.raises((InputError, InputTypeError)) as caught:
            learn_all(stream, tmp_path / "state", **how)
        assert str(caught.value) == message


def test_a_checkpoint_of_before_points_had_files_of_their_own_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = stream_of_points(3)
    write_batches(tmp_path / "in", batches[:2])
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state")
    folder = tmp_path / "state" / "model"
    state = Checkpoints(str(folder), 2).read(1)
    state["spark"] = {name: state["spark"][name] for name in ("batch_id", "columns")}
    for file in folder.iterdir():
        file.unlink()
    checkpoint.write(folder / "batch-00000001.ckpt", state)
    assert (folder / "batch-00000001.ckpt").read_bytes()[8:12] == b"\x01\0\0\0"
    write_batches(tmp_path / "in", batches[2:], first=2)
    told = learn_all(files(spark, tmp_path / "in"), tmp_path / "state")
    assert [batch_id for batch_id, _ in told] == [2]
    twin = estimator()
    for points in batches:
        twin.partial_fit(points[by_row_then_weight(points, np.ones(len(points)))])
    assert state_bytes(learned(tmp_path / "state")._model) == state_bytes(twin._model)


def test_events_are_told_to_a_command(spark: SparkSession, tmp_path: Path) -> None:
    batches = stream_of_points(3)
    batches[2] = batches[2] + 40.0
    write_batches(tmp_path / "in", batches)
    told = tmp_path / "told"
    learn_all(
        files(spark, tmp_path / "in"), tmp_path / "state",
        on_event=f"tee -a {told}", notify_on=["died"],
    )  # fmt: skip
    until = time.monotonic() + 30
    while not told.exists() or not told.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.05)
    notice = json.loads(told.read_text().splitlines()[0])
    assert (notice["source"], notice["id"]) == (str(tmp_path / "state"), "2-4")
    assert notice["type"] == "kmeander.died"
    with pytest.raises(InputError, match="notify_on must name kinds of events"):
        learn_all(files(spark, tmp_path / "in"), tmp_path / "state", notify_on=["noise"])


def test_metrics_are_served_while_a_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    write_batches(tmp_path / "in", stream_of_points(2))
    (port,) = free_ports(1)
    query = ks.learn(
        files(spark, tmp_path / "in"), COLUMNS, model=estimator(), checkpoint=tmp_path / "state",
        metrics=port,
    )  # fmt: skip
    query.processAllAvailable()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        said = answer.read().decode()
    assert "kmeander_rows_total 240.0" in said
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
        assert answer.status == 200
    query.stop()
    assert not query.isActive
    if MASTER != CONNECT:  # there the server's process ends when it likes
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")
    with pytest.raises(InputError, match="metrics must be a port"):
        learn_all(files(spark, tmp_path / "in"), tmp_path / "state", metrics="x:y")
