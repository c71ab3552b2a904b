"""--help of run fits a screen and names every option; --help-all explains them."""

from __future__ import annotations

from typing import Any

import typer.main
from typer.testing import CliRunner

from kmeander.cli import app
from kmeander.commands.short_help import COMMON

RUN: Any = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
OPTIONS = {
    parameter.opts[0]: parameter
    for parameter in RUN.params
    if parameter.param_type_name == "option" and not parameter.hidden
}


def shown(option: str, width: int = 80) -> list[str]:
    done = CliRunner().invoke(app, ["run", option], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return done.output.splitlines()


def test_help_fits_a_screen_and_names_every_option() -> None:
    lines = shown("--help")
    assert len(lines) <= 40
    assert max(len(line) for line in lines if not line.startswith("Example: ")) <= 80
    words = {word.strip(",():") for line in lines for word in line.split()}
    assert set(OPTIONS) <= words
    assert "Example: kmeander run readings.csv" in "\n".join(lines)
    assert lines[-1] == "kmeander run --help-all explains every option."


def test_what_help_explains_are_options() -> None:
    assert {parameter.name for parameter in OPTIONS.values()} >= COMMON


def test_help_all_explains_every_option() -> None:
    lines = shown("--help-all", 200)
    for option, parameter in OPTIONS.items():
        (line,) = [line for line in lines if line.split()[:2] == ["│", option]]
        assert str(parameter.help).split()[0] in line
