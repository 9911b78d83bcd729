"""What users of `OnlineClassifier` may rely on, beside the laws."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import homemade
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    StructuredLearner,
    feature_map,
    load,
    progressive_validate,
    update_rule,
)
from kesler.data import model_file
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import MAPS, Distance, Frequency, Product, ProductMean
from kesler.updates import MIRA, PassiveAggressive
from streams import assert_same, everything, learnt, make_stream

EYE = np.eye(4)


def refused(attempt: Any, *words: str) -> str:
    """Return the message of an error, which contains each of the words."""
    with pytest.raises(KeslerError) as caught:
        attempt()
    sentence = str(caught.value)
    assert all(word in sentence for word in words), sentence
    return sentence


def named(X: Any) -> list[dict[str, float]]:
    return [{f"x{j}": float(v) for j, v in enumerate(x) if v} for x in X]


# ---- order --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        partial(OnlineClassifier, shuffle=False),
        partial(OnlineClassifier, update="pa1"),
        partial(OnlineOrdinalClassifier, shuffle=False),
    ],
)
def test_rows_sorted_by_class_are_warned_of(make):
    stream = make_stream(0, n_rows=90, n_classes=3)
    order = np.argsort(stream.y, kind="stable")
    with pytest.warns(UserWarning, match="sorted by class") as caught:
        make().fit(stream.X[order], stream.y[order])
    assert caught[0].filename == __file__
    make().fit(stream.X, stream.y)
    make().fit(stream.X[:9], np.repeat([0, 1, 2], 3))  # too few rows to tell
    make().partial_fit(stream.X[order], stream.y[order])  # a stream has an order


# ---- growth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_columns_that_no_row_lists_are_counted_in_blocks_of_any_length(intercept):
    X = sparse.csr_array((np.ones(200), np.arange(200) % 5, np.arange(201)), shape=(200, 9))
    y = np.arange(200) % 3
    whole, parts = (OnlineClassifier(update="pa1", intercept=intercept) for _ in range(2))
    whole.partial_fit(X, y)
    for start in range(0, 200, 50):
        parts.partial_fit(X[start : start + 50], y[start : start + 50])
    assert whole._learner.n_named_features == parts._learner.n_named_features == 9
    assert learnt(whole) == learnt(parts)


@pytest.mark.parametrize("hypotheses", ["multi", "hybrid", "all-three"])
def test_a_thousand_classes_and_six_thousand_names_as_they_come(hypotheses):
    """Capacity doubles many times; a model with enough from the start learns the same."""
    rng = np.random.default_rng(2)
    y = np.concatenate([np.arange(1000), rng.integers(1000, size=1000)])
    indices = [[*range(3 * t, 3 * t + 3), *rng.choice(3 * t + 1, size=5)] for t in range(2000)]
    rows = [{f"w{j}": float(1 + j % 3) for j in row} for row in indices]
    parts: Any = hypotheses
    if hypotheses == "all-three":
        parts = [PerClass(), Shared(Product()), Grouped(lambda label: [label // 10, label % 7])]
    growing = OnlineClassifier(parts, "product", update="pa1")
    for row, label in zip(rows, y.tolist(), strict=True):
        growing.learn_one(row, label)
    names = list(dict.fromkeys(name for row in rows for name in row))
    assert growing.n_known_ == 1000 and len(names) == 6000
    number = {name: j for j, name in enumerate(names)}
    csr = sparse.lil_array((2000, len(names)), dtype=np.float32)
    for t, row in enumerate(rows):
        for name, value in row.items():
            csr[t, number[name]] = value
    roomy = OnlineClassifier(parts, "product", update="pa1")
    roomy.partial_fit(csr.tocsr(), y, classes=range(1000))
    assert growing.n_mistakes_ == roomy.n_mistakes_
    found, others = learnt(growing), learnt(roomy)
    # Named rows list their features in another order, which rounds otherwise.
    for i in range(len(growing._learner.parts)):
        shape, weights = found[f"weights.values.{i}"]
        assert shape == others[f"weights.values.{i}"][0]
        ours = np.frombuffer(weights, dtype=np.float32)
        theirs = np.frombuffer(others[f"weights.values.{i}"][1], dtype=np.float32)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_classes_that_join_groups_later_are_as_if_they_had_been_there():
    """A class's first row moves nothing, so that its groups can be declared just after it."""
    stream = make_stream(51, n_rows=60, n_classes=8)
    sets = {name: [c for c in range(8) if name in homemade.sets_of(c)] for name in ("even", "low")}
    whole = OnlineClassifier(Grouped(sets), update="pa1").fit(stream.X, stream.y)
    model = OnlineClassifier(Grouped(lambda label: []), update="pa1")
    for x, y in zip(stream.X, stream.y.tolist(), strict=True):
        is_new = y not in getattr(model, "classes_", [])
        model.learn_one(x, y)
        if is_new:
            for group in (name for name in sets if y in sets[name]):
                model.join_group(y, group).join_group(y, group)
    assert_same(whole, model, stream.X)


