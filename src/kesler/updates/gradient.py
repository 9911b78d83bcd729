"""Gradient rules: steps of stochastic gradient descent on a loss of the trial."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from kesler.errors import KeslerError
from kesler.updates.rule import UpdateRule


def hinge_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Eta along the constraint of the largest loss."""
    steps[0] = weight * parameters[0]


def softmax_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Eta times the probability of each wrong side; the largest is taken out of the exponents."""
    m = losses.shape[0]
    largest = 0.0
    for j in range(m):
        largest = max(largest, losses[j])
    total = math.exp(-largest)
    for j in range(m):
        steps[j] = math.exp(losses[j] - largest)
        total += steps[j]
    for j in range(m):
        steps[j] *= weight * parameters[0] / total


def logistic_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Eta times the probability that each constraint, alone, is the wrong way."""
    for j in range(losses.shape[0]):
        if losses[j] > 0:
            steps[j] = weight * parameters[0] / (1.0 + math.exp(-losses[j]))
        else:
            rising = math.exp(losses[j])
            steps[j] = weight * parameters[0] * rising / (1.0 + rising)


@dataclass(frozen=True)
class GradientRule(UpdateRule):
    """A rule with a step size eta."""

    eta: float = 0.1

    strength = "eta"

    def __post_init__(self) -> None:
        if not (isinstance(self.eta, Real) and math.isfinite(self.eta) and self.eta > 0):
            raise KeslerError(
                f"{type(self).__name__}(eta={self.eta!r}): eta must be a finite number above 0, "
                "since it is the length of a step along the gradient"
            )
        object.__setattr__(self, "eta", float(self.eta))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The step size."""
        return (self.eta,)


@dataclass(frozen=True)
class HingeGradient(GradientRule):
    r"""One gradient step on the multiclass hinge loss.

    .. math:: \ell = \max_{s \ne y} [1 - h(x, y) + h(x, s)]_+, \quad
        w \mathrel{+}= \eta (\phi(x, y) - \phi(x, s)) \text{ if } \ell > 0

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows of norm far from 1 want
        another one. A row's `sample_weight` multiplies it.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0.

    Notes
    -----
    Unlike :class:`PassiveAggressive` it takes the same step however small the loss is. Costs
    O(nnz k) a row to score and O(nnz) an update.

    References
    ----------
    Crammer and Singer (2001), the loss; Shalev-Shwartz, Singer and Srebro (2007), the steps.

    Examples
    --------
    >>> from kesler.updates import HingeGradient
    >>> HingeGradient(eta=0.5)
    HingeGradient(eta=0.5)
    """

    constraints = "worst"
    sees = "losses"
    steps = staticmethod(hinge_steps)


@dataclass(frozen=True)
class SoftmaxGradient(GradientRule):
    r"""One gradient step on the negative log-likelihood of the softmax model.

    .. math:: p_s = \frac{e^{h(x, s)}}{\sum_r e^{h(x, r)}}, \quad
        w \mathrel{+}= \eta \sum_{s \ne y} p_s (\phi(x, y) - \phi(x, s))

    that is, c = eta (e_y - p) in one coefficient a class. Of answers with several right classes it
    descends :math:`\ln(1 + \sum_{(r, s)} e^{h(x, s) - h(x, r)})` over the pairs demanded.

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows of norm far from 1 want
        another one. A row's `sample_weight` multiplies it.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0.

    Notes
    -----
    Moves on every row, a little even where all is well. Costs O(nnz k) a row to score and as much
    to update.

    References
    ----------
    Chang (2017), multinomial logistic regression; Bottou (2010), stochastic gradient descent.

    Examples
    --------
    >>> from kesler.updates import SoftmaxGradient
    >>> SoftmaxGradient()
    SoftmaxGradient(eta=0.1)
    """

    constraints = "all"
    sees = "losses"
    heeds_margin = False
    margin = 0.0
    steps = staticmethod(softmax_steps)


@dataclass(frozen=True)
class LogisticGradient(GradientRule):
    r"""One gradient step on a logistic loss for each constraint.

    .. math:: w \mathrel{+}= \eta \sum_{s \ne y} \frac{1}{1 + e^{h(x, y) - h(x, s)}}
        (\phi(x, y) - \phi(x, s))

    Of ordinal answers this is the all-threshold logistic model, of rankings pairwise logistic
    regression with shared weights.

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows of norm far from 1 want
        another one. A row's `sample_weight` multiplies it.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0.

    Notes
    -----
    Moves on every row. Costs O(nnz k) a row to score and as much to update.

    References
    ----------
    Rennie and Srebro (2005), all-threshold loss; Bottou (2010), stochastic gradient descent.

    Examples
    --------
    >>> from kesler.updates import LogisticGradient
    >>> LogisticGradient(eta=0.01)
    LogisticGradient(eta=0.01)
    """

    constraints = "all"
    sees = "losses"
    heeds_margin = False
    margin = 0.0
    steps = staticmethod(logistic_steps)
