"""``llms.txt``: every page with its title and first sentence, for programs that read the site."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

INTRODUCTION = """\
# Kesler

> A Python library and command line for multiclass learning in one model, from streams whose classes
> are revealed as they run, and from batches.

Each page below is Markdown; the same page for people ends in .html.
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the list when all pages are built."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the list of pages into the site."""
    if failure is None and app.builder.name == "html":
        lines = [line(app, name) for name in sorted(app.env.all_docs) if wanted(name)]
        Path(app.outdir, "llms.txt").write_text("\n".join([INTRODUCTION, *lines]) + "\n", "utf-8")


def wanted(name: str) -> bool:
    """Return whether a page is of use without the others: those of single names are linked."""
    return not name.startswith("reference/generated/") and not name.endswith("sg_execution_times")


def line(app: Sphinx, name: str) -> str:
    """Return the link to a page, with its first sentence."""
    title = app.env.titles[name].astext()
    return f"- [{title}]({name}.md): {sentence(app.env.get_doctree(name))}"


def sentence(tree: nodes.document) -> str:
    """Return the first sentence of a page."""
    for paragraph in tree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            return paragraph.astext().replace("\n", " ").partition(". ")[0].rstrip(".") + "."
    return ""
