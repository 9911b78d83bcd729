"""No run beats its theorem, and the theorems are evaluated as the papers have them."""

from __future__ import annotations

import math
from itertools import cycle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import reference_bounds
from cases import ESTIMATORS, some
from kesler import (
    BanditClassifier,
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    Ratings,
    mistake_bound,
    progressive_validate,
)
from kesler.algorithms import QuasiAdditive
from kesler.bounds.mistakes import bound_on_blocks, ratings_bound, weighted_majority_bound
from kesler.data.rows import Rows
from kesler.datasets import load_letter
from kesler.hypotheses import Shared
from kesler.links import Exponential
from kesler.maps import Distance
from kesler.readers import Block
from kesler.updates import SimProj
from registry import MOST_CLASSES, ROWS, SETS, covering
from streams import in_order_of_appearance, make_stream, streams

RULES_WITH_THEOREM = (*reference_bounds.BOUNDS, "mira")
WITH_THEOREM = [
    row
    for row in ROWS
    if row.rule in RULES_WITH_THEOREM
    if row.link == "linear" and row.algorithm in (None, "perceptron")
    if row.preconditioner == "auto" and row.on_new_class == "register" and row.half_life is None
]
MULTIPLICATIVE = [
    row
    for row in ROWS
    if (row.rule == "perceptron" and row.link in ("exponential", "positive"))
    or row.algorithm in ("wma", "winnow")
]
WITHOUT = [r for r in ROWS if r not in WITH_THEOREM and r not in MULTIPLICATIVE]
# A theorem is of a rule, its radius of views, which a family and a map make.
PAIRED = covering(WITH_THEOREM, "rule") + covering(MULTIPLICATIVE)
EXACT = [row for row in PAIRED if row in WITH_THEOREM and row.rule != "mira"]


