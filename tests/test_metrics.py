"""Step sizes of weights, losses against the rest, steps that do not overshoot, newcomers."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_pooled
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
)
from kesler.estimators.defaults import of_measurements
from kesler.geometry import METRICS, AdaGrad, Confidence, SoftConfidence
from kesler.updates import (
    AROW,
    SCW,
    HingeGradient,
    LogisticGradient,
    OneVsRestHinge,
    OneVsRestLogistic,
    OneVsRestSquared,
    SoftmaxGradient,
)
from reference_metrics import PHI, root_of_u
from registry import DEFAULTS, ROWS, SETS, Row
from streams import Stream, assert_same, make_stream, streams
from test_answers import told_to_oracle
from test_laws import assert_sentence, every_row, examples
from twin import State, Twin

NOT_PLAIN = [
    row
    for row in ROWS
    if not row.is_plain and row.link == "linear" and row.algorithm is None
    if row.conditioning is None and row.has_oracle
]

# ---- every trial equals its twin ----------------------------------------------------------------


def follow(twin: Twin, model: Any, told: Any, weights: Any = None, rows: Any = None) -> int:
    """Learn row by row beside the twin; return how many trials could be compared.

    The model is given `rows`, where the twin is given them as trials see them.
    """
    checked = 0
    weights = np.ones(len(twin.X)) if weights is None else weights
    rows = twin.X if rows is None else rows
    for given_x, x, named, answer, weight in zip(
        rows, twin.X, told, twin.answers, weights, strict=True
    ):
        before = twin.state_of(model) if hasattr(model, "_machine") else empty(twin)
        _, after, clear = twin.step(x, answer, before, weight)
        model.partial_fit([given_x], [named], sample_weight=[weight])
        twin.take_in(x, answer, weight)
        if clear:
            assert_near(twin.state_of(model), twin.faded(after), twin.rule)
            checked += 1
    return checked


def empty(twin: Twin) -> State:
    begun = [part.get("begins_at", 0.0) for part in twin.parts]
    v = np.repeat(begun, [twin.n * size for size in twin.sizes()])
    return State(v, np.zeros(len(v)))


def assert_near(ours: State, theirs: State, rule: str) -> None:
    near = 2e-4 if rule == "mira" else 2e-5
    for found, expected in [(ours.v, theirs.v), (ours.evidence, theirs.evidence)]:
        atol = near * max(1.0, float(abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def twin_of(row: Row, stream: Stream, C: float) -> Twin:
    return Twin(
        row.oracle(),
        row.rule,
        C,
        [{y: 0} for y in stream.y.tolist()],
        1,
        list(range(stream.n_classes)),
        SETS,
        stream.X,
        metric="euclidean" if row.metric == "auto" else row.metric,
        newcomers=row.newcomers,
        invariant=True if row.invariant else None,
        half_life=row.half_life or np.inf,
    )


@every_row(NOT_PLAIN)
@examples(2)
@given(stream=streams(max_rows=24), C=st.sampled_from([0.2, 1.0]), weighted=st.booleans())
def test_7_every_trial_equals_its_twin(row, stream, C, weighted):
    weights = stream.weights if weighted else None
    n_checked = follow(twin_of(row, stream, C), row.learner(C=C), stream.y, weights)
    assert n_checked >= len(stream) // 3


@pytest.mark.parametrize(("family", "view"), [("multi", None), ("hybrid", "distance")])
@pytest.mark.parametrize("rule", ["ovr-squared", "softmax", "pa1"])
def test_7_rates_in_units_of_rows_equal_their_twin(rule, family, view):
    row, stream = Row(rule, family, view), make_stream(6)
    twin = replace(twin_of(row, stream, 0.5), metric="length-free-adagrad")
    model = row.learner(C=0.5).set_params(metric=AdaGrad(length_free=True))
    assert follow(twin, model, stream.y, stream.weights) >= 20


def with_prior(x: Any, past: Any) -> Any:
    """The view of measurements: of the constant before them, how common the class is."""
    phi = reference_pooled.gaussian_ratio(x, past)
    _, w, own = reference_pooled.unpacked(past)
    phi[0] = x[0] * np.log(w[own].sum() / w.sum())
    return phi


@pytest.mark.parametrize("size", [(60, 6, 7), (120, 21, 37)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", ["words", "measurements", "default"])
def test_7_every_trial_of_the_default_learner_equals_its_twin(settings, weighted, size):
    """All its parts together: conditioned rows, weights that begin, a view, AdaGrad, newcomers.

    Of many classes a few move, or most; and there are more of them, and words, than a line holds.
    """
    (row,) = [row for row in ROWS if row.settings == settings]
    stream = make_stream(18, *size)
    weights = stream.weights if weighted else None
    X = row.seen(stream.X, weights)
    made = DEFAULTS[settings]() or of_measurements()
    twin = replace(twin_of(row, stream, made["update"].eta), X=X)
    if settings != "words":
        X = np.hstack([np.ones((len(X), 1)), X])
        twin = replace(twin, X=X, metric="length-free-adagrad")
        twin.parts[1] |= {"map": {"view": with_prior}}
    twin.parts[1] |= {"begins_at": made["hypotheses"][1].begins_at}
    assert follow(twin, row.learner(), stream.y, weights, stream.X) >= 40


FACES = {"sets": OnlineMultilabelClassifier, "rankings": OnlineLabelRanker}
MOVED = [
    *(("ovr-squared", "adagrad"), ("ovr-logistic", "confidence"), ("softmax", "adagrad")),
    *(("simproj", "confidence"), ("scw1", "auto"), ("pa1", "auto")),
]


@pytest.mark.parametrize(
    ("face", "family", "moved", "newcomers"),
    [*product(FACES, ["multi", "hybrid", "grouped-view"], MOVED, ["learn", "virtual"])],
    ids=str,
)
def test_7_label_sets_and_partial_rankings_equal_their_twin(face, family, moved, newcomers):
    view = None if family == "multi" else "distance"
    row = Row(moved[0], family, view, metric=moved[1], newcomers=newcomers)
    told, X = overlapping_answers()
    number: dict[int, int] = {}
    named = [[number.setdefault(d, len(number)) for d in each] for each in told]
    answers, rest = told_to_oracle(face, named)
    labels = [None] * (face == "sets") + list(number)
    twin = Twin(
        row.oracle(),
        row.rule,
        0.5,
        answers,
        rest,
        labels,
        {s: [labels.index(d) for d in kept if d in labels] for s, kept in SETS.items()},
        X,
        metric="euclidean" if row.metric == "auto" else row.metric,
        newcomers=newcomers,
    )
    plain = row.learner(C=0.5).get_params(deep=False)
    kept = {name: plain[name] for name in ("hypotheses", "feature_map", "update", "metric")}
    model = FACES[face](**kept, newcomers=newcomers, intercept=0.0)
    twin.past += [[]] * (face == "sets")  # the threshold is there from the start
    assert follow(twin, model, told) >= len(X) // 3


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
    # The product with the first instance stands still, so that both rows are seen alike.
    model = OnlineClassifier(hypotheses, "product", rule)
    stream = make_stream(5, n_rows=60, n_classes=n_classes, n_features=4)
    moved = 0
    for x, y in zip(stream.X / 2, stream.y, strict=True):
        known = hasattr(model, "_machine") and y in model.classes_
        if known and abs(model._scores([x])).max() < 1:
            heavy, twice = copy.deepcopy(model), copy.deepcopy(model)
            heavy.partial_fit([x], [y], sample_weight=[2.0])
            twice.partial_fit([x, x], [y, y])
            one, other = heavy._machine.weights, twice._machine.weights
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
            moved += bool((one != model._machine.weights).any())
        model.learn_one(x, y)
    assert moved >= 20


def test_a_plain_step_of_weight_two_is_not_the_row_twice():
    X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0]
    model = OnlineClassifier("multi", update=OneVsRestSquared(0.3, invariant=False)).fit(X, y)
    heavy, twice = copy.deepcopy(model), copy.deepcopy(model)
    heavy.partial_fit([[1.0, 1.0]], [1], sample_weight=[2.0])
    twice.partial_fit([[1.0, 1.0]] * 2, [1, 1])
    assert abs(heavy._machine.weights - twice._machine.weights).max() > 0.1


@pytest.mark.parametrize("metric", [m for m in METRICS if m != "confidence"])
@pytest.mark.parametrize("rule", [OneVsRestSquared, OneVsRestHinge, OneVsRestLogistic])
@examples(10)
@given(stream=streams(max_rows=24), eta=st.sampled_from([0.1, 10.0, 1e6]))
def test_no_step_goes_past_its_target(metric, rule, stream, eta):
    """However long a row is followed: 1 for the right class, -1 for the others."""
    model = OnlineClassifier("multi", update=rule(eta), metric=metric)
    for x, y in zip(stream.X, stream.y, strict=True):
        model.learn_one(x, y)
        before = model._scores([x])[0]
        after = model.learn_one(x, y)._scores([x])[0]
        sides = np.where(np.arange(len(after)) == model._machine.classes.code(y), 1, -1)
        moved = (after - before) * sides
        if rule is not OneVsRestLogistic:
            past = np.maximum(before * sides, 1)
            assert (after * sides <= past + 1e-4 * (1 + abs(before))).all()
        assert (moved >= -1e-5 * (1 + abs(before))).all()
        assert np.isfinite(after).all()


def test_metrics_and_flows_join_to_vowpal_wabbits_update():
    """Worked by hand: y = 1, x = 2, eta = 0.5; g = -2, G = 16, v = 4 / 4 = 1."""
    model = OnlineClassifier("multi", update="ovr-squared", metric="adagrad", newcomers="learn")
    model.fit([[0.0], [2.0]], ["a", "b"])
    u = 1 - np.exp(-1.0)
    assert model._machine.arrays()["weights.0"][0].tolist() == pytest.approx([-u / 2, u / 2])
    assert model._machine.arrays()["evidence.0"][0].tolist() == pytest.approx([16, 16])


# ---- confidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [1, 2])
@pytest.mark.parametrize("C", [0.05, 1e9])
def test_a_confident_step_makes_its_margin_probable_enough(variant, C):
    """Where there is one weight, the diagonal is all: margin + slack = phi deviation, or C."""
    model = OnlineClassifier("single", "difference", SCW(C, variant=variant), newcomers="learn")
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
    arrays = model._machine.arrays()
    means = arrays["statistics.mean"][0] / np.maximum(arrays["totals.mean"], 1e-30)
    if len(means) < 2:
        return None
    code = model._machine.classes.code(y)
    return float(means[1 - code] - means[code])


def weight_and_variance(model: Any) -> tuple[float, float]:
    arrays = model._machine.arrays()
    evidence = float(arrays["evidence.0"][0, 0])
    return float(arrays["weights.0"][0, 0]), 1 / (1 + evidence)


def test_arow_worked_by_hand():
    """d = (1, -1) on one feature: loss 1, variance 2, r = 1: alpha = 1 / 3, 1 / Sigma = 2."""
    model = OnlineClassifier("multi", update="arow").fit([[1.0], [1.0], [1.0]], [0, 1, 0])
    arrays = model._machine.arrays()
    assert arrays["weights.0"][0].tolist() == pytest.approx([1 / 3, -1 / 3])
    assert arrays["evidence.0"][0].tolist() == [1, 1]


# ---- units --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["scale-free", "scale-free-adagrad"])
@pytest.mark.parametrize("rule", ["ovr-squared", "softmax", "pa1", "perceptron", "hinge"])
def test_the_unit_of_a_feature_does_not_matter(metric, rule):
    stream = make_stream(8, n_rows=60)
    units = np.array([1024.0, 1.0, 1 / 4096, 1.0, 2.0**20, 1.0, 2.0**-20])
    first, other = (
        OnlineClassifier("multi", update=rule, metric=metric).run_trials(X, stream.y)[0]
        for X in (stream.X, stream.X * units)
    )
    assert first.tolist() == other.tolist()
    thousand = OnlineClassifier("multi", update=rule, metric=metric)
    third = thousand.run_trials(stream.X * [1000, 1, 1, 1, 1, 1, 1e-3], stream.y)[0]
    assert (first != third).sum() <= 1  # powers of ten round


def test_in_another_metric_units_matter():
    stream = make_stream(8, n_rows=60)
    first, other = (
        OnlineClassifier("multi", update="ovr-squared").run_trials(X, stream.y)[0]
        for X in (stream.X, stream.X * [1000, 1, 1, 1, 1, 1, 1])
    )
    assert (first != other).sum() > 5


# ---- newcomers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("newcomers", ["wait", "learn", "virtual"])
def test_a_class_is_no_mistake_and_no_prediction_before_it_is_met(newcomers):
    stream = make_stream(9, n_rows=50, n_classes=6)
    model = OnlineClassifier("hybrid", "distance", "ovr-squared", newcomers=newcomers)
    predictions, codes = model.run_trials(stream.X, stream.y)
    known = np.maximum.accumulate(np.append(-1, codes[:-1]))
    assert (predictions <= known).all()
    assert model.n_mistakes_ == ((predictions != codes) & (codes <= known)).sum()
    assert model.classes_.tolist() == list(range(6))
    assert model.decision_function(stream.X).shape == (50, 6)


def test_a_newcomer_begins_with_what_the_virtual_class_has():
    X = np.array([[1.0, 0.0], [1.0, 0.5], [1.0, -0.5], [0.0, 0.0]])
    model = OnlineClassifier("multi", update="ovr-squared", metric="adagrad", newcomers="virtual")
    model.fit(X[:3], ["a", "a", "a"])
    before = model._machine.arrays()
    assert before["weights.0"].shape == (2, 2) and (before["weights.0"][0] * [1, -1] > 0).all()
    after = model.learn_one(X[3], "b")._machine.arrays()  # a row of zeros moves nothing
    for name in ("weights.0", "evidence.0"):
        kept = before[name][:, [0, 1, 1]]
        np.testing.assert_array_equal(after[name], kept)


@pytest.mark.parametrize("newcomers", ["learn", "virtual"])
def test_a_first_instance_is_learnt_from(newcomers):
    X = np.eye(3)
    model = OnlineClassifier("multi", update="ovr-squared", newcomers=newcomers)
    assert model.fit(X, [*"abc"]).predict(X).tolist() == [*"abc"]


# ---- saved, resumed, grown ----------------------------------------------------------------------

KEPT = [
    ("ovr-squared", "hybrid", "adagrad", "virtual"),
    ("scw2", "hybrid", "auto", "virtual"),
    ("softmax", "multi", "scale-free-adagrad", "virtual"),
    ("pa1", "multi", "scale-free", "learn"),
]


@pytest.mark.parametrize("parts", KEPT, ids=str)
def test_5_evidence_and_virtual_class_grow_and_go_on(parts, tmp_path):
    """More classes and features than there is room for, in files and pickles on the way."""
    rule, hypotheses, metric, newcomers = parts
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat(np.arange(40), 4)).tolist()
    y = list(dict.fromkeys(y)) + y
    rows = [
        {f"x{j}": float(rng.normal() + (j == c)) for j in rng.integers(t + 3, size=6)}
        for t, c in enumerate(y)
    ]

    def fresh() -> Any:
        view = "auto" if hypotheses == "multi" else "frequency"
        return OnlineClassifier(hypotheses, view, rule, metric=metric, newcomers=newcomers)

    whole, pieces = fresh().partial_fit(rows, y), fresh()
    for i in range(0, len(y), 30):
        pieces.partial_fit(rows[i : i + 30], y[i : i + 30])
        pieces = pickle.loads(pickle.dumps(pieces))
        pieces.save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    assert_same(whole, pieces, rows[:9])
    assert_same(fresh().partial_fit(rows, y, classes=range(99)), pieces, rows[:9])


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
@pytest.mark.parametrize("metric", [*METRICS, "auto"])
@pytest.mark.parametrize("newcomers", ["wait", "virtual"])
def test_harsh_values_leave_finite_weights(harsh, metric, newcomers):
    stream = make_stream(12, n_rows=50)
    X = HARSH[harsh](stream.X)
    for rule, invariant in [*product(RULES_MEASURED, [False]), ("softmax", True)]:
        if rule in ("arow", "scw1") and metric != "auto":
            continue
        update = SoftmaxGradient(invariant=True) if invariant else rule
        model = OnlineClassifier("multi", update=update, metric=metric, newcomers=newcomers)
        model.learn_one(np.zeros(X.shape[1]), 0)
        weights = np.resize([2.0**-20, 1.0, 2.0**20], len(X))
        for named in (None, weights):
            try:
                model.partial_fit(X, stream.y, sample_weight=named)
            except KeslerError as error:
                assert_sentence(error)
        arrays = model._machine.arrays()
        assert all(np.isfinite(array).all() for array in arrays.values()), rule


@pytest.mark.parametrize("metric", ["adagrad", "scale-free", "scale-free-adagrad"])
def test_mistakes_recover_where_the_scale_jumps(metric):
    stream = make_stream(13, n_rows=1200, n_classes=3, density=1.0)
    X = stream.X * np.where(np.arange(1200) < 300, 1.0, 1e6)[:, None]
    model = OnlineClassifier("multi", update="ovr-squared", metric=metric)
    predictions, codes = model.run_trials(X, stream.y)
    wrong = predictions != codes
    assert wrong[900:].mean() <= wrong[100:300].mean() + 0.05


# ---- what cannot be -----------------------------------------------------------------------------

CANNOT_BE: dict[str, tuple[Any, str]] = {
    "mira": (lambda: OnlineClassifier(update="mira", metric="adagrad"), "quadratic program"),
    "link": (lambda: OnlineClassifier(link="p-norm", metric="adagrad"), "linear link"),
    "kernel": (lambda: OnlineClassifier(kernel="rbf", metric="adagrad"), "no weights"),
    "kernel and rule": (lambda: OnlineClassifier(kernel="rbf", update="arow"), "no weights"),
    "maps": (lambda: OnlineClassifier("hybrid", metric="scale-free"), "multi"),
    "two metrics": (lambda: OnlineClassifier(update="scw1", metric="adagrad"), "brings along"),
    "no metric": (lambda: OnlineClassifier(metric="newton"), "not known"),
    "rest and link": (
        lambda: OnlineClassifier(update="ovr-hinge", link="exponential"),
        "score of the rest",
    ),
    "rest and ranks": (lambda: OnlineOrdinalClassifier(update="ovr-squared"), "order of ranks"),
    "no newcomers": (lambda: OnlineClassifier(newcomers="never"), "not known"),
    "virtual and ranks": (lambda: OnlineOrdinalClassifier(newcomers="virtual"), "order"),
    "virtual and costs": (
        lambda: OnlineClassifier(newcomers="virtual", costs={(0, 1): 2.0}),
        "costs",
    ),
    "virtual and kernel": (
        lambda: OnlineClassifier(newcomers="virtual", kernel="rbf"),
        "virtual",
    ),
    "virtual and link": (
        lambda: OnlineClassifier("multi", newcomers="virtual", link="p-norm"),
        "virtual",
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


def test_linear_max_has_no_metric():
    assert "metric" not in LinearMax("romma").get_params()
    assert AdaGrad() == AdaGrad(scale_free=False)
