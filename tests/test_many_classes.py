"""Answers where rows are compared with candidates: explanations, best labels, sets, refusals."""

import json
from typing import Any

import numpy as np
import pytest

from commands import kesler
from kesler import Ensemble, KeslerError, OnlineClassifier
from kesler.candidates import Candidates
from kesler.distributed.parameter_mixing import mixable
from kesler.online import reader

RNG = np.random.default_rng(43)
WORDS = [f"w{i}" for i in range(60)]
FEW = Candidates(4, beyond=6, budget=50)


def texts(n_rows: int, n_classes: int = 30) -> tuple[list[str], list[str]]:
    """Return texts of two words of their class and two others, and their classes."""
    classes = RNG.integers(0, n_classes, n_rows)
    rows = [
        " ".join([WORDS[r], WORDS[r + 30], *RNG.choice(WORDS, 2)]) for r in (classes % 30).tolist()
    ]
    return rows, [f"class {r}" for r in classes]


ROWS, LABELS = texts(400)
ASKED, RIGHT = texts(60)


@pytest.fixture(scope="module")
def model() -> OnlineClassifier:
    return OnlineClassifier(candidates=FEW).partial_fit(ROWS, LABELS)


def test_most_rows_of_classes_with_words_of_their_own_are_right(model):
    assert model._learner.comparing is not None
    assert 0.9 < model.candidate_recall_ <= 1
    assert np.mean(model.predict(ASKED) == RIGHT) > 0.9
    assert OnlineClassifier().partial_fit(ROWS, LABELS).candidate_recall_ == 1


def test_contributions_sum_to_the_scores_of_candidates(model):
    for row in ASKED[:20]:
        why = model.explain_one(row)
        scores = dict(zip(model.classes_, model.decision_function([row])[0], strict=True))
        assert why.label == model.predict_one(row)
        assert why.score == pytest.approx(scores[why.label], abs=1e-4)
        assert why.rival_score == pytest.approx(scores[why.rival], abs=1e-4)
        assert sum(each.score for each in why.summands) == pytest.approx(why.score)


def test_classes_that_are_no_candidates_are_explained_by_their_weights(model):
    found = []
    for label in model.classes_:
        why = model.explain_one(ASKED[0], label)
        assert sum(each.score for each in why.summands) == pytest.approx(why.score)
        found.append(why.score)
    assert model.classes_[np.argmax(found)] == model.predict_one(ASKED[0])


def test_features_of_a_class_are_words_of_its_own(model):
    for r in (3, 17):
        best, weight = model.top_features(f"class {r}", 1)[0]
        assert best == f"{WORDS[r]} {WORDS[r + 30]}"
        assert weight > 0


@pytest.mark.parametrize("n", [1, 3, 4, 7, 100])
def test_best_labels_are_those_of_the_highest_scores(model, n):
    scores, probabilities = model.decision_function(ASKED), model.predict_proba(ASKED)
    places = {label: i for i, label in enumerate(model.classes_)}
    for t, found in enumerate(model.predict_top(ASKED, n)):
        assert len(found) == min(n, len(places))
        columns = [places[each.label] for each in found]
        assert [each.score for each in found] == scores[t, columns].tolist()
        assert [each.probability for each in found] == probabilities[t, columns].tolist()
        assert np.sort(scores[t])[::-1][: len(found)].tolist() == scores[t, columns].tolist()
        assert found == model.predict_top_one(ASKED[t], n)


def test_sets_hold_the_right_class_as_often_as_asked():
    made, held = OnlineClassifier(candidates=FEW), []
    for t, (row, label) in enumerate(zip(*texts(1200), strict=True)):
        if t > 300:
            held.append(label in made.predict_set_one(row, 0.9))
        made.learn_one(row, label)
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_scores_of_all_classes_are_refused_where_they_are_too_many(model, monkeypatch):
    monkeypatch.setattr(reader, "MOST_NUMBERS", 10 * len(model.classes_))
    assert model.predict_proba(ASKED[:10]).shape == (10, len(model.classes_))
    for ask in (model.predict_proba, model.decision_function):
        with pytest.raises(KeslerError, match=r"11 rows and 30 classes .* predict_top\(X, n\)"):
            ask(ASKED[:11])
    with pytest.raises(KeslerError, match="predict_top"):
        model.predict_proba(ASKED[:11], new=True)
    assert len(model.predict_top(ASKED)) == len(model.confidence(ASKED)) == len(ASKED)


def test_parts_of_rows_are_answered_as_all_are(model, monkeypatch):
    whole = model.predict_set(ASKED), model.confidence(ASKED), model.predict_top(ASKED)
    monkeypatch.setattr("kesler.data.inputs.BLOCK_ENTRIES", 7 * len(model.classes_))
    parts = model.predict_set(ASKED), model.confidence(ASKED), model.predict_top(ASKED)
    assert whole[0] == parts[0]
    assert whole[1].tolist() == parts[1].tolist()
    assert whole[2] == parts[2]


def test_ensembles_and_shards_compare_all_classes():
    asked: Any = OnlineClassifier(candidates=FEW)
    with pytest.raises(KeslerError, match="no effect on an ensemble"):
        Ensemble([asked, OnlineClassifier()]).fit(ROWS, LABELS)
    with pytest.raises(KeslerError, match="shards have different candidates"):
        mixable(asked, dense=False)
    assert mixable(OnlineClassifier(), dense=False).candidates is None
    assert Ensemble([OnlineClassifier()] * 2).fit(ROWS, LABELS).score(ASKED, RIGHT) > 0.8


def test_show_counts_weights_and_found_classes(model, tmp_path, capsys):
    model.save(tmp_path / "m.kesler")
    shown = json.loads(kesler(capsys, "show", tmp_path / "m.kesler", "--json", "-").out)
    assert shown["sparse_weights"] == model._learner.comparing.entries.n_entries
    assert shown["candidate_recall"] == round(model.candidate_recall_, 4)
