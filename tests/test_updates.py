"""Each rule, called as the plain Python function that it is, against the oracle and its theory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import homemade
import reference
from kesler import KeslerError, OnlineClassifier, update_rule
from kesler.updates import (
    MIRA,
    RULES,
    ConProj,
    PassiveAggressive,
    SimPerc,
    SimProj,
    UpdateRule,
    resolve_rule,
)
from registry import NEEDS_REFERENCE, with_strength

Array = NDArray[np.float64]

# Rules without an aggressiveness that a row's weight could multiply; AROW's divides its noise.
UNWEIGHTED = (*reference.UNIT_STEPS, "pa", "arow", "least-squares")

# What the oracle calls each rule object.
NAMES = {name: make() for name, make in RULES.items()}


@dataclass(frozen=True)
class Problem:
    """The constraints of one trial: losses, and products of the differences d_s of the views."""

    losses: Array
    gram: Array

    @property
    def squared_norms(self) -> Array:
        return np.diag(self.gram).copy()


@st.composite
def problems(draw: Any, *, violated: bool) -> Problem:
    """Up to 8 constraints, some of them equal, opposite or without a direction."""
    m, n_features = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = rng.normal(size=(m, n_features)) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    for s in draw(st.sets(st.integers(0, m - 1), max_size=2)):
        d[s] = draw(st.sampled_from([0.0, 1.0, -1.0])) * d[0]
    losses = rng.normal(0.5, 1.0, size=m)
    return Problem(abs(losses) + 1e-3 if violated else losses, d @ d.T)


@st.composite
def per_class_problems(draw: Any) -> Problem:
    """With one hypothesis a class and ||x||^2 = n: d_s . d_s' = n (1 + [s = s'])."""
    m, n = draw(st.integers(1, 12)), draw(st.floats(0.1, 50.0))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    losses = rng.normal(0.5, 1.0, size=m)
    losses[0] = abs(losses[0]) + 1e-3  # without any loss there is no trial
    return Problem(losses, n * (1.0 + np.eye(m)))


limits = st.sampled_from([1e-3, 0.05, 1.0, 10.0])
weights = st.sampled_from([0.5, 1.0, 3.0])


def steps_of(
    rule: UpdateRule, problem: Problem, weight: float = 1.0, begin: Array | None = None
) -> Array:
    """Return the steps of a rule, which must leave what it is handed as it was."""
    steps = np.zeros(len(problem.losses)) if begin is None else begin.copy()
    handed = (problem.losses.copy(), problem.squared_norms, problem.gram.copy())
    parameters = np.array(rule.parameters, dtype=np.float64)
    rule.steps(parameters, weight, *handed, steps)
    stored = (problem.losses, problem.squared_norms, problem.gram)
    assert all(np.array_equal(a, b) for a, b in zip(handed, stored, strict=True))
    assert parameters.tolist() == list(rule.parameters)
    return steps


def one_constraint(problem: Problem) -> Problem:
    return Problem(problem.losses[:1], problem.gram[:1, :1])


@pytest.mark.parametrize("name", RULES)
@given(problem=problems(violated=True), C=limits, weight=weights)
def test_steps_equal_the_oracles(name, problem, C, weight):
    """MIRA's are not unique, so that it is how far the hypotheses move that is compared."""
    rule = with_strength(name, C)
    if rule.constraints in ("predicted", "worst", "rival"):
        problem = one_constraint(problem)
    expected = reference.RULES[name](
        problem.losses,
        problem.squared_norms,
        problem.gram,
        reference.strength_of(name, C) * weight,
    )
    steps = steps_of(rule, problem, weight)
    if name in reference.UNIT_STEPS:
        np.testing.assert_array_equal(steps, weight * expected)
    elif name == "mira":
        # min 1/2 ||w - w_t||^2 + C slack is worth as much, and strongly convex in w.
        assert dual(steps, problem) >= dual(expected, problem) - 1e-6 * C * weight
    else:
        np.testing.assert_allclose(steps, expected, **nearness(name))


def nearness(name: str) -> dict[str, float]:
    """Where the oracle finds a root, it is as near as the difference of two numbers allows."""
    return {"rtol": 1e-6, "atol": 1e-8} if name in NEEDS_REFERENCE else {"rtol": 1e-12}


def dual(alpha: Array, problem: Problem) -> float:
    """Amit et al. (2006), Eq. 2."""
    return float(alpha @ problem.losses - alpha @ problem.gram @ alpha / 2)


