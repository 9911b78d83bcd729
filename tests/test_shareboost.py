"""ShareBoostClassifier beside an independent reference, its theorem, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from kesler import KeslerError, ShareBoostClassifier
from kesler.dictionaries import Columns, Dictionary
from kesler.sharing import greedy
from kesler.sharing.penalties import Frobenius, SmoothAbsolute, SmoothLargest, SmoothLength

X_WINE, Y_WINE = load_wine(return_X_y=True)
X_WINE = MinMaxScaler((-1, 1)).fit_transform(X_WINE)
X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_IRIS = MinMaxScaler((-1, 1)).fit_transform(X_IRIS)


# ---- the reference: Algorithm 1 as the source has it, by SciPy
# ---------------------------------------


def loss_of(scores, y, counts, margin=1.0):
    raised = scores + margin
    raised[np.arange(len(y)), y] -= margin
    return float(counts @ (logsumexp(raised, axis=1) - scores[np.arange(len(y)), y]))


def gradient_of(scores, y, counts, margin=1.0):
    raised = scores + margin
    raised[np.arange(len(y)), y] -= margin
    rho = np.exp(raised - logsumexp(raised, axis=1, keepdims=True))
    rho[np.arange(len(y)), y] -= 1
    return counts[:, None] * rho


def omega(W, penalty, alpha, beta):
    """Return the penalty of W (k x n) and its gradient, from their definitions."""
    if penalty is None:
        return 0.0, 0 * W
    if penalty == "frobenius":
        return alpha * (W**2).sum(), 2 * alpha * W
    if penalty == "1-1":  # |a| = max(a, -a), and ln of the mean of exponentials for the maximum
        logarithms = np.logaddexp(beta * W, -beta * W) - np.log(2)
        return alpha / beta * logarithms.sum(), alpha * np.tanh(beta * W)
    if penalty == "2-1":
        lengths = np.sqrt((W**2).sum(axis=0) + 1 / beta**2)
        return alpha * (lengths - 1 / beta).sum(), alpha * W / lengths
    both = np.concatenate([beta * W, -beta * W])
    tops = logsumexp(both, axis=0)
    shares = np.exp(both - tops)
    k = len(W)
    return alpha / beta * (tops - np.log(2 * k)).sum(), alpha * (shares[:k] - shares[k:])


def solved(columns, y, counts, k, base=None, bias=False, start=None, **penalty):
    """Return the lowest objective over weights for columns, the weights and the bias."""
    base = np.zeros((len(y), k)) if base is None else base
    n = columns.shape[1]

    def objective(flat):
        W, b = flat[: k * n].reshape(k, n), flat[k * n :] if bias else np.zeros(k)
        scores = base + columns @ W.T + b
        residuals = gradient_of(scores, y, counts)
        value, pull = omega(W, **penalty)
        parts = [(residuals.T @ columns + pull).ravel()]
        parts += [residuals.sum(axis=0)] if bias else []
        return loss_of(scores, y, counts) + value, np.concatenate(parts)

    first = np.zeros(k * n + k * bias) if start is None else start
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 40}
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options=options)
    b = found.x[k * n :] if bias else np.zeros(k)
    return found.fun, found.x[: k * n].reshape(k, n), b


def lowest_along(columns, G, base, y, counts, penalty):
    """Return the lowest objective over the weights a G' for the columns."""

    def value(a):
        return loss_of(base + a * (columns @ G), y, counts) + omega((a * G).T, **penalty)[0]

    return minimize(value, [-1.0], method="BFGS", options={"gtol": 1e-9}).fun


