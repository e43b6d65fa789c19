"""Sphinx: pages in Markdown, the reference from the docstrings."""

from importlib.metadata import version as version_of

project = "equitrans"
author = "the equitrans authors"
version = release = version_of("equitrans")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"equitrans {release}"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
nitpicky = False
