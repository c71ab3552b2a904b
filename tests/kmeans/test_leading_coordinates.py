"""Assignment by leading coordinates: in many columns, or to many clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kmeander import CheckpointError, _kernel, weighted_lloyd
from kmeander.kmeans.lloyd import LloydResult, nearest
from kmeander.models import FSKM
from kmeander.records import Batch

Array = NDArray[np.float64]

N_COLUMNS, N_CLUSTERS = 200, 20


def in_few_directions(rng: np.random.Generator, n_points: int) -> Array:
    """Return points that vary in ten directions most, about as many places as clusters."""
    places = rng.normal(size=(N_CLUSTERS, 10))[rng.integers(N_CLUSTERS, size=n_points)]
    along = rng.normal(size=(10, N_COLUMNS))
    inside = places + rng.normal(size=(n_points, 10))
    points: Array = inside @ along + 0.2 * rng.normal(size=(n_points, N_COLUMNS))
    return points


def drawn(kind: str, n_points: int = 700) -> Array:
    rng = np.random.default_rng(1)
    points = in_few_directions(rng, n_points)
    if kind == "in all directions":
        return rng.normal(size=points.shape)
    if kind == "far from zero":
        return points + 1e7
    if kind == "tiny":
        return points * 1e-30
    if kind == "huge":
        return points * 1e100
    if kind == "one far away":
        points[17] = 1e30
    if kind == "equal":
        points = np.repeat(points[: n_points // 35], 35, axis=0)
    if kind == "on a grid":  # where distances tie
        points = rng.integers(0, 2, size=points.shape).astype(float)
        points[:, 8:] = 0.0
    return points


KINDS = (
    "in few directions", "in all directions", "far from zero", "tiny", "huge", "one far away",
    "equal", "on a grid",
)  # fmt: skip


def plain_lloyd(points: Array, centroids: Array, n_passes: int) -> tuple[Array, NDArray[Any]]:
    """Return centroids and labels after that many updates, by all distances."""

    def assign() -> NDArray[Any]:
        squared = [((points - centroid) ** 2).sum(axis=1) for centroid in centroids]
        labels: NDArray[Any] = np.argmin(squared, axis=0)
        return labels

    for _ in range(n_passes):
        labels = assign()
        centroids = np.array([points[labels == k].mean(axis=0) for k in range(len(centroids))])
    return centroids, assign()


def partition_of(found: LloydResult) -> _kernel.Partition:
    assert found.partition is not None
    return found.partition


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_labels_are_those_of_plain_lloyd(dtype: type) -> None:
    points: NDArray[Any] = drawn("in few directions").astype(dtype)
    start = points[:N_CLUSTERS].astype(np.float64)
    for n_passes in (1, 2, 5):
        found = weighted_lloyd(points, start, max_iter=n_passes)
        centroids, labels = plain_lloyd(points.astype(np.float64), start, n_passes)
        assert found.labels.tolist() == labels.tolist()
        np.testing.assert_allclose(found.centroids, centroids, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_every_label_is_the_nearest_and_every_bound_true(kind: str) -> None:
    """Of ties the lowest, whatever the size of the numbers."""
    points = drawn(kind)
    start = points[:: len(points) // N_CLUSTERS][:N_CLUSTERS]
    for n_passes in (1, 3, 300):
        found = weighted_lloyd(points, start, max_iter=n_passes)
        assert nearest(points, found.centroids, 1)[0].tolist() == found.labels.tolist()
        bounds = partition_of(found).bounds
        assert bounds is not None
        # Where many points equal a centroid, bounds decide.
        assert kind in ("equal", "on a grid") or bounds.axes is not None
        distances = np.sqrt(
            [((points - centroid) ** 2).sum(axis=1) for centroid in found.centroids]
        ).T
        own = distances[np.arange(len(points)), found.labels]
        distances[np.arange(len(points)), found.labels] = np.inf
        assert (bounds.upper >= own).all()
        assert (bounds.lower <= distances.min(axis=1)).all()


def test_float32_points_give_the_bits_of_their_float64_copies() -> None:
    points = drawn("in few directions").astype(np.float32)
    narrow = weighted_lloyd(points, points[:N_CLUSTERS])
    wide = weighted_lloyd(points.astype(np.float64), points[:N_CLUSTERS])
    assert narrow.centroids.tobytes() == wide.centroids.tobytes()
    assert narrow.labels.tobytes() == wide.labels.tobytes()


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_do_not_change_a_single_bit(n_threads: int) -> None:
    points = drawn("in few directions", 9000)
    alone = weighted_lloyd(points, points[:N_CLUSTERS], n_threads=1)
    together = weighted_lloyd(points, points[:N_CLUSTERS], n_threads=n_threads)
    assert together.centroids.tobytes() == alone.centroids.tobytes()
    assert together.labels.tobytes() == alone.labels.tobytes()
    assert together.n_distances == alone.n_distances
    for name in ("upper", "lower", "axes"):
        one = getattr(partition_of(alone).bounds, name)
        assert getattr(partition_of(together).bounds, name).tobytes() == one.tobytes()


def test_far_fewer_distances_than_plain_lloyd_where_points_vary_in_few_directions() -> None:
    """Partial ones count as their share of the columns."""
    points = drawn("in few directions", 5000)
    found = weighted_lloyd(points, points[:N_CLUSTERS], max_iter=10)
    assert 0 < found.n_distances < 0.5 * found.n_distances_plain


def test_many_clusters_in_few_columns_are_screened_with_all_columns() -> None:
    rng = np.random.default_rng(3)
    points = rng.normal(size=(6000, 5))
    start = points[:2100]
    found = weighted_lloyd(points, start, max_iter=3)
    assert nearest(points, found.centroids, 1)[0].tolist() == found.labels.tolist()
    bounds = partition_of(found).bounds
    assert bounds is not None
    assert bounds.axes is not None
    assert len(bounds.axes) == 1  # the centre alone


def test_ties_on_a_grid_go_to_the_lowest_index_of_those_screened() -> None:
    points = drawn("on a grid")
    start = points[:: len(points) // N_CLUSTERS][:N_CLUSTERS].copy()
    start[:, 8:] = 0.5  # as far from all points
    found = weighted_lloyd(points, start, max_iter=1)
    assert nearest(points, found.centroids, 1)[0].tolist() == found.labels.tolist()
    bounds = partition_of(found).bounds
    assert bounds is not None
    assert bounds.axes is not None


def test_clusters_that_are_far_apart_are_left_to_bounds() -> None:
    rng = np.random.default_rng(4)
    places = 9 * rng.normal(size=(N_CLUSTERS, N_COLUMNS))
    points = places[np.arange(900) % N_CLUSTERS] + rng.normal(size=(900, N_COLUMNS))
    found = weighted_lloyd(points, points[:N_CLUSTERS])
    bounds = partition_of(found).bounds
    assert bounds is not None
    assert bounds.axes is None


def streamed(model: FSKM, batches: list[Array], first: int = 0) -> list[dict[str, Any]]:
    return [model.step(Batch(i, points)).to_dict() for i, points in enumerate(batches, first)]


def test_a_restart_changes_neither_labels_nor_counts() -> None:
    rng = np.random.default_rng(5)
    batches = [in_few_directions(rng, 400) for _ in range(6)]
    undisturbed = FSKM(N_CLUSTERS, random_state=0)
    expected = streamed(undisturbed, batches)
    stopped = FSKM(N_CLUSTERS, random_state=0)
    found = streamed(stopped, batches[:3])
    state = stopped.state()
    assert state["window"]["bounds"]["axes"].shape[1] == N_COLUMNS
    found += streamed(FSKM.from_state(state), batches[3:], first=3)
    assert str(found) == str(expected)


def test_axes_that_are_not_orthonormal_are_refused() -> None:
    """Bounds would not be true with them."""
    found = weighted_lloyd(drawn("in few directions"), drawn("in few directions")[:N_CLUSTERS])
    bounds = partition_of(found).bounds
    assert bounds is not None
    assert bounds.axes is not None
    for axes in (bounds.axes * 1.001, bounds.axes[:0], bounds.axes[:6]):
        with pytest.raises(ValueError, match="axes"):
            _kernel.Bounds(bounds.upper, bounds.lower, bounds.snapshot, axes)


def test_a_stored_state_with_such_axes_is_refused() -> None:
    model = FSKM(N_CLUSTERS, random_state=0)
    streamed(model, [drawn("in few directions")])
    state = model.state()
    assert isinstance(FSKM.from_state(state), FSKM)
    state["window"]["bounds"]["axes"] = state["window"]["bounds"]["axes"] * 1.001
    with pytest.raises(CheckpointError, match="a centre and orthonormal axes"):
        FSKM.from_state(state)
