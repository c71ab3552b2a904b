"""`kmeander check`: what columns hold, what is done with them, what spoils clusters, the run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import kmeander
from kmeander import InputError, check, run
from kmeander.cli import app
from kmeander.preparation import Preparation, Rows
from kmeander.runs.profile import Warned, profiled, warnings_of
from tests.runs.untidy import corpus, write

N = 400


def frame() -> pd.DataFrame:
    """Three clusters in `temp`, and all that people have beside them."""
    rng = np.random.default_rng(1)
    way = rng.integers(3, size=N)
    temp = np.array([20.0, 40.0, 60.0])[way] + rng.normal(size=N)
    return pd.DataFrame(
        {
            "id": np.arange(N) + 1000,
            "at": pd.date_range("2026-06-01", periods=N, freq="min"),
            "temp": temp.round(2),
            "temp_f": temp.round(2) * 1.8 + 32,
            "watts": rng.normal(1e6, 1e5, N),
            "city": np.array(["Oslo", "Rome", "Lima"])[way],
            "note": [f"note {n}" for n in range(N)],
            "on": way > 0,
            "flat": 7.0,
            "gaps": np.where(np.arange(N) % 10 == 0, np.nan, rng.normal(size=N)),
            "tail": np.where(np.arange(N) == 50, 1e3, rng.normal(size=N)),
        }
    )


def warned(found: Any, kind: str) -> list[Warned]:
    return [warning for warning in found.warnings if warning.kind == kind]


def test_columns_are_described_as_they_are() -> None:
    plain = frame().drop(columns="tail")
    found = {column.name: column for column in check(plain).columns}
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds == {
        "id": "number", "at": "time", "temp": "number", "temp_f": "number", "watts": "number",
        "city": "category", "note": "category", "on": "boolean", "flat": "number",
        "gaps": "number",
    }  # fmt: skip
    assert found["gaps"].n_missing == 40
    assert found["city"].n_distinct == 3
    assert sum(found["city"].levels.values()) == N
    assert (found["id"].low, found["id"].high) == (1000.0, 1399.0)
    assert found["id"].done.startswith("left out: it grows with every row")
    shares = [column.share for column in found.values() if column.share is not None]
    assert sum(shares) == pytest.approx(1.0)
    assert found["watts"].share == pytest.approx(
        np.var(plain["watts"]) / plain.select_dtypes(["number", "bool"]).var(ddof=0).sum()
    )
    prepared = [column.prepared_share or 0.0 for column in found.values()]
    assert sum(prepared) == pytest.approx(1.0)
    assert max(prepared) < 0.7 and found["id"].prepared_share == 0.0


def test_what_spoils_clusters_is_warned_of_with_a_way_out() -> None:
    plain = check(frame(), prepare="none")
    said = {
        warning.kind: str(warning) for warning in plain.warnings if warning.kind != "identifier"
    }
    assert said["constant"] == (
        "column 'flat' holds one value so far, which tells no cluster (exclude=[\"flat\"] leaves "
        "it out)."
    )
    assert said["twin"] == (
        "columns 'temp' and 'temp_f' say the same, which counts 2 times (exclude=[\"temp_f\"] "
        "leaves it out)."
    )
    assert said["dominant"] == (
        "column 'watts' makes up 80.0 % of the variance".replace("80.0", _share(plain, "watts"))
        + ', so it alone decides the clusters (prepare="auto" puts columns on one scale).'
    )
    assert said["tail"].startswith("column 'tail' has values up to 1000, where 90 % lie between")
    names = [warning.columns[0] for warning in warned(plain, "identifier")]
    assert names == ["id", "at", "note"]
    assert str(warned(plain, "identifier")[0]).endswith('(exclude=["id"] leaves it out).')
    prepared = check(frame())
    assert not warned(prepared, "dominant")
    assert str(warned(prepared, "identifier")[0]).endswith(
        '(a preparation with identifiers = "keep" keeps it).'
    )
    without_text = check(frame(), prepare=Preparation(categories="exclude"))
    assert str(warned(without_text, "identifier")[2]) == (
        "column 'city' is left out: it holds text (a preparation with categories = \"one-hot\" "
        "keeps it)."
    )


def _share(found: Any, name: str) -> str:
    return f"{next(column.share for column in found.columns if column.name == name):.1%}"[:-1]


def test_plain_rows_raise_no_warning() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = Rows.of_numbers(rng.normal(size=(200, 4)) * rng.uniform(0.5, 2, 4))
        assert warnings_of(rows, None) == warnings_of(rows, Preparation()) == []


def test_a_few_rows_are_not_judged() -> None:
    assert warnings_of(Rows.of_numbers(np.ones((49, 1))), None) == []
    assert warnings_of(Rows.of_numbers(np.ones((50, 1))), None)[0].kind == "constant"


def test_columns_without_a_value_are_described() -> None:
    rows = Rows.of_numbers(np.array([[np.nan, 1.0], [np.nan, 2.0]]), ["a", "b"])
    first, second = profiled(rows, None)
    assert (first.n_missing, first.low, first.share) == (2, None, None)
    assert second.share == 1.0


def test_the_recommended_call_runs(tmp_path: Path) -> None:
    path = tmp_path / "it's here.csv"
    frame().to_csv(path, index=False, sep=";", decimal=",")
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0
    command = done.stdout.splitlines()[-1]
    words = shlex.split(command)
    assert words == [
        "kmeander", "run", str(path), "--prepare", "auto", "--exclude", "flat,temp_f",
        "--time-column", "at", "--every", "6h",
    ]  # fmt: skip
    ran = CliRunner().invoke(app, [*words[1:], "--clusters", "3", "--steps", "/dev/null"])
    assert ran.exit_code == 0, ran.exception
    assert f"{path}: 400 rows in 2 batches" in ran.stderr
    found = check(path)
    assert found.call == (
        f'kmeander.run({str(path)!r}, prepare="auto", exclude=["flat", "temp_f"], '
        'time_column="at", every="6h")'
    )


def test_json_holds_all_that_the_table_says(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    frame().to_csv(path, index=False)
    done = CliRunner().invoke(app, ["check", str(path), "--json", "--rows", "100"])
    found = json.loads(done.stdout)
    assert found["n_rows"] == 100
    assert found["call"] == (
        f"kmeander run {path} --prepare auto --exclude flat,temp_f --time-column at --every 6h"
    )
    assert [column["name"] for column in found["columns"]] == list(frame().columns)
    assert {warning["kind"] for warning in found["warnings"]} >= {"identifier", "twin", "constant"}


def test_a_notebook_shows_a_table_that_is_no_markup() -> None:
    shown = check(frame().rename(columns={"temp": "<b>"}))._repr_html_()
    assert "<table>" in shown and "&lt;b&gt;" in shown and "<b>" not in shown
    assert "kmeander.run(frame, prepare=&quot;auto&quot;" in shown


def test_bad_rows_are_counted_and_the_first_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n3,4\n5,6\n" * 10 + "7,x\n8\n")
    found = check(path)
    assert (found.n_rows, found.n_bad) == (30, 2)
    assert found.first_bad == f"{path} line 32: 'x' in column 'b' is not a number"
    assert found.options["bad_rows"] == "skip"
    path.write_text("a,b\n1\n2\n")
    with pytest.raises(InputError) as caught:
        check(path)
    assert str(caught.value).startswith(f"{path} has no rows. The first that cannot be read: ")


@pytest.mark.parametrize("file", [pytest.param(file, id=file.name) for file in corpus()])
def test_every_readable_file_can_be_checked_and_run_as_recommended(
    file: Any, tmp_path: Path
) -> None:
    path = write(file, tmp_path)
    words = shlex.split(CliRunner().invoke(app, ["check", str(path)]).stdout.splitlines()[-1])
    done = CliRunner().invoke(app, [*words[1:], "--clusters", "2", "--steps", "/dev/null"])
    assert done.exit_code == 0, (words, done.exception)


def test_a_run_warns_once_after_the_first_batch() -> None:
    said: list[str] = []
    rows = np.random.default_rng(0).normal(size=(200, 2)) * [1, 1000]
    kmeander.run(
        pd.DataFrame(rows, columns=["a", "b"]), 2, batch_size=50, prepare="none", tell=said.append
    )
    (line,) = [line for line in said if "variance" in line]
    assert line == (
        "Column 'b' makes up 100.0 % of the variance, so it alone decides the clusters "
        '(prepare="auto" puts columns on one scale).'
    )


def parts(table: pd.DataFrame, cuts: list[int]) -> Iterator[pd.DataFrame]:
    return (table.iloc[a:b] for a, b in pairwise([0, *cuts, len(table)]))


def test_a_run_that_begins_with_a_few_rows_warns_once_it_has_enough() -> None:
    """A first period that is cut short: a column of ids is clustered, and that is said."""
    said: list[str] = []
    table = pd.DataFrame({
        "level": np.arange(200), "a": np.random.default_rng(0).normal(size=200),
    })  # fmt: skip
    cuts = [30, 45, 60, 120]
    kmeander.run(parts(table, cuts), 2, tell=said.append)
    found = [line for line in said if "'level'" in line]
    assert found == [
        "Column 'level' is clustered, though it grows with every row, as a number of rows or a "
        'time does: the first batch was too small to tell (exclude=["level"] leaves it out).'
    ]
    named = table.rename(columns={"level": "row"})
    said.clear()
    kmeander.run(parts(named, cuts), 2, tell=said.append)
    assert [line for line in said if "'row'" in line] == [
        "Column 'row' is left out: it grows with every row, as a number of rows or a time does (a "
        'preparation with identifiers = "keep" keeps it).'
    ]


def test_embeddings_are_recognised_and_checked_by_angle(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(N, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"v": pa.array(rows.astype(np.float16).tolist())}), path)
    found = check(path)
    assert found.notes == (
        'its vectors have length 1, as embeddings do; metric="cosine" compares them by angle.',
    )
    by_angle = check(path, metric="cosine")
    assert by_angle.notes == ()
    assert [column.done for column in by_angle.columns] == ["taken as it is"]
    assert by_angle.options["metric"] == "cosine"
    assert run(path, 2, **by_angle.options).summary.n_points == N
    pq.write_table(pa.table({"v": pa.array((rows * 2).tolist())}), path)
    assert check(path).notes == ()
