"""What changed from batch to batch, in plain loops written from the definitions."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.naive import nearest
from tests.naive_cells import CLIP, Cells, Tally, tally, together

SCALES = (1, 4, 12)
MEMORY = 1 - 1 / 300


def error_parts(points: Any, weights: Any, centroids: Any) -> list[list[float]]:
    """Part of each cluster and column in the mean squared distance to the nearest centroid."""
    table = [[0.0 for _ in centroid] for centroid in centroids]
    for point, weight in zip(points, weights, strict=True):
        k = nearest(point, centroids)
        for j, (x, c) in enumerate(zip(point, centroids[k], strict=True)):
            table[k][j] += weight * (x - c) ** 2 / sum(weights)
    return table


# Noise between batches.


def faded(values: Sequence[float]) -> float:
    return math.fsum(v * MEMORY**age for age, v in enumerate(reversed(values)))


def as_normal(squared: float, freedom: float) -> float:
    """Wallace's approximation of Student's t by a normal deviate."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * math.sqrt(freedom * math.log1p(squared / freedom))


def freedom_of(noise: float, of_excess: float) -> float:
    """Of a noise of which only what is beyond 1 is learned, known to its own chance at best."""
    excess = max(noise - 1, math.sqrt(2 / of_excess))
    return float(of_excess * ((1 + excess) / excess) ** 2)


