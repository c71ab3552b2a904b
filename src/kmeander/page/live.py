"""The page while a run is going on: bokeh's server, on this machine only."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.layouts import row
from bokeh.models import CustomJS, Div, Slider, Toggle
from bokeh.server.server import Server
from jinja2 import Template

from kmeander.exceptions import InputError, argument
from kmeander.page.follower import Follower
from kmeander.page.layout import PAGE, Layout

ADDRESS = "127.0.0.1"
# Batches kept, and shown at first.
KEEP, SHOWN = 5000, 200
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

# The server is gone: look for it until it is back, then begin anew.
RECONNECT = """
const look = () => fetch(location.href, {cache: "no-store"})
  .then(() => location.reload()).catch(() => setTimeout(look, 1000));
setTimeout(look, 500);
"""


def serve(
    path: str | os.PathLike[str], port: int, ready: Callable[[str, Callable[[], None]], Any]
) -> None:
    """Show the run whose steps are written to `path` until the server is stopped.

    Parameters
    ----------
    path : path-like
    port : int
    ready : callable
        Once the server listens, given the address of the page and a function that ends it, which
        a signal handler may call.
    """
    with Follower(path, KEEP) as follower:
        hosts = [f"{host}:{port}" for host in (ADDRESS, "localhost")]
        application = Application(FunctionHandler(lambda document: _open(document, follower)))
        try:
            server = Server(
                {"/": application},
                address=ADDRESS,
                port=port,
                allow_websocket_origin=hosts,
                keep_alive_milliseconds=10_000,
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise InputError(
                f"port {port} is in use. Name another {argument('port')}, or close what uses it."
            ) from error
        server.start()
        loop = server.io_loop
        ready(f"http://{ADDRESS}:{port}/", lambda: loop.add_callback_from_signal(loop.stop))
        try:
            loop.start()
        finally:
            server.stop()


def _open(document: Document, follower: Follower) -> None:
    """Make the page that one browser sees."""
    document.title = "kmeander watch"
    document.template = TEMPLATE
    document.js_on_event("connection_lost", CustomJS(code=RECONNECT))
    if not follower.has_clusters:
        _wait(document, follower)
        return
    layout = Layout(follower.newest(SHOWN))
    pause = Toggle(label="Pause", width=90, stylesheets=[layout.style])
    window = Slider(
        start=20, end=KEEP, step=20, value=SHOWN, title="Batches shown", width=260,
        stylesheets=[layout.style],
    )  # fmt: skip
    status = Div(
        text="", disable_math=True, stylesheets=[layout.style], styles={"color": "#808890"}
    )
    document.add_root(layout.root(row(pause, window, status, styles={"flex-wrap": "wrap"})))
    document.js_on_event("document_ready", layout.theme)
    seen = {"version": follower.version, "shown": SHOWN}

    def tick() -> None:
        if follower.problem is not None and follower.problem != status.text:
            status.text = follower.problem
        now = {"version": follower.version, "shown": int(window.value)}
        if pause.active or now == seen:
            return
        seen.update(now)
        layout.update(follower.newest(now["shown"]))
        layout.refresh_axes()

    document.add_periodic_callback(tick, TICK)


def _wait(document: Document, follower: Follower) -> None:
    """Say that nothing is there yet, and begin anew as soon as something is."""
    text = Div(text="Waiting for the first batch ...", disable_math=True)
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
