"""What confusions cost: margins that differ from pair to pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    update_rule,
)
from kesler.costs import Costs
from kesler.updates import MIRA, RULES, SimProj
from registry import PLAIN_RULES, with_strength
from streams import assert_same, make_stream, streams

PRICEABLE = [name for name in RULES if RULES[name]().heeds_margin]


def twice_the_distance(right: Any, wrong: Any) -> float:
    return 2.0 * abs(right - wrong)


Moves = Callable[[int, Any, Any, Any], tuple[list[int], Any]]


def oracle(X: Any, y: Any, margins: Any, prices: Any, moves: Moves) -> tuple[Any, int]:
    """One pass with a vector a class; return them and the first trial that rounding decides.

    margins, prices : functions of a right and a wrong class: what a score must lead by, and what
    the shortfall is multiplied by where the largest is sought.
    moves : function (r, x, scores, losses) -> classes that r must outscore, and steps along them.
    """
    w, n_known = np.zeros((int(max(y)) + 1, X.shape[1])), 0
    for t, (x, r) in enumerate(zip(X, map(int, y), strict=True)):
        if r == n_known:
            n_known += 1
            continue
        scores, known = w[:n_known] @ x, range(n_known)
        losses = np.array([margins(r, s) for s in known]) - (scores[r] - scores)
        if is_doubtful(scores, r, np.array([prices(r, s) for s in known]) * losses):
            return w, t
        for s, step in zip(*moves(r, x, scores, losses), strict=True):
            w[r] += step * x
            w[s] -= step * x
    return w, len(X)


def is_doubtful(scores: Any, r: int, slacks: Any) -> bool:
    """Whether rounding decides which classes are above r, or which slacks are above others or 0."""
    close = 1e-4 * (1 + abs(scores).max())
    ranked, leads = np.sort(np.delete(slacks, r)), np.delete(scores[r] - scores, r)
    near = ((abs(leads) < close) & (leads != 0)).any() or (abs(ranked) < close).any()
    return bool(near or (np.diff(ranked) < close).any())


def along(r: int, scores: Any, losses: Any, slacks: Any, constraints: str) -> list[int]:
    """The classes that a rule's paper names: mistaken, violated, or the worst of these."""
    others = [s for s in range(len(scores)) if s != r]
    if constraints == "mistaken":
        return [s for s in others if scores[s] >= scores[r]]
    violated = [s for s in others if losses[s] > 0]
    return violated if constraints == "violated" else sorted(violated, key=lambda s: -slacks[s])[:1]


CONSTRAINTS = {
    **dict.fromkeys(["conproj", "simperc"], "mistaken"),
    **dict.fromkeys(["simproj", "mira"], "violated"),
}
"""Those of the rules that do not receive the worst alone."""


@pytest.mark.parametrize("rule", [name for name in PRICEABLE if name in PLAIN_RULES])
@settings(max_examples=15)
@given(stream=streams(), C=st.sampled_from([0.05, 0.5]))
def test_every_rule_equals_its_oracle(rule, stream, C):
    def costs(right: int, wrong: int) -> float:
        return 0.5 + ((7 * right + 3 * wrong) % 5) / 3

    def margins(right: int, wrong: int) -> float:
        return reference.margin_of(rule, C) * costs(right, wrong)

    def moves(r: int, x: Any, scores: Any, losses: Any) -> Any:
        named = along(r, scores, losses, losses, CONSTRAINTS.get(rule, "worst"))
        gram = x @ x * (1 + np.eye(len(named)))  # of views whose halves for r are the same
        return named, reference.RULES[rule](
            losses[named], gram.diagonal(), gram, C
        ) if named else []

    expected, stop = oracle(stream.X, stream.y, margins, lambda r, s: 1.0, moves)
    model = OnlineClassifier("multi", update=with_strength(rule, C), costs=costs)
    model.learn_one(stream.X[0], 0)
    model.partial_fit(stream.X[1:stop], stream.y[1:stop])
    weights = model._learner.arrays()["weights.values.0"].T
    near = 2e-3 if rule == "mira" else 1e-4
    np.testing.assert_allclose(
        weights, expected[: len(weights)], atol=near * (1 + abs(expected).max())
    )


def limited_steps(rule: str, losses: Any, norms: Any, costs: Any, C: float) -> Any:
    """Amit et al. 2006, Section 7: alpha in [0, C / nu], nu = 1 / cost, and their mean."""
    limits = C * costs
    if rule == "pa2":  # its slack counts squared: alpha / cost is the slack times 2 C
        return losses / (norms + 1 / (2 * C * costs**2))
    steps = limits if rule == "simperc" else np.minimum(limits, losses / np.maximum(norms, 1e-300))
    return steps / len(losses)


