"""Options in groups: one record per panel of --help, filled from the words of the command line.

typer wants one parameter per option. A command asks for records instead, and `with_panels` builds
the flat signature from their fields: so an option is written once, with its name, type and help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, ClassVar, Protocol, cast, get_args, get_type_hints

from typer.models import OptionInfo


class OptionPanel(Protocol):
    """A frozen dataclass of options.

    Each field is ``Annotated[type, typer.Option(...)]``; a third item is a function from what was
    given to what it means. Fields are named as the arguments of the library are.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    panel: ClassVar[str]  # its heading in --help


def with_panels(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its panels side by side, as typer reads them."""
    hints = get_type_hints(command, include_extras=True)
    panels: dict[str, type[OptionPanel]] = {}
    flat: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            panel = cast("type[OptionPanel]", kind)
            panels[parameter.name] = panel
            flat += _parameters(panel)
        else:
            flat.append(parameter.replace(annotation=kind))

    @wraps(command)
    def flattened(**given: Any) -> None:
        records = {
            name: panel(**{field.name: given.pop(field.name) for field in fields(panel)})
            for name, panel in panels.items()
        }
        command(**given, **records)

    del flattened.__wrapped__  # whose signature is another one
    flattened.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    flattened.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return flattened


def _parameters(panel: type[OptionPanel]) -> list[inspect.Parameter]:
    hints = get_type_hints(panel, include_extras=True)
    found = []
    for field in fields(panel):
        kind, option = get_args(hints[field.name])[:2]
        option = copy(option)
        assert isinstance(option, OptionInfo)
        option.rich_help_panel = panel.panel
        found.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=Annotated[kind, option],
            )
        )
    return found


def keywords(*records: OptionPanel) -> dict[str, Any]:
    """Return options as keyword arguments of the library; those that were not given are not there.

    Raises typer.BadParameter where the words given for one mean nothing.
    """
    found = {}
    for record in records:
        hints = get_type_hints(type(record), include_extras=True)
        for field in fields(record):
            value = getattr(record, field.name)
            if value is None:
                continue
            for meaning in get_args(hints[field.name])[2:]:
                value = meaning(value)
            found[field.name] = value
    return found
