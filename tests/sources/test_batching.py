"""Batches by rows, by seconds and by event time: properties against plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander import InputError
from kmeander.preparation import Rows
from kmeander.sources.batching import NO_TIME, Batches, Batching, BatchRows, microseconds
from kmeander.sources.block import BadRow, Block, RowLocation
from kmeander.sources.reasons import Reason


def block(first: int, kinds: str, times: list[int] | None = None) -> Block:
    """Rows numbered from `first`: ``g`` is a good one, ``b`` a bad one."""
    good = [first + i for i, kind in enumerate(kinds) if kind == "g"]
    bad = tuple(
        BadRow(first + i, RowLocation("x", "line", first + i), Reason("why"), "text")
        for i, kind in enumerate(kinds)
        if kind == "b"
    )
    keys = pa.record_batch({"row": pa.array(good, pa.int64())})
    return Block(
        Rows.of_numbers(np.array(good, dtype=float).reshape(-1, 1)),
        np.array(good, dtype=np.int64),
        keys,
        keys,
        None if times is None else np.array(times, dtype=np.int64),
        bad,
        first + len(kinds),
        lambda row: {"row": row},
    )


def stream(kinds: list[str]) -> Iterator[Block]:
    first = 0
    for part in kinds:
        yield block(first, part)
        first += len(part)


def cuts(batches: Batches) -> list[BatchRows]:
    return [cut for cut in batches if cut is not None]


KINDS = st.lists(st.text("ggb", max_size=8), max_size=8)


@given(kinds=KINDS, size=st.integers(1, 5))
def test_batches_hold_every_good_row_and_positions_split_the_stream(
    kinds: list[str], size: int
) -> None:
    whole = "".join(kinds)
    good = [i for i, kind in enumerate(whole) if kind == "g"]
    bad = [i for i, kind in enumerate(whole) if kind == "b"]
    found = cuts(Batches(stream(kinds), Batching(size), refuse_bad=False))
    assert [int(row) for cut in found for row in cut.points.ravel()] == good
    assert [row for cut in found for row in cut.keys["row"].to_pylist()] == good
    assert [row.row for cut in found for row in cut.bad] == bad
    sizes = [len(cut.points) for cut in found]
    full, rest = divmod(len(good), size)
    assert [n for n in sizes if n] == [size] * full + ([rest] if rest else [])
    # What a position leaves out has been handed on, what it brings has not.
    handed = 0
    for cut in found:
        handed += len(cut.points) + len(cut.bad)
        at = cut.position()["source"]["row"]
        assert sum(row < at for row in good + bad) == handed


@given(kinds=KINDS, size=st.integers(1, 5))
def test_a_refused_row_comes_after_all_complete_batches_before_it(
    kinds: list[str], size: int
) -> None:
    whole = "".join(kinds)
    n_before = whole.index("b") if "b" in whole else len(whole)
    found: list[int] = []

    def take_all() -> None:
        for cut in Batches(stream(kinds), Batching(size)):
            assert cut is not None
            found.extend(int(row) for row in cut.points.ravel())

    if "b" not in whole:
        take_all()
        assert found == list(range(len(whole)))
        return
    with pytest.raises(InputError) as caught:
        take_all()
    assert str(caught.value) == (
        f'x line {n_before}: why (use bad_rows="skip" to go on without such rows).'
    )
    assert found == list(range(n_before - n_before % size))


PERIOD = 10


@given(
    times=st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=6),
    late=st.sampled_from(["keep", "skip"]),
)
def test_periods_equal_the_plain_loop(times: list[list[int]], late: str) -> None:
    expected: list[tuple[list[int], float, int]] = []
    rows: list[int] = []
    n_late, row = 0, -1
    current: int | None = None
    last: int | None = None
    for moment in (moment for part in times for moment in part):
        row += 1
        period = moment // PERIOD
        if current is None or period > current:
            if rows:
                assert current is not None
                expected.append((rows, 1.0 if last is None else float(current - last), n_late))
                rows, n_late, last = [], 0, current
            current = period
        is_late = period < current
        n_late += is_late
        if not (is_late and late == "skip"):
            rows.append(row)
    if rows:
        assert current is not None
        expected.append((rows, 1.0 if last is None else float(current - last), n_late))

    def blocks() -> Iterator[Block]:
        first = 0
        for part in times:
            yield block(first, "g" * len(part), part)
            first += len(part)

    found = [
        (cut.points.ravel().astype(int).tolist(), cut.elapsed, cut.n_late)
        for cut in cuts(Batches(blocks(), Batching(every=PERIOD, late=late)))
        if len(cut.points)
    ]
    assert found == expected


def test_a_late_row_may_be_refused() -> None:
    batches = Batches(iter([block(0, "ggg", [5, 25, 7])]), Batching(every=PERIOD, late="error"))
    found = []
    with pytest.raises(InputError) as caught:
        found += [cut.points.ravel().tolist() for cut in batches if cut is not None]
    assert str(caught.value) == (
        'row 3 of the stream is late: its period was over when it came. Use late_rows="keep" to '
        'learn such rows with the present batch, or late_rows="skip" to leave them out.'
    )


def test_a_period_that_goes_on_after_a_restart_ages_nothing() -> None:
    batches = Batches(iter([block(0, "gg", [31, 47])]), Batching(every=PERIOD), period=3)
    assert [cut.elapsed for cut in cuts(batches)] == [NO_TIME, 1.0]


def test_seconds_end_a_batch_that_waits() -> None:
    now = [0.0]

    def blocks() -> Iterator[Block | None]:
        yield block(0, "gg")
        now[0] = 4.0
        yield None
        yield block(2, "g")
        now[0] = 5.0
        yield None  # five seconds since the first row
        yield block(3, "ggggg")
        now[0] = 20.0
        yield block(8, "g")

    batches = Batches(blocks(), Batching(size=4, seconds=5.0), clock=lambda: now[0])
    shown = [None if cut is None else len(cut.points) for cut in batches]
    assert shown == [None, 3, 4, 2]


def test_bad_rows_alone_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmeander.sources.batching.MOST_BAD", 3)
    found = cuts(Batches(stream(["bb", "bb", "bg", "b"]), Batching(2), refuse_bad=False))
    assert [(len(cut.points), len(cut.bad)) for cut in found] == [(0, 4), (1, 2)]
    assert [cut.position()["source"]["row"] for cut in found] == [4, 7]


def test_without_a_rule_every_block_is_a_batch() -> None:
    found = cuts(Batches(stream(["gg", "", "ggg"]), Batching()))
    assert [len(cut.points) for cut in found] == [2, 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "batch_size must be a whole number of at least 1, got 0. "
         "It is the rows of a batch."),
        ({"seconds": -1.0}, "batch_seconds must be a finite number above 0, got -1.0."),
        ({"size": 5, "every": 7}, "every cannot be given with batch_size or batch_seconds: a batch "
         "holds the rows of one period, however many they are."),
        ({"late": "lose"}, "late_rows must be one of 'keep', 'skip', 'error', got 'lose'."),
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Batching(**settings)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", "10", "m", "0s", "-5m", "5 weeks", "1e3s"])
def test_durations_need_a_unit(text: str) -> None:
    with pytest.raises(InputError) as caught:
        microseconds(text)
    assert str(caught.value) == (
        f"every must be a duration such as 30s, 10m or 1h, got {text!r}. The units are ms, s, m, "
        "h, d."
    )
