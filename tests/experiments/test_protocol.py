"""One cell of the grid: shared starts, privileged knowledge, and the errors of the paper."""

from __future__ import annotations

import csv
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kmeander import (
    FSKM,
    PSKM,
    Batch,
    DriftStream,
    InputError,
    Step,
    rho_for_drift,
    simulate_drifts,
)
from kmeander.arguments import generator_for
from kmeander.experiments.protocol import INITS, METHODS, Cell, Methods, Record, Setting, run_cell
from kmeander.experiments.theorem2 import hungarian_bound
from kmeander.kmeans.forgetting import max_batches_for
from kmeander.kmeans.lloyd import Limits
from kmeander.kmeans.seeding import kmeans
from kmeander.kmeans.starts import hungarian
from tests import golden, naive

TINY = Setting(3, 1.0, m=1.0, batch_size=40, n_concepts=3, batches_per_concept=4)


def tiny_datasets() -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(5)
    ring = rng.normal(size=(150, 2))
    lumps = rng.normal(scale=4.0, size=(6, 3))[rng.integers(6, size=200)]
    return {"ring": 5 + ring / np.linalg.norm(ring, axis=1, keepdims=True), "lumps": lumps
            + rng.normal(size=(200, 3))}  # fmt: skip


def tiny_grid() -> list[Record]:
    return [
        record
        for name, points in tiny_datasets().items()
        for record in run_cell(Cell(name, TINY), points)
    ]


def test_rho_window_and_burn_in_are_the_papers() -> None:
    settings = [Setting(5, epsilon) for epsilon in (0.5, 1.0, 2.0)]
    assert [round(setting.rho, 3) for setting in settings] == [0.457, 0.398, 0.347]
    assert [max_batches_for(setting.rho) for setting in settings] == [6, 5, 5]
    assert [setting.n_burn_in for setting in settings] == [12, 10, 9]


