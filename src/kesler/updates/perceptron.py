"""The multiclass Perceptron."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.updates.rule import UpdateRule


def perceptron_steps(parameters, weight, losses, squared_norms, gram, steps):
    """One step of length 1 along the constraint of the class wrongly predicted."""
    steps[0] = weight


@dataclass(frozen=True)
class Perceptron(UpdateRule):
    r"""On a mistake, one step from the predicted class to the right one.

    .. math:: w \mathrel{+}= \phi(x, y) - \phi(x, \hat y) \quad \text{if } \hat y \ne y

    Notes
    -----
    Makes at most :math:`L + C + \sqrt{L C}` mistakes, where L is the cumulative hinge loss of any
    competitor u and :math:`C = \rho R^2 \|u\|^2` its complexity (Fink et al. 2006, Theorem 1).
    Costs O(nnz k) a row to score and O(nnz) a mistake. `sample_weight` is the length of the step.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Figure 3; Crammer and Singer (2003).

    Examples
    --------
    >>> from kesler.updates import Perceptron
    >>> Perceptron()
    Perceptron()
    """

    constraints = "predicted"
    sees = "losses"
    steps = staticmethod(perceptron_steps)
