"""Thumbnails of the gallery: drawn small, with few words of a size that can be read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot, ticker
from matplotlib.collections import PathCollection
from matplotlib.gridspec import GridSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from sphinx.application import Sphinx

INCHES = (2.4, 1.68)
DPI = 200  # of which pages show every second dot
LETTERS = 8  # points
LONGEST = 26  # letters that fit beside an axis
MOST = 3  # entries of a legend
MOST_NAMES = 5  # on an axis


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the thumbnails when the gallery has been made, before its pages are read."""
    app.connect("builder-inited", replace, priority=900)
    return {"parallel_read_safe": True}


def scrape(block: Any, variables: dict[str, Any], conf: Any) -> str:
    """Save the pictures of a script at their size, and the first of them as a thumbnail."""
    from sphinx_gallery.scrapers import matplotlib_scraper

    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    text = matplotlib_scraper(block, variables, conf)
    small = small_path(Path(variables["target_file"]))
    if figures and len(variables["image_path_iterator"]) == len(figures):
        small.parent.mkdir(parents=True, exist_ok=True)
        simplify(figures[0])
        figures[0].savefig(small, dpi=DPI)
    return text


def small_path(script: Path) -> Path:
    """Return where the thumbnail of a script is until the gallery is made."""
    return script.parent / "images" / "small" / f"sphx_glr_{script.stem}_thumb.png"


def replace(app: Sphinx) -> None:
    """Put the small drawings in the place of the scaled pictures."""
    for small in Path(app.srcdir).glob("examples/*/images/small/*.png"):
        shutil.copyfile(small, small.parents[1] / "thumb" / small.name)


def simplify(figure: Figure) -> None:
    """Make a figure small: one pair of axes, or images only, with few ticks and large letters."""
    figure.set_size_inches(INCHES)
    figure.suptitle("")
    scaled = [ax for ax in figure.axes if ax.get_label() != "<colorbar>" and has_ticks(ax)]
    for ax in figure.axes:
        if ax.get_label() == "<colorbar>" or (scaled and ax is not scaled[-1]):
            ax.remove()
        else:
            simplify_axes(ax)
    if len(figure.axes) == 1:
        figure.axes[0].set_subplotspec(GridSpec(1, 1, figure)[0])


def has_ticks(ax: Axes) -> bool:
    """Say whether axes show numbers or names, and not an image alone."""
    return bool(ax.axison and (len(ax.get_xticks()) or len(ax.get_yticks())))


def simplify_axes(ax: Axes) -> None:
    """Keep of axes what can be read at the size of a thumbnail."""
    for place in ("left", "center", "right"):
        title = ax.get_title(place)
        ax.set_title(title if len(title) == 1 else "", fontsize=LETTERS, loc=place)
    for axis in (ax.xaxis, ax.yaxis):
        simplify_axis(axis)
    simplify_texts(ax)
    for line in ax.lines:
        line.set_markersize(min(line.get_markersize(), 4 if len(line.get_xdata()) < 100 else 1.5))
    for points in (each for each in ax.collections if isinstance(each, PathCollection)):
        points.set_sizes([6])
    if legend := ax.get_legend():
        texts = [text.get_text() for text in legend.get_texts()]
        legend.remove()
        if len(texts) <= MOST and max(map(len, texts)) <= LONGEST + 2:
            ax.legend(fontsize=LETTERS - 1.5, framealpha=0.7, edgecolor="none", handlelength=1.2)


def simplify_texts(ax: Axes) -> None:
    """Shorten texts, such as those at the ends of lines, and hide those that would overlap."""
    boxes: list[Any] = []
    for text in ax.texts:
        words = text.get_text().split("  ")[0]  # the name of a line, without its figure
        text.set(text=words, fontsize=LETTERS - 1)
        box = text.get_window_extent()
        text.set_visible(len(words) <= LONGEST and not box.count_overlaps(boxes))
        boxes += [box] if text.get_visible() else []


def simplify_axis(axis: Axis) -> None:
    """Show about three numbers, or a few names."""
    label = axis.get_label_text()
    axis.set_label_text(label if len(label) <= LONGEST else "", fontsize=LETTERS)
    axis.set_tick_params(labelsize=LETTERS - 1, pad=2)
    locator = axis.get_major_locator()
    if isinstance(locator, ticker.LogLocator):
        locator.set_params(numticks=4)
    elif isinstance(locator, (ticker.AutoLocator, ticker.MaxNLocator)):
        locator.set_params(nbins=3)
    elif len(axis.get_majorticklocs()) > MOST_NAMES:
        axis.set_ticks([])
