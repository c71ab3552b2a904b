"""The example on Spark, with python and with spark-submit, as its text says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from kmeander import ForgetfulKMeans, load
from tests.spark.streams import on_spark

pytestmark = on_spark

ROOT = Path(__file__).parents[2]


def run(*command: str) -> str:
    binaries = Path(sys.executable).parent
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_and_spark_submit_write_the_same_rows_once(tmp_path: Path) -> None:
    script = "examples/spark_stream.py"
    said = run(sys.executable, script, "--out", str(tmp_path / "one"))
    assert "batch 7: 2000 rows, error 2." in said
    assert "16000 rows in " in said
    submit = ["spark-submit", "--master", "local[2]", script, "--in", str(tmp_path / "one" / "in")]
    said = run(*submit, "--out", str(tmp_path / "two"))
    assert "16000 rows in " in said
    one, two = (pq.read_table(tmp_path / name / "rows").to_pandas() for name in ("one", "two"))
    order = ["batch", "reading"]
    assert (
        one.sort_values(order)
        .reset_index(drop=True)
        .equals(two.sort_values(order).reset_index(drop=True))
    )
    last = one[one["batch"].astype(int) == 7]
    model = load(sorted((tmp_path / "one" / "state" / "model").glob("*.ckpt"))[-1])
    assert isinstance(model, ForgetfulKMeans)
    assert (last["cluster"] == model.predict(last[["x", "y"]])).all()
    # The cluster that moves has gone as far as it should.
    assert np.abs(model.cluster_centers_ - [17.0, 10.0]).sum(axis=1).min() < 2.5
