"""--help that fits a screen: the commonest options by groups; --help-all explains all of them."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Any

import typer
from typer.core import TyperCommand

# The options that --help explains, by parameter; the others of their groups are named.
COMMON = {
    "n_clusters", "half_life", "batch_size", "time_column", "every", "columns", "id_column",
    "text_column", "steps", "assignments", "report", "checkpoint", "watch", "notify", "follow",
}  # fmt: skip
WIDEST = 100
_ALL = "kmeander.help_all"


def show_all(context: typer.Context, wanted: bool) -> None:
    """Show every option and end."""
    if wanted:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


class ShortHelp(TyperCommand):
    """A command whose --help fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write what --help shows, or, where that is asked for, what --help-all does."""
        if ctx.meta.get(_ALL):
            super().format_help(ctx, formatter)
            return
        width = min(WIDEST, shutil.get_terminal_size().columns)
        formatter.write("\n".join(_lines(self, ctx, width)))


def _lines(command: TyperCommand, context: Any, width: int) -> list[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one
        for one in command.params
        if one.param_type_name == "option" and not getattr(one, "hidden", False)
    ]
    names = " ".join(str(one.name).upper() for one in arguments)
    lines = [f"Usage: {context.command_path} {names} [OPTIONS]", ""]
    for paragraph in (command.help or "").split("\n\n"):
        said = " ".join(paragraph.split())
        lines += [said] if said.startswith("Example: ") else textwrap.wrap(said, width)
    for argument in arguments:
        said = f"{str(argument.name).upper()}: {getattr(argument, 'help', '')}"
        lines += textwrap.wrap(said, width, subsequent_indent="  ")
    groups: dict[str, list[Any]] = {}
    for option in options:
        groups.setdefault(getattr(option, "rich_help_panel", None) or "", []).append(option)
    wide = max(len(_spelt(option)) for option in options if option.name in COMMON) + 4
    for group, members in groups.items():
        if group in ("", "Help"):
            continue
        others = ", ".join(one.opts[0] for one in members if one.name not in COMMON)
        lines += textwrap.wrap(
            f"{group}{others and f' (also {others})'}:", width,
            subsequent_indent="  ", break_on_hyphens=False,
        )  # fmt: skip
        lines += [
            f"  {_spelt(option)}".ljust(wide) + first_clauses(str(option.help), width - wide)
            for option in members
            if option.name in COMMON
        ]
    return [*lines, "", f"{context.command_path} --help-all explains every option.", ""]


def first_clauses(text: str, width: int) -> str:
    """Return as many clauses of a sentence as fit into a line, or the first.

    Examples
    --------
    >>> first_clauses("Steps, one a line (default stdout, unless it is a terminal).", 40)
    'Steps, one a line'
    >>> first_clauses("Wait for more.", 40)
    'Wait for more'
    """
    # A list in brackets, or after a colon, stays whole or goes.
    apart = re.search(r" \(|: ", text)
    limit = len(text) if apart is None else apart.start()
    ends = [found.start() for found in re.finditer(r" \(|[:;,] |\.$", text)]
    ends = [end for end in ends if end <= limit or text[end] in ";."]
    fitting = [end for end in ends if end <= width]
    return text[: (fitting or ends or [len(text)])[-1 if fitting else 0]]


def _spelt(option: Any) -> str:
    """Return an option with what it takes, where that is one word."""
    metavar = getattr(option, "metavar", None) or ""
    return f"{option.opts[0]} {metavar}" if metavar.isalpha() else str(option.opts[0])
