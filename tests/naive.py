"""The paper's definitions as plain loops: slow, obvious, and written without looking at the kernel.

A point is a sequence of numbers, a batch a list of points with a weight each. Nothing here is
vectorised and nothing is cached; every fast routine of the package is compared with its twin.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kmeander.arguments import generator_for

# Lists, tuples or arrays of numbers alike.
Point = Any
Points = Any
Weights = Any


def squared_distance(x: Point, c: Point) -> float:
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, c, strict=True))


def nearest(x: Point, centroids: Points) -> int:
    """Index of the nearest centroid; the lowest where several are."""
    distances = [squared_distance(x, c) for c in centroids]
    return distances.index(min(distances))


def margin_of_nearest(x: Point, centroids: Points) -> float:
    """Relative gap between the nearest centroid and the nearest of those elsewhere."""
    best = nearest(x, centroids)
    least = squared_distance(x, centroids[best])
    others = [c for c in centroids if list(c) != list(centroids[best])]
    return min((1 - least / squared_distance(x, c) for c in others), default=math.inf)


def kmeans_error(points: Points, centroids: Points, weights: Weights | None = None) -> float:
    """Equation (1)."""
    w = [1.0] * len(points) if weights is None else list(weights)
    total = math.fsum(
        w[i] * min(squared_distance(x, c) for c in centroids) for i, x in enumerate(points)
    )
    return total / math.fsum(w)


def skm_error(batches: Sequence[Points], centroids: Points) -> float:
    """Definition 1, for the batches since the drift."""
    return kmeans_error([x for batch in batches for x in batch], centroids)


def surrogate_error(batches: Sequence[Points], rho: float, centroids: Points) -> float:
    """Definition 2; the newest batch, of age 0, is last."""
    total = mass = 0.0
    for age, batch in enumerate(reversed(batches)):
        for x in batch:
            total += rho**age * min(squared_distance(x, c) for c in centroids)
            mass += rho**age
    return total / mass


def kmeans_plusplus(points: Points, weights: Weights, uniforms: Weights) -> list[int]:
    """Rows drawn by inverting the cumulated shares; fewer where distinct points run out."""
    chosen: list[int] = []
    for uniform in uniforms:
        if chosen:
            shares = [
                w * min(squared_distance(x, points[c]) for c in chosen)
                for x, w in zip(points, weights, strict=True)
            ]
        else:
            shares = [float(w) for w in weights]
        whole = math.fsum(shares)
        if whole == 0:
            break
        cumulated = list(itertools.accumulate(shares))
        row = next((i for i, s in enumerate(cumulated) if s > uniform * whole), None)
        chosen.append(max(i for i, s in enumerate(shares) if s > 0) if row is None else row)
    return chosen


@dataclass
class Fit:
    centroids: list[list[float]]
    labels: list[int]
    masses: list[float]
    error: float
    n_iter: int
    converged: bool
    errors: list[float]  # after each assignment pass
    reseeded: bool
    margin: float  # the closest call: least relative gap by which something was decided


def lloyd(
    points: Points,
    weights: Weights,
    centroids: Points,
    max_iter: int = 300,
    place: Callable[[list[float], list[float]], list[float]] | None = None,
) -> Fit:
    """Weighted Lloyd until no label changes.

    A centroid goes to the mean, or to where `place` says, given the mean and the old centroid.
    """
    mass = math.fsum(weights)
    centres = [[float(v) for v in c] for c in centroids]
    k = len(centres)

    margin = math.inf

    def assign() -> tuple[list[int], float]:
        nonlocal margin
        margin = min(margin, *(margin_of_nearest(x, centres) for x in points))
        labels = [nearest(x, centres) for x in points]
        costs = (
            w * squared_distance(x, centres[c])
            for x, w, c in zip(points, weights, labels, strict=True)
        )
        return labels, math.fsum(costs) / mass

    labels, error = assign()
    errors = [error]
    n_iter, converged, reseeded = 1, False, False
    for _ in range(max_iter):
        given = list(labels)
        margin = min(margin, reseed(points, weights, centres, labels))
        reseeded = reseeded or labels != given
        moved = False
        for c in range(k):
            members = [i for i, label in enumerate(labels) if label == c and weights[i] > 0]
            if members:
                heavy = math.fsum(weights[i] for i in members)
                mean = [
                    math.fsum(weights[i] * float(points[i][j]) for i in members) / heavy
                    for j in range(len(points[0]))
                ]
                found = mean if place is None else place(mean, list(centres[c]))
                for j, (old, new) in enumerate(zip(centres[c], found, strict=True)):
                    if abs(new - old) > 16 * sys.float_info.epsilon * abs(new):
                        moved = True
                        centres[c][j] = new
        if not moved:
            converged = True
            break
        before = labels
        labels, error = assign()
        errors.append(error)
        n_iter += 1
        if labels == before:
            converged = True
            break
    masses = [
        math.fsum(w for w, a in zip(weights, labels, strict=True) if a == c) for c in range(k)
    ]
    return Fit(centres, labels, masses, error, n_iter, converged, errors, reseeded, margin)


def reseed(
    points: Points,
    weights: Weights,
    centroids: Points,
    labels: list[int],
) -> float:
    """Give each cluster without mass the point that costs most, changing `labels`.

    Return by what relative gap the choice was made.
    """
    margin = math.inf
    costs = [
        w * squared_distance(x, centroids[c])
        for x, w, c in zip(points, weights, labels, strict=True)
    ]
    while True:
        masses = [0.0] * len(centroids)
        for w, c in zip(weights, labels, strict=True):
            masses[c] += w
        empty = [c for c, mass in enumerate(masses) if mass == 0]
        # Equal points that are all their cluster has are left alone: its centroid goes there.
        for i, label in enumerate(labels):
            rows = zip(points, weights, labels, strict=True)
            if len({tuple(x) for x, w, c in rows if c == label and w > 0}) == 1:
                costs[i] = 0.0
        if not empty or max(costs) == 0:
            return margin
        dearest = costs.index(max(costs))
        for cost, x in zip(costs, points, strict=True):
            if list(x) != list(points[dearest]):
                margin = min(margin, 1 - cost / costs[dearest])
        labels[dearest] = empty[0]
        for i, x in enumerate(points):
            costs[i] = min(costs[i], weights[i] * squared_distance(x, points[dearest]))


def kmeans(points: Points, weights: Weights, uniforms: Weights) -> Fit:
    """KM++ of the paper: seeding and Lloyd."""
    rows = kmeans_plusplus(points, weights, uniforms)
    return lloyd(points, weights, [points[i] for i in rows])


def merge_cost(mass: float, centroid: Point, other_mass: float, other: Point) -> float:
    """The cost f of the paper, Ward's; nothing where both masses are 0."""
    if mass + other_mass == 0:
        return 0.0
    return mass * other_mass / (mass + other_mass) * squared_distance(centroid, other)


