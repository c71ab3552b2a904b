"""Checkpoint format: a state of plain arrays and numbers to a file and back; no pickle.

The file: the magic word, the format number (4 bytes) and the length of the header (8 bytes),
both little-endian, the header as JSON, the arrays one after the other, and the SHA-256 of all
before it. In the header an array is ``{"$array": n}``, and ``arrays[n]`` is its type and shape.

Format 2 is that with arrays in files of their own beside it, ``{"$file": name}``: what does not
change from one checkpoint to the next is written once.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import CheckpointError, InputError, argument, shown
from kmeander.plain_values import PlainValues, from_json, is_whole
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import joined, split

MAGIC = b"KMEANDER"
FORMAT = 2  # the newest; a state that is one file is still written as format 1
_PREFIX = struct.Struct("<8sIQ")
_DIGEST_SIZE = hashlib.sha256().digest_size
_ARRAY, _FILE = "$array", "$file"
_FILE_NAME = re.compile(r"points-[0-9a-f]{40}\.array")
_LONGEST = 2**40  # of an array, in each direction
_DTYPES = {"<f8", "<f4", "<i4", "<i8"}


@dataclass(frozen=True)
class Elsewhere:
    """An array of a state that lies in a file of its own."""

    name: str


Fetch = Callable[[str], NDArray[Any]]


class NotACheckpointError(CheckpointError):
    """A file is none that kmeander wrote."""


class NewerFormatError(CheckpointError):
    """A checkpoint is of a format that only a newer version reads."""


def to_bytes(state: dict[str, Any]) -> bytes:
    """Return the file's contents for `state`."""
    parts = _parts(state)
    return b"".join([*parts, _digest(parts)])


