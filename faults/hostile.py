"""Inputs made to hurt: valid files, damaged or with hostile contents, for every reader."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from kmeander import FSKM, Batch, ForgetfulKMeans
from kmeander.storage import checkpoint, model_file

TEXT = [
    b"\0", b"\n", b"\r", b"\r\n", b'"', b"'", b",", b"\t", b"{", b"}", b"[", b"]", b":", b"\\",
    b"\xff", b"\xe9", b"\xef\xbb\xbf", b"\xff\xfe", b"\\ud800", b"\\u0000", b"\x1b[31m", b"-",
    b"nan", b"inf", b"-1e999", b"1e999", b"null", b"true", b"9" * 50, b"9" * 5000, b"[" * 2000,
    b'{"a":' * 2000, b'"a":', b'"b":1', b'{"a":1,"b":2}', b"1,2,x", b"1970-01-01",
    b"99999-01-01T00:00:00Z",
    b"\n" * 40, b"x" * 3000, b"=1+1", b"\xc2\x85", b"\xe2\x80\xa8", b"#", b";",
]  # fmt: skip
BINARY = [
    b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0" * 8, b"\xff" * 8,
    b"\xff" * 7 + b"\x7f", b"\x01\0\0\0", b"\0\0\x10\0", b"\x80", b"\x7f", b"PAR1", b"ARROW1",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.5, 1e300,
    1e-300, -1e308, float("inf"), float("-inf"), float("nan"), "", "x", "nan", "\ud800",
    "\x1b[31mred",
    "=1+1", "<b>", [], {}, [[]], [None], [1], [1, 2], ["x"], [[1, 2], [3]], {"a": 1}, {"$array": 0},
    {"$array": 99}, {"$array": -1}, {"$array": "x"}, [[[[[[1]]]]]], "9" * 5000,
]  # fmt: skip
N_LINES = 30


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, words: Sequence[bytes]) -> bytes:
    """Bytes of which a few were replaced, left out or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        gone = draw(st.sampled_from([0, 0, 1, 2, 4, 8, 40, len(whole)]))
        data[at : at + gone] = draw(st.one_of(st.sampled_from(words), st.binary(max_size=6)))
    return bytes(data)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside plain values."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inside in items:
        yield (*at, key)
        yield from places(inside, (*at, key))


@st.composite
def altered(draw: st.DrawFn, whole: Any) -> Any:
    """Plain values of which a few are others, or gone."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(value))
        if not found:
            return value
        *way, last = found[draw(st.integers(0, len(found) - 1))]
        inside = value
        for key in way:
            inside = inside[key]
        if draw(st.integers(0, 5)) == 0:
            del inside[last]
        else:
            inside[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return value


def rows(n_rows: int = N_LINES, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Two columns of whole numbers, in three clusters."""
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 3, (n_rows, 1)) * 40 + rng.integers(0, 9, (n_rows, 2))).astype(float)


def csv() -> bytes:
    """Columns a, b, s and t."""
    lines = [f"{a:g},{b:g},r{i},{i}" for i, (a, b) in enumerate(rows().tolist())]
    return "\n".join(["a,b,s,t", *lines, ""]).encode()


def ndjson() -> bytes:
    """The same as objects."""
    lines = [
        json.dumps({"a": a, "b": b, "s": f"r{i}", "t": i})
        for i, (a, b) in enumerate(rows().tolist())
    ]
    return "\n".join([*lines, ""]).encode()


def table() -> pa.Table:
    """The same as columns, and some of other types."""
    values = rows()
    number = np.arange(N_LINES)
    return pa.table(
        {
            "a": values[:, 0],
            "b": pa.array(values[:, 1].astype(np.int32)),
            "s": pa.array([f"r{i}" for i in number]).dictionary_encode(),
            "t": pa.array(number, pa.timestamp("ms")),
            "text": [f"text {i}" * (i % 3) if i % 7 else None for i in number.tolist()],
        }
    )


