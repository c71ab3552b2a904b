"""What a stored state must be before a model is made of it: a file may be damaged, or hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import LARGEST_VALUE
from kmeander.exceptions import InputError
from kmeander.meaning.stored_memory import check_memory
from kmeander.models.cluster_range import ClusterRange
from kmeander.models.stored_k_choice import check_k_choice
from kmeander.plain_values import PlainValues, is_number, is_whole
from kmeander.preparation.stored_preparation import check_preparation

_FLOATS = (np.float64, np.float32)
_LARGEST = 1e300  # square of what is far, or inverse of a deviation, that the kernel takes
_HEAVIEST = 1e45  # of a mean that stands for any number of rows

# Points, and weights where they have any.
_Batch = tuple[NDArray[Any], NDArray[np.float64] | None]


def check_state(plain: Mapping[str, Any], clusters: ClusterRange, n_choices: int = 0) -> None:
    """Refuse a state whose parts are not of the kinds, shapes and sizes that belong together.

    That the numbers are those that some stream leads to is not asked. Where rho is chosen it is
    among `n_choices`.
    """
    # Rows that a preparation keeps may lack values, which are NaN there.
    _refuse_nan({name: plain[name] for name in plain if name != "preparation"}, "it")
    state = PlainValues(plain, "it")
    n_steps = state.whole("n_steps", least=0)
    d = state.whole("n_features", None if n_steps == 0 else ..., least=1)
    preparation = state.inside("preparation", None)
    if preparation is not None:
        check_preparation(preparation, d)
    state.whole("concept", None)
    state.number("expected_error", None, least=0.0)
    state.number("waiting_within", ... if "waiting_within" in plain else 0.0, least=0.0)
    state.items("usual", (), each=_is_estimate, rule="pairs of numbers")
    scores = state.items("ladder", None, each=is_number, rule="finite numbers")
    if scores is not None and n_choices and len(scores) != n_choices:
        raise InputError(f"it has ladder of {len(scores)} numbers, which must be {n_choices}.")
    rest = state.items("rest", (), each=is_whole, rule="whole numbers")
    if rest and (len(rest) != 2 or min(rest) < 0):
        raise InputError(f"it has rest {rest!r}, which must be two numbers of at least 0.")
    fixed = None if clusters.is_followed else clusters.low
    centroids = _places(state, "centroids", (fixed, d), None)
    n_clusters = clusters.low if centroids is None else len(centroids)
    if clusters.nearest(n_clusters) != n_clusters:
        raise InputError(f"it has {n_clusters} centroids, which must be {clusters.words()}.")
    waiting = _places(state, "waiting_points", (None, d), None)
    if waiting is not None:
        _weights(state, "waiting_weights", len(waiting), ...)
    batches = _check_window(state.inside("window"), n_clusters, d)
    trial = state.inside("trial", None)
    if trial is not None:
        _check_trial(trial, batches, d)
    if (centroids is None) != (not batches):
        raise InputError("it has centroids without a window, or a window without centroids.")
    lineage = state.inside("lineage", None)
    if lineage is not None and centroids is not None:
        _check_lineage(lineage, n_clusters, d)
    chapter = state.inside("chapter", None)
    if chapter is not None:
        _check_chapter(chapter, n_clusters)
    memory = state.inside("memory", None)
    if memory is not None:
        check_memory(memory)
    step = state.inside("step", None if n_steps == 0 else ...)
    if step is not None and centroids is not None:
        step.number("surrogate_error", ..., least=0.0)
        step.number("mass", ..., least=0.0)
        _places(step, "centroids", (n_clusters, d), ...)
        _weights(step, "masses", n_clusters, ...)
    if "k_choice" in state and centroids is not None:
        check_k_choice(state.inside("k_choice"), n_clusters, d)


def _check_trial(trial: PlainValues, batches: list[_Batch], d: int | None) -> None:
    """Check the memory that does not answer; `batches` are those of the one that does."""
    trial.truth("is_fresh")
    trial.number("score", least=0.0)
    trial.whole("n_batches", least=0)
    first = trial.items("first_errors", each=_is_age, rule="numbers of at least 0")
    if len(first) != 2:
        raise InputError(f"it has first_errors of {len(first)} numbers, which must be 2.")
    other = trial.inside("other", None)
    if other is None:
        return
    n_shared = other.whole("n_shared", least=0)
    if n_shared > len(batches):
        raise InputError(f"it shares {n_shared} batches of {len(batches)}.")
    k = len(_places(other, "centroids", (None, d), ...))  # another one if K was changed since
    other.number("expected_error", None, least=0.0)
    other.number("score", least=0.0)
    if not _check_window(other.inside("window"), k, d, batches[len(batches) - n_shared :]):
        raise InputError("it has a second memory without batches.")


def _check_window(
    window: PlainValues, k: int, d: int | None, newest: Sequence[_Batch] = ()
) -> list[_Batch]:
    """Check the batches and what is known of their points; return them.

    `newest` are those that stand elsewhere.
    """
    rho = window.number("rho", ..., least=0.0)
    if not 0 < rho <= 1:
        raise InputError(f"it has rho {rho:g}, which must lie in (0, 1].")
    ages = window.items("ages", ..., each=_is_age, rule="numbers of at least 0")
    if any(older < younger for older, younger in pairwise(ages)):
        raise InputError("it has ages that do not fall from the oldest batch to the newest.")
    tail = window.items("tail", None, each=_is_share, rule="numbers in (0, 1]")
    if tail is not None and len(tail) != 2:
        raise InputError(f"it has a tail of {len(tail)} numbers, which must be 2.")
    kept = window.items("kept", None, each=_is_share, rule="numbers in (0, 1]")
    if kept is not None and len(kept) != len(ages):
        raise InputError("its window has ages and shares kept of unlike numbers.")
    all_points, all_weights, summaries = (
        window.items(name, ..., each=lambda _: True, rule="one for each batch")
        for name in ("points", "weights", "summaries")
    )
    if not len(ages) - len(newest) == len(all_points) == len(all_weights) == len(summaries):
        raise InputError("its window has ages, points, weights and summaries of unlike numbers.")
    batches: list[_Batch] = []
    for points, weights, summary in zip(all_points, all_weights, summaries, strict=True):
        batch = PlainValues({"points": points, "weights": weights, "summary": summary}, "a batch")
        found = _places(batch, "points", (None, d), ...)
        batches.append((found, _weights(batch, "weights", len(found), None)))
        hidden = batch.inside("summary", None)
        if hidden is not None:
            hidden.number("within", ..., least=0.0)
            hidden.whole("n_batches", ..., least=1)
            hidden.number("span", ..., least=0.0)
    batches += newest
    _check_partition(window, batches, k, d)
    return batches


def _check_partition(window: PlainValues, batches: list[_Batch], k: int, d: int | None) -> None:
    n_points = sum(len(points) for points, _ in batches)
    labels = window.array(
        "labels", ... if batches else None, dtypes=(np.int32,), shape=(None,),
        fits=lambda found: bool(((found >= 0) & (found < k)).all()), rule=f"of clusters below {k}",
    )  # fmt: skip
    if labels is not None and len(labels) != n_points:
        raise InputError(f"it has {len(labels)} labels for {n_points} points.")
    bounds = window.inside("bounds", None)
    if bounds is not None:
        for name in ("upper", "lower"):
            bounds.array(
                name, ..., dtypes=(np.float32,), shape=(n_points,),
                fits=lambda found: not np.isnan(found).any(), rule="of numbers",
            )  # fmt: skip
        _places(bounds, "snapshot", (k, d), ...)
        bounds.array(
            "axes", None, shape=(None, d), fits=_are_axes, rule="of a centre and orthonormal axes"
        )
    sums = window.inside("totals", None)
    if sums is None:
        return
    masses = _weights(sums, "masses", (len(batches), k), ...)
    scatter = _weights(sums, "scatter", (len(batches), k), ..., most=np.finfo(float).max)
    totals = sums.array("sums", shape=(len(batches), k, d))
    assert masses is not None
    assert scatter is not None
    begin = 0
    for b, (points, weights) in enumerate(batches):
        rows = labels[begin : begin + len(points)]
        begin += len(points)
        if not np.allclose(masses[b], np.bincount(rows, weights, k), rtol=1e-6, atol=0.0):
            raise InputError(f"it has masses of batch {b} that are not those of its points.")
        reach = float(np.abs(points).max()) * (1 + 1e-6)
        if (np.abs(totals[b]) > reach * masses[b][:, np.newaxis]).any() or (
            scatter[b] > 4 * points.shape[1] * reach**2 * masses[b]
        ).any():
            raise InputError(f"it has sums of batch {b} that no points of their size have.")


def _check_lineage(lineage: PlainValues, k: int, d: int | None) -> None:
    next_id = lineage.whole("next_id", ..., least=k)
    for name in ("ids", "since"):
        lineage.array(name, ..., dtypes=(np.int64,), shape=(k,))
    ids = lineage.array(
        "ids", ..., dtypes=(np.int64,), shape=(k,),
        fits=lambda found: bool((found >= 0).all() and (found < next_id).all()
                                and len(np.unique(found)) == k),
        rule=f"of unlike ids below {next_id}",
    )  # fmt: skip
    assert len(ids) == k
    _places(lineage, "home", (k, d), ...)
    for name in ("home_variance", "variance", "home_share"):
        lineage.array(
            name, ..., shape=(k,), fits=lambda found: bool((found >= 0).all()),
            rule="of numbers of at least 0",
        )  # fmt: skip
    lineage.array("ended", ..., dtypes=(np.int64,), shape=(None, 2))
    lineage.array("dropped", None, dtypes=(np.int64,), shape=(None, 2))
    for name in ("batches", "parents"):
        lineage.array(name, None, dtypes=(np.int64,), shape=(k,))
    _weights(lineage, "held", k, None)
    asleep = lineage.items("asleep", (), each=lambda one: isinstance(one, dict), rule="objects")
    for one in asleep:
        sleeper = PlainValues(one, "a cluster that is asleep")
        for name in ("number", "heir", "since"):
            sleeper.whole(name)
        sleeper.array("home", shape=(d,))
        sleeper.number("variance", least=0.0)


def _check_chapter(chapter: PlainValues, k: int) -> None:
    chapter.array("ids", dtypes=(np.int64,), shape=(k,))
    chapter.items("counts", each=is_whole, rule="whole numbers")
    chapter.number("n_independent")
    arrays = chapter.items("arrays", each=lambda one: isinstance(one, np.ndarray), rule="arrays")
    for place, values in enumerate(arrays):
        if not (np.abs(values) <= _LARGEST).all():
            raise InputError(f"its chapter has numbers that are too large in array {place}.")


def _places(
    values: PlainValues, name: str, shape: tuple[int | None, int | None], default: Any
) -> Any:
    """Points or centroids, of which there is at least one."""

    def fit(found: NDArray[Any]) -> bool:
        # Centroids may leave the values' limits by a rounding.
        wide = found.astype(np.float64, copy=False)
        return found.size > 0 and bool((np.abs(wide) <= 2 * LARGEST_VALUE).all())

    return values.array(
        name, default, dtypes=_FLOATS, shape=shape, fits=fit, rule="of finite numbers"
    )


def _weights(
    values: PlainValues,
    name: str,
    shape: int | tuple[int, int],
    default: Any,
    most: float = _HEAVIEST,
) -> NDArray[np.float64] | None:
    """Weights or sums of squares: finite, and none below 0."""
    found: NDArray[np.float64] | None = values.array(
        name, default, shape=(shape,) if isinstance(shape, int) else shape,
        fits=lambda array: bool((array >= 0).all() and (array <= most).all()),
        rule=f"of numbers from 0 to {most:g}",
    )  # fmt: skip
    return found


def _refuse_nan(value: Any, where: str) -> None:
    """Refuse what is not a number, wherever it stands: nothing that is stored may be."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and np.isnan(value).any():
            raise InputError(f"{where} holds NaN.")
    elif isinstance(value, Mapping):
        for name, inside in value.items():
            _refuse_nan(inside, f"{where}: {name}")
    elif isinstance(value, list | tuple):
        for inside in value:
            _refuse_nan(inside, where)


def _are_axes(found: NDArray[np.float64]) -> bool:
    axes = found[1:]
    products = axes @ axes.T
    centred = len(found) > 0 and bool((np.abs(found) <= 2 * LARGEST_VALUE).all())
    return centred and bool((np.abs(products - np.eye(len(axes))) <= 1e-13).all())


def _is_age(value: Any) -> bool:
    return is_number(value) and value >= 0


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 < value <= 1


def _is_estimate(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_small, value))


def _is_small(value: Any) -> bool:
    return is_number(value) and abs(value) <= _HEAVIEST
