"""The parts of the page "Write your own", as a module in a file, whose compiled code is cached."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pages

PAGE = pages.ROOT / "docs/extend/index.md"
FOLDER = TemporaryDirectory()
"""The folder of the module, which is removed when the process ends."""


def definitions() -> str:
    """Return the blocks of the page that print nothing."""
    blocks = [each for each in pages.blocks(PAGE) if each.language == "python"]
    return "\n\n".join(each.text for each in blocks if not each.output)


Path(FOLDER.name, "parts_of_page.py").write_text(definitions(), "utf-8")
sys.path.append(FOLDER.name)
parts = import_module("parts_of_page")
