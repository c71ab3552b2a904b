"""Rows of a stream to the clusters of a saved model, in bounded memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kmeander.arguments import one_of, thread_count
from kmeander.exceptions import ArgumentError, InputError, StreamError, argument
from kmeander.kmeans.lloyd import nearest
from kmeander.models import FSKM, PSKM
from kmeander.runs.outputs import check_beside
from kmeander.sinks import LearnedBatch, Sending, assignment_sink
from kmeander.sinks.assignments import check_keys
from kmeander.sources import Reading, Wanted, open_source
from kmeander.sources.batching import BAD_ROWS, Batches, Batching
from kmeander.storage import model_file as saved_model
from kmeander.storage.filesystem import is_one
from kmeander.wire.kafka_settings import kafka_settings

if TYPE_CHECKING:
    import threading

_log = logging.getLogger("kmeander")
_MODELS: dict[str, type[FSKM] | type[PSKM]] = {"ForgetfulKMeans": FSKM, "PrivilegedKMeans": PSKM}


@dataclass
class PredictionSummary:
    """What was assigned."""

    n_points: int = 0
    n_bad: int = 0


def predict(
    source: Any,
    model: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] = "-",
    format: str | None = None,  # noqa: A002  # the option's name
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    na_values: Sequence[str] = (),
    id_column: str | None = None,
    order: str = "name",
    bad_rows: str = "error",
    n_threads: int | None = None,
    kafka_options: Mapping[str, str] | None = None,
    kafka_config: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> PredictionSummary:
    """Write the id of the cluster of every row of a stream, and its distance to the centroid.

    Parameters
    ----------
    source : path-like, iterable or object with ``__arrow_c_stream__``
        As for `kmeander.run`. Columns are found by the names that the model knows, others are
        ignored.
    model : path-like
        What `kmeander.run` with `model_out`, or `ForgetfulKMeans.save`, wrote.
    out : path-like
        Parquet, NDJSON, ``kafka://host:port/topic``, or ``-``: NDJSON on standard output.
    format, header, delimiter, decimal, encoding, comment, na_values
        As for `kmeander.run`.
    id_column, order, n_threads, kafka_options, kafka_config, tell, stop
        As for `kmeander.run`.
    bad_rows : {"error", "skip"}

    Examples
    --------
    >>> import tempfile, kmeander
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model, out = f"{folder}/m.km", f"{folder}/out.ndjson"
    ...     _ = kmeander.run([[[0.0], [1.0], [9.0]]], n_clusters=2, prepare=None, model_out=model)
    ...     _ = predict([[[0.0], [8.0]]], model, out=out)
    ...     print(Path(out).read_text(), end="")
    {"row":0,"cluster":1,"distance":0.5}
    {"row":1,"cluster":0,"distance":1.0}
    """
    one_of("bad_rows", bad_rows, BAD_ROWS)
    n_threads = thread_count(n_threads)
    kafka_options = kafka_settings(kafka_options, kafka_config)
    reading = Reading(
        format, header, order, False, delimiter, decimal, encoding, comment, na_values
    )
    check_beside("out", os.fspath(out), source, reading)
    if is_one(os.fspath(out), os.fspath(model)):
        raise ArgumentError(
            f"{argument('out', os.fspath(out))} would overwrite the model. Name another file."
        )
    try:
        state = saved_model.read(model)
    except FileNotFoundError:
        raise InputError(
            f"there is no model {os.fspath(model)}. {argument('model_out', of='run')} writes one."
        ) from None
    stored = state["model"]
    known = None if stored is None else _MODELS[state["estimator"]].from_state(stored)
    if known is None or known.centroids is None or known.cluster_ids is None:
        raise InputError(f"{model} has not seen enough distinct points to have clusters yet.")
    centroids, ids = known.centroids, known.cluster_ids
    preparation, metric = known.learned.preparation, known.settings.limits.metric
    names = state["feature_names_in"] or [f"x{i}" for i in range(centroids.shape[1])]
    wanted = Wanted(names, id_column=id_column, metric=metric)
    if preparation is not None:
        kinds = {column.name: column.kind for column in preparation.columns}
        wanted = Wanted(
            list(kinds), id_column=id_column, rules=preparation.rules, kinds=kinds, metric=metric
        )
    if id_column is not None:
        check_keys([id_column], "out")
    summary = PredictionSummary()
    notify = tell or _log.warning

    def is_stopped() -> bool:
        return stop is not None and stop.is_set()

    def tick() -> None:
        if is_stopped():
            raise StreamError(f"stopped before the first row of {opened.name} came.")

    with ExitStack() as stack:
        opened = open_source(
            source,
            wanted,
            reading,
            kafka_options=kafka_options,
            notify=notify,
        )
        stack.callback(opened.close)
        opened.start(tick)
        sink = assignment_sink(
            os.fspath(out),
            in_parts=False,
            output="out",
            sending=Sending(kafka_options, False, notify, is_stopped),
        )
        sink.open(None)
        stack.callback(sink.close)
        batches = Batches(
            opened.blocks(), Batching(), refuse_bad=bad_rows == "error", may_exclude=False
        )
        for rows in batches:
            if is_stopped():
                raise StreamError(
                    f"stopped after {summary.n_points:,} rows: {out} does not have all. Start "
                    "again for the rest."
                )
            if rows is None:
                continue
            summary.n_bad += len(rows.bad)
            if not len(rows.points):
                continue
            points = rows.points
            if preparation is not None:
                points = preparation.prepared(rows.table).points
            labels, squared = nearest(metric.points(points), centroids, n_threads)
            distances = metric.distances(squared)
            sink.write(LearnedBatch(None, rows.keys, rows.origin, ids[labels], distances))
            summary.n_points += len(points)
    return summary
