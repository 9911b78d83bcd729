"""Softmax under a mixed norm: the problem, its dual, and models of few columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from kesler.solvers.columns import Columns, Indices
from kesler.solvers.mixed_norms import MixedNorm

Doubles = npt.NDArray[np.float64]

# What rounding may add to a loss, as a share of it.
ROUNDING = 1e-13
# Intercepts are best where probabilities add up to the classes' shares, to this error; or to the
# other, if it falls no further.
EXACT, NEARLY_EXACT = 1e-15, 1e-10
MOST_NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class Loss:
    """The mean loss at some scores.

    Parameters
    ----------
    value : float
    coefficients : float64 array of shape (n_rows, n_classes)
        Its derivatives with respect to the scores.
    probabilities : float32 array of shape (n_rows, n_classes)
    """

    value: float
    coefficients: Doubles
    probabilities: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ColumnModel:
    """Weights of the columns that have any, and intercepts.

    Parameters
    ----------
    columns : int64 array of shape (n_chosen,)
    weights : float64 array of shape (n_chosen, n_classes)
    intercepts : float64 array of shape (n_classes,)
    """

    columns: Indices
    weights: Doubles
    intercepts: Doubles

    @classmethod
    def empty(cls, n_classes: int) -> ColumnModel:
        """Return the model that scores 0."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, np.empty((0, n_classes)), np.zeros(n_classes))

    def widened(self, columns: Indices) -> ColumnModel:
        """Return the same model with further columns, of weight 0."""
        room = np.zeros((len(columns), self.weights.shape[1]))
        joined = np.concatenate([self.columns, columns])
        return replace(self, columns=joined, weights=np.concatenate([self.weights, room]))

    def pruned(self) -> ColumnModel:
        """Return the same model without columns of weight 0, in their order."""
        kept = np.flatnonzero(self.weights.any(axis=1))
        kept = kept[np.argsort(self.columns[kept])]
        return replace(self, columns=self.columns[kept], weights=self.weights[kept])


@dataclass(frozen=True, eq=False)
class MixedNormProblem:
    r"""The mean loss of softmax, whose weights a mixed norm keeps to few columns.

    .. math:: \min_{W, b} \; \sum_i c_i \ln \sum_k
        \exp(h_k(x_i) + \mu [k \ne y_i] - h_{y_i}(x_i)) + \alpha \|W\|, \quad h(x) = x W + b

    Its dual, :math:`\pi_i` being probabilities and H their entropy, is

    .. math:: \max_\pi \; \sum_i c_i \left[ H(\pi_i) + \mu (1 - \pi_{i y_i}) \right]
        \quad \text{where} \quad
        \Big\| \sum_i c_i x_{ij} (\pi_i - e_{y_i}) \Big\|_* \le \alpha \; \forall j, \quad
        \sum_i c_i (\pi_i - e_{y_i}) = 0

    the last with intercepts only.

    Parameters
    ----------
    columns : Columns
    labels : int64 array of shape (n_rows,)
        Classes by number; each has a row.
    counts : float64 array of shape (n_rows,)
        What rows count, c: above 0, with sum 1.
    n_classes : int
    norm : MixedNorm
    margin : float, 0 or more
    intercept : bool
    """

    columns: Columns
    labels: npt.NDArray[np.int64]
    counts: Doubles
    n_classes: int
    norm: MixedNorm
    margin: float
    intercept: bool

    def loss_at(self, scores: Doubles) -> Loss:
        """Return the loss at some scores."""
        from kesler.compiled.softmax_loss import take_losses

        coefficients, probabilities = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(coefficients, self.labels, self.counts, self.margin, probabilities)
        return Loss(float(value), coefficients, probabilities)

    def best_intercepts(self, scores: Doubles) -> tuple[Doubles, Loss]:
        """Return what to add to scores for the least loss, by Newton's method, and that loss.

        Without intercepts that is nothing.
        """
        added, loss, error = np.zeros(self.n_classes), self.loss_at(scores), np.inf
        for _ in range(MOST_NEWTON_STEPS if self.intercept else 0):
            slope, before = loss.coefficients.sum(axis=0), error
            error = float(np.abs(slope).sum())
            if error <= EXACT or (error <= NEARLY_EXACT and error > before / 2):
                break
            step = np.linalg.solve(self._intercept_curvature(loss), -slope)
            share, most = 1.0, loss.value * (1 + ROUNDING)
            while (nearer := self.loss_at(scores + added + share * step)).value > most:
                share /= 2
            added, loss = added + share * step, nearer
        return added, loss

    def _intercept_curvature(self, loss: Loss) -> Doubles:
        """Return the loss's Hessian, with a curvature of 1 where all intercepts change alike."""
        p = loss.probabilities.astype(np.float64)
        counted = self.counts[:, None] * p
        curvature: Doubles = np.diag(counted.sum(axis=0)) - counted.T @ p + 1 / self.n_classes
        return curvature

    def dual_value(self, loss: Loss, share: float) -> float:
        """Return the dual objective where pi goes from the labels to the probabilities by `share`.

        The loss is that at the best intercepts.
        """
        own = np.arange(len(self.labels)), self.labels
        chances = share * loss.coefficients / self.counts[:, None]
        chances[own] += 1
        np.clip(chances, 0, 1, out=chances)
        entropies = -xlogy(chances, chances).sum(axis=1)
        return float(self.counts @ (entropies + self.margin * (1 - chances[own])))

    def objectives(
        self, loss: Loss, weights: Doubles, sizes: Doubles, alpha: float
    ) -> tuple[float, float]:
        """Return the primal and a dual objective, given the dual norms of columns' gradients."""
        largest = float(sizes.max(initial=0.0))
        share = alpha / largest if largest > alpha else 1.0
        return loss.value + alpha * self.norm.of(weights), self.dual_value(loss, share)

    @property
    def alpha_max(self) -> float:
        """The least alpha for which all weights are 0: the largest dual norm of a gradient at 0."""
        scores = np.zeros((self.columns.n_rows, self.n_classes))
        _, loss = self.best_intercepts(scores)
        sizes = self.columns.dual_sizes(loss.coefficients, self.norm)
        return float(sizes.max(initial=0.0))
