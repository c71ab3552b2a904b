"""What metrics, notices and parts of Steps cost a run of many small batches; if memory stays flat.

    python -m benchmarks.bench_operation [--batches N] [--rounds R] [--turn T]

Batches of 50 rows, 4 columns, K = 3, whose clusters jump at every 500th; a checkpoint every 1000.
Plain and watched runs of T batches take turns, R of each, each in a process of its own. A
watched run is scraped once in each second of its processor time, sends every confirmed event to a
receiver that answers 500 for a third of the time and is silent for another, and writes Steps in
parts of 1 MB, which it compresses, where a plain one writes one file. The ratio is of processor
time from the first tenth on, all threads counted. Last, one watched run of N batches, whose
resident memory is read ten times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil
from numpy.typing import NDArray

import kmeander
from kmeander import Step
from kmeander.events import KINDS

N_POINTS, N_COLUMNS, N_CLUSTERS, STABLE_FOR = 50, 4, 3, 500


def batches(n_batches: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    for index in range(n_batches):
        if index % STABLE_FOR == 0:
            centres = rng.normal(scale=10.0, size=(N_CLUSTERS, N_COLUMNS))
        members = rng.integers(N_CLUSTERS, size=N_POINTS)
        yield centres[members] + rng.normal(size=(N_POINTS, N_COLUMNS))


class Receiver(BaseHTTPRequestHandler):
    """Takes notices for ten seconds, refuses them for ten, is silent for ten."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        mood = int(time.monotonic() // 10) % 3
        if mood == 2:
            time.sleep(10)
        self.send_response(204 if mood == 0 else 500)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def child(n_batches: int, hook: str | None) -> dict[str, Any]:
    """Run, in this process, and say what it took."""
    process = psutil.Process()
    memory: list[float] = []

    begun: list[float] = []

    def see(step: Step) -> None:
        if step.index == n_batches // 10:
            begun.append(time.process_time())
        if step.index % (n_batches // 10) == n_batches // 20:
            memory.append(process.memory_info().rss / 2**20)

    def tell(line: str) -> None:
        if line.startswith("Metrics at "):
            print(line.split()[2].rstrip(","), flush=True)

    watched: dict[str, Any] = {} if hook is None else {
        "metrics": 0, "notify": hook, "notify_on": KINDS, "steps_part": "1MB",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        summary = kmeander.run(
            batches(n_batches), N_CLUSTERS, n_threads=1, prepare=None, on_step=see, tell=tell,
            steps=f"{folder}/steps{'.jsonl' if hook is None else '/'}",
            checkpoint=Path(folder) / "state", checkpoint_every=1000, **watched,
        ).summary  # fmt: skip
        seconds = time.process_time() - begun[0]
    return {
        "seconds": seconds,
        "memory": memory,
        "events": sum(summary.events.values()),
        "deliveries": {name: vars(one) for name, one in summary.deliveries.items()},
    }


def run_child(n_batches: int, hook: str | None) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.bench_operation", "--child", str(n_batches)]
    words += [] if hook is None else ["--hook", hook]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if hook is not None:
            scrape(process, process.stdout.readline().strip())
        found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def scrape(process: subprocess.Popen[str], address: str) -> None:
    """Read the metrics of a process at each second of its processor time, until it ends."""
    seconds = 1.0
    with suppress(psutil.Error, OSError):
        while process.poll() is None:
            time.sleep(0.05)
            used = psutil.Process(process.pid).cpu_times()
            if used.user + used.system >= seconds:
                seconds = used.user + used.system + 1.0
                with urlopen(address, timeout=60) as answer:
                    answer.read()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--turn", type=int, default=5_000)
    parser.add_argument("--child", type=int)
    parser.add_argument("--hook")
    given = parser.parse_args()
    if given.child is not None:
        print(json.dumps(child(given.child, given.hook)))
        return
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    hook = f"http://127.0.0.1:{receiver.server_address[1]}/"
    ratios = []
    for number in range(given.rounds):
        order = [None, hook] if number % 2 else [hook, None]
        took = {one: run_child(given.turn, one)["seconds"] for one in order}
        ratios.append(took[hook] / took[None])
        print(f"round {number}: plain {took[None]:.2f} s, watched {took[hook]:.2f} s", flush=True)
    print(f"watched / plain: median {statistics.median(ratios):.3f}, "
          f"from {min(ratios):.3f} to {max(ratios):.3f}", flush=True)  # fmt: skip
    whole = run_child(given.batches, hook)
    print(f"{given.batches:,} batches, {whole['events']} events, {whole['deliveries']}")
    print("MiB at 5, 15, ... 95 %:", *(f"{one:.1f}" for one in whole["memory"]))


if __name__ == "__main__":
    main()