def test_a_class_that_joins_a_group_late_is_scored_by_it_from_then_on(tmp_path):
    stream = make_stream(52, n_rows=60, n_classes=4)
    model = OnlineClassifier([PerClass(), Grouped({"a": [0, 1]})], update="pa1").fit(
        stream.X, stream.y
    )

    def scores() -> Any:
        return model.decision_function(stream.X)

    group = stream.X @ model._learner.arrays()["weights.values.1"][:, 0]
    before = scores()
    model.join_group(3, "a").join_group(2, "new")
    change = scores() - before
    np.testing.assert_allclose(change[:, 3], group, rtol=1e-3, atol=1e-5)
    assert not change[:, :3].any()
    model.save(tmp_path / "model")
    other = load(tmp_path / "model").partial_fit(stream.X, stream.y)
    assert_same(model.partial_fit(stream.X, stream.y), other, stream.X)
    assert model._learner.groups[1] == {"a": 0, "new": 1}


def test_joining_is_refused_where_there_is_nothing_to_join():
    model = OnlineClassifier(Grouped({"a": ["x"]}), update="pa1").learn_one([1.0], "x")
    before = everything(model)
    refused(lambda: model.join_group("never seen", "a"), "'never seen'")
    refused(lambda: model.join_group(["x"], "a"), "['x']")
    refused(lambda: model.join_group("x", ["a"]), "['a']")
    assert everything(model) == before
    refused(
        lambda: OnlineClassifier("multi", update="pa1").learn_one([1.0], 1).join_group(1, "a"),
        "Grouped",
    )


# ---- attributes and shapes ----------------------------------------------------------------------


@pytest.mark.parametrize("weightless", [False, True])
def test_nothing_is_known_before_the_first_row(weightless):
    """Rows of weight 0 are no rows, though a learner has been made for such."""
    model = OnlineClassifier(update="pa1")
    if weightless:
        model.partial_fit(EYE, range(4), sample_weight=np.zeros(4))
    for attempt in (
        lambda: model.predict(EYE),
        lambda: model.decision_function(EYE),
        lambda: model.predict_one(EYE[0]),
        lambda: model.classes_,
        lambda: model.n_trials_,
        lambda: model.n_mistakes_,
        lambda: model.save("model"),
        lambda: model.join_group(1, "a"),
    ):
        with pytest.raises(NotFittedError):
            attempt()
    assert model.n_known_ == 0 and not hasattr(model, "classes_")
    learnt = {"_learner", "_reader"} if weightless else set()
    assert vars(model).keys() == model.get_params(deep=False).keys() | learnt


def test_classes_are_sorted_and_numbered_as_they_came():
    model = OnlineClassifier("multi", update="pa1").fit(EYE, ["d", "b", "c", "a"])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.classes_by_code_.tolist() == ["d", "b", "c", "a"]
    assert model.predict(np.zeros((2, 4))).tolist() == ["d", "d"]  # ties: the one seen first


def test_shapes_of_the_scores():
    X = np.arange(12.0).reshape(3, 4)
    one = OnlineClassifier("multi", update="pa1").fit(X, ["only"] * 3)
    assert one.decision_function(X).shape == (3, 1)
    assert one.predict(X).tolist() == ["only"] * 3 and one.n_mistakes_ == 0
    stream = make_stream(53, n_classes=2)
    two = OnlineClassifier("multi", update="pa1").fit(stream.X, np.array(["z", "a"])[stream.y])
    scores = two.decision_function(stream.X)
    assert scores.shape == (len(stream),)
    # Above 0 for the second of the sorted classes.
    assert two.predict(stream.X)[scores != 0].tolist() == [
        two.classes_[int(score > 0)] for score in scores[scores != 0]
    ]
    stream = make_stream(54, n_classes=3)
    three = OnlineClassifier("multi", update="pa1").fit(stream.X, np.array([30, 10, 20])[stream.y])
    scores = three.decision_function(stream.X)
    assert scores.shape == (len(stream), 3) and scores.dtype == np.float32
    assert three.predict(stream.X).tolist() == three.classes_[scores.argmax(axis=1)].tolist()


def test_counts():
    stream = make_stream(55, n_classes=5)
    model = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y)
    assert (model.n_trials_, model.n_known_, model.n_features_in_) == (40, 5, 7)
    model.partial_fit(stream.X, stream.y)
    assert model.n_trials_ == 80
    assert model.fit(stream.X, stream.y).n_trials_ == 40


