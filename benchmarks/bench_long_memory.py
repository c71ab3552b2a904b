"""What `max_points` costs in error and saves in time and memory, on the paper's datasets.

    python -m benchmarks.bench_long_memory DATA

The stream of each dataset: batches of one concept until the window is full, then two drifts, each
concept lasting half a window. Three models learn it, one thread each:

- exact: the whole window, from the previous centroids;
- the same with `max_points`, from the exact model's centroids at every batch: the error of where it
  ends, on the exact window, over the exact model's own ("excess");
- the same with `max_points`, left to itself: time, memory, and its excess in the same sense ("own";
  it may be below 0, as the two end in different local minima).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from benchmarks.bench_footprint import model_bytes
from benchmarks.on_datasets import parser_of, print_table
from kmeander import FSKM, DriftStream, max_batches_for, simulate_drifts
from kmeander.arrays import Centroids, Points
from kmeander.kmeans.lloyd import mean_error
from kmeander.kmeans.window import Window


@dataclass(frozen=True)
class Plan:
    """What is the same for all datasets."""

    rho: float
    batch_size: int
    share: float
    epsilon: float
    init: str
    every: int
    max_rows: int

    @property
    def max_points(self) -> int:
        """That share of the points of a full window."""
        return int(self.share * max_batches_for(self.rho) * self.batch_size)


@dataclass(frozen=True)
class LongMemoryCosts:
    """What was measured on one dataset with one K."""

    dataset: str
    n_features: int
    n_clusters: int
    excess: list[float]  # per batch scored
    own_excess: list[float]
    exact_ms: float  # per batch, full windows only
    ms: float
    slow_ms: float  # 99 of 100 batches took less
    exact_mib: float
    mib: float
    n_points: int  # the most in the window at any time

    def row(self) -> str:
        """Return one line of the table."""
        shares = (statistics.mean(self.excess), max(self.excess), statistics.mean(self.own_excess))
        quality = " ".join(f"{100 * share:8.3f}" for share in shares)
        time = f"{self.exact_ms:9.2f} {self.ms:8.2f} {self.slow_ms:9.2f}"
        memory = f"{self.exact_mib:9.2f} {self.mib:8.2f} {self.n_points:8d}"
        what = f"{self.dataset:10s} {self.n_features:4d} {self.n_clusters:4d}"
        return f"{what} {quality} {time} {memory}"


HEADER = (
    "dataset       d    K   mean %    max %    own %"
    "  exact ms       ms   99 % ms exact MiB      MiB   points"
)


def exact_error(window: Window, centroids: Centroids) -> float:
    """Return the surrogate error of any centroids on a window that holds every point."""
    errors = [mean_error(batch.points, None, centroids, 1) for batch in window.batches]
    masses = window.decay * [batch.mass for batch in window.batches]
    return float((masses * errors).sum() / masses.sum())


def measure(key: str, points: Points, n_clusters: int, plan: Plan) -> LongMemoryCosts:
    """Run the three models over the stream of one dataset."""
    length = max_batches_for(plan.rho)
    drifted = simulate_drifts(points, n_clusters, plan.epsilon, 3, random_state=0)
    stream = DriftStream([drifted[0], *drifted], plan.batch_size, -(-length // 2), random_state=1)
    settings = {"init": plan.init, "rho": plan.rho, "n_threads": 1, "random_state": 2}
    exact = FSKM(n_clusters, **settings)  # type: ignore[arg-type]
    follower = FSKM(n_clusters, max_points=plan.max_points, **settings)  # type: ignore[arg-type]
    alone = FSKM(n_clusters, max_points=plan.max_points, **settings)  # type: ignore[arg-type]
    excess: list[float] = []
    own_excess: list[float] = []
    exact_seconds, seconds, n_points = [], [], 0
    for batch in stream.batches():
        before = exact.centroids
        step = exact.step(batch)
        followed = follower.step(batch, previous=before)
        own = alone.step(batch)
        n_points = max(n_points, alone.window.n_points)
        if batch.index < length:
            continue
        assert step.seconds is not None
        assert own.seconds is not None
        exact_seconds.append(step.seconds)
        seconds.append(own.seconds)
        if (batch.index - length) % plan.every == 0:
            assert step.surrogate_error is not None
            for centroids, shares in ((followed.centroids, excess), (own.centroids, own_excess)):
                assert centroids is not None
                shares.append(exact_error(exact.window, centroids) / step.surrogate_error - 1)
    return LongMemoryCosts(
        key,
        points.shape[1],
        n_clusters,
        excess,
        own_excess,
        1e3 * statistics.mean(exact_seconds),
        1e3 * statistics.mean(seconds),
        1e3 * float(np.quantile(seconds, 0.99)),
        model_bytes(exact) / 2**20,
        model_bytes(alone) / 2**20,
        n_points,
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rho", type=float, default=0.99)
    parser.add_argument("--batch-size", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.1, help="of the exact window's points")
    parser.add_argument("--epsilon", type=float, default=1.0, help="size of the two drifts")
    parser.add_argument("--every", type=int, default=10, help="score every so many batches")
    parser.add_argument("--max-rows", type=int, default=20_000, help="of each dataset")
    asked = vars(parser.parse_args())
    folder, clusters, only = asked.pop("data"), asked.pop("clusters"), asked.pop("datasets")
    plan = Plan(**asked)
    length = max_batches_for(plan.rho)
    print(
        f"rho {plan.rho}: {length} batches of {plan.batch_size}, {length * plan.batch_size} points;"
        f" max_points={plan.max_points}, init={plan.init!r}, epsilon={plan.epsilon}"
    )
    print_table(
        folder, plan.max_rows, clusters, only, HEADER,
        lambda key, points, n_clusters: measure(key, points, n_clusters, plan),
    )  # fmt: skip


if __name__ == "__main__":
    main()
