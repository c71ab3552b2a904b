"""What the command line makes of options, and what it shows while it works."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import kmeander
from kmeander import InputError, Step, events, page
from kmeander.cli import app
from kmeander.commands import experiment, progress, showing
from kmeander.commands import run as run_command
from kmeander.commands.values import pairs, refine_of, rho_of
from kmeander.runs.records import RunSummary
from tests.streams import drifting_stream


def test_rho_and_refine_are_read_from_words() -> None:
    assert [rho_of(text) for text in ("auto", "0.5")] == ["auto", 0.5]
    with pytest.raises(InputError, match=r"rho must lie in \(0, 1\), got 1.0\. It is the share"):
        rho_of("1")
    assert rho_of("half") == "half"  # which the library refuses
    assert [refine_of(text) for text in ("none", "swaps", "split-merge", "7")] == [
        None, "swaps", "split-merge", 7,
    ]  # fmt: skip
    with pytest.raises(typer.BadParameter) as error:
        refine_of("0")
    assert str(error.value) == (
        "--refine must be swaps, split-merge, none or a number of swaps to try of at least 1, "
        "got '0'"
    )


def test_settings_for_kafka_are_pairs() -> None:
    assert pairs([]) == {}
    assert pairs(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


def test_without_bokeh_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmeander.page.find_spec", lambda _: None)
    with pytest.raises(kmeander.InputError) as error:
        page.need_bokeh()
    assert str(error.value) == "the page needs bokeh: pip install 'kmeander[page]'"


def test_watching_needs_a_file_of_steps_beside_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    done = CliRunner().invoke(
        app,
        ["run", str(path), "--clusters", "1", "--watch", "--steps", "-"],
        env={"COLUMNS": "200"},
    )
    assert done.exit_code == 2
    assert "--watch needs --steps FILE where standard output is a pipe" in done.stderr


def test_a_watched_run_without_a_file_uses_one_that_is_thrown_away() -> None:
    with run_command._steps_to_read(None, "--watch") as steps:
        folder = Path(steps).parent
        assert folder.is_dir()
    assert not folder.exists()


def summary_of(**more: Any) -> RunSummary:
    summary = kmeander.run(drifting_stream(8, n_features=2), 3, random_state=0).summary
    for name, value in more.items():
        setattr(summary, name, value)
    return summary


def test_a_summary_counts_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    run_command._say_summary(summary_of(n_reseeded=2, n_unconverged=1), "x", 2, resumable=False)
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == [
        "Clusters that lost all their points and were seeded anew: 2.",
        "Batches that stopped at max_iter: 1.",
    ]


def test_a_summary_says_what_is_known_of_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(events={"drift": 2}, n_unconfirmed=3)
    run_command._say_summary(summary, "x", 3, resumable=False)
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == [
        "Events: 2 drift; 3 unconfirmed.",
        "Noise between batches is not known yet (7 batches of 20).",
    ]
    assert isinstance(summary.last, Step)
    older = replace(summary.last, noise=None)  # of a checkpoint that is older than noise
    run_command._say_summary(summary_of(last=older), "x", 3, resumable=False)
    assert "oise" not in capsys.readouterr().err


def test_a_summary_counts_events_that_are_unconfirmed_apart() -> None:
    summary = RunSummary()
    step = summary_of().last
    assert isinstance(step, Step)
    told = (events.Event("moved", 0), events.Event("drift", unconfirmed=True))
    summary.add(replace(step, events=told))
    assert (summary.events, summary.n_unconfirmed) == ({"moved": 1}, 1)


def test_louder_events_have_louder_colours() -> None:
    summary = summary_of()
    step = summary.last
    assert isinstance(step, Step)

    def with_kinds(*kinds: str) -> Step:
        return replace(step, events=tuple(events.Event(kind, 0) for kind in kinds))

    assert progress.style_of(with_kinds("moved")) == "cyan"
    assert progress.style_of(with_kinds("moved", "born")) == "yellow"
    assert progress.style_of(with_kinds("born", "drift")) == "bold red"
    doubtful = replace(step, events=(events.Event("drift", unconfirmed=True),))
    assert progress.style_of(doubtful) == "dim"


def test_progress_is_one_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    show = progress.lines()
    kmeander.run(drifting_stream(3, n_points=50), 3, random_state=0, on_progress=show)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("batch 3, ")]
    assert re.fullmatch(
        r"batch 3, rows 150, error [\d.e+]+, drift [\d.]+, [\d.]+\w? rows/s", said[-1]
    )


def test_a_terminal_shows_progress_that_moves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with ExitStack() as stack:
        show = showing.live_screen(stack)
        kmeander.run(drifting_stream(9, n_points=50), 3, random_state=0, on_progress=show.progress)
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "batch 9  450 rows" in shown
    assert re.search(r"  drift x[\d.]+", shown)
    assert re.search(r"batch 4: drift: error .* what was expected", shown)


def test_a_terminal_shows_a_bar_of_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    class Done:
        cell = type("Cell", (), {"name": "pulsar-K5"})()
        seconds = 1.0

    with ExitStack() as stack:
        advance = experiment._progress(2, stack)
        advance(Done())  # type: ignore[arg-type]
        advance(Done())  # type: ignore[arg-type]
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "2/2" in shown and "pulsar-K5" in shown
