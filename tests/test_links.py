"""Links: multiplicative and other geometries, compared with their oracle and theory."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import homemade
import reference_links
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineOrdinalClassifier,
    datasets,
    link_function,
    progressive_validate,
)
from kesler.algorithms import QuasiAdditive
from kesler.links import LINKS, Exponential, Linear, PNorm, resolve_link
from kesler.updates import (
    MIRA,
    RULES,
    HingeGradient,
    LogisticGradient,
    OneVsRestHinge,
    OneVsRestSquared,
    PassiveAggressive,
    SoftmaxGradient,
)
from registry import FAMILIES, PLAIN_RULES, Row, with_strength
from streams import Stream, make_stream, streams

SETTINGS: dict[str, tuple[Any, reference_links.Link]] = {
    "linear": (Linear(), reference_links.linear()),
    "winnow": (Exponential(2.0), reference_links.balanced(2.0, 1.0)),
    "entropic": (Exponential(1.3, total=20.0), reference_links.balanced(1.3, 20.0)),
    "wma": (Exponential(1.5, balanced=False), reference_links.exponential(1.5, 1.0)),
    "positive": (
        Exponential(1.2, balanced=False, total=30.0),
        reference_links.exponential(1.2, 30.0),
    ),
    "exact": (
        Exponential(1.3, total=20.0, exact=True),
        replace(reference_links.balanced(1.3, 20.0), is_exact=True),
    ),
    "exact-positive": (
        Exponential(1.2, balanced=False, total=3.0, exact=True),
        replace(reference_links.exponential(1.2, 3.0), is_exact=True),
    ),
    "p-norm-3": (PNorm(3), reference_links.p_norm(3.0)),
    "p-norm-8": (PNorm(8.0), reference_links.p_norm(8.0)),
    "p-norm-2": (PNorm(2), reference_links.p_norm(2.0)),
    "bent": (homemade.bent, reference_links.elementwise(lambda v: 0.5 + v + v**3)),
    "rising": (homemade.rising, reference_links.RISING),
}
CLASSES = {type(link) for link, _ in SETTINGS.values()}
LINKED = SETTINGS | {
    name: (resolve_link(name), reference_links.LINKS[name])
    for name in LINKS
    if type(resolve_link(name)) not in CLASSES
}
VIEWS = {
    "multi": None,
    "single": "product-mean",
    "hybrid": "product-mean",
    "grouped-view": "distance",
}


def can_run(rule: str, link: str) -> bool:
    requires, has_norm = RULES[rule]().requires, LINKED[link][0].exponent is not None
    if LINKED[link][0].is_exact:
        return requires == "norms" and rule != "pa2"
    return link == "linear" or (requires != "gram" and (requires != "norms" or has_norm))


RUNNING = [
    (rule, link, family)
    for rule in PLAIN_RULES
    for link in LINKED
    for family in VIEWS
    if can_run(rule, link) and (family in ("multi", "hybrid") or rule in ("perceptron", "simproj"))
]


def made(rule: str, link: str, family: str, C: float) -> tuple[OnlineClassifier, Row]:
    row = Row(rule, family, VIEWS[family])
    view = row.feature_map
    hypotheses = FAMILIES[family].hypotheses(None, view)
    update = with_strength(rule, C)
    return OnlineClassifier(hypotheses, view or "auto", update, LINKED[link][0]), row


def compare(rule: str, link: str, family: str, C: float, stream: Stream, least: int) -> None:
    """Scores before each trial are those of the oracle, as far as rounding decides nothing."""
    model, row = made(rule, link, family, C)
    answers = [{int(y): 0} for y in stream.y]
    run = reference_links.reference_link_run(
        stream.X, answers, 1, row.oracle(), rule, LINKED[link][1], C
    )
    stop = run["doubtful"]
    # Where weights are positive, likelihoods hardly differ: nearly every trial is a tie at first.
    assume(stop >= (3 if rule == "logistic" else least))
    trials = model._run_trials(stream.X[:stop], stream.y[:stop], keep_scores=True)
    for ours, theirs, size in zip(trials.scores, run["scores"], run["terms"], strict=False):
        known = ours[: len(theirs)]
        np.testing.assert_allclose(known, theirs, rtol=0, atol=2e-4 * size + 1e-6)
    if stop == len(stream):
        assert model.n_mistakes_ == run["mistakes"]


@pytest.mark.parametrize(("rule", "link", "family"), RUNNING)
@settings(max_examples=5)
@given(stream=streams(), C=st.sampled_from([0.05, 0.5]))
def test_every_link_equals_its_oracle(rule, link, family, stream, C):
    compare(rule, link, family, C, stream, least=6)


def test_by_hand():
    """Two classes, one feature each: a mistake doubles one weight and halves the other."""
    wma = OnlineClassifier("multi", update="perceptron", link=Exponential(2.0, balanced=False))
    wma.fit([[1, 0], [0, 1], [0, 1]], ["a", "b", "b"])
    # All four weights are 1; row 3 ties, a is predicted, so that b's second weight becomes 2 and
    # a's second 1/2: of a sum of 4.5.
    scores = wma.decision_function([[0, 1]])
    np.testing.assert_allclose(scores, (2 - 0.5) / 4.5, rtol=1e-6)


def test_a_late_feature_begins_at_the_weight_of_one():
    link = Exponential(2.0, balanced=False)
    wma = OnlineClassifier("multi", update="perceptron", link=link)
    for x, y in [({"u": 1}, "a"), ({"v": 1}, "b"), ({"v": 1}, "b"), ({"w": 1, "v": 1}, "b")]:
        wma.learn_one(x, y)
    # Features u, v, w of two classes: 4.5 as above, and 2 for w.
    np.testing.assert_allclose(wma.decision_function([{"v": 1}]), 1.5 / 6.5, rtol=1e-6)
    w = wma._scores([{"w": 1}])[0]
    np.testing.assert_allclose(w, [1 / 6.5, 1 / 6.5], rtol=1e-6)


@pytest.mark.parametrize("link", ["winnow", "wma", "p-norm-8", "entropic", "positive"])
@pytest.mark.parametrize("rule", ["perceptron", "simproj", "pa1", "softmax"])
def test_weights_stay_in_range_at_any_length(link, rule):
    """Labels that mean nothing, values of 50, steps of 1: sums grow to thousands."""
    rng = np.random.default_rng(0)
    X, y = rng.choice([-50.0, 0.0, 50.0], size=(6000, 4)), rng.integers(3, size=6000)
    model = OnlineClassifier("multi", update=with_strength(rule, 5.0), link=LINKED[link][0])
    model.fit(X, y)
    arrays = model._learner.arrays()
    assert (
        np.isfinite(arrays["weights.values.0"]).all()
        and np.isfinite(model.decision_function(X)).all()
    )
    if link != "p-norm-8":
        sums = arrays["weights.states.0"][0]
        link_oracle = LINKED[link][1]
        w = link_oracle.weights(sums.ravel(), np.ones(sums.size, dtype=bool)).reshape(sums.shape)
        np.testing.assert_allclose(model._scores(X[:20]), X[:20] @ w, rtol=1e-3, atol=1e-4)


FAR = 30.0
"""The factor of rows that makes sums so large that weights are often recomputed."""


@pytest.mark.parametrize("hypotheses", ["multi", "hybrid"])
@pytest.mark.parametrize("size", [1.0, FAR])
@pytest.mark.parametrize("link", LINKED)
def test_the_mean_is_that_of_the_weights_after_each_row(link, size, hypotheses):
    """Features, classes and memory grow on the way: nothing depends on when."""
    stream = make_stream(5, 90, 6, 40)
    X = size * stream.X
    X[:30, 10:] = 0
    rule = with_strength("conproj" if LINKED[link][0].is_exact else "simperc", 0.5)
    plain, mean = (
        OnlineClassifier(hypotheses, "product-mean", rule, LINKED[link][0], averaged)
        for averaged in (False, True)
    )
    after = []
    for x, y in zip(X, stream.y, strict=True):
        event = {f"f{i}": v for i, v in enumerate(x) if v}
        plain.learn_one(event, y)
        mean.learn_one(event, y)
        after.append(present_weights(plain._learner))
    mean.predict([{f"f{i}": 1.0 for i in range(40)}])  # reads the means of all features
    shape = after[-1][0].shape
    for part, columns in enumerate(mean._learner._columns):
        means = mean._learner._predictor.arrays.weights.values[: shape[0], columns]
        wanted = np.mean([grown(tables[part], begun, means.shape) for *tables, begun in after], 0)
        np.testing.assert_allclose(means, wanted, rtol=1e-5, atol=1e-6 * abs(wanted).max())


def present_weights(learner: Any) -> list[Any]:
    """Return the weights of each part as predictions use them, and that of a new feature."""
    scale = learner.scale
    return [*(w * scale for w in learner.hypothesis_weights()), learner._ask_link(0) * scale]


def grown(table: Any, begun: float, shape: tuple[int, int]) -> Any:
    """Return a table of weights with the initial one for features and classes yet to come."""
    larger = np.full(shape, begun)
    larger[: table.shape[0], : table.shape[1]] = table
    return larger


SETS = {
    **{name: partial(datasets.load, name) for name in ("letter", "pendigits", "landsat")},
    **{f"stream {seed}": partial(make_stream, seed, 400, 6, 9) for seed in (1, 2)},
    "ten to a row": partial(make_stream, 3, 400, 4, 40, density=0.25),
}


CASES = [
    *((rule, "linear") for rule in ("perceptron", "pa1", "simproj", "hinge", "softmax")),
    *(
        ("conproj" if LINKED[link][0].is_exact else "perceptron", link)
        for link in LINKED
        if link != "linear"
    ),
]


@pytest.mark.parametrize(("rule", "link"), CASES)
@pytest.mark.parametrize("name", SETS)
def test_what_is_validated_are_the_means(name, rule, link):
    """A loop of predict_one, then learn_one, makes the same predictions row by row."""
    data = SETS[name]()
    X, y = data.X[:600], np.asarray(data.y[:600]).tolist()
    loop = OnlineClassifier("auto", update=rule, link=LINKED[link][0], averaged=True)
    predictions = []
    for x, label in zip(X, y, strict=True):
        predictions.append(loop.predict_one(x) if loop.n_known_ else None)
        loop.learn_one(x, label)
    model = OnlineClassifier("auto", update=rule, link=LINKED[link][0], averaged=True)
    found = progressive_validate(model, X, y)
    assert [None, *found.predictions.tolist()[1:]] == predictions
    known = [label in y[:t] for t, label in enumerate(y)]
    wrong = sum(a != b for a, b, k in zip(predictions, y, known, strict=True) if k)
    assert found.n_mistakes == model.n_mistakes_ == loop.n_mistakes_ == wrong > 0
    each = OnlineClassifier("auto", update=rule, link=LINKED[link][0], averaged=True)
    assert [each.learn_predict_one(x, label) for x, label in zip(X, y, strict=True)] == predictions


def classes(model: Any, x: Any, y: int) -> tuple[Any, Any]:
    scores = model.decision_function([x])[0]
    return scores[y], np.delete(scores, y)


def ranks(model: Any, x: Any, y: int) -> tuple[Any, Any]:
    scores = model.decision_function([x])[0]
    return np.concatenate([scores[1 : y + 1], scores[y:-1]]), np.concatenate(
        [scores[:y], scores[y + 1 :]]
    )


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(
    ("make", "margins"),
    [
        *(
            (partial(OnlineClassifier, hypotheses, "product"), classes)
            for hypotheses in ("multi", "hybrid")
        ),
        (partial(OnlineOrdinalClassifier, "single", order=[0, 1, 2, 3]), ranks),
        (partial(OnlineOrdinalClassifier, "hybrid", order=[0, 1, 2, 3]), ranks),
    ],
)
def test_an_exact_step_attains_the_margin(make, margins, balanced):
    """Of the pair that was violated most, whatever the features and the kind of answer.

    The map reads first instances, which learning a row does not change. Positive weights of a
    single vector cannot attain each margin between ranks, and then take steps of C.
    """
    if make.args == ("single",) and not balanced:
        pytest.skip("after steps of C all weights but one are 0 beside the sum")
    rng = np.random.default_rng(2)
    link = Exponential(1.5, balanced=balanced, total=40.0, exact=True)
    model = make(update=PassiveAggressive(1e9), link=link)
    X, y = rng.normal(size=(60, 4)), rng.integers(4, size=60)
    model.partial_fit(X[:20], y[:20])
    n_moved = 0
    for x, label in zip(X[20:], y[20:].tolist(), strict=True):
        better, worse = margins(model, x, label)
        before = np.asarray(better - worse)
        model.learn_one(x, label)
        better, worse = margins(model, x, label)
        worst = before.argmin()
        if before[worst] < 1 - 1e-3 and (np.delete(before, worst) > before[worst] + 1e-3).all():
            n_moved += 1
            assert np.asarray(better - worse)[worst] == pytest.approx(1, abs=1e-3)
    assert n_moved > 10


def test_a_margin_that_weights_cannot_attain_takes_the_longest_step():
    for exact in (True, False):
        link = Exponential(math.e, total=0.5, exact=exact)
        model = OnlineClassifier("multi", update=PassiveAggressive(0.25), link=link)
        model.fit([[1.0], [-1.0], [1.0]], ["a", "b", "a"])
        steps = abs(model._learner.arrays()["weights.states.0"][0]).max()
        assert steps == 0.25


def test_averages_bear_noise_better():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(5, 20))
    y = rng.integers(5, size=4000)
    X = centres[y] + 1.5 * rng.normal(size=(4000, 20))
    last, mean = (
        OnlineClassifier("multi", update="perceptron", averaged=averaged).fit(X[:3000], y[:3000])
        for averaged in (False, True)
    )
    assert mean.score(X[3000:], y[3000:]) > last.score(X[3000:], y[3000:]) + 0.03


def test_few_relevant_features_favour_multiplicative_updates():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(3000, 400))
    y = np.argmax(X[:, :3] + 0.1 * rng.random((3000, 3)), axis=1)
    mistakes = {
        link: OnlineClassifier("multi", update="perceptron", link=link).fit(X, y).n_mistakes_
        for link in ("linear", Exponential(1.2), PNorm(12))
    }
    linear, *others = mistakes.values()
    assert max(others) < 0.85 * linear, mistakes


@link_function
def softplus(v):
    return np.log1p(np.exp(-abs(v))) + max(v, 0.0)


def test_a_users_link_begins_at_its_value_at_zero():
    model = OnlineClassifier("multi", update="perceptron", link=softplus)
    model.fit([[1, 0], [0, 1]], ["a", "b"])
    np.testing.assert_allclose(model._scores([[1, 0]])[0], [np.log(2)] * 2, rtol=1e-6)
    assert repr(softplus) == "softplus"


@link_function
def cubic(v):
    return v * v * v


REGRESSIONS = {
    "EG+-": (Exponential(math.e, total=2.0), reference_links.balanced(math.e, 2.0)),
    "p-norm": (PNorm(5), reference_links.p_norm(5.0)),
    "own": (cubic, reference_links.elementwise(lambda v: v**3)),
}
"""Links with f(-v) = -f(v), of which the last declares no norm."""


@pytest.mark.parametrize("name", REGRESSIONS)
def test_gradients_of_squares_are_regression_under_each_odd_link(name):
    """Kivinen and Warmuth (1997), EG+-; Grove et al. (1997) and Gentile (2003), p-norms.

    Targets are +1 and -1, and the weights of both classes have one scale.
    """
    link, oracle = REGRESSIONS[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(60, 4)).astype(np.float32).astype(float)
    y = (X[:, 0] > X[:, 1]).astype(int)
    y[:2] = 0, 1
    model = OnlineClassifier("multi", update=OneVsRestSquared(0.25, invariant=False), link=link)
    sums, seen = np.zeros((4, 2)), np.ones(8, dtype=bool)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        W = oracle.weights(sums.ravel(), seen).reshape(4, 2) if sums.any() else sums
        if t > 1:
            np.testing.assert_allclose(model._scores([x])[0], x @ W, atol=1e-6)
            target = np.where(np.arange(2) == label, 1.0, -1.0)
            towards = np.clip(target * (target - x @ W), 0, 2)
            sums = sums + 2 * 0.25 * np.outer(x, target * towards)
        model.learn_one(x, label)
    assert abs(model._scores(X)).max() > 0.2


def test_the_norm_of_a_link_counts_in_steps_against_the_rest():
    """Of the step that ends where the loss is 0: 1 / (4 ||x||_5^2), with p - 1 = 4."""
    rule = OneVsRestHinge(1e3)
    model = OnlineClassifier("multi", update=rule, link=PNorm(5))
    x = np.array([3.0, 4.0])
    model.fit([x, -x, x], ["a", "b", "a"])
    step = 1 / (4 * (3**5 + 4**5) ** 0.4)
    sums = model._learner.arrays()["weights.states.0"][0]
    np.testing.assert_allclose(sums[:2, :2], np.outer(x, [step, -step]), rtol=1e-6)


@pytest.mark.parametrize(
    ("link", "is_odd"),
    [
        *((name, name != "positive") for name in LINKS),
        *((homemade.stretched, True), (cubic, True), (homemade.rising, False), (softplus, False)),
        (link_function(lambda v: v if v < 8 else 8.0), False),
    ],
)
def test_rules_against_the_rest_require_odd_links(link, is_odd):
    rule = OneVsRestSquared(invariant=False)
    model = OnlineClassifier("multi", update=rule, link=link)
    if is_odd:
        assert model.fit([[1.0], [-1.0]] * 9, [0, 1] * 9).predict([[1.0]]) == [0]
        return
    with pytest.raises(KeslerError, match="is not odd"):
        model.fit([[1.0], [-1.0]], [0, 1])


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Exponential(alpha=1.0), "alpha must be a finite number above 1"),
        (lambda: Exponential(alpha=float("nan")), "alpha must be a finite number above 1"),
        (lambda: Exponential(total=0), "total must be a finite number above 0"),
        (lambda: Exponential(exact=1), "exact=1.: give True or False"),
        (lambda: PNorm(1.5), "p must be a finite number from 2 to 100"),
        (lambda: resolve_link("log"), "choose one of linear, exponential"),
        (lambda: link_function(lambda v, q, r: v), "takes 3 arguments"),
        (lambda: link_function(np.exp), "plain Python function"),
        (lambda: link_function(lambda v: v, exponent=0.5), "exponent of a norm"),
        (lambda: link_function(lambda v: v, exponent=float("nan")), "exponent of a norm"),
        (lambda: link_function(lambda v: v, factor=0.0), "finite number above 0"),
    ],
)
def test_links_refuse_what_makes_no_sense(make, part):
    with pytest.raises(KeslerError, match=part):
        make()


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"update": MIRA(), "link": "exponential"}, "quadratic program"),
        ({"update": "pa1", "link": softplus}, "in which norm the link softplus"),
        ({"update": "pa2", "link": Exponential(exact=True)}, "adds 1 / 2C"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, part):
    for estimator, y in ((OnlineClassifier, [0, 1]), (OnlineLabelRanker, [[0, 1], [1, 0]])):
        with pytest.raises(KeslerError, match=part):
            estimator("multi", **parameters).fit([[1.0], [2.0]], y)


def test_every_name_makes_a_link():
    assert [type(resolve_link(name)) for name in LINKS] == [Linear, Exponential, Exponential, PNorm]


def test_a_step_that_outgrows_all_before_it_is_taken_as_a_whole():
    """A reference of 1e-3 beside a sum of 3: 3,000^99 is no float32."""
    small, large = np.full((5, 3), 1e-3), np.array([5e-4, 3.0, 3.0])
    moved = []
    for label in (0, 1):
        model = OnlineClassifier("multi", update="perceptron", link=PNorm(100))
        model.fit(small, [0, 1, 1, 0, 1]).learn_one(large, label)
        sums = model._learner.arrays()["weights.states.0"][0]
        moved.append(abs(sums[1:]).max() > 2 and abs(sums[0]).max() > 4e-4)
        assert np.isfinite(model.decision_function([large])).all()
    assert any(moved)


def test_a_link_must_be_a_number_where_weights_begin():
    for function, said in (
        (lambda v: 1 / v, "division by zero"),
        (lambda v: v + math.inf, "no finite number at 0"),
    ):
        with pytest.raises(KeslerError, match=said):
            OnlineClassifier("multi", update="perceptron", link=link_function(function)).fit(
                [[1.0]], [0]
            )


EXACT = Exponential(1.3, total=20.0, exact=True)
REFUSES_EXACT = r"does not project on constraints of pairs of classes, which is what exact steps of"


@pytest.mark.parametrize(
    "rule",
    [
        *(r for r in PLAIN_RULES if RULES[r]().requires == "losses"),
        *("ovr-squared", "ovr-hinge", "ovr-logistic", "least-squares"),
        *(HingeGradient(invariant=False), OneVsRestHinge(invariant=False)),
        *(SoftmaxGradient(invariant=True), LogisticGradient(invariant=True)),
    ],
    ids=str,
)
def test_exact_steps_are_refused_by_rules_that_do_not_project(rule):
    model = OnlineClassifier("multi", update=rule, link=EXACT)
    with pytest.raises(KeslerError, match=REFUSES_EXACT):
        model.fit([[1.0], [2.0]], ["a", "b"])


def test_exact_steps_are_refused_by_threshold_algorithms_and_of_ranks():
    for model in (
        LinearMax(QuasiAdditive(EXACT)),
        OnlineOrdinalClassifier(update="logistic", link=EXACT),
    ):
        with pytest.raises(KeslerError, match=REFUSES_EXACT):
            model.fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("rule", ["pa", "pa1", "simproj", "conproj", HingeGradient(invariant=True)])
def test_exact_steps_differ_where_they_are_not_refused(rule):
    stream = make_stream(5, 60, 4, 6)
    exact, bounded = (
        OnlineClassifier("multi", update=rule, link=link).fit(stream.X, stream.y)
        for link in (EXACT, replace(EXACT, exact=False))
    )
    assert (exact._learner.weights != bounded._learner.weights).any()


FAST = {  # beyond the range of float64 at the numbers that are tried
    "sinh": (lambda v: math.sinh(100 * v), True),
    "sinh of NumPy": (lambda v: np.sinh(100 * v), True),
    "power": (lambda v: v**301, True),
    "integer": (lambda v: int(1000 * v) ** 301, True),
    "sigmoid": (lambda v: np.exp(100 * v) / (1 + np.exp(100 * v)) - 0.5, True),
    "exp": (lambda v: math.exp(100 * v), False),
    "exp of NumPy": (lambda v: np.exp(100 * v), False),
    "expm1": (lambda v: math.expm1(1e5 * v), False),
    "expm1 of NumPy": (lambda v: np.expm1(1e5 * v), False),
    "even power": (lambda v: v**300, False),
}


@pytest.mark.parametrize(("function", "is_odd"), FAST.values(), ids=FAST)
def test_links_that_outgrow_float64_are_judged_by_the_numbers_that_they_return(function, is_odd):
    assert link_function(function).is_odd == is_odd
