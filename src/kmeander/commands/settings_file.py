"""Options of a command from a TOML file, and what was given written to one.

Keys are the options without their dashes, sections the panels of --help.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer

from kmeander.commands.shell import listed

OPTION, WRITE_OPTION = "--config", "--write-config"
_ARGUMENTS = "arguments"
_VARIABLE = re.compile(r"\$?\$\{([^}]*)\}")
# Where the values stand that a file gave, as they are written there.
_AS_WRITTEN = f"{__name__}.as_written"


class _Key(NamedTuple):
    """Where an option stands in a file."""

    section: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} in [{self.section}]"


def read_settings(context: typer.Context, path: str | None) -> str | None:
    """Take the options of a file for those that the command line does not give."""
    if path is None or context.resilient_parsing:
        return path
    known = _parameters(context)
    found, as_written = {}, {}
    for section, entries in _tables(path).items():
        if not isinstance(entries, Mapping):
            raise _wrong(
                path, f"{section} stands outside of any section.{_nearest(known, section)}"
            )
        for name, value in entries.items():
            key = _Key(section, name)
            if key not in known:
                raise _wrong(path, f"there is no {key}.{_nearest(known, name, section)}")
            parameter = known[key]
            as_written[parameter.name] = value
            found[parameter.name] = _meant(value, key, parameter, path)
    context.default_map = found
    context.meta[_AS_WRITTEN] = as_written
    return path


def write_settings(context: typer.Context, path: str) -> None:
    """Write the options that were given, on the command line or by a file, to a new file."""
    as_written = context.meta.get(_AS_WRITTEN, {})
    sections: dict[str, list[str]] = {}
    for key, parameter in _parameters(context).items():
        source = context.get_parameter_source(parameter.name)
        value = context.params.get(parameter.name)
        if source is not None and source.name == "DEFAULT_MAP":
            value = as_written[parameter.name]
        elif source is None or source.name != "COMMANDLINE":
            continue
        elif not isinstance(value, bool | int | float):
            value = [*map(_escaped, value)] if isinstance(value, list) else _escaped(str(value))
        sections.setdefault(key.section, []).append(f"{key.name} = {_in_toml(value)}")
    text = "\n\n".join("\n".join([f"[{name}]", *lines]) for name, lines in sections.items())
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError:
        raise typer.BadParameter(
            f"{WRITE_OPTION} {path}: there is such a file. Name another, or remove it"
        ) from None


def _in_toml(value: Any) -> str:
    """Return a text, a number, a truth or a list of them; TOML writes these as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _tables(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, f"it cannot be read: {getattr(error, 'strerror', error)}.") from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, f"it is not TOML: {error}.") from error


def _parameters(context: typer.Context) -> dict[_Key, Any]:
    """Return the options of a command, and its arguments, by where they stand in a file."""
    found = {}
    for parameter in context.command.params:
        if parameter.param_type_name == "argument":
            found[_Key(_ARGUMENTS, str(parameter.name))] = parameter
            continue
        option, panel = parameter.opts[0], getattr(parameter, "rich_help_panel", None)
        is_known = panel and not getattr(parameter, "hidden", False)
        if is_known and option not in (OPTION, WRITE_OPTION, "--help-all"):
            section = str(panel).lower().replace(" ", "-")
            found[_Key(section, option.lstrip("-"))] = parameter
    return found


def _nearest(known: Mapping[_Key, Any], name: str, section: str = "") -> str:
    """Return which key was meant, as a sentence, or which sections there are."""
    names = {key.name: key for key in known}
    for key in known:  # the same section first
        if key.section == section:
            names[key.name] = key
    meant = difflib.get_close_matches(name.replace("_", "-"), names, n=1, cutoff=0.5)
    if meant:
        return f" Did you mean {names[meant[0]]}?"
    sections = dict.fromkeys(f"[{key.section}]" for key in known)
    return f" Sections are {', '.join(sections)}, their keys the options of --help."


def _meant(value: Any, key: _Key, parameter: Any, path: str) -> Any:
    """Return a value as the command line would have it: text, truth or a list of texts."""
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise _wrong(path, f"{key} must be true or false, got {value!r}.")
        return value
    if isinstance(value, list) and all(isinstance(entry, str | int | float) for entry in value):
        texts = [_filled(str(entry), key, path) for entry in value]
        return texts if parameter.multiple else listed(texts)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(path, f"{key} must be a text, a number or a list of texts, got {value!r}.")
    text = _filled(str(value), key, path)
    return [text] if getattr(parameter, "multiple", False) else text


def _filled(text: str, key: _Key, path: str) -> str:
    """Return a text with the environment's variables in the place of their names."""

    def value_of(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        if match[1] not in os.environ:
            raise _wrong(
                path,
                f"{key} asks for the environment variable {match[1]!r}, which is not set. Set it, "
                f"or write $${{{match[1]}}} for these very characters.",
            )
        return os.environ[match[1]]

    return _VARIABLE.sub(value_of, text)


def _escaped(text: str) -> str:
    """Return a text in which no variable will be looked for."""
    return _VARIABLE.sub(lambda match: f"${match[0]}", text)


def _wrong(path: str, why: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path}: {why.rstrip('.')}")