def reference_learner(
    X, y, rounds, *, choice="gradient", bias=False, groups=None, scale=None, **penalty
):
    """Return the choices and losses of Algorithm 1."""
    k, m, d = int(y.max()) + 1, len(y), X.shape[1]
    counts = np.full(m, 1 / m)
    penalty = {"penalty": None, "alpha": 0.0, "beta": 1.0, **penalty}
    groups = np.arange(d) if groups is None else groups
    chosen, units, losses = [], [], []
    _, W, b = solved(X[:, :0], y, counts, k, bias=bias, **penalty)
    for _ in range(rounds):
        scores = X[:, chosen] @ W.T + b
        residuals = gradient_of(scores, y, counts)
        goodness = {}
        for unit in sorted(set(groups) - set(units)):
            columns = X[:, groups == unit]
            G = columns.T @ residuals
            if choice == "gradient":
                norms = np.abs(G).sum(axis=1)
                if scale == "spread":
                    gaps = columns - (counts @ columns / counts.sum() if bias else 0)
                    squares = counts @ gaps**2 + 0.025 * counts.sum() * (gaps**2).max(axis=0)
                    norms = norms / np.sqrt(squares)
                goodness[unit] = norms.sum()
            elif choice == "line":
                goodness[unit] = -lowest_along(columns, G, scores, y, counts, penalty)
            elif choice == "column":
                goodness[unit] = -solved(columns, y, counts, k, base=scores, **penalty)[0]
            else:
                both = np.hstack([X[:, chosen], columns])
                goodness[unit] = -solved(both, y, counts, k, bias=bias, **penalty)[0]
        units.append(max(goodness, key=goodness.get))
        chosen += np.flatnonzero(groups == units[-1]).tolist()
        _, W, b = solved(X[:, chosen], y, counts, k, bias=bias, **penalty)
        losses.append(loss_of(X[:, chosen] @ W.T + b, y, counts))
    return units, losses


def small_problem(seed=0, m=60, d=6, k=3):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (m, d)) * generator.uniform(0.5, 1, d)
    scores = 2 * X @ generator.normal(size=(d, k)) + generator.gumbel(size=(m, k))
    return X, scores.argmax(axis=1)


PENALISED = [
    {"penalty": None},
    {"penalty": "frobenius", "alpha": 0.02},
    {"penalty": "inf-1", "alpha": 0.02, "beta": 5.0},
    {"penalty": "2-1", "alpha": 0.02, "beta": 5.0},
    {"penalty": "1-1", "alpha": 0.02, "beta": 5.0},
]


@pytest.mark.parametrize("penalty", PENALISED, ids=lambda each: str(each["penalty"]))
@pytest.mark.parametrize("choice", ["gradient", "line", "column", "full"])
def test_choices_and_losses_are_those_of_the_source(choice, penalty):
    X, y = small_problem()
    units, losses = reference_learner(X, y, 3, choice=choice, **penalty)
    model = ShareBoostClassifier(3, choice=choice, scale=None, bias=False, tol=1e-9, **penalty)
    model.fit(X, y)
    assert [each.candidate for each in model.path_] == units == model.support_.tolist()
    assert_allclose([each.loss for each in model.path_], losses, rtol=1e-4)
    assert_array_equal(model.intercept_, 0)


@pytest.mark.parametrize("scale", [None, "spread"])
def test_with_a_bias_and_scaled(scale):
    X, y = small_problem(1, d=8)
    X = X * np.geomspace(1, 100, 8) + 3
    units, losses = reference_learner(X, y, 3, bias=True, scale=scale)
    model = ShareBoostClassifier(3, scale=scale, tol=1e-9).fit(X, y)
    assert model.support_.tolist() == units
    assert_allclose([each.loss for each in model.path_], losses, rtol=1e-4)


def test_a_shortlist_is_of_the_steepest():
    X, y = small_problem(3, d=10)
    model = ShareBoostClassifier(4, scale=None)
    by_gradient, in_full = clone(model).fit(X, y), clone(model).set_params(choice="full").fit(X, y)
    assert by_gradient.support_.tolist() != in_full.support_.tolist()
    for shortlist, expected in ((1, by_gradient), (10, in_full)):
        listed = clone(model).set_params(choice="full", shortlist=shortlist).fit(X, y)
        assert_array_equal(listed.support_, expected.support_)


def test_groups_are_chosen_by_the_sum_of_their_gradients():
    X, y = small_problem(2, d=9)
    groups = np.array([5, 5, 9, 9, 9, 2, 2, 5, 2])
    units, losses = reference_learner(X, y, 2, groups=groups)
    model = ShareBoostClassifier(2, groups=groups, scale=None, bias=False, tol=1e-9).fit(X, y)
    assert [each.candidate for each in model.path_] == units
    assert model.support_.tolist() == [j for unit in units for j in np.flatnonzero(groups == unit)]
    assert [each.n_chosen for each in model.path_] == [3, 6] and model.coef_.shape == (3, 6)
    assert_allclose([each.loss for each in model.path_], losses, rtol=1e-4)


