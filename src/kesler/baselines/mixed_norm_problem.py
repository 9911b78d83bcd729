"""Softmax with a mixed norm: candidate columns, the problem with its dual, and sparse models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import xlogy

from kesler.batch.design import DensePerClass, PerClassDesign, SparsePerClass
from kesler.codes import RowNorm
from kesler.dictionaries.dictionary import Ints, Pool
from kesler.errors import KeslerError

Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
MixedNormName = Literal["inf-1", "2-1", "1-1"]

NORMS = {"inf-1": RowNorm.LARGEST, "2-1": RowNorm.LENGTH, "1-1": RowNorm.ABSOLUTE}
"""The norms of the weights of one feature, which are summed, by the names of the mixed norms."""


@dataclass(frozen=True)
class MixedNorm:
    r"""The sum over features of a norm of their weights.

    .. math:: \|W\|_{\infty,1} = \sum_j \max_r |W_{jr}|, \qquad
        \|W\|_{2,1} = \sum_j \left( \sum_r W_{jr}^2 \right)^{1/2}, \qquad
        \|W\|_{1,1} = \sum_{jr} |W_{jr}|

    Parameters
    ----------
    name : "inf-1", "2-1" or "1-1"
    """

    name: MixedNormName

    @property
    def of_feature(self) -> RowNorm:
        """The norm of one feature's weights."""
        return NORMS[self.name]

    def of(self, weights: Doubles) -> float:
        """Return the norm of weights of shape (n_features, n_classes)."""
        if self.of_feature == RowNorm.LENGTH:
            return float(np.linalg.norm(weights, axis=1).sum())
        sizes = np.abs(weights)
        return float(sizes.sum() if self.of_feature == RowNorm.ABSOLUTE else _most(sizes).sum())

    def dual_sizes(self, gradient: Doubles) -> Doubles:
        """Return each feature's dual norm of a gradient.

        It is the sum of magnitudes for "inf-1", the length for "2-1" and the largest for "1-1".
        """
        if self.of_feature == RowNorm.LENGTH:
            return np.asarray(np.linalg.norm(gradient, axis=1))
        sizes = np.abs(gradient)
        return _most(sizes) if self.of_feature == RowNorm.ABSOLUTE else sizes.sum(axis=1)


def _most(sizes: Doubles) -> Doubles:
    """Return the largest size of each row."""
    return np.asarray(sizes.max(axis=1, initial=0.0))


class Columns(Protocol):
    """Values of candidate features on the training rows, which need not be stored all at once."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of candidates."""

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each candidate's part of a gradient.

        Parameters
        ----------
        coefficients : array of shape (n_rows, n_classes)
            Derivatives with respect to the scores; a candidate's part of the gradient is the sum
            over the rows of its values times these.
        norm : MixedNorm

        Returns
        -------
        Array of shape (n_columns,)
        """

    def take(self, chosen: Indices) -> Doubles:
        """Return some candidates, shape (n_rows, n_chosen)."""


@dataclass(frozen=True, eq=False)
class MatrixColumns:
    """The columns of a matrix.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_columns), float32 or float64
        Without duplicate entries if sparse.
    """

    X: Any

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each row of X' times the coefficients."""
        return norm.dual_sizes(np.asarray(self._design.adjoint(coefficients)))

    def take(self, chosen: Indices) -> Doubles:
        """Return a dense copy of some columns."""
        if sparse.issparse(self.X):
            return np.asarray(self._by_column[:, chosen].toarray(), dtype=np.float64, order="C")
        return np.ascontiguousarray(self.X[:, chosen], dtype=np.float64)

    @cached_property
    def _design(self) -> PerClassDesign:
        kind = SparsePerClass if sparse.issparse(self.X) else DensePerClass
        return kind(self.X, intercept=False)

    @cached_property
    def _by_column(self) -> Any:
        return self.X.tocsc()


