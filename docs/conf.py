"""How `make docs` builds the site: offline, from these pages, the docstrings and the gallery."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for docs, which this file is part of

from docs.source_pages import linkcode_resolve  # noqa: F401  (read by sphinx.ext.linkcode)

project = "kmeander"
author = "The kmeander developers"
copyright = author  # noqa: A001  (Sphinx chose the name)
version = release = version_of("kmeander")

extensions = [
    "myst_parser",
    "numpydoc",
    "docs.formulas",
    "docs.source_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5",
    "alarms-table.md",  # included by experiments.md
]  # fmt: skip
toc_object_entries_show_parents = "hide"
default_role = "autolink"  # `name` in a docstring is a link, where there is such a name
smartquotes = False  # two dashes begin an option
nitpicky = True
nitpick_ignore_regex = [
    # Types in docstrings are words for people: "ndarray of shape (n_points, n_features)".
    ("py:class", r"(?!kmeander\.).*"),
    ("py:obj", r"(?!kmeander\.).*"),
    # What estimators inherit is documented by scikit-learn, which the site does not load.
    ("py:.*", r"(sklearn|river|pyspark|numpy|pyarrow)\..*"),
]
suppress_warnings = [
    "config.cache",  # the gallery's settings hold a class, which Sphinx cannot store
]

myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3

autodoc_mock_imports = ["pyspark"]  # half a gigabyte, for four signatures
autodoc_typehints = "none"  # numpydoc's words say them, and shorter
autosummary_generate = True
numpydoc_show_class_members = False  # the templates of autosummary list them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # the machine's speed is no part of a page
    "write_computation_times": False,
    "abort_on_example_error": True,
    "reference_url": {"kmeander": None},
    "doc_module": ("kmeander",),
    "backreferences_dir": "gallery/backreferences",
    "matplotlib_animations": False,
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "kmeander"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader has it
html_theme_options = {
    "logo": {"text": "kmeander"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
}
html_sidebars: dict[str, list[str]] = {"index": [], "tutorial": []}
