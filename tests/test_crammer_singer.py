"""CrammerSingerClassifier: against quadratic programs solved otherwise, and its own optimality."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import brentq, minimize
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import CrammerSingerClassifier, KeslerError
from kesler.batch import dual_ascent as solver
from kesler.compiled.batch import dual_ascent as compiled
from kesler.compiled.batch import dual_ascent as momentum

seeds = st.integers(0, 2**32 - 1)


def exact(**parameters):
    return CrammerSingerClassifier(
        **{"tol": 1e-9, "max_iter": 100_000, "random_state": 0, **parameters}
    )


def blobs(seed, n=60, d=4, k=3, spread=1.5):
    generator = np.random.default_rng(seed)
    y = np.append(np.arange(k), generator.integers(0, k, n - k))
    X = generator.normal(size=(k, d))[y] + spread * generator.normal(size=(n, d))
    return X, y


# ---- oracles ------------------------------------------------------------------------------------


def losses(X, y, W, costs):
    scores = X @ W.T
    return (costs[y] + scores - scores[np.arange(len(y)), y][:, None]).max(axis=1)


def primal(X, y, W, bounds, costs):
    return 0.5 * (W**2).sum() + bounds @ losses(X, y, W, costs)


def by_quadratic_program(X, y, bounds, costs):
    """Return the optimum: min 1/2 ||W||^2 + sum C_i xi_i under each pair's constraint."""
    (n, d), k = X.shape, len(costs)
    rows = []
    offsets = []
    for i in range(n):
        for r in range(k):
            row = np.zeros((k, d))
            row[y[i]] += X[i]
            row[r] -= X[i]
            rows.append(np.append(row.ravel(), np.eye(n)[i]))
            offsets.append(costs[y[i], r])
    A, b = np.array(rows), np.array(offsets)
    found = minimize(
        lambda v: 0.5 * v[: k * d] @ v[: k * d] + bounds @ v[k * d :],
        np.append(np.zeros(k * d), costs.max(axis=1)[y]),
        jac=lambda v: np.append(v[: k * d], bounds),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-10},
    )
    assert found.success
    return found.x[: k * d].reshape(k, d)


def project(point, mass):
    """Return the nearest point of the simplex of this mass, by bisection."""
    low, high = point.min() - mass - 1, point.max()
    level = brentq(lambda z: np.maximum(point - z, 0).sum() - mass, low, high, xtol=1e-15)
    return np.maximum(point - level, 0)


