"""How unusual rows are: against plain loops, and whether the asked share of rows passes."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import ForgetfulKMeans
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.window import Window
from kmeander.tracking.novelty import Novelty
from tests import naive_novelty
from tests.strategies import COARSE, problems, tables

LIMITS = Limits(n_threads=1)


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, NDArray[np.float64]]:
    """A window of up to four batches, divided among centroids that Lloyd has not moved."""
    points, weights, centroids = draw(problems(max_rows=20, max_clusters=4))
    keep = weights > 0
    points, weights = np.ascontiguousarray(points[keep]), weights[keep]
    cuts = sorted(draw(st.lists(st.integers(0, len(points)), max_size=3)))
    window = Window(draw(st.sampled_from([0.5, 0.8, 1.0])))
    for part in np.split(np.arange(len(points)), cuts):
        if len(part):
            window = window.aged(1.0, 100.0, None).joined_by(points[part], weights[part])
    fit = fit_window(window, centroids, LIMITS, only_assign=True)
    return fit.window, centroids


def plain(window: Window, centroids: NDArray[np.float64]) -> naive_novelty.Ordinary:
    batches = zip(window.decay.tolist(), window.batches, window.labels, strict=True)
    return naive_novelty.Ordinary(
        [(decay, one.points, one.weights_or_ones, labels) for decay, one, labels in batches],
        centroids,
    )


@given(windows(), st.data())
def test_scores_are_those_of_the_plain_loops(
    drawn: tuple[Window, NDArray[np.float64]], data: st.DataObject
) -> None:
    window, centroids = drawn
    rows = data.draw(tables(st.integers(1, 5), centroids.shape[1], COARSE))
    expected = [plain(window, centroids).score(x) for x in rows]
    assert Novelty(window, centroids, LIMITS).scores(rows) == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )


@given(windows(), st.sampled_from([0.9, 0.5, 0.3, 0.1, 0.01]))
def test_the_threshold_is_that_of_the_plain_loops(
    drawn: tuple[Window, NDArray[np.float64]], rate: float
) -> None:
    window, centroids = drawn
    known = plain(window, centroids)
    expected = naive_novelty.threshold(known.scores(), rate, known.one)
    if expected == np.inf:
        with pytest.raises(ValueError, match="is too small for what is remembered"):
            Novelty(window, centroids, LIMITS).threshold(rate)
    else:
        found = Novelty(window, centroids, LIMITS).threshold(rate)
        # The least score that enough weight does not pass, but for what rounding does to sums.
        scores = known.scores()
        total = math.fsum(w for _, w in scores) + known.one
        up_to = math.fsum(w for score, w in scores if score <= found * (1 + 1e-9) + 1e-12)
        below = math.fsum(w for score, w in scores if score < found * (1 - 1e-9) - 1e-12)
        assert up_to >= (1 - rate) * total - 1e-9 * total
        assert below <= (1 - rate) * total + 1e-9 * total


def test_on_the_sphere_the_asked_share_passes_too() -> None:
    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(3, metric="cosine", random_state=0, n_threads=1)
    centres = np.eye(3, 5)

    def rows() -> NDArray[np.float64]:
        places = centres[rng.integers(3, size=500)] + rng.normal(0, 0.2, (500, 5))
        return np.asarray(places * rng.uniform(1, 100, (500, 1)))

    over = []
    for index in range(60):
        batch = rows()
        if index >= 20:
            over.append((model.score_samples(batch) > model.novelty_threshold(0.05)).mean())
        model.partial_fit(batch)
    assert 0.04 < np.mean(over) < 0.06


def passing(name: str, rate: float, seed: int, n_batches: int = 150) -> float:
    """Share of the rows of each next batch that pass the threshold found before it was learned."""
    stream = STREAMS[name]
    model = ForgetfulKMeans(stream.n_clusters, random_state=seed, n_threads=1)
    over: list[float] = []
    for batch in islice(stream.batches(seed), n_batches):
        if len(over) or getattr(model, "n_steps_", 0) >= 20:
            over.append((model.score_samples(batch) > model.novelty_threshold(rate)).mean())
        model.partial_fit(batch)
    return float(np.mean(over))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.01])
def test_the_asked_share_of_independent_rows_passes(rate: float) -> None:
    shares = [passing("independent-K4-d3-n200", rate, seed) for seed in range(3)]
    assert 0.8 * rate < np.mean(shares) < 1.1 * rate
