"""The page about Spark calls what there is, as it is called."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kmeander import spark as ks

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/spark.md").read_text(), re.S)


def calls(block: str) -> list[tuple[str, ast.Call]]:
    found = []
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if owner in ("ks", "kmeander.spark"):
                found.append((node.func.attr, node))
    return found


def test_calls_on_the_page_fit_their_signatures() -> None:
    found = [call for block in BLOCKS for call in calls(block)]
    assert {"learn", "assign"} <= {name for name, _ in found}
    for name, call in found:
        names = {str(word.arg): None for word in call.keywords}
        inspect.signature(getattr(ks, name)).bind(*call.args, **names)


def test_the_package_offers_four_names() -> None:
    assert dir(ks) == ks.__all__ == ["assign", "learn", "load", "register"]
    for name in ks.__all__:
        assert callable(getattr(ks, name))
    with pytest.raises(AttributeError, match=r"module 'kmeander\.spark' has no attribute 'fit'"):
        ks.fit  # noqa: B018
