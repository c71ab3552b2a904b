"""kmeander.river: river's checks, the ones it has no data for, and those it lacks for clusterers.

`river.checks.check_estimator` knows no data sets for clusterers, so of the checks that learn
something it runs none. Here its own run on data, and ours beside them; every one of ours is shown
to fail on a clusterer that is wrong in that way.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, checks, compose, metrics, preprocessing
from river.checks import common

import kmeander
from kmeander import InputError
from kmeander.estimators.river import ForgetfulKMeans
from kmeander.models.settings import Refine
from tests.streams import drifting_stream

Row = dict[Hashable, float]
NAMES = ("a", "b", "c", "d", "e")


def stream(n_batches: int = 12, n_points: int = 20) -> list[Row]:
    batches = drifting_stream(n_batches, n_points, len(NAMES), n_clusters=3)
    return [dict(zip(NAMES, row, strict=True)) for points in batches for row in points.tolist()]


def model(**params: Any) -> ForgetfulKMeans:
    return ForgetfulKMeans(**{"n_clusters": 3, "batch_size": 20, "seed": 1, **params})


# River's own -------------------------------------------------------------------------------------


def test_rivers_checks_of_all_estimators() -> None:
    assert len(list(checks.yield_checks(model()))) >= 14
    checks.check_estimator(model())


def learning_checks() -> list[Callable[..., None]]:
    """River's checks that need data and suit an estimator without targets."""
    of_others = {"check_predict_many_matches_predict_one"}  # looks for river's mini-batch bases
    return [
        check
        for name, check in inspect.getmembers(common, inspect.isfunction)
        if name.startswith("check_")
        and list(inspect.signature(check).parameters) == ["model", "dataset"]
        and not any(word in name for word in ("proba", "transform", "debug"))
        and name not in of_others
    ]


def test_rivers_suite_gives_a_clusterer_no_data_and_here_it_has_some() -> None:
    """If river gains a branch for clusterers, this test says so."""
    assert not list(checks._yield_datasets(model()))
    assert {check.__name__ for check in learning_checks()} >= {
        "check_bounded_memory_growth",
        "check_clone_is_independent",
        "check_disappearing_features",
        "check_emerging_features",
        "check_learn_many_matches_learn_one",
        "check_learn_one",
        "check_no_state_aliasing_with_input",
        "check_pickling",
        "check_radically_disappearing_features",
        "check_seeding_is_idempotent",
        "check_shuffle_features_no_impact",
    }


@pytest.mark.parametrize("check", learning_checks(), ids=lambda check: check.__name__)
def test_rivers_checks_that_learn(check: Callable[..., None]) -> None:
    random.seed(0)  # the checks shuffle with the global generator
    check(model(), [(row, 0) for row in stream()])


# Ours, of any clusterer --------------------------------------------------------------------------


def learned(clusterer: Any, rows: list[Row]) -> Any:
    for row in rows:
        clusterer.learn_one(row)
    return clusterer


def check_labels_are_ints_of_k_clusters(make: Callable[[], Any]) -> None:
    clusterer = make()
    seen = set()
    for row in stream():
        label = clusterer.predict_one(row)
        assert type(label) is int
        seen.add(label)
        clusterer.learn_one(row)
    assert seen == {0, 1, 2}


def check_predicting_teaches_nothing(make: Callable[[], Any]) -> None:
    rows = stream()
    asked, left_alone = make(), make()
    for row in rows:
        for _ in range(3):
            asked.predict_one(row)
        asked.learn_one(row)
        left_alone.learn_one(row)
    assert [asked.predict_one(row) for row in rows] == [left_alone.predict_one(r) for r in rows]


