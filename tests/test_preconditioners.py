"""Step sizes of weights, losses against the rest, steps that do not overshoot, new classes."""

from __future__ import annotations

import copy
import math
import os
import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import homemade
import reference_pooled
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    preconditioner,
)
from kesler.hypotheses import Shared
from kesler.maps import Distance
from kesler.preconditioners import (
    PRECONDITIONERS,
    AdaGrad,
    Confidence,
    DistanceAdaGrad,
    SoftConfidence,
)
from kesler.state import records
from kesler.state.fields import fields_of
from kesler.updates import (
    AROW,
    RULES,
    SCW,
    HingeGradient,
    LogisticGradient,
    OneVsRestHinge,
    OneVsRestLogistic,
    OneVsRestSquared,
    SoftmaxGradient,
)
from reference_learner import ReferenceLearner, State, pairs_of
from reference_preconditioners import PHI, pace_of, root_of_u
from registry import DEFAULTS, ROWS, SETS, Row
from streams import Stream, assert_same, assert_same_but_declared, make_stream, run_trials, streams
from test_answers import settings_of_oracle
from test_laws import assert_sentence, every_row, examples

NOT_PLAIN = [
    row
    for row in ROWS
    if not row.is_plain and row.link == "linear" and row.algorithm is None
    if row.preprocessing is None and row.has_oracle
    if row.preconditioner != "second-order"  # which `test_second_order.py` compares
]

# ---- every trial equals its reference
# ----------------------------------------------------------------


def follow(
    reference_learner: ReferenceLearner,
    model: Any,
    settings: Any,
    weights: Any = None,
    rows: Any = None,
) -> int:
    """Learn row by row beside the reference; return how many trials could be compared.

    The model is given `rows`, where the reference is given them as trials see them.
    """
    checked = 0
    weights = np.ones(len(reference_learner.X)) if weights is None else weights
    rows = reference_learner.X if rows is None else rows
    for given_x, x, named, answer, weight in zip(
        rows, reference_learner.X, settings, reference_learner.answers, weights, strict=True
    ):
        before = (
            reference_learner.state_of(model)
            if model._learner is not None
            else empty(reference_learner)
        )
        _, after, clear = reference_learner.step(x, answer, before, weight)
        model.partial_fit([given_x], [named], sample_weight=[weight])
        reference_learner.take_in(x, answer, weight)
        if clear:
            assert_near(
                reference_learner.state_of(model),
                reference_learner.faded(after),
                reference_learner.rule,
            )
            checked += 1
    return checked


def empty(reference_learner: ReferenceLearner) -> State:
    begun = [part.get("begins_at", 0.0) for part in reference_learner.parts]
    v = np.repeat(begun, [reference_learner.n * size for size in reference_learner.sizes()])
    return State(v, np.zeros(len(v)), np.array([[0.0], [1.0], [0.0]]) + np.zeros(len(v)))


