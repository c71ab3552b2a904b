"""A streaming query that learns: one micro-batch, one job, one step, one checkpoint."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from kmeander.arguments import one_of, whole_number
from kmeander.estimators import ForgetfulKMeans
from kmeander.events import ALARMS
from kmeander.exceptions import ArgumentError, InputError, argument
from kmeander.models import FSKM
from kmeander.records import Step
from kmeander.runs.operations.activity import LEARN
from kmeander.sources.batching import NO_TIME, microseconds
from kmeander.spark.assigning import with_clusters
from kmeander.spark.batches import Collected, Collector
from kmeander.spark.columns import Features
from kmeander.spark.kafka import KafkaRows
from kmeander.spark.labelling import Fixed
from kmeander.spark.messenger import Messenger
from kmeander.spark.models import (
    SPARK,
    StreamState,
    centroid_checkpoints,
    from_state,
    model_checkpoints,
    model_of,
    to_state,
)
from kmeander.spark.query import LearningQuery
from kmeander.spark.rows import RowReader
from kmeander.spark.sessions import check_version, master_of
from kmeander.spark.storage import Checkpoints, place_of, spark_path, warn_of_own_disk
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import joined, split

SUMMARIES = ("auto", "exact", "coreset")
_LOG = logging.getLogger("kmeander.spark")
_NOTHING_YET = -1  # the id of the checkpoint written before the first batch


def learn(
    stream: DataFrame,
    features: str | Sequence[str],
    *,
    model: ForgetfulKMeans,
    checkpoint: str | os.PathLike[str],
    weight_column: str | None = None,
    time_column: str | None = None,
    every: str | None = None,
    bad_rows: str | os.PathLike[str] = "skip",
    summary: str = "auto",
    driver_bytes: int = 64 * 2**20,
    coreset_size: int = 4096,
    on_step: Callable[[Step, int], None] | None = None,
    write: Callable[[DataFrame, int], None] | KafkaRows | None = None,
    notify: str | None = None,
    on_event: str | None = None,
    notify_on: Sequence[str] = ALARMS,
    metrics: str | int | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
) -> LearningQuery:
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
        A folder of this query alone, on this machine or any storage that both Spark and this
        Python reach (``s3://``, ``s3a://``, ``gs://``, ``abfss://``, ``hdfs://``): below it are
        ``spark`` (Spark's own checkpoint), ``model`` and ``centroids``.
    weight_column : str, optional
        Says how many points each row stands for.
    time_column : str, optional
        Says when each row happened, as a timestamp or date: Steps then say when.
    every : str, optional
        A period such as ``"10m"``: forgetting then follows the time in `time_column`, a period
        being what a batch is otherwise.
    bad_rows : {"skip", "error"} or path-like, default="skip"
        Rows with a null, NaN or infinity, a weight below 0 or no time: left out, counted and
        logged; or they end the query, with the model as it was; or left out and written below that
        folder, as JSON lines in one folder a batch, ``batch=N``.
    summary : {"auto", "exact", "coreset"}, default="auto"
        "exact" brings all rows to the driver: the answer is the local model's on the rows in
        lexicographic order of their features, bit for bit, however they are partitioned.
        "coreset" brings `coreset_size` weighted means of each partition. "auto" is exact while
        the features of a batch take no more than `driver_bytes`. A batch that the driver's memory
        could not hold becomes a coreset in any case, and a warning says so.
    driver_bytes : int, default=64 MiB
    coreset_size : int, default=4096
        Weighted means that stand for a batch, at least two for each cluster.
    on_step : callable, optional
        Called on the driver with the Step and the batch id once they are saved: at most once for a
        batch, not at all where the driver died in between. On Spark Connect it runs on the server.
    write : callable or KafkaRows, optional
        Called on the driver with the batch's rows and their clusters, as `assign` gives them, and
        the batch id, once the batch is learned: at least once for a batch, with the same clusters
        each time. Overwriting what an earlier call wrote for the same id makes it exactly once;
        `KafkaRows` sees to that by itself.
    notify, on_event, notify_on
        As for `kmeander.run`: an address that events are sent to, a command that is started for
        each, and which kinds. What was not taken yet is in the checkpoint.
    metrics : str or int, optional
        Port, or ``host:port``, of the process that learns, at which ``/metrics`` (for Prometheus)
        and ``/health`` are served until the query has ended.
    trigger : mapping, optional
        Arguments of Spark's ``trigger``, as ``{"availableNow": True}``.
    query_name : str, optional

    Returns
    -------
    LearningQuery
        Spark's ``StreamingQuery``, started. Where a batch cannot be learned, ``awaitTermination``
        raises the sentence that says why, instead of Spark's many lines; the model is then as it
        was before that batch.
    """
    check_version(stream.sparkSession)
    if not stream.isStreaming:
        raise InputError(
            "stream must be a streaming frame, as spark.readStream makes, got a frame at rest. "
            "Learn that with ForgetfulKMeans.partial_fit."
        )
    one_of("summary", summary, SUMMARIES)
    if every is not None and time_column is None:
        raise ArgumentError(
            f"{argument('every')} counts time, and needs {argument('time_column', ...)} to say "
            "where that stands."
        )
    asked = model_of(model)
    place = place_of(checkpoint)
    rules = asked.settings.rules
    reader = RowReader(
        Features.of(stream, features),
        weight_column,
        time_column,
        fills_gaps=rules is not None and rules.missing == "median",
        metric=asked.settings.limits.metric,
    )
    reader.check(stream)
    collector = Collector(
        reader,
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
            at_least=2 * asked.settings.clusters.high,
            meaning="the weighted means of a batch, two or more for each cluster",
        ),
    )
    messenger = Messenger(place, reader.features.names, notify_on, notify, on_event, metrics)
    learner = Learner(
        asked,
        collector,
        model_checkpoints(place),
        centroid_checkpoints(place),
        on_step,
        write,
        period=None if every is None else microseconds(every),
        bad_rows=os.fspath(bad_rows),
        messenger=messenger,
    )
    warn_of_own_disk(place, master_of(stream.sparkSession))
    learner.begin()
    writer = stream.writeStream.foreachBatch(learner.take)
    writer = writer.option("checkpointLocation", spark_path(joined(place, SPARK)))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return LearningQuery(writer.start(), messenger.close)


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
        write: Callable[[DataFrame, int], None] | KafkaRows | None = None,
        *,
        period: int | None = None,
        bad_rows: str = "skip",
        messenger: Messenger | None = None,
    ) -> None:
        self._asked = asked
        self._collector = collector
        self._features = collector.reader.features
        self._models = models
        self._centroids = centroids
        self._on_step = on_step
        self._write = write
        self._period = period
        self._bad_rows = bad_rows
        self._messenger = messenger
        self._kept: tuple[int, FSKM, StreamState] | None = None

    def begin(self) -> None:
        """See that there is a checkpoint, so that the seed is known from the first batch on."""
        newest = self._models.newest()
        if newest is None:
            self._save(self._asked, StreamState(_NOTHING_YET))
        else:
            model, _ = self._newest(newest)
            self._publish(model, newest)
            self._models.tidy()
            self._centroids.tidy()

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Learn one micro-batch, unless that has been done."""
        newest = self._models.newest()
        if newest is None:  # someone has removed it while the query ran
            newest = _NOTHING_YET
            self._save(self._asked, StreamState(newest))
        model, stream = self._newest(newest)
        if batch_id < newest:
            _LOG.warning(
                "Batch %d is skipped: batch %d has been learned already. Spark's own checkpoint is "
                "older than the model's; begin anew with another checkpoint if this goes on.",
                batch_id,
                newest,
            )
            return
        fixed = None
        if batch_id == newest:
            _LOG.info("Batch %d came again: it has been learned already.", batch_id)
            if self._centroids.newest() == newest:  # the model may have been asked for others since
                fixed = Fixed.from_state(self._centroids.read(newest))
        elif self._learn_and_tell(frame, model, replace(stream, batch_id=batch_id)):
            fixed = Fixed.of(model)
        if self._write is not None and fixed is not None:
            rows = with_clusters(frame, self._features, fixed)
            if isinstance(self._write, KafkaRows):
                self._write(rows, batch_id, self._stream_id())
            else:
                self._write(rows, batch_id)

    def _stream_id(self) -> str:
        """Return the id that Spark has given the stream, for as long as its checkpoint lasts."""
        folder, _ = split(self._models.folder)
        path = joined(joined(folder, SPARK), "metadata")
        with filesystem_of(path).open(path) as file:
            return str(json.loads(file.read())["id"])

    def _learn_and_tell(self, frame: DataFrame, model: FSKM, stream: StreamState) -> bool:
        """Learn a batch, while who asks is told that this goes on."""
        if self._messenger is None:
            return self._learn(frame, model, stream)
        self._messenger.enter(LEARN)
        try:
            return self._learn(frame, model, stream)
        finally:
            self._messenger.rest()

    def _learn(self, frame: DataFrame, model: FSKM, stream: StreamState) -> bool:
        """Learn a batch and save what was learned; say whether there was anything to learn."""
        # Until the checkpoint is written nothing is kept: a failed batch comes again.
        before, self._kept = self._kept, None
        collected = self._collector_for(model).collect(frame)
        if collected.n_bad:
            self._set_aside(frame, collected, stream.batch_id)
        if not collected.n_rows:
            self._kept = before
            return False
        step = self._step(model, collected, stream)
        waiting = None
        if self._messenger is not None:
            waiting = self._messenger.take(step, model, stream.notices, collected.n_bad)
        self._save(model, stream.after(collected, waiting))
        if self._on_step is not None:
            self._on_step(step, stream.batch_id)
        return True

    def _collector_for(self, model: FSKM) -> Collector:
        """Return what collects a batch, now that more is known of its rows."""
        if self._features.kind == "numbers" or model.settings.rules is not None:
            return self._collector
        reader = replace(self._collector.reader, width=model.n_features)
        return replace(self._collector, reader=reader)

    def _set_aside(self, frame: DataFrame, collected: Collected, batch_id: int) -> None:
        """Refuse rows that cannot be learned, or say how many there are, and write them."""
        rules = self._asked.settings.rules
        if self._bad_rows == "error" and (rules is None or rules.missing != "skip"):
            skip = argument("bad_rows", "skip")
            raise InputError(f"{collected.example}; {skip} goes on without such rows.")
        _LOG.warning(
            "Batch %d: %d of %d rows are set aside, such as one of which %s.",
            batch_id,
            collected.n_bad,
            collected.n_bad + collected.n_rows,
            collected.example,
        )
        if self._bad_rows not in ("error", "skip"):
            # Before the batch is saved: if it comes again they are written again, over these.
            folder = spark_path(joined(place_of(self._bad_rows), f"batch={batch_id}"))
            self._collector.rejected(frame).write.mode("overwrite").json(folder)

    def _step(self, model: FSKM, collected: Collected, stream: StreamState) -> Step:
        """Learn a batch, its rows prepared where the model says so."""
        elapsed = stream.elapsed(collected.last_time, self._period, NO_TIME)
        if model.settings.rules is None:
            batch = collected.batch(model.n_steps, elapsed)
            assert batch is not None
            return model.step(batch)
        if collected.coreset is not None:
            raise InputError(
                "model prepares rows, which the weighted means of a coreset are not. Pass "
                'summary="exact", or more driver_bytes, or a model with prepare=None.'
            )
        assert collected.points is not None
        rows = self._features.rows(collected.points)
        return model.learn(rows, collected.weights, elapsed=elapsed, times=collected.times)

    def _newest(self, batch_id: int) -> tuple[FSKM, StreamState]:
        if self._kept is not None and self._kept[0] == batch_id:
            return self._kept[1:]
        state = self._models.read(batch_id)
        asked = FSKM.of(self._asked.settings, self._asked.seed)
        model = from_state(state, asked, self._features)
        stream = StreamState.from_state(state)
        self._kept = batch_id, model, stream
        return model, stream

    def _save(self, model: FSKM, stream: StreamState) -> None:
        self._models.save(stream.batch_id, to_state(model, stream, self._features))
        self._kept = stream.batch_id, model, stream
        self._publish(model, stream.batch_id)

    def _publish(self, model: FSKM, batch_id: int) -> None:
        """Lay the centroids out for those who assign rows."""
        fixed = Fixed.of(model)
        if fixed is not None and self._centroids.newest() != batch_id:
            self._centroids.save(batch_id, fixed.state(self._features.columns))

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process begins with what the checkpoint says.
        return {**self.__dict__, "_kept": None}
