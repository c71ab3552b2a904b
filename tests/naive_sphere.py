"""K-means by angles as plain loops: rows and centroids have length 1, errors are 1 - cosine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests import naive
from tests.naive import Point, Points, Weights


def length(x: Point) -> float:
    return math.sqrt(math.fsum(float(a) ** 2 for a in x))


def direction(x: Point) -> list[float]:
    return [float(a) / length(x) for a in x]


def cosine(x: Point, c: Point) -> float:
    """Of the angle between two places, wherever they are."""
    product = math.fsum(float(a) * float(b) for a, b in zip(x, c, strict=True))
    return product / (length(x) * length(c))


def error(points: Points, centroids: Points, weights: Weights | None = None) -> float:
    """Weighted mean of 1 - cosine to the centroid of the least angle."""
    w = [1.0] * len(points) if weights is None else list(weights)
    costs = (w[i] * (1 - max(cosine(x, c) for c in centroids)) for i, x in enumerate(points))
    return math.fsum(costs) / math.fsum(w)


def place(mean: list[float], before: list[float]) -> list[float]:
    """The direction of a mean; without one the centroid stays."""
    return direction(mean) if length(mean) > 1e-12 else before


def lloyd(points: Points, weights: Weights, centroids: Points, max_iter: int = 300) -> naive.Fit:
    """Spherical K-means: the nearest on the sphere is that of the least angle."""
    rows, start = [direction(x) for x in points], [direction(c) for c in centroids]
    return naive.lloyd(rows, weights, start, max_iter, place)


def expected_error(
    batches: Sequence[Points],
    weights: Sequence[Weights],
    decays: Weights,
    labels: Sequence[list[int]],
    n_clusters: int,
) -> float:
    """Decayed mean of 1 - cosine, each batch under the centroids made without it.

    Where the others have less of a cluster than one row of the batch weighs, rows (all as if they
    weighed the same, and had the mean product with the others) are left out one at a time. Points
    may be means, which are shorter than 1.
    """
    total = mass = 0.0
    for t, batch in enumerate(batches):
        row = math.fsum(weights[t]) / len(batch)
        mass += decays[t] * math.fsum(weights[t])
        for k in range(n_clusters):
            own = [i for i in range(len(batch)) if labels[t][i] == k]
            share = math.fsum(weights[t][i] for i in own)
            if share == 0:
                continue
            others = [
                (decays[s] * weights[s][i], batches[s][i])
                for s in range(len(batches))
                for i in range(len(batches[s]))
                if s != t and labels[s][i] == k
            ]
            rest = math.fsum(w for w, _ in others)
            mean = naive.mean_of(batch, weights[t], own)
            of_mean = length(mean)
            if rest > decays[t] * row:
                left = naive.mean_of(
                    [x for _, x in others], [w for w, _ in others], [*range(len(others))]
                )
                centre = direction(left) if length(left) * rest > 1e-12 else direction(mean)
                product = math.fsum(a * b for a, b in zip(mean, centre, strict=True))
            elif share > row:
                n = share / row
                squared = math.fsum(weights[t][i] * length(batch[i]) ** 2 for i in own) / share
                # |sum - x|**2 and (sum - x).x, with the means of x.sum and |x|**2 for each.
                left_squared = (n * of_mean) ** 2 - 2 * n * of_mean**2 + squared
                inside = n * of_mean**2 - squared
                product = inside / math.sqrt(left_squared) if left_squared > 0 else of_mean
            else:
                product = of_mean
            for i in own:
                # |x - c|**2 / 2 with |c| = 1, the product that of the mean.
                cost = (length(batch[i]) ** 2 - 2 * product + 1) / 2
                total += decays[t] * weights[t][i] * cost
    return total / mass