# ---- theory -------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(3, 12), st.sampled_from([0, 1]))
def test_theorem_2(seed, k, d, rule):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (40, d))
    y = np.concatenate([np.arange(k), generator.integers(0, k, 40 - k)])
    W = generator.normal(size=(k, d)) * (generator.random(d) < 0.4)
    W *= generator.uniform(0.2, 0.5) / max(np.abs(W).max(axis=0).sum(), 1e-9)
    epsilon = generator.uniform(0.1, 0.4)
    n_rounds = max(1, int(np.ceil(4 * np.abs(W).max(axis=0).sum() ** 2 / epsilon)))
    model = ShareBoostClassifier(
        min(n_rounds, d), scale=None, bias=False, choice=("gradient", "column")[rule], tol=1e-8
    ).fit(X, y)
    counts = np.full(40, 1 / 40)
    assert model.path_[-1].loss <= loss_of(X @ W.T, y, counts) + epsilon + 1e-6
    certificate = model.certificate(W, X, y)
    assert certificate.loss == pytest.approx(model.path_[-1].loss)
    assert certificate.loss_of_competitor == pytest.approx(loss_of(X @ W.T, y, counts))
    assert certificate.loss <= certificate.bound + 1e-6


def test_the_certificate_adds_up():
    model = ShareBoostClassifier(4, scale=None, bias=False).fit(X_WINE, Y_WINE)
    W = np.zeros((3, 13))
    W[:, [0, 6]] = [[0.5, 1], [-0.25, 0], [0, -2]]
    certificate = model.certificate(W, X_WINE, Y_WINE)
    assert certificate.norm == 2.5 and certificate.epsilon == 4 * 6.25 / 4
    assert certificate.rounds_for(0.5) == 50
    expected = (4 * 3 * np.log(12) * np.log(3) + 4 * np.log(13) + np.log(20)) / len(Y_WINE)
    assert certificate.deviation == pytest.approx(np.sqrt(expected))
    assert certificate.training_error == pytest.approx(1 - model.score(X_WINE, Y_WINE))
    assert "by Theorem 2 (norm 2.5)" in str(certificate)


def test_losses_fall_and_gradients_vanish_on_the_support():
    tol = 1e-8
    model = ShareBoostClassifier(8, bias=False, tol=tol, penalty=None).fit(X_WINE[:, :8], Y_WINE)
    losses = model.path_.table()["loss"]
    assert (np.diff(losses) < 0).all()
    counts = np.full(len(Y_WINE), 1 / len(Y_WINE))
    for n in range(1, 9):
        part = model.at(n)
        X = X_WINE[:, part.support_]
        G = X.T @ gradient_of(X @ part.coef_.T, Y_WINE, counts)
        # By Lemma 2 of the source: a gradient g leaves at least |g|^2 / 4 to gain.
        allowed = 2 * np.sqrt(4 * tol * losses[n - 1])
        assert np.abs(G).sum(axis=1).max() <= allowed


def shared_code(k):
    """Return the first example of section 6 twice: a binary code, an indicator of each class."""
    bits = int(np.log2(k))
    code = 2 * ((np.arange(k)[:, None] >> np.arange(bits)) & 1) - 1.0
    X = np.hstack([code, 2 * np.log(k) * np.eye(k)])
    return np.tile(X, (2, 1)), np.tile(np.arange(k), 2)


@pytest.mark.parametrize("scale", [None, "spread"])
@pytest.mark.parametrize("k", [16, 64])
def test_a_code_is_shared_by_all_classes(k, scale):
    X, y = shared_code(k)
    bits = int(np.log2(k))
    model = ShareBoostClassifier(2 * bits, scale=scale, bias=False, tol=1e-3).fit(X, y)
    assert min(n for n in range(1, 2 * bits + 1) if model.at(n).score(X, y) == 1) <= 2 * bits
    if scale is None:
        assert set(model.support_[:bits]) == set(range(bits))


