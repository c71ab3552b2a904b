"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def mathml(node: nodes.math | nodes.math_block, *, block: bool) -> str:
    """Return the LaTeX of a node as a MathML element; what cannot be read is a warning."""
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        logger.warning("formula: %s", error, location=node)
        return ""


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that has a line of its own."""
    translator.body.append(f'<div class="math-block">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
