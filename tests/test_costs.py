"""What confusions cost: margins that differ from pair to pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from kesler import KeslerError, OnlineClassifier, load, update_rule
from kesler.updates import MIRA, RULES
from registry import PLAIN_RULES, with_strength
from streams import assert_same, make_stream, streams

PRICEABLE = [name for name in RULES if RULES[name]().heeds_margin]


def twice_the_distance(right: Any, wrong: Any) -> float:
    return 2.0 * abs(right - wrong)


def chosen(rule: str, scores: Any, y: int, margins: Any) -> list[int]:
    """The pairs that the rules' papers name, losses taken with a margin for each."""
    losses = margins - (scores[y] - scores)
    others = [s for s in range(len(scores)) if s != y]
    with_loss = [s for s in others if losses[s] > 0]
    if rule == "conproj":
        return [s for s in others if scores[s] >= scores[y]]
    if rule in ("simproj", "mira"):
        return with_loss
    return sorted(with_loss, key=lambda s: -losses[s])[:1]


def oracle(X: Any, y: Any, rule: str, C: float, costs: Any) -> tuple[Any, int]:
    """One pass with a vector a class; return them and the first trial that rounding decides."""
    w, n_known = np.zeros((int(max(y)) + 1, X.shape[1])), 0
    for t, (x, r) in enumerate(zip(X, map(int, y), strict=True)):
        if r == n_known:
            n_known += 1
            continue
        scores = w[:n_known] @ x
        margins = np.array([reference.margin_of(rule, C) * costs(r, s) for s in range(n_known)])
        losses = margins - (scores[r] - scores)
        ranked = np.sort(np.delete(losses, r))
        close = 1e-4 * (1 + abs(scores).max())
        leads = np.delete(scores[r] - scores, r)
        undecided = (abs(leads) < close) & (leads != 0)
        if undecided.any() or (abs(ranked) < close).any() or (np.diff(ranked) < close).any():
            return w, t
        along = chosen(rule, scores, r, margins)
        d = np.array([[(j == r) - float(j == s) for j in range(len(w))] for s in along])
        if along:
            views = np.einsum("sj,i->sji", d, x).reshape(len(along), -1)
            step = reference.RULES[rule](losses[along], (views**2).sum(1), views @ views.T, C)
            w += (step @ views).reshape(w.shape)
    return w, len(X)


@pytest.mark.parametrize("rule", [name for name in PRICEABLE if name in PLAIN_RULES])
@settings(max_examples=15)
@given(stream=streams(), C=st.sampled_from([0.05, 0.5]))
def test_every_rule_equals_its_oracle(rule, stream, C):
    def costs(right: int, wrong: int) -> float:
        return 0.5 + ((7 * right + 3 * wrong) % 5) / 3

    _, stop = oracle(stream.X, stream.y, rule, C, costs)
    expected, _ = oracle(stream.X[:stop], stream.y[:stop], rule, C, costs)
    model = OnlineClassifier("multi", update=with_strength(rule, C), costs=costs)
    model.learn_one(stream.X[0], 0)
    model.partial_fit(stream.X[1:stop], stream.y[1:stop])
    weights = model._learner.arrays()["weights.values.0"].T
    near = 2e-3 if rule == "mira" else 1e-4
    np.testing.assert_allclose(
        weights, expected[: len(weights)], atol=near * (1 + abs(expected).max())
    )


def test_a_mapping_equals_a_function_and_one_is_the_default():
    stream = make_stream(3)
    pairs = {(r, s): twice_the_distance(r, s) for r in range(5) for s in range(5) if r != s}
    by_function = OnlineClassifier("hybrid", "distance", "simproj", costs=twice_the_distance)
    by_mapping = OnlineClassifier("hybrid", "distance", "simproj", costs=pairs)
    by_function.fit(stream.X, stream.y), by_mapping.fit(stream.X, stream.y)
    assert_same(by_function, by_mapping, stream.X)
    plain, none = OnlineClassifier(update="pa1"), OnlineClassifier(update="pa1", costs={})
    assert_same(plain.fit(stream.X, stream.y), none.fit(stream.X, stream.y), stream.X)


