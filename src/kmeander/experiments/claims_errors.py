"""Claims of sections III and IV-B: which start has, and ends with, which surrogate error."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from kmeander.experiments.claims import (
    CONVERGED,
    INITIAL,
    NEAR_ZERO,
    Claim,
    boxes_of,
    in_words,
    medians_of,
    name_of,
    settings_of,
)
from kmeander.experiments.protocol import INITS, METHODS
from kmeander.experiments.tables import Steps
from kmeander.scores import Box


def initialisation_claims(steps: Steps) -> list[Claim]:
    """Return the claims of section III."""
    hi = METHODS.index("HI")
    bound, start = (steps.columns[name][:, hi] for name in ("theorem2_bound", "initial_error"))
    held = start <= bound * (1 + 1e-9)
    slack = float(np.median(bound / start - 1))
    last = steps.shown[-1]
    at_drift = medians_of(steps, CONVERGED, since_drift=1)
    later = medians_of(steps, CONVERGED, since_drift=last)
    start_drift = medians_of(steps, INITIAL, since_drift=1)
    start_later = medians_of(steps, INITIAL, since_drift=last)
    return [
        Claim(
            "III.1",
            "The surrogate error is bounded by f + const (Theorem 2), for the weighted means of "
            "Theorem 3 as for any centroids.",
            f"HI's initial error stayed below its bound at {held.mean():.1%} of the batches, by "
            f"{slack:.1%} in the median",
            bool(held.all()),
        ),
        Claim(
            "III.2",
            "CC adapts rapidly when a drift occurs, PC does not.",
            f"initial surrogate error at T = 1, medians: {in_words(start_drift, ('CC', 'PC'))}",
            start_drift["CC"] < start_drift["PC"],
        ),
        Claim(
            "III.3",
            "CC ignores the past, a waste when no drift has occurred for long.",
            f"at T = {last} CC's medians are {start_later['CC']:.3f} at the start and "
            f"{later['CC']:.3f} converged, PC's {start_later['PC']:.3f} and {later['PC']:.3f}; at "
            f"T = 1 converged {in_words(at_drift, ('CC', 'PC'))}",
            later["CC"] > later["PC"] and start_later["CC"] > start_later["PC"],
        ),
    ]


def error_claims(steps: Steps) -> list[Claim]:
    """Return the claims of section IV-B on the surrogate error."""
    return [
        _hi_wi_start_best(steps),
        _pc_poor_at_drift(steps),
        _cc_gains_with_epsilon(steps),
        _pc_starts_best_later(steps),
        _hi_wi_converge_best(steps),
        _hi_near_zero(steps),
        _wi_starts_hi_ends_lower(steps),
        _pc_varies(steps),
    ]


def _hi_wi_start_best(steps: Steps) -> Claim:
    exceptions = []
    for where in settings_of(steps):
        found = medians_of(steps, INITIAL, since_drift=1, **where)
        if max(found["HI"], found["WI"]) >= min(found["PC"], found["CC"]):
            exceptions.append(name_of(where))
    overall = medians_of(steps, INITIAL, since_drift=1)
    n_settings = len(settings_of(steps))
    return Claim(
        "IV.1",
        "When a drift occurs HI and WI start with a lower surrogate error than PC and CC, for "
        "every epsilon and K.",
        f"true of the medians in {n_settings - len(exceptions)} of {n_settings} settings; over "
        f"all, {in_words(overall, INITS)}",
        not exceptions,
        f"not so for {'; '.join(exceptions)}.",
    )


def _pc_poor_at_drift(steps: Steps) -> Claim:
    found = medians_of(steps, INITIAL, since_drift=1)
    return Claim(
        "IV.2",
        "When a drift occurs PC performs poorly.",
        f"it starts {found['PC']:.0%} above the best in the median, more than "
        f"{in_words(found, ('CC', 'WI', 'HI'))}",
        found["PC"] == max(found.values()),
    )


def _cc_gains_with_epsilon(steps: Steps) -> Claim:
    shares, edges = [], []
    for epsilon in steps.epsilons:
        values = steps.scores(INITIAL, since_drift=1, epsilon=epsilon)
        shares.append(float((values["CC"] < values["PC"]).mean()))
        edges.append(Box.of(values["PC"]).median - Box.of(values["CC"]).median)
    rising = all(a <= b for a, b in itertools.pairwise(edges))
    listed = ", ".join(
        f"{share:.0%} (medians {edge:+.3f} apart) at epsilon = {epsilon:g}"
        for share, edge, epsilon in zip(shares, edges, steps.epsilons, strict=True)
    )
    return Claim(
        "IV.3",
        "CC starts better than PC when a drift occurs, the more so the larger epsilon (and the "
        "smaller rho).",
        f"CC is the better of the two in {listed}",
        rising and edges[-1] > 0,
        "the gap does not grow with every step of epsilon.",
    )


def _pc_starts_best_later(steps: Steps) -> Claim:
    times = [t for t in steps.shown if t >= 4]
    found = {t: medians_of(steps, INITIAL, since_drift=t) for t in times}
    listed = "; ".join(f"T = {t}: {in_words(found[t], INITS)}" for t in times)
    return Claim(
        "IV.4",
        "As new batches arrive PC obtains the best initial surrogate error.",
        f"medians at {listed}",
        all(found[t]["PC"] == min(found[t].values()) for t in times),
    )


def _hi_wi_converge_best(steps: Steps) -> Claim:
    found = {t: medians_of(steps, CONVERGED, since_drift=t) for t in steps.shown}
    broken = [
        t for t in steps.shown
        if max(found[t]["HI"], found[t]["WI"]) > min(found[t]["PC"], found[t]["CC"])
    ]  # fmt: skip
    listed = "; ".join(f"T = {t}: {in_words(found[t], INITS)}" for t in steps.shown)
    start = {t: medians_of(steps, INITIAL, since_drift=t) for t in broken}
    worse = "; ".join(
        f"at T = {t} WI starts at {start[t]['WI']:.3f} and PC at {start[t]['PC']:.3f}, but they "
        f"end at {found[t]['WI']:.3f} and {found[t]['PC']:.3f} (HI at {found[t]['HI']:.3f})"
        for t in broken
    )
    return Claim(
        "IV.5",
        "HI and WI converge to lower surrogate errors than PC and CC.",
        f"medians at {listed}",
        not broken,
        f"{worse}. A lower start is no lower end: WI clusters centroids without looking at the "
        "points, and where two clusters come to share one centroid Lloyd does not part them.",
    )


def _hi_near_zero(steps: Steps) -> Claim:
    worst, place, n_above, n_all = 0.0, "", 0, 0
    for where in settings_of(steps):
        for t in steps.shown:
            median = medians_of(steps, CONVERGED, since_drift=t, **where)["HI"]
            n_all += 1
            n_above += median > NEAR_ZERO
            if median >= worst:
                worst, place = median, f"{name_of(where)}, T = {t}"
    return Claim(
        "IV.6",
        "HI's median converged surrogate score is close to 0 for every K and epsilon.",
        f"at most {worst:.4f} ({place}); above {NEAR_ZERO} in {n_above} of {n_all} boxes",
        worst <= NEAR_ZERO,
        "in those boxes another method of the four found the better fixed point in more than half "
        "of the batches; no start wins everywhere.",
    )


def _wi_starts_hi_ends_lower(steps: Steps) -> Claim:
    start = {t: medians_of(steps, INITIAL, since_drift=t) for t in steps.shown}
    end = {t: medians_of(steps, CONVERGED, since_drift=t) for t in steps.shown}
    starts = [t for t in steps.shown if start[t]["WI"] < start[t]["HI"]]
    ends = [t for t in steps.shown if end[t]["HI"] <= end[t]["WI"]]
    listed = "; ".join(
        f"T = {t}: start WI {start[t]['WI']:.3f}, HI {start[t]['HI']:.3f}, converged WI "
        f"{end[t]['WI']:.3f}, HI {end[t]['HI']:.3f}"
        for t in steps.shown
    )
    return Claim(
        "IV.7",
        "WI starts with a lower error than HI, but HI converges to a lower one.",
        f"WI starts lower at T in {starts}, HI ends lower or equal at T in {ends} ({listed}; "
        "asked: either at more than half of the T shown)",
        2 * len(starts) > len(steps.shown) and 2 * len(ends) > len(steps.shown),
    )


def _pc_varies(steps: Steps) -> Claim:
    def spreads(**where: Any) -> dict[str, float]:
        return {name: box.spread for name, box in boxes_of(steps, CONVERGED, **where).items()}

    per_k = {k: spreads(n_clusters=k) for k in steps.cluster_numbers}
    smallest, largest = per_k[steps.cluster_numbers[0]], per_k[steps.cluster_numbers[-1]]
    listed = "; ".join(f"K = {k}: {in_words(found, INITS)}" for k, found in per_k.items())
    wider = all(found["PC"] > max(found["HI"], found["WI"]) for found in per_k.values())
    return Claim(
        "IV.8",
        "PC's converged surrogate error varies more than HI's and WI's, especially for larger K.",
        f"height of the boxes over all T at {listed}. {_reseeding(steps)}",
        wider and largest["PC"] >= smallest["PC"],
        "PC varies more than HI and WI at every K, but not more at the largest K than at the "
        "smallest: with few clusters a single one in the wrong place costs a larger share."
        if wider
        else "PC's boxes are not the taller ones at every K.",
    )


def _reseeding(steps: Steps) -> str:
    """Say how PC fares where clusters had lost all their points since the drift."""
    last = steps.where(since_drift=steps.shown[-1])
    anew = steps.reseeded_since_drift("PC")[last] > 0
    values = steps.scores(CONVERGED, since_drift=steps.shown[-1])["PC"]
    if not anew.any():
        return "No cluster of PC lost all its points"
    without, with_ = Box.of(values[~anew]).median, Box.of(values[anew]).median
    return (
        f"PC's median at T = {steps.shown[-1]} is {without:.3f} where none of its clusters had "
        f"lost all its points since the drift, and {with_:.3f} in the {anew.mean():.0%} of cases "
        "where one had and took the costliest point instead"
    )
