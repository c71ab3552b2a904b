"""Notices of events: each arrives, in order, whatever receivers do, and nothing waits for them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kmeander import CheckpointError, InputError, Step, run
from kmeander.runs.operations import notices as notices_module
from kmeander.runs.operations import receivers
from kmeander.runs.operations.activity import Deliveries
from kmeander.runs.operations.outbox import MOST, Outbox
from kmeander.sinks import read_steps
from kmeander.storage import checkpoint as checkpoint_file
from tests.program import PROGRAM, kmeander
from tests.receiver import FAILS, HANGS, HANGS_UP, REDIRECTS, TAKES, Receiver, free_port
from tests.streams import drifting_stream

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own

KINDS = ["drift", "moved", "grew", "shrank"]


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """40 batches of 25 rows, whose clusters jump at every twelfth."""
    path = tmp_path / "readings.csv"
    rows = np.concatenate(drifting_stream(10, n_points=100, n_features=2, n_clusters=3))
    np.savetxt(path, rows, "%.17g", delimiter=",", header="a,b", comments="")
    return path


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends waits for receivers for a moment only, and tries again soon."""
    monkeypatch.setattr(notices_module, "AT_THE_END", 0.3)
    monkeypatch.setattr(Outbox.__init__, "__kwdefaults__", {"most": MOST, "first_pause": 0.02})


def expected_of(steps: Path, source: str, kinds: list[str]) -> list[tuple[str, str]]:
    """Keys of all confirmed events, by plain loops."""
    found = []
    for step in read_steps(steps):
        for number, event in enumerate(step.events):
            if event.kind in kinds and not event.unconfirmed:
                found.append((source, f"{step.index}-{number}"))
    return found


def until(condition: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 8))
@settings(max_examples=30)
def test_whatever_is_refused_all_arrives_once_and_in_order(
    answers: list[bool], n_notices: int
) -> None:
    """Refused, or answered by an exception: it is tried again, and the next one waits."""
    left, taken = iter(answers), list[str]()

    def deliver(notice: str) -> str | None:
        if next(left, True):
            taken.append(notice)
            return None
        if len(taken) % 2:
            raise RuntimeError("rude")
        return "no"

    outbox = Outbox("it", deliver, first_pause=0.0)
    sent = [str(number) for number in range(n_notices)]
    for notice in sent:
        outbox.put([notice])
    until(lambda: not outbox.waiting())
    counts = outbox.counts()
    outbox.close()
    assert taken == sent
    assert counts.n_delivered == n_notices and counts.n_lost == 0
    n_refusals = 0
    n_left = n_notices
    for answer in answers:
        if n_left:
            n_left -= answer
            n_refusals += not answer
    assert counts.n_failures == n_refusals


def test_what_overflows_is_the_oldest_and_is_counted_and_said() -> None:
    begun, go_on, taken = threading.Event(), threading.Event(), list[str]()

    def deliver(notice: str) -> str | None:
        begun.set()
        go_on.wait(30)
        taken.append(notice)
        return None

    outbox = Outbox("--notify http://x", deliver, most=5)
    outbox.put(["0"])
    assert begun.wait(30)
    outbox.put(map(str, range(1, 9)))
    assert outbox.waiting() == ["0", "5", "6", "7", "8"]
    assert outbox.counts() == Deliveries(0, 0, 5, 4)
    assert outbox.news() == [
        "5 notices wait for --notify http://x: from now on the oldest are dropped, and counted."
    ]
    assert outbox.news() == []
    go_on.set()
    outbox.drain(30)
    outbox.close()
    assert taken == ["0", "5", "6", "7", "8"]