@pytest.mark.parametrize("rule", ["pa1", "pa2", "simperc", "conproj", "simproj"])
@settings(max_examples=15)
@given(stream=streams(), C=st.sampled_from([0.02, 0.1]))
def test_costs_that_scale_steps_equal_their_oracle(rule, stream, C):
    def costs(right: int, wrong: int) -> float:
        return 0.25 + ((7 * right + 3 * wrong) % 5) / 2

    def moves(r: int, x: Any, scores: Any, losses: Any) -> Any:
        priced = np.array([costs(r, s) for s in range(len(scores))])
        named = along(r, scores, losses, priced * losses, CONSTRAINTS.get(rule, "worst"))
        norms = np.full(len(named), 2 * float(x @ x))
        steps = limited_steps(rule, losses[named], norms, priced[named], C) if named else []
        assert rule == "pa2" or (steps / priced[named]).sum() <= C * (1 + 1e-9)
        return named, steps

    expected, stop = oracle(stream.X, stream.y, lambda r, s: 1.0, costs, moves)
    model = OnlineClassifier("multi", update=rule, C=C, costs=Costs(costs, "steps"))
    model.learn_one(stream.X[0], 0)
    model.partial_fit(stream.X[1:stop], stream.y[1:stop])
    weights = model._learner.arrays()["weights.values.0"].T
    np.testing.assert_allclose(
        weights, expected[: len(weights)], atol=1e-4 * (1 + abs(expected).max())
    )


def test_costs_that_scale_steps_over_a_kernel_equal_those_over_vectors():
    stream, costs = make_stream(6), Costs({(0, 1): 3.0, (2, 1): 0.2}, "steps")
    made = {"update": "simproj", "C": 0.05, "costs": costs}
    vectors = OnlineClassifier("multi", **made, intercept=0).fit(stream.X, stream.y)
    kernel = OnlineClassifier("multi", **made, kernel="linear", intercept=0)
    kernel.fit(stream.X, stream.y)
    assert vectors.n_mistakes_ == kernel.n_mistakes_
    np.testing.assert_allclose(
        vectors.decision_function(stream.X), kernel.decision_function(stream.X), atol=1e-4
    )


@pytest.mark.parametrize("preconditioner", ["euclidean", "adagrad"])
def test_a_step_cost_of_one_changes_nothing(preconditioner):
    stream = make_stream(7)
    made = {"update": "conproj", "C": 0.1, "preconditioner": preconditioner}
    plain, one = (
        OnlineClassifier("multi", **made, costs=costs).fit(stream.X, stream.y)
        for costs in (None, Costs({}, "steps"))
    )
    assert_same(plain, one, stream.X)


def test_a_step_cost_of_four_is_four_times_C():
    stream = make_stream(7)
    dear, plain = (
        OnlineClassifier("multi", update="conproj", C=C, costs=costs).fit(stream.X, stream.y)
        for C, costs in ((0.125, Costs(lambda r, s: 4.0, "steps")), (0.5, None))
    )
    assert_same(dear, plain, stream.X)


def test_adaptive_steps_see_the_gradient_times_its_cost():
    evidence = []
    for costs in (None, Costs(lambda r, s: 4.0, "steps")):
        model = OnlineClassifier("multi", update="conproj", preconditioner="adagrad", costs=costs)
        model.fit([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]], [0, 1, 1])
        evidence.append(model._learner.arrays()["preconditioner.evidence.0"])
    assert evidence[0].max() > 0
    np.testing.assert_allclose(evidence[1], 16 * evidence[0])


@pytest.mark.parametrize("rule", ["pa", "mira", "hinge", "perceptron", "ovr-hinge", "arow"])
def test_rules_that_do_not_limit_steps_refuse_costs_of_steps(rule):
    model = OnlineClassifier("multi", update=rule, costs=Costs({(0, 1): 2.0}, "steps"))
    with pytest.raises(KeslerError, match="does not limit the step along each pair"):
        model.fit([[1.0]], [0])


def test_no_step_is_free():
    with pytest.raises(KeslerError, match="give a cost above 0"):
        Costs({(0, 1): 0.0}, "steps")
    model = OnlineClassifier("multi", update="pa1", costs=Costs(lambda r, s: 0.0, "steps"))
    with pytest.raises(KeslerError, match="give a cost above 0"):
        model.fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(KeslerError, match='choose "margins" or "steps"'):
        Costs({}, "slacks")


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


@pytest.mark.parametrize(
    "costs",
    [
        {(0, 1): 3.0, (4, 2): 0.0},
        twice_the_distance,
        Costs({(0, 1): 3.0, (4, 2): 0.5}, "steps"),
        Costs(twice_the_distance, "steps"),
    ],
)
def test_saved_and_loaded_costs_go_on(costs, tmp_path):
    stream = make_stream(4)
    update = SimProj(0.1) if isinstance(costs, Costs) else MIRA(0.1)
    model = OnlineClassifier("multi", update=update, costs=costs)
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


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(OnlineOrdinalClassifier, [0, 1, 2]), (OnlineMultilabelClassifier, [[0], [1], [0, 2]])],
)
def test_costs_scale_steps_of_classes_alone(estimator, y):
    model = estimator(update="simproj", costs=Costs(lambda r, s: 2.0, "steps"))
    with pytest.raises(KeslerError, match="scale steps are of pairs of classes"):
        model.fit([[1.0], [2.0], [3.0]], y)
