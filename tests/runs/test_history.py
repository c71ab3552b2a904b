"""History and Run: what a notebook gets of a stream, the same from a run, a file and a loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import kmeander
from kmeander import History, InputError
from kmeander.exceptions import ArgumentError
from kmeander.records import Step
from kmeander.runs.result import Run
from tests.streams import drifting_stream

mpl.use("Agg")
import matplotlib.pyplot as plt

NAMES = ["temp", "load", "rpm"]


def frame(n_batches: int = 30, seed: int = 3) -> pd.DataFrame:
    """Return batches of 60 rows, a minute each, in one frame with its times."""
    points = np.concatenate(drifting_stream(n_batches, seed=seed))
    made = pd.DataFrame(points, columns=NAMES)
    made.insert(
        0, "at", pd.date_range("2026-06-01", periods=len(points), freq="s", tz="UTC").astype(str)
    )
    return made


def run_of(source: Any, **more: Any) -> Run:
    options: dict[str, Any] = {"batch_size": 60, "prepare": None, **more}
    return kmeander.run(source, 4, **options, tell=lambda _: None)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    steps = tmp_path_factory.mktemp("run") / "steps.jsonl"
    return run_of(frame(), time_column="at", steps=steps)


@pytest.fixture(scope="module")
def in_memory() -> Run:
    return run_of(frame(), time_column="at")


def test_a_run_gives_a_fitted_model_the_history_and_a_summary(done: Run) -> None:
    assert done.summary.n_batches == len(done.history) == done.model.n_steps_ == 30
    last = done.history[-1]
    np.testing.assert_array_equal(done.model.cluster_centers_, last.centroids)
    assert done.model.feature_names_in_.tolist() == NAMES
    rows = frame()[NAMES].tail(60)
    assert set(done.model.predict_ids(rows)) <= set(done.model.cluster_ids_.tolist())
    assert repr(done).startswith("Run: 30 batches, 1,800 rows; events: ")


def test_the_model_of_a_run_goes_on_where_the_run_was() -> None:
    rows = frame(31)
    goes_on = run_of(frame(), time_column="at").model.partial_fit(rows[NAMES].tail(60))
    whole = run_of(rows, time_column="at").model
    np.testing.assert_array_equal(goes_on.cluster_centers_, whole.cluster_centers_)


def test_a_steps_file_and_the_memory_say_the_same(done: Run, in_memory: Run) -> None:
    # Seconds are not written, so only the memory has them.
    own = in_memory.history.to_frame().drop(columns="seconds")
    pd.testing.assert_frame_equal(done.history.to_frame().drop(columns="seconds"), own)
    pd.testing.assert_frame_equal(done.history.events(), in_memory.history.events())
    pd.testing.assert_frame_equal(done.history.clusters(), in_memory.history.clusters())
    assert repr(done.history) == repr(in_memory.history)
    assert done.history.report().html.count("temp") == in_memory.history.report().html.count("temp")


def test_a_frame_is_flat_typed_and_indexed_by_event_time(done: Run) -> None:
    steps = done.history.to_frame()
    assert len(steps) == 30 and steps.index.name == "time"
    assert str(steps.index.dtype) == "datetime64[us, UTC]"
    assert steps.index[1] == pd.Timestamp("2026-06-01T00:01:00Z")
    assert "object" not in set(map(str, steps.dtypes))
    assert steps["prequential_error"].isna().sum() == 1  # of the first batch
    assert steps["drift"].sum() == done.summary.events["drift"] > 0
    assert steps["n_points"].sum() == 1800


def test_events_have_their_words_with_the_names_of_columns(done: Run) -> None:
    events = done.history.events()
    assert len(events) == sum(done.summary.events.values()) + done.summary.n_unconfirmed
    drift = events[events["kind"] == "drift"].iloc[0]
    assert any(f"along {name}" in drift["words"] for name in NAMES)
    assert str(events["cluster"].dtype) == "Int64" and drift["cluster"] is pd.NA


def test_clusters_have_shares_and_centres_by_column(done: Run) -> None:
    clusters = done.history.clusters()
    assert list(clusters.columns) == ["end", "batch", "cluster", "share", "mass", *NAMES]
    np.testing.assert_allclose(clusters.groupby("batch")["share"].sum(), 1.0)
    last = clusters[clusters["batch"] == 29].set_index("cluster").loc[done.model.cluster_ids_]
    np.testing.assert_array_equal(last[NAMES].to_numpy(), done.model.cluster_centers_)


def test_centres_are_in_the_units_of_the_stream_where_rows_are_prepared() -> None:
    rows = frame()
    rows["temp"] = rows["temp"] * 1000 + 7e6
    prepared = run_of(rows, prepare="auto", exclude=["at"])
    last = prepared.history.clusters().tail(4).set_index("cluster")
    centres = prepared.model.centers_frame()
    pd.testing.assert_frame_equal(
        last.loc[centres.index, NAMES].reset_index(drop=True), centres.reset_index(drop=True)
    )


def test_polars_gives_polars(in_memory: Run) -> None:
    import polars as pl

    rows = frame()
    own = run_of(pl.DataFrame({name: rows[name].to_numpy() for name in rows}), time_column="at")
    steps, events = own.history.to_frame(), own.history.events()
    assert isinstance(steps, pl.DataFrame) and isinstance(events, pl.DataFrame)
    assert isinstance(own.history.clusters(), pl.DataFrame)
    assert steps.columns[0] == "time" and steps["time"].dtype == pl.Datetime("us", "UTC")
    assert steps["batch_error"].to_list() == in_memory.history.to_frame()["batch_error"].to_list()
    assert events["cluster"].dtype == pl.Int64
    assert isinstance(own.history.to_frame("pandas"), pd.DataFrame)
    with pytest.raises(ArgumentError) as raised:
        own.history.to_frame("excel")  # type: ignore[arg-type]  # what it refuses
    assert str(raised.value) == "frames must be pandas or polars, got 'excel'."


def test_a_loop_of_ones_own_has_a_history_too() -> None:
    history = History(columns=NAMES)
    model = kmeander.ForgetfulKMeans(4, random_state=0)
    for points in drifting_stream(30, seed=3):
        history.append(model.partial_fit(points).step_)
    assert len(history) == 30
    assert "along temp" in " ".join(history.events()["words"])
    assert history.to_frame().index.name is None  # nobody said when
    assert "temp" in history.report().html


def test_a_model_of_a_frame_names_its_columns() -> None:
    model = kmeander.ForgetfulKMeans(4, random_state=0)
    said = ""
    for begin in range(0, 1800, 60):
        said += " ".join(model.partial_fit(frame()[NAMES][begin : begin + 60]).step_.words())
    assert "along temp" in said and "column" not in said


def test_after_a_resume_the_history_is_the_whole_file(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    options = {"steps": tmp_path / "steps.jsonl", "checkpoint": tmp_path / "state"}
    frame(12).to_csv(source, index=False)
    run_of(source, time_column="at", **options)
    frame(30).to_csv(source, index=False)
    again = run_of(source, time_column="at", **options)
    assert again.summary.n_batches == 18 and len(again.history) == 30
    assert [step.index for step in again.history] == list(range(30))
    assert [step.index for step in History(tmp_path / "steps.jsonl")] == list(range(30))


def test_a_folder_of_steps_is_read_as_one(tmp_path: Path, done: Run) -> None:
    run_of(frame(), time_column="at", steps=f"{tmp_path}/steps/", steps_part="10kB")
    history = History(f"{tmp_path}/steps/")
    pd.testing.assert_frame_equal(history.clusters(), done.history.clusters())


def test_the_newest_steps_stay_in_memory_and_large_ones_are_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = run_of(frame(), exclude=["at"], keep_steps=7)
    assert [step.index for step in done.history] == list(range(23, 30))
    assert done.history.report().html.startswith("<!DOCTYPE html>")
    assert len(run_of(frame(), exclude=["at"], keep_steps=0).history) == 0
    from kmeander.runs.history import record

    monkeypatch.setattr(record, "_MOST_BYTES", 20_000)
    fewer = run_of(frame(), exclude=["at"]).history
    assert 1 < len(fewer) < 12 and fewer[-1].index == 29


@pytest.mark.parametrize("name", ["errors", "shares", "lives", "map"])
@pytest.mark.parametrize("which", ["done", "in_memory"])
def test_a_plot_draws_on_the_axes_it_is_given(
    name: str, which: str, request: pytest.FixtureRequest
) -> None:
    history = request.getfixturevalue(which).history
    figure, ax = plt.subplots(layout="constrained")
    assert getattr(history, f"plot_{name}")(ax=ax) is ax
    assert ax.has_data()
    figure.canvas.draw()
    plt.close(figure)
    own = getattr(history, f"plot_{name}")()
    assert own.figure is not figure
    plt.close(own.figure)


def test_errors_are_drawn_at_their_times_with_each_drift(done: Run) -> None:
    ax: Any = done.history.plot_errors()
    lines: dict[str, Any] = {line.get_label(): line for line in ax.lines}
    before = np.asarray(lines["before learning"].get_ydata(), dtype=float)
    np.testing.assert_array_equal(before, done.history.to_frame()["prequential_error"])
    assert lines["before learning"].get_xdata()[1] == np.datetime64("2026-06-01T00:01:00")
    marked = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(marked) == done.summary.events["drift"]
    plt.close(ax.figure)


def test_a_feature_is_drawn_for_each_cluster_in_its_units(done: Run) -> None:
    ax: Any = done.history.plot_feature("load")
    clusters = done.history.clusters()
    assert len(ax.lines) == clusters["cluster"].nunique()
    drawn = sorted(float(line.get_ydata()[-1]) for line in ax.lines)
    ends = sorted(clusters.groupby("cluster")["load"].last())
    np.testing.assert_allclose(drawn, ends)
    assert ax.get_ylabel() == "load"
    plt.close(ax.figure)
    with pytest.raises(InputError) as raised:
        done.history.plot_feature("speed")
    assert str(raised.value) == "there is no column 'speed'. The columns are temp, load, rpm."


def test_a_report_is_that_of_the_command(done: Run, tmp_path: Path) -> None:
    from kmeander.page.report import as_page
    from kmeander.page.timeline import read_timeline

    report = done.history.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report.html
    own = as_page(read_timeline(done.history._path or ""))
    assert abs(len(own) - len(report.html)) < 200  # but for the ids that bokeh draws
    shown = report._repr_html_()
    assert shown.startswith("<iframe") and "sandbox=" in shown and "<script" not in shown


def test_what_a_notebook_shows_is_small_and_escaped(done: Run) -> None:
    hostile = History(columns=["<b>x</b>"])
    step = kmeander.ForgetfulKMeans(1, random_state=0).fit([[0.0], [1.0]]).step_
    hostile.append(step)
    drift = next(one for one in done.history if any(e.kind == "drift" for e in one.events))
    for shown in (done, done.history, drift, drift.events[0], done.model, hostile):
        html = shown._repr_html_()
        assert 20 < len(html) < 8000 and "<script" not in html and "<b>x" not in html
    assert "along" in drift._repr_html_() and "share" in drift._repr_html_()


def test_a_step_prints_in_three_lines(done: Run) -> None:
    drift = next(one for one in done.history if any(e.kind == "drift" for e in one.events))
    first, errors, happened = repr(drift).splitlines()
    assert first == (
        f"Step {drift.index}, 2026-06-01 00:{drift.index:02}:00 to 00:{drift.index:02}:59 UTC: "
        "60 rows, 4 clusters, rho 0.6"
    )
    assert "before learning" in errors and "drift: error" in happened
    quiet = next(one for one in done.history if not one.events)
    assert repr(quiet).splitlines()[2] == "  nothing happened"
    waiting = kmeander.ForgetfulKMeans(3).partial_fit([[1.0]]).step_
    assert repr(waiting).splitlines() == ["Step 0: 1 row, no clusters yet", "  waiting"]


def test_units_that_change_on_the_way_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    step = kmeander.ForgetfulKMeans(1, random_state=0).fit([[1.0], [3.0]]).step_
    lines = [step.to_dict(), {**step.to_dict(), "index": 1}]
    lines[0]["run"] = {"columns": ["temp"], "standardize": {"mean": [10.0], "scale": [5.0]}}
    lines[1]["events"] = [{"kind": "rescaled", "column": "temp", "value": 2.0}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert History(path).clusters()["temp"].tolist() == [20.0, 30.0]


def test_what_is_no_step_and_what_cannot_grow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        History().append(3)  # type: ignore[arg-type]  # what it refuses
    assert str(raised.value) == "append takes a Step, such as model.step_, not int."
    (tmp_path / "steps.jsonl").write_text("")
    with pytest.raises(InputError, match=r"which a run writes\. Begin one of your own"):
        History(tmp_path / "steps.jsonl").append(Step(0, 1, True, 0.6, 0, 1.0))
    with pytest.raises(InputError) as raised:
        History().report()
    assert str(raised.value) == (
        "this history has no clusters yet: append Steps of a model that has learned some."
    )
