"""Candidates of label sets: what is said and learnt, and what changes nothing of it."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kesler import KeslerError, OnlineMultilabelClassifier, load
from kesler.candidates import Candidates
from kesler.data import model_file
from kesler.learner import top_features
from kesler.online import reader
from reference_label_candidates import ReferenceLabelCandidates
from streams import learnt

SETTINGS = [(2, 2, 2000), (3, 5, 10), (4, 10, 1), (8, 8, 24)]
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


def learner(setting: tuple[int, ...] = SETTINGS[1], **settings: Any) -> OnlineMultilabelClassifier:
    return OnlineMultilabelClassifier(candidates=Candidates(*setting), **settings)


def stream(seed: int, n_rows: int = 140, n_labels: int = 25) -> tuple[Any, list[list[int]], Any]:
    """Rows of words, half of them typical of a label, their label sets, and weights.

    Some rows are empty, some have no label, and some have several new ones.
    """
    rng = np.random.default_rng(seed)
    X, sets, number = np.zeros((n_rows, 50)), [], dict[int, int]()
    for t in range(n_rows):
        size = rng.choice([0, 1, 2, 3, 6], p=[0.1, 0.4, 0.3, 0.15, 0.05]) if t else 2
        drawn = dict.fromkeys(np.minimum(rng.zipf(1.4, size=size), n_labels).tolist())
        sets.append([number.setdefault(r, len(number)) for r in drawn])
        for r in [*sets[-1], n_labels]:
            words = rng.zipf(1.4, size=rng.integers(5))
            np.add.at(X[t], (7 * r + words) % 50, 1)
    return sparse.csr_array(X), sets, rng.choice([0.5, 1.0, 2.0], size=n_rows)


@pytest.mark.parametrize("weighs", [False, True])
@every_setting
def test_each_row_is_said_and_learnt_as_the_oracle_does(setting, weighs):
    X, sets, weights = stream(sum(setting) + weighs)
    weights = weights if weighs else np.ones(len(sets))
    table = np.column_stack([np.ones(len(sets)), X.toarray()])
    n_labels = 1 + max(max(each, default=0) for each in sets)
    oracle, model = ReferenceLabelCandidates(51, n_labels, *setting), learner(setting)
    n_compared = 0
    for t, own in enumerate(sets):
        is_known = oracle.is_sparse
        before = model.predict_proba(X[t : t + 1])[0] if is_known else None
        n_missed, share = oracle.recall[0] - oracle.recall[1], oracle.missing
        trial = oracle.learn(table[t], own, weights[t])
        model.partial_fit(X[t : t + 1], [own], sample_weight=weights[t : t + 1])
        if is_known and trial.is_clear:
            expected = np.full(len(before), share if len(trial.candidates) < len(before) else 0.0)
            expected[trial.candidates] = trial.probabilities
            np.testing.assert_allclose(before, expected, atol=1e-4)
            oracle.calibrate(trial, own, oracle.recall[0] - oracle.recall[1] - n_missed)
            assert_as_learnt(model, oracle)
            n_compared += 1
        oracle.mistakes = model.n_mistakes_
        oracle.take_over(model._learner)
    assert n_compared > len(sets) / 2
    assert 0 < oracle.recall[1] < oracle.recall[0]


def assert_as_learnt(model: OnlineMultilabelClassifier, oracle: ReferenceLabelCandidates) -> None:
    stored = model._learner.arrays()
    weights, evidence, counts = oracle.tables_of(model._learner)
    np.testing.assert_array_equal(counts, oracle.counts)
    assert stored["entries.recall"].tolist() == [*oracle.recall, oracle.frequent + 1]
    if oracle.recall[0]:
        assert model.candidate_recall_ == pytest.approx(oracle.recall[1] / oracle.recall[0])
    assert stored["entries.missing"][0] == pytest.approx(oracle.missing, abs=1e-12)
    assert model.n_mistakes_ == oracle.mistakes
    is_entry, close = oracle.counts > 0, {"rtol": 1e-3, "atol": 2e-4}
    is_met = oracle.with_feature > 0
    for found, expected in ((weights, oracle.w), (evidence, oracle.g)):
        own = (np.where(is_entry, each.own, 0) for each in (found, expected))
        np.testing.assert_allclose(*own, **close)
        np.testing.assert_allclose(found.virtual, expected.virtual, **close)
    noise = (evidence.shared > 0) & (evidence.shared < 1e-12)
    shared = (np.where(is_met & ~noise, each.shared, 0) for each in (weights, oracle.w))
    np.testing.assert_allclose(*shared, **close)
    held = oracle.shared_offset
    expected = [held.inverse, held.information, held.hits, held.named]
    np.testing.assert_allclose(stored["sets.calibration"].tolist(), expected, rtol=1e-3)
    np.testing.assert_allclose(stored["sets.offsets"][0], held.offsets[0], atol=1e-4)


# ---- what changes nothing -----------------------------------------------------------------------


def assert_same(one: Any, other: Any, X: Any) -> None:
    assert learnt(one) == learnt(other)
    assert one.n_mistakes_ == other.n_mistakes_
    for name in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(one, name)(X), getattr(other, name)(X))
    for name in ("predict_label_sets", "predict_set", "predict_top"):
        assert getattr(one, name)(X) == getattr(other, name)(X)


@every_setting
def test_batches_files_and_pickles_teach_the_same(setting, tmp_path):
    X, sets, weights = stream(3)
    whole = learner(setting).partial_fit(X, sets, sample_weight=weights)
    pieces, events = learner(setting), learner(setting)
    for start, end in pairwise([0, 1, 4, 50, 51, 140]):
        part = slice(start, end)
        pieces.partial_fit(X[part], sets[part], sample_weight=weights[part])
        pieces.save(tmp_path / "model")
        pieces = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    for t in range(len(sets)):
        part = slice(t, t + 1)
        events.partial_fit(X[part], sets[part], sample_weight=weights[part])
    assert_same(whole, pieces, X)
    assert_same(whole, events, X)
    whole.save(tmp_path / "whole")
    pieces.save(tmp_path / "pieces")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()


@every_setting
def test_texts_are_learnt_one_by_one_as_together(setting):
    X, sets, _ = stream(8)
    texts = [" ".join(f"word{i}" for i in np.repeat(np.arange(50), row)) * 5 for row in dense(X)]
    names = [[f"label {r}" for r in own] for own in sets]
    whole, events, both = (learner(setting) for _ in range(3))
    whole.partial_fit(texts, names)
    for text, own in zip(texts, names, strict=True):
        events.learn_one(text, own)
        both.learn_predict_one(text, own)
    assert_same(whole, events, texts)
    assert_same(whole, both, texts)


def dense(X: Any) -> Any:
    return X.toarray().astype(int)


@pytest.mark.parametrize("more", [0, 1, 40])
def test_as_many_candidates_as_labels_are_all_labels(more):
    X, sets, _ = stream(7)
    n = 1 + max(max(each, default=0) for each in sets) + more
    first, *others = (
        OnlineMultilabelClassifier(candidates=choice).partial_fit(X, sets)
        for choice in (None, n, Candidates(2, beyond=n), "auto")
    )
    for model in others:
        assert_same(model, first, X)


def test_the_order_of_labels_in_a_row_changes_nothing_once_they_are_known():
    X, sets, _ = stream(5)
    known = sets[:60]
    found = []
    for order in (1, -1):
        model = learner().partial_fit(X[:60], known)
        labels = set(model.classes_.tolist())
        rest = [[r for r in own if r in labels][::order] for own in sets[60:]]
        found.append(model.partial_fit(X[60:], rest))
    assert_same(*found, X)


def test_tables_name_labels_that_no_row_has_yet():
    X, sets, _ = stream(6)
    n = 1 + max(max(each, default=0) for each in sets)
    table = np.zeros((len(sets), n), dtype=int)
    for t, own in enumerate(sets):
        table[t, own] = 1
    whole = learner().partial_fit(X, table)
    pieces = learner()
    for t in range(len(sets)):
        pieces.partial_fit(X[t : t + 1], table[t : t + 1])
    assert_same(whole, pieces, X)
    assert whole.classes_.tolist() == list(range(n))


# ---- answers ------------------------------------------------------------------------------------


@every_setting
def test_answers_agree_with_one_another(setting):
    X, sets, _ = stream(9)
    model = learner(setting).partial_fit(X, sets)
    scores, proba = model.decision_function(X), model.predict_proba(X)
    assert np.isfinite(scores).all() and ((proba >= 0) & (proba <= 1)).all()
    before = learnt(model)
    label_sets = model.predict_label_sets(X)
    for t, best in enumerate(model.predict_top(X, 3)):
        assert [each.score for each in best] == sorted(scores[t], reverse=True)[:3]
        assert [each.probability for each in best] == proba[t, [e.label for e in best]].tolist()
        assert label_sets[t] == set(np.flatnonzero(scores[t] > 0).tolist())
        one = X[t : t + 1]
        assert model.predict_top_one(one, 3) == best
        assert model.predict_one(one) == label_sets[t]
        why = model.explain_one(one, best[0].label)
        assert why.score == pytest.approx(best[0].score, abs=1e-4)
    rows = model.predict(X).tolist()
    assert [set(np.flatnonzero(row).tolist()) for row in rows] == label_sets
    right = [set(a) == b for a, b in zip(sets, label_sets, strict=True)]
    assert model.score(X, sets) == np.mean(right)
    assert learnt(model) == before


@every_setting
def test_what_no_feature_adds_to_a_score_is_the_same_for_all_rows(setting):
    """Also to that of a label that is no candidate of a row, as most are here."""
    X, sets, _ = stream(9)
    model = learner(setting).partial_fit(X, sets)
    for label in model.classes_[:25:3].tolist():
        found = [model.explain_one(row[None], label, n=10**6) for row in X[:20]]
        for why in found:
            parts = [*why.contributions, why.remainder, why.intercept]
            assert why.score == pytest.approx(sum(each.score for each in parts), abs=1e-4)
            assert why.intercept.score == pytest.approx(found[0].intercept.score, abs=1e-4)


def test_predictions_of_too_many_labels_are_refused(monkeypatch):
    X, sets, _ = stream(9)
    model = learner().partial_fit(X, sets)
    monkeypatch.setattr(reader, "MOST_NUMBERS", 1000)
    for name in ("predict_proba", "decision_function", "predict"):
        with pytest.raises(KeslerError, match="predict_top"):
            getattr(model, name)(X)
    assert len(model.predict_label_sets(X)) == len(sets)


def test_top_features_are_those_of_the_label():
    texts = [f"word{r} of all" for r in range(20)] * 4
    sets = [[f"label {r}", "every"] for r in range(20)] * 4
    model = learner((4, 6, 500)).partial_fit(texts, sets)
    assert model.top_features("label 7", 1)[0][0] in ("word7", "word7 of")
    assert model.predict_top_one("word7 of all", 2)[0].label in ("label 7", "every")


def test_top_features_do_not_depend_on_how_many_are_shown_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in rng.integers(60, size=5)) for _ in range(200)]
    model = learner((4, 6, 500)).partial_fit(texts, [[r % 30] for r in range(200)])
    whole = [model.top_features(label, 9999) for label in range(30)]
    monkeypatch.setattr(top_features, "FEATURES_AT_ONCE", 7)
    assert [model.top_features(label, 9999) for label in range(30)] == whole


def test_memory_follows_what_rows_had_and_not_the_number_of_labels():
    rows = [{f"word {t}": 1.0, f"other {t}": 1.0} for t in range(3000)]
    model = OnlineMultilabelClassifier(columns=None).partial_fit(rows, [[t] for t in range(3000)])
    stored = model._learner.stored
    assert sum(array.nbytes for array in stored.values()) < 3e6
    assert model._learner.comparing.entries.n_entries == 3 * 3000


@pytest.mark.parametrize("settings", [{"update": "simproj"}, {"on_new_class": "learn"}], ids=str)
def test_learners_that_compare_all_labels_refuse_candidates(settings):
    with pytest.raises(KeslerError, match="candidates=64 has no effect"):
        OnlineMultilabelClassifier(candidates=64, **settings).fit(["a b", "c"], [["x"], ["y"]])


# ---- files --------------------------------------------------------------------------------------

DAMAGED: dict[str, Any] = {
    "entries of the threshold": ("classes", lambda a: np.where(np.arange(len(a)) == 0, 0, a)),
    "labels beyond": ("classes", lambda a: a + 1000),
    "the threshold as the most frequent": ("recall", lambda a: a * np.array([1, 1, 0])),
    "more found than there were": ("recall", lambda a: a + np.array([0, 10**6, 0])),
    "weights of NaN": ("numbers", lambda a: a * np.float32(np.nan)),
    "counts of zero": ("numbers", lambda a: a * np.array([1, 1, 0], np.float32)),
    "missing above 1": ("missing", lambda a: a + 2),
    "too few starts": ("starts", lambda a: a[:-1]),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused(damage, tmp_path):
    X, sets, _ = stream(4)
    learner().partial_fit(X, sets).save(tmp_path / "model")
    arrays, metadata = model_file.load(tmp_path / "model")
    name, change = damage
    name = f"entries.{name}"
    changed = arrays | {name: change(arrays[name]).astype(arrays[name].dtype)}
    model_file.save(tmp_path / "damaged", changed, metadata)
    with pytest.raises(KeslerError, match="damaged"):
        load(tmp_path / "damaged")
