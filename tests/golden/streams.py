"""A net under the models: small streams through every kind of setting, and what came out of them.

``python -m tests.golden.streams`` runs all streams and prints what came out, a JSON line each;
``--bits`` prints digests instead, of every bit of Steps, labels and states; ``--write`` writes the
stored results again (only when results are meant to change), under ``KMEANDER_ISA=baseline``.
``.ci/same-bits REVISION`` compares the digests with those of a build of another revision, so this
module knows public names only.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kmeander
from kmeander import FSKM, PSKM, Batch, ForgetfulKMeans, Step

STORED = Path(__file__).parent / "streams"

Array = NDArray[Any]
# A Step, the labels of its batch and the model's state, or None where it is not looked at.
Outcome = tuple[Step, Array | None, dict[str, Any] | None]


def jumping(seed: int, n_batches: int = 8, n_points: int = 40, n_features: int = 2) -> list[Array]:
    """Four Gaussian clusters that jump elsewhere every four batches; sizes of batches differ."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(n_batches):
        if index % 4 == 0:
            centres = rng.normal(scale=5.0, size=(4, n_features))
        members = rng.integers(4, size=n_points - index)
        batches.append(centres[members] + rng.normal(size=(len(members), n_features)))
    return batches


def learned(model: FSKM | PSKM, batches: list[Batch]) -> Iterator[Outcome]:
    for batch in batches:
        step = model.step(batch)
        yield step, model.labels, model.state()


def plain(stream: list[Array]) -> list[Batch]:
    return [Batch(index, points) for index, points in enumerate(stream)]


def in_paper(init: str, seed: int) -> Iterator[Outcome]:
    model = FSKM(4, init=init, rho=0.5, random_state=seed)
    return learned(model, plain(jumping(seed)))


def weighted() -> Iterator[Outcome]:
    rng = np.random.default_rng(31)
    batches = [
        Batch(index, points, rng.integers(0, 4, size=len(points)) + (np.arange(len(points)) == 0))
        for index, points in enumerate(jumping(11))
    ]
    return learned(FSKM(4, rho=0.6, refine=4, random_state=1), batches)


def elapsed() -> Iterator[Outcome]:
    ages = [1.0, 0.1, 2.5, 0.25, 1.0, 7.0, 0.5, 1.0]
    batches = [
        Batch(index, points, elapsed=age)
        for index, (points, age) in enumerate(zip(jumping(12), ages, strict=True))
    ]
    return learned(FSKM(4, rho=0.6, random_state=2), batches)


def float32() -> Iterator[Outcome]:
    stream = [points.astype(np.float32) for points in jumping(13, n_features=5)]
    return learned(FSKM(4, rho=0.6, refine="swaps", random_state=3), plain(stream))


def thinned() -> Iterator[Outcome]:
    model = FSKM(4, init="previous", rho=0.9, max_points=90, max_batches=6, random_state=4)
    return learned(model, plain(jumping(14, n_batches=10)))


def of_means() -> Iterator[Outcome]:
    model = FSKM(4, rho=0.6, refine="swaps", forgetting="adaptive", random_state=5)
    rng = np.random.default_rng(15)
    batches = [
        Batch.of_means(
            index, points, rng.integers(1, 9, size=len(points)), within=20.0 + index, n_rows=180
        )
        for index, points in enumerate(jumping(15))
    ]
    return learned(model, batches)


def emptied() -> Iterator[Outcome]:
    """Clusters lose all their points: batches of fewer groups than clusters, soon forgotten."""
    rng = np.random.default_rng(16)
    stream = []
    for index in range(8):
        groups = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0], [40.0, 40.0]])
        shown = groups if index < 2 else groups[:2] + 3.0 * index
        members = rng.integers(len(shown), size=30)
        stream.append(shown[members] + rng.normal(scale=0.3, size=(30, 2)))
    return learned(FSKM(5, init="previous", rho=0.1, random_state=6), plain(stream))


def privileged() -> Iterator[Outcome]:
    batches = [
        Batch(index, points, concept=index // 4)
        for index, points in enumerate(jumping(17, n_batches=9))
    ]
    return learned(PSKM(4, random_state=7), batches)


def waiting() -> Iterator[Outcome]:
    """Two distinct points, then three, then as many as there are clusters."""
    few = [np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0]]), np.array([[3.0, 0.0], [2.0, 2.0]])]
    return learned(FSKM(4, rho=0.5, random_state=8), plain([*few, *jumping(18, n_batches=5)]))


def seasonal() -> Iterator[Outcome]:
    """A cycle of three batches, shares that change after five of them, far rows in the last."""
    rng = np.random.default_rng(18)
    stream = []
    for index in range(38):
        sizes = [20, 20] if index < 15 else [36, 4]
        points = np.repeat([0.0, 20.0], sizes) + 2.0 * (index % 3) + rng.normal(size=40)
        if index == 37:
            points[:4] += 1e6
        stream.append(points[:, np.newaxis])
    return learned(FSKM(2, season=3, alarm_rate=0.1, random_state=10), plain(stream))


