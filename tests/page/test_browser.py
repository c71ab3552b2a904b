"""Report and live page in a real browser: what is shown, what is asked of the network."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kmeander.page.report import as_page
from kmeander.page.timeline import read_timeline
from tests.page.test_page import HOSTILE, write_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium"
)
# One browser for all, so one worker for all.
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser"), needs_browser]

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1",
]  # fmt: skip
IDLE = "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle"
BY_TYPE = "type => [...Bokeh.documents[0]._all_models.values()].filter(m => m.type === type)"


class Browser:
    """One page, and what it said and asked for."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.errors: list[str] = []
        self.addresses: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.addresses.append(request.url))
        self.page.on("websocket", lambda socket: self.addresses.append(socket.url))

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, however busy the machine is."""
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, "it did not happen"
            self.page.wait_for_timeout(20)

    def open(self, address: str) -> Any:
        self.page.goto(address)
        self.page.wait_for_function(IDLE, timeout=60_000)
        return self.page


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=ARGUMENTS
        )
        yield context
        context.close()


@pytest.fixture
def browser(context: Any) -> Iterator[Browser]:
    browser = Browser(context)
    yield browser
    browser.page.close()


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "steps.jsonl", HOSTILE)


def test_a_report_shows_the_runs_numbers_and_asks_nobody(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(as_page(read_timeline(steps)), encoding="utf-8")
    page = browser.open(file.as_uri())
    last = json.loads(steps.read_text().splitlines()[-1])
    assert page.get_by_text(f"{last['surrogate_error']:.6g}").count() == 1
    assert page.get_by_text("1,800").count() == 1  # rows
    errors = page.evaluate(
        f"({BY_TYPE})('ColumnDataSource').map(s => s.data.surrogate).filter(Boolean)[0].length"
    )
    assert errors == 30
    # Names of columns are text, not HTML.
    page.get_by_text("Settings and columns").click()
    assert page.get_by_text(HOSTILE[0]).count() >= 1
    assert page.evaluate("document.querySelectorAll('b').length") == 0
    assert browser.errors == []
    assert browser.addresses == [file.as_uri()]
    elsewhere = "fetch('http://rebound.example/').then(() => 'sent', () => 'refused')"
    assert page.evaluate(elsewhere) == "refused"
    assert "Content Security Policy" in browser.errors[0]


def test_slider_table_and_choice_change_what_is_shown(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(as_page(read_timeline(steps)), encoding="utf-8")
    page = browser.open(file.as_uri())
    assert page.get_by_text("Clusters at batch 29").count() == 1
    handle = page.locator(".noUi-handle").first
    handle.focus()  # by keyboard
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    shown = page.evaluate(
        f"({BY_TYPE})('ColumnDataSource').filter(s => s.data.frame && "
        "new Set(s.data.frame).size === 1).map(s => s.data.batch[0])[0]"
    )
    assert shown == 24
    first = page.locator(".slick-row").first
    batch = int(first.locator(".slick-cell").first.inner_text())
    first.click()
    start, end = page.evaluate(
        f"(() => {{ const t = ({BY_TYPE})('Range1d').find(x => x.start < x.end && x.end > 2); "
        "return [t.start, t.end]; })()"
    )
    assert start == batch - 10 and end == batch + 10
    table = f"({BY_TYPE})('DataTable')[0].source.data.kind"
    n_rows = page.evaluate(
        f"(() => {{ ({BY_TYPE})('MultiChoice')[0].value = ['moved']; "
        f"return {table}.filter(k => k === 'moved').length; }})()"
    )
    kinds = page.locator(".slick-row .slick-cell.r1")
    assert n_rows > 0
    browser.wait_until(lambda: set(kinds.all_inner_texts()) == {"moved"})
    assert browser.errors == []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Watch:
    """`kmeander watch` in a process of its own, and the address that it has said."""

    def __init__(self, steps: Path, port: int) -> None:
        command = [sys.executable, "-m", "kmeander", "watch", str(steps), "--port", str(port)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        found = re.search(rf"http://127\.0\.0\.1:{port}/[\w-]{{22}}/", said)
        assert found is not None, said
        self.port, self.address = port, found[0]

    @property
    def path(self) -> str:
        return self.address.split(str(self.port), 1)[1]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def growing(steps: Path, tmp_path: Path) -> Path:
    """A file that holds the first ten batches."""
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(steps.read_text().splitlines(keepends=True)[:10]))
    return path


@pytest.fixture
def live(growing: Path) -> Iterator[Watch]:
    watch = Watch(growing, free_port())
    yield watch
    watch.end()


NEWEST = (
    "(() => { if (!window.Bokeh || !Bokeh.documents.length) return -1; "
    f"const found = ({BY_TYPE})('ColumnDataSource').filter(s => s.data.surrogate)[0]; "
    "return found ? found.data.batch.slice(-1)[0] : -1; })()"
)


def test_the_live_page_receives_batches_pauses_and_goes_on(
    browser: Browser, growing: Path, live: Watch, steps: Path
) -> None:
    lines = steps.read_text().splitlines(keepends=True)
    page = browser.open(live.address)
    page.wait_for_function(f"{NEWEST} === 9", timeout=60_000)
    # Ten batches in a second: each is seen soon after it was written.
    delays = []
    for index in range(10, 20):
        begun = time.monotonic()
        with growing.open("a") as file:
            file.write(lines[index])
        page.wait_for_function(f"{NEWEST} === {index}", timeout=60_000, polling=10)
        delays.append(time.monotonic() - begun)
    assert sorted(delays)[5] < 1.0
    page.get_by_text("Pause").click()
    page.wait_for_timeout(300)
    with growing.open("a") as file:
        file.write(lines[20])
    page.wait_for_timeout(600)
    assert page.evaluate(NEWEST) == 19
    page.get_by_text("Pause").click()
    page.wait_for_function(f"{NEWEST} === 20", timeout=60_000)
    assert browser.errors == []
    here = f"127.0.0.1:{live.port}/"
    assert all(one.split("://")[1].startswith(here) for one in browser.addresses)


def test_what_was_seen_is_hidden_in_this_page_until_more_comes(
    browser: Browser, growing: Path, live: Watch, steps: Path
) -> None:
    lines = [json.loads(line) for line in steps.read_text().splitlines()]
    happened = [line["index"] for line in lines for _ in line["events"]]
    first, later = happened[0], next(index for index in happened if index > happened[0])
    growing.write_text("".join(json.dumps(line) + "\n" for line in lines[: first + 1]))
    page = browser.open(live.address)
    page.wait_for_function(f"{NEWEST} === {first}", timeout=60_000)
    rows = page.locator(".slick-row")
    rows.first.wait_for(timeout=60_000)
    page.get_by_text("Mark all as seen").click()
    page.get_by_text(f"Seen up to batch {first}: show all").wait_for(timeout=60_000)
    rows.first.wait_for(state="detached", timeout=60_000)
    with growing.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines[first + 1 : later + 1])
    page.wait_for_function(f"{NEWEST} === {later}", timeout=60_000)
    rows.first.wait_for(timeout=60_000)
    shown = page.locator(".slick-row .slick-cell.r0").all_inner_texts()
    assert set(shown) == {str(later)}
    page.get_by_text("show all").click()
    batches = page.locator(".slick-row .slick-cell.r0")
    browser.wait_until(lambda: str(first) in batches.all_inner_texts())
    page.reload()  # another reader has seen nothing
    page.get_by_text("Mark all as seen").wait_for(timeout=60_000)
    assert browser.errors == []


def test_an_open_page_says_that_another_server_has_another_address(
    browser: Browser, growing: Path, live: Watch
) -> None:
    page = browser.open(live.address)
    page.wait_for_function(f"{NEWEST} === 9", timeout=60_000)
    assert live.end() == 0
    again = Watch(growing, live.port)
    try:
        assert again.address != live.address
        page.get_by_text("open the address that it says now").wait_for(timeout=60_000)
        page.goto(again.address)
        page.wait_for_function(f"{NEWEST} === 9", timeout=60_000)
    finally:
        again.end()


def test_dns_rebinding_reads_nothing(browser: Browser, live: Watch) -> None:
    """A stranger's page, whose name has come to mean this machine, is answered nothing."""
    page = browser.page
    answer = page.goto(f"http://rebound.example:{live.port}{live.path}")
    assert answer.status == 403
    assert answer.text() == f"This page answers http://127.0.0.1:{live.port}/ alone.\n"
    fetched = page.evaluate("path => fetch(path).then(found => found.status)", live.path)
    assert fetched == 403
    opened = page.evaluate(
        "path => new Promise(end => { const one = new WebSocket(path, ['bokeh', 'x']);"
        " one.onopen = () => end('open'); one.onerror = () => end('refused'); })",
        f"ws://rebound.example:{live.port}{live.path}ws",
    )
    assert opened == "refused"


