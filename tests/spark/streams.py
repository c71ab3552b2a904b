"""What the tests on Spark share: sessions, streams of files, and what must come out of them."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from kmeander import FSKM, Batch, ForgetfulKMeans, Step
from kmeander.kmeans.coreset import lexicographic
from kmeander.storage import checkpoint
from tests.kafka_broker import free_ports
from tests.streams import drifting_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Array = NDArray[np.float64]
COLUMNS = ["x", "y", "z"]
SCHEMA = "x double, y double, z double"
N_CLUSTERS = 4


def missing() -> str | None:
    """Why Spark cannot run here, if it cannot."""
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else None
    program = str(java) if java is not None else shutil.which("java")
    if program is None:
        return "Spark needs Java 17 or newer, and there is no java (apt-get install openjdk-17-jre)"
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < 17:
        return f"Spark needs Java 17 or newer, found {said.splitlines()[:1]}"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed (make test installs it)"
    return None


WHY_NOT = missing()
# One worker for all: sessions are dear, and the cores are few.
on_spark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]


ROOT = Path(__file__).parents[2]
CONNECT = "connect"  # a server of Spark Connect in a process of its own, with local[2]
# Where sessions run whose tests do not say; `make test-spark` goes through all.
MASTER = os.environ.get("KMEANDER_SPARK_MASTER", "local[2]")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": str(ROOT),  # workers import the tests, too
    "spark.sql.streaming.minBatchesToRetain": "2",
}


@contextmanager
def session(master: str = MASTER, **more: str) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {**SETTINGS, **{name.replace("__", "."): value for name, value in more.items()}}
    if master == CONNECT:
        with connect_server(settings) as address:
            spark = SparkSession.builder.remote(address).getOrCreate()
            try:
                yield spark
            finally:
                spark.stop()
        return
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def connect_server(settings: dict[str, str]) -> Iterator[str]:
    """Run a server of Spark Connect, and yield its address."""
    import pyspark

    port = free_ports(1)[0]
    settings = {**settings, "spark.connect.grpc.binding.port": str(port)}
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    if jar := os.environ.get("KMEANDER_SPARK_CONNECT_JAR"):  # which pyspark 3.5 does not hold
        command += ["--jars", jar]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(
            [*command, "spark-internal"], env=environment, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            until = time.monotonic() + 120
            while not _answers(port):
                if server.poll() is not None or time.monotonic() > until:
                    said.seek(0)
                    raise AssertionError(f"no Connect server: {said.read()[-2000:].decode()}")
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def write_file(folder: Path, name: str, table: dict[str, Any] | pa.Table) -> None:
    """One file is one micro-batch; aside and renamed, as a stream's files should come."""
    folder.mkdir(exist_ok=True)
    aside = folder / f".{name}"
    pq.write_table(pa.table(table) if isinstance(table, dict) else table, aside)
    aside.rename(folder / f"{name}.parquet")
    # Files are read in order of their times, which may be equal for two written at once.
    time = 1_700_000_000 + len(list(folder.glob("*.parquet")))
    os.utime(folder / f"{name}.parquet", (time, time))


def write_batches(folder: Path, batches: list[Array], first: int = 0) -> None:
    for index, points in enumerate(batches, start=first):
        columns = {name: points[:, j] for j, name in enumerate(COLUMNS)}
        write_file(folder, f"{index:05}", columns)


def files(spark: SparkSession, folder: Path, schema: str = SCHEMA) -> DataFrame:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def stream_of_points(n_batches: int = 6) -> list[Array]:
    """Drifting, with equal rows and rows that only differ in their last column."""
    batches = drifting_stream(n_batches, n_points=120, n_clusters=N_CLUSTERS)
    for points in batches:
        points[40:60] = points[20:40]
        points[60:80, :2] = points[0, :2]
    return batches


def expected_model(batches: list[Array], **settings: Any) -> tuple[FSKM, list[Step]]:
    """What the local model learns from the rows in lexicographic order."""
    from kmeander.spark.models import model_of

    model = model_of(estimator(**settings))
    steps = [model.step(Batch(i, x[lexicographic(x)])) for i, x in enumerate(batches)]
    return model, steps


def estimator(**settings: Any) -> ForgetfulKMeans:
    return ForgetfulKMeans(N_CLUSTERS, random_state=3, **settings)


def learn_all(
    stream: DataFrame, folder: Path, model: ForgetfulKMeans | None = None, **how: Any
) -> list[tuple[int, Step]]:
    """Learn what there is, and return batch ids and Steps."""
    from kmeander import spark as ks

    with tempfile.TemporaryDirectory() as told:
        query = ks.learn(
            stream,
            how.pop("features", COLUMNS),
            model=estimator() if model is None else model,
            checkpoint=folder,
            trigger={"availableNow": True},
            on_step=Teller(told),
            **how,
        )
        query.awaitTermination()
        return [pickle.loads(file.read_bytes()) for file in sorted(Path(told).iterdir())]


class Teller:
    """Writes down Steps as they are told, in whatever process that is."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, step: Step, batch_id: int) -> None:
        n_before = len(list(Path(self.folder).iterdir()))
        file = Path(self.folder, f"{n_before:05}")
        file.write_bytes(pickle.dumps((batch_id, step)))


def state_bytes(model: Any) -> bytes:
    return checkpoint.to_bytes(model.state())


def in_partitions(frame: DataFrame, n_partitions: int) -> DataFrame:
    return frame.coalesce(1) if n_partitions == 1 else frame.repartition(n_partitions)


Learned = Callable[..., list[tuple[int, Step]]]
