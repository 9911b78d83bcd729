"""MixedNormClassifier: conditions of optimality, independent solvers, its path, its refusals."""

import pickle
import runpy
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import KeslerError, MixedNormClassifier
from kesler.baselines.mixed_norm_problem import MixedNorm
from kesler.baselines.proximal import LEAST_CURVE, MOST_CURVE
from kesler.codes import RowNorm
from kesler.compiled.batch.mixed_norm import proximal_step
from kesler.dictionaries import Dictionary
from kesler.dictionaries.steps import Product

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
NORMS = ("inf-1", "2-1", "1-1")
MARGINS = {"softmax": 0.0, "margin-softmax": 1.0}


# ---- references
# --------------------------------------------------------------------------------------


def leads(X, y, W, b, margin):
    scores = X @ W.T + b
    rivals = margin * (np.arange(len(W)) != y[:, None])
    return rivals + scores - scores[np.arange(len(y)), y][:, None]


def mean_loss(X, y, counts, W, b, margin):
    return counts @ logsumexp(leads(X, y, W, b, margin), axis=1) / counts.sum()


def gradients(X, y, counts, W, b, margin):
    residuals = softmax(leads(X, y, W, b, margin), axis=1)
    residuals[np.arange(len(y)), y] -= 1
    residuals *= (counts / counts.sum())[:, None]
    return residuals.T @ X, residuals.sum(axis=0)


def norm_of(W, norm):
    return sizes_of(W, norm).sum()


def sizes_of(W, norm):
    return np.linalg.norm(W, ord={"inf-1": np.inf, "2-1": 2, "1-1": 1}[norm], axis=0)


def dual_norms(gradient, norm):
    return np.linalg.norm(gradient, ord={"inf-1": 1, "2-1": 2, "1-1": np.inf}[norm], axis=0)


def least_objective(X, y, counts, alpha, norm, margin, intercept):
    """The objective where a general solver stops, the norm being bounds on smooth variables.

    W = P - N with P, N >= 0, |W_rj| <= t_j; or |W_j| = min over t of (|W_j|^2 / t + t) / 2.
    """
    k, d = y.max() + 1, X.shape[1]
    split = k * d

    def parts(z):
        b = z[split : split + k] if intercept else np.zeros(k)
        return z[:split].reshape(k, d), b, z[split + k :]

    def value(z):
        W, b, t = parts(z)
        of_w, of_b = gradients(X, y, counts, W, b, margin)
        loss = mean_loss(X, y, counts, W, b, margin)
        if norm == "inf-1":
            return loss + alpha * t.sum(), np.concatenate([of_w.ravel(), of_b, np.full(d, alpha)])
        lengths = np.sqrt((W**2).sum(axis=0) + 1e-18)
        of_w = of_w + alpha * W / lengths
        return loss + alpha * lengths.sum(), np.concatenate([of_w.ravel(), of_b, np.zeros(d)])

    start = np.concatenate([np.full(split, 1e-3), np.zeros(k), np.full(d, 0.1)])
    settings = {"jac": True, "options": {"maxiter": 200, "ftol": 1e-12}}

    def objective(z):  # the solver may have left its bounds
        W, b, _ = parts(z)
        return mean_loss(X, y, counts, W, b, margin) + alpha * norm_of(W, norm)

    if norm == "1-1":
        return least_of_absolutes(X, y, counts, alpha, margin, intercept)
    if norm == "2-1":
        return objective(minimize(value, start, method="L-BFGS-B", **settings).x)
    each = np.tile(np.eye(d), (k, 1))
    none = np.zeros((split, k))
    matrix = np.block([[-np.eye(split), none, each], [np.eye(split), none, each]])
    bounds = {"type": "ineq", "fun": lambda z: matrix @ z, "jac": lambda z: matrix}
    return objective(minimize(value, start, method="SLSQP", constraints=bounds, **settings).x)


