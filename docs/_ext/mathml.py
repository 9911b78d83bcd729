"""Formulas as MathML, which browsers show by themselves: a page loads no script for them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the way of showing formulas; `html_math_renderer` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}


UNKNOWN = {
    r"\\arg(?![a-z])": r"\\operatorname{arg}",
    r"\\_": "_",
    r"(\\[Bb]ig[lr]?)?\\\|": "\N{DOUBLE VERTICAL LINE}",
    r"\\[Bb]ig[lr]?(?![a-z])": "",
}
"""Commands that the converter does not know, and what says the same."""


def formula(latex: str, display: str) -> str:
    """Return a formula as MathML; what cannot be converted is an error."""
    known = latex
    for pattern, same in UNKNOWN.items():
        known = re.sub(pattern, same, known)
    found = str(convert(known, display=display))
    if "\\" in found:
        raise ValueError(f"this formula cannot be converted to MathML: {latex}")
    return found


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(formula(node.astext(), "inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="formula">{formula(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode
