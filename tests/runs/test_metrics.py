"""Metrics and health say what the Steps say; Prometheus scrapes them, its rules tell a drift."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kmeander import InputError, Step, StreamError, run
from kmeander.events import KINDS
from kmeander.runs.operations import listener
from kmeander.runs.operations.activity import (
    COMMIT,
    LEARN,
    LEARNING,
    READ,
    STAGES,
    STALLED,
    STATUSES,
    WAITING,
    Activity,
    Deliveries,
    Snapshot,
)
from kmeander.runs.operations.listener import listening
from tests.program import PROGRAM
from tests.receiver import free_port
from tests.streams import drifting_stream

DEPLOY = Path(__file__).parents[2] / "deploy"
Samples = dict[tuple[str, str], float]

needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="Prometheus is not installed: apt-get install prometheus",
)


def get(port: int, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def samples(text: str) -> Samples:
    """Values by name and the one label, if there is one."""
    return {
        (one.name, next(iter(one.labels.values()), "")): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
    return found


def port_of(told: list[str]) -> int:
    (line,) = (line for line in told if line.startswith("Metrics at "))
    match = re.fullmatch(r"Metrics at http://127\.0\.0\.1:(\d+)/metrics, health at /health\.", line)
    assert match is not None
    return int(match[1])


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """A row a second, 12 batches of 50, with bad rows among them; clusters jump twice."""
    path = tmp_path / "readings.csv"
    rows = np.concatenate(drifting_stream(12, n_points=50, n_features=2))
    lines = [f"{1_780_000_000 + i},{a!r},{b!r}" for i, (a, b) in enumerate(rows.tolist())]
    lines[120:120] = ["1780000120,broken,1"] * 3
    path.write_text("at,a,b\n" + "\n".join(lines) + "\n")
    return path


def test_metrics_say_what_the_steps_say(readings: Path, tmp_path: Path) -> None:
    told: list[str] = []
    steps: list[Step] = []
    found: list[Samples] = []
    health: list[dict[str, Any]] = []

    def look(step: Step) -> None:
        steps.append(step)
        found.append(samples(get(port_of(told), "/metrics?name=all")))
        health.append(json.loads(get(port_of(told), "/health")))

    summary = run(readings, 4, time_column="at", batch_size=50, bad_rows="skip", metrics=0,
                  checkpoint=tmp_path / "state", checkpoint_every=5, tell=told.append,
                  on_step=look).summary  # fmt: skip
    n_events = dict.fromkeys(KINDS, 0)
    n_unconfirmed = 0
    for step, now in zip(steps, found, strict=True):
        for event in step.events:
            n_unconfirmed += event.unconfirmed
            n_events[event.kind] += not event.unconfirmed
        assert {kind: now["kmeander_events_total", kind] for kind in KINDS} == n_events
        assert now["kmeander_unconfirmed_events_total", ""] == n_unconfirmed
        assert now["kmeander_batches_total", ""] == step.index + 1
        assert now["kmeander_rows_total", ""] == 50 * (step.index + 1)
        assert now["kmeander_batch_index", ""] == step.index
        assert now["kmeander_rejected_rows_total", ""] == (3 if step.index >= 2 else 0)
        assert now["kmeander_late_rows_total", ""] == 0
        for name, value in (
            ("error_before_learning", step.prequential_error),
            ("error_after_learning", step.batch_error),
            ("window_error", step.surrogate_error),
            ("expected_error", step.expected_error),
            ("epsilon", step.drift_epsilon),
        ):
            assert now.get((f"kmeander_{name}", "")) == value
        assert step.ids is not None and step.masses is not None
        clusters = {label for name, label in now if name == "kmeander_cluster_mass"}
        assert clusters == set(map(str, step.ids.tolist()))
        for number, mass in zip(step.ids.tolist(), step.masses.tolist(), strict=True):
            assert now["kmeander_cluster_mass", str(number)] == mass
            assert now["kmeander_cluster_share", str(number)] == mass / step.mass
        assert now["kmeander_clusters", ""] == 4
        newest = 1_780_000_000 + 50 * (step.index + 1) - 1
        assert now["kmeander_event_time_seconds", ""] == newest
        assert now["kmeander_lag_seconds", ""] == pytest.approx(time.time() - newest, abs=300)
        assert [now["kmeander_status", status] for status in STATUSES] == [1, 0, 0]
        assert ("kmeander_lag_rows", "") not in now  # a file does not say how many
        assert now["kmeander_checkpoint_age_seconds", ""] >= 0
        assert now["process_resident_memory_bytes", ""] > 1e6
    spent = [sum(now["kmeander_stage_seconds_total", stage] for stage in STAGES) for now in found]
    assert spent == sorted(spent) and spent[0] > 0
    assert sum(n_events.values()) == sum(summary.events.values()) > 0
    assert health[-1]["status"] == "learning" and health[-1]["newest_batch"] == 11
    assert health[-1]["last_time"] == steps[-1].last_time and health[-1]["n_batches"] == 12
    with pytest.raises(OSError):  # it ends with the run
        get(port_of(told), "/health")


@pytest.mark.parametrize("steps_seen", [[], [LEARN], [LEARN, COMMIT]])
def test_health_by_the_clock(steps_seen: list[str]) -> None:
    now = 0.0
    activity = Activity(lambda: now)
    for stage in steps_seen:
        activity.enter(stage)
        now += 8.0
    if steps_seen:
        assert activity.status() == LEARNING
        now += 70.0
        assert activity.status() == (STALLED if len(steps_seen) == 1 else LEARNING)
        now += 10.0  # ten times the longest stage so far, which took 8 s
        assert activity.status() == STALLED
        activity.enter(READ)
    assert activity.status() == LEARNING
    now += 2.0
    assert activity.status() == WAITING
    now += 10_000.0
    assert activity.status() == WAITING
    activity.lag = 5  # rows are there, and none is read
    assert activity.status() == STALLED
    activity.hear()
    assert activity.status() == WAITING


def test_a_stalled_run_is_not_healthy() -> None:
    told: list[str] = []
    state = [WAITING]
    with listening("0", lambda: Snapshot(state[0], 0, 0, {}, 0, None), told.append):
        port = port_of(told)
        assert json.loads(get(port, "/health")) == {
            "status": "waiting", "n_batches": 0, "newest_batch": None, "last_time": None,
            "checkpoint_age": None,
        }  # fmt: skip
        state[0] = STALLED
        with pytest.raises(HTTPError) as caught:
            get(port, "/health")
        with caught.value as answer:
            assert answer.code == 503 and json.loads(answer.read())["status"] == "stalled"
        with pytest.raises(HTTPError) as caught:
            get(port, "/")
        with caught.value as answer:
            assert answer.code == 404


def test_clients_that_hang_or_talk_nonsense_hold_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "PATIENCE", 0.5)
    told: list[str] = []
    with listening("127.0.0.1:0", lambda: Snapshot(WAITING, 0, 0, {}, 0, None), told.append):
        port = port_of(told)
        hanging = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        hanging[0].sendall(b"\xff\x00 nonsense\r\n\r\n")
        assert json.loads(get(port, "/health"))["status"] == "waiting"
        assert ("kmeander_status", "waiting") in samples(get(port, "/metrics"))
        with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as request:
            request.request("POST", "/metrics", b"x")
            with request.getresponse() as answer:
                assert answer.status == 501
    for one in hanging:
        one.close()


@pytest.mark.parametrize("address", ["here", "1.2.3.4:", "70000", "localhost:x", "a:b:9464"])
def test_an_address_that_is_none_is_refused(readings: Path, address: str) -> None:
    with pytest.raises(InputError) as caught:
        run(readings, 4, metrics=address)
    assert str(caught.value) == (
        f"metrics must be a port, or host:port such as 127.0.0.1:9464, got {address!r}."
    )


def test_an_address_in_use_is_said(readings: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StreamError) as caught:
            run(readings, 4, metrics=address)
    assert str(caught.value) == (
        f'metrics="{address}" cannot be listened at: Address already in use. Name another address.'
    )


def test_without_prometheus_client_the_extra_is_named(
    readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmeander.runs.operations.metrics.find_spec", lambda _: None)
    with pytest.raises(InputError) as caught:
        run(readings, 4, metrics=9464)
    assert str(caught.value) == "metrics need prometheus-client: pip install 'kmeander[metrics]'"


def test_watch_serves_metrics_of_a_steps_file(readings: Path, tmp_path: Path) -> None:
    steps, port = tmp_path / "steps.jsonl", free_port()
    summary = run(
        readings, 4, time_column="at", batch_size=50, bad_rows="skip", steps=steps
    ).summary
    words = [PROGRAM, "watch", str(steps), "--port", str(free_port()), "--metrics", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:

        def is_read() -> Samples | None:
            try:
                now = samples(get(port, "/metrics"))
            except OSError:
                return None
            return now if now["kmeander_batches_total", ""] == 12 else None

        now = until(is_read)
        for kind in KINDS:
            assert now["kmeander_events_total", kind] == summary.events.get(kind, 0)
        assert ("kmeander_rejected_rows_total", "") not in now  # of which the file says nothing
        assert json.loads(get(port, "/health"))["newest_batch"] == 11
    finally:
        process.terminate()
        process.wait()


def exposition() -> str:
    """All metrics that there are."""
    told: list[str] = []
    found: list[str] = []
    steps: list[Step] = []
    rows = drifting_stream(8)
    run(rows, 4, on_step=steps.append, tell=told.append)
    step = steps[-1]
    vars(step).update(last_time="2026-06-03T00:00:00Z", first_time="2026-06-03T00:00:00Z")
    snapshot = Snapshot(
        LEARNING, 8, 480, {"drift": 1}, 2, step, n_bad=1, n_late=1, stage_seconds={"read": 0.1},
        lag=3, checkpoint_age=1.0, deliveries={"notify": Deliveries(1, 2, 3, 4)},
    )  # fmt: skip
    with listening("0", lambda: snapshot, told.append):
        found.append(get(port_of(told), "/metrics"))
    return found[0]


def test_rules_and_board_know_only_metrics_that_there_are() -> None:
    known = {name for name, _ in samples(exposition())}
    rules, board = DEPLOY / "prometheus-rules.yml", DEPLOY / "grafana-dashboard.json"
    asked = set(re.findall(r"\b(?:kmeander|process)_\w+", rules.read_text()))
    expressions = [
        target["expr"] for panel in json.loads(board.read_text())["panels"]
        for target in panel["targets"]
    ]  # fmt: skip
    for expression in expressions:
        asked |= set(re.findall(r"\b(?:kmeander|process)_\w+", expression))
    assert len(asked) > 15 and asked <= known
    assert len({panel["id"] for panel in json.loads(board.read_text())["panels"]}) == 15


@needs_prometheus
def test_promtool_finds_no_fault_in_rules_and_metrics() -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    rules = DEPLOY / "prometheus-rules.yml"
    checked = subprocess.run(
        ["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0 and "SUCCESS: 9 rules found" in checked.stdout, checked.stderr
    cases = Path(__file__).with_name("rule_cases.yml")
    tested = subprocess.run(
        ["promtool", "test", "rules", str(cases)], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.slow
@needs_prometheus
def test_prometheus_scrapes_a_run_and_its_rules_tell_a_drift(tmp_path: Path) -> None:
    port, own, folder = free_port(), free_port(), tmp_path / "prometheus"
    settings = tmp_path / "prometheus.yml"
    settings.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f'rule_files: ["{DEPLOY / "prometheus-rules.yml"}"]\n'
        "scrape_configs:\n"
        "  - job_name: kmeander\n"
        f'    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]\n'
    )
    words = [PROGRAM, "run", "-", "--clusters", "4", "--batch-size", "50", "--quiet",
             "--steps", str(tmp_path / "steps.jsonl"), "--metrics", str(port)]  # fmt: skip
    batches = drifting_stream(8, n_points=50, n_features=2)
    process = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
    server = subprocess.Popen(
        ["prometheus", f"--config.file={settings}", f"--storage.tsdb.path={folder}",
         f"--web.listen-address=127.0.0.1:{own}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def ask(query: str) -> list[Any]:
        try:
            found = json.loads(get(own, "/api/v1/query?" + urlencode({"query": query})))
        except OSError:
            return []
        result: list[Any] = found["data"]["result"]
        return result

    def is_value(query: str, value: str) -> bool:
        found = ask(query)
        return bool(found) and found[0]["value"][1] == value

    try:
        assert process.stdin is not None
        process.stdin.write("a,b\n")
        for batch in batches[:4]:
            np.savetxt(process.stdin, batch, delimiter=",")
        process.stdin.flush()
        until(lambda: is_value("kmeander_batches_total", "4"))
        until(lambda: is_value('kmeander_status{status="waiting"}', "1"))
        assert not ask('ALERTS{alertname="KmeanderDrift"}')
        time.sleep(3)  # so that 0 drifts were seen more than once
        for batch in batches[4:]:
            np.savetxt(process.stdin, batch, delimiter=",")
        process.stdin.flush()
        until(lambda: ask('ALERTS{alertname="KmeanderDrift", alertstate="firing"}'))
        assert is_value("kmeander_rows_total", "400")
        process.stdin.close()
        assert process.wait(60) == 0
        until(lambda: is_value("up", "0"))
    finally:
        for one in (process, server):
            one.kill()
            one.wait()
