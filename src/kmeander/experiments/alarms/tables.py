"""Records to rates: false alarms per 1000 batches with their test, ids, and power."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import binomtest

from kmeander.events import ALARMS
from kmeander.experiments.alarms.cells import WITHIN
from kmeander.experiments.alarms.changes import ABRUPT, BASES
from kmeander.experiments.alarms.rivals import RIVALS
from kmeander.experiments.alarms.streams import LIMIT, STREAMS

Row = dict[str, Any]

# Of the tables, as `numbers_of` returns them and CSV files are called.
NAMES = ("alarms", "pooled", "power", "abrupt", "rows")
# Batches that are counted apart: the noise of the stream is not known yet.
START = 30
# Alarmed batches per 1000 of all streams with a limit together: the default of `alarm_rate`.
PROMISE = 1.0
# Of the one-sided test that rejects a limit.
LEVEL = 0.01


@dataclass
class _Still:
    """Counts of a stream that does not change; those of batches are of the ones after `START`."""

    seeds: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    error: float = 0.0
    watched: Counter[str] = field(default_factory=Counter)  # batches that each rival has seen

    def add(self, record: Row) -> None:
        self.seeds.add(record["seed"])
        self.counts["rows_changed"] += record["rows_changed"]
        alarmed, confirmed = is_alarmed(record), record["confirmed"] > 0
        if record["batch"] < START:
            self.counts["early"] += alarmed
            self.counts["early_confirmed"] += confirmed
            return
        self.counts["batches"] += 1
        self.counts["alarmed"] += alarmed
        self.counts["alarmed_confirmed"] += confirmed
        for name in (*ALARMS, "new_ids", "births"):
            self.counts[name] += record[name]
        self.error += 0.0 if math.isnan(record["error"]) else record["error"]
        for name in RIVALS:
            if record.get(name) is not None:
                self.watched[name] += 1
                self.counts[name] += record[name]


@dataclass
class _Runs:
    """Of each run of a change, the first batch with an alarm, by who gave it."""

    seeds: set[int] = field(default_factory=set)
    first: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, record: Row) -> None:
        self.seeds.add(record["seed"])
        for name, noticed in _noticed_by(record).items():
            firsts = self.first.setdefault(name, {})
            firsts.setdefault(record["seed"], math.inf)
            if noticed:
                firsts[record["seed"]] = min(firsts[record["seed"]], record["batch"])

    def share(self, name: str, within: int) -> float:
        """Return the share of the runs noticed so soon; NaN where nobody looked."""
        firsts = self.first.get(name, {}).values()
        return sum(first <= within for first in firsts) / len(firsts) if firsts else math.nan


@dataclass
class _Abrupt:
    """Counts of a stream that changes again and again."""

    counts: Counter[str] = field(default_factory=Counter)
    watched: Counter[str] = field(default_factory=Counter)  # changes that each has seen
    seeds: set[int] = field(default_factory=set)

    def add(self, record: Row) -> None:
        self.seeds.add(record["seed"])
        self.counts["rows_changed"] += record["rows_changed"]
        batch, every = record["batch"], ABRUPT[record["stream"]].every
        if batch < every:
            return
        for name, noticed in _noticed_by(record).items():
            if batch % every == 0:
                self.watched[name] += 1
                self.counts[name] += noticed
            else:
                self.counts[f"{name} between"] += noticed


def _noticed_by(record: Row) -> dict[str, bool]:
    noticed = {
        "alarm": is_alarmed(record),
        "confirmed": record["confirmed"] > 0,
        "any": is_alarmed(record) or record["others"] > 0,
    }
    return noticed | {name: record[name] > 0 for name in RIVALS if record.get(name) is not None}


def numbers_of(records: Iterable[Row]) -> dict[str, list[Row]]:
    """Return all numbers, as rows under each of `NAMES`."""
    still: dict[str, _Still] = {}
    runs: dict[tuple[str, str], _Runs] = {}
    abrupt: dict[str, _Abrupt] = {}
    rows_changed = 0
    for record in records:
        name, change = record["stream"], record["change"]
        rows_changed += record["rows_changed"]
        if name in ABRUPT:
            abrupt.setdefault(name, _Abrupt()).add(record)
        elif change:
            runs.setdefault((name, change), _Runs()).add(record)
        else:
            still.setdefault(name, _Still()).add(record)
    rates = [_rates(name, still[name]) for name in _ordered(still, STREAMS)]
    return {
        "alarms": rates,
        "pooled": pooled(rates),
        "power": [_power(*key, runs[key]) for key in _ordered_pairs(runs)],
        "abrupt": [_again_and_again(name, abrupt[name]) for name in ABRUPT if name in abrupt],
        "rows": [{"rows_changed": rows_changed}],
    }


def _ordered(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return those known in their order, then the others, which are pools."""
    names, first = list(found), list(known)
    return [name for name in first if name in names] + [n for n in names if n not in first]


