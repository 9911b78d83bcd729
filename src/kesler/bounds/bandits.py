"""Bounds of Banditron and SOBA: their theorems evaluated on a run of bandit feedback."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.exploration import Uniform
from kesler.hypotheses import PerClass
from kesler.learner.bandit import BanditLearner
from kesler.online.bandit import BanditClassifier
from kesler.online.classifier import OnlineClassifier
from kesler.updates.bandit import SOBA, Banditron

Array = npt.NDArray[np.float64]

AGGRESSIVENESS = (0.001, 0.01, 0.1, 1.0)
SCALES = np.geomspace(1e-3, 1e3, 61)
ETAS = np.linspace(0.05, 1.0, 20)
N_PASSES = 5


class Evaluated(NamedTuple):
    """The bound of a theorem for one competitor."""

    bound: float
    loss: float
    squared_norm: float


@dataclass(frozen=True)
class BanditRun:
    """What the theorems need of a run.

    Parameters
    ----------
    learner : the learner after the run.
    X : sparse matrix of shape (n_rows, n_features), with the constant feature of the intercept.
    y : the number of the right class of each row.
    """

    learner: BanditLearner
    X: Any
    y: npt.NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """T, the number of rows."""
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """k, the number of classes."""
        return max(self.learner.n_known, int(self.y.max(initial=0)) + 1)

    @property
    def gamma(self) -> float:
        """The probability of exploring."""
        assert isinstance(self.learner.exploration, Uniform)
        return self.learner.exploration.gamma

    @property
    def radius(self) -> float:
        """The largest norm of a row."""
        return math.sqrt(float(self.X.multiply(self.X).sum(axis=1).max(initial=0.0)))


def run_of(estimator: BanditClassifier, blocks: Any) -> BanditRun:
    """Repeat a run on an unfitted estimator; return what the theorems need of it.

    Raises
    ------
    KeslerError
        If no theorem bounds the mistakes of the estimator, or rows have weights.
    """
    pieces, codes = [], []
    for rows, targets, weights in blocks:
        if weights is not None and (weights != 1).any():
            raise KeslerError("the bounds of bandit feedback are for rows of weight 1")
        learner: Any = estimator._prepared(dense=rows.dense)
        _require_bounded(learner)
        estimator._learn(rows, targets)
        known = rows.with_presence()
        pieces.append(known.with_constant(learner.constant) if learner.constant else known)
        codes.append(learner.classes.encode(targets.names))
    return BanditRun(learner, _stacked(pieces), np.concatenate(codes).astype(np.int64))


def _require_bounded(learner: BanditLearner) -> None:
    """Raise unless a theorem bounds the mistakes of a learner."""
    if not isinstance(learner.rule, (Banditron, SOBA)):
        raise KeslerError(
            f"no theorem bounds the mistakes of {learner.rule!r} under bandit feedback: choose "
            'update="banditron" or "soba"'
        )
    if isinstance(learner.rule, SOBA) and learner.rule.diagonal:
        raise KeslerError(
            f"the theorem on SOBA needs the whole matrix, not {learner.rule!r}: choose SOBA()"
        )
    is_uniform = isinstance(learner.exploration, Uniform) and not learner.exploration.decay
    if not is_uniform:
        raise KeslerError(
            f"the theorems on {learner.rule!r} assume uniform exploration with a fixed gamma, not "
            f"{learner.exploration!r}"
        )
    if not learner.has_weights:
        raise KeslerError(
            f"the theorems on {learner.rule!r} assume weights of features, and a kernel has none: "
            "leave the kernel out"
        )
    if learner.parts != [PerClass()] or learner.preprocessing is not None:
        raise KeslerError(
            f"the theorems on {learner.rule!r} assume one weight vector of each class and rows as "
            'they are: choose hypotheses="multi" and no preprocessing'
        )


def _stacked(pieces: list[Rows]) -> Any:
    """Return rows as one sparse matrix."""
    width = max(rows.n_features for rows in pieces)
    matrices = [
        sparse.csr_array(
            (rows.values.astype(np.float64), rows.indices, rows.indptr), shape=(len(rows), width)
        )
        for rows in pieces
    ]
    return sparse.vstack(matrices, format="csr")


def best_bound(run: BanditRun) -> tuple[str, Evaluated]:
    """Return the name of the theorem, and the smallest bound over competitors found in hindsight.

    They are the weights of passes of PA-I over the rows with their targets, at several scales, and
    zero.
    """
    is_soba = isinstance(run.learner.rule, SOBA)
    bound: Callable[[BanditRun, Array, float], Evaluated] = soba if is_soba else banditron
    name = (
        "Theorem 1 of Beygelzimer et al. (2017)" if is_soba else "Theorem 1 of Kakade et al. (2008)"
    )
    found = [
        bound(run, scale * margins, scale**2 * norm)
        for margins, norm in _competitors(run)
        for scale in SCALES
    ]
    return name, min(found, key=lambda each: each.bound)


def banditron(run: BanditRun, margins: Array, squared_norm: float) -> Evaluated:
    r"""Return the bound on the expected number of mistakes of Banditron.

    .. math:: L + \gamma T + 3 \max\{k D / \gamma, \sqrt{D \gamma T}\} + \sqrt{k D L / \gamma},
        \quad D = 2 R^2 \|U\|_F^2

    Parameters
    ----------
    run : the run.
    margins : array of shape (n_rows,)
        The score of the right class minus the highest of the others, under the competitor U.
    squared_norm : the squared norm of U.
    """
    loss = float(np.maximum(0.0, 1.0 - margins).sum())
    D, k, T, gamma = 2 * run.radius**2 * squared_norm, run.n_classes, run.n_rows, run.gamma
    exploring = 3 * max(k * D / gamma, math.sqrt(D * gamma * T))
    bound = loss + gamma * T + exploring + math.sqrt(k * D * loss / gamma)
    return Evaluated(bound, loss, squared_norm)


def soba(run: BanditRun, margins: Array, squared_norm: float) -> Evaluated:
    r"""Return the bound on the expected number of mistakes of SOBA, for the best eta.

    .. math:: \sum_t \ell_\eta(U, x_t, y_t) + \frac{a \eta}{2 - \eta} \|U\|_F^2 + \gamma T
        + \frac{k}{\gamma \eta (2 - \eta)} \sum_t z_t^T A_t^{-1} z_t

    The last sum is that of the run instead of its expectation.

    Parameters
    ----------
    run, margins, squared_norm : as in `banditron`.
    """
    a, spread = run.learner.rule.parameters[0], run.learner.feedback_sums[1]
    fixed = run.gamma * run.n_rows
    found = []
    for eta in ETAS.tolist():
        losses = 1 - 2 * margins / (2 - eta) + eta * margins**2 / (2 - eta)
        loss = float(np.maximum(0.0, losses).sum())
        variance = run.n_classes / (run.gamma * eta * (2 - eta)) * spread
        bound = loss + a * eta / (2 - eta) * squared_norm + fixed + variance
        found.append(Evaluated(bound, loss, squared_norm))
    return min(found, key=lambda each: each.bound)


def _competitors(run: BanditRun) -> Iterator[tuple[Array, float]]:
    """Yield the margins of each row and the squared norm of each competitor."""
    yield np.zeros(run.n_rows), 0.0
    for C in AGGRESSIVENESS:
        model = OnlineClassifier("multi", update="pa1", C=C, on_new_class="learn", epochs=N_PASSES)
        model.fit(run.X, run.y)
        learner: Any = model._learner
        weights: Any = learner.hypothesis_weights()[0]
        U = np.zeros((run.X.shape[1], run.n_classes))
        dense = np.asarray(weights @ np.eye(weights.shape[1]))  # the table may be sparse
        U[: len(dense), np.array(learner.classes.labels)] = dense[:, : len(learner.classes.labels)]
        yield _margins(run.X @ U, run.y), float((U**2).sum())


def _margins(scores: Array, y: npt.NDArray[np.int64]) -> Array:
    """Return the score of the right class minus the highest of the others."""
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores[rows, y] = -np.inf
    found: Array = own - scores.max(axis=1)
    return found
