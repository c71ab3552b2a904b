"""The kernel's own tests, for what Python cannot reach: threads, out of memory, rounding."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_kernels_own_tests_pass() -> None:
    """Built in build/kernel-tests: a few seconds, and less the next time."""
    tools = Path(sys.executable).parent
    cmake, ninja = (shutil.which(name, path=tools) or name for name in ("cmake", "ninja"))
    build = ROOT / "build" / "kernel-tests"
    nanobind = _run(sys.executable, "-m", "nanobind", "--cmake_dir").stdout.strip()
    configured = _run(
        cmake, "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind}", "-DKMEANDER_TESTS=ON",
    )  # fmt: skip
    if "GTest" in configured.stderr:
        pytest.skip("GoogleTest is not installed (Debian: apt-get install libgtest-dev)")
    assert configured.returncode == 0, configured.stderr
    built = _run(cmake, "--build", build, "--target", "kernel_tests")
    assert built.returncode == 0, built.stdout
    tested = _run(build / "kernel_tests", "--gtest_brief=1")
    assert tested.returncode == 0, tested.stdout
    assert "[  PASSED  ]" in tested.stdout


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