@pytest.mark.parametrize(("dense", "expected"), [(True, Distance()), (False, Frequency())])
def test_the_map_named_auto_looks_at_the_kind_of_the_first_rows(dense, expected):
    stream = make_stream(56)
    model = OnlineClassifier(update="pa1")
    assert model.fit(stream.X if dense else named(stream.X), stream.y).feature_map_ == expected
    first = stream.X[0] if dense else named(stream.X)[0]
    assert clone(model).learn_one(first, 0).feature_map_ == expected
    if not dense:
        assert clone(model).fit(sparse.csr_array(stream.X), stream.y).feature_map_ == expected
    assert OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y).feature_map_ is None


@pytest.mark.parametrize("name", MAPS)
def test_maps_go_by_name_or_by_object(name):
    stream = make_stream(57)
    by_name = OnlineClassifier("single", name, update="pa1").fit(stream.X, stream.y)
    by_object = OnlineClassifier(Shared(MAPS[name]()), update="pa1").fit(stream.X, stream.y)
    assert_same(by_name, by_object, stream.X)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"hypotheses": "many"}, "'many'"),
        ({"hypotheses": []}, "[]"),
        ({"hypotheses": [PerClass]}, "PerClass"),
        ({"hypotheses": None}, "None"),
        ({"feature_map": "square"}, "'square'"),
        ({"feature_map": Product}, "Product"),
        ({"feature_map": abs}, "abs"),
        ({"update": "sgd"}, "'sgd'"),
        ({"update": 3}, "3"),
    ],
    ids=str,
)
def test_unknown_parts_are_refused_at_the_first_row(arguments, word):
    model = OnlineClassifier(**arguments)
    before = vars(model).copy()
    refused(lambda: model.fit(EYE, range(4)), word)
    refused(lambda: model.learn_one(EYE[0], 0), word)
    refused(lambda: model.learn_one({"a": 1.0}, 0), word)
    assert vars(model) == before


@pytest.mark.parametrize(
    "groups", [None, 3, {"a": "text"}, {"a": 3}, {"a": [["unhashable"]]}], ids=str
)
def test_groups_that_are_none_are_refused(groups):
    refused(lambda: Grouped(groups))


@pytest.mark.parametrize("answer", [None, 3, "text", [["unhashable"]]], ids=str)
@pytest.mark.parametrize("row", [[1.0, 0.0, 2.0], {"x0": 1.0, "new": 2.0}], ids=["array", "named"])
def test_a_function_of_groups_that_fails_leaves_no_trace(answer, row):
    """Nor does one that raises, whose error is the user's own."""

    def groups_of(label: int) -> Any:
        if label == 3:
            raise LookupError("no groups")
        return ["all"] if label < 2 else answer

    model = OnlineClassifier([Grouped(lambda label: [label]), Grouped(groups_of)], update="pa1")
    first = {"x0": 1.0} if isinstance(row, dict) else [1.0, 0.0, 2.0]
    model.learn_one(first, 0).learn_one(first, 1)
    before = everything(model)
    refused(lambda: model.learn_one(row, 2), "2")
    assert everything(model) == before
    with pytest.raises(LookupError, match="no groups"):
        model.learn_one(row, 3)
    assert everything(model) == before
    model.learn_one(row, 1)


@pytest.mark.parametrize("columns", [[2], [0, 2], [1, 0], [0, 0]], ids=str)
def test_files_that_name_groups_that_there_are_not_are_refused(columns, tmp_path):
    groups = Grouped({"a": [0, 1], "b": [1, 2]})
    model = OnlineClassifier([PerClass(), groups], update="pa1").fit(EYE[:3], [0, 1, 2])
    model.save(tmp_path / "model")
    arrays, metadata = model_file.load(tmp_path / "model")
    metadata = json.loads(json.dumps(metadata))
    assert metadata["learners"][0]["memberships"][1][-3:] == [[0], [0, 1], [1]]
    metadata["learners"][0]["memberships"][1][-1] = columns
    model_file.save(tmp_path / "changed", arrays, metadata)
    refused(lambda: load(tmp_path / "changed"), "damaged", "memberships name groups")


@pytest.mark.parametrize("kind", [KeyError, TypeError, IndexError, OverflowError, MemoryError])
def test_whatever_does_not_fit_in_a_file_is_a_sentence(kind, tmp_path, monkeypatch):
    OnlineClassifier().fit(EYE[:3], [0, 1, 2]).save(tmp_path / "model")

    def failing(*_: Any) -> Any:
        raise kind("beyond")

    monkeypatch.setattr("kesler.online.saving._model_of", failing)
    refused(lambda: load(tmp_path / "model"), "damaged", kind.__name__)


@pytest.mark.parametrize("rows", [EYE, sparse.csr_array(EYE)], ids=["dense", "sparse"])
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_label_refused_at_the_end_of_a_batch_leaves_all_of_it_unlearnt(rows, epochs, monkeypatch):
    """Also of a batch of several blocks."""
    monkeypatch.setattr("kesler.data.inputs.BLOCK_ENTRIES", 4)
    groups = Grouped(lambda label: ["all"] if label < 3 else None)
    model = OnlineClassifier([PerClass(), groups], update="pa1", epochs=epochs)
    model.partial_fit(EYE[:3], [0, 1, 2])
    before = everything(model)
    refused(lambda: model.partial_fit(rows, [0, 1, 2, 7]), "7")
    assert everything(model) == before


