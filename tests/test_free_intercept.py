"""Intercepts that are not regularised, and starts from other learners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from kesler import CrammerSingerClassifier, KeslerError, OnlineClassifier, SoftmaxClassifier
from kesler.batch.dual_ascent import SlackProblem, balanced, duals_from_scores

seeds = st.integers(0, 2**32 - 1)


def blobs(seed, n=60, d=4, k=3, spread=1.5):
    generator = np.random.default_rng(seed)
    y = np.append(np.arange(k), generator.integers(0, k, n - k))
    X = generator.normal(size=(k, d))[y] + spread * generator.normal(size=(n, d))
    return X + 3, y


def free(**parameters):
    return CrammerSingerClassifier(
        **{
            "regularise_intercept": False,
            "tol": 1e-7,
            "max_iter": 100_000,
            "random_state": 0,
            **parameters,
        }
    )


def losses(X, y, W, b, costs):
    scores = X @ W.T + b
    return (costs[y] + scores - scores[np.arange(len(y)), y][:, None]).max(axis=1)


def primal(X, y, W, b, bounds, costs):
    return 0.5 * (W**2).sum() + bounds @ losses(X, y, W, b, costs)


def dual_of(problem, duals):
    moved = problem.idle() - duals
    return (duals * problem.costs[problem.y]).sum() - 0.5 * ((moved.T @ problem.X) ** 2).sum()


def by_quadratic_program(X, y, bounds, costs):
    """Return the least 1/2 ||W||^2 + sum C_i xi_i under each pair's constraint, b free."""
    (n, d), k = X.shape, len(costs)
    with_constant = np.column_stack([X, np.ones(n)])
    asked = np.zeros((n, k, k, d + 1))
    asked[np.arange(n), :, y] += with_constant[:, None]
    for r in range(k):
        asked[:, r, r] -= with_constant
    A = np.hstack([asked.reshape(n * k, -1), np.repeat(np.eye(n), k, axis=0)])
    held = np.append(np.tile(np.append(np.ones(d), 0), k), np.zeros(n))
    linear = np.append(np.zeros(k * (d + 1)), bounds)
    found = minimize(
        lambda v: 0.5 * held @ v**2 + linear @ v,
        np.append(np.zeros(k * (d + 1)), costs.max(axis=1)[y]),
        jac=lambda v: held * v + linear,
        constraints={"type": "ineq", "fun": lambda v: A @ v - costs[y].ravel(), "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-11},
    )
    assert found.success
    return found.fun, found.x[: k * (d + 1)].reshape(k, d + 1)[:, :d]


# ---- intercepts that are not regularised ----------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("as_sparse", [False, True])
def test_it_finds_the_optimum_of_the_quadratic_program(seed, as_sparse):
    X, y = blobs(seed, n=14, d=3, k=3)
    generator = np.random.default_rng(seed)
    costs = generator.uniform(0.2, 3, (3, 3)) * (1 - np.eye(3))
    weights = generator.uniform(0.2, 2, 14)
    best, W = by_quadratic_program(X, y, 0.7 * weights, costs)
    model = free(C=0.7, costs=lambda right, wrong: costs[right, wrong])
    model.fit(sparse.csr_array(X) if as_sparse else X, y, sample_weight=weights)
    assert model.converged_
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ == pytest.approx(
        primal(X, y, model.coef_, model.intercept_, 0.7 * weights, costs)
    )
    np.testing.assert_allclose(model.coef_, W, atol=2e-3)
    assert abs(model.intercept_.sum()) < 1e-9


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(2, 6), st.sampled_from([0.01, 0.3, 5.0]))
def test_the_gap_reported_bounds_the_distance(seed, k, C):
    X, y = blobs(seed, n=40, k=k)
    loose, exact = free(C=C, tol=1e-2).fit(X, y), free(C=C, tol=1e-6).fit(X, y)
    bounds, costs = np.full(len(y), C), 1 - np.eye(k)
    reached = primal(X, y, loose.coef_, loose.intercept_, bounds, costs)
    assert loose.objective_ == pytest.approx(reached)
    assert loose.duality_gap_ <= 1e-2
    assert exact.duality_gap_ <= 1e-6
    assert loose.dual_objective_ <= exact.objective_ * (1 + 1e-9)
    assert exact.dual_objective_ <= loose.objective_ * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 7))
