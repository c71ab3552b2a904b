"""`kmeander.run`: a stream through a model into outputs, with checkpoints between."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

from kmeander.arguments import positive_number, whole_number
from kmeander.events import ALARMS
from kmeander.exceptions import ArgumentError, argument
from kmeander.kmeans.forgetting import rho_after_half
from kmeander.kmeans.metric import metric_of
from kmeander.models import FSKM
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.settings import Forgetting, Init, MetricName, Refine, Rho, Settings, rules_for
from kmeander.preparation import Preparation
from kmeander.runs.history import KEEP, History
from kmeander.runs.history.frames import kind_of
from kmeander.runs.loop import Runner
from kmeander.runs.operations.notices import Notices, checked_kinds
from kmeander.runs.outputs import check_outputs, file_of, part_size_of, text_of
from kmeander.runs.profiles import checked_names
from kmeander.runs.records import Commits, Control, Outputs, Progress, RowRules
from kmeander.runs.result import Run
from kmeander.sinks import Sending
from kmeander.sources import Reading, Source, Wanted, is_table, open_source
from kmeander.sources.batching import Batching, microseconds
from kmeander.storage.checkpoint_folder import CheckpointFolder
from kmeander.wire.kafka_settings import kafka_settings

if TYPE_CHECKING:
    import threading

    from kmeander.records import Step

DEFAULT_BATCH_SIZE = 500
PathLike = str | os.PathLike[str]
Format = Literal["csv", "tsv", "ndjson", "parquet", "arrow", "json"]

_log = logging.getLogger("kmeander")


def run(
    source: Any,
    n_clusters: ClusterCount = Settings.n_clusters,
    *,
    rho: Rho | None = None,
    half_life: float | None = None,
    init: Init = Settings.init,
    refine: Refine = Settings.refine,
    forgetting: Forgetting = Settings.forgetting,
    max_batches: int | None = None,
    max_points: int | None = None,
    max_iter: int = Settings.max_iter,
    tol: float = Settings.tol,
    n_threads: int | None = None,
    random_state: int = 0,
    alarm_rate: float = Settings.alarm_rate,
    season: int | str | None = None,
    format: Format | None = None,  # noqa: A002  # the option's name
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    na_values: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    id_column: str | None = None,
    weight_column: str | None = None,
    text_column: str | None = None,
    names: Mapping[int, str] | PathLike | None = None,
    prepare: Preparation | PathLike | None = "auto",
    metric: MetricName = Settings.metric,
    order: Literal["name", "time"] = "name",
    follow: bool = False,
    idle_exit: float | None = None,
    batch_size: int | None = None,
    batch_seconds: float | None = None,
    time_column: str | None = None,
    time_unit: Literal["s", "ms", "us", "ns"] | None = None,
    every: str | None = None,
    late_rows: Literal["keep", "skip", "error"] = "keep",
    bad_rows: PathLike = "error",
    steps: PathLike | None = None,
    steps_part: str | None = None,
    assignments: PathLike | None = None,
    centroids: PathLike | None = None,
    model_out: PathLike | None = None,
    checkpoint: PathLike | None = None,
    checkpoint_every: int = 10,
    overwrite: bool = False,
    group: str = "kmeander",
    start: Literal["earliest", "latest"] = "earliest",
    kafka_options: Mapping[str, str] | None = None,
    kafka_config: PathLike | None = None,
    kafka_transactions: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_first_rows: Callable[[int], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    tell: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
    stop_on: Sequence[str] = (),
    notify: str | None = None,
    on_event: str | None = None,
    notify_on: Sequence[str] = ALARMS,
    metrics: str | int | None = None,
    keep_steps: int = KEEP,
) -> Run:
    """Cluster a stream batch by batch; ``kmeander run`` does the same from the command line.

    Parameters
    ----------
    source : path-like, iterable, object with ``__arrow_c_stream__`` or DriftStream
        A CSV, TSV, NDJSON, Parquet or Arrow file, compressed or not, a folder or glob of them,
        ``-`` for standard input, ``kafka://host:port/topic``, ``drift:FILE?epsilon=0.5`` for the
        simulator; one data frame, Arrow table or array of two dimensions; or arrays, Arrow batches
        or data frames, one after the other.
    n_clusters : int, (int, int) or "auto", default=8
        A number; a range such as ``(2, 30)``, or ``"auto"``: as many as the stream has.
    rho, half_life : float, optional
        Share of weight that a batch keeps when the next arrives (default 0.6; or ``"auto"`` or
        ``"two-speed"``), or the batches after which half is forgotten.
    init, refine, forgetting, max_batches, max_points, max_iter, tol, n_threads, random_state
        As for `ForgetfulKMeans`.
    alarm_rate : float, default=0.001
        Share of the batches of an unchanging stream that may raise an alarm.
    season : int or str, optional
        Batches after which the stream repeats itself; with `every` also a time, such as ``"1d"``.
    format : {"csv", "tsv", "ndjson", "parquet", "arrow"}, optional
        By default, by the ending of the file; of Kafka messages "json" (default) or "csv".
    header : sequence of str, optional
        Names of the columns of CSV without a header line.
    delimiter, decimal, encoding, comment : str, optional
        How CSV is written: what stands between columns, "." or ",", the encoding, and what lines to
        leave out begin with. By default this is recognised where it is beyond doubt, and said.
    na_values : sequence of str, optional
        Words for a missing value, beside NA, null, - and the like, which are known for numbers.
    columns, exclude : sequence of str, optional
        Columns to cluster (default: all), or to leave out; ``"temp*"`` means all that fit.
    id_column : str, optional
        Names rows in `assignments`, where by default their number in the stream does, and in
        profiles of clusters.
    weight_column : str, optional
        Says how many points each row stands for.
    text_column : str, optional
        Says what each row is about: clusters are named by words that are frequent in their texts
        and rare in others', and profiles show texts near the centroid.
    names : mapping of int to str, or path-like, optional
        Names of clusters by id, or a TOML file of such.
    prepare : {"auto", None}, Preparation or path-like, default="auto"
        How rows become points: ``"auto"`` puts columns on one scale, fills what is missing, turns
        categories into numbers, leaves out ids and times; with None rows are learned as they are,
        which is the default of the estimators; or rules, or a TOML file of rules; see
        `Preparation`.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As for `ForgetfulKMeans`; with ``"cosine"`` numbers keep their scale where nothing else is
        said.
    order : {"name", "time"}
        Of the files of a folder.
    follow : bool, default=False
        Wait for more at the end of the file.
    idle_exit : float, optional
        End once nothing has come for so many seconds.
    batch_size : int, optional
        Rows per batch; 500 of files and of one table, while the items of an iterable are batches
        by default.
    batch_seconds : float, optional
        A batch ends, too, so long after its first row.
    time_column : str, optional
        Says when each row happened: Steps, pages and messages then say when.
    every : str, optional
        With it: a batch holds the rows of one period, such as ``"10m"``, and forgetting follows
        that time.
    time_unit : {"s", "ms", "us", "ns"}, optional
        What numbers in `time_column` count since 1970; by default their size tells.
    late_rows : {"keep", "skip", "error"}
        Rows of a period that is over: learned with the present one, left out, or refused.
    bad_rows : {"error", "skip"} or path-like
        Rows that cannot be read as numbers: refused, left out, or left out and written there.
    steps, assignments, centroids, model_out : path-like, optional
        Where to write the Steps (JSON lines), the cluster of every row (Parquet, CSV,
        NDJSON or ``kafka://host:port/topic``), the clusters (CSV or Parquet), and the model.
    steps_part : str, optional
        Where `steps` is a folder (it ends in ``/``), the size at which another part begins, such as
        ``"500kB"`` (default ``"64MB"``), or ``"day"`` for one part a day of event time. Finished
        parts are compressed, and may be taken away.
    checkpoint : path-like, optional
        Folder from which a run that was stopped or killed goes on.
    checkpoint_every : int, default=10
        Batches between two commits.
    overwrite : bool, default=False
        Begin anew where `checkpoint` holds nothing but outputs are not empty, which is refused
        otherwise.
    group, start
        Consumer group, "earliest" or "latest" without a checkpoint.
    kafka_options, kafka_config : mapping, path-like, optional
        Settings of librdkafka, and a file of them: lines of ``key=value``.
    kafka_transactions : bool, default=False
        Whether each batch of `assignments` on a Kafka topic is a transaction.
    on_progress : callable, optional
        Given a `Progress` after each batch.
    on_first_rows : callable, optional
        Given the number of rows of the first batch before it is learned: with many clusters that
        takes a while.
    on_step : callable, optional
        Given each Step, once its batch is learned and written. What it raises ends the run, after
        all so far is committed.
    tell : callable, optional
        Given sentences for people; by default they are logged.
    stop : threading.Event, optional
        Once set, the batch at hand is finished and committed.
    stop_on : sequence of str
        Kinds of events, such as ``"drift"``: the run ends after the first batch that has a
        confirmed one.
    notify, on_event : str, optional
        An address to which each event is sent by HTTP POST, as a CloudEvent in JSON; a command that
        is started for each, with the same on its standard input. They are tried again until they
        take it, in order, while the run goes on; with `checkpoint` also after a restart.
    notify_on : sequence of str
        The kinds that are sent, of confirmed events; by default those that are tests.
    metrics : str or int, optional
        Port, or ``host:port``, at which ``/metrics`` (for Prometheus) and ``/health`` are served.
    keep_steps : int, default=10000
        Without `steps`: how many of the newest Steps stay in memory for the history; fewer where
        their centroids fill 256 MB.

    Returns
    -------
    Run
        ``.model``, the fitted `ForgetfulKMeans`; ``.history``, a `History`, which is read from
        `steps` where that is a file; ``.summary``, counts of batches, rows and events.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> done = run((rng.normal(size=(100, 2)) for _ in range(5)), n_clusters=3)
    >>> done
    Run: 5 batches, 500 rows; events: none
    >>> done.model.cluster_centers_.shape, done.summary.n_points
    ((3, 2), 500)
    >>> done.history.to_frame()["n_points"].tolist()
    [100, 100, 100, 100, 100]
    """
    if rho is not None and half_life is not None:
        raise ArgumentError(f"give {argument('rho')} or {argument('half_life')}, not both.")
    if half_life is not None:
        rho = rho_after_half(half_life, "half_life")
    if every is not None and time_column is None:
        raise ArgumentError(
            f"{argument('every')} cuts the stream by time, and needs {argument('time_column', ...)}"
            " to say where the time stands."
        )
    period = None if every is None else microseconds(every)
    settings = Settings(
        n_clusters,
        init=init,
        rho=Settings.rho if rho is None else rho,
        refine=refine,
        forgetting=forgetting,
        max_batches=max_batches,
        max_points=max_points,
        max_iter=max_iter,
        tol=tol,
        n_threads=n_threads,
        alarm_rate=alarm_rate,
        season=_season(season, period),
        prepare=rules_for(prepare, metric_of(metric)),
        metric=metric,
    )
    is_cut = isinstance(source, str | os.PathLike) or is_table(source)
    if batch_size is None and batch_seconds is None and every is None and is_cut:
        batch_size = DEFAULT_BATCH_SIZE
    batching = Batching(batch_size, batch_seconds, period, late_rows)
    if idle_exit is not None:
        positive_number("idle_exit", idle_exit)
    whole_number("checkpoint_every", checkpoint_every, at_least=1, meaning="batches per commit")
    control = Control(
        tell or _log.warning,
        on_progress,
        stop,
        idle_exit,
        on_step,
        checked_kinds("stop_on", stop_on),
        Notices(notify_on, notify, on_event),
        None if metrics is None else str(metrics),
        on_first_rows,
    )
    kafka = kafka_settings(kafka_options, kafka_config)
    outputs = Outputs(
        steps=text_of(steps),
        assignments=text_of(assignments),
        centroids=text_of(centroids),
        model_out=text_of(model_out),
        bad_rows=file_of(bad_rows),
        overwrite=overwrite,
        part_size=part_size_of(steps_part, time_column),
        sending=Sending(kafka, kafka_transactions, control.notify, lambda: control.is_stopped),
    )
    reading = Reading(
        format, header, order, follow, delimiter, decimal, encoding, comment, na_values
    )
    check_outputs(outputs, source, reading)
    with ExitStack() as stack:
        folder = None
        if checkpoint is not None:
            folder = stack.enter_context(CheckpointFolder(checkpoint))
        opened = open_source(
            source,
            Wanted(
                columns,
                exclude,
                id_column,
                time_column,
                rules=settings.rules,
                weight_column=weight_column,
                text_column=text_column,
                time_unit=time_unit,
                metric=settings.limits.metric,
            ),
            reading,
            group=group,
            start=start,
            kafka_options=kafka,
            notify=control.notify,
        )
        stack.callback(opened.close)
        runner = Runner(
            opened,
            FSKM.of(settings, random_state),
            batching,
            RowRules(refuse_bad=bad_rows == "error", may_exclude=columns is None),
            outputs,
            Commits(folder, checkpoint_every),
            control,
            History(keep=keep_steps if steps in (None, "-") else 0),
            named=checked_names(names),
        )
        summary = runner.run(stack)
    return Run(
        runner.model,
        _feature_names(opened) if summary.last is not None else None,
        History.of_run(
            None if steps in (None, "-") else steps, runner.kept, runner.facts, kind_of(source)
        ),
        summary,
    )


def _feature_names(source: Source) -> tuple[str, ...] | None:
    """Return the names of the columns, where the stream has any of its own."""
    names = source.selection.features
    is_named = any(name != f"x{place}" for place, name in enumerate(names))
    return tuple(names) if is_named else None


def _season(season: int | str | None, period: int | None) -> int | None:
    """Return the batches of a cycle that is given in batches, or in time where batches have one."""
    if not isinstance(season, str):
        return season
    if season.isdecimal():
        return int(season)
    if period is None:
        raise ArgumentError(
            f"{argument('season')} is {season!r}, a time, but batches are cut by rows: give it in "
            f"batches, or cut the stream by time with {argument('time_column')} and "
            f"{argument('every')}."
        )
    cycle = microseconds(season, "season")
    if cycle % period:
        raise ArgumentError(
            f"{argument('season')} is {season!r}, which is no whole number of batches of "
            f"{argument('every')}: phases would never meet again. Choose batches that divide it."
        )
    return cycle // period
