"""The second-order preconditioner beside NumPy, and beside ridge regression on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kesler import OnlineClassifier
from kesler.hypotheses import Grouped, PerClass
from kesler.preconditioners import SecondOrder
from streams import make_stream

RULES: dict[str, Any] = {
    # Each returns the steps from losses and norms, as the sources have it.
    "perceptron": lambda loss, norm, weight: weight,  # Cesa-Bianchi, Conconi and Gentile 2005
    "pa1": lambda loss, norm, weight: min(weight, loss / norm),
    "pa2": lambda loss, norm, weight: loss / (norm + 0.5 / weight),
}


def known_at_first(n_rows: int, n: int, k: int, seed: int) -> tuple[Any, Any]:
    """Return rows of which the first are of different classes."""
    generator = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), generator.integers(0, k, n_rows - k)])
    return generator.standard_normal((n_rows, n)), y


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40])
def test_least_squares_is_ridge_regression_on_all_rows(n):
    X, y = known_at_first(80, n, 3, seed=n)
    X = X.astype(np.float32).astype(float)
    model = OnlineClassifier("multi", update="least-squares", preconditioner=SecondOrder(0.5))
    model.partial_fit(X, y, sample_weight=np.full(len(y), 2.0))
    # The first rows make their classes known; no class has a target before.
    later = slice(3, None)
    T = np.where(y[later, None] == np.arange(3), 1.0, -1.0)
    A = 2 * X[later].T @ X[later] + 0.5 * np.eye(n)
    W = np.linalg.solve(A, 2 * X[later].T @ T)
    learner = model._learner
    assert_allclose(learner.hypothesis_weights()[0], W, rtol=2e-4, atol=2e-5)
    inverse = np.tril(learner.stored["preconditioner.inverse"][:n, :n])
    assert_allclose(inverse, np.tril(np.linalg.inv(A)), rtol=1e-7, atol=1e-12)


def test_the_errors_before_each_update_obey_the_identity():
    """Zhdanov and Kalnishkan (2013), Theorem 1."""
    X, y = known_at_first(120, 7, 2, seed=0)
    model = OnlineClassifier("multi", update="least-squares", preconditioner=SecondOrder(2.0))
    model.partial_fit(X[:2], y[:2])
    X = X.astype(np.float32).astype(float)
    target = np.where(y == 0, 1.0, -1.0)
    total, A = 0.0, 2.0 * np.eye(7)
    for x, t, label in zip(X[2:], target[2:], y[2:], strict=True):
        score = model.decision_function([x])
        own = float(model._learner.hypothesis_weights()[0][:, 0] @ x)
        assert np.isfinite(score).all()
        total += (t - own) ** 2 / (1 + x @ np.linalg.solve(A, x))
        A += np.outer(x, x)
        model.learn_one(x, label)
    w = np.linalg.solve(A, X[2:].T @ target[2:])
    optimum = 2.0 * w @ w + ((target[2:] - X[2:] @ w) ** 2).sum()
    assert total == pytest.approx(optimum, rel=1e-5)


def renewed(W: Any, P: Any, half_life: float, t: int) -> Any:
    """Let second moments of ridge 1.5 fade, and renew the ridge of a feature: as b = W / P is."""
    kept, A = 2 ** (-1 / half_life), np.linalg.inv(P)
    A, b = kept * A, kept * A @ W
    i = t % len(A)
    A[i, i] += 1.5 * (1 - kept ** min(t + 1, len(A)))
    return np.linalg.solve(A, b), np.linalg.inv(A)


def ridges(n: int, half_life: float, ridge: float, n_rows: int) -> Any:
    """Return the ridge of each feature: in turn, so many are renewed after each row."""
    each = int(np.ceil(n / half_life - 1e-9))
    found = np.full(n, ridge)
    for t in range(n_rows):
        found *= 2 ** (-1 / half_life)
        start = each * (t % -(-n // each))
        found[start : start + each] = ridge
    return found


@pytest.mark.parametrize(
    ("n", "half_life", "n_rows"),
    [(1, 1.0, 50), (5, 3.0, 200), (17, 4.5, 90), (6, 50.0, 900), (8, 1.0, 120), (16, 16.0, 700)],
)
def test_with_a_half_life_rows_fade_and_the_ridge_stays(n, half_life, n_rows):
    """After 20 half-lives, all that is stored is divided."""
    X, y = known_at_first(n_rows, n, 3, seed=n)
    X = X.astype(np.float32).astype(float)
    model = OnlineClassifier(
        "multi", update="least-squares", preconditioner=SecondOrder(0.5), half_life=half_life
    )
    model.partial_fit(X, y, sample_weight=np.full(n_rows, 2.0))
    fading = 2 * 2 ** (-np.arange(n_rows)[::-1] / half_life - 1 / half_life)
    fading[:3] = 0  # no class has a target before
    T, R = np.where(y[:, None] == np.arange(3), 1.0, -1.0), ridges(n, half_life, 0.5, n_rows)
    assert (R > 0.25).all() and (R <= 0.5).all()
    A = (fading * X.T) @ X + np.diag(R)
    W = np.linalg.solve(A, (fading * X.T) @ T)
    learner = model._learner
    assert_allclose(learner.hypothesis_weights()[0] * learner.scale, W, rtol=2e-4, atol=2e-6)
    assert_allclose(model._scores(X[:5]), X[:5] @ W, rtol=2e-4, atol=2e-5)
    inverse = learner.stored["preconditioner.inverse"][:n, :n]
    inverse = np.tril(inverse) * learner.stored["decay.row"]["weight"][0]
    assert_allclose(inverse, np.tril(np.linalg.inv(A)), rtol=1e-7, atol=1e-12)


def test_features_that_are_silent_for_long_come_back():
    """Without its ridge, P of these would grow by 2 every 20 rows, 2,500 times."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 12))
    X[5_000:55_000, 6:] = 0
    X[:, 3] = 1000 * X[:, 2]
    y = (X[:, 0] > 0).astype(int)
    model = OnlineClassifier(
        "multi", update="least-squares", preconditioner=SecondOrder(1e-3), half_life=20
    ).partial_fit(X, y)
    assert model.n_mistakes_ < 0.07 * len(y) and abs(model._learner.weights).max() < 1


