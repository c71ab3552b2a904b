"""Sources, outputs and checkpoints on an object store: emulators of three, on this machine."""

from __future__ import annotations

import getpass
import gzip
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from kmeander import CheckpointError, InputError, StreamError, run
from kmeander.runs.predict import predict
from kmeander.runs.records import Progress
from kmeander.sinks import read_steps
from kmeander.storage import filesystem_of, object_store
from kmeander.storage.checkpoint_folder import CheckpointFolder
from tests.program import kmeander
from tests.streams import drifting_stream


def test_an_object_is_there_as_a_whole_or_not_at_all(any_bucket: str) -> None:
    files = filesystem_of(any_bucket)
    path = f"{any_bucket}/folder/x.bin"
    assert files.info(path) is None
    with files.written(path) as file:
        file.write(b"x" * 10)
        assert files.info(path) is None
    with pytest.raises(TypeError), files.written(path) as file:
        file.write("text is no bytes, and ends it")
    found = files.info(path)
    assert found is not None
    assert (found.kind, found.size) == ("file", 10)
    assert found.modified > 1e18
    with files.open(path) as file:
        assert file.read() == b"x" * 10
    folder = files.info(f"{any_bucket}/folder")
    assert folder is not None and folder.kind == "folder"
    assert files.names(f"{any_bucket}/folder") == ["x.bin"]
    assert files.matching(f"{any_bucket}/*/x.*") == [path]
    files.remove([path, f"{any_bucket}/folder/none"])
    assert files.names(f"{any_bucket}/folder") == []


def test_the_server_refuses_to_create_an_object_twice(bucket: str) -> None:
    import fsspec

    store = fsspec.filesystem(bucket.partition(":")[0])
    store.pipe_file(f"{bucket}/lock", b"first", mode="create")
    with pytest.raises(FileExistsError):
        store.pipe_file(f"{bucket}/lock", b"second", mode="create")
    assert store.cat_file(f"{bucket}/lock") == b"first"


STREAM = np.concatenate(drifting_stream(9, n_points=30))
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("s3")]

OUTPUTS = ("steps.jsonl", "rows/", "bad.ndjson", "clusters.csv", "model.km")


def put(path: str, rows: Any) -> str:
    """Write rows to an object; every tenth is no row."""
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    lines[::10] = ["broken,1,2"] * len(lines[::10])
    with filesystem_of(path).written(path) as file:
        file.write(("a,b,c\n" + "\n".join(lines) + "\n").encode())
    return path


def settings(out: str, **changes: Any) -> dict[str, Any]:
    steps, rows, bad, centroids, model = (f"{out}/{name}" for name in OUTPUTS)
    return {
        "n_clusters": 3,
        "batch_size": 30,
        "checkpoint": f"{out}/checkpoint",
        "checkpoint_every": 2,
        "steps": steps,
        "assignments": rows,
        "bad_rows": bad,
        "centroids": centroids,
        "model_out": model,
        "tell": lambda _: None,
        **changes,
    }


def contents(out: str) -> dict[str, bytes]:
    """Every object that a run wrote, but its checkpoints."""
    files = filesystem_of(out)
    found = {}
    for path in files.matching(f"{out}/**"):
        if "/checkpoint/" not in path:
            with files.open(path) as file:
                found[path.removeprefix(out)] = file.read()
    return found


class CrashError(Exception):
    """Ends a run between two commits."""


def crash_after(n_batches: int) -> Any:
    def on_progress(progress: Progress) -> None:
        if progress.summary.n_batches == n_batches:
            raise CrashError

    return on_progress


def test_a_run_from_and_to_an_object_store_goes_on_to_the_same_bytes(any_bucket: str) -> None:
    source = put(f"{any_bucket}/in/readings.csv", STREAM)
    run(source, **settings(f"{any_bucket}/whole"))
    whole = contents(f"{any_bucket}/whole")
    # Growing outputs are folders of parts there, steps, too: one part a commit.
    assert [name for name in whole if "steps" in name] == [
        f"/steps.jsonl/part-00000{number}.jsonl" for number in range(5)
    ]
    assert len(list(read_steps(f"{any_bucket}/whole/steps.jsonl"))) == 9
    for n_batches in (1, 4, 5, 8):
        out = f"{any_bucket}/crashed-{n_batches}"
        with pytest.raises(CrashError):
            run(source, **settings(out, on_progress=crash_after(n_batches)))
        run(source, **settings(out))
        found = contents(out)
        lines = [b"".join(v for k, v in it.items() if "steps" in k) for it in (whole, found)]
        assert lines[0] == lines[1]
        assert found == whole