def every_row(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def separable_stream(seed, n_rows=500, n_classes=4, n_features=5):
    """Rows of length 1 that the largest of some products separates by at least 1."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_classes, n_features))
    X = rng.normal(size=(40 * n_rows, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    best = np.sort(X @ u.T, axis=1)
    X = X[best[:, -1] - best[:, -2] > 1][:n_rows]
    return X, in_order_of_appearance(np.argmax(X @ u.T, axis=1))


# ---- 8. no run makes more mistakes than its theorem allows --------------------------------------


@every_row(PAIRED)
@settings(max_examples=2)
@given(stream=streams(), C=st.sampled_from([0.01, 0.3, 1.0, 10.0]))
def test_8_no_run_makes_more_mistakes_than_its_theorem_allows(row, stream, C):
    found = mistake_bound(row.learner(C=C), stream.X, stream.y)
    assert found.n_mistakes <= found.bound + 1e-6
    assert found.n_mistakes <= found.n_compared


@every_row(covering(WITH_THEOREM) + covering(MULTIPLICATIVE))
def test_8_on_letter(row):
    data = load_letter()
    y = in_order_of_appearance(data.y[:500])
    few = y < MOST_CLASSES
    found = mistake_bound(row.learner(), data.X[:500][few] / np.float32(15), y[few])
    assert 20 < found.n_mistakes <= found.bound


@pytest.mark.parametrize("rule", ["perceptron", "simperc", "conproj", "pa", "pa1", "pa2", "mira"])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_bound_on_a_separable_stream_is_of_use(rule, seed):
    X, y = separable_stream(seed)
    found = mistake_bound(OnlineClassifier("multi", update=rule), X, y)
    views = reference_bounds.views_of(X, y, [{"kind": "per_class", "map": None}])
    u = reference_bounds.competitor(views, 1000.0)
    u = u / (views.differences() @ u).min()
    allowed = reference_bounds.linear_max(views, u, 1.0)
    assert found.n_mistakes <= found.bound <= 3 * allowed


def clear_ratings(seed, n_rows=600, n=30, gap=0.1):
    """Ratings whose first two sub-experts, together, separate the classes by a gap."""
    rng = np.random.default_rng(seed)
    two = rng.random((8 * n_rows, 4, 2))
    best = np.sort(two.mean(axis=2), axis=1)
    clear = two[best[:, -1] - best[:, -2] >= gap][:n_rows]
    ratings = np.concatenate([clear, rng.random((len(clear), 4, n - 2))], axis=2)
    return ratings, clear.mean(axis=2).argmax(axis=1)


def test_the_bound_of_wma_by_hand():
    """With u the two that matter, and no loss: at most 2 ln(n) / delta^2 at the best alpha."""
    ratings, y = clear_ratings(0)
    eta, delta = math.atanh(0.1), 0.1
    wma = QuasiAdditive(Exponential(math.exp(eta), balanced=False))
    rows = Ratings.from_dense(ratings, labels=range(4))
    result = progressive_validate(LinearMax(wma, "sub-experts"), rows, y)
    u = np.zeros((1, 30))
    u[0, :2] = 5  # a margin of 1
    given = mistake_bound(result, competitor=[u])
    by_hand = math.log(30 / 2) / (eta * delta - math.log(math.cosh(eta * given.radius)))
    assert given.loss == pytest.approx(0, abs=1e-3)
    assert result.n_mistakes <= given.bound == pytest.approx(by_hand, rel=1e-3)
    assert given.bound <= weighted_majority_bound(30, 0.1)
    assert mistake_bound(result).bound <= 1.5 * given.bound
    with pytest.raises(KeslerError, match="are positive"):
        mistake_bound(result, competitor=[-u])


@pytest.mark.parametrize("balanced", [True, False])
def test_a_bound_on_multiplicative_updates_can_fail(balanced):
    """Had WMA made as many mistakes as the Perceptron does among 2,000, it would have lied."""
    ratings, y = clear_ratings(1, n_rows=500, n=2000, gap=0.3)
    rows = Ratings.from_dense(ratings, labels=range(4))
    algorithm = QuasiAdditive(Exponential(0.7**-0.5, balanced=balanced))
    found = mistake_bound(progressive_validate(LinearMax(algorithm, "sub-experts"), rows, y))
    slow = LinearMax("perceptron", "sub-experts").fit(rows, y).n_mistakes_
    assert found.n_mistakes <= found.bound < slow


@pytest.mark.parametrize(
    ("estimator", "rule"),
    [
        *((estimator, "perceptron") for estimator in ESTIMATORS),
        *zip(cycle(ESTIMATORS), ["simperc", "conproj", "pa1", "pa2", "mira"]),
    ],
)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_8_of_label_sets_and_rankings(estimator, rule, seed):
    X, y = some(estimator, seed, n_rows=40, k=4)
    targets = ["multi"] if estimator == "ranks" else ["hybrid", "product-mean"]
    result = progressive_validate(ESTIMATORS[estimator](*targets, update=rule), X, y)
    found = mistake_bound(result)
    assert found.n_mistakes == result.n_mistakes <= found.bound + 1e-6
    assert found.n_mistakes <= found.n_compared <= 40


# ---- the theorems are the papers' ---------------------------------------------------------------


def parts_of(row, u, model):
    """Return u as the oracle has it and, as `mistake_bound` takes it, in the model's order.

    A group of which no class was seen is in the oracle alone: its weights become 0.
    """
    learner, arrays, ends = model._learner, [], 0
    u = u.copy()
    for i, weights in enumerate(learner.hypothesis_weights()):
        n_features, n = weights.shape
        names = list(SETS) if row.oracle()[i]["kind"] == "grouped" else list(range(n))
        start, ends = ends, ends + len(names) * n_features
        part = u[start:ends].reshape(len(names), n_features)
        order = [names.index(group) for group in learner.groups[i] or names]
        part[np.setdiff1d(np.arange(len(names)), order)] = 0
        arrays.append(part[order])
    assert ends == len(u)
    return u, arrays


@every_row(EXACT)
@settings(max_examples=3)
@given(stream=streams(), C=st.sampled_from([0.01, 0.3, 5.0]), length=st.sampled_from([0.01, 0.3]))
def test_a_given_competitor_is_judged_as_by_the_oracle(row, stream, C, length):
    seen = row.seen(stream.X, None, stream.y)
    assume(seen.shape[1])  # of one input there are no pairs
    views = reference_bounds.views_of(seen, stream.y, row.oracle())
    assume(views.V)
    u = length * np.random.default_rng(len(views.V)).normal(size=views.V[0].shape[1])
    model = row.learner(C=C).fit(stream.X, stream.y)
    grouped = [i for i, part in enumerate(row.oracle()) if part["kind"] == "grouped"]
    assume(all(model._learner.groups[i] for i in grouped))
    u, arrays = parts_of(row, u, model)
    found = mistake_bound(row.learner(C=C), stream.X, stream.y, competitor=arrays)
    if not row.averaged:  # the theorems are of the last weights
        assert found.n_mistakes == model.n_mistakes_
    assert found.n_compared == len(views.V) and found.sharing == views.rho
    assert found.squared_norm == pytest.approx(u @ u, rel=1e-5)
    assert found.loss == pytest.approx(views.losses(u).sum(), rel=1e-4)
    assert found.bound == pytest.approx(expected_bound(row.rule, views, u, C), rel=1e-3)
    for bound in reference_bounds.BOUNDS[row.rule]:
        assert found.bound <= bound(views, u, C) * 1.001


def expected_bound(rule, views, u, C):
    """Return what the papers allow, with the best C where a rule's predictions depend on none."""
    square = (views.differences() ** 2).sum(axis=1).max()
    if rule == "simperc":
        most = 2 / square if square else 1e6
        of = lambda c: reference_bounds.amit(views, u, c * most)  # noqa: E731
        return minimize_scalar(of, bounds=(1e-6, 1 - 1e-6), method="bounded").fun
    if rule in ("conproj", "pa1"):  # a corollary up to where it is least, then a theorem
        below = C * square <= 1
        return (reference_bounds.amit if below else reference_bounds.crammer_1)(views, u, C)
    return min(bound(views, u, C) for bound in reference_bounds.BOUNDS[rule])


# Of many more features than rows, the search for a competitor ends before the optimum.
FOUND = [row for row in EXACT if row.preprocessing != "random-fourier"]


@every_row(covering([row for row in FOUND if row.family in ("multi", "hybrid", "grouped-view")]))
def test_no_competitor_off_the_shelf_is_much_better_than_the_one_found(row):
    stream = make_stream(5, n_rows=150, n_classes=4, density=1.0)
    views = reference_bounds.views_of(row.seen(stream.X, None, stream.y), stream.y, row.oracle())
    found = mistake_bound(row.learner(C=0.05), stream.X, stream.y)
    for C in (0.01, 0.1, 1.0):
        u = reference_bounds.competitor(views, C)
        others = [expected_bound(row.rule, views, a * u, 0.05) for a in (0.1, 0.3, 1.0, 2.0)]
        assert found.bound <= 1.1 * min(others)


def test_a_model_as_competitor_is_aligned_by_label_and_by_name():
    stream = make_stream(7, n_rows=60, n_classes=4)
    names, labels = [f"f{i}" for i in range(7)], np.array(["d", "b", "a", "c"])[stream.y]
    rows = [dict(zip(names, x, strict=True)) for x in stream.X.tolist()]
    backwards = [dict(reversed(row.items())) for row in reversed(rows)]
    other = OnlineClassifier("hybrid", "product", update="pa1").fit(backwards, labels[::-1])
    learner = OnlineClassifier("hybrid", "product", "perceptron")
    found = mistake_bound(learner, rows, labels.tolist(), competitor=other)
    weights = [w.T for w in other._learner.hypothesis_weights()]
    own = learner.fit(rows, labels)
    order = [other._learner.classes.code(label) for label in own.classes_by_code_.tolist()]
    features = [other.vocabulary_.names.index(name) for name in own.vocabulary_.names]
    arrays = [weights[0][np.ix_(order, features)], weights[1][:, features]]
    assert mistake_bound(learner, rows, labels.tolist(), competitor=arrays) == found
    assert found.loss > 0 and found.squared_norm > 0


# ---- how it is used -----------------------------------------------------------------------------


def test_a_result_an_estimator_and_blocks_are_bounded_alike():
    stream = make_stream(8, n_rows=90)
    learner = OnlineClassifier("hybrid", "product", "simperc")
    found = mistake_bound(learner, stream.X, stream.y)
    assert not learner.__sklearn_is_fitted__()
    result = progressive_validate(learner, stream.X, stream.y)
    assert mistake_bound(result) == found
    blocks = [
        Block(Rows.from_dense(stream.X[i : i + 30]), stream.y[i : i + 30].tolist())
        for i in (0, 30, 60)
    ]
    again = bound_on_blocks(learner, blocks, result.n_mistakes)
    assert (again.n_mistakes, again.theorem, again.radius) == (
        found.n_mistakes,
        found.theorem,
        found.radius,
    )
    assert again.bound == pytest.approx(found.bound, rel=0.05)
    half = np.arange(90) % 2
    result = progressive_validate(
        OnlineClassifier("multi", update="simperc"), stream.X, stream.y, sample_weight=half
    )
    stored = half == 1
    expected = mistake_bound(
        OnlineClassifier("multi", update="simperc"), stream.X[stored], stream.y[stored]
    )
    assert mistake_bound(result) == expected


def test_the_sentence_says_what_was_found():
    X, y = separable_stream(0)
    for update in ("perceptron", "pa"):
        found = mistake_bound(OnlineClassifier("multi", update=update), X, y)
        assert f"{found.n_mistakes} mistakes, at most {found.bound:.1f} by " in str(found)
        assert found.to_json()["bound"] == found.bound
    noisy = make_stream(1, n_rows=200, n_features=2)
    found = mistake_bound(OnlineClassifier("multi", update="pa"), noisy.X, noisy.y)
    assert math.isinf(found.bound) and found.to_json()["bound"] is None
    assert "needs a competitor without loss, and none was found" in str(found)


def fitted():
    model = OnlineClassifier("multi", update="perceptron")
    model.learn_one([1.0, 0.0], 0)
    return model


def validated(model=None, **more):
    model = OnlineClassifier("multi", update="perceptron") if model is None else model
    return progressive_validate(model, [[1.0, 0.0], [0.0, 1.0]] * 3, [0, 1] * 3, **more)


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda: mistake_bound(validated(fitted())), "fitted before the run"),
        (lambda: mistake_bound(validated(sample_weight=[1, 2, 1, 1, 1, 1])), "other than 0 and 1"),
        (lambda: mistake_bound(validated(OnlineClassifier(update=SimProj()))), "has no theorem"),
        (lambda: mistake_bound(validated(OnlineClassifier("multi", update="hinge"))), "no theorem"),
        (
            lambda: mistake_bound(
                validated(OnlineClassifier("multi", update="perceptron", link="p-norm"))
            ),
            "under PNorm(p=8.0)",
        ),
        (
            lambda: mistake_bound(
                validated(OnlineClassifier("multi", update="pa1", costs={(0, 1): 2.0}))
            ),
            "covers costs of confusions",
        ),
        (
            lambda: mistake_bound(
                BanditClassifier([0, 1], "banditron", 0.1, hypotheses="multi", kernel="rbf"),
                [[1.0], [2.0]],
                [0, 1],
            ),
            "leave the kernel out",
        ),
        (lambda: mistake_bound(validated(), [[1.0]], [0]), "a result contains its rows"),
        (
            lambda: mistake_bound(
                OnlineClassifier(Shared(Distance(), begins_at=0.1), update="pa1"), [[1.0]], [0]
            ),
            "initial weights other than 0",
        ),
        (lambda: mistake_bound(OnlineClassifier(update="pa1")), "give X and y"),
        (lambda: mistake_bound("run"), "not str"),
        (lambda: mistake_bound(validated(), competitor="best"), "competitor='best' is not known"),
        (lambda: mistake_bound(validated(), competitor=[np.ones(2)]), "weights of shapes"),
        (
            lambda: mistake_bound(
                validated(), competitor=OnlineClassifier(update="pa1").fit([[1.0]], [0])
            ),
            "has other hypotheses than the run",
        ),
    ],
)
def test_what_has_no_bound_is_refused_with_a_sentence(ask, words):
    with pytest.raises(KeslerError) as caught:
        ask()
    assert words in str(caught.value)


