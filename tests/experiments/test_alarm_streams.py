"""Streams that change and streams that do not: each has what it promises."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from kmeander import InputError
from kmeander.experiments.alarms.changes import ABRUPT, BASES, CALM, CHANGES
from kmeander.experiments.alarms.generators import (
    APART,
    Mixture,
    any_size,
    autoregressive,
    is_weekend,
    lasting_states,
    lognormal,
    spread_out,
    student,
)
from kmeander.experiments.alarms.pools import load_pools
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.protocol import seed_of

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
    assert len(STREAMS) == 31
    assert sum(stream.independent for stream in STREAMS.values()) == 9
    told = {name: stream.season for name, stream in STREAMS.items() if stream.season}
    assert list(told.values()) == [24, 7, 24, 168]
    for name in told:
        stream = STREAMS[name]
        assert stream.limit == {168: 2.0, 24: 1.5, 7: 1.5}[told[name]] or "week" in name
        assert (batches_of(name, 1)[0] == batches_of(stream.rows_of, 1)[0]).all()


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


def test_lasting_rows_go_on_through_a_change() -> None:
    """Before a change the rows are the same for every change; a newcomer takes a device."""
    base = BASES["ar-0.9"]
    one, other = (list(islice(base.batches(3, change), CALM + 5)) for change in base.changes[::3])
    assert [rows.tobytes() for rows in one[:CALM]] == [rows.tobytes() for rows in other[:CALM]]
    assert one[CALM].tobytes() != other[CALM].tobytes()
    homes = np.asarray(base.mixture(3).centres, dtype=np.float64)
    rows = np.array(other[CALM:], dtype=np.float64).reshape(-1, 20, 3)
    assert (np.linalg.norm(rows[:, 0, np.newaxis] - homes, axis=2).min(axis=1) > 3).all()
    stays = np.linalg.norm(rows[:, 1:, np.newaxis] - homes, axis=3).argmin(axis=2)
    assert (stays == np.arange(1, 20) % 4).all()


def test_a_state_is_left_less_often_where_its_share_is_larger() -> None:
    base = BASES["states-0.2"]
    homes = base.mixture(0).centres
    rows = np.concatenate(list(islice(base.batches(0, "share x 1.4"), CALM, CALM + 400)))
    share = (members_of(rows, homes) == 0).mean()
    # A state lasts 5 readings or so: a fifth of them count.
    assert abs(share - 0.35) < ERRORS * math.sqrt(0.35 * 0.65 / (len(rows) / 9))


@pytest.mark.parametrize("name", ABRUPT)
def test_streams_change_when_they_say(name: str) -> None:
    stream = ABRUPT[name]
    batches = list(islice(stream.batches(1), 2 * stream.every))
    again = next(islice(stream.batches(1), stream.every, None))
    assert batches[stream.every].tobytes() == again.tobytes()
    before, after = (np.concatenate(batches[i * stream.every :][: stream.every]) for i in (0, 1))
    size = 1.5 if "1.5sd" in name else 3.0
    if "moves" in name:
        # The mean moves by a quarter of what one of four clusters does.
        shift = np.linalg.norm(before.mean(axis=0) - after.mean(axis=0))
        size = float(name.split("-")[3].removesuffix("sd"))
        scatter = before.std(axis=0).sum() * math.sqrt(2 / len(before))
        assert abs(shift - size / 4) < ERRORS * scatter
    else:
        assert np.ptp(np.sort(before[:, 0]) - np.sort(after[:, 0])) > 1


def test_pools_are_standardised_and_always_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "natural"
    folder.mkdir()
    table = {"x": rng.normal(5, 3, 25_000), "still": np.ones(25_000), "label": np.arange(25_000)}
    pq.write_table(pa.table(table), folder / "real.parquet")
    first, again = load_pools(tmp_path), load_pools(tmp_path)
    assert list(first) == ["real"]
    assert first["real"].shape == (20_000, 1)
    assert first["real"].mean() == pytest.approx(0, abs=1e-12)
    assert first["real"].std() == pytest.approx(1)
    assert first["real"].tobytes() == again["real"].tobytes()
    pq.write_table(pa.table({"x": np.arange(499)}), folder / "short.parquet")
    with pytest.raises(
        InputError, match=r"short\.parquet has fewer than 500 rows, which one batch"
    ):
        load_pools(tmp_path)
    with pytest.raises(InputError) as raised:
        load_pools(folder)
    assert str(raised.value) == (
        f"{folder / 'natural'} holds no Parquet files. Put streams there whose rows are to be "
        "drawn independently, or name no folder, to use the Gaussian pool alone."
    )