def test_balanced_duals_are_feasible_and_near(seed, k):
    generator = np.random.default_rng(seed)
    X, y = blobs(seed, n=30, k=k)
    bounds = generator.choice([0.0, 0.5, 2.0], len(y))
    problem = SlackProblem(X, y, bounds, 1 - np.eye(k))
    duals = generator.dirichlet(np.full(k, 0.3), len(y)) * bounds[:, None]
    repaired = balanced(problem, duals, generator.normal(size=duals.shape))
    assert repaired.min() >= 0
    np.testing.assert_allclose(repaired.sum(axis=1), bounds, atol=1e-12)
    masses = np.bincount(y, bounds, k)
    np.testing.assert_allclose(repaired.sum(axis=0), masses, atol=1e-9)
    # No more mass moves than the classes have too much.
    excess = np.maximum(duals.sum(axis=0) - masses, 0).sum()
    assert np.abs(repaired - duals).sum() <= 2 * excess + 1e-9
    np.testing.assert_array_equal(
        balanced(problem, repaired, X @ X[:k].T).round(9), repaired.round(9)
    )


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_mass_moves_where_margins_ask_for_it_most(seed):
    generator = np.random.default_rng(seed)
    X, y = blobs(seed, n=12, k=2)
    problem = SlackProblem(X, y, generator.uniform(0, 2, len(y)), 1 - np.eye(2))
    duals = generator.dirichlet(np.full(2, 0.5), len(y)) * problem.bounds[:, None]
    scores = generator.normal(size=duals.shape)
    margins = scores + problem.costs[y]
    repaired = balanced(problem, duals, scores)
    amount = duals[:, 0].sum() - problem.bounds[y == 0].sum()
    giver = 0 if amount > 0 else 1
    best = linprog(
        margins[:, giver] - margins[:, 1 - giver],
        A_eq=np.ones((1, len(y))),
        b_eq=[abs(amount)],
        bounds=[(0, most) for most in duals[:, giver]],
    )
    assert -((repaired - duals) * margins).sum() == pytest.approx(best.fun, abs=1e-9)


def test_moving_all_rows_alike_changes_nothing():
    X, y = blobs(1, n=200)
    here, there = free(tol=1e-6).fit(X, y), free(tol=1e-6).fit(X - X[0], y)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)
    held = CrammerSingerClassifier(tol=1e-6, max_iter=10_000)
    assert here.objective_ < held.fit(X, y).objective_


def test_a_constant_that_is_hardly_regularised_comes_near():
    X, y = blobs(2, n=200)
    wide = CrammerSingerClassifier(intercept_scaling=100, tol=1e-5, max_iter=100_000).fit(X, y)
    assert free(tol=1e-6).fit(X, y).objective_ == pytest.approx(wide.objective_, rel=1e-3)


def test_two_classes_a_class_without_weight_and_rows_of_zeros():
    X, y = blobs(3, k=2)
    model = free().fit(X, y)
    np.testing.assert_allclose(model.intercept_[0], -model.intercept_[1])
    X, y = blobs(3)
    X[:6] = 0
    weights = (y != 2).astype(float)
    best, _ = by_quadratic_program(X[:20], y[:20], weights[:20], 1 - np.eye(3))
    found = free().fit(X[:20], y[:20], sample_weight=weights[:20])
    assert found.objective_ == pytest.approx(best, rel=1e-6)
    # Only intercepts separate these: each row is the class of most weight.
    nothing = free().fit(np.zeros((5, 2)), [0, 0, 0, 1, 1])
    assert nothing.objective_ == pytest.approx(4)
    assert nothing.predict(np.zeros((1, 2))) == [0]


def test_a_warm_start_keeps_the_intercept():
    X, y = blobs(4, n=300, d=6, k=4)
    model = free(warm_start=True, tol=1e-4).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold / 2
    assert model.set_params(C=1.2).fit(X, y).converged_


def test_too_few_passes_warn():
    X, y = blobs(5, n=200)
    with pytest.warns(UserWarning, match="relative duality gap"):
        model = free(max_iter=3, tol=1e-9).fit(X, y)
    assert not model.converged_
    assert model.dual_objective_ <= free(tol=1e-6).fit(X, y).objective_


@pytest.mark.parametrize("settings", [{"hypotheses": "hybrid"}, {"kernel": "rbf"}])
def test_free_intercepts_of_other_hypotheses_are_refused(settings):
    X, y = blobs(6)
    with pytest.raises(KeslerError, match="regularise_intercept=False needs"):
        free(**settings).fit(X, y)
    with pytest.raises(KeslerError, match='start is for hypotheses="multi"'):
        CrammerSingerClassifier(**settings).fit(X, y, start=CrammerSingerClassifier().fit(X, y))


def test_the_regularised_intercept_is_that_of_liblinear():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    theirs = LinearSVC(
        multi_class="crammer_singer",
        C=0.1,
        intercept_scaling=2.0,
        tol=1e-6,
        max_iter=100_000,
    ).fit(X, y)
    ours = CrammerSingerClassifier(C=0.1, intercept_scaling=2.0, tol=1e-5, max_iter=10_000)
    ours.fit(X, y)
    constant = theirs.intercept_ / 2
    best = primal(X, y, theirs.coef_, theirs.intercept_, np.full(len(y), 0.1), 1 - np.eye(10))
    assert ours.objective_ == pytest.approx(best + 0.5 * (constant**2).sum(), rel=3e-5)


