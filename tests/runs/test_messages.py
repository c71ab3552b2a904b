"""Messages name arguments as whoever reads them writes them: Python's, or the command line's."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import typer

import kmeander
from kmeander import InputError, KmeanderError, run
from kmeander.cli import app
from kmeander.commands.shell import in_shell
from kmeander.commands.values import names
from kmeander.commands.words import LOGS
from kmeander.drifts.magnitude import MAGNITUDES
from kmeander.exceptions import argument, arguments_written_by, in_python
from kmeander.experiments.beyond import experiment as beyond
from kmeander.experiments.grid import QUICK
from kmeander.kmeans.metric import METRICS
from kmeander.kmeans.starts import INITIALISATIONS
from kmeander.models.settings import FORGETTING
from kmeander.page.timeline import read_timeline
from kmeander.preparation.rules import WORDS as PREPARE
from kmeander.runs.predict import predict
from kmeander.runs.simulate import Simulation
from kmeander.sinks import assignment_sink
from kmeander.sinks.steps import StepLines
from kmeander.sources import Reading, Wanted, line_parsing, open_source
from kmeander.sources.batching import BAD_ROWS, LATE, Batching, microseconds
from kmeander.sources.byte_streams import FileBytes
from kmeander.sources.files import FORMATS, ORDERS
from kmeander.sources.kafka import STARTS, KafkaSource
from kmeander.sources.numerals import DECIMALS
from kmeander.sources.times import UNITS
from kmeander.storage import checkpoint
from kmeander.storage.checkpoint_folder import CheckpointFolder

PACKAGE = Path(kmeander.__file__).parent
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group's

# Arguments of `kmeander.run` that have no option.
PYTHON_ALONE = {"source", "max_batches", "max_iter", "tol", "on_progress", "on_first_rows",
                "on_step", "tell", "stop", "keep_steps"}  # fmt: skip


def said(call: Callable[[], Any], command: str | None = None) -> str:
    """Return the message of what a call raises, in Python's words or in those of a command."""
    style = in_python if command is None else in_shell(COMMANDS, command)
    with arguments_written_by(style), pytest.raises(KmeanderError) as raised:
        call()
    return str(raised.value)


def read(path: Path, wanted: Wanted | None = None, **reading: Any) -> None:
    source = open_source(path, wanted or Wanted(), Reading(**reading))
    try:
        source.start()
        for _ in source.blocks():
            pass
    finally:
        source.close()


def files(folder: Path) -> Path:
    """Make the files that the calls below stumble over."""
    (folder / "rows.csv").write_text("a,b;c\n1,2\n3,4\n5,x\n")
    (folder / "numbers.csv").write_text("1,2\n3,4\n")
    (folder / "rows.parquet").write_bytes(b"")
    (folder / "rows.ndjson").write_text('{"a": 1}\n')
    (folder / "list.ndjson").write_text("[1]\n")
    (folder / "rows.csv.gz").write_bytes(b"")
    (folder / "rows.dat").write_text("a\n1\n")
    (folder / "truth.csv").write_text("x,drift\n1,2\n3,4\n")
    (folder / "times.csv").write_text("at,a\n10,1\n25,2\n7,3\n")
    (folder / "empty").mkdir()
    (folder / "both").mkdir()
    (folder / "both" / "1.csv").write_text("a\n1\n")
    (folder / "both" / "2.csv").write_text("a,b c\n1,2\n")
    (folder / "parts").mkdir()
    (folder / "steps.jsonl").write_text("x" * 10)
    return folder


def resumed_lines(folder: Path) -> None:
    StepLines(str(folder / "steps.jsonl"), dict, lambda _: []).open({"byte": 11})


def missing_part(folder: Path) -> None:
    sink = assignment_sink(str(folder / "parts"), in_parts=True)
    sink.open({"parts": 1})


