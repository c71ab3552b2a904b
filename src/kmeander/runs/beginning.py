"""Where a run begins: at the newest checkpoint whose outputs are there, or anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kmeander.exceptions import CheckpointError, StreamError, argument, shown
from kmeander.preparation import Preparation
from kmeander.sinks import Sink
from kmeander.storage.checkpoint_folder import CheckpointFolder

# What an end of another kind raises where an output is compared with it.
_NO_END = (TypeError, KeyError, ValueError, IndexError, AttributeError, OverflowError)


def newest_complete(
    folder: CheckpointFolder,
    states: Iterator[dict[str, Any]],
    identity: Callable[[], Mapping[str, Any]],
    sinks: Mapping[str, Sink],
    notify: Callable[[str], None],
) -> dict[str, Any]:
    """Return the newest state of a run whose outputs reach as far as it says.

    Parameters
    ----------
    folder : CheckpointFolder
    states : iterator of dict
        Its states, newest first, which `check_run` has seen.
    identity : callable
        Returns what they must have in common with this run, by the names of arguments.
    sinks : mapping
        The outputs, by name.
    notify : callable
        Given a sentence where the newest state is not the one.
    """
    refused: StreamError | None = None
    for state in states:
        _check_identity(folder, state, identity())
        try:
            for name, sink in sinks.items():
                sink.check(state["outputs"][name])
        except StreamError as error:
            refused = refused or error
            continue
        except _NO_END as error:
            raise CheckpointError(
                f"{folder.name} holds a checkpoint that kmeander has not written: it does not know "
                f"where the outputs end ({shown(error)}). Restore it from a copy."
            ) from error
        if refused is not None:
            notify(f"{refused} Going back to the checkpoint before it.")
        folder.go_on_from_here()
        return state
    assert refused is not None
    raise refused


def refuse_full_outputs(folder: CheckpointFolder, sinks: Mapping[str, Sink]) -> None:
    """Refuse to empty outputs of which a folder without checkpoints knows nothing."""
    full = next((sink.name for sink in sinks.values() if not sink.is_empty()), None)
    if full is not None:
        raise StreamError(
            f"{full} is not empty, and {folder.name} holds no checkpoint that knows it. To go on, "
            f"name the {argument('checkpoint')} of the run that wrote it; to begin anew and lose "
            f"what is there, add {argument('overwrite', True)}."
        )


def _check_identity(
    folder: CheckpointFolder, state: Mapping[str, Any], identity: Mapping[str, Any]
) -> None:
    for what, now in identity.items():
        before = state["identity"].get(what)
        if before != now:
            raise CheckpointError(
                f"{folder.name} belongs to a run with {_identified_by(what)} {_shown(before)}, "
                f"this one has {_shown(now)}. Use the same, or another {argument('checkpoint')} to "
                "begin anew."
            )


def _identified_by(name: str) -> str:
    """Return what messages call a part of a run's identity."""
    if name in ("source", "columns"):
        return f"the {name}"
    return f"{argument(name)}, in microseconds," if name == "every" else argument(name)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return "auto" if value == Preparation().to_dict() else "rules of its own"
    return "none" if value is None else value if isinstance(value, str) else shown(value)
