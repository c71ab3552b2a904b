"""The change test: what the kernel compares is what the definitions say, whatever the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from kmeander import Batch, _kernel
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window, measure
from kmeander.kmeans.window import Window
from kmeander.tracking.change_test import ChangeKind
from tests import naive, naive_cells, naive_changes
from tests.strategies import COARSE, problems

Array = NDArray[np.float64]

KINDS = {
    ChangeKind.SHARE: "share", ChangeKind.PLACE: "place", ChangeKind.COLUMN: "column",
    ChangeKind.SPREAD: "spread", ChangeKind.SHARES: "shares", ChangeKind.PLACES: "places",
    ChangeKind.SPREADS: "spreads", ChangeKind.FAR: "far", ChangeKind.TREND: "trend",
    ChangeKind.ALL: "all",
}  # fmt: skip
# So low that nearly all that is compared is found, and can be compared with the plain loops.
LEVEL = 0.05


@dataclass(frozen=True)
class Stream:
    n_clusters: int
    period: int
    batches: list[Batch]
    n_phases: list[int]
    chapters: dict[int, list[int]]  # batches after which a chapter begins, with the cells renewed
    seed: int


@st.composite
def streams(draw: st.DrawFn, max_batches: int = 34) -> Stream:
    """Hypothesis chooses what happens; a generator fills in the numbers."""
    k, d = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    period = draw(st.sampled_from([0, 0, 2, 3, 13]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=draw(st.sampled_from([1.0, 6.0])), size=(k, d))
    has_weights, narrow = draw(st.booleans()), draw(st.booleans())
    kind = draw(st.sampled_from(["fine", "dependent", "ties", "constant column"]))
    batches, n_phases, chapters = [], [], {}
    for index in range(draw(st.integers(2, max_batches))):
        shown = int(rng.integers(1, k + 1)) if rng.random() < 0.2 else k  # some cells stay empty
        n = int(rng.choice([1, 2, 9, 30]))
        points = centres[rng.integers(shown, size=n)] + rng.normal(size=(n, d))
        if kind == "dependent":
            points += rng.normal(size=d)
        elif kind == "ties":
            points = np.round(points)
        elif kind == "constant column":
            points[:, 0] = 7.0
        weights = rng.choice([0.0, 0.25, 1.0, 8.0], size=n) if has_weights else None
        if weights is not None:
            weights[0] = 1.0
        batches.append(Batch(index, points.astype(np.float32) if narrow else points, weights))
        n_phases.append(1 if rng.random() < 0.9 else int(rng.integers(6)))
        if rng.random() < 0.06:
            chapters[index] = rng.permutation(k)[: rng.integers(0, k + 1)].tolist()
            centres = centres + rng.normal(scale=rng.choice([0.1, 2.0]), size=(k, d))
    return Stream(k, period, batches, n_phases, chapters, seed)


def weights_of(batch: Batch) -> Array:
    return np.ones(batch.n_points) if batch.weights is None else batch.weights


def fitted(batches: list[Batch], centroids: Array) -> WindowFit:
    """A window of batches in cells around centroids, as they are."""
    window = Window(0.7)
    for batch in batches:
        window = window.aged(1.0, np.inf, None).joined_by(batch.points, batch.weights)
    return fit_window(window, centroids, Limits(), only_assign=True)


def plain_cells(batches: list[Batch], fit: WindowFit) -> naive_cells.Cells:
    assert fit.window.partition is not None
    labels = iter(fit.window.partition.labels.tolist())
    rows = [
        (batch.points.tolist(), weights_of(batch).tolist(), [next(labels) for _ in batch.points])
        for batch in batches
    ]
    return naive_cells.Cells(rows, fit.centroids.tolist())


@given(stream=streams())
@settings(max_examples=60)
def test_what_is_compared_is_what_the_definitions_say(stream: Stream) -> None:
    """Shares, places, spreads, all together, far rows; in chapters and seasons begun anew."""
    rng = np.random.default_rng([stream.seed, 1])
    d = stream.batches[0].points.shape[1]
    centroids = rng.normal(scale=3.0, size=(stream.n_clusters, d))
    fit = fitted(stream.batches[:1], centroids)
    handle, partition = fit.window.handle, fit.window.partition
    assert partition is not None
    test = _kernel.ChangeTest.begin(handle, partition, centroids, stream.period)
    plain = naive_changes.ChangeTest(plain_cells(stream.batches[:1], fit), stream.period)
    for index, batch in enumerate(stream.batches[1:], start=1):
        # The model's centroids are elsewhere by now.
        away = centroids + rng.normal(scale=rng.choice([0.0, 0.01, 5.0]), size=centroids.shape)
        arrived = measure(batch.handle, away, 1).partition
        n_phases = stream.n_phases[index]
        test, changes, n_far = test.after(batch.handle, arrived, (LEVEL,) * 4, n_phases)
        expected, expected_far = plain.after(
            batch.points.tolist(), weights_of(batch).tolist(), n_phases
        )
        assert n_far == expected_far
        assert_alike(changes, expected)
        event(f"in a season: {plain.in_season}")
        if index in stream.chapters:
            renewed = stream.chapters[index]
            centroids = centroids + rng.normal(scale=rng.choice([0.01, 3.0]), size=centroids.shape)
            known = stream.batches[max(0, index - 3) : index + 1]
            fit = fitted(known, centroids)
            assert fit.window.partition is not None
            test = test.in_chapter(
                fit.window.handle, fit.window.partition, centroids, renewed, stream.period
            )
            plain.begin_chapter(plain_cells(known, fit), renewed)


def assert_alike(changes: list[Any], expected: naive_changes.Found) -> None:
    found = {}
    for kind, n_batches, cell, column, value, _, z in changes:
        which = column if kind == ChangeKind.COLUMN else cell
        found[KINDS[ChangeKind(kind)], n_batches, which] = (value, z)
    for key, (value, z) in expected.items():
        if key in found:
            assert found[key] == pytest.approx((value, z), rel=1e-6, abs=1e-7), key
        else:
            assert z < LEVEL + 1e-6 and key[0] not in ("far", "trend"), key
    assert found.keys() <= expected.keys()


@pytest.mark.parametrize("period", [0, 5])
def test_a_trend_is_that_of_the_definitions(period: int) -> None:
    """After 36 batches the older ones are compared with the cells, and with the first ones."""
    rng = np.random.default_rng(4)
    centroids = np.array([[0.0, 0.0], [20.0, 0.0]])
    kinds = set()

    def batch(index: int) -> Batch:
        points = np.repeat(centroids, 8, axis=0) + rng.normal(size=(16, 2))
        points[:8, 1] += 5.0 * (index > 36)
        return Batch(index, points)

    first = batch(0)
    fit = fitted([first], centroids)
    assert fit.window.partition is not None
    test = _kernel.ChangeTest.begin(fit.window.handle, fit.window.partition, centroids, period)
    plain = naive_changes.ChangeTest(plain_cells([first], fit), period)
    for index in range(1, 110):
        one = batch(index)
        arrived = measure(one.handle, centroids, 1).partition
        test, changes, _ = test.after(one.handle, arrived, (LEVEL,) * 4, 1)
        expected, _ = plain.after(one.points.tolist(), [1.0] * 16, 1)
        assert_alike(changes, expected)
        kinds |= {key[0] for key in expected}
        if any(key[0] == "trend" for key in expected):
            assert period == 0 or (index - 1 - 36) % period == 0
    assert "trend" in kinds


@given(data=st.data(), problem=problems(max_clusters=6))
def test_a_row_is_in_the_cell_whose_centre_is_nearest(
    data: st.DataObject, problem: tuple[Array, Array, Array]
) -> None:
    """However far the centroids have moved by which the batch was measured; ties to the lowest."""
    points, weights, centres = problem
    fit = fitted([Batch(0, points)], centres)
    assert fit.window.partition is not None
    test = _kernel.ChangeTest.begin(fit.window.handle, fit.window.partition, centres, 0)
    moved = data.draw(hnp.arrays(np.float64, centres.shape, elements=COARSE))
    away = centres + moved * data.draw(st.sampled_from([0.0, 0.01, 1.0, 1e6]))
    batch = Batch(1, points, weights)
    arrived = measure(batch.handle, away, 1).partition
    (_, _, arrays) = test.after(batch.handle, arrived, (9.0,) * 4, 1)[0].saved
    expected = [0.0] * len(centres)
    for point, weight in zip(points.tolist(), naive_cells.units(weights.tolist()), strict=True):
        expected[naive.nearest(point, centres.tolist())] += weight
    np.testing.assert_allclose(arrays[2][: len(centres)], expected, rtol=1e-12, atol=1e-12)