class Noise:
    """All squares that the statistics of a family have shown, by scale and statistic."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shown: list[list[list[float]]] = [[[] for _ in range(size)] for _ in SCALES]
        self.batches: list[list[float]] = [[] for _ in SCALES]
        # Of statistics that were forgotten: sum, count, and after how many batches.
        self.forgotten: list[list[tuple[float, float, int]]] = [[] for _ in SCALES]
        self.begun: list[list[float]] = []  # of each batch, by scale

    def family(self, scale: int) -> float:
        """What the family has shown so far."""
        before = self.family(scale - 1) if scale else 1.0
        total = math.fsum(faded(one) for one in self.shown[scale])
        count = math.fsum(faded([1.0] * len(one)) for one in self.shown[scale])
        for sums, counts, since in self.forgotten[scale]:
            left = MEMORY ** (len(self.batches[scale]) - since)
            total, count = total + left * sums, count + left * counts
        n, weight = faded(self.batches[scale]), 2 * SCALES[scale]
        return (n * (total / count if count else 1.0) + weight * before) / (n + weight)

    def begin(self) -> list[float]:
        """What a batch is judged beside: what was known before those of each scale."""
        self.begun.append([self.family(scale) for scale in range(len(SCALES))])
        looks_back = faded(self.batches[0]) >= 18
        return [self.begun[-m if looks_back else -1][scale] for scale, m in enumerate(SCALES)]

    def forget(self, i: int) -> None:
        for scale, shown in enumerate(self.shown):
            n = len(self.batches[scale])
            self.forgotten[scale].append((faded(shown[i]), faded([1.0] * len(shown[i])), n))
            shown[i] = []

    def shrinkage(self) -> float:
        """Empirical Bayes: for how many batches the family counts, by how alike they are."""
        n = faded(self.batches[0])
        if n < 10:
            return 20.0
        known = [(faded(one), faded([1.0] * len(one))) for one in self.shown[0] if one]
        total = math.fsum(s for s, _ in known)
        if total == 0:
            return 100.0
        mean = total / math.fsum(c for _, c in known)
        variance = math.fsum((s / c / mean - 1) ** 2 for s, c in known) / len(known)
        between = max(variance - 2 / n, 0.0) + 4 / n * math.sqrt(2 / self.size)
        return max(4.0, min(100.0, 2 / between))

    def judge(
        self, scale: int, families: list[float], z: dict[int, tuple[float, float]], more: float,
    ) -> dict[int, float]:  # fmt: skip
        """How rare each z is, given with the rows of its cell; they are learned."""
        m, shrinkage = SCALES[scale], self.shrinkage()
        family, long_family = families[scale], families[len(SCALES) - 1]
        alike = math.sqrt(self.size) * faded(self.batches[scale]) / m
        freedom = min(shrinkage, freedom_of(family, 6 + alike))
        found = {}
        for i, (value, rows) in z.items():
            shown = self.shown[scale][i]
            count = faded([1.0] * len(shown))
            own = (faded(shown) + shrinkage * m * family) / (count + shrinkage * m)
            noise = 1 + (max(own, 1.0) - 1) * max(more, 1.0)
            told = count / m
            if scale == 0:  # noise that lasts adds up: the fewer batches have told something new
                longest = self.shown[-1][i]
                weight = shrinkage * SCALES[-1]
                lasting = (faded(longest) + weight * long_family) / (
                    faded([1.0] * len(longest)) + weight
                )
                told /= max(lasting / max(own, 1.0), 1.0)
            doubt = 1 / (freedom + told) + noise / (4 * max(rows, 1.0))
            found[i] = as_normal(value**2 / noise, 1 / doubt)
            shown.append(min(value**2, 9 * noise))
        if z:
            self.batches[scale].append(1.0)
        return found


def doubt_of(noise: float, more: float, rows: float) -> float:
    """One over the degrees of freedom that rows leave, by the noise of the family."""
    return (1 + (max(noise, 1.0) - 1) * max(more, 1.0)) / (4 * max(rows, 1.0))


@dataclass
class Squares:
    """Squares of what is about normal, the variance of their sum if independent, and doubts."""

    squares: list[float]
    variance: float
    doubts: list[float]


@dataclass
class Known:
    """What was learned beside one kind of baseline."""

    shares: Noise
    places: Noise
    spreads: Noise
    means: dict[tuple[str, int], list[float]] = field(default_factory=dict)


# The test.


def share_deviate(now: float, n: float, before: float, m: float) -> float:
    """Signed root of the deviance of two shares, of n and m rows; half a row of correction."""
    count, older, expected = now * n, before * m, n * (now * n + before * m) / (n + m)
    sign = 1.0 if count > expected else -1.0
    count = max(count - 0.5, expected) if sign > 0 else min(count + 0.5, expected)
    both = (count + older) / (n + m)
    pairs = [(count, n * both), (n - count, n * (1 - both)),
             (older, m * both), (m - older, m * (1 - both))]  # fmt: skip
    deviance = math.fsum(2 * a * math.log(a / b) for a, b in pairs if a > 0 and b > 0)
    return sign * math.sqrt(max(deviance, 0.0))


Found = dict[tuple[str, int, int], tuple[float, float]]  # kind, batches, cell or column: value, z


class ChangeTest:
    """The batches of a chapter, and those of a cycle, each as its tally."""

    def __init__(self, cells: Cells, period: int) -> None:
        self.period, self.phase, self.n_plain, self.in_season = period, 0, 0, False
        k, d = cells.k, cells.d
        self.known = [Known(Noise(k), Noise(k * d + d), Noise(k + 1)) for _ in range(2)]
        self.sizes: list[float] = []
        self.cycles: dict[int, list[tuple[float, Tally]]] = {}
        self._begin(cells)

    def _begin(self, cells: Cells) -> None:
        self.cells = cells
        self.batches: list[tuple[int, Tally]] = []
        self.farthest: list[float] = []
        self.origin: Tally | None = None

    def begin_chapter(self, cells: Cells, renewed: Sequence[int]) -> None:
        """After a change; old cells and past cycles stay if clusters hold still."""
        d = cells.d
        still = all(
            math.fsum(((a - b) / s) ** 2 for a, b, s in zip(*row, strict=True)) <= CLIP**2
            for row in zip(cells.centres, self.cells.centres, self.cells.sd, strict=True)
        )
        if self.period and not renewed and still:
            for phase, one in self.batches[-11:]:
                self._add_to_cycles(phase, one)
            if self.in_season:
                self.cycles = {p: [(0.01 * w, t) for w, t in some]
                               for p, some in self.cycles.items()}  # fmt: skip
                self.n_plain = self.period + 11
            cells = self.cells
        else:
            self.cycles, self.n_plain = {}, 0
        self.in_season = False
        for known in self.known:
            for c in renewed:
                for noise, which in (
                    (known.shares, [c]), (known.spreads, [c]),
                    (known.places, [c * d + j for j in range(d)]),
                ):  # fmt: skip
                    for i in which:
                        noise.forget(i)
        self._begin(cells)

    def _add_to_cycles(self, phase: int, one: Tally) -> None:
        earlier = self.cycles.get(phase, [])
        self.cycles[phase] = [*((0.8 * w, t) for w, t in earlier), (1.0, one)]

    def after(self, points: Any, weights: Any, n_phases: int) -> tuple[Found, int]:
        """Everything that is compared, whatever its size, and the number of far rows."""
        self.phase = (self.phase + n_phases) % self.period if self.period else 0
        newest, far = tally(self.cells, points, weights)
        found: Found = {}
        families = [[noise.begin() for noise in (known.shares, known.places, known.spreads)]
                    for known in self.known]  # fmt: skip
        n_before = len(self.batches)
        usual_size = faded(self.sizes) / faded([1.0] * len(self.sizes)) if self.sizes else 0.0
        for scale, m in enumerate(SCALES):
            if n_before < m:
                break
            block = [*self.batches[n_before - m + 1 :], (self.phase, newest)]
            older = self._older(m)
            seasonal = self._usual(block)
            in_season = seasonal is not None and not self.n_plain
            if scale == 0:
                self.in_season = in_season
            now = self._sum((1.0, one) for _, one in block)
            size = math.fsum(now.mass)
            more = size / (m * (usual_size or size))
            baseline, which = (seasonal, 1) if in_season and seasonal else (older, 0)
            self._compare(found, scale, now, baseline, more, self.known[which], families[which])
            if seasonal is not None and not in_season:
                # After a change past cycles may not hold: they only say what is no change.
                beside: Found = {}
                known = copy.deepcopy(self.known[1])
                self._compare(beside, scale, now, seasonal, more, known, families[1])
                for key, (value, z) in found.items():
                    if key[1] == m:
                        found[key] = (value, min(z, beside.get(key, (0.0, 0.0))[1]))
        n_far = self._far(found, far)
        self._trend(found)
        self._learn(newest, len(points))
        return found, n_far

    def _sum(self, parts: Iterable[tuple[float, Tally]]) -> Tally:
        return together(parts, self.cells.k, self.cells.d)

    def _older(self, m: int) -> Tally:
        """The batches of the chapter before the last m, the newest of which is yet to come."""
        before = self.batches[: len(self.batches) - m + 1]
        return self._sum((0.97**age, one) for age, (_, one) in enumerate(reversed(before)))

    def _usual(self, block: Sequence[tuple[int, Tally]]) -> Tally | None:
        """The same phases in past cycles, each with the mass of the batch beside it."""
        if not self.period or any(p not in self.cycles for p, _ in block):
            return None
        parts = []
        for phase, one in block:
            past = self._sum(self.cycles[phase])
            parts.append((math.fsum(one.mass) / math.fsum(past.mass), past))
        return self._sum(parts)

    def _compare(
        self, found: Found, scale: int, now: Tally, older: Tally, more: float,
        known: Known, families: list[list[float]],
    ) -> None:  # fmt: skip
        m = SCALES[scale]
        n, n_older = now.all_rows(), older.all_rows()
        z = {}
        parts = {}
        for c in range(self.cells.k):
            a, b = now.mass[c] / math.fsum(now.mass), older.mass[c] / math.fsum(older.mass)
            pooled = (a * n + b * n_older) / (n + n_older)
            if pooled * n >= 1:
                z[c], parts[c] = (share_deviate(a, n, b, n_older), pooled * n), a
        rare = known.shares.judge(scale, families[0], z, more)
        found.update({("share", m, c): (parts[c], t) for c, t in rare.items()})
        noise = [family[scale] for family in families]
        shares = Squares(
            [t * t for t in rare.values()], 2.0 * len(rare),
            [doubt_of(noise[0], more, z[c][1]) for c in rare],
        )  # fmt: skip
        places, spreads = self._compare_means(found, scale, now, older, more, known, families)
        everything = Squares(
            shares.squares + places.squares + spreads.squares,
            shares.variance + places.variance + spreads.variance,
            shares.doubts + places.doubts + spreads.doubts,
        )  # fmt: skip
        self._all_of(found, "shares", scale, shares, noise[:1], known)
        self._all_of(found, "places", scale, places, noise[1:2], known)
        self._all_of(found, "spreads", scale, spreads, noise[2:], known)
        self._all_of(found, "all", scale, everything, noise, known)

    def _compare_means(
        self, found: Found, scale: int, now: Tally, older: Tally, more: float,
        known: Known, families: list[list[float]],
    ) -> tuple[Squares, Squares]:  # fmt: skip
        k, d, m = self.cells.k, self.cells.d, SCALES[scale]
        free = [max(now.rows(c) - 1, 0.0) + max(older.rows(c) - 1, 0.0) for c in range(k)]
        judged = [c for c in range(k) if now.rows(c) >= 3 and older.rows(c) >= 6]

        def moments(sums: tuple[float, float], one: Tally, c: int) -> tuple[float, float]:
            """Mean, and the summed squares about it."""
            if one.rows(c) <= 0:
                return 0.0, 0.0
            mean, square = sums[0] / one.mass[c], sums[1] / one.mass[c]
            return mean, one.rows(c) * max(square - mean**2, 0.0)

        def shifts(read: Any, least: float) -> dict[int, tuple[float, float, float, float]]:
            """Of each cell: difference of the means, its variance, the mean now and before."""
            both = [[moments(read(one, c), one, c) for one in (now, older)] for c in range(k)]
            pooled = math.fsum(a[1] + b[1] for a, b in both) / max(math.fsum(free), 1.0)
            table = {}
            for c in judged:
                (mean, within), (was, was_within) = both[c]
                variance = max((within + was_within + 10 * pooled) / (free[c] + 10), least)
                spread = (1 / now.rows(c) + 1 / older.rows(c)) * variance
                table[c] = (mean - was, spread, mean, was)
            return table

        columns = [shifts(lambda t, c, j=j: (t.scores[c][j], t.score_squares[c][j]), 0.25)
                   for j in range(d)]  # fmt: skip
        z = {c * d + j: (columns[j][c][0] / math.sqrt(columns[j][c][1]), now.rows(c))
             for c in judged for j in range(d)}  # fmt: skip
        rows = math.fsum(now.rows(c) for c in judged)
        over_all = {}
        for j in range(d):
            precision = math.fsum(1 / v for _, v, *_ in columns[j].values())
            if precision > 0:
                weighted = math.fsum(s / v for s, v, *_ in columns[j].values())
                over_all[j] = weighted / precision
                z[k * d + j] = (weighted / math.sqrt(precision), rows)
        rare = known.places.judge(scale, families[1], z, more)
        for c in judged:
            moved = [columns[j][c][0] * self.cells.sd[c][j] for j in range(d)]
            largest = max(rare[c * d + j] for j in range(d))
            found["place", m, c] = (math.hypot(*moved), largest)
        found.update({("column", m, j): (s, rare[k * d + j]) for j, s in over_all.items()})
        of_cells = [(rare[c * d + j] ** 2, doubt_of(families[1][scale], more, now.rows(c)))
                    for c in judged for j in range(d)]  # fmt: skip
        variance = 2 * len(of_cells) * d / self.cells.n_independent
        places = Squares([t for t, _ in of_cells], variance, [doubt for _, doubt in of_cells])

        table = shifts(lambda t, c: (t.spread[c], t.spread_squares[c]), 0.25 * 2 / d)
        # Squares have longer tails than scores: a quarter of the rows counts.
        z = {c: (s / math.sqrt(v), now.rows(c) / 4) for c, (s, v, *_) in table.items()}
        precision = math.fsum(1 / v for _, v, *_ in table.values())
        if precision > 0:
            weighted = math.fsum(s / v for s, v, *_ in table.values())
            z[k] = (weighted / math.sqrt(precision), rows / 4)
        rare = known.spreads.judge(scale, families[2], z, more)
        found.update({("spread", m, c): (table[c][2] / max(table[c][3], 1e-12), rare[c])
                      for c in judged})  # fmt: skip
        if precision > 0:
            ratio = [math.fsum(row[at] / row[1] for row in table.values()) for at in (2, 3)]
            found["spread", m, -1] = (ratio[0] / max(ratio[1], 1e-12), rare[k])
        spreads = Squares(
            [rare[c] ** 2 for c in judged], 2.0 * len(judged),
            [doubt_of(families[2][scale], more, now.rows(c) / 4) for c in judged],
        )  # fmt: skip
        return places, spreads

    def _all_of(
        self, found: Found, name: str, scale: int, sums: Squares, noise: list[float],
        known: Known,
    ) -> None:  # fmt: skip
        """The mean square of a family, as normal by Wilson and Hilferty, its variance learned."""
        size = len(sums.squares)
        if size < 2:
            return
        m, shown = SCALES[scale], known.means.setdefault((name, scale), [])
        count = faded([1.0] * len(shown))
        variance = (faded(shown) + 20 * m * sums.variance / size**2) / (count + 20 * m)
        mean = math.fsum(sums.squares) / size
        root = (mean ** (1 / 3) - (1 - variance / 9)) / math.sqrt(variance / 9)
        freedom = min(freedom_of(one, 10 + count / m) for one in noise)
        freedom = 1 / (1 / freedom + math.fsum(sums.doubts) / size)
        z = as_normal(root**2, freedom) if root > 0 else 0.0
        found[name, m, -1] = (mean, z)
        shown.append(min((mean - 1) ** 2, 9 * variance))

    def _far(self, found: Found, far: list[float]) -> int:
        place = min(max(math.ceil(0.01 * len(far)), 3), len(far)) - 1
        farthest, n_far = sorted(far, reverse=True)[place], 0
        if len(self.farthest) >= 15:
            known = sorted(self.farthest)
            limit = known[-1] * max(2.0, known[-1] / max(known[len(known) // 2], 1e-300))
            n_far = sum(value > limit for value in far)
            if farthest > limit:
                found["far", 1, -1] = (math.sqrt(farthest / known[-1]), 0.0)
        self.farthest = [*self.farthest, farthest][-100:]
        return n_far

    def _trend(self, found: Found) -> None:
        n, origin = len(self.batches), self.origin
        if n < 36 or (self.period and (n < 72 or (n - 36) % self.period)):
            return
        assert origin is not None
        older, lasting = self._older(1), max(self.known[0].places.begun[-1][-1], 1.0)
        for c in range(self.cells.k):
            if min(older.rows(c), origin.rows(c)) < 12:
                continue
            now = [s / older.mass[c] for s in older.scores[c]]
            then = [s / origin.mass[c] for s in origin.scores[c]]
            squares = [s / older.mass[c] for s in older.score_squares[c]]
            variance = math.fsum(max(q - x * x, 0.0) for q, x in zip(squares, now, strict=True))
            chance = lasting * variance * (1 / older.rows(c) + 1 / origin.rows(c))
            moved = math.dist(now, then if self.period else [0.0] * len(now))
            if moved > 2.5 and math.dist(now, then) ** 2 > 1.25**2 + 4 * chance:
                found["trend", n, c] = (moved, 0.0)

    def _learn(self, newest: Tally, size: int) -> None:
        self.sizes.append(float(size))
        self.n_plain = max(self.n_plain - 1, 0)
        self.batches.append((self.phase, newest))
        if len(self.batches) == (36 if self.period else 12):
            self.origin = self._older(1)
        if self.period and len(self.batches) >= 12:
            self._add_to_cycles(*self.batches[-12])


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
