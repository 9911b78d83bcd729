"""The Markdown copies of the pages: what their builder does not know is told in other nodes."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

TEXTS = ("classifier", "abbreviation", "PassthroughTextElement")
"""Nodes that are read as their text."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Change each page as the builder of Markdown writes it."""
    app.connect("doctree-resolved", simplify)
    return {"parallel_read_safe": True}


def simplify(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Replace types of parameters, abbreviations, cards and images of the gallery."""
    if app.builder.name != "markdown":
        return
    for node in list(tree.findall(nodes.Element)):
        kind = type(node).__name__
        if kind in TEXTS:
            before = " : " if kind == "classifier" else ""
            node.replace_self(nodes.inline("", "", nodes.Text(before), *node.children))
        elif kind == "imgsgnode":
            node.replace_self(nodes.paragraph("", "", picture(node, name)))


def picture(node: nodes.Element, name: str) -> nodes.image:
    """Return the image of an example, as it lies beside the page of this name."""
    up = "../" * name.count("/")
    return nodes.image(uri=f"{up}_images/{Path(node['uri']).name}", alt=node["alt"] or "picture")
