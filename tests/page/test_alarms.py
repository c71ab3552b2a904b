"""What report and page say of alarms: confirmed or not, their scale, trends, noise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kmeander
from kmeander import Event, InputError
from kmeander.events import KINDS
from kmeander.page import series
from kmeander.page.head import figures_html
from kmeander.page.palette import EVENT_COLORS
from kmeander.page.report import as_page
from kmeander.page.status import ADVICE
from kmeander.page.summary import as_markdown, as_plain
from kmeander.page.timeline import Timeline, read_timeline

HOMES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def write_run(path: Path, moved: Iterable[float]) -> Path:
    """Write the steps of a stream whose first cluster has `moved[t]` in both columns by batch t."""
    rng = np.random.default_rng(0)
    batches = []
    for place in moved:
        homes = HOMES.copy()
        homes[0] += place
        batches.append(np.repeat(homes, 50, axis=0) + rng.normal(size=(200, 2)))
    kmeander.run(batches, 4, steps=path)
    return path


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream whose only change comes before its noise is known."""
    path = tmp_path_factory.mktemp("early") / "steps.jsonl"
    return write_run(path, 1.5 * (np.arange(26) >= 6))


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream whose first cluster walks slowly."""
    path = tmp_path_factory.mktemp("walk") / "steps.jsonl"
    return write_run(path, -0.03 * np.arange(150.0))


def report(steps: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kmeander", "report", str(steps), *words],
        cwd=steps.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_kind_of_event_can_be_asked_for_and_has_a_colour() -> None:
    assert list(EVENT_COLORS) == list(KINDS)
    assert len(set(EVENT_COLORS.values())) == len(KINDS)
    assert set(ADVICE) == set(KINDS)


def test_what_is_unconfirmed_is_shown_and_not_counted(early: Path) -> None:
    timeline = read_timeline(early)
    told = [one.event for one in timeline.events]
    assert {event.kind for event in told} >= {"moved"}
    assert all(event.unconfirmed for event in told)
    assert (timeline.counts, timeline.n_unconfirmed) == ({}, len(told))
    plain = as_plain(timeline)
    assert (plain["counts"], plain["n_unconfirmed"]) == ({}, len(told))
    assert all(event["unconfirmed"] for event in plain["events"])
    assert f"- unconfirmed events: {len(told)}\n" in as_markdown(timeline)
    assert "unconfirmed)" in as_markdown(timeline)
    columns = series.events(timeline, series.lives(timeline, 0), 0)
    assert "moved ?" in columns["event"]
    assert set(columns["alpha"]) == {series.FAINT}
    assert "moved ?" in as_page(timeline)


def test_no_pipeline_fails_on_what_is_unconfirmed(early: Path) -> None:
    done = report(early, "--out", "r.md", "--fail-on", "moved", "--fail-on", "drift")
    n_events = read_timeline(early).n_unconfirmed
    assert done.returncode == 0
    assert done.stderr == f"r.md: 26 batches; events: none; {n_events} unconfirmed.\n"


def test_a_pipeline_may_fail_on_a_trend(walk: Path) -> None:
    done = report(walk, "--out", "r.md", "--fail-on", "trend")
    assert done.returncode == 3
    assert done.stderr.endswith("Failing, as asked: 1 trend.\n")
    (event,) = (one.event for one in read_timeline(walk).events if one.event.kind == "trend")
    assert event.over is not None and event.over >= 72
    text = (walk.parent / "r.md").read_text()
    assert f"standard deviations over the last {event.over} batches" in text


def test_the_noise_is_said_in_words(early: Path, walk: Path) -> None:
    for steps in (early, walk):
        timeline = read_timeline(steps)
        assert timeline.last is not None and timeline.last.noise is not None
        words = timeline.last.noise.words()
        sentence = f"{words[0].upper()}{words[1:]}."
        assert sentence in as_markdown(timeline)
        assert sentence in figures_html(timeline)
        assert as_plain(timeline)["noise"] == {**vars(timeline.last.noise), "words": words}


def timeline_of(*changes: dict[str, Any]) -> Timeline:
    """Return the timeline of Steps with two clusters, each with the fields given."""
    timeline = Timeline()
    for index, change in enumerate(changes):
        plain = {
            "index": index, "n_points": 10, "waiting": False, "rho": 0.6, "n_batches": 1,
            "mass": 10.0, "masses": [5.0, 5.0], "centroids": [[0.0], [1.0]], "ids": [0, 1],
            **change,
        }  # fmt: skip
        timeline.add(json.dumps(plain), index + 1)
    return timeline


def test_a_file_without_noise_says_nothing_of_it() -> None:
    timeline = timeline_of({})
    assert as_plain(timeline)["noise"] is None
    assert 'class="noise"' not in figures_html(timeline)
    assert "atches vary" not in as_markdown(timeline)


def test_provisional_clusters_are_faint_until_they_are_told() -> None:
    born = Event("split", 2, 0, value=0.5)
    timeline = timeline_of(
        {}, {"ids": [0, 2], "provisional": [2], "asleep": [[1, 0]]},
        {"ids": [0, 2], "provisional": [2], "asleep": [[1, 0]]},
    )  # fmt: skip
    assert "- clusters: 2, 1 provisional\n- ids so far: 2\n" in as_markdown(timeline)
    lives = series.lives(timeline, 0)
    assert lives["came"][2] == "provisional" and lives["alpha"] == [1.0, 1.0, series.FAINT]
    assert lives["went"] == ["lives", "asleep, part of 0", "lives"]
    told = timeline_of(
        {}, {"ids": [0, 2], "provisional": [2], "asleep": [[1, 0]]},
        {"ids": [0, 2], "events": [born.to_dict()], "asleep": [[1, 0]]},
    )  # fmt: skip
    assert "- clusters: 2\n- ids so far: 3\n" in as_markdown(told)
    assert series.lives(told, 0)["came"][2] == "cluster 2 split from 0"
    assert series.lives(told, 0)["alpha"] == [1.0, 1.0, 1.0]


def test_an_id_that_wakes_lives_on_and_one_that_did_not_last_is_said_so() -> None:
    timeline = timeline_of(
        {}, {"ids": [0, 2], "provisional": [2], "asleep": [[1, -1]]},
        {"ids": [0, 1], "dropped": [[2, 0]]},
    )  # fmt: skip
    assert timeline.lives[1].went == "" and timeline.lives[1].end == 2
    assert timeline.lives[2].went == "did not last"
    assert "ids so far: 2\n" in as_markdown(timeline)


def test_far_rows_are_counted() -> None:
    timeline = timeline_of({}, {"n_far": 2}, {"n_far": 1})
    assert as_plain(timeline)["n_far"] == 3
    assert "- far rows: 3\n" in as_markdown(timeline)
    assert "far rows" not in as_markdown(timeline_of({}))


def test_noise_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="line 1 is not a Step"):
        timeline_of({"noise": {"share": "much"}})