def parquet(compression: str = "none", *, plain: bool = False) -> bytes:
    """A Parquet file of two row groups."""
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, row_group_size=20, compression=compression, use_dictionary=not plain
    )
    return sink.getvalue()


def arrow(*, stream: bool) -> bytes:
    """An Arrow file, or a stream, of two batches."""
    sink = io.BytesIO()
    whole = table()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=20)
    return sink.getvalue()


def zipped() -> bytes:
    """The CSV, compressed."""
    return gzip.compress(csv(), mtime=0)


def steps() -> list[dict[str, Any]]:
    """The lines of a steps file, with a drift that is explained."""
    model = FSKM(3, random_state=0, forgetting="adaptive", refine="swaps", init="previous")
    lines = []
    for index in range(6):
        points = rows(60, index)
        points[points[:, 0] > 70, 0] += 400.0 * (index > 3)
        lines.append(model.step(Batch(index, points)).to_dict())
    scaled = {"mean": [0.0, 0.0], "scale": [1.0, 2.0]}
    plane = {"mean": [0.0, 0.0], "components": [[1.0, 0.0], [0.0, 1.0]]}
    settings = {"n_clusters": 3, "init": "previous"}
    lines[0]["run"] = {
        "kmeander": "0", "source": "x.csv", "columns": ["a", "b"], "settings": settings,
        "batch_size": 60, "standardize": scaled, "projection": plane,
    }  # fmt: skip
    return lines


def model_states() -> list[dict[str, Any]]:
    """States of models as files hold them: exact, waiting, summarised, choosing rho."""
    options: list[dict[str, Any]] = [{}, {"n_clusters": 40}, {"max_points": 40}, {"rho": "auto"}]
    states = []
    for given in options:
        estimator = ForgetfulKMeans(**{"n_clusters": 3, "random_state": 0, **given})
        for index in range(2 if given.get("n_clusters") else 5):
            estimator.partial_fit(rows(12, index))
        states.append(
            model_file.to_state("ForgetfulKMeans", estimator.get_params(), estimator._model, None)
        )
    return states


class Arrays:
    """A state apart: its header as plain values, and its arrays as bytes."""

    def __init__(self, state: dict[str, Any]) -> None:
        whole = checkpoint.to_bytes(state)
        _, _, size = struct.unpack_from("<8sIQ", whole)
        self.header: dict[str, Any] = json.loads(whole[20 : 20 + size])
        self.body = whole[20 + size : -32]


def sealed(header: Any, body: bytes) -> bytes:
    """Return a file of these contents with a checksum that fits."""
    text = json.dumps(header).encode()
    whole = struct.pack("<8sIQ", checkpoint.MAGIC, 1, len(text)) + text + body
    return whole + hashlib.sha256(whole).digest()


HOSTILE_ARRAY_BYTES = [
    np.array(value).tobytes()
    for value in (np.nan, np.inf, -1.0, 1e300, 5e-324, np.int64(-1), np.int64(2**62))
] + [np.array(value, dtype=np.float32).tobytes() for value in (np.nan, np.inf, -1.0)]


@st.composite
def hostile_files(draw: st.DrawFn, states: Sequence[dict[str, Any]]) -> bytes:
    """A checkpoint whose checksum is right and whose contents are not."""
    known = [Arrays(state) for state in states]
    apart = known[draw(st.integers(0, len(known) - 1))]
    header, body = apart.header, apart.body
    where = draw(st.sampled_from(["header", "body", "both"]))
    if where != "body":
        header = draw(altered(header))
    if where != "header" and body:
        data = bytearray(body)
        for _ in range(draw(st.integers(1, 3))):
            at = 4 * draw(st.integers(0, len(data) // 4))
            value = draw(st.one_of(st.sampled_from(HOSTILE_ARRAY_BYTES), st.binary(max_size=8)))
            data[at : at + len(value)] = value
        body = bytes(data[: len(body)])
    return sealed(header, body)
