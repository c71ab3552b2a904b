"""Rows become points as the definitions say, and go back; what has changed is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander.exceptions import InputError, InputTypeError
from kmeander.preparation import FittedPreparation, Preparation, Rows, joined, rows_of
from kmeander.preparation.tables import rows_of_columns
from tests import naive_preparation as naive
from tests.strategies import FINE

AUTO = Preparation()


@st.composite
def columns_of_values(draw: st.DrawFn) -> list[list[Any]]:
    """Columns of numbers, truths and words with gaps, each with one value at least."""
    n_rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(["number", "truth", "word"]), min_size=1, max_size=4))
    values: dict[str, st.SearchStrategy[Any]] = {
        "number": FINE, "truth": st.booleans(), "word": st.sampled_from("abcde")
    }  # fmt: skip
    columns = []
    for kind in kinds:
        gaps = st.lists(st.none() | values[kind], min_size=n_rows, max_size=n_rows)
        column = draw(gaps)
        column[draw(st.integers(0, n_rows - 1))] = draw(values[kind])
        columns.append(column)
    return columns


def table_of(columns: list[list[Any]]) -> Rows:
    return rows_of_columns({f"x{place}": column for place, column in enumerate(columns)})


@given(columns=columns_of_values())
def test_points_are_those_of_the_plain_loops(columns: list[list[Any]]) -> None:
    rules = Preparation(max_levels=3)
    rows = table_of(columns)
    points = FittedPreparation.learned(rules, rows).prepared(rows).points
    expected = naive.prepared(columns, max_levels=3)
    # What does not vary weighs nothing, which is not to say exactly 0.
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-12)


@given(columns=columns_of_values())
def test_what_is_stored_prepares_the_same_bits(columns: list[list[Any]]) -> None:
    rows = table_of(columns)
    fitted = FittedPreparation.learned(AUTO, rows)
    again = FittedPreparation.from_dict(fitted.to_dict())
    assert again.prepared(rows).points.tobytes() == fitted.prepared(rows).points.tobytes()
    assert again.names == fitted.names
    assert again.rules == fitted.rules


@given(values=st.lists(st.tuples(FINE, FINE), min_size=2, max_size=30))
def test_preparing_and_restoring_numbers_is_nothing(values: list[tuple[float, float]]) -> None:
    rows = rows_of(values)
    fitted = FittedPreparation.learned(AUTO, rows)
    restored = fitted.restored(fitted.prepared(rows).points.astype(np.float64))
    np.testing.assert_allclose(restored, rows.values, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 2**20),
    growth=st.sampled_from([1e-3, 0.3, 1.0, 3.0, 1e3, 1e9]),
    batch=st.integers(1, 700),
)
def test_restating_loses_no_bit(seed: int, growth: float, batch: int) -> None:
    """Points prepared before a unit is revised, times the factors, are those prepared after."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(batch, 2)) * [1.0, growth]
    first[:, 1] = first[:, 1] if growth != 1.0 else 7.0  # which does not vary
    fitted = FittedPreparation.learned(AUTO, rows_of(first))
    before, points = fitted, fitted.prepared(rows_of(first)).points
    for _ in range(8):
        more = rng.normal(size=(batch, 2)) * 5
        after, factors = before.after(rows_of(more))
        if factors is not None:
            points = points * factors
            mantissas, _ = np.frexp(factors[~before.is_unknown])
            assert (mantissas == 0.5).all()
        before = after
        assert before.prepared(rows_of(first)).points.tobytes() == points.tobytes()


def test_a_unit_follows_a_spread_that_stays_changed_and_no_passing_one() -> None:
    rng = np.random.default_rng(0)
    fitted = FittedPreparation.learned(AUTO, rows_of(rng.normal(size=(500, 2))))
    revisions = []
    for index in range(12):
        scale = 10.0 if index == 2 or index >= 6 else 1.0
        fitted, factors = fitted.after(rows_of(rng.normal(size=(500, 2)) * [1.0, scale]))
        if factors is not None:
            revisions.append((index, factors.tolist()))
    ((index, (kept, revised)),) = revisions
    assert (index, kept) == (9, 1.0)  # every second batch is looked at while all is calm
    assert revised in (1 / 8, 1 / 16)


