"""What the display of mistake curves draws."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from kesler import KeslerError
from kesler.plots import COLOURS, MistakeCurveDisplay, require_drawable, save_mistake_curves
from kesler.progressive import MethodResult, ProgressiveResult


@pytest.fixture(autouse=True)
def no_window():
    with matplotlib.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


def progressive(n_trials, every):
    """A run with a mistake in each trial whose number is a multiple of `every`."""
    curve = np.arange(1, n_trials + 1) // every
    return ProgressiveResult(
        n_trials, int(curve[-1]), 0, curve, np.empty(0, dtype=object), np.empty((0, 2)), 1.0
    )


def method(trials, curve):
    return MethodResult(trials[-1], curve[-1], 0, np.array(trials), np.array(curve), 1.0)


def drawn(results):
    return MistakeCurveDisplay.from_results(results, ax=Figure().subplots())


def test_a_line_is_the_curve():
    display = drawn({"multi": progressive(50, every=2), "single": method([16, 20], [5, 6])})
    multi, single = display.lines_
    assert multi.get_xdata().tolist() == list(range(1, 51))
    assert multi.get_ydata().tolist() == [trial // 2 for trial in range(1, 51)]
    assert (single.get_xdata().tolist(), single.get_ydata().tolist()) == ([16, 20], [5, 6])
    assert list(display.ax_.lines) == display.lines_ and display.figure_ is display.ax_.figure


def test_long_curves_are_thinned_and_keep_their_ends():
    [line] = drawn({"long": progressive(1_000_000, every=3)}).lines_
    trials, mistakes = line.get_xdata(), line.get_ydata()
    assert len(trials) <= 2000 and (trials[0], trials[-1]) == (1, 1_000_000)
    assert (mistakes == trials // 3).all()


def test_each_line_is_named_with_its_error_at_its_end():
    display = drawn({"multi": progressive(100, every=4), "single": progressive(100, every=8)})
    named = [(text.get_text(), text.xy[0], text.get_color()) for text in display.ax_.texts]
    assert named == [("multi  25.00 %", 100, COLOURS[0]), ("single  12.00 %", 100, COLOURS[1])]


def test_names_keep_apart_and_in_order():
    display = drawn({f"m{i}": method([1, 1000], [0, 500 + i]) for i in range(6)})
    heights = np.array([text.xy[1] for text in display.ax_.texts])
    assert (np.diff(heights) >= 0.0499 * display.ax_.get_ylim()[1]).all()
    assert heights.mean() == pytest.approx(502.5)


def test_the_axes_say_what_they_show():
    ax = drawn({"multi": progressive(10, every=2)}).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("trials", "mistakes so far")
    assert ax.get_title(loc="left")
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0, 0)


def test_a_run_without_mistakes_can_be_drawn():
    assert drawn({"multi": progressive(10, every=20)}).ax_.texts[0].get_text() == "multi  0.00 %"


def test_many_methods_differ_in_dashes():
    lines = drawn({f"m{i}": progressive(10, every=2) for i in range(10)}).lines_
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 10


def test_without_axes_a_figure_is_made():
    display = MistakeCurveDisplay.from_results({"multi": progressive(10, every=2)})
    assert pyplot.gcf() is display.figure_


def test_no_results_are_refused():
    with pytest.raises(KeslerError, match="nothing to draw"):
        MistakeCurveDisplay({})


@pytest.mark.parametrize(
    "suffix, start", [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_a_picture_is_saved(tmp_path, suffix, start):
    path = tmp_path / f"curves{suffix}"
    require_drawable(str(path))
    save_mistake_curves({"multi": progressive(10, every=2)}, str(path), "a title")
    assert path.read_bytes().startswith(start)


def test_other_pictures_are_refused():
    with pytest.raises(KeslerError, match="let it end in"):
        require_drawable("curves.doc")


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[plots\]'"):
        require_drawable("curves.png")
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[plots\]'"):
        MistakeCurveDisplay.from_results({"multi": progressive(10, every=2)})
