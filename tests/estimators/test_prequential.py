"""Choosing parameters with scikit-learn's tools, as a stream would judge them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import DBSCAN, MiniBatchKMeans
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kmeander import ForgetfulKMeans, InputError, InputTypeError, PrequentialSplit, StreamFit
from tests.streams import drifting_stream

STREAM = np.concatenate(drifting_stream(6))  # batches of 60


def fixed(**params: Any) -> ForgetfulKMeans:
    return ForgetfulKMeans(4, forgetting="fixed", random_state=0, **params)


# The splitter ------------------------------------------------------------------------------------


@given(
    n_rows=st.integers(2, 60),
    batch_size=st.integers(1, 20),
    at_least=st.integers(1, 5),
    at_most=st.none() | st.integers(1, 5),
)
def test_each_batch_is_tested_once_after_those_before_it(
    n_rows: int, batch_size: int, at_least: int, at_most: int | None
) -> None:
    batches = [
        list(range(n_rows))[begin : begin + batch_size] for begin in range(0, n_rows, batch_size)
    ]
    splitter = PrequentialSplit(batch_size, min_train_batches=at_least, max_train_batches=at_most)
    expected = [
        ([*chain(*batches[:t][-(at_most or len(batches)) :])], batches[t])
        for t in range(at_least, len(batches))
    ]
    rows = np.zeros((n_rows, 1))
    if not expected:
        with pytest.raises(InputError, match="none is left to test"):
            next(splitter.split(rows))
        return
    found = [(train.tolist(), test.tolist()) for train, test in splitter.split(rows)]
    assert found == expected
    assert splitter.get_n_splits(rows) == len(expected)


def test_it_agrees_with_scikit_learns_time_series_split_where_that_can_say_it() -> None:
    theirs = TimeSeriesSplit(n_splits=5, test_size=60).split(STREAM)
    for (train, test), (their_train, their_test) in zip(
        PrequentialSplit(60).split(STREAM), theirs, strict=True
    ):
        assert train.tolist() == their_train.tolist()
        assert test.tolist() == their_test.tolist()


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1, got 0"):
        PrequentialSplit(0)
    with pytest.raises(InputError, match="min_train_batches must be a whole number of at least 1"):
        PrequentialSplit(5, min_train_batches=0)
    with pytest.raises(InputError, match="max_train_batches must be a whole number of at least 1"):
        PrequentialSplit(5, max_train_batches=0)
    with pytest.raises(InputError, match="X must be given"):
        PrequentialSplit(5).get_n_splits()
    with pytest.raises(InputError) as caught:
        PrequentialSplit(5, min_train_batches=2).get_n_splits([[0.0]] * 10)
    assert str(caught.value) == (
        "X has 10 rows, which make 2 batches of 5: none is left to test after "
        "min_train_batches=2. Give more rows or a smaller batch_size."
    )
    assert repr(PrequentialSplit(5, max_train_batches=3)) == (
        "PrequentialSplit(batch_size=5, min_train_batches=1, max_train_batches=3)"
    )


# Fitting batch by batch --------------------------------------------------------------------------


def expected_failures(estimator: StreamFit) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "a row that is repeated moves those after it into other batches"
        )
    }


@parametrize_with_checks(
    [StreamFit(ForgetfulKMeans(random_state=0), batch_size=40)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_scikit_learns_own_checks(estimator: StreamFit, check: Callable[[Any], None]) -> None:
    check(estimator)


@given(batch_size=st.integers(5, 400), weighted=st.booleans())
def test_fit_is_partial_fit_on_batches(batch_size: int, weighted: bool) -> None:
    weights = np.linspace(0.5, 2.0, len(STREAM)) if weighted else None
    fitted = StreamFit(fixed(), batch_size=batch_size).fit(STREAM, sample_weight=weights)
    expected = fixed()
    for begin in range(0, len(STREAM), batch_size):
        rows = slice(begin, begin + batch_size)
        expected.partial_fit(STREAM[rows], None, None if weights is None else weights[rows])
    assert fitted.estimator_.step_ == expected.step_
    assert fitted.predict(STREAM).tolist() == expected.predict(STREAM).tolist()
    assert fitted.score(STREAM, sample_weight=weights) == expected.score(STREAM, None, weights)


def test_the_estimator_given_is_left_alone_and_fit_begins_anew() -> None:
    given_one = fixed()
    fitted = StreamFit(given_one, batch_size=60).fit(STREAM)
    assert not hasattr(given_one, "n_steps_")
    first = fitted.estimator_.step_
    assert fitted.fit(STREAM).estimator_.step_ == first
    assert not hasattr(clone(fitted), "estimator_")


def test_frames_keep_their_names() -> None:
    frame = pd.DataFrame(STREAM, columns=["a", "b", "c"], index=np.arange(len(STREAM))[::-1])
    fitted = StreamFit(fixed(), batch_size=60).fit(frame)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.n_features_in_ == 3
    assert fitted.estimator_.step_ == StreamFit(fixed(), batch_size=60).fit(STREAM).estimator_.step_


def test_what_cannot_learn_batch_by_batch_is_refused() -> None:
    with pytest.raises(InputTypeError) as caught:
        StreamFit(DBSCAN()).fit(STREAM)
    assert str(caught.value) == (
        "estimator must have partial_fit, got DBSCAN(), which cannot learn batch by batch. In a "
        "pipeline put StreamFit around the last step alone."
    )
    assert not hasattr(StreamFit(DBSCAN()), "predict")
    with pytest.raises(NotFittedError, match="This StreamFit instance is not fitted yet"):
        StreamFit(fixed()).predict(STREAM)
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1"):
        StreamFit(fixed(), batch_size=0).fit(STREAM)


# Both together -----------------------------------------------------------------------------------


def test_the_scores_are_the_prequential_errors_of_one_pass() -> None:
    """Refitting every prefix gives what `partial_fit` says in its Steps on the way."""
    scores = cross_val_score(StreamFit(fixed(), batch_size=60), STREAM, cv=PrequentialSplit(60))
    model = fixed().partial_fit(STREAM[:60])
    for t, score in enumerate(scores, start=1):
        model.partial_fit(STREAM[60 * t : 60 * (t + 1)])
        assert model.step_.prequential_error is not None
        assert score == pytest.approx(-60 * model.step_.prequential_error)


def slow_stream(speed: float) -> Any:
    """Two clusters that move by `speed` from batch to batch, 20 batches of 40 rows."""
    rng = np.random.default_rng(3)
    centres = np.repeat([[0.0, 0.0], [60.0, 0.0]], 20, axis=0)
    move = np.array([0.0, speed])
    return np.concatenate(
        [centres + t * move + rng.normal(scale=3.0, size=(40, 2)) for t in range(20)]
    )


@pytest.mark.parametrize(("speed", "best"), [(0.0, 0.9), (5.0, 0.1)])
def test_a_grid_search_finds_the_rho_that_suits_the_stream(speed: float, best: float) -> None:
    """Long memory where nothing moves, short where everything does; in a pipeline, too."""
    model = ForgetfulKMeans(2, forgetting="fixed", random_state=0)
    grid = {"streamfit__estimator__rho": [0.1, 0.9]}
    pipeline = make_pipeline(StandardScaler(), StreamFit(model, batch_size=40))
    search = GridSearchCV(pipeline, grid, cv=PrequentialSplit(40)).fit(slow_stream(speed))
    assert search.best_params_ == {"streamfit__estimator__rho": best}
    assert search.best_estimator_[-1].estimator_.n_steps_ == 20


def test_without_stream_fit_every_rho_scores_the_same() -> None:
    """Why StreamFit is there: `fit` learns one batch, in which nothing is old."""
    search = GridSearchCV(
        ForgetfulKMeans(2, random_state=0), {"rho": [0.1, 0.9]}, cv=PrequentialSplit(40)
    ).fit(slow_stream(5.0))
    first, second = search.cv_results_["mean_test_score"]
    assert first == second


def test_other_estimators_are_judged_alike() -> None:
    stream = slow_stream(5.0)
    mean = {}
    for model in (ForgetfulKMeans(2, random_state=0), MiniBatchKMeans(2, random_state=0)):
        found = cross_validate(StreamFit(model, batch_size=40), stream, cv=PrequentialSplit(40))
        assert len(found["test_score"]) == 19
        mean[type(model).__name__] = -found["test_score"].mean() / 40
    assert mean["ForgetfulKMeans"] < mean["MiniBatchKMeans"] / 4
