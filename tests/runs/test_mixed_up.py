"""Checkpoints, streams and outputs that do not belong together, or are taken away."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kmeander import CheckpointError, StreamError, run
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
    summary = run(STREAM[:3], **settings(tmp_path, **changes, overwrite=True))
    assert summary.resumed_at is None
    assert len((tmp_path / "steps.jsonl").read_bytes().splitlines()) == 3
    assert len(list((tmp_path / "rows").glob("*"))) in (0, 2)
    # The same command goes on from there.
    assert run(STREAM, **settings(tmp_path, **changes, overwrite=True)).resumed_at == 3
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
    summary = run(STREAM, **settings(out, **changes, tell=told.append))
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
    assert run(STREAM, **settings(tmp_path)).resumed_at == 4
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
