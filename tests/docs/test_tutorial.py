"""The tutorial, followed literally: block by block, in a fresh folder, comparing what comes."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from docs.notebook import as_text
from tests.pages import ROOT, as_pattern, blocks, follow

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")


@pytest.mark.slow
def test_a_reader_who_types_every_block_sees_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")  # no window
    assert follow(PAGE) == {"python": 12, "sh": 8}
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert (tmp_path / "pumps.png").stat().st_size > 10_000


def test_the_notebook_is_the_tutorial() -> None:
    assert (ROOT / "docs" / "tutorial.ipynb").read_text("utf-8") == as_text(PAGE)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what runs notebooks
def test_the_notebook_runs_and_prints_what_the_tutorial_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbclient import NotebookClient

    nbformat: Any = import_module("nbformat")

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KMEANDER_NUM_THREADS", "2")
    made = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(made, timeout=300, resources=resources).execute()
    typed = [cell for cell in made.cells if cell.cell_type == "code"]
    asked = list(blocks(PAGE))
    assert len(typed) == len(asked)
    for cell, (_, code, shown) in zip(typed, asked, strict=True):
        came = "".join(output.get("text", "") for output in cell.outputs)
        fits = not shown or re.fullmatch(as_pattern(shown), came)
        assert fits, f"{code}\nshows\n{shown}\nbut prints\n{came}"
    assert (tmp_path / "pumps.png").stat().st_size > 10_000


def test_every_block_of_shell_shows_what_it_prints() -> None:
    assert [code for _, code, shown in blocks(PAGE) if shown is None] == []


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


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1 + 1)  # 3\n```\n",
        "```python\nprint(1 + 1)\n```\n",
        "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n",
        "```sh\necho 2\n```\n\n```text\n3\n```\n",
        "```sh\nfalse\n```\n",
    ],
)
def test_a_page_that_shows_something_else_is_found(page: str) -> None:
    with pytest.raises(AssertionError):
        follow(page)


def test_pictures_of_the_tutorial_are_there_and_small() -> None:
    pictures = re.findall(r"!\[.+?\]\((images/.+?)\)", PAGE)
    assert len(pictures) == 2
    for picture in pictures:
        assert 10_000 < (ROOT / "docs" / picture).stat().st_size < 200_000
