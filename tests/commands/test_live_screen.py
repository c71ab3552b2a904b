"""What a terminal shows of a run: pace, lag, error, the last event, and a bar before the first."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

import kmeander
from kmeander.commands.live_screen import LiveScreen
from kmeander.runs.records import Progress
from tests.streams import drifting_stream


def drawn(screen: LiveScreen) -> list[str]:
    written = io.StringIO()
    Console(width=200, file=written).print(screen.now())
    return [line.strip() for line in written.getvalue().splitlines()]


def test_before_the_first_batch_is_learned_something_moves() -> None:
    now = 10.0
    screen = LiveScreen(clock=lambda: now)
    assert drawn(screen) == ["waiting for rows"]
    screen.begin(20_000)
    now = 17.0
    (line,) = drawn(screen)
    assert line.startswith("choosing the first clusters of 20,000 rows")
    assert line.endswith("7 s")


def test_a_run_shows_pace_lag_error_and_what_happened_last() -> None:
    screen, stay, seen = LiveScreen(), [], []
    firsts: list[int] = []

    def take(progress: Progress) -> None:
        behind = Progress(progress.summary, 0.25, 1200, progress.status)
        stay.append(screen.take(behind))
        seen.append(drawn(screen))

    options: dict[str, Any] = {"random_state": 0, "on_progress": take}
    stream = [*drifting_stream(8, n_points=200), *drifting_stream(8, n_points=200, seed=9)]
    kmeander.run(stream, 4, **options, on_first_rows=firsts.append)
    assert firsts == [200]
    assert seen[0][1] == "nothing has happened so far"
    first, last = seen[-1]
    assert first.startswith("25%  batch 16  3,200 rows")
    for said in ("rows/s", "error ", "1,200 rows behind"):
        assert said in first
    lines = [(index, line.plain) for index, line in enumerate(stay) if line is not None]
    index, line = lines[-1]
    ago = len(stay) - 1 - index
    when = "now" if ago == 0 else f"{ago} batch{'es' if ago > 1 else ''} ago"
    assert last.startswith(f"last event {when}: batch {index}: ")
    assert line.startswith(f"batch {index}: ")
