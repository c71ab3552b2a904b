"""What the first rows of a stream hold, column by column, and what to be warned of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError, argument
from kmeander.preparation import ColumnPlan, FittedPreparation, Preparation, Rows
from kmeander.preparation.plan import plans_for

ENOUGH = 50  # rows below which nothing is judged
MOST_LEVELS = 5  # that are named
_ALONE = 0.9  # the share of the variance from which one column decides
_SAME = 1 - 1e-6  # the correlation from which two columns say the same
_FAR = 20.0  # times the range of the middle 90 %


@dataclass(frozen=True)
class Warned:
    """Something that spoils clusters, and the way out.

    Parameters
    ----------
    kind : {"identifier", "dominant", "constant", "empty", "twin", "tail", "text"}
    columns : tuple of str
    text : str
        A sentence, without its full stop.
    way_out : str
        What to do, as whoever reads it writes it.
    """

    kind: str
    columns: tuple[str, ...]
    text: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.text} ({self.way_out})."


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "category", "vector", "time", "nothing"}
    n_missing, n_distinct : int
    low, median, high : float, optional
        Of numbers.
    levels : dict of str to int
        The most frequent words, and how often each comes.
    share : float, optional
        Of the variance that K-means would see of the columns as they are.
    prepared_share : float, optional
        Of the variance that it sees of prepared columns.
    done : str
        What is done with the column, and why.
    """

    name: str
    kind: str
    n_missing: int
    n_distinct: int
    low: float | None = None
    median: float | None = None
    high: float | None = None
    levels: dict[str, int] = field(default_factory=dict)
    share: float | None = None
    prepared_share: float | None = None
    done: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def profiled(rows: Rows, rules: Preparation | None) -> list[ColumnProfile]:
    """Return what each column holds, and what `rules` do with it.

    Examples
    --------
    >>> rows = Rows.of_numbers(np.array([[1.0, 100.0], [2.0, 300.0]]), ["a", "b"])
    >>> [(found.name, round(found.share, 4)) for found in profiled(rows, None)]
    [('a', 0.0), ('b', 1.0)]
    """
    shares = _shares(rows)
    plans = plans_for(rows, rules or Preparation(scale="none", identifiers="keep"))
    prepared = _prepared_shares(rows, rules) if rules is not None else {}
    found = []
    for column, plan in zip(rows.columns, plans, strict=True):
        values = rows.values[:, rows.places[column.name]]
        present = values[~np.isnan(values).any(axis=1)]
        facts: dict[str, Any] = {}
        if column.kind == "category":
            codes, counts = np.unique(present[:, 0].astype(np.intp), return_counts=True)
            order = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
            levels = rows.levels[column.name]
            facts["levels"] = {levels[codes[place]]: int(counts[place]) for place in order}
        elif column.kind in ("number", "vector") and len(present):
            low, median, high = np.quantile(present, [0.0, 0.5, 1.0]).tolist()
            facts |= {"low": low, "median": median, "high": high}
        found.append(
            ColumnProfile(
                column.name,
                column.kind,
                len(values) - len(present),
                len(np.unique(present, axis=0)),
                share=shares.get(column.name),
                prepared_share=prepared.get(column.name),
                done="taken as it is" if rules is None else _done(plan),
                **facts,
            )
        )
    return found


def _done(plan: ColumnPlan) -> str:
    """Return what is done with a column, and why, in a few words."""
    did = {
        "scale": "scaled",
        "limits": "scaled by its limits",
        "as is": "taken as it is",
        "one-hot": f"{len(plan.outputs)} columns, one a level",
        "exclude": "left out",
    }[plan.action]
    return f"{did}: {plan.why}" if plan.why else did


def _shares(rows: Rows) -> dict[str, float]:
    """Return the share of each column in the variance of those that are numbers."""
    variances = {
        column.name: float(np.nansum(np.nanvar(_scaled_down(_values(rows, column.name)), axis=0)))
        for column in rows.columns
        if column.kind in ("number", "boolean", "vector") and _some(rows, column.name)
    }
    total = sum(variances.values())
    return {name: variance / total for name, variance in variances.items()} if total else {}


def _prepared_shares(rows: Rows, rules: Preparation) -> dict[str, float]:
    try:
        fitted = FittedPreparation.learned(rules, rows)
        points = fitted.prepared(rows).points
    except InputError:  # the run says it, with the row
        return {}
    variances = points.astype(np.float64).var(axis=0)
    total, begin, shares = float(variances.sum()), 0, {}
    for plan in fitted.plans:
        part = variances[begin : begin + len(plan.outputs)]
        begin += len(plan.outputs)
        shares[plan.name] = float(part.sum()) / total if total else 0.0
    return shares


