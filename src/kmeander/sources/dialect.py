"""How a CSV file is written: recognised from its first lines where that is beyond doubt."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kmeander.exceptions import InputError, argument
from kmeander.sources.numerals import (
    AmbiguousNumberError,
    ColumnForm,
    form_of,
    is_numeral,
    present,
)
from kmeander.sources.reading import COMMA, Reading

DELIMITERS = (",", ";", "\t", "|")
COMMENT = "#"
MOST_LINES = 200  # that are looked at
_MOST = 0.5  # the share of rows that must fit the header
_YEARS = range(1900, 2101)


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Parameters
    ----------
    delimiter : str
        What stands between columns.
    comment : str or None
        What lines begin with that are no rows.
    names : tuple of str
    forms : tuple of ColumnForm
        How the cells of each column are written.
    n_bytes : int
        Bytes before the first row.
    notes : tuple of str
        What is not as in most files, for people.
    advice : str
        What to do, where no row has as many fields as there are names.
    """

    delimiter: str
    comment: str | None
    names: tuple[str, ...]
    forms: tuple[ColumnForm, ...]
    n_bytes: int
    notes: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class _Line:
    text: str
    end: int  # in bytes, from the file's beginning

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def recognise(sample: bytes, name: str, reading: Reading, usual: str) -> Dialect:
    r"""Return how a file is written whose first lines are `sample`.

    Parameters
    ----------
    sample : bytes
        Whole lines.
    name : str
        As messages show the file.
    reading : Reading
        What is known already.
    usual : str
        What stands between columns where nothing tells.

    Examples
    --------
    >>> found = recognise(b"# pump 3\nt;load\n1,5;2\n", "x.csv", Reading(), ",")
    >>> found.delimiter, found.comment, found.names, found.forms[0].decimal
    (';', '#', ('t', 'load'), ',')
    """
    lines = [line for line in _lines(sample) if not line.is_blank]
    comment = reading.comment or COMMENT
    plain = [line for line in lines if not line.text.startswith(comment)]
    if not plain:
        return _without_rows(lines, name, reading, usual)
    header = None if reading.header is None else list(reading.header)
    delimiter = reading.delimiter or _delimiter(plain, header, reading, usual)
    rows = [_fields(line.text, delimiter) for line in plain]
    first = _fields(plain[0].text, delimiter, name)
    above = [line for line in lines if line.end < plain[0].end]
    if reading.comment is None and not _are_comments(lines, plain, len(header or first), delimiter):
        comment, plain, above = "", lines, []
        rows = [_fields(line.text, delimiter) for line in plain]
        first = _fields(plain[0].text, delimiter, name)
    notes = [] if delimiter == usual else [f"{_shown(delimiter)} stands between columns"]
    n_bytes = len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
    if header is not None:
        if first == header:  # they are the file's own names
            n_bytes, rows = plain[0].end, rows[1:]
        names = header
    elif commented := _names_in_comment(above, first, rows, delimiter, comment):
        names = commented
        n_bytes = above[-1].end
    elif _is_header(first, rows[1:], name):
        names, n_bytes, rows = first, plain[0].end, rows[1:]
    else:
        names = [f"x{place}" for place in range(len(first))]
        notes.append(f"it has no line of names, so columns are called {_some(names)}")
    if header is None:
        names = _distinct(names, notes)
    if comment and len(plain) < len(lines):
        notes.append(f"lines that begin with {comment} are left out")
    fitting = [row for row in rows if len(row) == len(names)]
    cells = [present(column, reading.missing) for column in zip(*fitting, strict=True)]
    cells = cells or [[] for _ in names]
    forms = _forms(cells, names, name, reading)
    notes += _notes_on(forms, names)
    words = sorted({cell.strip() for row in fitting for cell in row} & reading.missing - {""})
    numeric = any(form.kind == "number" for form in forms)
    if words and numeric and not reading.na_values:
        stand = "stands for a missing number" if len(words) == 1 else "stand for missing numbers"
        notes.append(f"{_some(words)} {stand}")
    return Dialect(
        delimiter,
        comment if reading.comment or len(plain) < len(lines) else None,
        tuple(names),
        tuple(forms),
        n_bytes,
        tuple(notes),
        _advice(names, rows, delimiter, reading),
    )


