"""A run as a service of systemd: says that it is ready, and while it gets on that it is alive.

systemd names a socket in NOTIFY_SOCKET, and in WATCHDOG_USEC how long it waits for a sign of life
(sd_notify(3), sd_watchdog_enabled(3)). Elsewhere nothing of this happens.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kmeander.runs.records import Progress

# Signs of life in the time that systemd waits for one.
SIGNS = 3

Shows = Callable[["Progress"], None]


class Service:
    """What is known of a run that is to show signs of life."""

    def __init__(self) -> None:
        self._status: Callable[[], str] | None = None

    def heard_by(self, show: Shows | None) -> Shows:
        """Return what hears of progress, beside `show`."""

        def hear(progress: Progress) -> None:
            self._status = progress.status
            if show is not None:
                show(progress)

        return hear

    def is_alive(self) -> bool:
        """Whether the run gets on, or waits for rows, as far as is known."""
        return self._status is None or self._status() != "stalled"


@contextmanager
def service_of_systemd() -> Iterator[Service | None]:
    """Say that the run begins, show signs of life while it is alive, say that it ends.

    Yields None where the program is not a service of systemd's that asks for it.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        yield None
        return
    service, over = Service(), threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd:
        # An address that begins with @ is one of Linux' own, outside of all folders.
        to_systemd.connect(address.replace("@", "\0", 1) if address[0] == "@" else address)
        to_systemd.setblocking(False)

        def send(word: str) -> None:
            with suppress(OSError):  # systemd decides what silence means
                to_systemd.send(word.encode())

        def live() -> None:
            while not over.wait(_seconds() / SIGNS):
                if service.is_alive():
                    send("WATCHDOG=1")

        send("READY=1")
        signs = threading.Thread(target=live, name="kmeander-watchdog", daemon=True)
        if _seconds():
            signs.start()
        try:
            yield service
        finally:
            over.set()
            if signs.is_alive():
                signs.join()
            send("STOPPING=1")


def _seconds() -> float:
    """Return how long systemd waits for a sign of life; 0 where it waits for none of this one."""
    given, whose = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not given.isdecimal() or whose not in (None, "", str(os.getpid())):
        return 0.0
    return int(given) / 1e6