def long_line() -> None:
    blocks = iter([b"x" * (1 << 20), b"x", b""])
    with patch.object(line_parsing, "LONGEST_LINE", 1 << 20):
        list(line_parsing.whole_lines(lambda _: next(blocks), "x.csv"))


def cut_while_followed(folder: Path) -> None:
    file = folder / "grows.csv"
    file.write_text("a\n1\n2\n")
    stream = FileBytes(str(file), follow=True)
    try:
        stream.read(100)
        file.write_text("a\n")
        stream.read(100)
    finally:
        stream.close()


def checkpoint_of_another_run(folder: Path) -> None:
    state = folder / "state of x"
    if not state.exists():
        run([[[1.0], [2.0]]], 2, checkpoint=state, id_column=None)
    run([[[1.0], [2.0]]], 1, checkpoint=state)


def locked(folder: Path) -> None:
    with CheckpointFolder(folder / "lock"):
        CheckpointFolder(folder / "lock")


# What is called in a folder, the command at hand, and the message: in Python, and in the shell.
# {} is the folder.
CASES: list[tuple[str, Callable[[Path], Any], str, str]] = [
    ("run", lambda f: run(f / "rows.csv", 1, batch_size=2),
     "{}/rows.csv line 4: 'x' in column 'b;c' is not a number (leave the column out with "
     'exclude=["b;c"], or use bad_rows="skip" to go on without such rows).',
     "{}/rows.csv line 4: 'x' in column 'b;c' is not a number (leave the column out with "
     "--exclude 'b;c', or use --bad-rows skip to go on without such rows)."),
    ("run", lambda f: run(f / "times.csv", 1, header=["a", "b", "c"]),
     "{}/times.csv line 1: 2 fields where there should be 3 (give header=... a name for every "
     "field).",
     "{}/times.csv line 1: 2 fields where there should be 3 (give --header a name for every "
     "field)."),
    ("run", lambda f: run(f / "times.csv", 1, time_column="at", every="10s", late_rows="error"),
     'row 3 of the stream is late: its period was over when it came. Use late_rows="keep" to learn '
     'such rows with the present batch, or late_rows="skip" to leave them out.',
     "row 3 of the stream is late: its period was over when it came. Use --late-rows keep to learn "
     "such rows with the present batch, or --late-rows skip to leave them out."),
    ("run", lambda _: microseconds("10 parsecs"),
     "every must be a duration such as 30s, 10m or 1h, got '10 parsecs'. The units are ms, s, m, "
     "h, d.",
     "--every must be a duration such as 30s, 10m or 1h, got '10 parsecs'. The units are ms, s, m, "
     "h, d."),
    ("run", lambda _: Batching(size=5, every=10),
     "every cannot be given with batch_size or batch_seconds: a batch holds the rows of one "
     "period, however many they are.",
     "--every cannot be given with --batch-size or --batch-seconds: a batch holds the rows of one "
     "period, however many they are."),
    ("run", lambda _: Batching(late="lose"),
     "late_rows must be one of 'keep', 'skip', 'error', got 'lose'.",
     "--late-rows must be one of 'keep', 'skip', 'error', got 'lose'."),
    ("run", lambda f: read(f / "both"),
     "{0}/both/2.csv has a column 'b c', which {0}/both/1.csv does not have. Name the columns to "
     'cluster with columns=..., or leave this one out with exclude=["b c"].',
     "{0}/both/2.csv has a column 'b c', which {0}/both/1.csv does not have. Name the columns to "
     "cluster with --columns, or leave this one out with --exclude 'b c'."),
    ("run", lambda f: read(f / "numbers.csv"),
     '{}/numbers.csv begins with 1,2: names of columns, or a row? header=["1", "2"] takes them for '
     'names, header=["x0", "x1"] for a row.',
     "{}/numbers.csv begins with 1,2: names of columns, or a row? --header 1,2 takes them for "
     "names, --header x0,x1 for a row."),
    ("run", lambda f: read(f / "list.ndjson"),
     "{}/list.ndjson holds no JSON object in its first lines. NDJSON has one object per line, "
     'such as {{"temp": 21.5}}; format=... says what else it may be.',
     "{}/list.ndjson holds no JSON object in its first lines. NDJSON has one object per line, "
     'such as {{"temp": 21.5}}; --format says what else it may be.'),
    ("run", lambda f: read(f / "rows.dat"),
     "{}/rows.dat: its ending '.dat' does not say the format. Say it with format=..., one of csv, "
     "tsv, ndjson, json, parquet, arrow.",
     "{}/rows.dat: its ending '.dat' does not say the format. Say it with --format, one of csv, "
     "tsv, ndjson, json, parquet, arrow."),
    ("run", lambda f: read(f / "empty"),
     "{}/empty holds no file to read. Files must end in .csv, .tsv, .tab, .ndjson, .jsonl, .json, "
     ".parquet, .pq, .arrow, .arrows, .ipc, .feather, compressed ones in .gz, .bz2, .zst, .lz4, "
     ".br, .xz, .zip after that; format=... reads others.",
     "{}/empty holds no file to read. Files must end in .csv, .tsv, .tab, .ndjson, .jsonl, .json, "
     ".parquet, .pq, .arrow, .arrows, .ipc, .feather, compressed ones in .gz, .bz2, .zst, .lz4, "
     ".br, .xz, .zip after that; --format reads others."),
    ("run", lambda f: read(f / "rows.csv", form="xml"),
     "format must be one of 'csv', 'tsv', 'ndjson', 'json', 'parquet', 'arrow', got 'xml'.",
     "--format must be one of 'csv', 'tsv', 'ndjson', 'json', 'parquet', 'arrow', got 'xml'."),
    ("run", lambda f: read(f / "rows.csv", order="size"),
     "order must be one of 'name', 'time', got 'size'.",
     "--order must be one of 'name', 'time', got 'size'."),
    ("run", lambda f: read(f / "rows.ndjson", header=["a"]),
     "header=... names the columns of csv and tsv; {}/rows.ndjson is ndjson.",
     "--header names the columns of csv and tsv; {}/rows.ndjson is ndjson."),
    ("run", lambda _: read(Path("-"), follow=True),
     "follow=True is for files: standard input is read as it comes anyway.",
     "--follow is for files: standard input is read as it comes anyway."),
    ("run", lambda _: open_source([[[1.0]]], Wanted(), Reading(follow=True)),
     "follow=True is for files: other streams are read as they come anyway.",
     "--follow is for files: other streams are read as they come anyway."),
    ("run", lambda f: read(f / "both", follow=True),
     "follow=True reads one file, {}/both means 2.",
     "--follow reads one file, {}/both means 2."),
    ("run", lambda f: read(f / "rows.parquet", follow=True),
     "follow=True reads csv, tsv and ndjson; {}/rows.parquet is parquet.",
     "--follow reads csv, tsv and ndjson; {}/rows.parquet is parquet."),
    ("run", lambda f: read(f / "rows.csv.gz", follow=True),
     "follow=True cannot read {}/rows.csv.gz: a compressed file does not grow by rows.",
     "--follow cannot read {}/rows.csv.gz: a compressed file does not grow by rows."),
    ("run", cut_while_followed,
     "{}/grows.csv was cut from 6 to 2 bytes while it was followed. What was cut off has been "
     "read; what replaces it cannot be distinguished from it. Begin anew, with another checkpoint.",
     "{}/grows.csv was cut from 6 to 2 bytes while it was followed. What was cut off has been "
     "read; what replaces it cannot be distinguished from it. Begin anew, with another "
     "--checkpoint."),
    ("run", lambda _: long_line(),
     "x.csv has a line of more than 1 MiB. Is it text at all? format=... says what else it may "
     "be.",
     "x.csv has a line of more than 1 MiB. Is it text at all? --format says what else it may "
     "be."),
    ("run", lambda _: KafkaSource("kafka://h:1/t", Wanted(), reading=Reading("parquet")),
     "format of a Kafka topic must be json or csv, got 'parquet'.",
     "--format of a Kafka topic must be json or csv, got 'parquet'."),
    ("run", lambda _: KafkaSource("kafka://h:1/t", Wanted(), reading=Reading("csv")),
     "CSV messages have no header: header=... names their fields.",
     "CSV messages have no header: --header names their fields."),
    ("run", lambda _: KafkaSource("kafka://h:1/t", Wanted(), start="middle"),
     "start must be one of 'earliest', 'latest', got 'middle'.",
     "--start must be one of 'earliest', 'latest', got 'middle'."),
    ("run", lambda f: run(f / "rows.csv", steps=f / "o", assignments=f / "o"),
     "steps and assignments cannot both be {}/o: one would overwrite the other.",
     "--steps and --assignments cannot both be {}/o: one would overwrite the other."),
    ("run", lambda f: run(f / "rows.csv", steps=f / "rows.csv"),
     'steps="{0}/rows.csv" would overwrite the source. Name another file.',
     "--steps {0}/rows.csv would overwrite the source. Name another file."),
    ("run", lambda f: run(f / "rows.csv", model_out=f / "none" / "a b.km"),
     'model_out="{0}/none/a b.km" cannot be written: there is no folder {0}/none.',
     "--model-out '{0}/none/a b.km' cannot be written: there is no folder {0}/none."),
    ("run", lambda f: run(f / "rows.csv", rho=0.5, half_life=2),
     "give rho or half_life, not both.",
     "give --rho or --half-life, not both."),
    ("run", lambda f: run(f / "rows.csv", half_life=-1),
     "half_life must be a finite number above 0, got -1. It is the number of batches after which "
     "half is forgotten.",
     "--half-life must be a finite number above 0, got -1. It is the number of batches after which "
     "half is forgotten."),
    ("run", lambda f: run(f / "rows.csv", half_life=1e-7),
     "half_life=1e-07 would need a rho of 0. No rho strictly between 0 and 1 forgets so fast: "
     "choose a larger half_life.",
     "--half-life 1e-07 would need a rho of 0. No rho strictly between 0 and 1 forgets so fast: "
     "choose a larger --half-life."),
    ("rho", lambda _: kmeander.rho_for_drift(0.5, 1e20),
     "epsilon=0.5, stable_for=1e+20 and m=2.0 would need a rho of 1. No rho strictly between 0 and "
     "1 forgets so slowly: choose a smaller stable_for.",
     "--epsilon 0.5, --stable-for 1e+20 and --m 2.0 would need a rho of 1. No rho strictly between "
     "0 and 1 forgets so slowly: choose a smaller --stable-for."),
    ("run", lambda f: run(f / "rows.csv", rho=1.5),
     "rho must lie in (0, 1], got 1.5. It is the share of a batch's weight kept when the next one "
     "arrives; kmeander.rho_for_half_life(batches=...) picks it from the number of batches after "
     "which half is forgotten.",
     "--rho must lie in (0, 1], got 1.5. It is the share of a batch's weight kept when the next "
     "one arrives; kmeander rho --half-life picks it from the number of batches after which half "
     "is forgotten."),
    ("run", lambda f: run(f / "rows.csv", rho="fast"),  # type: ignore[arg-type]  # what it refuses
     "rho must be a number in (0, 1], \"auto\" or \"two-speed\", got 'fast'.",
     "--rho must be a number in (0, 1], \"auto\" or \"two-speed\", got 'fast'."),
    ("run", lambda f: run(f / "rows.csv", every="1s"),
     "every cuts the stream by time, and needs time_column=... to say where the time stands.",
     "--every cuts the stream by time, and needs --time-column to say where the time stands."),
    ("run", lambda f: run(f / "rows.csv", idle_exit=0),
     "idle_exit must be a finite number above 0, got 0.",
     "--idle-exit must be a finite number above 0, got 0."),
    ("run", lambda f: run(f / "rows.csv", n_clusters=0),
     "n_clusters must be a whole number of at least 1, got 0. It is the number of clusters K.",
     "--clusters must be a whole number of at least 1, got 0. It is the number of clusters K."),
    ("run", lambda f: run(f / "rows.csv", max_batches=0),
     "max_batches must be a whole number of at least 1, got 0. It is the most batches remembered.",
     "max_batches must be a whole number of at least 1, got 0. It is the most batches remembered."),
    ("run", checkpoint_of_another_run,
     'checkpoint="{}/state of x" belongs to a run with n_clusters 2, this one has 1. Use the same, '
     "or another checkpoint to begin anew.",
     "--checkpoint '{}/state of x' belongs to a run with --clusters 2, this one has 1. Use the "
     "same, or another --checkpoint to begin anew."),
    ("run", lambda _: run([[[np.nan]]], 1, bad_rows="skip", prepare=None),
     "the list: every row is bad (1 were set aside), so nothing was learned. With "
     'bad_rows="error" the run stops at the first and says why.',
     "the list: every row is bad (1 were set aside), so nothing was learned. With --bad-rows error "
     "the run stops at the first and says why."),
    ("run", lambda f: run(f / "rows.csv", 1, columns=["a"], centroids=f / "c.txt"),
     'centroids="{}/c.txt" must end in .csv, .parquet, .pq.',
     "--centroids {}/c.txt must end in .csv, .parquet, .pq."),
    ("run", lambda f: run(f / "rows.csv", 1, columns=["a"], assignments=f / "c.txt"),
     'assignments="{}/c.txt": its ending does not say the format. Use .parquet, .csv, .ndjson or '
     ".jsonl, a folder for parts of Parquet, or kafka://host:port/topic.",
     "--assignments {}/c.txt: its ending does not say the format. Use .parquet, .csv, .ndjson or "
     ".jsonl, a folder for parts of Parquet, or kafka://host:port/topic."),
    ("run", missing_part,
     'assignments="{}/parts" lacks part-000000.parquet, which the checkpoint has written. Put it '
     "back, or begin anew with another checkpoint.",
     "--assignments {}/parts lacks part-000000.parquet, which the checkpoint has written. Put it "
     "back, or begin anew with another --checkpoint."),
    ("run", resumed_lines,
     'steps="{}/steps.jsonl" has 10 bytes, the checkpoint has written 11. It was changed or lost: '
     "put it back, or begin anew with another checkpoint.",
     "--steps {}/steps.jsonl has 10 bytes, the checkpoint has written 11. It was changed or lost: "
     "put it back, or begin anew with another --checkpoint."),
    ("run", lambda f: CheckpointFolder(f / "rows.csv"),
     'checkpoint="{}/rows.csv" cannot be made: File exists.',
     "--checkpoint {}/rows.csv cannot be made: File exists."),
    ("run", lambda f: run(f / "rows.csv", bad_rows="Skip"),
     'bad_rows must be "error", "skip" or a file such as bad.ndjson, got \'Skip\'.',
     '--bad-rows must be "error", "skip" or a file such as bad.ndjson, got \'Skip\'.'),
    ("run", lambda f: run(f"drift:{f}/rows.csv?clusters=0"),
     "drift:{}/rows.csv?clusters=0: clusters must be a whole number of at least 1, got 0. It is "
     "the number of clusters that move.",
     "drift:{}/rows.csv?clusters=0: clusters must be a whole number of at least 1, got 0. It is "
     "the number of clusters that move."),
    ("run", lambda f: run(f"drift:{f}/rows.csv?batch_size=2.5"),
     "drift:{}/rows.csv?batch_size=2.5: batch_size must be a whole number, got '2.5'.",
     "drift:{}/rows.csv?batch_size=2.5: batch_size must be a whole number, got '2.5'."),
    ("run", lambda f: run(f"drift:{f}/rows.csv?batch_size=0"),
     "drift:{}/rows.csv?batch_size=0: batch_size must be a whole number of at least 1, got 0. It "
     "is the rows of a batch.",
     "drift:{}/rows.csv?batch_size=0: batch_size must be a whole number of at least 1, got 0. It "
     "is the rows of a batch."),
    ("run", lambda f: run(f"drift:{f}/rows.csv?epsilon=-1"),
     "drift:{}/rows.csv?epsilon=-1: epsilon must be a finite number above 0, got -1.0.",
     "drift:{}/rows.csv?epsilon=-1: epsilon must be a finite number above 0, got -1.0."),
    ("simulate", lambda f: Simulation(str(f / "rows.csv")).write(f / "rows.csv"),
     'out="{}/rows.csv" is a file; name a folder.',
     "--out {}/rows.csv is a file; name a folder."),
    ("run", lambda f: run(f / "rows.csv", columns="temp"),
     "columns must be a list of names, got 'temp': pass [\"temp\"].",
     "--columns must be a list of names, got 'temp': pass [\"temp\"]."),
    ("run", lambda f: run(f / "rows.csv", exclude="temp"),
     "exclude must be a list of names, got 'temp': pass [\"temp\"].",
     "--exclude must be a list of names, got 'temp': pass [\"temp\"]."),
    ("run", lambda f: run(f / "rows.csv", header="a,b"),
     "header must be a list of names, got 'a,b': pass [\"a\", \"b\"].",
     "--header must be a list of names, got 'a,b': pass [\"a\", \"b\"]."),
    ("predict", lambda f: kmeander.load(f / "rows.csv"),
     "{}/rows.csv is not a kmeander model: it does not begin with 'KMEANDER'. "
     "kmeander.run(model_out=...) writes one, and so does save() of an estimator.",
     "{}/rows.csv is not a kmeander model: it does not begin with 'KMEANDER'. kmeander run "
     "--model-out writes one, and so does save() of an estimator."),
    ("predict", lambda f: predict(f / "rows.csv", f / "none.km"),
     "there is no model {}/none.km. kmeander.run(model_out=...) writes one.",
     "there is no model {}/none.km. kmeander run --model-out writes one."),
    ("predict", lambda f: predict(f / "rows.csv", f / "none.km", bad_rows="drop"),
     "bad_rows must be one of 'error', 'skip', got 'drop'.",
     "--bad-rows must be one of 'error', 'skip', got 'drop'."),
    ("predict", lambda f: predict(f / "rows.csv", f / "none.km", n_threads=0),
     "n_threads must be a whole number of at least 1, got 0. It is the number of threads; leave it "
     "out for all cores.",
     "--threads must be a whole number of at least 1, got 0. It is the number of threads; leave it "
     "out for all cores."),
    ("predict", lambda f: assignment_sink(str(f / "x.txt"), in_parts=False, output="out"),
     'out="{}/x.txt": its ending does not say the format. Use .parquet, .csv, .ndjson or .jsonl, '
     "a folder for parts of Parquet, or kafka://host:port/topic.",
     "--out {}/x.txt: its ending does not say the format. Use .parquet, .csv, .ndjson or .jsonl, "
     "a folder for parts of Parquet, or kafka://host:port/topic."),
    ("predict", lambda f: checkpoint.read(f),
     "{} is a folder, a checkpoint is a file. A model's file is what kmeander.run(model_out=...) "
     "writes.",
     "{} is a folder, a checkpoint is a file. A model's file is what kmeander run --model-out "
     "writes."),
    ("report", lambda f: read_timeline(f / "none.jsonl"),
     "{}/none.jsonl cannot be read: No such file or directory. kmeander.run(steps=...) writes such "
     "a file.",
     "{}/none.jsonl cannot be read: No such file or directory. kmeander run --steps writes such a "
     "file."),
    ("simulate", lambda _: Simulation("x.csv", seed=-1),
     "seed must be a whole number of at least 0, got -1. It is the seed of all random choices.",
     "--seed must be a whole number of at least 0, got -1. It is the seed of all random choices."),
    ("simulate", lambda _: Simulation("x.csv", n_clusters=0),
     "n_clusters must be a whole number of at least 1, got 0. It is the number of clusters K.",
     "--clusters must be a whole number of at least 1, got 0. It is the number of clusters K."),
    ("simulate", lambda _: Simulation("x.csv", method="newton"),
     "method must be one of 'root', 'paper', got 'newton'.",
     "--method must be one of 'root', 'paper', got 'newton'."),
    ("simulate", lambda f: Simulation(str(f / "truth.csv")).features,
     "{}/truth.csv has a column 'drift', which is where the truth is written. Rename it, or leave "
     "it out: columns=... chooses others.",
     "{}/truth.csv has a column 'drift', which is where the truth is written. Rename it, or leave "
     "it out: --columns chooses others."),
    ("simulate", lambda f: Simulation(str(f / "rows.csv")).features,
     "{}/rows.csv line 4: 'x' in column 'b;c' is not a number. Leave such columns out: columns=... "
     "names others.",
     "{}/rows.csv line 4: 'x' in column 'b;c' is not a number. Leave such columns out: --columns "
     "names others."),
]  # fmt: skip


