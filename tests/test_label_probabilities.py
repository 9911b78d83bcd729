"""Probabilities of labels and of ranks, and the predictions that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference_calibration
import reference_label_sets as reference
from cases import some, table_of
from kesler import (
    KeslerError,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.hypotheses import Ordered, PerClass, Shared
from kesler.maps import Contrast, Distance, GaussianRatio
from kesler.metrics import micro_f1
from kesler.preconditioners import AdaGrad
from kesler.preprocessing import Counts, ZScores
from kesler.updates import LogisticGradient, OneVsRestHinge, OneVsRestLogistic, SimProj

MODELS: dict[str, dict[str, Any]] = {
    "measurements": {},
    "sources": {"update": "simproj"},
    "averaged": {"update": "simproj", "averaged": True},
    "kernel": {"kernel": "rbf"},
}
every_model = pytest.mark.parametrize("chosen", MODELS.values(), ids=MODELS)


def scores_of_trials(model, X, y):
    """Learn from rows; return the scores of each above the threshold, before it was learnt."""
    return model._in_order(model._run_trials(X, y, keep_scores=True).scores)


def sets_of(seed: int, n_rows: int = 80, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and indicators of labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    odds = X @ rng.normal(size=(4, k)) + rng.normal(size=k) - 0.5
    return X, (rng.uniform(size=odds.shape) < 1 / (1 + np.exp(-odds))).astype(int)


# ---- label sets: the oracle ---------------------------------------------------------------------


@every_model
@settings(max_examples=5)
@given(seed=st.integers(0, 999))
def test_probabilities_of_labels_equal_the_oracle(chosen, seed):
    X, y = sets_of(seed)
    by_score = OnlineMultilabelClassifier(**chosen, decision="score")
    by_f1 = OnlineMultilabelClassifier(**chosen, decision="f1")
    above = scores_of_trials(by_score, X, y).astype(float)  # the decision does not change learning
    moved = scores_of_trials(by_f1, X, y)
    _, predicted, learnt = reference.progressive(above, y == 1)
    assert ((moved > 0) != predicted).mean() < 0.01  # float32 scores may fall on either side
    found = by_f1._learner.arrays()
    beta, information, hits, named = found["sets.calibration"]
    assert beta == pytest.approx(learnt.inverse, rel=1e-3)
    assert information == pytest.approx(learnt.information, rel=1e-3)
    assert (hits, named) == pytest.approx((learnt.hits, learnt.named), abs=2)
    np.testing.assert_allclose(found["sets.offsets"][1:], learnt.offsets, rtol=1e-3, atol=1e-4)
    last = by_score.decision_function(X).astype(float)
    expected = np.array([learnt.probabilities(row) for row in last])
    np.testing.assert_allclose(by_f1.predict_proba(X), expected, rtol=2e-3, atol=1e-5)
    assert by_score.predict_proba(X).tolist() == by_f1.predict_proba(X).tolist()


def test_labels_that_appear_later_have_no_part_before():
    X, y = some("sets", 3, n_rows=60)
    k = 1 + max(label for labels in y for label in labels)
    by_score = OnlineMultilabelClassifier(update="simproj", decision="score")
    above = scores_of_trials(by_score, X, y).astype(float)
    model = OnlineMultilabelClassifier(update="simproj", decision="f1").fit(X, y)
    _, _, learnt = reference.progressive(above, table_of("sets", y, k) == 1)
    found = model._learner.arrays()
    np.testing.assert_allclose(found["sets.offsets"][1:], learnt.offsets, rtol=1e-3, atol=1e-4)
    assert found["sets.calibration"][2:] == pytest.approx((learnt.hits, learnt.named), abs=2)


def test_the_threshold_is_half_of_the_f1_of_the_predictions():
    X, y = sets_of(5, n_rows=500)
    model = OnlineMultilabelClassifier()
    result = progressive_validate(model, X, y)
    predicted = np.nan_to_num(result.scores) > 0
    _, _, hits, named = model._learner.arrays()["sets.calibration"]
    # The labels of the first row are known only after it.
    assert hits - 1 == (predicted & (y == 1))[1:].sum()
    assert named - 4 == predicted[1:].sum() + y[1:].sum()
    assert 2 * hits / named == pytest.approx(result.micro_f1, abs=0.01)
    p = model.predict_proba(X)
    assert model.predict(X).tolist() == (p > hits / named).astype(int).tolist()


def test_probabilities_of_labels_are_calibrated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    true = 1 / (1 + np.exp(-(X @ rng.normal(size=(5, 8)) - 1)))
    y = (rng.uniform(size=true.shape) < true).astype(int)
    p = OnlineMultilabelClassifier().fit(X, y).predict_proba(X)
    loss = -np.where(y == 1, np.log(p), np.log1p(-p)).mean()
    best = -np.where(y == 1, np.log(true), np.log1p(-true)).mean()
    assert loss < best + 0.03
    tenths = np.digitize(p, np.arange(1, 10) / 10)
    gaps = [abs(p[tenths == i].mean() - y[tenths == i].mean()) for i in range(10)]
    assert max(gaps) < 0.06


@pytest.mark.parametrize("decision", ["score", "f1"])
def test_rare_labels_are_predicted_for_their_f1(decision):
    """Where no probability reaches 1/2, the scores name no label, whose F1 is 0."""
    rng = np.random.default_rng(1)
    X = np.ones((3000, 1))
    y = (rng.uniform(size=(3000, 2)) < [0.3, 0.02]).astype(int)
    model = OnlineMultilabelClassifier(decision=decision, intercept=1.0)
    found = progressive_validate(model, X, y).micro_f1
    assert found > 0.3 if decision == "f1" else found < 0.25


# ---- label sets: laws ---------------------------------------------------------------------------


@every_model
def test_probabilities_are_the_same_in_any_split_and_from_a_file(chosen, tmp_path):
    X, y = sets_of(7)
    whole = OnlineMultilabelClassifier(**chosen).partial_fit(X, y)
    pieces = OnlineMultilabelClassifier(**chosen).partial_fit(X[:30], y[:30])
    pieces.save(tmp_path / "model")
    pieces = load(tmp_path / "model").partial_fit(X[30:50], y[30:50])
    rows = [np.flatnonzero(labels).tolist() for labels in y]
    for x, labels in zip(X[50:], rows[50:], strict=True):
        pieces.learn_one(x, labels)
    assert pieces.predict_proba(X).tolist() == whole.predict_proba(X).tolist()
    assert pieces.predict(X).tolist() == whole.predict(X).tolist()
    one = whole.predict_proba_one(X[3])
    assert [one[label] for label in whole.classes_.tolist()] == whole.predict_proba(X)[3].tolist()


@every_model
def test_each_row_is_predicted_as_alone(chosen):
    X, y = sets_of(8, n_rows=40)
    rows = [np.flatnonzero(labels).tolist() for labels in y]
    model = OnlineMultilabelClassifier(**chosen).partial_fit(X[:5], rows[:5])
    trials = OnlineMultilabelClassifier(**chosen).partial_fit(X[:5], rows[:5])
    said = []
    for x, labels in zip(X[5:], rows[5:], strict=True):
        said.append(model.predict_one(x))
        assert model.learn_predict_one(x, labels) == said[-1]
    scores = scores_of_trials(trials, X[5:], rows[5:])
    labels = trials.classes_
    assert [set(labels[row > 0].tolist()) for row in np.nan_to_num(scores)] == said


def test_predicting_probabilities_changes_nothing():
    X, y = sets_of(9)
    model = OnlineMultilabelClassifier().fit(X, y)
    before = {name: array.tobytes() for name, array in model._learner.arrays().items()}
    model.predict_proba(X), model.predict_proba_one(X[0]), model.predict(X)
    assert before == {name: array.tobytes() for name, array in model._learner.arrays().items()}


def test_renaming_labels_changes_names_only():
    X, y = sets_of(10)
    plain = OnlineMultilabelClassifier().partial_fit(X, y)
    named = OnlineMultilabelClassifier().partial_fit(X, y, classes=[*"zyxwv"])
    assert named.classes_.tolist() == [*"vwxyz"]
    assert named.predict_proba(X)[:, ::-1].tolist() == plain.predict_proba(X).tolist()


def test_the_scale_of_scores_changes_no_probability():
    """Twice the intercept and the rows, at a quarter of C, are the same rows in other units."""
    X, y = sets_of(11)
    one = OnlineMultilabelClassifier(update=SimProj(1.0)).fit(X, y)
    other = OnlineMultilabelClassifier(update=SimProj(0.25), intercept=2.0).fit(2 * X, y)
    np.testing.assert_allclose(other.predict_proba(X * 2), one.predict_proba(X), rtol=1e-4)


# ---- ranks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("averaged", [False, True])
def test_the_median_of_the_probabilities_is_predicted(averaged):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=300), [-1, 0, 1])
    chosen = {"update": "simproj", "decision": "median", "averaged": averaged}
    model, said = OnlineOrdinalClassifier(**chosen), []
    for x, rank in zip(X, y.tolist(), strict=True):
        if model.n_known_:
            p = model.predict_proba(x[None])[0]
            median = model.classes_[np.flatnonzero(np.cumsum(p) >= 0.5)[0]]
            assert model.predict_one(x) == median
            said.append(median)
        model.learn_one(x, rank)
    result = progressive_validate(OnlineOrdinalClassifier(**chosen), X, y)
    assert result.predictions.tolist()[1:] == said
    p = model.predict_proba(X)
    costs = np.abs(np.arange(4)[:, None] - np.arange(4)) @ p.T
    chosen = np.searchsorted(model.classes_, model.predict(X))
    np.testing.assert_allclose(costs[chosen, np.arange(300)], costs.min(axis=0), rtol=1e-6)


def test_the_record_of_a_run_holds_the_probability_of_the_median():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=80), [-1, 0, 1])
    model, found = OnlineOrdinalClassifier(), []
    for x, rank in zip(X, y.tolist(), strict=True):
        p = model.predict_proba_one(x) if model.n_known_ else {}
        found.append((p[model.predict_one(x)], p[rank]) if rank in p else (np.nan, np.nan))
        model.learn_one(x, rank)
    result = progressive_validate(OnlineOrdinalClassifier(), X, y)
    np.testing.assert_array_equal(result.probabilities, found)


def test_the_decision_does_not_change_what_is_learnt():
    X, y = some("ranks", 4)
    one = OnlineOrdinalClassifier(decision="score").fit(X, y)
    other = OnlineOrdinalClassifier(decision="median").fit(X, y)
    # Confidence and intervals are those of the prediction.
    for name, array in one._learner.arrays().items():
        if not name.startswith("uncertainty."):
            assert array.tolist() == other._learner.arrays()[name].tolist(), name
    highest = one.classes_[one.predict_proba(X).argmax(axis=1)]
    assert one.predict(X).tolist() == highest.tolist()


def test_probabilities_of_ranks_are_a_softmax():
    X, y = some("ranks", 5, n_rows=60)
    model = OnlineOrdinalClassifier().fit(X, y)
    inverse, _, lapses, n_targets = model._learner.arrays()["calibration"]
    expected = [
        reference_calibration.probabilities(row.astype(float), lapses / n_targets, inverse)[0]
        for row in model.decision_function(X)
    ]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5)


# ---- defaults -----------------------------------------------------------------------------------

DENSE = np.array([[0.5, 2.0], [1.5, 1.0], [3.0, -1.0]])
WORDS = sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
LF, GAUSSIAN = AdaGrad(length_free=True), Shared(GaussianRatio(), begins_at=0.02)
CONTRAST = Shared(Contrast(), begins_at=0.15)
LOGISTIC = LogisticGradient(1.0, invariant=True)
RESOLVED: dict[str, tuple[Any, Any, list[Any], Any, Any, Any]] = {
    "ranks": (
        *(OnlineOrdinalClassifier(), DENSE, [PerClass(), GAUSSIAN, Ordered()]),
        *(LogisticGradient(1.5, invariant=True), LF, ZScores()),
    ),
    "ranks of words": (
        *(OnlineOrdinalClassifier(), WORDS, [PerClass(), CONTRAST, Ordered()]),
        *(LogisticGradient(1.5, invariant=True), AdaGrad(), Counts()),
    ),
    "sets": (
        *(OnlineMultilabelClassifier(), DENSE, [PerClass(), GAUSSIAN]),
        *(OneVsRestLogistic(1.0), LF, ZScores()),
    ),
    "sets of words": (
        *(OnlineMultilabelClassifier(), WORDS, [PerClass(), CONTRAST]),
        *(OneVsRestHinge(), AdaGrad(), Counts(information=True)),
    ),
    "rankings": (
        *(OnlineLabelRanker(), DENSE, [PerClass(), Shared(Distance())]),
        *(LOGISTIC, LF, ZScores()),
    ),
    "rankings of words": (
        *(OnlineLabelRanker(), WORDS, [PerClass(), Shared(Contrast())]),
        *(LOGISTIC, AdaGrad(), Counts()),
    ),
}


@pytest.mark.parametrize("row", RESOLVED.values(), ids=RESOLVED)
def test_defaults_follow_from_the_kind_of_the_rows(row):
    made, X, hypotheses, update, preconditioner, preprocessing = row
    answer = made.answer.kind
    y = [0, 1, 2] if answer == "rank" else [["a", "b"], ["b"], ["c", "a"]]
    found = made.fit(X, y).resolved_
    assert (found.hypotheses, found.update, found.preconditioner, found.preprocessing) == (
        *(hypotheses, update, preconditioner, preprocessing),
    )
    inherits = answer == "sets" and X is WORDS
    assert (found.on_new_class, found.intercept) == ("inherit" if inherits else "learn", 1.0)
    decisions = {"rank": "median", "sets": "f1"}
    assert getattr(found, "decision", None) == decisions.get(answer)
    assert found.fit(X, y).predict(X).tolist() == made.predict(X).tolist()


@pytest.mark.parametrize(
    ("made", "hypotheses"),
    [
        (OnlineOrdinalClassifier(update="simproj"), [PerClass(), Ordered()]),
        (OnlineMultilabelClassifier(update="simproj"), [PerClass()]),
        (OnlineLabelRanker(update="simproj"), [PerClass(), Shared(Distance())]),
    ],
)
def test_a_named_rule_has_the_settings_of_its_source(made, hypotheses):
    y = [0, 1, 2] if made.answer.kind == "rank" else [["a", "b"], ["b"], ["c", "a"]]
    found = made.fit(DENSE, y).resolved_
    assert sorted(map(str, found.hypotheses)) == sorted(map(str, hypotheses))
    assert (found.update, found.preprocessing, found.intercept) == (SimProj(), None, 1.0)
    assert found.on_new_class == "register"
    assert getattr(found, "decision", "score") == "score"


@pytest.mark.parametrize(
    "made",
    [
        OnlineMultilabelClassifier(link="exponential"),
        OnlineMultilabelClassifier(kernel="rbf", budget=5),
        OnlineOrdinalClassifier(link="p-norm"),
        OnlineLabelRanker(kernel="rbf"),
        OnlineLabelRanker(feature_map="gaussian-ratio"),
    ],
)
def test_other_links_kernels_and_maps_have_defaults(made):
    y = [0, 1, 2] if made.answer.kind == "rank" else [["a", "b"], ["b"], ["c", "a"]]
    assert len(made.fit(DENSE, y).predict(DENSE)) == 3


@pytest.mark.parametrize(
    ("made", "choices"),
    [
        (OnlineOrdinalClassifier(decision="f1"), "choose one of median, score"),
        (OnlineMultilabelClassifier(decision="median"), "choose one of f1, score"),
        (OnlineMultilabelClassifier(decision=None), "decision=None is unknown"),
    ],
)
def test_unknown_decisions_are_refused(made, choices):
    with pytest.raises(KeslerError, match=choices):
        made.fit(DENSE, [0, 1, 2] if made.answer.kind == "rank" else [["a"], ["b"], []])


def test_f1_of_all_labels_together():
    scores = np.array([[1.0, -1.0, np.nan], [2.0, 3.0, -1.0]])
    relevant = np.array([[True, True, True], [True, False, False]])
    assert micro_f1(scores, relevant) == pytest.approx(2 * 2 / (3 + 4))
    assert np.isnan(micro_f1(scores - 9, relevant & False))


def test_labels_that_appear_while_rows_are_learnt_by_pieces_are_columns_of_the_results():
    """Pieces of many rows know fewer labels than the whole; row by row gives the same answers."""
    texts = ["invoice pay", "invoice march", "call me", "lunch friday", "notes of lunch"] * 40
    sets = [{"bills", "urgent"}, {"bills"}, {"urgent"}, {"team"}, {"team"}] * 40
    sets[150:] = [each | {f"late {i % 3}"} for i, each in enumerate(sets[150:])]
    result = progressive_validate(OnlineMultilabelClassifier(), texts, sets)
    model, found = OnlineMultilabelClassifier(), []
    for text, target in zip(texts, sets, strict=True):
        found.append(model.predict_one(text) if found else set())
        model.learn_one(text, target)
    hits = sum(len(p & t) for p, t in zip(found, sets, strict=True))
    n_said, n_true = sum(map(len, found)), sum(map(len, sets))
    assert result.micro_f1 == pytest.approx(2 * hits / (n_said + n_true))


@pytest.mark.parametrize("intercept", [0.0, 1.0])
@pytest.mark.parametrize("update", ["auto", "simproj", "hinge", "ovr-squared"])
def test_the_labels_of_a_row_are_those_above_the_threshold(update, intercept):
    """Without an intercept, no label of a row without features is: all scores are 0."""
    rows = sparse.csr_array(np.vstack([np.eye(3), np.ones(3), np.zeros(3)]))
    sets = [{"a"}, {"b"}, {"a", "c"}, {"a", "b"}, {"a", "c"}]
    settings = {"update": update, "intercept": intercept, "decision": "score"}
    model = OnlineMultilabelClassifier("multi", **settings, preprocessing=None)
    model.partial_fit(rows[:4], sets[:4]).partial_fit(rows, sets)
    above = model.decision_function(rows)
    if not intercept:
        assert not above[4].any()
    labels = model.classes_.tolist()
    expected = [{r for r, s in zip(labels, row, strict=True) if s > 0} for row in above.tolist()]
    assert model.predict_label_sets(rows) == expected
    assert [model.predict_one(rows[[i]]) for i in range(5)] == expected
    assert model.predict(rows).tolist() == [[int(r in each) for r in labels] for each in expected]
    assert 0 < above.max() and any(expected) and ((above > 0) & (above < 1)).any()
