"""What a stored state says of the number of clusters, checked before a model is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError
from kmeander.plain_values import PlainValues, is_number


def check_k_choice(choice: PlainValues, n_clusters: int, n_features: int | None) -> None:
    """Refuse what cannot belong to a model with so many clusters and columns."""
    for name in ("n_two", "n_one", "two_for", "one_for"):
        choice.whole(name, ..., least=0)
    choice.items("missing", ..., each=_is_missing, rule="five numbers each, and a truth")
    choice.items("events", ..., each=lambda one: isinstance(one, dict), rule="objects")
    for one in choice.items("gone", ..., each=lambda one: isinstance(one, dict), rule="objects"):
        gone = PlainValues(one, "a cluster that ended")
        for name in ("number", "heir", "since"):
            gone.whole(name, ...)
        gone.array("home", ..., shape=(n_features,))
        gone.number("variance", ..., least=0.0)
    places = choice.inside("places", None)
    if places is None:
        return
    last = places.array("last", ..., shape=(None, n_features))

    def ascend(rows: NDArray[Any]) -> bool:
        return bool((np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < len(last))

    rows = places.array(
        "rows", ..., dtypes=(np.int64,), shape=(n_clusters,), fits=ascend,
        rule=f"of unlike rows below {len(last)}",
    )  # fmt: skip
    if len(rows) == len(last):
        raise InputError("it has free rows of which none is free.")


def _is_missing(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 6
        and all(map(is_number, value[:5]))
        and isinstance(value[5], bool)
        and all(isinstance(value[place], int) and value[place] >= 0 for place in (0, 2))
    )
