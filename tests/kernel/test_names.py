"""One name, one thing: over the package and the kernel together."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]

CPP_CLASS = re.compile(
    r"\b(?:class|struct)(?:\s+alignas\(\d+\))?\s+(\w+)(?:\s+final)?(?:\s*:[^;{]*)?\s*\{"
)
PYTHON_CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)
BOUND_CLASS = re.compile(r'nb::class_<(?:\w+::)*(\w+)>\(module, "(\w+)"')

# The estimator for scikit-learn, and the same for river: both are public by this name.
SAME_THING = {"ForgetfulKMeans"}


def names(pattern: re.Pattern[str], folder: str, suffixes: set[str]) -> Counter[str]:
    return Counter(
        name
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in suffixes
        for name in pattern.findall(file.read_text(encoding="utf-8"))
    )


def test_no_class_has_the_name_of_another() -> None:
    """Nested ones, too; a class that the kernel shows to Python counts once."""
    in_kernel = names(CPP_CLASS, "kernel", {".hpp", ".cpp"})
    in_package = names(PYTHON_CLASS, "src/kmeander", {".py"})
    assert in_kernel["HamerlyAssigner"] == in_package["Step"] == 1
    both = in_kernel + in_package
    twice = {name for name, count in both.items() if count > 1}
    assert twice <= SAME_THING
    assert not twice & set(in_kernel)


def test_python_knows_the_kernels_classes_by_their_own_names() -> None:
    bindings = (ROOT / "kernel/bindings/classes.cpp").read_text(encoding="utf-8")
    bound = BOUND_CLASS.findall(bindings)
    assert len(bound) == 5
    assert all(own == shown for own, shown in bound)
