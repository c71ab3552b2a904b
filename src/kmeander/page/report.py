"""A run as one file that anybody can open: nothing in it is fetched from elsewhere."""

from __future__ import annotations

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.resources import INLINE

from kmeander.page.board import PAGE, Board
from kmeander.page.story import Story

TEMPLATE = (
    """
{% block preamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""
    + PAGE
    + """
{% endblock %}
"""
)


def as_page(story: Story, extra: dict[str, str] | None = None) -> str:
    """Return the report as HTML."""
    board = Board(story, extra)
    document = Document()
    document.title = f"kmeander: {story.facts.get('source', 'a run')}"
    document.add_root(board.layout())
    document.js_on_event("document_ready", board.theme)
    return str(file_html(document, INLINE, template=TEMPLATE, title=document.title))
