"""False alarms and power: streams as promised, counts as counted by hand, pages from files."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from scipy.stats import binom

from kmeander import Event, ForgetfulKMeans, Step
from kmeander.experiments.alarms import experiment, figure, tables
from kmeander.experiments.alarms.changes import BASES, CALM, CHANGES
from kmeander.experiments.alarms.measure import (
    ChangeCell,
    EventRecord,
    Length,
    StreamCell,
    cells_of,
    program_digest,
    records_of,
)
from kmeander.experiments.alarms.streams import (
    APART,
    STREAMS,
    Mixture,
    any_size,
    autoregressive,
    is_weekend,
    lasting_states,
    lognormal,
    spread_out,
    student,
)
from kmeander.experiments.protocol import seed_of
from kmeander.experiments.storage import load
from kmeander.experiments.tables import read_csv
from tests.program import kmeander

TWO = ("independent-K4-d3-n200", "weekdays")
# Bounds of five standard errors: a right generator fails one of a million seeds, and seeds are set.
ERRORS = 5


def batches_of(name: str, n_batches: int, seed: int = 0) -> list[NDArray[Any]]:
    return list(islice(STREAMS[name].batches(seed), n_batches))


def random_for(name: str, seed: int = 0) -> np.random.Generator:
    """The generator from which a stream draws its clusters first."""
    return np.random.default_rng(seed_of(seed, "alarms", name))


def members_of(rows: NDArray[Any], centres: NDArray[Any]) -> NDArray[np.intp]:
    squared = ((rows[:, np.newaxis] - centres) ** 2).sum(axis=2)
    members: NDArray[np.intp] = squared.argmin(axis=1)
    return members


def correlation(series: NDArray[Any], lag: int = 1) -> float:
    return float((series[lag:] * series[:-lag]).mean() / (series**2).mean())


@pytest.mark.parametrize("name", STREAMS)
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    stream = STREAMS[name]
    once, again, other = (batches_of(name, 3, seed) for seed in (4, 4, 5))
    assert [batch.tobytes() for batch in once] == [batch.tobytes() for batch in again]
    assert once[0].tobytes() != other[0].tobytes()
    assert all(batch.shape[1] == stream.n_features for batch in once)
    assert all(np.isfinite(batch).all() for batch in once)


def test_the_streams_of_the_table_are_all_there() -> None:
    assert len(STREAMS) == 25
    assert sum(stream.independent for stream in STREAMS.values()) == 9


@pytest.mark.parametrize(("n_clusters", "n_features"), [(4, 3), (10, 3), (10, 8)])
def test_the_nearest_two_clusters_are_as_far_apart_as_asked(
    n_clusters: int, n_features: int
) -> None:
    centres = spread_out(np.random.default_rng(0), n_clusters, n_features, apart=3.0)
    squared = ((centres[:, np.newaxis] - centres) ** 2).sum(axis=2)
    assert math.sqrt(squared[np.triu_indices(n_clusters, 1)].min()) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("name", "n_rows"), [("independent-K4-d3-n200", 200), ("independent-K10-d8-n500-20sd", 500)]
)
def test_independent_rows_have_equal_shares_and_deviation_1(name: str, n_rows: int) -> None:
    stream = STREAMS[name]
    apart = 20.0 if name.endswith("20sd") else APART
    centres = spread_out(random_for(name), stream.n_clusters, stream.n_features, apart)
    batches = batches_of(name, 50)
    assert {len(batch) for batch in batches} == {n_rows}
    rows = np.concatenate(batches)
    members = members_of(rows, centres)
    shares = np.bincount(members, minlength=stream.n_clusters) / len(rows)
    share = 1 / stream.n_clusters
    assert abs(shares - share).max() < ERRORS * math.sqrt(share * (1 - share) / len(rows))
    noise = (rows - centres[members]).ravel()
    assert abs(noise.mean()) < ERRORS / math.sqrt(noise.size)
    # Rows nearer to another cluster than to their own are 3e-5 of all at a distance of 8.
    assert abs((noise**2).mean() - 1) < ERRORS * math.sqrt(2 / noise.size) + 1e-3


@pytest.mark.parametrize("lasting", [0.0, 0.5, 0.9])
def test_lasting_noise_has_variance_1_and_the_autocorrelation_asked(lasting: float) -> None:
    n, n_series = 2000, 30
    made = autoregressive(np.random.default_rng(0), lasting, (n_series,))
    series = np.array(list(islice(made, n)))
    # Bartlett: the error of an AR(1) process's first autocorrelation is sqrt((1 - a^2) / n), that
    # of its variance sqrt(2 (1 + a^2) / (1 - a^2) / n).
    total = n * n_series
    assert abs(correlation(series) - lasting) < ERRORS * math.sqrt((1 - lasting**2) / total)
    spread = math.sqrt(2 * (1 + lasting**2) / (1 - lasting**2) / total)
    assert abs((series**2).mean() - 1) < ERRORS * spread


@pytest.mark.parametrize(("name", "lasting"), [("ar-0.5", 0.5), ("ar-0.98", 0.98)])
def test_noise_of_a_device_lasts_from_batch_to_batch(name: str, lasting: float) -> None:
    centres = spread_out(random_for(name), 4, 3, APART)
    n_batches = 200
    readings = np.array(batches_of(name, n_batches)).reshape(10 * n_batches, 20, 3)
    noise = readings - centres[np.arange(20) % 4]
    error = math.sqrt((1 - lasting**2) / noise.size)
    assert abs(correlation(noise) - lasting) < ERRORS * error
    # Only the steps from the last reading of a batch to the first of the next one.
    last, first = noise[9:-1:10], noise[10::10]
    across = (last * first).mean() / (noise**2).mean()
    # Pairs a batch apart depend on each other: their number counts (1 - a^20) / (1 + a^20) fold.
    few = (1 - lasting**20) / (1 + lasting**20)
    assert abs(across - lasting) < ERRORS * math.sqrt(2 / (few * first.size))


@pytest.mark.parametrize("leaving", [0.02, 0.2])
def test_states_are_left_as_often_as_asked_for_any_other(leaving: float) -> None:
    n, n_devices = 2000, 20
    made = lasting_states(np.random.default_rng(0), leaving, n_devices, 4)
    states = np.array(list(islice(made, n)))
    left = states[1:] != states[:-1]
    error = math.sqrt(leaving * (1 - leaving) / left.size)
    assert abs(left.mean() - leaving) < ERRORS * error
    steps = (states[1:] - states[:-1])[left] % 4
    counts = np.bincount(steps, minlength=4)[1:] / left.sum()
    assert abs(counts - 1 / 3).max() < ERRORS * math.sqrt(2 / 9 / left.sum())


def test_one_column_of_one_cluster_lasts_and_no_other() -> None:
    name = "one-lasting-column"
    centres = spread_out(random_for(name), 4, 3, APART)
    rows = np.concatenate(batches_of(name, 100))
    members = members_of(rows, centres)
    for cluster in range(4):
        noise = rows[members == cluster] - centres[cluster]
        for column in range(3):
            measured = correlation(noise[:, column])
            # A row in thousands that lies nearer to another cluster is left out of its series.
            expected, slack = (0.99, 0.01) if (cluster, column) == (0, 0) else (0.0, 0.0)
            assert abs(measured - expected) < ERRORS / math.sqrt(len(noise)) + slack


def test_offsets_of_new_devices_and_of_batches_have_the_deviation_asked() -> None:
    name = "new-devices-0.5sd"
    centres = spread_out(random_for(name), 4, 3, APART)[np.arange(20) % 4]
    of_devices = np.array(batches_of(name, 100)).reshape(100, 10, 20, 3).mean(axis=1) - centres
    variance, size = 0.25 + 1 / 10, of_devices.size
    assert abs((of_devices**2).mean() - variance) < ERRORS * variance * math.sqrt(2 / size)
    assert abs(correlation(of_devices)) < ERRORS / math.sqrt(size)

    name = "batch-offset-0.15sd"
    centres = spread_out(random_for(name), 4, 3, APART)
    batches = batches_of(name, 400)
    means = np.array([(rows - centres[members_of(rows, centres)]).mean(axis=0) for rows in batches])
    variance = 0.15**2 + 1 / 200
    assert abs((means**2).mean() - variance) < ERRORS * variance * math.sqrt(2 / means.size)


def test_sizes_lie_between_40_and_1000_with_a_uniform_logarithm() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([any_size(rng) for _ in range(4000)])
    assert sizes.min() >= 40
    assert sizes.max() <= 1000
    logs = (np.log(sizes) - math.log(40)) / math.log(1000 / 40)
    # Rounding moves a size by half a row, at most 1.3 % of it.
    assert abs(logs.mean() - 0.5) < ERRORS * math.sqrt(1 / 12 / 4000) + 0.004
    for name in ("sizes", "sizes-batch-offset-0.15sd", "sizes-ar-0.5"):
        n_rows = [len(batch) for batch in batches_of(name, 30)]
        assert len(set(n_rows)) > 15
        assert min(n_rows) >= 40
        assert max(n_rows) <= 1000
    assert all(len(batch) % 20 == 0 for batch in batches_of("sizes-ar-0.5", 30))


def test_skewed_and_heavy_tailed_noise_have_their_quantiles() -> None:
    n = 40_000
    error = ERRORS * math.sqrt(0.25 / n)
    drawn = lognormal(np.random.default_rng(0), (n,))
    for quantile, share in ((1.0, 0.5), (math.exp(1.5), 0.8413), (math.exp(-1.5), 0.1587)):
        assert abs((drawn < quantile).mean() - share) < error
    drawn = student(np.random.default_rng(0), (n,)) * math.sqrt(3)
    for quantile, share in ((0.0, 0.5), (2.353, 0.95), (-0.765, 0.25)):  # of a table of t3
        assert abs((drawn < quantile).mean() - share) < error


def test_one_row_in_100_batches_is_far_away() -> None:
    n_batches = 3000
    n_far = sum(
        int((np.linalg.norm(batch, axis=1) > 50).sum())
        for batch in batches_of("far-rows", n_batches)
    )
    assert binom.ppf(1e-6, n_batches * 200, 1 / 20_000) <= n_far
    assert n_far <= binom.ppf(1 - 1e-6, n_batches * 200, 1 / 20_000)


def test_days_and_weeks_return() -> None:
    name = "day-3sd"
    hours = np.array([batch.mean(axis=0) for batch in batches_of(name, 240)])
    centred = hours[:, 0] - hours[:, 0].mean()
    wave = np.sin(2 * np.pi * np.arange(240) / 24)
    height = 2 * (centred * wave).mean()
    # Which rows come from which cluster scatters the mean of a batch by 4 to 8 sd / sqrt(200).
    assert height == pytest.approx(1.5, abs=ERRORS * math.sqrt(2 / 240) * 8 / math.sqrt(200))

    for name, batches_a_day in (("weekdays", 1), ("day-and-week", 24)):
        centres = spread_out(random_for(name), 4, 3, APART)
        batches = batches_of(name, 14 * batches_a_day)
        for day in range(14):
            rows = np.concatenate(batches[day * batches_a_day : (day + 1) * batches_a_day])
            shares = np.bincount(members_of(rows, centres), minlength=4) / len(rows)
            grows = np.diff(shares[[0, 3]])[0] > 0
            assert grows == (day % 7 in (5, 6)) == is_weekend(day)


def change_of(name: str, base: str = "K4-d3-n200") -> tuple[Mixture, Mixture]:
    before = BASES[base].mixture(0)
    return before, CHANGES[name](before, np.random.default_rng(1))


@pytest.mark.parametrize("base", BASES)
def test_changes_change_what_they_say_and_nothing_else(base: str) -> None:
    for size in (0.5, 1, 2, 4):
        before, after = change_of(f"one cluster moves {size:g} sd", base)
        shifts = np.linalg.norm(after.centres - before.centres, axis=1)
        assert shifts[0] == pytest.approx(size)
        assert (shifts[1:] == 0).all()
        assert replace(after, centres=before.centres).__dict__ == before.__dict__
    for size in (0.25, 0.4):
        before, after = change_of(f"all clusters move {size:g} sd", base)
        shifts = after.centres - before.centres
        assert np.linalg.norm(shifts, axis=1) == pytest.approx(size)
        assert np.ptp(shifts, axis=0).max() < 1e-12
    before, after = change_of("share x 1.4", base)
    assert after.shares[0] == pytest.approx(1.4 * before.shares[0])
    assert after.shares.sum() == pytest.approx(1)
    assert np.ptp(after.shares[1:]) < 1e-12
    for percent in (2, 5):
        before, after = change_of(f"new cluster {percent} %", base)
        assert after.shares[-1] == percent / 100
        assert after.shares.sum() == pytest.approx(1)
        assert np.linalg.norm(before.centres - after.centres[-1], axis=1).min() >= APART
    before, after = change_of("radii + 10 %", base)
    assert after.radius == 1.1 * before.radius
    before, after = change_of("one column + 0.2 sd", base)
    assert after.centres - before.centres == pytest.approx(
        np.tile([0.2] + [0.0] * (before.centres.shape[1] - 1), (len(before.centres), 1))
    )


def step(index: int, *kinds: str, ids: tuple[int, ...] = (0, 1)) -> Step:
    return Step(index, 10, False, 0.6, 1, 10.0, ids=np.array(ids), events=tuple(map(Event, kinds)))


def test_events_are_counted_by_kind_and_ids_when_they_are_new() -> None:
    steps = [
        Step(0, 1, True, 0.6, 1, 1.0),
        step(1),
        step(2, "drift", "moved", "moved"),
        step(3, "born", "died", ids=(0, 2)),
        step(4, "grew", "shrank", ids=(2, 0)),
    ]
    assert records_of(steps, "s", 7) == [
        EventRecord("s", "", 7, 0, 0, 0, 0, 0, 0, 0),
        EventRecord("s", "", 7, 1, 0, 0, 0, 0, 0, 2),
        EventRecord("s", "", 7, 2, 1, 2, 0, 0, 0, 0),
        EventRecord("s", "", 7, 3, 0, 0, 0, 0, 2, 1),
        EventRecord("s", "", 7, 4, 0, 0, 1, 1, 0, 0),
    ]
    assert [record.new_ids for record in records_of(steps, "s", 7, known=(0, 1))] == [0, 0, 0, 1, 0]


def records(stream: str, seed: int, **batches: Any) -> list[dict[str, Any]]:
    """Records of 100 batches, empty but for those named: `moved=(3, 50)`."""
    return [
        {
            "stream": stream, "change": "", "seed": seed, "batch": batch, "others": 0, "new_ids": 0,
            **{kind: int(batch in batches.get(kind, ())) for kind in
               ("drift", "moved", "grew", "shrank", "others", "new_ids")},
        }
        for batch in range(100)
    ]  # fmt: skip


def test_rates_leave_out_the_first_batches_and_count_a_batch_once() -> None:
    weekdays, independent = tables.alarm_rates(
        records(TWO[0], 0, moved=(29, 30))
        + records(TWO[1], 0, moved=(0, 7, 60), grew=(60, 61), others=(80,), new_ids=(0, 90))
        + records(TWO[1], 1, drift=(99,), shrank=(99,))
    )[::-1]
    assert weekdays["stream"] == "weekdays"
    assert (weekdays["batches"], weekdays["alarmed"], weekdays["seeds"]) == (140, 3, 2)
    assert weekdays["in_first_30"] == 1.0
    assert weekdays["alarmed_per_1000"] == 1000 * 3 / 140
    assert weekdays["ids_per_1000"] == 1000 / 140
    assert weekdays["moved_per_1000"] == weekdays["drift_per_1000"] == 1000 / 140
    assert (independent["alarmed"], independent["in_first_30"]) == (1, 1.0)
    (together,) = tables.pooled([independent, weekdays])
    assert (together["streams"], together["alarmed"], together["batches"]) == (1, 1, 70)
    assert together["limit_per_1000"] == 1.0


@pytest.mark.parametrize(("n_alarmed", "n_batches"), [(0, 970), (5, 970), (6, 970), (40, 9700)])
def test_the_test_of_a_limit_is_the_binomial_tail(n_alarmed: int, n_batches: int) -> None:
    found = tables.rate(n_alarmed, n_batches, limit=1.5)
    p = binom.sf(n_alarmed - 1, n_batches, 0.0015)
    assert found["p"] == pytest.approx(p)
    assert found["rejected"] == (p < 0.01)
    # At the bound, as few alarms or fewer come once in 100 times.
    assert binom.cdf(n_alarmed, n_batches, found["upper_99"] / 1000) == pytest.approx(0.01)


def test_power_is_the_share_of_runs_noticed_so_far() -> None:
    rows = [
        {**record, "change": "c"}
        for seed, batches in enumerate(
            [{"others": (0,)}, {"moved": (1,)}, {"grew": (5,)}, {"drift": (13,)}]
        )
        for record in records("K4-d3-n200", seed, **batches)
    ]
    (found,) = tables.power(rows)
    assert found["runs"] == 4
    assert [found[f"within_{t}"] for t in (0, 1, 4, 12)] == [0.25, 0.5, 0.5, 0.75]
    assert [found[f"alarmed_within_{t}"] for t in (0, 1, 4, 12)] == [0.0, 0.25, 0.25, 0.5]


def test_a_change_is_measured_as_if_the_stream_had_no_other() -> None:
    """A model that learns the calm batches and then those of one change has the same events."""
    cell = ChangeCell("K4-d3-n200", 3)
    base, change = BASES[cell.base], "one cluster moves 4 sd"
    found = [record for record in cell.run(np.empty((0, 3))) if record.change == change]
    seed = seed_of(3, "model", cell.base) % 2**32
    model = ForgetfulKMeans(base.n_clusters, random_state=seed)
    steps = [
        model.partial_fit(batch).step_
        for batch in (*base.before(3), *islice(base.after(3, change), 13))
    ]
    by_hand = records_of(steps, cell.base, 3, change)[CALM:]
    assert [replace(record, batch=record.batch - CALM) for record in by_hand] == found
    assert found[0].drift + found[0].moved > 0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of two streams and one that changes, as it lies on the disk."""
    folder = tmp_path_factory.mktemp("alarms")
    short = Length(n_batches=90, seed=5)
    experiment.run_alarms(short, folder, streams=TWO, bases=("K4-d3-n200",))
    return folder


