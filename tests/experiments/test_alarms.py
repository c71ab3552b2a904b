"""False alarms and power: counts as counted by hand, pages from files, promises kept."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from scipy.stats import binom

from kmeander import Event, ForgetfulKMeans, Step
from kmeander.experiments.alarms import experiment, figure, tables
from kmeander.experiments.alarms.cells import (
    ChangeCell,
    EpsilonCell,
    Length,
    UnchangingCell,
    cells_of,
)
from kmeander.experiments.alarms.changes import ABRUPT, BASES, CALM, CHANGES
from kmeander.experiments.alarms.measure import EventRecord, Observer, record_of
from kmeander.experiments.alarms.pools import GAUSSIAN, drawn, drifted, gaussian_pool
from kmeander.experiments.alarms.rivals import RIVALS
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.alarms.verdicts import verdicts_of
from kmeander.experiments.program import program_digest
from kmeander.experiments.protocol import seed_of
from kmeander.experiments.storage import load
from kmeander.experiments.tables import read_csv
from tests.program import kmeander

NO_POINTS = np.empty((0, 1))
TWO = ("independent-K4-d3-n200", "weekdays")


def step(index: int, *events: str | Event, ids: tuple[int, ...] = (0, 1)) -> Step:
    made = tuple(event if isinstance(event, Event) else Event(event) for event in events)
    return Step(index, 10, False, 0.6, 1, 10.0, ids=np.array(ids), events=made)


def test_events_are_counted_by_kind_and_ids_when_they_are_new() -> None:
    steps = [
        Step(0, 1, True, 0.6, 1, 1.0),
        step(1),
        step(2, "drift", "moved", Event("moved", unconfirmed=True)),
        step(3, "born", "died", ids=(0, 2)),
        step(4, "grew", "shrank", "trend", "split", ids=(2, 0)),
    ]
    seen: set[int] = set()
    found: list[EventRecord] = []
    for one, before in zip(steps, [None, *steps[:-1]], strict=True):
        found.append(record_of(one, before, seen, "s", 7, batch=one.index))
        seen |= set() if one.ids is None else set(one.ids.tolist())
    names = (
        "drift", "moved", "grew", "shrank", "trend", "confirmed", "others", "births", "new_ids",
        "rows_changed",
    )  # fmt: skip
    assert [tuple(getattr(record, name) for name in names) for record in found] == [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 0, 0, 2, 0),
        (1, 2, 0, 0, 0, 2, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 2, 1, 1, 0),
        (0, 0, 1, 1, 1, 3, 1, 1, 0, 2),
    ]
    assert all(math.isnan(record.error) and record.ks is None for record in found)


def records(stream: str, seed: int, **batches: Any) -> list[dict[str, Any]]:
    """Records of 100 batches, empty but for those named: `moved=(3, 50)`."""
    counted = (
        "drift", "moved", "grew", "shrank", "trend", "confirmed", "others", "births", "new_ids",
        "rows_changed", "rule",
    )  # fmt: skip
    return [
        {
            "stream": stream, "change": "", "seed": seed, "batch": batch, "error": 1.0,
            **{name: int(batch in batches.get(name, ())) for name in counted},
            **dict.fromkeys(RIVALS.keys() - {"rule"}),
        }
        for batch in range(100)
    ]  # fmt: skip


def test_rates_leave_out_the_first_batches_and_count_a_batch_once() -> None:
    numbers = tables.numbers_of(
        records(TWO[0], 0, moved=(29, 30), confirmed=(29,))
        + records(TWO[1], 0, moved=(0, 7, 60), grew=(60, 61), others=(80,), new_ids=(0, 90))
        + records(TWO[1], 1, drift=(99,), shrank=(99,), trend=(98,), rule=(1, 50))
    )
    independent, weekdays = numbers["alarms"]
    assert weekdays["stream"] == "weekdays"
    assert (weekdays["batches"], weekdays["alarmed"], weekdays["seeds"]) == (140, 4, 2)
    assert weekdays["in_first_30"] == 1.0
    assert weekdays["confirmed_in_first_30"] == 0.0
    assert weekdays["alarmed_per_1000"] == 1000 * 4 / 140
    assert weekdays["ids_per_1000"] == 1000 / 140
    assert weekdays["moved_per_1000"] == weekdays["drift_per_1000"] == 1000 / 140
    assert weekdays["rule_per_1000"] == 1000 / 140
    assert math.isnan(weekdays["ks_per_1000"])
    assert (independent["alarmed"], independent["in_first_30"]) == (1, 1.0)
    assert independent["confirmed_in_first_30"] == 1.0
    everything, alone = numbers["pooled"]
    assert (everything["pooled"], everything["alarmed"], everything["batches"]) == ("all", 5, 210)
    assert (alone["streams"], alone["alarmed"], alone["batches"]) == (1, 1, 70)
    assert alone["limit_per_1000"] == 1.0


@pytest.mark.parametrize(("n_alarmed", "n_batches"), [(0, 970), (5, 970), (6, 970), (40, 9700)])
def test_the_test_of_a_limit_is_the_binomial_tail(n_alarmed: int, n_batches: int) -> None:
    found = tables.rate(n_alarmed, n_batches, limit=1.5)
    p = binom.sf(n_alarmed - 1, n_batches, 0.0015)
    assert found["p"] == pytest.approx(p)
    assert found["rejected"] == (p < 0.01)
    # At the bound, as few alarms or fewer come once in 100 times.
    assert binom.cdf(n_alarmed, n_batches, found["upper_99"] / 1000) == pytest.approx(0.01)
    assert tables.rate(n_alarmed, n_batches, limit=None)["rejected"] == 0


def test_power_is_the_share_of_runs_noticed_so_far() -> None:
    rows = [
        {**record, "change": "c"}
        for seed, batches in enumerate(
            [{"others": (0,)}, {"moved": (1,)}, {"grew": (5,), "confirmed": (5,)}, {"drift": (13,)}]
        )
        for record in records("K4-d3-n200", seed, **batches)
    ]
    (found,) = tables.numbers_of(rows)["power"]
    assert found["runs"] == 4
    within = (0, 1, 4, 12)
    assert [found[f"within_{t}"] for t in within] == [0.0, 0.25, 0.25, 0.5]
    assert [found[f"any_within_{t}"] for t in within] == [0.25, 0.5, 0.5, 0.75]
    assert [found[f"confirmed_within_{t}"] for t in within] == [0.0, 0.0, 0.0, 0.25]
    assert [found[f"rule_within_{t}"] for t in within] == [0.0] * 4
    assert math.isnan(found["ks_within_0"])


def test_changes_again_and_again_are_reported_in_their_batch_or_not() -> None:
    name = "every-10-all-new"
    rows = records(name, 0, moved=(0, 10, 11, 20, 29, 90), confirmed=(10,), rule=(10, 12))
    (found,) = tables.numbers_of(rows)["abrupt"]
    assert (found["changes"], found["reported"], found["reported_confirmed"]) == (9, 3, 1)
    assert found["between"] == 2
    assert (found["rule_changes"], found["rule_reported"], found["rule_between"]) == (9, 1, 1)


def test_a_verdict_holds_what_was_asked_against_what_was_measured() -> None:
    rows = records("lognormal-1.5", 0, new_ids=(50, 51), births=(50,), rows_changed=(60,))
    found = {verdict.promise: verdict for verdict in verdicts_of(tables.numbers_of(rows))}
    told = found["new ids per 1000 batches, lognormal-1.5, reported"]
    assert (told.measured, told.asked, told.is_kept) == ("14.3", "at most 15", True)
    assert not found["new ids per 1000 batches, lognormal-1.5, in any Step"].is_kept
    assert found["alarmed batches among the first 30, worst stream, confirmed"].is_kept
    changed = "clusters with a centroid before and after a batch whose row changed, all streams"
    assert (found[changed].measured, found[changed].word) == ("1", "**no**")


def test_a_change_is_measured_as_if_the_stream_had_no_other() -> None:
    """A model that learns the calm batches and then those of one change has the same events."""
    cell = ChangeCell("K4-d3-n200", 3)
    base, change = BASES[cell.stream], "one cluster moves 4 sd"
    found = [record for record in cell.run(NO_POINTS) if record.change == change]
    seed = seed_of(3, "model", cell.stream) % 2**32
    model = ForgetfulKMeans(base.n_clusters, random_state=seed)
    kinds = [
        [event.kind for event in model.partial_fit(batch).step_.events]
        for batch in islice(base.batches(3, change), CALM + 13)
    ][CALM:]
    assert [(one.drift, one.moved) for one in found] == [
        (of_batch.count("drift"), of_batch.count("moved")) for of_batch in kinds
    ]
    assert found[0].drift + found[0].moved > 0


def test_a_fork_leaves_the_other_untouched() -> None:
    batches = list(islice(STREAMS["weekdays"].batches(0), 40))
    once = Observer("weekdays", 4, 0, with_rivals=True)
    once.learn(batches[:30])
    fork = once.fork()
    assert fork.learn(batches[30:]) == once.learn(batches[30:])


def test_the_gaussian_pool_drifts_unseen_by_single_columns() -> None:
    found = EpsilonCell(GAUSSIAN, 7, rivals=True).run(gaussian_pool())
    late = [record for record in found if record.change.endswith("60 batches")]
    assert len(found) == 26
    assert any(tables.is_alarmed(vars(record)) for record in late)
    assert not any(record.ks or record.rule for record in late)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of two streams and one that changes, as it lies on the disk."""
    folder = tmp_path_factory.mktemp("alarms")
    run_short(folder)
    return folder


