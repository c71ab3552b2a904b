"""scikit-learn's metadata routing: sample_weight and elapsed come to the methods that ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from kmeander import ForgetfulKMeans, PrequentialSplit, PrivilegedKMeans, StreamFit
from tests.streams import drifting_stream

STREAM = drifting_stream(4)
WEIGHTS = np.linspace(0.0, 2.0, 60)


@pytest.fixture(autouse=True)
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


class Router(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The least that scikit-learn calls a router of partial_fit, as its guide has it."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_metadata_routing(self) -> MetadataRouter:
        mapping = MethodMapping().add(caller="partial_fit", callee="partial_fit")
        return MetadataRouter(owner=type(self).__name__).add(
            estimator=self.estimator, method_mapping=mapping
        )

    def partial_fit(self, X: Any, y: object = None, **params: Any) -> Router:
        routed = process_routing(self, "partial_fit", **params)
        self.estimator.partial_fit(X, y, **routed.estimator.partial_fit)
        return self


def test_weights_and_elapsed_come_to_partial_fit_when_asked_for() -> None:
    asking = ForgetfulKMeans(4, random_state=0).set_partial_fit_request(
        sample_weight=True, elapsed=True
    )
    router, expected = Router(asking), ForgetfulKMeans(4, random_state=0)
    for points in STREAM:
        router.partial_fit(points, sample_weight=WEIGHTS, elapsed=2.5)
        expected.partial_fit(points, None, WEIGHTS, elapsed=2.5)
        assert router.estimator.step_ == expected.step_
    ordinary = ForgetfulKMeans(4, random_state=0)
    for points in STREAM:
        ordinary.partial_fit(points)
    assert ordinary.step_ != expected.step_  # they do make a difference


def test_what_is_refused_or_not_asked_for_is_an_error() -> None:
    refusing = ForgetfulKMeans(4).set_partial_fit_request(sample_weight=True, elapsed=False)
    with pytest.raises(TypeError, match=r"elapsed.*not routed to any object"):
        Router(refusing).partial_fit(STREAM[0], sample_weight=WEIGHTS, elapsed=2.0)
    with pytest.raises(UnsetMetadataPassedError, match="elapsed"):
        Router(ForgetfulKMeans(4)).partial_fit(STREAM[0], elapsed=2.0)
    assert not hasattr(refusing, "n_steps_")


@pytest.mark.parametrize("estimator", [ForgetfulKMeans(), PrivilegedKMeans()], ids=repr)
def test_every_method_says_what_it_takes(estimator: Any) -> None:
    requests = estimator.get_metadata_routing()
    own = {"ForgetfulKMeans": "elapsed", "PrivilegedKMeans": "drift"}[type(estimator).__name__]
    assert set(requests.fit.requests) == {"sample_weight"}
    assert set(requests.partial_fit.requests) == {"sample_weight", own, "rows", "texts"}
    assert set(requests.score.requests) == {"sample_weight"}
    assert set(requests.predict.requests) == set()


def test_requests_survive_cloning() -> None:
    asking = ForgetfulKMeans().set_partial_fit_request(elapsed=True)
    assert clone(asking).get_metadata_routing().partial_fit.requests["elapsed"] is True


def test_a_pipeline_takes_weights_to_the_last_step() -> None:
    def pipeline(model: ForgetfulKMeans) -> Any:
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        return make_pipeline(scaler, model)

    model = ForgetfulKMeans(4, random_state=0)
    model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    fitted = pipeline(model).fit(STREAM[0], sample_weight=WEIGHTS)
    scaled = StandardScaler().fit_transform(STREAM[0])
    expected = ForgetfulKMeans(4, random_state=0).fit(scaled, sample_weight=WEIGHTS)
    assert fitted[-1].step_ == expected.step_
    assert fitted.score(STREAM[0], sample_weight=WEIGHTS) == expected.score(
        scaled, sample_weight=WEIGHTS
    )


def test_cross_validation_takes_weights_to_stream_fit_and_its_score() -> None:
    stream = np.concatenate(STREAM)
    weights = np.linspace(0.5, 2.0, len(stream))
    model = StreamFit(ForgetfulKMeans(4, random_state=0), batch_size=60)
    model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    found = cross_validate(
        model, stream, cv=PrequentialSplit(60), params={"sample_weight": weights}
    )["test_score"]
    expected = ForgetfulKMeans(4, random_state=0)
    for t, score in enumerate(found, start=1):
        past, now = slice(60 * (t - 1), 60 * t), slice(60 * t, 60 * (t + 1))
        expected.partial_fit(stream[past], None, weights[past])
        assert score == expected.score(stream[now], None, weights[now])
