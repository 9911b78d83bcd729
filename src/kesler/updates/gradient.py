"""Gradient rules: steps of stochastic gradient descent on a loss of the trial, or their limit.

The limit of many small steps never overshoots, and a row of weight 2 has the same effect as the row
twice. The functions of numbers are compiled into the rules that call them.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from kesler.errors import keep_number, require_flag
from kesler.parts.constraints import Requirement
from kesler.updates.rule import Steps, UpdateRule


def squared_flow(residual, norm, time):
    """Return u with d(residual)/dt = -2 norm residual: residual (1 - exp(-2 norm t)) / norm."""
    decay = 2.0 * norm * time
    if decay < 1e-8:
        return 2.0 * time * residual
    return -math.expm1(-decay) * residual / norm


def hinge_flow(loss, norm, time):
    """Return the step u along a constraint until its loss is 0, or until the time ends."""
    if norm * time > loss:
        return loss / norm
    return time


def sigmoid(z):
    """Return 1 / (1 + exp(-z))."""
    if z > 0:
        return 1.0 / (1.0 + math.exp(-z))
    rising = math.exp(z)
    return rising / (1.0 + rising)


def logistic_flow(margin, norm, time):
    """Return u with d(margin)/dt = norm sigmoid(-margin): margin + exp(margin) grows by norm t.

    Newton's method converges from the right, since z + exp(z) is convex.
    """
    if margin > 30.0 or norm * time < 1e-8:
        return time * sigmoid(-margin)
    end = margin + math.exp(margin) + norm * time
    z = math.log(end) if end > 1.0 else min(end, 0.0)
    for _ in range(100):
        rise = math.exp(z)
        change = (z + rise - end) / (1.0 + rise)
        z -= change
        if abs(change) <= 1e-12 * (1.0 + abs(z)):
            break
    return max(0.0, (z - margin) / norm)


def hinge_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write eta for the constraint with the largest loss."""
    steps[0] = weight * parameters[0]


def hinge_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Write the limit of small steps that sum to eta."""
    steps[0] = hinge_flow(losses[0], squared_norms[0], weight * parameters[0])


def softmax_gradient(parameters, losses, gradient):
    """Write the softmax probability of each wrong class; the largest loss is subtracted first."""
    m = losses.shape[0]
    largest = 0.0
    for j in range(m):
        largest = max(largest, losses[j])
    total = math.exp(-largest)
    for j in range(m):
        gradient[j] = math.exp(losses[j] - largest)
        total += gradient[j]
    for j in range(m):
        gradient[j] /= total


def softmax_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write eta times the probability of each wrong class."""
    softmax_gradient(parameters, losses, steps)
    for j in range(losses.shape[0]):
        steps[j] *= weight * parameters[0]


def softmax_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Write the limit of small steps that sum to eta, along the mean of the constraints.

    The wrong classes are treated as one, with their total probability and mean squared norm.
    """
    softmax_gradient(parameters, losses, steps)
    m = losses.shape[0]
    wrong, norm, largest, total = 0.0, 0.0, losses[0], 0.0
    for j in range(m):
        wrong += steps[j]
        norm += steps[j] * squared_norms[j]
        largest = max(largest, losses[j])
    for j in range(m):
        total += math.exp(losses[j] - largest)
    if wrong > 0:
        margin = -(largest + math.log(total))
        step = logistic_flow(margin, norm / wrong, weight * parameters[0])
        for j in range(m):
            steps[j] *= step / wrong


def logistic_gradient(parameters, losses, gradient):
    """Write the probability that each constraint, on its own, is violated."""
    for j in range(losses.shape[0]):
        gradient[j] = sigmoid(losses[j])


def logistic_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write eta times the probability that each constraint, on its own, is violated."""
    logistic_gradient(parameters, losses, steps)
    for j in range(losses.shape[0]):
        steps[j] *= weight * parameters[0]


