"""The how-to pages, pasted into a shell as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from kmeander.cli import app
from tests.pages import follow

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "run.md").read_text("utf-8"), re.S)


def shell(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like the root of a clone, with the stream of the first block."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = shell(block_with("examples/readings.py > readings.csv"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "readings.csv").read_text().splitlines()) == 20_001
    return tmp_path


def block_with(text: str) -> str:
    (block,) = (str(block) for block in BLOCKS if text in block)
    return block


def test_a_pipe_gives_clusters_and_a_summary(folder: Path) -> None:
    done = shell(block_with("cat readings.csv |"), folder)
    assert done.returncode == 0
    assert "20,000 rows in 40 batches" in done.stderr
    assert len((folder / "clusters.csv").read_text().splitlines()) == 5
    assert len((folder / "steps.jsonl").read_text().splitlines()) == 40


def test_a_model_is_saved_and_predicts(folder: Path) -> None:
    done = shell(block_with("kmeander predict"), folder)
    assert done.returncode == 0
    assert "readings.csv: 20,000 rows assigned." in done.stderr
    assert pq.read_table(folder / "predicted.parquet").num_rows == 20_000


def test_a_killed_run_goes_on(folder: Path) -> None:
    block = block_with("kill -9")
    done = shell(block, folder)
    assert done.returncode == 0, done.stderr
    killed = (folder / "steps.jsonl").read_bytes()
    table = pq.read_table(folder / "rows")
    assert table["row"].to_pylist() == list(range(100_000))
    # The first command was at work when it was killed, and the second went on from there.
    assert "No such process" not in done.stderr and "Going on after batch" in done.stderr
    second = block[block.index("kill -9 $!") + len("kill -9 $!") :]
    undisturbed = second.replace("state", "other-state").replace("rows/", "other-rows/")
    done = shell(undisturbed.replace("steps.jsonl", "other-steps.jsonl"), folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "other-steps.jsonl").read_bytes() == killed
    assert pq.read_table(folder / "other-rows").equals(table)


@pytest.mark.kafka
def test_kafka_without_a_broker(folder: Path) -> None:
    done = shell(block_with("mock_kafka"), folder)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (folder / "kafka-rows.ndjson").read_text().splitlines()]
    assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows) == 20_000
    steps = (folder / "kafka-steps.jsonl").read_text().splitlines()
    assert sum(json.loads(step)["n_points"] for step in steps) == 20_000


def test_a_look_ends_with_the_command_to_run(folder: Path) -> None:
    done = shell(block_with("kmeander check"), folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^kmeander run readings\.csv --prepare auto$", done.stdout, re.M)


def test_every_block_is_tested() -> None:
    assert len(BLOCKS) == 6


def test_options_of_the_page_are_options_of_the_command() -> None:
    text = (ROOT / "docs" / "run.md").read_text("utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group's
    known = {
        option
        for name in ("check", "run", "predict")
        for parameter in commands[name].params
        for option in parameter.opts
    }
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= known


FOLLOW = (ROOT / "docs" / "follow.md").read_text("utf-8")


def test_a_run_is_reported_in_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    first, pipeline, _ = re.findall(r"```sh\n(.*?)```", FOLLOW, re.S)
    done = shell(first, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "moved by 4.23 along flow; 58% of the change" in done.stderr  # as the page says
    assert (tmp_path / "report.html").stat().st_size < 15e6
    done = shell(pipeline, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{") and done.stdout.endswith("look at report.html\n")


def test_the_python_of_following_runs(tmp_path: Path) -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", FOLLOW, re.S))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "6 drift: error" in done.stdout and "[0, 1]" not in done.stdout


# Blocks of Python and of shell on each page: none of them is passed over.
HOWTO = {
    "alarms": {"python": 3, "sh": 2},
    "choose-rho-and-k": {"python": 5, "sh": 1},
    "kafka": {"python": 0, "sh": 0},
    "operate": {"python": 0, "sh": 2},
    "late-and-missing": {"python": 2, "sh": 1},
    "replace-minibatchkmeans": {"python": 1, "sh": 0},
    "prepare": {"python": 1, "sh": 1},
    "embeddings": {"python": 1, "sh": 0},
    "vector-index": {"python": 3, "sh": 0},
    "customer-segments": {"python": 2, "sh": 0},
    "sensor-regimes": {"python": 1, "sh": 1},
    "topics": {"python": 2, "sh": 1},
}


def test_every_how_to_page_is_followed_and_listed() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "howto").glob("*.md")}
    # test_other_systems.py follows the page that needs those systems.
    assert pages == {*HOWTO, "other-systems", "index"}
    listed = re.findall(r"\(([\w./-]+\.md)", (ROOT / "docs" / "howto" / "index.md").read_text())
    assert {f"{name}.md" for name in HOWTO} < set(listed)
    for name in listed:
        assert (ROOT / "docs" / "howto" / name).is_file()


@pytest.mark.parametrize("name", HOWTO)
def test_a_how_to_page_prints_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "howto" / f"{name}.md").read_text("utf-8")
    assert follow(page) == HOWTO[name]
