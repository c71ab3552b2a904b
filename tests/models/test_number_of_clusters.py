"""K that follows the stream, K changed by hand, and what everybody sees of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import FSKM, Batch, ForgetfulKMeans, PrivilegedKMeans, Step, remap
from kmeander.exceptions import ArgumentError, CheckpointError, InputError
from kmeander.models.settings import DEFAULTS
from kmeander.storage import checkpoint

Array = NDArray[np.float64]

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0], [5.0, 20.0]])
# Which of the places there are, batch by batch: a birth, a death, and three more at once.
COMINGS = [*[[0, 1, 2]] * 8, *[[0, 1, 2, 3]] * 8, *[[0, 2, 3]] * 8, *[[0, 1, 2, 3, 4]] * 8]


def batches(seed: int = 0, n: int = 300, comings: Any = COMINGS) -> Iterator[tuple[Array, Any]]:
    rng = np.random.default_rng(seed)
    for there in comings:
        which = rng.choice(there, size=n)
        yield PLACES[which] + rng.normal(size=(n, 2)), which


def learned(model: FSKM, stream: list[Array], first: int = 0) -> list[Step]:
    return [model.step(Batch(first + i, points)) for i, points in enumerate(stream)]


def model(n_clusters: Any = (2, 10), **options: Any) -> FSKM:
    return FSKM(n_clusters, random_state=0, **{**DEFAULTS, **options})


def as_bytes(model: FSKM) -> bytes:
    return checkpoint.to_bytes(model.state())


@pytest.mark.parametrize("seed", range(5))
def test_there_are_as_many_clusters_as_the_stream_has_from_the_fourth_batch_on(seed: int) -> None:
    stream = [points for points, _ in batches(seed)]
    found = [step.n_clusters for step in learned(model(), stream)]
    for first in range(0, len(COMINGS), 8):
        assert found[first + 3 : first + 8] == [len(COMINGS[first])] * 5


def test_a_burst_does_not_change_k() -> None:
    comings = [[0, 1, 2]] * 20
    comings[12] = [0, 1, 2, 4]
    steps = learned(model(), [points for points, _ in batches(comings=comings)])
    assert {step.n_clusters for step in steps[6:]} == {3}


@pytest.mark.parametrize("kind", ["uniform", "exponential", "t3"])
def test_rows_without_modes_are_no_reason_to_grow(kind: str) -> None:
    rng = np.random.default_rng(0)
    draw: Callable[[], Array] = {
        "uniform": lambda: rng.uniform(size=(400, 3)),
        "exponential": lambda: rng.exponential(size=(400, 3)),
        "t3": lambda: rng.standard_t(3, size=(400, 3)),
    }[kind]
    steps = learned(model((2, 20)), [draw() for _ in range(60)])
    grown = [now.n_clusters > before.n_clusters for before, now in pairwise(steps)]  # type: ignore[operator]
    assert sum(grown) <= 1


def test_a_range_of_one_number_is_that_number() -> None:
    stream = [points for points, _ in batches()]
    assert learned(model((4, 4)), stream) == learned(model(4), stream)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_do_not_change_a_bit(n_threads: int) -> None:
    stream = [points for points, _ in batches(n=2000, comings=COMINGS[:12])]
    alone, together = model(n_threads=1), model(n_threads=n_threads)
    assert learned(alone, stream) == learned(together, stream)
    states = [{**one.state(), "settings": None} for one in (alone, together)]
    assert checkpoint.to_bytes(states[0]) == checkpoint.to_bytes(states[1])


def test_a_run_goes_on_to_the_bit_from_any_batch() -> None:
    """Also from one between evidence and change."""
    stream = [points for points, _ in batches()]
    rng = np.random.default_rng(1)
    for gap in np.linspace(10.0, 0.0, 12):  # two become one
        places = np.array([[0.0, 0.0], [gap, 0.0], [0.0, 10.0]])
        stream.append(places[rng.integers(3, size=300)] + rng.normal(size=(300, 2)))
    whole, evidence = model(), set()
    steps = learned(whole, stream)
    for stopped in range(1, len(stream)):
        first = model()
        learned(first, stream[:stopped])
        choice = first.learned.k_choice
        evidence.add(
            (choice.n_two > 0, choice.n_one > 0, bool(choice.missing), bool(choice.places))
        )
        again = FSKM.from_state(checkpoint.from_bytes(as_bytes(first), "state"))
        assert learned(again, stream[stopped:], stopped) == steps[stopped:]
        assert as_bytes(again) == as_bytes(whole)
    # Stops of every kind were among them.
    assert all(any(seen) for seen in zip(*evidence, strict=True))


def test_rows_stay_and_nothing_is_predicted_in_a_free_one() -> None:
    estimator = ForgetfulKMeans((2, 10), random_state=0)
    before: dict[int, int] = {}
    had_free = False
    for points, _ in batches():
        estimator.partial_fit(points)
        ids, weights = estimator.cluster_ids_.tolist(), estimator.cluster_weights_
        living = [row for row, number in enumerate(ids) if number >= 0]
        assert len(living) == estimator.n_clusters_ == estimator.step_.n_clusters
        assert ids[-1] >= 0  # free rows at the end are cut off
        assert (weights[living] > 0).all()
        assert weights.sum() == weights[living].sum()
        assert set(estimator.predict(points).tolist()) <= set(living)
        assert (estimator.predict(points) == estimator.labels_).all()
        assert (estimator.predict_ids(points) == estimator.ids_).all()
        assert (estimator.cluster_ids_[estimator.labels_] == estimator.ids_).all()
        assert estimator.transform(points).shape == (len(points), len(living))
        assert len(estimator.get_feature_names_out()) == len(living)
        assert len(estimator.centers_frame()) == estimator.to_arrow().num_rows == len(living)
        assert estimator.to_sklearn().n_clusters == len(living)
        rows = {number: row for row, number in enumerate(ids) if number >= 0}
        assert all(rows[number] == row for number, row in before.items() if number in rows)
        before, had_free = rows, had_free or -1 in ids
    assert had_free


def test_stored_labels_are_carried_through_changes_of_k() -> None:
    stream = list(batches())
    estimator = model()
    steps, ids = [], []
    for index, (points, _) in enumerate(stream):
        steps.append(estimator.step(Batch(index, points)))
        ids.append(steps[-1].ids[estimator.labels])  # type: ignore[index]
    for later in range(8, len(steps), 4):
        carried = remap(ids[7], steps[7], steps[later])
        alive = {-1, *steps[later].ids.tolist()}  # type: ignore[union-attr]
        assert set(carried.tolist()) <= alive


def test_a_cluster_that_comes_back_takes_its_id() -> None:
    comings = [*[[0, 1, 2]] * 10, *[[0, 1]] * 10, *[[0, 1, 2]] * 6]
    stream = list(batches(comings=comings))
    estimator = model()
    steps = [estimator.step(Batch(i, points)) for i, (points, _) in enumerate(stream)]
    at_two = [int(np.argmin(((s.centroids - PLACES[2]) ** 2).sum(axis=1))) for s in steps]
    assert steps[-1].ids[at_two[-1]] == steps[9].ids[at_two[9]]  # type: ignore[index]


def test_every_change_of_k_has_its_events() -> None:
    for seed in range(3):
        steps = learned(model(), [points for points, _ in batches(seed)])
        for before, now in pairwise(steps):
            came = set(now.ids.tolist()) - set(before.ids.tolist())  # type: ignore[union-attr]
            went = set(before.ids.tolist()) - set(now.ids.tolist())  # type: ignore[union-attr]
            told = {event.kind: event for event in now.events}
            if len(now.ids) != len(before.ids):  # type: ignore[arg-type]
                assert told.keys() & {"split", "returned", "died", "absorbed"}
            named = {event.cluster for event in now.events}
            provisional = {*now.provisional, *dict(now.asleep), *dict(now.dropped)}
            assert came - provisional <= named
            assert went - provisional <= named | set(before.provisional)


@pytest.mark.parametrize(("first", "then"), [(5, 3), (3, 5), (5, (2, 4)), ((2, 10), 2)])
def test_k_may_be_changed_by_hand(first: Any, then: Any) -> None:
    stream = [points for points, _ in batches(comings=[[0, 1, 2, 3, 4]] * 12)]
    estimator = ForgetfulKMeans(first, random_state=0)
    for points in stream[:6]:
        estimator.partial_fit(points)
    before = set(estimator.cluster_ids_.tolist())
    estimator.set_params(n_clusters=then).partial_fit(stream[6])
    wanted = then if isinstance(then, int) else min(then[1], len(before))
    assert estimator.n_clusters_ == wanted
    kinds = {event.kind for event in estimator.step_.events}
    assert kinds & ({"split", "returned"} if wanted > len(before) else {"absorbed"})
    assert not {event.kind for event in estimator.partial_fit(stream[7]).step_.events} & {
        "split", "absorbed", "returned",
    }  # fmt: skip


def test_by_hand_the_nearest_are_joined_and_the_costliest_is_parted() -> None:
    places = np.array([[0.0, 0.0], [5.0, 0.0], [40.0, 0.0], [90.0, 0.0]])
    rng = np.random.default_rng(0)

    def rows() -> Array:
        which = np.repeat(np.arange(4), 100)
        return places[which] + rng.normal(size=(400, 2))

    estimator = ForgetfulKMeans(4, random_state=0).partial_fit(rows()).partial_fit(rows())
    near = set(estimator.predict_ids(places[:2]).tolist())
    estimator.set_params(n_clusters=3).partial_fit(rows())
    (event,) = [event for event in estimator.step_.events if event.kind == "absorbed"]
    assert {event.cluster, event.other} == near
    estimator.set_params(n_clusters=4).partial_fit(rows())
    (event,) = [event for event in estimator.step_.events if event.kind == "split"]
    assert event.other in near


@pytest.mark.parametrize(
    ("n_clusters", "message"),
    [
        ((9, 2), "n_clusters must begin with the smaller number, got (9, 2). Pass (2, 9)."),
        ((0, 5), "n_clusters must begin with at least 1, got (0, 5). The first is the fewest "
         "clusters that there may be."),
        ((2, 5, 8), 'n_clusters must be a number of clusters, two of them such as (2, 30), or '
         '"auto", got (2, 5, 8).'),
        ((2.5, 8), 'n_clusters must be a number of clusters, two of them such as (2, 30), or '
         '"auto", got (2.5, 8).'),
        ("many", 'n_clusters must be a number of clusters, two of them such as (2, 30), or '
         "\"auto\", got 'many'."),
        (0, "n_clusters must be a whole number of at least 1, got 0. It is the number of clusters "
         "K."),
    ],
)  # fmt: skip
def test_a_number_of_clusters_that_means_nothing_is_refused(n_clusters: Any, message: str) -> None:
    for refused in (lambda: FSKM(n_clusters), lambda: ForgetfulKMeans(n_clusters).fit([[1.0]] * 9)):
        with pytest.raises(ArgumentError) as caught:
            refused()
        assert str(caught.value) == message


def test_fit_needs_as_many_rows_as_the_range_begins_with() -> None:
    with pytest.raises(InputError) as caught:
        ForgetfulKMeans((3, 9)).fit([[1.0], [2.0]])
    assert str(caught.value) == (
        "X has 2 rows, n_clusters=(3, 9) needs at least 3 to fit. Pass more rows or ask for fewer "
        "clusters; partial_fit waits for more."
    )
    estimator = ForgetfulKMeans((3, 9)).partial_fit([[1.0], [2.0]])
    assert estimator.step_.waiting


def test_the_privileged_model_takes_one_number() -> None:
    with pytest.raises(ArgumentError) as caught:
        PrivilegedKMeans((2, 9)).fit([[1.0], [2.0]])
    assert str(caught.value) == (
        "n_clusters must be one number here, got (2, 9). Only ForgetfulKMeans and FSKM follow the "
        "number of clusters of a stream."
    )


def test_a_saved_estimator_has_the_range_and_the_free_rows(tmp_path: Any) -> None:
    import kmeander

    estimator = ForgetfulKMeans((2, 10), random_state=0)
    stream = [points for points, _ in batches()]
    for points in stream[:20]:
        estimator.partial_fit(points)
    assert -1 in estimator.cluster_ids_ or estimator.n_clusters_ == 3
    estimator.save(tmp_path / "model")
    again = kmeander.load(tmp_path / "model")
    assert again.get_params() == estimator.get_params()
    for points in stream[20:]:
        assert again.partial_fit(points).step_ == estimator.partial_fit(points).step_
        assert (again.cluster_ids_ == estimator.cluster_ids_).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    low=st.integers(1, 4),
    more=st.integers(0, 8),
    n=st.integers(1, 60),
    d=st.integers(1, 3),
    metric=st.sampled_from(["euclidean", "cosine"]),
    weighted=st.booleans(),
    refine=st.sampled_from([None, "swaps", "split-merge"]),
)
def test_whatever_comes_k_stays_in_its_range(
    seed: int, low: int, more: int, n: int, d: int, metric: str, weighted: bool, refine: str | None
) -> None:
    rng = np.random.default_rng(seed)
    follower = model((low, low + more), metric=metric, refine=refine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for index in range(8):
            points = rng.normal(size=(n, d + 1)) + 9.0 * rng.integers(0, 4, size=(n, 1))
            if rng.random() < 0.3:
                points = np.round(points)
            weights = (
                rng.choice([0.0, 1.0, 2.0], size=n) + (np.arange(n) == 0) if weighted else None
            )
            step = follower.step(Batch(index, points + 0.1, weights))
            if step.waiting:
                continue
            assert low <= step.n_clusters <= low + more  # type: ignore[operator]
            assert len(set(step.ids.tolist())) == len(step.ids)  # type: ignore[arg-type, union-attr]
            assert step.masses.sum() == pytest.approx(step.mass)  # type: ignore[union-attr]
            again = FSKM.from_state(checkpoint.from_bytes(as_bytes(follower), "state"))
            assert as_bytes(again) == as_bytes(follower)


def test_a_stored_choice_that_fits_nothing_is_refused() -> None:
    follower = model()
    learned(follower, [points for points, _ in batches()][:20])
    good = follower.state()
    last = np.concatenate([good["centroids"], good["centroids"][:1]])
    choice = {
        "n_two": 0, "n_one": 0, "two_for": 0, "one_for": 0, "missing": [], "gone": [], "events": [],
        "places": {"rows": np.arange(len(last) - 1), "last": last},
    }  # fmt: skip
    FSKM.from_state({**good, "k_choice": choice})
    for wrong in (
        {"n_two": -1},
        {"missing": [[1, 2.0]]},
        {"gone": [{"number": 1}]},
        {"places": {"rows": np.arange(len(last) - 1)[::-1].copy(), "last": last}},
        {"places": {"rows": np.arange(len(last) - 1) + 9, "last": last}},
        {"places": {"rows": np.arange(len(last) - 1), "last": last[:, :1]}},
    ):
        with pytest.raises(CheckpointError, match="the state of FSKM is none"):
            FSKM.from_state({**good, "k_choice": {**choice, **wrong}})
    with pytest.raises(CheckpointError, match="which must be 7-9"):
        FSKM.from_state({**good, "settings": {**good["settings"], "n_clusters": [7, 9]}})
