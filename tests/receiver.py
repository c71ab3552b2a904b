"""A receiver of notices on 127.0.0.1 that takes them, hangs, answers 500 or hangs up."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TAKES, HANGS, FAILS, HANGS_UP, REDIRECTS = "takes", "hangs", "fails", "hangs up", "redirects"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Receiver:
    """Takes notices while `mode` says so; what it took is in `taken`, in order of arrival."""

    def __init__(self, mode: str = TAKES, port: int = 0) -> None:
        self.mode, self.taken = mode, list[dict[str, Any]]()
        self.n_refused = 0
        self.released = threading.Event()  # lets go of those who hang
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver._take(self, body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads, block_on_close = True, False

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def _take(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        if self.mode == HANGS:
            self.released.wait(60)
        if self.mode in (HANGS, HANGS_UP):
            self.n_refused += 1
            request.close_connection = True
            return
        if self.mode == TAKES:
            assert request.headers["Content-Type"].startswith("application/cloudevents+json")
            self.taken.append(json.loads(body))
        else:
            self.n_refused += 1
        request.send_response({TAKES: 204, FAILS: 500, REDIRECTS: 302}[self.mode])
        request.send_header("Location", "/elsewhere")
        request.end_headers()

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(one["source"], one["id"]) for one in list(self.taken)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
