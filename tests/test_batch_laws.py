"""Laws of every batch machine: each fit satisfies its own condition of optimality."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from kesler import CrammerSingerClassifier, SoftmaxClassifier
from kesler.hypotheses import Grouped, PerClass

LOOSE, TIGHT = 3e-2, 1e-5


def halves(label):
    """Let the classes of even and of odd numbers share hypotheses."""
    return [int(label) % 2]


def hinges(leads, costs):
    """The loss of the multiclass SVM."""
    return (leads + costs).max(axis=1)


def soft(leads, costs):
    """The loss of multinomial logistic regression."""
    return logsumexp(leads, axis=1)


def soft_with_margin(leads, costs):
    """The loss of ShareBoost."""
    return logsumexp(leads + costs, axis=1)


@dataclass(frozen=True)
class Learner:
    """One batch machine: how it is made, and the losses of rows that it minimises."""

    make: Callable[..., Any]
    losses: Callable[..., Any]


SVM, SOFTMAX = CrammerSingerClassifier, SoftmaxClassifier
MACHINES = {
    "svm": Learner(SVM, hinges),
    "svm, no constant": Learner(lambda **k: SVM(fit_intercept=False, **k), hinges),
    "svm, single": Learner(lambda **k: SVM(hypotheses="single", **k), hinges),
    "svm, hybrid": Learner(lambda **k: SVM(hypotheses="hybrid", **k), hinges),
    "svm, groups": Learner(lambda **k: SVM(hypotheses=[PerClass(), Grouped(halves)], **k), hinges),
    "softmax": Learner(SOFTMAX, soft),
    "softmax, margin": Learner(lambda **k: SOFTMAX(loss="margin-softmax", **k), soft_with_margin),
    "softmax, hybrid": Learner(lambda **k: SOFTMAX(hypotheses="hybrid", **k), soft),
}


def problem():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 90)
    X = rng.standard_normal((90, 6)) + 0.8 * np.eye(6)[y]
    return X.astype(np.float32).astype(float), y


def norm_of(model):
    """Return the squared norm of what is held to zero."""
    free = isinstance(model, SoftmaxClassifier)
    if hasattr(model, "weights_"):
        return sum(float((w[1 if free else 0 :] ** 2).sum()) for w in model.weights_)
    bias = 0.0 if free else float((model.intercept_**2).sum())
    return float((model.coef_**2).sum()) + bias


def objective_at(model, row, X, y, scale=1.0):
    """Return the objective at so many times the scores and weights of a model, from scratch."""
    scores = scale * model.decision_function(X)
    leads = scores - scores[np.arange(len(y)), y][:, None]
    losses = row.losses(leads, 1.0 - np.eye(scores.shape[1])[y])
    return 0.5 * scale**2 * norm_of(model) + float(losses.sum())


@pytest.mark.parametrize("name", MACHINES)
def test_the_objective_is_that_of_the_weights(name):
    row, (X, y) = MACHINES[name], problem()
    model = row.make(tol=TIGHT, max_iter=3000).fit(X, y)
    assert model.converged_
    assert math.isclose(objective_at(model, row, X, y), model.objective_, rel_tol=1e-5)


@pytest.mark.parametrize("name", MACHINES)
def test_no_multiple_of_the_weights_is_better(name):
    row, (X, y) = MACHINES[name], problem()
    model = row.make(tol=TIGHT, max_iter=3000).fit(X, y)
    here = objective_at(model, row, X, y)
    for scale in (0.9, 0.99, 1.01, 1.1):
        assert objective_at(model, row, X, y, scale) > here * (1 - TIGHT)


@pytest.mark.parametrize("name", MACHINES)
def test_a_loose_fit_bounds_the_optimum(name):
    """From above by its objective; from below by its dual one, where there is one."""
    row, (X, y) = MACHINES[name], problem()
    loose = row.make(tol=LOOSE, max_iter=3000).fit(X, y)
    tight = row.make(tol=TIGHT, max_iter=3000).fit(X, y)
    assert tight.objective_ <= loose.objective_ * (1 + 1e-9)
    if hasattr(loose, "dual_objective_"):
        assert loose.dual_objective_ <= tight.objective_
        gap = (loose.objective_ - loose.dual_objective_) / loose.objective_
        assert math.isclose(gap, loose.duality_gap_, rel_tol=1e-6, abs_tol=1e-12)
        assert 0 <= gap <= LOOSE
    else:
        assert loose.gradient_norm_ <= LOOSE and tight.gradient_norm_ <= TIGHT
