"""Results as lines of text."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from benchmarks.contestants import Kmeander
from benchmarks.goals import Goal
from benchmarks.peers import MiniBatch, ScikitLearnLloyd
from benchmarks.race import Run
from benchmarks.streams import Shape, Stream

HEADINGS = (
    "batches   ms per batch: mean  median (10-90 %)   times kmeander's (least-most)   distances   "
    "peak MiB   prequential   surrogate   labels"
)


def race_lines(stream: Stream, runs: Mapping[str, Run], threads: str) -> Iterator[str]:
    """One block: who ran, how long, and how good the result was."""
    yield f"{stream.name} {stream.shape}; {threads}"
    yield f"  {'':<20}{HEADINGS}"
    best = next(iter(runs.values()))
    for run in runs.values():
        yield f"  {run.name:<20}{_line(run, best)}"


def _line(run: Run, best: Run) -> str:
    milliseconds = [1e3 * s for s in run.all_seconds]
    low, median, high = np.quantile(milliseconds, [0.1, 0.5, 0.9])
    least, most = run.times_slower_spread(best)
    share = run.distance_share
    return (
        f"{'few rows' if run.extrapolated else run.n_batches:>7}{_short(run.mean_ms):>21}"
        f"{_short(median):>8} {f'({_short(low)}-{_short(high)})':<15}"
        f"{run.times_slower(best):>9.2f} {f'({least:.2f}-{most:.2f})':<18}"
        f"{'-' if share is None else f'{100 * share:.1f} %':>12}"
        f"{'-' if run.peak_mib is None else f'{run.peak_mib:.1f}':>11}"
        f"{_mean(run.prequential_errors):>14}{_mean(run.surrogate_errors):>12}"
        f"   {_labels(run)}"
    )


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.2f}" if milliseconds < 100 else f"{milliseconds:.0f}"


def _mean(errors: list[float]) -> str:
    return f"{statistics.fmean(errors):.4g}" if errors else "-"


def _labels(run: Run) -> str:
    words = []
    if run.same_labels:
        n_same = sum(run.same_labels)
        verdict = "same" if n_same == len(run.same_labels) else "NOT THE SAME"
        words.append(f"{verdict} at {n_same} of {len(run.same_labels)}")
    ratios = run.error_ratios_where_reseeded
    if ratios:
        words.append(
            f"{len(ratios)} where a cluster emptied (kmeander's error x {min(ratios):.3f}-"
            f"{max(ratios):.3f})"
        )
    return "; ".join(words)


def goal_lines(goals: Iterable[Goal]) -> Iterator[str]:
    """What was asked, what was measured, and whether it is met."""
    yield f"  {'':<74}{'asked':>10}{'measured':>12}   met"
    for goal in goals:
        verdict = "-" if goal.met is None else ("yes" if goal.met else "NO")
        note = f"   {goal.note}" if goal.note else ""
        yield f"  {goal.name:<74}{goal.asked_text:>10}{goal.measured:>12.3g}   {verdict}{note}"


def readme_lines(alone: Mapping[Shape, Mapping[str, Run]]) -> Iterator[str]:
    """The table of docs/speed.md, in Markdown."""
    yield (
        "| rows per batch, K, columns | kmeander | scikit-learn lloyd | times faster "
        "| MiniBatchKMeans |"
    )
    yield "|---|---|---|---|---|"
    for shape, runs in alone.items():
        if ScikitLearnLloyd.name in runs:
            ours, lloyd, mini = (
                runs[kind.name] for kind in (Kmeander, ScikitLearnLloyd, MiniBatch)
            )
            yield (
                f"| {shape} | {ours.mean_ms:.3g} ms | {lloyd.mean_ms:.3g} ms "
                f"| {lloyd.times_slower(ours):.1f} | {mini.mean_ms:.3g} ms |"
            )
