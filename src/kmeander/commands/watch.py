"""``kmeander watch``: the page of a run, while it is going on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.commands.words import say
from kmeander.exceptions import InputError, argument
from kmeander.page import need_bokeh
from kmeander.storage.filesystem import is_address

if TYPE_CHECKING:
    from kmeander.page.follower import Follower
    from kmeander.runs.operations.activity import Snapshot

PORT = 5006


def watch(
    steps: Annotated[str, typer.Argument(help="What kmeander run --steps writes.")],
    port: Annotated[int, typer.Option(help="On 127.0.0.1.", min=1, max=65535)] = PORT,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the page in a browser, too.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT|HOST:PORT",
            help="Serve /metrics and /health of the run, too, on 127.0.0.1 unless it says more.",
        ),
    ] = None,
) -> None:
    """Show a run live in the browser; open it, close it, the run does not notice.

    Only this machine can see the page (127.0.0.1), at an address that is new at each start. From
    elsewhere, dig a tunnel: ssh -L 5006:127.0.0.1:5006 HOST, and open the same address there.

    Example: kmeander watch steps.jsonl
    """
    _check(steps)
    need_bokeh()
    from kmeander.page.live import serve

    def ready(address: str, end: Callable[[], None]) -> None:
        say(f"{steps} at {address} (Ctrl-C ends).")
        signal.signal(signal.SIGTERM, lambda *_: end())
        if browser:
            webbrowser.open(address)

    def around(follower: Follower) -> AbstractContextManager[None]:
        from kmeander.runs.operations.listener import listening

        return nullcontext() if metrics is None else listening(metrics, _look(follower), say)

    try:
        serve(steps, port, ready, around)
    except KeyboardInterrupt:
        say("Closed.")


def _look(follower: Follower) -> Callable[[], Snapshot]:
    """Return what tells how the run is getting on, as far as its steps file says."""
    from kmeander.runs.operations.activity import LEARNING, LONG, WAITING, Snapshot

    def look() -> Snapshot:
        timeline, read_at = follower.newest(1), follower.read_at
        is_new = read_at is not None and time.monotonic() - read_at < LONG
        return Snapshot(
            LEARNING if is_new else WAITING,
            timeline.n_batches,
            timeline.n_points,
            timeline.counts,
            timeline.n_unconfirmed,
            timeline.last,
        )

    return look


def _check(steps: str) -> None:
    if is_address(steps):
        raise InputError(
            f"{steps} cannot be watched: an object of a store never grows. Write "
            f"{argument('steps', of='run')} to a file of this machine, or make a report."
        )


@contextmanager
def watched(steps: str) -> Iterator[None]:
    """Show the page in a process of its own, so that nothing there can disturb the run."""
    _check(steps)
    need_bokeh()
    command = [sys.executable, "-m", "kmeander", "watch", steps, "--port", str(PORT)]
    page = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C ends the run, which then closes the page
    )
    try:
        yield
        if sys.stderr.isatty() and sys.stdin.isatty() and page.poll() is None:
            say("The run has ended; the page stays open until Enter is pressed.")
            sys.stdin.readline()
    finally:
        page.terminate()
        page.wait()
