"""kmeander on Spark in one process: the same answers as without, whatever Spark does."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from kmeander import (
    Batch,
    CheckpointError,
    ForgetfulKMeans,
    InputError,
    InputTypeError,
    StreamError,
    load,
    surrogate_error,
)
from kmeander.kmeans.coreset import Compressor, lexicographic, merged
from tests.spark.streams import (
    COLUMNS,
    CONNECT,
    MASTER,
    SCHEMA,
    Array,
    estimator,
    expected_model,
    files,
    in_partitions,
    learn_all,
    on_spark,
    session,
    state_bytes,
    stream_of_points,
    write_batches,
    write_file,
)
from tests.streams import drifting_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = on_spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session() as running:
        yield running


def at_rest(spark: SparkSession, points: Array, n_partitions: int = 2) -> DataFrame:
    rows = [tuple(row) for row in points.tolist()]
    return in_partitions(spark.createDataFrame(rows, SCHEMA), n_partitions)


def collected(frame: DataFrame, features: Any = COLUMNS, **how: Any) -> Batch | None:
    from kmeander.spark.batches import Collector
    from kmeander.spark.columns import Features
    from kmeander.spark.rows import RowReader

    settings = {"summary": "exact", "driver_bytes": 10**9, "coreset_size": 20, **how}
    found = Collector(RowReader(Features.of(frame, features)), **settings).collect(frame)
    if found.n_bad:
        raise InputError(found.example)
    return found.batch(0)


def learner(spark: SparkSession, folder: Path, **how: Any) -> Any:
    from kmeander.spark.batches import Collector
    from kmeander.spark.columns import Features
    from kmeander.spark.learning import Learner
    from kmeander.spark.models import centroid_checkpoints, model_checkpoints, model_of
    from kmeander.spark.rows import RowReader

    frame = spark.createDataFrame([], SCHEMA)
    model = how.pop("model", model_of(estimator()))
    made = Learner(
        model,
        Collector(RowReader(Features.of(frame, COLUMNS)), "exact", 10**9, 100),
        model_checkpoints(folder),
        centroid_checkpoints(folder),
        **how,
    )
    made.begin()
    return made


# --- exact ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_partitions", [1, 2, 7])
def test_exact_learns_what_the_local_model_learns_bit_for_bit(
    spark: SparkSession, tmp_path: Path, n_partitions: int
) -> None:
    batches = stream_of_points()
    write_batches(tmp_path / "in", batches)
    stream = in_partitions(files(spark, tmp_path / "in"), n_partitions)
    told = learn_all(stream, tmp_path / "state", summary="exact")
    model, steps = expected_model(batches)
    assert [batch_id for batch_id, _ in told] == list(range(6))
    assert [step for _, step in told] == steps
    newest = load(tmp_path / "state" / "model" / "batch-00000005.ckpt")
    assert isinstance(newest, ForgetfulKMeans)
    assert state_bytes(newest._model) == state_bytes(model)
    assert newest.feature_names_in_.tolist() == COLUMNS


@pytest.mark.spark_core
def test_a_stopped_stream_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    batches = stream_of_points()
    write_batches(tmp_path / "in", batches[:2])
    # The seed is drawn once, before the first batch, and kept.
    unseeded = ForgetfulKMeans(4)
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", unseeded)
    seed = ks.load(str(tmp_path / "state"))._model.seed
    write_batches(tmp_path / "in", batches[2:4], first=2)
    told = learn_all(files(spark, tmp_path / "in"), tmp_path / "state", ForgetfulKMeans(4))
    assert [batch_id for batch_id, _ in told] == [2, 3]
    # From here on rho is another one, as with partial_fit after set_params.
    write_batches(tmp_path / "in", batches[4:], first=4)
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", ForgetfulKMeans(4, rho=0.9))
    twin = ForgetfulKMeans(4, random_state=seed)
    for index, points in enumerate(batches):
        twin.set_params(rho=0.9 if index >= 4 else ForgetfulKMeans().rho)
        twin.partial_fit(points[lexicographic(points)])
    found = ks.load(str(tmp_path / "state"), spark=spark)
    assert state_bytes(found._model) == state_bytes(twin._model)
    assert (found.rho, found.n_steps_) == (0.9, 6)
    assert not hasattr(unseeded, "n_steps_")
    # And from here on there are five clusters, four of which go on.
    write_batches(tmp_path / "in", batches[:1], first=6)
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", ForgetfulKMeans(5, rho=0.9))
    assert len(ks.load(str(tmp_path / "state")).cluster_centers_) == 5
    with pytest.raises(InputError) as caught:
        learn_all(files(spark, tmp_path / "in"), tmp_path / "state", features=["z", "x"])
    assert str(caught.value) == (
        "features are ['z', 'x'], but the checkpoint was begun with ['x', 'y', 'z']. Pass those, "
        "or begin anew with another checkpoint."
    )


def test_a_model_that_has_learned_goes_on_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    batches = stream_of_points(3)
    begun = estimator().partial_fit(batches[0])
    twin = estimator().partial_fit(batches[0])
    write_batches(tmp_path / "in", batches[1:])
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", begun)
    for points in batches[1:]:
        twin.partial_fit(points[lexicographic(points)])
    assert state_bytes(ks.load(str(tmp_path / "state"))._model) == state_bytes(twin._model)
    assert begun.n_steps_ == 1


def test_zeros_of_both_signs_do_not_depend_on_partitions(spark: SparkSession) -> None:
    points = np.array([[0.0, 1.0, 2.0], [-0.0, 1.0, 2.0]] * 10)
    one, seven = (collected(at_rest(spark, points, n)) for n in (1, 7))
    assert one is not None and seven is not None
    assert one.points.tobytes() == seven.points.tobytes() == np.abs(points).tobytes()


# --- columns -------------------------------------------------------------------------------------


def test_columns_of_many_kinds_hold_the_same_points(spark: SparkSession) -> None:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql.functions import col

    points = np.round(8 * drifting_stream(1)[0]) / 8
    frame = at_rest(spark, points)
    arrays = frame.selectExpr("array(x, y, z) v")
    expected = points[lexicographic(points)]
    kinds: list[tuple[DataFrame, Any, type]] = [
        (frame, COLUMNS, np.float64),
        (frame.selectExpr("struct(x, y, z) AS s"), ["s.x", "s.y", "s.z"], np.float64),
        (frame.selectExpr("float(x) x", "float(y) y", "float(z) z"), COLUMNS, np.float32),
        (frame.selectExpr("float(x) x", "y", "cast(z AS decimal(9, 3)) z"), COLUMNS, np.float64),
        (arrays, "v", np.float64),
        (frame.selectExpr("cast(array(x, y, z) AS array<float>) v"), ["v"], np.float32),
        (arrays.select(array_to_vector(col("v")).alias("v")), "v", np.float64),
    ]
    for given, features, dtype in kinds:
        batch = collected(given, features)
        assert batch is not None
        assert batch.points.dtype == dtype
        assert (batch.points == expected).all()
    whole = collected(frame.selectExpr("cast(8 * x AS bigint) x", "y > 0 y"), ["x", "y"])
    assert whole is not None
    table = np.column_stack([8 * points[:, 0], points[:, 1] > 0])
    assert (whole.points == table[lexicographic(table)]).all()


def test_values_that_are_no_numbers_are_named(spark: SparkSession) -> None:
    frame = at_rest(spark, np.arange(60.0).reshape(20, 3), 3)
    cases = [
        (frame.selectExpr("x", "nullif(y, 31) y", "z"), COLUMNS,
         "column 'y' holds null, in the row [30, null, 32]. Every value must be present"),
        (frame.selectExpr("x", "if(y = 31, double('nan'), y) y", "z"), COLUMNS,
         "column 'y' holds NaN, in the row [30, nan, 32]. Every value must be finite"),
        (frame.selectExpr("x", "y", "if(y = 31, double('-inf'), z) z"), COLUMNS,
         "column 'z' holds -infinity, in the row [30, 31, -inf]. Every value must be finite"),
        (frame.selectExpr("x", "y", "if(y = 31, 1e200D, z) z"), COLUMNS,
         "column 'z' holds 1e+200, in the row [30, 31, 1e+200]. Values must lie within ±1e+120"),
        (frame.selectExpr("if(x = 30, null, array(x, y)) v"), "v",
         "column 'v' holds null. Every row must be there"),
        (frame.selectExpr("array(x, nullif(y, 31)) v"), "v",
         "column 'v' holds at place 1 null, in the row [30, null]. Every value must be present"),
        (frame.selectExpr("if(x = 30, array(x), array(x, y)) v"), "v",
         "column 'v' holds arrays of 1 and of 2 values. All rows need the same number."),
    ]  # fmt: skip
    for number, (given, features, message) in enumerate(cases):
        for summary in ("exact", "auto", "coreset") if number == 1 else ("auto",):
            with pytest.raises(InputError) as caught:
                collected(given, features, summary=summary)
            assert str(caught.value) == message


def test_columns_of_the_wrong_type_are_refused_at_once(spark: SparkSession) -> None:
    frame = at_rest(spark, np.zeros((1, 3))).selectExpr(
        "x", "string(y) s", "array('a') a", "current_date() d"
    )
    tail = (
        "which is not a number. Cast or encode it first, or leave it out; several columns of "
        "numbers, or one array or Vector, are read."
    )
    for features, message in (
        (["x", "s"], f"column 's' is string, {tail}"),
        (["d"], f"column 'd' is date, {tail}"),
        ("a", f"column 'a' is array of string, {tail}"),
        (["x", "a"], f"column 'a' is array<string>, {tail}"),
    ):
        with pytest.raises(InputTypeError) as caught:
            collected(frame, features)
        assert str(caught.value) == message
    with pytest.raises(InputError) as missing:
        collected(frame, ["x", "nowhere"])
    assert str(missing.value) == (
        "features ['x', 'nowhere'] are not all columns of the frame, which has "
        "['x', 's', 'a', 'd']."
    )
    with pytest.raises(InputError, match=r"features must name one column or more, got \[\]\."):
        collected(frame, [])


@pytest.mark.spark_core
def test_a_bad_row_ends_the_query_where_asked_and_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = stream_of_points(3)
    batches[2][7, 1] = np.nan
    write_batches(tmp_path / "in", batches)
    how: dict[str, Any] = {"summary": "exact", "bad_rows": "error"}
    if spark.version.startswith("3.5") and MASTER == CONNECT:
        with pytest.raises(StreamError, match=r"look for kmeander\.exceptions in the log of its"):
            learn_all(files(spark, tmp_path / "in"), tmp_path / "state", **how)
        return
    with pytest.raises(InputError) as caught:
        learn_all(files(spark, tmp_path / "in"), tmp_path / "state", **how)
    row = ", ".join(f"{value:g}" for value in batches[2][7])
    assert str(caught.value) == (
        f"column 'y' holds NaN, in the row [{row}]. Every value must be finite; "
        'bad_rows="skip" goes on without such rows.'
    )
    model, _ = expected_model(batches[:2])
    newest = load(tmp_path / "state" / "model" / "batch-00000001.ckpt")
    assert state_bytes(newest._model) == state_bytes(model)
    # Without such rows it goes on, as if that batch had come without them.
    learn_all(files(spark, tmp_path / "in"), tmp_path / "state", summary="exact")
    batches[2] = np.delete(batches[2], 7, axis=0)
    model, _ = expected_model(batches)
    newest = load(tmp_path / "state" / "model" / "batch-00000002.ckpt")
    assert state_bytes(newest._model) == state_bytes(model)


def test_a_column_of_another_type_in_a_later_file_is_said_in_a_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = stream_of_points(2)
    write_batches(tmp_path / "in", batches[:1])
    whole = {name: batches[1][:, j] for j, name in enumerate(COLUMNS)}
    write_file(tmp_path / "in", "00001", {**whole, "y": np.arange(len(batches[1]))})
    with pytest.raises(InputError) as caught:
        learn_all(files(spark, tmp_path / "in"), tmp_path / "state")
    said = str(caught.value)
    assert said.startswith("column 'y' is ") and "\n" not in said
    assert "00001.parquet, while the schema of the stream says double. Write that file" in said


# --- coresets and auto ---------------------------------------------------------------------------


def test_a_coreset_is_that_of_its_partitions(spark: SparkSession) -> None:
    from pyspark.sql.functions import spark_partition_id

    points = drifting_stream(1, n_points=500)[0]
    frame = at_rest(spark, points, 3).cache()
    batch = collected(frame, summary="coreset", coreset_size=30)
    assert batch is not None
    parts = []
    dealt = frame.select("*", spark_partition_id().alias("part")).collect()
    for number in sorted({row.part for row in dealt}):
        compressor = Compressor(30)
        compressor.add(np.array([tuple(row)[:3] for row in dealt if row.part == number]))
        part = compressor.coreset()
        assert part is not None
        parts.append(part)
    frame.unpersist()
    assert len(parts) == 3
    expected = merged(parts, 30)
    assert expected is not None
    assert batch.points.tobytes() == expected.means.tobytes()
    assert batch.weights is not None and batch.weights.tobytes() == expected.masses.tobytes()
    assert (batch.n_rows, batch.n_points, batch.within) == (500, 30, expected.within)


def test_auto_is_exact_within_its_budget_and_a_coreset_beyond(spark: SparkSession) -> None:
    """The number of rows alone decides, not how they are dealt out."""
    points = drifting_stream(1, n_points=400)[0]
    even = at_rest(spark, points, 4).cache()
    uneven = even.coalesce(1)
    n_bytes = points.nbytes
    for frame in (even, uneven):
        exact, coreset = collected(frame), collected(frame, summary="coreset")
        within = collected(frame, summary="auto", driver_bytes=n_bytes)
        beyond = collected(frame, summary="auto", driver_bytes=n_bytes - 1)
        assert exact is not None and coreset is not None
        assert within is not None and beyond is not None
        assert within.points.tobytes() == exact.points.tobytes()
        assert (within.within, within.n_points) == (None, 400)
        assert beyond.points.tobytes() == coreset.points.tobytes()
        assert (beyond.within, beyond.n_points) == (coreset.within, 20)
    even.unpersist()


@pytest.mark.spark_core
def test_a_stream_of_coresets_says_so_and_its_errors_are_near(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = drifting_stream(4, n_points=1500)
    write_batches(tmp_path / "in", batches)
    told = learn_all(
        files(spark, tmp_path / "in").repartition(3),
        tmp_path / "state",
        ForgetfulKMeans.as_in_paper(4, rho=0.5, random_state=3),
        summary="coreset",
        coreset_size=150,
    )
    _, exact = expected_model(batches, refine=None, forgetting="fixed", rho=0.5)
    for (_, step), expected in zip(told, exact, strict=True):
        assert (step.n_points, step.n_means) == (1500, 150)
        assert step.n_summarised == step.n_batches == expected.n_batches
        assert step.mass == pytest.approx(expected.mass)
        # Its errors are nearly those that its centroids have on all rows.
        assert step.centroids is not None
        rows = surrogate_error(batches[: step.index + 1], step.centroids, 0.5)
        assert rows <= step.surrogate_error <= 1.03 * rows  # type: ignore[operator]


# --- batch ids -----------------------------------------------------------------------------------


def test_a_batch_that_comes_again_is_skipped(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same rows in other partitions, to this process or to another."""
    first, second = stream_of_points(2)
    told: list[int] = []
    written: list[tuple[int, list[Any]]] = []
    how: dict[str, Any] = {
        "on_step": lambda _, batch_id: told.append(batch_id),
        "write": lambda frame, batch_id: written.append(
            (batch_id, sorted(frame.select("x", "y", "z", "cluster").collect()))
        ),
    }
    taker = learner(spark, tmp_path, **how)
    taker.take(at_rest(spark, first), 0)
    taker.take(at_rest(spark, second), 1)
    model, _ = expected_model([first, second])
    assert state_bytes(taker._kept[1]) == state_bytes(model)
    other = pickle.loads(pickle.dumps(learner(spark, tmp_path)._asked))  # no state of its own
    for again in (taker, learner(spark, tmp_path, model=other, **how)):
        again.take(at_rest(spark, second, 7), 1)
        assert again._models.newest() == 1
        assert state_bytes(again._kept[1]) == state_bytes(model)
    assert told == [0, 1]
    # What is written for a batch is the same each time, so that it may be overwritten.
    assert [batch_id for batch_id, _ in written] == [0, 1, 1, 1]
    assert written[1][1] == written[2][1] == written[3][1]
    with caplog.at_level(logging.WARNING, "kmeander.spark"):
        taker.take(at_rest(spark, first), 0)
    assert caplog.messages == [
        "Batch 0 is skipped: batch 1 has been learned already. Spark's own checkpoint is older "
        "than the model's; begin anew with another checkpoint if this goes on."
    ]
    assert len(written) == 4


