"""From a topic to a topic of assignments, by Spark's own connector and a real broker.

Named so that it is not collected: `.ci/spark 3.5.7 'local[2]'` runs it, on a version of Spark whose
connector Maven has.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyspark
import pytest

from kmeander import ForgetfulKMeans, load
from kmeander.kmeans.coreset import lexicographic
from tests.kafka_broker import Broker
from tests.spark.streams import ROOT, on_spark, state_bytes, stream_of_points

pytestmark = [*on_spark, pytest.mark.kafka]

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kmeander</groupId><artifactId>spark-kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.spark</groupId>
    <artifactId>spark-sql-kafka-0-10_{scala}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
N_ROWS = 120  # of a batch

DRIVER = """
import os, signal, sys
from pathlib import Path
from pyspark.sql import functions as F
from kmeander import ForgetfulKMeans
from kmeander import spark as ks
from tests.spark.streams import session

address, state, master, jars, mark = sys.argv[1:]
with session(master, spark__jars=jars) as spark:
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", "readings")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 120)
        .load()
    )
    schema = "reading long, x double, y double, z double"
    rows = raw.select(F.from_json(F.col("value").cast("string"), schema).alias("r")).select("r.*")
    ks.learn(
        rows,
        ["x", "y", "z"],
        model=ForgetfulKMeans(4, random_state=3),
        checkpoint=state,
        write=ks.KafkaRows(
            f"kafka://{address}/segments", key="reading", columns=("reading", "cluster", "id")
        ),
        trigger={"availableNow": True},
    ).awaitTermination()
print("all learned")
"""


def connector() -> str:
    """Return the jars of Spark's connector; Maven fetches them the first time."""
    version = pyspark.__version__
    scala = "2.12" if version.startswith("3") else "2.13"
    pom = POM.format(scala=scala, version=version)
    folder = ROOT / "build" / f"spark-kafka-{hashlib.sha256(pom.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        folder.parent.mkdir(exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix="spark-kafka-", dir=folder.parent))
        (aside / "pom.xml").write_text(pom)
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(aside / "pom.xml"), "dependency:copy-dependencies",
             # which Spark has itself
             "-DexcludeGroupIds=org.apache.hadoop,org.scala-lang,org.slf4j",
             f"-DoutputDirectory={aside}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-500:]
        aside.rename(folder)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        yield made
    finally:
        made.close()


def below(process: int) -> list[int]:
    """Return all processes below one, Spark's JVMs and their workers."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:  # it has just ended
            continue
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def executors(process: int) -> list[int]:
    return [
        one
        for one in below(process)
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


def started(broker: Broker, folder: Path, master: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, broker.address, str(folder / "state"), master, connector(),
         str(folder)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def kill_all(driver: subprocess.Popen[str]) -> None:
    for one in below(driver.pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue
    driver.wait()


def n_learned(folder: Path) -> int:
    names = (file.name for file in (folder / "state" / "model").glob("batch-0*.ckpt"))
    return max((int(name[6:14]) + 1 for name in names), default=0)


def test_every_row_arrives_once_through_kills_of_driver_and_executor(
    broker: Broker, tmp_path: Path
) -> None:
    batches = stream_of_points(8)
    broker.make_topic("readings")
    broker.make_topic("segments", 2)
    rows = [row for points in batches for row in points.tolist()]
    texts = [
        json.dumps({"reading": number, "x": row[0], "y": row[1], "z": row[2]}).encode()
        for number, row in enumerate(rows)
    ]
    broker.send("readings", texts)
    rng = random.Random(7)
    # A driver with all that is below it, at some moment of some batch; then executors.
    for n_before in (1, 3, 5):
        master = "local[2]" if n_before < 5 else "local-cluster[2,1,1024]"
        driver = started(broker, tmp_path, master)
        until = time.monotonic() + 240
        while n_learned(tmp_path) < n_before:
            assert driver.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.6))  # while it writes, or learns the next
        if master == "local[2]":
            kill_all(driver)
        else:
            killed = executors(driver.pid)[:1]
            for one in killed:
                os.kill(one, signal.SIGKILL)
            assert killed
            said, _ = driver.communicate(timeout=240)
            assert said.strip().endswith("all learned")
    found = [json.loads(message.value() or b"") for message in broker.messages("segments", [0, 1])]
    assert sorted(one["reading"] for one in found) == list(range(len(rows)))
    model = ForgetfulKMeans(4, random_state=3)
    expected = {}
    for index, points in enumerate(batches):
        model.partial_fit(points[lexicographic(points)])
        labels = model.predict(points)
        for place, label in enumerate(labels.tolist()):
            expected[index * N_ROWS + place] = int(model.cluster_ids_[label])
    assert {one["reading"]: one["id"] for one in found} == expected
    newest = load(sorted((tmp_path / "state" / "model").glob("*.ckpt"))[-1])
    assert isinstance(newest, ForgetfulKMeans)
    assert state_bytes(newest._model) == state_bytes(model._model)
    assert np.array_equal(newest.cluster_centers_, model.cluster_centers_)
