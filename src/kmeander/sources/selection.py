"""Which columns of a stream are clustered, which one names the rows, which one holds the time."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kmeander.arguments import list_of_names, one_of
from kmeander.exceptions import ArgumentError, InputError, argument
from kmeander.kmeans.metric import EUCLIDEAN, Metric
from kmeander.preparation import Preparation

UNITS = ("s", "ms", "us", "ns")  # of numbers that are times
MOST_NAMES = 50  # in one message


@dataclass(frozen=True)
class Wanted:
    """What the user said about columns; None and empty mean: not said.

    Parameters
    ----------
    columns : sequence of str, optional
        Those to cluster, or patterns such as ``temp*``; by default all but the others named here.
    exclude : sequence of str
        Those to leave out, or patterns.
    id_column : str, optional
        Names the rows in the output.
    time_column : str, optional
        Says when each row happened.
    weight_column : str, optional
        Says how many points each row stands for.
    text_column : str, optional
        Says what each row is about, for people.
    time_unit : {"s", "ms", "us", "ns"}, optional
        What numbers in the time column count since 1970; by default their size tells.
    rules : Preparation, optional
        How rows are prepared; without it they must be numbers.
    kinds : mapping of str to str
        What columns hold, one of `KINDS`, where an earlier run has found that out.
    metric : Metric
        In which rows must have a place.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id_column: str | None = None
    time_column: str | None = None
    weight_column: str | None = None
    text_column: str | None = None
    time_unit: str | None = None
    rules: Preparation | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    metric: Metric = EUCLIDEAN

    def __post_init__(self) -> None:
        if self.time_unit is not None:
            one_of("time_unit", self.time_unit, UNITS)
            if self.time_column is None:
                raise ArgumentError(
                    f"{argument('time_unit')} says what {argument('time_column')} counts, which "
                    "is not given."
                )
        list_of_names("columns", self.columns)
        list_of_names("exclude", self.exclude)

    def among(
        self, names: Sequence[str], source: str, kinds: Mapping[str, str] | None = None
    ) -> Selection:
        """Return the selection for a source that has the columns `names`.

        Where the source does not say what its columns hold, `kinds` are what its first rows tell.

        Examples
        --------
        >>> Wanted(id_column="key").among(["key", "a", "b"], "x.csv").features
        ('a', 'b')
        """
        special = {
            "id_column": self.id_column,
            "time_column": self.time_column,
            "weight_column": self.weight_column,
            "text_column": self.text_column,
        }
        chosen = _meant(self.columns or (), names, source)
        left_out = _meant(self.exclude, names, source)
        apart = {*left_out, *_meant([name for name in special.values() if name], names, source)}
        features = chosen or [name for name in names if name not in apart]
        there = [name for name in names if name not in left_out]
        for given in (there, self.columns or ()):
            twice = next((name for name in given if list(given).count(name) > 1), None)
            if twice is not None:
                way = f"Name it once in {argument('columns')}."
                if given is there:
                    way = (
                        "Every column needs a name of its own; "
                        f"{argument('exclude', [twice])} leaves columns out."
                    )
                raise InputError(
                    f"column {twice!r} is there more than once in {', '.join(given)!r} of "
                    f"{source}. {way}"
                )
        both = next((name for name in features if name in apart), None)
        if both is not None:
            raise InputError(
                f"column {both!r} cannot be clustered and be left out, the id, the time, the "
                "weight or the text at once. Name it in one place only."
            )
        if not features:
            raise InputError(
                f"{source} has no column left to cluster: it has {', '.join(map(repr, names))}."
            )
        return Selection(
            tuple(features),
            **special,
            time_unit=self.time_unit,
            all_columns=self.columns is None,
            rules=self.rules,
            kinds=self.kinds or kinds or {},
            metric=self.metric,
        )


def _fits(name: str, pattern: str) -> bool:
    """Whether a column is meant: by its name, or by a pattern such as ``temp*``."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def _meant(patterns: Sequence[str], names: Sequence[str], source: str) -> list[str]:
    """Return the columns that are meant, each once, in the order of the patterns.

    Examples
    --------
    >>> _meant(["t*", "a"], ["a", "t1", "t2"], "x.csv")
    ['t1', 't2', 'a']
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = [pattern] if pattern in names else [n for n in names if _fits(n, pattern)]
        if not fitting:
            raise InputError(f"{source} has no column {pattern!r}. It has {_listed(names)}.")
        found |= dict.fromkeys(fitting)
    return list(found)


@dataclass(frozen=True)
class Selection:
    """The columns that are read of a source.

    `all_columns` is true where nobody named the features: another file of the stream must then have
    no others. `rules`, `kinds` and `metric` are as for `Wanted`.
    """

    features: tuple[str, ...]
    id_column: str | None = None
    time_column: str | None = None
    weight_column: str | None = None
    text_column: str | None = None
    time_unit: str | None = None
    all_columns: bool = False
    rules: Preparation | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    metric: Metric = EUCLIDEAN

    @property
    def numeric(self) -> list[str]:
        """The columns that are read as what they hold; others are read as they are."""
        weight = () if self.weight_column is None else (self.weight_column,)
        return [*self.features, *weight]

    @property
    def needed(self) -> list[str]:
        """Every column that is read, each once."""
        special = (self.id_column, self.time_column, self.weight_column, self.text_column)
        return [*self.features, *dict.fromkeys(name for name in special if name is not None)]

    def check(self, names: Sequence[str], wanted: Wanted, source: str, first: str) -> None:
        """Refuse another file of the stream whose columns do not fit the `first`."""
        for name in self.needed:
            if name not in names:
                raise InputError(
                    f"{source} has no column {name!r}, which {first} has. All files of a stream "
                    "need the columns that are read."
                )
        extra = next(
            (
                name
                for name in names
                if name not in self.needed
                and not any(_fits(name, pattern) for pattern in wanted.exclude)
            ),
            None,
        )
        if self.all_columns and extra is not None:
            raise InputError(
                f"{source} has a column {extra!r}, which {first} does not have. Name the columns "
                f"to cluster with {argument('columns', ...)}, or leave this one out with "
                f"{argument('exclude', [extra])}."
            )


def _listed(names: Sequence[str]) -> str:
    """Return names as messages show them: not all of thousands.

    Examples
    --------
    >>> _listed(["a", "b"])
    "'a', 'b'"
    >>> _listed([f"c{number}" for number in range(100)])[-28:]
    "7', 'c48', 'c49' and 50 more"
    """
    shown = ", ".join(map(repr, names[:MOST_NAMES]))
    more = len(names) - MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
