"""Pages that show the source, and links to their lines, made when the site is built.

In a page the role ``src`` around ``window.rho_for_drift`` becomes a link to the line on which that
function of kmeander begins, the role ``test`` around a test's name a link to that test. A name that
is not there is an error, and so stops the build.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, PythonLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from docs.source_lines import PACKAGE, ROOT, Place, find_code, find_test


def shown_files() -> list[Path]:
    """Return the files that have a page: the package, the kernel and the tests."""
    return [
        *sorted(PACKAGE.rglob("*.py")),
        *sorted((ROOT / "kernel").rglob("*.[ch]pp")),
        *sorted((ROOT / "tests").rglob("*.py")),
    ]


def page_of(path: Path) -> str:
    """Return the name of the page that shows the file at `path`."""
    return "source/" + path.relative_to(ROOT).as_posix().removeprefix("src/").replace(".", "-")


def uri(place: Place, seen_from: str) -> str:
    """Return the link to a line, as the page called `seen_from` must spell it."""
    path, line = place
    return f"{'../' * seen_from.count('/')}{page_of(path)}.html#line-{line}"


class SourceRole(SphinxRole):
    """A name of the package or of a test, linked to its line."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link."""
        try:
            place = find_test(self.text) if self.name == "test" else find_code(self.text)
        except LookupError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        path, line = place
        title = f"{path.relative_to(ROOT).as_posix()}, line {line}"
        link = nodes.reference("", "", internal=True, reftitle=title)
        link["refuri"] = uri(place, self.env.docname)
        link += nodes.literal("", self.text)
        if line > 1:
            link += nodes.inline("", f":{line}", classes=["source-line"])
        return [link], []


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the link from an API page, all of which lie in reference/api/, to the source."""
    value: Any = import_module(info["module"])
    for part in info["fullname"].split("."):
        value = getattr(value, part, None)
    if isinstance(value, property):
        value = value.fget
    try:
        value = inspect.unwrap(value)
        path, line = Path(inspect.getsourcefile(value) or ""), inspect.getsourcelines(value)[1]
    except (TypeError, OSError):
        return None
    if domain != "py" or not path.is_relative_to(PACKAGE):
        return None  # inherited from scikit-learn
    return uri((path, line), "reference/api/page")


def source_pages(_app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file, each of its lines with an anchor."""
    formatter = HtmlFormatter(linenos="inline", lineanchors="line", cssclass="highlight")
    for path in shown_files():
        lexer = PythonLexer() if path.suffix == ".py" else CppLexer()
        name = path.relative_to(ROOT).as_posix()
        body = highlight(path.read_text("utf-8"), lexer, formatter)
        context = {"title": name, "body": f"<h1>{name}</h1>\n{body}", "parents": []}
        yield page_of(path), context, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the roles and the pages."""
    app.add_role("src", SourceRole())
    app.add_role("test", SourceRole())
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
