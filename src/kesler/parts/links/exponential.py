"""The exponential link: multiplicative updates."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from kesler.errors import KeslerError
from kesler.parts.links.link import EXTENT, MASS, SCALE, WEIGHT, Geometry, Link

# Exponents are kept below REACH of the reference, and are cut off at LIMIT (float32 ends at 88).
REACH, LIMIT = 40.0, 80.0


def exponential(task, v, reference, q):
    """Weights e^(eta v), their sum, and the scale that makes it `total`."""
    if task == WEIGHT or task == MASS:
        return math.exp(min(q[0] * v - reference, LIMIT))
    if task == SCALE:
        return q[1] / v if v > 0 else q[1]
    if task == EXTENT:
        return q[0] * v
    return 1.0 if q[0] * v <= reference + REACH else 0.0


def balanced_exponential(task, v, reference, q):
    """Weights e^(eta v) - e^(-eta v): a pair for each, one of which speaks against it."""
    up = math.exp(min(q[0] * v - reference, LIMIT))
    down = math.exp(min(-q[0] * v - reference, LIMIT))
    if task == WEIGHT:
        return up - down
    if task == MASS:
        return up + down
    if task == SCALE:
        return q[1] / v if v > 0 else q[1]
    if task == EXTENT:
        return q[0] * abs(v)
    return 1.0 if q[0] * abs(v) <= reference + REACH else 0.0


@dataclass(frozen=True)
class Exponential(Link):
    r"""Multiplicative updates: each step multiplies weights by powers of alpha.

    .. math:: w_i = \frac{U \alpha^{v_i}}{\sum_j \alpha^{v_j}}, \qquad \text{balanced: }
        w_i = \frac{U (\alpha^{v_i} - \alpha^{-v_i})}{\sum_j (\alpha^{v_j} + \alpha^{-v_j})}

    The sums run over the weights of all features seen so far. Mistakes grow with the logarithm of
    the number of irrelevant features, where those of the linear link grow with the number itself.

    Parameters
    ----------
    alpha : float > 1, default 2.0
        What a step of 1 along a feature of value 1 multiplies its weight by. Larger values learn
        faster and bear noise worse.
    balanced : bool, default True
        Whether each feature stands beside its negative, so that weights of either sign can be
        learnt. Without, all weights are positive: for sub-experts, most of which speak the truth.
    total : float > 0, default 1.0
        U, the sum of all weights. Larger values let the margin of 1 that aggressive rules ask for
        be reached; rules that look at mistakes only do not depend on it.

    Raises
    ------
    KeslerError
        If alpha is not above 1 or total not above 0, or one is not finite.

    Notes
    -----
    With the Perceptron this is WMA (Littlestone's weighted majority for linear thresholds, the
    Committee of Mesterharm), or balanced Winnow; with aggressive rules exponentiated gradient, and
    the entropic simultaneous projections, whose steps are loss / (U ln(alpha) max |d_i|^2): as
    far as the strong convexity of the relative entropy lets one go without overshooting.

    A feature seen late begins at the weight alpha^0. A trial costs as much as with the linear link
    and a few exponentials for each weight that moves; now and then, when a weight has outgrown the
    others by e^40, all weights are computed anew. Memory: 8 bytes more a weight. Weights less than
    e^-87 of the largest are 0 in float32.

    References
    ----------
    Littlestone (1989); Kivinen and Warmuth (1997); Mesterharm (2001), Section 4.2; Amit,
    Shalev-Shwartz and Singer (2006), Section 7.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.links import Exponential
    >>> winnow = OnlineClassifier("multi", update="perceptron", link=Exponential(alpha=1.5))
    >>> winnow.fit([[1, 0], [0, 1], [1, 0]], ["a", "b", "a"]).predict([[1, 0]]).tolist()
    ['a']
    """

    alpha: float = 2.0
    balanced: bool = True
    total: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, Real) and math.isfinite(self.alpha) and self.alpha > 1):
            raise KeslerError(
                f"Exponential(alpha={self.alpha!r}): alpha must be a finite number above 1, since "
                "it is what a step multiplies weights by"
            )
        if not (isinstance(self.total, Real) and math.isfinite(self.total) and self.total > 0):
            raise KeslerError(
                f"Exponential(total={self.total!r}): total must be a finite number above 0, since "
                "it is the sum of all weights"
            )
        if not isinstance(self.balanced, (bool, np.bool_)):
            raise KeslerError(f"Exponential(balanced={self.balanced!r}): say True or False")
        object.__setattr__(self, "alpha", float(self.alpha))
        object.__setattr__(self, "total", float(self.total))

    @property
    def geometry(self) -> Geometry:  # type: ignore[override]
        """One exponential a weight, or two."""
        return balanced_exponential if self.balanced else exponential

    @property
    def parameters(self) -> tuple[float, ...]:
        """The rate ln(alpha) and the sum of all weights."""
        return (math.log(self.alpha), self.total)

    @property
    def exponent(self) -> float:
        """The largest entry: dual to the sum of absolute values."""
        return math.inf

    @property
    def factor(self) -> float:
        """The relative entropy is 1 / (total ln(alpha)) strongly convex."""
        return self.total * math.log(self.alpha)
