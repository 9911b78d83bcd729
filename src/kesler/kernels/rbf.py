"""The Gaussian kernel: near rows are alike, far ones have nothing in common."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from kesler.errors import KeslerError
from kesler.kernels.mercer import MercerKernel


def rbf(inner, distance, q):
    """Return exp(-distance q[0]) to 1e-7 of itself, and 0 below e^-80.

    With exp(t) = 2^n exp(t - n log 2), the second factor a polynomial: float32 arithmetic alone,
    which runs eight lanes wide and gives the same bits everywhere, as a library's exp does not.
    The coefficients are those of Moshier's Cephes library (1989).
    """
    t = np.float32(-distance * q[0])
    if not t >= np.float32(-80):
        return np.float32(0) * t  # NaN of what is no number
    n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
    f = t - n * np.float32(0.693359375)
    f = f + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@dataclass(frozen=True)
class RBF(MercerKernel):
    r"""The Gaussian kernel, or radial basis function.

    .. math:: K(x, z) = \exp\left(-\frac{\|x - z\|^2}{2 \sigma}\right)

    Parameters
    ----------
    sigma : float above 0, default 1.0
        The variance, not its root. Larger values: support vectors speak for rows further away, and
        the boundaries between classes are smoother. Squared distances grow with the number of
        features: scale these, then take a part of the median squared distance between rows. In
        other places' words, gamma = 1 / (2 sigma).

    Raises
    ------
    KeslerError
        If sigma is not a number above 0, from 1e-30 to 1e30.

    Notes
    -----
    Distances come from inner products in float32: centre the features first, since far from 0
    little is left of their differences. Scale them too: sigma is in squared units of their
    distances, and with one far too small, every row is near itself alone.

    Costs O(nnz) and an exponential, a third of a nanosecond, a support vector.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 5 and Eq. 11.

    Examples
    --------
    >>> from kesler.kernels import RBF
    >>> RBF(sigma=0.07)
    RBF(sigma=0.07)
    """

    sigma: float = 1.0

    k = staticmethod(rbf)

    def __post_init__(self) -> None:
        if not (isinstance(self.sigma, Real) and 1e-30 <= self.sigma <= 1e30):
            raise KeslerError(
                f"RBF(sigma={self.sigma!r}): sigma must be a number above 0 (1e-30 to 1e30), "
                "since it is the variance of a Gaussian"
            )
        object.__setattr__(self, "sigma", float(self.sigma))  # grids hand over NumPy's numbers

    @property
    def parameters(self) -> tuple[float, ...]:
        """What squared distances are multiplied by."""
        return (0.5 / self.sigma,)
