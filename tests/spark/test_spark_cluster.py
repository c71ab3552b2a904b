"""kmeander on two executors that are processes of their own, and drivers and executors that die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kmeander import ForgetfulKMeans, load
from tests.spark.streams import (
    COLUMNS,
    SCHEMA,
    expected_model,
    files,
    in_partitions,
    learn_all,
    on_spark,
    session,
    state_bytes,
    stream_of_points,
    write_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local-cluster[2,1,1024]") as running:
        yield running


def newest_model(state: Path) -> Any:
    newest = sorted((state / "model").glob("*.ckpt"))[-1]
    found = load(newest)
    assert isinstance(found, ForgetfulKMeans)
    return found._model


@pytest.mark.parametrize("n_partitions", [1, 2, 7])
def test_two_executors_learn_what_the_local_model_learns(
    spark: SparkSession, tmp_path: Path, n_partitions: int
) -> None:
    batches = stream_of_points(3)
    write_batches(tmp_path / "in", batches)
    stream = in_partitions(files(spark, tmp_path / "in"), n_partitions)
    told = learn_all(stream, tmp_path / "state")
    model, steps = expected_model(batches)
    assert [step for _, step in told] == steps
    assert state_bytes(newest_model(tmp_path / "state")) == state_bytes(model)


def test_two_executors_compress_and_assign(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    batches = stream_of_points(2)
    write_batches(tmp_path / "in", batches)
    stream = files(spark, tmp_path / "in").repartition(4)
    told = learn_all(stream, tmp_path / "state", summary="coreset", coreset_size=40)
    assert [(step.n_points, step.n_means) for _, step in told] == [(120, 40)] * 2
    frame = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")).repartition(4)
    model = ks.load(str(tmp_path / "state"), spark=spark)
    for known in (model, str(tmp_path / "state")):
        rows = ks.assign(frame, known).toPandas()
        assert len(rows) == 240
        assert (rows["cluster"] == model.predict(rows[COLUMNS])).all()


def parent_of(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def killing_its_executor_once(mark: str) -> Any:
    """Return a job that ends the executor it runs on (its worker's daemon's parent), but once."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                Path(mark).touch(exist_ok=False)
            except FileExistsError:
                yield batch
                continue
            executor = parent_of(os.getppid())
            assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
            os.kill(executor, signal.SIGKILL)
            yield batch

    return rows


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
@pytest.mark.parametrize("summary", ["exact", "coreset"])
def test_an_executor_that_dies_in_mid_job_changes_nothing(
    spark: SparkSession, tmp_path: Path, summary: str
) -> None:
    batches = stream_of_points(2)
    write_batches(tmp_path / "in", batches)
    mark = str(tmp_path / "killed")
    stream = files(spark, tmp_path / "in").coalesce(1)
    dying = stream.mapInArrow(killing_its_executor_once(mark), SCHEMA)
    how: dict[str, Any] = {"summary": summary, "coreset_size": 40}
    told = learn_all(dying, tmp_path / "state", **how)
    assert Path(mark).exists()
    undisturbed = learn_all(stream, tmp_path / "other", **how)
    assert told == undisturbed
    one, other = newest_model(tmp_path / "state"), newest_model(tmp_path / "other")
    assert state_bytes(one) == state_bytes(other)


DRIVER = """
import os, signal, sys
from pathlib import Path
from kmeander.spark.storage import Checkpoints
from tests.spark.streams import files, learn_all, session

folder, moment, batch = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

with session("local[2]") as spark:
    def die():
        jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
        os.kill(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    save = Checkpoints.save

    def dying(self, batch_id, state):
        here = self.folder.endswith("/model") and batch_id == batch
        if here and moment == "before":
            die()
        save(self, batch_id, state)
        if here and moment == "after":
            die()

    Checkpoints.save = dying
    told = learn_all(files(spark, folder / "in"), folder / "state")
    print("learned", [batch_id for batch_id, _ in told], [step.index for _, step in told])
"""


def drive(folder: Path, moment: str, batch: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DRIVER, str(folder), moment, str(batch)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_a_driver_that_is_killed_learns_every_batch_once(tmp_path: Path) -> None:
    """Between solving and saving, then between saving and Spark's commit."""
    batches = stream_of_points(5)
    write_batches(tmp_path / "in", batches)
    first = drive(tmp_path, "before", 1)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert newest_model(tmp_path / "state").n_steps == 1
    second = drive(tmp_path, "after", 3)
    assert second.returncode == -signal.SIGKILL, second.stderr
    assert newest_model(tmp_path / "state").n_steps == 4
    commits = tmp_path / "state" / "spark" / "commits"
    assert sorted(int(file.name) for file in commits.iterdir() if file.name.isdigit())[-1] == 2
    third = drive(tmp_path, "never", 0)
    assert third.returncode == 0, third.stderr
    # Batch 3 came again, and was known.
    assert re.findall("learned.*", third.stdout) == ["learned [4] [4]"]
    model, _ = expected_model(batches)
    assert state_bytes(newest_model(tmp_path / "state")) == state_bytes(model)
