"""What changed from batch to batch, in plain loops written from the definitions."""

from __future__ import annotations

from typing import Any

from tests.naive import nearest


def evidence(
    masses: Any, sums: Any, scatter: Any, decay: Any, since: Any, index: int
) -> list[dict[str, float]]:
    """How the newest batch differs from those of each cluster's chapter, all points of weight 1."""
    n_batches, n_clusters = len(masses), len(masses[0])
    numbers = [index - n_batches + 1 + b for b in range(n_batches)]
    found = []
    for k in range(n_clusters):
        freedom = sum(max(masses[b][k] - 1, 0) for b in range(n_batches))
        variance = sum(scatter[b][k] for b in range(n_batches)) / freedom if freedom else 0.0
        chapter = [b for b in range(n_batches - 1) if numbers[b] >= since[k]]
        n_old = sum(decay[b] * masses[b][k] for b in chapter)
        n_old_squared = sum(decay[b] ** 2 * masses[b][k] for b in chapter)
        squared = noise = 0.0
        n_new = masses[-1][k]
        if n_new > 0 and n_old > 0:
            mean = [sum(decay[b] * sums[b][k][j] for b in chapter) / n_old
                    for j in range(len(sums[0][k]))]  # fmt: skip
            squared = sum((s / n_new - m) ** 2 for s, m in zip(sums[-1][k], mean, strict=True))
            noise = variance * (1 / n_new + n_old_squared / n_old**2)
            noise += 1e-22 * sum(m * m for m in mean)
        everybody = sum(decay[b] * sum(masses[b]) for b in chapter)
        everybody_squared = sum(decay[b] ** 2 * sum(masses[b]) for b in chapter)
        found.append({
            "variance": variance,
            "freedom": freedom,
            "squared_shift": squared,
            "noise": noise,
            "share": n_new / sum(masses[-1]),
            "share_before": n_old / everybody if everybody else 0.0,
            "points_before": everybody**2 / everybody_squared if everybody_squared else 0.0,
        })  # fmt: skip
    return found


def error_parts(points: Any, weights: Any, centroids: Any) -> list[list[float]]:
    """Part of each cluster and column in the mean squared distance to the nearest centroid."""
    table = [[0.0 for _ in centroid] for centroid in centroids]
    for point, weight in zip(points, weights, strict=True):
        k = nearest(point, centroids)
        for j, (x, c) in enumerate(zip(point, centroids[k], strict=True)):
            table[k][j] += weight * (x - c) ** 2 / sum(weights)
    return table
