"""Recorded cells to Parquet files and back: one file per cell, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kmeander.arrays import Points
from kmeander.exceptions import InputError, argument

_IDENTITY = b"kmeander.cell"
_ARROW = {
    "str": pa.string(), "int": pa.int64(), "int | None": pa.int64(), "float": pa.float64(),
    "bool": pa.bool_(),
}  # fmt: skip


class AnyCell(Protocol):
    """What one process computes and one file holds: a dataclass whose fields decide it all."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def dataset(self) -> str:
        """Key of the points that it takes."""

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch, in that order."""

    @property
    def n_clusters(self) -> int:
        """K."""

    def run(self, points: Points, n_threads: int | None) -> Sequence[Any]:
        """Return its records, dataclasses of one kind."""


def fingerprint(points: Points) -> str:
    """Return what tells these points from any others."""
    digest = hashlib.sha256(repr((points.shape, points.dtype.str)).encode())
    digest.update(np.ascontiguousarray(points).tobytes())
    return digest.hexdigest()


def identity_of(cell: AnyCell, data: str) -> dict[str, Any]:
    """Return all that decides a cell's records; `data` is the fingerprint of its points."""
    from kmeander import __version__

    return {"kmeander": __version__, "data": data, "methods": list(cell.methods), **asdict(cell)}


def path_of(cell: AnyCell, folder: Path) -> Path:
    """Return the file that holds a cell."""
    return folder / f"{cell.name}.parquet"


def save(records: Sequence[Any], path: Path, identity: dict[str, Any]) -> None:
    """Write the records of a cell, aside and then renamed: a file that exists is complete."""
    kinds = [(field.name, _ARROW[str(field.type)]) for field in fields(records[0])]
    schema = pa.schema(kinds, {_IDENTITY: json.dumps(identity, sort_keys=True)})
    table = pa.Table.from_pylist([asdict(record) for record in records], schema=schema)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    pq.write_table(table, aside, compression="zstd")
    aside.replace(path)


def is_done(path: Path, identity: dict[str, Any]) -> bool:
    """Return whether `path` holds that cell already; another cell there is an error."""
    if not path.exists():
        return False
    stored = _stored_identity(path)
    different = sorted(key for key in {*stored, *identity} if stored.get(key) != identity.get(key))
    if different:
        raise InputError(
            f"{path} holds another run, which differs in {', '.join(different)}. Choose another "
            f"folder with {argument('out')}, or delete this one to begin anew."
        )
    return True


def load(paths: Sequence[Path]) -> pa.Table:
    """Return the records of several cells as one table, in the order of the paths."""
    return pa.concat_tables([_read(path) for path in paths])


def _stored_identity(path: Path) -> dict[str, Any]:
    metadata = _read(path).schema.metadata or {}
    if _IDENTITY not in metadata:
        raise InputError(
            f"{path} is not a cell of an experiment. Choose another folder with {argument('out')}."
        )
    stored: dict[str, Any] = json.loads(metadata[_IDENTITY])
    return stored


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{path} cannot be read ({error}). Delete it, and it will be computed anew."
        ) from error
