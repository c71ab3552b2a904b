"""How often K that follows is right: on streams of `kmeander.scenarios`, and on unchanging ones.

``python -m benchmarks.bench_number_of_clusters`` prints a line for each kind of stream:

- changing ones (births, deaths, splits, merges, all of them): the share of the batches with the
  right K, from the fourth of each concept on, and the mean adjusted Rand index of the same batches;
- unchanging ones: how often K changed after the first 20 batches, in 1000 of them;
- ``--only rivals``: the index beside that of a refit with the best silhouette, and of river's;
- ``--only cost``: time and error where K does not change, beside K given.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from benchmarks.k_rivals import RIVALS, Rival
from kmeander import DriftStream, ForgetfulKMeans
from kmeander.scenarios import evolve_clusters

Points = NDArray[np.float64]
Ids = NDArray[np.int64]

# The two nearest modes are so many standard deviations apart.
GAP = 4.0
FIRST_COUNTED = 3  # of each concept
CONCEPT = 20  # batches
RANGE = (2, 50)

# Modes that there are at first, and what happens to them.
CHANGES = {
    "births": (3, ["appear"] * 4),
    "deaths": (15, ["vanish"] * 4),
    "splits": (6, ["split"] * 4),
    "merges": (12, ["merge"] * 4),
    "all": (8, ["appear", "split", "vanish", "merge"]),
}
UNCHANGING = ("normal", "exponential", "t3", "far rows", "AR rows")


def modes(k: int, d: int, rng: np.random.Generator) -> Points:
    """Return places of which the nearest two are `GAP` apart."""
    places = [np.zeros(d)]
    while len(places) < k:
        way = rng.normal(size=d)
        way *= GAP * (1.0 + (len(places) > 1) * 3.0 * rng.random()) / np.linalg.norm(way)
        place = places[rng.integers(len(places))] + way
        if min(np.linalg.norm(place - other) for other in places) >= GAP * (1 - 1e-9):
            places.append(place)
    return np.array(places)


def concepts_of(k: int, d: int, changes: list[str], seed: int) -> list[tuple[Points, Ids]]:
    """Return rows and truth of each concept.

    Only such where the truth is one: K-means has found the modes at first, and in every concept all
    of them are `GAP` apart, also where one has gone.
    """
    which = np.repeat(np.arange(k), 200)
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt])
        points = modes(k, d, rng)[which] + rng.normal(size=(len(which), d))
        concepts = evolve_clusters(points, k, changes, random_state=attempt)
        first = concepts[0].clusters
        found = {int(np.bincount(first[which == mode]).argmax()) for mode in range(k)}
        if len(found) == k and all(
            _nearest(one.points, one.clusters) >= 0.95 * GAP for one in concepts
        ):
            return [(concept.points, concept.clusters) for concept in concepts]
    raise RuntimeError(f"none of 1000 streams of {k} modes had a truth that is one.")


def _nearest(points: Points, clusters: Ids) -> float:
    """Return how far apart the two nearest means are."""
    means = np.array([points[clusters == number].mean(axis=0) for number in np.unique(clusters)])
    apart = np.linalg.norm(means[:, np.newaxis] - means, axis=2)
    return float(apart[np.triu_indices(len(means), 1)].min())


def many(seed: int) -> list[tuple[Points, Ids]]:
    """Return 40 modes, then one more, then one less: more than K-means finds by itself."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(41), 200)
    points = modes(41, 8, rng)[which] + rng.normal(size=(len(which), 8))
    parts = (which < 40, which < 41, which > 0)
    return [(points[part], which[part]) for part in parts]


def changing(
    k: int, d: int, changes: list[str], seed: int, n_rows: int
) -> Iterator[tuple[Points, Ids, bool]]:
    """Yield the rows of each batch, their clusters, and whether the batch is counted."""
    concepts = concepts_of(k, d, changes, seed) if k < 40 else many(seed)
    stream = DriftStream([rows for rows, _ in concepts], n_rows, CONCEPT, random_state=seed)
    for index in range(len(stream)):
        concept, rows = stream.draw(index)
        truth = concepts[int(concept[0])][1][rows]
        yield stream.batch(index).astype(np.float64), truth, index % CONCEPT >= FIRST_COUNTED