def _lines(sample: bytes) -> list[_Line]:
    lines: list[_Line] = []
    end = 0
    for line in sample.split(b"\n", MOST_LINES)[:MOST_LINES]:
        end = min(end + len(line) + 1, len(sample))
        text = line.removeprefix(codecs.BOM_UTF8) if not lines else line
        lines.append(_Line(text.rstrip(b"\r").decode("utf-8", "replace"), end))
    return lines


def _without_rows(lines: list[_Line], name: str, reading: Reading, usual: str) -> Dialect:
    """Return the dialect of a file of which nothing has come, if its names are known."""
    if reading.header is None:
        if lines:
            raise InputError(
                f"{name} has no rows: all of its first lines begin with "
                f"{reading.comment or COMMENT}. {argument('comment', ...)} says what else begins "
                "lines that are to be left out."
            )
        raise InputError(f"{name} is empty: not even a header.")
    forms = [ColumnForm(decimal=reading.decimal or ".")] * len(reading.header)
    delimiter = reading.delimiter or (";" if reading.decimal == COMMA else usual)
    return Dialect(delimiter, reading.comment, tuple(reading.header), tuple(forms), 0)


def _fields(line: str, delimiter: str, name: str | None = None) -> list[str]:
    """Return the fields of a line; names of columns lose the spaces around them."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=name is not None))
    except csv.Error as error:
        if name is None:
            return []
        raise InputError(
            f"{name} has a header that cannot be read: {error}. Lines must end with a line "
            "feed; tr '\\r' '\\n' converts those of an old Macintosh."
        ) from error
    return fields if name is None else [field.strip() for field in fields]


def _delimiter(
    lines: Sequence[_Line], header: list[str] | None, reading: Reading, usual: str
) -> str:
    """Return what divides most rows into as many fields as the header, numbers above all."""

    def fit(delimiter: str) -> tuple[float, float, bool]:
        rows = [_fields(line.text, delimiter) for line in lines]
        width = len(rows[0] if header is None else header)
        rest = rows[1:] if header is None else rows
        if width < 2:
            return 0.0, 0.0, False
        if not rest:
            return 1.0, width, delimiter == usual
        fitting = [row for row in rest if len(row) == width]
        cells = [cell.strip() for row in fitting for cell in row]
        share = sum(cell in reading.missing or is_numeral(cell) for cell in cells) / max(
            1, len(cells)
        )
        return len(fitting) / len(rest), share, delimiter == usual

    best = max(DELIMITERS, key=fit)
    if fit(best)[0] >= _MOST:
        return best
    return ";" if usual == reading.decimal == COMMA else usual


def _are_comments(
    lines: Sequence[_Line], plain: Sequence[_Line], width: int, delimiter: str
) -> bool:
    """Whether lines that begin with the sign are no rows: above the others, or of other width."""
    first = plain[0].end
    marked = [line for line in lines if line.text.startswith(COMMENT) and line.end > first]
    return not any(len(_fields(line.text, delimiter)) == width for line in marked)


def _names_in_comment(
    above: Sequence[_Line],
    first: list[str],
    rows: list[list[str]],
    delimiter: str,
    comment: str,
) -> list[str]:
    """Return the names in the last line above the rows, as in ``# a,b``, if they are there."""
    if not above or not any(map(is_numeral, rows[0])):
        return []
    fields = _fields(above[-1].text.removeprefix(comment).strip(), delimiter)
    names = [field.strip() for field in fields]
    return names if len(names) == len(first) and not any(map(is_numeral, names)) else []


