"""Pages of runs that are larger, smaller or stranger than most."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import kmeander
from kmeander import InputError
from kmeander.cli import app
from kmeander.page import series
from kmeander.page.report import as_page
from kmeander.page.summary import as_markdown
from kmeander.page.timeline import Timeline, read_timeline
from tests.page.test_page import command
from tests.streams import drifting_stream


def steps_of(tmp_path: Path, **settings: Any) -> Path:
    path = tmp_path / "steps.jsonl"
    kmeander.run(drifting_stream(12, seed=3), 4, steps=path, random_state=0, **settings)
    return path


def test_a_first_line_that_describes_no_run_is_refused(tmp_path: Path) -> None:
    path = steps_of(tmp_path)
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps({**json.loads(first), "run": "mine"}) + "\n" + "".join(rest))
    with pytest.raises(InputError) as error:
        read_timeline(path)
    assert str(error.value) == f"{path} line 1: `run` must be an object, got 'mine'."


def test_a_line_with_a_field_of_another_kind_is_no_step(tmp_path: Path) -> None:
    path = steps_of(tmp_path)
    first, second, *_ = path.read_text().splitlines(keepends=True)
    path.write_text(first + json.dumps({**json.loads(second), "centroids": "near"}) + "\n")
    with pytest.raises(InputError, match=r"line 2 is not a Step: ") as error:
        read_timeline(path)
    assert "kmeander.run(steps=...) writes such a file." in str(error.value)


def test_without_facts_columns_have_numbers(tmp_path: Path) -> None:
    story = Timeline()
    line = json.loads(steps_of(tmp_path).read_text().splitlines()[0])
    del line["run"]
    assert story.columns == []
    story.add(json.dumps(line), 1)
    assert story.columns == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(story.moments[0].places, np.array(line["centroids"])[:, :2])


def test_chosen_columns_are_shown_in_the_units_of_the_stream(tmp_path: Path) -> None:
    path = steps_of(tmp_path, prepare="auto")
    line = json.loads(path.read_text().splitlines()[-1])
    scaled = json.loads(path.read_text().splitlines()[0])["run"]["standardize"]
    story = read_timeline(path, ["x2", "x0"])
    expected = np.array(line["centroids"]) * scaled["scale"] + scaled["mean"]
    np.testing.assert_allclose(story.moments[-1].places, expected[:, [2, 0]])


def test_too_many_areas_are_shown_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = read_timeline(steps_of(tmp_path))
    n_ids = len(series.areas(story.moments)["cluster"])
    monkeypatch.setattr(series, "MOST_AREAS", 2)
    few = series.areas(story.moments)
    assert few["cluster"][-1] == f"{n_ids - 2} others" and len(few["cluster"]) == 3
    np.testing.assert_allclose(few["ys"][-1][-12:], 1.0)  # the uppermost edge: all of the mass


def test_a_table_of_events_names_what_it_leaves_out(tmp_path: Path) -> None:
    story = read_timeline(steps_of(tmp_path))
    n_events = len(story.events)
    assert n_events > 1
    text = as_markdown(story, most_events=1)
    assert f"The newest 1 of {n_events:,}." in text
    assert text.count("\n| ", text.index("## Events")) == 2  # the head, and one event
    story.events.clear()
    assert as_markdown(story).endswith("| | none | |\n")


def test_a_page_says_when_it_draws_fewer_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmeander.page.report.MOST_BATCHES", 5, raising=False)
    monkeypatch.setattr(series, "MOST_BATCHES", 5)
    assert "5 of 12 batches are drawn" in as_page(read_timeline(steps_of(tmp_path)), {})


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """In a process of its own, since tornado forgets to close the socket that failed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("watch", str(steps_of(tmp_path)), "--port", str(port), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"kmeander watch: port {port} is in use. Name another --port, or close what uses it.\n"
    )


def test_a_report_counts_the_rows_that_were_set_aside(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ndjson"
    bad.write_text("{}\n{}\n{}\n")
    words = ["--bad-rows", str(bad), "--format", "json", "--out", "-", "--quiet"]
    done = CliRunner().invoke(app, ["report", str(steps_of(tmp_path)), *words])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["bad rows"] == "3"
