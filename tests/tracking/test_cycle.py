"""Cycles that nobody named: found where batches repeat themselves, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import kmeander
from kmeander import Step
from kmeander.page.head import figures_html
from kmeander.page.summary import as_markdown, as_plain
from kmeander.page.timeline import read_timeline
from kmeander.tracking.cycle import MOST_BATCHES, Cycle, CycleSearch, find_cycle
from tests.program import kmeander as program

Series = NDArray[np.float64]
Rng = np.random.Generator
RHO = 0.6


def of_window(means: Series) -> Series:
    """Means of a window in which a batch keeps 0.6 of its weight."""
    decayed = [means[0]]
    for mean in means[1:]:
        decayed.append(RHO * decayed[-1] + (1 - RHO) * mean)
    return np.array(decayed)


def lasting(rng: Rng, n: int, kept: float) -> Series:
    noise = rng.normal(size=(n, 3))
    for t in range(1, n):
        noise[t] = kept * noise[t - 1] + np.sqrt(1 - kept * kept) * noise[t]
    return noise


def jumps(rng: Rng, n: int) -> Series:
    levels = np.cumsum((rng.random((n, 1)) < 0.02) * rng.normal(scale=20.0, size=(n, 3)), axis=0)
    return rng.normal(size=(n, 3)) + np.asarray(levels)


def walk(rng: Rng, n: int) -> Series:
    return np.cumsum(rng.normal(size=(n, 3)), axis=0)


def by_far_rows(rng: Rng, n: int) -> Series:
    return rng.standard_t(1.5, size=(n, 3))


WITHOUT: dict[str, Callable[[Rng, int], Series]] = {
    "independent": lambda rng, n: lasting(rng, n, 0.0),
    "one column": lambda rng, n: lasting(rng, n, 0.0)[:, :1],
    "AR .5": lambda rng, n: lasting(rng, n, 0.5),
    "AR .9": lambda rng, n: lasting(rng, n, 0.9),
    "AR .998": lambda rng, n: lasting(rng, n, 0.998),
    "jumps": jumps,
    "walk": walk,
    "heavy tails": by_far_rows,
    "trend": lambda rng, n: lasting(rng, n, 0.0) + np.arange(n)[:, np.newaxis],
}


@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.parametrize("n_batches", [60, 400, 1500])
def test_what_does_not_repeat_has_no_cycle(name: str, n_batches: int) -> None:
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        found += find_cycle(of_window(WITHOUT[name](rng, n_batches))) is not None
    assert found <= 1


def day(t: NDArray[np.int64]) -> Series:
    return np.column_stack([np.sin(2 * np.pi * t / 24), np.zeros(len(t)), np.zeros(len(t))])


def week(t: NDArray[np.int64]) -> Series:
    return np.repeat((t % 7 >= 5)[:, np.newaxis].astype(float), 3, axis=1)


CYCLES: dict[str, tuple[Callable[[NDArray[np.int64]], Series], int, int]] = {
    "day": (lambda t: 10 * day(t), 240, 24),
    "week": (lambda t: 8 * week(t), 60, 7),
    "day in a week": (lambda t: 10 * day(t) + 10 * week(t // 24), 1200, 168),
    "every other batch": (lambda t: 5.0 * day(t * 6 + 6) + 5.0 * (t % 2)[:, None], 200, 4),
    "through jumps": (lambda t: 10 * day(t) + 50.0 * (t // 500)[:, None], 1500, 24),
}


@pytest.mark.parametrize("name", CYCLES)
def test_what_repeats_has_its_shortest_cycle(name: str) -> None:
    make, n_batches, length = CYCLES[name]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        means = make(np.arange(n_batches)) + rng.normal(size=(n_batches, 3))
        found = find_cycle(of_window(means))
        assert found is not None
        assert found.n_batches == length
        assert 0.15 < found.correlation <= 1.1


def test_the_correlation_is_that_of_the_plain_loops() -> None:
    rng = np.random.default_rng(1)
    means = of_window(10 * day(np.arange(240)) + rng.normal(size=(240, 3)))
    found = find_cycle(means)
    assert found is not None
    correlations = []
    for column in means.T:
        steps = [float(after - before) for before, after in pairwise(column)]
        spread = 1.4826 * float(np.median(np.abs(steps)))
        clipped = [min(max(one / spread, -2.0), 2.0) for one in steps]
        mean = sum(clipped) / len(clipped)
        scores = [one - mean for one in clipped]
        lag = found.n_batches
        pairs = zip(scores, scores[lag:], strict=False)
        at_lag = sum(a * b for a, b in pairs) / (len(scores) - lag)
        correlations.append(at_lag / (sum(a * a for a in scores) / len(scores)))
    assert found.correlation == pytest.approx(max(correlations))


def test_few_batches_and_those_that_never_vary_have_none() -> None:
    assert find_cycle(day(np.arange(29))) is None
    assert find_cycle(np.ones((100, 2))) is None
    # Three cycles must have been seen.
    assert find_cycle(day(np.arange(70))) is None
    assert find_cycle(day(np.arange(74))) is not None


def test_a_search_remembers_the_newest_batches_alone() -> None:
    search = CycleSearch()
    for t in range(MOST_BATCHES + 500):
        place = np.array([[np.sin(t * np.pi / 5)], [9.0]])
        search.add(Step(t, 10, False, RHO, 1, 10.0, centroids=place, masses=np.array([5.0, 5.0])))
        if t == 200:
            assert search.cycle is not None
            assert search.cycle.n_batches == 10
    search.add(Step(t + 1, 10, True, RHO, 0, 10.0))  # a batch that waits has no means
    assert len(search._means) == MOST_BATCHES


def hours(n: int) -> list[Series]:
    rng = np.random.default_rng(0)
    homes = np.array([[20.0, 1.0], [60.0, 5.0]])
    return [
        np.repeat(homes + np.array([3 * np.sin(2 * np.pi * t / 24), 0]), 20, axis=0)
        + rng.normal(size=(40, 2))
        for t in range(n)
    ]


def test_a_run_says_that_its_stream_repeats_itself(tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    summary = kmeander.run(hours(150), 2, steps=steps, random_state=0).summary
    cycle = summary.cycle
    assert cycle is not None
    assert cycle.n_batches == 24
    timeline = read_timeline(steps)
    words = (
        f"The stream repeats itself every 24 batches (autocorrelation {cycle.correlation:.2f}): "
        "with kmeander.run(season=24) each batch would be compared with the same phase of past "
        "cycles."
    )
    assert words in as_markdown(timeline)
    assert words in figures_html(timeline)
    plain = as_plain(timeline)["cycle"]
    assert plain == {
        "n_batches": 24,
        "correlation": pytest.approx(cycle.correlation),
        "words": words[0].lower() + words[1:-1],
    }
    assert "with season=24 each batch" in Cycle(24, 0.5).words()


def test_a_run_that_was_given_a_season_says_nothing(tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    summary = kmeander.run(hours(150), 2, season=24, steps=steps, random_state=0).summary
    assert summary.cycle is None
    assert as_plain(read_timeline(steps))["cycle"] is None
    assert "repeats itself" not in figures_html(read_timeline(steps))


def test_the_command_line_says_so_as_an_option(tmp_path: Path) -> None:
    rows = np.concatenate(hours(120))
    (tmp_path / "hours.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
    words = ["run", str(tmp_path / "hours.csv"), "--clusters", "2", "--batch-size", "40"]
    done = program(*words, "--steps", str(tmp_path / "steps.jsonl"))
    assert "The stream repeats itself every 24 batches" in done.stderr
    assert "with --season 24 each batch would be compared" in done.stderr
