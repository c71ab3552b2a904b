"""The loop of benchmarks on the paper's datasets: a line of the table for each dataset and K."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from kmeander.arrays import Points
from kmeander.experiments.datasets import load_datasets


class Costs(Protocol):
    """What was measured on one dataset with one K."""

    @property
    def excess(self) -> Sequence[float]:
        """Error over that of the exact model, less one; per batch."""

    def row(self) -> str:
        """Return one line of the table."""


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all of these benchmarks ask for."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the paper's datasets")
    parser.add_argument("--init", default="previous")
    parser.add_argument("--clusters", type=int, nargs="+", default=[5, 10, 25])
    parser.add_argument("--datasets", nargs="+", help="only these")
    return parser


def print_table(
    folder: Path,
    max_rows: int,
    clusters: Sequence[int],
    only: Sequence[str] | None,
    header: str,
    measure: Callable[[str, Points, int], Costs],
) -> None:
    """Measure each dataset with each K, and print what comes out as it comes."""
    datasets, missing = load_datasets(folder, max_rows)
    for absent in missing:
        print(absent)
    print(header)
    for n_clusters in clusters:
        means = []
        for dataset in datasets:
            if only and dataset.key not in only:
                continue
            costs = measure(dataset.key, dataset.points, n_clusters)
            print(costs.row(), flush=True)
            means.append(statistics.mean(costs.excess))
        print(
            f"K = {n_clusters}: excess {100 * statistics.mean(means):.3f} % on average, "
            f"{100 * max(means):.3f} % on the worst dataset",
            flush=True,
        )
