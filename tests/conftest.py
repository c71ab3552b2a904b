from __future__ import annotations

import os

# scikit-learn's own checks skip one of themselves without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

settings.register_profile("kmeander", deadline=None, derandomize=True, max_examples=100)
# Compiled code under a sanitizer, and all of Python beside it, takes many times as long.
settings.register_profile("sanitize", deadline=None, derandomize=True, max_examples=8)
settings.load_profile("kmeander")

INITS = ("hungarian", "weighted", "current", "previous")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20211207)


def drifting_stream(
    n_batches: int = 12,
    n_points: int = 60,
    n_features: int = 3,
    n_clusters: int = 4,
    seed: int = 0,
) -> list[NDArray[np.float64]]:
    """Gaussian clusters that jump elsewhere every four batches."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(n_batches):
        if index % 4 == 0:
            centres = rng.normal(scale=5.0, size=(n_clusters, n_features))
        members = rng.integers(n_clusters, size=n_points)
        batches.append(centres[members] + rng.normal(size=(n_points, n_features)))
    return batches


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
