"""Sphinx configuration; build with `sphinx-build --fail-on-warning docs build/docs`."""

from cyclescope import __version__

project = "cyclescope"
author = "The cyclescope founders"
project_copyright = "The cyclescope founders"
release = version = __version__

extensions = ["myst_parser", "sphinx_click"]
myst_heading_anchors = 3
nitpicky = True
smartquotes = False  # options begin with two hyphens

html_theme = "furo"
html_title = f"cyclescope {__version__}"