def resumed() -> Iterator[Outcome]:
    """The estimator, saved to a file and loaded from it after every third batch; `fit` before."""
    model = ForgetfulKMeans(4, random_state=9).fit(jumping(20)[0])
    with tempfile.TemporaryDirectory() as folder:
        for index, points in enumerate(jumping(19, n_batches=9)):
            if index % 3 == 2:
                model.save(f"{folder}/model.km")
                loaded = kmeander.load(f"{folder}/model.km")
                assert isinstance(loaded, ForgetfulKMeans)
                model = loaded
            model.partial_fit(points)
            yield model.step_, model.labels_, {"predicted": model.predict(points + 0.1)}


STREAMS: dict[str, Callable[[], Iterator[Outcome]]] = {
    "hungarian": lambda: in_paper("hungarian", 21),
    "weighted-start": lambda: in_paper("weighted", 22),
    "current": lambda: in_paper("current", 23),
    "previous": lambda: in_paper("previous", 24),
    "swaps": lambda: learned(
        FSKM(4, init="previous", rho=0.7, refine="swaps", random_state=0), plain(jumping(25))
    ),
    "adaptive": lambda: learned(
        FSKM(4, init="hungarian", rho=0.6, forgetting="adaptive", random_state=0),
        plain(jumping(26, n_batches=13)),
    ),
    "default": lambda: learned(
        FSKM(4, init="previous", rho=0.6, refine="swaps", forgetting="adaptive", random_state=0),
        plain(jumping(27, n_batches=13)),
    ),
    "auto": lambda: learned(
        FSKM(4, init="previous", rho="auto", refine=6, forgetting="adaptive", random_state=0),
        plain(jumping(28, n_batches=9)),
    ),
    "tol": lambda: learned(
        FSKM(4, rho=1.0, max_batches=3, max_iter=2, tol=0.01, random_state=0), plain(jumping(29))
    ),
    "weights": weighted,
    "elapsed": elapsed,
    "float32": float32,
    "max-points": thinned,
    "of-means": of_means,
    "emptied": emptied,
    "privileged": privileged,
    "waiting": waiting,
    "season": seasonal,
    "resumed": resumed,
}


def large(n_features: int, n_clusters: int, n_points: int, **settings: Any) -> Iterator[Outcome]:
    """Enough points for several threads, for centroids block by block and for a list of points."""
    rng = np.random.default_rng(n_features)
    batches = []
    for index in range(8):
        if index % 4 == 0:
            centres = rng.normal(scale=3.0, size=(n_clusters, n_features))
        members = rng.integers(n_clusters, size=n_points)
        batches.append(centres[members] + rng.normal(size=(n_points, n_features)))
    return learned(FSKM(n_clusters, n_threads=2, random_state=0, **settings), plain(batches))


# Too large to be stored: only their digests are compared.
LARGE: dict[str, Callable[[], Iterator[Outcome]]] = {
    "large-default": lambda: large(
        20, 25, 5000, init="previous", rho=0.6, refine="swaps", forgetting="adaptive"
    ),
    "large-hungarian": lambda: large(24, 40, 3000, init="hungarian", rho=0.7),
    "large-tables": lambda: large(128, 64, 1500, init="previous", rho=0.6),
    "large-few": lambda: large(8, 10, 20000, init="previous", rho=0.8),
}


def outcome(name: str) -> list[dict[str, Any]]:
    """Return what is stored of a stream: the Steps, and the labels as one string of digits."""
    rows = []
    for step, labels, _ in STREAMS[name]():
        row = {key: _rounded(value) for key, value in step.to_dict().items()}
        row["labels"] = None if labels is None else "".join(map(str, labels.tolist()))
        rows.append(row)
    return rows


def digest(name: str) -> str:
    """Return a digest of every bit of Steps, labels and states along a stream."""
    bits = hashlib.sha256()
    for step, labels, state in (STREAMS | LARGE)[name]():
        _feed(bits, [step.to_dict(), labels, state])
    return bits.hexdigest()


def stored(name: str) -> list[dict[str, Any]]:
    lines = (STORED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _rounded(value: Any) -> Any:
    """Return the value with floats of thirteen digits: stored results are compared to 1e-9."""
    if isinstance(value, float):
        return float(f"{value:.13g}")
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return value


def _feed(bits: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        bits.update(f"{value.dtype}{value.shape}".encode())
        bits.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            bits.update(str(key).encode())
            _feed(bits, value[key])
    elif isinstance(value, list | tuple):
        bits.update(f"[{len(value)}".encode())
        for one in value:
            _feed(bits, one)
    else:
        bits.update(repr(value).encode())


def main(mode: str | None) -> None:
    if mode == "--bits":
        for name in STREAMS | LARGE:
            print(name, digest(name))
        return
    for name in STREAMS:
        if mode == "--write":
            lines = [json.dumps(row) + "\n" for row in outcome(name)]
            STORED.mkdir(exist_ok=True)
            (STORED / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        else:
            print(json.dumps({name: outcome(name)}))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"] and os.environ.get("KMEANDER_ISA") != "baseline":
        sys.exit(
            "Stored results are those of the baseline instructions: set KMEANDER_ISA=baseline."
        )
    main(sys.argv[1] if len(sys.argv) > 1 else None)
