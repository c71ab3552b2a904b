"""Events per batch to rates: false alarms per 1000 batches with their test, and power."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scipy.stats import binomtest

from kmeander.experiments.alarms.measure import ALARMS, WITHIN
from kmeander.experiments.alarms.streams import STREAMS

Row = dict[str, Any]

# Batches that are counted apart: the baseline is not known yet.
START = 30
# Alarmed batches per 1000: what each stream may have, and what is promised on independent rows.
LIMIT, PROMISE = 1.5, 1.0
# Of the one-sided test that rejects a limit.
LEVEL = 0.01


def alarm_rates(records: Iterable[Row]) -> list[Row]:
    """Return a row per stream, in the order of `STREAMS`.

    A batch is alarmed if it has at least one drift, moved, grew or shrank. Rates are those after
    the first 30 batches; `in_first_30` is the number of alarmed batches there, per seed.
    """
    of_stream: dict[str, list[Row]] = {}
    for record in records:
        of_stream.setdefault(record["stream"], []).append(record)
    return [_rates(name, of_stream[name]) for name in STREAMS if name in of_stream]


def _rates(name: str, records: Sequence[Row]) -> Row:
    later = [record for record in records if record["batch"] >= START]
    n_seeds = len({record["seed"] for record in records})
    early = sum(map(is_alarmed, records)) - sum(map(is_alarmed, later))
    return {
        "stream": name,
        "independent": int(STREAMS[name].independent),
        "seeds": n_seeds,
        **rate(sum(map(is_alarmed, later)), len(later), LIMIT),
        "in_first_30": early / n_seeds,
        "ids_per_1000": per_1000(sum(record["new_ids"] for record in later), len(later)),
        **{
            f"{kind}_per_1000": per_1000(sum(record[kind] for record in later), len(later))
            for kind in ALARMS
        },
    }


def rate(n_alarmed: int, n_batches: int, limit: float) -> Row:
    """Return a rate per 1000 batches, and whether a binomial test rejects that it is in the limit.

    The test takes batches as independent of one another. `upper_99` is the largest rate that it
    would not reject as too large, the one-sided bound of Clopper and Pearson.

    Examples
    --------
    >>> found = rate(12, 3000, limit=1.5)
    >>> found["alarmed_per_1000"], found["rejected"]
    (4.0, 1)
    """
    test = binomtest(n_alarmed, n_batches, limit / 1000, alternative="greater")
    below = binomtest(n_alarmed, n_batches, limit / 1000, alternative="less")
    return {
        "batches": n_batches,
        "alarmed": n_alarmed,
        "alarmed_per_1000": per_1000(n_alarmed, n_batches),
        "limit_per_1000": limit,
        "p": float(test.pvalue),
        "rejected": int(test.pvalue < LEVEL),
        "upper_99": 1000 * float(below.proportion_ci(1 - LEVEL).high),
    }


def pooled(rates: Sequence[Row]) -> list[Row]:
    """Return one row: all streams of independent rows together, against the promise."""
    chosen = [row for row in rates if row["independent"]]
    if not chosen:
        return []
    n_alarmed = sum(row["alarmed"] for row in chosen)
    n_batches = sum(row["batches"] for row in chosen)
    return [{"streams": len(chosen), **rate(n_alarmed, n_batches, PROMISE)}]


def power(records: Iterable[Row]) -> list[Row]:
    """Return a row per stream and change: share of the runs that noticed it.

    `within_4` has the runs with an event of any kind in the batch of the change or in one of the
    next four, `alarmed_within_4` the runs with a drift, moved, grew or shrank there.
    """
    runs: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for record in records:
        of_change = runs.setdefault((record["stream"], record["change"]), {})
        of_change.setdefault(record["seed"], []).append(record)
    return [
        {
            "stream": stream,
            "change": change,
            "runs": len(of_change),
            **{f"within_{t}": _noticed(of_change.values(), t, any_kind=True) for t in WITHIN},
            **{
                f"alarmed_within_{t}": _noticed(of_change.values(), t, any_kind=False)
                for t in WITHIN
            },
        }
        for (stream, change), of_change in runs.items()
    ]


def _noticed(runs: Iterable[Sequence[Row]], within: int, *, any_kind: bool) -> float:
    noticed = [
        any(
            is_alarmed(record) or (any_kind and record["others"] > 0)
            for record in run
            if record["batch"] <= within
        )
        for run in runs
    ]
    return sum(noticed) / len(noticed)


def is_alarmed(record: Row) -> bool:
    """Return whether the batch has an event that is a test."""
    return any(record[kind] > 0 for kind in ALARMS)


def per_1000(count: int, n_batches: int) -> float:
    """Return a count per 1000 batches."""
    return 1000 * count / n_batches
