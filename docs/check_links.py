"""Check that every link within a built site leads to a page and an anchor that are there.

Run by `make docs` after the build: ``python -m docs.check_links docs/_build/html``.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
LOADED = {"link", "img", "script", "source"}  # fetched by the browser itself


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.loaded_from_elsewhere: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of ids and links."""
        values = dict(attrs)
        self.anchors |= {str(values[name]) for name in ("id", "name") if values.get(name)}
        link = values.get(LINKS.get(tag, ""))
        if link is None or link.startswith("data:"):
            return
        if not (urlsplit(link).scheme or urlsplit(link).netloc):
            self.links.append(link)
        elif tag in LOADED and values.get("rel") != "canonical":
            self.loaded_from_elsewhere.append(link)


def problems(site: Path) -> list[str]:
    """Return one line for each link that leads nowhere, or loads something from the network."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {link}" for link in page.loaded_from_elsewhere]
        for link in dict.fromkeys(page.links):
            address, anchor = urldefrag(link)
            file = unquote(urlsplit(address).path)
            target = (path.parent / file).resolve() if file else path
            if not target.is_file():
                found.append(f"{name}: no file for {link}")
            elif target in pages and unquote(anchor) not in pages[target].anchors:
                found.append(f"{name}: no anchor for {link}")
    return found


def main() -> None:
    """Check the site in the folder that is named."""
    site = Path(sys.argv[1]).resolve()
    found = problems(site)
    for problem in found:
        print(problem, file=sys.stderr)
    n_pages = sum(1 for _ in site.rglob("*.html"))
    if found or not n_pages:
        sys.exit(f"{len(found)} links of {n_pages} pages lead nowhere.")
    print(f"All links within {n_pages} pages lead somewhere.")


if __name__ == "__main__":
    main()
