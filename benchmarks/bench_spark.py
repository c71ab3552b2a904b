"""kmeander on Spark beside MLlib's StreamingKMeans, and what a micro-batch costs.

    python -m benchmarks.bench_spark [DATA] [--quick]

The same Parquet files are streamed, one file a trigger, through `foreachBatch` on two cores:

- to `kmeander.spark.learn`, exact and by coresets;
- to MLlib's StreamingKMeans, decayFactor = rho, timeUnit "batches", beginning with the centroids of
  a K-means on the first batch, not with random ones;
- to a function that only sums the columns through `mapInArrow`: what Spark takes for itself.

Errors are SKM errors: of the rows since the last drift, 1 and 2 batches after it. The excess is
that over the best of all methods, PSKM, which is told of drifts, among them. Times are of whole
triggers as Spark reports them, the first left out, in which workers start; of the others the
fastest counts, and beside it the processor time of one, on average, over all processes: on a busy
machine read that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.mllib.clustering import StreamingKMeansModel
from pyspark.mllib.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kmeander import PSKM, DriftStream, ForgetfulKMeans, Step, simulate_drifts, skm_error
from kmeander import spark as ks
from kmeander.arguments import generator_for
from kmeander.experiments.datasets import load_datasets
from kmeander.kmeans.lloyd import Limits
from kmeander.kmeans.seeding import kmeans
from kmeander.records import Batch
from kmeander.spark.learning import Learner
from kmeander.wire.arrow import to_numpy

Array = NDArray[np.float64]
RHO = 0.5
COLUMNS = 20
CLUSTERS = 25
PER_CONCEPT = 5  # batches between drifts of the streams that are scored


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("bench_spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "6g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write_file(folder: Path, number: int, points: Array) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"c{j}" for j in range(points.shape[1])]
    columns = [pa.array(np.ascontiguousarray(points[:, j])) for j in range(points.shape[1])]
    path = folder / f"{number:04}.parquet"
    pq.write_table(
        pa.Table.from_arrays(columns, names=names),
        path,
        row_group_size=100_000,
        use_dictionary=False,
        compression="none",
    )
    os.utime(path, (1.7e9 + number, 1.7e9 + number))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(next(folder.glob("*.parquet")))).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


@dataclass
class Run:
    """What one method did with a stream: its centroids after each batch, and its seconds."""

    name: str
    centroids: list[Array] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of triggers
    driver: list[float] = field(default_factory=list)  # outside the job
    received: list[int] = field(default_factory=list)  # bytes that came to the driver
    cpu: list[float] = field(default_factory=list)  # processor time so far, after each batch
    written: list[int] = field(default_factory=list)  # bytes of state, by each batch
    remembered: list[int] = field(default_factory=list)  # rows or means in the window
    errors: list[float] = field(default_factory=list)  # of the window
    memory: list[int] = field(default_factory=list)  # MiB of this process, after each batch

    @property
    def trigger(self) -> float:
        """Seconds of the fastest trigger after the first."""
        return min(self.seconds[1:] or self.seconds)

    @property
    def cpu_of_one(self) -> float:
        """Processor seconds from the end of one batch to that of the next, on average."""
        return (self.cpu[-1] - self.cpu[0]) / max(1, len(self.cpu) - 1)


def cpu_seconds() -> float:
    """Processor time of this process and of all below it, Spark's and its workers', so far."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = int(words[1])
        ticks[int(folder.name)] = sum(map(int, words[11:15]))
    ours = {os.getpid()}
    while True:
        more = {child for child, parent in parents.items() if parent in ours} - ours
        if not more:
            return float(sum(ticks.get(one, 0) for one in ours) / os.sysconf("SC_CLK_TCK"))
        ours |= more


