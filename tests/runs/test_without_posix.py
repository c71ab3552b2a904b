"""What Windows lacks, taken away here: waiting for a pipe, syncing a folder, ``fcntl``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kmeander.storage import disk
from tests.program import PROGRAM
from tests.streams import drifting_stream

# The program, on a system that refuses what Windows refuses.
WITHOUT = """
import os, select, sys
from kmeander.sources import byte_streams
from kmeander.storage import disk
byte_streams.CAN_SELECT = disk.CAN_SYNC_FOLDERS = False

def only_sockets(*_):
    raise OSError(10038, "An operation was attempted on something that is not a socket")

def no_folders(path, *rest, _open=os.open, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return _open(path, *rest, **named)

select.select, os.open = only_sockets, no_folders
from kmeander.cli import main
main()
"""


def words(out: Path) -> list[str]:
    out.mkdir(exist_ok=True)
    return [
        "run", "-", "--clusters", "3", "--batch-size", "30", "--checkpoint", f"{out}/checkpoint",
        "--steps", f"{out}/steps.jsonl", "--assignments", f"{out}/rows/",
        "--centroids", f"{out}/clusters.csv", "--checkpoint-every", "4",
    ]  # fmt: skip


def contents(out: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and "checkpoint" not in file.parts
    }


def lines() -> list[str]:
    rows = np.concatenate(drifting_stream(9, n_points=30)).tolist()
    return ["a,b,c\n", *(",".join(map(repr, row)) + "\n" for row in rows)]


@pytest.mark.slow
def test_a_run_without_posix_writes_the_same_bytes_and_goes_on(tmp_path: Path) -> None:
    whole, half = "".join(lines()), "".join(lines()[:121])
    here = [sys.executable, "-c", WITHOUT, *words(tmp_path / "without")]
    for text in (half, whole):
        done = subprocess.run(here, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    subprocess.run([PROGRAM, *words(tmp_path / "with")], input=whole, text=True, check=True)
    assert contents(tmp_path / "without") == contents(tmp_path / "with")


@pytest.mark.slow
def test_rows_of_a_pipe_are_learned_as_they_come_without_waiting_for_it(tmp_path: Path) -> None:
    """As on Windows, where nothing can wait for a pipe."""
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT, *words(out), "--batch-seconds", "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("".join(lines()[:11]))
        process.stdin.flush()
        steps = out / "steps.jsonl"
        while not (steps.exists() and steps.read_text()):  # ten rows are no batch, but time is up
            assert process.poll() is None
        assert json.loads(steps.read_text().splitlines()[0])["n_points"] == 10
        process.stdin.close()
        assert process.wait(timeout=120) == 0


def test_locks_are_left_to_a_library_that_knows_windows() -> None:
    package = Path(disk.__file__).parents[1]
    assert not [file for file in package.rglob("*.py") if "fcntl" in file.read_text()]


def test_folders_are_synced_only_where_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.Disk().sync_folder(str(tmp_path))
    monkeypatch.setattr(disk, "CAN_SYNC_FOLDERS", False)
    disk.Disk().sync_folder(str(tmp_path / "none"))
