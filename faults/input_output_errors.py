"""Each single operation on the disk fails once, or the disk fails for good from then on."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import kmeander
from faults.disks import FailingDisk, restore
from faults.recipes import CHECKPOINT, RECIPES, Recipe, Verdict, contents_without_borders
from faults.table import Row
from kmeander.sources import byte_streams
from kmeander.storage.disk import Disk, exchanged

# In a quick pass every so many operations fail.
QUICK_STRIDE = 29
ERRORS = (errno.ENOSPC, errno.EACCES, errno.ESTALE)


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each recipe."""
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            yield fail(recipe, Path(folder), QUICK_STRIDE if quick else 1)


def fail(recipe: Recipe, folder: Path, stride: int, *, first: int = 0) -> Row:
    """Let every `stride`-th operation of a run fail, from `first` on; then run it again."""
    source = recipe.source(folder)
    with patch.object(byte_streams, "PAUSE", 0.001):
        root = _emptied(folder / "undisturbed")
        counting = FailingDisk(-1, 0, for_good=False)
        assert _run(recipe, source, root, counting) is None
        # Where reading fails, what was learned before is committed: parts may end elsewhere.
        verdict = Verdict(recipe, root / "out", contents_without_borders)
        for at in range(first, counting.n_operations, stride):
            for for_good in (False, True):
                root = _emptied(folder / "root")
                disk = FailingDisk(at, ERRORS[at % len(ERRORS)], for_good=for_good)
                said = _run(recipe, source, root, disk)
                if disk.n_operations <= at:  # a file that is followed is looked at now and then
                    continue
                # What is only tidied up may fail without a word; a disk that is gone may not.
                is_one_line = not for_good if said is None else "\n" not in said
                ended_well = _run(recipe, source, root, Disk()) is None
                verdict.add(root / "out", ended_well=is_one_line and ended_well)
    return verdict.row(f"input or output error at an operation: {recipe.name}")


def _emptied(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    restore(root, {root / "out": None})
    return root


def _run(recipe: Recipe, source: Path, root: Path, disk: Disk) -> str | None:
    """Run on a disk, and return the message that ended it, if any."""
    arguments = recipe.arguments(source, root / "out", root / CHECKPOINT / "of" / "it")
    try:
        with exchanged(disk):
            kmeander.run(**arguments, tell=lambda _: None)
    except kmeander.KmeanderError as error:
        return str(error)
    return None