@every_row([row for row in WITHOUT if row.family == "multi"])
def test_every_other_learner_is_refused_with_a_sentence(row):
    stream = make_stream(0)
    with pytest.raises(KeslerError, match=r"has no theorem|no theorem covers"):
        mistake_bound(row.learner(), stream.X, stream.y)


# ---- ratings ------------------------------------------------------------------------------------


def test_the_bounds_on_ratings_by_hand():
    ratings = np.zeros((3, 3, 4))
    ratings[:, :, 0] = np.eye(3)  # the first sub-expert is always right
    ratings[:, :, 1] = 0.5
    found = ratings_bound(ratings, [0, 1, 2])
    assert found.delta == pytest.approx(1) and found.weights == pytest.approx([1, 0, 0, 0])
    assert found.perceptron == pytest.approx(1)  # s = 1, as is ||u||
    assert found.weighted_majority == pytest.approx(2 * math.log(4))
    given = ratings_bound(ratings, [0, 1, 2], competitor=[2.0, 0, 0, -1])
    assert given.delta == 2 and math.isinf(given.weighted_majority)
    assert given.perceptron == pytest.approx(5 / 4)
    wrong = ratings_bound(ratings, [1, 1, 2])
    assert math.isinf(wrong.perceptron) and math.isinf(wrong.weighted_majority)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_weighted_majority_keeps_its_bound(seed):
    """The algorithm as Mesterharm (2001), sec. 4.2, has it."""
    rng = np.random.default_rng(seed)
    n, k, m = 30, 3, 150
    y, ratings = rng.integers(k, size=m), rng.random((m, k, n))
    ratings[:, :, 0] = 0.2 * ratings[:, :, 0] + 0.8 * (np.arange(k) == y[:, None])
    found = ratings_bound(ratings, y)
    assert 0 < found.delta < 1
    alpha, w, mistakes = (1 - found.delta) ** -0.5, np.ones(n), 0
    for x, right in zip(ratings, y, strict=True):
        others = np.where(np.arange(k) == right, -np.inf, x @ w)
        if others.max() >= x[right] @ w:
            mistakes += 1
            w *= alpha ** (x[right] - x[np.argmax(others)])
    allowed = weighted_majority_bound(n, found.delta)
    assert mistakes <= allowed == pytest.approx(found.weighted_majority)