def test_a_column_that_begins_to_vary_gets_its_unit_at_once() -> None:
    rng = np.random.default_rng(0)
    first = np.column_stack([rng.normal(size=500), np.zeros(500)])
    fitted = FittedPreparation.learned(AUTO, rows_of(first))
    assert np.abs(fitted.prepared(rows_of(first + np.array([0, 300]))).points[:, 1]).max() < 1e-20
    later = np.column_stack([rng.normal(size=500), rng.normal(300, 5, 500)])
    fitted, factors = fitted.after(rows_of(later))
    assert factors is not None
    assert 0.7 <= fitted.prepared(rows_of(later)).points[:, 1].std() <= 1.5


@pytest.mark.parametrize("values", ["ids", "seconds", "time", "text"])
def test_what_names_rows_is_left_out_and_why_is_said(values: str) -> None:
    rng = np.random.default_rng(0)
    column: dict[str, Any] = {
        "ids": rng.permutation(500),
        "seconds": 1.7e9 + np.arange(500) // 3,
        "time": pd.date_range("2026-01-01", periods=500),
        "text": [f"user {number}" for number in range(500)],
    }
    name = {"ids": "order_id", "seconds": "ts"}.get(values, "x")
    rows = rows_of(pd.DataFrame({name: column[values], "a": rng.normal(size=500)}))
    fitted = FittedPreparation.learned(AUTO, rows)
    assert fitted.names == ("a",)
    assert (
        fitted.plans[0].words()
        == {
            "ids": "column 'order_id' is left out: it is different in every row, and its name says "
            "that it is an id.",
            "seconds": "column 'ts' is left out: it only grows, and its name says that it is a "
            "time.",
            "time": "column 'x' is left out: it says when a row happened.",
            "text": "column 'x' is left out: it holds text that is different in 500 of 500 rows.",
        }[values]
    )


@pytest.mark.parametrize(
    ("name", "n_rows", "is_kept"),
    [
        ("pump_id", 8, False),
        ("ts", 8, False),
        ("ts", 7, True),
        ("level", 49, True),
        ("level", 50, False),
    ],
)
def test_few_rows_tell_an_id_only_where_its_name_does(
    name: str, n_rows: int, is_kept: bool
) -> None:
    """A stream may begin with a short period; a short ramp is no number of rows."""
    rng = np.random.default_rng(0)
    rows = rows_of(pd.DataFrame({name: 7 + np.arange(n_rows), "a": rng.normal(size=n_rows)}))
    names = FittedPreparation.learned(AUTO, rows).names
    assert names == ((name, "a") if is_kept else ("a",))


def test_limits_and_levels_that_are_known_hold() -> None:
    rules = Preparation(limits={"h": (0, 100)}, levels={"c": ["red", "blue"]})
    rows = rows_of(pd.DataFrame({"h": [0.0, 100.0], "c": ["green", "blue"]}))
    fitted = FittedPreparation.learned(rules, rows)
    assert fitted.names == ("h", "c=red", "c=blue", "c (other)")
    points = fitted.prepared(rows).points
    assert points[:, 0].tolist() == pytest.approx([-(3**0.5), 3**0.5])
    assert (points[:, 1:] > 0).tolist() == [[False, False, True], [False, True, False]]
    assert fitted.restored_columns(points.astype(np.float64))["c"] == ["(other)", "blue"]


def test_rows_with_nothing_are_left_out_where_that_is_asked_for() -> None:
    rows = rows_of([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])
    prepared = FittedPreparation.learned(Preparation(missing="skip"), rows).prepared(rows)
    assert len(prepared.points) == 2
    assert prepared.kept is not None
    assert prepared.kept.tolist() == [True, False, True]


def test_what_was_filled_is_counted_by_column() -> None:
    rows = rows_of(pd.DataFrame({"a": [1.0, None, 3.0], "c": ["x", None, None]}))
    assert FittedPreparation.learned(AUTO, rows).prepared(rows).filled == {"a": 1, "c": 2}


