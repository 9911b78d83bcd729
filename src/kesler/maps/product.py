"""The product of an instance with the first instance or the mean of the class."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.maps.feature_map import FeatureMap


def product(x, p, q):
    """Return x p."""
    return x * p


@dataclass(frozen=True)
class Product(FeatureMap):
    r"""The product with the first instance of the class.

    .. math:: \phi_i(x, r) = x_i p_i^r, \quad p^r \text{ the first instance of class } r

    Notes
    -----
    Costs one multiplication per non-zero and class. Zero at zero.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eq. 4.

    Examples
    --------
    >>> from kesler.maps import Product
    >>> Product().statistic
    'first'
    """

    statistic = "first"
    zero_at_zero = True
    g = staticmethod(product)


@dataclass(frozen=True)
class ProductMean(FeatureMap):
    r"""The product with the mean of the instances of the class so far.

    .. math:: \phi_i(x, r) = x_i p_i^r, \quad
        p^r = \frac{1}{|I^r|} \sum_{t \in I^r} x_t, \; I^r = \{t : y_t = r\}

    Notes
    -----
    Costs one multiplication and one division per non-zero and class. Zero at zero.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eqs. 4 and 9.

    Examples
    --------
    >>> from kesler.maps import ProductMean
    >>> ProductMean().statistic
    'mean'
    """

    statistic = "mean"
    zero_at_zero = True
    g = staticmethod(product)
