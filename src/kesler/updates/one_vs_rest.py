"""One-vs-rest rules: every class has its own loss, against a virtual class with score 0."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kesler.parts.constraints import Selection
from kesler.updates.gradient import (
    GradientRule,
    hinge_flow,
    logistic_flows,
    logistic_gradient,
    logistic_steps,
    squared_flow,
)
from kesler.updates.rule import UpdateRule


def squared_gradient(parameters, losses, gradient):
    """Write twice the residual, with scores clipped to [-1, 1]."""
    for j in range(losses.shape[0]):
        gradient[j] = 2.0 * min(max(losses[j], 0.0), 2.0)


def squared_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write eta times each gradient."""
    squared_gradient(parameters, losses, steps)
    for j in range(losses.shape[0]):
        steps[j] *= weight * parameters[0]


def squared_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Write the limit of small steps that sum to eta, for each loss."""
    for j in range(losses.shape[0]):
        residual = min(max(losses[j], 0.0), 2.0)
        steps[j] = squared_flow(residual, squared_norms[j], weight * parameters[0])


def hinge_gradient(parameters, losses, gradient):
    """Write 1 where the loss is above 0."""
    for j in range(losses.shape[0]):
        gradient[j] = 1.0 if losses[j] > 0 else 0.0


def hinge_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write eta where the loss is above 0."""
    for j in range(losses.shape[0]):
        steps[j] = weight * parameters[0] if losses[j] > 0 else 0.0


def hinge_flows(parameters, weight, losses, squared_norms, gram, steps):
    """Write the limit of small steps that sum to eta, for each loss."""
    for j in range(losses.shape[0]):
        if losses[j] > 0:
            steps[j] = hinge_flow(losses[j], squared_norms[j], weight * parameters[0])


@dataclass(frozen=True)
class OneVsRestRule(GradientRule):
    """A gradient rule with one constraint per class, against the rest."""

    eta: float = 0.5
    invariant: bool = True

    constraints: ClassVar[Selection] = "one-vs-rest"
    heeds_margin = False


@dataclass(frozen=True)
class OneVsRestSquared(OneVsRestRule):
    r"""Squared loss of each class, with target 1 for the right class and -1 for the others.

    .. math:: \ell_r = (t_r - \bar h(x, r))^2, \quad t_y = 1, \; t_s = -1, \quad
        w^r \mathrel{+}= u_r \phi(x, r), \quad
        u_r = (t_r - \bar h_r) \frac{1 - e^{-2 \eta \|\phi\|^2}}{\|\phi\|^2}

    with the score clipped to [-1, 1]. Under a link, the sums v move in place of w and the norm is
    that of the link: with ``Exponential(total=U)`` it is the EG+- regression of Kivinen and
    Warmuth, whose scores are at most U times the largest feature, and with ``PNorm(p)`` p-norm
    regression. The link must be odd, f(-v) = -f(v). With the preconditioner "adagrad" it is the
    default of Vowpal Wabbit (except that the preconditioner is also scale-free there).

    Parameters
    ----------
    eta : float > 0, default 0.5
        Step size; the sum of the small steps if `invariant`. Larger values learn and forget
        faster.
    invariant : bool, default True
        Whether a step is the limit of many small ones, which never overshoots: a row of
        `sample_weight` 2 then has the same effect as the row twice. If False, one gradient step is
        taken, 2 eta times the residual.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Updates every class on every row: costs O(nnz k) per row to score and as much to update. For
    single classes and label sets; for rankings it learns which labels are in the better half.
    Under a link, `invariant` steps follow the bound that its norm gives on how fast the score
    rises: they do not overshoot, but a row of weight 2 is only nearly the row twice.

    References
    ----------
    Rifkin and Klautau (2004), one-vs-all; Karampatziakis and Langford (2011), Eq. 6, the step;
    Kivinen and Warmuth (1997), EG+-; Gentile (2003), p-norms.

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
    Has the costs of :class:`OneVsRestSquared`.

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
        The plain step is eta if the loss is above 0.

    Raises
    ------
    KeslerError
        If eta is not a finite number above 0, or invariant is not a bool.

    Notes
    -----
    Has the costs of :class:`OneVsRestSquared`, but does not update classes without a loss.

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


def residuals(parameters, losses, gradient):
    """Write the residuals, along the constraints."""
    for j in range(losses.shape[0]):
        gradient[j] = losses[j]


def least_squares_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write residual / (norm + 1 / weight), which is below 0 beyond the target."""
    for j in range(losses.shape[0]):
        steps[j] = losses[j] / (squared_norms[j] + 1.0 / weight)


@dataclass(frozen=True)
class LeastSquares(UpdateRule):
    r"""The step that minimises the squared error of the row and the squared length of the change.

    .. math:: \min_{w^r} (t_r - \langle w^r, x \rangle)^2 + \|w^r - w^r_{t-1}\|^2, \quad
        w^r \mathrel{+}= \frac{t_r - h(x, r)}{1 + \|x\|^2} x, \quad t_y = 1, \; t_s = -1

    in the norm of the preconditioner. With "second-order" it is recursive least squares: the
    weights are those of ridge regression on all rows so far. Unlike those of "ovr-squared", steps
    continue where a score is beyond its target.

    Notes
    -----
    Updates every class on every row: costs O(nnz k) per row to score and as much to update. A row
    of `sample_weight` w has w times the squared error. For single classes and label sets; for
    rankings it learns which labels are in the better half.

    References
    ----------
    Widrow and Hoff (1960) and, for the division by the length, Nagumo and Noda (1967), without a
    preconditioner; Rifkin and Klautau (2004), one-vs-all, with regularized least squares.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier("multi", update="least-squares", preconditioner="second-order")
    >>> model.fit([[1, 0], [0, 1]] * 5, ["a", "b"] * 5).predict([[1, 0]]).tolist()
    ['a']
    """

    constraints: ClassVar[Selection] = "one-vs-rest"
    requires = "norms"
    heeds_margin = False
    gradient = staticmethod(residuals)
    steps = staticmethod(least_squares_steps)
