"""Explanations: contributions whose sums are the scores, for every learner and form of rows."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from cases import CASES, OF_PROBABILITIES, answers_of, rows_of
from kesler import (
    Contribution,
    Ensemble,
    Explanation,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    load,
)
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.kernels import KERNELS
from kesler.learner import paths, state
from kesler.maps import Distance
from kesler.online.blocks import explain_rows
from kesler.preprocessing import Bins, Pairs, RandomFourier
from registry import ROWS, Row, covering
from streams import held, make_stream, streams

ALL = 10**6  # more features than any row has
SOME = covering(ROWS, "family", "preprocessing", "preconditioner", "link")
EXPANDING: dict[str, Any] = {
    "bins": {"preprocessing": Bins(4), "update": "pa1"},
    "bins and scores": {"preprocessing": ["z-scores", Bins(3)], "update": "softmax"},
    "fourier": {"preprocessing": RandomFourier(20), "update": "softmax", "intercept": 1.0},
    "pairs": {"preprocessing": "pairs", "update": "ovr-hinge", "preconditioner": "adagrad"},
    "all": {"preprocessing": ["z-scores", Bins(3), RandomFourier(20), Pairs(3)], "update": "pa1"},
    "map": {
        "hypotheses": [PerClass(), Shared(Distance())],
        "preprocessing": [Bins(3), RandomFourier(9)],
        "update": "pa1",
        "half_life": 9.0,
    },
    "second order": {
        "hypotheses": "multi",
        "update": "least-squares",
        "preconditioner": "second-order",
        "preprocessing": RandomFourier(9),
        "half_life": 9.0,
    },
    "over a kernel": {"preprocessing": [Bins(3), "z-scores"], "update": "pa1", "kernel": "rbf"},
}
OVER_KERNELS: dict[str, Any] = {
    **{name: {"hypotheses": "hybrid", "kernel": name} for name in KERNELS},
    "default": {"kernel": "rbf"},
    "ranges": {"hypotheses": "multi", "kernel": "rbf", "preprocessing": "ranges"},
    "budget": {"hypotheses": "multi", "kernel": "rbf", "budget": 7, "half_life": 5.0},
    "groups": {"hypotheses": [Grouped({"even": [0, 2, 4], "odd": [1, 3]})], "kernel": "linear"},
}
WAYS = ["majority", "best", "mixture", "fixed-share"]


def total(why: Explanation, part: str) -> float:
    return sum(getattr(each, part) for each in why.summands)


def assert_sums(why: Explanation, score: float, rival: float | None) -> None:
    """Both scores are the sums of the contributions, on the scale of the largest of these."""
    sizes = [max(abs(c.own), abs(c.shared), abs(c.rival)) for c in why.summands]
    scale = max(1.0, abs(score), *sizes)
    assert abs(why.score - score) <= 1e-6 * scale
    assert abs(total(why, "score") - score) <= 1e-4 * scale
    if rival is None:
        assert why.rival is why.rival_score is None and total(why, "rival") == 0
        return
    assert why.rival_score is not None and abs(why.rival_score - rival) <= 1e-6 * scale
    assert abs(total(why, "rival") - rival) <= 1e-4 * scale
    assert abs(total(why, "margin") - why.margin) <= 2e-4 * scale


def scores_of(model: Any, X: Any) -> dict[Any, float]:
    """The score of each label, whatever the form of `decision_function` for two."""
    found = model.decision_function(X)[0]
    labels = model.classes_.tolist()
    if np.ndim(found) == 0:
        codes = model.classes_by_code_.tolist()
        rows = list(model._input.rows_to_score(model, X))
        return dict(zip(codes, model._fitted().scores(rows[0])[0].tolist(), strict=True))
    return dict(zip(labels, found.tolist(), strict=True))


def assert_explains(model: Any, x: Any, X: Any, *, label: Any = None, rival: Any = None) -> Any:
    """What is explained is scored, and nothing changes by explaining."""
    scores, before = scores_of(model, X), held(model)
    why = model.explain_one(x, label, rival, n=3)
    assert held(model) == before
    others = [each for each in scores if each != why.label]
    assert label is None or why.label == label
    if rival is None and others:
        assert why.rival is not None
        assert scores[why.rival] == max(scores[each] for each in others)
    assert_sums(why, scores[why.label], None if why.rival is None else scores[why.rival])
    assert len(why.contributions) <= 3
    sizes = [abs(each.margin) for each in why.contributions]
    assert sizes == sorted(sizes, reverse=True)
    whole = model.explain_one(x, why.label, why.rival, n=ALL)
    assert whole.remainder == Contribution("others", None, 0.0, 0.0, 0.0, 0)
    assert whole.contributions[: len(sizes)] == why.contributions
    assert len(whole.contributions) == len(sizes) + why.remainder.n_features
    return whole


@pytest.fixture(autouse=True)
def _rows_of_weights(request, monkeypatch):
    """Let learners of the registry that are to have sparse rows have them from the start."""
    row = getattr(request.node, "callspec", None) and request.node.callspec.params.get("row")
    if isinstance(row, Row) and row.sparse:
        monkeypatch.setattr(state, "LARGEST_TABLE", 0)


# ---- sums are scores, for every learner ----------------------------------------------------------


@pytest.mark.parametrize("row", SOME, ids=lambda row: row.name)
@settings(max_examples=4)
@given(stream=streams())
def test_sums_are_scores_whatever_the_parts(row, stream):
    model = row.learner().fit(stream.X, stream.y)
    assert model.keeps_sparse_rows_ == row.sparse
    x = stream.X[-1]
    found = assert_explains(model, x, x[None])
    assert found.label == model.predict_one(x)
    assert_explains(model, x, x[None], label=0, rival=1)


@pytest.mark.parametrize(
    "case",
    [
        *covering(
            CASES, "estimator", of=lambda case: {"estimator": case.estimator, **vars(case.row)}
        ),
        *OF_PROBABILITIES,
    ],
    ids=lambda case: case.name,
)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_sums_are_scores_of_sets_rankings_and_ranks(case, seed):
    X, y = rows_of(seed), answers_of(case.estimator, seed, 30, 4)
    model = case.learner().partial_fit(X, y)
    if len(model.classes_) < 2:
        return
    found = assert_explains(model, X[-1], X[-1:])
    if case.estimator == "ranks":
        assert found.label == model.predict_one(X[-1])
    assert_explains(model, X[-1], X[-1:], label=model.classes_[0], rival=model.classes_[1])


def test_sums_are_scores_of_initial_weights_that_others_decay_to():
    model = of_texts(half_life=3.0)
    assert any(getattr(part, "begins_at", 0) for part in model._learner.parts)
    assert_explains(model, "win lunch", ["win lunch"])
    assert_explains(model, "win lunch", ["win lunch"], label="home", rival="work")


@pytest.mark.parametrize("make", [OnlineMultilabelClassifier, OnlineLabelRanker])
@pytest.mark.parametrize("is_dense", [True, False])
def test_sums_are_scores_of_the_defaults(make, is_dense):
    kind = "sets" if make is OnlineMultilabelClassifier else "rankings"
    X, y = rows_of(3), answers_of(kind, 3, 30, 4)
    rows = X if is_dense else sparse.csr_array(X)
    model = make().partial_fit(rows, y)
    assert_explains(model, X[-1] if is_dense else rows[[-1]], rows[[-1]])
    model = OnlineOrdinalClassifier().partial_fit(rows, answers_of("ranks", 3, 30, 4))
    assert_explains(model, X[-1] if is_dense else rows[[-1]], rows[[-1]])


@pytest.mark.parametrize("name", EXPANDING)
@settings(max_examples=4)
@given(stream=streams())
def test_sums_are_scores_of_expanded_rows(name, stream):
    given = EXPANDING[name]
    model = OnlineClassifier(**{"hypotheses": "multi"} | given).fit(stream.X, stream.y)
    found = assert_explains(model, stream.X[0], stream.X[:1])
    if name != "over a kernel":
        assert len(found.contributions) <= stream.X.shape[1]
        mixes = name not in ("bins", "bins and scores")
        assert found.intercept.feature == ("baseline" if mixes else "intercept")


@pytest.mark.parametrize("name", OVER_KERNELS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_sums_are_scores_over_kernels(name, is_sparse):
    stream = make_stream(3, n_rows=90)
    if name == "ranges" and is_sparse:
        return
    given = {"update": "pa1", "feature_map": "product"} | OVER_KERNELS[name]
    if name == "default":
        given = OVER_KERNELS[name]
    X = sparse.csr_array(stream.X) if is_sparse else stream.X
    model = OnlineClassifier(**given).fit(X, stream.y)
    found = assert_explains(model, X[[0]] if is_sparse else X[0], X[[0]])
    assert len(found.contributions) == sum(model.n_support_vectors_)
    assert all(str(c.feature).startswith("support ") for c in found.contributions)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=3)
@given(stream=streams())
def test_sums_are_scores_of_ensembles(way, stream):
    members = [
        OnlineClassifier("multi", update="softmax"),
        OnlineClassifier("multi", update="pa1", averaged=True),
        OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=2.0),
    ]
    model = Ensemble(members, way).fit(stream.X, stream.y)
    assert_explains(model, stream.X[0], stream.X[:1])
    rows = sparse.csr_array(stream.X)
    model = Ensemble(members[:2], way).fit(rows, stream.y)
    found = assert_explains(model, rows[[0]], rows[[0]])
    assert found.intercept.feature == "baseline"


@settings(max_examples=5)
@given(stream=streams(), update=st.sampled_from(["auto", "ensemble"]))
def test_sums_are_scores_of_the_default_for_measurements(stream, update):
    model = OnlineClassifier(update=update).fit(stream.X, stream.y)
    found = assert_explains(model, stream.X[0], stream.X[:1])
    assert len(found.contributions) <= stream.X.shape[1]


def rated(n: int = 30, *, attributes: bool) -> tuple[Ratings, list[int]]:
    rng = np.random.default_rng(3)
    given = rng.normal(size=(n, 2)) if attributes else None
    return Ratings.from_dense(rng.normal(size=(n, 4, 3)), range(4), given), [0, 1, 2, 3] * (n // 4)


@pytest.mark.parametrize(
    ("model", "attributes"),
    [
        (LinearMax("wma", "sub-experts"), False),
        (OnlineClassifier("sub-experts", update="pa1"), False),
        (OnlineClassifier("multi+sub-experts", update="pa1", intercept=1.0), True),
        (OnlineClassifier("multi+sub-experts", update="pa1", averaged=True), True),
        (Ensemble([LinearMax("wma", "sub-experts"), LinearMax("romma")]), True),
    ],
    ids=str,
)
def test_sums_are_scores_of_sub_experts(model, attributes):
    X, y = rated(28, attributes=attributes)
    model = model.fit(X, y)
    found = assert_explains(model, X[-1:], X[-1:])
    names = {each.feature for each in found.contributions}
    assert {f"sub-expert {i}" for i in range(3)} <= names
    assert len(names) == (5 if attributes else 3)
    ratings = {
        f"sub-expert {i}": X.vectors.values[-12:].reshape(4, 3)[found.label, i] for i in range(3)
    }
    values = {c.feature: c.value for c in found.contributions}
    assert values.items() >= ratings.items()


# ---- each contribution, by independent oracles ---------------------------------------------------

IS_SUM = [
    row for row in ROWS if row.preprocessing is None and not row.dense_only and row.settings is None
]
"""Learners whose scores are sums over the non-zeros of a row."""


def contributed(model: Any, x: Any, label: Any, rival: Any) -> dict[Any, Any]:
    return {c.feature: c for c in model.explain_one(x, label, rival, ALL).contributions}


@pytest.mark.parametrize("row", covering(IS_SUM, "family"), ids=lambda row: row.name)
def test_a_contribution_is_what_the_scores_lose_without_the_feature(row):
    stream = make_stream(11, n_rows=60)
    X = sparse.csr_array(stream.X)
    model = row.learner().fit(X, stream.y)
    x = X[[0]]
    entries = contributed(model, (x.indices, x.data), 1, 2)
    assert sorted(entries) == x.indices.tolist()
    codes = model.classes_.tolist()
    whole = model.decision_function(x)[0]
    scale = max(1.0, np.abs(whole).max(), *(abs(c.own) + abs(c.shared) for c in entries.values()))
    for i, value in zip(x.indices.tolist(), x.data.tolist(), strict=True):
        without = x.copy()
        without.data[x.indices == i] = 0
        lost = whole - model.decision_function(without)[0]
        assert abs(entries[i].score - lost[codes.index(1)]) <= 1e-4 * scale
        assert abs(entries[i].rival - lost[codes.index(2)]) <= 1e-4 * scale
        assert entries[i].value == pytest.approx(value)


def test_own_and_shared_hypotheses_are_told_apart():
    """The oracle is the definition, x_i (W_ir + u_i x_i mean_ir), in NumPy."""
    stream = make_stream(5, n_rows=50)
    model = OnlineClassifier("hybrid", "product-mean", "pa1").fit(stream.X, stream.y)
    own, shared = model._learner.hypothesis_weights()
    x, label, rival = stream.X[3], 2, 0
    entries = contributed(model, x, label, rival)
    for i in np.flatnonzero(x).tolist():
        means = [stream.X[stream.y == r, i].mean() for r in (label, rival)]
        views = [x[i] * mean for mean in means]
        assert entries[i].own == pytest.approx(x[i] * own[i, label], rel=1e-4, abs=1e-5)
        assert entries[i].shared == pytest.approx(shared[i, 0] * views[0], rel=1e-4, abs=1e-5)
        in_rival = x[i] * own[i, rival] + shared[i, 0] * views[1]
        assert entries[i].rival == pytest.approx(in_rival, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("update", ["pa1", "softmax"])
def test_contributions_are_values_times_coef_and_intercept(update):
    stream = make_stream(6)
    model = OnlineClassifier("multi", update=update, intercept=1.5).fit(stream.X, stream.y)
    x = stream.X[2]
    why = model.explain_one(x, 1, 3, ALL)
    labels = model.classes_.tolist()
    weights = model.coef_[labels.index(1)], model.coef_[labels.index(3)]
    for each in why.contributions:
        expected = x[each.feature] * weights[0][each.feature]
        assert each.own == pytest.approx(expected, abs=1e-5) and each.shared == 0
        assert each.rival == pytest.approx(x[each.feature] * weights[1][each.feature], abs=1e-5)
    assert why.intercept.own == pytest.approx(model.intercept_[labels.index(1)], abs=1e-5)
    assert why.intercept.feature == "intercept" and why.intercept.value == 1.5


def test_preprocessed_values_are_weighed():
    """The oracle scales each row to length 1 itself."""
    stream = make_stream(8, whole=True)
    X = np.sign(np.abs(stream.X))
    unit = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    given = {"hypotheses": "multi", "update": "pa1"}
    raw = OnlineClassifier(**given).fit(sparse.csr_array(unit), stream.y)
    model = OnlineClassifier(**given, preprocessing="counts").fit(sparse.csr_array(X), stream.y)
    x, u = sparse.csr_array(X[[4]]), sparse.csr_array(unit[[4]])
    expected, found = contributed(raw, u, 0, 1), contributed(model, x, 0, 1)
    assert expected.keys() == found.keys()
    for i, each in found.items():
        assert each.own == pytest.approx(expected[i].own, abs=1e-5) and each.value == 1


def test_z_scores_and_bins_belong_to_their_column():
    """Without the weights of a column, the scores lose what it contributes."""
    stream = make_stream(9, n_rows=80, density=1.0)
    given = {"hypotheses": "multi", "update": "pa1", "preprocessing": ["z-scores", Bins(4)]}
    model = OnlineClassifier(**given).fit(stream.X, stream.y)
    x, d = stream.X[7], stream.X.shape[1]
    entries, before = contributed(model, x, 0, 1), model.decision_function(x[None])[0]
    for j in range(d):
        learner = OnlineClassifier(**given).fit(stream.X, stream.y)
        weights = learner._learner.hypothesis_weights()[0]
        width = (len(weights) - d) // d
        weights[j] = 0
        weights[d + j * width : d + (j + 1) * width] = 0
        lost = before - learner.decision_function(x[None])[0]
        assert entries[j].score == pytest.approx(lost[0], abs=1e-4)
        assert entries[j].rival == pytest.approx(lost[1], abs=1e-4)
        assert entries[j].value == pytest.approx(x[j])


def test_two_columns_have_their_shapley_values():
    """Of two columns, an order and its reverse are all orders: the oracle is the definition."""
    stream = make_stream(10, n_features=2, density=1.0)
    model = OnlineClassifier().fit(stream.X, stream.y)
    x, baseline = stream.X[5], stream.X.mean(axis=0)
    label, rival = model.explain_one(x).label, model.explain_one(x).rival

    def score(*columns: int) -> np.ndarray:
        row = baseline.copy()
        row[list(columns)] = x[list(columns)]
        found = scores_of(model, row[None])
        return np.array([found[label], found[rival]])

    entries = contributed(model, x, label, rival)
    for i, j in [(0, 1), (1, 0)]:
        expected = (score(i) - score() + score(0, 1) - score(j)) / 2
        assert_allclose([entries[i].score, entries[i].rival], expected, atol=1e-4)
    start = model.explain_one(x).intercept
    assert start.feature == "baseline" and start.value is None
    assert_allclose([start.score, start.rival], score(), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 700])
def test_orders_are_followed_by_their_reverses(n):
    orders = paths._orders(n)
    assert all(sorted(order.tolist()) == list(range(n)) for order in orders)
    for order, other in zip(orders[::2], orders[1::2], strict=True):
        assert order.tolist() == other[::-1].tolist()
    n_rows = len(orders) * (n + 1)
    assert n_rows <= paths.MOST_STEPS or len(orders) == 2


def test_rows_of_an_order_may_be_scored_in_several_blocks(monkeypatch):
    stream = make_stream(21)
    model = OnlineClassifier().fit(stream.X, stream.y)
    whole = model.explain_one(stream.X[0])
    monkeypatch.setattr(paths, "MOST_ENTRIES", 1500)
    assert model.explain_one(stream.X[0]) == whole


def test_a_column_at_its_baseline_contributes_nothing():
    stream = make_stream(12, density=1.0)
    model = OnlineClassifier().fit(stream.X, stream.y)
    x = stream.X[0].copy()
    means = model._learner.members[0].stored["expansion.moments"][:, 0].astype(np.float32)
    x[2] = means[2]
    assert 2 not in contributed(model, x, 0, 1)
    why = model.explain_one(means.astype(np.float64))
    assert why.contributions == () and total(why, "score") == pytest.approx(why.score, abs=1e-6)


def test_absent_words_are_the_baseline_of_an_ensemble_of_words():
    model = Ensemble([OnlineClassifier("multi", update="softmax")])
    for x, y in TEXTS:
        model.learn_one(x, y)
    start = model.explain_one("win cash", "spam", "work").intercept
    assert start.feature == "baseline"
    assert start.score == pytest.approx(scores_of(model, [{}])["spam"], abs=1e-5)


def test_support_vectors_are_named_by_their_class():
    X, y = np.eye(3), ["a", "b", "c"]
    model = OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=1.0, on_new_class="learn")
    model.fit(X, y)
    why = model.explain_one(X[1], n=ALL)
    names = {each.feature: each.value for each in why.contributions}
    assert names["support row 0 (b)"] == pytest.approx(1.0)
    coefficients = model._learner.supports.stored["coefficients"][0]
    assert why.contributions[0].own in [pytest.approx(c) for c in coefficients[:2].tolist()]


def test_support_vectors_of_shared_hypotheses_are_those_of_their_part():
    stream = make_stream(20, n_rows=40)
    given = {"update": "pa1", "feature_map": "product", "kernel": "linear"}
    model = OnlineClassifier("hybrid", **given).fit(stream.X, stream.y)
    counts, entries = model.n_support_vectors_, contributed(model, stream.X[0], 0, 1)
    assert len(entries) == sum(counts) and min(counts) > 3
    for name, each in entries.items():
        is_row = name.startswith("support row ") and ", part 0" in name
        is_view = name.startswith("support view ") and name.endswith(", part 1")
        assert (is_row and each.shared == 0) or (is_view and each.own == 0)
    assert any(each.own for each in entries.values())
    assert any(each.shared for each in entries.values())


def test_label_sets_are_above_the_threshold():
    X, y = rows_of(3), answers_of("sets", 3, 30, 4)
    model = OnlineMultilabelClassifier("multi", update="simproj").partial_fit(X, y)
    why = model.explain_one(X[0])
    assert why.score == pytest.approx(model.decision_function(X[:1])[0].max(), abs=1e-6)
    assert (why.score > 0) == (len(model.predict_one(X[0])) > 0)


# ---- names and forms of rows ---------------------------------------------------------------------

TEXTS = [
    ("win cash now", "spam"),
    ("team lunch today", "work"),
    ("cash prize", "spam"),
    ("lunch agenda", "work"),
    ("kids at school", "home"),
] * 3


def of_texts(**given: Any) -> OnlineClassifier:
    model = OnlineClassifier(**given)
    for x, y in TEXTS:
        model.learn_one(x, y)
    return model


def test_mappings_are_explained_by_their_names_also_new_ones():
    model = OnlineClassifier()
    for x, y in TEXTS:
        model.learn_one(dict.fromkeys(x.split(), 1.0), y)
    x = {"agenda": 0, "new": 2.0, "cash": 1.0, "now": 0.0, "other": 1.0, "lunch": 3}
    entries = contributed(model, x, "spam", "work")
    assert {name: each.value for name, each in entries.items()} == {
        "new": 2.0, "cash": 1.0, "other": 1.0, "lunch": 3.0,
    }  # fmt: skip
    assert entries["new"].margin == entries["other"].margin == 0
    assert entries["cash"].margin > 0 > entries["lunch"].margin
    rows = model._input.row(model, x, learn=False)
    (found,) = explain_rows(model, rows, "spam", "work", ALL, features=False)
    values = {c.feature: c.margin for c in found.contributions if c.margin}
    assert values == {name: each.margin for name, each in entries.items() if each.margin}
    assert {c.feature for c in found.contributions} == {"cash", "lunch", "unseen feature"}


@pytest.mark.parametrize("length", [1, 40])
def test_texts_are_explained_by_their_words_pairs_and_runs(length):
    """Long texts have words only, and those of their beginning."""
    model = OnlineClassifier()
    for x, y in TEXTS:
        model.learn_one(" ".join([x] * length), y)
    asked = "Cash, lunch new!", "spam", "work", ALL
    names = {each.feature for each in model.explain_one(*asked, features=True).contributions}
    if length == 1:
        assert {"cash", "lunch", "new", "cash lunch", "lunch new", "CASH", "NEW "} <= names
    else:
        assert names == {*("cash", "lunch", "new"), *("^cash", "^lunch", "^new")}
        reasons = model.explain_one(*asked).contributions
        assert {each.feature for each in reasons} == {"cash", "lunch", "new"}
    whole = scores_of(model, ["Cash, lunch new!"])
    assert_sums(model.explain_one("Cash, lunch new!", "spam", "work"), whole["spam"], whole["work"])


def test_letters_beyond_ascii_are_named():
    model = OnlineClassifier()
    for x, y in [("Ärger über Straße", "a"), ("schöner Tag", "b"), ("Ärger", "a")]:
        model.learn_one(x, y)
    assert {"ärger", "tag", "strasse"} <= set(contributed(model, "Ärger Tag Straße", "a", "b"))


def test_an_ensemble_of_words_names_them():
    model = of_texts(update="ensemble")
    found = contributed(model, "win lunch zebra", "spam", "work")
    assert found["win"].margin > 0 > found["lunch"].margin
    assert abs(found["zebra"].margin) < 0.1 * found["win"].margin  # it makes the row longer


def test_tables_are_explained_by_their_columns():
    rows = [
        {"subject": x, "size": float(len(x)), "kind": "text" if i % 2 else "mail"}
        for i, (x, _) in enumerate(TEXTS)
    ]
    labels = [y for _, y in TEXTS]
    model = OnlineClassifier().fit(pd.DataFrame(rows), labels)
    row = dict(rows[0])
    why = model.explain_one(row, n=ALL)
    known = set(model.vocabulary_.names)
    features = model.explain_one(row, n=ALL, features=True).contributions
    assert {each.feature for each in features} <= known
    assert f"subject={row['subject']}" in {each.feature for each in why.contributions}
    scores = scores_of(model, pd.DataFrame([row]))
    assert_sums(why, scores[why.label], scores[why.rival])


def test_data_frames_are_explained_by_their_columns():
    stream = make_stream(13, n_features=3, density=1.0)
    frame = pd.DataFrame(stream.X, columns=["height", "width", "depth"])
    model = OnlineClassifier("multi", update="pa1").fit(frame, stream.y)
    by_array = contributed(model, stream.X[0], 0, 1)
    by_name = contributed(model, dict(frame.iloc[0]), 0, 1)
    assert by_array == by_name and set(by_name) == {"height", "width", "depth"}


@pytest.mark.parametrize("is_dense", [True, False])
def test_all_forms_of_a_row_by_position_are_explained_alike(is_dense):
    stream = make_stream(14, n_rows=50)
    X = stream.X if is_dense else sparse.csr_array(stream.X)
    model = OnlineClassifier("hybrid", "frequency", update="pa1").fit(X, stream.y)
    x = stream.X[0]
    pair = np.flatnonzero(x), x[x != 0]
    forms = [x, x.tolist(), x.astype(np.float32), pair, sparse.csr_array(x[None])]
    found = [model.explain_one(each, n=ALL) for each in forms]
    assert all(each == found[0] for each in found)
    assert {c.feature for c in found[0].contributions} == set(np.flatnonzero(x).tolist())
    assert found[0].contributions[0].label.startswith("feature ")


def test_unseen_positions_contribute_nothing():
    model = OnlineClassifier("multi", update="pa1", intercept=1.0)
    for x, y in zip(np.eye(3), "aba", strict=True):
        model.learn_one((np.flatnonzero(x), x[x != 0]), y)
    why = model.explain_one((np.array([0, 7, 9]), np.ones(3)), n=ALL)
    assert [c.margin for c in why.contributions[1:]] == [0, 0]
    assert total(why, "score") == pytest.approx(why.score, abs=1e-6)


def test_saved_models_explain_alike(tmp_path):
    for i, model in enumerate([of_texts(), of_texts(update="ensemble"), of_texts(kernel="linear")]):
        model.save(tmp_path / f"{i}.kesler")
        again = load(tmp_path / f"{i}.kesler")
        assert again.explain_one("win lunch") == model.explain_one("win lunch")


@pytest.mark.parametrize("update", ["auto", "ensemble", "pa1", "least-squares"])
@pytest.mark.parametrize("is_dense", [True, False])
def test_what_is_learnt_does_not_depend_on_explanations(update, is_dense):
    """Also what is learnt after them, from the same buffers."""
    if update == "least-squares" and not is_dense:
        return
    more = {"preconditioner": "second-order"} if update == "least-squares" else {}
    models = [OnlineClassifier("multi" if more else "auto", update=update, **more)
              for _ in range(2)]  # fmt: skip
    stream = make_stream(22, n_rows=30)
    for x, y in zip(stream.X, stream.y.tolist(), strict=True):
        row = x if is_dense else {f"w{i}": float(x[i]) for i in np.flatnonzero(x)}
        for model in models:
            model.learn_one(row, y)
        models[0].explain_one(row, n=2)
    assert held(models[0]) == held(models[1])


def test_explaining_is_deterministic():
    stream = make_stream(15)
    model = OnlineClassifier().fit(stream.X, stream.y)
    np.random.seed(1)
    first = model.explain_one(stream.X[0])
    np.random.seed(2)
    assert model.explain_one(stream.X[0]) == first


# ---- forms of an explanation ---------------------------------------------------------------------


def test_a_single_class_has_no_rival():
    model = OnlineClassifier("multi", update="softmax", on_new_class="learn")
    model.learn_one({"a": 1.0}, "x")
    why = model.explain_one({"a": 1.0})
    assert (why.label, why.rival, why.rival_score) == ("x", None, None)
    assert why.margin == why.score == pytest.approx(total(why, "score"))
    assert str(why).splitlines()[0] == f"x: score {why.score:.4g}"
    sole = OnlineClassifier().fit(np.eye(2), ["x", "x"])
    assert sole.explain_one([1.0, 0.0]).rival is None
    sets = OnlineMultilabelClassifier().learn_one({"a": 1}, {"x"})
    assert sets.explain_one({"a": 1}).rival is None


def test_an_explanation_prints_as_a_table_and_converts():
    model = of_texts()
    why = model.explain_one("win lunch", "work", n=2, features=True)
    lines = str(why).splitlines()
    assert lines[0] == why.headline
    assert lines[0].startswith(f"work: score {why.score:.4g}, {abs(why.margin):.4g} ")
    assert lines[1].split() == ["feature", "value", "own", "shared", "rival", "margin"]
    assert len(lines) == 6 and lines[-2].startswith(f"{why.remainder.n_features} others")
    assert json.loads(json.dumps(why.to_dict())) == why.to_dict()
    assert why.to_dict()["margin"] == why.margin
    frame = why.to_frame()
    assert frame["feature"].tolist() == [*[c.feature for c in why.contributions], "others",
                                         "intercept"]  # fmt: skip
    assert frame["margin"].sum() == pytest.approx(why.margin, abs=1e-5)
    with pytest.raises(AttributeError):
        why.score = 1.0  # type: ignore[misc]


def test_a_table_has_one_line_for_each_reason_whatever_its_name():
    rows = [{"two\nlines": 1.0}, {"a\u2028b\r": 1.0}] * 5
    model = OnlineClassifier("multi", update="pa1").fit(rows, ["one\ntwo", "tab\tbed"] * 5)
    for features in (False, True):
        why = model.explain_one({"two\nlines": 1.0, "a\u2028b\r": 1.0}, features=features)
        first, _, *rest = str(why).splitlines()
        shown = {"one\ntwo": r"one\ntwo", "tab\tbed": r"tab\tbed"}
        assert first.startswith(f"{shown[why.label]}:") and shown[why.rival] in first
        assert [each.split()[0] for each in rest] == [r"two\nlines", r"a\u2028b\r", "intercept"]
        assert {each.feature for each in why.contributions} == {*rows[0], *rows[1]}


def test_a_word_named_others_is_a_word():
    assert Contribution("others", 1.0, 0.0, 0.0, 0.0).label == "others"
    assert Contribution("others", None, 0.0, 0.0, 0.0, 1).label == "1 other"
    assert Contribution("x" * 90, 1.0, 0.0, 0.0, 0.0).label == "x" * 90


def test_to_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(KeslerError, match="to_frame needs pandas"):
        of_texts().explain_one("cash").to_frame()


# ---- top features --------------------------------------------------------------------------------


def test_top_features_are_the_largest_centred_weights():
    stream = make_stream(16)
    model = OnlineClassifier("multi", update="pa1", averaged=True).fit(stream.X, stream.y)
    centred = model.coef_ - model.coef_.mean(axis=0)
    for label, weights in zip(model.classes_.tolist(), centred, strict=True):
        found = model.top_features(label, n=4)
        order = [i for i in np.argsort(-weights, kind="stable")[:4].tolist() if weights[i] > 0]
        assert [name for name, _ in found] == order
        assert_allclose([weight for _, weight in found], weights[order], rtol=1e-4)


def test_top_features_of_texts_are_words_of_the_class():
    model = of_texts()
    assert "cash" in [name for name, _ in model.top_features("spam", 3)]
    assert "lunch" in [name for name, _ in model.top_features("work", 3)]
    several = of_texts(update="ensemble")
    assert "cash" in [name for name, _ in several.top_features("spam", 5)]
    before = held(model)
    weights = [weight for _, weight in model.top_features("spam", ALL)]
    assert held(model) == before
    assert weights == sorted(weights, reverse=True) and weights[-1] > 0


def test_the_weight_of_a_word_is_its_contribution_before_scaling():
    """A text of one word has length 1 with its weight, which the oracle removes."""
    model = OnlineClassifier("multi", update="pa1", preprocessing="idf")
    for x, y in TEXTS:
        model.learn_one(dict.fromkeys(x.split(), 1.0), y)
    n = model.n_trials_
    weights = dict(model.top_features("spam", ALL))
    for word in ("cash", "win"):
        unit = scores_of(model, [{word: 1.0}])
        n_with = sum(word in x.split() for x, _ in TEXTS)
        idf = np.sqrt(np.log((n + 1) / (n_with + 0.5)))
        expected = idf * (unit["spam"] - np.mean(list(unit.values())))
        assert weights[word] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"kernel": "rbf"}, "over the kernel RBF"),
        ({}, "replaces the columns of rows by other features"),
        ({"hypotheses": "hybrid", "update": "pa1"}, "Distance.* is not zero at zero"),
    ],
)
def test_top_features_that_do_not_exist_are_refused(given, why):
    stream = make_stream(17)
    model = OnlineClassifier(**given).fit(stream.X, stream.y)
    with pytest.raises(KeslerError, match=why):
        model.top_features(0)


def test_sub_experts_have_no_top_features():
    X, y = rated(28, attributes=False)
    with pytest.raises(KeslerError, match="weigh sub-experts"):
        LinearMax("wma", "sub-experts").fit(X, y).top_features(0)


# ---- bad input -----------------------------------------------------------------------------------

BAD = {
    "unknown label": ({"label": "zoo"}, "label='zoo' is not a class that has been learnt.*'spam'"),
    "unknown rival": ({"rival": 3}, "rival=3 is not a class that has been learnt"),
    "not hashable": ({"label": ["spam"]}, "is not a class"),
    "the same twice": ({"label": "spam", "rival": "spam"}, "is the class that is explained"),
    "none": ({"n": 0}, "n=0 must be an integer of 1 or more"),
    "negative": ({"n": -3}, "n=-3 must be"),
    "half": ({"n": 1.5}, "n=1.5 must be"),
    "truth": ({"n": True}, "n=True must be"),
    "text": ({"n": "3"}, "n='3' must be"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("update", ["auto", "ensemble"])
def test_bad_requests_are_refused(name, update):
    given, message = BAD[name]
    model = of_texts(update=update)
    before = held(model)
    with pytest.raises(KeslerError, match=message):
        model.explain_one("win cash", **given)
    assert held(model) == before
    if "rival" not in given:
        with pytest.raises(KeslerError, match=message):
            model.top_features(**{"label": "spam"} | given)


def test_the_predicted_class_as_rival_is_refused():
    model = of_texts()
    with pytest.raises(KeslerError, match="rival='spam' is the class that is explained"):
        model.explain_one("win cash", rival="spam")


def test_labels_of_numpy_are_those_that_they_equal():
    stream = make_stream(18)
    model = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y)
    x = stream.X[0]
    assert model.explain_one(x, np.int64(1), np.int64(2), np.int64(3)) == model.explain_one(
        x, 1, 2, 3
    )


def test_declared_classes_cannot_be_explained_before_their_first_row():
    model = OnlineClassifier("multi", update="pa1").partial_fit(np.eye(2), ["a", "b"], list("abc"))
    assert model.explain_one([1.0, 0.0]).rival in ("a", "b")
    with pytest.raises(KeslerError, match="label='c' is not a class"):
        model.explain_one([1.0, 0.0], "c")


@pytest.mark.parametrize(
    "make", [OnlineClassifier, Ensemble, OnlineMultilabelClassifier, OnlineLabelRanker]
)
def test_a_model_without_a_row_cannot_explain(make):
    with pytest.raises(ValueError, match="not fitted yet"):
        make().explain_one({"a": 1.0})
    with pytest.raises(ValueError, match="not fitted yet"):
        make().top_features("a")


@pytest.mark.parametrize(
    "x", [[1.0, np.nan], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], {"a": 1.0}, "words", None]
)
def test_rows_that_cannot_be_predicted_are_refused_alike(x):
    model = OnlineClassifier("multi", update="pa1").fit(np.eye(2), ["a", "b"])
    with pytest.raises(KeslerError) as of_prediction:
        model.predict_one(x)
    with pytest.raises(KeslerError) as of_explanation:
        model.explain_one(x)
    assert str(of_explanation.value) == str(of_prediction.value)


def test_values_too_large_for_scores_are_refused():
    given = {"update": "perceptron", "on_new_class": "learn"}
    model = OnlineClassifier("multi", **given).fit(1e30 * np.eye(2), ["a", "b"])
    with pytest.raises(KeslerError, match="float32"):
        model.explain_one([3e38, -3e38])