# ---- the sub-problem of one row -----------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(seeds, st.integers(2, 13), st.integers(1, 9), st.sampled_from([0.01, 1.0, 50.0]))
def test_a_visit_solves_the_sub_problem_of_its_row(seed, k, d, bound):
    generator = np.random.default_rng(seed)
    x, y = generator.normal(size=(1, d)), int(generator.integers(k))
    costs = generator.uniform(0, 2, (k, k)) * (1 - np.eye(k))
    W = generator.choice([0.1, 1, 10]) * generator.normal(size=(k, d))
    duals = generator.dirichlet(np.full(k, 0.5)) * bound * generator.integers(0, 2, k)
    duals[y] += bound - duals.sum()
    norm = float(x[0] @ x[0])
    margins = costs[y] + W @ x[0]
    wanted = project(duals + margins / norm, bound)

    width = -(-k // solver.SIMD_WIDTH) * solver.SIMD_WIDTH
    for rows in (
        compiled.DenseRows(x),
        compiled.SparseRows(np.array([0, d]), np.arange(d, dtype=np.int32), x[0].copy()),
    ):
        table, own = np.zeros((d, width)), np.zeros((1, width))
        table[:, :k], own[0, :k] = W.T, duals
        padded = np.full((k, width), compiled.FORBIDDEN)
        padded[:, :k] = costs
        facts = np.array([[bound, norm, y, 0.0]])
        gain = compiled.ascend(rows, facts, padded, np.array([0]), 0.0, table, own)
        np.testing.assert_allclose(own[0, :k], wanted, atol=1e-9 * bound)
        assert own[0].min() >= 0
        assert not own[0, k:].any()
        np.testing.assert_allclose(own.sum(), bound, rtol=1e-12)
        np.testing.assert_allclose(
            table[:, :k].T - W, np.outer(duals - own[0, :k], x[0]), atol=1e-9
        )
        step = duals - own[0, :k]
        rise = -step @ costs[y] - 0.5 * ((table**2).sum() - (W**2).sum())
        np.testing.assert_allclose(gain, rise, rtol=1e-6, atol=1e-5 * (1 + (W**2).sum()))
        share = bound * margins.max() - duals @ margins
        np.testing.assert_allclose(facts[0, compiled.GAP], share, atol=1e-9 * (1 + abs(share)))


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(2, 13), st.sampled_from([0.0, 0.3, 0.95]))
def test_momentum_takes_rows_on_within_their_simplex(seed, k, beta):
    generator = np.random.default_rng(seed)
    n, d = 5, 3
    X, y = generator.normal(size=(n, d)), generator.integers(0, k, n)
    bounds = generator.choice([0.0, 0.1, 3.0], n)
    costs = generator.uniform(0, 2, (k, k)) * (1 - np.eye(k))
    before, now = (generator.dirichlet(np.full(k, 0.4), n) * bounds[:, None] for _ in range(2))
    now[0] = before[0]
    W, left = generator.normal(size=(k, d)), 4  # the last row is left out
    wanted = now.copy()
    for i in np.flatnonzero(bounds[:left]):
        wanted[i] = project(now[i] + beta * (now[i] - before[i]), bounds[i])

    width = -(-k // solver.SIMD_WIDTH) * solver.SIMD_WIDTH
    table, own, last = np.zeros((d, width)), np.zeros((n, width)), np.zeros((n, width))
    table[:, :k], own[:, :k], last[:, :k] = W.T, now, before
    padded = np.full((k, width), compiled.FORBIDDEN)
    padded[:, :k] = costs
    facts = np.column_stack([bounds, (X**2).sum(axis=1), y, np.zeros(n)])
    rows, order = compiled.DenseRows(X), np.arange(left)
    rise = momentum.extrapolate(rows, facts, padded, order, beta, table, own, last)
    np.testing.assert_allclose(own[:, :k], wanted, atol=1e-9)
    assert own.min() >= 0
    assert not own[:, k:].any()
    np.testing.assert_allclose(table[:, :k].T, W + (now - own[:, :k]).T @ X, atol=1e-9)
    assert rise == pytest.approx(((own[:, :k] - now) * costs[y]).sum(), abs=1e-9)
    np.testing.assert_array_equal(last[:left, :k], now[:left])
    np.testing.assert_array_equal(last[left:, :k], before[left:])


# ---- the whole problem --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("as_sparse", [False, True])
def test_it_finds_the_optimum_of_the_quadratic_program(seed, as_sparse):
    X, y = blobs(seed, n=14, d=3, k=3)
    generator = np.random.default_rng(seed)
    costs = generator.uniform(0.2, 3, (3, 3)) * (1 - np.eye(3))
    weights = generator.uniform(0, 2, 14)
    W = by_quadratic_program(X, y, 0.7 * weights, costs)
    model = exact(C=0.7, fit_intercept=False, costs=lambda right, wrong: costs[right, wrong])
    model.fit(sparse.csr_array(X) if as_sparse else X, y, sample_weight=weights)
    best = primal(X, y, W, 0.7 * weights, costs)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_, W, atol=1e-3)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_it_reaches_the_objective_of_liblinear(C):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    costs = 1 - np.eye(10)
    theirs = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-6, max_iter=100_000
    ).fit(X, y)
    ours = exact(C=C, fit_intercept=False, tol=1e-5).fit(X, y)
    best = primal(X, y, theirs.coef_, np.full(len(y), C), costs)
    assert ours.objective_ == pytest.approx(best, rel=3e-5)
    assert ours.dual_objective_ <= best
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(2, 9), st.sampled_from([0.01, 0.3, 10.0]), st.booleans())
def test_each_fit_meets_the_conditions_of_the_optimum(seed, k, C, cyclic):
    X, y = blobs(seed, n=40, k=k)
    bounds = C * np.random.default_rng(seed).uniform(0.5, 2, len(y))
    costs = 1 - np.eye(k)
    found = solver.solve(
        solver.SlackProblem(X, y, bounds, costs),
        tol=1e-6,
        max_iter=200_000,
        order="cyclic" if cyclic else "random",
        random_state=np.random.RandomState(0),
    )
    assert found.converged
    duals, n = found.duals, len(y)
    assert duals.min() >= 0
    np.testing.assert_allclose(duals.sum(axis=1), bounds, rtol=1e-12)
    moved = -duals.copy()
    moved[np.arange(n), y] += bounds
    W = moved.T @ X
    # What the gap is made of, Fenchel's inequality row by row and that of the regulariser.
    gap = found.objective - found.dual_objective
    assert 0.5 * ((found.weights - W) ** 2).sum() <= gap + 1e-9 * found.objective
    margins = costs[y] + X @ found.weights.T
    behind = margins.max(axis=1)[:, None] - margins
    # Complementary slackness: what has mass is violated most.
    assert (duals * behind).sum() <= gap + 1e-9 * found.objective
    dual = (duals * costs[y]).sum() - 0.5 * (W**2).sum()
    assert found.dual_objective == pytest.approx(dual, rel=1e-9)
    assert found.objective == pytest.approx(primal(X, y, found.weights, bounds, costs), rel=1e-9)
    assert 0 <= found.objective - found.dual_objective + 1e-9 * found.objective
    assert found.relative_gap <= 1e-6


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3, 1e-5])
def test_the_gap_reported_is_that_of_its_weights_and_bounds_the_distance(tol):
    X, y = blobs(1, n=300, d=6, k=5)
    model = exact(tol=tol, fit_intercept=False).fit(X, y)
    bounds, costs = np.ones(len(y)), 1 - np.eye(5)
    assert model.objective_ == pytest.approx(primal(X, y, model.coef_, bounds, costs))
    assert model.duality_gap_ <= tol
    best = exact(fit_intercept=False).fit(X, y)
    assert model.dual_objective_ <= best.objective_ * (1 + 1e-8)
    assert best.dual_objective_ <= model.objective_ * (1 + 1e-8)
    assert model.duality_gap_ == pytest.approx(1 - model.dual_objective_ / model.objective_)


