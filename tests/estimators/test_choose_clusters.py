"""Choosing K: the indices of scikit-learn, the BIC by hand, and how often each finds the truth."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import kmeander
from kmeander import InputError, InputTypeError, Suggestion, suggest_clusters
from kmeander.estimators.choose_clusters import CRITERIA, SILHOUETTE_ROWS

Array = Any

# How far apart centres are at least, in standard deviations, and what is peculiar.
MIXTURES = {
    "far apart": (8.0, "round"),
    "near": (5.0, "round"),
    "overlapping": (3.0, "round"),
    "unequal sizes": (6.0, "unequal"),
    "uniform": (6.0, "uniform"),
    "elongated": (8.0, "elongated"),
    "unequal widths": (7.0, "widths"),
}


def mixture(name: str, n_clusters: int, n_features: int, seed: int, n_points: int = 400) -> Array:
    apart, kind = MIXTURES[name]
    rng = np.random.default_rng(seed)
    centres: list[Array] = []
    room = apart
    while len(centres) < n_clusters:
        centre = rng.uniform(-room, room, size=n_features)
        if all(np.linalg.norm(centre - other) >= apart for other in centres):
            centres.append(centre)
        else:
            room *= 1.02
    shares = np.geomspace(1.0, 8.0 if kind == "unequal" else 1.0, n_clusters)
    which = rng.choice(n_clusters, size=n_points, p=shares / shares.sum())
    points = rng.normal(size=(n_points, n_features))
    if kind == "uniform":
        points = rng.uniform(-(3**0.5), 3**0.5, size=points.shape)
    if kind == "elongated":
        points *= np.where(np.arange(n_features) == 0, 2.5, 0.6)
    if kind == "widths":
        points *= np.linspace(0.5, 1.5, n_clusters)[which][:, np.newaxis]
    return np.array(centres)[which] + points


def hits(name: str, n_features: int, n_seeds: int = 7) -> dict[str, int]:
    """How often each criterion finds the right K, of 2 to 8, among 1 to 11."""
    counts = dict.fromkeys([*CRITERIA, "suggested"], 0)
    for seed in range(n_seeds):
        truth = 2 + seed % 7
        X = mixture(name, truth, n_features, seed)
        found = suggest_clusters(X, range(1, 12), random_state=seed)
        for criterion in CRITERIA:
            counts[criterion] += found.best(criterion) == truth
        counts["suggested"] += found.n_clusters == truth
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 20])
@pytest.mark.parametrize("name", MIXTURES)
def test_how_often_each_criterion_finds_the_truth(name: str, n_features: int) -> None:
    found = hits(name, n_features)
    print(name, n_features, found)
    assert found["suggested"] == found["silhouette"]
    assert found["silhouette"] >= 6
    if name == "elongated":  # a chain of round clusters fits each of them better, as a rule
        assert found["bic"] == 0
    elif name != "unequal widths":
        assert found["bic"] >= 6


@pytest.mark.parametrize("n_features", [2, 20])
@pytest.mark.parametrize("kind", ["round", "uniform"])
def test_one_cluster_is_found_whatever_the_criterion(kind: str, n_features: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        size = (400, n_features)
        X = rng.normal(size=size) if kind == "round" else rng.uniform(size=size)
        for criterion in ("silhouette", "bic"):
            found = suggest_clusters(X, range(1, 6), criterion=criterion, random_state=seed)
            assert found.n_clusters == 1
        assert suggest_clusters(X, [2, 3], random_state=seed).n_clusters > 1


def test_scores_are_those_of_scikit_learn() -> None:
    X = mixture("overlapping", 3, 2, seed=1)
    found = suggest_clusters(X, [3], random_state=0)
    # Clusters apart enough to be found by any K-means.
    model = kmeander.FSKM(3, refine=50, random_state=0)
    model.fit(kmeander.Batch(0, X))
    scores = {name: known[3] for name, known in found.scores.items()}
    assert scores["silhouette"] == pytest.approx(metrics.silhouette_score(X, model.labels))
    assert scores["davies_bouldin"] == pytest.approx(metrics.davies_bouldin_score(X, model.labels))
    assert scores["calinski_harabasz"] == pytest.approx(
        metrics.calinski_harabasz_score(X, model.labels)
    )


def test_the_bic_is_that_of_the_paper_worked_out_by_hand() -> None:
    """Two clusters, 0 0 2 2 and 10 12, in one column: variance (4 + 2) / (6 - 2)."""
    X = [[0.0], [0.0], [2.0], [2.0], [10.0], [12.0]]
    found = suggest_clusters(X, [2], criterion="bic", random_state=0)
    density = -0.5 * math.log(2 * math.pi * 1.5)
    likelihood = 4 * math.log(4 / 6) + 2 * math.log(2 / 6) + 6 * density - 6 / (2 * 1.5)
    assert found.scores["bic"][2] == pytest.approx(likelihood - (1 + 2 + 1) / 2 * math.log(6))


@given(seed=st.integers(0, 2**32 - 1))
def test_a_weight_counts_as_so_many_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2)) + rng.choice([0.0, 30.0], size=(30, 1))
    times = rng.integers(1, 4, size=30)
    weighted = suggest_clusters(X, [1, 2], sample_weight=times, random_state=0)
    repeated = suggest_clusters(np.repeat(X, times, axis=0), [1, 2], random_state=0)
    for k in (1, 2):
        assert weighted.scores["bic"][k] == pytest.approx(repeated.scores["bic"][k])


def test_many_rows_are_sampled_for_the_silhouette_and_the_same_seed_gives_the_same() -> None:
    X = mixture("near", 4, 3, seed=0, n_points=2 * SILHOUETTE_ROWS)
    one, same = (suggest_clusters(X, range(1, 7), random_state=5) for _ in range(2))
    assert str(one) == str(same)
    assert one.n_clusters == 4
    whole = suggest_clusters(X[:SILHOUETTE_ROWS], [4], random_state=5).scores["silhouette"][4]
    assert one.scores["silhouette"][4] == pytest.approx(whole, abs=0.02)
    assert one.scores["silhouette"][4] != whole


def test_the_table_shows_every_candidate_and_the_best() -> None:
    scores = {
        "silhouette": {1: math.nan, 2: 0.5, 3: 0.25},
        "davies_bouldin": {1: math.nan, 2: 0.5, 3: 0.25},
        "calinski_harabasz": {1: math.nan, 2: math.nan, 3: math.nan},
        "bic": {1: -3.0, 2: -2.0, 3: -1.0},
    }
    found = Suggestion(2, "silhouette", scores)
    assert [found.best(name) for name in CRITERIA] == [2, 3, None, 3]
    lines = str(found).splitlines()
    assert lines[0].split() == ["K", *CRITERIA]
    assert [line.split() for line in lines[1:4]] == [
        ["1", "nan", "nan", "nan", "-3"],
        ["2", "0.5*", "0.5", "nan", "-2"],
        ["3", "0.25", "0.25*", "nan", "-1*"],
    ]
    assert lines[4] == "2 clusters by silhouette"


def test_places_without_spread_are_as_many_clusters() -> None:
    X = np.repeat([[0.0], [1.0], [5.0]], 20, axis=0)
    found = suggest_clusters(X, [1, 2, 3], criterion="bic", random_state=0)
    assert found.n_clusters == 3
    assert found.scores["bic"][3] == math.inf


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"criterion": "aic"}, InputError, "criterion must be one of 'silhouette', "
         "'davies_bouldin', 'calinski_harabasz', 'bic', 'valleys', got 'aic'."),
        ({"candidates": 3}, InputTypeError, "candidates must be numbers of clusters to try, such "
         "as range(2, 11), got 3."),
        ({"candidates": []}, InputError, "candidates is empty. Pass the numbers of clusters to "
         "try: range(2, 11)."),
        ({"candidates": [0]}, InputError, "candidates must be a whole number of at least 1, got 0. "
         "It is a number of clusters to try, each."),
        ({"candidates": [1]}, InputError, "candidates holds only 1, of which "
         "criterion='silhouette' cannot speak. Add larger ones, or use criterion=\"bic\"."),
        ({"candidates": [2, 9]}, InputError, "X has 4 distinct points of weight above 0, but 9 "
         "clusters are among the candidates. Pass more rows or smaller candidates."),
        ({"candidates": [4]}, InputError, "criterion='silhouette' has no score for any of the "
         "candidates [4]: it needs at least one K between 2 and the number of rows, 4, less 1. "
         "Pass more rows."),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(arguments: Any, kind: Any, message: str) -> None:
    X = [[0.0], [1.0], [5.0], [6.0]]
    with pytest.raises(kind, match=re.escape(message)):
        suggest_clusters(X, **{"candidates": [2], **arguments})


def test_the_last_line_says_when_bic_has_overruled(rng: np.random.Generator) -> None:
    found = suggest_clusters(rng.normal(size=(400, 2)), range(1, 5), random_state=0)
    assert found.n_clusters == 1
    alone = found.best("silhouette")
    assert str(found).splitlines()[-1] == f"1 cluster by bic (silhouette alone has {alone})"


@pytest.mark.parametrize("name", ["far apart", "unequal widths"])
def test_the_rule_of_k_that_follows_is_told_beside_the_criterion(name: str) -> None:
    X = mixture(name, 4, 20, seed=2)
    found = suggest_clusters(X, range(1, 9), random_state=0)
    assert found.followed == found.n_clusters == 4
    assert str(found).endswith("4 clusters by silhouette")
    by_rule = suggest_clusters(X, range(1, 9), criterion="valleys", random_state=0)
    assert by_rule.n_clusters == 4
    assert str(by_rule).endswith("4 clusters by valleys")
    model = kmeander.ForgetfulKMeans((1, 8), random_state=0).fit(X)
    assert model.n_clusters_ == 4
    differing = Suggestion(4, "silhouette", found.scores, followed=2)
    assert str(differing).endswith("4 clusters by silhouette; 2 by valleys")