# The relative rounding error of a loss.
ROUNDING = 1e-13
# Intercepts are optimal if the mean probabilities equal the class frequencies up to EXACT, or up to
# NEARLY_EXACT if the error stops decreasing.
EXACT, NEARLY_EXACT = 1e-15, 1e-10
MOST_NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class Loss:
    """The mean loss at given scores.

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
    """The columns with nonzero weights, their weights, and intercepts.

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
        """Return the model whose scores are 0."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, np.empty((0, n_classes)), np.zeros(n_classes))

    def widened(self, columns: Indices) -> ColumnModel:
        """Return the same model with further columns of weight 0."""
        zeros = np.zeros((len(columns), self.weights.shape[1]))
        joined = np.concatenate([self.columns, columns])
        return replace(self, columns=joined, weights=np.concatenate([self.weights, zeros]))

    def pruned(self) -> ColumnModel:
        """Return the same model without columns of weight 0, sorted by column."""
        used = np.flatnonzero(self.weights.any(axis=1))
        used = used[np.argsort(self.columns[used])]
        return replace(self, columns=self.columns[used], weights=self.weights[used])


@dataclass(frozen=True, eq=False)
class MixedNormProblem:
    r"""The mean softmax loss plus a mixed norm of the weights.

    .. math:: \min_{W, b} \; \sum_i c_i \ln \sum_k
        \exp(h_k(x_i) + \mu [k \ne y_i] - h_{y_i}(x_i)) + \alpha \|W\|, \quad h(x) = x W + b

    Its dual, with probabilities :math:`\pi_i` and their entropy H, is

    .. math:: \max_\pi \; \sum_i c_i \left[ H(\pi_i) + \mu (1 - \pi_{i y_i}) \right]
        \quad \text{where} \quad
        \Big\| \sum_i c_i x_{ij} (\pi_i - e_{y_i}) \Big\|_* \le \alpha \; \forall j, \quad
        \sum_i c_i (\pi_i - e_{y_i}) = 0

    where the last constraint applies with intercepts only.

    Parameters
    ----------
    columns : Columns
    labels : int64 array of shape (n_rows,)
        Classes by number; each has a row.
    counts : float64 array of shape (n_rows,)
        The weights of rows, c: above 0, with sum 1.
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
        """Return the loss at given scores."""
        from kesler.compiled.batch.softmax_loss import take_losses

        coefficients, probabilities = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(coefficients, self.labels, self.counts, self.margin, probabilities)
        return Loss(float(value), coefficients, probabilities)

    def best_intercepts(self, scores: Doubles) -> tuple[Doubles, Loss]:
        """Return the intercepts to add to scores that minimise the loss, and that loss.

        They are found by Newton's method. Without intercepts they are 0.
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
        """Return the loss's Hessian, with curvature 1 for a common shift of all intercepts."""
        p = loss.probabilities.astype(np.float64)
        counted = self.counts[:, None] * p
        curvature: Doubles = np.diag(counted.sum(axis=0)) - counted.T @ p + 1 / self.n_classes
        return curvature

    def dual_value(self, loss: Loss, share: float) -> float:
        """Return the dual objective for pi at `share` of the way from labels to probabilities.

        The loss must be that at the best intercepts.
        """
        own = np.arange(len(self.labels)), self.labels
        probabilities = share * loss.coefficients / self.counts[:, None]
        probabilities[own] += 1
        np.clip(probabilities, 0, 1, out=probabilities)
        entropies = -xlogy(probabilities, probabilities).sum(axis=1)
        return float(self.counts @ (entropies + self.margin * (1 - probabilities[own])))

    def objectives(
        self, loss: Loss, weights: Doubles, sizes: Doubles, alpha: float
    ) -> tuple[float, float]:
        """Return the primal and a dual objective, given the dual norms of the gradients."""
        largest = float(sizes.max(initial=0.0))
        share = alpha / largest if largest > alpha else 1.0
        return loss.value + alpha * self.norm.of(weights), self.dual_value(loss, share)

    @property
    def alpha_max(self) -> float:
        """The smallest alpha for which all weights are 0: the largest dual norm at weights 0."""
        scores = np.zeros((self.columns.n_rows, self.n_classes))
        _, loss = self.best_intercepts(scores)
        sizes = self.columns.dual_sizes(loss.coefficients, self.norm)
        return float(sizes.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class SingleColumns:
    """A pool in which each candidate is a single column; columns are computed in blocks.

    Parameters
    ----------
    pool : Pool

    Raises
    ------
    KeslerError
        If a candidate is a group of columns.
    """

    pool: Pool

    def __post_init__(self) -> None:
        for block in self.pool.blocks():
            widths = self.pool.dictionary.widths(block)
            if (widths != 1).any():
                grouped = int(block[(widths != 1).argmax()])
                raise KeslerError(
                    f"candidate {grouped} of {type(self.pool.dictionary).__name__} is a group of "
                    f"{widths.max()} columns, but the mixed norm is over single columns: give "
                    "a dictionary of single columns, or use ShareBoostClassifier"
                )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.pool.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of candidates."""
        return self.pool.n_candidates

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each candidate's part of a gradient.

        For "inf-1" this is ShareBoost's score, which a pool may compute faster.
        """
        if norm.of_feature == RowNorm.LARGEST:
            return np.concatenate([scores for _, scores in self.pool.scores(coefficients)])
        parts = (self.take(block).T @ coefficients for block in self.pool.blocks())
        return np.concatenate([norm.dual_sizes(part) for part in parts])

    def take(self, chosen: Ints) -> Doubles:
        """Return some candidates."""
        if not len(chosen):
            return np.empty((self.n_rows, 0))
        return np.ascontiguousarray(self.pool.columns(chosen), dtype=np.float64)