@pytest.mark.slow
def test_a_run_writes_page_figure_and_numbers(stored: Path) -> None:
    assert {path.name for path in stored.iterdir()} == {
        "ALARMS.md", "figures", "run.json", "steps",
    }  # fmt: skip
    assert {path.name for path in (stored / "figures").iterdir()} == {
        "alarms.csv", "pooled.csv", "power.csv", "alarms.pdf", "alarms.png",
    }  # fmt: skip
    assert len(list((stored / "steps").glob("still-*"))) == 2
    assert len(list((stored / "steps").glob("change-*"))) == 20
    table = load([stored / "steps" / "still-weekdays-s5.parquet"]).to_pylist()
    assert [row["batch"] for row in table] == list(range(90))
    again = StreamCell("weekdays", 90, 5).run(np.empty((0, 3)))
    assert [vars(record) for record in again] == table


@pytest.mark.slow
def test_every_number_of_the_page_is_one_of_the_csv_files(stored: Path) -> None:
    page = (stored / "ALARMS.md").read_text(encoding="utf-8")
    rates = read_csv(stored / "figures" / "alarms.csv")
    assert [row["stream"] for row in rates] == list(TWO)
    for row in rates:
        verdict = "**rejected**" if row["rejected"] else "not rejected"
        assert (
            f"| {row['stream']} | {row['batches']} | {row['alarmed_per_1000']:.1f} | "
            f"{row['upper_99']:.1f} | {verdict} | {row['in_first_30']:.1f} | "
            f"{row['ids_per_1000']:.1f} |"
        ) in page
    (pooled,) = read_csv(stored / "figures" / "pooled.csv")
    assert (
        f"{pooled['alarmed']} of {pooled['batches']} batches of 1 streams alarmed, "
        f"{pooled['alarmed_per_1000']:.2f} in 1000"
    ) in page
    power = read_csv(stored / "figures" / "power.csv")
    assert [row["change"] for row in power] == list(CHANGES)
    for row in power:
        shares = " ".join(f"{row[f'within_{t}']:.2f}" for t in (0, 1, 4, 12))
        assert f"| {row['change']} | {shares} |" in page
    drawn = figure.draw(rates)
    bars = {
        str(bar.get_gid()).removeprefix("alarms:"): bar.get_width()
        for bar in drawn.axes[0].patches
        if isinstance(bar, Rectangle) and bar.get_gid()
    }
    assert bars == {row["stream"]: row["alarmed_per_1000"] for row in rates}