# ---- starts from other learners -------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 6), st.sampled_from([0.0, 1.5]))
def test_duals_of_scores_are_feasible_and_no_worse_than_none(seed, k, constant):
    generator = np.random.default_rng(seed)
    X, y = blobs(seed, n=30, k=k)
    bounds = generator.choice([0.0, 0.5, 2.0], len(y))
    costs = generator.uniform(0, 2, (k, k)) * (1 - np.eye(k))
    problem = SlackProblem(X, y, bounds, costs)
    duals = duals_from_scores(problem, generator.normal(size=(len(y), k)), constant)
    assert duals.min() >= -1e-12
    np.testing.assert_allclose(duals.sum(axis=1), bounds, atol=1e-12)
    whole = SlackProblem(np.column_stack([X, np.full(len(y), constant)]), y, bounds, costs)
    reached = dual_of(whole, duals)
    assert reached >= -1e-9
    # No other multiple of the same direction is better.
    for share in (0.0, 0.5, 0.9, 1.1):
        other = whole.idle() + share * (duals - whole.idle())
        if other.min() >= 0:
            assert dual_of(whole, other) <= reached + 1e-9


@pytest.mark.parametrize(
    "settings", [{}, {"fit_intercept": False}, {"regularise_intercept": False}]
)
@pytest.mark.parametrize("k", [2, 4])
def test_an_online_model_is_a_start_that_leads_to_the_same_optimum(settings, k):
    X, y = blobs(7, n=300, k=k)
    labels = np.array(list("dcba"))[y]
    online = OnlineClassifier().fit(X, labels)
    learner = CrammerSingerClassifier(**settings, tol=1e-5, max_iter=10_000, random_state=0)
    cold = learner.fit(X, labels).objective_
    for rows in (X, sparse.csr_array(X)):
        begun = OnlineClassifier("multi", preprocessing=None).fit(rows, labels)
        assert learner.fit(rows, labels, start=begun).objective_ == pytest.approx(cold, rel=2e-5)
    assert learner.fit(X, labels, start=online).objective_ == pytest.approx(cold, rel=2e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("as_sparse", [True, False])
def test_softmax_begins_at_the_weights_of_an_online_model(fit_intercept, as_sparse):
    X, y = blobs(8, n=400, d=6, k=4)
    X = sparse.csr_array(X) if as_sparse else X
    online = OnlineClassifier("multi", update="softmax", preprocessing=None).fit(X, y)
    cold = SoftmaxClassifier(fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    begun = SoftmaxClassifier(fit_intercept=fit_intercept, tol=1e-6).fit(X, y, start=online)
    assert begun.objective_ == pytest.approx(cold.objective_, rel=1e-7)
    # Its own optimum, scaled, is where it ends at once.
    again = SoftmaxClassifier(fit_intercept=fit_intercept, tol=1e-2).fit(X, y, start=cold)
    assert again.n_iter_ == 0
    np.testing.assert_allclose(again.coef_, cold.coef_, rtol=0.05, atol=0.01)


def test_a_start_that_points_the_wrong_way_is_left():
    X, y = blobs(9, n=100, k=3)
    cold = SoftmaxClassifier(tol=1e-6).fit(X, y)
    against = SoftmaxClassifier(tol=1e-6).fit(X, y)
    against.coef_, against.intercept_ = -against.coef_, -against.intercept_
    found = SoftmaxClassifier(tol=1e-6).fit(X, y, start=against)
    assert found.objective_ == pytest.approx(cold.objective_, rel=1e-7)


def test_starts_that_give_nothing_are_refused():
    X, y = blobs(10)
    for estimator in (CrammerSingerClassifier, SoftmaxClassifier):
        with pytest.raises(KeslerError, match="start=dict has no decision_function"):
            estimator().fit(X, y, start={})
        partial = OnlineClassifier("multi", preprocessing=None).fit(X[y < 2], y[y < 2])
        with pytest.raises(KeslerError, match="start has not seen the class 2"):
            estimator().fit(X, y, start=partial)
    with pytest.raises(KeslerError, match="not linear in the rows"):
        SoftmaxClassifier().fit(X, y, start=OnlineClassifier("single").fit(X, y))
    with pytest.raises(KeslerError, match='start is for hypotheses="multi"'):
        SoftmaxClassifier(hypotheses="hybrid").fit(X, y, start=OnlineClassifier().fit(X, y))