def check_clusters_are_found(make: Callable[[], Any]) -> None:
    """Clusters far apart are told apart, and rows of one are kept together."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    rows: list[Row] = [{"x": 100.0 * k + rng.normal(), "y": rng.normal()} for k in truth.tolist()]
    clusterer = learned(make(), rows)
    rand = metrics.AdjustedRand()
    for k, row in zip(truth.tolist(), rows, strict=True):
        rand.update(k, clusterer.predict_one(row))
    assert rand.get() == pytest.approx(1.0)


def check_the_stream_is_followed(make: Callable[[], Any]) -> None:
    """After a jump the centres are where the rows now are."""
    rng = np.random.default_rng(0)
    clusterer = make()
    for offset in (0.0, 1000.0):
        centres = [offset, offset + 100.0, offset + 200.0]
        for k in rng.integers(3, size=400).tolist():
            clusterer.learn_one({"x": centres[k] + rng.normal()})
    found = sorted(centre["x"] for centre in clusterer.centers.values())
    np.testing.assert_allclose(found, [1000.0, 1100.0, 1200.0], atol=2.0)


def check_rows_one_by_one_are_rows_of_a_frame(make: Callable[[], Any]) -> None:
    rows = stream()
    one, many = learned(make(), rows), make()
    for begin in range(0, len(rows), 33):  # batches and frames need not end together
        many.learn_many(pd.DataFrame(rows[begin : begin + 33]))
    assert many.centers == one.centers
    frame = pd.DataFrame(rows, index=range(7, 7 + len(rows)))
    labels = many.predict_many(frame)
    assert isinstance(labels, pd.Series)
    assert labels.index.equals(frame.index)
    assert labels.tolist() == [one.predict_one(row) for row in rows]


def check_a_copy_goes_on_alone(make: Callable[[], Any]) -> None:
    rows = stream()
    original = learned(make(), rows[:50])
    before = copy.deepcopy(original.centers)
    for duplicate in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        learned(duplicate, rows[50:])
        assert original.centers == before
        assert duplicate.centers == learned(make(), rows).centers
    assert original.clone().centers == {}


OURS = [
    check_labels_are_ints_of_k_clusters,
    check_predicting_teaches_nothing,
    check_clusters_are_found,
    check_the_stream_is_followed,
    check_rows_one_by_one_are_rows_of_a_frame,
    check_a_copy_goes_on_alone,
]


@pytest.mark.parametrize("check", OURS, ids=lambda check: check.__name__)
def test_our_checks_of_clusterers(check: Callable[..., None]) -> None:
    check(model)


class Floats(ForgetfulKMeans):
    """Answers with numbers of another type."""

    def predict_one(self, x: Any) -> Any:
        return float(super().predict_one(x))


class LearnsWhenAsked(ForgetfulKMeans):
    """Takes the rows that it is asked about."""

    def predict_one(self, x: Any) -> int:
        self.learn_one(x)
        return super().predict_one(x)


class AlwaysZero(ForgetfulKMeans):
    """Knows one cluster."""

    def predict_one(self, x: Any) -> int:
        return 0 * super().predict_one(x)


class Asleep(ForgetfulKMeans):
    """Learns one batch and no more."""

    def learn_one(self, x: Any) -> None:
        if self.step is None:
            super().learn_one(x)


class DropsRows(ForgetfulKMeans):
    """Takes every other row of a frame."""

    def learn_many(self, X: Any) -> None:
        super().learn_many(X[::2])


class Shared(ForgetfulKMeans):
    """Has one memory for all its copies."""

    def __deepcopy__(self, memo: Any) -> Shared:
        return self


@pytest.mark.parametrize(
    ("check", "wrong"),
    [*zip(OURS, [Floats, LearnsWhenAsked, AlwaysZero, Asleep, DropsRows, Shared], strict=True)],
    ids=lambda part: part.__name__,
)
def test_each_of_our_checks_can_fail(check: Callable[..., None], wrong: type[Any]) -> None:
    with pytest.raises(AssertionError):
        check(lambda: wrong(n_clusters=3, batch_size=20, seed=1))


class Nothing(base.Clusterer):  # type: ignore[misc]
    """Does nothing."""

    def learn_one(self, x: Any) -> None:
        pass

    def predict_one(self, x: Any) -> int:  # noqa: ARG002
        return 0


def test_learning_nothing_at_all_fails_our_checks() -> None:
    """What river's own suite lets pass."""
    checks.check_estimator(Nothing())
    for check in (check_labels_are_ints_of_k_clusters, check_clusters_are_found):
        with pytest.raises(AssertionError):
            check(Nothing)


# This one ----------------------------------------------------------------------------------------


@given(
    batch_size=st.integers(1, 30),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    refine=st.sampled_from([None, "swaps", "split-merge"]),
)
def test_it_is_partial_fit_on_batches(batch_size: int, cuts: list[int], refine: Refine) -> None:
    """However rows come, by one or in frames, `batch_size` of them make a batch."""
    rows = stream(6)
    clusterer = model(batch_size=batch_size, refine=refine)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 120], strict=True):
        if end - begin == 1:
            clusterer.learn_one(rows[begin])
        else:
            clusterer.learn_many(pd.DataFrame(rows[begin:end], columns=NAMES))
    expected = kmeander.ForgetfulKMeans(3, refine=refine, random_state=1)
    points = np.array([list(row.values()) for row in rows])
    for begin in range(0, 120 - batch_size + 1, batch_size):
        expected.partial_fit(points[begin : begin + batch_size])
    assert clusterer.step == expected.step_
    assert clusterer.n_waiting == 120 % batch_size
    found = [list(centre.values()) for centre in clusterer.centers.values()]
    assert found == expected.cluster_centers_.tolist()
    assert clusterer.predict_many(pd.DataFrame(rows)).tolist() == expected.predict(points).tolist()


