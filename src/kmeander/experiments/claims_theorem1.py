"""Claims of section II: the surrogate error approaches the SKM error, as Theorem 1 says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmeander.experiments.claims import Claim

Row = dict[str, Any]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return the claims of section II, measured over all datasets of Figure 1."""
    return [
        _tends_to_zero(rows),
        _follows_theory(rows),
        _stays_within(rows, "95%"),
        _stays_within(rows, "68%"),
        _narrower_with_size(rows),
        _faster_with_small_rho(rows),
        _broader_with_small_rho(rows),
        _t_max_is_enough(rows),
    ]


def _values(rows: Sequence[Row], key: str, panel: str, t: int) -> Any:
    return np.array([row[key] for row in rows if row["panel"] == panel and row["since_drift"] == t])


def _spread(rows: Sequence[Row], panel: str, t: int) -> Any:
    return _values(rows, "q3", panel, t) - _values(rows, "q1", panel, t)


def _tends_to_zero(rows: Sequence[Row]) -> Claim:
    first = float(np.median(np.abs(_values(rows, "median", "a", 1))))
    last = float(np.median(np.abs(_values(rows, "median", "a", 20))))
    return Claim(
        "II.1",
        "The difference of SKM and surrogate error tends to zero as T increases.",
        f"its median in (a) is {first:.3f} E at T = 1 and {last:.4f} E at T = 20 "
        "(asked: less than a tenth)",
        last < first / 10,
    )


def _follows_theory(rows: Sequence[Row]) -> Claim:
    # The mean of the repetitions, in units of what the median repetition is off by.
    off = [abs(row["mean"] - row["expected"]) for row in rows]
    worst = float(np.max(off))
    typical = float(np.median(off))
    return Claim(
        "II.2",
        "Its expected value is rho^T * epsilon * E, which shrinks exponentially.",
        f"the mean of the repetitions is off by {typical:.4f} E in the median and {worst:.4f} E at "
        "most (asked: at most 0.05 E)",
        worst <= 0.05,
        "the squared distances of some dataset have such a heavy tail that a mean over the "
        "repetitions has not settled.",
    )


def _stays_within(rows: Sequence[Row], share: str) -> Claim:
    within = np.array([row[f"within_{share}"] for row in rows])
    least = float(share.rstrip("%")) / 100
    return Claim(
        f"II.{3 if share == '95%' else 4}",
        f"With probability {least:.2f} the difference lies within gamma of that (Theorem 1).",
        f"it did in {within.mean():.1%} of the cases, and in {within.min():.0%} at the worst T "
        f"(asked: at least {least:.0%})",
        bool(within.min() >= least),
    )


def _narrower_with_size(rows: Sequence[Row]) -> Claim:
    band = float(np.mean(_values(rows, "band_95%", "b", 1) / _values(rows, "band_95%", "a", 1)))
    ratios = [_spread(rows, "b", t) / _spread(rows, "a", t) for t in range(1, 21)]
    spread = float(np.median(np.concatenate(ratios)))
    return Claim(
        "II.5",
        "The bounds become narrower as batches grow, like 1 / sqrt(N).",
        f"with four times the points gamma is {band:.2f} times as wide and the box of the "
        f"measured differences {spread:.2f} times, in the median (asked: between 0.35 and 0.7)",
        0.35 <= spread <= 0.7,
    )


def _faster_with_small_rho(rows: Sequence[Row]) -> Claim:
    small = float(np.median(np.abs(_values(rows, "mean", "a", 5))))
    large = float(np.median(np.abs(_values(rows, "mean", "c", 5))))
    return Claim(
        "II.6",
        "A lower rho makes the difference tend to zero faster: the bias falls.",
        f"after 5 batches it is {small:.3f} E with rho 0.676 and {large:.3f} E with rho 0.822",
        small < large,
    )


def _broader_with_small_rho(rows: Sequence[Row]) -> Claim:
    band = float(np.mean(_values(rows, "band_95%", "a", 20) / _values(rows, "band_95%", "c", 20)))
    ratios = [_spread(rows, "a", t) / _spread(rows, "c", t) for t in range(16, 21)]
    spread = float(np.median(np.concatenate(ratios)))
    return Claim(
        "II.7",
        "A lower rho implies broader bounds: the variance of the surrogate error grows.",
        f"over T = 16 to 20, gamma at rho 0.676 is {band:.2f} times that at 0.822 and the box of "
        f"the measured differences {spread:.2f} times, in the median",
        spread > 1 and band > 1,
    )


def _t_max_is_enough(rows: Sequence[Row]) -> Claim:
    worst = max(row["cut_at_t_max"] for row in rows)
    return Claim(
        "II.8",
        "Keeping the last T_max batches is enough: older ones weigh next to nothing.",
        f"with T_max batches instead of all the surrogate error changes by {worst:.4f} E at most "
        "(asked: at most 0.01 times 1 + epsilon)",
        worst <= 0.015,
    )