@pytest.mark.parametrize(("command", "call", "python", "shell"), CASES)
def test_a_message_is_in_the_language_of_its_reader(
    command: str, call: Callable[[Path], Any], python: str, shell: str, tmp_path: Path
) -> None:
    folder = files(tmp_path)
    assert said(lambda: call(folder)) == python.format(folder)
    assert said(lambda: call(folder), command) == shell.format(folder)


def test_a_folder_in_use_says_so_in_both(tmp_path: Path) -> None:
    python, shell = said(lambda: locked(tmp_path)), said(lambda: locked(tmp_path), "run")
    ending = (
        r" is in use by another run \(process \d+\)\. Wait until it ends, or name another folder\."
    )
    assert re.fullmatch(re.escape(f'checkpoint="{tmp_path}/lock"') + ending, python)
    assert re.fullmatch(re.escape(f"--checkpoint {tmp_path}/lock") + ending, shell)


def test_experiments_name_their_arguments_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "has_river", lambda: False)
    message = "{} needs river: pip install river, or leave it out."
    for command, name in ((None, "river=True"), ("experiment", "--river")):
        assert said(lambda: beyond.check(QUICK, river=True), command) == message.format(name)
    two = replace(QUICK, ms=(1.0, 2.0))
    message = "m must be one number here, got 1, 2. Run the others into folders of their own with "
    for command, name in ((None, "out"), ("experiment", "--out")):
        assert said(lambda: beyond.check(two, river=False), command) == f"{message}{name}."


