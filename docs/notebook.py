"""The tutorial as a notebook: every block that a reader types is a cell.

python -m docs.notebook > docs/tutorial.ipynb
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "tutorial.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.M | re.S)


def cells(page: str) -> list[dict[str, Any]]:
    """Return the cells of a page: text, Python, and shell by its magic; outputs are left out."""
    found: list[dict[str, Any]] = []
    end = 0
    for block in BLOCK.finditer(page):
        _add_text(found, page[end : block.start()])
        end = block.end()
        language, code = block.groups()
        if language == "python":
            _add(found, "code", code)
        elif language == "sh":
            _add(found, "code", f"%%bash\n{code}")
        elif not language:
            _add_text(found, block.group())
    _add_text(found, page[end:])
    return found


def _add_text(found: list[dict[str, Any]], text: str) -> None:
    text = re.sub(r"!\[(.*?)\]\(.*?\)", r"*\1*", text)  # a notebook draws its own
    text = re.sub(r"\[(.*?)\]\((?!https?:).*?\)", r"\1", text)
    if text.strip():
        _add(found, "markdown", text.strip())


def _add(found: list[dict[str, Any]], kind: str, source: str) -> None:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{len(found)}",
        "metadata": {},
        "source": source.rstrip().splitlines(keepends=True),
    }
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    found.append(cell)


def notebook(page: str) -> dict[str, Any]:
    """Return the page as a notebook."""
    return {
        "cells": cells(page),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def as_text(page: str) -> str:
    """Return the notebook as its file holds it."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_text(PAGE.read_text("utf-8")))
