"""Every script of the gallery runs, and its pictures have labels on their axes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/plot_*.py"))


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.delenv("KESLER_DATA", raising=False)
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def unlabelled(ax: Any) -> bool:
    """Say whether axes show data, and lack a label (images without ticks need none)."""
    shows_data = ax.has_data() and ax.axison and ax.name != "polar"
    is_bare = not len(ax.get_xticks()) and not len(ax.get_yticks())
    is_colour_bar = ax.get_label() == "<colorbar>"
    if not shows_data or is_bare or is_colour_bar:
        return False
    return not (ax.get_xlabel() and ax.get_ylabel())


def test_gallery_has_scripts() -> None:
    sections = {script.parent.name for script in SCRIPTS}
    assert sections == {path.parent.name for path in GALLERY.glob("*/GALLERY_HEADER.rst")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_draws_labelled_axes(script: Path, pyplot: Any) -> None:
    runpy.run_path(str(script))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures, f"{script.name} draws no figure"
    bare = [ax for figure in figures for ax in figure.axes if unlabelled(ax)]
    assert not bare, f"{script.name} has {len(bare)} axes without both labels"