def best_matching_cost(
    previous: Points,
    previous_mass: Weights,
    current: Points,
    current_mass: Weights,
) -> float:
    """Smallest sum of costs over all ways to give each current centroid a previous one."""
    return min(
        math.fsum(
            merge_cost(previous_mass[k], previous[k], current_mass[j], current[j])
            for j, k in enumerate(partners)
        )
        for partners in itertools.permutations(range(len(previous)), len(current))
    )


def weighted_mean(mass: float, x: Point, other_mass: float, y: Point) -> list[float]:
    """Theorem 3."""
    if mass + other_mass == 0:
        return [float(a) for a in x]
    return [
        (mass * float(a) + other_mass * float(b)) / (mass + other_mass)
        for a, b in zip(x, y, strict=True)
    ]


def mean_of(points: Points, weights: Weights, rows: list[int]) -> list[float]:
    mass = math.fsum(weights[i] for i in rows)
    columns = range(len(points[0]))
    return [math.fsum(weights[i] * float(points[i][j]) for i in rows) / mass for j in columns]


def summaries(points: Points, weights: Weights, n_summaries: int) -> tuple[list[list[int]], float]:
    """Rows in groups: the widest is cut in two at its mean until there are enough.

    Return also the closest call.
    """
    groups = [[i for i in range(len(points)) if weights[i] > 0]]
    margin = math.inf
    while len(groups) < n_summaries:
        means = [mean_of(points, weights, group) for group in groups]
        widths = [
            [
                math.fsum(weights[i] * (float(points[i][j]) - mean[j]) ** 2 for i in group)
                for j in range(len(mean))
            ]
            for group, mean in zip(groups, means, strict=True)
        ]
        scatter = [
            0.0 if len({tuple(points[i]) for i in group}) == 1 else math.fsum(width)
            for group, width in zip(groups, widths, strict=True)
        ]
        widest = scatter.index(max(scatter))
        if scatter[widest] == 0:
            break
        column = widths[widest].index(max(widths[widest]))
        at = means[widest][column]
        margin = min(
            margin,
            *(1 - s / scatter[widest] for g, s in enumerate(scatter) if g != widest),
            *(1 - w / widths[widest][column] for j, w in enumerate(widths[widest]) if j != column),
            *(abs(float(points[i][column]) - at) for i in groups[widest]),
        )
        below = [i for i in groups[widest] if float(points[i][column]) < at]
        above = [i for i in groups[widest] if float(points[i][column]) >= at]
        groups[widest] = below
        groups.append(above)
    return groups, margin


