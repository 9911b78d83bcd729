"""The distance of each feature to the mean of the class, and the difference from it."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.maps.feature_map import FeatureMap


def distance(x, p, q):
    """Return |x - p|."""
    return abs(x - p)


@dataclass(frozen=True)
class Distance(FeatureMap):
    r"""The absolute distance to the mean of the instances of the class so far.

    .. math:: \phi_i(x, r) = |x_i - p_i^r|, \quad
        p^r = \frac{1}{|I^r|} \sum_{t \in I^r} x_t, \; I^r = \{t : y_t = r\}

    Notes
    -----
    Costs one division and one subtraction per feature and class. Not zero at zero: for dense rows
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
    r"""The difference from the mean of the instances of the class so far.

    .. math:: \phi_i(x, r) = x_i - p_i^r, \quad
        p^r = \frac{1}{|I^r|} \sum_{t \in I^r} x_t, \; I^r = \{t : y_t = r\}

    Intended for a radial kernel, for which rows are similar if their differences from the means of
    their classes have the same signs and sizes.

    Notes
    -----
    Costs one division and one subtraction per feature and class. Not zero at zero: for dense rows
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
