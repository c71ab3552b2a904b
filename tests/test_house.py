"""The house: short files, each name once, few rows in its maps, few calls in a step."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.bench_step import MOST_CALLS, calls_of_a_step

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "kmeander"
SOURCES = sorted(
    path
    for folder in ("src", "kernel", "benchmarks", "faults", "examples", "docs")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyi", ".cpp", ".hpp"}
    and not {"_build", "gallery"} & set(path.relative_to(ROOT / folder).parts[:1])
)
CXX_CLASS = re.compile(
    r"^ *(?:class|struct|enum class|enum) (\w+)(?: final)?(?: :[^;{]*)? \{", re.M
)


def defined_in_python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_no_class_name_means_two_things() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in defined_in_python(path):
            found[name].add(str(path.relative_to(ROOT)))
    for path in sorted((ROOT / "kernel").rglob("*.?pp")):
        for name in CXX_CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].add(str(path.relative_to(ROOT)))
    assert len(found) > 200
    # The stub of the kernel has the kernel's own names. River's door is named as scikit-learn's.
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert twice.pop("ForgetfulKMeans") == {
        "src/kmeander/estimators/forgetful.py",
        "src/kmeander/estimators/river.py",
    }
    assert twice == {}
    stub = set(defined_in_python(PACKAGE / "_kernel.pyi"))
    python = {name for name, places in found.items() if any(p.startswith("src") for p in places)}
    assert not stub & python


def test_every_algorithm_is_in_a_room() -> None:
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert len({name for name in entries if not name.endswith(".so")}) <= 32


def test_the_contract_of_rooms_is_short() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["type"] == "layers"]
    assert len(layers) <= 18
    for contract in contracts:  # of all but the rooms that may know a library, new ones included
        if contract["type"] == "forbidden":
            assert contract["source_modules"] == ["kmeander.*"]


def test_readme_glossary_and_decisions_are_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
    words = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words")[1]
    assert 10 <= len(re.findall(r"^\| .* \|$", words.split("\n## ")[0], re.M)) - 1 <= 20
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        for entry in page.read_text(encoding="utf-8").split("\n### ")[1:]:
            title, *lines = entry.split("\n## ")[0].splitlines()
            assert len([line for line in lines if line.strip()]) <= 6, f"{page.name}: {title}"


def test_a_calm_step_takes_few_calls() -> None:
    calls = calls_of_a_step()
    assert ("models/fskm.py", "FSKM.step") in calls
    assert sum(calls.values()) <= MOST_CALLS
    assert len({file for file, _ in calls}) <= 16  # see docs/decisions/product.md
