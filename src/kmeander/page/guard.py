"""Who may read the live page: programs of this machine that know its address, no page of others.

A site that a browser has open can point its own name at 127.0.0.1 (DNS rebinding) and then read
what answers there. So only requests to this machine's own names are answered, every address begins
with a token that is drawn at each start, and responses say that nothing but the page itself may run
in it, frame it or hear from it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets

from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.routing import AnyMatches, HostMatches, Rule, RuleRouter
from tornado.web import Application, OutputTransform

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
_SCRIPT = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.S)


def new_token() -> str:
    """Return what the page's address begins with until the server ends."""
    return secrets.token_urlsafe(16)


def guarded(application: Application, port: int) -> RuleRouter:
    """Return `application` for requests to this machine's names, and a refusal for all others."""

    def refuse(request: HTTPServerRequest) -> None:
        body = f"This page answers http://{ADDRESS}:{port}/ alone.\n".encode()
        headers = HTTPHeaders({"Content-Type": "text/plain", "Content-Length": str(len(body))})
        assert request.connection is not None
        request.connection.write_headers(
            ResponseStartLine("HTTP/1.1", 403, "Forbidden"), headers, body
        )
        request.connection.finish()

    application.transforms.append(_with_policy(port))
    ours = HostMatches(f"({'|'.join(map(re.escape, NAMES))})")
    return RuleRouter([Rule(ours, application), Rule(AnyMatches(), refuse)])


def _with_policy(port: int) -> type[OutputTransform]:
    """Return what adds to every response who may use it, and for what."""
    sockets = " ".join(f"ws://{name}:{port}" for name in NAMES)

    class WithPolicy(OutputTransform):
        def transform_first_chunk(
            self,
            status_code: int,
            headers: HTTPHeaders,
            chunk: bytes,
            finishing: bool,  # noqa: ARG002  # tornado's signature
        ) -> tuple[int, HTTPHeaders, bytes]:
            headers["Content-Security-Policy"] = _policy(chunk, headers, sockets)
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers["Referrer-Policy"] = "no-referrer"  # the address is a secret
            headers["X-Content-Type-Options"] = "nosniff"
            headers["X-Frame-Options"] = "DENY"
            return status_code, headers, chunk

    return WithPolicy


def _policy(chunk: bytes, headers: HTTPHeaders, sockets: str) -> str:
    """Return the policy of a response: of a page's own scripts only those that it came with run.

    They hold no text of the stream, which comes by the socket: what it might smuggle into the
    document is not run. Bokeh makes functions of text, hence 'unsafe-eval', and styles.
    """
    scripts = ["'self'", "'unsafe-eval'"]
    if headers.get("Content-Type", "").startswith("text/html"):
        headers["Cache-Control"] = "no-store"
        for script in _SCRIPT.findall(chunk):
            digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
            scripts.append(f"'sha256-{digest}'")
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(scripts)}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' {sockets}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
