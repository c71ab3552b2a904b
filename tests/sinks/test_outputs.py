"""What a run writes and says: clusters of rows, centroids, models, bad and late rows, progress."""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from kmeander import FSKM, Batch, InputError, StreamError, load, predict, run
from kmeander.commands.progress import Pace, sparkline
from kmeander.kmeans.lloyd import nearest
from kmeander.models.settings import DEFAULTS
from kmeander.preparation import Preparation
from kmeander.runs.projection import projection
from kmeander.runs.records import Progress, RunSummary
from kmeander.sinks import read_facts, read_steps
from tests.program import kmeander
from tests.strategies import FINE, tables
from tests.streams import drifting_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own

STREAM = drifting_stream(6, n_points=40, n_features=3)
ROWS = np.concatenate(STREAM)
NAMES = ["a", "b", "c"]


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.insert(0, "key", [f"k{i}" for i in range(len(frame))])
    frame.to_csv(path, index=False)
    return path


def learned(batches: list[Any], n_clusters: int = 4) -> list[tuple[Any, Any, Any]]:
    """Centroids, ids of the rows' clusters and distances after each batch, by the model alone."""
    model = FSKM(n_clusters, **DEFAULTS, random_state=0)
    found = []
    for index, points in enumerate(batches):
        model.step(Batch(index, points))
        assert model.centroids is not None
        labels, squared = nearest(points, model.centroids, 1)
        assert model.labels is not None
        assert labels.tolist() == model.labels.tolist()
        assert model.cluster_ids is not None
        found.append((model.centroids, model.cluster_ids[labels], np.sqrt(squared)))
    return found


STANDARD = Preparation(scale="standard", identifiers="keep")


def test_every_row_gets_its_cluster_and_distance(readings: Path, tmp_path: Path) -> None:
    expected = learned(STREAM)
    labels = [int(label) for _, some, _ in expected for label in some]
    distances = [float(distance) for _, _, some in expected for distance in some]
    for name in ("rows.parquet", "rows.ndjson", "rows.csv", "parts/"):
        run(
            readings,
            4,
            batch_size=40,
            exclude=["key"],
            assignments=f"{tmp_path}/{name}",
            prepare=None,
        )
    lines = [json.loads(line) for line in (tmp_path / "rows.ndjson").read_text().splitlines()]
    assert (tmp_path / "rows.parquet").is_file()
    assert [file.name for file in (tmp_path / "parts").iterdir()] == ["part-000000.parquet"]
    for table in (
        pq.read_table(tmp_path / "rows.parquet").to_pydict(),
        pq.read_table(tmp_path / "parts").to_pydict(),
        pa.Table.from_pylist(lines).to_pydict(),
        arrow_csv.read_csv(tmp_path / "rows.csv").to_pydict(),
    ):
        assert list(table) == ["row", "cluster", "distance"]
        assert table["row"] == list(range(240))
        assert table["cluster"] == labels
        assert table["distance"] == distances
    run(
        readings,
        4,
        batch_size=40,
        id_column="key",
        assignments=f"{tmp_path}/named.parquet",
        prepare=None,
    )
    named = pq.read_table(tmp_path / "named.parquet").to_pydict()
    assert named["key"] == [f"k{i}" for i in range(240)]
    assert named["cluster"] == labels


def test_rows_have_no_cluster_while_the_model_waits(tmp_path: Path) -> None:
    for name in ("rows.ndjson", "rows.parquet", "rows.csv"):
        run([[[1.0], [1.0]], [[1.0], [5.0]]], 2, assignments=tmp_path / name)
    lines = [json.loads(line) for line in (tmp_path / "rows.ndjson").read_text().splitlines()]
    assert [line["cluster"] is None for line in lines] == [True, True, False, False]
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == lines
    assert arrow_csv.read_csv(tmp_path / "rows.csv").to_pylist() == lines


