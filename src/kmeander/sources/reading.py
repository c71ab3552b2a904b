"""How a stream is read, as far as the user said it; the rest is recognised."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kmeander.arguments import list_of_names, one_of
from kmeander.exceptions import ArgumentError, argument
from kmeander.sources.numerals import DECIMALS, MISSING_WORDS

DELIMITER_WORDS = {"tab": "\t", "\\t": "\t", "space": " "}
COMMA = ","


@dataclass(frozen=True)
class Reading:
    """How files are read; see `kmeander.run`. None means: not said."""

    form: str | None = None
    header: Sequence[str] | None = None
    order: str = "name"
    follow: bool = False
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    comment: str | None = None
    na_values: Sequence[str] = ()

    def __post_init__(self) -> None:
        list_of_names("header", self.header)
        list_of_names("na_values", self.na_values)
        if self.decimal is not None:
            one_of("decimal", self.decimal, DECIMALS)
        delimiter = _checked_delimiter(self.delimiter)
        vars(self)["delimiter"] = delimiter
        if self.decimal == delimiter == COMMA:
            raise ArgumentError(
                f"{argument('delimiter')} and {argument('decimal')} cannot both be a comma. One "
                "stands between columns, the other in numbers."
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.comment is not None and (
            not isinstance(self.comment, str) or not self.comment.strip() or "\n" in self.comment
        ):
            raise ArgumentError(
                f"{argument('comment')} must be what lines to leave out begin with, such as #, got "
                f"{self.comment!r}."
            )

    @property
    def missing(self) -> frozenset[str]:
        """The words that stand for a missing number."""
        return frozenset({*MISSING_WORDS, *self.na_values})


def _checked_delimiter(delimiter: Any) -> str | None:
    if delimiter is None:
        return None
    sign = DELIMITER_WORDS.get(delimiter, delimiter) if isinstance(delimiter, str) else delimiter
    if not isinstance(sign, str) or len(sign) != 1 or sign in '"\r\n' or not sign.isascii():
        raise ArgumentError(
            f"{argument('delimiter')} must be one character, or tab or space, got {delimiter!r}. "
            "It is what stands between columns."
        )
    return sign


def _check_encoding(encoding: Any) -> None:
    try:
        known = isinstance(encoding, str) and bool("".encode(encoding) is not None)
        known = known and codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ArgumentError(
            f"{argument('encoding')} must be one that Python knows, such as utf-8, latin-1 or "
            f"utf-16, got {encoding!r}."
        )


AS_USUAL = Reading()
