"""The house: short files, few rows in its maps, few calls in a step."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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


def test_no_file_is_longer_than_400_lines() -> None:
    assert len(SOURCES) > 300
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}


def test_every_algorithm_is_in_a_room() -> None:
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert len({name for name in entries if not name.endswith(".so")}) <= 33


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
