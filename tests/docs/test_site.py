"""The pages of the site say what is true: names, options, formats, links."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import re
import shlex
import struct
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import kmeander
from docs import check_links, command_line, source_lines
from kmeander import events, scenarios
from kmeander.cli import app
from kmeander.storage import checkpoint

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("_build", "gallery", "reference/api")
PAGES = [
    *ROOT.glob("*.md"),
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not path.relative_to(DOCS).as_posix().startswith(GENERATED)
    ),
]


def text_of(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, _, rest = text.partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.M)[0]


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of every row of the tables in a text, their heads left out."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith(("| `", "| one ")):
            yield cells


def names_in(text: str) -> list[str]:
    """Return what the first columns of the tables name."""
    return [name for cells in rows(text) for name in re.findall(r"`([^`]+)`", cells[0])]


# ---------------------------------------------------------------- API


def names_on_the_api_page() -> list[str]:
    return re.findall(r"^   ([A-Za-z_][\w.]*)$", text_of("reference/api.rst"), re.M)


def test_every_public_name_is_on_a_page() -> None:
    on_page = names_on_the_api_page()
    in_spark = ast.parse((ROOT / "src/kmeander/spark/__init__.py").read_text("utf-8")).body
    (spark_names,) = (
        ast.literal_eval(item.value)
        for item in in_spark
        if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "__all__"
    )
    expected = {
        *(set(kmeander.__all__) - {"initialise"}),
        "initialise.hungarian",
        "initialise.weighted",
        "river.ForgetfulKMeans",
        *(f"spark.{name}" for name in spark_names),
        *(f"scenarios.{name}" for name in scenarios.__all__),
    }
    assert sorted(on_page) == sorted(expected)


def test_every_name_on_the_api_page_has_a_sentence() -> None:
    """Autosummary shows the first line of the docstring beside it."""
    for name in set(names_on_the_api_page()) & set(kmeander.__all__):
        summary = (inspect.getdoc(getattr(kmeander, name)) or "").split("\n\n")[0]
        assert summary.endswith("."), name


# ---------------------------------------------------------------- command line


def test_the_page_of_the_command_line_is_what_the_program_says() -> None:
    assert text_of("reference/command-line.md") == command_line.page(), (
        "python -m docs.command_line > docs/reference/command-line.md"
    )


def commands() -> list[str]:
    return list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", commands())
def test_every_option_of_the_help_is_on_the_page_and_no_other(name: str) -> None:
    option = "--help-all" if name == "run" else "--help"
    help_text = CliRunner().invoke(app, [name, option], env={"COLUMNS": "240"}).output
    shown = set(re.findall(r"^\W*(--[a-z][a-z-]*)", help_text, re.M)) - {"--help"}
    told = section(text_of("reference/command-line.md"), f"## {name}")
    assert set(re.findall(r"^`(--[a-z][a-z-]*)", told, re.M)) == shown != set()


@pytest.mark.parametrize("name", commands())
def test_every_command_has_a_line_to_paste(name: str) -> None:
    told = section(text_of("reference/command-line.md"), f"## {name}")
    _, line = re.findall(r"```text\n(.*?)\n```", told, re.S)
    words = shlex.split(line.split(" | ")[0])
    assert words[:2] == ["kmeander", name]
    for option in (word for word in words if word.startswith("--")):
        assert f"\n`{option}" in told, option


# ---------------------------------------------------------------- formats


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a stream that jumps, with everything that a run can write."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 400, axis=0)
    rng.shuffle(points)
    points[600:] += [30.0, -20.0]
    np.savetxt(
        folder / "stream.csv",
        np.column_stack([60.0 * np.arange(len(points)), points + rng.normal(size=points.shape)]),
        delimiter=",",
        header="at,temp,load",
        comments="",
    )
    with (folder / "stream.csv").open("a") as file:
        file.write("72000,high,1\n")
    kmeander.run(
        str(folder / "stream.csv"),
        3,
        batch_size=100,
        time_column="at",
        random_state=0,
        prepare="auto",
        bad_rows=str(folder / "bad.ndjson"),
        steps=str(folder / "steps.jsonl"),
        assignments=f"{folder / 'rows'}/",
        centroids=str(folder / "clusters.csv"),
        model_out=str(folder / "model.km"),
        checkpoint=folder / "state",
    )
    return folder


def steps_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def fits(kind: str, value: Any) -> bool:
    """Whether a value is of the type that a page names in words."""
    if kind.endswith(" or null"):
        return value is None or fits(kind.removesuffix(" or null"), value)
    if kind.startswith("list of "):
        inner = kind.removeprefix("list of ").removesuffix(" of integers")
        return isinstance(value, list) and all(fits(inner, item) for item in value)
    plain: dict[str, type | tuple[type, ...]] = {
        "integer": int,
        "integers": int,
        "number": (int, float),
        "numbers": (int, float),
        "string": str,
        "strings": str,
        "object": dict,
        "objects": dict,
        "pairs": list,
        "lists of numbers": list,
    }
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, plain[kind]) and not isinstance(value, bool)


def check_types(table: str, value: dict[str, Any]) -> None:
    for cells in rows(table):
        for name in re.findall(r"`([^`]+)`", cells[0]):
            if name in value:
                assert fits(cells[1], value[name]), (name, cells[1], value[name])


def test_every_field_of_a_step_is_documented_with_its_type(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "## Steps").partition("### Events")[0]
    steps = steps_in(folder)
    written = {name for step in steps for name in step} - {"run"}
    written.add("memory")  # which `forgetting="on-trial"` alone has
    assert sorted(names_in(told)) == sorted(written)
    assert written - {"words"} == {
        entry.name
        for entry in fields(kmeander.Step)
        if entry.name not in ("seconds", "ended", "names", "columns")
    }
    for step in steps:
        check_types(told, step)


def test_every_field_of_an_event_is_documented(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "### Events")
    entries = {entry.name for entry in fields(kmeander.Event)}
    table = [cells[0].strip("`") for cells in rows(told)]
    assert sorted(table) == sorted(entries)
    (kinds,) = (cells[2] for cells in rows(told) if cells[0] == "`kind`")
    assert re.findall(r"`(\w+)`", kinds) == list(events.KINDS)
    found = [event for step in steps_in(folder) for event in step["events"]]
    assert {"drift"} < {event["kind"] for event in found}
    for event in found:
        check_types(told, event)


def test_every_field_of_a_profile_is_documented(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "### Profiles")
    assert set(names_in(told)) == {entry.name for entry in fields(kmeander.ClusterProfile)}
    profiles = [one for step in steps_in(folder) for one in step.get("profiles", ())]
    assert profiles
    for profile in profiles:
        check_types(told, profile)


def test_every_field_of_an_explanation_is_documented(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "### Why")
    (why,) = (step["why"] for step in steps_in(folder) if step["why"])
    assert names_in(told) == list(why)
    check_types(told, why)
    part = {entry.name for entry in fields(events.Part)}
    assert part <= set(re.findall(r"`(\w+)`", told.partition("A part has")[2]))


def test_every_fact_of_a_run_is_documented(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "### The first line")
    facts = steps_in(folder)[0]["run"]
    assert [cells[0].strip("`") for cells in rows(told)] == list(facts)
    check_types(told, facts)
    assert set(facts["standardize"]) == {"mean", "scale"}
    assert set(facts["projection"]) == {"mean", "components"}


def test_the_columns_of_tables_are_documented(folder: Path) -> None:
    formats = text_of("reference/formats.md")
    written = pq.read_table(folder / "rows").column_names
    assert written == ["row", "cluster", "distance"]
    assert [cells[0].split("`")[1] for cells in rows(section(formats, "## Assignments"))] == written
    header = pyarrow.csv.read_csv(folder / "clusters.csv").column_names
    assert names_in(section(formats, "## Centroids")) == header[:4]
    assert header[4:] == ["temp", "load"]
    bad = json.loads((folder / "bad.ndjson").read_text())
    assert list(bad) == ["source", "line", "reason", "text"]
    assert set(bad) <= set(re.findall(r"`(\w+)`", section(formats, "## Bad rows")))


def test_a_model_file_can_be_read_by_what_the_page_says(folder: Path) -> None:
    """Nothing of kmeander is used, but the table of the page."""
    told = section(text_of("reference/formats.md"), "## Model and checkpoint files")
    sizes = re.findall(r"^\| (\d+) \|", told, re.M)
    assert sizes == ["8", "4", "8", "32"]
    data = (folder / "model.km").read_bytes()
    magic, number, length = struct.unpack("<8sIQ", data[:20])
    assert magic == b"KMEANDER" and number == 1
    header = json.loads(data[20 : 20 + length])
    start, arrays = 20 + length, []
    for described in header["arrays"]:
        assert f"`{described['dtype']}`" in told
        shape = described["shape"]
        size = int(np.prod(shape))
        array = np.frombuffer(data, described["dtype"], size, start).reshape(shape)
        arrays.append(array)
        start += array.nbytes
    assert data[start:] == hashlib.sha256(data[:start]).digest()
    centroids = arrays[header["state"]["model"]["centroids"]["$array"]]
    assert centroids.tolist() == steps_in(folder)[-1]["centroids"]


def test_every_field_of_a_state_is_documented(folder: Path) -> None:
    told = section(text_of("reference/formats.md"), "## Model and checkpoint files")
    _, of_file, of_model, of_run = re.split(
        r"^The state of a model's file:|^The model's state:|^A checkpoint folder", told, flags=re.M
    )
    saved = checkpoint.read(folder / "model.km")
    assert sorted(names_in(of_file)) == sorted(saved)
    assert sorted(names_in(of_model)) == sorted(saved["model"])
    (window,) = (cells[1] for cells in rows(of_model) if cells[0] == "`window`")
    assert re.findall(r"`(\w+)`", window) == list(saved["model"]["window"])
    newest = max((folder / "state").glob("checkpoint-*.ckpt"))
    where_there_are_some = {"events_since_end", "notices"}
    assert sorted(names_in(of_run)) == sorted({*checkpoint.read(newest), *where_there_are_some})


# ---------------------------------------------------------------- configuration


def test_every_environment_variable_is_documented() -> None:
    package = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    kernel = "".join(path.read_text("utf-8") for path in (ROOT / "kernel").glob("*.cpp"))
    read = set(re.findall(r'"(KMEANDER_\w+)"', package)) | set(
        re.findall(r'getenv\("(\w+)', kernel)
    )
    told = section(text_of("reference/configuration.md"), "## Environment variables")
    assert set(names_in(told)) == read


def test_every_line_of_show_config_is_documented() -> None:
    told = section(text_of("reference/configuration.md"), "## This installation")
    assert names_in(told) == list(kmeander.show_config("dict") or {})


def test_every_extra_is_documented_with_what_it_brings() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        name: {re.split(r"[><=]", wanted)[0] for wanted in requirements}
        for name, requirements in project["optional-dependencies"].items()
    }
    table = list(rows(section(text_of("reference/configuration.md"), "## Extras")))
    assert sorted(cells[0].strip("`") for cells in table) == sorted(extras)
    for cells in table:
        brought = set(re.findall(r"[a-z0-9-]+", cells[2].partition(";")[0]))
        expected = extras[cells[0].strip("`")]
        if "`cli`'s" in cells[2]:
            expected = expected - extras["cli"] | {"cli"}
        assert brought - {"and", "s"} == expected


# ---------------------------------------------------------------- the paper


def test_every_idea_of_the_paper_has_code_and_tests() -> None:
    text = text_of("paper.md")
    ideas = re.split(r"^###? ", text, flags=re.M)[1:]
    headings = [idea.partition("\n")[0] for idea in ideas]
    for name in (
        "equation (1)", "Definition 1", "Definition 2", "Theorem 1", "Theorem 2", "Theorem 3",
        "Algorithm 1", "Algorithm 2", "Algorithm 3", "Algorithm 4", "Appendix A",
    ):  # fmt: skip
        assert any(name in heading for heading in headings), name
    with_formula = [idea for idea in ideas if "$$" in idea]
    assert len(with_formula) >= 10
    for idea in with_formula:
        assert "{src}`" in idea and "{test}`" in idea, idea.partition("\n")[0]


@pytest.mark.parametrize("page", [path for path in PAGES if "{src}`" in path.read_text("utf-8")])
def test_code_and_tests_that_pages_name_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"\{src\}`([^`]+)`", text):
        path, line = source_lines.find_code(name)
        last = re.split(r"[.:]", name)[-1]
        shown = path.read_text("utf-8").splitlines()[line - 1]
        assert last in shown or (line == 1 and path.name == Path(name).name)
    for name in re.findall(r"\{test\}`([^`]+)`", text):
        path, line = source_lines.find_test(name)
        assert f"def {name}(" in path.read_text("utf-8").splitlines()[line - 1]


def test_a_decision_is_short_and_names_tests_that_are_there() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    entries = [
        (heading, body.split("\n## ")[0])
        for page in pages
        for heading, _, body in (
            part.partition("\n") for part in page.read_text("utf-8").split("\n### ")[1:]
        )
    ]
    assert len(entries) > 50
    for heading, body in entries:
        lines = [line for line in body.splitlines() if line]
        assert 1 <= len(lines) <= 6, heading
        assert max(map(len, lines)) <= 112, heading
    text = "".join(page.read_text("utf-8") for page in pages)
    for name in re.findall(r"`(test_\w+)`", text):
        source_lines.find_test(name)
    for name in re.findall(r"`(test_\w+\.py)`", text):
        assert list((ROOT / "tests").rglob(name)), name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kmeans.window.at_all", r"src/kmeander/kmeans/window\.py has no 'at_all'"),
        ("nowhere.at_all", r"'nowhere\.at_all' begins with no module of kmeander"),
        ("kernel/kmeans/lloyd.cpp:nothing", r"kernel/kmeans/lloyd\.cpp has no 'nothing'"),
        ("kernel/nothing.cpp", r"there is no file 'kernel/nothing\.cpp'"),
    ],
)
def test_a_name_that_is_gone_is_an_error(name: str, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        source_lines.find_code(name)
    with pytest.raises(LookupError, match="there is no test 'test_of_nothing'"):
        source_lines.find_test("test_of_nothing")


# ---------------------------------------------------------------- contributing


def test_the_map_of_rooms_is_what_the_linter_checks() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    expected = [layer.replace("kmeander.", "").split(" | ") for layer in layers]
    table = section((ROOT / "CONTRIBUTING.md").read_text("utf-8"), "## Rooms")
    shown = [re.findall(r"`([^`]+)`", cells[0]) for cells in rows(table)]
    assert shown[: len(expected)] == expected
    for (folder,) in shown[len(expected) :]:
        assert (ROOT / folder).is_dir(), folder
    kernel = {f"kernel/{path.name}" for path in (ROOT / "kernel").iterdir()}
    assert kernel <= {name for names in shown for name in names}


def test_the_glossary_is_short() -> None:
    table = section((ROOT / "CONTRIBUTING.md").read_text("utf-8"), "## Words")
    words = re.findall(r"^\| ([a-zS][a-z ]+) \| ", table, re.M)[1:]
    assert {"batch", "window", "partition", "active point", "drift test"} < set(words)
    assert len(words) == len(set(words)) <= 20


# ---------------------------------------------------------------- links


def anchors_of(text: str) -> set[str]:
    """Return the anchors that GitHub, and the site, give to the headings of a page."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", without_code(text), re.M):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower())
        found.add(plain.replace(" ", "-"))
    return found


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def links_of(text: str) -> list[str]:
    shown = re.sub(r"`[^`]*`", "", without_code(text))
    found = re.findall(r"\]\(([^)\s]+)\)", shown) + re.findall(r'<img src="([^"]+)"', shown)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for link in links_of(text):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if target.is_relative_to(DOCS / "gallery"):  # made from the scripts, when the site is built
            assert (
                target.stem == "index" or (ROOT / "examples/gallery" / f"{target.stem}.py").exists()
            )
            continue
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target.read_text("utf-8")), link


def test_links_are_found_and_code_is_not_taken_for_one() -> None:
    text = '[a](b.md#c) ![d](e.png)\n```sh\n[f](g)\n```\n`[h](i)` [j](https://k) <img src="l.png">'
    assert links_of(text) == ["b.md#c", "e.png", "l.png"]


def test_a_dead_link_of_the_site_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top-of-a"></h1><a href="b.html#there">good</a><a href="#top-of-a">good</a>'
        '<a href="b.html#gone">bad</a><a href="c.html">bad</a><a href="https://example.org">far</a>'
        '<img src="https://example.org/x.png"><script src="data:,"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert check_links.problems(tmp_path) == [
        "a.html: loads https://example.org/x.png",
        "a.html: no anchor for b.html#gone",
        "a.html: no file for c.html",
    ]
