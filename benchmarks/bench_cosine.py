"""Embeddings by angle, beside faiss' spherical K-means: ``python -m benchmarks.bench_cosine FILE``.

FILE is a Parquet file with a column of vectors, in order of time. Both cluster the same window of
rows, five starts each, and the best of them counts; faiss makes 25 passes.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kmeander import ForgetfulKMeans, kmeans_error

N_CLUSTERS, STARTS, PASSES = 100, 5, 25
# How far above faiss' error ours may be.
MOST_ABOVE = 0.005

Vectors = NDArray[np.float32]


def vectors_of(path: str, column: str) -> Vectors:
    """Return the vectors of a file."""
    rows = pq.read_table(path, columns=[column])[column].to_pylist()
    return np.array(rows, dtype=np.float32)


def by_faiss(rows: Vectors, seed: int) -> NDArray[np.float64]:
    """Return the centroids of faiss' spherical K-means."""
    import faiss

    model = faiss.Kmeans(
        rows.shape[1], N_CLUSTERS, niter=PASSES, spherical=True, seed=seed,
        max_points_per_centroid=len(rows),
    )  # fmt: skip
    model.train(rows)
    found: Any = model.centroids
    return np.asarray(found, dtype=np.float64)


def by_kmeander(rows: Vectors, seed: int) -> NDArray[np.float64]:
    """Return our centroids."""
    model = ForgetfulKMeans(N_CLUSTERS, metric="cosine", random_state=seed)
    return model.fit(rows).cluster_centers_


def main() -> int:
    """Print the errors of all starts, and whether ours are as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--column", default="vector")
    parser.add_argument("--rows", type=int, help="of the newest, instead of all")
    given = parser.parse_args()
    rows = vectors_of(given.file, given.column)[-(given.rows or 0) :]
    least, off = {}, 0.0
    for name, cluster in (("faiss", by_faiss), ("kmeander", by_kmeander)):
        errors = []
        for seed in range(STARTS):
            centroids = cluster(rows, seed)
            errors.append(kmeans_error(rows, centroids, metric="cosine"))
            if name == "kmeander":
                off = max(off, float(np.abs(np.linalg.norm(centroids, axis=1) - 1).max()))
        least[name] = min(errors)
        print(f"{name}: {', '.join(f'{error:.5f}' for error in errors)}", flush=True)
    above = least["kmeander"] / least["faiss"] - 1
    print(f"{len(rows):,} rows of {rows.shape[1]} columns, K = {N_CLUSTERS}: best of ours lies")
    print(
        f"{above:+.2%} from faiss' (asked: at most {MOST_ABOVE:+.1%}); lengths are 1 to {off:.0e}"
    )
    return int(above > MOST_ABOVE or off > 1e-12)


if __name__ == "__main__":
    sys.exit(main())
