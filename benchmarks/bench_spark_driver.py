"""What many rows cost the driver of a Spark stream, beside one pass of MLlib's KMeans.

    python -m benchmarks.bench_spark_driver [ROWS]

Three triggers of 10,000,000 rows (or ROWS) of 20 columns of float32, in one run: their seconds and
processor time, what the driver's Python holds after each, the bytes of state that each has written;
then one iteration of MLlib's `KMeans` over the frame of one trigger.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.clustering import KMeans
from pyspark.ml.feature import VectorAssembler

from benchmarks.bench_spark import (
    CLUSTERS,
    COLUMNS,
    cpu_seconds,
    mixture,
    run_kmeander,
    session,
)

PIECE = 500_000


def main(n_rows: int) -> None:
    spark = session()
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3.0, size=(CLUSTERS, COLUMNS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "in"
        folder.mkdir()
        schema = pa.schema([(f"c{j}", pa.float32()) for j in range(COLUMNS)])
        # In pieces: the memory of this process is looked at.
        with pq.ParquetWriter(folder / "0000.parquet", schema, use_dictionary=False) as writer:
            for begin in range(0, n_rows, PIECE):
                points = mixture(rng, min(PIECE, n_rows - begin), centres).astype(np.float32)
                writer.write_table(pa.table(list(points.T), schema=schema))
        for number in (0, 1, 2):
            copy = folder / f"{number:04}.parquet"
            if number:
                shutil.copyfile(folder / "0000.parquet", copy)
            os.utime(copy, (1.7e9 + number, 1.7e9 + number))
        before = cpu_seconds()
        run = run_kmeander(spark, folder, CLUSTERS, "auto")
        ours = (cpu_seconds() - before) / 3
        frame = spark.read.parquet(str(folder / "0000.parquet"))
        vectors = VectorAssembler(inputCols=frame.columns, outputCol="v").transform(frame)
        before, begun = cpu_seconds(), time.perf_counter()
        KMeans(k=CLUSTERS, maxIter=1, initMode="random", seed=0, featuresCol="v").fit(vectors)
        seconds, theirs = time.perf_counter() - begun, cpu_seconds() - before
    spark.stop()
    print(f"{n_rows:.0e} rows x {COLUMNS} of float32, K = {CLUSTERS}, three triggers")
    print("trigger, s:           ", "  ".join(f"{one:.1f}" for one in run.seconds))
    print(f"processor, s:          {ours:.1f} a trigger; MLlib's KMeans, one pass: {theirs:.1f}")
    print(f"MLlib's KMeans, s:     {seconds:.1f}, one pass over the frame of one trigger")
    print("driver's Python, MiB: ", "  ".join(map(str, run.memory)))
    print("state written, MiB:   ", "  ".join(f"{one / 2**20:.2f}" for one in run.written))
    print("remembered:           ", "  ".join(map(str, run.remembered)))


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000)