@pytest.mark.parametrize(
    "ratings, y, competitor, words",
    [
        (np.ones((2, 3)), [0, 1], None, "ratings have shape (2, 3)"),
        (np.ones((2, 3, 4)), [0], None, "y (1,)"),
        (np.full((1, 2, 1), np.nan), [0], None, "finite ratings"),
        (np.ones((1, 2, 1)), [2], None, "the classes 0 to 1"),
        (np.ones((1, 1, 1)), [0], None, "2 or more"),
        (np.ones((1, 2, 1)), [0], [1.0, 2.0], "must hold 1 finite weights"),
    ],
)
def test_ratings_that_cannot_be_are_refused(ratings, y, competitor, words):
    with pytest.raises(KeslerError) as caught:
        ratings_bound(ratings, y, competitor)
    assert words in str(caught.value)


def test_ranks_keep_their_declared_order_and_thresholds_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.searchsorted([-1.0, 0.0, 1.0], X @ [1.0, -1.0, 0.5])
    order = ["d", "a", "c", "b"]
    named = [order[rank] for rank in y]
    learners = [
        OnlineOrdinalClassifier("multi", update="perceptron", order=order),
        OnlineOrdinalClassifier("multi", update="perceptron"),
    ]
    found = [mistake_bound(learners[0], X, named), mistake_bound(learners[1], X, y)]
    assert found[0].n_mistakes == found[1].n_mistakes
    assert found[0].bound == pytest.approx(found[1].bound)
    with pytest.raises(KeslerError, match="covers thresholds"):
        mistake_bound(OnlineOrdinalClassifier("single", update="perceptron"), X, y)


def test_wma_has_no_bound_beyond_its_unit():
    ratings, y = clear_ratings(2, n_rows=20)
    assert np.isfinite(ratings_bound(ratings, y).weighted_majority)
    assert ratings_bound(10 * ratings, y).weighted_majority == math.inf