def test_momentum_saves_passes(monkeypatch):
    # Rows much longer than 1 / C and alike: each visit moves little, the next undoes half of it.
    X, y = blobs(21, n=300, d=20, k=4, spread=0.5)
    swift = exact(tol=1e-4).fit(X + 3, y)
    monkeypatch.setattr(solver, "SLOW", np.inf)
    plain = exact(tol=1e-4).fit(X + 3, y)
    assert plain.objective_ == pytest.approx(swift.objective_, rel=2e-4)
    assert swift.n_iter_ < plain.n_iter_ / 2


# ---- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.2, 1.0])
def test_sparse_rows_are_dense_rows(dtype, density):
    X, y = blobs(2, n=120, d=7, k=5)
    X = (X * (np.random.default_rng(0).random(X.shape) < density)).astype(dtype)
    dense, other = exact().fit(X, y), exact().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, other.coef_, atol=1e-4)
    np.testing.assert_array_equal(dense.predict(X), other.predict(sparse.csr_matrix(X)))
    assert dense.coef_.dtype == np.float64


def test_entries_listed_twice_count_as_their_sum():
    X, y = blobs(3, n=20, d=2, k=2)
    twice = sparse.csr_matrix(
        (np.repeat(X.ravel() / 2, 2), np.tile([0, 0, 1, 1], 20), np.arange(21) * 4), shape=(20, 2)
    )
    assert not twice.has_canonical_format
    np.testing.assert_allclose(exact().fit(twice, y).coef_, exact().fit(X, y).coef_, atol=1e-5)
    facts = np.zeros((20, 4))
    rows = compiled.SparseRows(twice.indptr.astype(np.int64), twice.indices, twice.data)
    compiled.square_rows(rows, 2, facts)
    np.testing.assert_allclose(facts[:, compiled.NORM], (X**2).sum(axis=1))


def test_a_weight_is_so_many_rows():
    X, y = blobs(4)
    counts = np.random.default_rng(4).integers(0, 4, len(y))
    weighted = exact().fit(X, y, sample_weight=counts)
    repeated = exact().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


