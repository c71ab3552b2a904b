from __future__ import annotations

import os

# scikit-learn's own checks skip one of themselves without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("kmeander", deadline=None, derandomize=True, max_examples=100)
# Compiled code under a sanitizer, and all of Python beside it, takes many times as long.
settings.register_profile("sanitize", deadline=None, derandomize=True, max_examples=8)
settings.load_profile("kmeander")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20211207)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("KMEANDER_FAIL_ON_SKIP") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("KMEANDER_FAIL_ON_SKIP is set and a test was skipped.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be skipped, a skip is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        os.environ.get("KMEANDER_FAIL_ON_SKIP")
        and reporter is not None
        and reporter.stats.get("skipped")
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
