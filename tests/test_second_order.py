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


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("averaged", [False, True])
def test_rules_of_one_constraint_step_along_p_x(rule, averaged):
    X, y = known_at_first(60, 6, 3, seed=1)
    X = X.astype(np.float32).astype(float)
    model = OnlineClassifier(
        "multi", update=rule, preconditioner=SecondOrder(1.5), averaged=averaged
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
