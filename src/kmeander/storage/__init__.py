"""Files, on this machine and in object stores: checkpoints, saved models, outputs that grow."""

from __future__ import annotations

from kmeander.storage.filesystem import FileSystem, is_address


def filesystem_of(path: str) -> FileSystem:
    """Return what reads and writes `path`."""
    if is_address(path):
        from kmeander.storage.object_store import ObjectStore

        return ObjectStore.of(path)
    from kmeander.storage.local import LocalFileSystem

    return LocalFileSystem()
