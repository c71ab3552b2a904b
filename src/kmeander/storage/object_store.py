"""Files on object stores (``s3://``, ``gs://``, ``abfs://``) and ``hdfs://``, through fsspec.

An object is put as a whole and is then there for good, so nothing is written aside and renamed:
its name decides. Nothing can be appended to. On HDFS a file is there while it is written, so there
it is written aside.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import json
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import IO, Any

from kmeander.exceptions import InputError
from kmeander.storage.filesystem import FileInfo, FileSystem, InUseError, joined, split
from kmeander.storage.local import LOCK, LocalFileSystem

# The extra that installs what reaches a scheme.
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs"}
# What can be read, perhaps, but neither listed nor written.
WEB = ("http", "https", "ftp")

_IN_ADDRESS = {"account_name", "host", "port", "user"}
_IN_PARTS = {"hdfs", "viewfs"}


class ObjectStore(FileSystem):
    """One store, such as all of ``s3://``.

    Parameters
    ----------
    store : fsspec.AbstractFileSystem
    in_parts : bool, default=False
        Whether others see a file that is not complete yet.
    """

    can_append = False

    def __init__(self, store: Any, *, in_parts: bool = False) -> None:
        self._store = store
        self._in_parts = in_parts

    @classmethod
    def of(cls, path: str) -> ObjectStore:
        """Return the store of an address."""
        scheme = path.partition("://")[0]
        if scheme in WEB:
            raise InputError(
                f"{path}: {scheme}:// is neither read nor written here. Download the file, or send "
                "it through a pipe, whose name is - here."
            )
        try:
            return _store(scheme, _in_address(scheme, path))
        # Each kind of store has a way of its own to say what it lacks.
        except (ImportError, ValueError, TypeError, OSError) as error:
            said = " ".join(str(error).split())
            extra = EXTRAS.get(scheme)
            way_out = f"pip install 'kmeander[{extra}]'" if extra else "Use s3://, gs:// or abfs://"
            raise InputError(
                f"{path}: nothing here reaches {scheme}:// ({said}). {way_out}."
            ) from error

    def info(self, path: str) -> FileInfo | None:
        """Return what is at `path`, or None where nothing is."""
        with _as_os_errors():
            try:
                found = self._store.info(path)
            except FileNotFoundError:
                return None
        changed = next(
            (found[key] for key in ("LastModified", "last_modified", "mtime") if key in found), None
        )
        modified = int(changed.timestamp() * 1e9) if isinstance(changed, datetime) else 0
        kind = "folder" if found["type"] == "directory" else "file"
        return FileInfo(kind, int(found.get("size") or 0), modified)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order; none where there is no folder."""
        with _as_os_errors():
            try:
                found = self._store.ls(folder, detail=False)
            except FileNotFoundError:
                return []
        itself = self._store._strip_protocol(folder)
        # A folder that was made by hand is an empty object of its own name.
        paths = [path.rstrip("/") for path in found if path.rstrip("/") != itself]
        return sorted(path.rpartition("/")[2] for path in paths)

    def matching(self, pattern: str) -> list[str]:
        """Return the files whose paths match a pattern, in order."""
        with _as_os_errors():
            found = self._store.glob(pattern, detail=True)
        return sorted(
            self._store.unstrip_protocol(path)
            for path, known in found.items()
            if known["type"] == "file"
        )

    def open(self, path: str, *, buffered: bool = True) -> IO[Any]:  # noqa: ARG002  # no pipes
        """Open a file of bytes for reading."""
        with _as_os_errors():
            opened: IO[Any] = self._store.open(path, "rb")
        return opened

    @contextmanager
    def written(self, path: str) -> Iterator[IO[Any]]:
        """Collect the bytes on this machine, then put them all at once."""
        with tempfile.TemporaryDirectory(prefix="kmeander-") as folder:
            collected = Path(folder) / "object"
            with collected.open("wb") as file:
                yield file
            with _as_os_errors():
                if not self._in_parts:
                    self._store.put_file(str(collected), path)
                    return
                folder, name = split(path)
                aside = joined(folder, f".{name}.{secrets.token_hex(8)}.aside")
                self._store.put_file(str(collected), aside)
                with suppress(FileNotFoundError):  # which renaming would not replace
                    self._store.rm_file(path)
                self._store.mv(aside, path)

    def make_folder(self, path: str) -> None:
        """See that the bucket is there; a folder is, as soon as something is in it."""
        bucket = self._store._strip_protocol(path).partition("/")[0]
        with _as_os_errors(), suppress(PermissionError):  # who may write need not be shown more
            self._store.info(bucket)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects."""
        for path in paths:
            with _as_os_errors():
                try:
                    self._store.rm_file(path)
                except FileNotFoundError:
                    continue

    def discard_unfinished(self, folder: str, names: str = "*") -> None:
        """Remove nothing: what was not put as a whole is not there."""

    def clear(self, path: str) -> None:
        """Remove nothing."""

    @contextmanager
    def locked(self, folder: str) -> Iterator[None]:
        """Hold a lock that is an object which only one can create.

        Nobody removes it for a run that is killed, so the next run on the same machine may: a lock
        on this machine says that no other run here holds it, a token beside that one, which is
        drawn once, that it was made from here. Names of machines do not say so: many have the same.
        """
        path = joined(folder, LOCK)
        place = _own_folder() / hashlib.sha256(path.encode()).hexdigest()[:16]
        place.mkdir(exist_ok=True)
        with LocalFileSystem().locked(str(place)):
            owner = {
                "host": socket.gethostname(),
                "user": _user(),
                "process": os.getpid(),
                "since": _now().isoformat(),
                "token": _token(place / "token"),
            }
            self._create(path, owner)
            try:
                yield
            finally:
                self._release(path, owner)

    def _create(self, path: str, owner: dict[str, Any]) -> None:
        data = json.dumps(owner).encode()
        with _as_os_errors():
            try:
                self._store.pipe_file(path, data, mode="create")
                return
            except FileExistsError:
                held = _owner(self._store.cat_file(path))
            if held["token"] == owner["token"]:  # its run was killed
                self._store.pipe_file(path, data)
                return
        raise InUseError(
            f"is in use by another run (process {held['process']} on {held['host']}, since "
            f"{held['since']}, {_age(held['since'])}). Wait until it ends, or name another folder; "
            f"if that machine was killed, remove {path}."
        )

    def _release(self, path: str, owner: dict[str, Any]) -> None:
        """Remove a lock, unless somebody has given it to another run."""
        with _as_os_errors(), suppress(FileNotFoundError):
            if _owner(self._store.cat_file(path)) == owner:
                self._store.rm_file(path)


def _user() -> str:
    """Return who runs this; in containers that may be somebody without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _own_folder() -> Path:
    """Return a folder of this machine that only this user writes to, though its name is known."""
    folder = Path(tempfile.gettempdir(), f"kmeander-{_user()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    is_ours = os.name != "posix" or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    if not is_ours or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(
            errno.EPERM, f"{folder} is somebody else's, or open to others: remove it, or set TMPDIR"
        )
    return folder


