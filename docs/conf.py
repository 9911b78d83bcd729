"""How the documentation is built: ``make docs``."""

import os
import sys
import warnings
from pathlib import Path

import kesler

# The scripts of the gallery learn many rows, which compiled loops do sooner.
os.environ.setdefault("KESLER_COMPILE", "foreground")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Kesler"
author = "The Kesler engineers"
copyright = "2026, the Kesler engineers"
version = release = kesler.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "docstrings",
    "numpydoc",
    "parameter_groups",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_markdown_builder",
    "sphinx_gallery.gen_gallery",
    "thumbnails",
    "public_names",
    "results_pages",
    "settings_page",
    "command_line",
    "llms",
    "markdown_copies",
    "mathml",
]
root_doc = "index"
exclude_patterns = ["_build", "gallery", "_ext"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings = ["config.cache"]  # the order of the gallery is a function

# Markdown.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "fieldlist"]
myst_heading_anchors = 3
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# The reference is made from docstrings: declarations stay with the classes that have them.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
toc_object_entries_show_parents = "hide"  # names of members fit beside the page

# The gallery.
warnings.filterwarnings(
    "ignore", message="FigureCanvasAgg is non-interactive", category=UserWarning
)
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "image_scrapers": ("thumbnails.scrape",),
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,  # times differ from build to build
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
}

# The pages.
html_theme = "pydata_sphinx_theme"
html_title = "Kesler"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["kesler.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