def _is_header(first: list[str], rows: list[list[str]], name: str) -> bool:
    """Whether the first line holds names rather than values."""
    numbers = [field for field in first if is_numeral(field)]
    if not numbers:
        return True
    counts = [int(field) for field in numbers if field.isascii() and field.isdecimal()]
    in_order = len(counts) == len(numbers) and all(b == a + 1 for a, b in pairwise(counts))
    if len(numbers) < len(first):  # names, some of which may be years
        return len(counts) == len(numbers) and all(count in _YEARS for count in counts)
    if not in_order or len(first) == 1:
        return False
    # 0,1,2 or 2019,2020,2021: names if what is below is not of that kind at all.
    below = [cell for row in rows for cell in row if is_numeral(cell)]
    if below and not any(cell.isdecimal() for cell in below):
        return True
    raise InputError(
        f"{name} begins with {','.join(first)}: names of columns, or a row? "
        f"{argument('header', first)} takes them for names, "
        f"{argument('header', [f'x{place}' for place in range(len(first))])} for a row."
    )


def _distinct(names: list[str], notes: list[str]) -> list[str]:
    """Return names of which each is there once."""
    taken = {name for name in names if name}
    found: list[str] = []
    for place, name in enumerate(names):
        new = name or f"x{place}"
        number = 2
        while new in found or (new != name and new in taken):
            new = f"{name or f'x{place}'}.{number}"
            number += 1
        if new != name:
            notes.append(
                f"column {place + 1}, {repr(name) if name else 'unnamed'}, is called {new!r}"
            )
        found.append(new)
    return found


def _advice(
    names: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, reading: Reading
) -> str:
    """Return what to do where no row has as many fields as there are names."""
    if not rows or any(len(row) == len(names) for row in rows):
        return ""
    cells = delimiter.join(rows[0])
    if len(names) == 1 and delimiter == COMMA and is_numeral(cells) and reading.decimal is None:
        return f"{argument('decimal', COMMA)} reads {cells} as one number"
    if reading.header is not None:
        return f"give {argument('header', ...)} a name for every field"
    return (
        f"no row has as many, with {_shown(delimiter)} between: {argument('delimiter', ...)} says "
        "what stands between columns"
    )


def _forms(
    columns: Sequence[list[str]], names: Sequence[str], name: str, reading: Reading
) -> list[ColumnForm]:
    """Return the forms of all columns; one whose numbers read two ways follows the others."""
    found: list[ColumnForm | None] = []
    doubt: AmbiguousNumberError | None = None
    for cells in columns:
        try:
            found.append(form_of(cells, reading.decimal))
        except AmbiguousNumberError as error:
            found.append(None)
            doubt = doubt or error
    if doubt is None:
        return [form for form in found if form is not None]
    signs = {
        form.decimal
        for form, cells in zip(found, columns, strict=True)
        if form is not None and form.kind == "number" and any(form.decimal in c for c in cells)
    }
    if len(signs) != 1:
        column = names[found.index(None)]
        bare = doubt.cell.replace(",", ".")
        raise InputError(
            f"{name}: is {doubt.cell} in column {column!r} {bare.replace('.', '')} or {bare}? "
            f"{argument('decimal', '.' if ',' in doubt.cell else ',')} reads the first, "
            f"{argument('decimal', ',' if ',' in doubt.cell else '.')} the second."
        )
    sign = signs.pop()
    return [
        form_of(cells, sign) if form is None else form
        for form, cells in zip(found, columns, strict=True)
    ]


def _notes_on(forms: Sequence[ColumnForm], names: Sequence[str]) -> list[str]:
    notes = []
    numbers = [
        (form, column) for form, column in zip(forms, names, strict=True) if form.kind == "number"
    ]
    if commas := [column for form, column in numbers if form.decimal == COMMA]:
        notes.append(f"the decimal sign is a comma in {_columns(commas)}")
    for sign in sorted({form.thousands for form, _ in numbers} - {""}):
        columns = [column for form, column in numbers if form.thousands == sign]
        notes.append(f"{_shown(sign)} stands between thousands in {_columns(columns)}")
    for unit in sorted({form.unit for form, _ in numbers} - {""}):
        columns = [column for form, column in numbers if form.unit == unit]
        notes.append(f"{unit} is taken off in {_columns(columns)}")
    return notes


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {_some(names)}"


def _some(names: Sequence[str]) -> str:
    """Return at most four names."""
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown


def _shown(sign: str) -> str:
    return {"\t": "a tab", " ": "a space", "\u00a0": "a space", "\u202f": "a space"}.get(
        sign, repr(sign)
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
