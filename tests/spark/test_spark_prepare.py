"""Rows are prepared on Spark as they are by the local model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kmeander import ForgetfulKMeans, Preparation, load
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


def test_rows_are_prepared_as_the_local_model_prepares_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    from kmeander import spark as ks

    scales = np.geomspace(1, 1e6, len(COLUMNS))
    batches = [points * scales for points in stream_of_points()]
    write_batches(tmp_path / "in", batches)
    model = estimator(prepare="auto")
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", model=model, summary="exact")
    local = estimator(prepare=Preparation(identifiers="keep"))
    for points in batches:
        local.partial_fit(points[lexicographic(points)])
    learned = load(next((tmp_path / "state" / "model").glob("*5.ckpt")))
    assert isinstance(learned, ForgetfulKMeans)
    assert learned.cluster_centers_.tobytes() == local.cluster_centers_.tobytes()
    frame = spark.createDataFrame(batches[-1].tolist(), COLUMNS)
    rows = ks.assign(frame, tmp_path / "state", COLUMNS).select("cluster").collect()
    assert [row["cluster"] for row in rows] == local.predict(batches[-1]).tolist()


def test_a_coreset_cannot_be_prepared(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", stream_of_points())
    with pytest.raises(Exception, match="model prepares rows, which the weighted means"):
        learn_all(
            files(spark, tmp_path / "in"),
            tmp_path / "state",
            model=estimator(prepare="auto"),
            summary="coreset",
        )
