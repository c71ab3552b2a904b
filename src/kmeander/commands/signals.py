"""Ctrl-C and kill: the first asks a run to stop, the second ends it at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kmeander.commands.words import say

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def stop_on_signals(*, quiet: bool) -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set; the second one ends the process there and then.

    Whatever was committed before stays good: the next run goes on from there.
    """
    import pyarrow as pa

    stop = threading.Event()
    pa.enable_signal_handlers(False)  # else a signal ends whatever pyarrow is reading with an error

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a handler's signature
        if stop.is_set():
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), _SHOW_CURSOR + b"\n")
            os._exit(128 + number)
        stop.set()
        if not quiet:
            say("Stopping after this batch. Once more stops at once.")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