def resident_mib() -> int:
    """Return what this process holds in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


def triggers(query: Any) -> list[float]:
    query.awaitTermination()
    done = [one for one in query.recentProgress if one["numInputRows"] > 0]
    return [one["durationMs"]["triggerExecution"] / 1e3 for one in done]


def run_kmeander(
    spark: SparkSession, folder: Path, n_clusters: int, summary: str, size: int = 4096
) -> Run:
    """Learn with kmeander; the time of the job is that of `toArrow`."""
    run = Run(f"kmeander, {summary}")
    frame_class: Any = type(spark.range(1))
    learner_class: Any = Learner
    to_arrow, take = frame_class.toArrow, learner_class.take
    in_job = [0.0]
    known: set[str] = set()

    def timed(frame: Any) -> Any:
        begun = time.perf_counter()
        table = to_arrow(frame)
        in_job[0] += time.perf_counter() - begun
        run.received.append(table.nbytes)
        return table

    def taken(learner: Any, frame: Any, batch_id: int) -> None:
        in_job[0], begun = 0.0, time.perf_counter()
        take(learner, frame, batch_id)
        run.driver.append(time.perf_counter() - begun - in_job[0])
        run.cpu.append(cpu_seconds())
        run.memory.append(resident_mib())
        run.remembered.append(learner._kept[1].window.n_points)
        files = [file for part in ("model", "centroids") for file in Path(state, part).iterdir()]
        run.written.append(sum(file.stat().st_size for file in files if file.name not in known))
        known.update(file.name for file in files)

    def told(step: Step, _: int) -> None:
        assert step.centroids is not None and step.surrogate_error is not None
        run.centroids.append(step.centroids)
        run.errors.append(step.surrogate_error)

    frames = stream(spark, folder)
    frame_class.toArrow, learner_class.take = timed, taken
    try:
        with tempfile.TemporaryDirectory() as state:
            query = ks.learn(
                frames,
                frames.columns,
                model=ForgetfulKMeans(n_clusters, rho=RHO, random_state=0),
                checkpoint=state,
                summary=summary,
                coreset_size=size,
                on_step=told,
                trigger={"availableNow": True},
            )
            run.seconds = triggers(query)
    finally:
        frame_class.toArrow, learner_class.take = to_arrow, take
    return run


def run_handler(
    spark: SparkSession, folder: Path, name: str, handle: Callable[[DataFrame, int], None]
) -> Run:
    """Give every micro-batch to a function."""
    run = Run(name)

    def handled(frame: DataFrame, batch_id: int) -> None:
        handle(frame, batch_id)
        run.cpu.append(cpu_seconds())

    writer = stream(spark, folder).writeStream.foreachBatch(handled).trigger(availableNow=True)
    with tempfile.TemporaryDirectory() as state:
        run.seconds = triggers(writer.option("checkpointLocation", state).start())
    return run


def run_mllib(spark: SparkSession, folder: Path, n_clusters: int) -> Run:
    first = pq.read_table(sorted(folder.glob("*.parquet"))[0]).to_pandas().to_numpy()
    begun = kmeans(first, None, n_clusters, generator_for(0, 0), Limits())
    model = StreamingKMeansModel(list(begun.centroids), [0.0] * len(begun.centroids))
    centroids: list[Array] = []

    def handle(frame: DataFrame, _: int) -> None:
        model.update(frame.rdd.map(lambda row: Vectors.dense(list(row))), RHO, "batches")
        centroids.append(np.array([np.asarray(c) for c in model.clusterCenters]))

    run = run_handler(spark, folder, "MLlib StreamingKMeans", handle)
    run.centroids = centroids
    return run


def summing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sum the columns, and nothing else."""
    for batch in batches:
        sums = to_numpy(batch.column(0).flatten()).reshape(len(batch), -1).sum(axis=0)
        yield pa.RecordBatch.from_arrays([pa.array([sums.tobytes()], pa.binary())], names=["s"])


def run_sums(spark: SparkSession, folder: Path) -> Run:
    def handle(frame: DataFrame, _: int) -> None:
        selected = frame.select(F.array(*frame.columns).alias("v"))
        selected.mapInArrow(summing, "s binary").toArrow()

    return run_handler(spark, folder, "sums of columns only", handle)


def privileged(batches: Sequence[Batch], n_clusters: int) -> Run:
    run = Run("PSKM, told of drifts")
    model = PSKM(n_clusters, random_state=0)
    for batch in batches:
        step = model.step(batch)
        assert step.centroids is not None
        run.centroids.append(step.centroids)
        run.seconds.append(step.seconds or 0.0)
    return run


def errors_after_drifts(batches: Sequence[Batch], run: Run, since: int) -> list[float]:
    """SKM errors `since` batches after each drift but the first concept's beginning."""
    found = []
    for drift in range(PER_CONCEPT, len(batches), PER_CONCEPT):
        seen = [batch.points for batch in batches[drift : drift + since]]
        found.append(skm_error(seen, run.centroids[drift + since - 1]))
    return found


def side_by_side(spark: SparkSession, points: Array, name: str, n_clusters: int) -> dict[str, Any]:
    """One drifting stream through all of them: a table, and the excesses."""
    concepts = simulate_drifts(points, n_clusters, 0.5, 4, random_state=0)
    drifting = DriftStream(concepts, 500, PER_CONCEPT, random_state=1)
    batches = list(drifting.batches())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "in"
        for batch in batches:
            write_file(folder, batch.index, np.asarray(batch.points, dtype=np.float64))
        runs = [
            run_kmeander(spark, folder, n_clusters, "exact"),
            run_kmeander(spark, folder, n_clusters, "coreset", 200),
            run_mllib(spark, folder, n_clusters),
            privileged(batches, n_clusters),
        ]
    excess: dict[str, list[float]] = {run.name: [] for run in runs}
    print(f"\n{name}: {points.shape[1]} columns, K = {n_clusters}, {len(batches)} batches of 500")
    print(f"{'':26}{'T = 1':>10}{'T = 2':>10}{'excess %':>10}{'s a trigger':>13}")
    table = {run.name: [errors_after_drifts(batches, run, t) for t in (1, 2)] for run in runs}
    for since in (0, 1):
        best = np.min([table[run.name][since] for run in runs], axis=0)
        for run in runs:
            excess[run.name] += (np.array(table[run.name][since]) / best - 1).tolist()
    for run in runs:
        one, two = (statistics.mean(errors) for errors in table[run.name])
        share = 100 * statistics.mean(excess[run.name])
        print(f"{run.name:26}{one:10.4g}{two:10.4g}{share:10.2f}{run.trigger:13.3f}", flush=True)
    return excess


