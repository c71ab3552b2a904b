"""Columns of a model: their names, and what a number in each is in the units of the stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.events import Event
from kmeander.plain_values import PlainValues, are_moderate, is_text

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """Names of the columns of a model; where rows were prepared, their units as well.

    Parameters
    ----------
    names : sequence of str
    shift, unit : ndarray of shape (n_columns,), optional
        What 0 is in the units of the stream, and how large 1 is.

    Examples
    --------
    >>> import numpy as np
    >>> known = Columns(("temp", "load"), np.array([20.0, 0.0]), np.array([5.0, 1.0]))
    >>> known.restored([[1.0, 3.0]]).tolist(), known.scale
    ([[25.0, 3.0]], [5.0, 1.0])
    """

    names: tuple[str, ...]
    shift: Numbers | None = None
    unit: Numbers | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self | None:
        """Return the columns that the facts of a run describe; None where they do not.

        Facts come out of a file: those that cannot be are refused.
        """
        known = PlainValues(facts, "the run")
        names = known.items("columns", None, each=is_text, rule="names")
        if names is None:
            return None
        scaled = known.inside("standardize", None)
        if scaled is None:
            return cls(names)
        shift, unit = (
            scaled.array(name, None, shape=(len(names),), fits=are_moderate)
            for name in ("mean", "scale")
        )
        return cls(names, shift, unit)

    @classmethod
    def unnamed(cls, n_columns: int) -> Self:
        """Return columns that nobody has named.

        Examples
        --------
        >>> Columns.unnamed(2).names
        ('x0', 'x1')
        """
        return cls(tuple(f"x{place}" for place in range(n_columns)))

    def after(self, events: Iterable[Event]) -> Self:
        """Return the columns once units have changed as `events` say.

        Of a column that only begins to vary nobody has written down the unit: it is NaN.

        Examples
        --------
        >>> import numpy as np
        >>> known = Columns(("temp",), np.array([20.0]), np.array([5.0]))
        >>> known.after([Event("rescaled", value=2.0, column="temp")]).scale
        [10.0]
        """
        growth = {event.column: event.value for event in events if event.kind == "rescaled"}
        if not growth or self.unit is None:
            return self
        unit = self.unit.copy()
        for place, name in enumerate(self.names):
            if name in growth:
                times = growth[name]
                unit[place] = np.nan if times is None else unit[place] * times
        return replace(self, unit=unit)

    @property
    def scale(self) -> Sequence[float] | None:
        """How large 1 is in the units of the stream, where rows were prepared."""
        return None if self.unit is None else self.unit.tolist()

    def restored(self, centroids: ArrayLike) -> Numbers:
        """Return centroids in the units of the stream."""
        found = np.asarray(centroids, dtype=np.float64)
        if self.unit is not None and self.shift is not None:
            found = found * self.unit + self.shift
        return found
