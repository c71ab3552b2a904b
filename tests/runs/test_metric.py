"""Runs by angle: distances of rows, models that predict, checkpoints that go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import kmeander
from kmeander import CheckpointError, InputError
from kmeander.cli import app
from kmeander.models.settings import MetricName
from kmeander.runs.predict import predict
from tests import naive_sphere


def vectors(n: int = 600) -> Any:
    rng = np.random.default_rng(0)
    rows = np.eye(3)[rng.integers(3, size=n)] + 0.2 * rng.normal(size=(n, 3))
    return np.round(rows * rng.lognormal(sigma=1.5, size=(n, 1)), 6)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.csv"
    np.savetxt(path, vectors(), delimiter=",", fmt="%.6f", header="x,y,z", comments="")
    return path


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_by_angle_tells_angles(source: Path, tmp_path: Path) -> None:
    steps, rows, model = tmp_path / "steps.jsonl", tmp_path / "rows.ndjson", tmp_path / "m.km"
    done = CliRunner().invoke(
        app,
        [
            *("run", str(source), "--clusters", "3", "--metric", "cosine", "--batch-size", "200"),
            *("--steps", str(steps), "--assignments", str(rows), "--model-out", str(model)),
        ],
    )
    assert done.exit_code == 0, done.stderr
    first, *_, last = written(steps)
    assert first["run"]["settings"]["metric"] == "cosine"
    centroids = np.array(last["centroids"])
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1)
    newest = vectors()[-200:]
    assert last["batch_error"] == pytest.approx(naive_sphere.error(newest, centroids))
    least = [1 - max(naive_sphere.cosine(x, c) for c in centroids) for x in newest]
    assert [row["distance"] for row in written(rows)[-200:]] == pytest.approx(least)
    again = tmp_path / "again.ndjson"
    predict(source, model, out=again)
    assert [row["distance"] for row in written(again)[-200:]] == pytest.approx(least)
    assert written(again)[-200:] == written(rows)[-200:]


def test_a_run_goes_on_with_its_metric_and_no_other(source: Path, tmp_path: Path) -> None:
    def run(to: str, metric: MetricName = "cosine", **more: Any) -> Any:
        return kmeander.run(
            source, 3, batch_size=200, metric=metric, steps=tmp_path / f"{to}.jsonl",
            checkpoint=tmp_path / to, **more,
        ).summary  # fmt: skip

    run("state")
    with pytest.raises(CheckpointError) as refused:
        run("state", metric="euclidean")
    assert "belongs to a run with metric cosine, this one has euclidean. Use the same" in str(
        refused.value
    )
    assert run("state").n_batches == 0


def test_rows_of_zeros_are_bad_rows(tmp_path: Path) -> None:
    path, bad = tmp_path / "x.csv", tmp_path / "bad.ndjson"
    path.write_text("x,y\n" + "1,2\n5,1\n0,0.0\n3,0\n" * 5)
    with pytest.raises(InputError) as refused:
        kmeander.run(path, 2, metric="cosine")
    assert str(refused.value) == (
        f'{path} line 4: every value is 0, which has no direction (use bad_rows="skip" to go on '
        "without such rows)."
    )
    summary = kmeander.run(path, 2, metric="cosine", bad_rows=bad).summary
    assert (summary.n_points, summary.n_bad) == (15, 5)
    assert written(bad)[1]["line"] == 8
    with pytest.raises(InputError, match="row 8: every value is 0"):
        kmeander.run(np.delete(np.eye(9), 7, axis=1), 2, metric="cosine", prepare=None)
