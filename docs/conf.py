"""Sphinx settings: pages are Markdown, references are made from the code (reference.py)."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "equitrans"
author = "the equitrans authors"
version = release = version_of("equitrans")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "reference",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_show_copyright = False
html_title = f"equitrans {release}"
html_static_path = ["_static"]
html_css_files = ["versions.css"]
html_js_files = ["versions.js"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(collections|torch|numpy|matplotlib|rich|argparse)\..*"),
    ("py:obj", r"equitrans\.experiments\.\w+\.(Job|Result)"),
]
