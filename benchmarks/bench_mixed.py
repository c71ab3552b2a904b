"""Mixed frames, with gaps and skew, beside K-prototypes: ``python -m benchmarks.bench_mixed``.

Ten streams of frames are made: numbers on scales from 0.01 to 1000, some of them skewed, words,
truths, and one value in twenty missing. kmeander prepares them itself. K-prototypes (kmodes) gets
its gaps filled and its numbers standardised, five starts, and the newest rows at each of the two
moments at which both are asked for the clusters of rows that neither has seen: before the stream
changes, and ten batches after every cluster has moved.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from kmeander import ForgetfulKMeans

N_CLUSTERS, N_ROWS, N_BATCHES = 5, 500, 10
MISSING = 0.05
FITTED_ROWS, TESTED_ROWS = 1000, 2000  # of K-prototypes, whose time grows fast
NUMBERS = ("height", "weight", "income", "delay")
WORDS = {"color": 4, "country": 6, "plan": 3}
SEEDS = range(10)


@dataclass(frozen=True)
class MixedConcept:
    """Where the clusters of a mixed stream are."""

    centres: NDArray[np.float64]  # (n_clusters, numbers)
    chances: dict[str, NDArray[np.float64]]  # of each level, by cluster
    truth: NDArray[np.float64]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> MixedConcept:
        """Draw clusters, some apart by their numbers, some by their categories."""
        centres = rng.normal(0, 2.5, (N_CLUSTERS, len(NUMBERS)))
        chances = {
            name: rng.dirichlet(np.full(levels, 0.3), N_CLUSTERS) for name, levels in WORDS.items()
        }
        return cls(centres, chances, rng.uniform(0.05, 0.95, N_CLUSTERS))

    def rows(self, n_rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """Draw rows, and the cluster of each."""
        clusters = rng.integers(N_CLUSTERS, size=n_rows)
        numbers = self.centres[clusters] + rng.normal(size=(n_rows, len(NUMBERS)))
        frame = pd.DataFrame({
            "height": 170 + 0.01 * numbers[:, 0],
            "weight": 70 + 10 * numbers[:, 1],
            "income": 1000 * np.exp(0.5 * numbers[:, 2]),
            "delay": numbers[:, 3],
            **{
                name: _drawn(chances[clusters], name, rng)
                for name, chances in self.chances.items()
            },
            "member": rng.random(n_rows) < self.truth[clusters],
        })  # fmt: skip
        gone = rng.random(frame.shape) < MISSING
        return frame.astype({"member": object}).mask(gone, None), clusters


def _drawn(
    chances: NDArray[np.float64], name: str, rng: np.random.Generator
) -> NDArray[np.object_]:
    levels = (rng.random((len(chances), 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return np.array(
        [f"{name}{level}" for level in np.minimum(levels, chances.shape[1] - 1)], object
    )


def k_prototypes(rows: pd.DataFrame, later: pd.DataFrame, seed: int) -> NDArray[np.int64]:
    """Return the clusters of `later` by K-prototypes on `rows`, best of five starts."""
    from kmodes.kprototypes import KPrototypes

    words = [*WORDS, "member"]

    def filled(frame: pd.DataFrame) -> NDArray[Any]:
        numbers = frame[list(NUMBERS)].astype(float)
        known = rows[list(NUMBERS)].astype(float)
        numbers = (numbers.fillna(known.median()) - known.mean()) / known.std()
        usual = rows[words].mode().iloc[0]
        texts = frame[words].where(frame[words].notna(), usual, axis=1).astype(str)
        return np.column_stack([numbers.to_numpy(dtype=object), texts.to_numpy(dtype=object)])

    places = list(range(len(NUMBERS), len(NUMBERS) + len(words)))
    model = KPrototypes(N_CLUSTERS, n_init=5, random_state=seed, n_jobs=1)
    model.fit(filled(rows), categorical=places)
    found: NDArray[np.int64] = model.predict(filled(later), categorical=places)
    return found


def agreements(seed: int, *, beside_peer: bool = True) -> dict[str, float]:
    """Return the agreement (ARI) of both with the truth, before and after the change."""
    rng = np.random.default_rng(seed)
    model = ForgetfulKMeans(N_CLUSTERS, prepare="auto", random_state=seed)
    found = {}
    for moment in ("before", "after"):
        concept = MixedConcept.drawn(rng)
        batches = [concept.rows(N_ROWS, rng)[0] for _ in range(N_BATCHES)]
        for batch in batches:
            model.partial_fit(batch)
        later, truth = concept.rows(TESTED_ROWS, rng)
        found[f"kmeander {moment}"] = adjusted_rand_score(truth, model.predict(later))
        if beside_peer:
            newest = pd.concat(batches[-(FITTED_ROWS // N_ROWS) :])
            labels = k_prototypes(newest, later, seed)
            found[f"K-prototypes {moment}"] = adjusted_rand_score(truth, labels)
    return found


def main() -> int:
    """Print the agreement of each seed, and the means."""
    table = pd.DataFrame([agreements(seed) for seed in SEEDS], index=list(SEEDS))
    print(table.round(3).to_string())
    print(table.mean().round(3).to_string())
    means = table.mean()
    return int(
        any(means[f"kmeander {m}"] < means[f"K-prototypes {m}"] for m in ("before", "after"))
    )


if __name__ == "__main__":
    sys.exit(main())
