"""How much better the Gaussian of a class explains each feature than the one of all rows."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from kesler.errors import KeslerError
from kesler.parts.maps.feature_map import FeatureMap


def log_ratio(x, level, centre, sharpness, height, q):
    """Return height - (sharpness (x - centre))^2 - level within [-clip, clip]; -clip of a NaN."""
    off = (x - centre) * sharpness
    phi = (height - level) - off * off
    if not phi > -q[2]:
        return -q[2]
    return min(phi, q[2])


@dataclass(frozen=True)
class GaussianRatio(FeatureMap):
    r"""The logarithm of a likelihood ratio: Gaussian of the class against Gaussian of all rows.

    .. math::
        \phi_i(x, r) = \log \mathcal{N}(x_i; \mu_i^r, v_i^r) - \log \mathcal{N}(x_i; \mu_i, v_i)
        \text{ within } [-\text{clip}, \text{clip}], \\
        v_i^r = \max\left((1 - \lambda_r) s_i^r + \lambda_r v_i, \; \text{floor}\; v_i\right),
        \quad \lambda_r = \min\left(1, \frac{\text{shrinkage}}{N_r + 1}\right)

    with :math:`\mu_i^r, s_i^r` mean and variance of the :math:`N_r` rows of class r so far and
    :math:`\mu_i, v_i` those of all t rows, weighted by `sample_weight`. On the intercept c, a
    feature of the same value in every row, it is the prior, :math:`c \log(N_r / t)`. All weights at
    1 make a naive Bayes classifier. The view does not depend on the units of a feature. It is 0 for
    a class without rows and for features that were constant so far.

    Parameters
    ----------
    shrinkage : float from 0 to 1e6, default 2.0
        How far variances of classes of few rows are drawn to that of all. Larger values: further.
    floor : float in (0, 1], default 1e-3
        The least share of the variance of all rows that a class's counts for. Larger values: a
        class whose rows agree in a feature is less sure of it.
    clip : float above 0, default 8.0
        The largest absolute value. Larger values: single features can decide.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Means and variances are kept in double, exactly, in one pass. What is read of them for a class
    is computed when it takes in a row, once a feature, so that :math:`v_i` in :math:`v_i^r` is that
    of the latest row of class r; when the number of trials reaches a power of two, or a feature
    ceases to be constant, it is computed for all classes. A row then costs two subtractions, two
    multiplications and two comparisons a feature and class, and four logarithms and roots a
    feature. Memory: 28 bytes for each feature and class. Not zero at zero: for dense rows only.

    References
    ----------
    Welford (1962), "Note on a method for calculating corrected sums of squares and products";
    Ng and Jordan (2001), "On discriminative vs. generative classifiers".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.maps import GaussianRatio
    >>> model = OnlineClassifier("single", GaussianRatio(), intercept=1.0)
    >>> model.fit([[0.0], [5.0], [1.0], [4.0]] * 5, ["low", "high"] * 10).predict([[0.7]])
    array(['low'], dtype='<U4')
    """

    shrinkage: float = 2.0
    floor: float = 1e-3
    clip: float = 8.0

    statistic = "moments"
    zero_at_zero = False
    g = staticmethod(log_ratio)

    def __post_init__(self) -> None:
        for name, low, high, within in (
            ("shrinkage", 0.0, 1e6, "from 0 to 1e6"),
            ("floor", 1e-12, 1.0, "from 1e-12 to 1"),
            ("clip", 1e-6, 1e6, "from 1e-6 to 1e6"),
        ):
            value = getattr(self, name)
            if not (isinstance(value, Real) and low <= float(value) <= high):
                raise KeslerError(f"GaussianRatio({name}={value!r}): it must be a number {within}")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The shrinkage, the floor and the clip."""
        return (self.shrinkage, self.floor, self.clip)
