"""What a cut of a cluster saves, in plain loops, from docs/explanation/number-of-clusters.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[float]


def most_saved(share: float) -> float:
    """The larger of what a flat and what an exponential cluster save, cut at this share."""
    p = min(share, 1 - share)
    return max(3 * p * (1 - p), p * math.log(p) ** 2 / (1 - p))


def saving(places: Sequence[float], weights: Sequence[float], cut: float) -> float:
    """The mean over the rows of what the cut saves beyond that, over its standard error."""
    sides: list[list[tuple[float, float]]] = [[], []]
    for place, weight in zip(places, weights, strict=True):
        sides[place > cut].append((place, weight))
    if min(map(len, sides)) < 4:
        return -math.inf
    means, masses = [], []
    for side in sides:
        masses.append(sum(weight for _, weight in side))
        means.append(sum(place * weight for place, weight in side) / masses[-1])
    mass = sum(masses)
    mean = (means[0] * masses[0] + means[1] * masses[1]) / mass
    left = 1 - most_saved(masses[1] / mass)
    terms = []
    for place, weight in zip(places, weights, strict=True):
        own = means[place > cut]
        terms.append(weight * (left * (place - mean) ** 2 - (place - own) ** 2))
    average = sum(terms) / len(terms)
    return sum(terms) / math.sqrt(sum((term - average) ** 2 for term in terms))


def scattered(n: int, share: float) -> list[bool]:
    """Whether each of n rows is chosen: those whose multiple of the golden ratio begins low."""
    return [i * (math.sqrt(5) - 1) / 2 % 1 < share for i in range(n)]


def direction(rows: Sequence[Row]) -> list[float]:
    """The direction in which some of the rows vary most, by four steps of the power method."""
    some = [
        row for row, is_in in zip(rows, scattered(len(rows), 64 / len(rows)), strict=True) if is_in
    ]
    d = len(rows[0])
    mean = [sum(row[j] for row in some) / len(some) for j in range(d)]
    centred = [[row[j] - mean[j] for j in range(d)] for row in some]
    found = max(centred, key=lambda row: sum(x * x for x in row))
    for _ in range(4):
        along = [sum(x * y for x, y in zip(row, found, strict=True)) for row in centred]
        found = [sum(a * row[j] for a, row in zip(along, centred, strict=True)) for j in range(d)]
        length = math.sqrt(sum(x * x for x in found))
        found = [x / length for x in found]
    return found


def cut_of(places: Sequence[float], weights: Sequence[float]) -> float:
    """Where 2-means on a line, from the mean, has come to after six steps."""
    cut = sum(p * w for p, w in zip(places, weights, strict=True)) / sum(weights)
    for _ in range(6):
        means = []
        for above in (False, True):
            side = [(p, w) for p, w in zip(places, weights, strict=True) if (p > cut) == above]
            if not side:
                return cut
            means.append(sum(p * w for p, w in side) / sum(w for _, w in side))
        cut = (means[0] + means[1]) / 2
    return cut


def saving_within(rows: Sequence[Row], weights: Sequence[float]) -> float:
    """Cuts found on half of the rows and judged on the rest, both ways round."""
    score = 0.0
    is_first = scattered(len(rows), 0.5)
    for first in (True, False):
        made_for = [i for i, one in enumerate(is_first) if one == first]
        judged = [i for i, one in enumerate(is_first) if one != first]
        way = direction([rows[i] for i in made_for])
        along = [sum(x * y for x, y in zip(row, way, strict=True)) for row in rows]
        cut = cut_of([along[i] for i in made_for], [weights[i] for i in made_for])
        score += saving([along[i] for i in judged], [weights[i] for i in judged], cut)
    return score / math.sqrt(2)
