"""The gallery: every script runs as it stands, quietly, and prints what its text claims."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = {path.stem.removeprefix("plot_"): path for path in sorted(GALLERY.glob("plot_*.py"))}

NUMBER = r"(-?\d+(?:\.\d+)?)"


def numbers(pattern: str, printed: str) -> list[float]:
    """Numbers where the pattern has `#`, of the only line that it fits."""
    (line,) = re.findall(pattern.replace("#", NUMBER), printed)
    return [float(one) for one in ([line] if isinstance(line, str) else line)]


def beside_minibatch(printed: str) -> None:
    ours, ours_last = numbers(r" kmeander: mean error #, the last ten #", printed)
    theirs, theirs_last = numbers(r" MiniBatchKMeans: mean error #, the last ten #", printed)
    assert 1.28 < ours_last < ours < 2.5 < 4 * ours < theirs
    assert theirs_last > 4 * ours_last


def initialisations(printed: str) -> None:
    pc, cc, wi, hi = numbers(r"starts: PC # %, CC # %, WI # %, HI # %", printed)
    assert pc > 2 * cc > 4 * max(wi, hi)
    ends = numbers(r"ends: PC # %, CC # %, WI # %, HI # %", printed)
    assert min(ends) == ends[3] == 0


def theorem1(printed: str) -> None:
    for size in (250, 1000):
        (inside,) = numbers(rf"batches of {size}: #% of the differences", printed)
        assert 95 <= inside <= 100
    gaps = re.findall(r"after 1 batch (.*), after 10 (.*); measured (.*) and (.*)", printed)
    assert len(gaps) == 2
    for first, later, measured, measured_later in gaps:
        assert float(measured) == pytest.approx(float(first), rel=0.05)
        assert float(measured_later) < float(measured) / 10
        assert float(later) < float(first) / 10


def life_lines(printed: str) -> None:
    assert "events: {'born': 1, 'split': 2, 'died': 1, 'absorbed': 2}" in printed
    assert "7 ids were given to 4 centroids in 60 batches" in printed
    for batch, kinds in {
        24: ("split",),
        30: ("born", "died", "absorbed"),
        45: ("split", "absorbed"),
    }.items():
        told = re.findall(rf"^batch {batch}: (.*)$", printed, re.M)
        assert len(told) == len(kinds)
        assert all(kind in words for kind, words in zip(kinds, told, strict=True))


def explain_drift(printed: str) -> None:
    assert re.findall(r"^batch (\d+)$", printed, re.M) == ["20"]
    assert "along temp" in printed and "spread out along vibration" in printed
    assert "of clusters sum to 1.000000, of columns to 1.000000" in printed
    (share,) = numbers(r"temp and vibration together: #% of the change", printed)
    assert 95 < share < 105


def event_time(printed: str) -> None:
    by_batches, by_minutes = numbers(r"mean error by batches: #, by minutes: #", printed)
    assert 2 < by_minutes < 2.5 and by_batches > 3 * by_minutes


def long_memory(printed: str) -> None:
    assert "batches remembered: 10 at rho 0.6, 459 at 0.99" in printed
    short, _ = numbers(r"rho 0.6: error #, # kB", printed)
    long, all_points = numbers(r"rho 0.99: error #, # kB", printed)
    bounded, some_points = numbers(r"max_points=3000: error #, # kB", printed)
    assert long < bounded < long * 1.002 < short / 1.02
    assert some_points < all_points / 8


def embeddings(printed: str) -> None:
    (theirs,) = numbers(r"KMeans, refitted every night: #% of the topics", printed)
    (ours,) = numbers(r"kmeander: #% of the topics", printed)
    assert ours == 0 and theirs > 75


def choose_rho_and_k(printed: str) -> None:
    rest, rest_auto = numbers(r"at rest: best rho of the grid #, auto ends with #", printed)
    slow, slow_auto = numbers(r"slow: best rho of the grid #, auto ends with #", printed)
    fast, fast_auto = numbers(r"fast: best rho of the grid #, auto ends with #", printed)
    assert rest > slow > fast and rest_auto > slow_auto > fast_auto
    assert "4 clusters by silhouette" in printed
    marks = re.findall(r"^K = (\d): holds_two (.*), merged (.*)$", printed, re.M)
    assert [(k, two != "[]", one != "[]") for k, two, one in marks] == [
        ("3", True, False),
        ("4", False, False),
        ("5", False, True),
    ]


def swaps(printed: str) -> None:
    near, worst = numbers(r"refine=None: # of 20 seeds .* worst at # times", printed)
    assert near <= 12 and worst > 1.5
    near, worst = numbers(r'refine="swaps": # of 20 seeds .* worst at # times', printed)
    assert near == 20 and worst < 1.1


CLAIMS: dict[str, Callable[[str], None]] = {
    claim.__name__: claim
    for claim in (
        beside_minibatch,
        initialisations,
        theorem1,
        life_lines,
        explain_drift,
        event_time,
        long_memory,
        embeddings,
        choose_rho_and_k,
        swaps,
    )
}


def test_every_script_of_the_gallery_is_tested() -> None:
    assert set(CLAIMS) == set(SCRIPTS)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_script_prints_what_its_text_claims(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPTS[name])],
        cwd=tmp_path,  # each stands alone, wherever it was downloaded to
        env={**environment, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    CLAIMS[name](done.stdout)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_not_met_by_silence(name: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        CLAIMS[name]("")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_begins_with_a_title_and_shows_a_picture(name: str) -> None:
    lines = SCRIPTS[name].read_text("utf-8").splitlines()
    assert lines[0] == '"""' and lines[2] == "=" * len(lines[1])
    assert "plt.show()" in lines
