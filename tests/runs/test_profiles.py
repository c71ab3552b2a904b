"""Runs that say what their clusters are: names in words and steps, texts, the user's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import KmeanderError, Step, run
from kmeander.runs.profiles import EVERY, FIRST, checked_names
from kmeander.sinks import read_steps
from tests.program import kmeander

TOPICS = (("fix", "crash", "segfault"), ("docs", "typo", "readme"), ("speed", "cython", "kernel"))


def rows_with_texts(n_rows: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    topics = rng.integers(3, size=n_rows)
    centres = np.array([[0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])
    points = centres[topics] + rng.normal(size=(n_rows, 2))
    if n_rows > 600:
        points[600:] += [20.0, 0.0]
    texts = [" ".join(rng.permutation([*TOPICS[topic], "the"])) for topic in topics]
    return {
        "key": [f"r{row}" for row in range(n_rows)],
        "temp": points[:, 0],
        "load": points[:, 1],
        "said": texts,
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    pq.write_table(pa.table(rows_with_texts(1000)), path)
    return path


def options(folder: Path) -> dict[str, Any]:
    return {
        "n_clusters": 3, "batch_size": 25, "id_column": "key", "text_column": "said",
        "steps": folder / "steps.jsonl", "checkpoint": folder / "state", "checkpoint_every": 3,
    }  # fmt: skip


def test_topics_are_named_by_the_words_of_their_texts(table: Path, tmp_path: Path) -> None:
    run(table, **options(tmp_path))
    steps = list(read_steps(tmp_path / "steps.jsonl"))
    last = next(step for step in reversed(steps) if step.profiles is not None)
    assert last.profiles is not None
    named = sorted(tuple(sorted(profile.name.split(", "))) for profile in last.profiles)
    assert named == sorted(tuple(sorted(topic)) for topic in TOPICS)
    for profile in last.profiles:
        for row in (*profile.recent, *profile.old):
            assert row.id is not None
            assert row.id.startswith("r")
            assert row.text is not None
            assert set(profile.words) <= set(row.text.split())
    words = [
        said
        for line in (tmp_path / "steps.jsonl").read_text().splitlines()
        for said in json.loads(line).get("words", ())
    ]
    assert any(f"({profile.name})" in said for said in words for profile in last.profiles)


def test_profiles_are_where_the_stream_says(table: Path, tmp_path: Path) -> None:
    run(table, **options(tmp_path))
    for step in read_steps(tmp_path / "steps.jsonl"):
        is_new = any(event.kind in ("born", "split", "died", "absorbed") for event in step.events)
        due = step.index < FIRST or step.index % EVERY == 0 or is_new
        assert (step.profiles is not None) == due, step.index
        assert step.names is not None
        assert set(step.names) >= set(step.ids.tolist() if step.ids is not None else ())


def test_a_run_that_goes_on_says_the_same(table: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    run(table, **options(whole))
    for n_batches in (7, 12, 40):
        stop = threading.Event()
        left = iter(range(n_batches, 0, -1))

        def count(_: Step, stop: threading.Event = stop, left: Iterator[int] = left) -> None:
            if next(left) == 1:
                stop.set()

        run(table, **options(parts), stop=stop, on_step=count)
    assert (parts / "steps.jsonl").read_bytes() == (whole / "steps.jsonl").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_texts_come_from_any_format(ending: str, tmp_path: Path) -> None:
    rows = rows_with_texts(200)
    lines = [
        dict(zip(rows, map(str, one), strict=True)) for one in zip(*rows.values(), strict=True)
    ]
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        path.write_text("\n".join([",".join(rows), *(",".join(one.values()) for one in lines)]))
    else:
        numbers = [{**one, "temp": float(one["temp"]), "load": float(one["load"])} for one in lines]
        path.write_text("\n".join(map(json.dumps, numbers)))
    found: list[Step] = []
    run(path, 3, batch_size=100, text_column="said", on_step=found.append)
    assert found[-1].profiles is not None
    assert {word for one in found[-1].profiles for word in one.words} == {
        word for topic in TOPICS for word in topic
    }
    assert all(row.id is None for one in found[-1].profiles for row in one.recent)


def test_the_users_own_names_are_everywhere(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "names.toml"
    file.write_text('1 = "night shift"\n7 = "not yet born"\n')
    done = kmeander(
        "run", str(table), "--clusters", "3", "--batch-size", "25", "--text-column", "said",
        "--exclude", "key", "--names", str(file), "--steps", str(tmp_path / "steps.jsonl"),
        "--centroids", str(tmp_path / "clusters.csv"), "--report", str(tmp_path / "report.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 (night shift): " in done.stderr
    assert "night shift" in (tmp_path / "steps.jsonl").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["n_batches"] == 40
    named: list[Step] = []
    run(table, 3, batch_size=25, exclude=["key", "said"], names={0: "night shift"},
        on_step=named.append)  # fmt: skip
    assert named[0].names is not None
    assert named[0].names[0] == "night shift"


def said_by(done: CompletedProcess[str]) -> str:
    return " ".join(done.stderr.replace("│", " ").split())


def test_a_report_needs_no_steps_file(table: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    words = ("run", str(table), "--exclude", "key", "--text-column", "said", "--quiet")
    done = kmeander(*words, "--report", str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert target.read_text().startswith("#")
    done = kmeander(*words, "--report", str(target), "--checkpoint", str(tmp_path / "state"))
    assert done.returncode == 2
    assert "--report with --checkpoint needs --steps FILE" in said_by(done)
    done = kmeander(*words, "--report", "report.pdf")
    assert done.returncode == 2
    assert "--report report.pdf ends in none of" in said_by(done)
    done = kmeander(*words, "--report", str(tmp_path / "x.md"), "--steps", str(tmp_path / "x.md"))
    assert done.returncode == 2
    assert "would overwrite what the run reads or writes" in said_by(done)


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "names.toml"
    with pytest.raises(KmeanderError, match="cannot be read: No such file or directory"):
        checked_names(file)
    file.write_text("[")
    with pytest.raises(KmeanderError, match="is not TOML"):
        checked_names(file)
    file.write_text('x = "a"')
    with pytest.raises(KmeanderError) as refused:
        checked_names(file)
    assert str(refused.value) == (
        f"{file} has 'x', which is no id of a cluster. Write 3 = \"night shift\"."
    )
    with pytest.raises(KmeanderError, match="the name of cluster 3 must be text of 1 to 100"):
        run([[[1.0], [2.0]]], 1, names={3: ""})
    with pytest.raises(KmeanderError, match="which is no id of a cluster"):
        run([[[1.0], [2.0]]], 1, names={-1: "a"})
