"""ShareBoost on pieces and templates, and one-vs-rest greedy choice, from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from kesler import ShareBoostClassifier
from kesler.dictionaries import Pieces, Templates
from test_dictionaries import written_pieces
from test_shareboost import reference_learner
from test_templates import response

ALPHA = 0.02


def compare(dictionary, X, y, groups_of_columns, rounds):
    """Choices and losses are those of the reference on columns written from the definition."""
    columns = np.column_stack([column for group in groups_of_columns for column in group])
    groups = np.repeat(np.arange(len(groups_of_columns)), [len(g) for g in groups_of_columns])
    units, losses = reference_learner(
        columns, y, rounds, groups=groups, penalty="frobenius", alpha=ALPHA
    )
    model = ShareBoostClassifier(
        rounds, dictionary=dictionary, scale=None, bias=False, tol=1e-9,
        penalty="frobenius", alpha=ALPHA,
    ).fit(X, y)  # fmt: skip
    assert [each.candidate for each in model.path_] == units
    assert_allclose([each.loss for each in model.path_], losses, rtol=1e-3)


def test_pieces_are_chosen_as_groups_by_the_sum_of_their_gradients():
    X = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    y = (np.linalg.norm(X - 0.4, axis=1) < 0.6).astype(int) + (X[:, 0] < -0.5)
    pieces = Pieces(6, 4, random_state=0)
    compare(pieces, X, y, written_pieces(X, pieces.fit(X)), rounds=4)


def test_the_radii_of_pieces_are_quantiles_of_the_rows_distances():
    X = np.random.default_rng(1).normal(size=(999, 2))
    pieces = Pieces([[0.0, 0.0], [1.0, 2.0]], 9).fit(X)
    for centre, radii in zip(pieces.centres_, pieces.radii_.values.reshape(2, 9), strict=True):
        away = np.linalg.norm(X - centre, axis=1)
        inside = [np.mean(away < radius) for radius in radii]
        assert_allclose(inside, np.arange(1, 10) / 10, atol=0.01)


def test_templates_are_chosen_by_the_largest_weighted_responses():
    generator = np.random.default_rng(2)
    X, y = generator.random((60, 63)) / 4, np.arange(60) % 3
    for row, label in zip(X, y, strict=True):
        row.reshape(9, 7)[3 * label : 3 * label + 2, 2:6] += generator.random()
    templates = Templates((9, 7), 3, (3,), 2, random_state=0)
    fitted = templates.fit(X)
    columns = [
        [np.array([response(fitted.step(j), row) for row in X])]
        for j in range(fitted.n_candidates_)
    ]
    compare(templates, X, y, columns, rounds=3)


# ---- one-vs-rest ---------------------------------------------------------------------------------


def greedy_binary(X, signs, rounds, margin):
    """Return the features that lower ln(1 + e^(margin - s w.x)) greedily, and the weights."""
    chosen, w = [], np.zeros(0)
    for _ in range(rounds):
        wrong = 1 / (1 + np.exp(signs * (X[:, chosen] @ w) - margin))
        gradient = np.abs((wrong * signs) @ X)
        gradient[chosen] = -1
        chosen.append(int(gradient.argmax()))
        columns = signs[:, None] * X[:, chosen]

        def loss(w, columns=columns):
            # The two classes share the weight, w / 2 and -w / 2: their squared norm is |w|^2 / 2.
            return np.logaddexp(0, margin - columns @ w).mean() + ALPHA * (w @ w) / 2

        w = minimize(loss, np.append(w, 0), method="BFGS", options={"gtol": 1e-7}).x
    return chosen, w


@pytest.mark.parametrize(("loss", "margin"), [("softmax", 0), ("margin-softmax", 1)])
def test_one_vs_rest_is_binary_logistic_loss_for_each_class(loss, margin):
    generator = np.random.default_rng(3)
    X = generator.uniform(-1, 1, (150, 8))
    y = (X @ generator.normal(size=(8, 4))).argmax(axis=1)
    for label in range(4):
        chosen, w = greedy_binary(X, np.where(y == label, 1.0, -1.0), 3, margin)
        model = ShareBoostClassifier(
            3, scale=None, bias=False, tol=1e-9, loss=loss, penalty="frobenius", alpha=ALPHA
        ).fit(X, y == label)
        assert model.support_.tolist() == chosen
        assert_allclose(model.decision_function(X), X[:, chosen] @ w, atol=2e-3)