def logistic_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Write the limit of small steps that sum to eta, for each constraint on its own."""
    for j in range(losses.shape[0]):
        steps[j] = logistic_flow(-losses[j], squared_norms[j], weight * parameters[0])


@dataclass(frozen=True)
class GradientRule(UpdateRule):
    """A rule with a step size eta.

    Attributes
    ----------
    plain_steps, flows : the functions that are compiled: one step along the gradient, and the limit
        of many small ones.
    """

    eta: float = 0.1
    invariant: bool = False

    plain_steps: ClassVar[Steps]
    flows: ClassVar[Steps]
    strength = "eta"

    def __post_init__(self) -> None:
        keep_number(self, "eta", ", since it is the step size", above=0)
        require_flag(self, "invariant")

    @property
    def requires(self) -> Requirement:  # type: ignore[override]
        """Losses, and norms if steps are invariant."""
        return "norms" if self.invariant else "losses"

    @property
    def steps(self) -> Steps:  # type: ignore[override]
        """The function that is compiled."""
        return self.flows if self.invariant else self.plain_steps

    @property
    def parameters(self) -> tuple[float, ...]:
        """The step size."""
        return (self.eta,)

    def of_unit_strength(self) -> UpdateRule:
        """Return the rule with eta = 1."""
        return replace(self, eta=1.0)

    def as_gradient(self) -> UpdateRule:
        """Return the rule with plain steps of eta = 1."""
        return replace(self, eta=1.0, invariant=False)


@dataclass(frozen=True)
class HingeGradient(GradientRule):
    r"""One gradient step on the multiclass hinge loss.

    .. math:: \ell = \max_{s \ne y} [1 - h(x, y) + h(x, s)]_+, \quad
        w \mathrel{+}= \eta (\phi(x, y) - \phi(x, s)) \text{ if } \ell > 0

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows whose norm is far from 1
        need another value. It is multiplied by the `sample_weight` of the row.
    invariant : bool, default False
        Whether the step is min(eta, loss / ||d||^2), which ends where the loss is 0: it never
        overshoots, and a row of weight 2 has the same effect as the row twice.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Unlike that of :class:`PassiveAggressive`, the step does not depend on the size of the loss.
    Costs O(nnz k) per row to score and O(nnz) per update.

    References
    ----------
    Crammer and Singer (2001), the loss; Shalev-Shwartz, Singer and Srebro (2007), the steps.

    Examples
    --------
    >>> from kesler.updates import HingeGradient
    >>> HingeGradient(eta=0.5)
    HingeGradient(eta=0.5, invariant=False)
    """

    constraints = "worst"
    plain_steps = staticmethod(hinge_steps)
    flows = staticmethod(hinge_flows)


@dataclass(frozen=True)
class SoftmaxGradient(GradientRule):
    r"""One gradient step on the negative log-likelihood of the softmax model.

    .. math:: p_s = \frac{e^{h(x, s)}}{\sum_r e^{h(x, r)}}, \quad
        w \mathrel{+}= \eta \sum_{s \ne y} p_s (\phi(x, y) - \phi(x, s))

    that is, the coefficients of the classes are c = eta (e_y - p). If several classes are right,
    the loss is :math:`\ln(1 + \sum_{(r, s)} e^{h(x, s) - h(x, r)})` over the required pairs.

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows whose norm is far from 1
        need another value. It is multiplied by the `sample_weight` of the row.
    invariant : bool, default False
        Whether to take the limit of small steps that sum to eta, which never overshoots, instead
        of one step. Exact for two classes; otherwise the wrong classes are treated as one.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Updates weights on every row, by little if the loss is small. Costs O(nnz k) per row to score
    and as much to update.

    References
    ----------
    Chang (2017), multinomial logistic regression; Bottou (2010), stochastic gradient descent.

    Examples
    --------
    >>> from kesler.updates import SoftmaxGradient
    >>> SoftmaxGradient()
    SoftmaxGradient(eta=0.1, invariant=False)
    """

    constraints = "all"
    heeds_margin = False
    margin = 0.0
    gradient = staticmethod(softmax_gradient)
    plain_steps = staticmethod(softmax_steps)
    flows = staticmethod(softmax_flows)


@dataclass(frozen=True)
class LogisticGradient(GradientRule):
    r"""One gradient step on a logistic loss for each constraint.

    .. math:: w \mathrel{+}= \eta \sum_{s \ne y} \frac{1}{1 + e^{h(x, y) - h(x, s)}}
        (\phi(x, y) - \phi(x, s))

    For ordinal targets this is the all-threshold logistic model, for rankings it is pairwise
    logistic regression with shared weights.

    Parameters
    ----------
    eta : float > 0, default 0.1
        Step size. Larger values learn faster and forget faster; rows whose norm is far from 1
        need another value. It is multiplied by the `sample_weight` of the row.
    invariant : bool, default False
        Whether to take the limit of small steps that sum to eta instead of one step. Exact for
        each constraint on its own.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Updates weights on every row. Costs O(nnz k) per row to score and as much to update.

    References
    ----------
    Rennie and Srebro (2005), all-threshold loss; Bottou (2010), stochastic gradient descent.

    Examples
    --------
    >>> from kesler.updates import LogisticGradient
    >>> LogisticGradient(eta=0.01)
    LogisticGradient(eta=0.01, invariant=False)
    """

    constraints = "all"
    heeds_margin = False
    margin = 0.0
    gradient = staticmethod(logistic_gradient)
    plain_steps = staticmethod(logistic_steps)
    flows = staticmethod(logistic_flows)
