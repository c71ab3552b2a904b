"""What a cluster is: its name, how large and old it is, what sets it apart, a few of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from kmeander.events import plain_name
from kmeander.exceptions import InputError, shown
from kmeander.plain_values import each_of, record_values

if TYPE_CHECKING:
    import pandas as pd

# How many clusters and words a collection shows in a line or a table for people.
SHOWN = 30
LONGEST_ROW = 60  # characters of a row that are shown


@dataclass(frozen=True)
class Contrast:
    """A column that sets a cluster apart from the rest.

    Parameters
    ----------
    column : str
        Of a category the column and its level: ``"colour=red"``.
    mean, rest : float
        Of the cluster and of all other points, in the stream's units; of a level, or of what is
        true or false, the share.
    difference : float
        The difference of the two, in standard deviations of the column.
    is_share : bool
        Whether both are shares.

    Examples
    --------
    >>> Contrast("temp", 82.4, 30.9, 1.9).words(), Contrast("load", 3.1, 7.0, -0.9).part
    ('temp high (82.4 against 30.9)', 'load low')
    >>> Contrast("colour=red", 0.82, 0.31, 1.1, is_share=True).words()
    'colour=red (82% against 31%)'
    """

    column: str
    mean: float
    rest: float
    difference: float
    is_share: bool = False

    @property
    def part(self) -> str:
        """What it adds to a name."""
        if self.is_share:
            return self.column if self.difference > 0 else f"not {self.column}"
        return f"{self.column} {'high' if self.difference > 0 else 'low'}"

    def words(self) -> str:
        """Return it as part of a sentence."""
        mean, rest = (
            (f"{self.mean:.0%}", f"{self.rest:.0%}")
            if self.is_share
            else (short(self.mean), short(self.rest))
        )
        return f"{self.part} ({mean} against {rest})"

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Contrast:
        """Make a contrast of its plain values."""
        return cls(**record_values(cls, plain, "the contrast"))


@dataclass(frozen=True)
class ExampleRow:
    """A row that lay near the centroid of its cluster when its batch was learned.

    Parameters
    ----------
    batch : int
    distance : float
        To the centroid, in the model's units.
    id : str or None
        What names it, where anything does.
    text : str or None
        What it says, where there is a column of text.
    """

    batch: int
    distance: float
    id: str | None = None
    text: str | None = None

    def words(self) -> str:
        """Return its text, or what names it."""
        return self.text if self.text is not None else self.id or ""

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ExampleRow:
        """Make an example of its plain values."""
        return cls(**record_values(cls, plain, "the example"))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; what there is none of is left out."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class ClusterProfile:
    """What one cluster is.

    Parameters
    ----------
    id : int
    name : str
        The user's own; or made of the words or columns that set it apart, and then kept for as long
        as they do.
    share : float
        Of the decayed weight of all points.
    spread : float
        Root of the mean squared distance of its points to the centroid, in the model's units; with
        ``metric="cosine"`` the mean of 1 - cosine.
    trend : float
        Share in the newer half of the batches remembered, less that in the older half.
    age : int or None
        Batches since its first; None where that was before kmeander took note of it.
    since : str or None
        When the first row of its first batch happened, where that is known.
    is_given : bool
        Whether the name is the user's own.
    is_rising : bool or None
        Whether the trend is up or down; None where noise between batches explains it.
    columns : tuple of Contrast
        Those that set it apart, the strongest first.
    words : tuple of str
        Those that are frequent in it and rare outside, where there is a column of text.
    recent, old : tuple of ExampleRow
        Rows near the centroid: of its newest batch, and of one about as old as the memory.

    Examples
    --------
    >>> profile = ClusterProfile(
    ...     3, "temp high", 0.25, 1.5, 0.01, age=40, columns=(Contrast("temp", 82.0, 31.0, 1.9),)
    ... )
    >>> profile.apart()
    'temp high (82 against 31)'
    >>> profile.trend_words()
    'steady'
    """

    id: int
    name: str
    share: float
    spread: float
    trend: float
    age: int | None = None
    since: str | None = None
    is_given: bool = False
    is_rising: bool | None = None
    columns: tuple[Contrast, ...] = ()
    words: tuple[str, ...] = ()
    recent: tuple[ExampleRow, ...] = ()
    old: tuple[ExampleRow, ...] = ()

    def apart(self) -> str:
        """Return what sets it apart, in words: columns, or the words of its texts."""
        return ", ".join([contrast.words() for contrast in self.columns] or self.words)

    def trend_words(self) -> str:
        """Return ``"rising"``, ``"falling"`` or ``"steady"``."""
        if self.is_rising is None:
            return "steady"
        return "rising" if self.is_rising else "falling"

    def rows(self) -> list[str]:
        """Return its rows in words, the old ones after the recent ones."""
        return [row.words() for row in (*self.recent, *self.old)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; what there is none of is left out."""
        plain = {name: value for name, value in vars(self).items() if value not in (None, ())}
        for name in ("recent", "old"):
            if name in plain:
                plain[name] = [row.to_dict() for row in plain[name]]
        if self.columns:
            plain["columns"] = [dict(vars(contrast)) for contrast in self.columns]
        if self.words:
            plain["words"] = list(self.words)
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ClusterProfile:
        """Make a profile of what `to_dict` returned; unknown keys are ignored."""
        made: dict[str, Callable[[Any], Any]] = {
            "columns": each_of(Contrast.from_dict, "columns"),
            "words": each_of(_text, "words"),
            "recent": each_of(ExampleRow.from_dict, "recent"),
            "old": each_of(ExampleRow.from_dict, "old"),
            "is_rising": bool,
        }
        return cls(**record_values(cls, plain, "the profile", others=made))


