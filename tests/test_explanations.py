"""Explanations: contributions whose sums are the scores, for every learner and form of rows."""

from __future__ import annotations

import json
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
from kesler.learner import state
from kesler.maps import Distance
from kesler.preprocessing import Bins, Pairs, RandomFourier
from registry import ROWS, Row, covering
from streams import Stream, held, make_stream, streams

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
        rows = list(model._rows_to_score(X))
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
@given(stream=streams(), update=st.sampled_from(["default", "ensemble"]))
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
