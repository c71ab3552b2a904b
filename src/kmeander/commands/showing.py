"""How a run looks while it runs: a screen on a terminal, now and then a line otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from kmeander.commands.progress import lines

if TYPE_CHECKING:
    from kmeander.runs.records import Progress


class Shows(NamedTuple):
    """What shows how a run gets on."""

    progress: Callable[[Progress], None] | None
    first_rows: Callable[[int], None] | None = None


def show_progress(stack: ExitStack, *, quiet: bool, log: str | None = None) -> Shows:
    """Return what shows progress on stderr, or nothing where nobody wants to see it."""
    if quiet:
        return Shows(None)
    return live_screen(stack) if sys.stderr.isatty() and log is None else Shows(lines())


def live_screen(stack: ExitStack) -> Shows:
    """Return what shows progress on a terminal, in lines that change."""
    from rich.console import Console
    from rich.live import Live

    from kmeander.commands.live_screen import LiveScreen

    console = Console(stderr=True)
    screen = LiveScreen()
    live = Live(
        get_renderable=screen.now,
        console=console,
        transient=True,
        refresh_per_second=8,
        redirect_stdout=False,
    )
    stack.enter_context(live)

    def show(progress: Progress) -> None:
        line = screen.take(progress)
        if line is not None:
            console.print(line)  # stays, above the lines that change

    return Shows(show, screen.begin)
