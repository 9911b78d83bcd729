"""The parts of the page "Write your own" learn."""

import importlib.util

import numpy as np
import pytest

import pages
from kesler import LinearMax, OnlineClassifier
from kesler.datasets import load_pendigits

PATH = pages.ROOT / "docs/extend/examples/parts.py"
PENS = load_pendigits()
X, Y = PENS.X[:600] / 50 - 1, PENS.y[:600]


@pytest.fixture(scope="module")
def parts():
    found = importlib.util.spec_from_file_location("parts", PATH)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


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
