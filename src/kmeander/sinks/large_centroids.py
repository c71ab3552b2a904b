"""Centroids of large models: Parquet files beside the Steps, whose lines name them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmeander.exceptions import InputError, shown
from kmeander.records import Step
from kmeander.sinks.contract import explained
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import joined, split
from kmeander.storage.rotating import is_folder
from kmeander.wire.arrow import centroid_table, to_numpy

# Numbers of the centroids up to which they stand in the line.
MOST_IN_LINE = 8192
# The key under which a line names the file, from the folder in which the Steps are.
KEY = "centroids_in"
FOLDER = "centroids"


class CentroidFiles:
    """A folder with one file for each Step.

    Parameters
    ----------
    steps : str
        Where the Steps are.
    name : str
        As messages show it.
    """

    def __init__(self, steps: str, name: str) -> None:
        self._name = name
        self._files = filesystem_of(steps)
        self._base, own = (steps, "") if is_folder(steps) else split(steps)
        self._folder = f"{own}.{FOLDER}" if own else FOLDER
        self._is_made = False

    def clear(self) -> None:
        """Remove the files of an earlier run."""
        folder = joined(self._base, self._folder)
        with explained(self._name):
            names = [name for name in self._files.names(folder) if name.endswith(".parquet")]
            self._files.remove([joined(folder, name) for name in names])

    def apart(self, line: dict[str, Any], step: Step) -> dict[str, Any]:
        """Return the line of a Step, its centroids in a file where they are many."""
        if step.centroids is None or step.centroids.size <= MOST_IN_LINE:
            return line
        import pyarrow.parquet as pq

        assert step.ids is not None
        assert step.masses is not None
        file = f"{self._folder}/{step.index:09}.parquet"
        with explained(self._name):
            if not self._is_made:
                self._files.make_folder(joined(self._base, self._folder))
                self._is_made = True
            with self._files.written(joined(self._base, file)) as target:
                table = centroid_table(step.ids, step.masses, step.centroids)
                pq.write_table(table, target, use_dictionary=False, compression="none")
        return {**line, "centroids": None, KEY: file}


def with_centroids(line: Mapping[str, Any], steps: str | os.PathLike[str]) -> Any:
    """Return a line as if its centroids stood in it."""
    if not isinstance(line, Mapping) or line.get(KEY) is None:
        return line
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, file = os.fspath(steps), line[KEY]
    files = filesystem_of(path)
    found = files.info(path)
    base = path if found is not None and found.kind == "folder" else split(path)[0]
    if not isinstance(file, str) or Path(file).is_absolute() or ".." in Path(file).parts:
        raise InputError(f"its centroids are in {shown(file)}, which is no file beside it.")
    try:
        with files.open(joined(base, file)) as opened:
            column = pq.read_table(opened, columns=["centroid"])["centroid"].combine_chunks()
        centroids = to_numpy(column.flatten()).reshape(len(column), -1)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"its centroids are in {joined(base, file)}, which cannot be read: {reason}."
        ) from error
    return {**line, "centroids": centroids.tolist()}