# ---- progressive validation ---------------------------------------------------------------------


@pytest.mark.parametrize("known", [0, 10])
def test_progressive_validation_is_predict_then_learn(known):
    stream = make_stream(61, n_rows=60, n_classes=8)
    model, by_hand = (
        OnlineClassifier("hybrid", "distance", update="pa1"),
        OnlineClassifier("hybrid", "distance", update="pa1"),
    )
    for learner in (model, by_hand) if known else ():
        learner.fit(stream.X[:known], stream.y[:known])
    rest = stream[known:]
    result = progressive_validate(model, rest.X, rest.y)
    seen = set(stream.y[:known].tolist())
    predictions, wrong, n_first_seen = [], [], 0
    for x, y in zip(rest.X, rest.y.tolist(), strict=True):
        predictions.append(by_hand.predict_one(x) if seen else -1)
        wrong.append(y in seen and predictions[-1] != y)
        n_first_seen += y not in seen
        seen.add(y)
        by_hand.learn_one(x, y)
    assert result.predictions.tolist() == predictions
    assert result.curve.tolist() == np.cumsum(wrong).tolist()
    assert (result.n_trials, result.n_first_seen) == (len(rest), n_first_seen)
    assert result.n_mistakes == sum(wrong) == result.curve[-1]
    assert result.error == sum(wrong) / len(rest)
    assert_same(model, by_hand, stream.X)


def test_progressive_validation_leaves_out_rows_of_weight_zero():
    stream = make_stream(62)
    weights = np.where(np.arange(len(stream)) % 4 == 0, 0.0, 1.0)
    stored = weights > 0
    some = progressive_validate(
        OnlineClassifier("multi", update="pa1"), stream.X, stream.y, weights
    )
    only = progressive_validate(
        OnlineClassifier("multi", update="pa1"), stream.X[stored], stream.y[stored]
    )
    assert some.predictions.tolist() == only.predictions.tolist()
    assert some.curve.tolist() == only.curve.tolist()
    assert some.n_trials == only.n_trials == stored.sum()


def test_progressive_validation_of_nothing_is_no_error():
    """All rows are left out: no trial, and no mistake."""
    result = progressive_validate(
        OnlineClassifier("multi", update="pa1"), EYE, range(4), np.zeros(4)
    )
    assert (result.n_trials, result.n_mistakes, result.n_first_seen) == (0, 0, 0)
    assert result.error == 0 and len(result.predictions) == 0


# ---- what is refused ----------------------------------------------------------------------------

BAD_VALUES = [float("nan"), float("inf"), -float("inf"), 1e300]


FORMS: dict[str, Any] = {
    "array": np.array,
    "csr": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X).add_prefix("x"),
    "named": lambda X: named(X),
}


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_no_float32_are_refused_wherever_they_stand(form, value, known):
    stream = make_stream(63, density=1.0)
    model = OnlineClassifier("multi", update="pa1")
    if known:
        model.fit(FORMS[form](stream.X), stream.y)
    before = everything(model)
    spoilt, y = stream.X[:5].copy(), stream.y[:5]
    spoilt[3, 2] = value
    bad = FORMS[form](spoilt)
    attempts = [lambda: model.partial_fit(bad, y), lambda: model.fit(bad, y)]
    if known:
        attempts += [lambda: model.predict(bad), lambda: model.decision_function(bad)]
    for attempt in attempts:
        refused(attempt, "row 3", "feature 2")
        assert everything(model) == before


@pytest.mark.parametrize("value", [*BAD_VALUES, None, "text", [1.0], np.ones(2), {}], ids=str)
@pytest.mark.parametrize("form", ["named", "frame", "array"])
def test_one_row_of_values_that_are_no_numbers_is_refused(value, form):
    stream = make_stream(64)
    of_numbers = OnlineClassifier("multi", update="pa1", columns=None)
    model = copy.deepcopy(of_numbers).fit(FORMS[form](stream.X), stream.y)
    bad = [*stream.X[0][:-1], value] if form == "array" else {"x0": 1.0, "x1": value}
    fresh, before = copy.deepcopy(of_numbers), everything(model)
    refused(lambda: model.learn_one(bad, 0))
    refused(lambda: model.predict_one(bad))
    refused(lambda: fresh.learn_one(bad, 0))
    if form != "array":
        refused(lambda: model.partial_fit([{"x0": 1.0}, bad], [0, 1]))
        refused(lambda: model.predict([{"x0": 1.0}, bad]))
        refused(lambda: model.learn_one({**bad, "new": 1.0}, 0))
    assert everything(model) == before
    assert sorted(vars(fresh)) == sorted(fresh.get_params(deep=False))


