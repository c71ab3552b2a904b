"""Where a function of kmeander, or a test, begins: found, and never written down."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "kmeander"
Place = tuple[Path, int]


def find_code(name: str) -> Place:
    """Return file and line of what is called `name`.

    That is ``module.name`` or ``module.Class.method`` of kmeander, ``kernel/file.cpp:function``, or
    a file alone.
    """
    if "/" in name:
        return _in_a_file(*name.partition(":")[::2])
    parts = name.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        path = PACKAGE.joinpath(*parts[:depth]).with_suffix(".py")
        if path.is_file():
            return path, _line_of(path, parts[depth:])
    raise LookupError(f"{name!r} begins with no module of kmeander")


def find_test(name: str) -> Place:
    """Return file and line of the test called `name`."""
    if name not in _tests():
        raise LookupError(f"there is no test {name!r}")
    return _tests()[name]


def _in_a_file(file: str, function: str) -> Place:
    path = ROOT / file
    if not path.is_file():
        raise LookupError(f"there is no file {file!r}")
    if not function:
        return path, 1
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if re.match(rf"[A-Za-z][\w:<>&*, ]*\b{re.escape(function)}\(", line):
            return path, number
    raise LookupError(f"{file} has no {function!r}")


def _line_of(path: Path, names: list[str]) -> int:
    body = ast.parse(path.read_text("utf-8")).body
    line = 0
    for name in names:
        found = [item for item in body if name in _defined(item)]
        if not found:
            raise LookupError(f"{path.relative_to(ROOT)} has no {name!r}")
        last = found[-1]  # overloads come before what they are overloads of
        line = last.lineno
        body = last.body if isinstance(last, ast.ClassDef) else []
    return line


def _defined(item: ast.stmt) -> list[str]:
    if isinstance(item, ast.FunctionDef | ast.ClassDef):
        return [item.name]
    targets = item.targets if isinstance(item, ast.Assign) else []
    if isinstance(item, ast.AnnAssign):
        targets = [item.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def _tests() -> dict[str, Place]:
    return {
        item.name: (path, item.lineno)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for item in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(item, ast.FunctionDef) and item.name.startswith("test_")
    }