def run_short(folder: Path, processes: int = 1) -> None:
    experiment.run_alarms(
        Length(n_batches=60, seed=5), folder, streams=TWO, bases=("K4-d3-n200-at-6",),
        abrupt=("every-10-moves-6sd",), processes=processes,
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_writes_page_figure_and_numbers(stored: Path) -> None:
    assert {path.name for path in stored.iterdir()} == {
        "ALARMS.md", "alarms-table.md", "figures", "run.json", "steps",
    }  # fmt: skip
    assert {path.name for path in (stored / "figures").iterdir()} == {
        "alarms.csv", "pooled.csv", "power.csv", "abrupt.csv", "rows.csv", "alarms.pdf",
        "alarms.png", "power.pdf", "power.png",
    }  # fmt: skip
    assert len(list((stored / "steps").glob("still-*"))) == 3
    assert len(list((stored / "steps").glob("change-*"))) == 20
    table = load([stored / "steps" / "still-weekdays-s5.parquet"]).to_pylist()
    assert [row["batch"] for row in table] == list(range(60))
    again = UnchangingCell("weekdays", 5, rivals=True, n_batches=60).run(NO_POINTS)
    assert [vars(record) for record in again][1:] == table[1:]  # the first has no error: NaN
    assert (stored / "alarms-table.md").read_text(encoding="utf-8").startswith("- kmeander ")


@pytest.mark.slow
def test_every_number_of_the_page_is_one_of_the_csv_files(stored: Path) -> None:
    page = (stored / "ALARMS.md").read_text(encoding="utf-8")
    rates = read_csv(stored / "figures" / "alarms.csv")
    assert [row["stream"] for row in rates] == [*TWO, GAUSSIAN]
    for row in rates:
        assert (
            f"| {row['stream']} | {row['batches']} | {row['alarmed_per_1000']:.1f} | "
            f"{row['upper_99']:.1f} | {row['limit_per_1000']:g}, not rejected | "
            f"{row['in_first_30']:.1f} | {row['confirmed_in_first_30']:.1f} | "
        ) in page
        assert f"| {row['rule_per_1000']:.1f} | {row['ks_per_1000']:.1f} |" in page
    power = read_csv(stored / "figures" / "power.csv")
    assert [row["change"] for row in power][:3] == list(BASES["K4-d3-n200-at-6"].changes)
    for row in power:
        shares = " ".join(f"{row[f'within_{t}']:.2f}" for t in (0, 1, 4, 12))
        assert f"| {row['stream']} | {row['change']} | {row['runs']} | {shares} |" in page
    for verdict in experiment.verdicts_in(stored):
        line = f"| {verdict.promise} | {verdict.asked} | {verdict.measured} | {verdict.word} |"
        assert line in page
    drawn = figure.draw_rates(rates)
    bars = {
        str(bar.get_gid()).removeprefix("alarms:"): bar.get_width()
        for bar in drawn.axes[0].patches
        if isinstance(bar, Rectangle) and bar.get_gid()
    }
    assert bars == {row["stream"]: row["alarmed_per_1000"] for row in rates}


@pytest.mark.slow
def test_the_power_that_is_drawn_is_that_of_the_table(stored: Path) -> None:
    power = read_csv(stored / "figures" / "power.csv")
    lines = {
        str(line.get_gid()): list(map(float, line.get_ydata()))  # type: ignore[arg-type]
        for part in figure.draw_power(power).subfigs
        for axes in part.axes
        for line in axes.get_lines()
    }
    for row in power:
        gid = f"power:{row['stream']}:{row['change']}:kmeander"
        assert lines[gid] == [row[f"within_{t}"] for t in (0, 1, 4, 12)]


@pytest.mark.slow
def test_processes_change_no_byte(stored: Path, tmp_path: Path) -> None:
    run_short(tmp_path, processes=2)
    for path in sorted(stored.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(stored)).read_bytes(), path


@pytest.mark.slow
def test_the_promises_hold_on_a_few_streams() -> None:
    """The short form of the whole, on one seed: kmeander keeps quiet where others cannot."""
    names = ("independent-K4-d3-n200", "ar-0.9", "weekdays-season-7", "far-rows", "lognormal-1.5")
    found = tables.numbers_of(
        vars(record)
        for name in names
        for record in UnchangingCell(name, 0, rivals=True, n_batches=500).run(NO_POINTS)
    )
    by_name = {row["stream"]: row for row in found["alarms"]}
    assert not any(row["rejected"] for row in by_name.values())
    assert by_name["ar-0.9"]["rule_per_1000"] > 100
    assert by_name["weekdays-season-7"]["ks_per_1000"] > 100
    assert by_name["independent-K4-d3-n200"]["rule_per_1000"] < 10
    assert max(row["in_first_30"] for row in by_name.values()) <= 3
    assert max(row["births_per_1000"] for row in by_name.values()) <= 15
    assert found["rows"] == [{"rows_changed": 0}]


@pytest.mark.slow
def test_changes_are_noticed_on_a_few_seeds() -> None:
    runs = [
        vars(record)
        for name in ("K4-d3-n200", "ar-0.9")
        for seed in range(6)
        for record in ChangeCell(name, seed).run(NO_POINTS)
    ]
    found = {(row["stream"], row["change"]): row for row in tables.numbers_of(runs)["power"]}
    assert [change for name, change in found if name == "K4-d3-n200"] == list(CHANGES)
    independent = {change: row for (name, change), row in found.items() if name == "K4-d3-n200"}
    for change in ("one cluster moves 2 sd", "one cluster moves 4 sd", "new cluster 5 %"):
        assert independent[change]["within_0"] == 1.0
    assert independent["one cluster moves 1 sd"]["within_4"] == 1.0
    assert min(row["within_12"] for row in independent.values()) >= 0.5
    assert found["ar-0.9", "one cluster moves 4 sd"]["within_12"] == 1.0


def n_alarmed(records: Iterable[EventRecord]) -> int:
    return sum(tables.is_alarmed(vars(record)) for record in records)


@pytest.mark.slow
def test_small_drifts_of_young_streams_are_noticed() -> None:
    """In two columns a drift of 2 % shows in no batch alone, and soon looks as if it were usual."""
    pool = np.random.default_rng(0).random((20_000, 2))
    noticed = 0
    for seed in range(10):
        observer = Observer("square", 10, seed)
        before = drawn(pool, seed, "before")
        assert n_alarmed(observer.learn(islice(before, 20))) == 0
        after = drawn(drifted(pool, seed), seed, "after")
        noticed += n_alarmed(observer.learn(islice(after, 13))) > 0
    assert noticed >= 9


@pytest.mark.slow
def test_a_stream_with_rare_far_clusters_does_not_walk() -> None:
    """Where few rows have made a centre, it is not where its cluster is."""
    rng = np.random.default_rng(0)
    pool = np.concatenate([rng.normal(size=(19_800, 9)), 30 * rng.standard_t(2, size=(200, 9))])
    trends = [
        record.trend
        for seed in range(2)
        for record in Observer("rare", 10, seed).learn(islice(drawn(pool, seed), 400))
    ]
    assert sum(trends) == 0


def test_seeds_of_changes_come_after_those_of_the_streams() -> None:
    length = Length(repetitions=10, seed=1000)
    assert (length.seeds[0], length.seeds[-1]) == (1000, 1009)
    assert (length.seeds_of_changes[0], length.seeds_of_changes[-1]) == (2000, 2199)
    pools = {"real": NO_POINTS, "other": NO_POINTS, GAUSSIAN: NO_POINTS}
    cells = cells_of(length, pools)
    names = [cell.name for cell in cells]
    n_still, n_epsilon = (31 + 3) * 10, 2 * 100 + 200
    n_cells = n_still + len(ABRUPT) * 3 + len(BASES) * 200 + n_epsilon
    assert len(names) == len(set(names)) == n_cells
    with_rivals = {vars(cell)["seed"] for cell in cells if vars(cell)["rivals"]}
    assert with_rivals == {1000, *range(2000, 2020)}


def test_stored_cells_know_the_program_that_made_them() -> None:
    cells = cells_of(Length(), {}, streams=TWO, bases=())
    assert {vars(cell)["program"] for cell in cells} == {program_digest()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--river",), ("--clusters", "3"), ("--epsilon", "1"), ("--m", "2")]
)
def test_options_that_do_not_apply_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    wrong = kmeander("experiment", "alarms", *words, "--out", str(tmp_path / "none"))
    assert wrong.returncode == 2
    said = " ".join(wrong.stderr.replace("│", " ").split())
    assert (
        f"Invalid value for {words[0]}: 'kmeander experiment alarms' does not take it: its "
        "streams are its own."
    ) in said
    assert not (tmp_path / "none").exists()