def test_defaults_are_those_of_the_estimator() -> None:
    ours = inspect.signature(ForgetfulKMeans).parameters
    theirs = inspect.signature(kmeander.ForgetfulKMeans).parameters
    named = {"seed" if name == "random_state" else name: p for name, p in theirs.items()}
    assert {*ours} - {*named} == {"batch_size"}
    assert all(ours[name].default == p.default for name, p in named.items())


def test_in_a_pipeline_it_is_scored_by_rivers_metrics() -> None:
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), model())
    for row in stream():
        pipeline.predict_one(row)
        pipeline.learn_one(row)
    assert len(pipeline[-1].centers) == 3


def test_before_the_first_batch_the_answer_is_0_and_nothing_is_known() -> None:
    clusterer = model()
    assert clusterer.predict_one({"a": 1.0}) == 0
    assert clusterer.predict_many(pd.DataFrame({"a": [1.0, 2.0]})).tolist() == [0, 0]
    assert (clusterer.centers, clusterer.features, clusterer.step) == ({}, (), None)
    learned(clusterer, [{"a": 1.0}] * 20)  # one distinct row is not enough for three clusters
    assert clusterer.step is not None and clusterer.step.waiting
    assert (clusterer.centers, clusterer.predict_one({"a": 1.0})) == ({}, 0)


def test_what_a_row_lacks_is_0_and_what_comes_up_later_is_left_out() -> None:
    rows: list[Row] = [{"a": 5.0}, {"b": 7.0}, {"a": 5.0, "b": 7.0}]
    clusterer = learned(model(batch_size=3), rows)
    assert clusterer.features == ("a", "b")
    found = sorted(tuple(centre.values()) for centre in clusterer.centers.values())
    assert found == [(0.0, 7.0), (5.0, 0.0), (5.0, 7.0)]
    for row in rows:
        assert clusterer.predict_one({**row, "late": 1e6}) == clusterer.predict_one(row)
    learned(clusterer, [{**row, "late": 1e6} for row in rows])
    assert clusterer.features == ("a", "b")


def test_features_of_any_name_have_an_order() -> None:
    clusterer = learned(model(batch_size=3), [{10: 1.0}, {9: 1.0, "z": 2.0}, {"y": 3.0}])
    assert clusterer.features == (9, 10, "y", "z")


@pytest.mark.parametrize("bad", ["red", "1.5", None, float("nan"), float("inf")], ids=repr)
def test_a_bad_value_is_named_and_changes_nothing(bad: object) -> None:
    clusterer = learned(model(), stream(2)[:-1])
    before = pickle.dumps(clusterer)
    message = (
        f"x['b'] must be a finite number, got {bad!r}. Encode, fill or leave out such features "
        "first, in a river pipeline for instance."
    )
    for ask in (clusterer.learn_one, clusterer.predict_one):
        with pytest.raises(InputError) as caught:
            ask({"a": 1.0, "b": bad})
        assert str(caught.value) == message
    assert pickle.dumps(clusterer) == before


def test_a_frame_with_a_hole_changes_nothing() -> None:
    clusterer = learned(model(), stream(2)[:-1])
    before = pickle.dumps(clusterer)
    with pytest.raises(InputError, match="X holds NaN at row 1, column 'b'"):
        clusterer.learn_many(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.nan]}))
    assert pickle.dumps(clusterer) == before
    clusterer.learn_many(pd.DataFrame(columns=["a", "b"], dtype=float))  # no rows, nothing to do
    assert pickle.dumps(clusterer) == before


def test_wrong_parameters_and_rows_without_features_are_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1, got 0"):
        model(batch_size=0)
    with pytest.raises(InputError, match=r"rho must lie in \(0, 1\], got 1\.6"):
        model(rho=1.6)
    clusterer = model()
    with pytest.raises(InputError, match="x has no features, and none are known yet"):
        clusterer.learn_one({})
    assert clusterer.n_waiting == 0


def test_without_river_the_module_names_the_extra() -> None:
    code = "import sys; sys.modules['river'] = None; import kmeander.estimators.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: kmeander.river needs river: pip install 'kmeander[river]'"
    )


# By angle ----------------------------------------------------------------------------------------


def test_river_clusters_by_angle() -> None:
    rows = stream(4)
    found, scaled = model(metric="cosine"), model(metric="cosine")
    for place, row in enumerate(rows):
        found.learn_one(row)
        scaled.learn_one({name: value * 2.0 ** (place % 9) for name, value in row.items()})
    assert found.centers == scaled.centers
    for centre in found.centers.values():
        assert np.linalg.norm(list(centre.values())) == pytest.approx(1)
    assert [found.predict_one(row) for row in rows] == [scaled.predict_one(row) for row in rows]
    with pytest.raises(InputError, match=r"^x holds only zeros at row 0, and "):
        found.predict_one(dict.fromkeys(NAMES, 0.0))
