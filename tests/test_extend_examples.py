"""The parts of the page "Write your own" learn."""

import importlib
import sys

import numpy as np
import pytest

import pages
from kesler import LinearMax, OnlineClassifier, ShareBoostClassifier
from kesler.datasets import load_pendigits

EXAMPLES = pages.ROOT / "docs/extend/examples"
PENS = load_pendigits()
X, Y = PENS.X[:600] / 50 - 1, PENS.y[:600]


def example(name):
    """Import that module of the examples: Numba's cache finds it by its name."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def parts():
    return example("parts")


LEARNERS = {
    "half_way": lambda p: OnlineClassifier("multi", update=p.half_way),
    "agreement": lambda p: OnlineClassifier("hybrid", update="pa1", feature_map=p.agreement),
    "steep_at_zero": lambda p: OnlineClassifier("multi", update="pa1", link=p.steep_at_zero),
    "dwindling": lambda p: OnlineClassifier("multi", update="softmax", preconditioner=p.dwindling),
    "overlap": lambda p: OnlineClassifier("multi", update="perceptron", kernel=p.overlap),
    "lazy": lambda p: LinearMax(p.lazy),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_with_the_part_is_better_than_chance(name, parts):
    model = LEARNERS[name](parts).partial_fit(X[:500], Y[:500])
    assert model.score(X[500:], Y[500:]) > 0.5


def test_the_rule_of_asking_asks_for_some_rows(parts):
    model = OnlineClassifier(label_budget=parts.unsure)
    asked = 0
    for row, label in zip(X, Y, strict=True):
        if model.query_one(row):
            model.learn_one(row, label)
            asked += 1
    assert 0 < asked < len(X)
    assert np.isfinite(model.predict_proba(X[:5])).all()


def test_shareboost_selects_from_the_dictionary():
    model = ShareBoostClassifier(8, dictionary=example("own_dictionary").Distances()).fit(X, Y)
    assert model.score(X, Y) > 0.5


def test_rows_of_the_reader_are_learnt():
    model = OnlineClassifier()
    for row, label in example("own_reader").read_rows(["spam; cash=1, win=2\n", "work; lunch=1\n"]):
        model.learn_one(row, label)
    assert model.predict_one({"lunch": 1.0}) == "work"


def test_the_reader_names_the_line_that_it_cannot_read():
    with pytest.raises(ValueError, match="line 1 has no ';'"):
        list(example("own_reader").read_rows(["spam cash=1\n"]))
