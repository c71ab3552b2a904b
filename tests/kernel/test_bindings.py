"""The border between Python and the kernel: what it offers, refuses and never copies."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kmeander
from kmeander import _kernel, weighted_lloyd


def test_the_stub_names_what_the_module_has() -> None:
    stub = ast.parse((Path(kmeander.__file__).parent / "_kernel.pyi").read_text(encoding="utf-8"))
    assert _offered(_kernel) == _promised(stub.body)


def _promised(body: list[ast.stmt]) -> dict[str, Any]:
    """Functions with their parameters, properties, and classes with theirs."""
    promised: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            promised[node.name] = _promised(node.body)
        elif isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
            marks = [ast.unparse(decorator) for decorator in node.decorator_list]
            promised[node.name] = None if "property" in marks else names
    return promised


def _offered(holder: Any) -> dict[str, Any]:
    offered: dict[str, Any] = {}
    for name in dir(holder):
        member = getattr(holder, name)
        if isinstance(member, type) and not name.startswith("_"):
            offered[name] = _offered(member)
        elif isinstance(member, property):
            offered[name] = None
        elif not name.startswith("_") or (name == "__init__" and isinstance(holder, type)):
            signature = member.__doc__.splitlines()[0]
            offered[name] = re.findall(r"(\w+): ", signature)
    return offered


# A window of two batches of four rows in two columns, two clusters, and what is known of them.
POINTS, CENTROIDS = np.arange(8.0).reshape(4, 2), np.array([[1.0, 2.0], [5.0, 6.0]])
LABELS, UPPER = np.array([0, 0, 1, 1], np.int32), np.full(4, 9, np.float32)
LOWER, TABLE = np.zeros(4, np.float32), np.ones((1, 2))
SUMS = np.ones((1, 2, 2))
BATCH = _kernel.BatchHandle(POINTS, None, 4.0)
BOUNDS = _kernel.Bounds(UPPER, LOWER, CENTROIDS)
PARTITION = _kernel.Partition(LABELS, BOUNDS, _kernel.ClusterSums(TABLE, SUMS, TABLE))
BARE = _kernel.Partition(np.ones(8, np.int32))
WINDOW = _kernel.WindowHandle((BATCH, BATCH), [0.5, 1.0])
KNOWN = _kernel.lloyd(
    WINDOW, None, None, CENTROIDS.copy(), np.zeros(2), None, None, 9, 0.0, False, 1
)[0]  # fmt: skip
TEST = _kernel.ChangeTest.begin(WINDOW, KNOWN, CENTROIDS, 3)
for _ in range(14):
    TEST = TEST.after(BATCH, PARTITION, (4.0, 4.0, 4.0, 4.0), 1)[0]
COUNTS, N_INDEPENDENT, SAVED = TEST.saved

# A call of everything that the kernel offers, as it should be.
CALLS: dict[str, dict[str, Any]] = {
    "nearest": {
        "points": POINTS, "centroids": CENTROIDS, "labels": LABELS, "squared": np.zeros(4),
        "n_threads": 1,
    },
    "distances_to": {
        "points": POINTS, "centroids": CENTROIDS, "labels": LABELS, "squared": np.zeros(4),
        "n_threads": 1,
    },
    "BatchHandle": {"points": POINTS, "weights": np.ones(4), "mass": 4.0},
    "WindowHandle": {"batches": (BATCH, BATCH), "decay": [0.5, 1.0]},
    "Bounds": {"upper": UPPER, "lower": LOWER, "snapshot": CENTROIDS},
    "ClusterSums": {"masses": TABLE, "sums": SUMS, "scatter": TABLE},
    "Partition": {"labels": LABELS, "bounds": BOUNDS, "sums": None},
    "Partition.renumbered": {"order": np.array([1, 0])},
    "cluster_masses": {"window": WINDOW, "partition": PARTITION, "masses": np.zeros(2)},
    "measure": {"batch": BATCH, "centroids": CENTROIDS, "n_threads": 1},
    "seed": {
        "batch": BATCH, "uniforms": np.full(2, 0.5), "chosen": np.zeros(2, np.int64),
        "n_threads": 1,
    },
    "lloyd": {
        "window": WINDOW, "older": PARTITION, "newest": PARTITION, "centroids": CENTROIDS,
        "cluster_masses": np.zeros(2), "before": CENTROIDS, "moved": np.zeros(2), "max_iter": 9,
        "shift": 0.0, "on_sphere": False, "n_threads": 1,
    },
    "swap": {
        "window": WINDOW, "older": PARTITION, "newest": PARTITION, "centroids": CENTROIDS,
        "uniforms": np.full(3, 0.5), "on_sphere": False, "n_threads": 1,
    },
    "exchange": {
        "window": WINDOW, "found": KNOWN, "uniforms": np.full(4, 0.5), "n_threads": 1,
        "centroids": np.array(KNOWN.bounds.snapshot) if KNOWN.bounds else CENTROIDS,
    },
    "score_dips": {
        "window": WINDOW, "first": 0, "partition": KNOWN, "centroids": CENTROIDS,
        "masses": np.ones(2), "rows_per_cluster": 9, "shallow": 0.5,
        "neighbours": np.zeros(2, np.int32), "as_one": np.zeros(2), "as_two": np.zeros(2),
    },
    "merge_costs": {
        "previous": CENTROIDS, "previous_masses": np.ones(2), "current": CENTROIDS,
        "current_masses": np.ones(2), "squared": np.zeros((2, 2)), "costs": np.zeros((2, 2)),
    },
    "average": {
        "previous": CENTROIDS, "previous_masses": np.ones(2), "current": CENTROIDS,
        "current_masses": np.ones(2), "partners": np.array([1, -1]), "means": np.zeros((2, 2)),
    },
    "summarise": {
        "points": POINTS, "weights": np.ones(4), "means": np.zeros((2, 2)), "masses": np.zeros(2),
    },
    "find_variance": {
        "partition": KNOWN, "points_per_mass": np.ones(2), "is_whole": np.ones(2, bool),
        "variance": np.zeros(2),
    },
    "ChangeTest": {"counts": COUNTS, "n_independent": N_INDEPENDENT, "arrays": SAVED},
    "ChangeTest.begin": {
        "window": WINDOW, "partition": KNOWN, "centroids": CENTROIDS, "period": 3,
    },
    "ChangeTest.in_chapter": {
        "window": WINDOW, "partition": KNOWN, "centroids": CENTROIDS, "renewed": [1], "period": 3,
    },
    "ChangeTest.after": {
        "batch": BATCH, "arrived": PARTITION, "levels": (4.0, 4.0, 4.0, 4.0), "n_phases": 1,
    },
    "flows": {
        "window": WINDOW, "older": PARTITION, "arrived": PARTITION, "found": KNOWN,
        "flow": np.zeros((2, 2)), "newest": np.zeros((2, 2)),
    },
    "explain": {
        "window": WINDOW, "n_batches": 2, "partition": KNOWN, "within": 0.0, "batch": BATCH,
        "arrived": PARTITION, "batch_within": 0.0, "centroids": CENTROIDS, "n_parts": 1,
        "n_threads": 1,
    },
    "first_beyond": {"points": POINTS, "limit": 1.0, "copy": np.zeros((4, 2))},
    "medians": {"estimates": [(1.0, 0.5)]},
    "instruction_set": {},
}  # fmt: skip
ARRAYS = [
    (name, argument)
    for name, arguments in CALLS.items()
    for argument, value in arguments.items()
    if isinstance(value, np.ndarray)
]


def call(name: str, **changed: Any) -> Any:
    """Call it with fresh arrays, of which some arguments are changed."""
    holder: Any = {"Partition": PARTITION, "ChangeTest": TEST}.get(name.split(".")[0])
    *_, last = name.split(".")
    method = getattr(holder if "." in name else _kernel, last)
    arguments = {
        argument: value.copy() if isinstance(value, np.ndarray) else value
        for argument, value in CALLS[name].items()
    }
    return method(**{**arguments, **changed})


def test_every_call_is_tried() -> None:
    """What follows leaves nothing out, and each call is right as it stands."""
    offered = {name for name in dir(_kernel) if not name.startswith("_")}
    assert offered == {name for name in CALLS if "." not in name}
    for name in CALLS:
        call(name)


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_arrays_of_another_dtype_are_refused(name: str, argument: str) -> None:
    """Never copied in silence: a copy of an output would take the result with it."""
    value = CALLS[name][argument]
    for dtype in (np.float16, np.int16, np.complex128):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(name, **{argument: value.astype(dtype)})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_arrays_in_another_order_are_refused(name: str, argument: str) -> None:
    value = CALLS[name][argument]
    strided = np.repeat(value, 2, axis=-1)[..., ::2]
    assert strided.shape == value.shape
    assert not strided.flags.c_contiguous
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(name, **{argument: strided})


FIVE = _kernel.BatchHandle(np.zeros((5, 2)), None, 5.0)
FAR = np.zeros((3, 2))
LLOYD_OF_THREE: dict[str, Any] = {
    "centroids": FAR, "cluster_masses": np.zeros(3), "before": None, "moved": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "name", "changed"),
    [
        ("points and centroids differ in columns", "nearest", {"centroids": np.zeros((1, 3))}),
        ("outputs are too short", "nearest", {"squared": np.zeros(3)}),
        ("arrays are too short", "distances_to", {"squared": np.zeros(3)}),
        ("a label has no centroid", "distances_to", {"labels": np.full(4, 2, np.int32)}),
        ("a label has no centroid", "distances_to", {"labels": np.full(4, -1, np.int32)}),
        ("a copy does not fit the points", "first_beyond", {"copy": np.zeros((3, 2))}),
        ("a copy does not fit the points", "first_beyond", {"copy": np.zeros((4, 2), np.float32)}),
        ("weights and points differ in length", "BatchHandle", {"weights": np.zeros(3)}),
        ("no points", "BatchHandle", {"points": POINTS[:0], "weights": None}),
        ("one entry per batch is needed", "WindowHandle", {"decay": [1.0]}),
        ("no batches", "WindowHandle", {"batches": (BATCH, None)}),
        ("no uniforms", "seed", {"uniforms": np.zeros(3)}),
        ("points and centroids differ in columns", "measure", {"centroids": np.zeros((1, 3))}),
        ("the two bounds differ in length", "Bounds", {"lower": LOWER[:3]}),
        (
            "masses, sums and scatter do not fit each other",
            "ClusterSums",
            {"masses": np.ones((1, 3))},
        ),
        ("labels and bounds differ in length", "Partition", {"labels": LABELS[:3]}),
        ("bounds without labels", "Partition", {"labels": np.full(4, -1, np.int32)}),
        ("bounds without labels", "Partition", {"labels": np.full(4, 2, np.int32)}),
        ("not an order", "Partition.renumbered", {"order": np.array([0, 0])}),
        ("bounds of another number of clusters", "Partition.renumbered", {"order": np.arange(3)}),
        ("sums do not fit the window", "cluster_masses", {"masses": np.zeros(3)}),
        ("labels of no cluster", "cluster_masses", {"partition": BARE, "masses": np.zeros(1)}),
        ("a snapshot does not fit the centroids", "lloyd", {"older": None, **LLOYD_OF_THREE}),
        ("a snapshot does not fit the centroids", "lloyd", {"newest": None, **LLOYD_OF_THREE}),
        ("labels and points differ in length", "lloyd", {"older": PARTITION.without(0, 1)}),
        (
            "labels and points differ in length",
            "lloyd",
            {"window": _kernel.WindowHandle((BATCH, FIVE), [0.5, 1.0]), "older": None},
        ),
        ("no batches", "lloyd", {"window": _kernel.WindowHandle((), [])}),
        ("places before do not fit the centroids", "lloyd", {"before": None}),
        ("labels and points differ in length", "swap", {"newest": PARTITION.without(0, 1)}),
        ("two uniforms per cluster are needed", "exchange", {"uniforms": np.full(3, 0.5)}),
        ("the partition is not at these centroids", "exchange", {"centroids": CENTROIDS + 1.0}),
        ("the partition is not at these centroids", "exchange", {"found": PARTITION}),
        ("labels of no cluster", "score_dips", {
            "partition": BARE, "centroids": CENTROIDS[:1], "masses": np.ones(1),
            "neighbours": np.zeros(1, np.int32), "as_one": np.zeros(1), "as_two": np.zeros(1),
        }),
        ("labels and points differ in length", "score_dips", {"partition": PARTITION}),
        ("no such batch", "score_dips", {"first": 2}),
        ("a partition without sums", "find_variance", {"partition": BARE}),
        ("one entry per cluster is needed", "find_variance", {"variance": np.zeros(3)}),
        ("one entry per batch is needed", "find_variance", {"is_whole": np.ones(1, bool)}),
        ("no centroids or batches", "ChangeTest.begin", {"centroids": CENTROIDS[:0]}),
        (
            "another number of clusters or columns",
            "ChangeTest.in_chapter",
            {"centroids": np.zeros((3, 2))},
        ),
        ("no such cell", "ChangeTest.in_chapter", {"renewed": [2]}),
        ("no such cell", "ChangeTest.in_chapter", {"renewed": [-1]}),
        ("an unmeasured batch", "ChangeTest.after", {"arrived": BARE}),
        ("an unmeasured batch", "ChangeTest.after", {"arrived": PARTITION.without(0, 1)}),
        ("not a saved change test", "ChangeTest", {"counts": COUNTS[:-1]}),
        ("not a saved change test", "ChangeTest", {"arrays": SAVED[:-1]}),
        ("cells do not fit each other", "ChangeTest", {"counts": (0, *COUNTS[1:])}),
        ("cells do not fit each other", "ChangeTest", {"counts": (3, *COUNTS[1:])}),
        ("cells do not fit each other", "ChangeTest", {"counts": (2, 3, *COUNTS[2:])}),
        ("cells do not fit each other", "ChangeTest", {"counts": (2, 2, 10**9, *COUNTS[3:])}),
        *(
            ("a saved change test does not fit its cells", "ChangeTest", {"counts": counts})
            for counts in ((*COUNTS[:2], 2, *COUNTS[3:]), (*COUNTS[:3], 5, *COUNTS[4:]),
                           (*COUNTS[:4], 3, *COUNTS[5:]))
        ),
        *(
            (
                "a saved change test does not fit its cells",
                "ChangeTest",
                {"arrays": (*SAVED[:at], np.concatenate([SAVED[at], [1.0]]), *SAVED[at + 1 :])},
            )
            for at in (2, 3, 4, 5, 7, 9, 10, 11, 12, 13)
        ),
        *(
            (
                "no such phase",
                "ChangeTest",
                {"arrays": (*SAVED[:3], np.full_like(SAVED[3], phase), *SAVED[4:])},
            )
            for phase in (-1.0, 3.0, np.nan, 1e300)
        ),
        ("labels and points differ in length", "flows", {"older": None}),
        ("labels of no cluster", "flows", {"flow": np.zeros((1, 1)), "newest": np.zeros((1, 1))}),
        ("no centroids or batches", "explain", {"n_batches": 3}),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(message: str, name: str, changed: dict[str, Any]) -> None:
    """The last line of defence: nothing is ever read or written outside an array."""
    with pytest.raises(ValueError, match=f"^kernel: {message}$"):
        call(name, **changed)


def test_no_more_can_leave_a_partition_than_is_in_it() -> None:
    with pytest.raises(ValueError, match="kernel: more points gone than there were"):
        PARTITION.without(0, 5)
    with pytest.raises(ValueError, match="kernel: more batches gone than there were"):
        PARTITION.without(2, 0)
    with pytest.raises(ValueError, match="kernel: labels and points differ in length"):
        PARTITION.of_first_batch(5)


def as_arrays(partition: _kernel.Partition) -> list[NDArray[Any]]:
    bounds, sums = partition.bounds, partition.sums
    arrays: list[NDArray[Any]] = [partition.labels]
    arrays += [] if bounds is None else [bounds.upper, bounds.lower, bounds.snapshot]
    return arrays + ([] if sums is None else [sums.masses, sums.sums, sums.scatter])


@pytest.fixture
def made(rng: np.random.Generator) -> tuple[_kernel.Partition, list[NDArray[Any]]]:
    """A partition of seven points in two batches, and the arrays that it was made of."""
    arrays: list[NDArray[Any]] = [
        rng.integers(3, size=7).astype(np.int32),
        rng.random(7).astype(np.float32), rng.random(7).astype(np.float32), rng.normal(size=(3, 2)),
        rng.random((2, 3)), rng.random((2, 3, 2)), rng.random((2, 3)),
    ]  # fmt: skip
    bounds, sums = _kernel.Bounds(*arrays[1:4]), _kernel.ClusterSums(*arrays[4:])
    return _kernel.Partition(arrays[0], bounds, sums), arrays


def pickled(partition: _kernel.Partition) -> _kernel.Partition:
    found: _kernel.Partition = pickle.loads(pickle.dumps(partition))
    return found


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled, lambda made: made])
def test_a_partition_is_what_it_was_made_of(
    made: tuple[_kernel.Partition, list[NDArray[Any]]],
    again: Callable[[_kernel.Partition], _kernel.Partition],
) -> None:
    partition, arrays = again(made[0]), made[1]
    for array, expected in zip(as_arrays(partition), arrays, strict=True):
        assert array.tobytes() == expected.tobytes()
        assert array.shape == expected.shape
        assert not array.flags.writeable
    kept = partition.labels
    del partition, array
    assert kept.tolist() == arrays[0].tolist()  # though nobody else holds the partition


def test_what_has_left_a_partition_is_left_out(
    made: tuple[_kernel.Partition, list[NDArray[Any]]],
) -> None:
    partition, (labels, upper, lower, snapshot, masses, sums, scatter) = made
    rest = partition.without(1, 4)
    expected = [labels[4:], upper[4:], lower[4:], snapshot, masses[1:], sums[1:], scatter[1:]]
    first = [labels[:4], upper[:4], lower[:4], snapshot, masses[:1], sums[:1], scatter[:1]]
    for part, arrays in [(rest, expected), (partition.of_first_batch(4), first)]:
        assert part.n_points == len(arrays[0])
        for array, wanted in zip(as_arrays(part), arrays, strict=True):
            assert array.tolist() == wanted.tolist()
        again = as_arrays(pickled(part))
        assert [array.tolist() for array in again] == [a.tolist() for a in arrays]
    assert rest.without(1, 3).n_points == 0
    bare = partition.without_sums()
    assert bare.sums is None
    assert bare.labels.tolist() == labels.tolist()


def test_a_renumbered_partition_has_the_same_clusters(
    made: tuple[_kernel.Partition, list[NDArray[Any]]],
) -> None:
    partition, (labels, upper, _, snapshot, *_) = made
    order = np.array([2, 0, 1])
    for kept, n_gone in [(partition, 0), (partition.without(1, 3), 3)]:
        renumbered = kept.renumbered(order)
        assert order[renumbered.labels].tolist() == labels[n_gone:].tolist()
        assert renumbered.bounds is not None
        assert renumbered.bounds.snapshot.tolist() == snapshot[order].tolist()
        assert renumbered.bounds.upper.tolist() == upper[n_gone:].tolist()
        assert renumbered.sums is None


def test_arrays_that_are_not_aligned_are_copied_or_refused() -> None:
    raw = np.zeros(8 * 6 + 1, dtype=np.uint8)
    crooked = raw[1:].view(np.float64).reshape(3, 2)
    assert not crooked.flags.aligned
    assert weighted_lloyd(crooked, [[0.0, 0.0]]).error == 0.0
    with pytest.raises(ValueError, match="kernel: an array is not aligned"):
        _kernel.nearest(crooked, np.zeros((1, 2)), np.zeros(3, np.int32), np.zeros(3), 1)
