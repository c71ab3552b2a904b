"""Answers GET /metrics and GET /health while a run goes on, from a thread of its own."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kmeander.exceptions import ArgumentError, StreamError, argument
from kmeander.runs.operations.activity import STALLED, Snapshot
from kmeander.runs.operations.metrics import need_prometheus, registry_of

HOST = "127.0.0.1"
# Seconds that a client may take for its request.
PATIENCE = 10.0
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):)?(?P<port>\d{1,5})")


def parse_address(address: str | int) -> tuple[str, int]:
    """Return host and port of `PORT` or `HOST:PORT`.

    Examples
    --------
    >>> parse_address("9464"), parse_address("0.0.0.0:9464"), parse_address("[::1]:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464), ('::1', 9464))
    """
    found = _ADDRESS.fullmatch(str(address))
    if found is None or int(found["port"]) > 65535:
        raise ArgumentError(
            f"{argument('metrics')} must be a port, or host:port such as 127.0.0.1:9464, got "
            f"{address!r}."
        )
    return (found["host"] or HOST).strip("[]"), int(found["port"])


@contextmanager
def listening(
    address: str | int, look: Callable[[], Snapshot], ready: Callable[[str], None]
) -> Iterator[None]:
    """Serve the metrics and the health of what `look` returns.

    Parameters
    ----------
    address : str or int
        Port 0 takes any that is free.
    look : callable
        Returns the run at this moment; called in the thread of the request.
    ready : callable
        Told where it listens.
    """
    host, port = parse_address(address)
    need_prometheus()
    try:
        server = _server((host, port), look)
    except OSError as error:
        raise StreamError(
            f"{argument('metrics', str(address))} cannot be listened at: "
            f"{error.strerror or error}. Name another address."
        ) from error
    shown = f"[{host}]" if ":" in host else host
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="kmeander-metrics",
        daemon=True,
    )  # fmt: skip
    thread.start()
    ready(f"Metrics at http://{shown}:{server.server_address[1]}/metrics, health at /health.")
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _server(at: tuple[str, int], look: Callable[[], Snapshot]) -> ThreadingHTTPServer:
    from prometheus_client.exposition import choose_encoder

    registry = registry_of(look)

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "kmeander", ""
        timeout = PATIENCE

        def do_GET(self) -> None:  # the base class' name
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._answer(200, kind, encode(registry))
            elif path == "/health":
                code, body = _health(look())
                self._answer(code, "application/json", body)
            else:
                self._answer(404, "text/plain", b"There are /metrics and /health.\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: a scrape every few seconds is no news."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
        daemon_threads = True
        block_on_close = False  # a client that hangs does not keep the run from ending

        def handle_error(self, *_: object) -> None:
            """Leave a client that went away to itself."""

    return Server(at, Handler)


def _health(snapshot: Snapshot) -> tuple[int, bytes]:
    """Return code and body: 503 while the run is stalled."""
    last = snapshot.last
    said = {
        "status": snapshot.status,
        "n_batches": snapshot.n_batches,
        "newest_batch": None if last is None else last.index,
        "last_time": None if last is None else last.last_time,
        "checkpoint_age": snapshot.checkpoint_age,
    }
    return 503 if snapshot.status == STALLED else 200, json.dumps(said).encode() + b"\n"
