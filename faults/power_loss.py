"""The power is lost after each single operation on the disk; the same command is run again."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import kmeander
from faults.disks import ForgetfulDisk, PowerLoss, Tree, restore
from faults.recipes import CHECKPOINT, RECIPES, Recipe, Verdict
from faults.table import Row
from kmeander.sources import byte_streams
from kmeander.storage.disk import exchanged

# In a quick pass the power is lost after every so many operations.
QUICK_STRIDE = 29


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each recipe."""
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            yield lose_power(recipe, Path(folder), QUICK_STRIDE if quick else 1)


def lose_power(recipe: Recipe, folder: Path, stride: int, *, first: int = 0) -> Row:
    """Lose the power after every `stride`-th operation of a run, from `first` on."""
    source = recipe.source(folder)
    with patch.object(byte_streams, "PAUSE", 0.001):
        n_operations, verdict = _undisturbed(recipe, source, folder)
        for at in range(first, n_operations, stride):
            for tree in _lost(recipe, source, _emptied(folder / "root"), at):
                _go_on(recipe, source, folder / "root", tree, verdict)
    return verdict.row(f"power lost after an operation: {recipe.name}")


def _emptied(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    restore(root, {root / "out": None})
    return root


def _run(recipe: Recipe, source: Path, root: Path, disk: ForgetfulDisk) -> list[str]:
    """Run on a disk, and return what was said."""
    said: list[str] = []
    # The folders above the checkpoints are new, too.
    arguments = recipe.arguments(source, root / "out", root / CHECKPOINT / "of" / "it")
    with exchanged(disk):
        kmeander.run(**arguments, tell=said.append)
    return said


def _undisturbed(recipe: Recipe, source: Path, folder: Path) -> tuple[int, Verdict]:
    root = _emptied(folder / "undisturbed")
    disk = ForgetfulDisk(root)
    _run(recipe, source, root, disk)
    return disk.n_operations, Verdict(recipe, root / "out")


def _lost(recipe: Recipe, source: Path, root: Path, at: int) -> list[Tree]:
    """Lose the power once, and return what may be left."""
    disk = ForgetfulDisk(root, at)
    try:
        _run(recipe, source, root, disk)
    except PowerLoss:
        return [disk.left(reached) for reached in _fortunes(root, at)]
    raise AssertionError(f"{recipe.name} ended before operation {at}.")


def _fortunes(root: Path, at: int) -> list[Callable[[Path], bool]]:
    """Return what may become of changes that were not synced.

    They are lost, or written; only those of the checkpoints are written, or only those of the
    outputs, as where the two lie on different disks; or it is up to chance.
    """
    chance = random.Random(at)

    def is_checkpoint(path: Path) -> bool:
        return path.is_relative_to(root / CHECKPOINT)

    return [
        lambda _: False,
        lambda _: True,
        is_checkpoint,
        lambda path: not is_checkpoint(path),
        lambda _: chance.random() < 0.5,
    ]


def _go_on(recipe: Recipe, source: Path, root: Path, tree: Tree, verdict: Verdict) -> None:
    """Run the same command on what is left, lose the power once more at the end, and compare."""
    restore(root, tree)
    disk = ForgetfulDisk(root)
    try:
        said = _run(recipe, source, root, disk)
        # No checkpoint is ever damaged, or speaks of more than there is.
        ended_well = not any("the checkpoint before it" in words for words in said)
    except kmeander.KmeanderError:
        ended_well = False
    restore(root, disk.left(lambda _: False))
    verdict.add(root / "out", ended_well=ended_well)
