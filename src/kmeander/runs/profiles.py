"""When a run looks at what its clusters are, and names that its user gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmeander.exceptions import ArgumentError, InputError, argument, shown
from kmeander.models import FSKM
from kmeander.records import Columns, Profiles, Step

# The first batches, and every so many after them.
FIRST, EVERY = 10, 10
# Clusters that a Step describes.
MOST = 100
# What begins or ends a cluster.
_ENDS = {"born", "split", "returned", "died", "absorbed"}


def with_profiles(model: FSKM, step: Step, columns: Columns) -> Step:
    """Return a Step that knows its columns, and what each cluster is where it is time to look.

    That is a matter of the stream alone, so that a run that was stopped looks at the same batches.
    """
    step = step.with_columns(columns)
    is_due = step.index < FIRST or step.index % EVERY == 0
    is_due = is_due or any(event.kind in _ENDS for event in step.events)
    if not is_due or step.waiting:
        return step
    profiles: Profiles = model.describe(list(columns.names))
    names = {**(step.names or {}), **profiles.names()}
    return step.having(profiles=profiles[:MOST], names=names)


def checked_names(given: Mapping[Any, Any] | str | os.PathLike[str] | None) -> dict[int, str]:
    """Return names of clusters by id: as they are given, or from a TOML file.

    Examples
    --------
    >>> checked_names({3: "night shift"}), checked_names(None)
    ({3: 'night shift'}, {})
    """
    if given is None:
        return {}
    where = argument("names")
    if not isinstance(given, Mapping):
        where = os.fspath(given)
        given = _from_toml(where)
    found = {}
    for number, name in given.items():
        is_id = isinstance(number, int) or (isinstance(number, str) and number.isdecimal())
        if isinstance(number, bool) or not is_id or len(str(number)) > 18 or int(number) < 0:
            raise ArgumentError(
                f"{where} has {shown(number)}, which is no id of a cluster. Write "
                '3 = "night shift".'
            )
        found[int(number)] = name
    return found


def _from_toml(path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{argument('names', path)} cannot be read: {why}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.") from error
