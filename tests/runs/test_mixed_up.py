"""Checkpoints, streams and outputs that do not belong together, or are taken away."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import CheckpointError, InputError, StreamError, run
from kmeander.runs.records import Progress
from tests.streams import drifting_stream

STREAM = drifting_stream(9, n_points=30)


def settings(out: Path, **changes: Any) -> dict[str, Any]:
    return {
        "n_clusters": 3,
        "steps": out / "steps.jsonl",
        "assignments": out / "rows.ndjson",
        "checkpoint": out / "checkpoint",
        "checkpoint_every": 2,
        "tell": lambda _: None,
        **changes,
    }


def contents(out: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and "checkpoint" not in file.parts
    }


def after(n_batches: int, action: Any) -> Any:
    """Do something once, in the middle of a run."""

    def on_progress(progress: Progress) -> None:
        if progress.summary.n_batches == n_batches:
            action()

    return on_progress


@pytest.mark.parametrize("rows", ["rows.ndjson", "rows/"])
@pytest.mark.parametrize("mistake", ["another", "lost"])
def test_another_checkpoint_does_not_empty_outputs(mistake: str, rows: str, tmp_path: Path) -> None:
    changes = {"assignments": f"{tmp_path}/{rows}"}
    run(STREAM, **settings(tmp_path, **changes))
    before = contents(tmp_path)
    if mistake == "another":
        changes["checkpoint"] = f"{tmp_path}/checkpiont"
    else:
        shutil.rmtree(tmp_path / "checkpoint")
        changes["checkpoint"] = f"{tmp_path}/checkpoint"
    with pytest.raises(StreamError) as caught:
        run(STREAM, **settings(tmp_path, **changes))
    assert str(caught.value) == (
        f'steps="{tmp_path}/steps.jsonl" is not empty, and checkpoint="{changes["checkpoint"]}" '
        "holds no checkpoint that knows it. To go on, name the checkpoint of the run that wrote "
        "it; to begin anew and lose what is there, add overwrite=True."
    )
    shutil.rmtree(changes["checkpoint"])
    assert contents(tmp_path) == before
    summary = run(STREAM[:3], **settings(tmp_path, **changes, overwrite=True)).summary
    assert summary.resumed_at is None
    assert len((tmp_path / "steps.jsonl").read_bytes().splitlines()) == 3
    assert len(list((tmp_path / "rows").glob("*"))) in (0, 2)
    # The same command goes on from there.
    assert run(STREAM, **settings(tmp_path, **changes, overwrite=True)).summary.resumed_at == 3
    shutil.rmtree(changes["checkpoint"])
    found = contents(tmp_path)
    assert found.pop("steps.jsonl").splitlines()[-1] == before["steps.jsonl"].splitlines()[-1]


def test_a_checkpoint_ahead_of_its_outputs_gives_way_to_the_one_before(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    run(STREAM, **settings(whole, assignments=f"{whole}/rows/"))
    out = tmp_path / "out"
    out.mkdir()
    changes = {"assignments": f"{out}/rows/"}
    run(STREAM[:5], **settings(out, **changes))
    (out / "rows" / "part-000002.parquet").unlink()
    told: list[str] = []
    summary = run(STREAM, **settings(out, **changes, tell=told.append)).summary
    assert told == [
        f'assignments="{out}/rows/" lacks part-000002.parquet, which the checkpoint has written. '
        "Put it back, or begin anew with another checkpoint. Going back to the checkpoint before "
        "it.",
        f"Going on after batch 4 of {out}/checkpoint.",
    ]
    assert summary.resumed_at == 4
    assert contents(out) == contents(whole)


@pytest.mark.parametrize("name", ["steps.jsonl", "rows.ndjson"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_an_output_that_is_removed_in_the_middle_is_noticed_at_once(
    how: str, name: str, tmp_path: Path
) -> None:
    def remove() -> None:
        (tmp_path / name).rename(tmp_path / "elsewhere")
        if how == "replaced":
            (tmp_path / name).write_bytes((tmp_path / "elsewhere").read_bytes())

    with pytest.raises(StreamError) as caught:
        run(STREAM, **settings(tmp_path, on_progress=after(5, remove)))
    argument = {"steps.jsonl": "steps", "rows.ndjson": "assignments"}[name]
    assert str(caught.value) == (
        f'{argument}="{tmp_path}/{name}" was removed or replaced while the run was writing it. Put '
        "back what was there, and run the same command again; or begin anew with another "
        "checkpoint."
    )
    (tmp_path / "elsewhere").rename(tmp_path / name)
    assert run(STREAM, **settings(tmp_path)).summary.resumed_at == 4
    whole = tmp_path / "whole"
    whole.mkdir()
    run(STREAM, **settings(whole))
    assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(("size", "advice"), [(10, "put back what was cut"), (10**6, "remove")])
def test_an_output_that_something_else_cuts_or_writes_is_noticed_at_once(
    size: int, advice: str, tmp_path: Path
) -> None:
    def cut() -> None:
        with (tmp_path / "steps.jsonl").open("r+b") as file:
            file.truncate(size)

    with pytest.raises(StreamError, match=f"bytes, the run has written .* {advice}"):
        run(STREAM, **settings(tmp_path, on_progress=after(5, cut)))


def test_parts_that_are_removed_in_the_middle_are_noticed(tmp_path: Path) -> None:
    rows = f"{tmp_path}/rows/"
    remove = after(5, lambda: shutil.rmtree(rows))
    with pytest.raises(StreamError, match='rows/" was removed or replaced while the run was'):
        run(STREAM, **settings(tmp_path, assignments=rows, on_progress=remove))


def test_a_checkpoint_folder_that_is_removed_in_the_middle_is_one_sentence(tmp_path: Path) -> None:
    remove = after(5, lambda: shutil.rmtree(tmp_path / "checkpoint"))
    with pytest.raises(CheckpointError) as caught:
        run(STREAM, **settings(tmp_path, on_progress=remove))
    assert str(caught.value) == (
        f'checkpoint="{tmp_path}/checkpoint" was removed while the run was going on. Put it back, '
        "and run the same command again; or begin anew with another checkpoint."
    )


def written(path: Path, rows: Any, header: str = "a,b,c") -> Path:
    """Write rows in the format that the ending says; every line has the same length."""
    lines = [",".join(f"{value:+08.3f}" for value in row) for row in rows]
    text = "".join(f"{line}\n" for line in [header, *lines]).encode()
    if path.suffix == ".csv":
        path.write_bytes(text)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text, mtime=0))
    elif path.suffix == ".ndjson":
        named = [dict(zip("abc", row, strict=True)) for row in np.round(rows, 3).tolist()]
        path.write_text("".join(f"{json.dumps(row):>60}\n" for row in named))
    else:
        table = pa.table(dict(zip("abc", np.asarray(rows).T, strict=True)))
        if path.suffix == ".parquet":
            pq.write_table(table, path, row_group_size=50)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
                out.write_table(table, max_chunksize=50)
    return path


FORMATS = ["csv", "csv.gz", "ndjson", "parquet", "arrows"]


@pytest.mark.parametrize("ending", FORMATS)
def test_another_stream_under_the_old_name_is_refused(ending: str, tmp_path: Path) -> None:
    ours, other = (np.concatenate(drifting_stream(9, n_points=30, seed=seed)) for seed in (0, 1))
    path = written(tmp_path / f"x.{ending}", ours[:150])
    out = tmp_path / "out"
    out.mkdir()
    run(path, batch_size=30, **settings(out))
    before = contents(out)
    written(path, np.concatenate([other[:150], ours[150:]]))
    with pytest.raises(InputError) as caught:
        run(path, batch_size=30, **settings(out))
    assert str(caught.value).startswith(
        f"{path} is not the stream of the checkpoint: what stands before "
    )
    assert str(caught.value).endswith(
        ", where that stopped reading, is different. Give the same stream, or begin anew with "
        "another checkpoint."
    )
    assert contents(out) == before
    # The old one, and more of it, is read on.
    written(path, ours)
    assert run(path, batch_size=30, **settings(out)).summary.resumed_at == 5
    whole = tmp_path / "whole"
    whole.mkdir()
    run(path, batch_size=30, **settings(whole))
    assert contents(out) == contents(whole)


def test_another_header_is_refused(tmp_path: Path) -> None:
    """The columns are found by their names, so the run itself would not notice."""
    rows = np.concatenate(STREAM)
    path = written(tmp_path / "x.csv", rows[:150])
    run(path, batch_size=30, columns=["a", "b", "c"], **settings(tmp_path))
    written(path, rows, header="b,a,c")
    with pytest.raises(InputError, match="is not the stream of the checkpoint"):
        run(path, batch_size=30, columns=["a", "b", "c"], **settings(tmp_path))


def test_other_arrays_are_refused(tmp_path: Path) -> None:
    run(STREAM[:5], **settings(tmp_path))
    other = drifting_stream(9, n_points=30, seed=1)
    with pytest.raises(InputError) as caught:
        run(other, **settings(tmp_path))
    assert str(caught.value) == (
        "the list is not the stream of the checkpoint: what stands before row 150, where that "
        "stopped reading, is different. Give the same stream, or begin anew with another "
        "checkpoint."
    )


@pytest.mark.parametrize("n_rows", [150, 400])
def test_a_followed_file_that_is_cut_and_grows_again_is_noticed(
    n_rows: int, tmp_path: Path
) -> None:
    """As by logrotate's copytruncate; what is new reaches beyond the old end, or does not."""
    ours, other = (np.concatenate(drifting_stream(9, n_points=60, seed=seed)) for seed in (0, 1))
    path = written(tmp_path / "x.csv", ours[:300])
    changes = {"follow": True, "idle_exit": 20.0, "batch_size": 30}
    cut = after(5, lambda: written(path, other[:n_rows]))
    with pytest.raises(InputError, match="was cut"):
        run(path, **settings(tmp_path, **changes, on_progress=cut))


def test_a_followed_file_that_is_removed_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", np.concatenate(STREAM))
    changes = {"follow": True, "idle_exit": 20.0, "batch_size": 30}
    remove = after(9, path.unlink)
    with pytest.raises(InputError) as caught:
        run(path, **settings(tmp_path, **changes, on_progress=remove))
    assert str(caught.value) == (
        f"{path} was removed, or replaced by another file, while it was followed. All of the old "
        "one has been read. Let the writer append, or give it a new name each time and read the "
        "folder."
    )
