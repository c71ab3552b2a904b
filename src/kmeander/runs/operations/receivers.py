"""Receivers of events: an address that takes HTTP POST, a command that reads standard input."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kmeander.exceptions import ArgumentError, argument

# Given a notice, says why it was not taken; None where it was.
Deliver = Callable[[str], str | None]

# Seconds that a receiver may keep silent, and that a command may take.
SILENCE, COMMAND_TIME = 10.0, 60.0
MEDIA_TYPE = "application/cloudevents+json; charset=utf-8"


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: that would turn POST into GET, or send notices where nobody said."""

    def redirect_request(self, *_: Any) -> None:
        return None


def address_of(url: str) -> str:
    """Return a URL as messages show it: path and query may hold a secret.

    Examples
    --------
    >>> address_of("https://hooks.example.org:8443/T0/secret?key=1")
    'https://hooks.example.org:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def poster(url: str) -> Deliver:
    """Return what sends a notice to `url` by HTTP POST."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ArgumentError(
            f"{argument('notify')} must be an address such as https://host/path, without a user "
            "name in it: secrets go into path or query."
        )
    opener = build_opener(_NoRedirect)

    def deliver(notice: str) -> str | None:
        request = Request(
            url, notice.encode(), {"Content-Type": MEDIA_TYPE, "User-Agent": "kmeander"}
        )
        try:
            with opener.open(request, timeout=SILENCE):
                return None
        except HTTPError as error:
            with error:
                return f"it answered {error.code}"
        except (OSError, HTTPException) as error:
            return str(getattr(error, "reason", error)) or type(error).__name__

    return deliver


def runner(command: str) -> Deliver:
    """Return what starts `command` with a notice on its standard input."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ArgumentError(
            f"{argument('on_event', command)} cannot be started: a quotation mark or backslash "
            "lacks its other half."
        ) from error
    if not words or shutil.which(words[0]) is None:
        raise ArgumentError(
            f"{argument('on_event', command)} cannot be started: there is no program "
            f"{words[0] if words else ''!r}."
        )

    def deliver(notice: str) -> str | None:
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        ) as process:
            try:
                process.communicate(notice.encode() + b"\n", COMMAND_TIME)
            except subprocess.TimeoutExpired:
                _kill(process)
                return f"it took longer than {COMMAND_TIME:.0f} s"
        return None if process.returncode == 0 else f"it ended with {process.returncode}"

    return deliver


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it has started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
