"""A streaming query that learns: one micro-batch, one job, one step, one checkpoint."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from kmeander.arguments import one_of, whole_number
from kmeander.estimators import ForgetfulKMeans
from kmeander.exceptions import InputError
from kmeander.models import FSKM
from kmeander.records import Batch, Step
from kmeander.spark.assigning import with_clusters
from kmeander.spark.batches import Collector
from kmeander.spark.columns import Features
from kmeander.spark.labelling import Fixed
from kmeander.spark.models import (
    SPARK,
    centroid_checkpoints,
    from_state,
    model_checkpoints,
    model_of,
    to_state,
)
from kmeander.spark.storage import Checkpoints

SUMMARIES = ("auto", "exact", "coreset")
_LOG = logging.getLogger("kmeander.spark")
_NOTHING_YET = -1  # the id of the checkpoint written before the first batch


def learn(
    stream: DataFrame,
    features: str | Sequence[str],
    *,
    model: ForgetfulKMeans,
    checkpoint: str | os.PathLike[str],
    summary: str = "auto",
    driver_bytes: int = 64 * 2**20,
    coreset_size: int = 4096,
    on_step: Callable[[Step, int], None] | None = None,
    write: Callable[[DataFrame, int], None] | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
) -> StreamingQuery:
    """Learn a stream: every micro-batch is a batch of the model, its state is in `checkpoint`.

    Start it again with the same checkpoint and it goes on, whatever ended it: no batch is lost or
    learned twice. What is then given as `model` decides the settings from there on; what was
    learned and the seed come from the checkpoint. `model` itself is not changed: `load` returns
    what was learned.

    Parameters
    ----------
    stream : streaming DataFrame
    features : str or sequence of str
        Columns of numbers; or one column that holds an ml Vector or an array of numbers.
    model : ForgetfulKMeans
        Its settings, and where to begin if it has learned something.
    checkpoint : str or path-like
        A folder on any file system that Spark reaches, of this query alone: below it are
        ``spark`` (Spark's own checkpoint), ``model`` and ``centroids``.
    summary : {"auto", "exact", "coreset"}, default="auto"
        "exact" brings all rows to the driver: the answer is the local model's on the rows in
        lexicographic order of their features, bit for bit, however they are partitioned.
        "coreset" brings `coreset_size` weighted means of each partition. "auto" is exact while
        the features of a batch take no more than `driver_bytes`.
    driver_bytes : int, default=64 MiB
    coreset_size : int, default=4096
        Weighted means that stand for a batch, at least two for each cluster.
    on_step : callable, optional
        Called on the driver with the Step and the batch id once they are saved: at most once for a
        batch, not at all where the driver died in between.
    write : callable, optional
        Called on the driver with the batch's rows and their clusters, as `assign` gives them, and
        the batch id, once the batch is learned: at least once for a batch, with the same clusters
        each time. Overwriting what an earlier call wrote for the same id makes it exactly once.
    trigger : mapping, optional
        Arguments of Spark's ``trigger``, as ``{"availableNow": True}``.
    query_name : str, optional

    Returns
    -------
    StreamingQuery
        Started. A batch that cannot be learned (a null, a NaN) ends it with an exception that says
        where and why; the model is then as it was before that batch.
    """
    if not stream.isStreaming:
        raise InputError(
            "stream must be a streaming frame, as spark.readStream makes, got a frame at rest. "
            "Learn that with ForgetfulKMeans.partial_fit."
        )
    one_of("summary", summary, SUMMARIES)
    asked = model_of(model)
    path = os.fspath(checkpoint).rstrip("/")
    known = Features.of(stream, features)
    collector = Collector(
        known,
        summary,
        whole_number(
            "driver_bytes",
            driver_bytes,
            at_least=1,
            at_most=2**63 - 1,
            meaning="the most bytes of features for which a batch is exact",
        ),
        whole_number(
            "coreset_size",
            coreset_size,
            at_least=2 * asked.n_clusters,
            meaning="the weighted means of a batch, two or more for each cluster",
        ),
        asked.settings.limits.metric,
    )
    spark = stream.sparkSession
    learner = Learner(
        asked,
        collector,
        model_checkpoints(spark, path),
        centroid_checkpoints(spark, path),
        on_step,
        write,
    )
    learner.begin()
    writer = stream.writeStream.foreachBatch(learner.take)
    writer = writer.option("checkpointLocation", f"{path}/{SPARK}")
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


class Learner:
    """Takes micro-batches as Spark delivers them: at least once, maybe in another process.

    The state is in the checkpoint. What is kept here saves reading it again, and counts only while
    the newest checkpoint is the one that was written from it.
    """

    def __init__(
        self,
        asked: FSKM,
        collector: Collector,
        models: Checkpoints,
        centroids: Checkpoints,
        on_step: Callable[[Step, int], None] | None = None,
        write: Callable[[DataFrame, int], None] | None = None,
    ) -> None:
        self._asked = asked
        self._collector = collector
        self._models = models
        self._centroids = centroids
        self._on_step = on_step
        self._write = write
        self._kept: tuple[int, FSKM] | None = None

    def begin(self) -> None:
        """See that there is a checkpoint, so that the seed is known from the first batch on."""
        newest = self._models.newest()
        if newest is None:
            self._save(self._asked, _NOTHING_YET)
        else:
            self._publish(self._newest(newest), newest)

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Learn one micro-batch, unless that has been done."""
        newest = self._models.newest()
        if newest is None:  # someone has removed it while the query ran
            newest = _NOTHING_YET
            self._save(self._asked, newest)
        model = self._newest(newest)
        if batch_id <= newest:
            if batch_id < newest:
                _LOG.warning(
                    "Batch %d is skipped: batch %d has been learned already. Spark's own "
                    "checkpoint is older than the model's; begin anew with another checkpoint if "
                    "this goes on.",
                    batch_id,
                    newest,
                )
                return
            _LOG.info("Batch %d came again: it has been learned already.", batch_id)
        else:
            # Until the checkpoint is written nothing is kept: a failed batch comes again.
            self._kept = None
            batch = self._collector.batch(frame, model.n_steps)
            if batch is None:
                self._kept = newest, model
                return
            step = self._step(model, batch)
            self._save(model, batch_id)
            if self._on_step is not None:
                self._on_step(step, batch_id)
        fixed = Fixed.of(model)
        if self._write is not None and fixed is not None:
            self._write(with_clusters(frame, self._collector.features, fixed), batch_id)

    def _step(self, model: FSKM, batch: Batch) -> Step:
        """Learn a batch, its rows prepared where the model says so."""
        if model.settings.rules is None:
            return model.step(batch)
        if batch.n_means is not None:
            raise InputError(
                "model prepares rows, which the weighted means of a coreset are not. Pass "
                'summary="exact", or more driver_bytes, or a model with prepare=None.'
            )
        return model.learn(self._collector.features.rows(batch.points))

    def _newest(self, batch_id: int) -> FSKM:
        if self._kept is not None and self._kept[0] == batch_id:
            return self._kept[1]
        state = self._models.read(batch_id)
        asked = FSKM.of(self._asked.settings, self._asked.seed)
        model = from_state(state, asked, self._collector.features)
        self._kept = batch_id, model
        return model

    def _save(self, model: FSKM, batch_id: int) -> None:
        self._models.save(batch_id, to_state(model, batch_id, self._collector.features))
        self._kept = batch_id, model
        self._publish(model, batch_id)

    def _publish(self, model: FSKM, batch_id: int) -> None:
        """Lay the centroids out for those who assign rows."""
        fixed = Fixed.of(model)
        if fixed is not None and self._centroids.newest() != batch_id:
            self._centroids.save(batch_id, fixed.state(self._collector.features.columns))

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process begins with what the checkpoint says.
        return {**self.__dict__, "_kept": None}
