"""Alarms along whole streams: what they may depend on, and what may not depend on them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import FSKM, PSKM, Batch, Event, ForgetfulKMeans, InputError, Step, load, remap, run
from kmeander.models.base import StreamModel
from kmeander.models.settings import DEFAULTS, Init
from kmeander.sinks.steps import read_steps
from kmeander.storage import checkpoint
from tests.streams import INITS, drifting_stream

Array = NDArray[np.float64]


def restless(n_batches: int, seed: int, n_features: int = 2) -> list[Array]:
    """Three clusters with a cycle of five batches, noise between batches, and jumps."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=5.0, size=(3, n_features))
    batches = []
    for index in range(n_batches):
        if rng.random() < 0.08:
            centres[rng.integers(3)] += rng.normal(scale=3.0, size=n_features)
        offset = 2 * np.sin(2 * np.pi * index / 5) + 0.3 * rng.normal(size=n_features)
        members = rng.integers(3, size=rng.integers(8, 60))
        batches.append(centres[members] + offset + rng.normal(size=(len(members), n_features)))
    return batches


def steps_of(model: StreamModel, stream: list[Array]) -> list[Step]:
    return [model.step(Batch(index, points)) for index, points in enumerate(stream)]


def bits(model: StreamModel) -> bytes:
    return checkpoint.to_bytes(model.state())


# What no centroid depends on.


def told(step: Step) -> dict[str, Any]:
    """What a batch did to the points, without what is said about it, clusters in any order."""
    plain = step.to_dict()
    rows = sorted(range(len(plain["centroids"])), key=lambda row: plain["centroids"][row])
    found = {
        name: plain[name]
        for name in ("surrogate_error", "batch_error", "prequential_error", "history_kept")
    }
    for name in ("centroids", "masses"):
        found[name] = [plain[name][row] for row in rows]
    return found


@pytest.mark.parametrize(
    "options", [{}, {**DEFAULTS, "refine": None}], ids=["in paper", "adaptive"]
)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_no_centroid_depends_on_alarms(options: dict[str, Any], seed: int) -> None:
    """Whatever the alarm rate and the season, and whenever the present is acknowledged.

    Local search draws candidates cluster by cluster, in the order of their rows: it is left out.
    """
    stream = restless(40, seed)
    expected = [told(step) for step in steps_of(FSKM(3, random_state=0, **options), stream)]
    for alarms in ({"alarm_rate": 0.1}, {"alarm_rate": 1e-9}, {"season": 5}, {"season": 13}):
        model = FSKM(3, random_state=0, **options, **alarms)
        for index, points in enumerate(stream):
            step = model.step(Batch(index, points))
            assert_alike(told(step), expected[index])
            if index % 7 == seed % 7:
                model.acknowledge()


