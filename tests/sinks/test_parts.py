"""Steps as a folder of parts: the same bytes after any stop, read as one, finished ones gone."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from kmeander import InputError, Step, StreamError, run
from kmeander.exceptions import ArgumentError
from kmeander.page.follower import Follower
from kmeander.page.timeline import read_timeline
from kmeander.sinks import read_facts, read_steps
from kmeander.storage.reading import lines_of

N_BATCHES = 60


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty batches of 20 rows, ten batches a day."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "readings.csv"
    with path.open("w") as file:
        file.write("time,a,b\n")
        for n in range(20 * N_BATCHES):
            day, rest = divmod(n, 200)
            a, b = rng.normal(5 * (n % 3), 1, 2)
            minute = rest * 7
            file.write(f"2026-06-{day + 1:02}T{minute // 60:02}:{minute % 60:02}:00Z,{a},{b}\n")
    return path


def learn(readings: Path, steps: Path, **options: Any) -> None:
    options = {"steps_part": "4kB", "time_column": "time", **options}
    name = f"{steps}/" if steps.suffix == "" else steps
    run(readings, n_clusters=3, batch_size=20, steps=name, tell=lambda _: None, **options)


def plain_lines(steps: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(steps)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class StoppedError(Exception):
    """As a kill would."""


def learn_until(readings: Path, steps: Path, n_batches: int, **options: Any) -> None:
    """Learn some batches, and stop without another commit."""

    def stop(progress: Any) -> None:
        if progress.summary.n_batches == n_batches:
            raise StoppedError

    with pytest.raises(StoppedError):
        learn(readings, steps, on_progress=stop, **options)


def test_parts_are_read_as_the_one_file_that_they_would_be(readings: Path, tmp_path: Path) -> None:
    learn(readings, tmp_path / "steps")
    learn(readings, tmp_path / "steps.jsonl", steps_part=None)
    names = sorted(path.name for path in (tmp_path / "steps").iterdir())
    assert len(names) > 5
    assert [name.endswith(".gz") for name in names] == [True] * (len(names) - 1) + [False]
    assert list(read_steps(tmp_path / "steps")) == list(read_steps(tmp_path / "steps.jsonl"))
    first = plain_lines(tmp_path / "steps.jsonl")
    together = plain_lines(tmp_path / "steps")
    for line in (*first, *together):
        line.pop("run", None)
    assert together == first
    one, other = (read_timeline(tmp_path / name) for name in ("steps", "steps.jsonl"))
    assert (one.n_batches, one.counts, one.columns) == (60, other.counts, ["a", "b"])


def test_each_part_begins_with_the_facts_of_the_run_and_is_full(
    readings: Path, tmp_path: Path
) -> None:
    learn(readings, tmp_path / "steps")
    parts = sorted((tmp_path / "steps").iterdir())
    facts = read_facts(tmp_path / "steps")
    for path in parts:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        *before, _ = lines = text.splitlines(keepends=True)
        assert json.loads(lines[0])["run"] == facts
        assert not any("run" in json.loads(line) for line in lines[1:])
        assert sum(map(len, before)) < 4000  # the last line has found a part that was not full
        assert sum(map(len, lines)) >= 4000 or path == parts[-1]


def test_a_part_for_each_day_of_event_time(readings: Path, tmp_path: Path) -> None:
    learn(readings, tmp_path / "steps", steps_part="day")
    parts = sorted((tmp_path / "steps").iterdir())
    assert len(parts) == 6
    for n in range(6):
        for path in parts[:n]:
            path.unlink(missing_ok=True)
        assert [step.index for step in read_steps(tmp_path / "steps")] == [*range(10 * n, 60)]
        assert {line["first_time"][:10] for line in plain_lines(tmp_path / "steps")[:10]} == {
            f"2026-06-{n + 1:02}"
        }


@pytest.mark.parametrize("part", ["4kB", "day"])
@pytest.mark.parametrize("every", [1, 7])
def test_a_run_that_is_stopped_anywhere_leaves_the_same_parts(
    readings: Path, tmp_path: Path, part: str, every: int
) -> None:
    learn(readings, tmp_path / "whole", steps_part=part)
    options: dict[str, Any] = {
        "steps_part": part, "checkpoint": tmp_path / "state", "checkpoint_every": every,
    }  # fmt: skip
    for n_batches in (1, 2, 9, 11, 5, 8, 13):
        learn_until(readings, tmp_path / "steps", n_batches, **options)
    learn(readings, tmp_path / "steps", **options)
    assert bytes_of(tmp_path / "steps") == bytes_of(tmp_path / "whole")


def test_finished_parts_may_be_taken_away_while_a_run_stands(
    readings: Path, tmp_path: Path
) -> None:
    learn(readings, tmp_path / "whole")
    for n_batches in (21, 12):
        learn_until(readings, tmp_path / "steps", n_batches, checkpoint=tmp_path / "state")
        for path in (tmp_path / "steps").glob("*.gz"):
            # Not that at which the checkpoint stands, which the run had packed since.
            if path != max((tmp_path / "steps").glob("*.gz")):
                path.unlink()
    learn(readings, tmp_path / "steps", checkpoint=tmp_path / "state")
    whole, left = bytes_of(tmp_path / "whole"), bytes_of(tmp_path / "steps")
    assert len(left) < len(whole)
    assert left.items() <= whole.items()
    indices = [step.index for step in read_steps(tmp_path / "steps")]
    assert indices[0] > 0 and all(b == a + 1 for a, b in pairwise(indices))
    assert read_timeline(tmp_path / "steps").columns == ["a", "b"]


def test_where_the_checkpoint_stands_a_part_is_needed(readings: Path, tmp_path: Path) -> None:
    learn_until(readings, tmp_path / "steps", 25, checkpoint=tmp_path / "state")
    for path in (tmp_path / "steps").iterdir():
        path.unlink()
    with pytest.raises(StreamError, match=r"lacks part-00000\d\.jsonl, at which the checkpoint"):
        learn(readings, tmp_path / "steps", checkpoint=tmp_path / "state")


def test_what_is_no_part_is_left_alone(readings: Path, tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "notes.txt").write_text("mine")
    with pytest.raises(StreamError) as caught:
        learn(readings, tmp_path / "steps")
    assert str(caught.value) == (
        f'steps="{tmp_path}/steps/" holds notes.txt, which is not a part of an earlier run. Name a '
        "folder for the parts alone."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps_part": "big"}, 'steps_part must be day, or a size such as 64MB (kB, MB, GB), got '
         "'big'."),
        ({"steps_part": "0MB"}, 'steps_part must be day, or a size such as 64MB (kB, MB, GB), got '
         "'0MB'."),
        ({"steps_part": "day", "time_column": None}, 'steps_part="day" goes by event time, and '
         "needs time_column=... to say where that stands."),
    ],
)  # fmt: skip
def test_sizes_that_make_no_sense_are_explained(
    readings: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        learn(readings, tmp_path / "steps", **options)
    assert str(caught.value) == message


def test_parts_of_a_file_make_no_sense(readings: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        learn(readings, tmp_path / "steps.jsonl")
    assert str(caught.value) == (
        "steps_part says when a part of a folder is full, but "
        f'steps="{tmp_path}/steps.jsonl" is none. End it with /.'
    )


def wait_for(follower: Follower, n_batches: int) -> None:
    for _ in range(200):
        if follower.newest(1000).n_batches == n_batches or follower.problem:
            break
        follower._stop.wait(0.05)
    assert follower.problem is None
    assert follower.newest(1000).n_batches == n_batches


def test_the_live_page_follows_parts_that_come_are_packed_and_go(
    readings: Path, tmp_path: Path
) -> None:
    options = {"checkpoint": tmp_path / "state", "checkpoint_every": 3}
    with Follower(tmp_path / "steps", keep=1000) as follower:
        learn_until(readings, tmp_path / "steps", 20, **options)
        wait_for(follower, 20)
        learn_until(readings, tmp_path / "steps", 20, **options)  # from 18 on
        wait_for(follower, 38)
        for path in sorted((tmp_path / "steps").iterdir())[:2]:
            path.unlink()
        learn(readings, tmp_path / "steps", **options)
        for _ in range(200):
            newest = follower.newest(1000)
            if newest.last is not None and newest.last.index == N_BATCHES - 1:
                break
            follower._stop.wait(0.05)
    assert newest.last is not None and newest.last.index == N_BATCHES - 1
    expected = [step.index for step in read_steps(tmp_path / "steps")]
    assert [moment.index for moment in newest.moments][-len(expected) :] == expected


# ---------------------------------------------------------------- centroids of large models


def wide_batches() -> Iterator[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    for _ in range(5):
        yield rng.normal(size=(150, 100))


@pytest.mark.parametrize("name", ["steps.jsonl", "steps/"])
def test_centroids_of_large_models_lie_beside_the_steps(tmp_path: Path, name: str) -> None:
    for n_clusters in (100, 80):
        (tmp_path / str(n_clusters)).mkdir()
        target = f"{tmp_path / str(n_clusters)}/{name}"
        run(wide_batches(), n_clusters=n_clusters, steps=target, centroids=None, prepare=None)
    small, large = (plain_lines(tmp_path / n / name) for n in ("80", "100"))
    assert all(line["centroids"] is not None and "centroids_in" not in line for line in small)
    folder = "centroids" if name.endswith("/") else "steps.jsonl.centroids"
    base = tmp_path / "100" / (name if name.endswith("/") else "")
    for line in large:
        assert line["centroids"] is None
        assert line["centroids_in"] == f"{folder}/{line['index']:09}.parquet"
        table = pq.read_table(base / line["centroids_in"])
        assert table["cluster"].to_pylist() == line["ids"]
        assert table["mass"].to_pylist() == line["masses"]
    steps = list(read_steps(tmp_path / "100" / name))
    expected: list[Step] = []
    from kmeander import FSKM, Batch
    from kmeander.models.settings import Settings

    model = FSKM.of(Settings(100), 0)
    for index, points in enumerate(wide_batches()):
        expected.append(model.step(Batch(index, points)))
    assert [step.centroids.tolist() for step in steps if step.centroids is not None] == [
        step.centroids.tolist() for step in expected if step.centroids is not None
    ]
    assert read_timeline(tmp_path / "100" / name).n_batches == 5
    for line in large:
        del line["profiles"]  # which only some lines have, a few hundred bytes a cluster
    assert max(len(json.dumps(line)) for line in large) < 40_000


def test_centroids_that_are_gone_are_missed_in_a_sentence(tmp_path: Path) -> None:
    run(wide_batches(), n_clusters=100, steps=tmp_path / "steps.jsonl", prepare=None)
    shutil.rmtree(tmp_path / "steps.jsonl.centroids")
    with pytest.raises(InputError) as caught:
        list(read_steps(tmp_path / "steps.jsonl"))
    assert str(caught.value) == (
        f"{tmp_path}/steps.jsonl line 1 is not a Step: its centroids are in "
        f"{tmp_path}/steps.jsonl.centroids/000000000.parquet, which cannot be read: No such file "
        "or directory."
    )


@pytest.mark.parametrize("name", ["../other.parquet", "/etc/passwd", 7])
def test_a_line_can_name_no_file_elsewhere(tmp_path: Path, name: Any) -> None:
    run(wide_batches(), n_clusters=100, steps=tmp_path / "steps.jsonl", prepare=None)
    line = {**plain_lines(tmp_path / "steps.jsonl")[0], "centroids_in": name}
    (tmp_path / "steps.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="which is no file beside it"):
        list(read_steps(tmp_path / "steps.jsonl"))
