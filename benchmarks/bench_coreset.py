"""What learning weighted means instead of rows costs in error, on the paper's datasets.

    python -m benchmarks.bench_coreset DATA

What `kmeander.spark` does with a batch too large for one machine, without Spark: the rows of each
batch are dealt out to partitions, each of which is compressed block by block, and the means are
merged. The stream of each dataset has three concepts of ten batches. Three models learn it:

- exact: every row, from the previous centroids;
- the same on means, from the exact model's centroids at every batch: the error of where it ends, on
  the exact window, over the exact model's own ("excess");
- the same on means, left to itself ("own"; below 0 where it ends in a better local minimum).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from benchmarks.bench_long_memory import exact_error
from benchmarks.on_datasets import parser_of, print_table
from kmeander import FSKM, Batch, DriftStream, simulate_drifts
from kmeander.arrays import Points
from kmeander.kmeans.coreset import Compressor, merged


@dataclass(frozen=True)
class Plan:
    """What is the same for all datasets."""

    size: int
    partitions: int
    batch_size: int
    rho: float
    epsilon: float
    init: str
    max_rows: int
    block: int


@dataclass(frozen=True)
class CoresetCosts:
    """What was measured on one dataset with one K."""

    dataset: str
    n_features: int
    n_clusters: int
    n_means: float
    hidden: float  # share of the exact error that lies behind the means
    excess: list[float]  # per batch
    own_excess: list[float]

    def row(self) -> str:
        """Return one line of the table."""
        shares = (
            self.hidden,
            statistics.mean(self.excess),
            max(self.excess),
            statistics.mean(self.own_excess),
        )
        quality = " ".join(f"{100 * share:8.3f}" for share in shares)
        what = f"{self.dataset:10s} {self.n_features:4d} {self.n_clusters:4d} {self.n_means:7.0f}"
        return f"{what} {quality}"


HEADER = "dataset       d    K   means hidden %   mean %    max %    own %"


def compressed(batch: Batch, plan: Plan) -> Batch:
    """Return the batch as Spark's executors and driver would make it."""
    parts = []
    for rows in np.array_split(np.asarray(batch.points), plan.partitions):
        compressor = Compressor(plan.size)
        for begin in range(0, len(rows), plan.block):
            compressor.add(rows[begin : begin + plan.block])
        part = compressor.coreset()
        assert part is not None
        parts.append(part)
    whole = merged(parts, plan.size)
    assert whole is not None
    return whole.batch(batch.index)


def measure(key: str, points: Points, n_clusters: int, plan: Plan) -> CoresetCosts:
    """Run the three models over the stream of one dataset."""
    concepts = simulate_drifts(points, n_clusters, plan.epsilon, 3, random_state=0)
    stream = DriftStream(concepts, plan.batch_size, 10, random_state=1)
    exact, follower, alone = (
        FSKM(n_clusters, init=plan.init, rho=plan.rho, random_state=2) for _ in range(3)
    )
    excess: list[float] = []
    own_excess: list[float] = []
    hidden, sizes = [], []
    for batch in stream.batches():
        before = exact.centroids
        step = exact.step(batch)
        means = compressed(batch, plan)
        followed = follower.step(means, previous=before)
        own = alone.step(means)
        assert step.surrogate_error is not None
        assert step.batch_error is not None
        assert means.within is not None
        hidden.append(means.within / means.mass / step.batch_error)
        sizes.append(means.n_points)
        if before is None:
            continue
        for centroids, shares in ((followed.centroids, excess), (own.centroids, own_excess)):
            assert centroids is not None
            shares.append(exact_error(exact.window, centroids) / step.surrogate_error - 1)
    return CoresetCosts(
        key,
        points.shape[1],
        n_clusters,
        statistics.mean(sizes),
        statistics.mean(hidden),
        excess,
        own_excess,
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--size", type=int, default=4096, help="means of a batch")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=50_000)
    parser.add_argument("--rho", type=float, default=0.5)
    parser.add_argument("--epsilon", type=float, default=0.5, help="size of the drifts")
    parser.add_argument("--max-rows", type=int, default=100_000, help="of each dataset")
    parser.add_argument("--block", type=int, default=10_000, help="rows that come at once")
    asked = vars(parser.parse_args())
    folder, clusters, only = asked.pop("data"), asked.pop("clusters"), asked.pop("datasets")
    plan = Plan(**asked)
    print(plan)
    print_table(
        folder, plan.max_rows, clusters, only, HEADER,
        lambda key, points, n_clusters: measure(key, points, n_clusters, plan),
    )  # fmt: skip


if __name__ == "__main__":
    main()
