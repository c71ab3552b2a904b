"""The compiled kernel against the plain loops, over dtypes, thread counts and instruction sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import kmeander
from kmeander import _kernel, weighted_lloyd
from kmeander.arrays import Points
from kmeander.kmeans.lloyd import measure, nearest
from kmeander.kmeans.seeding import draw_seeds
from kmeander.kmeans.window import Window
from tests import naive
from tests.strategies import problems

# Where the two nearest squared distances differ by less, rounding may decide.
CLEAR = 1e-9


def clearly_nearest(points: Points, centroids: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows whose nearest centroid is beyond the reach of rounding, or exactly tied."""
    clear = []
    for x in points:
        distances = sorted(naive.squared_distance(x, c) for c in centroids)
        gap = distances[1] - distances[0] if len(distances) > 1 else np.inf
        clear.append(gap > CLEAR * distances[0] or distances[0] == 0.0)
    return np.array(clear)


@given(problem=problems(max_rows=40, max_clusters=20), single=st.booleans())
def test_nearest_equals_the_plain_loops(
    problem: tuple[Points, Points, NDArray[np.float64]], single: bool
) -> None:
    points, _, centroids = problem
    given_points: Points = points.astype(np.float32) if single else points
    labels, squared = nearest(given_points, centroids, 1)
    expected = np.array([naive.nearest(x, centroids) for x in given_points])
    distances = np.array(
        [min(naive.squared_distance(x, c) for c in centroids) for x in given_points]
    )
    clear = clearly_nearest(given_points, centroids)
    assert labels[clear].tolist() == expected[clear].tolist()
    np.testing.assert_allclose(squared, distances, rtol=1e-12, atol=0)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_points=st.integers(1, 70),
    n_clusters=st.integers(1, 40),
    n_features=st.integers(1, 70),
    scale=st.floats(-60, 100),
    apart=st.floats(-12, 12),
    far=st.none() | st.floats(-20, 100),
)
def test_single_precision_never_tells_more_than_is_true(
    seed: int,
    n_points: int,
    n_clusters: int,
    n_features: int,
    scale: float,
    apart: float,
    far: float | None,
) -> None:
    """Points of any size, near or far from zero and each other, and one that stands for "none"."""
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(n_clusters, n_features)) * 10.0**apart
    points = centroids[rng.integers(n_clusters, size=n_points)]
    points = (
        points + rng.normal(size=points.shape) * rng.choice([0.0, 1e-9, 1.0], n_points)[:, None]
    )
    points, centroids = points * 10.0**scale, centroids * 10.0**scale
    if far is not None:
        centroids[0], points[0] = 10.0**far, 10.0**far
    if rng.random() < 0.2:
        centroids[-1] = centroids[0]
    found = measure(kmeander.Batch(0, points).handle, centroids, 1)
    bounds = found.partition.bounds
    assert bounds is not None
    gaps = points[:, None].astype(np.longdouble) - centroids
    distances = np.sqrt((gaps * gaps).sum(axis=2))
    rows = np.arange(n_points)
    own = distances[rows, found.partition.labels]
    nearest_two = np.sort(np.pad(distances, ((0, 0), (0, 1)), constant_values=np.inf), axis=1)
    clear = nearest_two[:, 1] > nearest_two[:, 0] * (1 + CLEAR)
    assert (found.partition.labels == distances.argmin(axis=1))[clear].all()
    assert (own <= nearest_two[:, 0] * (1 + CLEAR)).all()
    assert (bounds.upper >= own).all()
    distances[rows, found.partition.labels] = np.inf
    assert (bounds.lower <= distances.min(axis=1)).all()


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 5)),
    single=st.booleans(),
    bad=st.sampled_from([np.nan, np.inf, -np.inf, 2e30, -2e30]),
    places=st.lists(st.integers(0, 59), max_size=2),
)
def test_the_first_bad_value_is_found_while_all_are_copied(
    shape: tuple[int, int], single: bool, bad: float, places: list[int]
) -> None:
    """In every lane and in the tail that no vector fills, with and without a copy."""
    points: Points = np.ones(shape, dtype=np.float32) if single else np.ones(shape)
    inside = sorted(place for place in places if place < points.size)
    for place in inside:
        points.flat[place] = bad
    expected = inside[0] if inside else -1
    copy = np.zeros_like(points)
    assert _kernel.first_beyond(points, 1e30) == expected
    assert _kernel.first_beyond(points, 1e30, copy) == expected
    assert copy.tobytes() == points.tobytes()