@pytest.mark.slow
def test_processes_change_no_byte(stored: Path, tmp_path: Path) -> None:
    short = Length(n_batches=90, seed=5)
    experiment.run_alarms(short, tmp_path, streams=TWO, bases=("K4-d3-n200",), processes=2)
    for path in sorted(stored.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(stored)).read_bytes(), path


@pytest.mark.slow
def test_independent_rows_keep_the_promise_and_weekends_do_not() -> None:
    """The short form of the whole, on one seed."""
    found = tables.alarm_rates(
        vars(record) for name in TWO for record in StreamCell(name, 1000, 0).run(np.empty((0, 3)))
    )
    assert [row["rejected"] for row in found] == [0, 1]
    assert found[0]["alarmed"] <= 2


def test_seeds_of_changes_come_after_those_of_the_streams() -> None:
    length = Length(repetitions=10, seed=1000)
    assert (length.seeds[0], length.seeds[-1]) == (1000, 1009)
    assert (length.seeds_of_changes[0], length.seeds_of_changes[-1]) == (2000, 2199)
    names = [cell.name for cell in cells_of(length)]
    assert len(names) == len(set(names)) == 25 * 10 + 2 * 200


def test_stored_cells_know_the_program_that_made_them() -> None:
    cells = cells_of(Length(), streams=TWO, bases=())
    assert {vars(cell)["program"] for cell in cells} == {program_digest()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--river",), ("--data", "d"), ("--clusters", "3"), ("--epsilon", "1"), ("--m", "2")]
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
