"""What the page is made of: reading steps, thinning, the report in its three formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kmeander
from kmeander import InputError
from kmeander.page import series
from kmeander.page.follower import Follower
from kmeander.page.moments import Moment
from kmeander.page.palette import color_of
from kmeander.page.report import as_page
from kmeander.page.summary import as_markdown, as_plain
from kmeander.page.thinning import thinned
from kmeander.page.timeline import Timeline, read_timeline
from tests.streams import drifting_stream

HOSTILE = ["<script>alert(1)</script>", "$$\\frac{a}{b}$$", "</script><b>x"]


def write_run(path: Path, names: list[str] | None = None, n_batches: int = 30) -> Path:
    import pyarrow as pa

    names = names or ["temp", "load", "rpm"]
    batches = [
        pa.table(dict(zip(names, points.T, strict=True)))
        for points in drifting_stream(n_batches, seed=3)
    ]
    kmeander.run(
        [table.to_batches()[0] for table in batches],
        4,
        steps=path,
        init="previous",
        rho=0.6,
        prepare=None,
    )
    return path


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "steps.jsonl")


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kmeander", *words], cwd=cwd, capture_output=True, text=True
    )


def test_a_story_has_every_batch_and_every_event(steps: Path) -> None:
    timeline = read_timeline(steps)
    lines = [json.loads(line) for line in steps.read_text().splitlines()]
    assert timeline.n_batches == len(lines) == 30
    assert [moment.index for moment in timeline.moments] == list(range(30))
    assert [one.event.to_dict() for one in timeline.events] == [
        event for line in lines for event in line["events"]
    ]
    assert sum(timeline.counts.values()) > 0
    first, newest = timeline.moments[0], timeline.moments[-1]
    assert newest.surrogate == lines[-1]["surrogate_error"]
    np.testing.assert_allclose(newest.shares, np.array(lines[-1]["masses"]) / lines[-1]["mass"])
    plane = lines[0]["run"]["projection"]
    places = (np.array(lines[0]["centroids"]) - plane["mean"]) @ np.array(plane["components"]).T
    np.testing.assert_allclose(first.places, places)


def test_lives_agree_with_the_ids(steps: Path) -> None:
    timeline = read_timeline(steps)
    lines = [json.loads(line) for line in steps.read_text().splitlines()]
    for number, life in timeline.lives.items():
        there = [line["index"] for line in lines if number in line["ids"]]
        assert (life.begin, life.end) == (there[0], there[-1])
        assert there == list(range(there[0], there[-1] + 1))
        assert (life.went == "") == (there[-1] == 29)


def test_centroids_may_be_drawn_by_two_columns(steps: Path) -> None:
    timeline = read_timeline(steps, ["rpm", "temp"])
    line = json.loads(steps.read_text().splitlines()[-1])
    np.testing.assert_allclose(timeline.moments[-1].places, np.array(line["centroids"])[:, [2, 0]])
    assert timeline.axes == ("rpm", "temp")
    with pytest.raises(InputError) as raised:
        read_timeline(steps, ["rpm", "speed"])
    assert str(raised.value) == (
        f"{steps} has no column 'speed', which features names. Its columns are temp, load, rpm."
    )


def lines_of(steps: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in steps.read_text().splitlines()]


def without_ids(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in ("ids", "events")} for line in lines]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "", "{} holds no Steps yet. kmeander.run(steps=...) writes such a file."),
        (lambda _: "hello\n",
         "{} line 1 is not JSON (Expecting value: line 1 column 1 (char 0)). "
         "kmeander.run(steps=...) "
         "writes such a file."),
        (lambda _: "[1]\n",
         "{} line 1 is not a Step but list. kmeander.run(steps=...) writes such a file."),
        (lambda lines: [lines[0], lines[2]],
         "{} line 2 is batch 2, the line before is batch 0: lines are missing, or the file holds "
         "more than one run."),
        (lambda lines: [lines[0], *without_ids(lines[1:])],
         "{} line 2 has no ids, unlike the lines before it: two versions of kmeander wrote to one "
         "file. Run the stream again, into another file."),
        (lambda lines: [lines[0], {**lines[1], "centroids": lines[1]["centroids"][:2]}],
         "{} line 2 has 2 clusters of 3 columns, the line before 4 of 3: the file holds more than "
         "one run."),
        (lambda lines: [{**lines[0], "waiting": True, "centroids": None, "masses": None}],
         "{}: all 1 batches so far wait for enough distinct points; there are no clusters to show "
         "yet."),
    ],
)  # fmt: skip
def test_a_file_that_is_no_run_is_explained(
    change: Any, message: str, steps: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    text = change(lines_of(steps))
    if not isinstance(text, str):
        text = "".join(json.dumps(line) + "\n" for line in text)
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_timeline(path)
    assert str(raised.value) == message.format(path)


def test_a_line_cut_off_is_left_out_and_told(steps: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(steps.read_text()[:-200])
    timeline = read_timeline(path)
    assert timeline.n_batches == 29
    note = "Line 30 is cut off and left out; the run may still be writing it."
    assert timeline.notes == [note]
    done = command("report", str(path), "--out", "cut.md", cwd=tmp_path)
    assert done.returncode == 0 and note in done.stderr


def test_a_file_of_an_older_version_is_shown_without_ids(steps: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in without_ids(lines_of(steps))))
    timeline = read_timeline(path)
    assert sorted(timeline.lives) == [0, 1, 2, 3] and not timeline.events
    assert timeline.notes == [
        "An older kmeander wrote this file: it has no ids and no events, so clusters are numbered "
        "by their rows."
    ]


def test_a_missing_file_and_a_binary_one_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_timeline(tmp_path / "none.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not text, so it holds no Steps"):
        read_timeline(tmp_path / "binary")


def moment(index: int, error: float) -> Moment:
    return Moment(
        index, 1, 1.0, 1.0, error, 0.0, 0.1, (0,), np.ones(1), np.zeros((1, 2)), (), (), ""
    )


@given(st.integers(0, 400), st.integers(3, 50), st.integers(0, 1000))
def test_thinning_keeps_ends_order_and_the_largest_error(n: int, most: int, seed: int) -> None:
    errors = np.random.default_rng(seed).random(n)
    moments = [moment(index, float(error)) for index, error in enumerate(errors)]
    kept = thinned(moments, most)
    assert len(kept) == min(n, most) if n <= most else len(kept) <= most
    indices = [one.index for one in kept]
    assert indices == sorted(set(indices))
    if n:
        assert indices[0] == 0 and indices[-1] == n - 1
        assert max(errors) in [one.prequential for one in kept] or n > 2
    if n > 2:
        assert errors[1:-1].max() in [one.prequential for one in kept]


def test_areas_are_stacked_to_one(steps: Path) -> None:
    timeline = read_timeline(steps)
    columns = series.areas(list(timeline.moments))
    assert len(columns["cluster"]) == len(timeline.lives)
    assert max(float(ys.max()) for ys in columns["ys"]) == pytest.approx(1.0)
    assert columns["color"] == [color_of(int(name)) for name in columns["cluster"]]


def test_a_report_is_one_file_without_addresses(steps: Path) -> None:
    page = as_page(read_timeline(steps))
    assert not re.findall(r"<(?:script|link)[^>]+(?:src|href)=", page)
    assert "<title>kmeander: the list</title>" in page


def test_names_are_shown_as_text_everywhere(tmp_path: Path) -> None:
    path = write_run(tmp_path / "steps.jsonl", HOSTILE)
    timeline = read_timeline(path)
    page = as_page(timeline)
    assert "<script>alert" not in page and "</script><b>x" not in page
    text = as_markdown(timeline)
    assert "<script>" not in text


def test_markdown_and_json_say_the_same(steps: Path) -> None:
    timeline = read_timeline(steps)
    plain = as_plain(timeline)
    assert plain["n_batches"] == 30 and len(plain["clusters"]) == 4
    assert json.loads(json.dumps(plain)) == plain
    text = as_markdown(timeline)
    for event in plain["events"]:
        assert f"| {event['batch']} | {event['kind']} |" in text
    assert sum(plain["counts"].values()) == len(plain["events"])


def test_the_command_writes_all_formats_and_fails_when_asked(steps: Path, tmp_path: Path) -> None:
    done = command("report", str(steps), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size < 15e6
    done = command("report", str(steps), "--format", "json", "--out", "-", cwd=tmp_path)
    found = json.loads(done.stdout)
    kinds = list(found["counts"])
    absent = next(kind for kind in ("died", "born", "grew", "drift", "split", "absorbed", "moved",
                                    "shrank", "none") if kind not in kinds)  # fmt: skip
    done = command("report", str(steps), "--out", "r.md", "--fail-on", kinds[0], cwd=tmp_path)
    assert done.returncode == 3 and "Failing, as asked" in done.stderr
    if absent != "none":
        done = command("report", str(steps), "--out", "r.md", "--fail-on", absent, cwd=tmp_path)
        assert done.returncode == 0
    done = command("report", str(steps), "--features", "temp", cwd=tmp_path)
    assert done.returncode == 2
    done = command("report", "none.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "kmeander report: none.jsonl cannot be read: No such file or directory. kmeander run "
        "--steps writes such a file."
    )


def wait_for(follower: Follower, n_batches: int) -> Timeline:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        timeline = follower.newest(1000)
        if timeline.n_batches >= n_batches and not follower.problem:
            return timeline
        time.sleep(0.02)
    raise AssertionError(f"{follower.problem}, {follower.newest(1).n_batches} batches")


def test_a_growing_file_is_followed_and_an_old_one_forgotten(steps: Path, tmp_path: Path) -> None:
    path = tmp_path / "grows.jsonl"
    text = steps.read_text()
    lines = text.splitlines(keepends=True)
    with Follower(path, keep=10) as follower:
        assert not follower.has_clusters
        path.write_text("".join(lines[:3]) + lines[3][:50])
        assert wait_for(follower, 3).n_batches == 3
        with path.open("a") as file:
            file.write(lines[3][50:] + "".join(lines[4:]))
        timeline = wait_for(follower, 30)
        assert [one.index for one in timeline.moments] == list(range(20, 30))
        assert [one.index for one in follower.newest(4).moments] == [26, 27, 28, 29]
        path.write_text("".join(lines[:2]))  # as a run does that goes on from a checkpoint
        deadline = time.monotonic() + 20
        while follower.newest(1).n_batches != 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert follower.newest(1).n_batches == 2


def test_a_bad_line_stops_the_follower_with_a_reason(steps: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(steps.read_text() + "nonsense\n")
    with Follower(path, keep=10) as follower:
        deadline = time.monotonic() + 20
        while follower.problem is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert follower.problem is not None and "line 31 is not JSON" in follower.problem


def test_ids_keep_their_colours() -> None:
    assert len({color_of(number) for number in range(24)}) == 24
    assert color_of(3) == color_of(27)


def test_a_report_of_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    steps = write_run(tmp_path / "steps.jsonl")
    done = command("report", str(steps), "--out", "r.pdf", cwd=tmp_path)
    assert done.returncode == 2
    assert "--out r.pdf ends in none of" in done.stderr
    assert not (tmp_path / "r.pdf").exists()
