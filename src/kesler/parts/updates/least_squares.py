"""Least squares: the step of ridge regression, for each class against the rest."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kesler.parts.constraints import Selection
from kesler.parts.updates.rule import UpdateRule


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