def test_whoever_does_not_know_the_token_reads_nothing(browser: Browser, live: Watch) -> None:
    for path in ("/", "/ws", "/static/js/bokeh.min.js", f"/{'x' * 22}/"):
        assert browser.page.goto(f"http://127.0.0.1:{live.port}{path}").status == 404


def test_no_page_frames_the_live_page(browser: Browser, live: Watch) -> None:
    browser.page.set_content(f'<iframe src="{live.address}"></iframe>')
    browser.wait_until(lambda: any("frame-ancestors" in error for error in browser.errors))
    framed = browser.page.frames[1]
    assert framed.evaluate("document.documentElement.innerHTML").count("Bokeh") == 0


def test_what_gets_into_the_live_page_is_not_run(browser: Browser, live: Watch) -> None:
    page = browser.open(live.address)
    page.wait_for_function(f"{NEWEST} === 9", timeout=60_000)
    headers = page.evaluate("fetch(location.href).then(found => [...found.headers])")
    policy = dict(headers)["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend',"
        ' \'<img src="data:," onerror="window.owned = true">\')'
    )
    browser.wait_until(lambda: any("Content Security Policy" in said for said in browser.errors))
    assert page.evaluate("window.owned") is None
    elsewhere = "fetch('http://rebound.example/').then(() => 'sent', () => 'refused')"
    assert page.evaluate(elsewhere) == "refused"


def test_what_is_wrong_with_a_file_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text('{"run": "<b>bold</b>"}\n')
    watch = Watch(path, free_port())
    try:
        page = browser.open(watch.address)
        page.get_by_text("must be an object, got '<b>bold</b>'").wait_for(timeout=60_000)
    finally:
        watch.end()


def test_the_server_listens_on_this_machine_only(live: Watch) -> None:
    listening = Path("/proc/net/tcp").read_text()
    here = f"0100007F:{live.port:04X}"
    assert here in listening and f"00000000:{live.port:04X}" not in listening


def test_closing_the_page_never_disturbs_the_run(tmp_path: Path) -> None:
    """With a page beside it, which ends whenever the run does, a run writes the same bytes."""
    rows = "".join(f"{i % 7},{i % 5}\n" for i in range(4000))
    (tmp_path / "rows.csv").write_text("a,b\n" + rows)
    outputs = []
    for watch in ([], ["--watch"]):
        done = subprocess.run(
            [sys.executable, "-m", "kmeander", "run", "rows.csv", "--clusters", "3",
             "--steps", "steps.jsonl", *watch],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append((tmp_path / "steps.jsonl").read_bytes())
    assert outputs[0] == outputs[1]
