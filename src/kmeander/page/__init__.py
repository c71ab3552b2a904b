"""Draws recorded Steps, as a report or live. Knows no model; only here is bokeh imported."""

from importlib.util import find_spec

from kmeander.exceptions import InputError


def need_bokeh() -> None:
    """Say how to get bokeh where it is missing."""
    if find_spec("bokeh") is None:
        raise InputError("the page needs bokeh: pip install 'kmeander[page]'")