def test_centroids_are_a_table_in_the_units_of_the_stream(readings: Path, tmp_path: Path) -> None:
    for name in ("c.csv", "c.parquet"):
        summary = run(
            readings,
            4,
            batch_size=40,
            exclude=["key"],
            prepare=STANDARD,
            centroids=tmp_path / name,
        ).summary
    scaler = StandardScaler().fit(STREAM[0])
    assert summary.last is not None and summary.last.centroids is not None
    expected = scaler.inverse_transform(summary.last.centroids)
    with (tmp_path / "c.csv").open() as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["cluster", "share", "cluster_name", "set_apart_by", *NAMES]
    assert summary.last.names is not None
    for row in found:
        assert row["cluster_name"] == summary.last.names.get(int(row["cluster"]), "")
        assert all(f"{part} (" in row["set_apart_by"] for part in row["cluster_name"].split(", "))
    assert summary.last.ids is not None
    assert [row["cluster"] for row in found] == [str(number) for number in summary.last.ids]
    for row, centroid in zip(found, expected, strict=True):
        assert [float(row[name]) for name in NAMES] == pytest.approx(centroid.tolist())
    assert sum(float(row["share"]) for row in found) == pytest.approx(1.0)
    table = pq.read_table(tmp_path / "c.parquet").to_pylist()
    assert [[row[name] for name in NAMES] for row in table] == [
        [float(row[name]) for name in NAMES] for row in found
    ]


def test_columns_that_would_be_hidden_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"cluster": ["x", "y"], "a": [1.0, 2.0]})
    with pytest.raises(InputError) as caught:
        run(frame, 2, id_column="cluster", assignments=tmp_path / "rows.ndjson")
    assert str(caught.value) == (
        "assignments writes a column 'cluster', and so the id column cannot be called that. "
        "Rename it."
    )
    frame = pd.DataFrame({"share": [1.0, 2.0]})
    with pytest.raises(InputError, match="centroids writes a column 'share' of its own"):
        run(frame, 2, centroids=tmp_path / "c.csv")


def test_two_outputs_do_not_share_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run([[[1.0]]], 1, steps=tmp_path / "x.jsonl", assignments=tmp_path / "x.jsonl")
    assert str(caught.value) == (
        f"steps and assignments cannot both be {tmp_path}/x.jsonl: one would overwrite the other."
    )


