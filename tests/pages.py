"""Pages typed block by block, as a reader would: what comes is compared with what they show."""

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

ROOT = Path(__file__).parent.parent


def blocks(page: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield language, code and the output shown for every block that is to be typed.

    Those are the blocks marked `python` and `sh`. Output is the `text` block after them, or what
    the comments behind calls of print say; None where a shell block shows none.
    """
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)
    for (language, code), (after, text) in zip(found, [*found[1:], ("", "")], strict=True):
        if language in ("python", "sh"):
            comments = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
            said = "".join(f"{comment}\n" for comment in comments)
            yield language, code, text if after == "text" else None if language == "sh" else said


def as_pattern(shown: str) -> str:
    """A line `...` stands for any lines, `...` within a line for anything on it."""
    pattern = re.escape(shown).replace(r"\.\.\.", "...")
    pattern = re.sub(r"^\.\.\.\n", "(?:.*\n)*", pattern.replace("\\\n", "\n"), flags=re.M)
    return pattern.replace("...", ".*")


def follow(page: str) -> dict[str, int]:
    """Type all blocks of a page, here and now, and return how many there were of each kind."""
    namespace: dict[str, Any] = {}
    typed = {"python": 0, "sh": 0}
    for language, code, shown in blocks(page):
        typed[language] += 1
        came = _in_python(code, namespace) if language == "python" else in_shell(code)
        fits = shown is None or re.fullmatch(as_pattern(shown), came)
        assert fits, f"{code}\nshows\n{shown}\nbut prints\n{came}"
    return typed


def _in_python(code: str, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "page", "exec"), namespace)
    return printed.getvalue()


def in_shell(code: str) -> str:
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
