"""Options from a TOML file, and what was given written to one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import typing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from kmeander.cli import app

RUN = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]  # a group's
OPTIONS = [
    parameter
    for parameter in RUN.params
    if parameter.param_type_name == "option"
    and not parameter.hidden
    and parameter.opts[0] not in ("--config", "--write-config", "--help", "--help-all")
]
# Words for options that take only some; others get a number or a name.
WORDS = {
    "n_clusters": "2-30", "rho": "0.25", "refine": "none", "report": "r.html",
    "log": "json", "notify_on": "drift", "fail_on": "drift",
    "stop_on": "drift", "metrics": "127.0.0.1:9464", "kafka_options": "a=b",
}  # fmt: skip
TOGETHER = {"half_life", "quiet", "rho", "watch"}  # that exclude one another


def invoke(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["run", *words], env={"COLUMNS": "1000", **(env or {})})


def takes_number(parameter: Any) -> bool:
    kinds = typing.get_args(parameter.type_descriptor.annotation)
    return bool({int, float} & {parameter.type_descriptor.annotation, *kinds})


def value_for(parameter: Any) -> list[str]:
    if parameter.is_flag:
        return []
    if parameter.name in WORDS:
        return [WORDS[parameter.name]]
    return ["7" if takes_number(parameter) else 'a "b", ${c}é']


def said(done: Result) -> str:
    return " ".join(done.stderr.replace("│", " ").split())


def test_every_option_is_written_and_read_again(tmp_path: Path) -> None:
    words = ["x.csv"]
    for parameter in OPTIONS:
        if parameter.name not in TOGETHER:
            words += [parameter.opts[0], *value_for(parameter)]
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    done = invoke(*words, "--write-config", str(first))
    assert done.exit_code == 0, done.stderr
    assert said(done) == f"Written; next: kmeander run --config {first}"
    done = invoke("--config", str(first), "--write-config", str(second))
    assert done.exit_code == 0, done.stderr
    assert second.read_text("utf-8") == first.read_text("utf-8")
    written = tomllib.loads(first.read_text("utf-8"))
    n_written = sum(len(section) for section in written.values())
    assert n_written == len([one for one in OPTIONS if one.name not in TOGETHER]) + 1
    panels = {str(one.rich_help_panel).lower().replace(" ", "-") for one in OPTIONS}
    assert set(written) == panels | {"arguments"}


def test_a_run_from_a_file_is_the_run_of_its_options(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("a,b\n" + "".join(f"{n % 7},{n % 5}\n" for n in range(100)))
    config = tmp_path / "run.toml"
    config.write_text(
        f"""
        [arguments]
        source = '{data}'
        [model]
        clusters = 3
        half-life = 2.5
        [batches]
        batch-size = 20
        [rows-and-columns]
        columns = ["a", "b"]
        [outputs]
        steps = "${{STEPS}}"
        quiet = true
        """
    )
    env = {"STEPS": str(tmp_path / "one.jsonl")}
    assert invoke("--config", str(config), env=env).exit_code == 0
    words = ["--clusters", "3", "--half-life", "2.5", "--batch-size", "20", "--columns", "a,b"]
    done = invoke(str(data), *words, "--quiet", "--steps", str(tmp_path / "other.jsonl"))
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()
    # The command line wins.
    words = ["--clusters", "2", "--steps", str(tmp_path / "two.jsonl")]
    assert invoke("--config", str(config), *words, env=env).exit_code == 0
    assert '"clusters":2' in (tmp_path / "two.jsonl").read_text() or (
        (tmp_path / "two.jsonl").read_bytes() != (tmp_path / "one.jsonl").read_bytes()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nn_clusters = 3", "there is no n_clusters in [model]. Did you mean clusters in "
         "[model]?"),
        ("[model]\nquiet = true", "there is no quiet in [model]. Did you mean quiet in [outputs]?"),
        ("[model]\nhalflife = 3", "there is no halflife in [model]. Did you mean half-life in "
         "[model]?"),
        ("clusters = 3", "clusters stands outside of any section. Did you mean clusters in "
         "[model]?"),
        ("[outputs]\nquiet = 'yes'", "quiet in [outputs] must be true or false, got 'yes'"),
        ("[model]\nclusters = true", "clusters in [model] must be a text, a number or a list of "
         "texts, got True"),
        ("[outputs]\nsteps = '${NOT_SET}/x'", "steps in [outputs] asks for the environment "
         "variable 'NOT_SET', which is not set. Set it, or write $${NOT_SET} for these very "
         "characters"),
        ("[model", "it is not TOML: Expected ']' at the end of a table declaration (at end of "
         "document)"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_say_is_refused(text: str, message: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    done = invoke("x.csv", "--config", str(config))
    assert done.exit_code == 2
    assert f"Invalid value for '--config': {config}: {message}" in said(done)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[model]\nclusters = 'eight'",
            "Invalid value: --clusters must be a number, two with a dash between",
        ),
        (
            "[model]\nclusters = 2.5",
            "Invalid value: --clusters must be a number, two with a dash between",
        ),
    ],
)
def test_values_are_checked_as_on_the_command_line(text: str, message: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    done = invoke("x.csv", "--config", str(config))
    assert done.exit_code == 2
    assert message in said(done)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = invoke("x.csv", "--config", str(tmp_path / "none.toml"))
    assert done.exit_code == 2
    assert "none.toml: it cannot be read: No such file or directory" in said(done)


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text("# mine\n")
    done = invoke("x.csv", "--write-config", str(config))
    assert done.exit_code == 2
    assert f"--write-config {config}: there is such a file. Name another, or remove it" in said(
        done
    )
    assert config.read_text() == "# mine\n"


def test_a_secret_may_stand_in_a_file_by_the_name_of_its_variable(tmp_path: Path) -> None:
    config, again = tmp_path / "run.toml", tmp_path / "again.toml"
    config.write_text('[source]\nkafka-option = ["sasl.password=${PASSWORD}", "acks=all"]\n')
    words = ("kafka://127.0.0.1:1/t", "--config", str(config), "--write-config", str(again))
    done = invoke(*words, env={"PASSWORD": "hunter2"})
    assert done.exit_code == 0, done.stderr
    assert "hunter2" not in again.read_text()
    assert "sasl.password=${PASSWORD}" in again.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_options(shell: str) -> None:
    env = {
        **os.environ,
        "_KMEANDER_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "kmeander run --batch-si",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "kmeander run --batch-si",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    program = Path(sys.executable).parent / "kmeander"
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    assert "--batch-size" in done.stdout
