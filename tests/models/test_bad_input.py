"""Every batch that cannot be learned: the whole message, and a model that is as it was before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kmeander import (
    FSKM,
    PSKM,
    Batch,
    ForgetfulKMeans,
    InputError,
    InputTypeError,
    PrivilegedKMeans,
    kmeans_error,
    kmeans_plusplus,
    weighted_lloyd,
)
from kmeander.exceptions import shown
from kmeander.storage import checkpoint
from tests.streams import drifting_stream

GOOD = drifting_stream(1, n_points=20, n_features=2)[0]


def with_value(value: float) -> NDArray[np.float64]:
    bad = GOOD.copy()
    bad[3, 1] = value
    return bad


def texts() -> NDArray[Any]:
    bad = GOOD.astype(object)
    bad[2, 0] = "n/a"
    return bad


FINITE = "Every value must be finite; drop or fill such rows first."
CASES: list[tuple[str, Any, Any, type[Exception], str]] = [
    (
        "NaN",
        with_value(np.nan),
        None,
        InputError,
        f"X holds NaN at row 3, column 1. {FINITE}",
    ),
    (
        "infinite",
        with_value(np.inf),
        None,
        InputError,
        "X holds infinity at row 3, column 1. Every value must be finite; drop or clip such rows "
        "first.",
    ),
    (
        "minus infinite",
        with_value(-np.inf),
        None,
        InputError,
        "X holds -infinity at row 3, column 1. Every value must be finite; drop or clip such rows "
        "first.",
    ),
    (
        "float32 NaN",
        with_value(np.nan).astype(np.float32),
        None,
        InputError,
        f"X holds NaN at row 3, column 1. {FINITE}",
    ),
    (
        "too large",
        with_value(-3e150),
        None,
        InputError,
        "X holds -3e+150 at row 3, column 1. Values must lie within ±1e+120, so that their squares "
        "can be added; rescale the column.",
    ),
    (
        "text",
        texts(),
        None,
        InputError,
        "X holds 'n/a' at row 2, column 0, which is not a number (could not convert string to "
        "float: 'n/a'). Encode such columns as numbers or leave them out.",
    ),
    (
        "dates",
        np.full((20, 2), np.datetime64("2026-01-01")),
        None,
        InputError,
        "X has dtype datetime64[D], which is not a number. Convert dates and durations to numbers "
        "first, in a unit that suits the other columns.",
    ),
    (
        "negative weight",
        GOOD,
        [1.0] * 19 + [-2.0],
        InputError,
        "sample_weight is -2 at row 19. A weight must be 0 or lie between 1e-30 and 1e+30: it says "
        "how many points the row stands for.",
    ),
    (
        "NaN weight",
        GOOD,
        [np.nan] + [1.0] * 19,
        InputError,
        "sample_weight is nan at row 0. A weight must be 0 or lie between 1e-30 and 1e+30: it says "
        "how many points the row stands for.",
    ),
    (
        "no weight",
        GOOD,
        np.zeros(20),
        InputError,
        "sample_weight is zero in all 20 rows. At least one weight must be above 0; skip batches "
        "that do not count.",
    ),
    (
        "weights of another length",
        GOOD,
        np.ones(19),
        InputError,
        "sample_weight must hold one weight per row, shape (20,), got shape (19,).",
    ),
    (
        "text as weight",
        GOOD,
        ["one"] + [1] * 19,
        InputError,
        "sample_weight holds 'one' at row 0, which is not a number (could not convert string to "
        "float: 'one'). Encode such columns as numbers or leave them out.",
    ),
]

# Where scikit-learn, which knows frames and names, looks first, the words of the two doors differ.
MODEL_CASES: list[tuple[str, Any, Any, type[Exception], str]] = [
    (
        "empty",
        np.empty((0, 2)),
        None,
        InputError,
        "X has no rows (shape (0, 2)); at least 1 is needed. Skip empty batches.",
    ),
    (
        "no columns",
        np.empty((3, 0)),
        None,
        InputError,
        "X has 0 feature(s) (shape=(3, 0)) while a minimum of 1 is required.",
    ),
    (
        "one dimension",
        np.arange(3.0),
        None,
        InputError,
        "X must have two dimensions, rows and columns, got shape (3,). Reshape your data: "
        "reshape(-1, 1) for a single column, reshape(1, -1) for a single row.",
    ),
    (
        "ragged",
        [[1.0, 2.0], [3.0]],
        None,
        InputError,
        "X cannot be read as a table of numbers (setting an array element with a sequence. The "
        "requested array has an inhomogeneous shape after 1 dimensions. The detected shape was "
        "(2,) + inhomogeneous part.). Every row must have the same number of columns.",
    ),
    (
        "complex",
        GOOD * 1j,
        None,
        InputError,
        "Complex data not supported: X has dtype complex128.",
    ),
    (
        "sparse",
        scipy.sparse.csr_array(GOOD),
        None,
        InputTypeError,
        "X is a sparse csr_array, which kmeander does not read. Pass X.toarray() if it fits into "
        "memory, or reduce its columns first (sklearn.decomposition.TruncatedSVD).",
    ),
    (
        "masked",
        np.ma.masked_array(GOOD, mask=[[False, False]] * 19 + [[True, False]]),
        None,
        InputError,
        "X is masked at [19, 0]. Every value must be present; drop or fill such rows first.",
    ),
    (
        "a dict",
        np.array([[{}, 1.0]], dtype=object),
        None,
        InputTypeError,
        "X holds {} at row 0, column 0, which is not a number (float() argument must be a string "
        "or a real number, not 'dict'). Encode such columns as numbers or leave them out.",
    ),
    (
        "other columns",
        np.zeros((4, 3)),
        None,
        InputError,
        "batch 1 has 3 columns, the batches before it have 2. All batches of a stream need the "
        "same columns.",
    ),
]

ESTIMATOR_CASES: list[tuple[str, Any, Any, type[Exception], str]] = [
    (
        "empty",
        np.empty((0, 2)),
        None,
        ValueError,
        "Found array with 0 sample(s) (shape=(0, 2)) while a minimum of 1 is required by {name}.",
    ),
    (
        "other columns",
        np.zeros((4, 3)),
        None,
        ValueError,
        "X has 3 features, but {name} is expecting 2 features as input.",
    ),
    (
        "sparse",
        scipy.sparse.csr_array(GOOD),
        None,
        TypeError,
        "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to "
        "a dense numpy array.",
    ),
]


def ids(cases: list[tuple[str, Any, Any, type[Exception], str]]) -> list[str]:
    return [case[0].replace(" ", "-") for case in cases]


@pytest.mark.parametrize("model_class", [FSKM, PSKM])
@pytest.mark.parametrize("case", CASES + MODEL_CASES, ids=ids(CASES + MODEL_CASES))
def test_a_model_explains_a_bad_batch_and_stays_as_it_was(
    case: tuple[str, Any, Any, type[Exception], str], model_class: type[FSKM] | type[PSKM]
) -> None:
    _, points, weights, exception, message = case
    model = model_class(3, random_state=0)
    model.step(Batch(0, GOOD))
    before = checkpoint.to_bytes(model.state())
    with pytest.raises(exception) as caught:
        model.step(Batch(1, points, weights))
    assert str(caught.value) == message
    assert checkpoint.to_bytes(model.state()) == before


@pytest.mark.parametrize("estimator_class", [ForgetfulKMeans, PrivilegedKMeans])
@pytest.mark.parametrize("case", CASES + ESTIMATOR_CASES, ids=ids(CASES + ESTIMATOR_CASES))
def test_an_estimator_explains_a_bad_batch_and_stays_as_it_was(
    case: tuple[str, Any, Any, type[Exception], str],
    estimator_class: type[ForgetfulKMeans] | type[PrivilegedKMeans],
) -> None:
    _, points, weights, exception, message = case
    estimator = estimator_class(3, random_state=0).partial_fit(GOOD)
    before, shown = checkpoint.to_bytes(estimator._model.state()), dict(vars(estimator))
    with pytest.raises(exception) as caught:
        estimator.partial_fit(points, sample_weight=weights)
    assert str(caught.value) == message.format(name=estimator_class.__name__)
    assert checkpoint.to_bytes(estimator._model.state()) == before
    assert all(vars(estimator)[name] is value for name, value in shown.items())
    assert vars(estimator).keys() == shown.keys()


@pytest.mark.parametrize(
    "case", [case for case in CASES if "weight" not in case[0]], ids=lambda case: case[0]
)
def test_predict_and_score_explain_bad_rows_too(
    case: tuple[str, Any, Any, type[Exception], str],
) -> None:
    _, points, _, exception, message = case
    estimator = ForgetfulKMeans(3, random_state=0).fit(GOOD)
    for method in (estimator.predict, estimator.transform, estimator.score):
        with pytest.raises(exception) as caught:
            method(points)
        assert str(caught.value) == message


def test_a_failed_first_batch_leaves_an_estimator_that_was_never_fitted() -> None:
    estimator = ForgetfulKMeans(3)
    before = dict(vars(estimator))
    with pytest.raises(InputError):
        estimator.partial_fit(pd.DataFrame(with_value(np.nan), columns=["a", "b"]))
    assert vars(estimator) == before
    with pytest.raises(InputError):
        estimator.fit(GOOD[:2])
    assert vars(estimator) == before


def test_a_failed_fit_keeps_what_was_learnt() -> None:
    estimator = ForgetfulKMeans(3, random_state=0).partial_fit(GOOD)
    before = checkpoint.to_bytes(estimator._model.state())
    with pytest.raises(InputError) as caught:
        estimator.fit(np.zeros((2, 5)))
    assert str(caught.value) == (
        "X has 2 rows, n_clusters=3 needs at least as many to fit. Pass more rows or ask for fewer "
        "clusters; partial_fit waits for more."
    )
    assert checkpoint.to_bytes(estimator._model.state()) == before
    assert estimator.n_features_in_ == 2


SHARE = (
    "It is the share of a batch's weight kept when the next one arrives; "
    "kmeander.rho_for_half_life(batches=...) picks it from the number of batches after which half "
    "is forgotten."
)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rho": 1.3}, f"rho must lie in (0, 1], got 1.3. {SHARE}"),
        ({"rho": 0}, f"rho must lie in (0, 1], got 0. {SHARE}"),
        ({"rho": "fast"}, 'rho must be a number in (0, 1], "auto" or "two-speed", got \'fast\'.'),
        ({"rho": float("nan")}, f"rho must lie in (0, 1], got nan. {SHARE}"),
        (
            {"rho": 1.0},
            "max_batches must be given with rho=1, which never forgets: without it the window "
            "would grow without end.",
        ),
        (
            {"max_batches": 0},
            "max_batches must be a whole number of at least 1, got 0. It is the most batches "
            "remembered.",
        ),
        (
            {"n_clusters": 4, "max_points": 7},
            "max_points must be a whole number of at least 8, got 7. It is the most points "
            "remembered, two or more for each cluster; leave it out to keep every point.",
        ),
        (
            {"n_clusters": 4, "max_points": 1e4},
            "max_points must be a whole number of at least 8, got 10000.0. It is the most points "
            "remembered, two or more for each cluster; leave it out to keep every point.",
        ),
        (
            {"n_clusters": 2.5},
            "n_clusters must be a whole number of at least 1, got 2.5. It is the number of "
            "clusters K.",
        ),
        (
            {"n_clusters": True},
            "n_clusters must be a whole number of at least 1, got True. It is the number of "
            "clusters K.",
        ),
        (
            {"init": "k-means++"},
            "init must be one of 'previous', 'current', 'weighted', 'hungarian', got 'k-means++'.",
        ),
        (
            {"max_iter": 0},
            "max_iter must be a whole number of at least 1, got 0. It is the most updates of the "
            "centroids.",
        ),
        (
            {"tol": -1e-4},
            "tol must be a finite number of at least 0 (0 goes on until no label changes), got "
            "-0.0001.",
        ),
        (
            {"n_threads": 0},
            "n_threads must be a whole number of at least 1, got 0. It is the number of threads; "
            "leave it out for all cores.",
        ),
        (
            {"n_threads": 2**70},
            f"n_threads must be at most 2147483647, got {2**70}. It is the number of threads; "
            "leave it out for all cores.",
        ),
        (
            {"init": GOOD},
            "init must be one of 'previous', 'current', 'weighted', 'hungarian', got "
            f"{shown(GOOD)}.",
        ),
        (
            {"random_state": -1},
            "random_state must be a whole number of at least 0, got -1. It is a seed; a numpy "
            "Generator, a RandomState or None also serve.",
        ),
    ],
)
def test_bad_parameters_are_explained_when_a_batch_comes(
    params: dict[str, Any], message: str
) -> None:
    estimator = ForgetfulKMeans(**{"n_clusters": 3, **params})
    with pytest.raises(InputError) as caught:
        estimator.partial_fit(GOOD)
    assert str(caught.value) == message
    assert not hasattr(estimator, "cluster_centers_")


@pytest.mark.parametrize("elapsed", [0, -1.0, float("inf"), "soon", None])
def test_elapsed_must_be_positive(elapsed: Any) -> None:
    estimator = ForgetfulKMeans(3, random_state=0).partial_fit(GOOD)
    before = checkpoint.to_bytes(estimator._model.state())
    with pytest.raises(InputError) as caught:
        estimator.partial_fit(GOOD, elapsed=elapsed)
    assert str(caught.value) == f"elapsed must be a finite number above 0, got {elapsed!r}."
    assert checkpoint.to_bytes(estimator._model.state()) == before


def test_a_wrong_k_in_mid_stream_changes_nothing() -> None:
    estimator = ForgetfulKMeans(3, random_state=0).partial_fit(GOOD)
    before = checkpoint.to_bytes(estimator._model.state())
    estimator.set_params(n_clusters=(4, 2))
    with pytest.raises(InputError, match="n_clusters must begin with the smaller number"):
        estimator.partial_fit(GOOD)
    assert checkpoint.to_bytes(estimator._model.state()) == before


def test_the_thread_variable_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KMEANDER_NUM_THREADS", "many")
    with pytest.raises(InputError) as caught:
        ForgetfulKMeans(3).fit(GOOD)
    assert str(caught.value) == (
        "KMEANDER_NUM_THREADS must be a whole number of at least 1, got 'many'. It is the number "
        "of threads; leave it out for all cores."
    )
    monkeypatch.setenv("KMEANDER_NUM_THREADS", "2")
    ForgetfulKMeans(3).fit(GOOD)


def test_before_the_first_batch_predict_says_what_to_call() -> None:
    for method in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError) as caught:
            getattr(ForgetfulKMeans(), method)(GOOD)
        assert str(caught.value) == (
            "This ForgetfulKMeans instance is not fitted yet. Call 'fit' or 'partial_fit' with "
            "appropriate arguments before using this estimator."
        )


def test_while_waiting_predict_says_how_many_points_are_missing() -> None:
    estimator = ForgetfulKMeans(5).partial_fit([[1.0], [2.0], [2.0]]).partial_fit([[1.0]])
    assert estimator.step_.waiting
    assert estimator.n_steps_ == 2
    with pytest.raises(NotFittedError) as caught:
        estimator.predict([[1.0]])
    assert str(caught.value) == (
        "This ForgetfulKMeans instance is not fitted yet: the stream has shown 2 distinct points "
        "so far, n_clusters=5 needs 5. Call 'partial_fit' with more."
    )
    estimator.partial_fit([[3.0], [4.0], [5.0]])
    assert len(set(estimator.predict([[1.0], [2.0], [3.0], [4.0], [5.0]]).tolist())) == 5


def test_fit_on_too_few_distinct_points_warns_as_scikit_learn_does() -> None:
    from sklearn.cluster import KMeans

    points = [[0.1]] * 5 + [[2.0]]
    with pytest.warns(ConvergenceWarning) as theirs:
        KMeans(4, n_init=1).fit(points)
    with pytest.warns(ConvergenceWarning) as ours:
        estimator = ForgetfulKMeans(4, random_state=0).fit(points)
    assert str(ours[0].message) == (
        "Number of distinct clusters (2) found smaller than n_clusters (4). Possibly due to "
        "duplicate points in X."
    )
    assert str(theirs[0].message) == str(ours[0].message)
    assert sorted(estimator.cluster_weights_.tolist()) == [0.0, 0.0, 1.0, 5.0]
    assert estimator.step_.reseeded == ()
    assert estimator.labels_.tolist() == estimator.predict(points).tolist()
    # The idle centroids are there when the stream needs them.
    estimator.partial_fit([[7.0], [7.0], [9.0], [0.1]])
    assert (estimator.cluster_weights_ > 0).all()


@pytest.mark.parametrize(("spread", "off"), [(1e-6, 0.05), (1e-5, 0.005), (1e-2, 1e-6)])
def test_where_the_spread_is_a_few_roundings_labels_are_right_and_errors_nearly(
    spread: float, off: float
) -> None:
    """Next to 1e9 lie numbers 1.2e-7 apart; long double tells what errors are."""
    rng = np.random.default_rng(0)
    model = ForgetfulKMeans(3, rho=1.0, max_batches=9, forgetting="fixed", random_state=0)
    batches = [1e9 + spread * rng.normal(size=(500, 2)) for _ in range(4)]
    for points in batches:
        model.partial_fit(points)
    centroids = model.cluster_centers_.astype(np.longdouble)

    def squared(points: NDArray[np.float64]) -> NDArray[Any]:
        gaps = points.astype(np.longdouble)[:, np.newaxis] - centroids
        found: NDArray[Any] = (gaps * gaps).sum(axis=2)
        return found

    assert model.labels_.tolist() == squared(batches[-1]).argmin(axis=1).tolist()
    exact = float(squared(np.concatenate(batches)).min(axis=1).mean())
    assert model.surrogate_error_ == pytest.approx(exact, rel=off, abs=0.0)
    newest = float(squared(batches[-1]).min(axis=1).mean())
    found = kmeans_error(batches[-1], model.cluster_centers_)
    assert found == pytest.approx(newest, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    "points",
    [
        np.vstack([np.full((48, 3), 7.7), np.full((1, 3), 8.0), np.full((1, 3), 9.0)]),
        np.column_stack([np.full(50, 1e119), np.arange(50.0)]),
        np.arange(50.0)[:, None] * 1e118,
        np.arange(50.0)[:, None] * 1e-150,
        np.arange(50.0)[:, None] + 1e15,
        np.linspace(-3.4e38, 3.4e38, 50, dtype=np.float32)[:, None],
    ],
    ids=["constant", "one huge column", "huge", "tiny", "far from zero", "largest float32"],
)
def test_large_and_constant_values_stay_finite(points: NDArray[Any]) -> None:
    estimator = ForgetfulKMeans(3, random_state=0)
    for _ in range(3):
        estimator.partial_fit(points, sample_weight=np.full(50, 1e30))
    assert np.isfinite(estimator.cluster_centers_).all()
    assert np.isfinite([estimator.inertia_, estimator.surrogate_error_]).all()
    assert np.isfinite(estimator.transform(points)).all()
    assert estimator.labels_.tolist() == estimator.predict(points).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: weighted_lloyd(GOOD, [[0.0, 1.0, 2.0]]),
            "centroids has 3 columns, the points have 2. Both must come from the same features.",
        ),
        (
            lambda: weighted_lloyd(GOOD, [[0.0, np.nan]]),
            f"centroids holds NaN at row 0, column 1. {FINITE}",
        ),
        (
            lambda: kmeans_plusplus(GOOD, 0),
            "n_clusters must be a whole number of at least 1, got 0. It is the number of rows to "
            "draw.",
        ),
    ],
)
def test_functions_explain_bad_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
