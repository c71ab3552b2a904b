"""What kmeander's defaults shall reach, measured on the run at hand: yes, no, or not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kmeander.experiments.beyond.contestants import DEFAULT, MINI_BATCH

Row = dict[str, Any]

MEAN, MEDIAN = 0.01, 0.005
ABOVE_PSKM, SHARE_NEAR = 0.01, 0.90
MANY_CLUSTERS, SHARE_BELOW = 25, 0.75
BATCHES_PER_ALARM, COST_AT_REST = 200, 0.005


@dataclass(frozen=True)
class Goal:
    """One goal; `met` is None where the run has nothing to measure it on."""

    says: str
    measured: str
    met: bool | None

    @property
    def verdict(self) -> str:
        """Whether it is met, in a word."""
        return "not measured" if self.met is None else "yes" if self.met else "no"


def goals(
    four: Sequence[Row],
    beside: Sequence[Row],
    costs: Sequence[Row],
    order: Sequence[Row],
    rest: Sequence[Row],
) -> list[Goal]:
    """Return all goals, measured on the rows of `tables`."""
    return [
        _errors(four, "mean", MEAN),
        _errors(four, "median", MEDIAN),
        _near_pskm(beside),
        _below_pskm(beside),
        _distances(costs),
        *(_in_order(order, other) for other in ("HI", "PC", MINI_BATCH)),
        _false_alarms(rest),
        _cost_at_rest(rest),
    ]


def _errors(four: Sequence[Row], which: str, most: float) -> Goal:
    values = {row["since_drift"]: row[which] for row in four if row["method"] == DEFAULT}
    listed = ", ".join(f"{value:.4f} at T = {t}" for t, value in values.items())
    return Goal(
        f"The {which} SKM error above the best of HI, WI, PSKM and the default is at most {most:g} "
        "at every T",
        listed,
        all(value <= most for value in values.values()),
    )


def _near_pskm(beside: Sequence[Row]) -> Goal:
    rows = [row for row in beside if row["method"] == DEFAULT]
    share = sum(row["n"] * row["share_within_1%"] for row in rows) / sum(row["n"] for row in rows)
    return Goal(
        f"At most {ABOVE_PSKM:.0%} above PSKM in {SHARE_NEAR:.0%} of the batches",
        f"in {share:.1%}",
        share >= SHARE_NEAR,
    )


def _below_pskm(beside: Sequence[Row]) -> Goal:
    says = f"With K = {MANY_CLUSTERS}, below PSKM in {SHARE_BELOW:.0%} of the batches from T = 2 on"
    shares = [
        row["share_below_from_T=2"]
        for row in beside
        if row["method"] == DEFAULT and row["n_clusters"] == MANY_CLUSTERS
    ]
    if not shares:
        return Goal(says, f"K = {MANY_CLUSTERS} is not among the settings", None)
    return Goal(says, f"in {shares[0]:.1%}", shares[0] >= SHARE_BELOW)


def _distances(costs: Sequence[Row]) -> Goal:
    (row,) = (row for row in costs if row["method"] == DEFAULT)
    share, mean = row["distances_of_plain_HI"], row["mean_share_of_plain_HI"]
    return Goal(
        "It computes no more distances than plain HI counts",
        f"{share:.2f} of them in all, {mean:.2f} per batch in the mean",
        max(share, mean) <= 1,
    )


def _in_order(order: Sequence[Row], other: str) -> Goal:
    says = f"In file order, a lower mean prequential error than {other}"
    errors: dict[tuple[str, int], dict[str, float]] = {}
    for row in order:
        place = (row["dataset"], row["n_clusters"])
        errors.setdefault(place, {})[row["method"]] = row["prequential_error"]
    if not errors:
        return Goal(says, "no recording is among the datasets", None)
    listed = "; ".join(
        f"{dataset} K = {n_clusters}: {here[DEFAULT]:.3f} against {here[other]:.3f}"
        for (dataset, n_clusters), here in errors.items()
    )
    return Goal(says, listed, all(here[DEFAULT] < here[other] for here in errors.values()))


def _false_alarms(rest: Sequence[Row]) -> Goal:
    alarms, batches = (sum(row[name] for row in rest) for name in ("false_alarms", "n"))
    return Goal(
        f"Without drift, at most one false alarm in {BATCHES_PER_ALARM} batches",
        f"{alarms} in {batches:,}",
        alarms * BATCHES_PER_ALARM <= batches,
    )


def _cost_at_rest(rest: Sequence[Row]) -> Goal:
    mean = sum(row["skm_above_fixed"] for row in rest) / len(rest)
    worst = max(rest, key=lambda row: row["skm_above_fixed"])
    return Goal(
        f"Without drift, an SKM error within {COST_AT_REST:.1%} of that with fixed forgetting, on "
        "every stream",
        f"{mean:+.3%} in the mean; the worst is {worst['dataset']}, K = {worst['n_clusters']}: "
        f"{worst['skm_above_fixed']:+.3%}",
        worst["skm_above_fixed"] <= COST_AT_REST,
    )
