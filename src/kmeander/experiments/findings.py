"""FINDINGS.md: every claim of sections II to IV of the paper, measured on the run at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kmeander.experiments import (
    claims_distances,
    claims_errors,
    claims_skm,
    claims_theorem1,
)
from kmeander.experiments.claims import Claim
from kmeander.experiments.tables import SCORES, Steps, markdown, medians

INTRODUCTION = (
    'Each claim of Bidaurrazaga, Pérez, Capó, "K-means for Evolving Data Streams" (ICDM 2021), '
    "sections II to IV, and what this run measured. Written by `kmeander experiment`."
)

MEDIANS = (
    "Median over all datasets, settings, repetitions and drifts of the normalised score, at T "
    "batches since the drift. Errors: share above the best method of that batch. Distances: times "
    "the fewest."
)


@dataclass(frozen=True)
class Section:
    """Claims of one section of the paper."""

    title: str
    claims: Sequence[Claim]


def sections(steps: Steps, theorem1_rows: Sequence[dict[str, Any]]) -> list[Section]:
    """Return all claims, measured."""
    return [
        Section("Section II: the surrogate error", claims_theorem1.claims(theorem1_rows)),
        Section("Section III: initialisations", claims_errors.initialisation_claims(steps)),
        Section(
            "Section IV-B: initial and converged errors",
            [*claims_errors.error_claims(steps), *claims_skm.skm_claims(steps)],
        ),
        Section("Section IV-C: computed distances", claims_distances.distance_claims(steps)),
    ]


def page(run: dict[str, Any], steps: Steps, theorem1_rows: Sequence[dict[str, Any]]) -> str:
    """Return FINDINGS.md."""
    found = sections(steps, theorem1_rows)
    claims = [claim for section in found for claim in section.claims]
    failed = [claim for claim in claims if not claim.holds]
    parts = [
        "# Findings",
        INTRODUCTION,
        f"**{len(claims) - len(failed)} of {len(claims)} claims hold**"
        + ("." if not failed else "; the others: " + ", ".join(c.number for c in failed) + "."),
        _run(run, steps),
    ]
    for section in found:
        parts.append(f"## {section.title}")
        parts += [claim.markdown() for claim in section.claims]
    parts.append("## Medians")
    parts.append(MEDIANS)
    parts.append(_medians(steps))
    return "\n\n".join(parts) + "\n"


def _run(run: dict[str, Any], steps: Steps) -> str:
    grid = run["grid"]
    versions = f"kmeander {run['kmeander']} ({run['instruction_set']}), seed {grid['seed']}"
    settings = f"K in {grid['n_clusters']}, epsilon in {grid['epsilons']}, m = {steps.ms[0]:g}"
    amount = f"{grid['n_concepts'] - 1} drifts, {len(steps.epsilon):,} batches after a drift"
    lines = [
        f"- {versions}, {grid['repetitions']} repetition(s)",
        f"- {settings}; {amount}",
        *(f"- {entry['key']}: {entry['title']}. {entry['note']}" for entry in run["datasets"]),
        *(f"- {line}" for line in run["missing"]),
    ]
    return "\n".join(lines)


def _medians(steps: Steps) -> str:
    rows = medians(steps)
    times = [f"T={t}" for t in steps.shown]
    return markdown(
        ["score", "method", *(time.replace("=", " = ") for time in times)],
        [
            [
                SCORES[row["score"]].title,
                row["method"],
                *(f"{row[time]:.{2 if 'distances' in row['score'] else 3}f}" for time in times),
            ]
            for row in rows
        ],
    )
