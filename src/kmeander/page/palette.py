"""One colour and one mark for an id, the same everywhere, distinct for the colour-blind, too."""

from __future__ import annotations

# Okabe and Ito's, without black, yellow a little darker so that it shows on white.
_BASE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#b8a900", "#7f7f7f")
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star")
OTHERS = "#a0a0a0"

# Of events: distinct by their mark as well.
EVENT_COLORS = {
    "drift": "#d55e00",
    "born": "#009e73",
    "split": "#56b4e9",
    "returned": "#2f9e9e",
    "died": "#7f7f7f",
    "absorbed": "#cc79a7",
    "moved": "#0072b2",
    "grew": "#b8a900",
    "shrank": "#e69f00",
    "trend": "#8062c0",
    "rescaled": "#a0a0a0",
}


def color_of(cluster: int) -> str:
    """Return the colour of an id: eight hues, then the same darker and lighter.

    Examples
    --------
    >>> color_of(0), color_of(8) != color_of(0)
    ('#0072b2', True)
    """
    hue, shade = _BASE[cluster % len(_BASE)], (cluster // len(_BASE)) % 3
    if shade == 0:
        return hue
    target = 0 if shade == 1 else 255
    parts = [int(hue[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(0.65 * part + 0.35 * target):02x}" for part in parts)


def marker_of(cluster: int) -> str:
    """Return the mark of an id, which changes with each round of hues."""
    return MARKERS[(cluster // len(_BASE)) % len(MARKERS)]