@pytest.mark.parametrize("x", [3.0, None, [[1.0, 2.0]], np.ones((2, 7)), b"text"], ids=str)
def test_what_is_no_row_is_refused(x):
    model = OnlineClassifier("multi", update="pa1").fit(EYE, range(4))
    before = everything(model)
    refused(lambda: model.learn_one(x, 0))
    refused(lambda: model.predict_one(x))
    refused(lambda: OnlineClassifier("multi", update="pa1").learn_one(x, 0))
    assert everything(model) == before


@pytest.mark.parametrize("width", [3, 5])
def test_rows_of_another_width_are_refused(width):
    model = OnlineClassifier("hybrid", "product", update="pa1").fit(EYE, range(4))
    X = np.ones((2, width))
    before = everything(model)
    for attempt in (
        lambda: model.learn_one(X[0], 0),
        lambda: model.predict_one(X[0]),
        lambda: model.partial_fit(X, [0, 1]),
        lambda: model.partial_fit(sparse.csr_array(X), [0, 1]),
        lambda: model.predict(X),
        lambda: model.decision_function(sparse.csr_array(X)),
    ):
        with pytest.raises(ValueError, match=rf"{width} features.*expect\w+ 4"):
            attempt()
        assert everything(model) == before


NOTHING: dict[str, Any] = {
    "array": np.empty((0, 4)),
    "csr": sparse.csr_array((0, 4)),
    "list": [],
    "no features": EYE[:, :0],
}


@pytest.mark.parametrize("X", NOTHING.values(), ids=NOTHING)
def test_no_rows_or_no_features_are_refused(X):
    model = OnlineClassifier("multi", update="pa1").fit(EYE, range(4))
    before = everything(model)
    y = [0] * np.shape(X)[0]
    for attempt in (lambda: model.partial_fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=r"0 sample|0 feature|Expected 2D"):
            attempt()
        assert everything(model) == before


@pytest.mark.parametrize("first", [["a b", "c d"], [{"a": 1}, {"b": 1}]])
@pytest.mark.parametrize("none", [[], ()])
def test_an_empty_list_is_no_array_of_rows_without_names(first, none):
    model = OnlineClassifier("multi", update="pa1").fit(first, [0, 1])
    for ask in (model.predict, model.predict_proba, lambda rows: model.partial_fit(rows, [])):
        with pytest.raises(KeslerError, match=r"^X has 0 rows, while a minimum of 1 is required"):
            ask(none)


def test_rows_without_entries_are_rows():
    model = OnlineClassifier("multi", update="pa1").learn_one({}, "a").learn_one({"x": 1.0}, "b")
    model.partial_fit([{}, {}], ["b", "a"])
    assert model.n_trials_ == 4 and model.predict_one({}) == "a"
    csr = OnlineClassifier("multi", update="pa1").fit(sparse.csr_array((4, 3)), [0, 1, 1, 0])
    assert csr.n_mistakes_ == 1 and csr.predict(sparse.csr_array((1, 3))).tolist() == [0]


def test_as_many_labels_as_rows():
    model = OnlineClassifier("multi", update="pa1").fit(EYE, range(4))
    before = everything(model)
    for X in (EYE, sparse.csr_array(EYE)):
        refused(lambda X=X: model.partial_fit(X, [0, 1]), "4 rows", "2 labels")
    refused(lambda: OnlineClassifier(update="pa1").fit(named(EYE), [0, 1]), "4 rows", "2 labels")
    refused(lambda: model.partial_fit(EYE, None), "None")
    with pytest.raises(ValueError, match="1d array"):
        model.partial_fit(EYE, "text")
    assert everything(model) == before


@pytest.mark.parametrize(
    "weights",
    [[1, -1, 1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1], [1, 1], np.ones((4, 1)), ["a"] * 4],
    ids=str,
)
def test_weights_that_are_none_are_refused(weights):
    model = OnlineClassifier("multi", update="pa1").fit(EYE, range(4))
    before = everything(model)
    refused(lambda: model.partial_fit(EYE, range(4), sample_weight=weights), "sample_weight")
    assert everything(model) == before


def test_weights_of_any_form():
    stream = make_stream(65)
    expected = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y, stream.weights)
    frozen = stream.weights.copy()
    frozen.setflags(write=False)
    for weights in (
        stream.weights.tolist(),
        frozen,
        stream.weights.astype(np.float32),
        np.repeat(stream.weights, 2)[::2],
        pd.Series(stream.weights),
    ):
        assert_same(
            expected,
            OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y, weights),
            stream.X,
        )
    constant = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y, 2.0)
    twos = OnlineClassifier("multi", update="pa1").fit(
        stream.X, stream.y, np.full(len(stream), 2.0)
    )
    assert_same(constant, twos, stream.X)


