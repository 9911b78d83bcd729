"""The pages of results: one for each file of figures that the races and the papers have written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from public_names import kept

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
IN_REPOSITORY = "[results](results/)"
"""The link from the page of the races to a folder, which is not part of the site."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / "results"))
    return {"parallel_read_safe": True}


def sources() -> dict[str, Path]:
    """Return the files of figures by the names of their pages, below the folder of results."""
    found = {"benchmarks/races": ROOT / "benchmarks/RESULTS.md"}
    for folder in ("benchmarks", "papers"):
        files = sorted((ROOT / folder / "results").glob("*.md"))
        found |= {f"{folder}/{file.stem}": file for file in files}
    return found


def write(folder: Path) -> None:
    """Write every page, and copy the pictures beside those that show them."""
    for name, source in sources().items():
        text = source.read_text("utf-8").replace(IN_REPOSITORY, "`benchmarks/results`")
        kept(folder / f"{name}.md", text)
    for picture in (ROOT / "papers/results").glob("*.png"):
        shutil.copy2(picture, folder / "papers" / picture.name)
