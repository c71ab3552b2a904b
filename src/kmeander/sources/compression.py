"""Files that are compressed, as the bytes that were put in."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

from kmeander.exceptions import InputError
from kmeander.storage import filesystem_of

ARROW = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
ENDINGS = (*ARROW, ".xz", ".zip")


def is_compressed(path: str) -> bool:
    """Whether a file's ending says that it is compressed."""
    return Path(path).suffix.lower() in ENDINGS


def plain_name(path: str) -> str:
    """Return the name of what a file holds: that of the one file in a .zip.

    Examples
    --------
    >>> plain_name("x.csv.xz"), plain_name("x.csv")
    ('x.csv', 'x.csv')
    """
    ending = Path(path).suffix.lower()
    if ending == ".zip":
        from zipfile import BadZipFile, ZipFile

        try:
            with filesystem_of(path).open(path) as raw, ZipFile(raw) as archive:
                return _only_member(archive, path)
        except (OSError, BadZipFile):  # said when it is opened
            return str(Path(path).with_suffix(""))
    return str(Path(path).with_suffix("")) if ending in ENDINGS else path


def unpacked(raw: IO[bytes], path: str) -> Any:
    """Return the bytes of what a compressed file holds, as a file.

    Parameters
    ----------
    raw : file
    path : str
        Its ending says how it is compressed.
    """
    ending = Path(path).suffix.lower()
    if ending == ".xz":
        import lzma

        return _Explained(lzma.LZMAFile(raw))
    if ending == ".zip":
        from zipfile import BadZipFile, ZipFile

        try:
            archive = ZipFile(raw)
            return _Explained(archive.open(_only_member(archive, path)))
        except (BadZipFile, RuntimeError, NotImplementedError) as error:  # RuntimeError: encrypted
            raise OSError(str(error)) from error
    import pyarrow as pa

    return pa.CompressedInputStream(raw, ARROW[ending])


def _only_member(archive: Any, path: str) -> str:
    """Return the name of the one file of an archive, what systems put beside it aside."""
    names: list[str] = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/")
    ]
    if len(names) != 1:
        folder = Path(path).stem
        raise InputError(
            f"{path} holds {len(names)} files, and one is read. Unpack it: python -m zipfile -e "
            f"{path} {folder}, and read the folder {folder}."
        )
    return names[0]


class _Explained(io.RawIOBase):
    """A file whose damage is an OSError, as that of any other is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return some bytes."""
        import zlib
        from lzma import LZMAError
        from zipfile import BadZipFile

        try:
            return self._file.read(size)
        except (LZMAError, BadZipFile, EOFError, zlib.error) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        """Close it."""
        self._file.close()
        super().close()
