"""The tutorial, followed literally: block by block, in a fresh folder, comparing what comes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield language, code and the output shown for every block that is to be typed."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)
    for (language, code), (after, shown) in zip(found, [*found[1:], ("", "")], strict=True):
        if language != "text":
            yield language, code, shown if after == "text" else ""


def as_pattern(shown: str) -> str:
    """A line `...` stands for any lines, `...` within a line for anything on it."""
    pattern = re.escape(shown).replace(r"\.\.\.", "...")
    pattern = re.sub(r"^\.\.\.\n", "(?:.*\n)*", pattern.replace("\\\n", "\n"), flags=re.M)
    return pattern.replace("...", ".*")


def typed_in_python(code: str, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "tutorial.md", "exec"), namespace)
    return printed.getvalue()


def typed_in_shell(code: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", code],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_reader_who_types_every_block_sees_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")  # no window
    namespace: dict[str, Any] = {}
    typed = {"python": 0, "sh": 0}
    for language, code, shown in blocks(PAGE):
        typed[language] += 1
        came = typed_in_python(code, namespace) if language == "python" else typed_in_shell(code)
        assert re.fullmatch(as_pattern(shown), came), f"{code}\nshows\n{shown}\nbut prints\n{came}"
    assert typed == {"python": 12, "sh": 8}
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert (tmp_path / "pumps.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("shown", "came", "fits"),
    [
        ("a ... b\n", "a 1.5 s b\n", True),
        ("a ... b\n", "a\nb\n", False),
        ("a\n...\nb\n", "a\n1\n2\nb\n", True),
        ("a\n...\nb\n", "a\n1\nc\n", False),
        ("a\n...\n", "a\nb\n", True),
        ("[1. 2]\n", "[1. 2]\n", True),
        ("[1. 2]\n", "[10 2]\n", False),
        ("", "anything\n", False),
    ],
)
def test_what_is_shown_is_compared_whole_but_for_dots(shown: str, came: str, fits: bool) -> None:
    assert bool(re.fullmatch(as_pattern(shown), came)) is fits


def test_pictures_of_the_tutorial_are_there_and_small() -> None:
    pictures = re.findall(r"!\[.+?\]\((images/.+?)\)", PAGE)
    assert len(pictures) == 2
    for picture in pictures:
        assert 10_000 < (ROOT / "docs" / picture).stat().st_size < 200_000
