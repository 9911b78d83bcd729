"""The p-norm link, between additive and multiplicative updates."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_number
from kesler.links.link import EXTENT, MASS, SCALE, WEIGHT, Link


def p_norm(task, v, reference, q):
    """Compute weights sign(v) |v|^(p - 1) relative to the largest |v|; scale ||v||_p^(2 - p)."""
    if task == WEIGHT or task == MASS:
        if v == 0 or reference == 0:
            return 0.0
        power = (abs(v) / reference) ** (q[0] - 1)
        if task == MASS:
            return power * abs(v) / reference
        return power if v > 0 else -power
    if task == SCALE:
        return reference * v ** ((2 - q[0]) / q[0]) if v > 0 else 1.0
    if task == EXTENT:
        return abs(v)
    return 1.0 if abs(v) <= 2 * reference else 0.0


@dataclass(frozen=True)
class PNorm(Link):
    r"""The gradient of half the squared q-norm's dual: the p-norm algorithms.

    .. math:: w_i = \frac{\operatorname{sign}(v_i) |v_i|^{p-1}}{\|v\|_p^{p-2}}

    Parameters
    ----------
    p : float in [2, 100], default 8.0
        2 is the linear link; larger values are closer to the exponential link. Theory suggests
        2 ln(n) for n features if few of them are relevant.

    Raises
    ------
    KeslerError
        If p is not between 2 and 100.

    Notes
    -----
    Aggressive rules have steps of loss / ((p - 1) ||d||_p^2). A trial costs as much as with the
    linear link, plus two powers for each updated weight; when the largest |v| has doubled, all
    weights are recomputed. Memory: 8 more bytes per weight.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997); Gentile (2003); Mesterharm (2001), Section 4.3.

    Examples
    --------
    >>> from kesler.links import PNorm
    >>> PNorm(p=4)
    PNorm(p=4.0)
    """

    p: float = 8.0

    geometry = staticmethod(p_norm)

    def __post_init__(self) -> None:
        why = ": 2 is the linear link, and beyond 100 powers overflow float32"
        keep_number(self, "p", why, least=2, most=100)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The exponent."""
        return (self.p,)

    @property
    def exponent(self) -> float:
        """The exponent p, whose norm is dual to the q-norm of the weights."""
        return self.p

    @property
    def factor(self) -> float:
        """Half the squared q-norm is strongly convex with modulus q - 1; 1 / (q - 1) = p - 1."""
        return self.p - 1