def _token(path: Path) -> str:
    """Return what tells locks that were made from here from those of other machines."""
    token = path.read_text(encoding="ascii") if path.exists() else ""
    if not token:
        token = secrets.token_hex(16)
        path.write_text(token, encoding="ascii")
    return token


def _owner(data: bytes) -> dict[str, Any]:
    """Return what a lock says of its owner."""
    unknown = dict.fromkeys(("host", "user", "process", "since", "token"), "unknown")
    try:
        held = json.loads(data)
    except ValueError:
        return unknown
    return {**unknown, **held} if isinstance(held, dict) else unknown


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _age(since: str) -> str:
    try:
        age = _now() - datetime.fromisoformat(since)
    except (TypeError, ValueError):
        return "of unknown age"
    # Clocks of two machines differ, and are set.
    return f"{age} ago" if age >= timedelta(0) else "of unknown age"


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Let whatever the library of a store raises be an error of input and output."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # each store has a hierarchy of its own; all of it means the same
        raise OSError(f"{type(error).__name__}: {' '.join(str(error).split())}") from error


def _in_address(scheme: str, path: str) -> tuple[tuple[str, Any], ...]:
    """Return what an address itself says of the store: an account, a host."""
    import fsspec

    known = fsspec.get_filesystem_class(scheme)._get_kwargs_from_urls(path)
    return tuple(sorted((name, value) for name, value in known.items() if name in _IN_ADDRESS))


@cache
def _store(scheme: str, settings: tuple[tuple[str, Any], ...]) -> ObjectStore:
    import fsspec

    # Others write there, too: what was listed once is not remembered.
    store = fsspec.filesystem(scheme, use_listings_cache=False, **dict(settings))
    return ObjectStore(store, in_parts=scheme in _IN_PARTS)
