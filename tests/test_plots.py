"""What displays draw."""

import dataclasses
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from kesler import Contribution, Explanation, KeslerError, OnlineClassifier, ShareBoostClassifier
from kesler.dictionaries.steps import Column, Template
from kesler.evaluation.comparison import MethodResult
from kesler.evaluation.validation import ProgressiveResult
from kesler.plots import (
    COLOURS,
    ChosenFeaturesDisplay,
    ExplanationDisplay,
    FeatureCurveDisplay,
    MistakeCurveDisplay,
    MistakenImagesDisplay,
    RiskCoverageDisplay,
    TemplatesDisplay,
    require_drawable,
    save_feature_curves,
    save_mistake_curves,
)


@pytest.fixture(autouse=True)
def no_window():
    with matplotlib.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


def progressive(n_trials, every):
    """A run with a mistake in each trial whose number is a multiple of `every`."""
    curve = np.arange(1, n_trials + 1) // every
    return ProgressiveResult(
        n_trials, int(curve[-1]), 0, curve, np.empty(0), np.empty(0), np.empty((0, 2)), 1.0
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
    panel = {"multi": progressive(10, every=2)}
    save_mistake_curves({"a title": panel, "another": panel}, str(path))
    assert path.read_bytes().startswith(start)


def test_errors_are_drawn_by_the_share_answered():
    result = progressive(4, every=4)
    p = np.array([0.9, 0.8, 0.8, 0.7])
    result = dataclasses.replace(
        result,
        n_first_seen=1,
        predictions=np.array(["a", "a", "a", "b"]),
        targets=np.array(["a"] * 4),
        probabilities=np.stack([p, p], axis=1),
    )
    display = RiskCoverageDisplay.from_results({"one": result}, ax=Figure().subplots())
    [line] = display.lines_  # the first row of a class is left out
    assert line.get_xdata() == pytest.approx([200 / 3, 100])
    assert line.get_ydata() == pytest.approx([0, 100 / 3])
    assert display.ax_.texts[0].get_text().startswith("one  area 0.1111")
    assert RiskCoverageDisplay({"one": result.risk_coverage()}).plot().figure_ is pyplot.gcf()
    with pytest.raises(KeslerError, match="nothing to draw"):
        RiskCoverageDisplay({})


def test_other_pictures_are_refused():
    with pytest.raises(KeslerError, match=r"use \.png"):
        require_drawable("curves.doc")


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[plots\]'"):
        require_drawable("curves.png")
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[plots\]'"):
        MistakeCurveDisplay.from_results({"multi": progressive(10, every=2)})


# ---- few features -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(200, 6))
    frame = pd.DataFrame(X, columns=[f"column {'long ' * 8}{i}" for i in range(6)])
    return ShareBoostClassifier(4).fit(frame, np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)])


def test_the_path_and_its_rivals_are_lines(fitted):
    rivals = {"mixed norm": ([2, 10], [1.5, 0.5])}
    axes = Figure().subplots()
    display = FeatureCurveDisplay.from_estimator(fitted, measure="loss", rivals=rivals, ax=axes)
    own, rival = display.lines_
    assert own.get_xdata().tolist() == [1, 2, 3, 4] and rival.get_xdata().tolist() == [2, 10]
    assert own.get_ydata().tolist() == [each.loss for each in fitted.path_]
    loss = fitted.path_[-1].loss
    texts = display.ax_.texts
    assert [t.get_text() for t in texts] == [f"ShareBoost  {loss:.4g}", "mixed norm  0.5"]
    assert {t.xy[0] for t in texts} == {10}
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("features", "loss")


def test_errors_are_drawn_in_percent():
    display = FeatureCurveDisplay({"one": ([1, 5], [0.5, 0.125])}).plot(Figure().subplots())
    assert display.lines_[0].get_ydata().tolist() == [50, 12.5]
    assert display.ax_.texts[0].get_text() == "one  12.50 %"
    assert display.ax_.get_ylabel() == "error in %"


