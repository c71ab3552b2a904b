"""A driver that dies at any operation on the disk goes on to the same files. Needs no session."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

pytest.importorskip("pyspark")

from kmeander import FSKM, Batch, ForgetfulKMeans
from kmeander.spark import load
from kmeander.spark.batches import Collected, Collector, order_of
from kmeander.spark.columns import Features
from kmeander.spark.learning import Learner
from kmeander.spark.models import centroid_checkpoints, model_checkpoints, model_of
from kmeander.spark.rows import RowReader
from kmeander.storage.disk import Disk, exchanged
from tests.spark.streams import COLUMNS, Array, state_bytes, stream_of_points


class DeathError(BaseException):
    """Nothing that code catches."""


class DyingDisk(Disk):
    """Dies at its nth operation that changes something, and stays dead."""

    def __init__(self, n_before: int) -> None:
        self.n_left = n_before

    def _count(self) -> None:
        self.n_left -= 1
        if self.n_left < 0:
            raise DeathError

    def open(self, path: str, mode: str, buffering: int = -1) -> IO[Any]:
        if "r" not in mode:
            self._count()
        return super().open(path, mode, buffering)

    def sync(self, file: IO[Any]) -> None:
        self._count()
        super().sync(file)

    def rename(self, source: str, target: str) -> None:
        self._count()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)

    def sync_folder(self, path: str) -> None:
        self._count()
        super().sync_folder(path)


class Rows(Collector):
    """Takes arrays for frames."""

    def collect(self, frame: Any) -> Collected:
        return Collected(frame[order_of(frame, None)])


def learner(folder: Path, told: list[int], **settings: Any) -> Learner:
    features = Features(tuple(COLUMNS), "numbers", all_float32=False)
    made = Learner(
        model_of(ForgetfulKMeans(**{"n_clusters": 4, "random_state": 3, **settings})),
        Rows(RowReader(features), "exact", 10**9, 100),
        model_checkpoints(folder),
        centroid_checkpoints(folder),
        lambda _, batch_id: told.append(batch_id),
    )
    made.begin()
    return made


def learn(folder: Path, batches: list[Array], told: list[int], committed: int = -1) -> int:
    """Learn as Spark delivers: the batch after the last that it has committed, and so on."""
    made: Any = learner(folder, told)
    for batch_id in range(committed + 1, len(batches)):
        made.take(batches[batch_id], batch_id)
        committed = batch_id
    return committed


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_death_at_any_operation_on_the_disk_leaves_the_same_files(tmp_path: Path) -> None:
    batches = stream_of_points(5)
    learn(tmp_path / "calm", batches, [])
    expected = files_of(tmp_path / "calm")
    n_deaths = 0
    for n_before in range(0, 10**6, 3):
        folder, told = tmp_path / f"{n_before}", list[int]()
        try:
            with exchanged(DyingDisk(n_before)):
                learn(folder, batches, told)
        except DeathError:
            n_deaths += 1
        else:
            break
        # The last batch that is done comes again: Spark could not commit it.
        learn(folder, batches, told, committed=max(told, default=0) - 1)
        assert files_of(folder) == expected
    assert n_deaths > 20


def test_death_again_and_again_leaves_the_same_files(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    batches = stream_of_points(40)
    learn(tmp_path / "calm", batches, [])
    told, n_deaths = list[int](), 0
    while True:
        try:
            with exchanged(DyingDisk(int(rng.integers(1, 40)))):
                learn(tmp_path / "state", batches, told, committed=max(told, default=0) - 1)
            break
        except DeathError:
            n_deaths += 1
    assert n_deaths >= 20
    assert files_of(tmp_path / "state") == files_of(tmp_path / "calm")


@pytest.mark.parametrize(
    "settings", [{"n_clusters": (2, 6)}, {"rho": "two-speed"}, {"max_points": 300}, {"rho": "auto"}]
)
def test_a_model_of_any_settings_goes_on_from_its_files(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    batches = stream_of_points(10)
    told = list[int]()
    for committed in range(-1, 9):  # a driver for each batch
        made: Any = learner(tmp_path, told, **settings)
        made.take(batches[committed + 1], committed + 1)
    twin = model_of(ForgetfulKMeans(**{"n_clusters": 4, "random_state": 3, **settings}))
    for index, points in enumerate(batches):
        twin.step(Batch(index, points[order_of(points, None)]))
    found = load(tmp_path)._model
    assert isinstance(found, FSKM)
    assert state_bytes(found) == state_bytes(twin)
