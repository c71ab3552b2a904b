"""The page while a run is going on: bokeh's server, on this machine only, behind `guard`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.layouts import row
from bokeh.models import CustomJS, Div, Slider, Toggle
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from jinja2 import Template
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from kmeander.exceptions import InputError, argument
from kmeander.page.follower import Follower
from kmeander.page.guard import ADDRESS, NAMES, guarded, new_token
from kmeander.page.in_browser import PAGE
from kmeander.page.layout import Layout

# Batches kept, and shown at first.
KEEP, SHOWN = 5000, 200
# Seconds without a batch, at least, before a run counts as stalled.
STALLED = 30.0
# Milliseconds between two looks at what is new.
TICK = 75

TEMPLATE = Template(
    """
{% extends base %}
{% block preamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""
    + PAGE
    + """
{% endblock %}
"""
)

# The server is gone: look for it until it is back. Another one has another address.
RECONNECT = """
const begin_anew = (found) => {
  if (found.ok) location.reload();
  else status.text = "kmeander watch has begun anew: open the address that it says now.";
};
const look = () => fetch(location.href, {cache: "no-store"})
  .then(begin_anew).catch(() => setTimeout(look, 1000));
setTimeout(look, 500);
"""


def serve(
    path: str | os.PathLike[str],
    port: int,
    ready: Callable[[str, Callable[[], None]], Any],
    around: Callable[[Follower], AbstractContextManager[None]],
) -> None:
    """Show the run whose steps are written to `path` until the server is stopped.

    Parameters
    ----------
    path : path-like
    port : int
    ready : callable
        Once the server listens, given the address of the page and a function that ends it, which
        a signal handler may call.
    around : callable
        Given what follows the file, returns what is open for as long as the page is.
    """
    with Follower(path, KEEP) as follower, around(follower):
        try:
            sockets = bind_sockets(port, ADDRESS)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise InputError(
                f"port {port} is in use. Name another {argument('port')}, or close what uses it."
            ) from error
        token = new_token()
        application = BokehTornado(
            Application(FunctionHandler(lambda document: _open(document, follower))),
            prefix=token,
            extra_websocket_origins=[f"{name}:{port}" for name in NAMES],
            keep_alive_milliseconds=10_000,
        )
        http = HTTPServer(guarded(application, port))
        http.add_sockets(sockets)
        loop = IOLoop.current()
        server = BaseServer(loop, application, http)
        server.start()
        ready(f"http://{ADDRESS}:{port}/{token}/", lambda: loop.add_callback_from_signal(loop.stop))
        try:
            loop.start()
        finally:
            server.stop()


def _open(document: Document, follower: Follower) -> None:
    """Make the page that one browser sees."""
    document.title = "kmeander watch"
    document.template = TEMPLATE
    # What it says may quote the file: it is text, not HTML.
    status = Div(text="", disable_math=True, render_as_text=True)
    document.js_on_event("connection_lost", CustomJS(args={"status": status}, code=RECONNECT))
    if not follower.has_clusters:
        _wait(document, follower, status)
        return
    version = follower.version  # before it is read: what comes meanwhile must not be missed
    layout = Layout(follower.newest(SHOWN), is_live=True)
    clock = Div(
        text=_clock(follower), disable_math=True, stylesheets=layout.head.stylesheets,
        sizing_mode="stretch_width",
    )  # fmt: skip
    status.update(stylesheets=[layout.style], styles={"color": "#b04a00"})
    pause = Toggle(label="Pause", width=90, stylesheets=[layout.style])
    window = Slider(
        start=20, end=KEEP, step=20, value=SHOWN, title="Batches shown", width=260,
        stylesheets=[layout.style],
    )  # fmt: skip
    document.add_root(layout.root(clock, row(pause, window, status, styles={"flex-wrap": "wrap"})))
    layout.begin(document)
    seen = {"version": version, "shown": SHOWN, "column": layout.column.value}

    def tick() -> None:
        if follower.problem is not None and follower.problem != status.text:
            status.text = follower.problem
        if clock.text != (said := _clock(follower)):
            clock.text = said
        now = {
            "version": follower.version,
            "shown": int(window.value),
            "column": layout.column.value,
        }
        if pause.active or now == seen:
            return
        seen.update(now)
        layout.update(follower.newest(int(window.value)))
        layout.refresh_axes()

    document.add_periodic_callback(tick, TICK)


def _clock(follower: Follower) -> str:
    """Return when the last batch came, and whether the run stands still."""
    age, usual = follower.age(), follower.usual_pause()
    if age is None:
        return ""
    said = f"Last batch {_span(age)} ago."
    if usual is not None and age > max(STALLED, 5 * usual):
        said = (
            f"Stalled: no batch for {_span(age)}; usually one comes every {_span(usual)}. Is the "
            "run still going on, and its source?"
        )
        return f'<p class="clock late">{said}</p>'
    return f'<p class="clock">{said}</p>'


def _span(seconds: float) -> str:
    """Return a time span in words.

    Examples
    --------
    >>> _span(3.2), _span(125), _span(7300), _span(0.2), _span(200_000)
    ('3 s', '2 min', '2 h', 'less than a second', '2 days')
    """
    if seconds < 1:
        return "less than a second"
    for unit, least in (("days", 2 * 86400), ("h", 7200), ("min", 120)):
        if seconds >= least:
            return f"{seconds / {'days': 86400, 'h': 3600, 'min': 60}[unit]:.0f} {unit}"
    return f"{seconds:.0f} s"


def _wait(document: Document, follower: Follower, text: Div) -> None:
    """Say that nothing is there yet, and begin anew as soon as something is."""
    text.text = "Waiting for the first batch ..."
    text.js_on_change("name", CustomJS(code="location.reload()"))
    # The first batch may come before the browser has got this page: then nothing changes there.
    begin_anew = CustomJS(args={"text": text}, code="if (text.name) location.reload()")
    document.js_on_event("document_ready", begin_anew)
    document.add_root(text)

    def tick() -> None:
        if follower.problem is not None and text.text != follower.problem:
            text.text = follower.problem
        if follower.has_clusters and text.name is None:
            text.name = "ready"

    document.add_periodic_callback(tick, TICK)
