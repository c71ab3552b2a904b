"""Stopped, killed, disturbed: a run that goes on writes what an undisturbed one would have."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from kmeander import CheckpointError, StreamError, load, run
from kmeander.runs.records import Progress
from kmeander.storage import checkpoint
from kmeander.storage.checkpoint_folder import CheckpointFolder
from tests import golden
from tests.golden import make_stopped
from tests.program import PROGRAM, kmeander
from tests.streams import drifting_stream, golden_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own

N_ROWS = 1200
OUTPUTS = ("steps.jsonl", "clusters", "bad.ndjson", "centroids.csv", "model.km")


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with bad ones among them."""
    path = tmp_path_factory.mktemp("data") / "readings.csv"
    rows = np.concatenate(drifting_stream(30, n_points=40, n_features=3))
    text = [f"r{i},{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(rows.tolist())]
    for number in range(50, N_ROWS, 97):
        text[number] = f"r{number},1,broken,3"
    path.write_text("id,a,b,c\n" + "\n".join(text) + "\n")
    return path


def words(readings: Path | str, out: Path, *more: str) -> list[str]:
    return [
        "run", str(readings), "--clusters", "4", "--batch-size", "25", "--init", "previous",
        "--id-column", "id", "--prepare", "auto", "--checkpoint", str(out / "checkpoint"),
        "--checkpoint-every", "5", "--steps", str(out / OUTPUTS[0]),
        "--assignments", str(out / OUTPUTS[1]) + "/", "--bad-rows", str(out / OUTPUTS[2]),
        "--centroids", str(out / OUTPUTS[3]), "--model-out", str(out / OUTPUTS[4]), *more,
    ]  # fmt: skip


def contents(out: Path) -> dict[str, bytes]:
    """Every file that a run wrote, but its checkpoints."""
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and "checkpoint" not in file.parts
    }