def assert_optimal(alpha: Array, problem: Problem, limit: float) -> None:
    """The conditions of Karush, Kuhn and Tucker, to 1e-6 of a margin of 1."""
    after = problem.losses - problem.gram @ alpha
    slack = max(0.0, after.max())
    assert (alpha >= 0).all() and alpha.sum() <= limit * (1 + 1e-9)
    assert (after[alpha > 0] >= slack - 1e-6).all(), "a step along a constraint that is slack"
    if alpha.sum() < limit * (1 - 1e-9):
        assert slack <= 1e-6, "a loss is left, and so is room to step"


@given(problem=problems(violated=False), C=limits, weight=weights)
def test_mira_solves_its_quadratic_program(problem, C, weight):
    assert_optimal(steps_of(MIRA(C), problem, weight), problem, C * weight)


@given(problem=problems(violated=False), C=limits, n_first=st.integers(1, 8))
def test_mira_goes_on_from_the_steps_of_the_call_before(problem, C, n_first):
    """As it is called where constraints come one by one."""
    rule, m = MIRA(C), len(problem.losses)
    begin = np.zeros(m)
    for k in range(min(n_first, m), m + 1):
        part = Problem(problem.losses[:k], problem.gram[:k, :k])
        begin[:k] = steps_of(rule, part, begin=begin[:k])
    assert_optimal(begin, problem, C)


@pytest.mark.parametrize(
    ("directions", "C", "steps"),
    [
        # The three ways add up to nothing: where all losses are equal, that is the optimum.
        ([(-4, 0), (4, -0.002), (2, 0.008)], 1.0, [9 / 19, 8 / 19, 2 / 19]),
        # Both losses end, at w = (0, 50), with mass to spare: 4a = 3b and a + b = 2500.
        ([(4, 0.02), (-3, 0.02)], 1e4, [7500 / 7, 10_000 / 7]),
    ],
)
def test_mira_solves_constraints_that_nearly_depend_on_each_other(directions, C, steps):
    """Of two at a time, tens of thousands of moves leave losses that differ by 1e-5 and more."""
    d = np.array(directions)
    problem = Problem(np.ones(len(d)), d @ d.T)
    found = steps_of(MIRA(C), problem)
    np.testing.assert_allclose(found, steps, rtol=1e-5)
    assert_optimal(found, problem, C)


@given(problem=per_class_problems(), C=limits, weight=weights)
def test_miras_closed_form_is_the_optimum(problem, C, weight):
    closed = MIRA(C).for_hypotheses(one_per_class=True)
    assert closed is not MIRA(C) and closed.steps is not MIRA.steps
    steps = steps_of(closed, problem, weight)
    assert_optimal(steps, problem, C * weight)
    after = problem.losses - problem.gram @ steps_of(MIRA(C), problem, weight)
    np.testing.assert_allclose(problem.losses - problem.gram @ steps, after, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in RULES if name not in UNWEIGHTED])
@given(problem=problems(violated=True), C=limits)
def test_weight_multiplies_the_aggressiveness(name, problem, C):
    if RULES[name]().constraints in ("worst", "rival"):
        problem = one_constraint(problem)
    weighted = steps_of(with_strength(name, C), problem, weight=2.0)
    np.testing.assert_array_equal(weighted, steps_of(with_strength(name, 2 * C), problem))


@pytest.mark.parametrize("name", reference.UNIT_STEPS)
@given(problem=problems(violated=True))
def test_weight_is_the_length_of_a_step(name, problem):
    problem = one_constraint(problem)
    once = steps_of(RULES[name](), problem)
    np.testing.assert_array_equal(steps_of(RULES[name](), problem, weight=2.0), 2.0 * once)


@given(problem=problems(violated=True))
def test_passive_aggressive_satisfies_its_constraint(problem):
    problem = one_constraint(problem)
    step = steps_of(PassiveAggressive(variant=0), problem)
    if problem.squared_norms[0] > 0:
        np.testing.assert_allclose(problem.gram @ step, problem.losses)
    else:
        assert step.tolist() == [0]


@given(problem=problems(violated=True), C=limits)
def test_one_constraint_is_projected_on_alike(problem, C):
    """Crammer et al. (2006) and Amit et al. (2006) agree where there is one constraint."""
    problem = one_constraint(problem)
    expected = steps_of(PassiveAggressive(C), problem)
    for rule in (ConProj(C), SimProj(C), MIRA(C)):
        np.testing.assert_allclose(steps_of(rule, problem), expected, rtol=1e-6)


