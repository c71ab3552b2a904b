"""`kmeander.run` end to end: rows per second, where the time goes, memory, checkpoints.

    python -m benchmarks.bench_run [--rows N] [--long-rows N] [--json FILE] [--plot FILE]

A Parquet file to Steps and assignments, K = 10, 20 columns, batches of 5000, half-life 2 batches,
one thread, no checkpoint; beside it, on the same file, the loop that one would write with pyarrow
and MiniBatchKMeans. Times are medians over repetitions; machines are noisy, so read the ratios.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import sklearn
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

import kmeander
from benchmarks.streams import Shape, mixture
from kmeander import FSKM, Batch, _kernel
from kmeander.preparation import FittedPreparation, Preparation
from kmeander.runs.records import Progress, RunSummary
from kmeander.sources import Reading, Wanted, open_source
from kmeander.storage.checkpoint_folder import CheckpointFolder

N_CLUSTERS, N_COLUMNS, BATCH, HALF_LIFE = 10, 20, 5000, 2
REPETITIONS = 5
NAMES = [f"x{i}" for i in range(N_COLUMNS)]


def tables(n_rows: int) -> Iterator[pa.Table]:
    """Gaussian mixtures that move every ten batches."""
    stream = mixture(Shape(BATCH, N_CLUSTERS, N_COLUMNS)).batches(0)
    for _ in range(n_rows // BATCH):
        points = next(stream)
        yield pa.table({name: points[:, i] for i, name in enumerate(NAMES)})


def write_parquet(path: Path, n_rows: int) -> None:
    """Write row groups of 100,000 rows."""
    with pq.ParquetWriter(path, next(tables(BATCH)).schema) as writer:
        pending: list[pa.Table] = []
        for table in tables(n_rows):
            pending.append(table)
            if len(pending) == 20:
                writer.write_table(pa.concat_tables(pending))
                pending = []
        if pending:
            writer.write_table(pa.concat_tables(pending))


def run_kmeander(source: Path, out: Path) -> RunSummary:
    return kmeander.run(
        source,
        N_CLUSTERS,
        half_life=HALF_LIFE,
        batch_size=BATCH,
        n_threads=1,
        steps=out / "steps.jsonl",
        assignments=out / "rows.parquet",
    ).summary


def run_loop(source: Path, out: Path) -> None:
    """What one would write by hand: read, partial_fit, predict, write."""
    model = MiniBatchKMeans(N_CLUSTERS, batch_size=BATCH, random_state=0, n_init=1)
    schema = pa.schema({"row": pa.int64(), "cluster": pa.int32(), "distance": pa.float64()})
    n_rows = 0
    with pq.ParquetWriter(out / "loop.parquet", schema) as writer:
        for batch in pq.ParquetFile(source).iter_batches(BATCH, use_threads=False):
            points = np.column_stack([batch.column(name).to_numpy() for name in NAMES])
            model.partial_fit(points)
            labels = model.predict(points)
            gaps = points - model.cluster_centers_[labels]
            writer.write_table(
                pa.table(
                    {
                        "row": np.arange(n_rows, n_rows + len(points)),
                        "cluster": labels,
                        "distance": np.sqrt((gaps * gaps).sum(axis=1)),
                    },
                    schema=schema,
                )
            )
            n_rows += len(points)


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - begun, result


def end_to_end(folder: Path, n_rows: int) -> dict[str, Any]:
    source = folder / "stream.parquet"
    write_parquet(source, n_rows)
    run_kmeander(source, folder)  # once to warm up
    run_loop(source, folder)
    ours, shares, theirs = [], [], []
    for _ in range(REPETITIONS):
        seconds, summary = timed(run_kmeander, source, folder)
        ours.append(n_rows / seconds)
        shares.append(1 - summary.seconds / seconds)
        begun = time.perf_counter()
        run_loop(source, folder)
        theirs.append(n_rows / (time.perf_counter() - begun))
    return {
        "n_rows": n_rows,
        "rows_per_s": statistics.median(ours),
        "rows_per_s_spread": [min(ours), max(ours)],
        "share_beside_learning": statistics.median(shares),
        "loop_rows_per_s": statistics.median(theirs),
        "loop_spread": [min(theirs), max(theirs)],
    }


def read_csv_ours(path: Path) -> int:
    source = open_source(path, Wanted(), Reading())
    source.start()
    n_rows = sum(len(block.points) for block in source.blocks() if block is not None)
    source.close()
    return n_rows


def prepare_csv_ours(path: Path) -> int:
    """Read, and make points of the rows by the rules that `prepare="auto"` means."""
    rules = Preparation()
    source = open_source(path, Wanted(rules=rules), Reading())
    source.start()
    fitted: FittedPreparation | None = None
    n_rows = 0
    for block in source.blocks():
        if block is not None:
            fitted = fitted or FittedPreparation.learned(rules, block.table)
            n_rows += len(fitted.prepared(block.table).points)
    source.close()
    return n_rows


def read_csv_theirs(path: Path) -> int:
    """Read with pyarrow alone, in blocks and on one thread, and no array made of them."""
    options = arrow_csv.ReadOptions(use_threads=False)
    return sum(len(block) for block in arrow_csv.open_csv(path, options))


def csv_speed(folder: Path, n_rows: int) -> dict[str, Any]:
    path = folder / "stream.csv"
    with arrow_csv.CSVWriter(path, next(tables(BATCH)).schema) as writer:
        for table in tables(n_rows):
            writer.write_table(table)
    speeds: dict[str, list[float]] = {"ours": [], "prepared": [], "theirs": []}
    readers = (read_csv_ours, prepare_csv_ours, read_csv_theirs)
    for _ in range(REPETITIONS):
        for name, read in zip(speeds, readers, strict=True):
            begun = time.process_time()
            assert read(path) == n_rows
            speeds[name].append(n_rows / (time.process_time() - begun))
    found: dict[str, Any] = {"pyarrow_rows_per_s": statistics.median(speeds["theirs"])}
    for name, prefix in (("ours", ""), ("prepared", "prepared_")):
        ratios = [a / b for a, b in zip(speeds[name], speeds["theirs"], strict=True)]
        found[f"{prefix}rows_per_s"] = statistics.median(speeds[name])
        found[f"{prefix}ratio"] = statistics.median(ratios)
        found[f"{prefix}ratio_spread"] = [min(ratios), max(ratios)]
    return found


def checkpoint_time(folder: Path) -> dict[str, Any]:
    """A window of twelve batches of 5000 x 20."""
    model = FSKM(N_CLUSTERS, rho=0.7, max_batches=12, n_threads=1, random_state=0)
    stream = mixture(Shape(BATCH, N_CLUSTERS, N_COLUMNS)).batches(0)
    for index in range(14):
        model.step(Batch(index, next(stream)))
    assert len(model.window) == 12
    times = []
    with CheckpointFolder(folder / "checkpoint") as checkpoints:
        for _ in range(25):
            seconds, _ = timed(lambda: checkpoints.save({"model": model.state()}))
            times.append(1e3 * seconds)
    size = max(file.stat().st_size for file in (folder / "checkpoint").glob("*.ckpt"))
    return {"ms": statistics.median(times), "ms_spread": [min(times), max(times)], "bytes": size}


def long_stream(n_rows: int) -> dict[str, Any]:
    """Resident memory along a stream that is made as it is read, outputs and checkpoints on."""
    process = psutil.Process()
    marks: list[tuple[int, float]] = []

    def show(progress: Progress) -> None:
        n_points = progress.summary.n_points
        if not marks or n_points - marks[-1][0] >= n_rows // 100:
            marks.append((n_points, process.memory_info().rss / 2**20))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.perf_counter()
        kmeander.run(
            (table.to_batches()[0] for table in tables(n_rows)),
            N_CLUSTERS,
            half_life=HALF_LIFE,
            n_threads=1,
            steps=folder / "steps.jsonl",
            assignments=folder / "rows.parquet",
            checkpoint=folder / "checkpoint",
            checkpoint_every=100,
            on_progress=show,
        )
        seconds = time.perf_counter() - begun
    after_first_tenth = [mib for rows, mib in marks if rows >= n_rows / 10]
    return {
        "n_rows": n_rows,
        "seconds": seconds,
        "rows": [rows for rows, _ in marks],
        "resident_mib": [mib for _, mib in marks],
        "grown_mib": after_first_tenth[-1] - after_first_tenth[0],
    }


def plot_memory(found: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    axes.plot(np.array(found["rows"]) / 1e6, found["resident_mib"])
    axes.set(xlabel="million rows", ylabel="resident MiB", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the timed files")
    parser.add_argument("--long-rows", type=int, default=10_000_000, help="0 leaves memory out")
    parser.add_argument("--json", type=Path, help="write the results here, too")
    parser.add_argument("--plot", type=Path, help="draw memory along the stream here")
    arguments = parser.parse_args()
    print(
        f"kmeander {kmeander.__version__} ({_kernel.instruction_set()}), "
        f"pyarrow {pa.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}\n"
    )
    results: dict[str, Any] = {}
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row = results["end_to_end"] = end_to_end(folder, arguments.rows)
        low, high = row["rows_per_s_spread"]
        print(
            f"Parquet to Steps and assignments, K {N_CLUSTERS}, {N_COLUMNS} columns, batches of "
            f"{BATCH}, half-life {HALF_LIFE}, hungarian, one thread, {row['n_rows']:,} rows:\n"
            f"  kmeander          {row['rows_per_s']:>9,.0f} rows/s ({low:,.0f}-{high:,.0f}; "
            f"asked: at least 300,000)\n"
            f"  beside learning   {row['share_beside_learning']:>9.0%} of the time (asked: at most "
            f"40 %)\n"
            f"  MiniBatchKMeans   {row['loop_rows_per_s']:>9,.0f} rows/s, a loop by hand: one "
            f"pass, no window, no Steps"
        )
        row = results["csv"] = csv_speed(folder, min(arguments.rows, 300_000))
        for what, prefix in (("arrays", ""), ("prepared points", "prepared_")):
            low, high = row[f"{prefix}ratio_spread"]
            print(
                f"\nCSV to {what}: {row[f'{prefix}rows_per_s']:,.0f} rows/s, "
                f"{row[f'{prefix}ratio']:.0%} ({low:.0%}-{high:.0%}) of pyarrow's own "
                f"{row['pyarrow_rows_per_s']:,.0f} (asked: at least 70 %)"
            )
        row = results["checkpoint"] = checkpoint_time(folder)
        low, high = row["ms_spread"]
        print(
            f"\nCheckpoint of a 5000 x 20 x 12 window ({row['bytes'] / 2**20:.1f} MiB, fsynced): "
            f"{row['ms']:.1f} ms ({low:.1f}-{high:.1f}; asked: under 30)"
        )
    if arguments.long_rows:
        row = results["long_stream"] = long_stream(arguments.long_rows)
        print(
            f"\nResident MiB along {row['n_rows']:,} rows ({row['seconds']:.0f} s, with "
            f"checkpoints; {row['grown_mib']:+.1f} after the first tenth):\n  "
            + " ".join(f"{mib:.0f}" for mib in row["resident_mib"][::10])
        )
        if arguments.plot:
            plot_memory(row, arguments.plot)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