def assert_near(ours: State, theirs: State, rule: str) -> None:
    near = 2e-4 if rule == "mira" else 2e-5
    for found, expected in pairs_of(ours, theirs):
        atol = near * max(1.0, float(abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def reference_of(row: Row, stream: Stream, C: float) -> ReferenceLearner:
    return ReferenceLearner(
        row.oracle(),
        row.rule,
        C,
        [{y: 0} for y in stream.y.tolist()],
        1,
        list(range(stream.n_classes)),
        SETS,
        stream.X,
        preconditioner="euclidean" if row.preconditioner == "auto" else row.preconditioner,
        on_new_class=row.on_new_class,
        invariant=True if row.invariant else None,
        half_life=row.half_life or np.inf,
    )


@every_row(NOT_PLAIN)
@examples(2)
@given(stream=streams(max_rows=24), C=st.sampled_from([0.2, 1.0]), weighted=st.booleans())
def test_7_every_trial_equals_its_reference(row, stream, C, weighted):
    weights = stream.weights if weighted else None
    n_checked = follow(reference_of(row, stream, C), row.learner(C=C), stream.y, weights)
    assert n_checked >= len(stream) // 3


@pytest.mark.parametrize(("family", "view"), [("multi", None), ("hybrid", "distance")])
@pytest.mark.parametrize("rule", ["ovr-squared", "softmax", "pa1"])
def test_7_rates_in_units_of_rows_equal_their_reference(rule, family, view):
    row, stream = Row(rule, family, view), make_stream(6)
    reference_learner = replace(
        reference_of(row, stream, 0.5), preconditioner="length-free-adagrad"
    )
    model = row.learner(C=0.5).set_params(preconditioner=AdaGrad(length_free=True))
    assert follow(reference_learner, model, stream.y, stream.weights) >= 20


def with_prior(x: Any, running: Any) -> Any:
    """The view of measurements: of the constant before them, how common the class is."""
    phi = reference_pooled.gaussian_ratio(x, running)
    _, w, own = reference_pooled.unpacked(running)
    phi[0] = x[0] * np.log(w[own].sum() / w.sum())
    return phi


@pytest.mark.parametrize("size", [(60, 6, 7), (120, 21, 37)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", ["words", "measurements"])
def test_7_every_trial_of_the_default_learner_equals_its_reference(settings, weighted, size):
    """All its parts together: conditioned rows, weights that begin, a view, AdaGrad, new classes.

    Of many classes a few move, or most; and there are more of them, and words, than a line holds.
    """
    (row,) = [row for row in ROWS if row.settings == settings]
    stream = make_stream(18, *size)
    weights = stream.weights if weighted else None
    X = row.seen(stream.X, weights, stream.y)
    X = np.hstack([np.ones((len(X), 1)), X])
    made = DEFAULTS[settings]()
    reference_learner = replace(reference_of(row, stream, made["update"].eta), X=X)
    if settings != "words":
        reference_learner = replace(reference_learner, preconditioner="length-free-adagrad")
        reference_learner.parts[1] |= {"map": {"view": with_prior}}
    for part, shared in zip(reference_learner.parts[1:], made["hypotheses"][1:], strict=True):
        part |= {"begins_at": shared.begins_at}
    assert follow(reference_learner, row.learner(), stream.y, weights, stream.X) >= 40


ESTIMATORS = {"sets": OnlineMultilabelClassifier, "rankings": OnlineLabelRanker}
MOVED = [
    *(("ovr-squared", "adagrad"), ("ovr-logistic", "confidence"), ("softmax", "adagrad")),
    *(("simproj", "confidence"), ("scw1", "auto"), ("pa1", "auto")),
]


@pytest.mark.parametrize(
    ("estimator", "family", "moved", "on_new_class"),
    [*product(ESTIMATORS, ["multi", "hybrid", "grouped-view"], MOVED, ["learn", "inherit"])],
    ids=str,
)
def test_7_label_sets_and_partial_rankings_equal_their_reference(
    estimator, family, moved, on_new_class
):
    view = None if family == "multi" else "distance"
    row = Row(moved[0], family, view, preconditioner=moved[1], on_new_class=on_new_class)
    settings, X = overlapping_answers()
    number: dict[int, int] = {}
    named = [[number.setdefault(d, len(number)) for d in each] for each in settings]
    answers, rest = settings_of_oracle(estimator, named)
    labels = [None] * (estimator == "sets") + list(number)
    reference_learner = ReferenceLearner(
        row.oracle(),
        row.rule,
        0.5,
        answers,
        rest,
        labels,
        {s: [labels.index(d) for d in stored if d in labels] for s, stored in SETS.items()},
        X,
        preconditioner="euclidean" if row.preconditioner == "auto" else row.preconditioner,
        on_new_class=on_new_class,
    )
    plain = row.learner(C=0.5).get_params(deep=False)
    stored = {
        name: plain[name] for name in ("hypotheses", "feature_map", "update", "preconditioner")
    }
    model = ESTIMATORS[estimator](**stored, on_new_class=on_new_class, intercept=0.0)
    reference_learner.running += [[]] * (
        estimator == "sets"
    )  # the threshold is there from the start
    assert follow(reference_learner, model, settings) >= len(X) // 3


def overlapping_answers() -> tuple[list[list[int]], Any]:
    """Answers of one to three labels, some of which come late."""
    stream = make_stream(17, n_rows=30)
    more = [[y, (2 * y + t) % (y + 2), (y + t) % 5] for t, y in enumerate(stream.y.tolist())]
    return [list(dict.fromkeys(each[: 1 + t % 3])) for t, each in enumerate(more)], stream.X


# ---- steps that do not overshoot ----------------------------------------------------------------

INVARIANT = {
    "ovr-squared": (OneVsRestSquared(0.3), "multi", 4),
    "ovr-logistic": (OneVsRestLogistic(0.3), "multi", 4),
    "ovr-hinge": (OneVsRestHinge(0.05), "multi", 4),
    "hinge": (HingeGradient(0.05, invariant=True), "multi", 2),
    "hinge-hybrid": (HingeGradient(0.05, invariant=True), "hybrid", 2),
    "softmax": (SoftmaxGradient(0.3, invariant=True), "multi", 2),
    "softmax-hybrid": (SoftmaxGradient(0.3, invariant=True), "hybrid", 2),
    "logistic-hybrid": (LogisticGradient(0.3, invariant=True), "hybrid", 2),
}


@pytest.mark.parametrize("name", INVARIANT)
def test_a_row_of_weight_two_is_the_row_twice(name):
    rule, hypotheses, n_classes = INVARIANT[name]
    # The product with the first instance is constant, so that both rows are seen alike.
    model = OnlineClassifier(hypotheses, "product", rule)
    stream = make_stream(5, n_rows=60, n_classes=n_classes, n_features=4)
    moved = 0
    for x, y in zip(stream.X / 2, stream.y, strict=True):
        known = model._learner is not None and y in model.classes_
        if known and abs(model._scores([x])).max() < 1:
            heavy, twice = copy.deepcopy(model), copy.deepcopy(model)
            heavy.partial_fit([x], [y], sample_weight=[2.0])
            twice.partial_fit([x, x], [y, y])
            one, other = heavy._learner.weights, twice._learner.weights
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
            moved += bool((one != model._learner.weights).any())
        model.learn_one(x, y)
    assert moved >= 20


def test_a_plain_step_of_weight_two_is_not_the_row_twice():
    X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0]
    model = OnlineClassifier("multi", update=OneVsRestSquared(0.3, invariant=False)).fit(X, y)
    heavy, twice = copy.deepcopy(model), copy.deepcopy(model)
    heavy.partial_fit([[1.0, 1.0]], [1], sample_weight=[2.0])
    twice.partial_fit([[1.0, 1.0]] * 2, [1, 1])
    assert abs(heavy._learner.weights - twice._learner.weights).max() > 0.1


# The rules that go no further have steps; the weights of coin betting are bets on the gradient.
@pytest.mark.parametrize(
    "preconditioner", [m for m in PRECONDITIONERS if m not in ("confidence", "coin-betting")]
)
@pytest.mark.parametrize("rule", [OneVsRestSquared, OneVsRestHinge, OneVsRestLogistic])
@examples(10)
@given(stream=streams(max_rows=24), eta=st.sampled_from([0.1, 10.0, 1e6]))
def test_no_step_goes_past_its_target(preconditioner, rule, stream, eta):
    """However long a row is followed: 1 for the right class, -1 for the others."""
    model = OnlineClassifier("multi", update=rule(eta), preconditioner=preconditioner)
    for x, y in zip(stream.X, stream.y, strict=True):
        model.learn_one(x, y)
        before = model._scores([x])[0]
        after = model.learn_one(x, y)._scores([x])[0]
        sides = np.where(np.arange(len(after)) == model._learner.classes.code(y), 1, -1)
        moved = (after - before) * sides
        if rule is not OneVsRestLogistic:
            running = np.maximum(before * sides, 1)
            assert (after * sides <= running + 1e-4 * (1 + abs(before))).all()
        assert (moved >= -1e-5 * (1 + abs(before))).all()
        assert np.isfinite(after).all()


def test_metrics_and_flows_join_to_vowpal_wabbits_update():
    """Worked by hand: y = 1, x = 2, eta = 0.5; g = -2, G = 16, v = 4 / 4 = 1."""
    model = OnlineClassifier(
        "multi", update="ovr-squared", preconditioner="adagrad", on_new_class="learn"
    )
    model.fit([[0.0], [2.0]], ["a", "b"])
    u = 1 - np.exp(-1.0)
    assert model._learner.arrays()["weights.values.0"][0].tolist() == pytest.approx([-u / 2, u / 2])
    assert model._learner.arrays()["preconditioner.evidence.0"][0].tolist() == pytest.approx(
        [16, 16]
    )


# ---- confidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [1, 2])
@pytest.mark.parametrize("C", [0.05, 1e9])
def test_a_confident_step_makes_its_margin_probable_enough(variant, C):
    """Where there is one weight, the diagonal is all: margin + slack = phi deviation, or C."""
    model = OnlineClassifier("single", "difference", SCW(C, variant=variant), on_new_class="learn")
    rng, capped, exact = np.random.default_rng(3), 0, 0
    for y in [0, 1, *rng.integers(2, size=60).tolist()]:
        x = np.array([rng.normal() + y])
        d = view_difference(model, y) if model.__sklearn_is_fitted__() else None
        before = weight_and_variance(model) if d is not None else (0.0, 1.0)
        model.learn_one(x, y)
        if not d:
            continue
        w, variance = weight_and_variance(model)
        alpha = (w - before[0]) / (before[1] * d)
        deviation, slack = abs(d) * np.sqrt(variance), alpha / (2 * C) if variant == 2 else 0.0
        lacking = PHI * deviation - w * d - slack
        assert alpha >= -1e-6
        if alpha > 1e-3 and not (variant == 1 and alpha > C * (1 - 1e-4)):
            exact += 1
            assert lacking == pytest.approx(0, abs=1e-4 * (1 + abs(w * d)))
        elif alpha > 1e-3:
            capped += 1
            assert alpha == pytest.approx(C, rel=1e-4) and lacking >= -1e-4
        v = before[1] * d * d
        root = root_of_u(alpha, v)
        assert deviation == pytest.approx(root, rel=1e-3)
    assert (capped if variant == 1 and C < 1 else exact) >= 20


def view_difference(model: Any, y: int) -> float | None:
    """d = (x - p_y) - (x - p_s) of two classes."""
    arrays = model._learner.arrays()
    means = arrays["statistics.sums"][0][0] / np.maximum(arrays["statistics.totals"][0], 1e-30)
    if len(means) < 2:
        return None
    code = model._learner.classes.code(y)
    return float(means[1 - code] - means[code])


def weight_and_variance(model: Any) -> tuple[float, float]:
    arrays = model._learner.arrays()
    evidence = float(arrays["preconditioner.evidence.0"][0, 0])
    return float(arrays["weights.values.0"][0, 0]), 1 / (1 + evidence)


def test_arow_worked_by_hand():
    """d = (1, -1) on one feature: loss 1, variance 2, r = 1: alpha = 1 / 3, 1 / Sigma = 2."""
    model = OnlineClassifier("multi", update="arow").fit([[1.0], [1.0], [1.0]], [0, 1, 0])
    arrays = model._learner.arrays()
    assert arrays["weights.values.0"][0].tolist() == pytest.approx([1 / 3, -1 / 3])
    assert arrays["preconditioner.evidence.0"][0].tolist() == [1, 1]


# ---- units --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preconditioner", "rule"),
    [
        *product(
            ["scale-free", "scale-free-adagrad"],
            ["ovr-squared", "softmax", "pa1", "perceptron", "hinge"],
        ),
        *product(["coin-betting"], ["ovr-squared", "softmax", "simperc", "perceptron", "hinge"]),
    ],
)
def test_the_unit_of_a_feature_does_not_matter(preconditioner, rule):
    stream = make_stream(8, n_rows=60)
    units = np.array([1024.0, 1.0, 1 / 4096, 1.0, 2.0**20, 1.0, 2.0**-20])
    first, other = (
        run_trials(
            OnlineClassifier("multi", update=rule, preconditioner=preconditioner), X, stream.y
        )[0]
        for X in (stream.X, stream.X * units)
    )
    assert first.tolist() == other.tolist()
    thousand = OnlineClassifier("multi", update=rule, preconditioner=preconditioner)
    third = run_trials(thousand, stream.X * [1000, 1, 1, 1, 1, 1, 1e-3], stream.y)[0]
    assert (first != third).sum() <= 1  # powers of ten round


def test_in_another_preconditioner_units_matter():
    stream = make_stream(8, n_rows=60)
    first, other = (
        run_trials(OnlineClassifier("multi", update="ovr-squared"), X, stream.y)[0]
        for X in (stream.X, stream.X * [1000, 1, 1, 1, 1, 1, 1])
    )
    assert (first != other).sum() > 5


# ---- distance over gradients --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hypotheses", "half_life"),
    [("multi", None), ("hybrid", None), ("multi", 9.0), ("begun", None)],
)
def test_the_step_size_is_that_of_the_smallest_bound(hypotheses, half_life):
    """After 1 to 8 trials, 10, 12, 15, ...; it never decreases, and is what AdaGrad is given."""
    if hypotheses == "begun":
        hypotheses = [Shared(Distance(), begins_at=0.5)]
    model = OnlineClassifier(
        hypotheses,
        update="softmax",
        preconditioner=DistanceAdaGrad(start=0.01),
        half_life=half_life,
    )
    stream, due, pace = make_stream(20, n_rows=200), 1, 0.01
    labels = np.argmax(stream.X[:, :3], axis=1).tolist()
    renewed = 0
    for t, (x, y) in enumerate(zip(stream.X, labels, strict=True), start=1):
        model.learn_one(x, y)
        arrays = model._learner.arrays()
        found = 0.01 * arrays["preconditioner.pace"][0]
        if t >= due:
            due = t + max(1, t // 4)
            parts = range(len(model._learner.parts))
            begun = [getattr(part, "begins_at", 0.0) for part in model._learner.parts]
            squares, distances = (
                np.concatenate([table.ravel() for table in tables]).astype(float)
                for tables in (
                    [arrays[f"preconditioner.evidence.{i}"] for i in parts],
                    [arrays[f"weights.values.{i}"] - begun[i] for i in parts],
                )
            )
            before, weight = pace, 1.0 if half_life is None else arrays["decay.row"][0]
            weight /= 1.0 if half_life is None else 2 ** (1 / half_life)
            if squares.any():
                pace = max(pace, pace_of(distances, squares) / weight)
            renewed += pace > before
        assert found == pytest.approx(pace, rel=1e-5)
    assert renewed >= 2


@pytest.mark.parametrize("rule", ["pa1", "simproj", "softmax", "ovr-squared", "hinge"])
def test_until_it_grows_the_step_size_is_that_of_the_rule(rule):
    stream, parameter = make_stream(21, n_rows=2), "C" if rule in ("pa1", "simproj") else "eta"
    ours = OnlineClassifier(
        "multi", update=rule, preconditioner="distance-adagrad", on_new_class="learn"
    )
    other = OnlineClassifier(
        *("multi", "auto"),
        **{"update": rule, "preconditioner": "adagrad", "on_new_class": "learn", parameter: 0.1},
    )
    for model in (ours, other):
        model.partial_fit(stream.X, stream.y)
    assert ours._learner.arrays()["preconditioner.pace"][0] == 1
    np.testing.assert_allclose(ours._scores(stream.X), other._scores(stream.X), rtol=1e-5)


# ---- coin betting -------------------------------------------------------------------------------


def test_bets_worked_by_hand():
    """x = 2: theta = 2, S^2 + M^2 = 8, w = 1/8; x = 1: wealth 9/8, theta = 3 = root of 5 + 4."""
    model = OnlineClassifier("multi", update="hinge", preconditioner="coin-betting")
    model.partial_fit([[0.0], [0.0], [2.0]], [*"aba"])
    assert model._learner.arrays()["weights.values.0"][0].tolist() == [0.125, -0.125]
    model.learn_one([1.0], "a")
    arrays = model._learner.arrays()
    assert arrays["weights.values.0"][0].tolist() == pytest.approx([9 / 48, -9 / 48])
    assert arrays["preconditioner.winnings.0"][0].tolist() == pytest.approx([1 / 8, 1 / 8])
    assert arrays["preconditioner.sums.0"][0].tolist() == [3, -3]


@pytest.mark.parametrize("rule", ["softmax", "hinge", "logistic", "ovr-squared", "ovr-hinge"])
@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
def test_the_parameters_of_a_rule_do_not_matter_to_bets(rule, hypotheses):
    stream, found = make_stream(19, n_rows=60), []
    for eta, invariant in product([0.01, 100.0], [False, True]):
        update = replace(RULES[rule](), eta=eta, invariant=invariant)
        model = OnlineClassifier(hypotheses, update=update, preconditioner="coin-betting")
        found.append(model.partial_fit(stream.X, stream.y)._scores(stream.X))
    assert all((scores == found[0]).all() for scores in found)


@examples(20)
@given(stream=streams(max_rows=40), weighted=st.booleans())
def test_no_bet_is_more_than_half_of_the_wealth(stream, weighted):
    """Kempka et al. 2019: whatever the next gradient up to M, the wealth stays above 0."""
    model = OnlineClassifier("multi", update="ovr-squared", preconditioner="coin-betting")
    for x, y, weight in zip(stream.X, stream.y, stream.weights, strict=True):
        model.partial_fit([x], [y], sample_weight=[weight if weighted else 1.0])
        arrays = model._learner.arrays()
        sums, won, sizes, squares, w = (
            arrays[f"{name}.0"].astype(float)
            for name in (
                *(f"preconditioner.{each}" for each in ("sums", "winnings", "sizes", "evidence")),
                "weights.values",
            )
        )
        assert (won > -1).all() and np.isfinite(sums).all()
        assert (abs(w) * sizes <= (1 + won) / 2 * (1 + 1e-5) + 1e-6).all()
        assert (squares >= 0).all()


# ---- new classes
# ----------------------------------------------------------------------------------


@pytest.mark.parametrize("on_new_class", ["register", "learn", "inherit"])
def test_a_class_is_no_mistake_and_no_prediction_before_it_is_met(on_new_class):
    stream = make_stream(9, n_rows=50, n_classes=6)
    model = OnlineClassifier("hybrid", "distance", "ovr-squared", on_new_class=on_new_class)
    predictions, codes = run_trials(model, stream.X, stream.y)
    known = np.maximum.accumulate(np.append(-1, codes[:-1]))
    assert (predictions <= known).all()
    assert model.n_mistakes_ == ((predictions != codes) & (codes <= known)).sum()
    assert model.classes_.tolist() == list(range(6))
    assert model.decision_function(stream.X).shape == (50, 6)


def test_a_new_class_starts_with_the_weights_of_the_virtual_class():
    X = np.array([[1.0, 0.0], [1.0, 0.5], [1.0, -0.5], [0.0, 0.0]])
    model = OnlineClassifier(
        "multi", update="ovr-squared", preconditioner="adagrad", on_new_class="inherit"
    )
    model.fit(X[:3], ["a", "a", "a"])
    before = model._learner.arrays()
    assert (
        before["weights.values.0"].shape == (2, 2)
        and (before["weights.values.0"][0] * [1, -1] > 0).all()
    )
    after = model.learn_one(X[3], "b")._learner.arrays()  # a row of zeros moves nothing
    for name in ("weights.values.0", "preconditioner.evidence.0"):
        stored = before[name][:, [0, 1, 1]]
        np.testing.assert_array_equal(after[name], stored)


@pytest.mark.parametrize("on_new_class", ["learn", "inherit"])
def test_a_first_instance_is_learnt_from(on_new_class):
    X = np.eye(3)
    model = OnlineClassifier("multi", update="ovr-squared", on_new_class=on_new_class)
    assert model.fit(X, [*"abc"]).predict(X).tolist() == [*"abc"]


# ---- saved, resumed, grown ----------------------------------------------------------------------

KEPT = [
    ("ovr-squared", "hybrid", "adagrad", "inherit"),
    ("scw2", "hybrid", "auto", "inherit"),
    ("softmax", "multi", "scale-free-adagrad", "inherit"),
    ("pa1", "multi", "scale-free", "learn"),
    ("softmax", "hybrid", "coin-betting", "inherit"),
    ("pa1", "hybrid", "distance-adagrad", "inherit"),
    ("pa1", "hybrid", homemade.slowing, "learn"),
]


@pytest.mark.parametrize("parts", KEPT, ids=str)
def test_5_evidence_and_virtual_class_grow_and_go_on(parts, tmp_path):
    """More classes and features than the capacity, with files and pickles in between."""
    rule, hypotheses, preconditioner, on_new_class = parts
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat(np.arange(40), 4)).tolist()
    y = list(dict.fromkeys(y)) + y
    rows = [
        {f"x{j}": float(rng.normal() + (j == c)) for j in rng.integers(t + 3, size=6)}
        for t, c in enumerate(y)
    ]

    def fresh() -> Any:
        view = "auto" if hypotheses == "multi" else "frequency"
        return OnlineClassifier(
            hypotheses, view, rule, preconditioner=preconditioner, on_new_class=on_new_class
        )

    whole, pieces = fresh().partial_fit(rows, y), fresh()
    for i in range(0, len(y), 30):
        pieces.partial_fit(rows[i : i + 30], y[i : i + 30])
        pieces = pickle.loads(pickle.dumps(pieces))
        pieces.save(tmp_path / "model")
        pieces = load(tmp_path / "model", custom=[homemade.slowing])
    assert_same(whole, pieces, rows[:9])
    assert_same_but_declared(pieces, fresh().partial_fit(rows, y, classes=range(99)), rows[:9])


# ---- bad inputs ---------------------------------------------------------------------------------

HARSH = {
    "huge": lambda X: X * 1e30,
    "tiny": lambda X: X * 1e-30,
    "small": lambda X: X * 1e-20,
    "huge after small": lambda X: X * np.where(np.arange(len(X)) < 20, 1e-6, 1e30)[:, None],
    "huge for once": lambda X: X * np.where(np.arange(len(X)) == 20, 1e30, 1.0)[:, None],
    "zeros first": lambda X: X * (np.arange(len(X)) > 10)[:, None],
    "constant column": lambda X: np.hstack([np.ones((len(X), 1)), X]),
    "one value": lambda X: np.ones_like(X),
}
RULES_MEASURED = ["ovr-squared", "ovr-logistic", "ovr-hinge", "pa1", "softmax", "arow", "scw1"]


@pytest.mark.parametrize("harsh", HARSH)
@pytest.mark.parametrize("preconditioner", [*PRECONDITIONERS, homemade.slowing, "auto"])
@pytest.mark.parametrize("on_new_class", ["register", "inherit"])
def test_harsh_values_leave_finite_weights(harsh, preconditioner, on_new_class):
    stream = make_stream(12, n_rows=50)
    X = HARSH[harsh](stream.X)
    for rule, invariant in [*product(RULES_MEASURED, [False]), ("softmax", True)]:
        if rule in ("arow", "scw1") and preconditioner != "auto":
            continue
        if rule == "pa1" and preconditioner == "coin-betting":
            continue
        update = SoftmaxGradient(invariant=True) if invariant else rule
        model = OnlineClassifier(
            "multi", update=update, preconditioner=preconditioner, on_new_class=on_new_class
        )
        model.learn_one(np.zeros(X.shape[1]), 0)
        weights = np.resize([2.0**-20, 1.0, 2.0**20], len(X))
        for named in (None, weights):
            try:
                model.partial_fit(X, stream.y, sample_weight=named)
            except KeslerError as error:
                assert_sentence(error)
        arrays = model._learner.arrays()
        assert all(np.isfinite(array).all() for array in arrays.values()), rule


@pytest.mark.parametrize(
    "preconditioner", ["adagrad", "scale-free", "scale-free-adagrad", "coin-betting"]
)
def test_mistakes_recover_where_the_scale_jumps(preconditioner):
    stream = make_stream(13, n_rows=1200, n_classes=3, density=1.0)
    X = stream.X * np.where(np.arange(1200) < 300, 1.0, 1e6)[:, None]
    model = OnlineClassifier("multi", update="ovr-squared", preconditioner=preconditioner)
    predictions, codes = run_trials(model, X, stream.y)
    wrong = predictions != codes
    assert wrong[900:].mean() <= wrong[100:300].mean() + 0.05


# ---- what cannot be -----------------------------------------------------------------------------

CANNOT_BE: dict[str, tuple[Any, str]] = {
    "mira": (
        lambda: OnlineClassifier("multi", update="mira", link="p-norm"),
        "not quadratic",
    ),
    "link": (lambda: OnlineClassifier(link="p-norm", preconditioner="adagrad"), "linear link"),
    "kernel": (lambda: OnlineClassifier(kernel="rbf", preconditioner="adagrad"), "no weights"),
    "kernel and rule": (lambda: OnlineClassifier(kernel="rbf", update="arow"), "no weights"),
    "maps": (lambda: OnlineClassifier("hybrid", preconditioner="scale-free"), "multi"),
    "two metrics": (
        lambda: OnlineClassifier(update="scw1", preconditioner="adagrad"),
        "brings along",
    ),
    "bets and norms": (
        lambda: OnlineClassifier(update="pa1", preconditioner="coin-betting"),
        "from their norms",
    ),
    "bets and half-life": (
        lambda: OnlineClassifier(update="hinge", preconditioner="coin-betting", half_life=9),
        "wealth",
    ),
    "no preconditioner": (lambda: OnlineClassifier(preconditioner="newton"), "not known"),
    "rest and link": (
        lambda: OnlineClassifier(update="ovr-hinge", link="positive"),
        "score of the rest",
    ),
    "rest and ranks": (lambda: OnlineOrdinalClassifier(update="ovr-squared"), "order of ranks"),
    "no new classes": (lambda: OnlineClassifier(on_new_class="never"), "is unknown"),
    "virtual and ranks": (lambda: OnlineOrdinalClassifier(on_new_class="inherit"), "order"),
    "virtual and costs": (
        lambda: OnlineClassifier(on_new_class="inherit", costs={(0, 1): 2.0}),
        "costs",
    ),
    "virtual and kernel": (
        lambda: OnlineClassifier(on_new_class="inherit", kernel="rbf"),
        "inherit",
    ),
    "virtual and link": (
        lambda: OnlineClassifier("multi", on_new_class="inherit", link="p-norm"),
        "inherit",
    ),
}


@pytest.mark.parametrize("name", CANNOT_BE)
def test_what_cannot_be_is_said(name):
    make, word = CANNOT_BE[name]
    with pytest.raises(KeslerError, match=word) as caught:
        make().fit([[1.0, 2.0], [2.0, 1.0]] * 2, [0, 1] * 2)
    assert_sentence(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda r=r: AROW(r) for r in (0, -1.0, float("nan"), "1")),
        *(lambda r=r: Confidence(r) for r in (0, float("inf"), None)),
        *(lambda e=e: SCW(eta=e) for e in (0.5, 1.0, "high", float("nan"))),
        *(lambda e=e: OneVsRestSquared(eta=e) for e in (0, float("inf"), None)),
        lambda: SoftConfidence(0.0),
        lambda: DistanceAdaGrad(start=0.0),
        lambda: SCW(variant=3),
        lambda: SCW(C=0.0),
        lambda: HingeGradient(invariant=1),  # type: ignore[arg-type]
        lambda: OneVsRestHinge(invariant=None),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_are_none_are_refused(make):
    with pytest.raises(KeslerError) as caught:
        make()
    assert_sentence(caught.value)


# ---- a user's own -------------------------------------------------------------------------------


@preconditioner
def like_adagrad(evidence):
    """Return what `AdaGrad` returns."""
    return 1.0 / math.sqrt(evidence)


@preconditioner(parameters=(1.0,))
def below_zero(evidence, q):
    """Return what no step size is."""
    return -q[0]


@preconditioner
def not_arithmetic(evidence):
    """Do what Numba cannot compile."""
    return len(format(evidence, ".3f"))


@pytest.mark.parametrize("rule", ["pa1", "softmax", "ovr-squared", "simproj", "perceptron"])
@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
def test_adagrad_written_by_a_user_is_adagrad(rule, hypotheses):
    stream = make_stream(6)
    ours, own = (
        OnlineClassifier(hypotheses, "product-mean", rule, preconditioner=preconditioner).fit(
            stream.X, stream.y
        )
        for preconditioner in ("adagrad", like_adagrad)
    )
    scores = ours.decision_function(stream.X)
    np.testing.assert_allclose(own.decision_function(stream.X), scores, rtol=1e-3, atol=1e-4)


def test_a_users_preconditioner_is_copied_and_kept_with_its_parameters(tmp_path):
    own = homemade.slowing.with_parameters(0.25)
    assert own != homemade.slowing and repr(own) == "slowing(0.25,)"
    assert pickle.loads(pickle.dumps(own)) == own and copy.deepcopy(own) == own
    stream = make_stream(6)
    model = OnlineClassifier("multi", update="pa1", preconditioner=own).fit(stream.X, stream.y)
    model.save(tmp_path / "model")
    stored = load(tmp_path / "model", custom=[homemade.slowing])
    assert stored.preconditioner == own
    other = OnlineClassifier("multi", update="pa1", preconditioner=homemade.slowing)
    assert not np.array_equal(
        other.fit(stream.X, stream.y).decision_function(stream.X), model.decision_function(stream.X)
    )
    np.testing.assert_array_equal(
        stored.decision_function(stream.X), model.decision_function(stream.X)
    )
    with pytest.raises(KeslerError, match=r"the preconditioner homemade.slowing, .* custom=\["):
        load(tmp_path / "model")


@pytest.mark.parametrize("values", [(1.0,), (float("nan"),), (-float("inf"),), (-1e300,)])
def test_a_rate_that_is_none_is_a_sentence_and_moves_nothing(values):
    preconditioner = below_zero.with_parameters(*values)
    model = OnlineClassifier("multi", update="perceptron", preconditioner=preconditioner)
    model.partial_fit([[1.0, 2.0], [2.0, 1.0]], [0, 1])  # known, and not learnt from
    with pytest.raises(KeslerError, match=r"below_zero failed|float32 can hold"):
        model.partial_fit([[1.0, 2.0], [2.0, 1.0]] * 4, [0, 1] * 4)
    assert not model._learner.weights.any()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: preconditioner(len), "plain Python function"),
        (lambda: preconditioner(lambda evidence, q, more: 1.0), "takes 3 arguments"),
        (
            lambda: OnlineClassifier(preconditioner=lambda evidence: 1.0).fit([[1.0]], [0]),
            "decorated with",
        ),
        (
            lambda: OnlineClassifier(link="p-norm", update="pa1", preconditioner=like_adagrad).fit(
                [[1.0]], [0]
            ),
            "linear link",
        ),
        (
            lambda: OnlineClassifier(kernel="rbf", update="pa1", preconditioner=like_adagrad).fit(
                [[1.0]], [0]
            ),
            "no weights",
        ),
    ],
)
def test_what_no_preconditioner_of_ones_own_can_be_is_said(make, word):
    with pytest.raises(KeslerError, match=word) as caught:
        make()
    assert_sentence(caught.value)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_what_cannot_be_compiled_is_said():
    model = OnlineClassifier("multi", update="pa1", preconditioner=not_arithmetic)
    with pytest.raises(KeslerError, match=r"not_arithmetic.* cannot be compiled"):
        model.fit([[1.0], [-1.0]], [0, 1])


def test_linear_max_has_no_preconditioner():
    assert "preconditioner" not in LinearMax("romma").get_params()
    assert AdaGrad() == AdaGrad(scale_free=False)


def test_what_a_preconditioner_keeps_is_a_field_of_its_state():
    """A name that is no field would allocate nothing, without a word."""
    fields = {*fields_of(records.Preconditioner)}
    for name, make in PRECONDITIONERS.items():
        assert {*make().keeps} <= fields, name
