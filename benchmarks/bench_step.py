"""What a small calm step costs in Python: calls, files walked, and time beside another revision.

    python -m benchmarks.bench_step [--against REVISION] [--processes 5]

Counts the calls of functions of kmeander, and the files they stand in, within one `partial_fit` of
the default on 500 rows of 8 columns, and measures what the change test adds to a step, there and on
5000 rows of 32 columns with 100 clusters. With --against, builds that revision aside and times a
step of both, in turns, each process on one thread; the median of the processes' medians is
compared. Times are those of the processor, so that what else the machine does matters less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import kmeander
from kmeander import Batch, ForgetfulKMeans

N_POINTS, N_CLUSTERS, N_FEATURES = 500, 10, 8
MOST_CALLS, MOST_FILES, MOST_TIME, MOST_TESTED = 70, 12, 0.85, 0.1
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "previous": {"refine": None, "forgetting": "fixed"},
}


def stream(
    n_batches: int, n_points: int = N_POINTS, k: int = N_CLUSTERS, d: int = N_FEATURES
) -> list[Any]:
    """Gaussian clusters that stay where they are."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=5.0, size=(k, d))
    return [
        centres[rng.integers(k, size=n_points)] + rng.normal(size=(n_points, d))
        for _ in range(n_batches)
    ]


def calls_of_a_step(n_warm: int = 21) -> Counter[tuple[str, str]]:
    """File and name of each function of kmeander that one calm `partial_fit` calls, counted."""
    package = str(Path(kmeander.__file__).parent)
    *warm, last = stream(n_warm)
    model = ForgetfulKMeans(N_CLUSTERS, n_threads=1, random_state=0)
    for points in warm:
        model.partial_fit(points)
    found: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            found[code.co_filename.removeprefix(package + "/"), code.co_qualname] += 1

    sys.setprofile(count)
    try:
        model.partial_fit(last)
    finally:
        sys.setprofile(None)
    if model.step_.events:
        raise SystemExit("The step that is counted must be a calm one.")
    return found


def median_step(setting: str, n_batches: int = 300) -> float:
    """Median processor seconds of a `partial_fit` in this process."""
    batches = stream(40)
    model = ForgetfulKMeans(N_CLUSTERS, n_threads=1, random_state=0, **SETTINGS[setting])
    times = []
    for index in range(n_batches):
        begun = time.process_time()
        model.partial_fit(batches[index % len(batches)])
        times.append(time.process_time() - begun)
    return statistics.median(times[50:])


def share_of_the_change_test(n_points: int, k: int, d: int, n_batches: int) -> float:
    """Processor time of the change test over that of the rest of a default step; the median."""
    from kmeander.models import FSKM, fskm
    from kmeander.models.settings import DEFAULTS

    test, tested = vars(fskm)["look_for_changes"], [0.0]

    def timed(*args: Any) -> Any:
        begun = time.process_time()
        found = test(*args)
        tested[0] = time.process_time() - begun
        return found

    shares = []
    model = FSKM(k, n_threads=1, random_state=0, **DEFAULTS)
    vars(fskm)["look_for_changes"] = timed
    try:
        for index, points in enumerate(stream(n_batches, n_points, k, d)):
            batch = Batch(index, points)
            begun = time.process_time()
            model.step(batch)
            rest = time.process_time() - begun - tested[0]
            shares.append(tested[0] / rest)
    finally:
        vars(fskm)["look_for_changes"] = test
    return statistics.median(shares[n_batches // 3 :])


def in_processes(revision: str, n_processes: int) -> dict[str, float]:
    """Time of a step over that of the other revision, for each setting."""
    root = Path(__file__).parent.parent
    built = subprocess.run([root / ".ci/build-of", revision], capture_output=True, text=True)
    if built.returncode:
        raise SystemExit(built.stderr)
    outside, path = built.stdout.split()
    scratch = root / "build" / "bench-step"
    scratch.mkdir(parents=True, exist_ok=True)
    script = scratch / "bench_step.py"
    script.write_bytes(Path(__file__).read_bytes())
    ratios = {}
    for setting in SETTINGS:
        now: list[float] = []
        then: list[float] = []
        for _ in range(n_processes):
            for python, where, times in ((sys.executable, None, now), (outside, path, then)):
                environment = {**os.environ, **({} if where is None else {"PYTHONPATH": where})}
                done = subprocess.run(
                    [python, str(script), "--time", setting],
                    env=environment, cwd=scratch, capture_output=True, text=True, check=True,
                )  # fmt: skip
                times.append(float(done.stdout))
        ratios[setting] = statistics.median(now) / statistics.median(then)
        print(
            f"{setting}: {statistics.median(now) * 1e6:.0f} us now, "
            f"{statistics.median(then) * 1e6:.0f} us with {revision}"
        )
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", help="a revision to compare the time of a step with")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--list", action="store_true", help="name every function called")
    parser.add_argument("--time", choices=SETTINGS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        print(median_step(options.time))
        return
    calls = calls_of_a_step()
    if options.list:
        for (file, name), count in calls.items():
            print(f"{count:4} {file} {name}")
    n_calls, n_files = sum(calls.values()), len({file for file, _ in calls})
    print(f"calls of kmeander's functions: {n_calls} (asked: at most {MOST_CALLS})")
    print(f"files they stand in: {n_files} (asked: at most {MOST_FILES})")
    for n_points, k, d, n_batches in ((500, 10, 8, 150), (5000, 100, 32, 30)):
        share = share_of_the_change_test(n_points, k, d, n_batches)
        print(
            f"change test, {n_points} rows, K {k}, {d} columns: {share:.1%} of the rest of a step "
            f"(asked: at most {MOST_TESTED:.0%})"
        )
    if options.against:
        for setting, ratio in in_processes(options.against, options.processes).items():
            print(f"{setting}: {ratio:.2f} of the time (asked: at most {MOST_TIME})")


if __name__ == "__main__":
    main()