def test_weights_of_classes_are_those_of_their_rows():
    X, y = blobs(5)
    given = exact(class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    rows = exact().fit(X, y, sample_weight=np.array([3.0, 1.0, 0.5])[y])
    np.testing.assert_allclose(given.coef_, rows.coef_, atol=1e-4)
    balanced = exact(class_weight="balanced").fit(X, y)
    rows = exact().fit(X, y, sample_weight=(len(y) / (3 * np.bincount(y)))[y])
    np.testing.assert_allclose(balanced.coef_, rows.coef_, atol=1e-4)


def test_delta_is_the_cost_that_all_confusions_share():
    X, y = blobs(6)
    wide = exact(delta=2.5).fit(X, y)
    settings = exact(costs=lambda right, wrong: 2.5).fit(X, y)
    np.testing.assert_allclose(wide.coef_, settings.coef_)
    # Scaling margins and weights alike is scaling the regulariser.
    scaled = exact(C=1 / 2.5).fit(X, y)
    np.testing.assert_allclose(wide.coef_ / 2.5, scaled.coef_, atol=1e-4)
    assert not exact(delta=0).fit(X, y).coef_.any()


def test_dear_confusions_become_rarer():
    X, y = blobs(7, n=400, spread=2)
    plain = exact(tol=1e-4).fit(X, y).predict(X)
    dear = exact(tol=1e-4, costs={(0, 1): 20, (0, 2): 20}).fit(X, y).predict(X)
    assert (dear[y == 0] != 0).sum() < (plain[y == 0] != 0).sum() / 2


def test_the_intercept_is_the_weight_of_a_constant():
    X, y = blobs(8)
    with_constant = np.column_stack([X, np.full(len(y), 3.0)])
    ours = exact(intercept_scaling=3.0).fit(X, y)
    settings = exact(fit_intercept=False).fit(with_constant, y)
    np.testing.assert_allclose(ours.coef_, settings.coef_[:, :-1], atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, 3 * settings.coef_[:, -1], atol=1e-5)
    np.testing.assert_allclose(
        ours.decision_function(X), settings.decision_function(with_constant), atol=1e-4
    )


def test_two_classes_have_one_score_and_two_rows_of_weights():
    X, y = blobs(9, k=2)
    labels = np.array(["no", "yes"])[y]
    model = exact().fit(X, labels)
    assert model.coef_.shape == (2, 4)
    np.testing.assert_allclose(model.coef_[0], -model.coef_[1], atol=1e-9)
    scores = model.decision_function(X)
    assert scores.shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


def test_the_same_seed_gives_the_same_model_and_cyclic_order_needs_none():
    X, y = blobs(10, n=200)
    first, again = (CrammerSingerClassifier(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    first, again = (CrammerSingerClassifier(order="cyclic").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    other = CrammerSingerClassifier(random_state=4).fit(X, y)
    assert not np.array_equal(first.coef_, other.coef_)


# ---- warm starts --------------------------------------------------------------------------------


def test_a_warm_start_goes_on_from_the_last_fit():
    X, y = blobs(11, n=400, d=8, k=5)
    model = exact(warm_start=True, tol=1e-5).fit(X, y)
    cold = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= 2 < cold
    assert model.set_params(C=1.1).fit(X, y).n_iter_ < cold
    fresh = exact(tol=1e-5, C=1.1).fit(X, y)
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-5)


def test_a_warm_start_takes_rows_and_labels_that_changed():
    X, y = blobs(12, n=300, d=5, k=4)
    model = exact(warm_start=True, tol=1e-5).fit(X[:200], y[:200])
    changed = np.where(np.arange(300) % 7 == 0, (y + 1) % 4, y)
    for rows, labels in ((X, y), (X, changed), (X[:50], y[:50]), (X[y < 3], y[y < 3])):
        again = model.fit(rows, labels)
        fresh = exact(tol=1e-5).fit(rows, labels)
        assert again.objective_ == pytest.approx(fresh.objective_, rel=2e-5)
    weights = np.arange(300) % 2
    assert model.fit(X, y, sample_weight=weights).converged_
    assert model.fit(X, y, sample_weight=1 - weights).converged_
    fresh = exact(tol=1e-5).fit(X, y, sample_weight=1 - weights)
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-5)


# ---- what is odd --------------------------------------------------------------------------------


def test_rows_of_zeros_cost_what_they_must_and_move_nothing():
    X, y = blobs(13, n=30, k=3)
    empty = np.vstack([X, np.zeros((2, 4)), np.full((1, 4), 1e-170)])
    labels = np.append(y, [0, 1, 2])
    without, with_them = exact(fit_intercept=False).fit(X, y), exact(fit_intercept=False)
    for rows in (empty, sparse.csr_array(empty)):
        with_them.fit(rows, labels)
        assert with_them.objective_ == pytest.approx(without.objective_ + 3)
        np.testing.assert_allclose(with_them.coef_, without.coef_, atol=1e-5)
    nothing = exact(fit_intercept=False).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert nothing.objective_ == nothing.dual_objective_ == 4


def test_classes_of_one_row_and_constant_columns_are_nothing_odd():
    X, y = blobs(14, n=20, k=3)
    X, y = np.column_stack([X, np.ones(20), np.zeros(20)]), np.append(y[:-1], 7)
    model = exact(C=100).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.converged_
    assert not model.coef_[:, -1].any()


def test_arrays_of_any_kind_are_read(tmp_path):
    X, y = blobs(15)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = sparse.csr_array(X)
    rows.data.flags.writeable = False
    wide = sparse.csr_array(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    wanted = exact(fit_intercept=False).fit(X, y).coef_
    for each in (mapped, rows, wide):
        np.testing.assert_allclose(exact(fit_intercept=False).fit(each, y).coef_, wanted, atol=1e-5)


def test_too_few_passes_warn():
    X, y = blobs(16, n=200)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is .* raise max_iter=2"):
        model = CrammerSingerClassifier(tol=1e-9, max_iter=2).fit(X, y)
    assert not model.converged_
    assert model.duality_gap_ > 1e-9
    assert 2 <= model.n_iter_ <= 3


def test_it_is_cloned_and_pickled():
    X, y = blobs(17)
    model = exact(costs={(0, 1): 2.0}, warm_start=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"C": 0}, "C=0 must be a finite number above 0"),
        ({"C": -1.0}, "C=-1.0 must be"),
        ({"C": "1"}, "C='1' must be"),
        ({"tol": 0.0}, "tol=0.0 must be"),
        ({"tol": float("nan")}, "tol=nan must be"),
        ({"delta": -1}, "delta=-1 must be a finite number of 0 or more"),
        ({"intercept_scaling": 0}, "intercept_scaling=0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be an integer"),
        ({"max_iter": 1.5}, "max_iter=1.5 must be"),
        ({"order": "sorted"}, "order='sorted' is unknown: use 'random' or 'cyclic'"),
        ({"hypotheses": "tree"}, "hypotheses='tree' is not known"),
        ({"costs": {(0, 9): 2.0}}, "costs contain the label 9, which no row has"),
        ({"costs": {(0, 1): -2.0}}, "a cost must be a finite number, 0 or more"),
        ({"class_weight": {0: 0, 1: 0, 2: 0}}, "class_weight is zero for every class"),
        ({"class_weight": {0: -1.0}}, "class_weight of 0 is -1: it must be 0 or more"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, sentence):
    X, y = blobs(18)
    with pytest.raises(KeslerError, match=sentence.replace("(", r"\(")):
        CrammerSingerClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "weights", "sentence"),
    [
        ([[1.0], [2.0]], [1, 1], None, "y has one class only, 1:"),
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [np.inf]], [0, 1], None, "infinity"),
        ([[1.0], [2.0]], [0, 1], [1, -2], "row 1 has weight -2: .* give 0 or more"),
        ([[1.0], [1e200]], [0, 1], None, "squared length of row 1 overflows"),
        ([[1.0]] * 60, [i / 7 for i in range(60)], None, "Unknown label type"),
        ([[1.0], [2.0]], [0, 1, 1], None, "inconsistent numbers of samples"),
    ],
)
def test_bad_rows_are_refused(X, y, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        CrammerSingerClassifier().fit(X, y, sample_weight=weights)


# ---- scikit-learn -------------------------------------------------------------------------------


def test_scikit_learn_checks_pass():
    estimator = CrammerSingerClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    n_checks = len(list(estimator_checks_generator(estimator)))
    assert len(results) == n_checks
    assert Counter(r["status"] for r in results)["passed"] >= n_checks - 1 >= 54