@pytest.mark.parametrize("n_blocks", [2, 6])
def test_one_of_many_equal_blocks_is_enough(n_blocks):
    k, bits = 16, 4
    generator = np.random.default_rng(0)
    code = 2 * ((np.arange(k)[:, None] >> np.arange(bits)) & 1) - 1.0
    y = np.tile(np.arange(k), 12)
    X = np.tile(code[y], n_blocks)
    for row in np.flatnonzero(generator.random(len(y)) < 0.2):
        block = generator.integers(n_blocks)
        X[row, block * bits : (block + 1) * bits] = 0
    model = ShareBoostClassifier(4 * bits, scale=None, bias=False, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # two blocks have 2 bits columns only
        model.fit(X, y)
    assert min(n for n in range(1, len(model.path_) + 1) if model.at(n).score(X, y) == 1) <= 16


# ---- the same in other ways ---------------------------------------------------------------------


def test_a_weight_of_2_is_the_row_twice():
    X, y = X_WINE, Y_WINE
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = ShareBoostClassifier(4, tol=1e-10, penalty="frobenius")
    weighed = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_array_equal(weighed.support_, repeated.support_)
    assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-3, atol=1e-4)


def test_class_weights_are_weights_of_rows():
    by_class = ShareBoostClassifier(3, class_weight={0: 2, 1: 1, 2: 3}).fit(X_WINE, Y_WINE)
    by_row = ShareBoostClassifier(3).fit(X_WINE, Y_WINE, sample_weight=np.array([2, 1, 3])[Y_WINE])
    assert_array_equal(by_class.coef_, by_row.coef_)


def test_sparse_single_and_mapped_rows_agree_with_dense_ones(tmp_path):
    X = np.where(np.abs(X_WINE) < 0.3, 0, X_WINE)
    model = ShareBoostClassifier(4, penalty="frobenius", alpha=1e-2, tol=1e-8)
    dense = clone(model).fit(X, Y_WINE)
    by_csr = clone(model).fit(sparse.csr_array(X), Y_WINE)
    assert_array_equal(by_csr.support_, dense.support_)
    assert_allclose(by_csr.coef_, dense.coef_, atol=1e-6)
    assert_allclose(by_csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-6)
    single = clone(model).fit(X.astype(np.float32), Y_WINE)
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=X.shape)
    mapped[:] = X
    read_only = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=X.shape)
    for other in (single, clone(model).fit(read_only, Y_WINE)):
        assert_array_equal(other.support_, dense.support_)
        assert_allclose(other.coef_, dense.coef_, atol=2e-3)


def test_memory_maps_are_not_copied(tmp_path, monkeypatch):
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=X_WINE.shape)
    mapped[:] = X_WINE
    seen = []
    pool = Columns.pool
    monkeypatch.setattr(Columns, "pool", lambda self, X: seen.append(X) or pool(self, X))
    ShareBoostClassifier(2).fit(mapped, Y_WINE)
    assert np.shares_memory(seen[0], mapped) and seen[0].dtype == np.float32


def test_a_warm_start_is_one_long_fit():
    aside = X_WINE[::3], Y_WINE[::3]
    whole = ShareBoostClassifier(6).fit(X_WINE, Y_WINE, eval_set=aside)
    model = ShareBoostClassifier(2, warm_start=True).fit(X_WINE, Y_WINE)
    model.set_params(n_features_to_select=6).fit(X_WINE, Y_WINE, eval_set=aside)
    assert_array_equal(model.support_, whole.support_)
    assert_allclose(model.path_.table()["loss"], whole.path_.table()["loss"], rtol=1e-3)
    errors = [each.path_.table()["validation_error"] for each in (model, whole)]
    assert_array_equal(*errors)
    before = model.coef_.copy()
    assert_array_equal(model.fit(X_WINE, Y_WINE).coef_, before)
    with pytest.raises(KeslerError, match="less than the 6 rounds"):
        model.set_params(n_features_to_select=5).fit(X_WINE, Y_WINE)
    with pytest.raises(KeslerError, match="have other classes"):
        model.set_params(n_features_to_select=7).fit(X_WINE, Y_WINE + 1)


