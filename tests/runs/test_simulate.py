"""``kmeander simulate``: streams and concepts as Parquet, with the truth in columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import DriftStream, simulate_drifts
from kmeander.drifts.scenarios import evolve_clusters
from tests.program import kmeander


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    rows = rng.normal(scale=6.0, size=(4, 2))[rng.integers(4, size=200)] + rng.normal(size=(200, 2))
    path = tmp_path / "data.csv"
    np.savetxt(path, rows, "%.17g", delimiter=",", header="x,y", comments="")
    return path


def features(table: pa.Table) -> np.ndarray:
    return np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)


def test_a_stream_is_written_with_its_truth(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kmeander(
        "simulate", str(data), "--out", str(out), "--clusters", "4", "--epsilon", "0.5",
        "--concepts", "3", "--batch-size", "30", "--batches-per-concept", "2", "--seed", "5",
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == (
        f"{out / 'stream.parquet'}: 6 batches of 30 rows, 3 concepts.\n"
        f"To cluster it: kmeander run {out / 'stream.parquet'} --columns x,y\n"
    )
    table = pq.read_table(out / "stream.parquet")
    assert table.column_names == ["x", "y", "batch", "concept", "drift"]
    rows = np.loadtxt(data, delimiter=",", skiprows=1)
    concepts = simulate_drifts(rows, 4, 0.5, 3, random_state=5)
    stream = list(DriftStream(concepts, 30, 2, random_state=5))
    assert (features(table) == np.concatenate([batch for batch, _ in stream])).all()
    assert table["batch"].to_pylist() == [i for i in range(6) for _ in range(30)]
    assert table["concept"].to_pylist() == [i // 2 for i in range(6) for _ in range(30)]
    assert table["drift"].to_pylist() == [flag for _, flag in stream for _ in range(30)]
    # What was written can be clustered as any other file.
    run = kmeander("run", str(out / "stream.parquet"), "--columns", "x,y", "--batch-size", "30")
    assert len(run.stdout.splitlines()) == 6


def test_concepts_are_written_whole(data: Path, tmp_path: Path) -> None:
    done = kmeander(
        "simulate", str(data), "--out", str(tmp_path), "--write", "concepts", "--clusters", "2",
        "--concepts", "3", "--method", "paper",
    )  # fmt: skip
    assert done.stderr == f"{tmp_path / 'concepts.parquet'}: 3 concepts, 600 rows.\n"
    table = pq.read_table(tmp_path / "concepts.parquet")
    rows = np.loadtxt(data, delimiter=",", skiprows=1)
    expected = simulate_drifts(rows, 2, 1.0, 3, method="paper", random_state=0)
    assert (features(table) == np.concatenate(expected)).all()
    assert table["concept"].to_pylist() == [0] * 200 + [1] * 200 + [2] * 200
    assert table["drift"].to_pylist() == [False] * 200 + [True] * 400


def test_a_gradual_stream_says_which_concept_each_row_is_of(data: Path, tmp_path: Path) -> None:
    kmeander(
        "simulate", str(data), "--out", str(tmp_path), "--kind", "gradual", "--clusters", "4",
        "--concepts", "2", "--batch-size", "400", "--batches-per-concept", "4",
        "--transition", "3",
    )  # fmt: skip
    table = pq.read_table(tmp_path / "stream.parquet")
    concept = table["concept"].to_numpy().reshape(8, 400)
    assert concept.mean(axis=1) == pytest.approx([0, 0, 0, 0, 0.25, 0.5, 0.75, 1], abs=0.1)
    assert (table["drift"].to_numpy().reshape(8, 400).mean(axis=1) == np.eye(8)[4]).all()


def test_clusters_that_come_and_go_are_labelled(data: Path, tmp_path: Path) -> None:
    done = kmeander(
        "simulate", str(data), "--out", str(tmp_path), "--kind", "clusters", "--clusters", "4",
        "--changes", "split,vanish", "--write", "concepts",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "concepts.parquet")
    rows = np.loadtxt(data, delimiter=",", skiprows=1)
    expected = evolve_clusters(rows, 4, ["split", "vanish"], random_state=0)
    assert (features(table) == np.concatenate([c.points for c in expected])).all()
    assert (table["cluster"].to_numpy() == np.concatenate([c.clusters for c in expected])).all()
    assert list(dict.fromkeys(table["change"].to_pylist())) == ["start", "split", "vanish"]
    kmeander(
        "simulate", str(data), "--out", str(tmp_path), "--kind", "clusters", "--clusters", "4",
        "--changes", "split,vanish", "--batch-size", "20", "--batches-per-concept", "2",
    )  # fmt: skip
    stream = pq.read_table(tmp_path / "stream.parquet").to_pylist()
    known = {
        (c, *point): cluster
        for c, concept in enumerate(expected)
        for point, cluster in zip(concept.points.tolist(), concept.clusters.tolist(), strict=True)
    }
    for row in stream:
        assert known[row["concept"], row["x"], row["y"]] == row["cluster"]


def test_what_cannot_be_simulated_is_refused_in_one_line(data: Path, tmp_path: Path) -> None:
    def refused(*words: str, code: int = 1) -> str:
        done = kmeander("simulate", *words, "--out", str(tmp_path / "out"))
        assert done.returncode == code
        assert not list((tmp_path / "out").glob("*.parquet"))
        return done.stderr

    assert refused(str(tmp_path / "none.csv")).startswith("kmeander simulate: ")
    assert refused(str(data), "--epsilon", "0", code=2) == (
        "kmeander simulate: --epsilon must be a finite number above 0, got 0.0.\n"
    )
    assert refused(str(data), "--kind", "clusters", "--changes", "grow") == (
        "kmeander simulate: changes must be drawn from 'appear', 'vanish', 'split', 'merge', got "
        "'grow'.\n"
    )
    taken = tmp_path / "taken.csv"
    taken.write_text("x,drift\n1,2\n3,4\n")
    assert refused(str(taken)) == (
        f"kmeander simulate: {taken} has a column 'drift', which is where the truth is written. "
        "Rename it, or leave it out: --columns chooses others.\n"
    )


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,x\n")
    out = tmp_path / "out"
    done = kmeander("simulate", str(bad), "--out", str(out))
    assert done.returncode == 1
    assert not out.exists()
