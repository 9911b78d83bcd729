"""The guarantees of the theorems on ShareBoost for a fit, and their assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.dictionary import Dictionary
from kesler.errors import KeslerError
from kesler.sharing.training_rows import Task


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""Theorems 1 and 2 of ShareBoost, evaluated for a fit of T rounds.

    Theorem 2: for any weights V, T = ceil(4 ||V||^2 / eps) rounds give a loss of at most
    L(V) + eps, where ||V|| is the sum over columns of the largest absolute weight. So T rounds give

    .. math:: L(W) \le L(V) + 4 \|V\|_{\infty, 1}^2 / T.

    Theorem 1: with probability 1 - delta, the error on new rows is at most the training error plus
    a constant, which the source does not specify, times

    .. math:: \sqrt{\big(T k \ln(T k) \ln k + T \ln d + \ln(1 / \delta)\big) / m}.

    Attributes
    ----------
    n_rounds, n_classes, n_candidates, n_rows : int
        T, k, d and m.
    norm : float
        ||V||.
    loss_of_competitor, loss : float
        L(V), and the loss L(W) of the fit.
    training_error : float
        The error rate on the training rows.
    delta : float

    Examples
    --------
    >>> from kesler.sharing.certificates import Certificate
    >>> certificate = Certificate(50, 10, 784, 60_000, 2.0, 0.25, 0.4, 0.1, 0.05)
    >>> round(certificate.bound, 3), round(certificate.deviation, 3), certificate.rounds_for(0.1)
    (0.57, 0.353, 160)
    """

    n_rounds: int
    n_classes: int
    n_candidates: int
    n_rows: int
    norm: float
    loss_of_competitor: float
    loss: float
    training_error: float
    delta: float

    @property
    def epsilon(self) -> float:
        """The maximum excess over the competitor's loss after these rounds."""
        return 4 * self.norm**2 / self.n_rounds

    @property
    def bound(self) -> float:
        """The upper bound on the loss."""
        return self.loss_of_competitor + self.epsilon

    def rounds_for(self, epsilon: float) -> int:
        """Return the number of rounds that suffices for an excess of at most epsilon."""
        return math.ceil(4 * self.norm**2 / epsilon)

    @property
    def weight_term(self) -> float:
        """T k ln(T k) ln(k), the complexity of the weights of the chosen columns."""
        size = self.n_rounds * self.n_classes
        return size * math.log(size) * math.log(self.n_classes)

    @property
    def choice_term(self) -> float:
        """T ln(d), the complexity of the choice of columns."""
        return self.n_rounds * math.log(self.n_candidates)

    @property
    def confidence_term(self) -> float:
        """ln(1 / delta)."""
        return math.log(1 / self.delta)

    @property
    def deviation(self) -> float:
        """The square root of Theorem 1, without its constant factor."""
        terms = self.weight_term + self.choice_term + self.confidence_term
        return math.sqrt(terms / self.n_rows)

    def __str__(self) -> str:
        return (
            f"loss {self.loss:.3g} after {self.n_rounds} rounds, at most {self.bound:.3g} = "
            f"{self.loss_of_competitor:.3g} + {self.epsilon:.3g} by Theorem 2 (norm "
            f"{self.norm:.3g}); error on new rows at most {self.training_error:.3g} + c * "
            f"{self.deviation:.3g} by Theorem 1, with probability {1 - self.delta:g}"
        )


Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

# Number of candidates per block when a competitor's loss is computed.
AT_ONCE = 256
# Tolerance for features that are scaled to [-1, 1].
ROUNDING = 1e-6


def certified(model: Any, task: Task, rows: Any, W: Any, delta: float) -> Certificate:
    """Return the certificate of a fitted ShareBoostClassifier.

    Parameters
    ----------
    model : ShareBoostClassifier
    task : Task
        The loss on the training rows, without a penalty.
    rows : the training rows.
    W : array of shape (n_classes, n_columns)
    delta : float

    Raises
    ------
    KeslerError
        If the theorems do not cover the fit, or W has the wrong shape.
    """
    _require_covered(model, delta)
    dictionary: Dictionary = model.dictionary_
    competitor = _competitor(W, dictionary, task.n_classes)
    columns = _bounded_columns(dictionary, rows, model.support_)
    own = np.asarray(columns @ model.coef_.T + model.intercept_, dtype=np.float64)
    return Certificate(
        n_rounds=model.n_rounds_,
        n_classes=task.n_classes,
        n_candidates=dictionary.n_candidates_,
        n_rows=len(task.labels),
        norm=float(np.abs(competitor).max(axis=0).sum()),
        loss_of_competitor=task.loss(_scores(dictionary, rows, competitor))[0],
        loss=task.loss(own)[0],
        training_error=float(task.counts @ (own.argmax(axis=1) != task.labels)),
        delta=float(delta),
    )


def _scores(dictionary: Dictionary, rows: Any, W: Floats) -> Floats:
    """Return the scores of weights for all candidates, computed in blocks of candidates."""
    widths = dictionary.widths(np.arange(dictionary.n_candidates_))
    owners = np.repeat(np.arange(len(widths)), widths)
    weighed = np.unique(owners[W.any(axis=0)])
    scores = np.zeros((rows.shape[0], len(W)))
    for first in range(0, len(weighed), AT_ONCE):
        some = weighed[first : first + AT_ONCE]
        scores += _bounded_columns(dictionary, rows, some) @ W[:, np.isin(owners, some)].T
    return scores


def _bounded_columns(dictionary: Dictionary, rows: Any, candidates: Ints) -> Floats:
    columns = dictionary.columns(rows, candidates)
    largest = float(np.abs(columns).max(initial=0.0))
    if largest > 1 + ROUNDING:
        raise KeslerError(
            f"a column has a value of size {largest:.4g}, but the theorems assume values from -1 "
            "to 1: divide the features by their largest absolute value"
        )
    return columns


def _competitor(W: Any, dictionary: Dictionary, n_classes: int) -> Floats:
    W = np.asarray(W, dtype=np.float64)
    widths = dictionary.widths(np.arange(dictionary.n_candidates_))
    shape = n_classes, int(widths.sum())
    if W.shape != shape or not np.isfinite(W).all():
        raise KeslerError(
            f"W has shape {W.shape}: give finite weights of shape {shape}, a row for each class "
            "and a column for each column of the candidates"
        )
    return W


def _require_covered(model: Any, delta: float) -> None:
    unlike = {
        "scale": model.scale is not None,
        "penalty": model.penalty is not None,
        "groups": model.groups is not None,
        "choice": model.choice == "line",
        "shortlist": model.shortlist is not None,
    }
    for name, differs in unlike.items():
        if differs:
            raise KeslerError(
                f"{name}={getattr(model, name)!r} is not covered by the theorems: fit with "
                'scale=None, penalty=None, groups=None, shortlist=None and choice="gradient", '
                '"column" or "full"'
            )
    if not model.n_rounds_:
        raise KeslerError(
            "no candidate was chosen, so there is nothing to certify: give features with a gradient"
        )
    if not 0 < delta < 1:
        raise KeslerError(f"delta={delta!r} must be between 0 and 1")
