"""What a saved model's file holds: a model, its parameters, its columns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from kmeander.arrays import INSTRUCTION_SET
from kmeander.exceptions import CheckpointError, InputError, argument, shown
from kmeander.models.base import StreamModel
from kmeander.models.cluster_range import checked_count
from kmeander.models.settings import PrivilegedSettings, Settings
from kmeander.plain_values import PlainValues, are_moderate, is_plain, is_text
from kmeander.preparation import FittedPreparation
from kmeander.storage import checkpoint

ESTIMATORS = {"FSKM": "ForgetfulKMeans", "PSKM": "PrivilegedKMeans"}


def to_state(
    estimator: str,
    params: Mapping[str, Any],
    model: StreamModel | None,
    feature_names: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the state that is written to a model's file."""
    return {
        "estimator": estimator,
        "params": dict(params),
        "feature_names_in": None if feature_names is None else list(feature_names),
        "instruction_set": INSTRUCTION_SET,
        "model": None if model is None else model.state(),
    }


def write(
    path: str | os.PathLike[str],
    model: StreamModel,
    feature_names: Sequence[str],
) -> None:
    """Write a model that has learned a stream, so that `kmeander.load` makes an estimator of it."""
    checkpoint.write(path, state_of(model, feature_names))


def state_of(model: StreamModel, feature_names: Sequence[str] | None) -> dict[str, Any]:
    """Return what is written of a model that has learned a stream."""
    params = {**model.settings.to_dict(), "random_state": model.seed}
    return to_state(ESTIMATORS[type(model).__name__], params, model, feature_names)


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
    return with_preparation(state, state["feature_names_in"] or ())


def _check(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse a file whose parts are not what they are taken for; the model sees to its own."""
    try:
        given = PlainValues(state, "it")
        missing = [name for name in ("feature_names_in", "model") if name not in given]
        if missing:
            raise InputError(f"it has no {missing[0]}.")
        given.text("instruction_set")
        given.inside("params")
        checked_count(state["params"].get("n_clusters"))
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
        is_prepared = state["model"] is not None and state["model"].get("preparation") is not None
        if features is not None and not is_prepared and n_features not in (None, len(features)):
            raise InputError(f"it has {len(features)} names for {n_features} features.")
    except InputError as error:
        raise CheckpointError(f"{path} is no model that kmeander has written: {error}") from error


def with_preparation(state: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a state of before there were preparations with its standardiser as one.

    Its mean and scale are then limits that never change.
    """
    stored = state.get("standardize")
    if stored is None or state["model"] is None:
        return state
    fitted = FittedPreparation.fixed(names, stored["mean"], stored["scale"])
    rules = fitted.rules.to_dict()
    model = state["model"]
    model = {
        **model,
        "settings": {**model["settings"], "prepare": rules},
        "preparation": fitted.to_dict(),
    }
    params = {**state.get("params", {}), "prepare": rules}
    return {**state, "model": model, "params": params, "standardize": None}