def least_of_absolutes(X, y, counts, alpha, margin, intercept):
    """The same for W = P - N with P, N >= 0, whose sums are the norm where one of them is 0."""
    k, d = y.max() + 1, X.shape[1]
    split = k * d

    def parts(z):
        W = (z[:split] - z[split : 2 * split]).reshape(k, d)
        return W, z[2 * split :] if intercept else np.zeros(k)

    def value(z):
        of_w, of_b = gradients(X, y, counts, *parts(z), margin)
        slope = np.concatenate([of_w.ravel() + alpha, alpha - of_w.ravel(), of_b])
        return mean_loss(X, y, counts, *parts(z), margin) + alpha * z[: 2 * split].sum(), slope

    bounds = [(0, None)] * (2 * split) + [(None, None)] * k
    options = {"maxiter": 5000, "ftol": 1e-13, "gtol": 1e-9}
    found = minimize(
        value, np.zeros(2 * split + k), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    W, b = parts(found.x)
    return mean_loss(X, y, counts, W, b, margin) + alpha * np.abs(W).sum()


def whole(model):
    """The weights of all candidates."""
    coef = np.zeros((len(model.classes_), model.dictionary_.n_candidates_))
    coef[:, model.support_] = model.coef_
    return coef


@st.composite
def problems(draw, most_features=8):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = (
        draw(st.integers(3, 25)),
        draw(st.integers(1, most_features)),
        draw(st.integers(2, 4)),
    )
    y = np.concatenate([np.arange(k), generator.integers(0, k, n)])
    X = generator.normal(size=(len(y), d)) * 10 ** generator.uniform(-1, 1, d)
    X = X + draw(st.sampled_from([0, 5])) + generator.normal(size=(k, d))[y]
    return X, y, 0.1 + generator.random(len(y))


choices = {
    "problem": problems(),
    "norm": st.sampled_from(NORMS),
    "loss": st.sampled_from(list(MARGINS)),
    "share": st.sampled_from([0.9, 0.3, 0.03]),
    "intercept": st.booleans(),
}


def fitted(problem, norm, loss, share, intercept, **parameters):
    X, y, counts = problem
    model = MixedNormClassifier(
        1.0, norm=norm, loss=loss, fit_intercept=intercept, tol=1e-9, max_iter=20_000
    )
    alpha = share * model.fit(X, y, counts).alpha_max_
    return model.set_params(alpha=alpha, **parameters).fit(X, y, counts)


# ---- optimality ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(**choices)
def test_the_gradient_is_that_of_an_optimum(problem, norm, loss, share, intercept):
    model = fitted(problem, norm, loss, share, intercept)
    X, y, counts = problem
    of_w, of_b = gradients(X, y, counts, whole(model), model.intercept_, MARGINS[loss])
    sizes = dual_norms(of_w, norm)
    alpha, near = model.alpha, 3e-4 * model.alpha_max_
    assert model.converged_ and (sizes <= alpha + near).all()
    chosen = model.get_support()
    assert (sizes[chosen] >= alpha - near).all()
    coef = whole(model)
    lengths = sizes_of(coef, norm)
    aligned = -(of_w * coef).sum(axis=0)
    assert_allclose(aligned, alpha * lengths, atol=near * max(1, lengths.max()))
    if intercept:
        assert_allclose(of_b, 0, atol=1e-10)
    else:
        assert not model.intercept_.any()


@settings(max_examples=10, deadline=None)
@given(**{**choices, "problem": problems(3)})
def test_a_general_solver_finds_nothing_better(problem, norm, loss, share, intercept):
    model = fitted(problem, norm, loss, share, intercept)
    X, y, counts = problem
    margin = MARGINS[loss]
    objective = mean_loss(X, y, counts, whole(model), model.intercept_, margin)
    assert model.loss_ == pytest.approx(objective, rel=1e-9)
    objective += model.alpha * norm_of(whole(model), norm)
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    least = least_objective(X, y, counts, model.alpha, norm, margin, intercept)
    assert objective <= least * (1 + 1e-8)
    assume(least < objective * (1 + 1e-4))  # the general solver has not got stuck
    assert model.dual_objective_ <= least * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(**choices)
def test_the_gap_bounds_how_far_the_optimum_is(problem, norm, loss, share, intercept):
    exact = fitted(problem, norm, loss, share, intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rough = clone(exact).set_params(max_iter=3).fit(*problem)
    assert rough.objective_ >= exact.dual_objective_ * (1 - 1e-12)
    assert rough.dual_objective_ <= exact.objective_ * (1 + 1e-12)
    gap = (rough.objective_ - rough.dual_objective_) / rough.objective_
    assert rough.duality_gap_ == pytest.approx(gap) and rough.duality_gap_ > -1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("intercept", [True, False])
def test_from_alpha_max_on_nothing_is_chosen(norm, intercept):
    model = MixedNormClassifier(1e3, norm=norm, fit_intercept=intercept).fit(X_IRIS, Y_IRIS)
    least = model.alpha_max_
    assert not model.get_support().any() and model.converged_
    above, below = (
        clone(model).set_params(alpha=share * least, tol=1e-9).fit(X_IRIS, Y_IRIS)
        for share in (1 + 1e-9, 0.99)
    )
    assert not above.get_support().any() and below.get_support().sum() == 1
    shares = np.bincount(Y_IRIS) / len(Y_IRIS)
    if intercept:
        of_w, _ = gradients(X_IRIS, Y_IRIS, np.ones(150), np.zeros((3, 4)), above.intercept_, 1.0)
        assert dual_norms(of_w, norm).max() == pytest.approx(least)
        plain = MixedNormClassifier(1e3, loss="softmax").fit(X_IRIS[:120], Y_IRIS[:120])
        shares = np.bincount(Y_IRIS[:120]) / 120
        assert_allclose(plain.predict_proba(X_IRIS)[0], shares)


# ---- proximal steps -----------------------------------------------------------------------------


def projected(v, radius):
    """The nearest point of the L1 ball, by sorting."""
    if np.abs(v).sum() <= radius:
        return v
    u = np.sort(np.abs(v))[::-1]
    levels = (np.cumsum(u) - radius) / np.arange(1, len(u) + 1)
    level = levels[np.flatnonzero(u > levels)[-1]]
    return np.sign(v) * np.maximum(np.abs(v) - level, 0)


@given(
    arrays(np.float64, st.integers(1, 12), elements=st.floats(-100, 100)),
    st.floats(1e-3, 300),
)
def test_the_step_of_the_largest_magnitude_leaves_the_projection(v, cap):
    taken = v[None].copy()
    proximal_step(taken, cap, RowNorm.LARGEST)
    assert_allclose(taken[0], v - projected(v, cap), atol=1e-10)


@given(
    arrays(np.float64, st.integers(1, 12), elements=st.floats(-100, 100)),
    st.floats(1e-3, 300),
)
def test_the_step_of_the_length_shortens(v, cap):
    taken = v[None].copy()
    proximal_step(taken, cap, RowNorm.LENGTH)
    length = np.linalg.norm(v)
    assert_allclose(taken[0], v * (1 - min(1, cap / length)) if length else v, atol=1e-10)


def test_the_step_of_the_sum_of_magnitudes_reduces_each():
    taken = np.array([[2.0, -3.0, 0.5, -0.5, 0.0]])
    proximal_step(taken, 1.0, RowNorm.ABSOLUTE)
    assert_allclose(taken, [[1.0, -2.0, 0.0, 0.0, 0.0]])


def test_equal_magnitudes_are_clipped_alike():
    taken = np.array([[2.0, -2.0, 2.0, 0.0]])
    proximal_step(taken, 3.0, RowNorm.LARGEST)
    assert_allclose(taken, [[1.0, -1.0, 1.0, 0.0]])


@given(problems())
def test_the_largest_curvature_is_that_of_a_row(problem):
    """What ends the search for a curvature: no p makes diag(p) - pp' larger than 1/2."""
    X, *_ = problem
    p = softmax(X[0])
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() <= MOST_CURVE + 1e-12
    assert 0 < LEAST_CURVE < MOST_CURVE


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_dual(name):
    norm, generator = MixedNorm(name), np.random.default_rng(0)
    W, G = generator.normal(size=(2, 7, 4))
    assert norm.of(W) == pytest.approx(norm_of(W.T, name))
    assert_allclose(norm.dual_sizes(G), dual_norms(G.T, name))
    assert abs((W * G).sum()) <= norm.of(W) * norm.dual_sizes(G).max()


# ---- input --------------------------------------------------------------------------------------


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 8 - 1, y


def test_sparse_and_single_rows_give_the_same():
    X, y = digits()
    X = X[:600] + 1
    settings = {"alpha": 0.01, "tol": 1e-8}
    dense = MixedNormClassifier(**settings).fit(X, y[:600])
    rare = MixedNormClassifier(**settings).fit(sparse.csr_array(X), y[:600])
    single = MixedNormClassifier(**settings).fit(X.astype(np.float32), y[:600])
    for other in (rare, single):
        assert_array_equal(other.support_, dense.support_)
        assert_allclose(other.coef_, dense.coef_, atol=1e-4)
    assert_array_equal(rare.predict(sparse.csr_array(X)), dense.predict(X))
    stored = rare.transform(sparse.csr_array(X))
    assert sparse.issparse(stored) and stored.shape == (600, len(rare.support_))
    assert_array_equal(dense.transform(X), X[:, dense.support_])


def test_weights_are_copies():
    counts = np.random.default_rng(1).integers(0, 3, len(X_IRIS))
    settings = {"alpha": 0.02, "tol": 1e-11}
    weighted = MixedNormClassifier(**settings).fit(X_IRIS, Y_IRIS, counts)
    repeated = MixedNormClassifier(**settings).fit(X_IRIS.repeat(counts, 0), Y_IRIS.repeat(counts))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)
    assert_allclose(weighted.predict_proba(X_IRIS), repeated.predict_proba(X_IRIS), atol=1e-5)


def test_balanced_classes_are_classes_that_weigh_the_same():
    X, y = X_IRIS[:110], Y_IRIS[:110]
    settings = {"alpha": 0.02, "tol": 1e-11}
    balanced = MixedNormClassifier(class_weight="balanced", **settings).fit(X, y)
    weighted = MixedNormClassifier(**settings).fit(X, y, 1 / np.bincount(y)[y])
    assert balanced.objective_ == pytest.approx(weighted.objective_, rel=1e-10)


class Pairs(Dictionary):
    """Products of all pairs of features."""

    def fit(self, X, y=None):
        self.left_, self.right_ = np.triu_indices(X.shape[1])
        self.n_candidates_ = len(self.left_)
        return self

    def columns(self, X, candidates):
        return X[:, self.left_[candidates]] * X[:, self.right_[candidates]]

    def step(self, candidate):
        return Product(int(self.left_[candidate]), int(self.right_[candidate]))


class Couples(Pairs):
    """Pairs of columns that are chosen together."""

    def widths(self, candidates):
        return np.full(len(candidates), 2)


@pytest.mark.parametrize("norm", NORMS)
def test_candidates_may_be_made_on_the_fly(norm):
    X, y = digits()
    X, y = X[:300, 20:35], y[:300]
    pairs = Pairs().fit(X)
    table = pairs.columns(X, np.arange(pairs.n_candidates_))
    settings = {"alpha": 0.02, "norm": norm, "tol": 1e-7}
    made = MixedNormClassifier(dictionary=Pairs(), **settings).fit(X, y)
    stored = MixedNormClassifier(**settings).fit(table, y)
    assert made.alpha_max_ == pytest.approx(stored.alpha_max_)
    assert_array_equal(made.support_, stored.support_)
    assert_allclose(whole(made), whole(stored), atol=1e-6)
    assert_allclose(made.decision_function(X), stored.decision_function(table), atol=1e-5)
    assert_array_equal(made.transform(X), table[:, made.support_])
    i, j = pairs.left_[made.support_[0]], pairs.right_[made.support_[0]]
    assert made.get_feature_names_out()[0] == f"x{i} * x{j}"
    assert not hasattr(made.dictionary, "n_candidates_")


def test_it_is_exported_as_shareboost_is(tmp_path):
    X, y = digits()
    model = MixedNormClassifier(0.05, norm="2-1", dictionary="products", tol=1e-3).fit(X, y)
    n_chosen = len(model.support_)
    assert model.cost_ == 11 * n_chosen  # a product, and a weight for each class
    model.export(tmp_path / "few.py")
    made = runpy.run_path(str(tmp_path / "few.py"))
    assert_array_equal(made["predict"](X), model.predict(X))


def test_constant_and_equal_columns_and_a_class_of_one_row():
    X = np.column_stack([np.ones(150), np.zeros(150), X_IRIS, X_IRIS[:, 2]])
    y = Y_IRIS.copy()
    y[7] = 3
    model = MixedNormClassifier(1e-3, tol=1e-8).fit(X, y)
    assert not model.get_support()[:2].any()
    alone = MixedNormClassifier(1e-3, tol=1e-8).fit(X_IRIS, y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-7)
    assert model.classes_.tolist() == [0, 1, 2, 3]


# ---- the face -----------------------------------------------------------------------------------


def test_a_path_is_made_of_optima():
    X, y = digits()
    X, y = X[:400], y[:400]
    path = MixedNormClassifier(norm="2-1", tol=1e-6).path(X, y, 12, eps=0.05)
    assert len(path) == 12 and path[0].alpha == pytest.approx(path[0].alpha_max_)
    numbers = [len(model.support_) for model in path]
    assert numbers[0] == 0 and numbers[-1] > 20
    losses = [model.loss_ for model in path]
    assert losses == sorted(losses, reverse=True)
    assert all(model.duality_gap_ <= 1e-6 for model in path)
    alone = clone(path[8]).fit(X, y)
    assert alone.objective_ == pytest.approx(path[8].objective_, rel=2e-6)
    assert_allclose(path[8].decision_function(X), alone.decision_function(X), atol=0.01)


def test_a_path_ends_where_enough_is_chosen():
    X, y = digits()
    path = MixedNormClassifier().path(X[:400], y[:400], 60, n_features=10)
    numbers = [len(model.support_) for model in path]
    assert numbers[-1] >= 10 and max(numbers[:-1]) < 10
    given = MixedNormClassifier().path(X[:400], y[:400], [0.01, 0.1])
    assert [model.alpha for model in given] == [0.1, 0.01]


def test_a_warm_start_has_nothing_to_do():
    model = MixedNormClassifier(0.01, warm_start=True, tol=1e-8).fit(X_IRIS, Y_IRIS)
    n_steps, weights = model.n_iter_, whole(model)
    assert n_steps > 0 and model.fit(X_IRIS, Y_IRIS).n_iter_ == 0
    assert_allclose(whole(model), weights)
    assert len(model.fit(X_IRIS[:, :3], Y_IRIS).coef_) == 3
    assert len(model.fit(X_IRIS[:100, :3], Y_IRIS[:100]).coef_) == 2


def test_scores_probabilities_and_labels_agree():
    model = MixedNormClassifier(0.01).fit(X_IRIS, Y_IRIS)
    scores = X_IRIS @ whole(model).T + model.intercept_
    assert_allclose(model.decision_function(X_IRIS), scores)
    assert_allclose(model.predict_proba(X_IRIS), softmax(scores, axis=1))
    assert_array_equal(model.predict(X_IRIS), scores.argmax(axis=1))
    assert model.intercept_.sum() == pytest.approx(0)
    two = MixedNormClassifier(0.01).fit(X_IRIS[:100], np.array(["no", "yes"])[Y_IRIS[:100]])
    scores = two.decision_function(X_IRIS[:100])
    assert_array_equal(two.predict(X_IRIS[:100]), np.where(scores > 0, "yes", "no"))


def test_too_few_steps_warn():
    with pytest.warns(ConvergenceWarning, match=r"duality gap at alpha=0.001 .* after 2 steps"):
        model = MixedNormClassifier(0.001, max_iter=2).fit(X_IRIS, Y_IRIS)
    assert not model.converged_ and model.n_iter_ == 2


def test_clones_and_pickles():
    model = MixedNormClassifier(0.02, norm="2-1").fit(X_IRIS, Y_IRIS)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X_IRIS), model.predict_proba(X_IRIS))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"alpha": 0}, "alpha=0 must be a finite number above 0"),
        ({"alpha": -1.0}, "alpha=-1.0 must be"),
        ({"alpha": np.nan}, "alpha=nan must be"),
        ({"tol": 0.0}, "tol=0.0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be an integer of 1 or more"),
        ({"norm": "l1"}, "norm='l1' is unknown: use 'inf-1' or '2-1' or '1-1'"),
        ({"loss": "hinge"}, "loss='hinge' is unknown"),
        ({"dictionary": "stars"}, "dictionary='stars' is unknown"),
        ({"dictionary": Couples()}, "candidate 0 of Couples is a group of 2 columns"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, sentence):
    with pytest.raises(KeslerError, match=sentence):
        MixedNormClassifier(**parameters).fit(X_IRIS, Y_IRIS)


