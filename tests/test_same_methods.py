"""Methods of all online estimators: the same arguments, or a sentence where they mean nothing."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import kesler
from kesler import BanditClassifier, KeslerError, OnlineClassifier, OnlineLabelRanker
from kesler.settings.codec import ESTIMATORS

NONE = inspect.Parameter.empty
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).round(2)
CLASSES = ("a", "b", "c")
LABELS = [CLASSES[i] for i in X.argmax(axis=1)]
TARGETS: dict[str, list[Any]] = {
    "OnlineMultilabelClassifier": [[label] for label in LABELS],
    "OnlineLabelRanker": [[label, *sorted({*CLASSES} - {label})] for label in LABELS],
    "CostSensitiveClassifier": [{each: float(each != one) for each in CLASSES} for one in LABELS],
}
CALLS = {
    "predict": {"min_confidence": 0.5},
    "predict_proba": {"new": True},
    "predict_path": {"separator": ";"},
}
SIGNATURES = {
    "predict": ["min_confidence"],
    "predict_proba": ["new"],
    "predict_path": ["min_confidence", "separator"],
    "predict_top": ["n"],
    "decision_function": [],
}
NEVER = {
    "OnlineMultilabelClassifier": {
        "predict": "predicts several labels",
        "predict_proba": "not that of labels to come",
        "predict_path": "several labels of a row are not one path",
    },
    "OnlineLabelRanker": {
        "predict": "predicts rankings, which have no probability",
        "predict_proba": "rankings have no probability",
        "predict_path": "several labels of a row are not one path",
    },
    **dict.fromkeys(
        ["LinearMax", "BanditClassifier", "CostSensitiveClassifier"],
        dict.fromkeys(["predict", "predict_proba"], "does not estimate its uncertainty"),
    ),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def fitted(name: str) -> Any:
    return getattr(kesler, name)().partial_fit(X, TARGETS.get(name, LABELS))


@every_estimator
def test_methods_take_the_same_arguments_of_rows_and_of_one_row(name):
    kind = getattr(kesler, name)
    for method, expected in SIGNATURES.items():
        for each, first in (method, "X"), (f"{method}_one", "x"):
            if hasattr(kind, each):
                assert [*inspect.signature(getattr(kind, each)).parameters][1:] == [
                    first,
                    *expected,
                ]
    assert [*inspect.signature(kind.score).parameters] == ["self", "X", "y", "sample_weight"]


@every_estimator
@pytest.mark.parametrize("method", CALLS)
def test_what_means_nothing_is_refused_in_a_sentence_and_all_else_answers(name, method):
    model, words = fitted(name), NEVER.get(name, {}).get(method)
    for each, rows in (method, X), (f"{method}_one", X[0]):
        if words is None:
            found = getattr(model, each)(rows, **CALLS[method])
            first = "x" if each.endswith("_one") else "X"
            again = getattr(model, each)(**{first: rows}, **CALLS[method])
            np.testing.assert_equal(again, found)
        else:
            with pytest.raises((KeslerError, AttributeError), match=words):
                getattr(model, each)(rows, **CALLS[method])
    if words is None or method == "predict_path":
        return
    answered = method == "predict" or name != "OnlineLabelRanker"
    assert hasattr(model, method) == hasattr(model, f"{method}_one") == answered
    if answered:  # without the argument
        getattr(model, method)(X)


def test_weights_of_rows_in_the_score_of_rankings_are_their_numbers():
    model, y = fitted("OnlineLabelRanker"), TARGETS["OnlineLabelRanker"][::-1]
    weights = RNG.integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weights)
    expected = model.score(X[repeated], [y[i] for i in repeated])
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected, abs=1e-12)
    assert expected != pytest.approx(model.score(X, y), abs=1e-3)
    assert np.isnan(OnlineLabelRanker().fit(X, y).score(X, y, sample_weight=np.zeros(len(X))))


# ---- all estimators, of batches too -------------------------------------------------------------

PREDICTING = [
    name
    for name in kesler.__all__
    if hasattr(getattr(kesler, name), "predict") and name[0].isupper()
]
EVERYWHERE = {
    "predict": {"min_confidence": None},
    "predict_proba": {"new": False},
    "predict_top": {"n": 5},
    "predict_set": {"coverage": 0.9, "by_class": False, "allow_empty": True},
    "predict_path": {"min_confidence": 0.9, "separator": None},
    "decision_function": {},
}
"""The arguments of each method beside the rows, and their defaults."""

ABSENT = r"has no .*, since|does not estimate|has no score for each class, since|is not one path"


def tag_features(words: Any, tags: Any) -> dict[Any, float]:
    return dict.fromkeys(zip(words, tags, strict=True), 1.0)


def tags_of(weights: Any, words: Any) -> tuple[str, ...]:
    return tuple(max("NV", key=lambda tag: weights[word, tag]) for word in words)


def any_estimator(name: str) -> Any:
    if name == "StructuredLearner":
        return kesler.StructuredLearner(tag_features, tags_of)
    needed = {
        "OneAgainstSome": {"estimator": OnlineClassifier()},
        "ShareBoostClassifier": {"n_features_to_select": 2},
    }
    return getattr(kesler, name)(**needed.get(name, {}))


def reason_of(model: Any, method: str) -> str:
    """Return why an estimator has no such method."""
    with pytest.raises(AttributeError) as raised:
        getattr(model, method)
    return str(raised.value.__cause__ or raised.value)


@pytest.mark.parametrize("name", PREDICTING)
def test_every_estimator_has_the_same_methods_or_says_why_not(name):
    kind, model = getattr(kesler, name), any_estimator(name)
    for method, options in EVERYWHERE.items():
        for each, first in (method, "X"), (f"{method}_one", "x"):
            if each == "decision_function_one":
                continue
            if not hasattr(kind, each):
                assert re.search(ABSENT, reason_of(model, each)), each
                continue
            given = inspect.signature(getattr(kind, each)).parameters
            defaults = {n: p.default for n, p in given.items()}
            assert defaults == {"self": NONE, first: NONE, **options}, each
    scoring = {n: p.default for n, p in inspect.signature(kind.score).parameters.items()}
    assert scoring == {"self": NONE, "X": NONE, "y": NONE, "sample_weight": None}


@pytest.mark.parametrize("name", sorted({*PREDICTING} - {*ESTIMATORS}))
def test_estimators_of_batches_refuse_questions_of_uncertainty(name):
    model = any_estimator(name)
    rows, y = (X, LABELS) if name != "StructuredLearner" else ([["go"], ["fish"]], [("V",), ("N",)])
    model.fit(rows, y)
    plain = model.predict(rows, min_confidence=None)
    np.testing.assert_equal(plain, model.predict(rows))
    words = f"min_confidence=0.0: {name} does not estimate its uncertainty: use a classifier that"
    with pytest.raises(KeslerError, match=words):
        model.predict(rows, min_confidence=0.0)
    if hasattr(model, "predict_proba"):
        for no in (None, False, np.False_):
            np.testing.assert_equal(model.predict_proba(rows, new=no), model.predict_proba(rows))
        with pytest.raises(KeslerError, match=f"new=True: {name} does not estimate"):
            model.predict_proba(rows, new=True)
    if hasattr(model, "predict_one"):
        with pytest.raises(KeslerError, match=words):
            model.predict_one(rows[0], 0.0)


def taken(values: Any, positions: Any) -> Any:
    return values[positions] if hasattr(values, "shape") else [values[i] for i in positions]


def test_weights_of_rows_in_other_scores_are_their_numbers():
    tagger = any_estimator("StructuredLearner").fit([["go"], ["fish"]], [("V",), ("N",)])
    ranks = 1 + np.argsort(np.argsort(-X))
    reduction = kesler.KeslerReduction().fit(X, ranks)
    sentences, tags = [["go"], ["fish"], ["eat"]], [("V",), ("V",), ("V",)]
    for model, rows, y in (
        (tagger, sentences, tags),
        (reduction, X, ranks[::-1]),
    ):
        weights = 1 + np.arange(len(rows)) % 3
        repeated = np.repeat(np.arange(len(rows)), weights)
        expected = model.score(*(taken(each, repeated) for each in (rows, y)))
        assert model.score(rows, y, sample_weight=weights) == pytest.approx(expected, abs=1e-12)
        assert expected != pytest.approx(model.score(rows, y), abs=1e-3)
    for model, rows, y in (
        (tagger, sentences, tags),
        (reduction.fit(X, [{0}, {1}] * (len(X) // 2)), X, [{0}] * len(X)),
    ):
        for bad, words in (
            ([1.0], "give one weight for each row"),
            ([0.0] * len(rows), "is 0 for all rows"),
            ([-1.0] + [1.0] * (len(rows) - 1), "row 0 is -1.0"),
        ):
            with pytest.raises(KeslerError, match=words):
                model.score(rows, y, sample_weight=bad)


# ---- bandits before the first row ----------------------------------------------------------------

ROWS: dict[str, list[Any]] = {
    "arrays": [[1.0, 2.0], [0.0, 1.0]],
    "names": [{"a": 1.0}, {"b": 2.0}],
    "texts": ["win cash", "team lunch"],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_a_bandit_answers_before_the_first_row_and_is_as_it_was(rows):
    model = BanditClassifier(classes=["spam"], exploration="greedy").add_classes(["work"])
    assert model.classes_.tolist() == ["spam", "work"]
    answers: list[list[Any]] = []
    for _ in range(2):
        answers.append(
            [
                model.predict(rows).tolist(),
                model.predict_proba(rows).tolist(),
                model.predict_proba_one(rows[0]),
                model.decision_function(rows).tolist(),
                [[top.label for top in each] for each in model.predict_top(rows)],
            ]
        )
        assert model._learner is None or model.n_pending_ == 1
        model.predict_one(rows[0])  # makes the learner
    assert answers[0] == answers[1]
    assert answers[0][0] == ["spam", "spam"] and answers[0][2] == {"spam": 0.5, "work": 0.5}
    assert answers[0][3] == [0.0, 0.0]


def test_a_bandit_without_classes_says_so_in_all_answers():
    model = BanditClassifier()
    for answer in (model.predict, model.predict_proba, lambda rows: model.predict_one(rows[0])):
        with pytest.raises(ValueError, match="no class is known"):
            answer(ROWS["arrays"])
    with pytest.raises(AttributeError, match="not fitted"):
        _ = model.classes_


def test_a_bandit_that_has_seen_no_row_of_a_table_says_so():
    model, row = BanditClassifier(classes=["spam", "work"]), {"kind": "x", "size": 3.0}
    for answer in (model.predict_one, lambda x: model.predict([x])):
        with pytest.raises(KeslerError, match="known from the first row that is learnt"):
            answer(row)
    assert model.learn_one(row, "work").predict_one(row) in ("spam", "work")
