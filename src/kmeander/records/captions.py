"""Captions: what names the rows of a batch, and what they say, for people to recognise them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.exceptions import InputError

# Characters that are kept of what a row says.
LONGEST = 200


@dataclass(frozen=True, eq=False)
class Captions:
    """An id and a text for each row, where there are any.

    Parameters
    ----------
    ids, texts : sequence, optional
        Of anything: a value is made text when its row is chosen to be shown.
    places : ndarray of int, optional
        Where the rows stand in both, unless they are all of them.

    Examples
    --------
    >>> Captions(["a", "b", "c"]).taken(np.array([False, True, True])).id_of(0)
    'b'
    """

    ids: Sequence[Any] | None = None
    texts: Sequence[Any] | None = None
    places: NDArray[np.intp] | None = None

    @classmethod
    def checked(cls, n_rows: int, ids: ArrayLike | None, texts: ArrayLike | None) -> Self | None:
        """Return captions of so many rows; None where there are none."""
        given: Any
        for name, given in (("rows", ids), ("texts", texts)):
            if given is None:
                continue
            if isinstance(given, str) or not hasattr(given, "__len__"):
                raise InputError(
                    f"{name} must be a sequence with one item for each row, got "
                    f"{type(given).__name__}."
                )
            if len(given) != n_rows:
                raise InputError(
                    f"{name} has {len(given)} items, X has {n_rows} rows. Give one for each row."
                )
        if ids is None and texts is None:
            return None
        return cls(_indexable(ids), _indexable(texts))

    def taken(self, which: NDArray[np.bool_]) -> Captions:
        """Return those of some of the rows."""
        places = np.flatnonzero(which)
        return Captions(
            self.ids, self.texts, places if self.places is None else self.places[places]
        )

    def id_of(self, row: int) -> str | None:
        """Return what names a row."""
        return None if self.ids is None else _as_text(self.ids[self._place(row)])

    def text_of(self, row: int) -> str | None:
        """Return what a row says."""
        return None if self.texts is None else _as_text(self.texts[self._place(row)])

    def said_in(self, row: int) -> str:
        """Return the whole text of a row."""
        assert self.texts is not None
        return _as_text(self.texts[self._place(row)], None)

    def _place(self, row: int) -> int:
        return row if self.places is None else int(self.places[row])


def _indexable(values: Any) -> Any:
    """Return values that are found by their place: those of a frame have an index of its own."""
    return values.to_numpy() if hasattr(values, "iloc") else values


def _as_text(value: Any, longest: int | None = LONGEST) -> str:
    """Return a value as text that can be stored; nothing where there is none."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    if value is None or value != value:
        return ""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return " ".join(text[:longest].encode("utf-8", "replace").decode().split())
