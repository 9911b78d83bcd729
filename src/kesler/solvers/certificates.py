"""What the theorems on ShareBoost promise of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""Theorems 1 and 2 of ShareBoost, evaluated on a run of T rounds.

    Theorem 2: for any weights V, T = ceil(4 ||V||^2 / eps) rounds lead to a loss of at most
    L(V) + eps, ||V|| the sum over columns of the largest absolute weight. So T rounds promise

    .. math:: L(W) \le L(V) + 4 \|V\|_{\infty, 1}^2 / T.

    Theorem 1: with probability 1 - delta the error on new rows is at most the training error plus
    a constant, which the source leaves open, times

    .. math:: \sqrt{\big(T k \ln(T k) \ln k + T \ln d + \ln(1 / \delta)\big) / m}.

    Attributes
    ----------
    n_rounds, n_classes, n_candidates, n_rows : int
        T, k, d and m.
    norm : float
        ||V||.
    loss_of_competitor, loss : float
        L(V), and L(W) that was reached.
    training_error : float
        The share of mistakes on the training rows.
    delta : float

    Examples
    --------
    >>> from kesler.solvers.certificates import Certificate
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
        """How far above the competitor's loss these rounds may end."""
        return 4 * self.norm**2 / self.n_rounds

    @property
    def bound(self) -> float:
        """The most that the loss may be."""
        return self.loss_of_competitor + self.epsilon

    def rounds_for(self, epsilon: float) -> int:
        """Return how many rounds are enough to come within epsilon of the competitor's loss."""
        return math.ceil(4 * self.norm**2 / epsilon)

    @property
    def weight_term(self) -> float:
        """T k ln(T k) ln(k): what the weights of the chosen columns can express."""
        size = self.n_rounds * self.n_classes
        return size * math.log(size) * math.log(self.n_classes)

    @property
    def choice_term(self) -> float:
        """T ln(d): what the choice of the columns can express."""
        return self.n_rounds * math.log(self.n_candidates)

    @property
    def confidence_term(self) -> float:
        """ln(1 / delta)."""
        return math.log(1 / self.delta)

    @property
    def deviation(self) -> float:
        """The square root of Theorem 1, which a constant goes before."""
        terms = self.weight_term + self.choice_term + self.confidence_term
        return math.sqrt(terms / self.n_rows)

    def __str__(self) -> str:
        return (
            f"loss {self.loss:.3g} after {self.n_rounds} rounds, at most {self.bound:.3g} = "
            f"{self.loss_of_competitor:.3g} + {self.epsilon:.3g} by Theorem 2 (norm "
            f"{self.norm:.3g}); error on new rows at most {self.training_error:.3g} + c * "
            f"{self.deviation:.3g} by Theorem 1, with probability {1 - self.delta:g}"
        )
