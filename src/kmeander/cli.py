"""The command line: its verbs, and how it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

from kmeander.exceptions import ArgumentError, KmeanderError, arguments_written_by

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(f"kmeander: the command line needs {error.name}: pip install 'kmeander[cli]'")

from kmeander.commands.check import check
from kmeander.commands.experiment import experiment
from kmeander.commands.predict import predict
from kmeander.commands.report import report
from kmeander.commands.rho import rho
from kmeander.commands.run import run
from kmeander.commands.shell import in_shell
from kmeander.commands.short_help import ShortHelp
from kmeander.commands.simulate import simulate
from kmeander.commands.watch import watch
from kmeander.commands.words import say

app = typer.Typer(
    name="kmeander",
    help="K-means for data streams that change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from kmeander import __version__

        print(f"kmeander {__version__}")
        raise typer.Exit


@app.callback()
def group(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback has seen it
        bool, typer.Option("--version", callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """K-means for data streams that change: forgets the past, keeps cluster ids."""
    style = in_shell(context.command.commands, context.invoked_subcommand or "")  # type: ignore[attr-defined]  # a group's
    context.with_resource(arguments_written_by(style))


for verb in (run, check, predict, report, watch, rho, simulate, experiment):
    app.command(cls=ShortHelp if verb is run else None)(verb)


def main() -> None:
    """Entry point: a KmeanderError is one line and exit code 1, wrong usage 2."""
    if sys.stderr is None:  # closed, as some that start programs leave it
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # until the program ends
    try:
        app()
    except ArgumentError as error:
        _end(error, 2)
    except KmeanderError as error:
        _end(error, 1)
    except OSError as error:  # a full disk, a device that is gone; click has seen to closed pipes
        _end(error, 1)


def _end(error: Exception, code: int) -> NoReturn:
    say(f"kmeander {' '.join(sys.argv[1:2])}: {error}", "error")
    sys.exit(code)
