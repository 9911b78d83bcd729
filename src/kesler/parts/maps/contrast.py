"""How much more common a word is in a class than in all others."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from kesler.compiled.jit.simd import beyond
from kesler.errors import KeslerError
from kesler.parts.maps.feature_map import Elementwise, FeatureMap

LEAST = np.float32(1e-30)  # nothing beside any share
NOISE = np.float32(1e-6)  # of two equal shares: a few units of the last place


def contrast(x, p, others, q):
    """Return x (p - others)."""
    return x * (p - others)


def relative_contrast(x, p, others, q):
    """Return x (p - others) / (p + others), 0 where both are or only rounding tells them apart."""
    off, both = p - others, p + others
    # Of what rounding leaves, AdaGrad would make a step as large as any other.
    return x * beyond(off, NOISE * both, off / (both + LEAST))


@dataclass(frozen=True)
class Contrast(FeatureMap):
    r"""How much more often a feature occurred in the class than in all others.

    .. math::
        \phi_i(x, r) = x_i \frac{a_i^r - b_i^r}{a_i^r + b_i^r}, \quad
        a_i^r = \frac{n_i^r + s P_i}{N_r + s}, \quad
        b_i^r = \frac{n_i - n_i^r + s P_i}{t - N_r + s}, \quad P_i = n_i / t

    with :math:`n_i^r` how many of the :math:`N_r` rows of class r so far have a feature i that is
    not zero, and :math:`n_i` how many of all t. It is :class:`Frequency` without thresholds; 0 for
    a feature that has not been seen.

    Parameters
    ----------
    smoothing : float, 0 or more, default 1.0
        How many pseudo-rows s, of the frequencies of all rows, each class and its rest have beside
        their own. Larger values: words that are rare in few rows count for less.
    relative : bool, default True
        False for the plain difference, :math:`x_i (a_i^r - b_i^r)`, in which words that are common
        count for most.

    Raises
    ------
    KeslerError
        If smoothing is not a finite number from 0 on, or relative is not a bool.

    Notes
    -----
    Costs a division and a few multiplications a non-zero and class. Zero at zero.

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
        if not (isinstance(self.smoothing, Real) and 0 <= float(self.smoothing) <= 1e6):
            raise KeslerError(
                f"Contrast(smoothing={self.smoothing!r}): smoothing is a number of rows, from 0 to "
                "1,000,000"
            )
        if not isinstance(self.relative, bool):
            raise KeslerError(f"Contrast(relative={self.relative!r}): relative is True or False")

    @property
    def g(self) -> Elementwise:  # type: ignore[override]
        """The compiled part."""
        return relative_contrast if self.relative else contrast

    @property
    def looks_at(self) -> str:
        """The ratio of the two shares, if relative: no division by numbers of rows is wanted."""
        return "ratio" if self.relative else "contrast"
