"""One-vs-rest rules: every class has a loss of its own, against a virtual class of score 0."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kesler.parts.constraints import Selection
from kesler.parts.updates.gradient import (
    GradientRule,
    hinge_flow,
    logistic_flows,
    logistic_gradient,
    logistic_steps,
    squared_flow,
)


def squared_gradient(parameters, losses, gradient):
    """Twice the residual, predictions clipped to [-1, 1]."""
    for j in range(losses.shape[0]):
        gradient[j] = 2.0 * min(max(losses[j], 0.0), 2.0)


def squared_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Eta along each gradient."""
    squared_gradient(parameters, losses, steps)
    for j in range(losses.shape[0]):
        steps[j] *= weight * parameters[0]


def squared_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Follow each loss for the time eta."""
    for j in range(losses.shape[0]):
        residual = min(max(losses[j], 0.0), 2.0)
        steps[j] = squared_flow(residual, squared_norms[j], weight * parameters[0])


def hinge_gradient(parameters, losses, gradient):
    """1 where there is a loss."""
    for j in range(losses.shape[0]):
        gradient[j] = 1.0 if losses[j] > 0 else 0.0


def hinge_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Eta where there is a loss."""
    for j in range(losses.shape[0]):
        steps[j] = weight * parameters[0] if losses[j] > 0 else 0.0


def hinge_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Follow each loss for the time eta."""
    for j in range(losses.shape[0]):
        if losses[j] > 0:
            steps[j] = hinge_flow(losses[j], squared_norms[j], weight * parameters[0])


@dataclass(frozen=True)
class OneVsRestRule(GradientRule):
    """A gradient rule whose constraints are those of each class with the rest."""

    eta: float = 0.5
    invariant: bool = True

    constraints: ClassVar[Selection] = "one-vs-rest"
    heeds_margin = False


@dataclass(frozen=True)
class OneVsRestSquared(OneVsRestRule):
    r"""Squared loss of each class: 1 for the right one, -1 for the others.

    .. math:: \ell_r = (t_r - \bar h(x, r))^2, \quad t_y = 1, \; t_s = -1, \quad
        w^r \mathrel{+}= u_r \phi(x, r), \quad
        u_r = (t_r - \bar h_r) \frac{1 - e^{-2 \eta \|\phi\|^2}}{\|\phi\|^2}

    with the score clipped to [-1, 1]. In the preconditioner "adagrad" it is what Vowpal Wabbit runs
    by default (there with the preconditioner scale-free too).

    Parameters
    ----------
    eta : float > 0, default 0.5
        How long the row is followed. Larger values learn and forget faster.
    invariant : bool, default True
        Whether a step is what infinitely many small ones lead to, which never overshoots: a row of
        `sample_weight` 2 then moves as far as the row twice. False: one gradient step, 2 eta times
        the residual.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Moves every class on every row: costs O(nnz k) to score and as much to update. For single
    classes and label sets; of rankings it learns which labels are in the better half.

    References
    ----------
    Rifkin and Klautau (2004), one-vs-all; Karampatziakis and Langford (2011), Eq. 6, the step.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier("multi", update="ovr-squared", preconditioner="adagrad")
    >>> model.fit([[1, 0], [0, 1]] * 5, ["a", "b"] * 5).predict([[1, 0]]).tolist()
    ['a']
    """

    gradient = staticmethod(squared_gradient)
    plain_steps = staticmethod(squared_steps)
    flows = staticmethod(squared_flows)


@dataclass(frozen=True)
class OneVsRestLogistic(OneVsRestRule):
    r"""Logistic loss of each class against the rest.

    .. math:: \ell_r = \ln(1 + e^{-t_r h(x, r)}), \quad w^r \mathrel{+}= t_r u_r \phi(x, r), \quad
        z + e^z = t_r h_r + e^{t_r h_r} + \eta \|\phi\|^2, \; u_r = (z - t_r h_r) / \|\phi\|^2

    Parameters
    ----------
    eta, invariant : as in :class:`OneVsRestSquared`
        The plain step is eta / (1 + exp(t h)).

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Costs as :class:`OneVsRestSquared`.

    References
    ----------
    Karampatziakis and Langford (2011), Section 4, the step.

    Examples
    --------
    >>> OneVsRestLogistic(eta=0.25)
    OneVsRestLogistic(eta=0.25, invariant=True)
    """

    margin = 0.0
    gradient = staticmethod(logistic_gradient)
    plain_steps = staticmethod(logistic_steps)
    flows = staticmethod(logistic_flows)


@dataclass(frozen=True)
class OneVsRestHinge(OneVsRestRule):
    r"""Hinge loss of each class against the rest.

    .. math:: \ell_r = [1 - t_r h(x, r)]_+, \quad
        w^r \mathrel{+}= t_r \min(\eta, \ell_r / \|\phi\|^2) \phi(x, r)

    Parameters
    ----------
    eta, invariant : as in :class:`OneVsRestSquared`
        The plain step is eta wherever there is a loss.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Costs as :class:`OneVsRestSquared`, but classes without a loss do not move.

    References
    ----------
    Karampatziakis and Langford (2011), Section 4, the step.

    Examples
    --------
    >>> OneVsRestHinge(invariant=False)
    OneVsRestHinge(eta=0.5, invariant=False)
    """

    constraints: ClassVar[Selection] = "violated-vs-rest"
    gradient = staticmethod(hinge_gradient)
    plain_steps = staticmethod(hinge_steps)
    flows = staticmethod(hinge_flows)
