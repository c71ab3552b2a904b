"""What kmeander raises when it cannot go on, and how its messages name arguments."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Writes the name of an argument, its value if there is one, and the function that takes it.
Style = Callable[[str, Any, str | None], str]


class KmeanderError(Exception):
    """Base of all exceptions that kmeander raises on purpose."""


class InputError(KmeanderError, ValueError):
    """An argument or a batch breaks a rule that the message names."""


class ArgumentError(InputError):
    """One argument is not what it must be: on the command line, wrong usage (exit code 2)."""


class InputTypeError(KmeanderError, TypeError):
    """An argument is of a kind that kmeander does not read."""


class CheckpointError(KmeanderError):
    """A checkpoint is damaged, or of a format that this version does not read."""


class StreamError(KmeanderError):
    """A source or an output cannot be reached, or does not hold what it should."""


def in_python(name: str, value: Any = None, of: str | None = None) -> str:
    """Return an argument as Python code has it.

    Examples
    --------
    >>> in_python("bad_rows", "skip"), in_python("exclude", ["ts"]), in_python("columns")
    ('bad_rows="skip"', 'exclude=["ts"]', 'columns')
    >>> in_python("columns", ...), in_python("steps", of="run")
    ('columns=...', 'kmeander.run(steps=...)')
    """
    if value is ... or (value is None and of is not None):
        written = f"{name}=..."
    elif value is None:
        written = name
    elif isinstance(value, bool | int | float):
        written = f"{name}={value}"
    else:
        written = f"{name}={json.dumps(value, ensure_ascii=False)}"
    return written if of is None else f"kmeander.{of}({written})"


_style: Style = in_python


def argument(name: str, value: Any = None, *, of: str | None = None) -> str:
    """Return an argument as whoever reads the message writes it.

    In Python that is ``bad_rows="skip"``; while the command line runs it is ``--bad-rows skip``.

    Parameters
    ----------
    name : str
        As in Python.
    value : str, sequence of str, number or bool, optional
        What to pass, or what was passed; ``...`` where that is up to the reader.
    of : str, optional
        The function, or command, that takes it, where that is not the one that was called.
    """
    return _style(name, value, of)


@contextmanager
def arguments_written_by(style: Style) -> Iterator[None]:
    """Write arguments in another style, as the command line does: for all of this process."""
    global _style
    before, _style = _style, style
    try:
        yield
    finally:
        _style = before


def printable(text: str) -> str:
    r"""Return text in which a terminal finds nothing to obey: control characters as escapes.

    Examples
    --------
    >>> printable("caf\xe9 \x1b[31mred\n")
    'caf\xe9 \\x1b[31mred\\n'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


_LONGEST_INTEGER = 3322  # bits: a thousand digits
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def shown(value: Any) -> str:
    """Return a value of a stream as messages show it: one line, cut where it is long or deep.

    Examples
    --------
    >>> shown("n/a"), len(shown("x" * 10_000)), shown([[[[[[[[1]]]]]]]])
    ("'n/a'", 80, '[[[[[[[...]]]]]]]')
    """
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return "an integer of more than 1000 digits"  # which Python may refuse to write
    text = _SHORT.repr(value)
    return " ".join(text.split()) if "\n" in text else text  # an array, as a rule
