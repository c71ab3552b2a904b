"""What is released: one version, a source archive that builds anywhere, a wheel that works."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
from pathlib import Path

import pytest
import yaml

import kmeander

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = PROJECT["project"]["version"]


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    """The source archive, made by the build backend as a release would."""
    code = f"import scikit_build_core.build as b; b.build_sdist({str(tmp_path / 'dist')!r})"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)
    (archive,) = (tmp_path / "dist").iterdir()
    assert archive.name == f"kmeander-{VERSION}.tar.gz"
    return archive


def test_the_version_stands_in_one_place() -> None:
    assert kmeander.__version__ == VERSION
    held = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "kernel")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".pyi", ".cpp", ".hpp") and VERSION in path.read_text("utf-8")
    ]
    assert held == []
    for name in ("CMakeLists.txt", "CITATION.cff"):
        assert VERSION not in (ROOT / name).read_text("utf-8")


def test_the_source_archive_holds_what_is_built_and_nothing_that_was(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder, pattern in (("kernel", "*pp"), ("src/kmeander", "**/*.py")):
        for path in (ROOT / folder).glob(pattern):
            assert path.relative_to(ROOT).as_posix() in names
    assert {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "CITATION.cff"} <= names
    built = re.compile(r"\.(so|pyd|o|pyc)$|^(\.venv|build|dist)/")
    assert not [name for name in names if built.search(name)]


@pytest.mark.slow
def test_a_wheel_from_the_source_archive_works_in_an_empty_environment(
    sdist: Path, tmp_path: Path
) -> None:
    """Built as a user's pip would on a clean machine, far from this folder and its environment.

    Build tools come from `build-system.requires` alone, and the wheel is used without anything but
    its own dependencies.
    """
    clean, wheels, empty = tmp_path / "clean", tmp_path / "wheels", tmp_path / "empty"
    with tarfile.open(sdist) as archive:
        archive.extractall(clean, filter="data")
    venv.create(empty, with_pip=True)
    inside = str(empty / "bin" / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check"]
    source = clean / f"kmeander-{VERSION}"
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(source)],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    (wheel,) = wheels.iterdir()
    subprocess.run(
        [*pip, "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel)],
        check=True,
        capture_output=True,
    )
    code = """
        import importlib.util, kmeander
        print(kmeander.__version__)
        print([bool(importlib.util.find_spec(name)) for name in ("typer", "pyarrow", "pytest")])
        """
    done = subprocess.run(
        [inside, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [VERSION, "[False, False, False]"]
    minimal = subprocess.run(
        [inside, str(ROOT / "tests" / "test_minimal.py")], capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert minimal.stderr == ""
    assert minimal.stdout.splitlines()[-1] == "3 passed, 0 failed"
    program = subprocess.run(
        [str(empty / "bin" / "kmeander"), "--help"], capture_output=True, text=True, check=False
    )
    assert program.returncode == 1
    assert program.stderr == (
        "kmeander: the command line needs typer: pip install 'kmeander[cli]'\n"
    )


def test_wheels_are_built_for_every_python_that_the_project_says() -> None:
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert min(wheels["build"]) == "cp311-*"
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    script = wheels["test-command"].replace("{project}", str(ROOT)).split()
    assert Path(script[1]).is_file()


def test_the_citation_names_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Bidaurrazaga",
        "Pérez",
        "Capó",
    ]
    assert (paper["title"], paper["year"]) == ("K-means for Evolving Data Streams", 2021)
    assert citation["license"] == PROJECT["project"]["license"]
