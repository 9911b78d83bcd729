"""The multiclass Perceptron, without and with a margin."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_number
from kesler.updates.rule import UpdateRule


def perceptron_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write a step of length 1, times the weight of the row, along the only constraint."""
    steps[0] = weight


@dataclass(frozen=True)
class Perceptron(UpdateRule):
    r"""On a mistake, take one step from the predicted class to the right one.

    .. math:: w \mathrel{+}= \phi(x, y) - \phi(x, \hat y) \quad \text{if } \hat y \ne y

    Notes
    -----
    Makes at most :math:`L + C + \sqrt{L C}` mistakes, where L is the cumulative hinge loss of any
    competitor u and :math:`C = \rho R^2 \|u\|^2` its complexity (Fink et al. 2006, Theorem 1).
    Costs O(nnz k) per row to score and O(nnz) per mistake. `sample_weight` is the length of the
    step.

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
    requires = "losses"
    heeds_margin = False
    steps = staticmethod(perceptron_steps)


@dataclass(frozen=True)
class MarginPerceptron(UpdateRule):
    r"""Take one step towards the right class unless it wins by a margin.

    .. math:: w \mathrel{+}= \phi(x, y) - \phi(x, s) \quad \text{if }
        h(x, y) - h(x, s) < \delta, \; s = \arg\max_{r \ne y} h(x, r)

    Parameters
    ----------
    delta : float > 0, default 1.0
        The required margin, in units of the scores: steps have length 1, so that its effect
        depends on the norms of the rows. With larger values, more rows cause an update; near 0
        the rule is the :class:`Perceptron`, except for ties.

    Raises
    ------
    KeslerError
        If delta is not a finite number above 0.

    Notes
    -----
    Costs O(nnz k) per row to score and O(nnz) per update. `sample_weight` is the length of the
    step.

    References
    ----------
    Chang (2017), multiclass Perceptron with margin delta; Krauth and Mezard (1987).

    Examples
    --------
    >>> from kesler.updates import MarginPerceptron
    >>> MarginPerceptron(delta=5.0)
    MarginPerceptron(delta=5.0)
    """

    delta: float = 1.0

    strength = "delta"
    constraints = "worst"
    requires = "losses"
    steps = staticmethod(perceptron_steps)

    def __post_init__(self) -> None:
        why = ", since it is the margin by which the right class must win"
        keep_number(self, "delta", why, above=0)

    @property
    def margin(self) -> float:  # type: ignore[override]
        """The required margin."""
        return self.delta