def test_each_event_arrives_with_its_key_and_words(readings: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    with Receiver() as receiver:
        summary = run(readings, 3, batch_size=25, steps=steps, notify=receiver.url,
                      notify_on=KINDS).summary  # fmt: skip
    assert receiver.keys == expected_of(steps, str(readings), KINDS)
    assert len(receiver.keys) >= 3
    assert summary.deliveries["notify"] == Deliveries(len(receiver.keys), 0, 0, 0)
    lines = [json.loads(line) for line in steps.read_text().splitlines()]
    for notice in receiver.taken:
        data = notice["data"]
        event = lines[data["batch"]]["events"][data["number"]]
        assert notice["specversion"] == "1.0" and notice["type"] == f"kmeander.{event['kind']}"
        assert {name: data[name] for name in event} == event
        assert all(word in lines[data["batch"]]["words"] for word in data["words"])
        assert "time" not in notice  # nothing says when, and the clock is not asked


def test_with_times_a_notice_says_when(tmp_path: Path) -> None:
    rows = np.concatenate(drifting_stream(8, n_points=50, n_features=2))
    path = tmp_path / "x.csv"
    lines = [f"{60 * i},{a!r},{b!r}" for i, (a, b) in enumerate(rows.tolist())]
    path.write_text("at,a,b\n" + "\n".join(lines))
    with Receiver() as receiver:
        run(path, 4, time_column="at", batch_size=50, notify=receiver.url)
    assert receiver.taken
    for notice in receiver.taken:
        assert notice["time"] == notice["data"]["last_time"]
        minute = 50 * notice["data"]["batch"]
        assert notice["data"]["first_time"] == f"1970-01-01T{minute // 60:02}:{minute % 60:02}:00Z"


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("mode", [HANGS, FAILS, HANGS_UP, REDIRECTS])
def test_no_receiver_holds_up_learning(readings: Path, mode: str) -> None:
    """It begins to take notices only once the last batch is learned: else this would never end."""
    told: list[str] = []
    with Receiver(mode) as receiver:

        def see(step: Step) -> None:
            if step.index == 39:
                assert not receiver.taken
                receiver.mode = TAKES
                receiver.released.set()

        summary = run(readings, 3, batch_size=25, notify=receiver.url, on_step=see,
                      tell=told.append).summary  # fmt: skip
        assert summary.n_batches == 40
    address = receiver.url.removesuffix("/hook")
    assert all(line.startswith(f"notify {address} ") for line in told)


@pytest.mark.usefixtures("at_once")
def test_what_a_dead_receiver_missed_comes_after_a_restart(readings: Path, tmp_path: Path) -> None:
    port, state, steps = free_port(), tmp_path / "state", tmp_path / "steps.jsonl"
    options: dict[str, Any] = {
        "batch_size": 25, "checkpoint": state, "steps": steps, "notify_on": KINDS,
        "notify": f"http://127.0.0.1:{port}/hook",
    }  # fmt: skip
    told: list[str] = []
    summary = run(readings, 3, **options, tell=told.append).summary
    expected = expected_of(steps, str(readings), KINDS)
    assert summary.deliveries["notify"].n_waiting == len(expected)
    assert summary.deliveries["notify"].n_delivered == 0
    assert told[-1].endswith("Connection refused. It is tried again until it does; the newest "
                             "1,000 are kept.")  # fmt: skip
    with Receiver(port=port) as receiver:
        run(readings, 3, **options)
        assert receiver.keys == expected
        run(readings, 3, **options)  # has nothing more to say
        assert receiver.keys == expected
    del options["notify"]
    assert run(readings, 3, **options).summary.deliveries == {}


@pytest.mark.usefixtures("at_once")
def test_notices_whose_receiver_is_gone_are_dropped_aloud(readings: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 25, "checkpoint": tmp_path / "state"}
    summary = run(readings, 3, **options, notify=f"http://127.0.0.1:{free_port()}/").summary
    told: list[str] = []
    run(readings, 3, **options, tell=told.append)
    n_waiting = summary.deliveries["notify"].n_waiting
    assert told[-1] == (
        f"{n_waiting} notices of the run before were not delivered, and are dropped: notify is not "
        "given any more."
    )


@pytest.mark.slow
def test_killed_ten_times_no_event_is_lost(readings: Path, tmp_path: Path) -> None:
    """``kill -9`` at ten moments: every event arrives, repeats are the same under the same key."""
    state, steps = tmp_path / "state", tmp_path / "steps.jsonl"
    rng = np.random.default_rng(10)
    with Receiver() as receiver:
        words = [
            PROGRAM, "run", str(readings), "--clusters", "3", "--batch-size", "5",
            "--checkpoint", str(state), "--checkpoint-every", "3", "--steps", str(steps),
            "--notify", receiver.url, "--notify-on", ",".join(KINDS), "--quiet",
        ]  # fmt: skip
        n_kills = 0
        for n_lines in np.sort(rng.integers(1, 190, size=10)).tolist():
            receiver.mode = rng.choice([TAKES, FAILS])
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            while process.poll() is None and n_lines_of(steps) < n_lines:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.05))
            n_kills += process.poll() is None
            process.kill()
            process.wait()
        receiver.mode = TAKES
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert n_kills >= 5
        expected = expected_of(steps, str(readings), KINDS)
        assert set(receiver.keys) == set(expected)
        assert list(dict.fromkeys(receiver.keys)) == expected  # in order, repeats aside
        bodies: dict[tuple[str, str], Any] = {}
        for key, body in zip(receiver.keys, receiver.taken, strict=True):
            assert bodies.setdefault(key, body) == body


