"""The parts of the page "Write your own" learn."""

import numpy as np
import pytest

from extend_page import parts
from kesler import LinearMax, OnlineClassifier, ShareBoostClassifier
from kesler.datasets import load_pendigits

PENS = load_pendigits()
X, Y = PENS.X[:600] / 50 - 1, PENS.y[:600]

LEARNERS = {
    "half_way": lambda: OnlineClassifier("multi", update=parts.half_way),
    "agreement": lambda: OnlineClassifier("hybrid", update="pa1", feature_map=parts.agreement),
    "steep_at_zero": lambda: OnlineClassifier("multi", update="pa1", link=parts.steep_at_zero),
    "dwindling": lambda: OnlineClassifier(
        "multi", update="softmax", preconditioner=parts.dwindling
    ),
    "overlap": lambda: OnlineClassifier("multi", update="perceptron", kernel=parts.overlap),
    "lazy": lambda: LinearMax(parts.lazy),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_with_the_part_is_better_than_chance(name):
    model = LEARNERS[name]().partial_fit(X[:500], Y[:500])
    assert model.score(X[500:], Y[500:]) > 0.5


def test_the_rule_of_asking_asks_for_some_rows():
    model = OnlineClassifier(label_budget=parts.unsure)
    asked = 0
    for row, label in zip(X, Y, strict=True):
        if model.query_one(row):
            model.learn_one(row, label)
            asked += 1
    assert 0 < asked < len(X)
    assert np.isfinite(model.predict_proba(X[:5])).all()


def test_shareboost_selects_from_the_dictionary():
    model = ShareBoostClassifier(8, dictionary=parts.Distances()).fit(X, Y)
    assert model.score(X, Y) > 0.5


def test_rows_of_the_reader_are_learnt():
    model = OnlineClassifier()
    for row, label in parts.read_rows(["spam; cash=1, win=2\n", "work; lunch=1\n"]):
        model.learn_one(row, label)
    assert model.predict_one({"lunch": 1.0}) == "work"


def test_the_reader_names_the_line_that_it_cannot_read():
    with pytest.raises(ValueError, match="line 1 has no ';'"):
        list(parts.read_rows(["spam cash=1\n"]))
