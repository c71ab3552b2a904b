"""What a saved model's file holds: a model, its parameters, its columns, its standardiser."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from kmeander.arrays import INSTRUCTION_SET
from kmeander.exceptions import CheckpointError, InputError, argument, shown
from kmeander.models.base import StreamModel
from kmeander.models.settings import PrivilegedSettings, Settings
from kmeander.plain_values import PlainValues, are_moderate, is_plain, is_text
from kmeander.storage import checkpoint
from kmeander.storage.standardizer import Standardizer

ESTIMATORS = {"FSKM": "ForgetfulKMeans", "PSKM": "PrivilegedKMeans"}


def to_state(
    estimator: str,
    params: Mapping[str, Any],
    model: StreamModel | None,
    feature_names: Sequence[str] | None,
    standardizer: Standardizer | None = None,
) -> dict[str, Any]:
    """Return the state that is written to a model's file."""
    state = {
        "estimator": estimator,
        "params": dict(params),
        "feature_names_in": None if feature_names is None else list(feature_names),
        "instruction_set": INSTRUCTION_SET,
        "model": None if model is None else model.state(),
    }
    if standardizer is not None:
        state["standardize"] = standardizer.state()
    return state


def write(
    path: str | os.PathLike[str],
    model: StreamModel,
    feature_names: Sequence[str],
    standardizer: Standardizer | None,
) -> None:
    """Write a model that has learned a stream, so that `kmeander.load` makes an estimator of it."""
    params = {**model.settings.to_dict(), "random_state": model.seed}
    name = ESTIMATORS[type(model).__name__]
    checkpoint.write(path, to_state(name, params, model, feature_names, standardizer))


def read(path: str | os.PathLike[str], *, stacklevel: int = 3) -> dict[str, Any]:
    """Return the state in a model's file, or say that it holds none."""
    try:
        state = checkpoint.read(path)
    except checkpoint.NotACheckpointError:
        raise CheckpointError(
            f"{os.fspath(path)} is not a kmeander model: it does not begin with "
            f"{checkpoint.MAGIC.decode()!r}. {argument('model_out', of='run')} writes one, and so "
            "does save() of an estimator."
        ) from None
    if not is_text(state.get("estimator")) or state["estimator"] not in ESTIMATORS.values():
        raise CheckpointError(
            f"{path} holds no estimator, but {shown(state.get('estimator') or sorted(state))}."
        )
    _check(state, path)
    saved_by = state["instruction_set"]
    if saved_by != INSTRUCTION_SET:
        warnings.warn(
            f"{path} was saved by the {saved_by} kernel, this is the "
            f"{INSTRUCTION_SET} one: results agree to rounding, not to the last bit. "
            "KMEANDER_ISA chooses one that the processor has.",
            UserWarning,
            stacklevel=stacklevel,
        )
    return state


def _check(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse a file whose parts are not what they are taken for; the model sees to its own."""
    try:
        given = PlainValues(state, "it")
        given.text("instruction_set")
        params = given.inside("params")
        params.whole("n_clusters", least=1)
        if not all(map(is_plain, state["params"].values())):
            raise InputError("it has parameters that are no plain values.")
        kind = Settings if state["estimator"] == "ForgetfulKMeans" else PrivilegedSettings
        unknown = sorted(state["params"].keys() - {*kind.names(), "random_state"})
        if unknown:
            raise InputError(f"it has a parameter {unknown[0]!r}, which there is not.")
        features = given.items("feature_names_in", None, each=is_text, rule="names")
        model = given.inside("model", None)
        scale = given.inside("standardize", None)
        n_features = None if model is None else model.whole("n_features", None)
        if scale is not None:
            for name in ("mean", "scale"):
                scale.array(name, shape=(n_features,), fits=are_moderate)
        if features is not None and n_features not in (None, len(features)):
            raise InputError(f"it has {len(features)} names for {n_features} features.")
    except InputError as error:
        raise CheckpointError(f"{path} is no model that kmeander has written: {error}") from error


def standardizer_of(state: Mapping[str, Any]) -> Standardizer | None:
    """Return the standardiser that a state holds, if any."""
    stored = state.get("standardize")
    return None if stored is None else Standardizer(stored["mean"], stored["scale"])