def best_matching(
    previous: Points, previous_mass: Weights, current: Points, current_mass: Weights
) -> tuple[list[int], float]:
    """Partner in `current` of each previous centroid (-1: none), and by what gap it was chosen.

    Of all ways to give each current centroid a previous one, the cheapest. A cluster without mass
    costs nothing wherever it goes: there the least sum of squared distances decides.
    """

    def cost(owners: tuple[int, ...]) -> float:
        pairs = list(enumerate(owners))
        return math.fsum(
            merge_cost(previous_mass[k], previous[k], current_mass[j], current[j]) for j, k in pairs
        )

    def way(owners: tuple[int, ...]) -> float:
        pairs = [(j, k) for j, k in enumerate(owners) if previous_mass[k] == 0]
        return math.fsum(squared_distance(previous[k], current[j]) for j, k in pairs)

    everyone = list(itertools.permutations(range(len(previous)), len(current)))
    costs = {owners: cost(owners) for owners in everyone}
    cheapest = min(everyone, key=costs.__getitem__)

    def with_mass(owners: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k if previous_mass[k] > 0 else -1 for k in owners)

    alike = [owners for owners in everyone if with_mass(owners) == with_mass(cheapest)]
    best = min(alike, key=way)
    gaps = [_gap(costs[best], costs[o]) for o in everyone if o not in alike]
    gaps += [_gap(way(best), way(owners)) for owners in alike if owners != best]
    partner = [-1] * len(previous)
    for j, k in enumerate(best):
        partner[k] = j
    return partner, min(gaps, default=math.inf)


def _gap(least: float, other: float) -> float:
    return 1 - least / other if other > 0 else 0.0


@dataclass
class Remembered:
    points: list[Point]
    weights: list[float]
    age: float
    labels: list[int] = field(default_factory=list)
    hidden: float = 0.0  # squares that its means hide, where it has become means
    n_thinner: int = 1  # by which its points are to be divided


class FSKM:
    """Algorithm 2, for streams whose first batch holds K distinct points."""

    def __init__(self, n_clusters: int, init: str, rho: float, max_batches: int, seed: int) -> None:
        self.n_clusters, self.init, self.rho = n_clusters, init, rho
        self.max_batches, self.seed = max_batches, seed
        self.window: list[Remembered] = []
        self.centroids: list[list[float]] = []
        self.n_steps = 0

    def step(self, points: Points, weights: Weights, elapsed: float) -> Fit:
        uniforms = generator_for(self.seed, self.n_steps).random(self.n_clusters)
        for batch in self.window:
            batch.age += elapsed
        self.window = [batch for batch in self.window if batch.age < self.max_batches]
        margin = math.inf
        if not self.centroids:
            start = [points[i] for i in kmeans_plusplus(points, weights, uniforms)]
        elif self.init == "previous":
            start = self.centroids
        else:
            start, margin = self._start(kmeans(points, weights, uniforms.tolist()))
        self.window.append(Remembered(list(points), list(weights), 0.0))
        everything = [x for batch in self.window for x in batch.points]
        decayed = [self.rho**batch.age * w for batch in self.window for w in batch.weights]
        fit = lloyd(everything, decayed, start)
        fit.margin = min(fit.margin, margin)
        self.n_steps += 1
        self.take(fit.centroids, fit.labels)
        return fit

    def take(self, centroids: Points, labels: Sequence[int]) -> None:
        """Go on from these centroids and these labels of the whole window."""
        self.centroids = [[float(v) for v in c] for c in centroids]
        rest = iter(labels)
        for batch in self.window:
            batch.labels = list(itertools.islice(rest, len(batch.points)))

    def _start(self, current: Fit) -> tuple[list[list[float]], float]:
        """CC, WI or HI, each in the order of the previous centroids."""
        masses = [0.0] * self.n_clusters
        for batch in self.window:
            for w, label in zip(batch.weights, batch.labels, strict=True):
                masses[label] += self.rho**batch.age * w
        found, margin = current, current.margin
        if self.init == "weighted":
            heavy = [k for k, mass in enumerate(masses) if mass > 0]
            rows = [j for j, mass in enumerate(current.masses) if mass > 0]
            uniforms = generator_for(self.seed, self.n_steps, 1).random(self.n_clusters)
            found = kmeans(
                [self.centroids[k] for k in heavy] + [current.centroids[j] for j in rows],
                [masses[k] for k in heavy] + [current.masses[j] for j in rows],
                uniforms.tolist(),
            )
            margin = min(margin, found.margin)
        partner, gap = best_matching(self.centroids, masses, found.centroids, found.masses)
        start = []
        for k, j in enumerate(partner):
            if j < 0:
                start.append(self.centroids[k])
            elif self.init == "hungarian":
                pair = (masses[k], self.centroids[k], found.masses[j], found.centroids[j])
                start.append(weighted_mean(*pair))
            else:
                start.append(found.centroids[j])
        return start, min(margin, gap)


