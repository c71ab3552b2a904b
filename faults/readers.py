"""Every reader of kmeander, the inputs that it is tried with, and what may come of it.

An input is read, in part (bad rows are named), or refused with a `KmeanderError`: anything else, be
it a warning of NumPy's, is wrong.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import kmeander
from faults import hostile
from faults.hostile import N_LINES
from kmeander.exceptions import KmeanderError
from kmeander.page import series
from kmeander.page.summary import as_markdown, as_plain
from kmeander.page.timeline import Timeline, read_timeline
from kmeander.runs.api import run
from kmeander.runs.records import RunSummary
from kmeander.sinks.steps import read_facts, read_steps
from kmeander.sources.block import Block
from kmeander.sources.files import FileSource
from kmeander.sources.reading import Reading
from kmeander.sources.selection import Wanted
from kmeander.storage import checkpoint

Try = Callable[[bytes, int, Path], None]


@dataclass(frozen=True)
class Reader:
    """One reader.

    Parameters
    ----------
    name : str
    inputs : strategy
        The contents of a file, or of several.
    try_one : callable
        Given contents, a number that chooses among the ways to read them, and a folder: reads them,
        and raises where that ends as it should not.
    """

    name: str
    inputs: st.SearchStrategy[Any]
    try_one: Try


def _blocks(name: str, data: bytes, folder: Path, wanted: Wanted, **reading: Any) -> list[Block]:
    path = folder / name
    path.write_bytes(data)
    source = FileSource(str(path), wanted, Reading(**reading))
    try:
        source.start()
        return [block for block in source.blocks() if block is not None]
    finally:
        source.close()


# The ways in which rows are read: with an id, with times, without either.
WAYS = (
    Wanted(["a", "b"], id_column="s"),
    Wanted(["a", "b"], time_column="t"),
    Wanted(["b"]),
    Wanted(exclude=["s", "t", "text"]),
)


def _source(name: str, *, lines: bool = False, **reading: Any) -> Try:
    """Read rows in one of the ways; every row is good or bad, and numbers are finite."""

    def try_one(data: bytes, way: int, folder: Path) -> None:
        try:
            blocks = _blocks(name, data, folder, WAYS[way % len(WAYS)], **reading)
        except KmeanderError:
            return
        for block in blocks:
            assert np.isfinite(block.points).all()
            assert len(block.points) == len(block.rows) == len(block.keys)
            assert not set(block.rows.tolist()) & {bad.row for bad in block.bad}
            block.keys.to_pylist()
            json.dumps([[str(bad.place), bad.reason.text, bad.text] for bad in block.bad])
        if lines:
            n_rows = sum(len(block.rows) + len(block.bad) for block in blocks)
            header = 0 if reading or "json" in name else 1
            written = [line for line in data.split(b"\n")[header:] if line.strip()]
            # A line that begins like a comment is one where it is no row.
            n_comments = 0 if "json" in name else sum(line.startswith(b"#") for line in written)
            assert len(written) - n_comments <= n_rows <= len(written)

    return try_one


def _try_steps(data: bytes, way: int, folder: Path) -> None:
    """Read a steps file in one of the ways that there are, and draw what it holds."""
    path = folder / "steps.jsonl"
    path.write_bytes(data)
    try:
        if way % 4 == 0:
            read_facts(path)
        elif way % 4 == 1:
            list(read_steps(path))
        else:
            timeline = read_timeline(path, None if way % 4 == 2 else ("a", "b"))
            json.dumps(as_plain(timeline))
            as_markdown(timeline).encode()
            _draw(timeline)
    except KmeanderError:
        return


def _draw(timeline: Timeline) -> None:
    moments = list(timeline.moments)
    first = moments[0].index
    lives = series.lives(timeline, first)
    series.errors(moments), series.epsilons(moments), series.areas(moments)
    series.events(timeline, lives, first)
    series.trails(series.frames(timeline))


def _try_model(data: bytes, way: int, folder: Path) -> None:  # noqa: ARG001  # there is one way
    """Load a model; where that is done it predicts and learns."""
    path = folder / "model.kmeander"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # another kernel, other names: may be so
        try:
            model = kmeander.load(path)
        except KmeanderError:
            return
        _use(model)


def _use(model: Any) -> None:
    points = hostile.rows(12, 9)
    try:
        if hasattr(model, "cluster_centers_"):
            labels = model.predict(points)
            assert labels.min() >= 0
            assert labels.max() < len(model.cluster_centers_)
        model.partial_fit(points)
    except KmeanderError:
        return
    if hasattr(model, "cluster_centers_"):
        assert np.isfinite(model.cluster_centers_).all()
        assert np.isfinite(model.inertia_)


def _try_checkpoint(data: bytes, way: int, folder: Path) -> None:  # noqa: ARG001  # one way
    """Go on with a run from a checkpoint; where that is done it ends well."""
    for name in ("checkpoint", "rows"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    for name, contents in OUTPUTS.items():
        (folder / name).write_bytes(contents)
    (folder / "checkpoint" / "checkpoint-00000000.ckpt").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            last = _run(folder, N_LINES).last
        except KmeanderError:
            return
    if last is not None and last.centroids is not None:
        assert np.isfinite(last.centroids).all()


def _run(folder: Path, n_lines: int) -> RunSummary:
    (folder / "x.csv").write_bytes(b"\n".join(hostile.csv().split(b"\n")[: n_lines + 1]) + b"\n")
    with contextlib.chdir(folder):  # the checkpoint knows its stream by name
        return run(
            "x.csv", 3, columns=["a", "b"], batch_size=5, random_state=0,
            checkpoint="checkpoint", tell=lambda _: None,
            steps="steps.jsonl", assignments="rows/",
        ).summary  # fmt: skip


def _half_a_run() -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the state of a run that has read half of its stream, and its outputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(folder, 15)
        newest = max((folder / "checkpoint").glob("*.ckpt"))
        written = [folder / "steps.jsonl", *sorted((folder / "rows").iterdir())]
        outputs = {str(path.relative_to(folder)): path.read_bytes() for path in written}
        return checkpoint.read(newest), outputs


STATE, OUTPUTS = _half_a_run()


READERS: tuple[Reader, ...] = (
    Reader("CSV", hostile.damaged(hostile.csv(), hostile.TEXT), _source("x.csv", lines=True)),
    Reader(
        "CSV without a header",
        hostile.damaged(hostile.csv().split(b"\n", 1)[1], hostile.TEXT),
        _source("x.csv", lines=True, header=["a", "b", "s", "t"]),
    ),
    Reader(
        "NDJSON", hostile.damaged(hostile.ndjson(), hostile.TEXT), _source("x.ndjson", lines=True)
    ),
    Reader("gzip", hostile.damaged(hostile.zipped(), hostile.BINARY), _source("x.csv.gz")),
    Reader(
        "Parquet",
        st.sampled_from(
            [hostile.parquet(), hostile.parquet("snappy"), hostile.parquet(plain=True)]
        ).flatmap(lambda whole: hostile.damaged(whole, hostile.BINARY)),
        _source("x.parquet"),
    ),
    Reader(
        "Arrow file",
        hostile.damaged(hostile.arrow(stream=False), hostile.BINARY),
        _source("x.arrow"),
    ),
    Reader(
        "Arrow stream",
        hostile.damaged(hostile.arrow(stream=True), hostile.BINARY),
        _source("x.arrows"),
    ),
    Reader(
        "steps (damaged)",
        hostile.damaged(
            b"".join(json.dumps(line).encode() + b"\n" for line in hostile.steps()), hostile.TEXT
        ),
        _try_steps,
    ),
    Reader(
        "steps (hostile)",
        hostile.altered(hostile.steps()).map(
            lambda lines: b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        ),
        _try_steps,
    ),
    Reader("checkpoint (hostile)", hostile.hostile_files([STATE]), _try_checkpoint),
    Reader("model (hostile)", hostile.hostile_files(hostile.model_states()), _try_model),
)
