"""``kill -9`` at random moments, again and again, until the run is through."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from faults.recipes import CHECKPOINT, RECIPES, Recipe, Verdict
from faults.table import Row
from kmeander.storage.reading import lines_of

KILLS = 200
# Arguments come as JSON; the program would need them as words.
RUN = "import json, sys, kmeander; kmeander.run(**json.loads(sys.argv[1]), tell=lambda _: None)"


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each recipe."""
    n_kills = -(-KILLS // len(RECIPES)) if not quick else 2
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            yield kill(recipe, Path(folder), n_kills)


def kill(recipe: Recipe, folder: Path, n_kills: int) -> Row:
    """Kill a run at least so many times, and compare what it ends with."""
    source = recipe.source(folder)
    whole = _made(folder / "undisturbed")
    if _start(recipe, source, whole).wait():
        raise AssertionError(f"{recipe.name} fails even when nothing happens to it.")
    verdict = Verdict(recipe, whole)
    n_steps = _n_steps(whole)
    rng = np.random.default_rng(0)
    done = 0
    for trial in itertools.count():
        if done >= n_kills:
            break
        out = _made(folder / f"killed-{trial}")
        for target in np.sort(rng.integers(0, n_steps - 2, size=4)).tolist():
            done += _kill(_start(recipe, source, out), out, target, rng.uniform(0, 0.02))
        ended_well = _start(recipe, source, out).wait() == 0
        verdict.add(out, ended_well=ended_well)
    made = verdict.row(f"kill -9: {recipe.name}")
    return Row(made.fault, done, made.lost, made.duplicated, made.wrong)


def _start(recipe: Recipe, source: Path, out: Path) -> subprocess.Popen[bytes]:
    arguments = json.dumps(recipe.arguments(source, out, out / CHECKPOINT))
    return subprocess.Popen(
        [sys.executable, "-c", RUN, arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _kill(process: subprocess.Popen[bytes], out: Path, n_steps: int, delay: float) -> bool:
    """Kill a run a moment after it wrote so many Steps; say whether it was still running."""
    while process.poll() is None and _n_steps(out) <= n_steps:
        time.sleep(0.001)
    time.sleep(delay)
    was_running = process.poll() is None
    process.kill()
    process.wait()
    return was_running


def _n_steps(out: Path) -> int:
    """Return how many Steps a run has written so far, to a file or to a folder of parts."""
    steps = next((out / name for name in ("steps.jsonl", "steps") if (out / name).exists()), None)
    return 0 if steps is None else sum(line.endswith(b"\n") for line in lines_of(steps))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
