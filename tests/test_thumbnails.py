"""Thumbnails of the gallery have few words, which are large and inside the picture."""

import importlib
import sys

import numpy as np
import pytest

import pages

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure
from matplotlib.text import Text

sys.path.insert(0, str(pages.ROOT / "docs" / "_ext"))
thumbnails = importlib.import_module("thumbnails")


def drawn(names=("one", "two"), n_axes=1, end="end of the line  1.62 %"):
    """Return the figure of a script: lines, titles, a legend, and a text at the end of a line."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    for ax in figure.subplots(1, n_axes, squeeze=False)[0]:
        for name in names:
            ax.plot(np.arange(2000), np.arange(2000) % 7, label=name)
        ax.annotate(end, (1999, 3), (8, 0), textcoords="offset points")
        ax.set(title="A long title of these axes", xlabel="rows", ylabel="error in %")
        ax.legend()
    figure.suptitle("A long title")
    return figure


def texts(figure):
    """Return the visible texts of a figure that are not empty."""
    found = figure.findobj(lambda each: isinstance(each, Text) and each.get_visible())
    return [each for each in found if each.get_text().strip()]


@pytest.mark.parametrize("n_axes", [1, 2])
@pytest.mark.parametrize("n_names", [1, 3, 12])
def test_words_are_few_large_and_inside(n_names, n_axes):
    figure = drawn([f"learner {i}" for i in range(n_names)], n_axes)
    thumbnails.simplify(figure)
    figure.draw_without_rendering()
    assert len(figure.axes) == 1 and figure.get_size_inches().tolist() == [2.4, 1.68]
    words = {each.get_text() for each in texts(figure)}
    assert {"rows", "error in %", "end of the line"} <= words and len(words) < 20
    assert not any("title" in each for each in words)
    assert ("learner 0" in words) == (n_names <= 3)
    assert min(each.get_fontsize() for each in texts(figure)) >= 6.5
    assert figure.axes[0].get_position().x0 < 0.4  # no place is left for what was removed
    box = figure.get_tightbbox()  # in inches
    assert 0 <= box.x0 and box.x1 <= 2.4 and 0 <= box.y0 and box.y1 <= 1.68


def test_texts_that_are_too_long_are_left_out():
    figure = drawn(["a name that is much too long for a legend"], end="a" * 40)
    thumbnails.simplify(figure)
    assert not [each for each in texts(figure) if len(each.get_text()) > 28]