def test_the_help_shows_the_words_that_the_library_takes() -> None:
    shown = {
        (command, parameter.name): set(parameter.metavar.split("|"))
        for command in ("run", "predict", "simulate")
        for parameter in COMMANDS[command].params
        if "|" in (parameter.metavar or "")
    }
    order, form = set(ORDERS), set(FORMATS)
    assert shown == {
        ("run", "n_clusters"): {"NUMBER", "LOW-HIGH", "auto"},
        ("run", "rho"): {"NUMBER", "auto", "two-speed"},
        ("run", "steps_part"): {"SIZE", "day"},
        ("run", "refine"): {"swaps", "split-merge", "NUMBER", "none"},
        ("run", "bad_rows"): {*BAD_ROWS, "FILE"},
        ("run", "prepare"): {*PREPARE, "FILE"},
        ("run", "init"): set(INITIALISATIONS),
        ("run", "forgetting"): set(FORGETTING),
        ("run", "season"): {"NUMBER", "PERIOD"},
        ("run", "late_rows"): set(LATE),
        ("run", "start"): set(STARTS),
        ("run", "metric"): set(METRICS),
        ("run", "format"): form,
        ("run", "order"): order,
        ("run", "decimal"): set(DECIMALS),
        ("run", "time_unit"): set(UNITS),
        ("run", "log"): set(LOGS),
        ("run", "metrics"): {"PORT", "HOST:PORT"},
        ("predict", "decimal"): set(DECIMALS),
        ("predict", "format"): form,
        ("predict", "order"): order,
        ("predict", "bad_rows"): set(BAD_ROWS),
        ("simulate", "method"): set(MAGNITUDES),
    }


