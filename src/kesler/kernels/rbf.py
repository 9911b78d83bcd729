"""The Gaussian kernel: near rows are alike, far ones have nothing in common."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from kesler.errors import KeslerError
from kesler.kernels.mercer import MercerKernel

SHARE = 0.04
"""Sigma over the median squared distance between rows, when nobody says more."""


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
    sigma : "auto" or float above 0, default "auto"
        The variance, not its root. Larger values: support vectors speak for rows further away, and
        the boundaries between classes are smoother. In other places' words, gamma = 1 / (2 sigma).
        "auto" is 0.04 times the median squared distance between rows, as far as they have come:
        that between each row, the one to be predicted too, and the 64 before it.

    Raises
    ------
    KeslerError
        If sigma is neither "auto" nor a number above 0, from 1e-30 to 1e30.

    Notes
    -----
    Distances come from inner products in float32: centre the features first, since far from 0
    little is left of their differences. Scale them too: a feature of large values decides distances
    alone. conditioning="ranges" does both. A sigma far too small leaves every row near itself
    alone.

    Costs O(nnz) and an exponential, a third of a nanosecond, a support vector; "auto" as much as 64
    support vectors more, and 4 bytes for each value of the last 64 rows. The median is followed as
    distances come: it goes up or down by a factor 1 + min(1/2, 1 / sqrt(n)) with the n-th, so that
    rows count alike, whatever their weight, and it follows a stream that changes.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 5 and Eq. 11; the median as a unit of
    distances: Jaakkola, Diekhans and Haussler (1999); steps to a median: Robbins and Monro (1951).

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
        if not (isinstance(self.sigma, Real) and 1e-30 <= self.sigma <= 1e30):
            raise KeslerError(
                f"RBF(sigma={self.sigma!r}): sigma must be a number above 0 (1e-30 to 1e30), "
                'since it is the variance of a Gaussian, or "auto", which goes by the rows'
            )
        object.__setattr__(self, "sigma", float(self.sigma))  # grids hand over NumPy's numbers

    @property
    def share(self) -> float:
        """What sigma is of the median squared distance, 0 if it is fixed."""
        return SHARE if self.sigma == "auto" else 0.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """What squared distances are multiplied by, as long as there are none under "auto"."""
        return (0.5 if self.sigma == "auto" else 0.5 / self.sigma,)
