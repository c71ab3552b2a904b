"""How a run ends: 0 done, 1 could not go on, 2 wrong usage, 3 an alarm that was asked for."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kmeander import run
from kmeander.sinks import read_steps
from tests.program import PROGRAM, kmeander
from tests.streams import drifting_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """16 batches of 50 rows, whose clusters jump at every fourth; born and died none."""
    path = tmp_path / "readings.csv"
    rows = np.concatenate(drifting_stream(16, n_points=50, n_features=2, n_clusters=3))
    np.savetxt(path, rows, "%.17g", delimiter=",", header="a,b", comments="")
    return path


def words(readings: Path | str, tmp_path: Path, *more: str) -> list[str]:
    return ["run", str(readings), "--clusters", "3", "--batch-size", "50", "--init", "previous",
            "--steps", str(tmp_path / "steps.jsonl"), *more]  # fmt: skip


def drifts(steps: Path) -> list[int]:
    return [
        step.index for step in read_steps(steps) for event in step.events
        if event.kind == "drift" and not event.unconfirmed
    ]  # fmt: skip


def test_an_alarm_that_was_asked_for_gives_3_at_the_end(readings: Path, tmp_path: Path) -> None:
    done = kmeander(*words(readings, tmp_path, "--fail-on", "trend,drift", "--fail-on", "died"))
    n_drifts = len(drifts(tmp_path / "steps.jsonl"))
    assert n_drifts >= 2
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(f"Failing, as asked: {n_drifts} drift")
    assert len(list(read_steps(tmp_path / "steps.jsonl"))) == 16  # to its end
    report = kmeander("report", str(tmp_path / "steps.jsonl"), "--out", str(tmp_path / "r.md"),
                      "--fail-on", "drift")  # fmt: skip
    assert report.returncode == 3
    quiet = kmeander(*words(readings, tmp_path, "--fail-on", "drift", "--quiet"))
    assert (quiet.returncode, quiet.stderr) == (3, "")


def test_without_such_an_alarm_it_is_0_and_mishaps_are_1_and_2(
    readings: Path, tmp_path: Path
) -> None:
    assert kmeander(*words(readings, tmp_path, "--fail-on", "trend")).returncode == 0
    gone = kmeander(*words(tmp_path / "none.csv", tmp_path, "--fail-on", "drift"))
    assert gone.returncode == 1
    wrong = kmeander(*words(readings, tmp_path, "--fail-on", "drifts"))
    assert wrong.returncode == 2
    assert "'drifts' is no kind of event: there are drift, born" in " ".join(
        wrong.stderr.replace("│", " ").split()
    )


def test_unconfirmed_events_do_not_count(tmp_path: Path) -> None:
    """A small move in the first batches, of which the noise is not known yet."""
    rng = np.random.default_rng(0)
    batches = [rng.normal([0.6 * (i >= 6), 0.0], size=(200, 2)) for i in range(12)]
    path, steps = tmp_path / "x.csv", tmp_path / "steps.jsonl"
    np.savetxt(path, np.concatenate(batches), delimiter=",", header="a,b", comments="")
    done = kmeander("run", str(path), "--clusters", "1", "--batch-size", "200", "--prepare", "none",
                    "--steps", str(steps), "--fail-on", "drift,moved,grew,shrank")  # fmt: skip
    told = [event for step in read_steps(steps) for event in step.events]
    assert told and all(event.unconfirmed for event in told)
    assert done.returncode == 0


def test_stop_on_ends_after_the_batch_and_the_rest_is_learned_later(
    readings: Path, tmp_path: Path
) -> None:
    steps = tmp_path / "steps.jsonl"
    options = ["--stop-on", "drift", "--checkpoint", str(tmp_path / "state")]
    first = kmeander(*words(readings, tmp_path, *options))
    assert first.returncode == 3
    (drift,) = drifts(steps)
    assert len(list(read_steps(steps))) == drift + 1
    assert "Stopped, as asked, on drift; the same command goes on from here." in first.stderr
    second = kmeander(*words(readings, tmp_path, *options))
    assert second.returncode == 3 and len(drifts(steps)) == 2
    last = kmeander(*words(readings, tmp_path, *options[2:]))
    assert last.returncode == 0
    whole = tmp_path / "whole.jsonl"
    run(readings, 3, batch_size=50, init="previous", steps=whole)
    assert steps.read_bytes() == whole.read_bytes()


def test_alarms_before_a_crash_count_and_are_told_once(readings: Path, tmp_path: Path) -> None:
    """Killed after its last alarm: the run that goes on learns none, and still ends with 3."""
    text = readings.read_text().splitlines(keepends=True)
    n_before = 1 + 50 * 14
    options = ["--checkpoint", str(tmp_path / "state"), "--checkpoint-every", "1"]
    process = subprocess.Popen(
        [PROGRAM, *words("-", tmp_path, *options)], stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write("".join(text[:n_before]))
    process.stdin.flush()
    steps = tmp_path / "steps.jsonl"
    while not (steps.exists() and steps.read_bytes().count(b"\n") == 14):
        time.sleep(0.01)
    process.kill()
    process.wait()
    process.stdin.close()
    n_drifts = len(drifts(steps))
    assert n_drifts >= 2
    done = kmeander(*words("-", tmp_path, *options, "--fail-on", "drift"), stdin="".join(text))
    assert len(drifts(steps)) == n_drifts  # none is new
    assert done.returncode == 3
    assert f"Failing, as asked: {n_drifts} drift.\n" in done.stderr
    # It has said so: what comes later is judged by itself.
    again = kmeander(*words("-", tmp_path, *options, "--fail-on", "drift"), stdin="".join(text))
    assert again.returncode == 0


def test_a_run_that_is_stopped_is_not_over(readings: Path, tmp_path: Path) -> None:
    """SIGTERM, as from systemd: 0, and the alarm is told by the run that comes to the end."""
    text = readings.read_text().splitlines(keepends=True)
    options = ["--checkpoint", str(tmp_path / "state"), "--fail-on", "drift"]
    process = subprocess.Popen(
        [PROGRAM, *words("-", tmp_path, *options)], stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write("".join(text[: 1 + 50 * 8]))
    process.stdin.flush()
    steps = tmp_path / "steps.jsonl"
    while not (steps.exists() and steps.read_bytes().count(b"\n") == 8):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdin.close()
    assert drifts(steps)
    done = kmeander(*words("-", tmp_path, *options), stdin="".join(text[: 1 + 50 * 8]))
    assert done.returncode == 3


def test_python_counts_too(readings: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 50, "checkpoint": tmp_path / "state"}
    summary = run(readings, 3, stop_on=["drift"], **options).summary
    assert summary.stopped and summary.stopped_on == "drift"
    assert summary.events_since_end["drift"] == 1
    assert run(readings, 3, **options).summary.stopped_on is None
