"""The Gaussian kernel, a function of the squared distance between rows."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kesler.errors import keep_number
from kesler.kernels.mercer import MercerKernel

SHARE = 0.04
"""Sigma over the median squared distance between rows, for sigma="auto"."""


def rbf(inner, distance, q):
    """Return exp(-distance q[0]) with a relative error of 1e-7, and 0 below e^-80.

    It is computed as exp(t) = 2^n exp(t - n log 2) with a polynomial for the second factor. All
    arithmetic is in float32, so that the compiler can use vectors of eight lanes, and the bits are
    the same on every platform, unlike those of exp in libraries. The coefficients are those of
    Moshier's Cephes library (1989).
    """
    t = np.float32(-distance * q[0])
    if not t >= np.float32(-80):
        return np.float32(0) * t  # NaN if t is NaN
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
    sigma : "auto" or float above 0, default "auto"
        The variance, not its square root. With larger values support vectors affect rows further
        away, and the boundaries between classes are smoother. In scikit-learn's terms,
        gamma = 1 / (2 sigma). "auto" is 0.04 times the running median of the squared distances
        between each row, including the row to predict, and the 64 rows before it.

    Raises
    ------
    KeslerError
        If sigma is neither "auto" nor a number above 0, from 1e-30 to 1e30.

    Notes
    -----
    Distances are computed from inner products in float32. Centre the features first, since values
    far from 0 lose precision in the differences. Scale them too, since otherwise a feature with
    large values dominates the distances. preprocessing="ranges" does both. If sigma is far too
    small, every row is similar to itself only.

    A support vector costs O(nnz) and an exponential of a third of a nanosecond; "auto" costs as
    much as 64 more support vectors, and 4 bytes for each value of the last 64 rows. The running
    median is multiplied or divided by 1 + min(1/2, 1 / sqrt(n)) at the n-th distance, so that all
    rows have the same influence, whatever their sample weight, and the median adapts to a stream
    that changes.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 5 and Eq. 11; Jaakkola, Diekhans and
    Haussler (1999), the median as a unit of distances; Robbins and Monro (1951), the estimation of
    the median.

    Examples
    --------
    >>> from kesler.kernels import RBF
    >>> RBF(sigma=0.07)
    RBF(sigma=0.07)
    """

    sigma: float | Literal["auto"] = "auto"

    k = staticmethod(rbf)

    def __post_init__(self) -> None:
        if isinstance(self.sigma, str) and self.sigma == "auto":
            return
        why = ', since it is the variance of a Gaussian, or "auto" to estimate it from the rows'
        keep_number(self, "sigma", why, least=1e-30, most=1e30)

    @property
    def share(self) -> float:
        """Sigma over the median squared distance, 0 if sigma is fixed."""
        return SHARE if self.sigma == "auto" else 0.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """The factor of squared distances; under "auto" its value before the first distance."""
        return (0.5 if self.sigma == "auto" else 0.5 / self.sigma,)
