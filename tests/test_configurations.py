"""The law of random configurations: any split, file or single row teaches the same."""

import json
import re
import subprocess
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import configurations as configurations_of_tests
import kesler
from configurations import OF_BATCHES, broken, broken_save, configurations, saves
from kesler import KeslerError, OnlineClassifier, OnlineMultilabelClassifier
from kesler.durable import Journal
from kesler.online import saving
from kesler.preprocessing import RandomFourier
from kesler.settings.codec import ESTIMATORS
from streams import assert_same_bits

N_DRAWN, N_SAVED = 300, 90


def seed_of_commit():
    """Return a number that changes with each commit, 0 without a repository."""
    asked = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def test_random_configurations_keep_the_law(tmp_path):
    warnings.simplefilter("ignore")
    for each in islice(configurations(seed_of_commit()), N_DRAWN):
        assert broken(each, tmp_path) in ("", "refused"), each


def test_models_at_random_are_saved_and_loaded_as_they_are(tmp_path):
    warnings.simplefilter("ignore")
    for each in islice(saves(seed_of_commit()), N_SAVED):
        assert broken_save(each, tmp_path) in ("", "refused"), each


def test_every_estimator_is_saved_at_random():
    kinds = {name: getattr(kesler, name) for name in kesler.__all__ if name[0].isupper()}
    assert {*ESTIMATORS, *OF_BATCHES} == {
        n for n, kind in kinds.items() if hasattr(kind, "predict")
    }


@pytest.mark.parametrize("is_online", [True, False], ids=["online", "of batches"])
@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            lambda model, X, y: model.set_params(**{min(model.get_params(deep=False)): 7}),
            "other pa",
        ),
        (lambda model, X, y: model.fit(X, [*y[1:], y[0]]), "(other bytes|predicts otherwise)"),
    ],
    ids=["parameters", "what it learnt"],
)
def test_a_loaded_model_that_differs_breaks_the_law(lost, said, is_online, tmp_path, monkeypatch):
    each = next(c for c in saves(0) if c.is_online == is_online and broken_save(c, tmp_path) == "")
    X, y, _ = each.rows()
    restored = configurations_of_tests._restored
    monkeypatch.setattr(
        configurations_of_tests, "_restored", lambda *saved: lost(restored(*saved), X, y)
    )
    assert re.search(said, broken_save(each, tmp_path))


def test_rows_one_by_one_are_a_table_where_a_batch_of_them_is():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (30, 2)), ["a", "b", "c"] * 10
    settings = {"columns": {}, "half_life": 1.0, "update": "pa1"}
    batch, one_by_one = OnlineClassifier(**settings).partial_fit(X, y), OnlineClassifier(**settings)
    for row, label in zip(X, y, strict=True):
        one_by_one.learn_one(row, label)
    assert str(batch.schema_) == str(one_by_one.schema_) and len(batch.schema_) == 2
    assert batch.n_mistakes_ == one_by_one.n_mistakes_
    with pytest.raises(KeslerError, match="learns from the columns of a table"):
        OnlineClassifier(columns={}).learn_one(sparse.csr_array(X[:1]), "a")


INFORMED = {"preprocessing": [RandomFourier(9, information=True)]}
ADDING = [{"tree": {"a": "ab", "b": "ab"}}, {"costs": {("a", "b"): 3.0}}]


@pytest.mark.parametrize("settings", ADDING, ids=str)
@pytest.mark.parametrize("given", [{"replay": 1}, INFORMED, INFORMED | {"replay": 1}], ids=str)
def test_classes_that_come_one_by_one_are_added_with_their_capacity(settings, given):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.choice(list("abc"), 40).tolist()
    given = {"update": "hinge", **settings, **given}
    whole, one_by_one = OnlineClassifier(**given).partial_fit(X, y), OnlineClassifier(**given)
    for row, label in zip(X, y, strict=True):
        one_by_one.learn_one(row, label)
    assert_same_bits(whole, one_by_one)


