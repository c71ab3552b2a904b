"""What share of ordinary rows passes `novelty_threshold`, on streams that do not change.

Each batch is scored before it is learned, against the threshold found then; the first 20 batches
are not counted. ``python -m benchmarks.bench_novelty`` prints the table.
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np

from kmeander import ForgetfulKMeans
from kmeander.experiments.alarms.streams import STREAMS, Stream

RATES = (0.1, 0.01, 0.001)
WARM_UP = 20


def shares(stream: Stream, seed: int, n_batches: int) -> list[float]:
    """Return the share of rows that pass the threshold of each rate."""
    model = ForgetfulKMeans(stream.n_clusters, season=stream.season, random_state=seed)
    n_over, n_rows = np.zeros(len(RATES)), 0
    for index, batch in enumerate(islice(stream.batches(seed), n_batches)):
        if index >= WARM_UP:
            scores = model.score_samples(batch)
            # Where so few rows are remembered that none can say, nothing passes.
            for place, rate in enumerate(RATES):
                n_over[place] += (scores > threshold(model, rate)).sum()
            n_rows += len(batch)
        model.partial_fit(batch)
    return list(n_over / n_rows)


def threshold(model: ForgetfulKMeans, rate: float) -> float:
    """Return the threshold, infinite where too little is remembered to know it."""
    try:
        return model.novelty_threshold(rate)
    except ValueError:
        return np.inf


def main() -> None:
    """Print a line for each stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print("stream".ljust(34), *(f"{rate:>8}" for rate in RATES))
    for name, stream in STREAMS.items():
        if stream.rows_of:  # the same rows, and a model that is told of a season
            continue
        found = [shares(stream, seed, given.batches) for seed in range(given.seeds)]
        print(name.ljust(34), *(f"{share:8.4f}" for share in np.mean(found, axis=0)), flush=True)


if __name__ == "__main__":
    main()