def test_a_tie_goes_to_the_lowest_index(rng: np.random.Generator) -> None:
    """Also where equal centroids lie in different lanes and blocks of the kernel."""
    points = rng.normal(size=(300, 5))
    centroid = rng.normal(size=(1, 5))
    for n_clusters in (1, 2, 3, 7, 8, 9, 40):
        labels, _ = nearest(points, np.repeat(centroid, n_clusters, axis=0), 1)
        assert (labels == 0).all()


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 31, 64])
@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 8, 33])
def test_every_tail_of_rows_columns_and_blocks_is_covered(
    n_clusters: int, n_features: int, rng: np.random.Generator
) -> None:
    centroids = rng.normal(size=(n_clusters, n_features))
    for n_points in (1, 3, 4, 5, 8, 63, 64, 65, 257):
        points = rng.normal(size=(n_points, n_features))
        squared = ((points[:, None, :] - centroids) ** 2).sum(axis=2)
        labels, distances = nearest(points, centroids, 1)
        assert (labels == squared.argmin(axis=1)).all()
        np.testing.assert_allclose(distances, squared.min(axis=1), rtol=1e-12)


def test_float32_points_give_the_bits_of_their_float64_copies(rng: np.random.Generator) -> None:
    """The stated tolerance between the two is none: arithmetic is float64 for both."""
    narrow = rng.normal(size=(2000, 7)).astype(np.float32)
    start = rng.normal(size=(9, 7))
    weights = rng.random(2000)
    one = weighted_lloyd(narrow, start, weights)
    other = weighted_lloyd(narrow.astype(np.float64), start, weights)
    assert one.centroids.tobytes() == other.centroids.tobytes()
    assert one.labels.tobytes() == other.labels.tobytes()
    assert one.error == other.error
    seeds = kmeander.kmeans_plusplus(narrow, 9, random_state=1)
    assert (seeds == kmeander.kmeans_plusplus(narrow.astype(np.float64), 9, random_state=1)).all()


