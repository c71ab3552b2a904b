"""kmeander beside its peers on the same streams in one run: time, distances, memory, error.

    python -m benchmarks.bench_peers [--quick] [--data FOLDER] [--json FILE] [--picture FILE]

Everybody runs every stream by itself, in a process of its own, in turns, several times with other
seeds. Those that refit the window start where kmeander started and must end with its labels. Times
are of every batch that finds its window full, drifts included; machines are noisy, so read ratios.
Ctrl-C ends the run early: what was measured until then is shown and written.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import kmeander
from benchmarks.contestants import (
    RHO,
    WINDOW,
    Contestant,
    Kmeander,
    KmeanderHungarian,
    PlainKernel,
    timed,
)
from benchmarks.goals import Goal, goals_of_the_races, goals_of_their_own
from benchmarks.peers import (
    Faiss,
    MiniBatch,
    RiverKMeans,
    RiverStreamKMeans,
    ScikitLearnElkan,
    ScikitLearnHungarian,
    ScikitLearnLloyd,
)
from benchmarks.picture import draw
from benchmarks.race import Plan, Run, n_cores, race
from benchmarks.streams import Shape, Stream, mixture, real_streams
from benchmarks.tables import goal_lines, race_lines, readme_lines
from kmeander import _kernel

Kinds = Sequence[type[Contestant]]

EVERYBODY: Kinds = (
    Kmeander, PlainKernel, ScikitLearnLloyd, ScikitLearnElkan, Faiss, MiniBatch,
    KmeanderHungarian, ScikitLearnHungarian, RiverKMeans, RiverStreamKMeans,
)  # fmt: skip
# Where refits of the window take seconds: the hungarian start is asked for at smaller shapes only.
ON_LARGE: Kinds = tuple(kind for kind in EVERYBODY if kind is not ScikitLearnHungarian)
SMALL_RIVALS: Kinds = (Kmeander, MiniBatch)
PARALLEL: Kinds = tuple(
    kind for kind in EVERYBODY if kind.parallel and kind is not ScikitLearnHungarian
)

PLANS: dict[Shape, tuple[Plan, Kinds]] = {
    Shape(500, 10, 8): (Plan(5, 30), EVERYBODY),
    Shape(500, 25, 20): (Plan(5, 30), EVERYBODY),
    Shape(1000, 25, 20): (Plan(5, 30), SMALL_RIVALS),
    Shape(5000, 25, 20): (Plan(3, 20), EVERYBODY),
    Shape(5000, 100, 32): (Plan(2, 20, scored_every=5), EVERYBODY),
    Shape(2000, 64, 128): (Plan(2, 20, scored_every=5), EVERYBODY),
    Shape(50000, 50, 20): (Plan(1, 10, scored_every=5), ON_LARGE),
    Shape(5000, 256, 256): (Plan(1, 10, scored_every=5), ON_LARGE),
}
ALL_CORES_PLAN = Plan(1, 10, scored_every=10, patience=10.0, awaited=(Kmeander,))
REAL_PLAN = Plan(1, 20, patience=4.0)
QUICK_PLAN = Plan(1, 10, scored_every=5, patience=2.0)
N_QUICK = 4  # the first shapes, those of small batches


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small shapes, once: half a minute")
    parser.add_argument("--data", type=Path, help="folder with the paper's datasets")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--picture", type=Path, help="draw them here")
    arguments = parser.parse_args()
    spent, results = timed(run, arguments.quick, arguments.data)
    print(f"\nTook {spent.wall:.0f} s.")
    if arguments.json:
        arguments.json.write_text(json.dumps(results) + "\n", encoding="utf-8")
        print(f"Results: {arguments.json}")
    if arguments.picture:
        draw(results).savefig(arguments.picture, dpi=150)
        print(f"Picture: {arguments.picture}")


def run(quick: bool, folder: Path | None) -> dict[str, Any]:
    """Run everything, print as it comes, and return it all."""
    versions = machine_and_versions()
    print(
        f"{versions['machine']}; "
        + ", ".join(f"{name} {version}" for name, version in versions["versions"].items())
        + f"\nWindow of {WINDOW} batches, rho {RHO}, init previous unless it says otherwise\n"
    )
    alone: dict[Shape, Mapping[str, Run]] = {}
    races: list[dict[str, Any]] = []
    goals: list[Goal] = []
    try:
        for shape, (plan, kinds) in list(PLANS.items())[: N_QUICK if quick else None]:
            stream = mixture(shape)
            alone[shape] = _race(stream, QUICK_PLAN if quick else plan, kinds, 1, races)
            if kinds is not SMALL_RIVALS and n_cores() > 1:
                _race(stream, ALL_CORES_PLAN, PARALLEL, None, races)
        for stream in [] if folder is None else real_streams(folder):
            _race(stream, QUICK_PLAN if quick else REAL_PLAN, ON_LARGE, 1, races)
        goals += goals_of_their_own(10 if quick else 30, large=not quick)
    except KeyboardInterrupt:
        print("\nInterrupted: what follows is of what had been measured.\n")
    goals = [*goals_of_the_races(alone), *goals]
    print("What was asked for (one thread each, means over all batches)")
    print("\n".join(goal_lines(goals)))
    print("\nFor docs/speed.md (one thread each, means)")
    print("\n".join(readme_lines(alone)))
    return {**versions, "quick": quick, "races": races, "goals": [goal.summary() for goal in goals]}


def _race(
    stream: Stream, plan: Plan, kinds: Kinds, n_threads: int | None, races: list[dict[str, Any]]
) -> dict[str, Run]:
    runs = race(stream, plan, kinds, n_threads)
    threads = "one thread each" if n_threads == 1 else f"all cores ({n_cores()})"
    print("\n".join(race_lines(stream, runs, threads)), end="\n\n", flush=True)
    races.append(
        {
            "stream": stream.name,
            "shape": str(stream.shape),
            "n_threads": n_threads,
            "runs": [
                {**run.summary(), "times_kmeander": run.times_slower(runs[Kmeander.name])}
                for run in runs.values()
            ],
        }
    )
    return runs


def machine_and_versions() -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "machine": f"{_processor()}, {n_cores()} cores, {_kernel.instruction_set()}",
        "versions": {
            "kmeander": kmeander.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "Python": platform.python_version(),
        },
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
