"""The page on other systems: its Python runs and prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import ROOT, follow


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:::mlflow")  # its own, when it is imported
@pytest.mark.filterwarnings("ignore:.*Any type hint:UserWarning")
def test_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "howto" / "other-systems.md").read_text("utf-8")
    assert follow(page) == {"python": 7, "sh": 0}
