"""From a file to Steps: sources, the loop, sinks and the command line, as a user meets them."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from kmeander import FSKM, Batch, InputError, rho_for_half_life, run
from kmeander.commands.signals import stop_on_signals
from kmeander.kmeans.lloyd import nearest
from kmeander.models.settings import DEFAULTS
from kmeander.runs.loop import Runner
from kmeander.runs.records import Progress
from kmeander.sinks import read_facts, read_steps
from kmeander.sources import FileSource, Reading, Wanted
from tests.program import PROGRAM, kmeander
from tests.streams import drifting_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own


@pytest.fixture
def stream() -> list[Any]:
    return drifting_stream(5, n_points=40, n_features=2)


@pytest.fixture
def csv(stream: list[Any], tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    rows = np.concatenate(stream)[:-15]  # the last batch is not full
    np.savetxt(path, rows, "%.17g", delimiter=",", header="temp,load", comments="")
    return path


def lines(text: str) -> list[dict[str, Any]]:
    """Return the Steps, without the words beside them, which must be there with events."""
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert bool(line.pop("words", [])) == bool(line.get("events"))
    return found


def test_run_writes_the_steps_of_the_model(csv: Path, stream: list[Any]) -> None:
    done = kmeander(
        "run", str(csv), "--clusters", "4", "--batch-size", "40", "--half-life", "2", "--seed", "9",
        "--prepare", "none",
    )  # fmt: skip
    assert done.returncode == 0
    found = lines(done.stdout)
    model = FSKM(4, **{**DEFAULTS, "rho": rho_for_half_life(2)}, random_state=9)
    batches = [*stream[:-1], stream[-1][:-15]]
    expected = [model.step(Batch(i, points)).to_dict() for i, points in enumerate(batches)]
    facts = found[0].pop("run")
    for one in found:
        assert len(one.pop("profiles")) == 4  # of the run's, not of what the batch did
    assert found == expected
    assert facts["columns"] == ["temp", "load"]
    assert facts["settings"]["n_clusters"] == 4
    assert facts["settings"]["random_state"] == 9
    assert facts["batch_size"] == 40
    summary = [line for line in done.stderr.splitlines() if not line.startswith("batch ")]
    assert summary[0].startswith(f"{csv}: 185 rows in 5 batches, learned in ")
    assert summary[1] == (
        f"Surrogate error {expected[-1]['surrogate_error']:.6g}, newest batch "
        f"{expected[-1]['batch_error']:.6g}; window of 5 batches, rho 0.7071."
    )
    assert summary[2].startswith("Shares of the clusters now: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\r1,2\r3,4\r", "has a header that cannot be read"),
        (b"# a,b\n# 1,2\n", "all of its first lines begin with #"),
    ],
)
def test_headers_that_are_none_are_explained(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    done = kmeander("run", str(path), "--clusters", "1")
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr


def test_names_of_nothing_are_refused(csv: Path) -> None:
    done = kmeander("run", str(csv), "--columns", "")
    assert done.returncode == 2
    assert "names no column" in done.stderr
    done = kmeander("run", "drift:")
    assert done.returncode == 1
    assert "names no file" in done.stderr


def test_signals_do_not_break_into_reading() -> None:
    """pyarrow would end what it reads with an error of its own."""
    rows = b"a,b\n" + b"1.25,2.5\n" * 3_000_000
    options = arrow_csv.ReadOptions(use_threads=False)
    with stop_on_signals(quiet=True) as stop:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGTERM)).start()
        assert arrow_csv.read_csv(io.BytesIO(rows), options).num_rows == 3_000_000
        assert stop.wait(10)


def test_run_keeps_to_max_points(csv: Path, stream: list[Any]) -> None:
    done = kmeander(
        "run", str(csv), "--clusters", "4", "--batch-size", "40", "--rho", ".99",
        "--max-points", "60", "--quiet", "--prepare", "none",
    )  # fmt: skip
    model = FSKM(4, **{**DEFAULTS, "rho": 0.99}, max_points=60, random_state=0)
    batches = [*stream[:-1], stream[-1][:-15]]
    expected = [model.step(Batch(i, points)).to_dict() for i, points in enumerate(batches)]
    found = lines(done.stdout)
    assert found[0].pop("run")["settings"]["max_points"] == 60
    for one in found:
        assert len(one.pop("profiles")) == 4
    assert found == expected
    assert found[-1]["n_summarised"] > 0


def test_csv_parquet_and_standard_input_give_the_same_bytes(csv: Path, tmp_path: Path) -> None:
    rows = np.loadtxt(csv, delimiter=",", skiprows=1)
    parquet = tmp_path / "readings.parquet"
    table = pa.table({"temp": rows[:, 0], "load": rows[:, 1]})
    pq.write_table(table, parquet, row_group_size=23)
    common = ("--clusters", "3", "--batch-size", "40")
    outputs = [
        kmeander("run", str(csv), *common).stdout,
        kmeander("run", str(parquet), *common).stdout,
        kmeander("run", "-", *common, stdin=csv.read_text()).stdout,
    ]
    found = [lines(output) for output in outputs]
    for output in found:
        del output[0]["run"]["source"]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 5


def test_steps_go_to_the_file_that_is_named(csv: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    done = kmeander("run", str(csv), "--batch-size", "50", "--steps", str(steps))
    assert done.stdout == ""
    assert [step.index for step in read_steps(steps)] == [0, 1, 2, 3]
    again = tmp_path / "again.jsonl"
    kmeander("run", str(csv), "--batch-size", "50", "--threads", "2", "--steps", str(again))
    assert steps.read_bytes() == again.read_bytes()  # the number of threads changes no byte


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("id,a,b\n" + "".join(f"row{i},{i},{i % 3}\n" for i in range(30)))
    done = kmeander("run", str(path), "--columns", "b,a", "--clusters", "2")
    assert lines(done.stdout)[0]["run"]["columns"] == ["b", "a"]
    refused = kmeander("run", str(path), "--clusters", "2", "--prepare", "none")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"kmeander run: {path} line 2: 'row0' in column 'id' is not a number (--exclude id leaves "
        "it out, --prepare auto makes numbers of categories).\n"
    )
    asked_for = kmeander(
        "run", str(path), "--columns", "id,a", "--clusters", "2", "--prepare", "none"
    )
    assert asked_for.stderr.endswith(
        "is not a number (use --bad-rows skip to go on without such rows).\n"
    )
    plain = ("--clusters", "2", "--prepare", "none")
    skipped = kmeander("run", str(path), *plain, "--bad-rows", "skip")
    assert skipped.returncode == 1
    assert skipped.stderr == (
        f"kmeander run: {path}: every row is bad (30 were set aside), so nothing was learned. "
        "With --bad-rows error the run stops at the first and says why.\n"
    )
    missing = kmeander("run", str(path), "--columns", "a,c")
    assert missing.stderr == (f"kmeander run: {path} has no column 'c'. It has 'id', 'a', 'b'.\n")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_iter": 1},
        {"tol": 1e9},
        {"max_points": 100},
        {"rho": "auto", "init": "hungarian"},
        {"refine": None, "init": "current", "forgetting": "fixed"},
        {"prepare": "auto"},
        {"init": "weighted", "n_threads": 2},
    ],
)
def test_assignments_are_what_a_full_pass_would_give_to_the_last_bit(
    settings: dict[str, Any], dtype: Any, tmp_path: Path
) -> None:
    """The first batches are too small to begin; later ones hold equal rows, which tie."""
    batches = [points.astype(dtype) for points in drifting_stream(9)]
    batches = [batches[0][:2], batches[0][2:3], *(np.concatenate([x, x[:5]]) for x in batches)]
    expected: list[tuple[list[int], list[float]]] = []

    class Beside(Runner):
        def _learned_batch(self, rows: Any, step: Any, points: Any) -> Any:
            centroids, ids = self.model.centroids, self.model.cluster_ids
            if centroids is not None and ids is not None:
                labels, squared = nearest(points, centroids, 1)
                expected.append((ids[labels].tolist(), (squared**0.5).tolist()))
            return super()._learned_batch(rows, step, points)

    out = tmp_path / "rows.ndjson"
    with patch("kmeander.runs.api.Runner", Beside):
        run(batches, 4, assignments=out, **settings)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    found = [row for row in found if row["cluster"] is not None]
    assert [row["cluster"] for row in found] == [c for ids, _ in expected for c in ids]
    assert [row["distance"] for row in found] == [d for _, all_ in expected for d in all_]
    assert len(found) > 500


WAY_OUT = "(use --bad-rows skip to go on without such rows)."
WAYS_OUT = (
    "(use --bad-rows skip to go on without such rows, or leave the column out with --exclude b)."
)
TEXT_WAYS_OUT = (
    "(leave the column out with --exclude b, or use --bad-rows skip to go on without such rows)."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", f"{{}} line 3: 'x' in column 'b' is not a number {TEXT_WAYS_OUT}"),
        (
            "a,b\n1,2026-01-01\n",
            "{} line 2: '2026-01-01' in column 'b' is not a number (--exclude b leaves it out, "
            "--prepare auto makes numbers of categories).",
        ),
        ("a,b\n1,2\n3,\n", f"{{}} line 3: nothing in column 'b' {WAYS_OUT}"),
        ("a,b\n1,2\n3,-inf\n", f"{{}} line 3: -infinity in column 'b' is not finite {WAYS_OUT}"),
        (
            "a,b\n1,2\n3,1e200\n",
            f"{{}} line 3: 1e+200 in column 'b' lies beyond ±1e+120 {WAYS_OUT}",
        ),
        ("a,b\n1,2\n3,4,5\n", f"{{}} line 3: 3 fields where the header has 2 {WAY_OUT}"),
        ("a,b\n1,2\n3\n", f"{{}} line 3: 1 field where the header has 2 {WAY_OUT}"),
        ("a,b\n1,2\n\n\n3,x\n", f"{{}} line 5: 'x' in column 'b' is not a number {TEXT_WAYS_OUT}"),
        ("a,b\n", "{} has no rows."),
        ("", "{} is empty: not even a header."),
        (
            "1,2\n3,4\n",
            "{} begins with 1,2: names of columns, or a row? --header 1,2 takes them for names, "
            "--header x0,x1 for a row.",
        ),
    ],
    ids=[
        "text", "date", "missing", "inf", "huge", "too many", "too few", "after blank lines",
        "no rows", "empty", "no header",
    ],
)  # fmt: skip
def test_bad_files_are_explained_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = kmeander("run", str(path), "--clusters", "1", "--prepare", "none")
    assert done.returncode == 1
    assert done.stderr == f"kmeander run: {message.format(path)}\n"


def test_the_whole_file_is_read_as_numbers_not_only_its_first_block(tmp_path: Path) -> None:
    """Whole numbers for more than a megabyte, then a fraction; text in a column left out."""
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "1,2\n3,4\n" * 200_000 + "5.5,oops\n")
    done = kmeander("run", str(path), "--clusters", "2", "--columns", "a", "--batch-size", "100000")
    assert done.returncode == 0
    assert [step["n_points"] for step in lines(done.stdout)] == [100_000] * 4 + [1]
    refused = kmeander("run", str(path), "--clusters", "2", "--batch-size", "100000")
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        f"kmeander run: {path} line 400002: 'oops' in column 'b' is not a number {TEXT_WAYS_OUT}\n"
    )
    assert [step["n_points"] for step in lines(refused.stdout)] == [100_000] * 4


def test_standard_input_is_learned_as_it_comes() -> None:
    """A Step is out before the input ends, at the latest when the next rows have come."""
    with subprocess.Popen(
        [PROGRAM, "run", "-", "--clusters", "2", "--batch-size", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("a,b\n1,2\n3,4\n5,6\n")
        process.stdin.flush()
        for _ in range(100):  # a row every 0.1 s, until something comes out or 10 s have passed
            process.stdin.write("7,8\n")
            process.stdin.flush()
            if select.select([process.stdout], [], [], 0.1)[0]:
                break
        came = bool(select.select([process.stdout], [], [], 0)[0])
        process.stdin.close()
        first = json.loads(process.stdout.readline())
        process.stdout.read()
    assert came
    assert first["n_points"] == 3
    assert process.returncode == 0


def test_the_source_is_never_overwritten(csv: Path) -> None:
    before = csv.read_bytes()
    done = kmeander("run", str(csv), "--steps", str(csv))
    assert done.returncode == 2
    assert (
        done.stderr
        == f"kmeander run: --steps {csv} would overwrite the source. Name another file.\n"
    )
    assert csv.read_bytes() == before


@pytest.mark.parametrize(
    ("target", "reason"),
    [("nowhere/steps.jsonl", "cannot be written: "), (".", "holds readings.csv, which is not ")],
)
def test_an_output_that_cannot_be_written_is_one_line(
    csv: Path, tmp_path: Path, target: str, reason: str
) -> None:
    done = kmeander("run", str(csv), "--steps", str(tmp_path / target))
    assert done.returncode == 1
    assert done.stderr.startswith(f"kmeander run: --steps {tmp_path / target} {reason}")
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_one_line(csv: Path) -> None:
    done = kmeander("run", str(csv), "--steps", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == (
        "kmeander run: --steps /dev/full cannot be written: No space left on device. What a "
        "checkpoint holds is safe: make room, and run the same command again.\n"
    )


def test_version_and_module() -> None:
    from kmeander import __version__

    assert kmeander("--version").stdout == f"kmeander {__version__}\n"
    done = subprocess.run(
        [sys.executable, "-m", "kmeander", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"kmeander {__version__}\n"


def test_files_that_cannot_be_opened_are_explained(tmp_path: Path) -> None:
    missing = kmeander("run", str(tmp_path / "nowhere.csv"))
    assert missing.returncode == 1
    assert missing.stderr == (
        f"kmeander run: {tmp_path}/nowhere.csv does not exist "
        f"(looked for {tmp_path}/nowhere.csv).\n"
    )
    fake = tmp_path / "fake.parquet"
    fake.write_text("not parquet")
    refused = kmeander("run", str(fake))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"kmeander run: {fake} cannot be read as Parquet: ")
    assert len(refused.stderr.splitlines()) == 1


def test_wrong_usage_exits_with_2(csv: Path) -> None:
    for words in (["run"], ["run", str(csv), "--rho", ".5", "--half-life", "2"], ["walk"]):
        assert kmeander(*words).returncode == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--rho", "1.3"],
            "--rho must lie in (0, 1), got 1.3. It is the share of",
        ),
        (["--rho", "1"], "--rho must lie in (0, 1), got 1.0. It is the share of"),
        (
            ["--rho", "fast"],
            '--rho must be a number in (0, 1], "auto" or "two-speed", got \'fast\'.',
        ),
        (["--clusters", "0"], "--clusters must be a whole number of at least 1, got 0. It is the"),
        (["--threads", "0"], "--threads must be a whole number of at least 1, got 0. It is the"),
        (["--seed", "-1"], "--seed must be a whole number of at least 0, got -1. It is a seed"),
        (["--init", "random"], "--init must be one of 'previous', 'current', 'weighted', 'hung"),
        (
            ["--forgetting", "all"],
            "--forgetting must be one of 'fixed', 'adaptive', 'on-trial', got 'all'.",
        ),
        (["--late-rows", "Keep"], "--late-rows must be one of 'keep', 'skip', 'error', got 'Ke"),
        (["--half-life", "0"], "--half-life must be a finite number above 0, got 0.0. It is the"),
    ],
)
def test_a_value_that_the_library_refuses_exits_with_2_and_one_line(
    words: list[str], message: str, csv: Path
) -> None:
    refused = kmeander("run", str(csv), *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"kmeander run: {message}")
    assert len(refused.stderr.splitlines()) == 1


def test_a_stream_that_never_shows_k_points_says_so(tmp_path: Path) -> None:
    path = tmp_path / "constant.csv"
    path.write_text("a\n" + "1\n" * 20)
    done = kmeander("run", str(path), "--clusters", "2", "--batch-size", "10")
    assert done.returncode == 0
    assert [step["waiting"] for step in lines(done.stdout)] == [True, True]
    assert done.stderr.splitlines()[1] == (
        "Nothing was learned: 2 clusters need as many distinct points, the stream has shown 1. "
        "Ask for fewer: --clusters 1."
    )


def test_a_reader_that_leaves_early_is_no_traceback(csv: Path) -> None:
    done = subprocess.run(
        f"{PROGRAM} run {csv} --batch-size 5 --clusters 2 | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_a_terminal_gets_progress_and_no_json(csv: Path) -> None:
    """Under a pseudo-terminal: a bar while it runs, the summary at the end, no Steps."""
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "run", str(csv), "--clusters", "3"], stdout=child, stderr=child
    )
    os.close(child)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # how Linux tells that the other side has closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "rows/s" in text
    assert "Surrogate error" in text
    assert '"surrogate_error"' not in text


def test_help_is_quick_and_can_be_pasted() -> None:
    done = kmeander("run", "--help")
    assert done.returncode == 0
    assert "kmeander run readings.csv --clusters 8 --half-life 5" in " ".join(done.stdout.split())


def test_whole_numbers_and_float32_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "narrow.parquet"

    def kind(columns: list[str] | None = None) -> Any:
        source = FileSource(str(path), Wanted(columns), Reading())
        with closing(source):
            source.start()
            return next(block.points.dtype for block in source.blocks() if block is not None)

    pq.write_table(pa.table({"a": np.arange(6, dtype=np.float32), "b": [1.5] * 6}), path)
    assert kind() == np.float64
    assert kind(["a"]) == np.float32
    pq.write_table(pa.table({"a": np.arange(6)}), path)
    assert kind() == np.float64


def test_a_run_counts_and_tells_how_far_it_is(stream: list[Any]) -> None:
    seen: list[int] = []

    def show(progress: Progress) -> None:
        assert progress.summary.last is not None
        seen.append(progress.summary.last.index)

    summary = run(stream, 4, on_progress=show, prepare=None).summary
    model = FSKM(4, **DEFAULTS, random_state=0)
    steps = [model.step(Batch(index, points)) for index, points in enumerate(stream)]
    assert seen == [0, 1, 2, 3, 4]
    assert (summary.n_batches, summary.n_points) == (5, 200)
    assert summary.n_distances == sum(step.n_distances for step in steps)
    assert summary.last == steps[-1]


def test_step_files_that_are_damaged_name_the_line(tmp_path: Path, stream: list[Any]) -> None:
    path = tmp_path / "steps.jsonl"
    run(stream[:1], 4, steps=path)
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    with pytest.raises(InputError) as caught:
        list(read_steps(path))
    assert str(caught.value).startswith(f"{path} line 2 is not a Step: ")
    path.write_text('{"index": 3}\n')
    with pytest.raises(InputError) as caught:
        list(read_steps(path))
    assert str(caught.value) == (
        f"{path} line 1 is not a Step: not a Step: 'n_points', 'waiting', 'rho', 'n_batches', "
        "'mass' missing among the keys ['index']."
    )
    with pytest.raises(InputError) as caught:
        read_facts(path)
    assert str(caught.value) == f"{path} does not begin with the facts of a run."


def test_a_row_with_a_weight_counts_as_that_many_rows(tmp_path: Path) -> None:
    (tmp_path / "weighted.csv").write_text("a,n\n0,3\n1,1\n8,2\n10,1\n")
    (tmp_path / "repeated.csv").write_text("a\n0\n0\n0\n1\n8\n8\n10\n")
    found = []
    for name, words in (("weighted", ("--weight-column", "n")), ("repeated", ())):
        done = kmeander(
            "run", str(tmp_path / f"{name}.csv"), "--clusters", "2", "--prepare", "none", *words
        )
        (step,) = lines(done.stdout)
        found.append((sorted(step["centroids"]), sorted(step["masses"]), step["surrogate_error"]))
    assert found[0] == found[1]
    assert found[0][1] == [3.0, 4.0]


def test_one_table_is_cut_into_batches_as_a_file_is(tmp_path: Path) -> None:
    import pandas as pd

    rows = np.random.default_rng(0).normal(size=(1200, 2))
    frame = pd.DataFrame(rows, columns=["a", "b"], index=[f"r{i}" for i in range(1200)])
    frame.to_csv(tmp_path / "x.csv", index=False, float_format="%.17g")
    of_file = run(tmp_path / "x.csv", 3).summary
    assert of_file.n_batches == 3
    for table in (frame, pa.Table.from_pandas(frame, preserve_index=False), rows):
        of_table = run(table, 3).summary
        assert of_table.n_batches == 3
        assert of_table.last == of_file.last
    assert run(frame, 3, batch_size=600).summary.n_batches == 2
    assert run([rows], 3).summary.n_batches == 1
