"""Concepts that drift by what was asked for, and the streams drawn from them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import DriftStream, InputError, kmeans_error, simulate_drifts
from kmeander.drifts import concepts as drift
from kmeander.drifts import magnitude
from tests import naive

EPSILONS = (0.05, 0.3, 0.5, 1.0, 2.0, 10.0)


def lumpy(n_points: int, n_features: int, seed: int) -> NDArray[np.float64]:
    """Clusters of uneven size on uneven scales, far from the origin."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(7, n_features))
    members = rng.choice(7, size=n_points, p=np.arange(1, 8) / 28)
    scales = rng.gamma(1.0, size=n_features) + 0.05
    return 30.0 + scales * (centres[members] + rng.normal(size=(n_points, n_features)))


def epsilons_of(concepts: list[Any], centroids: list[Any]) -> list[float]:
    return [
        kmeans_error(concepts[i], centroids[i - 1])
        / kmeans_error(concepts[i - 1], centroids[i - 1])
        - 1
        for i in range(1, len(concepts))
    ]


@pytest.mark.parametrize("n_features", [1, 2, 18, 178])
@pytest.mark.parametrize("n_clusters", [1, 5, 50])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_drifts_have_the_size_asked_for(epsilon: float, n_clusters: int, n_features: int) -> None:
    X = lumpy(300, n_features, seed=n_clusters)
    found = simulate_drifts(X, n_clusters, epsilon, 4, return_centroids=True, random_state=1)
    assert len(found[0]) == len(found[1]) == 4
    assert epsilons_of(*found) == pytest.approx([epsilon] * 3, rel=0.001 + 1e-9)


@pytest.mark.parametrize("n_features", [1, 2, 178])
@pytest.mark.parametrize("n_clusters", [1, 5, 50])
@pytest.mark.parametrize("epsilon", [e for e in EPSILONS if e >= 0.5])
def test_the_papers_iteration_meets_its_own_tolerance_from_below(
    epsilon: float, n_clusters: int, n_features: int
) -> None:
    X = lumpy(300, n_features, seed=n_clusters)
    found = simulate_drifts(
        X, n_clusters, epsilon, 3, method="paper", return_centroids=True, random_state=1
    )
    for size in epsilons_of(*found):
        assert abs((1 + size) / (1 + epsilon) - 1) < 0.05
        assert size < epsilon or n_clusters == 1


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n_clusters=st.integers(1, 6),
    n_features=st.integers(1, 5),
    epsilon=st.floats(0.05, 10.0),
)
def test_a_drift_moves_each_cluster_as_a_whole_and_all_equally_far(
    seed: int, n_clusters: int, n_features: int, epsilon: float
) -> None:
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    (before, after), (centroids, _) = simulate_drifts(
        X, n_clusters, epsilon, 2, return_centroids=True, random_state=seed
    )
    assert naive.drift_of(before, after, centroids) == pytest.approx(epsilon, rel=0.001 + 1e-9)
    labels = [naive.nearest(x, centroids) for x in before]
    moves = after - before
    lengths = np.linalg.norm(moves, axis=1)
    assert lengths == pytest.approx(lengths[0])
    directions = [
        moves[labels.index(k)] / lengths[0] if k in labels else np.zeros(n_features)
        for k in range(n_clusters)
    ]
    again = naive.moved(before, labels, directions, float(lengths[0]))
    np.testing.assert_allclose(after, again, rtol=0, atol=1e-9)


def test_directions_are_uniform_on_the_sphere() -> None:
    drawn = drift.random_directions(20_000, 3, np.random.default_rng(0))
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(1.0)
    # Of a uniform unit vector every coordinate has mean 0 and, in three dimensions, is uniform.
    assert np.abs(drawn.mean(axis=0)).max() < 0.02
    assert (
        pytest.approx(np.tile([-0.8, -0.5, 0.0, 0.5, 0.8], (3, 1)), abs=0.02)
        == np.quantile(drawn, [0.1, 0.25, 0.5, 0.75, 0.9], axis=0).T
    )
    signs = drift.random_directions(1000, 1, np.random.default_rng(0)).ravel()
    assert set(signs) == {-1.0, 1.0} and abs(signs.mean()) < 0.1


def test_the_first_concept_is_the_data_which_stay_as_they_are() -> None:
    X = lumpy(60, 2, seed=0)
    kept = X.copy()
    concepts = simulate_drifts(X, 3, 1.0, 3, random_state=0)
    assert (kept == X).all() and (concepts[0] == X).all()
    concepts[0][0] = 0.0
    assert (kept == X).all()
    only = simulate_drifts(X.astype(np.float32), 3, 1.0, 1, random_state=0)
    assert len(only) == 1 and (only[0] == X.astype(np.float32)).all()


def test_the_same_seed_gives_the_same_bits_and_more_concepts_the_same_first_ones() -> None:
    X = lumpy(100, 4, seed=0)
    few = simulate_drifts(X, 3, 1.0, 3, random_state=7)
    more, _ = simulate_drifts(X, 3, 1.0, 5, return_centroids=True, random_state=7)
    other = simulate_drifts(X, 3, 1.0, 3, random_state=8)
    assert [c.tobytes() for c in few] == [c.tobytes() for c in more[:3]]
    assert few[1].tobytes() != other[1].tobytes()


