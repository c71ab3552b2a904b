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

from kmeander.page.follower import Follower
from kmeander.page.live import _clock
from kmeander.page.report import as_page
from kmeander.page.status import status_of
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
    assert page.locator("dd", has_text="1,800").count() == 1  # rows
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


def opened(browser: Browser, steps: Path, folder: Path) -> Any:
    """Open the report of `steps`."""
    file = folder / "report.html"
    file.write_text(as_page(read_timeline(steps)), encoding="utf-8")
    page = browser.open(file.as_uri())
    page.locator("ol.events li").first.wait_for(timeout=60_000)
    return page


def test_the_newest_event_stands_first_and_its_sentence_is_whole(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    page = opened(browser, steps, tmp_path)
    timeline = read_timeline(steps)
    batches = page.locator("ol.events button").all_inner_texts()
    numbers = [int(re.findall(r"\d+", said)[0]) for said in batches]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == len(timeline.events)
    shown = page.locator("ol.events li").all_inner_texts()
    newest = [one for one in timeline.events if one.batch == numbers[0]]
    for item, one in zip(shown, newest, strict=False):
        assert f"{one.words[0].upper()}{one.words[1:]}." in item
    longest = page.locator("ol.events li div").evaluate_all(
        "found => found.every(one => one.scrollWidth <= one.clientWidth + 1)"
    )
    assert longest  # wrapped, not cut
    assert browser.errors == []


def test_an_event_is_chosen_by_keyboard_and_zooms_the_plots(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    page = opened(browser, steps, tmp_path)
    button = page.locator("ol.events button").first
    batch = int(re.findall(r"\d+", button.inner_text())[0])
    shown = (
        f"(() => {{ const t = ({BY_TYPE})('Range1d').find(x => x.start < x.end && x.end > 2); "
        "return [t.start, t.end]; })()"
    )
    whole = page.evaluate(shown)
    button.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(shown) == [batch - 10, batch + 10]
    assert button.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    assert page.evaluate(shown) == whole
    assert button.get_attribute("aria-pressed") == "false"
    assert browser.errors == []


def test_events_are_filtered_by_kind_and_by_cluster(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    page = opened(browser, steps, tmp_path)
    events = [one.event for one in read_timeline(steps).events]
    items = page.locator("ol.events li")
    n_drifts = sum(event.kind == "drift" for event in events)
    kinds = page.get_by_label("Kind of event")
    kinds.select_option(label=f"drift ({n_drifts})")
    browser.wait_until(lambda: items.count() == n_drifts)
    assert all("drift" in said for said in items.all_inner_texts())
    kinds.select_option(label="all kinds")
    cluster = next(event.cluster for event in events if event.cluster is not None)
    page.get_by_label("Cluster", exact=True).select_option(label=f"cluster {cluster}")
    about = sum(cluster in (event.cluster, event.other) for event in events)
    browser.wait_until(lambda: items.count() == about)
    kinds.select_option(label=f"drift ({n_drifts})")
    page.get_by_text("Nothing that is chosen has happened.").wait_for(timeout=60_000)
    assert browser.errors == []


def test_a_column_is_drawn_for_each_cluster(browser: Browser, steps: Path, tmp_path: Path) -> None:
    page = opened(browser, steps, tmp_path)
    drawn = (
        f"(() => {{ const line = ({BY_TYPE})('GlyphRenderer').find(r => r.glyph.type === "
        "'MultiLine' && 'y0' in r.data_source.data); const name = line.glyph.ys.field; "
        "return line.data_source.data[name].map(ys => [...ys].at(-1)); })()"
    )
    last = json.loads(steps.read_text().splitlines()[-1])
    for place, name in enumerate(HOSTILE):
        page.get_by_label("Column", exact=True).select_option(name)
        page.wait_for_timeout(50)
        ends = {round(value, 3) for value in page.evaluate(drawn)}
        assert {round(row[place], 3) for row in last["centroids"]} <= ends
    assert browser.errors == []


def test_the_slider_shows_where_clusters_were(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    page = opened(browser, steps, tmp_path)
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
    assert browser.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_a_report_answers_first_and_fits_every_screen(
    width: int, scheme: str, browser: Browser, steps: Path, tmp_path: Path
) -> None:
    browser.page.set_viewport_size({"width": width, "height": 844})
    browser.page.emulate_media(color_scheme=scheme)
    page = opened(browser, steps, tmp_path)
    status = status_of(read_timeline(steps))
    box = page.get_by_role("region", name="Status")
    assert status.headline in box.inner_text() and status.sentences[0] in box.inner_text()
    headline = box.get_by_role("heading").bounding_box()
    assert headline is not None and headline["y"] + headline["height"] < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # What is read first needs no scrolling; then come the events, then the clusters.
    places = [
        page.get_by_role("heading", name=name).bounding_box()
        for name in ("What happened", "Clusters now", "In numbers")
    ]
    tops = [place["y"] for place in places if place is not None]
    assert len(tops) == 3 and tops[0] <= tops[1] < tops[2]
    assert (tops[0] == pytest.approx(tops[1], abs=12)) is (width > 1000)
    for locator in (box, page.locator("ol.events").first, page.locator("table").first):
        assert contrast_of(locator) >= 4.5
    assert browser.errors == []


def contrast_of(locator: Any) -> float:
    """Return the contrast of text and ground, as WCAG defines it."""
    ink, ground = locator.evaluate(
        """one => {
          const found = [getComputedStyle(one).color];
          for (let at = one; at; at = at.parentNode ?? at.host) {
            const color = at instanceof Element ? getComputedStyle(at).backgroundColor : "";
            if (color && color !== "rgba(0, 0, 0, 0)") { found.push(color); break; }
          }
          return found;
        }"""
    )

    def light(color: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted([light(ink), light(ground)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_reader_of_screens_finds_roles_names_and_hints(
    browser: Browser, steps: Path, tmp_path: Path
) -> None:
    page = opened(browser, steps, tmp_path)
    assert page.get_by_role("status").count() >= 1  # the status, told when it changes
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("table").get_by_role("rowheader").count() == 4
    assert page.get_by_role("columnheader", name="what sets it apart").count() == 1
    for name in ("Errors over time", "Shares of the clusters over time", "From when to when"):
        assert page.get_by_role("img", name=re.compile(name)).count() == 1
    term = page.locator(".term", has_text="window error")
    hint = page.get_by_role("tooltip", name=re.compile("surrogate error"))
    assert not page.locator(".hint", has_text="surrogate error").is_visible()
    term.focus()  # by keyboard, as by mouse
    assert page.locator(".hint", has_text="surrogate error").is_visible()
    assert hint.count() == 1
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
    rows = page.locator("ol.events li")
    rows.first.wait_for(timeout=60_000)
    page.get_by_text("Mark all as seen").click()
    page.get_by_text(f"Seen up to batch {first}: show all").wait_for(timeout=60_000)
    rows.first.wait_for(state="detached", timeout=60_000)
    with growing.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines[first + 1 : later + 1])
    page.wait_for_function(f"{NEWEST} === {later}", timeout=60_000)
    rows.first.wait_for(timeout=60_000)
    batches = page.locator("ol.events button")
    assert {said.strip() for said in batches.all_inner_texts()} == {f"batch {later}"}
    page.get_by_text("show all").click()
    browser.wait_until(lambda: f"batch {first}" in batches.all_inner_texts())
    page.reload()  # another reader has seen nothing
    page.get_by_text("Mark all as seen").wait_for(timeout=60_000)
    assert browser.errors == []


def test_the_live_page_says_when_the_last_batch_came_and_that_a_run_stands_still(
    browser: Browser, growing: Path, live: Watch, steps: Path
) -> None:
    page = browser.open(live.address)
    page.wait_for_function(f"{NEWEST} === 9", timeout=60_000)
    clock = page.locator(".clock")
    assert re.fullmatch(r"Last batch (\d+ s|less than a second|\d+ min) ago\.", clock.inner_text())
    before = clock.inner_text()
    browser.wait_until(lambda: clock.inner_text() != before)
    with Follower(growing, 10) as follower:
        for number in range(10, 15):
            with growing.open("a") as file:
                file.write(steps.read_text().splitlines(keepends=True)[number])
            deadline = time.monotonic() + 20
            while follower.newest(1).n_batches != number + 1 and time.monotonic() < deadline:
                time.sleep(0.01)
        assert "Last batch" in _clock(follower) and follower.usual_pause() is not None
        assert follower.read_at is not None
        follower.read_at -= 3600.0
        assert 'class="clock late">Stalled: no batch for 60 min; usually one comes every' in (
            _clock(follower)
        )
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
