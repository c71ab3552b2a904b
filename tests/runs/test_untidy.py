"""Files as people have them: none gives nonsense, most just run, the others say what to paste."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import kmeander
from kmeander import KmeanderError, Step
from kmeander.cli import app
from tests.runs import untidy
from tests.runs.untidy import Untidy, write
from tests.sources.test_sources import blocks_of, opened

READABLE = [pytest.param(file, id=file.name) for file in untidy.corpus()]
MIXED = [pytest.param(*file, id=file[0]) for file in untidy.mixed()]
REFUSED = [pytest.param(file, id=file.name) for file in untidy.refused()]


def run(*words: str) -> tuple[bool, str]:
    """Run the program; return whether it ended well, and what it said to people."""
    done = CliRunner().invoke(app, ["run", *words, "--steps", "/dev/null"])
    if done.exception is None:
        return done.exit_code == 0, done.stderr
    assert isinstance(done.exception, KmeanderError), done.exception
    return False, str(done.exception)


def options(message: str) -> list[list[str]]:
    """Return the options that a message names, as one would paste them."""
    words = re.findall(r"""--[a-z-]+|\(|(?:"[^"]*"|'(?:[^']|'"'"')*'|[^\s'"])+""", message)
    found = []
    for option, value in zip(words, [*words[1:], ""], strict=True):
        if option.startswith("--"):
            bare = value if value in (",", ".") else value.rstrip(").,:")
            found.append([option, *shlex.split(bare)])
    return found


@pytest.mark.parametrize("file", READABLE)
def test_what_people_call_readable_is_read_as_they_do(file: Untidy, tmp_path: Path) -> None:
    path = write(file, tmp_path)
    source = opened(path)
    points = np.concatenate([block.points for block in blocks_of(source)])
    assert source.selection.features == file.columns
    np.testing.assert_allclose(points, file.rows, rtol=1e-12)


@pytest.mark.parametrize("file", READABLE)
def test_what_people_call_readable_runs_without_an_option(file: Untidy, tmp_path: Path) -> None:
    path = write(file, tmp_path)
    ended_well, said = run(str(path), "--clusters", "2")
    assert ended_well, said
    assert f"{path}: {untidy.N_ROWS} rows in 1 batch" in said
    for words in file.said:
        assert words in said


@pytest.mark.parametrize(("name", "content"), MIXED)
def test_columns_of_other_kinds_do_no_harm(name: str, content: bytes, tmp_path: Path) -> None:
    """The two clusters are found as without them."""
    path, rows = tmp_path / name, tmp_path / "rows.ndjson"
    path.write_bytes(content)
    words = ("--clusters", "2", "--prepare", "auto", "--assignments", str(rows))
    ended_well, said = run(str(path), *words)
    assert ended_well, said
    found = [json.loads(line)["cluster"] for line in rows.read_text().splitlines()]
    assert len(found) == untidy.N_ROWS
    assert np.array_equal(found, untidy.KIND) or np.array_equal(found, 1 - untidy.KIND)


@pytest.mark.parametrize("unit", ["iso", "epoch-s", "epoch-ms", "epoch-us", "epoch-ns"])
def test_times_cut_batches_in_whatever_unit(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(dict(untidy.mixed())[f"{unit}.csv"])
    _, said = run(str(path), "--clusters", "2", "--time-column", "ts", "--every", "30m")
    assert f"{path}: 120 rows in 4 batches" in said


@pytest.mark.parametrize("file", REFUSED)
def test_what_is_refused_says_what_to_paste(file: Untidy, tmp_path: Path) -> None:
    path = write(file, tmp_path)
    ended_well, said = run(str(path), "--clusters", "2", *file.options)
    assert not ended_well
    assert said == file.refused.format(path)
    advice = options(said)
    assert len(advice) == file.pasted
    for words in advice:
        ended_well, said = run(str(path), "--clusters", "2", *file.options, *words)
        assert ended_well, (words, said)


def test_one_row_says_how_many_clusters_it_makes(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("a,b\n1.5,2\n")
    _, said = run(str(path), "--clusters", "2")
    line = said.splitlines()[-1]
    assert line == (
        "Nothing was learned: 2 clusters need as many distinct points, the stream has shown 1. Ask "
        "for fewer: --clusters 1."
    )
    ended_well, said = run(str(path), *options(line)[0])
    assert ended_well and "Nothing was learned" not in said


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beside", ["huge", "id", "seconds", "text time"])
def test_a_column_that_says_nothing_hides_no_drift(beside: str, seed: int) -> None:
    """A drift at batch 30 is found in the batch in which it is without that column, and alone."""
    rng = np.random.default_rng(seed)
    n_batches, n_rows = 60, 200
    centres = np.array([[20.0, 1.0], [40.0, 3.0], [60.0, 1.0]])
    batch = np.arange(n_batches * n_rows) // n_rows
    moved = centres + np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    way = rng.integers(3, size=len(batch))
    places = np.where((batch >= 30)[:, np.newaxis], moved[way], centres[way])
    plain = pd.DataFrame(places + rng.normal(size=places.shape) * [1.0, 0.1], columns=["a", "b"])
    number = np.arange(len(batch))
    column: Any = {
        "huge": rng.normal(0, 1e7, len(batch)),
        "id": 100_000 + number,
        "seconds": 1_780_000_000 + 60 * number,
        "text time": pd.date_range("2026-06-01", periods=len(batch), freq="min").astype(str),
    }[beside]
    name = {"huge": "watts", "id": "id"}.get(beside, "ts")
    found = {}
    for what, frame in (("plain", plain), ("beside", plain.assign(**{name: column}))):
        steps: list[Step] = []
        said: list[str] = []
        kmeander.run(
            frame, 3, batch_size=n_rows, random_state=seed, on_step=steps.append, tell=said.append
        )
        found[what] = [step.index for step in steps if any(e.kind == "drift" for e in step.events)]
        if what == "beside" and beside != "huge":
            assert any(f"Column '{name}' is left out" in line for line in said)
    assert found["plain"] == found["beside"] == [30]
