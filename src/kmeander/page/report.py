"""A run as one file that anybody can open: nothing in it is fetched from elsewhere."""

from __future__ import annotations

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.resources import INLINE

from kmeander.page.in_browser import PAGE
from kmeander.page.layout import Layout
from kmeander.page.timeline import Timeline

TEMPLATE = (
    """
{% block preamble %}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; \
img-src data: blob:; font-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""
    + PAGE
    + """
{% endblock %}
"""
)


def as_page(timeline: Timeline, extra: dict[str, str] | None = None) -> str:
    """Return the report as HTML."""
    layout = Layout(timeline, extra)
    document = Document()
    document.title = f"kmeander: {timeline.facts.get('source', 'a run')}"
    document.add_root(layout.root())
    layout.begin(document)
    return str(file_html(document, INLINE, template=TEMPLATE, title=document.title))
