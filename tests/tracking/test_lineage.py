"""Ids that last: who keeps one, that none is used twice, and labels carried forward."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import (
    FSKM,
    PSKM,
    Batch,
    Event,
    ForgetfulKMeans,
    InputError,
    Step,
    load,
    remap,
    run,
)
from kmeander.sinks.steps import read_steps
from kmeander.tracking import id_matching as identity
from tests import golden
from tests.streams import INITS, drifting_stream


def steps_of(model: FSKM | PSKM, batches: list[NDArray[np.float64]]) -> list[Step]:
    return [model.step(Batch(index, points)) for index, points in enumerate(batches)]


def joining_stream(n_batches: int, seed: int) -> list[NDArray[np.float64]]:
    """Clusters that jump, join and walk at any batch; sizes of batches differ."""
    rng = np.random.default_rng(seed)
    centres, batches = rng.normal(scale=6.0, size=(5, 2)), []
    for _ in range(n_batches):
        what = rng.random()
        if what < 0.06:
            centres[0] = centres[1] + rng.normal(scale=0.3, size=2)
        elif what < 0.12:
            centres[rng.integers(5)] = rng.normal(scale=6.0, size=2)
        elif what < 0.2:
            centres += rng.normal(scale=0.5, size=centres.shape)
        members = rng.integers(5, size=rng.integers(12, 80))
        batches.append(centres[members] + rng.normal(size=(len(members), 2)))
    return batches


def assert_ids_last(steps: list[Step]) -> None:
    """Whatever happens along a run, ids mean what the docs promise."""
    assert steps[0].ids is not None
    told: set[int] = set(steps[0].ids.tolist())
    over: set[int] = set()
    for before, step in pairwise(steps):
        assert before.ids is not None and step.ids is not None
        was, now = before.ids.tolist(), step.ids.tolist()
        assert len(set(now)) == len(was)
        # Rows: a cluster alive in both batches stays in its own.
        assert [now.index(one) for one in was if one in now] == [
            was.index(one) for one in was if one in now
        ]
        asleep = [one for one, _ in step.asleep]
        assert len({*asleep, *now}) == len(asleep) + len(now)
        begun = [event for event in step.events if event.kind in ("born", "split")]
        ended = [event for event in step.events if event.kind in ("died", "absorbed")]
        for event in begun:  # each once, of one that is there, and out of one that was told
            assert event.cluster is not None and event.cluster not in told
            assert event.cluster in now
            assert event.other is None or event.other in told
            assert event.cluster not in step.provisional
            told.add(event.cluster)
        for event in ended:  # each once, into one that is there
            assert event.cluster is not None
            assert event.cluster in told - over and event.cluster not in {*now, *asleep}
            assert event.other is None or event.other in now
            over.add(event.cluster)
        assert not over & set(now)
        assert set(now) - set(step.provisional) == set(now) & told
        # Nobody leaves in silence.
        left = {*asleep, *dict(step.dropped), *(event.cluster for event in ended)}
        assert set(was) - set(now) <= left
        changed = {e.cluster for e in step.events if e.kind in ("moved", "grew", "shrank", "trend")}
        assert changed <= set(now)
        for earlier in (before, steps[0]):
            assert earlier.ids is not None
            assert set(remap(earlier.ids, earlier, step).tolist()) <= {-1, *now}


@pytest.mark.parametrize("refine", [None, "swaps"])
@pytest.mark.parametrize("init", INITS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=12)
def test_ids_and_rows_last(init: str, refine: str | None, seed: int) -> None:
    for stream, rho in ((drifting_stream(24, seed=seed), 0.5), (joining_stream(50, seed), 0.7)):
        forgetting = "fixed" if rho == 0.5 else "adaptive"
        model = FSKM(5, init=init, rho=rho, refine=refine, forgetting=forgetting, random_state=seed)
        assert_ids_last(steps_of(model, stream))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_ids_and_rows_last_where_concepts_are_known(seed: int) -> None:
    model = PSKM(4, random_state=seed)
    stream = joining_stream(50, seed)
    assert_ids_last(
        [model.step(Batch(index, x, concept=index // 7)) for index, x in enumerate(stream)]
    )


def test_a_cluster_that_wanders_keeps_its_id() -> None:
    rng = np.random.default_rng(0)
    model = FSKM(3, random_state=0)
    for index in range(40):
        centres = np.array([[0.0, 0.6 * index], [30.0, 0.0], [-30.0, 0.0]])
        model.step(Batch(index, np.repeat(centres, 60, axis=0) + rng.normal(size=(180, 2))))
    assert model.cluster_ids is not None
    assert sorted(model.cluster_ids.tolist()) == [0, 1, 2]


def test_a_cluster_seeded_anew_gets_a_new_id() -> None:
    """With PC a centroid whose points have all left the window takes the costliest point."""
    model = FSKM(2, init="previous", rho=0.5, max_batches=1, random_state=0)
    first = model.step(Batch(0, [[0.0], [1.0], [50.0], [51.0]]))
    later = model.step(Batch(1, [[0.0], [1.0], [2.0], [9.0]]))
    assert later.reseeded
    assert first.ids is not None and later.ids is not None
    assert first.centroids is not None
    far = int(first.ids[int(first.centroids.ravel().argmax())])
    assert later.ids.tolist() == [2 if one == far else one for one in first.ids.tolist()]
    assert later.asleep == ((far, -1),)  # its points may come back
    for index in range(2, 52):
        told = model.step(Batch(index, [[0.0], [1.0], [2.0], [9.0]])).events
        ended = [event for event in told if event.cluster == far]
        assert ended == ([Event("died", far)] if index == 51 else [])


def test_a_cluster_that_wakes_with_the_batch_that_put_it_to_sleep_keeps_its_row() -> None:
    """All points of two clusters vanish; a centroid is seeded anew in the place of the other."""
    angles = np.linspace(np.pi / 3, 5 * np.pi / 3, 40)
    ring = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    model = FSKM(3, init="previous", rho=0.5, max_batches=1, refine=20, random_state=20)
    beside = np.tile([4.2, 0.0], (100, 1))
    first = model.step(Batch(0, np.vstack([ring, beside, np.tile([200.0, 0.0], (20, 1))])))
    assert first.centroids is not None and first.ids is not None
    assert first.centroids[0, 0] < 0 and first.centroids[1, 0] == 200  # ring first, then far away
    # The costliest point goes to the first row; the next one lies within the radius of the ring.
    later = model.step(Batch(1, [[1.42, 0.0], *[[4.2, 0.0]] * 5, [4.2, 40.0]]))
    assert later.centroids is not None and later.ids is not None
    assert later.asleep == ((1, -1),)
    assert later.ids.tolist() == [0, 3, 2]
    assert later.centroids.tolist() == [[1.42, 0.0], [4.2, 40.0], [4.2, 0.0]]
    labels = model.labels
    assert labels is not None and labels.tolist() == [0, 2, 2, 2, 2, 2, 1]


@given(st.integers(0, 10_000), st.sampled_from(INITS), st.integers(1, 9))
def test_a_model_put_away_goes_on_with_its_ids(seed: int, init: str, cut: int) -> None:
    batches = drifting_stream(10, seed=seed)
    whole = FSKM(4, init=init, random_state=0)
    expected = steps_of(whole, batches)
    model = FSKM(4, init=init, random_state=0)
    steps_of(model, batches[:cut])
    model = FSKM.from_state(pickle.loads(pickle.dumps(model.state())))
    for index in range(cut, 10):
        step = model.step(Batch(index, batches[index]))
        assert step == expected[index]
        assert step.ended == expected[index].ended
    assert model.state()["lineage"].keys() == whole.state()["lineage"].keys()
    for name, value in model.state()["lineage"].items():
        np.testing.assert_equal(value, whole.state()["lineage"][name])


def test_ids_survive_save_pickle_and_older_files(tmp_path: Path) -> None:
    model = ForgetfulKMeans(4, random_state=0)
    for points in drifting_stream(20, seed=1):
        model.partial_fit(points)
    assert model.cluster_ids_.max() > 3
    model.save(tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert copy.cluster_ids_.tolist() == model.cluster_ids_.tolist()
        assert copy.step_.ended == model.step_.ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kmeander.storage.model_file.INSTRUCTION_SET", "avx2")
        assert load(golden.MODEL).cluster_ids_.tolist() == [0, 1, 2]


def test_a_drift_told_to_pskm_keeps_what_can_be_kept() -> None:
    model = PSKM(2, random_state=0)
    model.step(Batch(0, [[0.0], [1.0], [50.0], [51.0]], concept=0))
    step = model.step(Batch(1, [[0.5], [1.5], [49.0], [52.0]], concept=1))
    assert step.ids is not None and sorted(step.ids.tolist()) == [0, 1]


def ended_step(index: int, ids: list[int], ended: tuple[tuple[int, int], ...] = ()) -> Step:
    return Step(index, 1, False, 0.5, 1, 1.0, ids=np.array(ids), ended=ended)


def test_labels_are_carried_through_all_that_happened() -> None:
    first = ended_step(3, [0, 1, 5])
    later = ended_step(9, [5, 8, 9], ((7, -1), (0, 6), (1, -1), (6, 5)))
    labels = np.array([[0, 1], [5, -1]])
    assert remap(labels, first, later).tolist() == [[5, -1], [5, -1]]
    assert remap([], first, later).tolist() == []
    assert remap([0, 5], first, first).tolist() == [0, 5]


@pytest.mark.parametrize(
    ("labels", "first", "later", "message"),
    [
        ([2], ended_step(0, [0, 1]), ended_step(1, [0, 1]),
         "labels holds 2, which is no cluster of batch 0; those are 0, 1. Rows of the centroids "
         "become ids by from_step.ids[labels]."),
        ([0], ended_step(4, [0, 1]), ended_step(1, [0, 1]),
         "to_step is batch 1, before from_step, batch 4. Labels can only be carried forward."),
        ([0], ended_step(0, [0, 1]), ended_step(1, [2, 1]),
         "to_step does not know what became of cluster 0: the two Steps are of different runs, or "
         "to_step was read without those before it. Read both with read_steps from the first line "
         "on."),
        ([0.5], ended_step(0, [0, 1]), ended_step(1, [0, 1]),
         "labels must be whole numbers, got an array of float64."),
        ([0], Step(7, 1, True, 0.5, 1, 1.0), ended_step(8, [0, 1]),
         "from_step is batch 7, which has no ids: the model was still waiting, or an older "
         "kmeander wrote it."),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_carried(
    labels: list[float], first: Step, later: Step, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        remap(labels, first, later)
    assert str(raised.value) == message


def test_sinks_write_ids_and_steps_read_back_can_be_remapped(tmp_path: Path) -> None:
    batches = drifting_stream(16, seed=1)
    steps, rows = tmp_path / "steps.jsonl", tmp_path / "rows.parquet"
    settings: dict[str, Any] = {"init": "hungarian", "rho": 0.5, "refine": None}
    settings |= {"forgetting": "fixed", "prepare": None}
    run(batches, 4, **settings, steps=steps, assignments=rows, centroids=tmp_path / "c.csv")
    import pyarrow.csv
    import pyarrow.parquet as pq

    model = FSKM(4, **settings, random_state=0)
    expected = []
    for index, points in enumerate(batches):
        model.step(Batch(index, points))
        assert model.cluster_ids is not None and model.labels is not None
        expected += model.cluster_ids[model.labels].tolist()
    assert max(expected) > 3
    assert pq.read_table(rows)["cluster"].to_pylist() == expected
    assert model.cluster_ids is not None
    table = pyarrow.csv.read_csv(tmp_path / "c.csv")
    assert table["cluster"].to_pylist() == model.cluster_ids.tolist()
    found = list(read_steps(steps))
    assert model.last_step is not None
    assert found[-1].ended == model.last_step.ended
    assert found[-1].ids is not None and found[0].ids is not None
    carried = remap(found[0].ids, found[0], found[-1])
    assert set(carried.tolist()) <= {-1, *found[-1].ids.tolist()}


@pytest.mark.parametrize("seed", range(6))
def test_a_single_suspect_is_judged_as_among_several(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short way says what the long one says, at every batch of streams that jump about."""

    def steps() -> list[Step]:
        rng = np.random.default_rng(seed)
        model = FSKM(6, init="previous", rho=0.6, random_state=seed)
        centres = rng.normal(scale=4.0, size=(6, 3))
        found = []
        for index in range(60):
            if index % 3 == 0:  # one goes far away, another a little
                centres[rng.integers(6)] += rng.normal(scale=4.0, size=3)
                centres[rng.integers(6)] += rng.normal(scale=0.5, size=3)
            points = centres[rng.integers(6, size=90)] + rng.normal(size=(90, 3))
            found.append(model.step(Batch(index, points)))
        return found

    asked = []
    stays = identity._stays

    def noted(*arguments: Any) -> bool:
        asked.append(stays(*arguments))
        return asked[-1]

    monkeypatch.setattr(identity, "_stays", noted)
    short = steps()
    assert True in asked
    monkeypatch.setattr(identity, "_stays", lambda *_: False)
    assert steps() == short
