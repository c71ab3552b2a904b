"""Arguments as a shell has them: how messages of the library read where it was called by a command.

The library writes ``bad_rows="skip"``, the command line ``--bad-rows skip``. Names are looked up in
the commands themselves, whose parameters are called as the library's arguments are.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from kmeander.exceptions import Style, in_python

# What a command does that Python has a function for: its option, by function and argument.
COMMAND_FOR = {("rho_for_half_life", "batches"): ("rho", "half_life")}


def in_shell(commands: Mapping[str, Any], at_hand: str) -> Style:
    """Return what writes arguments as options of the command at hand, to be pasted into a shell.

    Parameters
    ----------
    commands : mapping
        The commands of click, by name.
    at_hand : str
        The one that runs.
    """

    def write(name: str, value: Any = None, of: str | None = None) -> str:
        if of is not None:
            of, name = COMMAND_FOR.get((of, name), (of, name))
        option = _options(commands.get(of or at_hand)).get(name)
        if option is None:
            return in_python(name, value, of)
        words = [option] if of is None else ["kmeander", of, option]
        if value is not None and value is not True and value is not ...:
            text = listed(value) if isinstance(value, list | tuple) else str(value)
            words.append(shlex.quote(text))
        return " ".join(words)

    return write


def listed(names: Sequence[str]) -> str:
    """Return names with commas between, as a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _options(command: Any) -> dict[str, str]:
    """Return the option of each parameter of a command."""
    parameters = [] if command is None else command.params
    return {
        parameter.name: parameter.opts[0]
        for parameter in parameters
        if parameter.param_type_name == "option"
    }
