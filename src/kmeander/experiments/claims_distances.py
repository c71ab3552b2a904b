"""Claims of section IV-C: computed distances."""

from __future__ import annotations

import numpy as np

from kmeander.experiments.claims import COMPUTED, DISTANCES, SKM, Claim, in_words, medians_of
from kmeander.experiments.protocol import INITS, METHODS
from kmeander.experiments.tables import Steps


def distance_claims(steps: Steps) -> list[Claim]:
    """Return the claims of section IV-C."""
    return [_pc_cheapest(steps), _others_twice(steps), _hi_worth_it(steps)]


def _pc_cheapest(steps: Steps) -> Claim:
    values = steps.scores(DISTANCES)
    cheapest = {name: float((found == 1).mean()) for name, found in values.items()}
    really = float((steps.scores(COMPUTED)["PC"] == 1).mean())
    dearer = values["PC"] > 1
    passes = steps.columns["n_iter"][:, : len(INITS)]
    best = np.stack([values[name] for name in INITS], axis=1).argmin(axis=1)
    why = ""
    if dearer.any():
        own = float(np.median(passes[dearer, 0]))
        theirs = float(np.median(passes[np.arange(len(best)), best][dearer]))
        shares = "; ".join(
            f"{(values['PC'][steps.where(since_drift=t)] > 1).mean():.0%} at T = {t}"
            for t in steps.shown
        )
        why = (
            f"where PC is dearer ({shares}) its start is poor and Lloyd takes {own:.0f} passes "
            f"over the window in the median, the cheapest method {theirs:.0f}; the K-means on the "
            "new batch that PC saves costs less than those. PC is the cheapest in the median only."
        )
    return Claim(
        "IV.14",
        "PC always computes the fewest distances.",
        f"by plain counts it does at {cheapest['PC']:.1%} of the batches (CC at "
        f"{cheapest['CC']:.1%}, WI at {cheapest['WI']:.1%}, HI at {cheapest['HI']:.1%}), by those "
        f"of the kernel at {really:.1%}",
        not dearer.any(),
        why,
    )


def _others_twice(steps: Steps) -> Claim:
    three = ("CC", "WI", "HI")
    plain = {t: medians_of(steps, DISTANCES, since_drift=t) for t in steps.shown}
    computed = {t: medians_of(steps, COMPUTED, since_drift=t) for t in steps.shown}
    listed, really = (
        "; ".join(f"T = {t}: {in_words(found[t], three, 2)}" for t in steps.shown)
        for found in (plain, computed)
    )
    outside = [
        f"{name} {plain[t][name]:.2f} at T = {t}"
        for t in steps.shown
        for name in three
        if not 1.3 <= plain[t][name] <= 2.5
    ]
    return Claim(
        "IV.15",
        "HI, WI and CC compute about twice as many distances as the cheapest method.",
        f"medians of plain counts at {listed} (asked: all between 1.3 and 2.5). Really computed by "
        f"the kernel: {really}",
        not outside,
        f"outside are {', '.join(outside)}.",
    )


def _hi_worth_it(steps: Steps) -> Claim:
    skm = medians_of(steps, SKM)
    return Claim(
        "IV.16",
        "In exchange HI outperforms the other initialisations in converged SKM error.",
        f"medians over all batches after a drift: {in_words(skm, METHODS)}",
        skm["HI"] == min(skm[name] for name in INITS),
        "here another initialisation has the lower median.",
    )