@pytest.fixture(scope="module")
def undisturbed(readings: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    done = kmeander(*words(readings, out))
    assert done.returncode == 0, done.stderr
    found = contents(out)
    n_bad = len(range(50, N_ROWS, 97))
    assert len(found["bad.ndjson"].splitlines()) == n_bad
    table = pq.read_table(out / "clusters")
    ids = [f"r{i}" for i in range(N_ROWS) if i < 50 or (i - 50) % 97]
    assert table["id"].to_pylist() == ids
    assert len(found["steps.jsonl"].splitlines()) == -(-len(ids) // 25)
    return found


def killed_at(command: list[str], steps: Path, n_lines: int, delay: float) -> bool:
    """Kill a run a moment after its steps have so many lines; say whether it was still running."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(lines_in(steps)) < n_lines:
        time.sleep(0.001)
    time.sleep(delay)
    was_running = process.poll() is None
    process.kill()
    process.wait()
    return was_running


@pytest.mark.slow
def test_killed_at_twenty_moments_a_run_writes_the_same_bytes(
    readings: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """``kill -9``, twenty times in all, five times on the way of each run."""
    rng = np.random.default_rng(20)
    n_lines = len(undisturbed["steps.jsonl"].splitlines())
    n_kills = 0
    while n_kills < 20:
        out = make(tmp_path / str(n_kills))
        steps = out / "steps.jsonl"
        for target in sorted(rng.integers(1, n_lines - 3, size=5).tolist()):
            n_kills += killed_at(
                [PROGRAM, *words(readings, out)], steps, target, rng.uniform(0, 0.05)
            )
        done = kmeander(*words(readings, out))
        assert done.returncode == 0, done.stderr
        assert contents(out) == undisturbed


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


# Ends the process, as kill -9 would, at one of the calls that make things last.
SABOTAGE = """
import os, sys
from kmeander.cli import main
left = int(sys.argv.pop(1))
def counted(call):
    def dies(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return call(*arguments, **options)
    return dies
import pathlib
os.fsync = counted(os.fsync)
pathlib.Path.replace = counted(pathlib.Path.replace)
pathlib.Path.unlink = counted(pathlib.Path.unlink)
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_calls", [0, 3, 5, 7, 9, 12, 31])
def test_killed_between_any_two_steps_of_a_commit(
    n_calls: int, readings: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """Before and after each fsync, renaming and removal of the first commits, and of later ones."""
    command = [sys.executable, "-c", SABOTAGE, str(n_calls), *words(readings, tmp_path)]
    died = subprocess.run(command, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    done = kmeander(*words(readings, tmp_path))
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == undisturbed


def test_a_pipe_is_expected_from_its_beginning(
    readings: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", SABOTAGE, "30", *words("-", tmp_path)]
    with readings.open("rb") as file:
        assert subprocess.run(command, stdin=file, check=False).returncode == -signal.SIGKILL
    done = kmeander(*words("-", tmp_path), stdin=readings.read_text())
    assert done.returncode == 0, done.stderr
    assert "Going on after batch " in done.stderr
    found = contents(tmp_path)
    for name in (*OUTPUTS[2:], *(name for name in undisturbed if name.startswith("clusters"))):
        expected = undisturbed[name].replace(str(readings).encode(), b"standard input")
        assert found[name] == expected
    steps = found["steps.jsonl"].replace(b'"standard input"', f'"{readings}"'.encode())
    assert steps == undisturbed["steps.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_batch_and_commits(
    number: signal.Signals, readings: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """A followed file never ends; a signal ends the run with code 0, and it can go on."""
    growing = tmp_path / "growing.csv"
    text = readings.read_text().splitlines(keepends=True)
    growing.write_text("".join(text[:620]))
    out = make(tmp_path / "out")
    with subprocess.Popen(
        [PROGRAM, *words(growing, out, "--follow")], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: len(lines_in(out / "steps.jsonl")) >= 24)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(timeout=120) == 0
    assert "Stopping after this batch. Once more stops at once." in said
    assert (
        "Stopped; the same command goes on from here. 13 rows wait for their batch to be complete."
    ) in said
    assert len(list((out / "checkpoint").glob("*.ckpt"))) == 2
    growing.write_text("".join(text))
    done = kmeander(*words(growing, out))
    assert done.returncode == 0, done.stderr
    steps = (
        (out / "steps.jsonl").read_bytes().replace(str(growing).encode(), str(readings).encode())
    )
    assert steps == undisturbed["steps.jsonl"]
    ids = pq.read_table(out / "clusters")["id"].to_pylist()
    assert ids == [f"r{i}" for i in range(N_ROWS) if i < 50 or (i - 50) % 97]


def test_a_second_signal_ends_a_run_at_once(readings: Path, tmp_path: Path) -> None:
    """The first is never heeded here: the batch at hand takes for ever."""
    code = """
        import sys, time
        from kmeander import cli
        from kmeander.runs import loop as stream_run
        stream_run.Runner._learn = lambda *_: (print("learning", flush=True), time.sleep(600))
        cli.main()
        """
    command = [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())]
    with subprocess.Popen(
        [*command, *words(readings, tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"learning\n"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM


def lines_in(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def wait_for(condition: Any, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def small(out: Path, **settings: Any) -> dict[str, Any]:
    """A small run from Python, without ids and bad rows."""
    return {
        "n_clusters": 3,
        "steps": out / "steps.jsonl",
        "assignments": out / "rows.ndjson",
        "checkpoint": out / "checkpoint",
        "checkpoint_every": 2,
        **settings,
    }


STREAM = drifting_stream(9, n_points=30)


def halfway(out: Path, n_batches: int = 5, **settings: Any) -> None:
    """Leave a run as a crash after some batches would."""
    run(STREAM[:n_batches], **small(out, **settings))


def expected(tmp_path: Path, **settings: Any) -> dict[str, bytes]:
    out = make(tmp_path / "expected")
    run(STREAM, **small(out, **settings))
    return contents(out)


def test_a_csv_of_assignments_has_one_line_of_names(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"assignments": tmp_path / "rows.csv"}
    out = make(tmp_path / "out")
    halfway(out, **settings)
    run(STREAM, **small(out, **settings))
    once = (tmp_path / "rows.csv").read_bytes()
    run(STREAM, **small(make(tmp_path / "other"), **settings, overwrite=True))
    assert (tmp_path / "rows.csv").read_bytes() == once
    assert once.startswith(b'"row","cluster","distance"\n0,') and once.count(b"row") == 1


def newest(out: Path) -> Path:
    return max((out / "checkpoint").glob("*.ckpt"))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", ["truncated", "flipped", "emptied"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(harm: str, tmp_path: Path) -> None:
    whole = expected(tmp_path)
    out = make(tmp_path / "out")
    halfway(out)
    damaged = newest(out)
    if harm == "flipped":
        flip(damaged, 2000)
    else:
        damaged.write_bytes(damaged.read_bytes()[: 0 if harm == "emptied" else -100])
    told: list[str] = []
    run(STREAM, **small(out), tell=told.append)
    assert told[0].startswith(f"{damaged} is ")
    assert told[0].endswith(" Trying the checkpoint before it.")
    assert told[1] == f"Going on after batch 4 of {out / 'checkpoint'}."
    assert contents(out) == whole


def test_two_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    halfway(tmp_path)
    for file in (tmp_path / "checkpoint").glob("*.ckpt"):
        flip(file, 2000)
    before = contents(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        run(STREAM, **small(tmp_path), tell=lambda _: None)
    assert str(caught.value).startswith(
        f"{tmp_path}/checkpoint holds no checkpoint that can be read: "
    )
    assert str(caught.value).endswith(
        "Begin anew with another checkpoint, or restore this one from a copy."
    )
    assert contents(tmp_path) == before


def test_a_checkpoint_of_a_newer_kmeander_is_refused(tmp_path: Path) -> None:
    halfway(tmp_path)
    file = newest(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[:8] + struct.pack("<I", 7) + data[12:])
    with pytest.raises(CheckpointError) as caught:
        run(STREAM, **small(tmp_path))
    assert str(caught.value) == (
        f"{file} has format 7, this kmeander 0.1.0 reads 2. Install a newer kmeander."
    )
    checkpoint.write(file, {**checkpoint.from_bytes(data, "x"), "layout": 9})
    with pytest.raises(CheckpointError) as caught:
        run(STREAM, **small(tmp_path))
    assert str(caught.value) == (
        f"{file} has layout 9, this kmeander reads 1. Install a newer kmeander."
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_clusters": 5}, "n_clusters 3, this one has 5"),
        ({"random_state": 1}, "random_state 0, this one has 1"),
        ({"columns": ["x1"]}, "the columns x0, x1, x2, this one has x1"),
        ({"prepare": None}, "prepare auto, this one has none"),
        ({"id_column": "x0"}, "the columns x0, x1, x2, this one has x1, x2"),
        ({"steps": "other.jsonl"}, "steps {}/steps.jsonl, this one has other.jsonl"),
        ({"assignments": None}, "assignments {}/rows.ndjson, this one has none"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    halfway(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        run(STREAM, **small(tmp_path, **change))
    assert str(caught.value) == (
        f'checkpoint="{tmp_path}/checkpoint" belongs to a run with {words.format(tmp_path)}. Use '
        "the same, or another checkpoint to begin anew."
    )
    assert contents(tmp_path) == before


def test_a_checkpoint_of_another_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n2\n3\n")
    (tmp_path / "b.csv").write_text("a\n1\n2\n3\n")
    run(tmp_path / "a.csv", 2, checkpoint=tmp_path / "c")
    with pytest.raises(CheckpointError) as caught:
        run(tmp_path / "b.csv", 2, checkpoint=tmp_path / "c")
    assert f"the source {tmp_path}/a.csv, this one has {tmp_path}/b.csv" in str(caught.value)


def test_rho_and_init_may_change_and_it_is_said(tmp_path: Path) -> None:
    halfway(tmp_path)
    told: list[str] = []
    run(STREAM, **small(tmp_path, rho=0.8, init="hungarian"), tell=told.append)
    assert told == [
        "init changes from previous to hungarian with this batch.",
        "rho changes from 0.6 to 0.8 with this batch.",
        f"Going on after batch 5 of {tmp_path}/checkpoint.",
    ]
    steps = [json.loads(line) for line in lines_in(tmp_path / "steps.jsonl")]
    assert [step["rho"] for step in steps] == [0.6] * 5 + [0.8] * 4


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    with CheckpointFolder(tmp_path / "checkpoint") as folder:
        folder.save({"kind": "walk"})
    with pytest.raises(CheckpointError, match="does not hold the checkpoints of a run"):
        run(STREAM, **small(tmp_path))


def test_two_runs_do_not_share_a_checkpoint(readings: Path, tmp_path: Path) -> None:
    first = subprocess.Popen(
        [PROGRAM, *words(readings, tmp_path, "--follow")], stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: lines_in(tmp_path / "steps.jsonl"))
        before = len(lines_in(tmp_path / "steps.jsonl"))
        second = kmeander(*words(readings, tmp_path, "--follow"))
        assert second.returncode == 1
        assert second.stderr == (
            f"kmeander run: --checkpoint {tmp_path}/checkpoint is in use by another run (process "
            f"{first.pid}). Wait until it ends, or name another folder.\n"
        )
        assert len(lines_in(tmp_path / "steps.jsonl")) >= before
    finally:
        first.kill()
        first.wait()
    # The lock dies with its process.
    assert kmeander(*words(readings, tmp_path)).returncode == 0


def test_two_runs_on_one_checkpoint_are_noticed_where_nothing_locks(tmp_path: Path) -> None:
    """Some file systems have no locks; people remove them."""
    with CheckpointFolder(tmp_path / "c") as one:
        one.save({"n": 1})
        (tmp_path / "c" / "lock").unlink()
        with CheckpointFolder(tmp_path / "c") as other:
            other.save({"n": 2})
        with pytest.raises(CheckpointError) as caught:
            one.save({"n": 3})
        assert [state["n"] for state in one.states(print)] == [2, 1]
    assert str(caught.value) == (
        f"{tmp_path}/c/checkpoint-00000001.ckpt was written by another run, while this one was "
        "going on: nothing locks the folder where it lies, or the lock was removed. End one of the "
        "two, and run the same command again."
    )


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    run(STREAM, **small(tmp_path, checkpoint_every=1))
    names = sorted(file.name for file in (tmp_path / "checkpoint").iterdir())
    # One for the beginning, one for each of nine batches, one without the events that the end said.
    assert names == ["checkpoint-00000009.ckpt", "checkpoint-00000010.ckpt", "lock"]


def test_an_output_that_was_changed_is_noticed(tmp_path: Path) -> None:
    halfway(tmp_path)
    steps = tmp_path / "steps.jsonl"
    whole = steps.read_bytes()
    steps.write_bytes(whole[:100])
    with pytest.raises(StreamError) as caught:
        run(STREAM, **small(tmp_path))
    assert str(caught.value) == (
        f'steps="{steps}" has 100 bytes, the checkpoint has written {len(whole)}. It was changed '
        "or lost: put it back, or begin anew with another checkpoint."
    )
    steps.unlink()
    with pytest.raises(StreamError, match="has 0 bytes, the checkpoint has written"):
        run(STREAM, **small(tmp_path))
    assert not steps.exists()


def test_parts_that_are_missing_or_foreign_are_noticed(tmp_path: Path) -> None:
    parts = tmp_path / "rows"
    settings: dict[str, Any] = {"assignments": f"{parts}/"}
    halfway(tmp_path, **settings)
    assert sorted(file.name for file in parts.iterdir()) == [
        f"part-00000{i}.parquet" for i in range(3)
    ]
    first = parts / "part-000000.parquet"
    kept = first.read_bytes()
    first.unlink()
    with pytest.raises(StreamError, match=r"lacks part-000000\.parquet, which the checkpoint has"):
        run(STREAM, **small(tmp_path, **settings))
    first.write_bytes(kept)
    (parts / "mine.txt").write_text("x")
    with pytest.raises(
        StreamError, match=r"holds mine\.txt, which is not a part of an earlier run"
    ):
        run(STREAM, **small(tmp_path, **settings))
    assert (parts / "mine.txt").read_text() == "x"


def test_a_shorter_stream_than_was_committed_is_refused(tmp_path: Path) -> None:
    halfway(tmp_path)
    with pytest.raises(ValueError, match=r"has 60 rows, but the checkpoint has read 150\."):
        run(STREAM[:2], **small(tmp_path))


def test_a_finished_run_has_nothing_new(tmp_path: Path) -> None:
    run(STREAM, **small(tmp_path))
    before = contents(tmp_path)
    summary = run(STREAM, **small(tmp_path), tell=lambda _: None).summary
    assert (summary.n_batches, summary.resumed_at) == (0, 9)
    assert contents(tmp_path) == before


def test_stopping_from_python_commits(tmp_path: Path) -> None:
    whole = expected(tmp_path)
    out = make(tmp_path / "out")
    stop = threading.Event()

    def show(progress: Progress) -> None:
        if progress.summary.n_batches == 3:
            stop.set()

    summary = run(STREAM, **small(out), on_progress=show, stop=stop).summary
    assert summary.stopped
    assert summary.n_batches == 3
    assert run(STREAM, **small(out), tell=lambda _: None).summary.resumed_at == 3
    assert contents(out) == whole


def test_batches_before_a_bad_row_are_committed_and_it_may_be_mended(tmp_path: Path) -> None:
    rows = np.concatenate(STREAM)
    text = ["a,b,c", *(",".join(map(repr, row)) for row in rows.tolist())]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(text) + "\n")
    out, whole = make(tmp_path / "out"), make(tmp_path / "whole")
    run(path, batch_size=30, **small(whole))
    text[100] = "1,2,oops"
    path.write_text("\n".join(text) + "\n")
    with pytest.raises(ValueError, match=r"x\.csv line 101: 'oops' in column 'c' is not a number"):
        run(path, batch_size=30, **small(out))
    assert len(lines_in(out / "steps.jsonl")) == 3
    text[100] = ",".join(map(repr, rows[99].tolist()))
    path.write_text("\n".join(text) + "\n")
    assert run(path, batch_size=30, **small(out), tell=lambda _: None).summary.resumed_at == 3
    assert contents(out) == contents(whole)


def limited(n_bytes: int) -> Any:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return limit


@pytest.mark.parametrize(
    ("n_bytes", "option"), [(3_000, "--steps"), (21_500, "--model-out"), (25_000, "--")]
)
def test_a_full_disk_ends_in_one_line_and_the_run_can_go_on(
    n_bytes: int, option: str, readings: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """Files may not grow beyond a size, as on a disk that is full."""
    failed = subprocess.run(
        [PROGRAM, *words(readings, tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited(n_bytes),
    )
    assert failed.returncode == 1
    *events, message = failed.stderr.splitlines()
    assert all(line.startswith(("batch ", f"{readings}: ")) for line in events)
    assert message.startswith(f"kmeander run: {option}")
    assert "cannot be written: File too large." in message
    assert "make room, and run the same command again." in message
    done = kmeander(*words(readings, tmp_path))
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == undisturbed


def test_a_folder_that_cannot_be_written_is_one_line(readings: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    inside = f"{tmp_path}/file/inside"
    cases = {
        ("--checkpoint", inside): "cannot be made: Not a directory.",
        ("--assignments", f"{inside}.parquet"): "cannot be written: Not a directory.",
        ("--assignments", f"{tmp_path}/no/rows.ndjson"): "cannot be written: No such file or",
        ("--centroids", f"{tmp_path}/no/c.csv"): "cannot be written: there is no folder",
        ("--model-out", f"{tmp_path}/no/model.km"): "cannot be written: there is no folder",
        ("--bad-rows", f"{tmp_path}/no/bad.ndjson"): "cannot be written: No such file or",
        ("--assignments", f"{tmp_path}/rows.txt"): "its ending does not say the format.",
        ("--centroids", f"{tmp_path}/c.txt"): "must end in .csv, .parquet, .pq.",
    }
    for option, message in cases.items():
        done = kmeander("run", str(readings), "--exclude", "id", "--steps", "/dev/null", *option)
        assert done.returncode == 1
        *_, line = done.stderr.splitlines()  # before it comes what was recognised
        assert line.startswith(f"kmeander run: {option[0]} {option[1]}")
        assert message in done.stderr


def test_a_checkpoint_of_layout_1_goes_on_for_ever(tmp_path: Path) -> None:
    """Made by ``python -m tests.golden.make_run``; kernels may differ, so to rounding."""
    folder = make(tmp_path / "checkpoint")
    (folder / "checkpoint-00000003.ckpt").write_bytes(golden.RUN.read_bytes())
    settings: Any = {"init": "hungarian", "rho": 0.5, "refine": None, "forgetting": "fixed"}
    resumed = run(golden_stream(), 3, checkpoint=folder, tell=lambda _: None, **settings).summary
    first = golden_stream()[0]
    scaled = [(points - first.mean(axis=0)) / first.std(axis=0) for points in golden_stream()]
    whole = run(scaled, 3, prepare=None, **settings).summary
    assert resumed.resumed_at == 3
    assert resumed.last is not None and resumed.last.centroids is not None
    assert whole.last is not None and whole.last.centroids is not None
    np.testing.assert_allclose(resumed.last.centroids, whole.last.centroids, rtol=1e-9)


def test_a_run_that_an_earlier_version_was_writing_goes_on_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by ``python -m tests.golden.make_stopped``: committed after batch 4, killed in 5."""
    out = tmp_path / "out"
    shutil.copytree(golden.STOPPED, out)
    monkeypatch.chdir(out)
    before = lines_in(out / "steps.jsonl")
    assert len(before) == 5
    summary = run("readings.csv", **make_stopped.SETTINGS, tell=lambda _: None).summary
    assert summary.resumed_at == 4
    after = lines_in(out / "steps.jsonl")
    assert after[:4] == before[:4]
    good = [f"r{i}" for i in range(make_stopped.N_ROWS) if i != 7]
    assert [json.loads(line)["index"] for line in after] == list(range(-(-len(good) // 6)))
    assert pq.read_table(out / "rows")["id"].to_pylist() == good
    assert len(lines_in(out / "bad.ndjson")) == 1


def test_loading_goes_on_where_the_run_was(tmp_path: Path) -> None:
    run(STREAM[:5], 3, model_out=tmp_path / "model.km", random_state=4)
    model = load(tmp_path / "model.km")
    for points in STREAM[5:]:
        import pandas as pd

        model.partial_fit(pd.DataFrame(points, columns=["x0", "x1", "x2"]))
    whole = run(STREAM, 3, random_state=4).summary
    assert model.step_ == whole.last
