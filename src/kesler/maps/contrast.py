"""The contrast of how common a feature is in a class and in all others."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kesler.compiled.jit.simd import beyond
from kesler.errors import keep_number, require_flag
from kesler.maps.feature_map import Elementwise, FeatureMap

LEAST = np.float32(1e-30)  # negligible beside any share
NOISE = np.float32(1e-6)  # relative rounding error of equal shares: a few units in the last place


def contrast(x, p, others, q):
    """Return x (p - others)."""
    return x * (p - others)


def relative_contrast(x, p, others, q):
    """Return x (p - others) / (p + others), 0 if both are 0 or differ by rounding errors only."""
    off, both = p - others, p + others
    # AdaGrad would amplify a rounding error to a step as large as any other.
    return x * beyond(off, NOISE * both, off / (both + LEAST))


@dataclass(frozen=True)
class Contrast(FeatureMap):
    r"""How much more often a feature occurred in the class than in all others.

    .. math::
        \phi_i(x, r) = x_i \frac{a_i^r - b_i^r}{a_i^r + b_i^r}, \quad
        a_i^r = \frac{n_i^r + s P_i}{N_r + s}, \quad
        b_i^r = \frac{n_i - n_i^r + s P_i}{t - N_r + s}, \quad P_i = n_i / t

    with :math:`n_i^r` the number of the :math:`N_r` rows of class r so far in which feature i is
    not zero, and :math:`n_i` their number among all t rows. It is :class:`Frequency` without
    thresholds; 0 for a feature that has not been seen.

    Parameters
    ----------
    smoothing : float, 0 or more, default 1.0
        The number s of pseudo-rows, with the frequencies of all rows, that are added to the rows of
        each class and of its rest. With larger values, rare features count for less.
    relative : bool, default True
        False for the plain difference, :math:`x_i (a_i^r - b_i^r)`, in which common features count
        for most.

    Raises
    ------
    KeslerError
        If smoothing is not a number from 0 to 1e6, or relative is not a bool.

    Notes
    -----
    Costs a division and a few multiplications per non-zero and class. Zero at zero.

    References
    ----------
    After Fink, Shalev-Shwartz, Singer and Ullman (2006), Eq. 10.

    Examples
    --------
    >>> from kesler.maps import Contrast
    >>> Contrast(smoothing=0.5)
    Contrast(smoothing=0.5, relative=True)
    """

    smoothing: float = 1.0
    relative: bool = True

    statistic = "contrast"
    zero_at_zero = True

    def __post_init__(self) -> None:
        keep_number(self, "smoothing", ": it is a number of rows", least=0, most=1e6)
        require_flag(self, "relative")

    @property
    def g(self) -> Elementwise:  # type: ignore[override]
        """The function that is compiled."""
        return relative_contrast if self.relative else contrast

    @property
    def looks_at(self) -> str:
        """The ratio of the two shares if relative, which needs no division by counts of rows."""
        return "ratio" if self.relative else "contrast"