@pytest.mark.parametrize("column", ["b;c", "a b", "it's", "$HOME", "-x", "naïve"])
def test_what_a_message_advises_can_be_pasted_into_a_shell(column: str) -> None:
    with arguments_written_by(in_shell(COMMANDS, "run")):
        advice = argument("exclude", [column])
    option, given = shlex.split(advice)
    assert option == "--exclude" and names(given) == [column]


def test_the_style_ends_with_the_command() -> None:
    with pytest.raises(InputError), arguments_written_by(in_shell(COMMANDS, "run")):
        raise InputError(argument("follow", True))
    assert argument("follow", True) == "follow=True"


def literals(file: Path) -> list[str]:
    """Return the texts in a module, but for its docstrings."""
    tree = ast.parse(file.read_text())
    spoken = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken
    ]


def library() -> list[Path]:
    """Return the modules that Python callers reach."""
    found = sorted(PACKAGE.rglob("*.py"))
    apart = {PACKAGE / "cli.py", *(PACKAGE / "commands").rglob("*.py")}
    return [file for file in found if file not in apart]


def test_the_library_never_speaks_of_options() -> None:
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    spoken = {
        (str(file.relative_to(PACKAGE)), found)
        for file in library()
        for text in literals(file)
        for found in option.findall(text)
    }
    # What the page of `kmeander experiment beyond` says of the command that writes it.
    assert spoken == {("experiments/beyond/experiment.py", "--river")}


