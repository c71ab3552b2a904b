"""The package as a whole: promised names, import cost, README."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import kmeander
from tests.pages import as_pattern, in_shell

ROOT = Path(__file__).parent.parent

PROMISED = {
    "ForgetfulKMeans": "(n_clusters=8, *, init='previous', rho=0.6, refine='swaps', "
    "forgetting='adaptive', max_batches=None, "
    "max_points=None, max_iter=300, tol=0.0, n_threads=None, alarm_rate=0.001, season=None, "
    "prepare=None, metric='euclidean', random_state=None)",
    "PrivilegedKMeans": "(n_clusters=8, *, max_iter=300, tol=0.0, n_threads=None, "
    "alarm_rate=0.001, season=None, "
    "prepare=None, metric='euclidean', random_state=None)",
    "ForgetfulKMeans.fit": "(self, X, y=None, sample_weight=None)",
    "ForgetfulKMeans.partial_fit": "(self, X, y=None, sample_weight=None, *, elapsed=1.0, "
    "rows=None, texts=None)",
    "PrivilegedKMeans.partial_fit": "(self, X, y=None, sample_weight=None, *, drift=False, "
    "rows=None, texts=None)",
    "ForgetfulKMeans.as_in_paper": "(n_clusters=8, **params)",
    "ForgetfulKMeans.save": "(self, path)",
    "PrequentialSplit": "(batch_size, *, min_train_batches=1, max_train_batches=None)",
    "StreamFit": "(estimator, *, batch_size=500)",
    "load": "(path)",
    "kmeans_error": "(X, centroids, sample_weight=None, *, metric='euclidean')",
    "skm_error": "(batches, centroids, *, metric='euclidean')",
    "surrogate_error": "(batches, centroids, rho, *, metric='euclidean')",
    "theorem1_bound": "(rho, n_batches, batch_size, value_range, delta)",
    "theorem1_gap": "(rho, n_batches, epsilon, error)",
    "rho_for_drift": "(epsilon, stable_for, m=2.0, negligible=0.01)",
    "rho_for_half_life": "(batches)",
    "max_batches_for": "(rho, negligible=0.01)",
    "weighted_lloyd": "(X, centroids, sample_weight=None, *, max_iter=300, tol=0.0, "
    "n_threads=None, metric='euclidean')",
    "kmeans_plusplus": "(X, n_clusters, sample_weight=None, *, random_state=None, "
    "metric='euclidean')",
    "initialise.hungarian": "(previous, previous_mass, current, current_mass)",
    "initialise.weighted": "(previous, previous_mass, current, current_mass, *, random_state=None)",
    "FSKM.step": "(self, batch, *, previous=None, current=None)",
    "FSKM.state": "(self)",
    "PSKM.step": "(self, batch, *, previous=None, current=None)",
    "Batch": "(index, points, weights=None, elapsed=1.0, concept=None, times=None, captions=None)",
    "suggest_clusters": "(X, candidates=range(1, 11), *, criterion='silhouette', "
    "sample_weight=None, random_state=None, n_threads=None)",
    "simulate_drifts": "(X, n_clusters, epsilon, n_concepts, *, method='root', "
    "return_centroids=False, random_state=None)",
    "DriftStream": "(concepts, batch_size=500, batches_per_concept=10, random_state=None)",
}


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_have_their_signatures(name: str) -> None:
    value = kmeander
    for part in name.split("."):
        value = getattr(value, part)
    signature = inspect.signature(value)  # type: ignore[arg-type]
    bare = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    assert str(bare) == PROMISED[name]


def test_every_public_name_is_there_and_others_are_not() -> None:
    for name in kmeander.__all__:
        assert getattr(kmeander, name) is not None
    assert set(kmeander.__all__) < set(dir(kmeander))
    with pytest.raises(AttributeError, match="module 'kmeander' has no attribute 'KMeans'"):
        kmeander.KMeans  # noqa: B018


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def test_importing_loads_nothing_heavy() -> None:
    code = """
        import sys, kmeander
        heavy = {"sklearn", "scipy", "pyarrow", "matplotlib", "pandas", "rich", "typer",
                 "confluent_kafka", "pyspark", "river"}
        print(sorted(heavy & set(sys.modules)))
        model = kmeander.FSKM(2, init="previous", random_state=0)
        for index in range(2):
            model.step(kmeander.Batch(index, [[0.0], [1.0]]))
        print(sorted(heavy & set(sys.modules)))
        """
    assert python(code).stdout == "[]\n[]\n"


def test_without_the_extra_the_command_line_names_it() -> None:
    code = """
        import sys
        sys.modules["typer"] = None
        import kmeander.cli
        """
    done = python(code)
    assert done.returncode == 1
    assert done.stderr == ("kmeander: the command line needs typer: pip install 'kmeander[cli]'\n")


def test_without_the_extra_spark_names_it() -> None:
    code = """
        import sys
        sys.modules["pyspark"] = None
        sys.modules["pyspark.sql"] = None
        try:
            import kmeander.spark
        except ImportError as error:
            print(error)
        """
    assert python(code).stdout == (
        "kmeander.spark needs pyspark.sql: pip install 'kmeander[spark]', and Java 17.\n"
    )


def test_spark_workers_import_nothing_heavy() -> None:
    """An executor starts many of them."""
    code = """
        import sys
        import kmeander.spark.batches, kmeander.spark.labelling
        print(sorted({"sklearn", "scipy", "pandas", "matplotlib"} & set(sys.modules)))
        """
    assert python(code).stdout == "[]\n"


def test_the_tests_have_the_spark_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"]["spark"]
    ours = [x.replace("[connect]", "") for x in project["dependency-groups"]["spark"]]
    assert ours == [x for x in extra if x.startswith("pyspark")]


def readme_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_the_python_of_the_readme_runs_and_prints_what_it_says() -> None:
    blocks = readme_blocks("python")
    assert blocks
    for block in blocks:
        done = python(block)
        assert done.stderr == ""
        shown = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)
        assert done.stdout.splitlines() == shown


def test_the_shell_of_the_readme_names_real_commands_and_files() -> None:
    commands = "\n".join(readme_blocks("sh"))
    for target in re.findall(r"make (\w+)", commands):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
    for image in re.findall(r"!\[.*?\]\((.*?)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / image).is_file()


@pytest.mark.slow
def test_the_shell_of_the_readme_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the line that enters `.venv`: the commands are those of this environment."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"```sh\n([^`]*)```\n\n```text\n(.*?)```", page, re.S)
    came = in_shell(code.replace("source .venv/bin/activate\n", ""))
    assert re.fullmatch(as_pattern(shown), came), came
    assert (tmp_path / "report.html").stat().st_size > 100_000


@pytest.mark.xdist_group("guard")
def test_groups_of_tests_stay_in_one_worker(request: pytest.FixtureRequest) -> None:
    """pytest-xdist says so by a suffix, and says nothing where it has lost the groups."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@guard")


@pytest.mark.slow
def test_the_demo_ends_in_a_page_and_a_picture(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "examples/demo.py", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    rows = {line[2:30].strip(): line[30:].split() for line in done.stdout.splitlines()}
    ours, theirs = map(float, rows["41-59, after it"])
    assert ours < theirs / 4
    assert (tmp_path / "demo.png").stat().st_size > 50_000
    report = tmp_path / "report.html"
    assert done.stdout.endswith(f"What happened, and the clusters now: {report.as_uri()}\n")
    assert "Quiet since batch 40: 19 batches without a change." in report.read_text("utf-8")


def test_show_config_names_the_kernel_and_the_threads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KMEANDER_NUM_THREADS", "3")
    facts = kmeander.show_config("dict")
    assert facts is not None
    assert facts["threads"] == 3
    assert facts["instruction set"] in ("avx512", "avx2", "baseline")
    assert kmeander.show_config() is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(facts)
    assert "threads:         3  (KMEANDER_NUM_THREADS chooses)" in lines
    with pytest.raises(kmeander.InputError, match="mode must be 'stdout' or 'dict', got 'json'"):
        kmeander.show_config("json")
