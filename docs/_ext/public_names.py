"""The reference: a page for each public module, from its ``__all__``."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import kesler

if TYPE_CHECKING:
    from sphinx.application import Sphinx

GROUPS = {
    "Online estimators": (
        "OnlineClassifier OnlineMultilabelClassifier OnlineLabelRanker OnlineOrdinalClassifier "
        "CostSensitiveClassifier BanditClassifier StructuredLearner LinearMax Ensemble"
    ),
    "Batch estimators": "CrammerSingerClassifier SoftmaxClassifier",
    "Reductions to binary problems": (
        "OneVsRest OneVsOne OneAgainstSome ErrorCorrectingCode ErrorCorrectingTournament "
        "FilterTree LabelTree KeslerReduction"
    ),
    "Few features for all classes": (
        "ShareBoostClassifier JointBoostClassifier MixedNormClassifier export"
    ),
    "Evaluation": "compare progressive_validate mistake_bound",
    "Your own parts": (
        "update_rule feature_map link_function mercer_kernel preconditioner query_rule "
        "threshold_algorithm"
    ),
    "Data, files and messages": (
        "NEW Ratings Contribution Explanation MarkedText KeslerError load show_progress"
    ),
}
"""The names of the package itself, in the order of the reference."""

MODULES = (
    "hypotheses maps kernels budgets forests updates exploration algorithms links preconditioners "
    "preprocessing queries costs trees candidates dictionaries decompositions datasets readers "
    "metrics plots bounds checks "
    "distributed durable service fasttext compact duckdb sqlite annif"
).split()
"""The public modules, in the order of the reference."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / "reference"))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write a page of names for the package, and one for each public module."""
    kept(folder / "kesler.rst", package_page())
    for name in MODULES:
        kept(folder / f"kesler.{name}.rst", module_page(f"kesler.{name}"))


def package_page() -> str:
    """Return the page of the package: its names in groups."""
    parts = [heading("kesler", "="), ".. currentmodule:: kesler"]
    for title, names in GROUPS.items():
        parts += [heading(title, "-"), summary(names.split())]
    return "\n\n".join(parts) + "\n"


def module_page(module: str) -> str:
    """Return the page of a module: its first sentences and its public names."""
    names = list(importlib.import_module(module).__all__)
    shared = [name for name in names if name in kesler.__all__]
    parts = [heading(module, "="), f".. automodule:: {module}"]
    if own := [name for name in names if name not in shared]:
        parts += [f".. currentmodule:: {module}", summary(own)]
    if shared:
        parts += ["Also here, from the package itself:", ".. currentmodule:: kesler"]
        parts += [summary(shared).replace("   :toctree: generated\n", "")]
    return "\n\n".join(parts) + "\n"


def summary(names: list[str]) -> str:
    """Return a table of names, each with a page of its own."""
    return "\n".join(
        [".. autosummary::", "   :toctree: generated", "", *(f"   {n}" for n in names)]
    )


def heading(title: str, line: str) -> str:
    """Return a heading."""
    return f"{title}\n{line * len(title)}"


def kept(path: Path, text: str) -> None:
    """Write a file unless it has this text already, so that Sphinx need not read it again."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