def test_vectors_share_one_unit_and_structs_are_columns() -> None:
    table = pa.table({
        "v": pa.array([[0.0, 10.0], [2.0, 30.0], [4.0, 50.0]], pa.list_(pa.float64(), 2)),
        "m": [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}],
    })  # fmt: skip
    fitted = FittedPreparation.learned(AUTO, rows_of(table))
    assert fitted.names == ("v[0]", "v[1]", "m.a")
    assert fitted.scale.unit[0] == fitted.scale.unit[1] != fitted.scale.unit[2]


@given(columns=columns_of_values())
def test_every_library_gives_the_same_rows(columns: list[list[Any]]) -> None:
    named = {f"x{place}": column for place, column in enumerate(columns)}
    plain, arrow = rows_of_columns(named), rows_of(pa.table(named))
    frame = rows_of(
        pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in named.items()})
    )
    fitted = FittedPreparation.learned(AUTO, plain)
    expected = fitted.prepared(plain).points.tobytes()
    assert fitted.prepared(arrow).points.tobytes() == expected
    assert fitted.prepared(frame).points.tobytes() == expected


@given(columns=columns_of_values(), cut=st.integers(0, 12))
def test_rows_put_together_are_those_of_the_whole_table(columns: list[list[Any]], cut: int) -> None:
    whole = table_of(columns)
    cut = min(cut, len(whole))
    parts = [
        table_of([column[rows] for column in columns]) for rows in (slice(cut), slice(cut, None))
    ]
    fitted = FittedPreparation.learned(AUTO, whole)
    together = joined(parts)
    assert fitted.prepared(together).points.tobytes() == fitted.prepared(whole).points.tobytes()


GIVEN = rows_of(pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]}))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": [1.0]},
         "column 'c' is gone, which the preparation was learned with. The rows have 'a'. Add it, "
         "with nothing in it where it is not known, or begin anew."),
        ({"a": [1.0], "c": ["x"], "d": [1.0]},
         "column 'd' is new: the preparation was learned with 'a', 'c'. Leave it out, or begin "
         "anew."),
        ({"c": ["x"], "a": [1.0]},
         "columns come as 'c', 'a', the preparation was learned with 'a', 'c'. Pass them in that "
         "order."),
        ({"a": ["n/a"], "c": ["x"]},
         "column 'a' holds text, the preparation was learned with numbers. Convert it, or begin "
         "anew."),
        ({"a": [float("inf")], "c": ["x"]},
         "X holds infinity at row 0, column 'a'. Every value must be finite; drop or clip such "
         "rows first."),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_refused(frame: dict[str, Any], message: str) -> None:
    fitted = FittedPreparation.learned(AUTO, GIVEN)
    before = str(fitted.to_dict())
    for refuse in (fitted.prepared, fitted.after):
        with pytest.raises(InputError) as raised:
            refuse(rows_of(pd.DataFrame(frame)))
        assert str(raised.value) == message
    assert str(fitted.to_dict()) == before


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"scale": "log"}, "scale must be one of 'robust', 'standard', 'none', got 'log'."),
        ({"limits": {"a": (0.0, float("nan"))}},
         "limits of column 'a' must be two finite numbers, the lower one first, got 0.0 and nan."),
        ({"limits": {"a": (2, 1)}},
         "limits of column 'a' must be two finite numbers, the lower one first, got 2 and 1."),
        ({"limits": {"a": 3}}, "limits of column 'a' must be a low and a high value, got 3."),
        ({"levels": {"a": "red"}}, "levels of column 'a' must be a list of texts, got 'red'."),
        ({"levels": {"a": ["x", "x"]}}, "levels of column 'a' names 'x' twice. Each level once."),
        ({"levels": {"a": ["x", "y"]}, "max_levels": 1},
         "levels of column 'a' has 2 levels, at most max_levels=1 get columns. Raise that, or "
         "leave out the rare ones, which count as others."),
        ({"category_weight": 0},
         "category_weight must be a finite number above 0: the squared distance of two "
         "categories, got 0."),
        ({"limits": [1]},
         "limits must map names of columns to a low and a high value, got [1]."),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        Preparation(**rules)
    assert str(raised.value) == message


