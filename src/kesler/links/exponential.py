"""The exponential link: multiplicative updates."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass

from kesler.errors import keep_number, require_flag
from kesler.links.link import EXTENT, MASS, SCALE, WEIGHT, Geometry, Link

# Exponents are at most REACH above the reference, and clipped at LIMIT (float32 overflows at 88).
REACH, LIMIT = 40.0, 80.0


def exponential(task, v, reference, q):
    """Compute weights e^(eta v), their sum, or the scale that makes it `total`."""
    if task == WEIGHT or task == MASS:
        return math.exp(min(q[0] * v - reference, LIMIT))
    if task == SCALE:
        return q[1] / v if v > 0 else q[1]
    if task == EXTENT:
        return q[0] * v
    return 1.0 if q[0] * v <= reference + REACH else 0.0


def balanced_exponential(task, v, reference, q):
    """Compute the same for weights e^(eta v) - e^(-eta v), differences of a pair each."""
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
    r"""Multiplicative updates: each step multiplies the weights by powers of alpha.

    .. math:: w_i = \frac{U \alpha^{v_i}}{\sum_j \alpha^{v_j}}, \qquad \text{balanced: }
        w_i = \frac{U (\alpha^{v_i} - \alpha^{-v_i})}{\sum_j (\alpha^{v_j} + \alpha^{-v_j})}

    The sums run over the weights of all features seen so far. Mistakes grow with the logarithm of
    the number of irrelevant features; with the linear link, they grow with the number itself.

    Parameters
    ----------
    alpha : float > 1, default 2.0
        The factor of a weight in a step of 1 along a feature of value 1. Larger values learn
        faster and are less robust to noise.
    balanced : bool, default True
        Whether each feature is paired with its negative, so that weights of either sign can be
        learnt. If False, all weights are positive: for sub-experts that are mostly right.
    total : float > 0, default 1.0
        U, the sum of all weights. Larger values make the margin of 1 that aggressive rules require
        attainable; rules that depend on mistakes only do not depend on it.
    exact : bool, default False
        Whether "pa", "pa1", "simproj" and "conproj" project exactly, each constraint by itself:
        the step is the one after which its margin is attained, which a search in one dimension
        finds, in place of a bound on it. Steps are then longer, most of all where total is large.
        Where total is too small for the margin, a step is C, or 0 without C. After steps that are
        so long that the weights outside a row vanish beside their sum, of 53 bits, steps are no
        longer exact. Rules that do not project, such as "perceptron" or "softmax", refuse it.

    Raises
    ------
    KeslerError
        If alpha is not a finite number above 1, total is not a finite number above 0, or balanced
        or exact is not a bool; when a learner is made, if its rule does not take exact steps.

    Notes
    -----
    With the Perceptron this is WMA (Littlestone's weighted majority for linear thresholds, the
    Committee of Mesterharm), or balanced Winnow; with aggressive rules it is exponentiated gradient
    and the entropic simultaneous projections, with steps of loss / (U ln(alpha) max |d_i|^2), the
    longest that the strong convexity of the relative entropy allows without overshooting. Exact
    steps take some ten passes over the features for each constraint. Which make fewer mistakes
    depends on the rows and on total: see `papers/results/entropic.md`.

    The initial weight of a new feature is alpha^0. A trial costs as much as with the linear link,
    plus a few exponentials for each updated weight; all weights are recomputed when one exceeds the
    others by e^40, which is rare. Memory: 8 more bytes per weight. Weights below e^-87 of the
    largest are 0 in float32.

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
    exact: bool = False

    def __post_init__(self) -> None:
        keep_number(self, "alpha", ", since steps multiply weights by its powers", above=1)
        keep_number(self, "total", ", since it is the sum of all weights", above=0)
        for name in ("balanced", "exact"):
            require_flag(self, name)

    @property
    def geometry(self) -> Geometry:  # type: ignore[override]
        """The function with one exponential per weight, or with two."""
        return balanced_exponential if self.balanced else exponential

    @property
    def parameters(self) -> tuple[float, ...]:
        """The rate ln(alpha), and the sum of all weights."""
        return (math.log(self.alpha), self.total)

    @property
    def is_odd(self) -> bool:
        """Whether weights are differences of a pair."""
        return self.balanced

    @property
    def exponent(self) -> float:
        """Infinity, for the maximum norm, which is dual to the sum of absolute values."""
        return math.inf

    @property
    def factor(self) -> float:
        """The relative entropy is strongly convex with modulus 1 / (total ln(alpha))."""
        return self.total * math.log(self.alpha)

    @property
    def is_exact(self) -> bool:
        """Whether steps are exact projections."""
        return self.exact
