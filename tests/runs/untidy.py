"""Files as people have them, all made from the same rows."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_ROWS = 120
_RNG = np.random.default_rng(5)
# Two clusters in `a` and `b`, both of which have two decimals and are below 1000.
KIND = _RNG.integers(2, size=N_ROWS)
A = np.round(np.array([200.0, 600.0])[KIND] + _RNG.normal(0, 20, N_ROWS), 2)
B = np.round(np.array([-50.0, 50.0])[KIND] + _RNG.normal(0, 9, N_ROWS), 2)
ROWS = np.column_stack([A, B])
START = datetime(2026, 6, 1, tzinfo=UTC)
MOMENTS = [START + timedelta(minutes=n) for n in range(N_ROWS)]
SECONDS = [int(moment.timestamp()) for moment in MOMENTS]


@dataclass(frozen=True)
class Untidy:
    """A file, and what must come of it.

    Parameters
    ----------
    name : str
        Its ending says the format.
    content : bytes
    rows : ndarray, optional
        What is read of its columns of numbers, where it is readable; None where it is refused.
    columns : tuple of str
        What those columns are called.
    said : tuple of str
        Words of what is said about it.
    refused : str
        The sentence with which it ends, ``{}`` for its path.
    pasted : int
        How many of the options in that sentence, each by itself, make it run.
    options : tuple of str
        Given when it is refused.
    """

    name: str
    content: bytes
    rows: Any = field(default_factory=lambda: ROWS)
    columns: tuple[str, ...] = ("a", "b")
    said: tuple[str, ...] = ()
    refused: str = ""
    pasted: int = 0
    options: tuple[str, ...] = ()


def as_csv(
    columns: Mapping[str, Sequence[Any]], delimiter: str = ",", end: str = "\n", names: bool = True
) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    if names:
        writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def both() -> dict[str, Sequence[Any]]:
    return {"a": A.tolist(), "b": B.tolist()}


def written(how: Callable[[float], str]) -> dict[str, Sequence[Any]]:
    """Return the two columns as text."""
    return {"a": [how(value) for value in A.tolist()], "b": [how(value) for value in B.tolist()]}


def german(value: float) -> str:
    return f"{value:.2f}".replace(".", ",")


def gapped(word: str) -> str:
    cells = [word if n % 10 == 3 else f"{value:.2f}" for n, value in enumerate(B.tolist())]
    return as_csv({"a": A.tolist(), "b": cells})


def beside(name: str, cells: Sequence[Any]) -> str:
    return as_csv({name: cells, **both()})


def zipped(data: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("inside.csv", data)
    return archive.getvalue()


def parquet(**columns: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target)
    return target.getvalue()


def ndjson(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GAPS = ROWS.copy()
GAPS[3::10, 1] = np.nan
PLAIN = as_csv(both())
THOUSANDS = ROWS * 1000
WORDS = [("red", "green", "blue")[n % 3] for n in range(N_ROWS)]


def corpus() -> Iterator[Untidy]:
    """Yield the files that people would call readable."""
    yield Untidy("plain.csv", PLAIN.encode())
    yield Untidy("bom.csv", PLAIN.encode("utf-8-sig"))
    yield Untidy("crlf.csv", as_csv(both(), end="\r\n").encode())
    yield Untidy("bom-crlf.csv", as_csv(both(), end="\r\n").encode("utf-8-sig"))
    yield Untidy("spaces.csv", PLAIN.replace(",", " , ").encode())
    yield Untidy("blank-lines.csv", ("\n" + PLAIN.replace("\n", "\n\n")).encode())
    yield Untidy("gz.csv.gz", gzip.compress(PLAIN.encode()))
    yield Untidy("bz2.csv.bz2", bz2.compress(PLAIN.encode()))
    yield Untidy("xz.csv.xz", lzma.compress(PLAIN.encode()))
    yield Untidy("zst.csv.zst", bytes(pa.compress(PLAIN.encode(), "zstd", asbytes=True)))
    yield Untidy("zip.csv.zip", zipped(PLAIN.encode()))
    yield Untidy("zip.zip", zipped(PLAIN.encode()))
    for name, sign in (("semicolon", ";"), ("bar", "|"), ("tab", "\t")):
        said = {"\t": "a tab"}.get(sign, repr(sign)) + " stands between columns"
        yield Untidy(f"{name}.csv", as_csv(both(), sign).encode(), said=(said,))
    yield Untidy("tab.tsv", as_csv(both(), "\t").encode())
    yield Untidy(
        "decimal-comma.csv",
        as_csv(written(german), ";").encode(),
        said=("the decimal sign is a comma in columns 'a', 'b'",),
    )
    yield Untidy("decimal-comma-quoted.csv", as_csv(written(german)).encode())
    latin = {"größe": A.tolist(), "b": B.tolist()}
    yield Untidy(
        "latin-1.csv",
        as_csv(latin).encode("latin-1"),
        columns=("größe", "b"),
        said=("it is read as windows-1252",),
    )
    yield Untidy("utf-16.csv", PLAIN.encode("utf-16"), said=("it is read as utf-16",))
    yield Untidy(
        "comments.csv",
        ("# pump 3\n# since June\n" + PLAIN).encode(),
        said=("lines that begin with # are left out",),
    )
    yield Untidy("names-in-comment.csv", ("# pump 3\n# " + PLAIN).encode())
    quoted = "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in PLAIN.split())
    yield Untidy("quoted.csv", quoted.encode())
    big = {"a": [f"{value:,.2f}" for value in A * 1000], "b": [f"{x:,.2f}" for x in B * 1000]}
    yield Untidy(
        "thousands.csv",
        as_csv(big).encode(),
        rows=THOUSANDS,
        said=("',' stands between thousands in columns 'a', 'b'",),
    )
    swiss = {name: [cell.replace(",", "'") for cell in cells] for name, cells in big.items()}
    yield Untidy("thousands-swiss.csv", as_csv(swiss).encode(), rows=THOUSANDS)
    yield Untidy("percent.csv", as_csv(written(lambda x: f"{x:.2f}%")).encode())
    yield Untidy("percent-space.csv", as_csv(written(lambda x: f"{x:.2f} %")).encode())
    yield Untidy("dollars.csv", as_csv(written(lambda x: f"${x:.2f}".replace("$-", "-$"))).encode())
    yield Untidy("euros.csv", as_csv(written(lambda x: german(x) + " €"), ";").encode())
    flags = ["true" if kind else "false" for kind in KIND]
    with_flag = np.column_stack([KIND, ROWS])
    for name, cells in (
        ("booleans", flags),
        ("booleans-yes", ["yes" if kind else "no" for kind in KIND]),
        ("booleans-python", ["True" if kind else "False" for kind in KIND]),
    ):
        yield Untidy(
            f"{name}.csv", beside("on", cells).encode(), rows=with_flag, columns=("on", "a", "b")
        )
    yield Untidy(
        "duplicate-names.csv",
        PLAIN.replace("a,b", "a,a").encode(),
        columns=("a", "a.2"),
        said=("column 2, 'a', is called 'a.2'",),
    )
    yield Untidy(
        "no-header.csv",
        as_csv(both(), names=False).encode(),
        columns=("x0", "x1"),
        said=("it has no line of names, so columns are called 'x0', 'x1'",),
    )
    yield Untidy(
        "constant.csv",
        beside("c", [7.5] * N_ROWS).encode(),
        rows=np.column_stack([np.full(N_ROWS, 7.5), ROWS]),
        columns=("c", "a", "b"),
    )
    wide = {f"c{n}": (A if n % 2 else B).tolist() for n in range(500)}
    yield Untidy(
        "500-columns.csv",
        as_csv(wide).encode(),
        rows=np.column_stack(list(wide.values())),
        columns=tuple(wide),
    )
    yield Untidy("objects.ndjson", ndjson([{"a": a, "b": b} for a, b in ROWS.tolist()]))
    half, whole = A.astype(np.float16), B.astype(np.int8)
    yield Untidy("float16.parquet", parquet(a=half, b=B), rows=np.column_stack([half, B]))
    yield Untidy("int8.parquet", parquet(a=A, b=whole), rows=np.column_stack([A, whole]))
    yield Untidy(
        "bool.parquet",
        parquet(on=KIND.astype(bool), a=A, b=B),
        rows=with_flag,
        columns=("on", "a", "b"),
    )
    yield Untidy("decimal.parquet", parquet(a=[Decimal(str(x)) for x in A.tolist()], b=B))


def mixed() -> Iterator[tuple[str, bytes]]:
    """Yield files with columns that are no numbers, or that are best left out, by name."""
    for word in ("", "NA", "null", "-", "n/a", "NaN", "None", "?"):
        yield (
            f"missing-{word.replace('/', '') or 'empty'}.csv".replace("?", "mark"),
            gapped(word).encode(),
        )
    yield "gaps.parquet", parquet(a=A, b=[None if n % 10 == 3 else x for n, x in enumerate(B)])
    yield (
        "gaps.ndjson",
        ndjson(
            [
                {"a": a} if n % 10 == 3 else {"a": a, "b": b}
                for n, (a, b) in enumerate(ROWS.tolist())
            ]
        ),
    )
    yield "categories.csv", beside("color", WORDS).encode()
    yield (
        "categories.ndjson",
        ndjson(
            [{"color": w, "a": a, "b": b} for w, (a, b) in zip(WORDS, ROWS.tolist(), strict=True)]
        ),
    )
    yield "dictionary.parquet", parquet(a=A, b=B, color=pa.array(WORDS).dictionary_encode())
    yield "text.csv", beside("note", [f"reading no. {n} of it" for n in range(N_ROWS)]).encode()
    yield "id.csv", beside("id", range(100_000, 100_000 + N_ROWS)).encode()
    yield "id.parquet", parquet(id=np.arange(N_ROWS), a=A, b=B)
    yield "index.csv", beside("", range(N_ROWS)).encode()
    yield "iso.csv", beside("ts", [moment.isoformat() for moment in MOMENTS]).encode()
    yield "iso-date.csv", beside("day", [moment.date().isoformat() for moment in MOMENTS]).encode()
    yield (
        "iso.ndjson",
        ndjson(
            [
                {"ts": t.isoformat(), "a": a, "b": b}
                for t, (a, b) in zip(MOMENTS, ROWS.tolist(), strict=True)
            ]
        ),
    )
    for unit, factor in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        yield f"epoch-{unit}.csv", beside("ts", [second * factor for second in SECONDS]).encode()
    yield "timestamp.parquet", parquet(ts=MOMENTS, a=A, b=B)
    yield "huge.csv", beside("w", _RNG.normal(0, 1e9, N_ROWS).round(1).tolist()).encode()
    yield "nested.ndjson", ndjson([{"m": {"a": a, "deep": {"b": b}}} for a, b in ROWS.tolist()])
    yield "lists.ndjson", ndjson([{"v": row} for row in ROWS.tolist()])
    yield "lists.parquet", parquet(v=ROWS.tolist())
    yield "fixed-lists.parquet", parquet(v=pa.array(ROWS.tolist(), pa.list_(pa.float32(), 2)))


def refused() -> Iterator[Untidy]:
    """Yield the files that end with a sentence."""
    ragged = PLAIN.replace("\n", ",1\n", 3).replace("a,b,1\n", "a,b\n")
    yield Untidy(
        "ragged.csv",
        ragged.encode(),
        refused="{} line 2: 3 fields where the header has 2 (use --bad-rows skip to go on without "
        "such rows).",
        pasted=1,
    )
    mixed = ["broken" if n % 10 == 3 else f"{value:.2f}" for n, value in enumerate(B.tolist())]
    yield Untidy(
        "mixed.csv",
        as_csv({"a": A.tolist(), "b": mixed}).encode(),
        refused="{} line 5: 'broken' in column 'b' is not a number (leave the column out with "
        "--exclude b, or use --bad-rows skip to go on without such rows).",
        pasted=2,
    )
    words = {"city": WORDS, "note": [f"no. {n} of it" for n in range(N_ROWS)], **both()}
    yield Untidy(
        "text-as-numbers.csv",
        as_csv(words).encode(),
        options=("--prepare", "none"),
        refused="{} line 2: 'red' in column 'city' is not a number (columns 'city', 'note' hold "
        "text: --exclude city,note leaves them out, --prepare auto makes numbers of categories).",
        pasted=2,
    )
    yield Untidy(
        "text-as-numbers.parquet",
        parquet(**words),
        options=("--prepare", "none"),
        refused="{} row 1: 'red' in column 'city' is not a number (columns 'city', 'note' hold "
        "text: --exclude city,note leaves them out, --prepare auto makes numbers of categories).",
        pasted=2,
    )
    doubt = as_csv({"a": [f"{1000 + n:,}" for n in range(N_ROWS)], "b": range(N_ROWS)})
    yield Untidy(
        "thousands-or-decimals.csv",
        doubt.encode(),
        refused="{}: is 1,000 in column 'a' 1000 or 1.000? --decimal . reads the first, --decimal "
        ", the second.",
        pasted=2,
    )
    years = "2019,2020\n" + as_csv({"a": (KIND + 3).tolist(), "b": KIND.tolist()}, names=False)
    yield Untidy(
        "names-or-row.csv",
        years.encode(),
        refused="{} begins with 2019,2020: names of columns, or a row? --header 2019,2020 takes "
        "them for names, --header x0,x1 for a row.",
        pasted=2,
    )
    one = as_csv({"a": [german(value) for value in A.tolist()]}).replace('"', "")
    yield Untidy(
        "decimal-comma-alone.csv",
        one.encode(),
        refused=f"{{}} line 2: 2 fields where the header has 1 (--decimal , reads {german(A[0])} "
        "as one number).",
        pasted=1,
    )
    yield Untidy(
        "quoted-names.csv",
        as_csv({'name, "full"': mixed, "it's": A.tolist()}).encode(),
        refused="{} line 5: 'broken' in column 'name, \"full\"' is not a number (leave the column "
        'out with --exclude \'"name, ""full"""\', or use --bad-rows skip to go on without such '
        "rows).",
        pasted=2,
    )
    yield Untidy("header-alone.csv", b"a,b\n", refused="{} has no rows.")
    yield Untidy("empty.csv", b"", refused="{} is empty: not even a header.")
    yield Untidy("spaces-alone.csv", b"\n  \n", refused="{} is empty: not even a header.")
    yield Untidy(
        "parquet.csv",
        parquet(a=A, b=B),
        refused="{} is Parquet, not text: use --format parquet.",
        pasted=1,
    )


def write(untidy: Untidy, folder: Path) -> Path:
    path = folder / untidy.name
    path.write_bytes(untidy.content)
    return path