@pytest.mark.parametrize("n_threads", [2, 3, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_single_bit(n_threads: int, dtype: type) -> None:
    """200,000 rows are 782 chunks, and enough work that every thread is started."""
    rng = np.random.default_rng(3)
    points: Points = rng.normal(size=(200_000, 6)).astype(dtype)
    weights = rng.random(200_000)
    start = points[:12].astype(np.float64)
    alone = weighted_lloyd(points, start, weights, max_iter=8, n_threads=1)
    together = weighted_lloyd(points, start, weights, max_iter=8, n_threads=n_threads)
    assert together.centroids.tobytes() == alone.centroids.tobytes()
    assert together.labels.tobytes() == alone.labels.tobytes()
    assert together.masses.tobytes() == alone.masses.tobytes()
    assert (together.error, together.n_iter) == (alone.error, alone.n_iter)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_threads_do_not_change_a_model_along_a_stream(n_threads: int) -> None:
    """With 110,000 rows a batch all loops are shared, also that which finds why a drift came."""
    rng = np.random.default_rng(4)
    alone = kmeander.FSKM(12, rho=0.6, random_state=0, n_threads=1)
    together = kmeander.FSKM(12, rho=0.6, random_state=0, n_threads=n_threads)
    for index in range(5):
        batch = kmeander.Batch(index, rng.normal(size=(110_000, 6)) + index // 4)
        step = together.step(batch)
        assert alone.step(batch) == step
    assert step.why is not None


def test_a_forked_child_starts_threads_of_its_own() -> None:
    """The parent's are not there; waiting for them would wait for ever."""
    code = (
        "import os, signal, numpy as np, kmeander\n"
        "X = np.random.default_rng(0).normal(size=(200_000, 4))\n"
        "def learn(): return kmeander.weighted_lloyd(X, X[:8], max_iter=3, n_threads=2).error\n"
        "before = learn()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    os._exit(0 if learn() == before else 1)\n"
        "_, status = os.waitpid(child, 0)\n"
        "print(status, learn() == before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 True\n"


def test_small_steps_start_no_threads() -> None:
    """They would take longer to wake than the step: by default a user has them all."""
    code = (
        "import os, numpy as np, kmeander\n"
        "rng = np.random.default_rng(0)\n"
        "def learn(n_rows):\n"
        "    model = kmeander.FSKM(25, init='previous', n_threads=8, random_state=0)\n"
        "    for index in range(8):\n"
        "        model.step(kmeander.Batch(index, rng.normal(size=(n_rows, 20))))\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "print(learn(500) - before, learn(5000) - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    assert small == 0
    assert large > 0


def test_calls_at_the_same_time_get_threads_each() -> None:
    rng = np.random.default_rng(5)
    clouds = [rng.normal(size=(100_000, 5)) for _ in range(4)]

    def learn(points: Points) -> bytes:
        found = weighted_lloyd(points, points[:10], max_iter=5, n_threads=2)
        return found.centroids.tobytes()

    one_by_one = [learn(points) for points in clouds]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(learn, clouds)) == one_by_one


@given(problem=problems(max_rows=60, max_clusters=12))
def test_seeding_leaves_true_bounds(
    problem: tuple[Points, NDArray[np.float64], NDArray[np.float64]],
) -> None:
    points, weights, centroids = problem
    seeds = draw_seeds(points, weights, len(centroids), np.random.default_rng(0), 1)
    bounds = seeds.partition.bounds
    assert bounds is not None
    distances = np.sqrt(((points[:, None] - seeds.centroids) ** 2).sum(axis=2))
    rows = np.arange(len(points))
    assert (bounds.upper >= distances[rows, seeds.partition.labels]).all()
    distances[rows, seeds.partition.labels] = np.inf
    assert (bounds.lower <= distances.min(axis=1)).all()


def run_with(isa: str) -> subprocess.CompletedProcess[str]:
    """Print the kernel's set and a fixed clustering, from another process."""
    code = (
        "import json, numpy as np, kmeander\n"
        "from kmeander import _kernel\n"
        "X = np.random.default_rng(0).normal(size=(3000, 5))\n"
        "r = kmeander.weighted_lloyd(X, X[:11])\n"
        "print(json.dumps([_kernel.instruction_set(), r.n_iter, r.error, r.centroids.tolist()]))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KMEANDER_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )


def test_instruction_sets_agree_to_rounding() -> None:
    fastest = json.loads(run_with("").stdout)
    baseline = json.loads(run_with("baseline").stdout)
    assert baseline[0] == "baseline"
    assert fastest[0] in ("avx512", "avx2", "baseline")
    assert fastest[1] == baseline[1]
    np.testing.assert_allclose(fastest[2], baseline[2], rtol=1e-9)
    np.testing.assert_allclose(fastest[3], baseline[3], rtol=1e-9, atol=1e-12)


def test_an_unknown_instruction_set_is_refused() -> None:
    stderr = run_with("mmx").stderr
    sets = ["avx512", "avx2", "baseline"]
    offered = ", ".join(map(repr, sets[sets.index(_kernel.instruction_set()) :]))
    assert (
        "kmeander.exceptions.InputError: KMEANDER_ISA is 'mmx', but this processor and build offer "
        f"{offered}. Unset it to take the fastest." in stderr
    )


@pytest.mark.slow
def test_the_baseline_kernel_passes_the_same_tests() -> None:
    """The set that a processor without AVX2 takes, in a process of its own."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("tests/kmeans/test_lloyd.py", "tests/models/test_models.py", __file__),
            *("-k", "not baseline and not instruction_set"),
        ],
        env={**os.environ, "KMEANDER_ISA": "baseline"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


# Drifting streams on which a model that carries bounds and sums is compared with one that has
# to measure everything anew at each batch.
@pytest.mark.parametrize("init", ["previous", "hungarian", "weighted", "current"])
@pytest.mark.parametrize(("n_clusters", "n_features"), [(3, 4), (9, 4), (20, 4), (40, 24)])
@pytest.mark.parametrize("seed", range(3))
def test_carried_bounds_change_no_label_along_a_stream(
    init: str, n_clusters: int, n_features: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = kmeander.FSKM(n_clusters, init=init, rho=0.8, random_state=seed)
    centres = rng.normal(scale=2.0, size=(n_clusters, n_features))
    for index in range(25):
        centres += rng.normal(scale=2.0 if index % 8 == 7 else 0.05, size=centres.shape)
        n_points = 300 if index == 0 else int(rng.integers(5, 300))
        points: Points = centres[rng.integers(n_clusters, size=n_points)]
        points = np.round(points + rng.normal(size=points.shape), 1)  # ties and twins
        if index % 3 == 0:
            points = points.astype(np.float32)
        weights = rng.integers(0, 3, size=n_points) + (np.arange(n_points) == 0)
        batch = kmeander.Batch(index, points, weights, elapsed=float(rng.choice([0.5, 1.0, 3.0])))
        forgetful = kmeander.FSKM.from_state(without_bounds(model.state()))
        step, plain = model.step(batch), forgetful.step(batch)
        assert step.to_dict() == {**plain.to_dict(), "n_distances": step.n_distances}
        assert model.window.partition is not None and forgetful.window.partition is not None
        labels = model.window.partition.labels
        assert labels.tolist() == forgetful.window.partition.labels.tolist()
        assert_bounds_hold(model.window, step.centroids)


def without_bounds(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "window": {**state["window"], "bounds": None, "totals": None}}


def assert_bounds_hold(window: Window, centroids: NDArray[np.float64] | None) -> None:
    assert window.partition is not None and window.partition.bounds is not None
    assert centroids is not None
    points = np.concatenate([batch.points.astype(np.float64) for batch in window.batches])
    labels, bounds = window.partition.labels, window.partition.bounds
    distances = np.sqrt(((points[:, None] - centroids) ** 2).sum(axis=2))
    rows = np.arange(len(distances))
    assert (bounds.upper >= distances[rows, labels]).all()
    distances[rows, labels] = np.inf
    assert (bounds.lower <= distances.min(axis=1)).all()


def test_a_crowded_list_changes_no_label() -> None:
    """Long windows that settle slowly: points are put to sleep and woken again within a step."""
    rng = np.random.default_rng(0)
    model = kmeander.FSKM(20, init="previous", rho=0.9, random_state=0)
    for index in range(7):
        points = rng.random((12_000, 2)) * [1.0, 1.0 + 0.1 * index]
        state = model.state()
        step = model.step(kmeander.Batch(index, points))
    assert step.n_iter > 30
    window = model.window
    assert window.partition is not None and step.centroids is not None
    together = np.concatenate([batch.points for batch in window.batches])
    assert window.partition.labels.tolist() == nearest(together, step.centroids, 1)[0].tolist()
    forgetful = kmeander.FSKM.from_state(without_bounds(state))
    plain = forgetful.step(kmeander.Batch(index, points))
    assert plain.centroids is not None
    assert plain.centroids.tobytes() == step.centroids.tobytes()
    assert plain.n_iter == step.n_iter


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_window_measured_anew_says_what_moved(n_threads: int) -> None:
    """Where centroids jump, batches are measured whole; sums follow from what changed its label."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(20, 10))
    model = kmeander.FSKM(20, init="previous", rho=0.8, n_threads=n_threads, random_state=0)
    n_points = 6000  # of all batches together enough for two threads
    for index in range(6):
        if index == 5:
            centres += rng.normal(scale=6.0, size=centres.shape)
        points = centres[rng.integers(20, size=n_points)] + rng.normal(size=(n_points, 10))
        weights = rng.random(n_points) if index % 2 else None
        batch = kmeander.Batch(index, points.astype(np.float32 if index == 3 else float), weights)
        forgetful = kmeander.FSKM.from_state(without_bounds(model.state()))
        step, plain = model.step(batch), forgetful.step(batch)
        assert step.to_dict() == {**plain.to_dict(), "n_distances": step.n_distances}
        assert_bounds_hold(model.window, step.centroids)
    assert step.n_distances > model.window.n_points * 20


def test_a_far_cluster_that_moves_does_not_put_all_others_in_doubt() -> None:
    """Tight clusters at home, a few centroids that wander among points far away."""
    rng = np.random.default_rng(0)
    home = rng.normal(scale=5.0, size=(6, 2))
    tight = home[rng.integers(6, size=1440)] + 0.1 * rng.normal(size=(1440, 2))
    far = rng.uniform(2000.0, 6000.0, size=(360, 2))
    found = kmeander.weighted_lloyd(np.concatenate([tight, far]), [*home, *far[:4]])
    assert found.n_iter > 5
    assert found.n_distances < 0.3 * found.n_distances_plain


def test_distances_of_a_fixed_stream_stay_few() -> None:
    """The share of plain Lloyd's that the window needs; a return to full passes would show."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3.0, size=(50, 20))
    model = kmeander.FSKM(50, init="previous", rho=0.7, max_batches=12, random_state=0)
    computed = plain = 0
    for index in range(42):
        if index % 10 == 0:
            centres += rng.normal(scale=1.0, size=centres.shape)
        points = centres[rng.integers(50, size=500)] + rng.normal(size=(500, 20))
        step = model.step(kmeander.Batch(index, points))
        if index >= 12:
            computed += step.n_distances
            plain += step.n_distances_plain
    assert computed < 0.06 * plain
