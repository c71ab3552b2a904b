"""The page on the neighbours: its Python runs and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "neighbours.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_there_is_something_to_run() -> None:
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("block", BLOCKS)
def test_the_python_of_the_page_prints_what_it_says(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stderr == ""
    shown = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)
    assert shown and done.stdout.splitlines() == shown


def test_the_lines_on_bertopic_are_python() -> None:
    (block,) = re.findall(r"```py\n(.*?)```", PAGE, re.S)
    compile(block, "docs/neighbours.md", "exec")