def test_dear_confusions_become_rarer():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=3000)
    X = np.column_stack([y + 0.8 * rng.normal(size=3000), np.ones(3000)])

    def spam_lost(costs: Any) -> int:
        model = OnlineClassifier("multi", update="hinge", averaged=True, costs=costs)
        predicted = model.fit(X[:2000], y[:2000]).predict(X[2000:])
        return int(((predicted == 1) & (y[2000:] == 0)).sum())

    assert spam_lost({(0, 1): 5.0}) < 0.8 * spam_lost(None)


@pytest.mark.parametrize("costs", [{(0, 1): 3.0, (4, 2): 0.0}, twice_the_distance])
def test_saved_and_loaded_costs_go_on(costs, tmp_path):
    stream = make_stream(4)
    model = OnlineClassifier("multi", update=MIRA(0.1), costs=costs)
    model.fit(stream.X[:20], stream.y[:20])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", custom=[twice_the_distance])
    for each in (model, again):
        each.partial_fit(stream.X[20:], stream.y[20:])
    assert_same(model, again, stream.X)
    assert again.costs == costs


@pytest.mark.parametrize(
    ("costs", "part"),
    [
        ({("a", "b"): -1}, "a cost must be a finite number, 0 or more"),
        ({("a", "b"): float("nan")}, "a cost must be a finite number"),
        ({"ab": 1}, "must be a pair of labels"),
        ([[0, 1], [1, 0]], "give a mapping"),
        (lambda right, wrong: "dear", "where 'a' is right costs 'dear'"),
    ],
)
def test_what_is_no_cost_is_refused(costs, part):
    model = OnlineClassifier("multi", update="pa1", costs=costs)
    with pytest.raises(KeslerError, match=part):
        model.fit([[1.0], [2.0]], ["a", "b"])
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("rule", [name for name in RULES if name not in PRICEABLE])
def test_rules_that_do_not_look_at_margins_refuse_costs(rule):
    with pytest.raises(KeslerError, match="ignores margins"):
        OnlineClassifier("multi", update=rule, costs={(0, 1): 2.0}).fit([[1.0]], [0])


def test_a_cost_that_raises_leaves_the_costs_as_they_were():
    def fixed(right: Any, wrong: Any) -> Any:
        return "dear" if 16 in (right, wrong) else 5.0

    stream = make_stream(5, 60, n_classes=16)
    model, plain = (
        OnlineClassifier("multi", update="hinge", costs=fixed).fit(stream.X, stream.y)
        for _ in range(2)
    )
    with pytest.raises(KeslerError, match="costs 'dear'"):
        model.partial_fit(stream.X[:3], [0, 1, 16])
    for each in (model, plain):
        each.partial_fit(stream.X, stream.y)
    assert_same(model, plain, stream.X)


def test_costs_that_would_change_nothing_are_refused():
    @update_rule(constraints="violated", requires="losses", margin=0.0)
    def even(parameters, weight, losses, squared_norms, gram, steps):
        steps[0] = losses[0]

    with pytest.raises(KeslerError, match="ignores margins"):
        OnlineClassifier("multi", update=even, costs={(0, 1): 2.0}).fit([[1.0]], [0])


def test_a_row_without_a_loss_moves_nothing():
    """Also where the pair of the largest loss is sought among all pairs, since margins differ."""
    X, y = 4 * np.eye(3), [0, 1, 2]
    model = OnlineClassifier("multi", update="pa1", costs={(0, 1): 2.0, (1, 2): 3.0})
    for _ in range(20):
        model.partial_fit(X, y)
    before = model._learner.weights.copy()
    model.partial_fit(X, y)
    np.testing.assert_array_equal(model._learner.weights, before)