@pytest.mark.parametrize("name", MAPS)
def test_weights_too_small_for_float32_are_refused(name):
    weights = [1e-50, 1e-50, 1.0, 1.0]
    model = OnlineClassifier("single", name, "perceptron")
    refused(lambda: model.fit(EYE + 1.0, [0, 1, 0, 1], weights), "row 0", "1e-50")


@pytest.mark.parametrize("hypotheses", ["multi", "single", "hybrid"])
@pytest.mark.parametrize("update", ["perceptron", "pa1", "simproj", "mira"])
@pytest.mark.parametrize("size", [1e12, 1e22, 1e30])
def test_large_values_are_learnt_or_refused_but_never_become_nan(hypotheses, update, size):
    stream = make_stream(66)
    model = OnlineClassifier(hypotheses, "product", update)
    try:
        model.fit(stream.X * size, stream.y)
    except KeslerError:
        return
    for name, array in model._learner.arrays().items():
        assert np.isfinite(array).all(), name


# ---- kinds of rows ------------------------------------------------------------------------------


def test_a_data_frame_names_its_columns():
    stream = make_stream(71)
    frame = pd.DataFrame(stream.X, columns=[*"gfedcba"])
    model = OnlineClassifier("hybrid", "distance", update="pa1").fit(frame, stream.y)
    assert model.feature_names_in_.tolist() == [*"gfedcba"]
    row = frame.iloc[3].to_dict()
    backwards = dict(sorted(row.items()))
    assert model.predict_one(row) == model.predict_one(backwards) == model.predict(frame)[3]
    zeros = {name: value for name, value in row.items() if value}
    assert model.predict_one(zeros) == model.predict_one(row)
    before = everything(model)
    refused(lambda: model.predict_one({**row, "z": 1.0}), "'z'")
    refused(lambda: model.learn_one({**row, "z": 1.0}, 0), "'z'")
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[[*"abcdefg"]], stream.y)
    assert everything(model) == before


def test_rows_with_and_without_names_do_not_mix():
    arrays = OnlineClassifier("multi", update="pa1").fit(EYE, range(4))
    before = everything(arrays)
    refused(lambda: arrays.learn_one({"a": 1.0}, 0), "named features")
    refused(lambda: arrays.predict([{"a": 1.0}]), "named features")
    assert everything(arrays) == before
    names = OnlineClassifier("multi", update="pa1").fit(named(EYE), range(4))
    before = everything(names)
    refused(lambda: names.partial_fit(EYE, range(4)), "named features")
    refused(lambda: names.predict(EYE), "named features")
    assert everything(names) == before


