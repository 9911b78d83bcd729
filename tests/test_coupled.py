"""Batch solvers over any hypotheses: against dense features, liblinear, scipy and the KKT."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import CrammerSingerClassifier, OnlineClassifier, SoftmaxClassifier, mercer_kernel
from kesler.batch.coupled import (
    MOST_ROWS,
    kernel_table,
    require_tabulable,
    settled,
    solve_coupled,
    solve_kernel_dual,
)
from kesler.batch.frozen import FrozenHypotheses, JointDesign, coupling_of, members_of
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.hypotheses import Grouped, Ordered, PerClass, Shared
from kesler.kernels import RBF, Linear, Polynomial
from kesler.maps import (
    Contrast,
    Difference,
    Distance,
    Frequency,
    GaussianRatio,
    Product,
    ProductMean,
    SubExperts,
)

KINDS = {"left": [0, 1], "right": [1, 2, 3], "odd": [1, 3]}
HYPOTHESES = {
    "multi": [PerClass()],
    "grouped": [Grouped(KINDS)],
    "single": [Shared(Distance())],
    "hybrid": [PerClass(), Shared(Frequency(0.6, 0.3))],
    "mapped": [PerClass(Distance())],
    "all": [Grouped(KINDS, Product()), PerClass(), Shared(Distance()), Grouped(KINDS)],
}


def make_data(n=40, d=5, k=4, seed=0):
    """Rows about the centres of their classes, some values 0."""
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(k), random.integers(k, size=n - k)]
    X = random.normal(size=(n, d)) + 1.5 * np.eye(k, d)[y]
    X[random.random(X.shape) < 0.2] = 0
    return X.astype(np.float32), y


def design_of(parts, X, y, **settings):
    rows = Rows.from_sparse(X) if sparse.issparse(X) else Rows.from_dense(X)
    held = FrozenHypotheses(parts, list(range(y.max() + 1)), rows, y, **settings)
    return JointDesign(held, held.as_seen(rows))


def views_by_hand(view, X, y):
    """phi(x_i, r), shape (n_rows, n_classes, n_features)."""
    x = X[:, None, :].astype(float)
    of = [X[y == r].astype(float) for r in range(y.max() + 1)]
    mean, first = np.array([m.mean(0) for m in of]), np.array([m[0] for m in of])
    share = np.array([(m != 0).mean(0, dtype=np.float32) for m in of])
    if view is None:
        return np.broadcast_to(x, (len(X), len(of), X.shape[1]))
    if isinstance(view, Distance):
        return np.abs(x - mean)
    if isinstance(view, Product):
        return x * first
    common, rare = share >= np.float32(view.common), share <= np.float32(view.rare)
    return x * (view.reward * common + view.penalty * rare)


def phi_by_hand(parts, X, y):
    """Phi(x_i, r) as one long vector, shape (n_rows, n_classes, n_features * n_hypotheses)."""
    blocks = []
    for part in parts:
        views, members = views_by_hand(part.feature_map, X, y), members_of(part, range(y.max() + 1))
        width = 1 + max(max(m, default=0) for m in members)
        belongs = np.array([[h in m for h in range(width)] for m in members], dtype=float)
        blocks.append(views[:, :, :, None] * belongs[:, None, :])
    together = np.concatenate(blocks, axis=3)
    return together.reshape(*together.shape[:2], -1)


def solve(solver, *arguments, tol=1e-3, max_iter=20_000):
    shuffle = np.random.default_rng(0).permutation
    return solver(*arguments, tol=tol, max_iter=max_iter, shuffle=shuffle)


def objective(phi, y, caps, margins, flat):
    scores = phi @ flat
    rows = np.arange(len(y))
    losses = (margins[y] + scores - scores[rows, y][:, None]).max(axis=1)
    return 0.5 * flat @ flat + caps @ losses


def unequal_margins(k):
    margins = 1 + np.random.default_rng(5).random((k, k))
    np.fill_diagonal(margins, 0)
    return margins


# ---- the design ---------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", HYPOTHESES.values(), ids=HYPOTHESES)
def test_scores_adjoint_and_gram_are_those_of_dense_joint_features(parts):
    X, y = make_data()
    design, phi = design_of(parts, X, y), phi_by_hand(parts, X, y)
    random = np.random.default_rng(1)
    weights = random.normal(size=design.hypotheses.shape)
    coefficients = random.normal(size=(len(y), 4)) * (random.random((len(y), 4)) < 0.6)
    scores, moved = design.forward(weights), design.adjoint(coefficients)
    np.testing.assert_allclose(scores, phi @ weights.ravel(), rtol=1e-5, atol=1e-5)
    expected = np.einsum("ir,irf->f", coefficients, phi)
    np.testing.assert_allclose(moved.ravel(), expected, rtol=1e-5, atol=1e-5)
    squares = design.hypotheses.adjoint(design.rows, coefficients, power=2)
    expected = np.einsum("ir,irf->f", coefficients, phi**2)
    np.testing.assert_allclose(squares.ravel(), expected, rtol=1e-5, atol=1e-5)
    assert np.sum(scores * coefficients) == pytest.approx(np.sum(weights * moved), rel=1e-12)
    gram = np.einsum("irf,isf->irs", phi, phi)
    np.testing.assert_allclose(design.hypotheses.gram(design.rows), gram, rtol=1e-5, atol=1e-5)


MAPS = [
    *(Product(), ProductMean(), Frequency(0.6, 0.3), Contrast(), Contrast(relative=False)),
    *(Distance(), Difference(), GaussianRatio()),
]


@pytest.mark.parametrize("view", MAPS, ids=repr)
def test_views_are_those_of_an_online_learner_after_its_last_row(view):
    X, y = make_data(seed=2)
    order = np.random.default_rng(3).permutation(len(y))  # classes are not seen in their order
    X, y = X[order], y[order]
    parts = [PerClass(), Shared(view), Grouped(KINDS, view)]
    learner = OnlineClassifier(parts, update="perceptron", intercept=0.5).fit(X, y)
    design = design_of(parts, X, y, constant=0.5)
    of_class, shared, grouped = learner._learner.hypothesis_weights()
    labels, groups = learner._learner.classes.order, learner._learner.groups[2]
    names = []  # groups are numbered as classes bring them along
    for label in range(4):
        names += [g for g in Grouped(KINDS).groups_of(label) if g not in names]
    columns = [groups[name] for name in names]
    weights = np.hstack([of_class[:, labels], shared, grouped[:, columns]]).astype(float)
    np.testing.assert_allclose(
        design.forward(weights), learner.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_sparse_rows_weights_and_pickles_give_the_same_design():
    X, y = make_data()
    parts = HYPOTHESES["hybrid"]
    dense, thin = design_of(parts, X, y), design_of(parts, sparse.csr_array(X), y)
    weights = np.random.default_rng(0).normal(size=dense.hypotheses.shape)
    np.testing.assert_array_equal(dense.forward(weights), thin.forward(weights))
    again = pickle.loads(pickle.dumps(dense))
    np.testing.assert_array_equal(dense.forward(weights), again.forward(weights))
    twice = design_of(parts, np.vstack([X, X[:7]]), np.r_[y, y[:7]])
    heavy = design_of(parts, X, y, row_weights=np.r_[np.full(7, 2.0), np.ones(len(y) - 7)])
    np.testing.assert_array_equal(heavy.forward(weights), twice.forward(weights)[: len(y)])


def test_the_tables_of_parts_are_views_of_the_weights():
    X, y = make_data()
    held = design_of(HYPOTHESES["all"], X, y).hypotheses
    weights = np.zeros(held.shape)
    tables = held.weights_of_parts(weights)
    assert [table.shape for table in tables] == [(5, 3), (5, 4), (5, 1), (5, 3)]
    tables[2][:] = 1
    assert weights.sum() == 5


# ---- the coupled dual ---------------------------------------------------------------------------


@pytest.mark.parametrize("parts", HYPOTHESES.values(), ids=HYPOTHESES)
def test_fits_meet_the_conditions_of_the_optimum(parts):
    X, y = make_data()
    caps, margins = np.linspace(0.02, 0.4, len(y)), unequal_margins(4)
    design, phi = design_of(parts, X, y), phi_by_hand(parts, X, y)
    found = solve(
        solve_coupled,
        design,
        y,
        caps,
        margins,
        tol=1e-5,
    )
    duals = found.duals
    assert found.converged
    assert 0 <= found.relative_gap <= 1e-5
    np.testing.assert_allclose(duals.sum(axis=1), 0, atol=1e-12)
    assert (duals <= caps[:, None] * np.eye(4)[y]).all()
    flat = np.einsum("ir,irf->f", duals, phi)
    np.testing.assert_allclose(found.weights.ravel(), flat, rtol=1e-4, atol=1e-4)
    dual = -0.5 * flat @ flat - np.sum(duals * margins[y])
    assert found.dual_objective == pytest.approx(dual, rel=1e-4)
    assert found.objective == pytest.approx(objective(phi, y, caps, margins, flat), rel=1e-4)


def test_one_hypothesis_a_class_is_liblinears_problem():
    X, y = make_data(60)
    C, margins = 0.3, 1 - np.eye(4)
    found = solve(
        solve_coupled,
        design_of([PerClass()], X, y),
        y,
        np.full(60, C),
        margins,
        tol=1e-6,
    )
    peer = LinearSVC(
        multi_class="crammer_singer",
        C=C,
        fit_intercept=False,
        tol=1e-8,
        max_iter=200_000,
        random_state=0,
    ).fit(X, y)
    phi = phi_by_hand([PerClass()], X, y)
    theirs = objective(phi, y, np.full(60, C), margins, peer.coef_.T.ravel())
    assert found.objective == pytest.approx(theirs, rel=2e-6)


@pytest.mark.parametrize("name", ["hybrid", "all"])
def test_the_optimum_is_what_a_general_solver_finds(name):
    X, y = make_data(12, 3, 4, seed=4)
    parts, caps, margins = HYPOTHESES[name], np.full(12, 0.2), unequal_margins(4)
    phi = phi_by_hand(parts, X, y)
    found = solve(
        solve_coupled, design_of(parts, X, y), y, caps, margins, tol=1e-8, max_iter=50_000
    )
    n = phi.shape[2]  # variables: the weights, then a slack for each row
    asked = (phi[np.arange(12), y][:, None] - phi).reshape(48, n)
    slack = np.repeat(np.eye(12), 4, axis=0)
    peer = minimize(
        lambda v: 0.5 * v[:n] @ v[:n] + caps @ v[n:],
        np.r_[np.zeros(n), np.full(12, 3.0)],
        jac=lambda v: np.r_[v[:n], caps],
        constraints={
            "type": "ineq",
            "fun": lambda v: asked @ v[:n] + slack @ v[n:] - margins[y].ravel(),
            "jac": lambda v: np.hstack([asked, slack]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert peer.success
    assert found.objective == pytest.approx(peer.fun, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_problem_of_one_example_is_solved(seed):
    # With one row and the others without weight to speak of, the dual is that row's own program.
    X, y = make_data(5, 4, 5, seed=seed)
    parts = [PerClass(), Shared(Distance()), Grouped({"few": [0, 1, 2]})]
    margins, phi = unequal_margins(5), phi_by_hand(parts, X, y)[0]
    rows = Rows.from_dense(X)
    held = FrozenHypotheses(parts, list(range(5)), rows, y)
    one = JointDesign(held, held.as_seen(rows)[0:1])
    found = solve(solve_coupled, one, y[:1], np.array([0.7]), margins, tol=1e-10)
    gram, asked = phi @ phi.T, margins[y[0]]
    caps = 0.7 * (np.arange(5) == y[0])
    peer = minimize(
        lambda a: 0.5 * a @ gram @ a + a @ asked,
        np.zeros(5),
        jac=lambda a: gram @ a + asked,
        bounds=[(None, cap) for cap in caps],
        constraints={"type": "eq", "fun": np.sum, "jac": lambda a: np.ones(5)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert peer.success
    assert found.dual_objective == pytest.approx(-peer.fun, rel=1e-6)


def test_rows_without_features_and_equal_views_are_no_stumbling_block():
    X, y = make_data()
    X[::3] = 0
    found = solve(
        solve_coupled,
        design_of([PerClass()], X, y),
        y,
        np.full(len(y), 0.1),
        1 - np.eye(4),
        tol=1e-6,
    )
    assert found.converged
    all_alike = design_of([Grouped({"all": [0, 1, 2, 3]})], X, y)  # scores cannot differ
    found = solve(solve_coupled, all_alike, y, np.full(len(y), 0.1), 1 - np.eye(4))
    assert found.objective == pytest.approx(0.1 * len(y))


def test_examples_that_were_left_out_are_looked_at_again():
    X, y = make_data(80, 8, 4)
    design, caps = design_of(HYPOTHESES["single"], X, y), np.full(80, 10.0)
    found = solve(solve_coupled, design, y, caps, 1 - np.eye(4), tol=1e-4, max_iter=3000)
    assert found.converged  # never, if they are not


def test_a_search_cut_short_says_so_and_bounds_the_optimum():
    X, y = make_data()
    design = design_of(HYPOTHESES["hybrid"], X, y)
    exact = solve(
        solve_coupled, design, y, np.ones(len(y)), 1 - np.eye(4), tol=1e-6, max_iter=50_000
    )
    cut = solve(solve_coupled, design, y, np.ones(len(y)), 1 - np.eye(4), tol=1e-9, max_iter=3)
    assert not cut.converged
    assert cut.dual_objective <= exact.objective
    assert exact.dual_objective <= cut.objective


# ---- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [[PerClass()], [Grouped(KINDS)], [PerClass(), Grouped(KINDS)]])
def test_the_linear_kernel_is_the_linear_learner(parts):
    X, y = make_data()
    caps, margins = np.linspace(0.02, 0.4, len(y)), unequal_margins(4)
    design = design_of(parts, X, y)
    rows = Rows.from_dense(X)
    table = kernel_table(Linear(), rows, rows)
    coupling = coupling_of(design.hypotheses.members)
    kernelled = solve(solve_kernel_dual, table, coupling, y, caps, margins, tol=1e-6)
    plain = solve(solve_coupled, design, y, caps, margins, tol=1e-6)
    assert kernelled.converged
    assert kernelled.objective == pytest.approx(plain.objective, rel=3e-6)
    scores = table[:, kernelled.supports] @ kernelled.coefficients
    np.testing.assert_allclose(scores, design.forward(plain.weights), atol=2e-2)
    assert set(kernelled.supports) == set(np.flatnonzero(kernelled.duals.any(axis=1)))


@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(2)], ids=repr)
def test_tables_hold_the_kernel_of_each_pair(kernel):
    X, _ = make_data()
    rows = Rows.from_dense(X)
    x = X.astype(float)
    inner, squared = x @ x.T, ((x[:, None] - x) ** 2).sum(axis=2)
    by_hand = np.exp(-squared / 4) if isinstance(kernel, RBF) else (inner + 1) ** 2
    np.testing.assert_allclose(kernel_table(kernel, rows, rows), by_hand, rtol=1e-6)
    thin = Rows.from_sparse(sparse.csr_array(X))
    np.testing.assert_allclose(kernel_table(kernel, thin, thin[:9]), by_hand[:, :9], rtol=1e-6)


@mercer_kernel(of="vectors")
def overlap(x, z):
    total = 0.0
    for i in range(x.shape[0]):
        total += min(abs(x[i]), abs(z[i]))
    return total


def test_kernels_of_vectors_are_given_vectors():
    X, _ = make_data()
    rows = Rows.from_dense(X)
    by_hand = np.minimum(np.abs(X)[:, None], np.abs(X)).sum(axis=2)
    np.testing.assert_allclose(kernel_table(overlap, rows, rows[:5]), by_hand[:, :5], rtol=1e-6)
    with pytest.raises(KeslerError, match="given whole vectors"):
        kernel_table(overlap, rows, Rows.from_sparse(sparse.csr_array(X)))


def test_auto_sigma_is_a_share_of_the_median_distance():
    X, _ = make_data()
    squared = ((X[:, None].astype(float) - X) ** 2).sum(axis=2)
    median = np.median(squared[np.triu_indices(len(X), k=1)])
    assert settled(RBF(), Rows.from_dense(X)).sigma == pytest.approx(0.04 * median)
    assert settled(RBF(), Rows.from_dense(X[:1])).sigma == 1.0
    assert settled(RBF(3.0), Rows.from_dense(X)) == RBF(3.0)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([Ordered()], "Ordered hypotheses can be learned online"),
        ([Shared(SubExperts())], "scores of sub-experts"),
        ([Shared(Frequency(), begins_at=1.0)], "does not depend on the initial weights"),
    ],
)
def test_hypotheses_without_a_batch_problem_are_refused(parts, sentence):
    X, y = make_data()
    with pytest.raises(KeslerError, match=sentence):
        design_of(parts, X, y)


def test_sparse_rows_meet_no_map_that_looks_at_zeros():
    X, y = make_data()
    with pytest.raises(KeslerError, match="not zero at zero"):
        design_of([Shared(Distance())], sparse.csr_array(X), y)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"caps": -np.ones(40)}, "must be a finite number, 0 or more"),
        ({"margins": np.ones((4, 4))}, "0 between a class and itself"),
        ({"margins": np.eye(4) - 1}, "margins must be finite"),
        ({"tol": 0}, "tol=0 must be a finite number above 0"),
        ({"max_iter": 0}, "an integer of 1 or more"),
        ({"max_iter": 1.5}, "an integer of 1 or more"),
    ],
)
def test_numbers_out_of_range_are_refused(settings, sentence):
    X, y = make_data()
    given = {"caps": np.ones(40), "margins": 1 - np.eye(4), "tol": 1e-3, "max_iter": 9, **settings}
    with pytest.raises(KeslerError, match=sentence):
        solve_coupled(design_of([PerClass()], X, y), y, **given, shuffle=np.sort)
    with pytest.raises(KeslerError, match=sentence):
        solve_kernel_dual(np.eye(40), np.eye(4), y, **given, shuffle=np.sort)


def test_tables_beyond_memory_are_refused():
    require_tabulable(MOST_ROWS)
    with pytest.raises(KeslerError, match="need a table of 2"):
        require_tabulable(MOST_ROWS + 1)


# ---- the estimators -----------------------------------------------------------------------------

EXACT = {"tol": 1e-6, "max_iter": 100_000, "random_state": 0}


@pytest.mark.parametrize("parts", HYPOTHESES.values(), ids=HYPOTHESES)
def test_the_classifier_minimises_the_objective_over_its_hypotheses(parts):
    X, y = make_data()
    learner = CrammerSingerClassifier(0.2, hypotheses=parts, fit_intercept=False, **EXACT)
    learner.fit(X, y)
    phi = phi_by_hand(parts, X, y)
    weights = [learner.coef_.T] if parts == [PerClass()] else learner.weights_
    flat = np.hstack(weights).ravel()
    caps, margins = np.full(len(y), 0.2), 1 - np.eye(4)
    assert learner.objective_ == pytest.approx(objective(phi, y, caps, margins, flat), rel=1e-5)
    assert learner.duality_gap_ <= 1e-6
    scores = phi @ flat
    np.testing.assert_allclose(learner.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(learner.predict(X), scores.argmax(axis=1))


def test_a_grouped_family_of_single_classes_is_the_per_class_learner():
    X, y = make_data()
    alone = [Grouped({f"only {r}": [r] for r in range(4)})]
    one = CrammerSingerClassifier(0.2, **EXACT).fit(X, y)
    other = CrammerSingerClassifier(0.2, hypotheses=alone, **EXACT).fit(X, y)
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-6)
    np.testing.assert_allclose(other.weights_[0][1:], one.coef_.T, atol=1e-2)
    np.testing.assert_allclose(other.weights_[0][0], one.intercept_, atol=1e-2)


def test_kernel_machines_sum_over_their_supports():
    X, y = make_data()
    learner = CrammerSingerClassifier(2.0, kernel="rbf", sigma=3.0, tol=1e-5).fit(X, y)
    new = make_data(seed=9)[0]
    similarities = rbf_kernel(new, X[learner.support_], gamma=1 / 6)
    scores = similarities @ learner.dual_coef_
    np.testing.assert_allclose(learner.decision_function(new), scores, rtol=1e-4, atol=1e-4)
    thin = clone(learner).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.decision_function(new), scores, rtol=1e-2, atol=1e-2)
    linear = CrammerSingerClassifier(0.2, kernel="linear", **EXACT).fit(X, y)
    weights = CrammerSingerClassifier(0.2, **EXACT).fit(X, y)
    assert linear.objective_ == pytest.approx(weights.objective_, rel=2e-6)


@pytest.mark.parametrize("parts", [HYPOTHESES["hybrid"], HYPOTHESES["all"]], ids=["hybrid", "all"])
def test_the_softmax_optimum_is_what_a_general_solver_finds(parts):
    X, y = make_data()
    model = SoftmaxClassifier(0.5, hypotheses=parts, fit_intercept=False, tol=1e-7).fit(X, y)
    phi = phi_by_hand(parts, X, y)

    def loss(flat):
        scores = phi @ flat
        scores -= scores.max(axis=1, keepdims=True)
        probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        value = 0.5 * flat @ flat - 0.5 * np.log(probabilities[np.arange(len(y)), y]).sum()
        return value, flat + 0.5 * np.einsum("ir,irf->f", probabilities - np.eye(4)[y], phi)

    peer = minimize(loss, np.zeros(phi.shape[2]), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert model.objective_ == pytest.approx(peer.fun, rel=1e-6)
    np.testing.assert_allclose(np.hstack(model.weights_).ravel(), peer.x, atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), phi @ peer.x, atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        CrammerSingerClassifier(0.1, hypotheses="hybrid"),
        CrammerSingerClassifier(0.1, kernel="rbf"),
        SoftmaxClassifier(hypotheses="hybrid"),
    ],
    ids=["hybrid", "kernel", "softmax"],
)
def test_models_are_pickled_refitted_and_take_up_where_they_were(model):
    X, y = make_data()
    model = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    warm = clone(model).set_params(warm_start=True).fit(X, y).fit(X, y)
    assert warm.n_iter_ <= 1
    plain = model.set_params(hypotheses="multi").fit(X, y)
    if getattr(plain, "kernel", None) is None:
        assert hasattr(plain, "coef_")
        assert not hasattr(plain, "weights_")


def test_rows_of_weight_0_are_not_looked_at():
    X, y = make_data()
    with_more = np.vstack([X, 100 + X[:5]]), np.r_[y, y[:5]], np.r_[np.ones(40), np.zeros(5)]
    for model in (
        CrammerSingerClassifier(0.1, hypotheses="hybrid", **EXACT),
        SoftmaxClassifier(hypotheses="hybrid", tol=1e-7),
    ):
        alone = clone(model).fit(X, y).decision_function(X)
        beside = clone(model).fit(*with_more).decision_function(X)
        np.testing.assert_allclose(beside, alone, atol=2e-3)


@pytest.mark.parametrize("estimator", [CrammerSingerClassifier, SoftmaxClassifier])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hypotheses": "tree"}, "hypotheses='tree' is not known"),
        ({"hypotheses": "hybrid", "feature_map": "squares"}, "squares"),
        ({"hypotheses": [Shared(SubExperts())]}, "scores of sub-experts"),
        ({"hypotheses": "hybrid", "feature_map": "distance"}, "not zero at zero"),
    ],
)
def test_hypotheses_that_cannot_be_learnt_are_refused(estimator, settings, sentence):
    X, y = make_data()
    model = estimator(**settings)
    with pytest.raises(KeslerError, match=sentence):
        model.fit(sparse.csr_array(X), y)
    assert not hasattr(model, "classes_")


def test_what_kernels_and_weights_do_not_go_with_is_refused():
    X, y = make_data()
    with pytest.raises(KeslerError, match="has a feature map, which batch learners do not support"):
        CrammerSingerClassifier(hypotheses="hybrid", kernel="rbf").fit(X, y)
    with pytest.raises(KeslerError, match="kernel='cosine' is not known"):
        CrammerSingerClassifier(kernel="cosine").fit(X, y)
    with pytest.raises(KeslerError, match=r"y has one class only, 2: .* of weight above 0"):
        CrammerSingerClassifier(hypotheses="hybrid").fit(X, y, sample_weight=y == 2)


@pytest.mark.parametrize(
    "model",
    [
        CrammerSingerClassifier(hypotheses="hybrid"),
        CrammerSingerClassifier(kernel="rbf"),
        SoftmaxClassifier(hypotheses="hybrid"),
    ],
    ids=["hybrid", "kernel", "softmax"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks_pass(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert len(results) == len(list(estimator_checks_generator(model))) >= 52