def _values(rows: Rows, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = rows.values[:, rows.places[name]].astype(np.float64)
    return values


def _some(rows: Rows, name: str) -> bool:
    return bool((~np.isnan(_values(rows, name))).all(axis=1).any())


def _scaled_down(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values whose squares can be added without overflow."""
    return np.where(np.abs(values) < 1e100, values, np.nan)


def warnings_of(
    rows: Rows,
    rules: Preparation | None,
    plans: Sequence[ColumnPlan] | None = None,
    *,
    may_exclude: bool = True,
) -> list[Warned]:
    """Return what to be warned of in the first rows of a stream.

    Parameters
    ----------
    rows : Rows
    rules : Preparation, optional
        How they are prepared; without it they are learned as they are.
    plans : sequence of ColumnPlan, optional
        What is done with them, where fewer rows have decided that.
    may_exclude : bool
        Whether columns can be left out: none was asked for by name.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = Rows.of_numbers(rng.normal(size=(60, 2)) * [1, 1000], ["a", "b"])
    >>> print(warnings_of(rows, None)[0])
    column 'b' makes up 100.0 % of the variance, so it alone decides the clusters \
(prepare="auto" puts columns on one scale).
    """
    if len(rows) < ENOUGH:
        return []
    exclude = _exclude if may_exclude else _leave_out
    found = _identifiers(rows, rules, plans, exclude)
    apart = {name for warned in found for name in warned.columns}
    names = [
        column.name
        for column in rows.columns
        if column.kind == "number" and column.name not in apart and _some(rows, column.name)
    ]
    found += _still(rows, names, exclude)
    apart |= {name for warned in found for name in warned.columns}
    names = [name for name in names if name not in apart]
    if rules is None or rules.scale == "none":
        found += _dominant(rows, names)
    found += _twins(rows, names, exclude)
    return found + _tails(rows, names, exclude)


def _exclude(*names: str) -> str:
    return argument("exclude", list(names))


def _leave_out(*names: str) -> str:
    return f"{argument('columns', ...)} without {' and '.join(map(repr, names))}"


def _identifiers(
    rows: Rows,
    rules: Preparation | None,
    decided: Sequence[ColumnPlan] | None,
    exclude: Callable[..., str],
) -> list[Warned]:
    found = []
    try:
        plans = plans_for(rows, rules or Preparation())
    except InputError:  # nothing would be left; the run says it
        return []
    for plan, real in zip(plans, decided or plans, strict=True):
        if "exclude" not in (plan.action, real.action):
            continue
        text = f"column {plan.name!r}: {plan.why}"
        way = f"{exclude(plan.name)} leaves it out"
        if real.action != "exclude":
            text = (
                f"column {plan.name!r} is clustered, though {plan.why}: the first batch was too "
                "small to tell"
            )
        elif rules is not None:
            text, way = real.words().removesuffix("."), _way_with(real)
        found.append(Warned("identifier", (plan.name,), text, way))
    return found


def _way_with(plan: ColumnPlan) -> str:
    """Return what to do about a column that a preparation leaves out."""
    if plan.kind == "time":
        return f"{argument('time_column', plan.name)} says when rows happened"
    if plan.kind == "nothing":
        return f"{argument('exclude', [plan.name])} says so"
    return f"a preparation with {plan.way_to_keep()} keeps it"


def _still(rows: Rows, names: Sequence[str], exclude: Callable[..., str]) -> list[Warned]:
    still = [name for name in names if np.nanmin(v := _values(rows, name)) == np.nanmax(v)]
    if not still:
        return []
    shown = ", ".join(map(repr, still))
    what = f"column {shown} holds" if len(still) == 1 else f"columns {shown} hold"
    value = "one value" if len(still) == 1 else "one value each"
    way = f"{exclude(*still)} leaves {'it' if len(still) == 1 else 'them'} out"
    return [Warned("constant", tuple(still), f"{what} {value} so far, which tells no cluster", way)]


def _dominant(rows: Rows, names: Sequence[str]) -> list[Warned]:
    shares = _shares(rows)
    if len(names) < 2:
        return []
    name = max(names, key=lambda name: shares.get(name, 0.0))
    if shares.get(name, 0.0) < _ALONE:
        return []
    said = f"column {name!r} makes up {shares[name]:.1%} of the variance".replace("%", " %")
    way = f"{argument('prepare', 'auto')} puts columns on one scale"
    return [Warned("dominant", (name,), f"{said}, so it alone decides the clusters", way)]


def _twins(rows: Rows, names: Sequence[str], exclude: Callable[..., str]) -> list[Warned]:
    """Warn of columns that are others in another unit."""
    columns = np.column_stack([_values(rows, name) for name in names]) if names else None
    if columns is None or len(names) < 2:
        return []
    whole = columns[~np.isnan(columns).any(axis=1)]
    if len(whole) < ENOUGH:
        return []
    spread = whole.std(axis=0)
    varied = np.flatnonzero(spread > 1e-12 * np.abs(whole).max(axis=0))
    if len(varied) < 2:
        return []
    standard = (whole[:, varied] - whole[:, varied].mean(axis=0)) / spread[varied]
    alike = np.abs(standard.T @ standard) / len(whole) > _SAME
    found, taken = [], set()
    for place in range(len(varied)):
        others = [other for other in np.flatnonzero(alike[place]).tolist() if other > place]
        others = [other for other in others if other not in taken]
        if place in taken or not others:
            continue
        taken |= set(others)
        first, same = names[varied[place]], [names[varied[other]] for other in others]
        shown = " and ".join(map(repr, [first, *same]))
        found.append(
            Warned(
                "twin",
                (first, *same),
                f"columns {shown} say the same, which counts {len(same) + 1} times",
                f"{exclude(*same)} leaves {'it' if len(same) == 1 else 'them'} out",
            )
        )
    return found


def _tails(rows: Rows, names: Sequence[str], exclude: Callable[..., str]) -> list[Warned]:
    """Warn of columns in which a few values are far from all others."""
    found = []
    for name in names:
        values = _values(rows, name)
        values = values[~np.isnan(values)]
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
        farthest = float(values[np.argmax(np.abs(values - median))])
        if high > low and abs(farthest - median) > _FAR * (high - low):
            said = (
                f"column {name!r} has values up to {farthest:g}, where 90 % lie between {low:g} "
                f"and {high:g}; a few such rows can take a cluster for themselves"
            )
            way = f"take its logarithm first, or {exclude(name)}"
            found.append(Warned("tail", (name,), said, way))
    return found