@pytest.mark.parametrize("settings", [{"update": "pa1", **INFORMED}, {}], ids=str)
def test_what_classes_explain_of_inputs_fades_row_by_row(settings):
    """And not once more after 20 half-lives, when all else that is stored is divided."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    whole, split = (OnlineClassifier(**settings, half_life=1.0) for _ in range(2))
    whole.partial_fit(X, y)
    for start in range(0, 60, 7):
        split.partial_fit(X[start : start + 7], y[start : start + 7])
    assert_same_bits(whole, split)


def test_a_learner_that_differs_breaks_the_law(tmp_path, monkeypatch):
    each = next(c for c in configurations(0) if broken(c, tmp_path) == "")
    learn_one = OnlineClassifier.learn_one
    monkeypatch.setattr(
        type(each.learner()), "learn_one", lambda model, x, y: learn_one(model, x, y, 0.5)
    )
    assert broken(each, tmp_path)


# ---- single cases -------------------------------------------------------------------------------


def test_one_sparse_row_says_how_many_features_there_are(tmp_path):
    X = sparse.random(20, 50, 0.1, format="csr", random_state=0)
    y = ["a", "b"] * 10
    whole, one_by_one = OnlineClassifier().partial_fit(X, y), OnlineClassifier()
    for i, label in enumerate(y):
        one_by_one.learn_one(X[i], label)
    assert whole.width_ == one_by_one.width_ == 50
    narrow = sparse.csr_array(np.ones((1, 49)))
    for method in (one_by_one.predict_one, lambda x: one_by_one.learn_one(x, "a")):
        with pytest.raises(KeslerError, match="has 49 features, but this model expects 50"):
            method(narrow)
    pair = np.array([3, 60]), np.ones(2)
    with pytest.raises(KeslerError, match="lists feature 60"):
        one_by_one.learn_one(pair, "a")
    with Journal(tmp_path / "journal.db") as journal:
        model = journal.open("m", OnlineClassifier())
        for i, label in enumerate(y[:5]):
            model.learn_one(X[i], label)
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.open("m").copy().width_ == 50


@pytest.mark.parametrize("width", [2, 50])
def test_a_sparse_row_of_another_width_is_refused_whatever_it_lists(width):
    model = OnlineClassifier().partial_fit(sparse.csr_array(np.ones((4, 1))), ["a", "b"] * 2)
    assert model.width_ == 1
    row = sparse.csr_array(([1.0], ([0], [0])), shape=(1, width))
    for method in (model.predict_one, lambda x: model.learn_one(x, "a")):
        with pytest.raises(KeslerError, match=f"has {width} features, but this model expects 1"):
            method(row)


@pytest.mark.parametrize("name", [0, None, (1, 2), 1.5], ids=repr)
@pytest.mark.parametrize(
    "rows", [[{"w": 1.0, "v": 2.0}] * 4, [{"w": 1.0, "v": 1.0}, {"w": 1.0}] * 2]
)
def test_names_that_are_no_text_are_refused_everywhere(rows, name):
    model = OnlineClassifier().fit(rows, ["a", "b"] * 2)
    row = {"w": 1.0, name: 2.0}
    for method in (
        model.predict_one,
        lambda x: model.predict([x]),
        lambda x: model.learn_one(x, "a"),
        lambda x: model.partial_fit([x], ["a"]),
        lambda x: OnlineClassifier().learn_one(x, "a"),
    ):
        with pytest.raises(KeslerError, match=r"is not text: give \{str\(name\): value"):
            method(row)
    assert model.predict_one({"w": 1.0, "unseen": 2.0}) in ("a", "b")


@pytest.mark.parametrize("rows", [np.eye(6), [{"a": 1.0}] * 6, ["some text"] * 6], ids=str)
@pytest.mark.parametrize("how", ["partial_fit", "learn_one"])
def test_a_model_of_empty_label_sets_predicts_no_label(rows, how, tmp_path):
    model = OnlineMultilabelClassifier()
    if how == "learn_one":
        model.learn_one(rows[0], [])
    else:
        getattr(model, how)(rows, [[]] * 6)
    model.save(tmp_path / "m")
    for each in (model, kesler.load(tmp_path / "m")):
        assert each.predict(rows).shape == (6, 0) and each.predict_one(rows[0]) == set()
        assert each.predict_label_sets(rows) == [set()] * 6 and each.n_mistakes_ == 0
        assert json.dumps(each.predict_top(rows[:2], 3)) == "[[], []]"
        each.partial_fit(rows, [["p"], ["q"]] * 3)
        assert each.classes_.tolist() == ["p", "q"]


def test_a_file_that_could_not_be_loaded_replaces_no_other(tmp_path, monkeypatch):
    model = OnlineClassifier(uncertainty="full").fit(np.eye(6), list("aabbcc"))
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    described = saving._uncertainty
    monkeypatch.setattr(saving, "_uncertainty", lambda each: described(each) | {"n_inputs": 9})
    with pytest.raises(KeslerError, match="not written, since it could not be loaded again"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before


def test_words_with_a_limit_on_memory_are_words_from_the_first_row_on():
    rows = [{"w1": 1.0, "w2": 2.0}, {"w1": 1.0, "w2": 1.0}, {"w3": 1.0}] * 6
    labels = list("abc") * 6
    whole = OnlineClassifier(memory_limit="200 MB").partial_fit(rows, labels)
    one_by_one = OnlineClassifier(memory_limit="200 MB")
    for row, label in zip(rows, labels, strict=True):
        one_by_one.learn_one(row, label)
    assert_same_bits(whole, one_by_one)
    assert len(one_by_one.vocabulary_) == 3 and not one_by_one.width_
