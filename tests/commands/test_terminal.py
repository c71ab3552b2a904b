"""Names from outside reach no terminal, and no spreadsheet, as commands."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from kmeander import predict, run
from kmeander.commands.progress import event_line
from kmeander.commands.words import say
from kmeander.exceptions import printable
from kmeander.page.summary import as_markdown
from kmeander.page.timeline import read_timeline
from tests.program import kmeander

RED = "\x1b[31mred\x07\x9b2J\u202e"


def readings(path: Path, *names: str) -> Path:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, len(names)))
    rows[100:] += 50.0  # a drift, which names columns
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows.tolist())
    return path


def test_control_characters_are_shown_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"café {RED}")
    assert capsys.readouterr().err == "café \\x1b[31mred\\x07\\x9b2J\\u202e\n"
    assert printable(event_line(3, [RED])) == event_line(3, [RED])


def test_no_control_character_of_a_name_reaches_the_terminal(tmp_path: Path) -> None:
    path = readings(tmp_path / f"x{RED}.csv", "a", RED)
    steps = tmp_path / "steps.jsonl"
    done = kmeander(
        "run", str(path), "--clusters", "2", "--batch-size", "20", "--steps", str(steps)
    )
    assert done.returncode == 0, done.stderr
    assert "red" in done.stderr  # in the name of the file, and of the column that moved
    refused = kmeander("run", str(path), "--clusters", "2", "--columns", "b")
    assert refused.returncode == 1
    for text in (done.stderr, refused.stderr, as_markdown(read_timeline(steps))):
        assert all(line.isprintable() for line in text.split("\n"))


def test_names_that_begin_like_formulas_are_text_in_csv(tmp_path: Path) -> None:
    names = ["=cmd|calc!A1", "+a", "-b", "@c", "plain"]
    path = readings(tmp_path / "x.csv", *names)
    centroids = tmp_path / "centroids.csv"
    run(path, 2, batch_size=50, centroids=centroids)
    with centroids.open(newline="") as file:
        header = next(csv.reader(file))
    assert header[4:] == ["'=cmd|calc!A1", "'+a", "'-b", "'@c", "plain"]


def test_ids_that_begin_like_formulas_are_text_in_csv(tmp_path: Path) -> None:
    ids = ["=cmd|calc!A1", "+4", "-1.5e3", "@c", "-x", "plain", "", "k,=1"]
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["@id", "a"])
        writer.writerows(zip(ids, range(len(ids)), strict=True))
    rows = tmp_path / "rows.csv"
    run(path, 2, id_column="@id", assignments=rows, model_out=tmp_path / "m.km")
    predict(path, tmp_path / "m.km", out=tmp_path / "new.csv", id_column="@id")
    for written in (rows, tmp_path / "new.csv"):
        with written.open(newline="") as opened:
            found = [row[0] for row in csv.reader(opened)]
        assert found == [
            "'@id", "'=cmd|calc!A1", "+4", "-1.5e3", "'@c", "'-x", "plain", "", "k,=1",
        ]  # fmt: skip
