"""How much more common a word is in a class than in all others."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.maps.feature_map import FeatureMap


def contrast(x, p, others, q):
    """Return x (p - others)."""
    return x * (p - others)


@dataclass(frozen=True)
class Contrast(FeatureMap):
    r"""How much more often a feature occurred in the class than in all others.

    .. math:: \phi_i(x, r) = x_i (p_i^r - p_i^{\neg r})

    with :math:`p_i^r` the share of the rows of class r so far in which feature i is not zero, and
    :math:`p_i^{\neg r}` that share among the rows of all other classes, each 0 where there is none.
    It is :class:`Frequency` without thresholds: there is nothing to choose.

    Notes
    -----
    Costs two subtractions and three multiplications a non-zero and class. Zero at zero.

    References
    ----------
    After Fink, Shalev-Shwartz, Singer and Ullman (2006), Eq. 10.

    Examples
    --------
    >>> from kesler.maps import Contrast
    >>> Contrast().statistic
    'contrast'
    """

    statistic = "contrast"
    zero_at_zero = True
    g = staticmethod(contrast)
