"""A drifting stream from nothing to a page and a picture: what ``make demo`` runs.

Writes a stream of 60 batches to a CSV file, in which six clusters jump elsewhere at batches 20
and 40, lets ``kmeander run`` cluster it and ``kmeander report`` show it, and draws what happened
beside what scikit-learn's MiniBatchKMeans makes of the same batches.

    python examples/demo.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from kmeander import Step, kmeans_error
from kmeander.sinks import read_steps

mpl.use("Agg")
import matplotlib.pyplot as plt

N_CLUSTERS, BATCH_SIZE, N_BATCHES, DRIFTS = 6, 500, 60, (20, 40)
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ["#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7"]

Array = NDArray[np.float64]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stream = drifting_stream(np.random.default_rng(3))
    csv, steps_file, picture = folder / "stream.csv", folder / "steps.jsonl", folder / "demo.png"
    np.savetxt(csv, np.concatenate(stream), "%.6f", delimiter=",", header="x,y", comments="")

    print(
        f"\n{N_BATCHES} batches of {BATCH_SIZE} points; the clusters jump at batches 20 and 40.\n"
    )
    command = f"run {csv} --clusters {N_CLUSTERS} --steps {steps_file}".split()
    print("$ kmeander", *command, flush=True)
    subprocess.run([str(Path(sys.executable).with_name("kmeander")), *command], check=True)

    steps = list(read_steps(steps_file))
    print("An event elsewhere than at a jump is a false alarm: one is expected in 1000 batches.")
    theirs = minibatch_errors(stream)
    summarise(steps, theirs)
    draw(stream, steps, theirs, picture)
    report = folder / "report.html"
    command = f"report {steps_file} --out {report} --features x,y".split()
    print("\n$ kmeander", *command, flush=True)
    subprocess.run([str(Path(sys.executable).with_name("kmeander")), *command], check=True)
    print(f"\nThe same beside MiniBatchKMeans: {picture.resolve().as_uri()}")
    print(f"What happened, and the clusters now: {report.resolve().as_uri()}")


def drifting_stream(rng: np.random.Generator) -> list[Array]:
    """Gaussian clusters whose centres are drawn anew at each drift."""
    stream = []
    for index in range(N_BATCHES):
        if index == 0 or index in DRIFTS:
            centres = rng.uniform(-10, 10, size=(N_CLUSTERS, 2))
        members = rng.integers(N_CLUSTERS, size=BATCH_SIZE)
        stream.append(centres[members] + rng.normal(scale=0.8, size=(BATCH_SIZE, 2)))
    return stream


def minibatch_errors(stream: list[Array]) -> list[tuple[float, Array]]:
    """Error of each batch before it is learned, and the centroids after, of MiniBatchKMeans."""
    model = MiniBatchKMeans(N_CLUSTERS, random_state=0, n_init=3)
    found = []
    for points in stream:
        known = hasattr(model, "cluster_centers_")
        error = kmeans_error(points, model.cluster_centers_) if known else float("nan")
        model.partial_fit(points)
        found.append((error, model.cluster_centers_.copy()))
    return found


def summarise(steps: list[Step], theirs: list[tuple[float, Array]]) -> None:
    """Print the mean error of batches before they are learned, by stretch of the stream."""
    ours = np.array([step.prequential_error or np.nan for step in steps])
    others = np.array([error for error, _ in theirs])
    print("\nMean squared distance of a batch to the clusters known before it came:\n")
    print(f"  {'batches':<28}{'kmeander':>10}{'MiniBatchKMeans':>18}")
    rows = [("1-19, first concept", range(1, 20))]
    for drift in DRIFTS:
        rows.append((f"{drift}, the drift itself", range(drift, drift + 1)))
        rows.append((f"{drift + 1}-{drift + 19}, after it", range(drift + 1, drift + 20)))
    for name, chosen in rows:
        print(f"  {name:<28}{ours[chosen].mean():>10.2f}{others[chosen].mean():>18.2f}")


def draw(
    stream: list[Array], steps: list[Step], theirs: list[tuple[float, Array]], path: Path
) -> None:
    """Draw the error over time, and the clusters at four batches."""
    figure = plt.figure(figsize=(10, 6.2), layout="constrained")
    over_time, *maps = figure.subplot_mosaic("AAAA;BCDE", height_ratios=[1.15, 1]).values()
    ours = [np.nan if step.prequential_error is None else step.prequential_error for step in steps]
    over_time.plot([e for e, _ in theirs], color="0.45", ls="--", label="MiniBatchKMeans")
    over_time.plot(ours, color=COLOURS[4], lw=2, label="kmeander")
    for drift in DRIFTS:
        over_time.axvline(drift, color="0.75", zorder=0)
        over_time.annotate(
            "drift",
            (drift, 0),
            xytext=(4, 6),
            color="0.35",
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
        )
    over_time.set(
        yscale="log",
        xlabel="batch",
        ylabel="error of a batch\nbefore it is learned",
        xlim=(0, N_BATCHES - 1),
        title="Six clusters jump elsewhere at batches 20 and 40",
    )
    over_time.legend(frameon=False, loc="upper left")
    for axes, index in zip(maps, (19, 21, 39, 41), strict=True):
        centroids, others = steps[index].centroids, theirs[index][1]
        assert centroids is not None
        squared = ((stream[index][:, None] - centroids) ** 2).sum(axis=2)
        colours = [COLOURS[k] for k in squared.argmin(axis=1)]
        axes.scatter(
            stream[index][:, 0], stream[index][:, 1], s=3, c=colours, alpha=0.5, linewidths=0
        )
        axes.scatter(
            others[:, 0],
            others[:, 1],
            s=45,
            c="0.2",
            marker="x",
            zorder=3,
            label="MiniBatchKMeans",
        )
        axes.scatter(
            centroids[:, 0], centroids[:, 1], s=60, c=COLOURS, edgecolors="k", label="kmeander"
        )
        axes.set(xlim=(-13, 13), ylim=(-13, 13), xticks=[], yticks=[], aspect="equal")
        after = index - max(d for d in (0, *DRIFTS) if d <= index)
        axes.set_title(f"batch {index}" + (f"\n{after} after the drift" if after < 10 else ""))
    maps[0].legend(fontsize=7, loc="upper left", framealpha=0.9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