def test_every_argument_that_a_message_names_is_one() -> None:
    """And has an option of the command that takes it."""
    known = {
        name
        for taker in (
            run,
            predict,
            Simulation,
            kmeander.rho_for_drift,
            kmeander.rho_for_half_life,
            kmeander.ForgetfulKMeans.novelty_threshold,
        )
        for name in inspect.signature(taker).parameters
    } | {"port", "out", "processes", "river", "features", "batch_size"}
    named = {
        call.args[0].value
        for file in library()
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "argument"
        and isinstance(call.args[0], ast.Constant)
    }
    assert named <= known
    options = {parameter.name for parameter in COMMANDS["run"].params}
    assert set(inspect.signature(run).parameters) - PYTHON_ALONE <= options
    assert {field.name for field in fields(Simulation)} - {"path"} <= {
        parameter.name for parameter in COMMANDS["simulate"].params
    } | {"changes"}


@pytest.mark.parametrize("option", ["time_column", "weight_column"])
@pytest.mark.parametrize("bad", ["-1", "much"])
def test_a_column_that_is_asked_for_is_not_to_be_left_out(
    option: str, bad: str, tmp_path: Path
) -> None:
    """The advice, pasted, would be refused."""
    path = tmp_path / "x.csv"
    path.write_text(f"t,a\n1767225600,1\n{bad},2\n")
    given: dict[str, Any] = {option: "t"}
    if option == "time_column":
        given["every"] = "1d"
    with pytest.raises(KmeanderError) as refused:
        run(path, 2, **given)
    assert "exclude" not in str(refused.value)
    assert str(refused.value).endswith('(use bad_rows="skip" to go on without such rows).')
