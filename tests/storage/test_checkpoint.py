from __future__ import annotations

import os
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander import CheckpointError, ForgetfulKMeans, load
from kmeander.arrays import INSTRUCTION_SET
from kmeander.storage import checkpoint
from tests import golden
from tests.streams import golden_stream

STATE: dict[str, Any] = {
    "number": 0.1,
    "big": 2**80,
    "nothing": None,
    "text": "ä",
    "array": np.arange(6, dtype=np.float32).reshape(2, 3),
    "nested": [{"labels": np.array([1, -1], dtype=np.int32)}, {"empty": np.empty((0, 2))}],
}


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def test_a_state_comes_back_as_it_went(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "state", STATE)
    assert equal(checkpoint.read(tmp_path / "state"), STATE)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@given(position=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(position: int, bit: int) -> None:
    data = bytearray(checkpoint.to_bytes(STATE))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(CheckpointError):
        checkpoint.from_bytes(bytes(data), "state")


@given(length=st.integers(0, 10**6))
def test_any_truncation_is_noticed(length: int) -> None:
    data = checkpoint.to_bytes(STATE)
    with pytest.raises(CheckpointError):
        checkpoint.from_bytes(data[: length % len(data)], "state")


def test_messages_say_what_is_wrong() -> None:
    data = checkpoint.to_bytes(STATE)
    newer = data[:8] + struct.pack("<I", 7) + data[12:]
    cases = {
        b"PK\x03\x04 something else entirely": (
            "m.ckpt is not a kmeander checkpoint: it does not begin with 'KMEANDER'."
        ),
        newer: ("m.ckpt has format 7, this kmeander 0.1.0 reads 2. Install a newer kmeander."),
        data[:-40]: (
            f"m.ckpt is damaged: its checksum does not match its contents ({len(data) - 40} "
            "bytes). Use an older copy."
        ),
    }
    for damaged, message in cases.items():
        with pytest.raises(CheckpointError) as caught:
            checkpoint.from_bytes(damaged, "m.ckpt")
        assert str(caught.value) == message


def test_a_checkpoint_of_something_else_is_no_estimator(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "state", {"a": 1})
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path / "state")
    assert str(caught.value) == f"{tmp_path / 'state'} holds no estimator, but ['a']."


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.write(tmp_path / "state", {"a": 1})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.write(tmp_path / "state", {"a": 2})
    assert checkpoint.read(tmp_path / "state") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_what_cannot_be_stored_is_refused() -> None:
    with pytest.raises(CheckpointError) as caught:
        checkpoint.to_bytes({"a": np.array([1j])})
    assert str(caught.value) == "an array of type complex128 cannot be stored."


def test_threads_that_save_to_one_path_do_not_meet(tmp_path: Path) -> None:
    def save(number: int) -> None:
        for _ in range(20):
            checkpoint.write(tmp_path / "state", {"a": np.full(1000, float(number))})
            checkpoint.read(tmp_path / "state")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_arrays_that_are_read_are_aligned_and_cannot_be_written() -> None:
    state = {"pad": "x", "one": np.arange(3, dtype=np.int32), "two": np.arange(4.0)}
    for pad in range(8):
        read = checkpoint.from_bytes(checkpoint.to_bytes({**state, "pad": "x" * pad}), "memory")
        assert read["two"].flags.aligned
        assert not read["two"].flags.writeable


# Where the processor has another instruction set than the one that saved it, loading says so.
@pytest.mark.filterwarnings("ignore:.* was saved by the avx2 kernel:UserWarning")
def test_a_checkpoint_of_format_1_loads_for_ever() -> None:
    """Made by ``python -m tests.golden.make``; it goes on as a model that never stopped."""
    other = INSTRUCTION_SET != "avx2"  # of the machine that made it
    with pytest.warns(UserWarning, match="avx2 kernel") if other else nullcontext():
        loaded = load(golden.MODEL)
    whole = ForgetfulKMeans.as_in_paper(3, rho=0.5, random_state=0)
    for points in golden_stream():
        whole.partial_fit(points)
    for points in golden_stream()[3:]:
        loaded.partial_fit(points)
    np.testing.assert_allclose(loaded.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    assert loaded.labels_.tolist() == whole.labels_.tolist()
    assert loaded.n_steps_ == 4


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} is a folder, a checkpoint is a file. A model's file is what "
        "kmeander.run(model_out=...) writes."
    )


def test_arrays_may_lie_in_files_of_their_own(tmp_path: Path) -> None:
    points = np.arange(6.0).reshape(3, 2)
    name = checkpoint.file_of(points)
    assert name == checkpoint.file_of(points.copy()) != checkpoint.file_of(points.reshape(2, 3))
    state = {"window": [checkpoint.Elsewhere(name), None], "n": 1}
    checkpoint.write(tmp_path / "state.ckpt", state)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.read(tmp_path / "state.ckpt")
    assert str(caught.value) == (
        f"{tmp_path}/{name} is missing, in which {tmp_path}/state.ckpt has left some of its "
        "points. Use an older copy of both."
    )
    checkpoint.write(tmp_path / name, {"array": points})
    found = checkpoint.read(tmp_path / "state.ckpt")
    assert found["n"] == 1
    assert found["window"][0].tobytes() == points.tobytes()
    assert checkpoint.read(tmp_path / "state.ckpt", fetches=False) == state
    # Who knows nothing of such files refuses the state; one without them stays as it was.
    assert (tmp_path / "state.ckpt").read_bytes()[8:12] == b"\2\0\0\0"
    assert (tmp_path / name).read_bytes()[8:12] == b"\1\0\0\0"
    checkpoint.write(tmp_path / name, {"array": 3})
    with pytest.raises(CheckpointError, match=r"holds no array\. Use an older copy\."):
        checkpoint.read(tmp_path / "state.ckpt")
    for outside in ("../other.ckpt", "points-1.array", 3):
        named: Any = checkpoint.Elsewhere(outside)  # type: ignore[arg-type]
        checkpoint.write(tmp_path / "state.ckpt", {"points": named})
        with pytest.raises(CheckpointError, match="is no name of a file of points"):
            checkpoint.read(tmp_path / "state.ckpt")
