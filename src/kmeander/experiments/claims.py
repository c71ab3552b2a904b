"""A claim of the paper: what it says, what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kmeander.experiments.tables import SCORES, Score, Steps
from kmeander.scores import Box

INITIAL = SCORES["initial_surrogate_error"]
CONVERGED = SCORES["converged_surrogate_error"]
SKM = SCORES["converged_skm_error"]
DISTANCES = SCORES["distances"]
COMPUTED = SCORES["distances_computed"]

# Medians of normalised errors that differ by no more are comparable; one below this is near 0.
COMPARABLE = 0.05
NEAR_ZERO = 0.01


@dataclass(frozen=True)
class Claim:
    """One claim.

    Parameters
    ----------
    number : str
        What it is called on the page.
    says : str
        The claim, as a sentence.
    measured : str
        The number behind the verdict, and the rule that gives it.
    holds : bool
    why : str
        Where it does not hold: what the numbers say about the reason.
    """

    number: str
    says: str
    measured: str
    holds: bool
    why: str = ""

    def markdown(self) -> str:
        """Return the claim as a paragraph."""
        verdict = "holds" if self.holds else "does not hold"
        lines = [f"**{self.number}. {self.says}**", f"Measured: {self.measured} — *{verdict}*."]
        if self.why and not self.holds:
            lines.append(f"Why: {self.why}")
        return "  \n".join(lines)


def boxes_of(steps: Steps, score: Score, **where: Any) -> dict[str, Box]:
    """Return each method's box over the batches that `where` means."""
    return {name: Box.of(values) for name, values in steps.scores(score, **where).items()}


def medians_of(steps: Steps, score: Score, **where: Any) -> dict[str, float]:
    """Return each method's median over the batches that `where` means."""
    return {name: box.median for name, box in boxes_of(steps, score, **where).items()}


def in_words(values: dict[str, float], names: Iterable[str], digits: int = 3) -> str:
    """Return numbers in words: PC 0.123, CC 0.456."""
    return ", ".join(f"{name} {values[name]:.{digits}f}" for name in names)


def settings_of(steps: Steps) -> list[dict[str, Any]]:
    """Return every pair of epsilon and K of the run."""
    return [
        {"epsilon": epsilon, "n_clusters": n_clusters}
        for n_clusters in steps.cluster_numbers
        for epsilon in steps.epsilons
    ]


def name_of(where: dict[str, Any]) -> str:
    """Return a setting in words."""
    return f"K = {where['n_clusters']}, epsilon = {where['epsilon']:g}"