def mixture(rng: np.random.Generator, n_rows: int, centres: Array) -> Array:
    members = rng.integers(len(centres), size=n_rows)
    points: Array = centres[members] + rng.normal(size=(n_rows, centres.shape[1]))
    return points


def cost(spark: SparkSession, n_rows: int, n_triggers: int) -> None:
    """One line: what a trigger of so many rows takes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3.0, size=(CLUSTERS, COLUMNS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "in"
        for number in range(n_triggers):
            if n_rows > 10**6 and number > 0:  # the same rows again
                copy = folder / f"{number:04}.parquet"
                copy.write_bytes((folder / "0000.parquet").read_bytes())
                os.utime(copy, (1.7e9 + number, 1.7e9 + number))
            else:
                write_file(folder, number, mixture(rng, n_rows, centres))
        sums = run_sums(spark, folder)
        coreset = run_kmeander(spark, folder, CLUSTERS, "coreset")
        exact = run_kmeander(spark, folder, CLUSTERS, "exact") if n_rows <= 10**6 else None
    words = [f"{n_rows:.0e}"]
    words += [f"{sums.trigger:.2f}", f"{coreset.trigger:.2f}"]
    words += [f"{coreset.trigger / sums.trigger:.2f}"]
    words += [f"{sums.cpu_of_one:.2f}", f"{coreset.cpu_of_one:.2f}"]
    words += [f"{coreset.cpu_of_one / sums.cpu_of_one:.2f}"]
    words += [f"{min(coreset.driver[1:]):.2f}", _mib(coreset)]
    words += [f"{coreset.written[-1] / 2**20:.1f}"]
    words += ["-"] * 5 if exact is None else [
        f"{exact.trigger:.2f}", f"{min(exact.driver[1:]):.2f}", _mib(exact),
        f"{exact.written[-1] / 2**20:.1f}",
        f"{100 * statistics.mean(np.array(coreset.errors) / exact.errors - 1):.3f}",
    ]  # fmt: skip
    print(f"| {' | '.join(words)} |", flush=True)


def _mib(run: Run) -> str:
    return f"{statistics.median(run.received) / 2**20:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, nargs="?", help="folder with the paper's datasets")
    parser.add_argument("--quick", action="store_true", help="no more than 10^5 rows, one stream")
    parser.add_argument("--triggers", type=int, default=6)
    parser.add_argument("--clusters", type=int, nargs="+", default=[10])
    parser.add_argument("--streams", nargs="+", help="only these: mixture, or a dataset")
    parser.add_argument("--powers", type=int, nargs="+", default=[4, 5, 6, 7], help="of ten, rows")
    parser.add_argument("--only", choices=["errors", "cost"])
    asked = parser.parse_args()
    spark = session()
    if asked.only in (None, "errors"):
        rng = np.random.default_rng(1)
        streams = [("mixture", mixture(rng, 5_000, rng.normal(scale=3.0, size=(10, 8))))]
        if asked.data is not None:
            found, _ = load_datasets(asked.data, 20_000)
            streams += [(one.key, one.points.astype(np.float64)) for one in found]
        if asked.streams:
            streams = [one for one in streams if one[0] in asked.streams]
        excess: dict[str, list[float]] = {}
        for n_clusters in asked.clusters:
            for name, points in streams[: 1 if asked.quick else None]:
                for method, shares in side_by_side(spark, points, name, n_clusters).items():
                    excess.setdefault(method, []).extend(shares)
        print("\nmean excess of the SKM error over the best method, 1 and 2 batches after a drift:")
        for method, shares in excess.items():
            print(f"  {method:26}{100 * statistics.mean(shares):8.2f} %")
        ours, theirs = (
            statistics.mean(excess[name]) for name in ("kmeander, exact", "MLlib StreamingKMeans")
        )
        print(f"  asked: at most half of MLlib's; measured {ours / theirs:.2f} of it")
    if asked.only in (None, "cost"):
        print(f"\nA trigger of N rows x {COLUMNS}, K = {CLUSTERS}, in seconds\n")
        print(
            "| N | sums only | coreset | ratio | sums, CPU | coreset, CPU | ratio "
            "| coreset, driver | MiB | written | exact | exact, driver | MiB | written "
            "| error of coresets, % |\n" + "|---" * 15 + "|"
        )
        for power in range(4, 6) if asked.quick else asked.powers:
            cost(spark, 10**power, min(3, asked.triggers) if power == 7 else asked.triggers)
    spark.stop()


if __name__ == "__main__":
    main()