def test_groups_go_on_too():
    groups = np.arange(13) // 3 + 7
    whole = ShareBoostClassifier(3, groups=groups).fit(X_WINE, Y_WINE)
    model = ShareBoostClassifier(1, groups=groups, warm_start=True).fit(X_WINE, Y_WINE)
    model.set_params(n_features_to_select=3).fit(X_WINE, Y_WINE)
    assert_array_equal(model.support_, whole.support_)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_at_n_is_a_fit_with_n(n):
    whole = ShareBoostClassifier(6).fit(X_WINE, Y_WINE)
    part, alone = whole.at(n), ShareBoostClassifier(n).fit(X_WINE, Y_WINE)
    assert_array_equal(part.coef_, alone.coef_)
    assert_array_equal(part.intercept_, alone.intercept_)
    assert_array_equal(part.predict(X_WINE), alone.predict(X_WINE))
    assert part.n_features_to_select == n == len(part.path_) == part.n_rounds_
    assert part.n_iter_ == alone.n_iter_
    for impossible in (0, 7, 1.5, True):
        with pytest.raises(KeslerError, match="from 1 to 6"):
            whole.at(impossible)


def test_models_survive_pickling_and_cloning():
    model = ShareBoostClassifier(3, dictionary=Columns()).fit(X_WINE, Y_WINE)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X_WINE), model.predict_proba(X_WINE))
    assert_array_equal(clone(model).fit(X_WINE, Y_WINE).coef_, model.coef_)
    assert not hasattr(model.dictionary, "n_candidates_")  # the one given is left as it was


def test_the_guesses_of_the_hessian_change_nothing_but_steps(monkeypatch):
    model = ShareBoostClassifier(5, tol=1e-9, penalty="2-1", alpha=1e-2, beta=10)
    expected = clone(model).fit(X_WINE, Y_WINE)
    monkeypatch.setattr(greedy, "MOST_WEIGHTS", 0)
    by_class = clone(model).fit(X_WINE, Y_WINE)
    monkeypatch.setattr(greedy, "WIDEST_BLOCK", 2)
    in_chunks = clone(model).fit(X_WINE, Y_WINE)
    for other in (by_class, in_chunks):
        assert_array_equal(other.support_, expected.support_)
        assert_allclose(other.coef_, expected.coef_, atol=1e-3)
    assert in_chunks.n_iter_ > expected.n_iter_