def test_threads_do_not_change_a_concept() -> None:
    code = """
import hashlib, numpy as np
from kmeander import simulate_drifts
X = np.random.default_rng(0).normal(size=(3000, 5))
concepts = simulate_drifts(X, 7, 0.5, 3, random_state=0)
print([hashlib.sha256(concept.tobytes()).hexdigest() for concept in concepts])
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "KMEANDER_NUM_THREADS": str(n)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in (1, 2, 5)
    }
    assert len(printed) == 1


def test_an_offset_does_not_spoil_the_size() -> None:
    X = lumpy(100, 3, seed=0) + 1e6
    found = simulate_drifts(X, 5, 0.5, 3, return_centroids=True, random_state=0)
    assert epsilons_of(*found) == pytest.approx([0.5] * 2, rel=0.001 + 1e-5)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0.0."),
    ({"epsilon": float("nan")}, "epsilon must be a finite number above 0, got nan."),
    (
        {"n_clusters": 0},
        "n_clusters must be a whole number of at least 1, got 0. It is the number of clusters K.",
    ),
    (
        {"n_concepts": 0},
        "n_concepts must be a whole number of at least 1, got 0. It is the number of concepts.",
    ),
    ({"method": "newton"}, "method must be one of 'root', 'paper', got 'newton'."),
    (
        {"n_clusters": 6},
        "X has no K-means error with 6 clusters: every point lies on its centroid, or so near that "
        "it is lost in rounding beside values of up to 7. A drift multiplies the error by 1 + "
        "epsilon, so there must be some; pass more distinct points, a smaller n_clusters, or "
        "columns less a constant.",
    ),
    (
        {"X": [[1.0, float("nan")]]},
        "X holds NaN at row 0, column 1. Every value must be finite; drop or fill such rows first.",
    ),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_what_cannot_drift_is_refused(changed: dict[str, Any], message: str) -> None:
    given_: dict[str, Any] = {
        "X": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0], [5.0, 7.0]],
        "n_clusters": 2,
        "epsilon": 1.0,
        "n_concepts": 3,
        "random_state": 0,
    }
    with pytest.raises(InputError) as raised:
        simulate_drifts(**{**given_, **changed})
    assert str(raised.value) == message


@pytest.mark.parametrize("method", ["root", "paper"])
def test_a_drift_that_misses_its_size_is_never_returned(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(magnitude, "MOST_TRIALS", 1)
    with pytest.raises(InputError, match=r"no drift of epsilon=0\.5 within .* in 1 trials"):
        simulate_drifts(lumpy(100, 2, seed=0), 8, 0.5, 2, method=method, random_state=0)


def test_a_stream_draws_from_one_concept_after_the_other() -> None:
    concepts = [np.full((5, 2), float(i)) + np.arange(5)[:, np.newaxis] / 10 for i in range(3)]
    stream = DriftStream(concepts, batch_size=50, batches_per_concept=4, random_state=0)
    assert len(stream) == 12
    drawn = list(stream)
    assert [is_drift for _, is_drift in drawn] == [i in (4, 8) for i in range(12)]
    for index, (batch, _) in enumerate(drawn):
        assert batch.shape == (50, 2)
        assert (np.floor(batch) == index // 4).all()
    again = list(stream)
    assert all((a == b).all() for (a, _), (b, _) in zip(drawn, again, strict=True))
    assert (stream.batch(7) == drawn[7][0]).all()
    records = list(stream.batches(first_index=3))
    assert [record.index for record in records] == list(range(3, 15))
    assert [record.concept for record in records] == [i // 4 for i in range(12)]


def test_rows_are_drawn_independently_and_evenly() -> None:
    stream = DriftStream([np.arange(10.0)[:, np.newaxis]], 1000, 20, random_state=1)
    counts = np.bincount(np.concatenate([batch for batch, _ in stream]).ravel().astype(int))
    assert counts == pytest.approx(2000, abs=200)
    concepts, rows = stream.draw(0)
    assert (concepts == 0).all() and (stream.batch(0).ravel() == rows).all()


def test_bad_streams_are_refused() -> None:
    def message(*given_: Any, **named: Any) -> str:
        with pytest.raises(InputError) as raised:
            DriftStream(*given_, **named)
        return str(raised.value)

    assert message([]) == "concepts is empty. A stream needs at least one concept to draw from."
    assert message([[[1.0]], [[1.0, 2.0]]]) == (
        "concepts[1] has 2 columns, concepts[0] has 1. All concepts need the same columns."
    )
    assert message([[[1.0]]], batch_size=0).startswith("batch_size must be a whole number")
    assert message([[[1.0]]], batches_per_concept=0.5).startswith("batches_per_concept must be")
    with pytest.raises(InputError, match=re.escape("index must lie in [0, 10), got 10.")):
        DriftStream([[[1.0]]]).batch(10)


def test_drifts_that_would_leave_the_range_of_values_are_refused() -> None:
    points = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(InputError) as caught:
        simulate_drifts(points, 3, 1e300, 3, random_state=0)
    assert re.fullmatch(
        r"concept 1 would reach values of \S+, beyond ±1e\+120\. Drifts of epsilon=1e\+300 are too "
        r"large for so many in a row; ask for smaller or fewer\.",
        str(caught.value),
    )


def test_a_stream_does_not_change_with_the_arrays_it_was_made_from() -> None:
    concept = np.ones((5, 2))
    stream = DriftStream([concept], batch_size=3, random_state=0)
    concept[:] = 9.0
    assert (stream.batch(0) == 1.0).all()
