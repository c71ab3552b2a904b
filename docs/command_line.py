"""Write the reference of the command line from the program itself.

``python -m docs.command_line > docs/reference/command-line.md`` after a command has changed; a test
compares the two.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from typer.models import ArgumentInfo, OptionInfo

from kmeander.cli import app

HEAD = """\
# Command line

`kmeander COMMAND` has {n} commands; `kmeander --version` says which version it is,
`kmeander COMMAND --help` what stands here: of `run` the commonest options, and `--help-all` the
others. Steps and rows go to files or to standard output, words for people to standard error. It
ends with 0 when all went well, with 1 and one line where it cannot go on, with 2 where the command
was not understood, and with 3 where `--fail-on` found something.
"""
PLACEHOLDERS = {int: "NUMBER", float: "NUMBER", Path: "PATH"}


def page() -> str:
    """Return the page, in Markdown."""
    commands = [info.callback for info in app.registered_commands if info.callback is not None]
    parts = [HEAD.format(n=_in_words(len(commands))), *map(section, commands)]
    return "\n".join(parts)


def section(command: Callable[..., Any]) -> str:
    """Return what there is to say of one command."""
    parameters = [
        (info, parameter, _inner_type(annotation))
        for parameter, annotation, info in _parameters(command)
    ]
    arguments = [item for item in parameters if isinstance(item[0], ArgumentInfo)]
    options = [
        (info, parameter, kind)
        for info, parameter, kind in parameters
        if isinstance(info, OptionInfo) and not info.hidden
    ]
    words, _, example = inspect.cleandoc(command.__doc__ or "").partition("\n\nExample: ")
    usage = " ".join(
        f"[{parameter.name.upper()}]"
        if parameter.default is not parameter.empty
        else parameter.name.upper()
        for _, parameter, _ in arguments
    )
    lines = [f"## {command.__name__}", "", _with_code(words), "", "```text"]
    lines += [f"kmeander {command.__name__} {usage} [OPTIONS]".replace("  ", " "), "```", ""]
    if example:
        lines += ["For example:", "", "```text", example, "```", ""]
    for info, parameter, kind in arguments:
        lines += _entry(f"`{parameter.name.upper()}`", info, parameter, kind)
    panels = dict.fromkeys(info.rich_help_panel for info, _, _ in options)
    for panel in panels:
        if panel:
            lines += [f"**{panel}**", ""]
        for info, parameter, kind in options:
            if info.rich_help_panel == panel:
                lines += _entry(_spelt(info, parameter, kind), info, parameter, kind)
    return "\n".join(lines)


def _parameters(
    command: Callable[..., Any],
) -> list[tuple[inspect.Parameter, Any, ArgumentInfo | OptionInfo]]:
    hints = typing.get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        if typing.get_args(hints[name]):  # what has none is typer's own
            annotation, info = typing.get_args(hints[name])
            found.append((parameter, annotation, info))
    return found


def _inner_type(annotation: Any) -> Any:
    """Return what is left of a type without "or None" and "list of"."""
    inner = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return _inner_type(inner[0]) if inner else annotation


def _spelt(info: OptionInfo, parameter: inspect.Parameter, kind: Any) -> str:
    # Where a name is given, typer keeps it where defaults are, until it builds the program.
    given = [info.default, *(info.param_decls or ())]
    names = [name for name in given if isinstance(name, str) and name.startswith("--")]
    name = ", ".join(names or [f"--{parameter.name.replace('_', '-')}"])
    if kind is bool:
        return f"`{name}`"
    return f"`{name} {_placeholder(info, kind)}`"


def _placeholder(info: OptionInfo, kind: Any) -> str:
    if info.metavar:
        return str(info.metavar)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return PLACEHOLDERS.get(kind, "TEXT")


def _entry(
    spelt: str, info: ArgumentInfo | OptionInfo, parameter: inspect.Parameter, kind: Any
) -> list[str]:
    said = _with_code(info.help or "")
    if isinstance(info, ArgumentInfo) and isinstance(kind, type) and issubclass(kind, Enum):
        said += f" One of {', '.join(str(choice.value) for choice in kind)}."
    default = parameter.default
    if default is parameter.empty:
        said += " Required." if isinstance(info, OptionInfo) else ""
    elif kind is not bool and default is not None and default != []:
        said += f" Default: `{default.value if isinstance(default, Enum) else default}`."
    return [spelt, f": {said}", ""]


def _with_code(text: str) -> str:
    """Return a sentence with its options and commands marked as such."""
    return re.sub(
        r"(?<![\w-])(--[a-z][a-z-]*|kmeander (?:run|watch|predict)\b(?: --[a-z-]+)?|ssh [^,]*)",
        r"`\1`",
        text,
    )


def _in_words(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else str(number)


if __name__ == "__main__":
    print(page(), end="")