def _parts(state: dict[str, Any]) -> list[bytes | memoryview]:
    """Return the file's contents but for the checksum, the arrays without copying them."""
    arrays: list[NDArray[Any]] = []
    plain = _without_arrays(state, arrays)
    described = [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    header = json.dumps({"state": plain, "arrays": described}, allow_nan=False).encode()
    prefix = _PREFIX.pack(MAGIC, FORMAT if _names_files(plain) else 1, len(header))
    filled = [array.data.cast("B") for array in arrays if array.size]
    return [prefix, header, *filled]


def _digest(parts: list[bytes | memoryview]) -> bytes:
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return checksum.digest()


def from_bytes(data: bytes, name: str, fetch: Fetch | None = None) -> dict[str, Any]:
    """Return the state that `data` holds; `name` is used in messages.

    `fetch` returns the array in a file of that name; without it such arrays stay `Elsewhere`.
    """
    if len(data) < _PREFIX.size or not data.startswith(MAGIC):
        raise NotACheckpointError(
            f"{name} is not a kmeander checkpoint: it does not begin with {MAGIC.decode()!r}."
        )
    _, number, header_size = _PREFIX.unpack_from(data)
    if number > FORMAT:
        from kmeander import __version__

        raise NewerFormatError(
            f"{name} has format {number}, this kmeander {__version__} reads {FORMAT}. "
            "Install a newer kmeander."
        )
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != digest or number < 1:
        raise CheckpointError(
            f"{name} is damaged: its checksum does not match its contents ({len(data)} bytes). "
            "Use an older copy."
        )
    start = _PREFIX.size + header_size
    try:
        header = from_json(body[_PREFIX.size : start])
        arrays = _arrays(header["arrays"], body, start)
        state: dict[str, Any] = _with_arrays(header["state"], arrays, fetch or Elsewhere)
        if not isinstance(state, dict):
            raise InputError("its state is no object.")
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise CheckpointError(
            f"{name} has a checksum that fits, but contents that kmeander does not write "
            f"({shown(error)}). Use another copy."
        ) from error
    return state


def _arrays(described: list[Any], body: bytes, start: int) -> list[NDArray[Any]]:
    """Return the arrays in a file from byte `start` on."""
    arrays = []
    for one in described:
        given = PlainValues(one, "an array")
        dtype, shape = given.text("dtype"), given.items("shape", each=_is_length, rule="lengths")
        if dtype not in _DTYPES:
            raise InputError(f"an array has the type {shown(dtype)}.")
        count = math.prod(shape)
        # Copied, since inside `body` it need not be aligned, and would keep all of it alive.
        array = np.frombuffer(body, dtype, count, start).reshape(shape).copy()
        array.flags.writeable = False
        arrays.append(array)
        start += array.nbytes
    return arrays


def _is_length(value: Any) -> bool:
    return is_whole(value) and 0 <= value <= _LONGEST


def write(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write `state` to `path` as a whole, so that no half file is ever there."""
    target = os.fspath(path)
    files, (folder, _) = filesystem_of(target), split(target)
    if files.can_append and files.info(folder) is None:
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {folder}.")
    parts = _parts(state)
    with files.written(target) as file:
        # Half the time is the checksum's; the system writes meanwhile.
        file.writelines(parts)
        file.flush()
        file.write(_digest(parts))


def clear(path: str | os.PathLike[str]) -> None:
    """Remove what writers of `path` have left aside when they were killed."""
    filesystem_of(os.fspath(path)).clear(os.fspath(path))


def read(path: str | os.PathLike[str], *, fetches: bool = True) -> dict[str, Any]:
    """Return the state in the file at `path`, and in those beside it unless told otherwise."""
    name = os.fspath(path)
    files = filesystem_of(name)
    found = files.info(name)
    if found is not None and found.kind == "folder":
        raise CheckpointError(
            f"{name} is a folder, a checkpoint is a file. A model's file is what "
            f"{argument('model_out', of='run')} writes."
        )
    folder, _ = split(name)

    def fetch(beside: str) -> NDArray[Any]:
        return array_at(joined(folder, beside), name)

    with files.open(name) as file:
        data = file.read()
    return from_bytes(data, name, fetch if fetches else None)


def file_of(array: NDArray[Any]) -> str:
    """Return the name of the file for an array of its own: its contents decide."""
    plain = np.ascontiguousarray(array)
    checksum = hashlib.sha256(f"{plain.dtype.str}{plain.shape}".encode())
    if plain.size:
        checksum.update(plain.data.cast("B"))
    return f"points-{checksum.hexdigest()[:40]}.array"


def array_at(path: str, named_by: str) -> NDArray[Any]:
    """Return the array in a file of its own; `named_by` is the checkpoint that names it."""
    try:
        array = read(path, fetches=False).get("array")
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} is missing, in which {named_by} has left some of its points. Use an older "
            "copy of both."
        ) from None
    if not isinstance(array, np.ndarray):
        raise CheckpointError(f"{path} holds no array. Use an older copy.")
    return array


def _without_arrays(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if little.dtype.str not in _DTYPES:
            raise CheckpointError(f"an array of type {value.dtype} cannot be stored.")
        arrays.append(little)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, Elsewhere):
        return {_FILE: value.name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _with_arrays(value: Any, arrays: list[NDArray[Any]], fetch: Callable[[str], Any]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            number = value[_ARRAY]
            if not is_whole(number) or not 0 <= number < len(arrays):
                raise InputError(f"there is no array {shown(number)}.")
            return arrays[number]
        if value.keys() == {_FILE}:
            name = value[_FILE]
            if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
                raise InputError(f"{shown(name)} is no name of a file of points.")
            return fetch(name)
        return {key: _with_arrays(item, arrays, fetch) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays, fetch) for item in value]
    return value


def _names_files(plain: Any) -> bool:
    """Whether a state has an array that is elsewhere."""
    if isinstance(plain, dict):
        return plain.keys() == {_FILE} or any(map(_names_files, plain.values()))
    return isinstance(plain, list) and any(map(_names_files, plain))
