"""Mistakes beside the number that a theorem allows."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from kesler import OnlineClassifier, ShareBoostClassifier, mistake_bound, progressive_validate
from kesler.bounds.mistakes import MistakeBound
from kesler.datasets import load_pendigits, make_disjoint
from kesler.errors import KeslerError
from kesler.plots import ChosenFeaturesDisplay, MistakeBoundDisplay

PENS = load_pendigits()


def a_bound(bound, n_compared=100):
    return MistakeBound("Theorem", bound, 12, n_compared, 3.0, 2.0, 1.0, 1)


@pytest.fixture(scope="module")
def result():
    X, y = make_disjoint(n=300)
    return progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)


@pytest.mark.parametrize(("bound", "vacuous"), [(99.9, False), (100.0, True), (np.inf, True)])
def test_a_bound_of_all_trials_is_vacuous(bound, vacuous):
    assert a_bound(bound).is_vacuous is vacuous
    assert a_bound(bound).to_json()["is_vacuous"] is vacuous


def test_a_vacuous_bound_says_so():
    assert "vacuous" in str(a_bound(100.0))
    assert "vacuous" not in str(a_bound(99.0))


def test_a_competitor_that_is_zero_gives_a_vacuous_bound():
    model = OnlineClassifier("multi", update="perceptron")
    bound = mistake_bound(progressive_validate(model, PENS.X[:2000] / 100, PENS.y[:2000]))
    assert (bound.squared_norm == 0) <= bound.is_vacuous


def test_the_display_draws_the_mistakes_and_the_bound(result):
    display = MistakeBoundDisplay(result, {"A": a_bound(60.0), "B": a_bound(120.0)})
    display.plot(Figure().subplots())
    assert np.array_equal(display.line_.get_ydata(), result.curve)
    assert {name: line.get_ydata()[0] for name, line in display.lines_.items()} == {
        "A": 60,
        "B": 120,
    }
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["mistakes", "A: at most 60", "B: at most 120 (vacuous)"]


def test_a_bound_without_a_number_is_named(result):
    display = MistakeBoundDisplay(result, {"A": a_bound(np.inf)}).plot(Figure().subplots())
    assert not display.lines_
    assert "no competitor without loss" in display.ax_.get_title(loc="left")


def test_nothing_to_draw_is_refused(result):
    with pytest.raises(KeslerError, match="no bound to draw"):
        MistakeBoundDisplay(result, {})


def test_chosen_features_are_scaled_by_the_spread_of_the_features():
    X, y = PENS.X[:600] * np.geomspace(1e-3, 1, 16), PENS.y[:600]
    model = ShareBoostClassifier(5).fit(X, y)
    plain = ChosenFeaturesDisplay.from_estimator(model, ax=Figure().subplots())
    scaled = ChosenFeaturesDisplay.from_estimator(model, X, ax=Figure().subplots())
    spread = model.transform(X).std(axis=0)
    assert np.allclose(scaled.weights, plain.weights * spread[:, None])
    assert "spread" in scaled.image_.colorbar.ax.get_ylabel()