def test_the_same_steps_come_from_a_store_and_from_a_disk(bucket: str, tmp_path: Path) -> None:
    local = put(str(tmp_path / "x.csv"), STREAM)
    run(put(f"{bucket}/x.csv", STREAM), **settings(f"{bucket}/out", batch_size=29))
    (tmp_path / "out").mkdir()
    run(local, **settings(str(tmp_path / "out"), batch_size=29))
    assert list(read_steps(f"{bucket}/out/steps.jsonl")) == list(
        read_steps(tmp_path / "out" / "steps.jsonl")
    )


def test_files_of_a_store_are_read_in_every_format(bucket: str, tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(60.0), "b": np.arange(60.0) % 7})
    for ending in ("parquet", "csv", "arrow", "csv.gz"):
        local = tmp_path / f"x.{ending}"
        if ending == "parquet":
            pq.write_table(table, local)
        elif ending == "arrow":
            with pa.OSFile(str(local), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
                out.write_table(table)
        else:
            csv.write_csv(table, local)
        data = local.read_bytes()
        for number in range(2):
            with filesystem_of(bucket).written(f"{bucket}/{ending}/{number}.{ending}") as file:
                file.write(gzip.compress(data) if ending == "csv.gz" else data)
        for source in (f"{bucket}/{ending}", f"{bucket}/{ending}/*.{ending}"):
            assert run(source, 2).summary.n_points == 120
    with pytest.raises(InputError) as caught:
        run(f"{bucket}/no.csv", 2)
    assert str(caught.value) == f"{bucket}/no.csv does not exist."


def test_predict_and_report_read_from_a_store(bucket: str) -> None:
    source = put(f"{bucket}/x.csv", STREAM)
    run(source, **settings(f"{bucket}/out"))
    predict(source, f"{bucket}/out/model.km", out=f"{bucket}/new.parquet", bad_rows="skip")
    with filesystem_of(bucket).open(f"{bucket}/new.parquet") as file:
        assert pq.read_table(file).num_rows == 243
    done = kmeander("report", f"{bucket}/out/steps.jsonl", "--out", f"{bucket}/report.md")
    assert done.returncode == 0, done.stderr
    with filesystem_of(bucket).open(f"{bucket}/report.md") as file:
        assert b"- batches: 9\n" in file.read()


def test_following_and_watching_a_store_are_refused_in_one_sentence(bucket: str) -> None:
    path = put(f"{bucket}/x.csv", STREAM)
    with pytest.raises(InputError) as caught:
        run(path, follow=True)
    assert str(caught.value) == (
        f"follow=True cannot read {path}: an object of a store never grows. Read a folder of "
        "objects instead, again and again with the same checkpoint."
    )
    done = kmeander("watch", f"{bucket}/steps.jsonl")
    assert done.returncode == 1
    assert done.stderr == (
        f"kmeander watch: {bucket}/steps.jsonl cannot be watched: an object of a store never "
        "grows. Write kmeander run --steps to a file of this machine, or make a report.\n"
    )


def test_two_runs_do_not_share_a_folder_of_a_store(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do those of two machines, which in a cloud may have one name, and users called root."""
    place = f"{bucket}/checkpoint"
    with CheckpointFolder(place), pytest.raises(CheckpointError) as caught:
        CheckpointFolder(place)
    assert str(caught.value) == (
        f'checkpoint="{place}" is in use by another run (process {os.getpid()}). Wait until it '
        "ends, or name another folder."
    )
    CheckpointFolder(place).close()  # it was let go of
    with CheckpointFolder(place):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # another machine has its own
        with pytest.raises(CheckpointError) as caught:
            CheckpointFolder(place)
    said = re.sub(r"since \S+, \d:\d\d:\d\d ago", "since THEN, SO LONG ago", str(caught.value))
    assert said == (
        f'checkpoint="{place}" is in use by another run (process {os.getpid()} on '
        f"{socket.gethostname()}, since THEN, SO LONG ago). Wait until it ends, or name another "
        f"folder; if that machine was killed, remove {place}/lock."
    )
    CheckpointFolder(place).close()


def test_a_lock_of_a_run_that_was_killed_here_is_taken_over(bucket: str) -> None:
    place = f"{bucket}/checkpoint"
    code = (
        "import os; from kmeander.storage.checkpoint_folder import CheckpointFolder; "
        f"held = CheckpointFolder({place!r}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert filesystem_of(place).names(place) == ["lock"]
    with CheckpointFolder(place) as folder:
        folder.save({"n": 1})
    assert filesystem_of(place).names(place) == ["checkpoint-00000000.ckpt"]


def test_a_lock_that_somebody_gave_to_another_run_is_not_removed(bucket: str) -> None:
    place = f"{bucket}/checkpoint"
    files = filesystem_of(place)
    with CheckpointFolder(place), files.written(f"{place}/lock") as file:
        file.write(b'{"process": 1}')
    assert files.names(place) == ["lock"]


@pytest.mark.parametrize("planted", ["open to all", "a link"])
def test_a_folder_for_locks_that_others_may_have_planted_is_refused(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is known, and all may write to /tmp: a link in it would have us write anywhere."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(getpass, "getuser", lambda: "me")
    folder = tmp_path / "kmeander-me"
    if planted == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(PermissionError, match="is somebody else's, or open to others: remove it"):
        object_store._own_folder()
    folder.unlink() if folder.is_symlink() else folder.chmod(0o700)
    assert object_store._own_folder() == folder


def test_a_lock_can_be_held_by_a_user_without_a_name(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As containers have them."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1000700000")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    CheckpointFolder(f"{bucket}/checkpoint").close()
    assert [path.name for path in tmp_path.iterdir()] == [f"kmeander-{os.getuid()}"]


def test_the_age_of_a_lock_is_said_unless_clocks_disagree() -> None:
    assert re.fullmatch(r"\d+ days, [\d:]+ ago", object_store._age("2026-01-01T00:00:00+00:00"))
    for since in ("2999-01-01T00:00:00+00:00", "2026-01-01T00:00:00", "yesterday", "unknown"):
        assert object_store._age(since) == "of unknown age"


def test_another_checkpoint_does_not_empty_outputs_on_a_store(bucket: str) -> None:
    source = put(f"{bucket}/x.csv", STREAM)
    run(source, **settings(f"{bucket}/out"))
    before = contents(f"{bucket}/out")
    with pytest.raises(StreamError, match="is not empty, and checkpoint="):
        run(source, **settings(f"{bucket}/out", checkpoint=f"{bucket}/other"))
    assert contents(f"{bucket}/out") == before


def test_a_store_that_nothing_reaches_is_one_sentence(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme = bucket.partition(":")[0]
    with pytest.raises(InputError) as caught:
        run("what://bucket/x.csv")
    assert str(caught.value) == (
        "what://bucket/x.csv: nothing here reaches what:// (Protocol not known: what). Use s3://, "
        "gs:// or abfs://."
    )
    for path in ("https://example.org/x.csv", "ftp://example.org/x.csv"):
        with pytest.raises(InputError) as caught:
            run(path)
        assert str(caught.value) == (
            f"{path}: {path.partition(':')[0]}:// is neither read nor written here. Download the "
            "file, or send it through a pipe, whose name is - here."
        )
    with pytest.raises(InputError, match=r"nothing here reaches github://.* Use s3://"):
        run("github://x.csv")  # needs more than an address
    with pytest.raises(
        StreamError, match=f'steps="{scheme}://nowhere/steps.jsonl" cannot be written: '
    ):
        run(
            put(f"{bucket}/x.csv", STREAM),
            3,
            bad_rows="skip",
            steps=f"{scheme}://nowhere/steps.jsonl",
        )

    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.filesystem", missing)
    object_store._store.cache_clear()
    with pytest.raises(InputError) as caught:
        run("s3://bucket/x.csv")
    assert str(caught.value) == (
        "s3://bucket/x.csv: nothing here reaches s3:// (Install s3fs to access S3). pip install "
        "'kmeander[s3]'."
    )


def test_where_files_are_seen_while_they_are_written_they_are_written_aside() -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    class Half(MemoryFileSystem):  # type: ignore[misc]
        """Dies in the middle of a file, as a process that is killed."""

        dies = False

        def put_file(self, lpath: str, rpath: str) -> None:
            data = Path(lpath).read_bytes()
            self.pipe_file(rpath, data[: len(data) // 2] if self.dies else data)
            if self.dies:
                raise KeyboardInterrupt

    store = Half(skip_instance_cache=True)
    files = object_store.ObjectStore(store, in_parts=True)
    for text in (b"first", b"second"):
        with files.written("/aside/state.ckpt") as file:
            file.write(text)
    store.dies = True
    with pytest.raises(KeyboardInterrupt), files.written("/aside/state.ckpt") as file:
        file.write(b"third")
    with files.open("/aside/state.ckpt") as file:
        assert file.read() == b"second"
    assert [name for name in files.names("/aside") if not name.startswith(".")] == ["state.ckpt"]