def test_a_file_of_rules_names_itself_and_the_key(tmp_path: Any) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('scala = "robust"\n')
    with pytest.raises(InputError) as raised:
        Preparation.from_toml(file)
    assert str(raised.value) == (
        f"{file} has a key 'scala', which is no rule. Use scale, limits, missing, categories, "
        "max_levels, levels, category_weight, identifiers."
    )
    file.write_text("[limits]\na = [0.0, nan]\n")
    with pytest.raises(InputError, match="limits of column 'a' must be two finite numbers"):
        Preparation.from_toml(file)


def test_what_nobody_can_cluster_is_named() -> None:
    with pytest.raises(InputTypeError) as raised:
        rows_of(pa.table({"b": [b"x"]}))
    assert str(raised.value) == (
        "column 'b' holds binary, which is neither a number nor text. Convert it, or leave it out."
    )
    with pytest.raises(InputError) as mixed:
        rows_of([[1.0], ["n/a"]])
    assert str(mixed.value) == (
        "column 'x0' holds 1.0 and 'n/a': numbers and text do not go together. Convert one to the "
        "other, or leave the column out."
    )


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"limits": {"c": (0, 1)}},
         "limits names column 'c', which holds text. Only numbers have limits: leave it out of "
         "them."),
        ({"limits": {"on": (0, 1)}},
         "limits names column 'on', which holds true and false. Only numbers have limits: leave it "
         "out of them."),
        ({"levels": {"a": ["1"]}},
         "levels names column 'a', which holds numbers. Only text has levels: leave it out of "
         "them, or make text of the column."),
    ],
)  # fmt: skip
def test_a_rule_that_would_do_nothing_is_refused(rules: dict[str, Any], message: str) -> None:
    rows = rows_of(pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"], "on": [True, False]}))
    with pytest.raises(InputError) as raised:
        FittedPreparation.learned(Preparation(**rules), rows)
    assert str(raised.value) == message


def test_what_is_left_out_says_what_would_keep_it() -> None:
    """A rule is advised only where it helps."""
    frame = pd.DataFrame({"at": pd.date_range("2026-01-01", periods=60)})
    with pytest.raises(InputError) as raised:
        FittedPreparation.learned(AUTO, rows_of(frame))
    assert str(raised.value) == ("no column is left to cluster: 'at': it says when a row happened.")
    frame["note"] = [f"no. {number}" for number in range(60)]
    with pytest.raises(InputError) as raised:
        FittedPreparation.learned(AUTO, rows_of(frame))
    assert str(raised.value) == (
        "no column is left to cluster: 'at': it says when a row happened; 'note': it holds text "
        'that is different in 60 of 60 rows. Of the preparation, identifiers = "keep" would keep '
        "columns."
    )
    with pytest.raises(InputError, match=r'Of the preparation, categories = "one-hot" would keep'):
        FittedPreparation.learned(Preparation(categories="exclude"), rows_of(frame))
    kept = FittedPreparation.learned(Preparation(identifiers="keep"), rows_of(frame))
    assert len(kept.names) == 21


@pytest.mark.parametrize("library", ["numbers", "objects", "arrow"])
def test_two_columns_of_one_name_are_refused(library: str) -> None:
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    table: Any = {
        "numbers": frame,
        "objects": frame.astype(str),
        "arrow": pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]),
    }[library]
    with pytest.raises(InputError) as raised:
        rows_of(table)
    assert str(raised.value) == (
        "X has more than one column 'a'. Every column needs a name of its own: rename one, or "
        "leave it out."
    )


def test_values_of_a_frame_that_do_not_go_together_are_shown() -> None:
    frame = pd.DataFrame({"b": [1.0, 2.0, 3.0], "a": [None, 1, "x"]})
    with pytest.raises(InputError) as raised:
        rows_of(frame)
    assert str(raised.value) == (
        "column 'a' holds 1 and 'x': numbers and text do not go together. Convert one to the "
        "other, or leave the column out."
    )


def test_float32_rows_with_gaps_are_prepared_without_a_warning() -> None:
    values = np.array([[1.0, np.nan], [2.0, 4.0]], dtype=np.float32)
    rows = Rows.of_numbers(values)
    assert not rows.is_whole  # warnings are errors here