def test_names_of_curves_that_end_apart_do_not_meet():
    curves = {f"m{i}": ([1, 5 + i], [0.5, 0.1 + i / 1000]) for i in range(5)}
    ax = FeatureCurveDisplay(curves).plot(Figure().subplots()).ax_
    heights = np.array([text.xy[1] for text in ax.texts])
    assert (np.diff(np.sort(heights)) >= 0.0499 * ax.get_ylim()[1]).all()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (({},), "nothing to draw"),
        (({"one": ([1, 2], [0.5])},), "the curve 'one' has sizes of shape"),
        (({"one": ([], [])},), "at least one"),
    ],
)
def test_curves_that_are_none_are_refused(arguments, sentence):
    with pytest.raises(KeslerError, match=sentence):
        FeatureCurveDisplay(*arguments)
    with pytest.raises(KeslerError, match="choose 'error' or 'loss'"):
        FeatureCurveDisplay({"one": ([1], [1])}, measure="weight")


def test_errors_need_an_eval_set(fitted):
    with pytest.raises(KeslerError, match="fit with eval_set"):
        FeatureCurveDisplay.from_estimator(fitted)


def test_curves_are_saved(tmp_path):
    save_feature_curves({"one": ([1, 5], [0.5, 0.1])}, str(tmp_path / "c.png"), "a title", "error")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_the_map_shows_weights_by_feature_and_class(fitted):
    display = ChosenFeaturesDisplay.from_estimator(fitted, most=3)
    assert (display.image_.get_array() == fitted.coef_.T[:3]).all()
    low, high = display.image_.get_clim()
    assert high == -low == np.abs(fitted.coef_[:, :3]).max()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["a", "b", "c"]
    named = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(named) == 3 and all(len(name) == 36 and name.endswith("...") for name in named)


def test_names_on_the_map_do_not_overlap():
    weights = np.random.default_rng(0).normal(size=(200, 100))
    names, classes = [f"feature {i}" for i in range(200)], [f"class {i}" for i in range(100)]
    display = ChosenFeaturesDisplay(weights, names, classes).plot()
    display.figure_.canvas.draw()
    ax = display.ax_
    for labels, side in ((ax.get_yticklabels(), "y"), (ax.get_xticklabels(), "x")):
        boxes = [label.get_window_extent() for label in labels]
        ends = sorted((getattr(box, side + "0"), getattr(box, side + "1")) for box in boxes)
        assert all(a[1] <= b[0] for a, b in pairwise(ends))


def test_weights_without_names_are_refused():
    with pytest.raises(KeslerError, match=r"shape \(2, 3\) do not match 2 names and 2 classes"):
        ChosenFeaturesDisplay(np.ones((2, 3)), ["a", "b"], [0, 1])


def test_templates_stand_over_their_masks():
    patch, mask = np.arange(6.0).reshape(2, 3), np.eye(4)[:3] + 0.5
    display = TemplatesDisplay([Template((4, 6), patch * i, mask) for i in range(1, 13)]).plot()
    assert display.axes_.shape == (12, 2)
    for i, (upper, lower) in enumerate(display.axes_, start=1):
        assert (upper.images[0].get_array() == patch * i).all()
        assert (lower.images[0].get_array() == mask).all() and upper.get_title() == str(i)
        # A top left corner at (0, 0) has the patch's middle at row 0.5, column 1.
        left, right, bottom, top = lower.images[0].get_extent()
        assert (left, right, bottom, top) == (0.5, 4.5, 3.0, 0.0)
        assert lower.get_xlim() == (-0.5, 5.5) and lower.get_ylim() == (3.5, -0.5)
        assert upper.get_position().y0 >= lower.get_position().y1


def test_what_is_no_template_is_refused(fitted):
    with pytest.raises(KeslerError, match="a Column is not a template"):
        TemplatesDisplay.from_estimator(fitted)
    with pytest.raises(KeslerError, match="nothing to draw"):
        TemplatesDisplay([])
    assert isinstance(fitted.dictionary_.step(0), Column)


class Reversed:
    """Predicts what is not there."""

    def predict(self, X):
        return 9 - X[:, 0].astype(int)