def _ordered_pairs(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = list(found)
    order = _ordered(dict.fromkeys(name for name, _ in pairs), BASES)
    return sorted(pairs, key=lambda pair: order.index(pair[0]))


def limit_of(name: str) -> float | None:
    """Return how many batches per 1000 of a stream, or of a pool, may be alarmed."""
    return STREAMS[name].limit if name in STREAMS else LIMIT


def _rates(name: str, still: _Still) -> Row:
    counts, n_seeds = still.counts, len(still.seeds)
    n_batches = counts["batches"]
    return {
        "stream": name,
        "independent": int(name not in STREAMS or STREAMS[name].independent),
        "seeds": n_seeds,
        **rate(counts["alarmed"], n_batches, limit_of(name)),
        "in_first_30": counts["early"] / n_seeds,
        "confirmed_in_first_30": counts["early_confirmed"] / n_seeds,
        "ids_per_1000": per_1000(counts["new_ids"], n_batches),
        "births_per_1000": per_1000(counts["births"], n_batches),
        "rows_changed": counts["rows_changed"],
        "mean_error": still.error / max(n_batches, 1),
        **{f"{kind}_per_1000": per_1000(counts[kind], n_batches) for kind in ALARMS},
        **{f"{key}_per_1000": per_1000(counts[key], still.watched[key]) for key in RIVALS},
    }


def rate(n_alarmed: int, n_batches: int, limit: float | None) -> Row:
    """Return a rate per 1000 batches, and whether a binomial test rejects that it is in the limit.

    The test takes batches as independent of one another. `upper_99` is the largest rate that it
    would not reject as too large, the one-sided bound of Clopper and Pearson. Without a limit
    nothing is rejected.

    Examples
    --------
    >>> found = rate(12, 3000, limit=1.5)
    >>> found["alarmed_per_1000"], found["rejected"]
    (4.0, 1)
    """
    tested = LIMIT if limit is None else limit
    test = binomtest(n_alarmed, max(n_batches, 1), tested / 1000, alternative="greater")
    below = binomtest(n_alarmed, max(n_batches, 1), tested / 1000, alternative="less")
    return {
        "batches": n_batches,
        "alarmed": n_alarmed,
        "alarmed_per_1000": per_1000(n_alarmed, n_batches),
        "limit_per_1000": math.nan if limit is None else limit,
        "p": math.nan if limit is None else float(test.pvalue),
        "rejected": int(limit is not None and test.pvalue < LEVEL),
        "upper_99": 1000 * float(below.proportion_ci(1 - LEVEL).high),
    }


def pooled(rates: Sequence[Row]) -> list[Row]:
    """Return a row for all streams with a limit together, and one for independent rows alone."""
    with_limit = [row for row in rates if not math.isnan(row["limit_per_1000"])]
    groups = {
        "all": with_limit,
        "independent": [row for row in with_limit if row["independent"]],
    }
    return [
        {
            "pooled": name,
            "streams": len(rows),
            **rate(
                sum(row["alarmed"] for row in rows), sum(row["batches"] for row in rows), PROMISE
            ),
        }
        for name, rows in groups.items()
        if rows
    ]


def _power(stream: str, change: str, runs: _Runs) -> Row:
    """Return the share of the runs that noticed a change, by batches since, and who did.

    `within_4` has the runs with an alarm in the batch of the change or in one of the next four,
    `confirmed_within_4` with a confirmed one, `any_within_4` with an event of any kind.
    """
    named = {"within": "alarm", "confirmed_within": "confirmed", "any_within": "any"}
    named |= {f"{key}_within": key for key in RIVALS}
    return {
        "stream": stream,
        "change": change,
        "runs": len(runs.seeds),
        **{f"{key}_{t}": runs.share(name, t) for key, name in named.items() for t in WITHIN},
    }


def _again_and_again(stream: str, abrupt: _Abrupt) -> Row:
    counts, watched = abrupt.counts, abrupt.watched
    reported: Row = {
        "stream": stream,
        "seeds": len(abrupt.seeds),
        "changes": watched["alarm"],
        "reported": counts["alarm"],
        "reported_confirmed": counts["confirmed"],
        "between": counts["alarm between"],
        "rows_changed": counts["rows_changed"],
    }
    for key in RIVALS:
        reported |= {
            f"{key}_changes": watched[key],
            f"{key}_reported": counts[key],
            f"{key}_between": counts[f"{key} between"],
        }
    return reported


def is_alarmed(record: Row) -> bool:
    """Return whether the batch has an event that is a test."""
    return any(record[kind] > 0 for kind in ALARMS)


def per_1000(count: int, n_batches: int) -> float:
    """Return a count per 1000 batches; NaN where there were none."""
    return 1000 * count / n_batches if n_batches else math.nan
