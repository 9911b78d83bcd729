"""The distance of each feature to its class's mean, and the difference from it."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.parts.maps.feature_map import FeatureMap


def distance(x, p, q):
    """Return |x - p|."""
    return abs(x - p)


@dataclass(frozen=True)
class Distance(FeatureMap):
    r"""The absolute distance to the mean of the class's instances so far.

    .. math:: \phi_i(x, r) = |x_i - p_i^r|, \quad
        p^r = \frac{1}{|I^r|} \sum_{t \in I^r} x_t, \; I^r = \{t : y_t = r\}

    Notes
    -----
    Costs one division and one subtraction a feature and class. Not zero at zero: for dense rows
    only.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 5 (Yale B) and Eq. 9.

    Examples
    --------
    >>> from kesler.maps import Distance
    >>> Distance().zero_at_zero
    False
    """

    statistic = "mean"
    zero_at_zero = False
    g = staticmethod(distance)


def difference(x, p, q):
    """Return x - p."""
    return x - p


@dataclass(frozen=True)
class Difference(FeatureMap):
    r"""The difference from the mean of the class's instances so far.

    .. math:: \phi_i(x, r) = x_i - p_i^r, \quad
        p^r = \frac{1}{|I^r|} \sum_{t \in I^r} x_t, \; I^r = \{t : y_t = r\}

    Made for a radial kernel, under which rows count as alike if they lie on the same side of their
    classes' means at the same distance.

    Notes
    -----
    Costs one division and one subtraction a feature and class. Not zero at zero: for dense rows
    only.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eqs. 9 and 11.

    Examples
    --------
    >>> from kesler.maps import Difference
    >>> Difference().zero_at_zero
    False
    """

    statistic = "mean"
    zero_at_zero = False
    g = staticmethod(difference)
