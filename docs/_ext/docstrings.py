"""Docstrings as reStructuredText: what is plain text in them stays plain text.

Docstrings are also written to be read in a terminal. Signs such as ``|v|`` and ``objective_`` mean
something in reStructuredText, which they should not.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

QUOTED = re.compile(r"(:[\w:]+:`[^`]*`|``.*?``|`[^`]*`)")
REFERENCE = re.compile(r":(?:ref|term|doc):`([^`<]*?)\s*(?:<[^>]*>)?`")


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings before numpydoc reads their sections."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Join continued lines, and escape the signs of plain text."""
    text = "\n".join(lines)
    text = re.sub(r" ?\\\n\s*", " ", text)
    text = REFERENCE.sub(r"\1", text)
    lines[:] = escaped(text.split("\n"))


def escaped(lines: list[str]) -> list[str]:
    """Escape the lines of text, and leave examples and directives as they are."""
    found, inside = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent <= inside:
            inside = None
        if inside is None and (line.lstrip().startswith(".. ") or line.rstrip().endswith("::")):
            inside = indent
            found.append(line)
        elif inside is not None or line.lstrip().startswith((">>>", "...")):
            found.append(line)
        else:
            found.append(plain(line, is_header=indent == 0))
    return found


def plain(line: str, is_header: bool) -> str:
    """Escape the parts of a line that are not between backquotes."""
    parts = QUOTED.split(line)
    parts[::2] = [without_markup(part, is_header) for part in parts[::2]]
    return "".join(parts)


def without_markup(text: str, is_header: bool) -> str:
    """Escape bars and stars, and underscores where no name is declared."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    text = re.sub(r"(?<=\S)\*|\*(?=\S)", r"\\*", text)
    return text if is_header else re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