def test_standardised_columns_are_those_of_scikit_learn(tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    scales = np.array([1.0, 1000.0, 0.001])
    summary = run([points * scales for points in STREAM], 4, prepare=STANDARD, steps=steps).summary
    scaler = StandardScaler().fit(STREAM[0] * scales)
    expected = learned([scaler.transform(points * scales) for points in STREAM])
    assert summary.last is not None and summary.last.centroids is not None
    np.testing.assert_allclose(summary.last.centroids, expected[-1][0], rtol=1e-9)
    facts = read_facts(steps)
    assert facts["standardize"]["mean"] == pytest.approx(scaler.mean_.tolist())
    assert facts["standardize"]["scale"] == pytest.approx(scaler.scale_.tolist())


def test_facts_of_the_run_stand_in_the_first_line(readings: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    run(readings, 4, batch_size=40, id_column="key", steps=steps, half_life=2, prepare=None)
    facts = read_facts(steps)
    assert facts["source"] == str(readings)
    assert facts["columns"] == NAMES
    assert facts["id_column"] == "key"
    assert facts["settings"]["rho"] == pytest.approx(0.5**0.5)
    assert "n_threads" not in facts["settings"]
    assert facts["projection"] == projection(STREAM[0])
    assert len(list(read_steps(steps))) == 6
    assert all("run" not in line for line in steps.read_text().splitlines()[1:])


@pytest.mark.parametrize("shape", [(200, 2), (200, 5), (30, 80)])
def test_the_projection_is_that_of_scikit_learn(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=shape) * np.linspace(1, 3, shape[1]) + 7
    points[:, 0] += 20 * rng.normal(size=len(points))
    points[:, -1] += 10 * rng.normal(size=len(points))
    fitted = PCA(2).fit(points)
    found = projection(points)
    assert found["mean"] == pytest.approx(fitted.mean_.tolist())
    for ours, theirs in zip(found["components"], fitted.components_, strict=True):
        sign = np.sign(np.dot(ours, theirs))
        np.testing.assert_allclose(ours, sign * theirs, atol=1e-6)
        assert max(ours, key=abs) > 0


@given(points=tables(st.integers(1, 8), 2, FINE))
def test_a_projection_of_anything_is_finite(points: Any) -> None:
    found = projection(points)
    components = np.array(found["components"])
    lengths = np.sqrt((components**2).sum(axis=1))
    assert all(length == pytest.approx(1.0) or length == 0.0 for length in lengths)
    assert abs(float(components[0] @ components[1])) < 1e-6


def test_a_saved_model_predicts_in_python_and_on_the_command_line(
    readings: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "model.km", tmp_path / "out.parquet"
    run(readings, 4, batch_size=40, exclude=["key"], model_out=model)
    loaded = load(model)
    frame = pd.DataFrame(ROWS, columns=NAMES)
    labels = loaded.cluster_ids_[loaded.predict(frame)].tolist()
    done = kmeander("predict", str(readings), "--model", str(model), "--out", str(out),
                    "--id-column", "key")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"{readings}: 240 rows assigned.\n"
    table = pq.read_table(out).to_pydict()
    assert table["key"] == [f"k{i}" for i in range(240)]
    assert table["cluster"] == labels
    distances = loaded.transform(frame).min(axis=1)
    assert table["distance"] == pytest.approx(distances.tolist())
    piped = kmeander("predict", "-", "--model", str(model), stdin=readings.read_text())
    lines = [json.loads(line) for line in piped.stdout.splitlines()]
    assert [line["cluster"] for line in lines] == labels
    assert [line["row"] for line in lines] == list(range(240))


def test_a_model_that_prepares_takes_rows_as_they_are(readings: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model.km", tmp_path / "out.ndjson"
    summary = run(
        readings, 4, batch_size=40, exclude=["key"], prepare=STANDARD, model_out=model
    ).summary
    estimator = load(model)
    rows = estimator.predict(pd.DataFrame(ROWS, columns=NAMES))
    labels = estimator.cluster_ids_[rows].tolist()
    assert estimator.step_ == summary.last
    predict(readings, model, out=out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["cluster"] for line in lines] == labels


def test_predicting_stopped_in_the_middle_says_that_rows_are_missing(
    readings: Path, tmp_path: Path
) -> None:
    model, stop = tmp_path / "m.km", threading.Event()
    run(STREAM, 3, model_out=model)

    def arrays() -> Iterator[NDArray[np.float64]]:
        yield STREAM[0]
        stop.set()
        yield STREAM[1]

    with pytest.raises(StreamError, match=r"stopped after \d+ rows: .* does not have all"):
        predict(arrays(), model, out=tmp_path / "out.ndjson", stop=stop)
    with pytest.raises(InputError, match=r"there is no model .*none\.km"):
        predict(readings, tmp_path / "none.km", out=tmp_path / "out.ndjson")


def test_predicting_what_does_not_fit_is_refused(readings: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.km"
    run(readings, 4, batch_size=40, columns=["a", "b"], model_out=model)
    other = tmp_path / "other.csv"
    other.write_text("a,c\n1,2\n")
    done = kmeander("predict", str(other), "--model", str(model))
    assert done.returncode == 1
    assert done.stderr == f"kmeander predict: {other} has no column 'b'. It has 'a', 'c'.\n"
    other.write_text("a,b\n1,2\n3,x\n")
    done = kmeander("predict", str(other), "--model", str(model))
    assert done.returncode == 1
    assert "line 3: 'x' in column 'b' is not a number" in done.stderr
    done = kmeander("predict", str(other), "--model", str(model), "--bad-rows", "skip")
    assert done.returncode == 0
    assert done.stderr.splitlines()[1] == "Bad rows left out: 1."
    done = kmeander("predict", str(other), "--model", str(other))
    assert done.stderr == (
        f"kmeander predict: {other} is not a kmeander model: it does not begin with 'KMEANDER'. "
        "kmeander run --model-out writes one, and so does save() of an estimator.\n"
    )
    done = kmeander("predict", str(other), "--model", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    run([[[1.0, 1.0]]], 2, model_out=model)
    with pytest.raises(InputError, match="has not seen enough distinct points to have clusters"):
        predict(ROWS, model)
    with pytest.raises(InputError, match="bad_rows must be one of 'error', 'skip', got 'lose'"):
        predict(ROWS, model, bad_rows="lose")


def test_event_time_decides_batches_and_forgetting(tmp_path: Path) -> None:
    """Batches of ten minutes; two hours of silence forget what two hours would."""
    path, steps = tmp_path / "x.csv", tmp_path / "steps.jsonl"
    minutes = [0, 1, 9, 10, 19, 140, 141, 5, 149]
    rows = [f"2026-01-01T{m // 60:02}:{m % 60:02}:00Z,{i},{i * i}" for i, m in enumerate(minutes)]
    path.write_text("ts,a,b\n" + "\n".join(rows) + "\n")
    done = kmeander("run", str(path), "--time-column", "ts", "--every", "10m", "--clusters", "2",
                    "--rho", "0.8", "--steps", str(steps), "--prepare", "none")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Late rows: 1." in done.stderr
    found = list(read_steps(steps))
    assert [step.n_points for step in found] == [3, 2, 4]
    model = FSKM(2, **{**DEFAULTS, "rho": 0.8}, random_state=0)
    values = np.array([[i, i * i] for i in range(9)], dtype=float)
    groups = [
        (values[:3], 1.0, ("00:00", "00:09")),
        (values[3:5], 1.0, ("00:10", "00:19")),
        (values[5:], 13.0, ("00:05", "02:29")),  # a late row is among them
    ]
    expected = [
        model.step(
            Batch(i, points, elapsed=elapsed, times=(f"2026-01-01T{a}:00Z", f"2026-01-01T{b}:00Z"))
        )
        for i, (points, elapsed, (a, b)) in enumerate(groups)
    ]
    assert found == expected
    skipped = run(path, 2, time_column="ts", every="10m", late_rows="skip").summary
    assert (skipped.n_points, skipped.n_late) == (8, 1)
    with pytest.raises(InputError, match="row 8 of the stream is late"):
        run(path, 2, time_column="ts", every="10m", late_rows="error")


def test_event_time_goes_on_after_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"{i * 7},{i % 5},{i % 3}" for i in range(60)]

    def go(folder: str, **settings: Any) -> bytes:
        run(path, 2, time_column="t", every="20s", steps=tmp_path / f"{folder}.jsonl",
            checkpoint=tmp_path / folder, checkpoint_every=1, tell=lambda _: None,
            **settings)  # fmt: skip
        return (tmp_path / f"{folder}.jsonl").read_bytes()

    path.write_text("t,a,b\n" + "\n".join(rows) + "\n")
    whole = go("whole")
    path.write_text("t,a,b\n" + "\n".join(rows[:31]) + "\nx,x,x\n")
    with pytest.raises(InputError, match="line 33"):
        go("parts")
    path.write_text("t,a,b\n" + "\n".join(rows) + "\n")
    assert go("parts") == whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--every", "1s"], "--every cuts the stream by time, and needs --time-column"),
        (["--time-column", "a", "--every", "soon"], "every must be a duration such as 30s"),
        (
            ["--time-column", "a", "--every", "1s", "--batch-size", "5"],
            "every cannot be given with",
        ),
        (["--kafka-option", "x"], "--kafka-option must be KEY=VALUE, got 'x'"),
        (
            ["--checkpoint-every", "0"],
            "--checkpoint-every must be a whole number of at least 1, got 0.",
        ),
        (
            ["--format", "xml"],
            "--format must be one of 'csv', 'tsv', 'ndjson', 'json', 'parquet', 'arrow', got",
        ),
        (["--idle-exit", "-1"], "--idle-exit must be a finite number above 0, got -1.0."),
    ],
)
def test_options_that_make_no_sense_are_explained(
    words: list[str], message: str, readings: Path
) -> None:
    done = kmeander("run", str(readings), *words)
    assert done.returncode in (1, 2)
    said = re.sub(r"[│╭╮╰╯─\s]+", " ", done.stderr)
    assert message in said


def test_bad_rows_are_left_out_counted_and_written(tmp_path: Path) -> None:
    path, bad = tmp_path / "x.csv", tmp_path / "bad.ndjson"
    path.write_text("a,b\n1,2\nx,2\n3,4\n5\n6,inf\n7,8\n")
    done = kmeander("run", str(path), "--clusters", "1", "--bad-rows", "skip")
    assert done.returncode == 0
    assert done.stderr.startswith(f"{path}: 3 rows in 1 batch, learned in ")
    assert done.stderr.splitlines()[1] == "Bad rows set aside: 3."
    done = kmeander("run", str(path), "--clusters", "1", "--bad-rows", str(bad))
    assert done.returncode == 0
    assert [json.loads(line) for line in bad.read_text().splitlines()] == [
        {"source": str(path), "line": 3, "reason": "'x' in column 'a' is not a number",
         "text": "x,2"},
        {"source": str(path), "line": 5, "reason": "1 field where the header has 2", "text": "5"},
        {"source": str(path), "line": 6, "reason": "infinity in column 'b' is not finite",
         "text": "6,inf"},
    ]  # fmt: skip


def test_a_stream_of_bad_rows_alone_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\nx\ny\n")
    aside = tmp_path / "bad.ndjson"
    done = kmeander("run", str(path), "--bad-rows", str(aside), "--prepare", "none")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"kmeander run: {path}: every row is bad (2 were set aside), so nothing was learned. "
        "With --bad-rows error the run stops at the first and says why.\n"
    )
    assert [json.loads(line)["line"] for line in aside.read_text().splitlines()] == [2, 3]


def test_quiet_says_nothing(readings: Path) -> None:
    done = kmeander("run", str(readings), "--exclude", "key", "--quiet")
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_assignments_may_go_to_standard_output(readings: Path) -> None:
    done = kmeander("run", str(readings), "--exclude", "key", "--assignments", "-")
    assert len(done.stdout.splitlines()) == 240
    assert json.loads(done.stdout.splitlines()[-1])["row"] == 239


def test_rho_explains_its_numbers() -> None:
    done = kmeander("rho", "--half-life", "2")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "rho            0.707107   (half of a batch is forgotten after 2 batches)"
    assert lines[1] == "half-life      2 batches"
    assert lines[2].startswith("remembered     14 batches")
    shares = [float(line.split()[2].rstrip("%")) for line in lines[6:20]]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert lines[-1] == "kmeander run SOURCE --rho 0.707107"
    heuristic = kmeander("rho", "--epsilon", "0.5", "--stable-for", "10").stdout
    assert heuristic.startswith(
        "rho            0.457305   (a drift of epsilon 0.5 counts for less than 1 % after 5 "
        "batches, 1/2 of the 10 to the next)"
    )
    assert "half-life      6.579 batches" in kmeander("rho", "--rho", "0.9").stdout
    assert len(kmeander("rho", "--half-life", "50").stdout.splitlines()) < 26
    for words in ([], ["--rho", "0.5", "--half-life", "2"], ["--epsilon", "1"]):
        assert kmeander("rho", *words).returncode == 2
    refused = kmeander("rho", "--rho", "1.5")
    assert refused.returncode == 2
    assert refused.stderr.startswith("kmeander rho: --rho must lie in (0, 1), got 1.5.")


def test_progress_is_put_in_words() -> None:
    pace = Pace()
    summary = RunSummary()
    assert pace.parts(Progress(summary, None, None)).keys() == {"batch", "rows", "rate"}
    model = FSKM(4, **DEFAULTS, random_state=0)
    for index, points in enumerate(STREAM):
        summary.add(model.step(Batch(index, points)))
        parts = pace.parts(Progress(summary, 0.5, 1234))
    assert parts["batch"] == "6"
    assert parts["rows"] == "240"
    assert parts["read"] == "50%"
    assert parts["lag"] == "1,234"
    assert len(parts["line"]) == 6
    last = summary.last
    assert last is not None and last.prequential_error is not None and last.batch_error
    assert parts["drift"] == f"{last.prequential_error / last.batch_error:.2f}"


@given(values=st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_a_sparkline_is_as_long_as_its_values(values: list[float]) -> None:
    line = sparkline(values)
    assert len(line) == len(values)
    if values and min(values) < max(values):
        assert line[values.index(max(values))] == "█"
        assert line[values.index(min(values))] == "▁"


def test_run_from_python_refuses_what_the_command_line_refuses() -> None:
    for settings, message in (
        ({"rho": 0.5, "half_life": 2}, "give rho or half_life, not both."),
        ({"every": "10m"}, "every cuts the stream by time, and needs time_column="),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError) as caught:
            run(STREAM, **settings)
        assert str(caught.value).startswith(message)
