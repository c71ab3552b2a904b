"""Folders of checkpoints, one file per batch id, and the points of a batch in files of their own.

A state names the files of its points by their contents, so a batch that is remembered is written
when it comes and not again; what is written at each trigger is labels, bounds and sums.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kmeander.exceptions import CheckpointError
from kmeander.storage import checkpoint, filesystem_of
from kmeander.storage.filesystem import is_address, joined

_LOG = logging.getLogger("kmeander.spark")
_NAME = re.compile(r"batch-(-1|\d{8,})\.ckpt")
_POINTS = re.compile(r"points-[0-9a-f]{40}\.array")
# Folders of Databricks that every machine sees; Spark takes them without a scheme.
_SEEN_BY_ALL = ("/Volumes/", "/dbfs/", "/Workspace/")


def place_of(path: str | os.PathLike[str]) -> str:
    """Return a path as the storage room takes it: an address, or an absolute path of this machine.

    Examples
    --------
    >>> place_of("file:///state/readings/"), place_of("dbfs:/state"), place_of("s3a://bucket/state")
    ('/state/readings', '/dbfs/state', 's3a://bucket/state')
    """
    text = os.fspath(path).rstrip("/")
    for scheme, root in (("file:", "/"), ("dbfs:", "/dbfs/")):
        if text.startswith(scheme):
            return root + text.removeprefix(scheme).lstrip("/")
    return text if is_address(text) else str(Path(text).absolute())


def spark_path(place: str) -> str:
    """Return what Spark calls such a place, whatever file system it takes a bare path for."""
    return place if is_address(place) or place.startswith(_SEEN_BY_ALL) else f"file://{place}"


def warn_of_own_disk(place: str, master: str) -> None:
    """Say so where a checkpoint is on one disk of a cluster, which another driver does not see."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return
    if is_address(place) or place.startswith(_SEEN_BY_ALL):
        return
    _LOG.warning(
        "The checkpoint %s is on the disk of this machine, while Spark's master is %s: a driver "
        "that is started elsewhere would begin anew, without a word. Unless all machines share "
        "that folder, name one on storage that they do (s3://, gs://, abfss://, hdfs://).",
        place,
        master or "unknown",
    )


class Checkpoints:
    """The states of the newest batches, each under the id of its batch.

    Parameters
    ----------
    folder : str
        As `place_of` returns it.
    kept : int
        How many are kept.
    """

    def __init__(self, folder: str, kept: int) -> None:
        self.folder = folder
        self.kept = kept
        # Names of the arrays last saved or read, by identity, which holds as long as they do.
        self._files: dict[int, tuple[NDArray[Any], str]] = {}
        self._named_by: dict[int, set[str]] = {}  # what the states that are kept name

    def newest(self) -> int | None:
        """Return the id of the newest batch saved."""
        return max(self._ids(), default=None)

    def _ids(self) -> list[int]:
        names = filesystem_of(self.folder).names(self.folder)
        found = (_NAME.fullmatch(name) for name in names)
        return sorted(int(match[1]) for match in found if match is not None)

    def read(self, batch_id: int) -> dict[str, Any]:
        """Return the state after that batch.

        Unlike a run of its own source, a stream of Spark's cannot be asked for older rows: where
        the newest state is damaged the one before would miss a batch, so that is not taken for it.
        """
        path = self._path(batch_id)
        try:
            lean = checkpoint.read(path, fetches=False)
            arrays = {
                name: checkpoint.array_at(joined(self.folder, name), path)
                for name in sorted(_files_in(lean))
            }
        except checkpoint.NewerFormatError:
            raise
        except CheckpointError as error:
            raise CheckpointError(
                f"{error} Restore {path} from a copy; or remove it, to go on without what its "
                "batch has taught."
            ) from error
        self._named_by[batch_id] = set(arrays)
        self._files = {id(array): (array, name) for name, array in arrays.items()}
        return _with_points(lean, lambda one: arrays[one.name] if _is_elsewhere(one) else one)

    def read_newest(self) -> tuple[int, dict[str, Any]] | None:
        """Return the newest batch id and its state, while others may be written and removed."""
        while True:
            newest = self.newest()
            if newest is None:
                return None
            try:
                return newest, self.read(newest)
            except (CheckpointError, FileNotFoundError):
                if self.newest() == newest:
                    raise

    def save(self, batch_id: int, state: Mapping[str, Any]) -> None:
        """Write the state after a batch, then let go of old ones."""
        files = filesystem_of(self.folder)
        files.make_folder(self.folder)
        there = {name for name in files.names(self.folder) if _POINTS.fullmatch(name)}
        known: dict[int, tuple[NDArray[Any], str]] = {}

        def written(array: NDArray[Any]) -> checkpoint.Elsewhere:
            name = self._name_of(array)
            known[id(array)] = (array, name)
            if name not in there:
                checkpoint.write(joined(self.folder, name), {"array": array})
                there.add(name)
            return checkpoint.Elsewhere(name)

        checkpoint.write(self._path(batch_id), _with_points(state, written))
        self._files = known
        self._named_by[batch_id] = {name for _, name in known.values()}
        self._let_go(there)

    def tidy(self) -> None:
        """Remove what a process that was killed has left, or could not let go of."""
        files = filesystem_of(self.folder)
        files.discard_unfinished(self.folder)
        self._let_go({name for name in files.names(self.folder) if _POINTS.fullmatch(name)})

    def _name_of(self, array: NDArray[Any]) -> str:
        found = self._files.get(id(array))
        return checkpoint.file_of(array) if found is None else found[1]

    def _let_go(self, points: set[str]) -> None:
        ids = self._ids()
        files, kept = filesystem_of(self.folder), ids[-self.kept :]
        files.remove(self._path(old) for old in ids[: -self.kept])
        self._named_by = {one: self._named(one) for one in kept}
        unused = points.difference(*self._named_by.values())
        files.remove(joined(self.folder, name) for name in sorted(unused))

    def _named(self, batch_id: int) -> set[str]:
        if batch_id not in self._named_by:
            return _files_in(checkpoint.read(self._path(batch_id), fetches=False))
        return self._named_by[batch_id]

    def _path(self, batch_id: int) -> str:
        name = f"batch-{batch_id:08}.ckpt" if batch_id >= 0 else "batch--1.ckpt"
        return joined(self.folder, name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": {}, "_named_by": {}}


def _is_elsewhere(one: Any) -> bool:
    return isinstance(one, checkpoint.Elsewhere)


def _window_of(state: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the window of the model in a state, if there is one."""
    model = state.get("model")
    window = model.get("window") if isinstance(model, Mapping) else None
    return window if isinstance(window, Mapping) else None


def _files_in(state: Mapping[str, Any]) -> set[str]:
    """Return the files that hold points and weights of the batches in a state."""
    window = _window_of(state) or {"points": (), "weights": ()}
    return {one.name for one in (*window["points"], *window["weights"]) if _is_elsewhere(one)}


def _with_points(state: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a state with points and weights of its batches changed, where there are any."""
    window = _window_of(state)
    if window is None:
        return dict(state)
    changed = {
        key: [None if one is None else change(one) for one in window[key]]
        for key in ("points", "weights")
    }
    return {**state, "model": {**state["model"], "window": {**window, **changed}}}