def test_the_miniature_grid_is_as_it_was_stored() -> None:
    """Made by ``python -m tests.golden.make_grid``; counts exactly, errors to the last digits."""
    with golden.GRID.open(encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    found = tiny_grid()
    assert len(stored) == len(found) == 2 * 12 * 5
    for row, record in zip(stored, found, strict=True):
        for field in fields(Record):
            value = getattr(record, field.name)
            if isinstance(value, float):
                assert value == pytest.approx(float(row[field.name]), rel=1e-9, nan_ok=True)
            else:
                assert str(value) == row[field.name]


def test_a_cell_is_the_same_for_any_number_of_threads() -> None:
    points = tiny_datasets()["lumps"]
    alone = run_cell(Cell("lumps", TINY), points, n_threads=1)
    # NaN is not itself, so the records are compared as text.
    assert str(run_cell(Cell("lumps", TINY), points, n_threads=3)) == str(alone)
    assert str(run_cell(Cell("lumps", TINY, seed=1), points)) != str(alone)
    assert str(run_cell(Cell("lumps", TINY, repetition=1), points)) != str(alone)


def test_m_changes_the_memory_and_not_the_stream() -> None:
    cell = Cell("lumps", TINY)
    other = Cell("lumps", replace(TINY, m=2.0))
    assert cell.seed_for("stream") == other.seed_for("stream")
    assert cell.seed_for("stream") != cell.seed_for("drifts")
    assert cell.name == "lumps-K3-epsilon1-m1-r0" and other.name == "lumps-K3-epsilon1-m2-r0"
    points = tiny_datasets()["lumps"]

    def privileged(cell: Cell) -> list[float]:
        return [r.skm_error for r in run_cell(cell, points) if r.method == "PSKM" and r.concept > 0]

    # PSKM has no rho: after the first drift it does the same whatever m is.
    assert privileged(cell) == privileged(other)


def test_records_come_by_batch_and_method_and_count_from_the_drift() -> None:
    records = run_cell(Cell("ring", TINY), tiny_datasets()["ring"])
    assert [r.method for r in records] == list(METHODS) * 12
    assert [r.batch for r in records[::5]] == list(range(12))
    assert [r.concept for r in records[::5]] == [0] * 4 + [1] * 4 + [2] * 4
    burn_in = TINY.n_burn_in
    assert [r.since_drift for r in records[::5]] == [
        *range(burn_in + 1, burn_in + 5), 1, 2, 3, 4, 1, 2, 3, 4,
    ]  # fmt: skip
    for pc, hi in zip(records[::5], records[3::5], strict=True):
        assert math.isnan(pc.theorem2_bound)
        assert hi.initial_error <= hi.theorem2_bound * (1 + 1e-9)


def stream_of(points: NDArray[np.float64]) -> list[Batch]:
    concepts = simulate_drifts(points, 3, 1.0, 3, random_state=0)
    return list(DriftStream(concepts, 40, 4, random_state=0).batches())


def test_all_methods_start_from_the_same_centroids_at_every_batch() -> None:
    """Taking over PC's memory is the same, bit for bit, as step(previous=C*, current=C^0).

    But for the distances computed: the bounds that PC keeps of them are taken over, too. And but
    for what is usual and for ids, which each model knows of its own batches. Rows go with ids, so
    clusters are compared in the order of their centroids.
    """
    batches = stream_of(tiny_datasets()["lumps"])
    methods = Methods(TINY, seed=3, n_threads=1)
    plain = {
        name: FSKM(3, init=init, rho=TINY.rho, n_threads=1, random_state=3)
        for name, init in INITS.items()
    }
    for batch in batches[:2]:
        methods.burn_in(batch)
        for model in plain.values():
            model.step(batch, previous=plain["PC"].centroids if batch.index else None)
            # Until now every model has seen the same batches; only C* has to be PC's.
    for batch in batches[2:]:
        current = kmeans(batch.points, None, 3, generator_for(3, batch.index), Limits(n_threads=1))
        shared = plain["PC"].centroids
        expected = {
            name: model.step(batch, previous=shared, current=current)
            for name, model in plain.items()
        }
        found, _ = methods.step(batch, current)
        for name, step in expected.items():
            same = found[name]
            assert abs(same.n_iter - step.n_iter) <= 1
            assert learned_by(same) == learned_by(step)


def learned_by(step: Step) -> Step:
    """Return the Step without what a model knows of its own batches alone, its rows in order.

    Where a cluster comes back to the row that its id has, Lloyd makes one pass more.
    """
    assert step.centroids is not None
    assert step.masses is not None
    order = np.lexsort(step.centroids.T)
    rows: Any = {"centroids": step.centroids[order], "masses": step.masses[order], "moved": None}
    own: Any = {"drift_z": None, "ids": None, "events": (), "why": None, "noise": None, "n_far": 0}
    ids: Any = {"provisional": (), "asleep": (), "dropped": (), "ended": ()}
    passes: Any = {"n_iter": 0, "n_distances": 0, "n_distances_plain": 0}
    return replace(step, **own, **ids, **passes, **rows)


def test_pskm_goes_its_own_way_and_is_told_of_drifts() -> None:
    batches = stream_of(tiny_datasets()["lumps"])
    methods = Methods(TINY, seed=3, n_threads=1)
    alone = PSKM(3, n_threads=1, random_state=3)
    for batch in batches:
        current = kmeans(batch.points, None, 3, generator_for(3, batch.index), Limits(n_threads=1))
        if batch.index < 2:
            methods.burn_in(batch)
            alone.step(batch)
            continue
        found, _ = methods.step(batch, current)
        assert found["PSKM"] == alone.step(batch, current=current)
        assert found["PSKM"].n_batches == batch.index % 4 + 1


def test_the_skm_error_is_that_of_all_batches_since_the_drift() -> None:
    cell = Cell("lumps", TINY)
    points = tiny_datasets()["lumps"]
    records = run_cell(cell, points)
    for record in records:
        if record.method == "PSKM":
            # PSKM's window holds just those batches, unweighted.
            assert record.skm_error == pytest.approx(record.surrogate_error)
    at_drift = [record for record in records if record.since_drift == 1]
    assert at_drift
    for record in at_drift:
        assert record.skm_error == pytest.approx(record.batch_error)


def test_the_bound_of_theorem_2_equals_the_plain_sum() -> None:
    batches = stream_of(tiny_datasets()["lumps"])
    model = FSKM(3, init="previous", rho=0.5, random_state=0)
    for batch in batches[:6]:
        if model.centroids is not None:
            current = kmeans(batch.points, None, 3, generator_for(9, batch.index), Limits())
            aged = model.window.aged(1.0, max_batches_for(0.5), None)
            masses = aged.cluster_masses(3)
            start, matching = hungarian(model.centroids, masses, current.centroids, current.masses)
            expected = naive.theorem2_bound(
                [seen.points for seen in batches[: batch.index]],
                0.5,
                model.centroids,
                batch.points,
                current.centroids,
                matching.tolist(),
                start,
            )
            assert hungarian_bound(model.centroids, aged, current) == pytest.approx(expected)
        model.step(batch)


def test_too_few_rows_and_bad_settings_are_refused() -> None:
    with pytest.raises(InputError) as raised:
        run_cell(Cell("few", TINY), np.zeros((2, 2)))
    assert str(raised.value) == (
        "few has 2 rows, fewer than the 3 clusters asked for. Ask for fewer clusters or leave the "
        "dataset out."
    )
    with pytest.raises(InputError, match="n_concepts must be a whole number of at least 1"):
        Setting(3, 1.0, n_concepts=0)
    with pytest.raises(InputError, match="epsilon must be a finite number above 0, got -1"):
        Setting(3, -1)
    assert Setting(3, 1.0).rho == rho_for_drift(1.0, 10)