class Profiles(Sequence[ClusterProfile]):
    """What the clusters of a model are, the largest first.

    A sequence of `ClusterProfile`. Printed it is a table for people, in a notebook one in HTML;
    `to_frame` gives one for programs.

    Examples
    --------
    >>> Profiles([ClusterProfile(3, "temp high", 0.25, 1.5, 0.01, age=40)])
     id  name       share  trend   age
      3  temp high    25%  steady  40 batches
    """

    def __init__(self, profiles: Iterable[ClusterProfile]) -> None:
        self._profiles = tuple(profiles)

    def __len__(self) -> int:
        return len(self._profiles)

    def __getitem__(self, place: Any) -> Any:
        found = self._profiles[place]
        return Profiles(found) if isinstance(place, slice) else found

    def __iter__(self) -> Iterator[ClusterProfile]:
        return iter(self._profiles)

    def of(self, number: int) -> ClusterProfile:
        """Return the profile of the cluster with that id."""
        found = next((profile for profile in self if profile.id == number), None)
        if found is None:
            raise InputError(
                f"there is no cluster {shown(number)}: the living ones are "
                f"{', '.join(str(profile.id) for profile in self)}."
            )
        return found

    def names(self) -> dict[int, str]:
        """Return the name of each cluster that has one, by id."""
        return {one.id: one.name for one in self if one.name != plain_name(one.id)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each cluster, its id as the index."""
        import pandas as pd

        columns: Mapping[str, Any] = {
            "name": [one.name for one in self],
            "share": [one.share for one in self],
            "trend": [one.trend for one in self],
            "age": pd.array([one.age for one in self], dtype="Int64"),
            "since": [one.since for one in self],
            "spread": [one.spread for one in self],
            "apart": [one.apart() for one in self],
            "words": [", ".join(one.words) for one in self],
            "recent": [[row.words() for row in one.recent] for one in self],
            "old": [[row.words() for row in one.old] for one in self],
        }
        return pd.DataFrame(columns, index=pd.Index([one.id for one in self], name="cluster"))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and cells of a table for people, without columns that say nothing."""
        rows = [
            [
                str(one.id),
                one.name,
                f"{one.share:.0%}" if one.share >= 0.1 else f"{one.share:.1%}",
                one.trend_words(),
                "" if one.age is None else f"{one.age} {'batch' if one.age == 1 else 'batches'}",
                one.apart(),
                _cut(one.recent[0].words()) if one.recent else "",
            ]
            for one in self._profiles[:SHOWN]
        ]
        heads = ["id", "name", "share", "trend", "age", "set apart by", "a row"]
        said = [
            place for place in range(len(heads)) if place < 5 or any(row[place] for row in rows)
        ]
        return [heads[place] for place in said], [[row[place] for place in said] for row in rows]

    def __repr__(self) -> str:
        heads, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        numbers = ("id", "share")
        lines = [
            "  ".join(
                cell.rjust(width) if head in numbers else cell.ljust(width)
                for head, cell, width in zip(heads, row, widths, strict=True)
            ).rstrip()
            for row in [heads, *rows]
        ]
        more = len(self) - SHOWN
        return "\n".join(
            f" {line}" for line in [*lines, *([f"and {more} more"] if more > 0 else [])]
        )

    def _repr_html_(self) -> str:
        heads, rows = self._cells()
        head = "".join(f"<th style='text-align:left'>{escape(one)}</th>" for one in heads)
        body = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in rows
        )
        more = len(self) - SHOWN
        note = f"<p>and {more} more</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def short(number: float) -> str:
    """Return a number in about three digits, without an exponent where people would write none.

    Examples
    --------
    >>> short(82.0), short(312456.7), short(0.01234), short(3e-9)
    ('82', '312,457', '0.0123', '3e-09')
    """
    return f"{number:,.0f}" if 999.5 <= abs(number) < 1e9 else f"{number:.3g}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_ROW else f"{text[: LONGEST_ROW - 3]}..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"words has {shown(value)}, which must be text.")
    return value