@given(problem=problems(violated=True), C=limits)
def test_simultaneous_steps_are_capped_together(problem, C):
    for rule in (SimPerc(C), ConProj(C), SimProj(C)):
        steps = steps_of(rule, problem)
        assert (steps >= 0).all() and steps.sum() <= C * (1 + 1e-12)


# ---- making rules -------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0, -1.0, float("nan"), float("inf"), None, "1"])
@pytest.mark.parametrize("rule", [PassiveAggressive, SimPerc, ConProj, SimProj, MIRA])
def test_an_aggressiveness_that_is_none_is_refused(rule, C):
    with pytest.raises(KeslerError, match=rf"{rule.__name__}\(C=.*above 0"):
        rule(C=C)


@pytest.mark.parametrize("C", [1, 0.5, np.float64(0.1), np.float32(0.5), np.int64(2)])
def test_an_aggressiveness_may_be_any_number(C):
    """As a grid of NumPy's gives them."""
    assert MIRA(C).parameters == (float(C),)


def test_an_unknown_variant_is_refused():
    with pytest.raises(KeslerError, match=r"variant=3.*PA-II"):
        PassiveAggressive(variant=3)


def test_rules_go_by_name_or_by_object():
    for name, rule in NAMES.items():
        assert resolve_rule(name) == rule and resolve_rule(rule) is rule
    for nothing in ("sgd", None, 3, MIRA, homemade.part_way.steps):
        with pytest.raises(KeslerError, match="is not known: choose one of perceptron, pa"):
            resolve_rule(nothing)


def test_a_rule_of_the_user_takes_other_numbers():
    rule = homemade.part_way.with_parameters(0.25)
    assert (rule.parameters, homemade.part_way.parameters) == ((0.25,), (0.5,))
    problem = Problem(np.array([2.0]), np.array([[4.0]]))
    assert steps_of(rule, problem).tolist() == [0.125]


@pytest.mark.parametrize("choice", [{"constraints": "none"}, {"requires": "features"}])
def test_an_unknown_choice_of_a_users_rule_is_refused(choice):
    with pytest.raises(KeslerError, match="is not known: choose one of"):
        update_rule(**choice)(lambda parameters, weight, losses, norms, gram, steps: None)


# Each selection and sight, on one stream: what a rule is handed is what the oracle hands its own.
SELECTIONS = {
    "predicted": reference.predicted,
    "worst": reference.most_violated,
    "mistaken": reference.mistaken,
    "violated": reference.with_loss,
    "all": reference.every,
}


@update_rule(constraints="all", requires="gram")
def little_steps(parameters, weight, losses, squared_norms, gram, steps):
    """See everything: a hundredth of the loss over the norm and the extremes of the products.

    Unlike a sum, these are equal to the last bit for constraints that are alike in another order.
    """
    for i in range(losses.shape[0]):
        least = most = 0.0
        for j in range(losses.shape[0]):
            least, most = min(least, gram[i, j]), max(most, gram[i, j])
        steps[i] = 0.01 * weight * losses[i] / (1.0 + squared_norms[i] + (most - least))


def little_oracle(losses: Array, squared_norms: Array, gram: Array, C: float) -> Array:
    extremes = gram.max(axis=1, initial=0) - gram.min(axis=1, initial=0)
    return 0.01 * C * losses / (1.0 + squared_norms + extremes)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
def test_a_users_rule_is_handed_what_it_asks_for(selection, hypotheses, monkeypatch):
    from dataclasses import replace

    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 6)).astype(np.float32).astype(float), np.arange(60) % 5
    monkeypatch.setitem(reference.RULES, "little", little_oracle)
    monkeypatch.setitem(reference.CHOICES, "little", SELECTIONS[selection])
    shared = {"kind": "shared", "map": reference.MAPS["product_mean"]}
    parts = [{"kind": "per_class", "map": None}, *([shared] if hypotheses == "hybrid" else [])]
    run = reference.reference_run(X, y, parts, "little")
    rule = replace(little_steps, constraints=selection)
    model = OnlineClassifier(hypotheses, "product-mean", rule).fit(X, y)
    assert model.n_mistakes_ == run["mistakes"]
    for i, W in enumerate(run["W"]):
        ours = model._learner.arrays()[f"weights.values.{i}"].T
        np.testing.assert_allclose(ours, W, rtol=1e-4, atol=1e-6)