def test_rare_values_are_estimated_from_more_rows(monkeypatch):
    """Words: few of the rows with curvature hold one, so that a sample of rows misses most."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 4, 4000)
    likely = 0.002 + 0.05 * (generator.random((4, 40)) < 0.3)
    X = (generator.random((4000, 40)) < likely[y]).astype(float)

    def fitted():
        return ShareBoostClassifier(25, loss="softmax", tol=1e-6).fit(X, y)

    more = fitted()
    monkeypatch.setattr(greedy, "TELLING_ROWS", 0.0)
    fewer = fitted()
    assert more.n_iter_ < 0.8 * fewer.n_iter_
    assert more.path_.table()["loss"][-1] == pytest.approx(
        fewer.path_.table()["loss"][-1], rel=1e-3
    )


# ---- penalties ----------------------------------------------------------------------------------


STAND_INS = (SmoothLargest, SmoothLength, SmoothAbsolute)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([Frobenius(0.3), *(p(0.3, 4.0) for p in STAND_INS)]),
    st.integers(0, 10**6),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_penalties_have_their_derivatives(penalty, seed, size):
    generator = np.random.default_rng(seed)
    W, D = generator.normal(size=(2, 4, 3)) * np.array([size, 1.0])[:, None, None]
    h = 1e-5 * max(size, 1)
    slope = (penalty.value(W + h * D) - penalty.value(W - h * D)) / (2 * h)
    assert np.vdot(penalty.gradient(W), D) == pytest.approx(slope, rel=1e-4, abs=1e-6)
    E = np.zeros_like(W)
    E[1, 2] = 1
    bend = (penalty.gradient(W + h * E) - penalty.gradient(W - h * E))[1, 2] / (2 * h)
    assert penalty.curvature(W)[1, 2] == pytest.approx(bend, rel=1e-3, abs=1e-6)
    zeros = np.zeros_like(W)
    assert penalty.value(zeros) == pytest.approx(0) and not penalty.gradient(zeros).any()


def test_stand_ins_come_close_to_their_norms():
    W = np.random.default_rng(0).normal(size=(5, 4))
    largest, lengths = np.abs(W).max(axis=1).sum(), np.sqrt((W**2).sum(axis=1)).sum()
    for beta in (10.0, 1000.0):
        assert 0 <= largest - SmoothLargest(1.0, beta).value(W) <= 5 * np.log(8) / beta
        assert 0 <= lengths - SmoothLength(1.0, beta).value(W) <= 5 / beta
        excess = np.abs(W).sum() - SmoothAbsolute(1.0, beta).value(W)
        assert 0 <= excess <= W.size * np.log(2) / beta


# ---- the path, rows put aside -------------------------------------------------------------------


def test_the_path_is_a_table():
    model = ShareBoostClassifier(3).fit(X_WINE, Y_WINE)
    table = model.path_.table()
    assert_array_equal(table["candidate"], model.support_)
    assert np.isnan(table["validation_error"]).all() and (np.diff(table["seconds"]) > 0).all()
    assert model.n_iter_ == table["n_steps"].sum() and (table["gradient_norm"] > 0).all()


def test_errors_of_rows_put_aside_and_early_stop():
    generator = np.random.default_rng(0)
    X = np.hstack([X_WINE, generator.normal(size=(len(Y_WINE), 30))])
    aside = X[1::2], np.where(np.arange(len(Y_WINE[1::2])) == 0, 9, Y_WINE[1::2])
    model = ShareBoostClassifier(20).fit(X[::2], Y_WINE[::2], eval_set=aside)
    errors = model.path_.table()["validation_error"]
    for n in (1, 5, 20):
        assert errors[n - 1] == pytest.approx((model.at(n).predict(aside[0]) != aside[1]).mean())
    stopped = ShareBoostClassifier(20, n_rounds_no_change=3)
    stopped.fit(X[::2], Y_WINE[::2], eval_set=aside)
    best = stopped.n_rounds_
    assert len(stopped.path_) == best + 3 < 20
    assert_array_equal(stopped.support_, model.support_[:best])
    assert errors[best - 1] < errors[: best - 1].min()
    assert (errors[best : best + 3] >= errors[best - 1]).all()
    assert stopped.at(best + 1).n_rounds_ == best + 1


def test_probabilities_are_a_softmax_and_two_classes_have_one_score():
    model = ShareBoostClassifier(3).fit(X_WINE, Y_WINE)
    scores = model.decision_function(X_WINE)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X_WINE), expected)
    two = ShareBoostClassifier(2).fit(X_WINE, Y_WINE > 0)
    assert two.decision_function(X_WINE).shape == (len(Y_WINE),)
    assert_array_equal(two.decision_function(X_WINE) > 0, two.predict(X_WINE))


# ---- the selector -------------------------------------------------------------------------------


class Squares(Dictionary):
    """Each feature and its square, chosen together."""

    def fit(self, X, y=None):
        self.n_candidates_ = X.shape[1]
        return self

    def widths(self, candidates):
        return np.full(len(candidates), 2)

    def columns(self, X, candidates):
        taken = X[:, candidates]
        return np.stack([taken, taken**2], axis=2).reshape(len(taken), -1)


def test_chosen_features_are_selected():
    pandas = pytest.importorskip("pandas")
    names = [f"f{i}" for i in range(13)]
    frame = pandas.DataFrame(X_WINE, columns=names)
    model = ShareBoostClassifier(3).set_output(transform="pandas").fit(frame, Y_WINE)
    stored = np.sort(model.support_)
    assert_array_equal(model.get_support(indices=True), stored)
    assert list(model.transform(frame).columns) == [names[i] for i in stored]
    assert_array_equal(model.get_feature_names_out(), [names[i] for i in stored])
    back = ShareBoostClassifier(3).fit(X_WINE, Y_WINE)
    again = back.inverse_transform(back.transform(X_WINE))
    assert_array_equal(again[:, stored], X_WINE[:, stored])
    assert not np.delete(again, stored, axis=1).any()
    chain = make_pipeline(ShareBoostClassifier(3), ShareBoostClassifier(2)).fit(X_WINE, Y_WINE)
    assert chain.score(X_WINE, Y_WINE) > 0.8


def test_a_dictionary_of_ones_own():
    model = ShareBoostClassifier(2, dictionary=Squares()).fit(X_WINE, Y_WINE)
    assert model.coef_.shape == (3, 4) and model.support_.shape == (2,)
    doubled = np.stack([X_WINE, X_WINE**2], axis=2).reshape(len(X_WINE), -1)
    grouped = ShareBoostClassifier(2, groups=np.arange(26) // 2, scale=None)
    grouped.fit(doubled, Y_WINE)
    plain = ShareBoostClassifier(2, dictionary=Squares(), scale=None).fit(X_WINE, Y_WINE)
    assert_array_equal([r.candidate for r in grouped.path_], plain.support_)
    # To rounding of what scores are made of: their largest coefficients.
    assert_allclose(plain.coef_, grouped.coef_, atol=1e-8 * np.abs(plain.coef_).max())
    stored = np.sort(model.support_)
    assert_array_equal(model.transform(X_WINE), Squares().columns(X_WINE, stored))
    with pytest.raises(KeslerError, match="cannot be transformed back"):
        model.inverse_transform(model.transform(X_WINE))
    with pytest.raises(KeslerError, match="does not define how candidate"):
        model.get_feature_names_out()


class Signs(Columns):
    """Whether a feature is above 0, whose spread needs no columns."""

    indicators = True

    def columns(self, X, candidates):
        return (super().columns(X, candidates) > 0).astype(X.dtype)

    def pool(self, X):
        return Dictionary.pool(self, X)


def test_spreads_of_indicators_follow_from_scores():
    by_scores = Signs().fit(X_WINE).pool(X_WINE)
    weights = np.random.default_rng(0).random(len(X_WINE))
    signs = (X_WINE > 0).astype(float)
    means = np.average(signs, axis=0, weights=weights)
    gaps = (signs - means) ** 2
    expected = np.sqrt(weights @ gaps + 0.025 * weights.sum() * gaps.max(axis=0))
    assert_allclose(
        np.concatenate([s for _, s in by_scores.spreads(weights, centred=True)]), expected
    )
    by_columns = Columns().fit(signs).pool(signs)
    assert_allclose(next(iter(by_columns.spreads(weights, centred=True)))[1], expected)
    Signs.indicators = False
    try:
        blocks = by_scores.spreads(weights, centred=True)
        assert_allclose(np.concatenate([s for _, s in blocks]), expected)
    finally:
        Signs.indicators = True


def test_scikit_learn_checks_pass():
    model = ShareBoostClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer features than asked for
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {} and len(results) == len(list(estimator_checks_generator(model))) >= 65


# ---- what is odd, and what is refused -----------------------------------------------------------


@pytest.mark.parametrize("scale", [None, "spread"])
def test_constant_and_repeated_columns_are_passed_over(scale):
    a, b = X_IRIS[:, 2], X_IRIS[:, 1]
    X = np.stack([np.full(150, 1e6), a, -3 * a, a, np.zeros(150), b], axis=1)
    with pytest.warns(UserWarning, match="2 were chosen, not n_features_to_select=6: of 6 cand"):
        model = ShareBoostClassifier(6, scale=scale).fit(X, Y_IRIS)
    assert 5 in model.support_ and len(set(model.support_) & {1, 2, 3}) == 1
    assert np.isfinite(model.coef_).all()


def test_more_than_there_are():
    with pytest.warns(UserWarning, match="13 were chosen, not n_features_to_select=50"):
        model = ShareBoostClassifier(50, penalty="frobenius").fit(X_WINE, Y_WINE)
    assert sorted(model.support_) == list(range(13))


def test_nothing_to_choose_from():
    with pytest.warns(UserWarning, match="0 were chosen"):
        model = ShareBoostClassifier(2).fit(np.ones((5, 2)), [0, 1, 1, 1, 0])
    assert_array_equal(model.predict(np.ones((2, 2))), [1, 1])
    assert model.coef_.shape == (2, 0)


def test_a_class_of_one_row_and_classes_apart():
    model = ShareBoostClassifier(3).fit(X_WINE, np.where(np.arange(178) == 5, 7, Y_WINE))
    assert 7 in model.classes_ and np.isfinite(model.coef_).all()
    apart = ShareBoostClassifier(2).fit(np.eye(4)[[0, 1, 2, 3] * 5], [0, 1, 2, 2] * 5)
    assert apart.score(np.eye(4), [0, 1, 2, 2]) == 1 and np.isfinite(apart.coef_).all()


def test_too_few_steps_warn():
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model = ShareBoostClassifier(3, max_iter=1, tol=1e-9).fit(X_WINE, Y_WINE)
    assert not model.converged_


REFUSED = [
    ({"n_features_to_select": 0}, "n_features_to_select=0 must be an integer of 1 or more"),
    ({"n_features_to_select": 2.0}, "n_features_to_select=2.0"),
    ({"max_iter": -1}, "max_iter=-1"),
    ({"tol": 0}, "tol=0 must be a finite number above 0"),
    ({"alpha": np.inf}, "alpha=inf"),
    ({"beta": "a"}, "beta='a'"),
    ({"dictionary": "trees"}, "dictionary='trees' is unknown: use 'columns', 'stumps'"),
    ({"dictionary": 3}, "dictionary=3 is unknown"),
    ({"choice": "best"}, "choice='best' is unknown: use 'gradient' or 'line'"),
    ({"scale": "range"}, "scale='range' is unknown: use 'spread' or None"),
    ({"loss": "hinge"}, "loss='hinge' is unknown"),
    ({"penalty": "l1"}, "penalty='l1' is unknown: use None or 'frobenius'"),
    ({"groups": [1, 2]}, "give a whole number for each of the 13 candidates"),
    ({"groups": np.ones(13)}, "groups is an array of float64"),
    ({"shortlist": 0}, "shortlist=0 must be an integer of 1 or more, or None"),
    ({"n_rounds_no_change": 0}, "n_rounds_no_change=0"),
    ({"n_rounds_no_change": 3}, "give fit eval_set"),
]


@pytest.mark.parametrize("given, sentence", REFUSED, ids=lambda each: str(each)[:40])
def test_parameters_out_of_range_are_refused(given, sentence):
    with pytest.raises(KeslerError) as refusal:
        ShareBoostClassifier(**given).fit(X_WINE, Y_WINE)
    assert sentence in str(refusal.value)


def test_rows_that_cannot_be_learnt_from_are_refused():
    model = ShareBoostClassifier(2)
    with pytest.raises(KeslerError, match="one class only, 3"):
        model.fit(X_WINE, np.full(178, 3))
    with pytest.raises(ValueError, match="zero"):
        model.fit(X_WINE, Y_WINE, sample_weight=np.zeros(178))
    with pytest.raises(ValueError, match="row 0 has weight -1: negative weights"):
        model.fit(X_WINE, Y_WINE, sample_weight=-np.ones(178))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X_WINE == 1, np.nan, X_WINE), Y_WINE)
    with pytest.raises(KeslerError, match="give one label for each row"):
        model.fit(X_WINE, Y_WINE, eval_set=(X_WINE, Y_WINE[:, None]))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X_WINE, Y_WINE, eval_set=(X_WINE, Y_WINE[:5]))


def test_what_is_not_fitted_says_so():
    model = ShareBoostClassifier()
    for method in ("predict", "predict_proba", "decision_function", "transform", "at"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X_WINE)
    with pytest.raises(NotFittedError):
        model.certificate(np.zeros((3, 13)), X_WINE, Y_WINE)


def test_what_no_theorem_speaks_of_is_not_certified():
    plain = {"scale": None, "bias": False}
    W = np.zeros((3, 13))
    others = {"scale": "spread", "penalty": "2-1", "choice": "line", "groups": np.arange(13)}
    others["shortlist"] = 13
    for name, value in others.items():
        model = ShareBoostClassifier(2, **{**plain, name: value}).fit(X_WINE, Y_WINE)
        with pytest.raises(KeslerError, match="is not covered by the theorems"):
            model.certificate(W, X_WINE, Y_WINE)
    model = ShareBoostClassifier(2, **plain).fit(X_WINE, Y_WINE)
    with pytest.raises(KeslerError, match=r"give finite weights of shape \(3, 13\)"):
        model.certificate(W[:, 1:], X_WINE, Y_WINE)
    with pytest.raises(KeslerError, match="delta=1 must be between"):
        model.certificate(W, X_WINE, Y_WINE, delta=1)
    with pytest.raises(KeslerError, match="y has other labels than the fit"):
        model.certificate(W, X_WINE, Y_WINE + 1)
    wide = ShareBoostClassifier(2, **plain).fit(2 * X_WINE, Y_WINE)
    with pytest.raises(KeslerError, match="a column has a value of size 2, but"):
        wide.certificate(W, 2 * X_WINE, Y_WINE)


def test_columns_too_many_for_a_block_are_chunks_of_one(monkeypatch):
    monkeypatch.setattr(greedy, "MOST_NUMBERS", 5)
    assert greedy._chunks(3, 4) == [slice(0, 1), slice(1, 2), slice(2, 3)]
