"""The labels of highest score: against sorted scores and probabilities of every estimator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils import shuffle

import kesler
from kesler import KeslerError
from kesler.decompositions import OneVsRest
from kesler.metrics import highest

X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
LABELS = np.array(["setosa", "versicolor", "virginica"])[y]

OF_CLASSES = {
    "the default": kesler.OnlineClassifier(),
    "PA": kesler.OnlineClassifier(update="pa1"),
    "a kernel": kesler.OnlineClassifier(update="pa1", kernel="rbf"),
    "a majority": kesler.Ensemble([kesler.OnlineClassifier(), kesler.OnlineClassifier()]),
    "ranks": kesler.OnlineOrdinalClassifier(),
    "softmax": kesler.SoftmaxClassifier(),
    "Crammer and Singer": kesler.CrammerSingerClassifier(),
    "ShareBoost": kesler.ShareBoostClassifier(n_features_to_select=2),
    "JointBoost": kesler.JointBoostClassifier(n_rounds=5),
    "one vs. rest": OneVsRest(kesler.OnlineClassifier(update="pa1")),
    "Kesler's construction": kesler.KeslerReduction(),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, LABELS) for name, model in OF_CLASSES.items()}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_they_are_those_of_the_scores_and_probabilities(fitted, name):
    model = fitted[name]
    scores, labels = model.decision_function(X), model.classes_.tolist()
    shares = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    found = model.predict_top(X, 2)
    for t, row in enumerate(found):
        assert sorted(scores[t])[:0:-1] == [score for _, score, _ in row]
        for label, score, probability in row:
            code = labels.index(label)
            assert scores[t, code] == score
            assert probability == (None if shares is None else shares[t, code])
    assert [len(row) for row in model.predict_top(X[:2], 9)] == [3, 3]
    if name != "ranks":
        assert [row[0].label for row in found] == model.predict(X).tolist()


@pytest.mark.parametrize("name", list(OF_CLASSES)[:5])
def test_one_row_has_those_of_many(fitted, name):
    model = fitted[name]
    for x, expected in zip(X[::30], model.predict_top(X[::30], 2), strict=True):
        assert model.predict_top_one(x, 2) == expected


def test_two_classes_have_two_scores():
    rows = LABELS != "virginica"
    model = kesler.SoftmaxClassifier().fit(X[rows], LABELS[rows])
    (row,) = model.predict_top(X[LABELS == "setosa"][:1])
    assert [each.label for each in row] == ["setosa", "versicolor"]
    assert sum(each.probability for each in row) == pytest.approx(1)


def test_labels_of_sets_are_above_the_threshold():
    texts = ["win cash", "team lunch", "cash now"] * 5
    sets = [{"ad"}, {"work", "food"}, {"ad", "money"}] * 5
    model = kesler.OnlineMultilabelClassifier().fit(texts, sets)
    scores, shares = model.decision_function(["cash"])[0], model.predict_proba(["cash"])[0]
    for row in model.predict_top(["cash"], 4)[0], model.predict_top_one("cash", 4):
        assert {label: score for label, score, _ in row} == dict(
            zip(model.classes_, scores, strict=True)
        )
        assert [each.score for each in row] == sorted(scores, reverse=True)
        codes = [model.classes_.tolist().index(each.label) for each in row]
        assert [each.probability for each in row] == shares[codes].tolist()


def test_rankings_have_no_probabilities():
    model = kesler.OnlineLabelRanker().fit(["a", "b"] * 3, [["x", "y"], ["y", "x"]] * 3)
    assert [(each.label, each.probability) for each in model.predict_top_one("a")] == [
        ("x", None),
        ("y", None),
    ]


def test_declared_classes_are_left_out_before_their_first_row():
    model = kesler.OnlineClassifier()
    model.partial_fit(["a", "b"], ["x", "y"], classes=["x", "y", "z"])
    assert [each.label for each in model.predict_top_one("a")] == ["x", "y"]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", None])
def test_other_numbers_are_refused(fitted, n):
    for model in fitted["the default"], fitted["softmax"], fitted["one vs. rest"]:
        with pytest.raises(KeslerError, match=r"n=.* of 1 or more: it is the number of labels"):
            model.predict_top(X[:1], n)


def test_nothing_is_predicted_before_anything_is_learnt():
    with pytest.raises(NotFittedError, match="no class is known before the first row"):
        kesler.OnlineClassifier().predict_top(X)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6)), st.integers(1, 8))
def test_equal_scores_are_in_their_order(rows, n):
    scores = np.array(rows, dtype=np.float32).reshape(-1, 6)
    expected = [sorted(range(6), key=lambda i: -row[i])[:n] for row in rows]
    assert highest(scores, n).tolist() == expected