def assert_alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Equal but for the order in which rows of clusters are added up."""
    for name, value in expected.items():
        if value is None:
            assert found[name] is None
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_threads_change_no_bit_of_an_alarm(n_threads: int) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(6, 4))
    alone, together = (
        FSKM(6, **DEFAULTS, season=4, alarm_rate=0.1, n_threads=n, random_state=0)
        for n in (1, n_threads)
    )
    n_events = 0
    for index in range(30):
        centres[index % 6] += rng.normal(scale=2.0, size=4) * (index % 9 == 8)
        points = centres[rng.integers(6, size=4000)] + rng.normal(size=(4000, 4))
        one, other = alone.step(Batch(index, points)), together.step(Batch(index, points))
        assert one == other
        n_events += len(one.events)
    assert n_events > 3
    ours, theirs = alone.state(), together.state()
    del ours["settings"], theirs["settings"]
    assert checkpoint.to_bytes(ours) == checkpoint.to_bytes(theirs)


# Restarts.


@pytest.mark.parametrize("season", [None, 2, 5, 13, 20])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=8)
def test_a_restart_at_any_batch_changes_no_bit(season: int | None, seed: int) -> None:
    """Also where some scales are compared with past cycles and others with the batches before."""
    whole = FSKM(3, **DEFAULTS, season=season, alarm_rate=0.02, random_state=0)
    again = FSKM(3, **DEFAULTS, season=season, alarm_rate=0.02, random_state=0)
    for index, points in enumerate(restless(50, seed)):
        again = FSKM.from_state(pickle.loads(pickle.dumps(again.state())))
        assert again.step(Batch(index, points)) == whole.step(Batch(index, points))
        if index % 11 == 10:
            whole.acknowledge()
            again.acknowledge()
        assert bits(again) == bits(whole)


def test_an_estimator_that_was_put_away_goes_on(tmp_path: Path) -> None:
    stream = restless(40, 3)
    whole = ForgetfulKMeans(3, season=5, random_state=0)
    model = ForgetfulKMeans(3, season=5, random_state=0)
    for index, points in enumerate(stream):
        whole.partial_fit(points)
        model.partial_fit(points)
        model.save(tmp_path / "model.km")
        loaded = load(tmp_path / "model.km")
        assert isinstance(loaded, ForgetfulKMeans)
        model = pickle.loads(pickle.dumps(loaded)) if index % 2 else loaded
        assert model.step_ == whole.step_
        assert model.ids_.tolist() == whole.ids_.tolist()


def test_a_state_of_before_there_were_chapters_goes_on_and_says_so() -> None:
    """Its noise is not known yet, and no alarm is raised by that."""
    model = FSKM(3, random_state=0)
    stream = drifting_stream(1, 300, 2, 3) * 30
    steps_of(model, stream)
    state = model.state()
    del state["chapter"]
    for name in ("batches", "held", "parents", "asleep", "dropped"):
        del state["lineage"][name]
    for name in ("alarm_rate", "season"):
        del state["settings"][name]
    old = FSKM.from_state(state)
    for index in range(30, 60):
        step = old.step(Batch(index, stream[0]))
        assert step.noise is not None
        assert step.noise.n_batches == index - 29
        assert step.events == () and step.provisional == ()


def test_an_acknowledged_present_is_the_baseline() -> None:
    """A change of the last batches that would be told of several is not told any more."""
    rng = np.random.default_rng(1)
    blind, model = (FSKM(4, init="previous", rho=0.95, random_state=0) for _ in range(2))
    members = np.repeat(50.0 * np.arange(4), 50)[:, np.newaxis] * [1.0, 0.0, 0.0]
    events: list[Event] = []
    for index in range(45):
        shift = np.array([0.0, 0.3, 0.0]) * (index >= 30)
        batch = Batch(index, members + shift + rng.normal(size=(200, 3)))
        events += blind.step(batch).events
        assert model.step(batch).events == ()
        if index == 30:
            before = model.centroids
            model.acknowledge()
            assert model.centroids is before
            model = FSKM.from_state(pickle.loads(pickle.dumps(model.state())))
    assert [event.kind for event in events] == ["drift"]
    FSKM(2).acknowledge()  # nothing has been learned: nothing to take


# Ids.


@pytest.mark.parametrize("init", INITS)
def test_ids_of_rows_are_those_of_their_clusters(init: Init) -> None:
    model = ForgetfulKMeans(4, init=init, random_state=0)
    for points in drifting_stream(20, seed=1):
        model.partial_fit(points)
        assert model.ids_.tolist() == model.cluster_ids_[model.labels_].tolist()
        assert (model.predict(points) == model.labels_).all()
        assert (model.predict_ids(points) == model.ids_).all()
        assert set(model.ids_.tolist()) <= set(model.cluster_ids_.tolist())


def test_ids_before_there_are_clusters_are_refused() -> None:
    model = ForgetfulKMeans(3)
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict_ids([[1.0]])
    with pytest.raises(ValueError, match="not fitted yet"):
        model.acknowledge()


@pytest.mark.parametrize("seed", range(4))
def test_labels_are_carried_alike_from_models_and_from_files(seed: int, tmp_path: Path) -> None:
    """Through sleep, waking and what was dropped, from any batch to any later one."""
    stream = [*drifting_stream(24, seed=seed), *restless(30, seed, 3)]
    options = {**DEFAULTS, "rho": 0.5}
    run(stream, 4, **options, prepare=None, steps=tmp_path / "steps.jsonl")
    model = FSKM(4, **options, random_state=0)
    steps, read = steps_of(model, stream), list(read_steps(tmp_path / "steps.jsonl"))
    for later in range(0, len(steps), 3):
        for first in range(0, later + 1, 5):
            ids = steps[first].ids
            assert ids is not None
            carried = remap(ids, steps[first], steps[later])
            assert remap(ids, read[first], read[later]).tolist() == carried.tolist()


# Whatever the stream.


@pytest.mark.parametrize(
    ("n_clusters", "n_features", "n_points", "n_batches"),
    [(1, 1, 20, 60), (1, 3, 1, 40), (3, 1, 1, 60), (500, 3, 900, 6), (2, 40, 30, 40)],
)
def test_streams_of_any_shape_are_tested(
    n_clusters: int, n_features: int, n_points: int, n_batches: int
) -> None:
    rng = np.random.default_rng(0)
    model = FSKM(n_clusters, init="previous", random_state=0, season=7)
    first = rng.normal(size=(max(n_points, n_clusters), n_features))
    n_alarms = 0
    for index in range(n_batches):
        points = rng.normal(size=(n_points, n_features)) if index else first
        step = model.step(Batch(index, points))
        n_alarms += any(event.kind == "drift" for event in step.events)
        assert step.noise is not None
        assert np.isfinite([step.noise.share, step.noise.place, step.noise.spread]).all()
    assert n_alarms <= 1


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_unit_of_the_columns_changes_no_alarm(scale: float) -> None:
    """And a column that is constant, wherever it lies, changes nothing either."""
    rng = np.random.default_rng(0)
    plain, other = (FSKM(2, random_state=0) for _ in range(2))
    n_events = 0
    for index in range(40):
        points = np.repeat([[0.0], [16.0]], 30, axis=0) + rng.normal(size=(60, 1))
        points[:30] += 2.0 * (index >= 25)
        points = np.column_stack([points, np.full(60, 3.0)])
        one, two = plain.step(Batch(index, points)), other.step(Batch(index, points * scale))
        assert [(e.kind, e.cluster) for e in one.events] == [
            (e.kind, e.cluster) for e in two.events
        ]
        assert [e.z for e in two.events] == pytest.approx([e.z for e in one.events])
        n_events += len(one.events)
    assert n_events


def test_weights_that_are_all_doubled_change_no_alarm() -> None:
    rng = np.random.default_rng(0)
    plain, doubled = (FSKM(3, rho=0.6, random_state=0) for _ in range(2))
    n_events = 0
    for index, points in enumerate(restless(40, 1)):
        weights = rng.integers(1, 5, size=len(points)).astype(float)
        one = plain.step(Batch(index, points, weights))
        two = doubled.step(Batch(index, points, 2 * weights))
        assert two.events == one.events and two.noise == one.noise
        assert np.array_equal(two.ids, one.ids)  # type: ignore[arg-type]
        n_events += len(one.events)
    assert n_events


def test_batches_of_means_and_capped_windows_are_tested() -> None:
    """A jump is told in its batch, and nothing else."""
    for options in ({"max_points": 60}, {}):
        model = FSKM(2, init="previous", rho=0.9, random_state=0, **options)  # type: ignore[arg-type]
        rng = np.random.default_rng(3)
        events = []
        for index in range(40):
            means = np.repeat([[0.0], [50.0]], 10, axis=0) + 0.3 * rng.normal(size=(20, 1))
            means[:10] += 4.0 * (index == 39)
            masses = rng.integers(5, 15, size=20)
            step = model.step(
                Batch(index, means)
                if options
                else Batch.of_means(index, means, masses, within=2.0, n_rows=int(masses.sum()))
            )
            events += [(index, event.kind) for event in step.events]
        assert {index for index, _ in events} == {39}
        assert "moved" in {kind for _, kind in events}


@pytest.mark.parametrize("seed", range(4))
def test_a_change_that_stays_is_reported_once_in_a_season(seed: int) -> None:
    """Neither weekends after it nor the next cycles are taken for another."""
    rng = np.random.default_rng(seed)
    model = FSKM(3, **DEFAULTS, season=7, random_state=0)
    alarmed = []
    for day in range(80):
        homes = np.array([[0.0 if day < 31 else 2.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
        shares = [0.6, 0.2, 0.2] if day % 7 < 5 else [0.2, 0.2, 0.6]
        points = homes[rng.choice(3, size=300, p=shares)] + rng.normal(size=(300, 2))
        if model.step(Batch(day, points)).events:
            alarmed.append(day)
    assert alarmed == [5, 7, 31]  # of the first weekend nobody knows yet that it comes back


def test_time_without_batches_is_part_of_the_cycle() -> None:
    """However long it was; a batch cut in two stays in its phase."""
    rng = np.random.default_rng(0)
    model, phase = FSKM(2, season=4, random_state=0), 0
    for index in range(80):
        elapsed = float(rng.choice([1.0, 1.0, 1.0, 3.0, 1e-9, 2.0**70]))
        phase += round(elapsed) if index else 0
        points = np.repeat([0.0, 50.0], 30) + 9.0 * (phase % 4) + rng.normal(size=60)
        step = model.step(Batch(index, points[:, np.newaxis], elapsed=elapsed))
        if index > 20:
            assert [event for event in step.events if not event.unconfirmed] == []


def test_an_exception_leaves_the_alarms_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    from kmeander.models import fskm

    stream = restless(30, 2)
    model, whole = FSKM(3, season=5, random_state=0), FSKM(3, season=5, random_state=0)
    steps_of(model, stream[:-1])
    expected = steps_of(whole, stream)[-1]
    before = bits(model)
    with monkeypatch.context() as patch:
        patch.setattr(fskm, "track", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.step(Batch(29, stream[-1]))
    with pytest.raises(InputError):
        model.step(Batch(7, stream[-1]))
    assert bits(model) == before
    assert model.step(Batch(29, stream[-1])) == expected


# Bad input.


@pytest.mark.parametrize("make", [FSKM, PSKM])
@pytest.mark.parametrize(
    "value", [0, 0.0, -1, 0.11, 1, float("nan"), float("inf"), "0.1", None, True]
)
def test_an_alarm_rate_that_cannot_be_is_refused(make: Any, value: Any) -> None:
    with pytest.raises(ValueError) as raised:
        make(2, alarm_rate=value)
    assert str(raised.value) == (
        f"alarm_rate must lie in (0, 0.1], got {value!r}. It is the share of the batches of an "
        "unchanging stream that may raise an alarm; 0.001 is one in a thousand batches."
    )


@pytest.mark.parametrize("make", [FSKM, PSKM])
@pytest.mark.parametrize("value", [1, 0, -24, 10_001])
def test_a_season_that_cannot_be_is_refused(make: Any, value: int) -> None:
    with pytest.raises(ValueError) as raised:
        make(2, season=value)
    limit = "at most 10000" if value > 2 else "a whole number of at least 2"
    assert str(raised.value) == (
        f"season must be {limit}, got {value}. It is the batches after which the stream is "
        "expected to repeat itself; leave it out where it does not."
    )