def test_what_another_process_has_saved_counts_more_than_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = stream_of_points(3)
    one, other = learner(spark, tmp_path), learner(spark, tmp_path)
    one.take(at_rest(spark, batches[0]), 0)
    other.take(at_rest(spark, batches[1]), 1)
    one.take(at_rest(spark, batches[2]), 2)
    model, _ = expected_model(batches)
    assert state_bytes(one._kept[1]) == state_bytes(model)


def test_an_empty_micro_batch_teaches_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = stream_of_points(4)
    write_batches(tmp_path / "in", [batches[0], batches[1] + 1e6, batches[2]])
    stream = files(spark, tmp_path / "in").filter("x < 1e5")
    told = learn_all(stream, tmp_path / "state")
    _, steps = expected_model([batches[0], batches[2]])
    assert [batch_id for batch_id, _ in told] == [0, 2]
    assert [step for _, step in told] == steps
    nothing = spark.createDataFrame([], SCHEMA)
    for summary in ("exact", "auto", "coreset"):
        assert collected(nothing, summary=summary) is None


def test_the_first_batches_may_be_too_small(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    taker = learner(spark, tmp_path)
    taker.take(at_rest(spark, np.zeros((2, 3))), 0)
    assert ks.load(str(tmp_path)).step_.waiting
    assert (tmp_path / "model").is_dir() and not (tmp_path / "centroids").is_dir()
    rows = at_rest(spark, np.ones((2, 3)))
    found = ks.assign(rows, str(tmp_path), COLUMNS).collect()
    assert [(row.cluster, row.id, row.distance) for row in found] == [(None, None, None)] * 2
    taker.take(at_rest(spark, np.arange(12.0).reshape(4, 3)), 1)
    assert ks.load(str(tmp_path)).cluster_centers_.shape == (4, 3)


# --- storage -------------------------------------------------------------------------------------


def test_checkpoints_keep_the_newest_and_the_points_that_they_name(tmp_path: Path) -> None:
    from kmeander.spark.storage import Checkpoints

    folder = tmp_path / "a folder"
    saved = Checkpoints(str(folder), kept=2)
    assert (saved.newest(), saved.read_newest()) == (None, None)
    arrays = [np.full((4, 2), float(n)) for n in range(5)]

    def state(*numbers: int) -> dict[str, Any]:
        window = {"points": [arrays[n] for n in numbers], "weights": [None] * len(numbers)}
        return {"model": {"window": window}}

    times: dict[str, int] = {}
    for batch_id, numbers in ((-1, ()), (0, (0,)), (7, (0, 1)), (123_456_789, (0, 1, 2))):
        saved.save(batch_id, state(*numbers))
        assert saved.newest() == batch_id
        assert len(list(folder.glob("points-*"))) == len(numbers)
        for file in folder.glob("points-*"):  # once written, a batch is left alone
            assert times.setdefault(file.name, file.stat().st_mtime_ns) == file.stat().st_mtime_ns
    assert sorted(file.name for file in folder.glob("*.ckpt")) == [
        "batch-00000007.ckpt", "batch-123456789.ckpt",
    ]  # fmt: skip
    other = Checkpoints(str(folder), kept=2)
    found = other.read(7)["model"]["window"]["points"]
    assert [points[0, 0] for points in found] == [0.0, 1.0]
    # Another process goes on, and lets go of what no state names any more.
    arrays[2:4] = [np.full((4, 2), 2.0), np.full((4, 2), 3.0)]
    other.save(123_456_790, state(2, 3))
    assert len(list(folder.glob("points-*"))) == 4  # 0 and 1 belong to the state before
    other.save(123_456_791, state(3, 4))
    assert len(list(folder.glob("points-*"))) == 3
    assert other.read(123_456_790)["model"]["window"]["points"][0][0, 0] == 2.0


def test_what_is_written_for_a_batch_is_its_points_and_little_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Not the window: labels and bounds of that, at most 40 bytes a row remembered."""
    taker = learner(spark, tmp_path)
    rng = np.random.default_rng(0)
    n_rows = 20_000
    for batch_id in range(4):
        points = rng.normal(size=(n_rows, 3)) + 5 * rng.integers(4, size=(n_rows, 1))
        before = {file.name for file in tmp_path.rglob("*.*")}
        taker.take(spark.createDataFrame(pd.DataFrame(points, columns=COLUMNS)), batch_id)
        written = [file for file in tmp_path.rglob("*.*") if file.name not in before]
        n_bytes = sum(file.stat().st_size for file in written)
        n_remembered = taker._kept[1].window.n_points
        assert n_bytes <= 2 * points.nbytes + 40 * n_remembered
        model_file = tmp_path / "model" / f"batch-{batch_id:08}.ckpt"
        assert model_file.stat().st_size <= 40 * n_remembered + 20_000
    assert n_remembered == 4 * n_rows


@pytest.mark.parametrize("how", [{"rho": "two-speed"}, {"rho": 0.95, "max_points": 12_000}])
def test_means_of_old_batches_are_written_within_the_same_bounds(
    tmp_path: Path, rng: np.random.Generator, how: dict[str, Any]
) -> None:
    from kmeander import FSKM
    from kmeander.spark.storage import Checkpoints

    saved, model = Checkpoints(str(tmp_path), kept=2), FSKM(4, random_state=0, **how)
    known: set[str] = set()
    for batch_id in range(14):
        points = rng.normal(size=(2_000, 20)) + 6 * rng.integers(4, size=(2_000, 1))
        batch = Batch(batch_id, points.astype(np.float32))
        model.step(batch)
        saved.save(batch_id, {"model": model.state()})
        sizes = {file.name: file.stat().st_size for file in tmp_path.iterdir()}
        n_bytes = sum(size for name, size in sizes.items() if name not in known)
        assert n_bytes <= 2 * batch.points.nbytes + 40 * model.window.n_points + 20_000
        known |= sizes.keys()
    assert model.window.has_summaries
    assert sum(size for name, size in sizes.items()) <= 3 * 20 * 8 * model.window.n_points


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_checkpoint_may_be_named_as_spark_names_folders(
    spark: SparkSession, tmp_path: Path, scheme: str
) -> None:
    from kmeander import spark as ks

    batches = stream_of_points(2)
    write_batches(tmp_path / "in", batches)
    state: Any = f"{scheme}{tmp_path}/a state"
    learn_all(files(spark, tmp_path / "in"), state)
    model, _ = expected_model(batches)
    assert state_bytes(ks.load(state)._model) == state_bytes(model)
    assert (tmp_path / "a state" / "spark").is_dir()
    rows = ks.assign(at_rest(spark, batches[0]), state).collect()
    assert len({row.cluster for row in rows}) > 1


def test_a_checkpoint_on_the_drivers_disk_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    from kmeander.spark.storage import warn_of_own_disk

    for place, master in (
        ("/state", "local[2]"), ("s3a://bucket/state", "yarn"), ("/Volumes/a/b/state", "spark://h"),
    ):  # fmt: skip
        warn_of_own_disk(place, master)
    assert not caplog.messages
    for master in ("yarn", "local-cluster[2,1,1024]"):
        warn_of_own_disk("/state", master)
    assert caplog.messages[0] == (
        "The checkpoint /state is on the disk of this machine, while Spark's master is yarn: a "
        "driver that is started elsewhere would begin anew, without a word. Unless all machines "
        "share that folder, name one on storage that they do (s3://, gs://, abfss://, hdfs://)."
    )
    assert len(caplog.messages) == 2


def test_a_damaged_checkpoint_is_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    with pytest.raises(CheckpointError, match=r"no model: no stream has been learned there\."):
        ks.load(str(tmp_path))
    taker = learner(spark, tmp_path)
    taker.take(at_rest(spark, stream_of_points(1)[0]), 0)
    file = tmp_path / "model" / "batch-00000000.ckpt"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CheckpointError) as caught:
        learner(spark, tmp_path)
    assert str(caught.value).startswith(f"{file} is damaged: its checksum does not match")
    assert str(caught.value).endswith(
        f"Restore {file} from a copy; or remove it, to go on without what its batch has taught."
    )


# --- assign --------------------------------------------------------------------------------------


def fitted() -> tuple[ForgetfulKMeans, Array]:
    points = drifting_stream(1, n_points=300)[0]
    return estimator().partial_fit(points), points


@pytest.mark.spark_core
def test_rows_are_assigned_as_the_model_predicts(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql.functions import col

    from kmeander import spark as ks

    model, points = fitted()
    frame = at_rest(spark, points, 3).selectExpr("x", "y", "z", "string(x) AS `a.name`")
    arrays = frame.selectExpr("*", "array(x, y, z) v")
    vectors = arrays.select("x", "y", "z", array_to_vector(col("v")).alias("v"))
    for found in (
        ks.assign(frame, model, COLUMNS),
        ks.assign(arrays, model, "v"),
        ks.assign(vectors, model, "v"),
    ):
        assert found.columns[-3:] == ["cluster", "id", "distance"]
        rows = found.drop("a.name", "v").toPandas().to_numpy()
        assert len(rows) == len(points)
        assert (rows[:, 3] == model.predict(rows[:, :3])).all()
        ids = getattr(model, "cluster_ids_", np.arange(4))
        assert (rows[:, 4] == ids[rows[:, 3].astype(int)]).all()
        distances = model.transform(rows[:, :3]).min(axis=1)
        np.testing.assert_array_equal(rows[:, 5], distances)
    capsys.readouterr()
    ks.assign(frame, model, COLUMNS).explain()
    assert capsys.readouterr().out.count("ArrowEvalPython") == 1


def test_rows_that_are_no_points_have_no_cluster(spark: SparkSession) -> None:
    from kmeander import spark as ks

    model, _ = fitted()
    rows = [(0.0, 0.0, 0.0), (None, 0.0, 0.0), (0.0, float("nan"), 0.0), (0.0, 0.0, float("inf"))]
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    by_columns = ks.assign(frame, model, COLUMNS).collect()
    assert [row.cluster is None for row in by_columns] == [False, True, True, True]
    assert [row.distance is None for row in by_columns] == [False, True, True, True]
    null = frame.selectExpr("if(y = 0, array(x, y, z), null) v")
    assert [row.cluster is None for row in ks.assign(null, model, "v").collect()] == [
        False, True, True, True,
    ]  # fmt: skip
    nothing = ks.assign(frame.filter("x > 1"), model, COLUMNS).collect()
    assert nothing == []


def test_assigning_says_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PythonException

    from kmeander import spark as ks

    model, points = fitted()
    frame = at_rest(spark, points[:2])
    for call, message in (
        (lambda: ks.assign(frame, model),
         "features must be given: the model has learned from arrays, which name no columns."),
        (lambda: ks.assign(frame.withColumnRenamed("z", "id"), model, ["x", "y", "id"]),
         "the frame has a column 'id' already. Pass prefix='cluster_', or any other that makes "
         "names of their own."),
        (lambda: ks.assign(frame, ForgetfulKMeans(), COLUMNS),
         "model has no clusters yet. Let it learn first; a checkpoint's path may be given before."),
        (lambda: ks.assign(frame, tmp_path),
         f"features must be given: {tmp_path} holds no centroids yet that would name the columns."),
        (lambda: ks.register(spark, "f", tmp_path),
         f"{tmp_path} holds no centroids yet: no batch has been learned there."),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == message
    with pytest.raises(InputTypeError, match=r"model must be a kmeander\.ForgetfulKMeans or the"):
        ks.assign(frame, 3)  # type: ignore[arg-type]
    renamed = frame.withColumnRenamed("z", "id")
    found = ks.assign(renamed, model, ["x", "y", "id"], prefix="cluster_")
    assert found.columns == ["x", "y", "id", "cluster_cluster", "cluster_id", "cluster_distance"]
    with pytest.raises(PythonException, match="features have 2 values, the model has learned 3"):
        ks.assign(frame, model, ["x", "y"]).collect()


@pytest.mark.spark_core
def test_sql_assigns_rows(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import spark as ks

    model, points = fitted()
    at_rest(spark, points).createOrReplaceTempView("readings")
    learner(spark, tmp_path, model=model._model).begin()
    for known in (model, tmp_path):
        ks.register(spark, "segment", known)
        rows = spark.sql(
            "SELECT segment(x, y, z).cluster AS c, segment(array(x, y, z)) AS s, x, y, z "
            "FROM readings"
        ).collect()
        table = np.array([[row.x, row.y, row.z] for row in rows])
        assert [row.c for row in rows] == model.predict(table).tolist()
        assert [row.s.cluster for row in rows] == [row.c for row in rows]
    (row,) = spark.sql("SELECT segment(0, cast(null AS double), 1.5) AS s").collect()
    assert row.s.asDict() == {"cluster": None, "id": None, "distance": None}


@pytest.mark.spark_core
def test_a_streaming_frame_is_told_the_newest_model_at_each_micro_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """While another query, here a hand, learns in between."""
    from kmeander import spark as ks

    batches = stream_of_points(3)
    taker = learner(spark, tmp_path / "state")
    taker.take(at_rest(spark, batches[0]), 0)
    write_batches(tmp_path / "in", batches)
    found = tmp_path / "found"  # on Spark Connect it is another process that looks

    def check(frame: DataFrame, batch_id: int) -> None:
        rows: Array = np.array(frame.select("x", "y", "z", "cluster").collect())
        centroids = ks.load(str(tmp_path / "state")).cluster_centers_
        expected = np.argmin(((rows[:, np.newaxis, :3] - centroids) ** 2).sum(axis=2), axis=1)
        with found.open("a") as file:
            file.write(f"{bool((rows[:, 3] == expected).all())} ")
        if batch_id < 2:
            taker.take(at_rest(frame.sparkSession, batches[batch_id + 1]), batch_id + 1)

    assigned = ks.assign(files(spark, tmp_path / "in").repartition(3), str(tmp_path / "state"))
    query = assigned.writeStream.foreachBatch(check)
    started = query.option("checkpointLocation", str(tmp_path / "q")).trigger(availableNow=True)
    started.start().awaitTermination()
    assert found.read_text().split() == ["True"] * 3
    (before, after) = (
        ks.load(str(tmp_path / "state")).cluster_centers_,
        expected_model(batches)[0].centroids,
    )
    assert (before == after).all()


# --- arguments -----------------------------------------------------------------------------------


def test_learning_says_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    from kmeander import PrivilegedKMeans
    from kmeander import spark as ks

    write_file(tmp_path / "in", "0", {"x": [0.0], "y": [0.0], "z": [0.0]})
    stream = files(spark, tmp_path / "in")
    for change, message in (
        ({"summary": "some"},
         "summary must be one of 'auto', 'exact', 'coreset', got 'some'."),
        ({"coreset_size": 7},
         "coreset_size must be a whole number of at least 8, got 7. It is the weighted means of a "
         "batch, two or more for each cluster."),
        ({"driver_bytes": 0.5},
         "driver_bytes must be a whole number of at least 1, got 0.5. It is the most bytes of "
         "features for which a batch is exact."),
        ({"stream": at_rest(spark, np.zeros((1, 3)))},
         "stream must be a streaming frame, as spark.readStream makes, got a frame at rest. Learn "
         "that with ForgetfulKMeans.partial_fit."),
        ({"model": PrivilegedKMeans(4)},
         "model must be a kmeander.ForgetfulKMeans, got PrivilegedKMeans."),
    ):  # fmt: skip
        given: dict[str, Any] = {
            "stream": stream,
            "features": COLUMNS,
            "model": estimator(),
            "checkpoint": tmp_path / "state",
            **change,
        }
        with pytest.raises((InputError, InputTypeError)) as caught:
            ks.learn(**given)
        assert str(caught.value) == message
    assert not (tmp_path / "state").exists()


def test_what_spark_says_in_many_lines_is_said_in_one() -> None:
    from pyspark.errors import PythonException

    from kmeander.spark.sessions import records_of

    class Job:
        def __init__(self, problem: str) -> None:
            self.problem = problem

        def toArrow(self) -> None:  # noqa: N802
            raise PythonException(self.problem)

    def failing(problem: str) -> Any:
        return records_of(Job(problem))  # type: ignore[arg-type]

    with pytest.raises(StreamError, match="Python of Spark's executors cannot import kmeander"):
        failing("ModuleNotFoundError: No module named 'kmeander'")
    with pytest.raises(InputError, match=r"^y holds nothing\.$"):
        failing("Traceback\n  File\nkmeander.exceptions.InputError: y holds nothing.\n\n\tat x")
    with pytest.raises(PythonException, match="out of disk"):
        failing("out of disk")
