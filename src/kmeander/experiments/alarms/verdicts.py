"""What is promised of alarms, as it was asked and as it was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kmeander.experiments.alarms.cells import CALM_POOLS, drift_after
from kmeander.experiments.alarms.pools import GAUSSIAN
from kmeander.experiments.alarms.streams import LIMIT, NESTED_LIMIT
from kmeander.experiments.alarms.tables import PROMISE, START

Row = dict[str, Any]
Numbers = dict[str, list[Row]]

# Alarmed batches among the first 30 of any stream, on average: in all, and confirmed.
EARLY, EARLY_CONFIRMED = 3.0, 0.3
# New ids per 1000 batches.
IDS = {"lognormal-1.5": 15.0, "far-rows": 2.0}
_NESTED = "day-and-week-season-168"


@dataclass(frozen=True)
class Verdict:
    """One line: what is promised, and whether it was kept."""

    promise: str
    asked: str
    measured: str
    is_kept: bool

    @property
    def word(self) -> str:
        """Yes or no."""
        return "yes" if self.is_kept else "**no**"


def verdicts_of(numbers: Numbers) -> list[Verdict]:
    """Return a verdict for each promise that these numbers say something about."""
    return [
        *_false_alarms(numbers),
        *_early(numbers["alarms"]),
        *_abrupt(numbers["abrupt"]),
        *_power(numbers["power"]),
        *_ids(numbers),
    ]


def _false_alarms(numbers: Numbers) -> Iterator[Verdict]:
    limited = [row for row in numbers["alarms"] if row["limit_per_1000"] == LIMIT]
    if limited:
        rejected = [row for row in limited if row["rejected"]]
        worst = max(limited, key=lambda row: row["alarmed_per_1000"])
        yield Verdict(
            f"alarmed batches per 1000 after the first {START}, each stream that does not change",
            f"at most {LIMIT:g}, not rejected at 1 %",
            f"{len(limited) - len(rejected)} of {len(limited)} streams; "
            f"most: {_rate_of(worst)}"
            + "".join(f"; rejected: {_rate_of(row)}" for row in rejected),
            not rejected,
        )
    for row in numbers["pooled"]:
        which = "all of these together" if row["pooled"] == "all" else "those of independent rows"
        yield Verdict(
            f"the same, {which}",
            f"at most {PROMISE:g}, not rejected at 1 %",
            f"{row['alarmed_per_1000']:.2f} ({row['alarmed']:,} of {row['batches']:,})",
            not row["rejected"],
        )
    for row in numbers["alarms"]:
        if row["stream"] == _NESTED:
            yield Verdict(
                "the same, day and week nested, season of 168 batches given",
                f"at most {NESTED_LIMIT:g}, not rejected at 1 %",
                f"{row['alarmed_per_1000']:.2f}",
                not row["rejected"],
            )


def _rate_of(row: Row) -> str:
    return f"{row['alarmed_per_1000']:.2f} of {row['stream']}"


def _early(rates: Sequence[Row]) -> Iterator[Verdict]:
    # Streams that walk do change.
    still = [row for row in rates if not row["stream"].startswith("walk")]
    if not still:
        return
    for key, words, asked in (
        ("in_first_30", "in all", EARLY),
        ("confirmed_in_first_30", "confirmed", EARLY_CONFIRMED),
    ):
        worst = max(still, key=lambda row: row[key])
        yield Verdict(
            f"alarmed batches among the first {START}, worst stream, {words}",
            f"at most {asked:g}",
            f"{worst[key]:.2f} of {worst['stream']}",
            worst[key] <= asked,
        )


def _abrupt(rows: Sequence[Row]) -> Iterator[Verdict]:
    for every in (50, 10):
        chosen = [
            row
            for row in rows
            if row["stream"].startswith(f"every-{every}-")
            and ("moves" in row["stream"] or row["stream"].endswith("all-new"))
        ]
        if chosen:
            n_reported = sum(row["reported"] for row in chosen)
            n_changes = sum(row["changes"] for row in chosen)
            yield Verdict(
                f"abrupt changes every {every} batches, reported in their batch",
                "all",
                f"{n_reported} of {n_changes}"
                f" (confirmed: {sum(row['reported_confirmed'] for row in chosen)})",
                n_reported == n_changes,
            )


@dataclass(frozen=True)
class _Asked:
    """How much of the runs of a change should be noticed, and how soon."""

    stream: str
    change: str
    within: int
    at_least: float


_POWER = (
    _Asked("K4-d3-n200", "one cluster moves 1 sd", 4, 0.95),
    _Asked("K10-d8-n500", "one cluster moves 1 sd", 4, 0.95),
    _Asked("K4-d3-n200-at-6", "one cluster moves 2 sd", 0, 1.0),
    _Asked("K10-d8-n500-at-6", "one cluster moves 2 sd", 0, 1.0),
    _Asked("K4-d3-n200-at-3", "one cluster moves 4 sd", 0, 1.0),
    _Asked("K10-d8-n500-at-3", "one cluster moves 4 sd", 0, 1.0),
    _Asked("K4-d3-n200", "share x 1.4", 12, 0.95),
    _Asked("K4-d3-n200", "radii + 10 %", 12, 0.95),
    _Asked("K4-d3-n200", "new cluster 5 %", 0, 1.0),
    _Asked("ar-0.9", "one cluster moves 2 sd", 12, 0.8),
)
_NATURAL_POWER, _GAUSSIAN_POWER = 0.95, 0.9


def _power(rows: Sequence[Row]) -> Iterator[Verdict]:
    by_name = {(row["stream"], row["change"]): row for row in rows}
    for asked in _POWER:
        row = by_name.get((asked.stream, asked.change))
        if row is not None:
            yield _noticed(f"{asked.change}, {asked.stream}", [row], asked.within, asked.at_least)
    for calm in CALM_POOLS:
        of_pools = [row for row in rows if row["change"] == drift_after(calm)]
        groups: tuple[tuple[str, Callable[[Row], bool], float], ...] = (
            ("natural pools", lambda row: row["stream"] != GAUSSIAN, _NATURAL_POWER),
            ("Gaussian pool", lambda row: row["stream"] == GAUSSIAN, _GAUSSIAN_POWER),
        )
        for words, is_of, at_least in groups:
            chosen = [row for row in of_pools if is_of(row)]
            if chosen:
                yield _noticed(f"{drift_after(calm)}, {words}", chosen, 12, at_least)


def _noticed(words: str, rows: Sequence[Row], within: int, at_least: float) -> Verdict:
    n_runs = sum(row["runs"] for row in rows)

    def share(key: str) -> float:
        return float(sum(row["runs"] * row[f"{key}_{within}"] for row in rows) / n_runs)

    found = share("within")
    return Verdict(
        f"{words}: noticed {f'within {within} batches' if within else 'at once'}",
        f"at least {at_least:g}",
        f"{found:.3f} ({n_runs} runs; confirmed: {share('confirmed_within'):.3f})",
        found >= at_least,
    )


def _ids(numbers: Numbers) -> Iterator[Verdict]:
    for row in numbers["alarms"]:
        asked = IDS.get(row["stream"], math.inf)
        if row["stream"] in IDS:
            for key, words in (("births", "reported"), ("ids", "in any Step")):
                found = row[f"{key}_per_1000"]
                yield Verdict(
                    f"new ids per 1000 batches, {row['stream']}, {words}",
                    f"at most {asked:g}",
                    f"{found:.1f}",
                    found <= asked,
                )
    (rows,) = numbers["rows"]
    yield Verdict(
        "clusters with a centroid before and after a batch whose row changed, all streams",
        "0",
        f"{rows['rows_changed']:,}",
        rows["rows_changed"] == 0,
    )
