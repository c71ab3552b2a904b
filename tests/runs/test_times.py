"""When things happened: event time on its way from rows to Steps, pages, words and the log."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander import InputError, Step, run
from kmeander.page.head import figures_html
from kmeander.page.report import as_page
from kmeander.page.summary import as_markdown, as_plain
from kmeander.page.timeline import read_timeline
from kmeander.records.event_time import as_text, checked_text, microseconds_of
from kmeander.sinks import read_steps
from tests.program import kmeander
from tests.streams import drifting_stream

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)


def moment(minutes: float) -> str:
    return f"{BEGIN + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """A row a minute, in two columns, which drift; 600 rows."""
    rows = np.concatenate(drifting_stream(10, n_features=2, n_clusters=2))
    path = tmp_path / "readings.csv"
    lines = [f"{moment(i)},{a!r},{b!r}" for i, (a, b) in enumerate(rows.tolist())]
    path.write_text("at,a,b\n" + "\n".join(lines) + "\n")
    return path


@given(
    minutes=st.lists(st.integers(0, 300), min_size=2, max_size=40),
    cut=st.sampled_from([{"batch_size": 7}, {"every": "30m"}]),
    late_rows=st.sampled_from(["keep", "skip"]),
)
def test_a_batch_says_when_its_first_and_last_row_happened(
    minutes: list[int], cut: dict[str, Any], late_rows: Literal["keep", "skip"]
) -> None:
    """Whatever the order of rows: the plain loops give the same."""
    steps: list[Step] = []
    stream = pd.DataFrame(
        {"at": [BEGIN + timedelta(minutes=m) for m in minutes], "a": np.arange(len(minutes)) * 1.0}
    )
    run(stream, 1, time_column="at", prepare=None, late_rows=late_rows, **cut,
        on_progress=lambda now: steps.append(now.summary.last))  # type: ignore[arg-type]  # fmt: skip
    batches: list[list[int]] = []
    period = None
    for place, minute in enumerate(minutes):
        if "batch_size" in cut:
            begins = place % 7 == 0
        elif period is not None and minute // 30 < period:
            if late_rows == "skip":
                continue
            begins = False
        else:
            begins, period = minute // 30 != period, minute // 30
        if begins:
            batches.append([])
        batches[-1].append(minute)
    told = {step.index: (step.first_time, step.last_time) for step in steps}
    assert list(told.values()) == [(moment(min(b)), moment(max(b))) for b in batches]


def test_times_stand_in_the_steps_and_change_nothing_else(readings: Path, tmp_path: Path) -> None:
    timed, plain = tmp_path / "timed.jsonl", tmp_path / "plain.jsonl"
    run(readings, 2, time_column="at", batch_size=60, steps=timed)
    run(readings, 2, exclude=["at"], batch_size=60, steps=plain)
    with_times = [json.loads(line) for line in timed.read_text().splitlines()]
    without = [json.loads(line) for line in plain.read_text().splitlines()]
    assert with_times[3]["first_time"] == "2026-06-01T03:00:00Z"
    assert with_times[3]["last_time"] == "2026-06-01T03:59:00Z"
    for one, other in zip(with_times, without, strict=True):
        del one["first_time"], one["last_time"]
        one.pop("run", None)
        other.pop("run", None)
        for profile in one.get("profiles", ()):
            assert profile.pop("since") == "2026-06-01T00:00:00Z"
        assert one == other
    assert [step.when() for step in read_steps(timed)][:2] == [
        "2026-06-01 00:00 to 00:59 UTC",
        "2026-06-01 01:00 to 01:59 UTC",
    ]


def test_a_run_that_goes_on_writes_the_same_times(readings: Path, tmp_path: Path) -> None:
    part, options = tmp_path / "part.csv", {"time_column": "at", "batch_size": 60}
    whole, halves = tmp_path / "whole.jsonl", tmp_path / "halves.jsonl"
    run(readings, 2, steps=whole, **options)  # type: ignore[arg-type]
    text = readings.read_text().splitlines(keepends=True)
    part.write_text("".join(text[:301]))
    run(part, 2, steps=halves, checkpoint=tmp_path / "state", **options)  # type: ignore[arg-type]
    part.write_text("".join(text))
    run(part, 2, steps=halves, checkpoint=tmp_path / "state", **options)  # type: ignore[arg-type]
    assert halves.read_text().replace("part.csv", "readings.csv") == whole.read_text()


def test_every_page_says_when(readings: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    run(readings, 2, time_column="at", every="1h", steps=steps)
    timeline = read_timeline(steps)
    events = as_plain(timeline)["events"]
    assert events
    for event in events:
        assert event["first_time"] == moment(60 * event["batch"])
        assert event["last_time"] == moment(60 * event["batch"] + 59)
    hour = events[0]["batch"]
    words = f"2026-06-01 {hour:02}:00 to {hour:02}:59 UTC"
    assert f"| {hour} | {words} | {events[0]['kind']} | " in as_markdown(timeline)
    assert json.dumps(words) in as_page(timeline)
    assert "<dt>from</dt><dd>2026-06-01 00:00 UTC</dd>" in figures_html(timeline)
    assert "<dt>to</dt><dd>2026-06-01 09:59 UTC</dd>" in figures_html(timeline)
    done = kmeander("run", str(readings), "--clusters", "2", "--time-column", "at",
                    "--every", "1h", "--steps", str(tmp_path / "again.jsonl"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"batch {hour}, {words}: " in done.stderr
    assert (tmp_path / "again.jsonl").read_bytes() == steps.read_bytes()


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_carry_time_and_level(readings: Path, form: str) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    done = kmeander("run", str(readings), "--clusters", "2", "--time-column", "at",
                    "--every", "1h", "--log", form)  # fmt: skip
    assert done.returncode == 0
    found = []
    for line in done.stderr.splitlines():
        if form == "json":
            entry = json.loads(line)
            assert list(entry) == ["time", "level", "message"]
            found.append(tuple(entry.values()))
        else:
            match = re.fullmatch(r"(\S+Z) (INFO|WARNING|ERROR) (.+)", line)
            assert match is not None, line
            found.append((match[1], match[2].lower(), match[3]))
    assert all(before <= datetime.fromisoformat(at) <= datetime.now(UTC) for at, _, _ in found)
    assert any(level == "warning" and "batch 4, 2026" in said for _, level, said in found)
    assert any(level == "info" and "600 rows in 10 batches" in said for _, level, said in found)
    assert all("Z" not in line or "_time" in line for line in done.stdout.splitlines()[1:])


def test_the_error_that_ends_a_run_is_a_log_line_too(readings: Path) -> None:
    done = kmeander("run", str(readings), "--columns", "c", "--log", "json")
    assert done.returncode == 1
    (line,) = map(json.loads, done.stderr.splitlines())
    assert line["level"] == "error"
    assert line["message"] == (
        f"kmeander run: {readings} has no column 'c'. It has 'at', 'a', 'b'."
    )
    wrong = kmeander("run", str(readings), "--log", "xml")
    assert wrong.returncode == 2 and "--log must be text or json, got 'xml'" in wrong.stderr


@given(st.integers(-(2**62), 2**62))
def test_times_of_any_year_can_be_written_and_read(microseconds: int) -> None:
    text = as_text(microseconds)
    assert microseconds_of(text) == microseconds and checked_text(text) == text


@pytest.mark.parametrize("value", [3, "soon", "2026-06-03", "2026-13-03T00:00:00Z", "NaTZ"])
def test_a_steps_file_with_another_time_is_refused(value: Any) -> None:
    known = {"index": 0, "n_points": 1, "waiting": True, "rho": 0.5, "n_batches": 0, "mass": 1.0}
    with pytest.raises(InputError) as caught:
        Step.from_dict({**known, "first_time": value})
    assert str(caught.value) == f"{value!r} is no time such as 2026-06-03T00:00:00Z."
