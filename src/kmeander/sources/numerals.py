"""How the cells of a text column are written: numbers and their signs, truths, times, text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# Words that stand for a missing number. Where a number should be they can mean nothing else.
MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "NAN", "null", "Null", "NULL"),
    *("None", "none", "NONE", "nil", "-", "--", "?", "."),
)
TRUE = ("true", "True", "TRUE", "yes", "Yes", "YES")
FALSE = ("false", "False", "FALSE", "no", "No", "NO")
DECIMALS = (".", ",")

_CURRENCY = "$€£¥₹₩₽¢"
_SPACES = " \u00a0\u202f"
_GAP = f"[{_SPACES}]?"
_CELL = re.compile(
    rf"(?P<sign>[-+]?)(?P<before>[{_CURRENCY}]?){_GAP}(?P<inner>[-+]?)"
    rf"(?P<body>[\d.,](?:[\d.,'\u2019{_SPACES}]*[\d.,])?(?:[eE][-+]?\d+)?)"
    rf"{_GAP}(?P<after>[{_CURRENCY}%]?)"
)
_USUAL = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")  # most cells: at once
_NOT_FINITE = re.compile(r"[-+]?(?:inf|infinity)", re.I)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[-+]\d\d(?::?\d\d)?))?)?"
)
_MOSTLY = 0.5  # the share of cells that must be numbers for the others to be faults


@dataclass(frozen=True)
class ColumnForm:
    """How the cells of one column are written.

    Parameters
    ----------
    kind : {"number", "boolean", "time", "category"}
        As preparations call it; text that is nothing else is a category.
    decimal : {".", ","}
    thousands : str
        What stands between groups of three digits, if anything.
    unit : str
        A sign that every number carries, of a currency or percent.
    """

    kind: str = "number"
    decimal: str = "."
    thousands: str = ""
    unit: str = ""


PLAIN = ColumnForm()


class AmbiguousNumberError(Exception):
    """A column whose numbers can be read in two ways; `cell` is one of them."""

    def __init__(self, cell: str) -> None:
        super().__init__(cell)
        self.cell = cell


@cache
def _number(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return what matches a number without its sign and unit."""
    return re.compile(_written(decimal, thousands))


def _written(decimal: str, thousands: str) -> str:
    """Return the pattern of a number without its sign and unit."""
    point, between = re.escape(decimal), re.escape(thousands)
    whole = rf"(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)" if thousands else r"\d+"
    return rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"


def _between(decimal: str) -> tuple[str, ...]:
    """Return what may stand between thousands."""
    return ("," if decimal == "." else ".", "'", "\u2019", *_SPACES)


@dataclass(frozen=True)
class _Numeral:
    """One cell that is a number: its digits, its unit, and what stands between thousands."""

    body: str
    unit: str
    thousands: str


def _numeral(cell: str, decimal: str) -> _Numeral | None:
    """Return what a cell is as a number with that decimal sign, or None."""
    found = _CELL.fullmatch(cell)
    if found is None:
        return None
    unit = found["before"] + found["after"]
    if len(unit) > 1 or (found["sign"] and found["inner"]):
        return None
    body = found["body"]
    if _number(decimal, "").fullmatch(body):
        return _Numeral(body, unit, "")
    for thousands in _between(decimal):
        if thousands in body and _number(decimal, thousands).fullmatch(body):
            return _Numeral(body, unit, thousands)
    return None


def is_numeral(cell: str) -> bool:
    """Whether a cell is a number in some writing.

    Examples
    --------
    >>> [is_numeral(cell) for cell in ["1.5", "1,5", "$1,234.50", "12 %", "n/a", "1-2"]]
    [True, True, True, True, False, False]
    """
    if _USUAL.fullmatch(cell) or _NOT_FINITE.fullmatch(cell):
        return True
    return any(_numeral(cell, decimal) is not None for decimal in DECIMALS)


def present(cells: Iterable[str], missing: frozenset[str]) -> list[str]:
    """Return the cells that hold something."""
    stripped = (cell.strip() for cell in cells)
    return [cell for cell in stripped if cell not in missing]


