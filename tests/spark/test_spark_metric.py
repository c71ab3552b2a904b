"""Streams by angle on Spark: exact as the local model, means of rows of length 1, rows of zeros."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kmeander import ForgetfulKMeans, load
from kmeander.kmeans.coreset import lexicographic
from tests.spark.streams import (
    COLUMNS,
    estimator,
    files,
    learn_all,
    on_spark,
    session,
    stream_of_points,
    write_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session() as made:
        yield made


def test_spark_learns_and_assigns_by_angle(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    batches = stream_of_points(3)
    write_batches(tmp_path / "in", batches)
    model = estimator(metric="cosine")
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", model=model, summary="exact")
    for points in batches:
        model.partial_fit(points[lexicographic(points)])
    learned = load(next((tmp_path / "state" / "model").glob("*2.ckpt")))
    assert isinstance(learned, ForgetfulKMeans)
    assert learned.metric == "cosine"
    assert learned.cluster_centers_.tobytes() == model.cluster_centers_.tobytes()
    rows = [*batches[-1].tolist(), [0.0, 0.0, 0.0]]
    frame = spark.createDataFrame(rows, COLUMNS)
    found = ks.assign(frame, tmp_path / "state", COLUMNS).select("cluster", "distance").collect()
    assert [row["cluster"] for row in found] == [*model.predict(batches[-1]).tolist(), None]
    distances = [row["distance"] for row in found[:-1]]
    np.testing.assert_allclose(distances, model.transform(batches[-1]).min(axis=1))


def test_a_coreset_is_one_of_rows_of_length_1(spark: SparkSession, tmp_path: Path) -> None:
    batches = stream_of_points(2)
    write_batches(tmp_path / "in", batches)
    told = learn_all(
        files(spark, tmp_path / "in"), tmp_path / "state",
        model=estimator(metric="cosine"), summary="coreset", coreset_size=40,
    )  # fmt: skip
    for _, step in told:
        assert step.n_means is not None and step.n_points == 120
        assert step.centroids is not None and step.surrogate_error is not None
        np.testing.assert_allclose(np.linalg.norm(step.centroids, axis=1), 1, rtol=1e-12)
        assert 0 < step.surrogate_error < 1
