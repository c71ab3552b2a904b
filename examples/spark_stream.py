"""Files in, clusters of every row out, on Spark; stop it or kill it, and start it again.

    python examples/spark_stream.py                    # a small stream of its own, on two cores
    spark-submit examples/spark_stream.py --in FOLDER --out FOLDER --features x,y

Each file of the folder is one batch. Below the output are `rows/batch=N` (Parquet: the row, its
cluster, the cluster's lasting id, the distance), written again whole if a batch comes again, and
`state`, from which a second start goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kmeander import ForgetfulKMeans, Step
from kmeander import spark as ks


def make_stream(folder: Path, n_files: int = 8, n_rows: int = 2_000) -> None:
    """Write files of four clusters, one of which moves away."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for number in range(n_files):
        centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0 + number, 10.0]])
        points = centres[rng.integers(4, size=n_rows)] + rng.normal(size=(n_rows, 2))
        table = pa.table({"reading": np.arange(n_rows), "x": points[:, 0], "y": points[:, 1]})
        pq.write_table(table, folder / f"{number:04}.parquet")
        os.utime(folder / f"{number:04}.parquet", (1.7e9 + number, 1.7e9 + number))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--in", dest="source", help="folder of Parquet files; one of its own if not given"
    )
    parser.add_argument("--out", help="where rows and state go; a temporary folder if not given")
    parser.add_argument("--features", default="x,y", help="columns of numbers")
    parser.add_argument("--clusters", type=int, default=4)
    parser.add_argument("--rho", type=float, default=0.5)
    parser.add_argument("--forever", action="store_true", help="wait for more files")
    asked = parser.parse_args()
    out = asked.out or tempfile.mkdtemp()
    source = asked.source or f"{out}/in"
    if asked.source is None and not Path(source).exists():
        make_stream(Path(source))

    # Workers need a Python that has kmeander: on one machine, this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("kmeander").config(
        "spark.ui.showConsoleProgress", "false"
    )
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has said where to run
        builder = builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def report(step: Step, batch_id: int) -> None:
        error = "-" if step.surrogate_error is None else f"{step.surrogate_error:.3f}"
        print(f"batch {batch_id}: {step.n_points} rows, error {error}", flush=True)

    def write(rows: DataFrame, batch_id: int) -> None:
        rows.write.mode("overwrite").parquet(f"{out}/rows/batch={batch_id}")

    schema = spark.read.parquet(source).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
    query = ks.learn(
        stream,
        asked.features.split(","),
        model=ForgetfulKMeans(asked.clusters, rho=asked.rho, random_state=0),
        checkpoint=f"{out}/state",
        on_step=report,
        write=write,
        trigger=None if asked.forever else {"availableNow": True},
    )
    query.awaitTermination()
    rows = spark.read.parquet(f"{out}/rows")
    rows.groupBy("id").count().orderBy("id").show()
    print(f"{rows.count()} rows in {out}/rows")
    spark.stop()


if __name__ == "__main__":
    main()