def test_mistakes_are_shown_with_what_they_are_and_were_taken_for():
    X = np.tile(np.arange(10.0)[:, None], (1, 6))
    labels = np.where(np.arange(10) < 4, np.arange(10), 9 - np.arange(10))
    display = MistakenImagesDisplay.from_estimator(Reversed(), X, labels, (2, 3), most=3)
    assert [ax.get_title() for ax in display.axes_] == ["0 → 9", "1 → 8", "2 → 7"]
    shown = [ax.images[0].get_array() for ax in display.axes_]
    assert [(image.shape, image.mean()) for image in shown] == [((2, 3), i) for i in range(3)]
    title = display.figure_.get_suptitle()
    assert title == "4 of 10 images predicted wrongly; the first 3 are shown"


def test_a_classifier_without_mistakes_can_be_drawn():
    display = MistakenImagesDisplay.from_predictions(np.ones((2, 2, 2)), ["a", "b"], ["a", "b"])
    assert display.figure_.get_suptitle() == "0 of 2 images predicted wrongly"
    assert len(display.axes_) == 0


def test_images_that_do_not_fit_are_refused():
    with pytest.raises(KeslerError, match="not images of 2 x 4 pixels"):
        MistakenImagesDisplay.from_estimator(Reversed(), np.ones((3, 6)), [1, 2, 3], (2, 4))
    with pytest.raises(KeslerError, match="do not match 2 labels"):
        MistakenImagesDisplay.from_predictions(np.ones((3, 2, 2)), [1, 2], [1, 2, 3])


# ---- explanations --------------------------------------------------------------------------------

WHY = Explanation(
    "spam",
    "work",
    1.5,
    -0.5,
    (Contribution("cash", 1.0, 1.0, 0.5, -1.0), Contribution(3, 2.0, -0.5, 0.0, 0.25)),
    Contribution("others", None, 0.25, 0.0, 0.25, 4),
    Contribution("intercept", 1.0, 0.25, 0.0, 0.0, 0),
)


def test_bars_of_an_explanation_are_its_contributions():
    display = ExplanationDisplay.from_explanation(WHY)
    ticks = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert ticks == ["cash", "feature 3", "4 others", "intercept"]
    widths = [[bar.get_width() for bar in bars] for bars in display.bars_]
    assert widths == [[1.0, -0.5, 0.25, 0.25], [0.5, 0, 0, 0], [1.0, -0.25, -0.25, 0]]
    starts = [[bar.get_x() for bar in bars] for bars in display.bars_]
    assert starts[0] == [0, 0, 0, 0] and starts[1][0] == 1.0
    assert starts[2][:3] == [1.5, -0.5, 0]
    dots = display.ax_.get_lines()[0].get_xdata()
    assert np.asarray(dots).tolist() == [2.5, -0.75, 0, 0.25]
    assert len({bars[0].get_hatch() for bars in display.bars_}) == 3  # in black and white too
    assert display.ax_.get_title(loc="left") == WHY.headline
    assert display.ax_.yaxis_inverted()


def test_an_explanation_of_an_estimator_is_drawn_on_given_axes():
    model = OnlineClassifier("multi", update="pa1").fit(np.eye(3), ["a", "b", "b"])
    ax = Figure().subplots()
    x = [1.0, 2.0, 3.0]
    display = ExplanationDisplay.from_estimator(model, x, label="a", rival="b", n=2, ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.explanation == model.explain_one(x, "a", "b", 2)
    assert len(display.bars_) == 2  # nothing is shared
    sole = OnlineClassifier("multi", update="pa1").learn_one({"a": 1.0}, "x")
    display = ExplanationDisplay.from_estimator(sole, {"a": 1.0})
    assert display.bars_ == [] and display.ax_.get_xlabel() == "contribution to the score"
    assert display.ax_.get_ylabel() == "reason"


def test_long_names_are_cut_and_long_titles_have_two_lines():
    longest = WHY.contributions[0]._replace(feature="w" * 60)
    named = replace(WHY, label="s" * 60, contributions=(longest,))
    display = ExplanationDisplay.from_explanation(named)
    assert display.ax_.get_yticklabels()[0].get_text() == "w" * 33 + "..."
    assert display.ax_.get_title(loc="left").count("\n") == 1
