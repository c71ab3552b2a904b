"""Formulas as outlines, drawn by matplotlib when the site is built.

They look the same everywhere, in the colour of the text: no script, no font, no network. MathML
would need a font for formulas, which many phones and Linux machines lack.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from matplotlib import rc_context
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from sphinx.application import Sphinx
from sphinx.util import logging

EM = 100  # units of the outline per em
INLINE, BLOCK = 1.12, 1.25  # ems that one em of the outline takes: its letters are small
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
logger = logging.getLogger(__name__)


def svg(formula: str, scale: float) -> str:
    """Return LaTeX `formula` as an SVG element that stands on the line of the text around it.

    Parameters
    ----------
    formula : str
    scale : float
        Its size in that of the text.

    Raises
    ------
    ValueError
        Where matplotlib cannot read it.
    """
    with rc_context({"mathtext.fontset": "cm"}):
        outline = TextPath((0, 0), f"${formula}$", size=EM)
    box = outline.get_extents().padded(EM / 20)  # or thin lines at the edge are cut
    pieces = []
    for points, code in outline.iter_segments(curves=True, simplify=False):
        # An SVG's second axis points downwards.
        numbers = (f"{x:.1f} {-y:.1f}" for x, y in points.reshape(-1, 2))
        pieces.append("Z" if code == Path.CLOSEPOLY else LETTERS[code] + " ".join(numbers))
    wide, high, deep = (scale * length / EM for length in (box.width, box.height, box.y0))
    size = f'width="{wide:.3f}em" height="{high:.3f}em"'
    view = f"{box.x0:.1f} {-box.y1:.1f} {box.width:.1f} {box.height:.1f}"
    return (
        f'<svg class="formula" role="img" aria-label="{escape(formula)}" {size} viewBox="{view}" '
        f'style="vertical-align: {deep:.3f}em" fill="currentColor">'
        f'<path d="{"".join(pieces)}"/></svg>'
    )


def drawn(node: nodes.math | nodes.math_block, scale: float) -> str:
    """Return the formula of a node; one that cannot be read is a warning."""
    formula = " ".join(node.astext().split())
    try:
        return svg(formula, scale)
    except ValueError as error:
        logger.warning("formula %r: %s", formula, error, location=node)
        return ""


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(drawn(node, INLINE))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that has a line of its own."""
    translator.body.append(f'<div class="formula">{drawn(node, BLOCK)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("outlines", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "outlines"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
