"""Checkpoint format: a state of plain arrays and numbers to a file and back; no pickle.

The file: the magic word, the format number (4 bytes) and the length of the header (8 bytes),
both little-endian, the header as JSON, the arrays one after the other, and the SHA-256 of all
before it. In the header an array is ``{"$array": n}``, and ``arrays[n]`` is its type and shape.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import CheckpointError, InputError, argument, shown
from kmeander.json_text import from_json
from kmeander.plain_values import PlainValues, is_whole
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import split

MAGIC = b"KMEANDER"
FORMAT = 1
_PREFIX = struct.Struct("<8sIQ")
_DIGEST_SIZE = hashlib.sha256().digest_size
_ARRAY = "$array"
_LONGEST = 2**40  # of an array, in each direction
_DTYPES = {"<f8", "<f4", "<i4", "<i8"}


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
    prefix = _PREFIX.pack(MAGIC, FORMAT, len(header))
    filled = [array.data.cast("B") for array in arrays if array.size]
    return [prefix, header, *filled]


def _digest(parts: list[bytes | memoryview]) -> bytes:
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return checksum.digest()


def from_bytes(data: bytes, name: str) -> dict[str, Any]:
    """Return the state that `data` holds; `name` is used in messages."""
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
    if hashlib.sha256(body).digest() != digest or number != FORMAT:
        raise CheckpointError(
            f"{name} is damaged: its checksum does not match its contents ({len(data)} bytes). "
            "Use an older copy."
        )
    start = _PREFIX.size + header_size
    try:
        header = from_json(body[_PREFIX.size : start])
        arrays = _arrays(header["arrays"], body, start)
        state: dict[str, Any] = _with_arrays(header["state"], arrays)
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


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state in the file at `path`."""
    name = os.fspath(path)
    files = filesystem_of(name)
    found = files.info(name)
    if found is not None and found.kind == "folder":
        raise CheckpointError(
            f"{name} is a folder, a checkpoint is a file. A model's file is what "
            f"{argument('model_out', of='run')} writes."
        )
    with files.open(name) as file:
        return from_bytes(file.read(), name)


def _without_arrays(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if little.dtype.str not in _DTYPES:
            raise CheckpointError(f"an array of type {value.dtype} cannot be stored.")
        arrays.append(little)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _with_arrays(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            number = value[_ARRAY]
            if not is_whole(number) or not 0 <= number < len(arrays):
                raise InputError(f"there is no array {shown(number)}.")
            return arrays[number]
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    return value
