"""Text in any encoding as UTF-8, in which lines are cut and parsed."""

from __future__ import annotations

import codecs

from kmeander.exceptions import InputError, argument
from kmeander.sources.line_parsing import Read

UTF8 = "utf-8"
WESTERN = "windows-1252"  # latin-1, and what programs for Windows add to it
_MARKS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
LONGEST_MARK = 4  # bytes
_ZEROS = 0.1  # the share of zero bytes that no text has whose letters are bytes
# How files begin that are no text, and what to do with them.
_OTHERS = {
    b"PAR1": ("Parquet", "parquet"),
    b"ARROW1": ("Arrow", "arrow"),
    b"\x1f\x8b": ("compressed", ".gz"),
    b"\x28\xb5\x2f\xfd": ("compressed", ".zst"),
    b"\xfd7zXZ": ("compressed", ".xz"),
    b"BZh": ("compressed", ".bz2"),
    b"PK\x03\x04": ("compressed", ".zip"),
}


def encoding_of(beginning: bytes, name: str, *, may_be_western: bool = True) -> str:
    r"""Return the encoding of a text that begins with some bytes.

    Marks and zero bytes tell UTF-16 and UTF-32. Where what is not UTF-8 `may_be_western`, it is
    read as Windows' extension of latin-1, which most such files are; digits are the same in all.

    Examples
    --------
    >>> encoding_of("temp,größe\n".encode(), "x"), encoding_of("größe\n".encode("latin-1"), "x")
    ('utf-8', 'windows-1252')
    >>> encoding_of("temp\n".encode("utf-16"), "x"), encoding_of("temp\n".encode("utf-16-le"), "x")
    ('utf-16', 'utf-16-le')
    """
    for mark, encoding in _MARKS.items():
        if beginning.startswith(mark):
            return encoding
    for mark, (what, means) in _OTHERS.items():
        if beginning.startswith(mark):
            advice = (
                f"give its name the ending {means}"
                if means.startswith(".")
                else f"use {argument('format', means)}"
            )
            raise InputError(f"{name} is {what}, not text: {advice}.")
    if beginning.count(0) > _ZEROS * len(beginning):
        return _wide_encoding(beginning, name)
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder(UTF8)().decode(beginning)
    except UnicodeDecodeError as error:
        if not may_be_western:
            return UTF8
        try:
            beginning.decode(WESTERN)
        except UnicodeDecodeError:
            raise InputError(
                f"{name} is neither UTF-8 ({error.reason} at byte {error.start}) nor "
                f"{WESTERN}. Say what it is: {argument('encoding', ...)}."
            ) from error
        return WESTERN
    return UTF8


def _wide_encoding(beginning: bytes, name: str) -> str:
    """Return UTF-16 without a mark, where every other byte is zero, as in plain letters."""
    half = len(beginning) // 2
    for encoding, zeros in (("utf-16-le", beginning[1::2]), ("utf-16-be", beginning[0::2])):
        if zeros.count(0) > 0.8 * half:
            return encoding
    raise InputError(
        f"{name} is no text: it holds zero bytes. {argument('format', ...)} says what else it may "
        f"be, {argument('encoding', ...)} in which encoding it is."
    )


class Transcoder:
    """Bytes in an encoding as bytes in UTF-8.

    Parameters
    ----------
    read : callable
        Returns some bytes, b"" at the end, None where there is nothing yet.
    encoding : str
    name : str
        As messages show the file.
    """

    def __init__(self, read: Read, encoding: str, name: str) -> None:
        self._read = read
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding = encoding
        self._name = name
        self._ended = False
        self._n_read = 0

    def read(self, size: int) -> bytes | None:
        """Return some bytes, b"" at the end, None where there is nothing yet."""
        while not self._ended:
            piece = self._read(size)
            if piece is None:
                return None
            self._ended = not piece
            try:
                text = self._decoder.decode(piece, final=self._ended)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self._name} is not {self._encoding} throughout: {error.reason} after byte "
                    f"{self._n_read + error.start}. {argument('encoding', ...)} says what it is."
                ) from error
            self._n_read += len(piece)
            if text:
                return text.encode(UTF8, "surrogatepass")
        return b""