def n_lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(code: str) -> str:
        path = tmp_path / "receive.py"
        path.write_text(code)
        return f"{sys.executable} {path}"

    return write


def test_a_command_reads_each_event(readings: Path, tmp_path: Path, script: Any) -> None:
    """It fails once: then the event comes again, before the next."""
    got = tmp_path / "got.ndjson"
    command = script(
        f"""
import sys
from pathlib import Path
text = sys.stdin.read()
print("chatter")
seen = Path({str(tmp_path / "seen")!r})
if not seen.exists():
    seen.touch()
    sys.exit(7)
with open({str(got)!r}, "a") as file:
    file.write(text)
"""
    )
    steps = tmp_path / "steps.jsonl"
    done = kmeander("run", str(readings), "--clusters", "3", "--batch-size", "25", "--steps",
                    str(steps), "--on-event", command, "--notify-on", "drift")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "chatter" not in done.stdout + done.stderr
    assert "did not take a notice: it ended with 7. It is tried again until it does" in done.stderr
    found = [json.loads(line) for line in got.read_text().splitlines()]
    expected = expected_of(steps, str(readings), ["drift"])
    assert [(one["source"], one["id"]) for one in found] == expected
    assert f"Notices: {len(expected)} delivered." in done.stderr


def test_a_command_that_hangs_is_ended_with_its_children(
    tmp_path: Path, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "COMMAND_TIME", 1.0)
    alive = tmp_path / "alive"
    command = script(
        f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(3); open({str(alive)!r}, 'w')"])
"""
    )
    assert receivers.runner(command)("{}") == "it took longer than 1 s"
    time.sleep(3)
    assert not alive.exists()


def test_what_on_step_raises_ends_the_run_cleanly(readings: Path, tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(step: Step) -> None:
        if step.index == 7:
            raise EnoughError

    options: dict[str, Any] = {
        "batch_size": 25, "checkpoint": tmp_path / "state", "checkpoint_every": 100,
        "steps": tmp_path / "steps.jsonl",
    }  # fmt: skip
    with pytest.raises(EnoughError):
        run(readings, 3, **options, on_step=stop)
    assert len(list(read_steps(tmp_path / "steps.jsonl"))) == 8
    seen: list[Step] = []
    summary = run(readings, 3, **options, on_step=seen.append).summary
    assert summary.resumed_at == 8
    assert [step.index for step in seen] == list(range(8, 40))
    assert seen == list(read_steps(tmp_path / "steps.jsonl"))[8:]


@pytest.mark.parametrize(
    "url", ["example.org/hook", "ftp://x/y", "http://me:secret@x/y", "http:///"]
)
def test_an_address_that_cannot_be_is_refused(readings: Path, url: str) -> None:
    with pytest.raises(InputError) as caught:
        run(readings, 3, notify=url)
    assert str(caught.value) == (
        "notify must be an address such as https://host/path, without a user name in it: secrets "
        "go into path or query."
    )


def test_wrong_kinds_and_commands_are_refused(readings: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(readings, 3, notify_on=["drifts"])
    assert str(caught.value) == (
        "notify_on must name kinds of events, of drift, born, split, returned, died, absorbed, "
        "moved, grew, shrank, trend, rescaled; got 'drifts'."
    )
    with pytest.raises(InputError) as caught:
        run(readings, 3, on_event="no-such-program --really")
    assert str(caught.value) == (
        'on_event="no-such-program --really" cannot be started: there is no program '
        "'no-such-program'."
    )
    with pytest.raises(InputError) as caught:
        run(readings, 3, on_event="mail 'on call")
    assert str(caught.value) == (
        'on_event="mail \'on call" cannot be started: a quotation mark or backslash lacks its '
        "other half."
    )


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("notices", {"notify": ["x"] * 1001}, "it has 1001 notices that wait, of at most 1000."),
        ("notices", {"notify": [3]}, "it: notices has notify [3], which must be a list of texts."),
        ("events_since_end", {"drift": -1}, "it: events_since_end has drift -1, which must be a"),
    ],
)
def test_a_hostile_checkpoint_is_refused(
    readings: Path, tmp_path: Path, name: str, value: Any, message: str
) -> None:
    folder = tmp_path / "state"
    run(readings, 3, batch_size=25, checkpoint=folder)
    for path in folder.glob("*.ckpt"):
        checkpoint_file.write(str(path), {**checkpoint_file.read(str(path)), name: value})
    with pytest.raises(CheckpointError) as caught:
        run(readings, 3, batch_size=25, checkpoint=folder)
    assert message in str(caught.value)