def test_memory_maps_are_read_in_place(tmp_path):
    stream = make_stream(72)
    np.save(tmp_path / "X.npy", stream.X.astype(np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = OnlineClassifier("hybrid", "product", update="pa1").fit(X, stream.y)
    plain = OnlineClassifier("hybrid", "product", update="pa1").fit(np.array(X), stream.y)
    assert_same(plain, model, np.array(X))
    assert model.predict(X).tolist() == plain.predict(np.array(X)).tolist()
    assert [model.predict_one(x) for x in X] == plain.predict(np.array(X)).tolist()
    csr = sparse.csr_array(stream.X.astype(np.float32))
    for name in ("data", "indices", "indptr"):
        getattr(csr, name).setflags(write=False)
    assert_same(plain, OnlineClassifier("hybrid", "product", update="pa1").fit(csr, stream.y), csr)


# ---- among scikit-learn's tools -----------------------------------------------------------------


def test_it_works_among_the_tools_of_scikit_learn():
    stream = make_stream(73, n_rows=90, n_classes=3)
    pipeline = make_pipeline(MaxAbsScaler(), OnlineClassifier("multi", update="pa1"))
    scaled = MaxAbsScaler().fit_transform(stream.X)
    expected = OnlineClassifier("multi", update="pa1").fit(scaled, stream.y).predict(scaled)
    assert pipeline.fit(stream.X, stream.y).predict(stream.X).tolist() == expected.tolist()
    scores = cross_val_score(pipeline, stream.X, stream.y, cv=3)
    assert scores.shape == (3,) and np.isfinite(scores).all()
    grid = {
        "onlineclassifier__hypotheses": ["multi", "single"],
        "onlineclassifier__update": [MIRA(C) for C in np.logspace(-2, 0, 2)],
        "onlineclassifier__feature_map": ["distance", ProductMean()],
    }
    search = GridSearchCV(pipeline, grid, cv=2).fit(stream.X, stream.y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_estimator_[-1].n_trials_ == 90
    weighted = pipeline.fit(stream.X, stream.y, onlineclassifier__sample_weight=stream.weights)
    plain = OnlineClassifier("multi", update="pa1").fit(scaled, stream.y, stream.weights)
    assert_same(plain, weighted[-1], scaled)


def test_parameters_can_be_read_set_and_shown():
    model = OnlineClassifier(update=PassiveAggressive(0.1))
    assert model.get_params() == {
        "hypotheses": "auto",
        "feature_map": "auto",
        "update": PassiveAggressive(0.1),
        "link": "linear",
        "kernel": None,
        "sigma": "auto",
        "budget": None,
        "averaged": False,
        "costs": None,
        "intercept": "auto",
        "preconditioner": "auto",
        "on_new_class": "auto",
        "preprocessing": "auto",
        "half_life": None,
        "replay": 0,
        "candidates": "auto",
        "memory_limit": None,
        "ranks": None,
        "epochs": "auto",
        "shuffle": "auto",
        "random_state": 0,
        "class_weight": None,
        "C": None,
        "eta": None,
        "delta": None,
        "r": None,
        "columns": "auto",
        "on_mismatch": "missing",
        "vectors": None,
        "uncertainty": "auto",
        "tree": None,
        "label_budget": None,
        "update__C": 0.1,
        "update__variant": 1,
    }
    assert "PassiveAggressive(C=0.1, variant=1)" in repr(model)
    assert model.set_params(hypotheses="multi").hypotheses == "multi"
    custom = OnlineClassifier(update=homemade.part_way, feature_map=homemade.damped)
    assert "part_way(0.5,)" in repr(custom) and "damped(0.25,)" in repr(custom)


# ---- parts of the user --------------------------------------------------------------------------


def test_a_rule_that_does_not_compile_is_told_by_its_name():
    model = OnlineClassifier("multi", update=homemade.not_arithmetic)
    said = "homemade.not_arithmetic cannot be compiled (", 'homemade.py", line'
    refused(lambda: model.fit(EYE, range(4)), *said)
    refused(lambda: model.learn_one(EYE[0], 0), "homemade.not_arithmetic")
    assert sorted(vars(model)) == sorted(model.get_params(deep=False))


def test_a_rule_of_other_arguments_is_told_by_its_name():
    def too_few(losses, steps):
        steps[0] = 1.0

    model = OnlineClassifier("multi", update=update_rule()(too_few))
    refused(lambda: model.fit(EYE, range(4)), "too_few", "takes 2 positional arguments")


def test_a_rule_that_asks_for_no_number_moves_nothing():
    stream = make_stream(81)
    model = OnlineClassifier("multi", update=homemade.not_a_number)
    n = 1 + int(np.argmax(stream.y > 0))  # two classes known
    model.partial_fit(stream.X[:n], stream.y[:n])
    t = n + int(np.argmax(stream.y[n:] == 1))
    refused(lambda: model.learn_one(stream.X[t], 1), "not_a_number", "float32")
    assert not model._learner.arrays()["weights.values.0"].any()
    model.predict(stream.X)


def test_a_rule_whose_constraints_grow_must_see_how_they_touch():
    """Which constraint is violated next depends on the products of all."""
    for requires in ("losses", "norms"):
        refused(
            lambda requires=requires: update_rule(constraints="growing", requires=requires)(
                homemade.part_way.steps
            ),
            "gram",
        )


def scaled(factor: float) -> Any:
    @feature_map(statistic="mean", zero_at_zero=True)
    def scaled_product(x, p):
        return factor * x * p

    return scaled_product


def test_maps_of_one_function_with_other_constants_are_other_maps():
    """Each is compiled with its own: either it computes what was written, or it is refused."""
    stream = make_stream(82)
    plain = OnlineClassifier("single", "product-mean", "perceptron").fit(stream.X, stream.y)
    for factor in (1.0, 2.0, 4.0):
        model = OnlineClassifier("single", scaled(factor), "perceptron")
        try:
            model.fit(stream.X, stream.y)
        except KeslerError:
            continue
        ours, theirs = (m._learner.arrays()["weights.values.0"] for m in (model, plain))
        np.testing.assert_array_equal(ours, factor * theirs)


def test_maps_that_stand_in_one_line_are_other_maps():
    stream = make_stream(83)
    maps = [feature_map()(g) for g in (lambda x, p: x * p, lambda x, p: abs(x - p))]
    for ours, name in zip(maps, ("product-mean", "distance"), strict=True):
        model = OnlineClassifier("single", ours, update="pa1").fit(stream.X, stream.y)
        assert_same(
            OnlineClassifier("single", name, update="pa1").fit(stream.X, stream.y), model, stream.X
        )


def test_maps_that_are_none_are_refused():
    refused(lambda: feature_map(statistic="median")(lambda x, p: x), "'median'")
    refused(lambda: feature_map(parameters=(1, 2, 3, 4, 5))(lambda x, p, q: x), "at most 4")
    refused(lambda: feature_map(zero_at_zero=True)(lambda x, p: x - p), "zero at zero")
    model = OnlineClassifier("single", feature_map()(lambda x: x), update="pa1")
    refused(lambda: model.fit(EYE, range(4)), "takes 1 positional argument")
    refused(lambda: Shared("product"), "'product'")
    refused(lambda: PerClass("product"), "'product'")
    refused(lambda: Grouped({"a": [0]}, "product"), "'product'")
    refused(lambda: Frequency(common=0.1, rare=0.2), "rare < common")
    refused(lambda: Frequency(reward=float("nan")), "finite")


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups",
    [
        {"a": np.array([0, 1]), "b": {2, 3}},
        {"a": (0, 1), "b": range(2, 30)},
        {"a": [0, 1, (5, 6)]},
        {"a": [0, 1], ("b", 1): [9]},
        {1: [0, 1], 2: ["another type", 0]},
    ],
    ids=str,
)
def test_groups_of_any_collection_are_saved_or_refused(groups, tmp_path):
    stream = make_stream(91, n_classes=4)
    model = OnlineClassifier(Grouped(groups), update="pa1").fit(stream.X[:20], stream.y[:20])
    try:
        model.save(tmp_path / "model")
    except KeslerError:
        return
    other = load(tmp_path / "model").partial_fit(stream.X[20:], stream.y[20:])
    assert_same(model.partial_fit(stream.X[20:], stream.y[20:]), other, stream.X)


@pytest.mark.parametrize("name", ["é", "\udce9", "a\0b", "", 1, ("a", 1), None, 2.5], ids=repr)
def test_names_of_features_are_saved_or_refused(name, tmp_path):
    """Bytes that are no UTF-8 come as lone surrogates from files of mail."""
    row = {name: 1.0, "other": 2.0}
    try:
        model = (
            OnlineClassifier("multi", update="pa1")
            .learn_one(row, "a")
            .learn_one({"other": 1.0}, "b")
        )
        model.save(tmp_path / "model")
    except KeslerError:
        return
    other = load(tmp_path / "model")
    assert list(other.vocabulary_.indices) == [name, "other"]
    other.learn_one(row, "b")
    assert learnt(other) == learnt(model.learn_one(row, "b"))


@pytest.mark.parametrize("label", ["é", "\udce9", "a\0b", "", True, 2**80, -0.0], ids=repr)
def test_labels_of_any_text_or_number_are_saved_or_refused(label, tmp_path):
    model = OnlineClassifier("multi", update="pa1").learn_one([1.0], label)
    try:
        model.save(tmp_path / "model")
    except KeslerError:
        return
    other = load(tmp_path / "model")
    assert learnt(other) == learnt(model) and other.predict_one([1.0]) == label


@pytest.mark.parametrize("note", [object(), {1, 2}, np.float32(1), b"bytes"], ids=type)
def test_notes_that_json_cannot_hold_are_refused(note, tmp_path):
    model = OnlineClassifier("multi", update="pa1").learn_one([1.0], 0)
    refused(lambda: model.save(tmp_path / "model", note=note), "note")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("custom", ["pa1", b"pa1", {"pa1": PassiveAggressive}, 5, None], ids=str)
def test_custom_parts_of_a_file_are_a_list_of_them(custom, tmp_path):
    OnlineClassifier("multi", update="pa1").fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "model")
    refused(lambda: load(tmp_path / "model", custom), "custom=", "give a list of rules, maps")


def test_a_model_without_a_map_has_no_statistics_in_its_file(tmp_path):
    stream = make_stream(92)
    path = tmp_path / "model"
    OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y).save(path)
    contents = path.read_bytes()
    header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    assert not [name for name in header if "statistics" in name]
    # No code: nothing that pickle would run.
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(contents)