def test_least_squares_of_the_default_follows_drift():
    stream = make_stream(4, n_rows=40, n_classes=3)
    model = OnlineClassifier(half_life=100).partial_fit(stream.X, stream.y)
    assert [each.half_life for each in model._learner.members] == [100, 100, 100, None, None]
    turn = np.repeat([1, -1, 1, -1], 300)
    X = np.random.default_rng(0).normal(size=(1200, 4))
    y = np.where(X[:, 0] * turn > 0, "up", "down")
    still, following = (
        OnlineClassifier(
            "multi", update="least-squares", preconditioner="second-order", half_life=half_life
        ).partial_fit(X, y)
        for half_life in (None, 50)
    )
    assert following.n_mistakes_ < 0.6 * still.n_mistakes_


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("averaged", "half_life"), [(False, None), (True, None), (False, 7.0)])
def test_rules_of_one_constraint_step_along_p_x(rule, averaged, half_life):
    X, y = known_at_first(60, 6, 3, seed=1)
    X = X.astype(np.float32).astype(float)
    model = OnlineClassifier(
        "multi",
        update=rule,
        preconditioner=SecondOrder(1.5),
        averaged=averaged,
        half_life=half_life,
    )
    W, P, means = np.zeros((6, 3)), np.eye(6) / 1.5, np.zeros((6, 3))
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        if t >= 3:
            scores = x @ W
            others = [s for s in range(3) if s != label]
            s = max(others, key=lambda s: scores[s])
            loss = 1 - (scores[label] - scores[s])
            wrong = scores[label] <= scores[s] if rule == "perceptron" else loss > 0
            if wrong:
                norm = 2 * x @ P @ x
                direction = P @ x
                alpha = RULES[rule](loss, norm, 1.0)
                W[:, label] += alpha * direction
                W[:, s] -= alpha * direction
                P -= np.outer(direction, direction) / (1 + x @ direction)
        if half_life is not None:
            W, P = renewed(W, P, half_life, t)
        means += W
        model.learn_one(x, label)
    expected = means / len(X) if averaged else W
    found = model._learner._mean_weights(0)[:3] if averaged else None
    if averaged:
        assert_allclose(found, expected[0], rtol=1e-3, atol=1e-4)
    else:
        assert_allclose(model._learner.hypothesis_weights()[0], expected, rtol=1e-3, atol=1e-4)


def test_groups_share_the_matrix():
    stream = make_stream(2, n_rows=60, n_classes=4)
    parts = [PerClass(), Grouped({"even": [0, 2], "odd": [1, 3]})]
    model = OnlineClassifier(parts, update="simproj", preconditioner="second-order")
    assert np.isfinite(model.fit(stream.X, stream.y).decision_function(stream.X)).all()


def test_units_hardly_matter():
    stream = make_stream(3, n_rows=200, n_classes=3)
    units = np.logspace(0, 3, stream.X.shape[1])
    models = [
        OnlineClassifier("multi", update="least-squares", preconditioner=SecondOrder(1e-4)).fit(
            X, stream.y
        )
        for X in (stream.X, stream.X * units)
    ]
    same = models[0].predict(stream.X) == models[1].predict(stream.X * units)
    assert same.mean() > 0.97
