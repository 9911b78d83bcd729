"""SoftmaxClassifier: its objective against a reference, its optimum against peers, its refusals."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from kesler import KeslerError, SoftmaxClassifier
from kesler.batch import newton
from kesler.batch.design import ClassBlocks, DensePerClass, Diagonal, SparsePerClass
from kesler.batch.newton import SoftmaxObjective, approach, flat_share
from kesler.compiled.batch.dual_softmax import UNKNOWN, lambert, solve_row
from kesler.compiled.jit.numba_internals import KernelCompiler

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def reference_learner(X, y, weights, bias, counts, sigma=1.0, margin=0.0):
    """The objective with C = 1, as the docstring has it."""
    scores = X @ weights.T + bias
    rivals = margin * (np.arange(len(weights)) != y[:, None])
    leads = rivals + (scores - scores[np.arange(len(y)), y][:, None]) / sigma
    return counts @ logsumexp(leads, axis=1) + 0.5 * (weights**2).sum()


@st.composite
def problems(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(2, 4)))
    X = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.6)
    counts = generator.random(n) * (generator.random(n) < 0.8)
    return X, generator.integers(0, k, n), counts, k, generator


def objective_of(X, y, counts, k, *, kind, intercept, margin, ridge=1.0):
    matrix = sparse.csr_array(X) if kind is SparsePerClass else X
    design = kind(matrix, intercept)
    penalties = np.full((design.n_features, 1), ridge)
    if intercept:
        penalties[-1] = 0
    return SoftmaxObjective(design, y, counts, k, penalties, margin)


def numbered(flat, d, k, intercept):
    """Weights as (classes, features) and intercepts."""
    table = flat.reshape(-1, k)
    return table[:d].T, (table[d] if intercept else np.zeros(k))


# ---- the objective -----------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    problems(),
    st.sampled_from([DensePerClass, SparsePerClass]),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
)
def test_value_gradient_and_curvature_follow_the_definition(problem, kind, intercept, margin):
    X, y, counts, k, generator = problem
    objective = objective_of(X, y, counts, k, kind=kind, intercept=intercept, margin=margin)
    shape = (X.shape[1] + intercept, k)
    weights, change = generator.normal(size=(2, *shape))

    def value(at):
        return reference_learner(
            X, y, *numbered(at, X.shape[1], k, intercept), counts, margin=margin
        )

    point, step = objective.at(weights), 1e-5
    assert_allclose(point.value, value(weights), rtol=1e-12)
    ahead, behind = (objective.at(weights + sign * step * change) for sign in (1, -1))
    slope = (value(weights + step * change) - value(weights - step * change)) / (2 * step)
    assert_allclose(np.vdot(point.gradient, change), slope, rtol=1e-6, atol=1e-7)
    bend = (ahead.gradient - behind.gradient) / (2 * step)
    product = point.curvature(change.astype(np.float32))
    assert_allclose(product, bend, rtol=1e-4, atol=1e-5)
    line = point.along(change)
    for share in (0.0, 0.7):
        there = objective.at(weights + share * change)
        assert_allclose(line.slope(share), np.vdot(there.gradient, change), rtol=1e-9, atol=1e-9)
        assert_allclose(line.at(share).gradient, there.gradient, rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(problems(), st.sampled_from([DensePerClass, SparsePerClass]))
def test_preconditioners_invert_blocks_and_diagonal(problem, kind):
    X, y, counts, k, generator = problem
    objective = objective_of(X, y, counts, k, kind=kind, intercept=False, margin=0.0)
    point = objective.at(generator.normal(size=(X.shape[1], k)))
    blocks = point.preconditioner()
    p = point.probabilities
    curvatures = (counts[:, None] * p * (1 - p)).astype(np.float32)
    diagonal = Diagonal(objective.design.single._squared().adjoint(curvatures) + 1)
    assert isinstance(blocks, ClassBlocks)
    unit = generator.normal(size=(X.shape[1], k)).astype(np.float32)
    inverse = blocks(unit)
    for r in range(k):
        block = X.T @ (curvatures[:, [r]] * X) + np.eye(X.shape[1])
        assert_allclose(block @ inverse[:, r], unit[:, r], rtol=1e-3, atol=1e-3)
        assert_allclose(diagonal(unit)[:, r] * np.diag(block), unit[:, r], rtol=1e-4, atol=1e-5)


class Parabola:
    """The slope of (share - bottom)^2 / 2, steep at first."""

    def __init__(self, bottom, power):
        self.bottom, self.power = bottom, power

    def slope(self, share):
        gone = share - self.bottom
        return np.sign(gone) * abs(gone) ** self.power


@pytest.mark.parametrize("bottom", [1e-6, 0.3, 1.0, 700.0])
@pytest.mark.parametrize("power", [0.5, 1, 3])
def test_a_line_is_searched_to_where_it_is_flat(bottom, power):
    line = Parabola(bottom, power)
    assert abs(line.slope(flat_share(line))) <= 0.02 * abs(line.slope(0.0))


class Counted:
    """A slope that grows by a power of the share, and how often it was asked for."""

    def __init__(self, bottom, power):
        self.bottom, self.power, self.n_trials = bottom, power, 0

    def slope(self, share):
        self.n_trials += share > 0
        return (share / self.bottom) ** self.power - 1


@pytest.mark.parametrize(("bottom", "power"), [(1e-5, 2), (1e-5, 3), (700.0, 1), (1e4, 2)])
def test_a_line_of_which_the_first_trial_is_far_off_takes_few(bottom, power):
    line = Counted(bottom, power)
    assert abs(line.slope(flat_share(line))) <= 0.02
    assert line.n_trials <= 13


# ---- the optimum -------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimum_is_that_of_scikit_learn(C, intercept):
    ours = SoftmaxClassifier(C, fit_intercept=intercept, tol=1e-9).fit(X_IRIS, Y_IRIS)
    peer = LogisticRegression(
        C=C, fit_intercept=intercept, solver="newton-cg", tol=1e-10, max_iter=10_000
    ).fit(X_IRIS, Y_IRIS)
    counts = np.full(len(Y_IRIS), C)
    best = reference_learner(X_IRIS, Y_IRIS, peer.coef_, peer.intercept_, counts)
    assert_allclose(ours.objective_, best, rtol=1e-9)
    assert_allclose(
        reference_learner(X_IRIS, Y_IRIS, ours.coef_, ours.intercept_, counts), best, rtol=1e-9
    )
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-4, atol=1e-4)
    assert_allclose(ours.predict_proba(X_IRIS), peer.predict_proba(X_IRIS), atol=1e-5)
    assert ours.converged_ and ours.gradient_norm_ <= 1e-9


@pytest.mark.parametrize(
    "loss, sigma", [("softmax", 0.3), ("margin-softmax", 1.0), ("margin-softmax", 2.5)]
)
def test_optimum_is_that_of_a_general_minimiser(loss, sigma):
    ours = SoftmaxClassifier(sigma=sigma, loss=loss, tol=1e-8).fit(X_IRIS, Y_IRIS)
    margin = 1.0 if loss == "margin-softmax" else 0.0

    def value(flat):
        weights, bias = numbered(flat, 4, 3, True)
        return reference_learner(X_IRIS, Y_IRIS, weights, bias, np.ones(150), sigma, margin)

    best = minimize(value, np.zeros(15), method="BFGS", options={"gtol": 1e-4})
    assert_allclose(ours.objective_, best.fun, rtol=1e-6)
    assert_allclose(value(np.vstack([ours.coef_.T, ours.intercept_])), best.fun, rtol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_and_dense_and_single_precision_agree(intercept):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 12)) * (generator.random((200, 12)) < 0.4)
    y = generator.integers(0, 4, 200)
    model = SoftmaxClassifier(tol=1e-8, fit_intercept=intercept)
    dense = clone(model).fit(X, y)
    for rows in (sparse.csr_array(X), sparse.csc_matrix(X)):
        other = clone(model).fit(rows, y)
        assert_allclose(other.coef_, dense.coef_, atol=1e-6)
        assert_allclose(other.predict_proba(rows), dense.predict_proba(X), atol=1e-6)
    assert_allclose(clone(model).fit(X.astype(np.float32), y).coef_, dense.coef_, atol=1e-5)


def test_many_sparse_columns_take_the_diagonal():
    generator = np.random.default_rng(1)
    X = sparse.random_array((120, 3000), density=0.01, rng=generator, format="csr")
    y = generator.integers(0, 5, 120)
    ours = SoftmaxClassifier(10.0, tol=1e-8).fit(X, y)
    peer = LogisticRegression(C=10.0, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize("order", ["dense", "sparse"])
def test_a_weight_is_so_many_rows(order):
    generator = np.random.default_rng(2)
    weights = generator.integers(0, 4, 150)
    rows = np.repeat(np.arange(150), weights)
    X = sparse.csr_array(X_IRIS) if order == "sparse" else X_IRIS
    weighted = SoftmaxClassifier(tol=1e-9).fit(X, Y_IRIS, sample_weight=weights)
    repeated = SoftmaxClassifier(tol=1e-9).fit(X[rows], Y_IRIS[rows])
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_balanced_classes_are_those_of_scikit_learn():
    X, y = X_IRIS[:120], Y_IRIS[:120]
    ours = SoftmaxClassifier(class_weight="balanced", tol=1e-9).fit(X, y)
    peer = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    settings = SoftmaxClassifier(class_weight={2: 3.0}, tol=1e-9).fit(X, y)
    by_row = SoftmaxClassifier(tol=1e-9).fit(X, y, sample_weight=np.where(y == 2, 3.0, 1.0))
    assert_allclose(settings.coef_, by_row.coef_, atol=1e-7)


def test_two_classes_are_binary_logistic_regression_of_twice_the_cost():
    X, y = X_IRIS[50:], Y_IRIS[50:]
    ours = SoftmaxClassifier(1.0, tol=1e-10).fit(X, y)
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_[1] - ours.coef_[0], peer.coef_[0], rtol=1e-4)
    assert_allclose(ours.coef_[1], -ours.coef_[0], rtol=1e-6)
    assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)


def test_without_a_penalty_the_gradient_of_the_loss_vanishes():
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(300, 3)), generator.integers(0, 3, 300)
    ours = SoftmaxClassifier(penalty=None, tol=1e-9).fit(X, y)
    residual = ours.predict_proba(X) - np.eye(3)[y]
    assert_allclose(X.T @ residual, 0, atol=1e-6)
    assert_allclose(residual.sum(axis=0), 0, atol=1e-6)


def test_warm_starts_begin_where_the_last_fit_ended():
    model = SoftmaxClassifier(warm_start=True, tol=1e-6).fit(X_IRIS, Y_IRIS)
    first = model.n_iter_
    assert model.fit(X_IRIS, Y_IRIS).n_iter_ == 0 < first
    assert model.set_params(C=1.1).fit(X_IRIS, Y_IRIS).n_iter_ < first
    fewer = model.fit(X_IRIS[:, :2], Y_IRIS)  # another shape begins at 0
    cold = SoftmaxClassifier(1.1, tol=1e-6).fit(X_IRIS[:, :2], Y_IRIS)
    assert_array_equal(fewer.coef_, cold.coef_)


# ---- probabilities -----------------------------------------------------------------------------


def test_probabilities_are_the_softmax_of_scores():
    model = SoftmaxClassifier(sigma=0.5).fit(X_IRIS, Y_IRIS)
    probabilities, scores = model.predict_proba(X_IRIS), model.decision_function(X_IRIS)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_allclose(probabilities, np.exp(2 * scores) / np.exp(2 * scores).sum(axis=1)[:, None])
    assert_allclose(np.log(probabilities), model.predict_log_proba(X_IRIS), atol=1e-9)
    assert_array_equal(model.predict(X_IRIS), probabilities.argmax(axis=1))


@pytest.mark.parametrize("sigma", [1e-8, 1e-300])
def test_at_temperature_zero_the_best_class_has_all(sigma):
    model = SoftmaxClassifier().fit(X_IRIS, Y_IRIS).set_params(sigma=sigma)
    probabilities = model.predict_proba(X_IRIS)
    assert_array_equal(probabilities, np.eye(3)[model.predict(X_IRIS)])


# ---- odd data and refusals ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_odd_rows_and_columns_leave_finite_weights(kind):
    X = np.array([[0.0, 5.0, 0.0], [1.0, 5.0, 0.0], [0.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    model = SoftmaxClassifier(tol=1e-8).fit(kind(X), ["a", "b", "b", "lone"])
    assert np.isfinite(model.coef_).all() and model.converged_
    assert_allclose(model.coef_[:, 2], 0)
    nothing = SoftmaxClassifier(tol=1e-8).fit(kind(np.zeros((4, 2))), [0, 1, 1, 1])
    assert_allclose(nothing.predict_proba(np.zeros((1, 2))), [[0.25, 0.75]])


def test_features_of_any_moderate_size_are_solved():
    for size in (1e-8, 1e6, 1e11):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SoftmaxClassifier().fit(size * X_IRIS, Y_IRIS)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_)


@pytest.mark.parametrize(
    "changed, sentence",
    [
        ({"C": 0}, "C=0 must be"),
        ({"C": np.nan}, "C=nan must be"),
        ({"C": np.inf}, "C=inf must be"),
        ({"sigma": 1e30}, "must be a finite number above 0 and at most 1e\\+15"),
        ({"C": "1"}, "C='1' must be"),
        ({"sigma": -1.0}, "sigma=-1.0 must be"),
        ({"tol": 0}, "tol=0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"max_iter": 1.5}, "max_iter=1.5 must be"),
        ({"loss": "hinge"}, "loss='hinge' is unknown: use 'softmax' or 'margin-softmax'"),
        ({"penalty": "l1"}, "penalty='l1' is unknown"),
        ({"hypotheses": "nothing"}, "nothing"),
    ],
)
def test_odd_parameters_are_refused(changed, sentence):
    with pytest.raises(KeslerError, match=sentence):
        SoftmaxClassifier(**changed).fit(X_IRIS, Y_IRIS)


def test_odd_rows_are_refused():
    with pytest.raises(KeslerError, match="one class only"):
        SoftmaxClassifier().fit(X_IRIS[:50], Y_IRIS[:50])
    with pytest.raises(ValueError, match="at least one non-zero"):
        SoftmaxClassifier().fit(X_IRIS, Y_IRIS, sample_weight=np.zeros(150))
    for kind in (np.asarray, sparse.csr_array):
        with pytest.raises(KeslerError, match=r"features as large as 1.0e\+30"):
            SoftmaxClassifier().fit(kind(np.array([[1e30], [1.0]])), [0, 1])
    with pytest.raises(ValueError, match="NaN"):
        SoftmaxClassifier().fit([[np.nan], [1.0]], [0, 1])


def test_a_solver_stopped_early_says_so():
    with pytest.warns(ConvergenceWarning, match="after 2 steps: raise max_iter"):
        model = SoftmaxClassifier(max_iter=1, tol=1e-8).fit(X_IRIS, Y_IRIS)
    assert not model.converged_ and model.n_iter_ == 2  # a pass over the rows, and a step


def test_models_survive_pickling():
    model = SoftmaxClassifier().fit(X_IRIS, Y_IRIS)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X_IRIS), model.predict_proba(X_IRIS))


def test_scikit_learn_checks_pass():
    results = check_estimator(SoftmaxClassifier(), on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {} and len(results) > 50


# ---- dual ascent --------------------------------------------------------------------------------


in_a_kernel = njit(pipeline_class=KernelCompiler, error_model="numpy")


@in_a_kernel
def lambert_of(s):
    return lambert(s)


@in_a_kernel
def solve_one(pace, own, targets, k, level, probabilities, steps):
    return solve_row(pace, own, targets, k, level, probabilities, steps)


def test_the_inverse_of_w_plus_its_logarithm():
    for s in (-40.0, -18.0, -17.9, -3.0, -1.9, 0.0, 1.0, 2.4, 2.6, 5.0, 30.0, 1e4):
        w = lambert_of(s)
        assert_allclose(w, lambertw_of_exp(s), rtol=1e-6)


def lambertw_of_exp(s: float) -> float:
    """Solve w + ln w = s by bisection of ln w."""
    low, high = s - max(s, 1.0) - 1.0, max(s, 0.0) + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(min(middle, 700)) + middle < s else (low, middle)
    return float(np.exp(low))


@settings(max_examples=40, deadline=None)
@given(
    pace=st.floats(1e-3, 1e4),
    targets=st.lists(st.floats(-30, 30), min_size=2, max_size=8),
)
def test_a_row_is_solved_exactly(pace, targets):
    """Where ln p + pace p = t - level, and the sum of p is 1."""
    own, steps = np.full(len(targets), 1 / len(targets)), np.empty(len(targets))
    before, probabilities = own.copy(), np.empty(len(targets))
    targets = np.array(targets) + pace * own
    level, gain = solve_one(pace, own, targets.copy(), len(targets), UNKNOWN, probabilities, steps)
    assert_allclose(own.sum(), 1.0, rtol=1e-12)
    assert_allclose(steps, before - own, atol=1e-12)
    assert_allclose(np.log(own) + pace * own, targets - level, atol=1e-4, rtol=1e-5)
    assert gain >= 0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_dual_ascent_alone_comes_to_the_optimum(kind, margin, monkeypatch):
    """Of the problem in which the constant is held to zero like a feature of the rows' length."""
    monkeypatch.setattr(newton, "MOST_PASSES", 400)
    monkeypatch.setattr(newton, "SLOW", np.inf)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    X[X < -1] = 0
    counts, ridge = rng.uniform(0, 2, 60), np.array([[0.7]] * 5 + [[0.0]])
    design = (SparsePerClass if kind is sparse.csr_array else DensePerClass)(kind(X), True)
    objective = SoftmaxObjective(design, y, counts, 3, ridge, margin)
    found, n_passes = approach(objective, 1e-14, 400)
    assert 5 < n_passes < 400
    gradient = objective.at(found).gradient
    gradient[-1] += 0.7 * found[-1] / (X**2).sum(axis=1).mean()
    assert_allclose(gradient, 0.0, atol=1e-5)


def test_long_rows_are_left_to_newton():
    X, y = 1e4 * np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 2
    objective = SoftmaxObjective(
        DensePerClass(X, True), y, np.ones(30), 2, np.array([[1.0]] * 3 + [[0.0]])
    )
    found, n_passes = approach(objective, 1e-4, 100)
    assert n_passes == 0
    assert not found.any()
