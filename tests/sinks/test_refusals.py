"""What a sink refuses before or while a run writes, and what it then leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import InputError, StreamError, run
from kmeander.sinks import assignments
from kmeander.sinks.steps import read_steps
from tests.streams import drifting_stream


def with_keys(keys: list[pa.Array]) -> list[pa.Table]:
    batches = drifting_stream(len(keys), n_points=len(keys[0]), n_features=2)
    return [
        pa.table({"key": key, "a": points[:, 0], "b": points[:, 1]})
        for key, points in zip(keys, batches, strict=True)
    ]


def test_a_folder_takes_parts_of_rows_but_no_clusters(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.mkdir()
    run(drifting_stream(2), 2, assignments=path)
    assert pq.read_table(path).num_rows == 120
    with pytest.raises(StreamError) as error:
        run(drifting_stream(2), 2, centroids=path)
    assert str(error.value) == f'centroids="{path}" cannot be written: it is a folder.'


def test_with_a_checkpoint_parts_go_into_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_bytes(b"mine")
    source = tmp_path / "x.csv"
    np.savetxt(
        source, np.concatenate(drifting_stream(2)), delimiter=",", header="a,b,c", comments=""
    )
    with pytest.raises(StreamError) as error:
        run(source, 2, assignments=path, checkpoint=tmp_path / "state")
    assert str(error.value) == (
        f'assignments="{path}" is a file; with a checkpoint it must be a folder, to which parts '
        "are added. Name another, or remove it."
    )
    assert path.read_bytes() == b"mine"


def test_ids_may_become_narrower_but_not_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    narrow = [pa.array(range(9), pa.int64()), pa.array(range(9, 18), pa.int32())]
    run(with_keys(narrow), 2, id_column="key", assignments=path)
    assert pq.read_table(path)["key"].to_pylist() == list(range(18))
    other = tmp_path / "other.parquet"
    words = [narrow[0], pa.array([f"row {n}" for n in range(9)])]
    with pytest.raises(InputError, match="the id column changes its type in mid-stream") as error:
        run(with_keys(words), 2, id_column="key", assignments=other)
    assert str(error.value).endswith("Write .ndjson instead, or mend the stream.")


def test_many_rows_become_several_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "ROW_GROUP", 100)
    path = tmp_path / "rows.parquet"
    run(drifting_stream(5, n_points=60), 3, assignments=path)
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [
        120,
        120,
        60,
    ]
    assert file.read()["row"].to_pylist() == list(range(300))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("x", "the run is 'x', which must be an object."),
        ({"columns": 3}, "the run has columns 3, which must be a list of names."),
        ({"columns": ["a"], "standardize": [1]},
         "the run: standardize is [1], which must be an object."),
        ({"columns": ["a"], "standardize": {"mean": {"a": 1}, "scale": [1.0]}},
         "the run: standardize has mean {'a': 1}, which must be an array (1) of finite numbers."),
    ],
)  # fmt: skip
def test_facts_of_a_run_that_cannot_be_are_refused(
    facts: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "steps.jsonl"
    run([np.arange(20.0).reshape(10, 2)], 2, steps=path)
    line = {**json.loads(path.read_text()), "run": facts}
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError) as caught:
        list(read_steps(path))
    assert str(caught.value) == f"{path} line 1 is not a Step: {message}"
