"""What a run's checkpoint must hold before it is gone on from: a file may be damaged, or hostile.

The model sees to its own part (`models.stored_state`), each output to where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from kmeander.exceptions import CheckpointError, InputError, shown
from kmeander.plain_values import PlainValues, are_moderate, is_plain
from kmeander.runs.operations.notices import check_waiting
from kmeander.sources.numerals import ColumnForm
from kmeander.storage.checkpoint_folder import CheckpointFolder

# What is kept of how a column of CSV is written.
_FORM = sorted(entry.name for entry in fields(ColumnForm))


def check_run(state: Mapping[str, Any], outputs: Iterable[str], folder: CheckpointFolder) -> None:
    """Refuse a state whose parts are not what they are taken for.

    Parameters
    ----------
    state : mapping
    outputs : iterable of str
        Those whose ends it must know.
    folder : CheckpointFolder
    """
    kind = state.get("kind")
    if not isinstance(kind, str) or kind != "run":
        raise CheckpointError(f"{folder.path} does not hold the checkpoints of a run.")
    try:
        given = PlainValues(state, "it")
        given.inside("identity")
        if not all(map(_is_said, state["identity"].values())):
            raise InputError("it belongs to a run whose arguments are no plain values.")
        given.text("instruction_set")
        model = given.inside("model")
        model.inside("settings")
        n_features = model.whole("n_features", None)
        ends = given.inside("outputs")
        missing = [name for name in outputs if name not in ends]
        if missing:
            raise InputError(f"it does not know where {missing[0]} ends.")
        position = given.inside("position")
        missing = [name for name in ("period", "source") if name not in position]
        if missing:
            raise InputError(f"its position has no {missing[0]}.")
        position.whole("period", None)
        source = position.inside("source", None)
        if source is not None:
            _check_position(source)
        counts = given.inside("events_since_end", None)
        for kind in () if counts is None else counts.names():
            counts.whole(kind, least=0)
        waiting = given.inside("notices", None)
        if waiting is not None:
            check_waiting(waiting)
        scaled = given.inside("standardize", None)
        if scaled is not None:
            scaled.array("mean", shape=(n_features,), fits=are_moderate)
            scale = scaled.array("scale", shape=(n_features,), fits=are_moderate)
            if not (scale > 0).all():
                raise InputError(f"it has scales {shown(scale.tolist())}, which must be above 0.")
    except InputError as error:
        raise CheckpointError(
            f"{folder.name} holds a checkpoint that kmeander has not written: {error} Restore it "
            "from a copy."
        ) from error


def _is_said(value: Any) -> bool:
    """Whether a value is text, a number, or a list or an object of such."""
    if isinstance(value, Mapping):
        return all(map(_is_said, value.values()))
    return all(map(_is_said, value)) if isinstance(value, list) else is_plain(value)


def _check_position(source: PlainValues) -> None:
    """Check where a source stands: in a file, after a row, or at the offsets of a topic."""
    if "file" in source:
        for name in ("index", "start"):
            source.whole(name, least=0)
        source.file("file")
        place = source.inside("place")
        place.whole("row", least=0)
        place.whole("byte", 0, least=0)
        forms = place.inside("forms", None)
        for column in () if forms is None else forms.names():
            form = forms.inside(column)
            if sorted(form.names()) != _FORM:
                raise InputError(f"it has a column {shown(column)} of which nobody knows the form.")
            for name in _FORM:
                form.text(name)
        return
    source.whole("row", least=0)
    offsets = source.inside("offsets", None)
    for partition in () if offsets is None else offsets.names():
        offsets.whole(partition, least=0)
        if not partition.isdecimal():
            raise InputError(f"it has a partition {shown(partition)}, which is no number.")