def form_with(cells: Sequence[str], decimal: str) -> ColumnForm | None:
    """Return how the cells are written as numbers with that decimal sign, None if they are not.

    Examples
    --------
    >>> form_with(["$1,234.50", "$7.00"], ".")
    ColumnForm(kind='number', decimal='.', thousands=',', unit='$')
    >>> form_with(["1,5", "x"], ",") is None
    True
    """
    numerals = []
    for cell in cells:
        found = _numeral(cell, decimal)
        if found is not None:
            numerals.append(found)
        elif not _NOT_FINITE.fullmatch(cell):
            return None
    units = {found.unit for found in numerals}
    separators = {found.thousands for found in numerals} - {""}
    if len(units) > 1 or len(separators) > 1:
        return None
    return ColumnForm("number", decimal, "".join(separators), "".join(units))


def form_of(cells: Sequence[str], decimal: str | None) -> ColumnForm:
    """Return how the cells of a column are written; none of them is missing.

    Parameters
    ----------
    cells : sequence of str
    decimal : {".", ","}, optional
        The decimal sign where it is known. Otherwise the cells tell it, or raise
        `AmbiguousNumberError`.

    Examples
    --------
    >>> form_of(["yes", "no"], None).kind, form_of(["Oslo", "12", "Rome"], None).kind
    ('boolean', 'category')
    >>> form_of(["1.234,5", "7,0"], None)
    ColumnForm(kind='number', decimal=',', thousands='.', unit='')
    """
    if not cells:
        return ColumnForm(decimal=decimal or ".")
    if all(cell in TRUE or cell in FALSE for cell in cells):
        return ColumnForm("boolean")
    if all(_TIME.fullmatch(cell) for cell in cells):
        return ColumnForm("time")
    numbers = [cell for cell in cells if is_numeral(cell)]
    if len(numbers) < _MOSTLY * len(cells):
        return ColumnForm("category")
    forms = {sign: form_with(numbers, sign) for sign in ((decimal,) if decimal else DECIMALS)}
    fitting = [form for form in forms.values() if form is not None]
    if decimal is None and len(fitting) == 2 and _reads_two_ways(numbers):
        raise AmbiguousNumberError(next(cell for cell in numbers if "," in cell or "." in cell))
    if fitting:
        return fitting[0]
    # Nearly all are numbers, in one writing or another: rows in another one are faults.
    return max(
        (_commonest(numbers, sign) for sign in forms),
        key=lambda form: sum(form_with([cell], form.decimal) == form for cell in numbers),
    )


def _commonest(numbers: Sequence[str], decimal: str) -> ColumnForm:
    found = [form for cell in numbers if (form := form_with([cell], decimal)) is not None]
    return max(found, key=found.count) if found else ColumnForm(decimal=decimal)


def _reads_two_ways(numbers: Sequence[str]) -> bool:
    """Whether some numbers, ``1,234`` say, are others where the comma is the decimal sign.

    ``1.234`` is left to the point, which is usual, unless there are whole numbers beside it.
    """
    if any("," in cell for cell in numbers):
        return True
    pointed = sum("." in cell for cell in numbers)
    return 0 < pointed < len(numbers) and all(
        re.search(r"(?<!\d)[1-9]\d{0,2}\.\d{3}(?!\d)", cell) for cell in numbers if "." in cell
    )


def to_numbers(column: pa.ChunkedArray, form: ColumnForm) -> tuple[pa.ChunkedArray, str | None]:
    """Return text as numbers, and the first cell that is none, if there is one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> dollars = ColumnForm(thousands=",", unit="$")
    >>> to_numbers(pa.chunked_array([["$1,234.5", "-$7", None]]), dollars)[0].to_pylist()
    [1234.5, -7.0, None]
    >>> to_numbers(pa.chunked_array([["$1", "1,23"]]), dollars)[1]
    '1,23'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    body = pc.utf8_trim_whitespace(column)
    number = _written(form.decimal, form.thousands)
    pattern = rf"[-+]?{number}"
    if form.unit:
        unit = re.escape(form.unit)
        pattern = rf"[-+]?{unit}{_GAP}[-+]?{number}|[-+]?{number}{_GAP}{unit}"
    fits = pc.match_substring_regex(body, f"^(?:{pattern}|(?i:[-+]?inf(?:inity)?))$")
    wrong = pc.index(fits, False).as_py()
    if wrong >= 0:
        return pa.nulls(len(column), pa.float64()), column[wrong].as_py()
    for sign in (form.unit, form.thousands):
        if sign:
            body = pc.replace_substring(body, sign, "")
    body = pc.replace_substring_regex(body, rf"[+{_SPACES}]", "")
    if form.decimal != ".":
        body = pc.replace_substring(body, form.decimal, ".")
    return body.cast(pa.float64()), None