@pytest.mark.parametrize("make", [OnlineClassifier, partial(StructuredLearner, dict, max)])
def test_what_a_model_shares_with_others_is_shared_by_their_copies(make):
    rule = MIRA()
    model, other = copy.deepcopy((make(update=rule), rule))
    assert model.update is other and other is not rule and other == rule


@pytest.mark.parametrize("rows_each", [1, 3, 4])
def test_the_results_of_trials_in_blocks_are_those_of_all_at_once(rows_each, monkeypatch):
    """Blocks know fewer classes than the whole call: the scores of later classes are NaN."""
    X = np.random.default_rng(0).normal(size=(12, 5))
    y = np.repeat([2, 0, 3, 1, 4, 5], 2)
    keep = dict.fromkeys(["keep_scores", "keep_probabilities", "keep_traces", "keep_places"], True)

    def trials():
        model = OnlineClassifier("multi", update="pa1", uncertainty=True)
        return model._run_trials(X, y, **keep)

    whole = trials()
    monkeypatch.setattr("kesler.data.inputs.BLOCK_ENTRIES", rows_each * X.shape[1])
    parts = trials()
    assert whole.scores.shape == (12, 6) and np.isnan(whole.scores[4, 3:]).all()
    for field in fields(whole):
        one, other = getattr(whole, field.name), getattr(parts, field.name)
        np.testing.assert_array_equal(one, other, field.name)
        assert len(one) == 12 and one.dtype == other.dtype
