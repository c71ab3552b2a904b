"""What lies in deploy/: checked by the linters of each format, and the unit's command tried."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from kmeander.cli import app
from kmeander.sinks import read_steps

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def program(name: str) -> str:
    """Return a program of Debian's, which `.ci/run` installs, or of the environment."""
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def unit() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "kmeander.service")
    return {section: dict(parser[section]) for section in parser.sections()}


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["hadolint"], "Containerfile"),
        (["check-jsonschema", "--builtin-schema", "vendor.compose-spec"], "compose.yml"),
        (["promtool", "check", "config"], "prometheus.yml"),
    ],
)
def test_linters_find_nothing(command: list[str], file: str) -> None:
    command = [program(command[0]), *command[1:], str(DEPLOY / file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """It also looks whether the program is there, so that of the environment takes its place."""
    text = (DEPLOY / "kmeander.service").read_text().replace("/opt/kmeander/bin", str(BIN))
    (tmp_path / "kmeander.service").write_text(text)
    command = [program("systemd-analyze"), "verify", str(tmp_path / "kmeander.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_settings_are_options_of_the_command(tmp_path: Path) -> None:
    again = tmp_path / "run.toml"
    words = ["run", "--config", str(DEPLOY / "run.toml"), "--write-config", str(again)]
    env = {"KAFKA": "broker:9092", "STATE_DIRECTORY": "/var/lib/kmeander"}
    done = CliRunner().invoke(app, words, env=env)
    assert done.exit_code == 0, done.stderr
    assert tomllib.loads(again.read_text()) == tomllib.loads((DEPLOY / "run.toml").read_text())


def test_image_and_services_agree() -> None:
    image = (DEPLOY / "Containerfile").read_text()
    services = yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]
    (extras,) = (line for line in image.splitlines() if "pip install" in line)
    named = extras.partition("[")[2].partition("]")[0].split(",")
    assert set(named) <= set(PROJECT["optional-dependencies"])
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    (target,) = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    assert host in services
    assert f"EXPOSE {port}" in image and f"0.0.0.0:{port}" in image
    assert services["kmeander"]["read_only"] is True
    assert "USER 10001" in image
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert not source.startswith("./") or (DEPLOY / source).exists()


def test_the_recipe_wants_what_the_project_does() -> None:
    text = (DEPLOY / "conda-forge" / "recipe.yaml").read_text()
    recipe = yaml.safe_load(text)
    wanted = {line.replace(" ", "") for line in recipe["requirements"]["run"]} - {"python"}
    assert wanted == {*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {line.replace(" ", "") for line in recipe["requirements"]["host"]} == {
        "python", "pip", *build,
    }  # fmt: skip
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["license"] == PROJECT["license"]
    for file in recipe["tests"][0]["files"]["source"]:
        assert (ROOT / file).exists()


# ---------------------------------------------------------------- as an operator would


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name, since that of a socket may have 107 characters."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def rows(first: int, n_rows: int, centres: list[float]) -> str:
    """Rows that come once a minute, from so many on."""
    rng = np.random.default_rng(first)
    lines = []
    for n in range(first, first + n_rows):
        hour, minute = divmod(n, 60)
        value = rng.choice(centres) + rng.normal()
        lines.append(f"2026-06-{hour // 24 + 1:02}T{hour % 24:02}:{minute:02}:00Z,{value}\n")
    return "".join(lines)


class Operator:
    """Starts the unit's command as systemd would, and hears what it says."""

    def __init__(self, place: Path, settings: str, port: int) -> None:
        (place / "run.toml").write_text(settings)
        command = unit()["Service"]["ExecStart"].replace("/opt/kmeander/bin", str(BIN))
        self._command = shlex.split(command.replace("/etc/kmeander", str(place)))
        self._port = port
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(place / "notify"))
        self._socket.settimeout(60)
        self._env = {
            **os.environ, "NOTIFY_SOCKET": str(place / "notify"), "WATCHDOG_USEC": "900000",
            "STATE_DIRECTORY": str(place), "COLUMNS": "200",
        }  # fmt: skip

    def close(self) -> None:
        self._socket.close()

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command, env=self._env, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait_for_word(self, word: str) -> None:
        while self._socket.recv(100).decode() != word:
            pass

    def get(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def wait_for_batches(self, n_batches: int) -> dict[str, Any]:
        for _ in range(300):
            time.sleep(0.2)
            try:
                health: dict[str, Any] = json.loads(self.get("/health"))
            except URLError:
                continue
            if health["newest_batch"] == n_batches - 1:
                return health
        raise AssertionError(f"{n_batches} batches were not reached.")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_a_service_is_killed_goes_on_is_scraped_and_tells_a_drift(place: Path) -> None:
    port = free_port()
    (place / "in.csv").write_text("at,v\n" + rows(0, 1500, [0.0, 30.0]))
    operator = Operator(
        place,
        f"""
        [arguments]
        source = "${{STATE_DIRECTORY}}/in.csv"
        [model]
        clusters = 2
        [batches]
        batch-size = 50
        time-column = "at"
        [outputs]
        steps = "${{STATE_DIRECTORY}}/steps/"
        steps-part = "day"
        checkpoint = "${{STATE_DIRECTORY}}/state"
        log = "json"
        [operation]
        metrics = "{port}"
        on-event = "tee -a ${{STATE_DIRECTORY}}/pages.ndjson"
        notify-on = ["drift"]
        [source]
        follow = true
        """,
        port,
    )
    with closing(operator):
        with operator.start() as first:
            operator.wait_for_word("READY=1")
            operator.wait_for_batches(30)
            operator.wait_for_word("WATCHDOG=1")
            os.killpg(first.pid, signal.SIGKILL)
        with (place / "in.csv").open("a") as file:
            file.write(rows(1500, 500, [100.0, 150.0]))
        with operator.start() as second:
            operator.wait_for_word("READY=1")
            health = operator.wait_for_batches(40)
            assert health["last_time"] == "2026-06-02T09:19:00Z"
            operator.wait_for_word("WATCHDOG=1")
            assert 'kmeander_events_total{kind="drift"} 1.0' in operator.get("/metrics")
            second.terminate()
            operator.wait_for_word("STOPPING=1")
            assert second.stderr is not None
            said = [json.loads(line) for line in second.stderr.read().splitlines()]
    assert second.returncode == 0
    assert all(line["time"] and line["level"] for line in said)
    pages = [json.loads(line) for line in (place / "pages.ndjson").read_text().splitlines()]
    assert {page["id"] for page in pages} == {"30-0"}
    assert "drift" in pages[0]["type"]
    steps = list(read_steps(place / "steps"))
    assert [step.index for step in steps] == [*range(40)]
    assert steps[30].first_time == "2026-06-02T01:00:00Z"
    assert len(list((place / "steps").glob("part-*"))) == 2


@pytest.mark.slow
def test_a_run_that_is_stalled_shows_no_sign_of_life(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kmeander.commands.service import service_of_systemd
    from kmeander.runs.records import Progress, RunSummary

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(place / "notify"))
        systemd.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", str(place / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        with service_of_systemd() as service:
            assert service is not None
            assert [systemd.recv(99), systemd.recv(99)] == [b"READY=1", b"WATCHDOG=1"]
            service.heard_by(None)(Progress(RunSummary(), None, None, lambda: "stalled"))
            time.sleep(0.2)  # one may have been under way
            systemd.setblocking(False)
            with suppress(BlockingIOError):
                systemd.recv(99)
            systemd.settimeout(1)
            with pytest.raises(TimeoutError):
                systemd.recv(99)
            service.heard_by(None)(Progress(RunSummary(), None, None, lambda: "learning"))
            assert systemd.recv(99) == b"WATCHDOG=1"
        while (word := systemd.recv(99)) == b"WATCHDOG=1":
            pass
        assert word == b"STOPPING=1"


def test_outside_of_systemd_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from kmeander.commands.service import service_of_systemd

    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    with service_of_systemd() as service:
        assert service is None


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [("120000000", None, 120.0), ("1000", "1", 0.0), ("", None, 0.0), ("soon", None, 0.0)],
)
def test_the_watchdog_is_that_of_this_process(
    usec: str, pid: str | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kmeander.commands import service

    monkeypatch.setenv("WATCHDOG_USEC", usec)
    if pid is None:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    else:
        monkeypatch.setenv("WATCHDOG_PID", pid)
    assert service._seconds() == seconds