class TwoSpeeds(FSKM):
    """The memory with two speeds: what a batch weighs, and when it becomes fewer means.

    It comes of age 3, 10 and 32: each time it becomes a quarter as many means, at least as many as
    it has clusters. It leaves at age 64.
    """

    def __init__(self, n_clusters: int, seed: int) -> None:
        super().__init__(n_clusters, "previous", 0.3, 64, seed)
        self.hidden = 0.0  # decayed sum of squares that means hide, at the last step

    def step(self, points: Points, weights: Weights, elapsed: float) -> Fit:
        """Learn a batch."""
        margin = math.inf
        for batch in self.window:
            before, batch.age = batch.age, batch.age + elapsed
            for _ in [at for at in (3, 10, 32) if before < at <= batch.age]:
                batch.n_thinner *= 4
        self.window = [batch for batch in self.window if batch.age < self.max_batches]
        for batch in self.window:
            n_means = max(len(batch.points) // batch.n_thinner, len(set(batch.labels)))
            if batch.n_thinner > 1 and n_means < len(batch.points):
                groups, cut = summaries(batch.points, batch.weights, n_means)
                margin = min(margin, cut)
                means = [mean_of(batch.points, batch.weights, rows) for rows in groups]
                batch.hidden += math.fsum(
                    batch.weights[i] * squared_distance(batch.points[i], mean)
                    for rows, mean in zip(groups, means, strict=True) for i in rows
                )  # fmt: skip
                batch.weights = [math.fsum(batch.weights[i] for i in rows) for rows in groups]
                batch.points = list(means)
            batch.n_thinner = 1
        uniforms = generator_for(self.seed, self.n_steps).random(self.n_clusters)
        start = self.centroids or [points[i] for i in kmeans_plusplus(points, weights, uniforms)]
        self.window.append(Remembered(list(points), list(weights), 0.0))
        decays = [0.97 * 0.3**batch.age + 0.03 * 0.95**batch.age for batch in self.window]
        pairs = list(zip(decays, self.window, strict=True))
        fit = lloyd(
            [x for batch in self.window for x in batch.points],
            [decay * w for decay, batch in pairs for w in batch.weights],
            start,
        )
        self.hidden = math.fsum(decay * batch.hidden for decay, batch in pairs)
        fit.margin = min(fit.margin, margin)
        self.n_steps += 1
        self.take(fit.centroids, fit.labels)
        return fit


def max_batches_for(rho: float, negligible: float) -> int:
    """Smallest T with rho**T <= negligible, allowing for rounding."""
    t = 1
    while rho**t > negligible * (1 + 1e-9):
        t += 1
    return t


def moved(points: Points, labels: list[int], directions: Points, magnitude: float) -> list[Point]:
    """Appendix A: every point of cluster k goes `magnitude` along direction k."""
    return [
        [float(v) + magnitude * float(e) for v, e in zip(x, directions[k], strict=True)]
        for x, k in zip(points, labels, strict=True)
    ]


def drift_of(before: Points, after: Points, centroids: Points) -> float:
    """Return the epsilon of the step from one concept to the next, by its definition."""
    return kmeans_error(after, centroids) / kmeans_error(before, centroids) - 1


def normalised(errors: Weights) -> list[float]:
    """(E - min) / min over the methods of one batch."""
    least = min(errors)
    return [0.0 if e == least else (e - least) / least if least else math.inf for e in errors]


def theorem2_bound(
    batches: Sequence[Points],
    rho: float,
    previous: Points,
    newest: Points,
    current: Points,
    matching: Sequence[int],
    start: Points,
) -> float:
    """Every point charged to the centroid that its cell went to: what Theorem 2 adds up."""
    total = mass = 0.0
    for age, batch in enumerate(reversed(batches), start=1):
        for x in batch:
            total += rho**age * squared_distance(x, start[nearest(x, previous)])
            mass += rho**age
    for x in newest:
        total += squared_distance(x, start[list(matching).index(nearest(x, current))])
        mass += 1.0
    return total / mass


def surrogate_gaps(errors: Weights, n_before: int, rho: float) -> list[float]:
    """E_* - E_rho after each batch since the drift, from the error of each batch."""
    gaps = []
    for t in range(1, len(errors) - n_before + 1):
        seen = list(errors[: n_before + t])
        weights = [rho ** (len(seen) - 1 - i) for i in range(len(seen))]
        surrogate = math.fsum(w * e for w, e in zip(weights, seen, strict=True)) / math.fsum(
            weights
        )
        gaps.append(math.fsum(seen[n_before:]) / t - surrogate)
    return gaps


@dataclass
class Swaps:
    """Local search: where it ended, and the least margin by which anything was decided."""

    centroids: list[list[float]]
    swapped: list[int]
    margin: float


def swaps(points: Points, weights: Weights, centroids: Points, uniforms: Weights) -> Swaps:
    """LS++: draw by cost, put a centroid there, take away the one whose removal costs least.

    The error must fall by more than 1.1 times what a single row makes of it: the root of the summed
    squares of what the swap does to the cost of each row.
    """
    found = [list(map(float, c)) for c in centroids]
    swapped: set[int] = set()
    margin = math.inf
    for uniform in uniforms:
        labels = [nearest(x, found) for x in points]
        # Costs stand one after the other by cluster, and within it as the points come.
        order = sorted(range(len(points)), key=lambda i: labels[i])
        costs = [weights[i] * squared_distance(points[i], found[labels[i]]) for i in order]
        total = math.fsum(costs)
        if total == 0:
            break
        passed = list(itertools.accumulate(costs))
        mark = uniform * passed[-1]
        place = next(p for p, reached in enumerate(passed) if reached > mark)
        margin = min([margin, *(abs(reached - mark) / total for reached in passed)])
        candidate = list(map(float, points[order[place]]))
        margin = min([margin, *(margin_of_nearest(x, found) for x in points)])
        trials = [[*found[:k], candidate, *found[k + 1 :]] for k in range(len(found))]
        errors = [math.fsum(weights) * kmeans_error(points, trial, weights) for trial in trials]
        best = errors.index(min(errors))
        margin = min(
            [margin, *(abs(e - errors[best]) / total for e in errors if e != errors[best])]
        )
        changes = [
            w * (min(squared_distance(x, c) for c in trials[best]) - squared_distance(x, found[k]))
            for x, w, k in zip(points, weights, labels, strict=True)
        ]
        least = 1.1 * math.sqrt(math.fsum(change * change for change in changes))
        margin = min(margin, abs(total - errors[best] - least) / total)
        if errors.count(errors[best]) > 1:
            margin = 0.0
        if total - errors[best] > least:
            found = trials[best]
            swapped.add(best)
    # Of those put elsewhere, each takes a place near its old one: the least sum of squares.
    moved = sorted(swapped)
    ways = list(itertools.permutations(moved)) if len(moved) <= 6 else []
    lengths = [
        math.fsum(
            squared_distance(centroids[k], found[place])
            for k, place in zip(moved, way, strict=True)
        )
        for way in ways
    ]
    if not ways:
        margin = 0.0  # too many ways to try
        return Swaps(found, moved, margin)
    shortest = ways[lengths.index(min(lengths))]
    margin = min(
        [margin, *(length / min(lengths) - 1 for length in lengths if length != min(lengths))]
        if min(lengths) > 0
        else [0.0]
    )
    placed = list(found)
    for k, place in zip(moved, shortest, strict=True):
        placed[k] = found[place]
    return Swaps(placed, moved, margin)


@dataclass(frozen=True)
class Exchanges:
    """Split-merge: the centroids after it, and the least margin by which anything was decided."""

    centroids: list[list[float]]
    split: list[int]
    removed: list[int]
    margin: float


def halves(
    points: Points, weights: Weights, centroid: Point, uniforms: Weights
) -> tuple[list[tuple[float, float, list[float]]], float]:
    """Cut points in two by a 2-means of at most four passes, begun at two rows drawn by cost.

    Returns the weight, the effective number of rows and the mean of each half, none where there are
    no two; and the least margin of a draw or of a distance.
    """
    rows = [(list(map(float, x)), w) for x, w in zip(points, weights, strict=True) if w > 0]
    margin, places = math.inf, [list(map(float, centroid))]
    for uniform in uniforms:
        # The second row is drawn by its distance to the first, not to the centroid.
        costs = [w * squared_distance(x, places[-1]) for x, w in rows]
        if len(rows) < 2 or math.fsum(costs) == 0:
            return [], margin
        passed = list(itertools.accumulate(costs))
        mark = uniform * passed[-1]
        places.append(rows[next(i for i, reached in enumerate(passed) if reached > mark)][0])
        margin = min([margin, *(abs(reached - mark) / passed[-1] for reached in passed)])
    places = places[1:]
    found: list[tuple[float, float, list[float]]] = []
    sides: list[bool] = []
    for n_passes in range(4):
        gaps = [[squared_distance(x, place) for place in places] for x, _ in rows]
        before, sides = sides, [second < first for first, second in gaps]
        margin = min([margin, *(_gap(min(gap), max(gap)) for gap in gaps)])
        if n_passes > 0 and sides == before:
            break
        found = []
        for side in (False, True):
            own = [i for i, one in enumerate(sides) if one == side]
            if not own:
                return [], margin
            mass = math.fsum(rows[i][1] for i in own)
            n_rows = mass**2 / math.fsum(rows[i][1] ** 2 for i in own)
            found.append((mass, n_rows, mean_of([x for x, _ in rows], [w for _, w in rows], own)))
        places = [mean for _, _, mean in found]
    return found, margin


def exchanges(points: Points, weights: Weights, centroids: Points, uniforms: Weights) -> Exchanges:
    """Split-merge: the best split takes the centroid that is missed least, again and again.

    While the split gains more than the removal costs, by more than half a standard error. Neither
    takes part again, nor does the cluster nearest to the one removed.
    """
    found = [list(map(float, c)) for c in centroids]
    k = len(found)
    labels = [nearest(x, found) for x in points]
    margin = min(margin_of_nearest(x, found) for x in points)
    changes: list[list[float]] = [[] for _ in range(k)]  # were the centroid removed
    total = 0.0
    for x, w, label in zip(points, weights, labels, strict=True):
        own = squared_distance(x, found[label])
        others = min(squared_distance(x, c) for j, c in enumerate(found) if j != label)
        changes[label].append(w * (others - own))
        total += w * own
    losses = [math.fsum(one) for one in changes]
    gains, chances, parts = [], [], []
    for c in range(k):
        own_rows = [i for i, label in enumerate(labels) if label == c]
        both, least = halves(
            [points[i] for i in own_rows], [weights[i] for i in own_rows],
            found[c], uniforms[2 * c : 2 * c + 2],
        )  # fmt: skip
        margin = min(margin, least)
        gain = chance = 0.0
        if both:
            (one, n_one, left), (other, n_other, right) = both
            if min(n_one, n_other) >= 1.5:  # a row alone is no cluster
                gain = merge_cost(one, left, other, right)
                chance = gain**2 / min(n_one, n_other)
            margin = min(margin, abs(one - other) / (one + other), abs(min(n_one, n_other) - 1.5))
            both = sorted(both, key=lambda half: -half[0])
        gains.append(gain)
        chances.append(chance)
        parts.append(both)
    free, split, removed = set(range(k)), [], []
    for _ in range(20):
        if len(free) < 2:
            break
        best = max(sorted(free), key=lambda c: gains[c])
        least_missed = min(sorted(free - {best}), key=lambda c: losses[c])
        margin = min(
            [margin, *((gains[best] - gains[c]) / total for c in free - {best} if gains[best] > 0)]
        )
        margin = min(
            [margin, *((losses[c] - losses[least_missed]) / total
                       for c in free - {best, least_missed})]
        )  # fmt: skip
        net = gains[best] - losses[least_missed]
        chance = 0.5 * math.sqrt(
            chances[best] + math.fsum(change**2 for change in changes[least_missed])
        )
        margin = min(margin, abs(net - chance) / total)
        if net <= chance:
            break
        heir = min(
            (j for j in range(k) if j != least_missed),
            key=lambda j: squared_distance(centroids[j], centroids[least_missed]),
        )
        free -= {best, least_missed, heir}
        split.append(best)
        removed.append(least_missed)
        found[best], found[least_missed] = (half[2] for half in parts[best])
    return Exchanges(found, split, removed, margin)


def expected_error(
    batches: Sequence[Points],
    weights: Sequence[Weights],
    decays: Weights,
    labels: Sequence[Any],
    n_clusters: int,
) -> float:
    """Decayed mean error of the batches, each under the means of its clusters without it.

    Where the others have less of a cluster than one row of the batch weighs, rows (all as if they
    weighed the same) are left out one at a time.
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
            everything = others + [(decays[t] * weights[t][i], batch[i]) for i in own]
            if rest > decays[t] * row:
                centre = mean_of(
                    [x for _, x in others], [w for w, _ in others], [*range(len(others))]
                )
                for i in own:
                    total += decays[t] * weights[t][i] * squared_distance(batch[i], centre)
                continue
            mean = mean_of(batch, weights[t], own)
            centre = mean_of(
                [x for _, x in everything], [w for w, _ in everything], [*range(len(everything))]
            )
            for i in own:
                factor = share / (share - row) if share > row else 1.0
                left_out = [m + (x - m) * factor for x, m in zip(batch[i], mean, strict=True)]
                total += decays[t] * weights[t][i] * squared_distance(left_out, mean)
            total += decays[t] * share * squared_distance(mean, centre)
    return total / mass


def z_of_estimate(epsilon: float, se: float, usual: Sequence[tuple[float, float]]) -> float:
    """Standard deviations above what is usual, for many points."""
    ordered = sorted(e for e, _ in usual)
    centre = _median(ordered)
    spread = 1.4826 * _median(sorted(abs(e - centre) for e in ordered))
    unexplained = max(0.0, spread**2 - _median(sorted(s**2 for _, s in usual)))
    return (epsilon - max(0.0, centre)) / math.sqrt(se**2 + unexplained)


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass
class Row:
    """A row of a cluster: where it is, what it weighs, and whether it came with the last batch."""

    point: list[float]
    weight: float
    is_newest: bool


@dataclass
class Valleys:
    """Scores of clusters, and the least margin by which anything was decided."""

    neighbours: list[int]
    as_one: list[float]
    as_two: list[float]
    margin: float


def valleys(
    batches: Sequence[tuple[Points, Weights, float, Any]],
    centroids: Points,
    masses: Weights,
    most: int,
    shallow: float,
) -> Valleys:
    """Is there a valley between a cluster and the nearest, or within one?

    A batch is its points, their weights, its decay and their labels, the newest batch last.
    """
    found = Valleys([], [], [], math.inf)
    rows: list[list[Row]] = [[] for _ in centroids]
    for age, (points, weights, decay, labels) in enumerate(reversed(batches)):
        for i in reversed(range(len(points))):
            if weights[i] > 0 and len(rows[labels[i]]) < most:
                point = [float(value) for value in points[i]]
                rows[labels[i]].append(Row(point, decay * weights[i], age == 0))
    for a in range(len(centroids)):
        others = [b for b in range(len(centroids)) if b != a and rows[a] and rows[b]]
        distances = [squared_distance(centroids[a], centroids[b]) for b in others]
        nearby = others[distances.index(min(distances))] if others else -1
        found.neighbours.append(nearby)
        found.margin = min(
            [found.margin, *(d - min(distances) for d in distances if d != min(distances))]
        )
        if nearby < 0 or min(distances) == 0:
            found.as_one.append(0.0)
        else:
            one, other = min(a, nearby), max(a, nearby)
            both = [
                (_place(row, centroids[own], masses[own], centroids[far]), row, own)
                for own, far in ((one, other), (other, one))
                for row in rows[own]
            ]
            places = [t if own == one else 1 - t for t, _, own in both]
            found.as_one.append(_one(places, [row for _, row, _ in both], shallow, found))
        found.as_two.append(_two(rows[a], centroids[a], found) if rows[a] else 0.0)
    return found


def _place(row: Row, own: Point, mass: float, far: Point) -> float:
    """Place of a row on the line from its centroid, as that would be without it, to another."""
    rest = mass - row.weight
    start = list(own)
    if rest > 0:
        start = [(mass * c - row.weight * x) / rest for c, x in zip(own, row.point, strict=True)]
    way = [b - a for a, b in zip(start, far, strict=True)]
    return _along(row.point, start, way) / math.fsum(w * w for w in way)


def _along(point: Point, start: Point, way: Point) -> float:
    return math.fsum((x - a) * w for x, a, w in zip(point, start, way, strict=True))


def _counts(places: list[float], rows: list[Row], found: Valleys) -> list[float]:
    """Effective rows in the five bins about 0, 1/4, 1/2, 3/4 and 1."""
    per_weight = math.fsum(r.weight for r in rows) / math.fsum(r.weight**2 for r in rows)
    counts = [0.0] * 5
    for t, row in zip(places, rows, strict=True):
        found.margin = min(found.margin, abs(4 * t + 0.5 - round(4 * t + 0.5)))
        if -0.125 <= t < 1.125:
            counts[math.floor(4 * t + 0.5)] += row.weight * per_weight
    return counts


def _beyond(between: float, end: float, ratio: float, found: Valleys) -> float:
    """Signed root of twice the log likelihood ratio of a binomial share, with continuity."""
    both = between + end
    share = ratio / (1 + ratio)
    found.margin = min(found.margin, abs(abs(between - both * share) - 0.5))
    if both == 0 or abs(between - both * share) <= 0.5:
        return 0.0
    sign = 1 if between > both * share else -1
    x = between - sign / 2
    deviance = sum(
        2 * count * math.log(count / expected)
        for count, expected in ((x, both * share), (both - x, both * (1 - share)))
        if count > 0
    )
    return sign * math.sqrt(max(0.0, deviance))


def _one(places: list[float], rows: list[Row], shallow: float, found: Valleys) -> float:
    between = [0.125 <= t < 0.875 for t in places]
    mass = math.fsum(row.weight for row in rows)
    newest = math.fsum(row.weight for row in rows if row.is_newest)
    share = math.fsum(row.weight for row, b in zip(rows, between, strict=True) if b) / mass
    coming = math.fsum(
        row.weight for row, b in zip(rows, between, strict=True) if b and row.is_newest
    )
    found.margin = min(found.margin, abs(coming - share * newest / 2) or math.inf)
    counts = _counts(places, rows, found)
    if coming < share * newest / 2:
        return 0.0
    return min(_beyond(c, min(counts[0], counts[4]), shallow, found) for c in counts[1:4])


def _two(rows: list[Row], centroid: Point, found: Valleys) -> float:
    way = _direction(rows, found)
    places = [_along(row.point, centroid, way) for row in rows]
    mass = math.fsum(row.weight for row in rows)
    cut = math.fsum(row.weight * p for row, p in zip(rows, places, strict=True)) / mass
    ends = [0.0, 0.0]
    for _ in range(4):
        sides = [
            [(p, row) for p, row in zip(places, rows, strict=True) if (p > cut) == above]
            for above in (False, True)
        ]
        found.margin = min([found.margin, *(abs(p - cut) for p in places)])
        if not (sides[0] and sides[1]):
            return 0.0
        ends = [
            math.fsum(row.weight * p for p, row in side) / math.fsum(row.weight for _, row in side)
            for side in sides
        ]
        cut = (ends[0] + ends[1]) / 2
    found.margin = min([found.margin, *(abs(p - cut) for p in places)])
    newest = math.fsum(row.weight for row in rows if row.is_newest)
    if newest == 0:
        return 0.0
    # The mass above is that of the cut before the last, between whose means the line runs.
    above = math.fsum(row.weight for _, row in sides[1]) / mass
    coming = (
        math.fsum(
            row.weight for p, row in zip(places, rows, strict=True) if row.is_newest and p > cut
        )
        / newest
    )
    found.margin = min(found.margin, abs(coming - above / 2), abs((1 - coming) - (1 - above) / 2))
    if coming < above / 2 or 1 - coming < (1 - above) / 2:
        return 0.0
    counts = _counts([(p - ends[0]) / (ends[1] - ends[0]) for p in places], rows, found)
    least = min(counts[0], counts[4])
    return -min(_beyond(c, least, 1.0, found) for c in counts[1:4])


def _direction(rows: list[Row], found: Valleys) -> list[float]:
    """Three steps of power iteration, on up to 64 rows, from the column that varies most."""
    n = min(64, len(rows))
    some = [rows[i * len(rows) // n] for i in range(n)]
    mass = math.fsum(row.weight for row in some)
    columns = range(len(rows[0].point))
    mean = [math.fsum(row.weight * row.point[j] for row in some) / mass for j in columns]
    varies = [
        math.fsum(row.weight * (row.point[j] - mean[j]) ** 2 for row in some) / mass
        for j in columns
    ]
    widest = varies.index(max(varies))
    found.margin = min(
        [found.margin, *(max(varies) - v for j, v in enumerate(varies) if j != widest)]
    )
    way = [float(j == widest and max(varies) > 0) for j in columns]
    for _ in range(3):
        step = [
            math.fsum(
                row.weight * _along(row.point, mean, way) * (row.point[j] - mean[j]) for row in some
            )
            for j in columns
        ]
        largest = max(map(abs, step))
        if largest == 0:
            break
        way = [part / largest for part in step]
    return way


def spark_rule(
    batches: Sequence[Points], centroids: Points, decay: float
) -> tuple[list[list[float]], list[float]]:
    """Return centroids and weights after the update rule of Spark's StreamingKMeans.

    In each batch the rows of a centroid count once each, all that it stood for before `decay`.
    """
    places = [list(map(float, c)) for c in centroids]
    weights = [0.0] * len(places)
    for points in batches:
        labels = [nearest(x, places) for x in points]
        for k in range(len(places)):
            mine = [x for x, label in zip(points, labels, strict=True) if label == k]
            before = decay * weights[k]
            weights[k] = before + len(mine)
            if weights[k] > 0:
                places[k] = [
                    (before * old + sum(float(x[j]) for x in mine)) / weights[k]
                    for j, old in enumerate(places[k])
                ]
    return places, weights
