"""The faults that a test can try in seconds; ``python -m faults`` tries all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kmeander
from faults import KINDS, brokers, disks, kills, long_streams, power_loss, table
from faults.disks import ForgetfulDisk, restore
from faults.input_output_errors import fail
from faults.power_loss import lose_power
from faults.readers import READERS
from faults.recipes import CHECKPOINT, RECIPES, Recipe
from faults.table import Row
from kmeander.storage.disk import Disk, exchanged
from kmeander.storage.local import LocalFileSystem

# Few enough operations to be quick; coprime to what repeats at each commit.
STRIDE = 41

NAMES = [recipe.name for recipe in RECIPES]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_power_lost_after_any_operation_gives_the_same_bytes(
    recipe: Recipe, tmp_path: Path
) -> None:
    row = lose_power(recipe, tmp_path, STRIDE, first=3)
    assert row.trials >= 5 * 5
    assert not row.is_bad, row


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_an_error_at_any_operation_is_one_sentence_and_the_run_goes_on(
    recipe: Recipe, tmp_path: Path
) -> None:
    row = fail(recipe, tmp_path, STRIDE, first=5)
    assert row.trials >= 2 * 5
    assert not row.is_bad, row


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_every_run_can_be_killed_and_goes_on_to_the_same_bytes(
    recipe: Recipe, tmp_path: Path
) -> None:
    row = kills.kill(recipe, tmp_path, 1)
    assert row.trials >= 1
    assert not row.is_bad, row


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", ["sync", "sync_folder"])
def test_a_run_that_does_not_sync_would_be_noticed(
    forgotten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trials above can fail: here is a disk that does not keep its word."""
    monkeypatch.setattr(ForgetfulDisk, forgotten, lambda *_: None)
    assert lose_power(RECIPES[0], tmp_path, 97).wrong


@pytest.mark.slow
def test_centroids_and_the_parents_of_a_new_checkpoint_outlast_power_lost_after_the_end(
    tmp_path: Path,
) -> None:
    recipe, root = RECIPES[0], tmp_path / "root"
    (root / "out").mkdir(parents=True)
    source = recipe.source(tmp_path)
    place = root / "checkpoint" / "of" / "it"
    disk = ForgetfulDisk(root)
    with exchanged(disk):
        kmeander.run(**recipe.arguments(source, root / "out", place), tell=lambda _: None)
    left = disk.left(lambda _: False)
    for path in (*(root / "out").rglob("*"), *place.glob("*.ckpt")):
        assert left[path] == (path.read_bytes() if path.is_file() else None)
    assert {"clusters.csv", "model.km"} <= {path.name for path in left}


@pytest.mark.slow
def test_power_lost_on_the_disk_of_the_outputs_alone_leaves_the_checkpoint_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts were renamed, but their folder not synced: the checkpoint spoke of what was gone."""

    def only_checkpoints(root: Path, _: int) -> list[Callable[[Path], bool]]:
        return [lambda path: path.is_relative_to(root / CHECKPOINT)]

    monkeypatch.setattr(power_loss, "_fortunes", only_checkpoints)
    row = lose_power(RECIPES[0], tmp_path, 23)
    assert row.trials >= 15
    assert not row.is_bad, row


def test_what_was_not_synced_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    disk = ForgetfulDisk(tmp_path)
    with disk.open(str(tmp_path / "new"), "xb") as file:
        file.write(b"new")
        disk.sync(file)
    with disk.open(str(tmp_path / "old"), "r+b") as file:
        file.write(b"more")
    disk.make_folder(str(tmp_path / "folder"))
    assert disk.left(lambda _: False) == {tmp_path / "old": b"old"}
    assert disk.left(lambda _: True) == {
        tmp_path / "folder": None,
        tmp_path / "new": b"new",
        tmp_path / "old": b"more",
    }
    disk.sync_folder(str(tmp_path))
    left = disk.left(lambda _: False)
    assert left == {tmp_path / "folder": None, tmp_path / "new": b"new", tmp_path / "old": b"old"}
    disk.rename(str(tmp_path / "new"), str(tmp_path / "old"))
    assert disk.left(lambda _: False) == left
    disk.sync_folder(str(tmp_path))
    left = disk.left(lambda _: False)
    assert left == {tmp_path / "folder": None, tmp_path / "old": b"new"}
    restore(tmp_path, left)
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "folder").is_dir()


def test_power_can_be_lost_at_an_operation(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path, at=1)
    file = disk.open(str(tmp_path / "new"), "xb")
    with pytest.raises(disks.PowerLoss):
        file.write(b"new")
    file.close()
    assert (tmp_path / "new").read_bytes() == b""


def test_each_folder_that_is_made_is_synced_in_its_parent(tmp_path: Path) -> None:
    done: list[tuple[str, str]] = []

    class Noted(Disk):
        def make_folder(self, path: str) -> None:
            done.append(("make_folder", path))
            super().make_folder(path)

        def sync_folder(self, path: str) -> None:
            done.append(("sync_folder", path))

    with exchanged(Noted()):
        LocalFileSystem().make_folder(str(tmp_path / "a" / "b"))
    assert done == [
        ("sync_folder", str(tmp_path.parent)),  # of a run that was killed before it could
        ("make_folder", str(tmp_path / "a")),
        ("sync_folder", str(tmp_path)),
        ("make_folder", str(tmp_path / "a" / "b")),
        ("sync_folder", str(tmp_path / "a")),
    ]


def test_rows_take_the_place_of_those_of_the_same_fault() -> None:
    page = f"# Page\n\n{table.as_markdown([Row('a', 1), Row('b', 2)])}\n\nMore.\n"
    written = table.written_into(page, [Row("b", 3, 4), Row("c", 5)])
    rows = [Row("a", 1), Row("b", 3, 4), Row("c", 5)]
    assert written == f"# Page\n\n{table.as_markdown(rows)}\n\nMore.\n"
    assert [row.is_bad for row in [*rows, Row("nothing was tried", 0)]] == [
        False, True, False, True,
    ]  # fmt: skip


def test_no_row_of_the_page_is_bad_or_of_a_fault_that_is_not_tried() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    lines = page[page.index(f"| {' | '.join(table.HEADING)} |") :].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    tried = {f"Kafka: {one.__name__[1:].replace('_', ' ')}" for one in brokers.FAULTS}
    tried |= {f"hostile input: {reader.name}" for reader in READERS}
    for what in (
        "kill -9",
        "power lost after an operation",
        "input or output error at an operation",
    ):
        tried |= {f"{what}: {name}" for name in NAMES}
    tried.add(f"{long_streams.N_ROWS:,} rows through one run, in flat memory")
    assert {row[0] for row in rows} <= tried
    for _, trials, *counts in rows:
        assert int(trials.replace(",", "")) > 0
        assert counts == ["0", "0", "0"]
    n_kills = [int(row[1]) for row in rows if row[0].startswith("kill -9")]
    assert sum(n_kills) >= kills.KILLS
    assert sum(int(row[1]) for row in rows if row[0].startswith("Kafka")) >= 20
    assert len(KINDS) == len(set(KINDS))
