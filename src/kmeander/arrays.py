"""Arrays by their role (points, centroids, weights, labels), and the checks that make one fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander import _kernel
from kmeander.exceptions import InputError, InputTypeError, shown

Points = NDArray[np.float64] | NDArray[np.float32]
Centroids = NDArray[np.float64]
Weights = NDArray[np.float64]
Masses = NDArray[np.float64]
Labels = NDArray[np.int32]

Scalar = TypeVar("Scalar", bound=np.generic)

_FLOAT64 = np.dtype(np.float64)

# Squares of differences, times weights, summed over any window, stay below the largest double.
LARGEST_VALUE = 1e120
LARGEST_WEIGHT = 1e30
SMALLEST_WEIGHT = 1e-30


try:
    INSTRUCTION_SET = _kernel.instruction_set()
except ValueError as error:  # KMEANDER_ISA names one that there is not
    raise InputError(str(error)) from None


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return `array`, made read-only, so that it can be shared without copying."""
    array.setflags(write=False)
    return array


def frozen_copy(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only copy: what the caller does to `array` afterwards does not matter."""
    return frozen(np.array(array, order="C", copy=True))


def checked_points(
    values: ArrayLike,
    name: str = "X",
    columns: Sequence[str] | None = None,
    *,
    copy: bool = False,
) -> Points:
    """Return `values` as a two-dimensional array of finite float32 or float64, in C order.

    Not copied where it already is one, unless asked for: a `copy` is read-only, and what the caller
    does to `values` afterwards does not matter. Messages name `columns` where they are given.

    Examples
    --------
    >>> checked_points([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> checked_points([[1.0, float("nan")]])
    Traceback (most recent call last):
    kmeander.exceptions.InputError: X holds NaN at row 0, column 1. Every value must be finite; \
drop or fill such rows first.
    """
    array = _as_floats(_as_array(values, name), name, columns)
    shape, flags = array.shape, array.flags
    if len(shape) != 2:
        raise InputError(
            f"{name} must have two dimensions, rows and columns, got shape {array.shape}. "
            "Reshape your data: reshape(-1, 1) for a single column, reshape(1, -1) for a single "
            "row."
        )
    if shape[0] == 0:
        raise InputError(
            f"{name} has no rows (shape {array.shape}); at least 1 is needed. Skip empty batches."
        )
    if shape[1] == 0:
        raise InputError(
            f"{name} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if not (flags.c_contiguous and flags.aligned):
        array = np.require(array, requirements=["C", "ALIGNED"])
    # In one pass: large batches come from memory only once.
    target = np.empty(shape, array.dtype) if copy else None
    position = _kernel.first_beyond(array, LARGEST_VALUE, target)
    if target is not None:
        array = frozen(target)
    if position >= 0:
        cell = divmod(position, array.shape[1])
        raise InputError(_bad_value(name, _place(cell, columns), array[cell]))
    return array


def checked_centroids(values: ArrayLike, n_features: int, name: str = "centroids") -> Centroids:
    """Return `values` as float64 centroids of points with `n_features` columns."""
    centroids: Centroids = checked_points(values, name).astype(np.float64, copy=False)
    if centroids.shape[1] != n_features:
        raise InputError(
            f"{name} has {centroids.shape[1]} columns, the points have {n_features}. "
            "Both must come from the same features."
        )
    return centroids


def checked_weights(values: ArrayLike | None, n_points: int) -> Weights | None:
    """Return `values` as a read-only copy, or None where every weight is 1."""
    if values is None:
        return None
    name = "sample_weight"
    given = _as_array(values, name)
    if given.shape != (n_points,):
        raise InputError(
            f"{name} must hold one weight per row, shape ({n_points},), got shape {given.shape}."
        )
    array = _as_floats(given, name).astype(np.float64, copy=False)
    within = (array >= SMALLEST_WEIGHT) & (array <= LARGEST_WEIGHT)
    outside = np.flatnonzero(~((array == 0) | within))
    if outside.size:
        row = int(outside[0])
        raise InputError(
            f"{name} is {array[row]:g} at row {row}. A weight must be 0 or lie between "
            f"{SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: it says how many points the row stands "
            "for."
        )
    if not within.any():
        raise InputError(
            f"{name} is zero in all {n_points} rows. At least one weight must be above 0; "
            "skip batches that do not count."
        )
    return None if (array == 1).all() else frozen_copy(array)


def checked_masses(values: ArrayLike, n_clusters: int, name: str) -> Masses:
    """Return `values` as the masses of `n_clusters` clusters, some of which may be 0."""
    given = _as_array(values, name)
    if given.shape != (n_clusters,):
        raise InputError(
            f"{name} must hold one mass per centroid, shape ({n_clusters},), "
            f"got shape {given.shape}."
        )
    masses: Masses = _as_floats(given, name).astype(np.float64, copy=False)
    if not ((masses >= 0) & (masses <= LARGEST_WEIGHT)).all():
        raise InputError(
            f"{name} must lie between 0 and {LARGEST_WEIGHT:g}, got {masses.tolist()}."
        )
    return masses


def _as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray:
        return values
    if hasattr(values, "toarray"):
        raise InputTypeError(
            f"{name} is a sparse {type(values).__name__}, which kmeander does not read. "
            f"Pass {name}.toarray() if it fits into memory, or reduce its columns first "
            "(sklearn.decomposition.TruncatedSVD)."
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        cell = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        raise InputError(
            f"{name} is masked at {cell}. Every value must be present; drop or fill such rows "
            "first."
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"{name} cannot be read as a table of numbers ({error}). "
            "Every row must have the same number of columns."
        ) from error


def _as_floats(
    array: NDArray[Any], name: str, columns: Sequence[str] | None = None
) -> NDArray[Any]:
    if array.dtype is _FLOAT64:  # there is one such object, but for arrays that pickle has made
        return array
    kind = array.dtype.kind
    if kind == "f":
        # np.asarray also turns the other byte order into this machine's.
        return np.asarray(array, dtype=np.float32 if array.dtype.itemsize == 4 else np.float64)
    if kind in "biu":
        return array.astype(np.float64)
    if kind in "OUS":
        return _text_as_floats(array, name, columns)
    if kind == "c":
        raise InputError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    raise InputError(
        f"{name} has dtype {array.dtype}, which is not a number. Convert dates and durations to "
        "numbers first, in a unit that suits the other columns."
    )


def _text_as_floats(
    array: NDArray[Any], name: str, columns: Sequence[str] | None
) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        for cell in np.ndindex(array.shape):
            value = array[cell].item() if isinstance(array[cell], np.generic) else array[cell]
            try:
                float(value)
            except (TypeError, ValueError) as why:
                kind = InputTypeError if isinstance(why, TypeError) else InputError
                raise kind(
                    f"{name} holds {shown(value)} at {_place(cell, columns)}, which is not a "
                    f"number ({why}). Encode such columns as numbers or leave them out."
                ) from error
        raise InputError(f"{name} cannot be read as numbers ({error}).") from error


def _place(cell: tuple[int, ...], columns: Sequence[str] | None) -> str:
    if len(cell) == 1:
        return f"row {cell[0]}"
    column = str(cell[1]) if columns is None else repr(str(columns[cell[1]]))
    return f"row {cell[0]}, column {column}"


class Flaw(NamedTuple):
    """What keeps a value from being clustered, in words."""

    shown: str  # the value
    fault: str  # "is not finite"; empty where there is no value
    rule: str  # "Every value must be finite"
    is_text: bool = False  # where a number should be


def flaw_of(value: Any) -> Flaw:
    """Return what is wrong with a value that is not a finite number of a usable size.

    Examples
    --------
    >>> flaw_of(float("-inf"))[:2], flaw_of("n/a")[:2]
    (('-infinity', 'is not finite'), ("'n/a'", 'is not a number'))
    """
    if value is None:
        return Flaw("nothing", "", "Every value must be present")
    if not isinstance(value, float | np.floating):
        return Flaw(shown(value), "is not a number", "Every value must be a number", is_text=True)
    if np.isfinite(value):
        limit = f"±{LARGEST_VALUE:g}"
        return Flaw(f"{value:g}", f"lies beyond {limit}", f"Values must lie within {limit}")
    words = "NaN" if np.isnan(value) else f"{'' if value > 0 else '-'}infinity"
    return Flaw(words, "is not finite", "Every value must be finite")


def _bad_value(name: str, place: str, value: np.floating[Any]) -> str:
    flaw = flaw_of(value)
    if np.isfinite(value):
        way_out = ", so that their squares can be added; rescale the column."
    else:
        way_out = f"; drop or {'fill' if np.isnan(value) else 'clip'} such rows first."
    return f"{name} holds {flaw.shown} at {place}. {flaw.rule}{way_out}"
