"""What ids, events and explanations cost, and how long report and live page take.

    python -m benchmarks.bench_follow [--quick]

A step's time with and without following, on drifting mixtures; the report of a long run; the time
from a line in the steps file to the data that the live page sends to a browser. All in processor
time, as other programs may run beside.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import kmeander
from benchmarks.streams import Array, Shape, mixture
from kmeander import FSKM, Batch
from kmeander.models import fskm
from kmeander.tracking.tracker import Tracked, track

SHAPES = [Shape(500, 10, 8), Shape(500, 25, 20), Shape(5000, 25, 20), Shape(5000, 100, 32)]
SETTINGS = {
    "default": {"init": "previous", "refine": "swaps", "forgetting": "adaptive", "rho": 0.6},
    "paper": {"init": "hungarian", "rho": 0.6},
    "previous": {"init": "previous", "rho": 0.6},
}
WARM_UP = 15


def shares_of_a_step(shape: Shape, settings: dict[str, object], n_batches: int) -> list[float]:
    """Time spent on following over the rest of the step: typical, and mean with the drifts."""
    spent: list[float] = []

    def timed(*arguments: Any, **named: Any) -> Tracked:
        begun = time.process_time()
        found = track(*arguments, **named)
        spent.append(time.process_time() - begun)
        return found

    model = FSKM(shape.n_clusters, **settings, n_threads=1, random_state=0)  # type: ignore[arg-type]
    steps = []
    with patch.object(fskm, "track", timed):
        batches = mixture(shape).batches(0)
        for index, points in zip(range(WARM_UP + n_batches), batches, strict=False):
            batch = Batch(index, points)
            begun = time.process_time()
            model.step(batch)
            steps.append(time.process_time() - begun)
    ours, all_of_it = np.array(spent[WARM_UP:]), np.array(steps[WARM_UP + 1 :])
    rest = all_of_it - ours
    return [float(np.median(ours / rest)), float(ours.sum() / rest.sum())]


def long_run(path: Path, n_batches: int) -> None:
    shape = Shape(100, 25, 20)

    def batches() -> Iterator[Array]:
        for _, points in zip(range(n_batches), mixture(shape).batches(0), strict=False):
            yield points

    kmeander.run(batches(), shape.n_clusters, steps=path, n_threads=1)


def report_time(steps: Path) -> tuple[float, float, float]:
    """Seconds to read, seconds to draw, megabytes."""
    from kmeander.page.report import as_page
    from kmeander.page.timeline import read_timeline

    begun = time.process_time()
    timeline = read_timeline(steps)
    read = time.process_time()
    page = as_page(timeline)
    return read - begun, time.process_time() - read, len(page.encode()) / 1e6


def update_time(steps: Path, n_shown: int) -> float:
    """Median seconds from a new line to what the browser is sent."""
    from bokeh.document import Document

    from kmeander.page.follower import PAUSE
    from kmeander.page.layout import Layout
    from kmeander.page.timeline import Timeline

    lines = steps.read_text().splitlines()
    timeline = Timeline(keep=n_shown)
    for number, line in enumerate(lines[:-30], start=1):
        timeline.add(line, number)
    layout = Layout(timeline)
    document = Document()
    document.add_root(layout.root())
    sent: list[object] = []
    document.on_change(lambda event: sent.append(event))
    times = []
    for number, line in enumerate(lines[-30:], start=len(lines) - 29):
        begun = time.process_time()
        timeline.add(line, number)
        layout.update(timeline)
        layout.refresh_axes()
        times.append(time.process_time() - begun)
    assert sent
    return statistics.median(times) + PAUSE / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer batches")
    quick = parser.parse_args().quick
    print("ids, events and explanations, share of the rest of a step (asked: at most 10 %)")
    for name, settings in SETTINGS.items():
        for shape in SHAPES[:2] if quick else SHAPES:
            typical, mean = shares_of_a_step(shape, settings, 20 if quick else 60)
            print(f"  {name:9} {shape!s:13} typical {typical:6.1%}, mean {mean:6.1%}")
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps.jsonl"
        n_batches = 500 if quick else 10_000
        long_run(steps, n_batches)
        read, draw, size = report_time(steps)
        print(
            f"report of {n_batches:,} batches x 25 clusters x 20 columns: {read + draw:.1f} s "
            f"(reading {read:.1f}), {size:.1f} MB (asked: under 10 s, under 15 MB)"
        )
        print(
            f"live page, 200 batches shown: {1e3 * update_time(steps, 200):.0f} ms from line to "
            "browser, waits included, without the browser's own drawing (asked: under 200)"
        )


if __name__ == "__main__":
    main()
