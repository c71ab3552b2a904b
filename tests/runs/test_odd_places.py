"""Outputs, sources and streams in odd places, or gone: one sentence, or as if they were usual."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kmeander import InputError, StreamError, predict, run
from kmeander.exceptions import ArgumentError
from kmeander.runs.simulate import Simulation
from tests.program import PROGRAM, kmeander
from tests.runs.test_resume import lines_in, wait_for
from tests.streams import drifting_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own

QUIET: dict[str, Any] = {"tell": lambda _: None}
TEXT = "id,a,b\n" + "".join(f"r{i},{i % 7},{i % 5}\n" for i in range(300))


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    path.write_text(TEXT)
    return path


def test_an_output_that_is_a_folder_is_one_sentence(readings: Path, tmp_path: Path) -> None:
    (tmp_path / "out.ndjson").mkdir()
    for checkpoint in (None, tmp_path / "c"):
        with pytest.raises(StreamError) as caught:
            run(readings, 3, assignments=tmp_path / "out.ndjson", checkpoint=checkpoint, **QUIET)
        assert str(caught.value) == (
            f'assignments="{tmp_path}/out.ndjson" cannot be written: it is a folder. Name a file '
            "in it."
        )


def test_one_file_under_two_names_is_not_given_to_two_outputs(
    readings: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to("c.csv")  # which is not there yet
    for other in (f"{tmp_path}/./c.csv", str(link)):
        with pytest.raises(ArgumentError, match=r"cannot both be .* one would overwrite the other"):
            run(readings, 3, centroids=tmp_path / "c.csv", model_out=other, **QUIET)
    assert not (tmp_path / "c.csv").exists()


def test_what_is_read_is_never_written_over(
    readings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By predict, report and simulate, which have other doors than a run."""
    model, steps = tmp_path / "m.csv", tmp_path / "steps.json"
    run(readings, 3, model_out=model, steps=steps, id_column="id", **QUIET)
    Simulation(str(readings), columns=("a", "b")).write(tmp_path)
    stream = tmp_path / "stream.parquet"
    before = {path: path.read_bytes() for path in (readings, model, steps, stream)}
    with pytest.raises(ArgumentError) as caught:
        predict(readings, model, out=f"{tmp_path}/./readings.csv")
    assert str(caught.value) == (
        f'out="{tmp_path}/./readings.csv" would overwrite the source. Name another file.'
    )
    with pytest.raises(ArgumentError, match=r"would overwrite the model\. Name another file"):
        predict(readings, model, out=model)
    with pytest.raises(ArgumentError, match="would lie among the files of the source"):
        predict(f"{tmp_path}/*.csv", model, out=tmp_path / "rows.csv")
    with pytest.raises(InputError, match=r"would overwrite the source, .* Name another folder"):
        Simulation(str(stream), columns=("a", "b")).write(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = kmeander("report", "steps.json", "--out", "./steps.json")
    assert done.returncode == 2
    assert "--out ./steps.json would overwrite" in done.stderr
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("pattern", ["", "/*.csv", "/?ows*"])
def test_an_output_among_the_files_of_the_source_is_refused(pattern: str, tmp_path: Path) -> None:
    """The run would not notice; the next one would read it."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "rows-0.csv").write_text(TEXT)
    source = f"{folder}{pattern}"
    with pytest.raises(ArgumentError) as caught:
        run(source, 3, assignments=folder / "rows.csv", **QUIET)
    assert str(caught.value) == (
        f'assignments="{folder}/rows.csv" would lie among the files of the source, and be read as '
        "one of them by the next run. Name another folder."
    )
    outputs: dict[str, Any] = {"model_out": folder / "model.km", "assignments": f"{folder}/parts/"}
    assert run(source, 3, **outputs, **QUIET).summary.n_points == 300
    assert run(source, 3, **outputs, **QUIET).summary.n_points == 300


def test_a_pipe_is_not_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError) as caught:
        run(tmp_path / "pipe.csv", 3, follow=True, **QUIET)
    assert str(caught.value) == (
        f"follow=True cannot read {tmp_path}/pipe.csv: a pipe does not grow, it is read as it "
        "comes. Leave follow out."
    )


def test_names_of_files_need_not_be_utf8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"x\xff")
    source = tmp_path / f"{odd}.csv"
    source.write_text(TEXT.replace("r7,0", "r7,oops", 1))
    settings: dict[str, Any] = {
        "columns": ["a", "b"], "id_column": "id", "batch_size": 50,
        "steps": tmp_path / f"steps{odd}.jsonl", "bad_rows": tmp_path / f"bad{odd}.ndjson",
        "assignments": f"{tmp_path}/rows{odd}/", "centroids": tmp_path / f"c{odd}.csv",
        "model_out": tmp_path / f"m{odd}.km", "checkpoint": tmp_path / f"c{odd}",
    }  # fmt: skip
    assert run(source, 3, **settings, **QUIET).summary.n_bad == 1
    assert run(source, 3, **settings, **QUIET).summary.resumed_at == 6
    (bad,) = lines_in(tmp_path / f"bad{odd}.ndjson")
    assert json.loads(bad)["source"] == str(source)


@pytest.mark.slow
def test_outputs_may_be_links_and_nothing_is_left_beside_them(
    readings: Path, tmp_path: Path
) -> None:
    real, out = tmp_path / "real", tmp_path / "out"
    for folder in (real, out, real / "rows", real / "checkpoint"):
        folder.mkdir()
    names = ("steps.jsonl", "c.csv", "model.km", "rows", "checkpoint")
    for name in names:
        (out / name).symlink_to(real / name)
    command = [
        "run", str(readings), "--clusters", "3", "--batch-size", "50", "--steps",
        f"{out}/steps.jsonl", "--assignments", f"{out}/rows/", "--centroids", f"{out}/c.csv",
        "--model-out", f"{out}/model.km", "--checkpoint", f"{out}/checkpoint",
        "--checkpoint-every", "2", "--quiet",
    ]  # fmt: skip
    dies = (
        "import os, sys\nfrom kmeander.storage.disk import Disk\nfrom kmeander.cli import main\n"
        "left, rename = int(sys.argv.pop(1)), Disk.rename\n"
        "def dying(self, source, target):\n"
        "    global left\n"
        "    left -= 1\n"
        "    os.kill(os.getpid(), 9) if left < 0 else rename(self, source, target)\n"
        "Disk.rename = dying\n"
        "main()\n"
    )
    for number in (1, 2, 3):
        died = subprocess.run([sys.executable, "-c", dies, str(number), *command], check=False)
        assert died.returncode == -signal.SIGKILL
    done = kmeander(*command)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.aside"))
    assert all((out / name).is_symlink() for name in names)
    assert len(lines_in(real / "steps.jsonl")) == 6


def test_who_may_read_a_file_stays_so_when_it_is_written_anew(
    readings: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.km"
    for mode in (0o600, 0o640):
        model.touch()
        model.chmod(mode)
        run(readings, 3, model_out=model, **QUIET)
        assert stat.S_IMODE(model.stat().st_mode) == mode


def closed(stream: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run with standard input, output or error closed, as some that start programs leave them."""
    return subprocess.run(
        [PROGRAM, *words], capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.close(stream),
    )  # fmt: skip


def test_standard_streams_may_be_closed(readings: Path, tmp_path: Path) -> None:
    words = ["run", str(readings), "--clusters", "3", "--batch-size", "50"]
    refused = closed(0, "run", "-", *words[2:])
    assert refused.returncode == 1
    assert refused.stderr == (
        "kmeander run: standard input is closed. Name a file, or send rows through a pipe.\n"
    )
    silent = closed(2, *words)
    assert silent.returncode == 0
    assert len(silent.stdout.splitlines()) == 6
    steps = tmp_path / "steps.jsonl"
    assert closed(1, *words, "--steps", str(steps)).returncode == 0
    assert len(lines_in(steps)) == 6


def test_a_disk_of_logs_that_is_full_does_not_end_a_run(readings: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    with Path("/dev/full").open("w") as full:
        subprocess.run(
            [PROGRAM, "run", str(readings), "--clusters", "3", "--steps", str(steps)],
            stderr=full, check=False,
        )  # fmt: skip
    assert len(lines_in(steps)) == 1


@pytest.mark.slow
def test_a_hangup_kills_a_run_which_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    rows = np.concatenate(drifting_stream(30, n_points=40, n_features=3)).tolist()
    lines = ["a,b,c", *(",".join(map(repr, row)) for row in rows)]
    source = tmp_path / "x.csv"
    source.write_text("\n".join(lines) + "\n")

    def words(out: str, *more: str) -> list[str]:
        return ["run", str(source), "--clusters", "3", "--batch-size", "25", "--checkpoint-every",
                "4", "--steps", f"{tmp_path}/{out}.jsonl", "--checkpoint", f"{tmp_path}/{out}",
                *more]  # fmt: skip

    with subprocess.Popen([PROGRAM, *words("hung", "--follow")], stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(lines_in(tmp_path / "hung.jsonl")) > 10)
        process.send_signal(signal.SIGHUP)
        process.communicate()
        assert process.returncode == -signal.SIGHUP
    for command in (words("hung"), words("whole")):
        assert kmeander(*command).returncode == 0
    assert lines_in(tmp_path / "hung.jsonl") == lines_in(tmp_path / "whole.jsonl")


IDS: dict[str, tuple[Any, list[str] | str]] = {
    "categories": (pa.array(["=a", "b"] * 5).dictionary_encode(), ['"\'=a"', '"b"']),
    "views": (pa.array(["=a", "b"] * 5, pa.string_view()), ['"\'=a"', '"b"']),
    "lists": (pa.array([[1], [2]] * 5), "list<item: int64>"),
    "bytes": (pa.array([b"\xff", b"b"] * 5), "binary"),
}


@pytest.mark.parametrize(("ids", "expected"), IDS.values(), ids=IDS)
def test_ids_of_any_type_are_csv_or_one_sentence(
    ids: Any, expected: list[str] | str, tmp_path: Path
) -> None:
    table = pa.table({"id": ids, "a": np.arange(10.0)})
    path = tmp_path / "rows.csv"
    if isinstance(expected, list):
        run(table, 2, id_column="id", assignments=path, **QUIET)
        found = [line.split(b",")[0].decode() for line in lines_in(path)]
        assert found == ['"id"', *expected * 5]
        return
    with pytest.raises(InputError) as caught:
        run(table, 2, id_column="id", assignments=path, **QUIET)
    assert str(caught.value).startswith(
        f"the id column is of type {expected}, which CSV cannot hold ("
    )
    assert str(caught.value).endswith("). Write .ndjson or .parquet instead.")


def test_a_message_does_not_list_thousands_of_columns(tmp_path: Path) -> None:
    table = pa.table({f"c{number}": [1.0, 2.0] for number in range(5000)})
    with pytest.raises(InputError, match="'c49' and 4,950 more") as caught:
        run(table, 1, columns=["temp"], **QUIET)
    assert len(str(caught.value)) < 500