def unchanging(kind: str, k: int, d: int, seed: int, n_rows: int) -> Iterator[Points]:
    """Yield batches without end from modes that stay."""
    rng = np.random.default_rng(seed)
    places = modes(k, d, rng)
    state = rng.normal(size=(20, d))
    while True:
        which = rng.integers(k, size=n_rows)
        if kind == "exponential":
            noise = rng.exponential(size=(n_rows, d)) - 1.0
        elif kind == "t3":
            noise = rng.standard_t(3, size=(n_rows, d)) / np.sqrt(3.0)
        else:
            noise = rng.normal(size=(n_rows, d))
        if kind == "far rows":
            noise[rng.random(n_rows) < 0.01] *= 20.0
        if kind == "AR rows":  # twenty devices, each in a mode of its own
            which = np.tile(np.arange(20) % k, n_rows // 20)
            for row in range(n_rows // 20):
                state = 0.9 * state + np.sqrt(0.19) * rng.normal(size=(20, d))
                noise[20 * row : 20 * (row + 1)] = state
        yield places[which] + noise


def follow(stream: Iterator[tuple[Points, Ids, bool]], seed: int) -> tuple[float, float]:
    """Return the share of counted batches with the right K, and their mean Rand index."""
    model = ForgetfulKMeans(RANGE, random_state=seed)
    right, index = [], []
    for points, truth, is_counted in stream:
        labels = model.partial_fit(points).labels_
        if is_counted:
            right.append(model.n_clusters_ == len(np.unique(truth)))
            index.append(adjusted_rand_score(truth, labels))
    return float(np.mean(right)), float(np.mean(index))


def changes_of_k(stream: Iterator[Points], seed: int, n_batches: int) -> tuple[int, float]:
    """Return how often K changed after 20 batches, and its mean."""
    model = ForgetfulKMeans(RANGE, random_state=seed)
    found = np.array([model.partial_fit(next(stream)).n_clusters_ for _ in range(n_batches + 20)])
    return int(np.count_nonzero(np.diff(found[20:]))), float(found[20:].mean())


def costs(k: int, d: int, seed: int, n_rows: int, n_batches: int) -> tuple[float, float]:
    """Return time and window error where K follows, over those of K given; taken in turn."""
    stream = unchanging("normal", k, d, seed, n_rows)
    models: list[Any] = [ForgetfulKMeans(n, random_state=seed) for n in (RANGE, k)]
    seconds, errors = np.zeros(2), np.zeros(2)
    for index in range(n_batches):
        points = next(stream)
        for which in (0, 1) if index % 2 else (1, 0):
            begun = process_time()
            models[which].partial_fit(points)
            if index >= 20 and models[0].n_clusters_ == k:
                seconds[which] += process_time() - begun
                errors[which] += models[which].surrogate_error_
    return seconds[0] / seconds[1], errors[0] / errors[1]


def print_changing(given: argparse.Namespace) -> None:
    """Print how often K is right, for each kind of change and number of columns."""
    print("change      d  N     K right  ARI    (worst seed)")
    shapes = [(kind, d, 500) for kind in CHANGES for d in given.columns]
    for kind, d, n_rows in shapes:
        k, changes = CHANGES[kind]
        found = [follow(changing(k, d, changes, s, n_rows), s) for s in range(given.seeds)]
        right, index = np.mean(found, axis=0)
        worst = np.min(found, axis=0)
        print(f"{kind:10} {d:2}  {n_rows:4}  {right:.3f}    {index:.3f}  "
              f"({worst[0]:.3f}, {worst[1]:.3f})", flush=True)  # fmt: skip
    if given.large:
        found = [follow(changing(40, 8, [], s, 5000), s) for s in range(2)]
        right, index = np.mean(found, axis=0)
        print(f"40 modes    8  5000  {right:.3f}    {index:.3f}", flush=True)


def print_unchanging(given: argparse.Namespace) -> None:
    """Print how often K changes where nothing does."""
    print("\nunchanging   d  changes of K in 1000 batches, mean K of 6 modes")
    for kind in UNCHANGING:
        for d in given.columns[:2]:
            found = [
                changes_of_k(unchanging(kind, 6, d, seed, 500), seed, given.batches)
                for seed in range(given.seeds)
            ]
            n_changes, mean = np.sum([one[0] for one in found]), np.mean([one[1] for one in found])
            per_thousand = 1000 * n_changes / (given.batches * given.seeds)
            print(f"{kind:11} {d:2}  {per_thousand:.2f}  {mean:.2f}", flush=True)


def print_rivals(given: argparse.Namespace) -> None:
    """Print the Rand index of everybody on each kind of change."""
    print("\nchange      d  kmeander  " + "  ".join(RIVALS))
    for kind, (k, changes) in CHANGES.items():
        for d in given.columns[:2]:
            stream = list(changing(k, d, changes, 0, 500))
            own = follow(iter(stream), 0)[1]
            others = [judged(rival, stream) for rival in RIVALS.values()]
            print(f"{kind:10} {d:2}  {own:8.3f}  " + "  ".join(
                f"{index:{len(name)}.3f}" for name, index in zip(RIVALS, others, strict=True)
            ), flush=True)  # fmt: skip


def judged(rival: Rival, stream: list[tuple[Points, Ids, bool]]) -> float:
    """Return the mean index of a rival on the counted batches that it came to in ten minutes."""
    tenth = [points for points, _, _ in stream[: len(stream) // 10]]
    truths = [truth for _, truth, _ in stream[: len(stream) // 10]]
    learn = rival(tenth, truths)
    begun, index = process_time(), []
    for points, truth, is_counted in stream:
        labels = learn(points)
        if is_counted:
            index.append(adjusted_rand_score(truth, labels))
        if process_time() - begun > 600.0:
            break
    return float(np.mean(index)) if index else float("nan")


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 8, 30])
    parser.add_argument("--large", action="store_true", help="5000 rows of 40 modes, too")
    parser.add_argument("--only", choices=["changing", "unchanging", "rivals", "cost"])
    given = parser.parse_args()
    if given.only in (None, "changing"):
        print_changing(given)
    if given.only in (None, "unchanging"):
        print_unchanging(given)
    if given.only == "rivals":
        print_rivals(given)
    if given.only in (None, "cost"):
        print("\nK that does not change, beside K given: time, window error")
        for k, d, n_rows in ((6, 2, 500), (10, 8, 500), (25, 20, 5000)):
            ratio, error = costs(k, d, 0, n_rows, 100)
            print(f"K {k:2}  d {d:2}  N {n_rows:4}  {ratio:.2f}  {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
