"""Folders of checkpoints, one file per batch id, wherever Spark keeps its own."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from kmeander.exceptions import CheckpointError
from kmeander.storage import checkpoint, filesystem_of
from kmeander.storage.filesystem import joined

_NAME = re.compile(r"batch-(-1|\d{8,})\.ckpt")


def _name(batch_id: int) -> str:
    return f"batch-{batch_id:08}.ckpt" if batch_id >= 0 else "batch--1.ckpt"


class StateFolder(Protocol):
    """A folder: plain, or of any file system that Spark knows."""

    uri: str

    def names(self) -> list[str]:
        """Return the names of the files in it; none where it is not there yet."""

    def write(self, name: str, state: dict[str, Any]) -> None:
        """Write a file as a whole: it is there, complete, or it is not."""

    def read(self, name: str) -> dict[str, Any]:
        """Return the state in a file."""

    def remove(self, name: str) -> None:
        """Remove a file."""


class LocalFolder:
    """A folder that the driver sees as a folder."""

    def __init__(self, path: str) -> None:
        self.path = str(Path(path).absolute())
        self.uri = Path(self.path).as_uri()
        self._files = filesystem_of(self.path)

    def names(self) -> list[str]:
        """Return the names of the files in it."""
        return self._files.names(self.path)

    def write(self, name: str, state: dict[str, Any]) -> None:
        """Write a file as a whole."""
        self._files.make_folder(self.path)
        checkpoint.write(joined(self.path, name), state)

    def read(self, name: str) -> dict[str, Any]:
        """Return the state in a file."""
        return checkpoint.read(joined(self.path, name))

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._files.remove([joined(self.path, name)])


class HadoopFolder:
    """A folder of a Hadoop file system (hdfs, s3a, abfs, ...), reached through Spark's JVM."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        root = self._path(path)
        self._files: Any = root.getFileSystem(spark._jsc.hadoopConfiguration())
        self._root: Any = self._files.makeQualified(root)
        self.uri = str(self._root.toUri().toString())

    @property
    def scheme(self) -> str:
        """Return how addresses in it begin."""
        return str(self._root.toUri().getScheme())

    @property
    def plain(self) -> str:
        """Return the path without scheme and host."""
        return str(self._root.toUri().getPath())

    def names(self) -> list[str]:
        """Return the names of the files in it."""
        if not self._files.exists(self._root):
            return []
        return [str(found.getPath().getName()) for found in self._files.listStatus(self._root)]

    def write(self, name: str, state: dict[str, Any]) -> None:
        """Write a file as a whole."""
        target, aside = self._at(name), self._at(f".{name}.aside")
        with tempfile.TemporaryDirectory() as folder:
            # By way of a file: bytes through the gateway would be spelt out as text.
            local = Path(folder) / name
            checkpoint.write(local, state)
            self._files.mkdirs(self._root)
            self._files.copyFromLocalFile(False, True, self._path(f"file://{local}"), aside)
        if self._files.exists(target):
            self._files.delete(target, False)
        if not self._files.rename(aside, target):
            raise CheckpointError(f"{target.toString()} cannot be written: renaming it failed.")

    def read(self, name: str) -> dict[str, Any]:
        """Return the state in a file."""
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / name
            self._files.copyToLocalFile(False, self._at(name), self._path(f"file://{local}"), True)
            return checkpoint.from_bytes(local.read_bytes(), f"{self.uri}/{name}")

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._files.delete(self._at(name), False)

    def _at(self, name: str) -> Any:
        return self._path(self._root, name)


def folder_at(spark: SparkSession, path: str) -> StateFolder:
    """Return the folder that Spark, too, would take `path` for.

    So a path without a scheme lies in Spark's default file system, which on a cluster is often not
    the local one.
    """
    place = HadoopFolder(spark, path)
    return LocalFolder(place.plain) if place.scheme == "file" else place


class Checkpoints:
    """The states of the newest batches, each under the id of its batch.

    Parameters
    ----------
    place : StateFolder
    kept : int
        How many are kept.
    """

    def __init__(self, place: StateFolder, kept: int) -> None:
        self.place = place
        self.kept = kept

    def newest(self) -> int | None:
        """Return the id of the newest batch saved."""
        return newest_of(self.place.names())

    def read(self, batch_id: int) -> dict[str, Any]:
        """Return the state after that batch.

        Unlike a run of its own source, a stream of Spark's cannot be asked for older rows: where
        the newest state is damaged the one before would miss a batch, so that is not taken for it.
        """
        name = _name(batch_id)
        try:
            return self.place.read(name)
        except checkpoint.NewerFormatError:
            raise
        except CheckpointError as error:
            raise CheckpointError(
                f"{error} Restore {self.place.uri}/{name} from a copy; or remove it, to go on "
                "without what its batch has taught."
            ) from error

    def save(self, batch_id: int, state: dict[str, Any]) -> None:
        """Write the state after a batch, then let go of old ones."""
        self.place.write(_name(batch_id), state)
        for old in ids_of(self.place.names())[: -self.kept]:
            self.place.remove(_name(old))


def ids_of(names: list[str]) -> list[int]:
    """Return the batch ids that files are named after, in order."""
    found = (_NAME.fullmatch(name) for name in names)
    return sorted(int(match[1]) for match in found if match is not None)


def newest_of(names: list[str]) -> int | None:
    """Return the largest of those ids."""
    return max(ids_of(names), default=None)


def read_from_executor(uri: str, batch_id: int) -> dict[str, Any]:
    """Return a state where there is no JVM to ask, by Arrow's file systems."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    with system.open_input_file(f"{path}/{_name(batch_id)}") as file:
        return checkpoint.from_bytes(file.read(), f"{uri}/{_name(batch_id)}")


def newest_from_executor(uri: str) -> int | None:
    """Return the id of the newest state where there is no JVM to ask."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return newest_of([info.base_name for info in found])
