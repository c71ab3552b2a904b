"""The page about Spark calls what there is, as it is called."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark")

from kmeander import spark as ks
from tests.spark.streams import WHY_NOT, session, write_file

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


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_six_files_are_six_batches_as_the_page_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for number in range(6):
        temp, load = rng.normal(size=(2, 50))
        machines = [f"m{row}" for row in range(50)]
        table = {"machine": machines, "temp": temp, "load": load}
        write_file(tmp_path / "readings", f"{number}", table)
    monkeypatch.chdir(tmp_path)
    block = BLOCKS[0].replace('"readings/"', f'"{tmp_path}/readings/"')  # the JVM has not moved
    block = block.replace("query.awaitTermination()", "query.processAllAvailable(); query.stop()")
    with session("local[2]"):
        exec(block, {})
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["0", "1", "2", "3", "4", "5"]
    assert (tmp_path / "state" / "readings" / "model").is_dir()


def test_the_package_offers_five_names() -> None:
    assert dir(ks) == ks.__all__ == ["KafkaRows", "assign", "learn", "load", "register"]
    for name in ks.__all__:
        assert callable(getattr(ks, name))
    with pytest.raises(AttributeError, match=r"module 'kmeander\.spark' has no attribute 'fit'"):
        ks.fit  # noqa: B018