@pytest.mark.parametrize(
    ("X", "y", "weights", "sentence"),
    [
        ([[1.0], [2.0]], ["a", "a"], None, "y has one class only, 'a'"),
        ([[1.0], [2.0]], [0, 1], [0, 0], "non-zero|every sample_weight"),
        ([[1.0], [2.0]], [0, 1], [1, 0], "y has one class only, 0: .* of weight above 0"),
        ([[1.0], [2.0]], [0, 1], [1, -1], "[Nn]egative"),
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [1e120]], [0, 1], None, r"features as large as 1.0e\+120"),
    ],
)
def test_rows_that_cannot_be_learnt_are_refused(X, y, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        MixedNormClassifier().fit(X, y, weights)


@pytest.mark.parametrize(
    ("X", "settings", "sentence"),
    [
        ([[1.0], [2.0]], {"alphas": 1}, "alphas=1 must be an integer of 2 or more"),
        ([[1.0], [2.0]], {"alphas": [0.1, 0.0]}, "an alpha of alphas=0.0 must be"),
        ([[1.0], [2.0]], {"eps": 1}, "eps=1 must be a finite number above 0 and below 1"),
        ([[1.0], [1.0]], {}, "no candidate distinguishes the classes"),
    ],
)
def test_paths_out_of_range_are_refused(X, settings, sentence):
    with pytest.raises(KeslerError, match=sentence):
        MixedNormClassifier().path(X, [0, 1], **settings)


def test_scikit_learn_checks_pass():
    model = MixedNormClassifier()
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert len(results) == len(list(estimator_checks_generator(model))) >= 68
