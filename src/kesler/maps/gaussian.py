"""The likelihood ratio of each feature under the Gaussians of a class and of all rows."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_number
from kesler.maps.feature_map import FeatureMap


def log_ratio(x, level, centre, sharpness, height, q):
    """Return height - (sharpness (x - centre))^2 - level within [-clip, clip]; -clip for NaN."""
    off = (x - centre) * sharpness
    phi = (height - level) - off * off
    if not phi > -q[2]:
        return -q[2]
    return min(phi, q[2])


@dataclass(frozen=True)
class GaussianRatio(FeatureMap):
    r"""The logarithm of the likelihood ratio of the Gaussians of the class and of all rows.

    .. math::
        \phi_i(x, r) = \log \mathcal{N}(x_i; \mu_i^r, v_i^r) - \log \mathcal{N}(x_i; \mu_i, v_i)
        \text{ within } [-\text{clip}, \text{clip}], \\
        v_i^r = \max\left((1 - \lambda_r) s_i^r + \lambda_r v_i, \; \text{floor}\; v_i\right),
        \quad \lambda_r = \min\left(1, \frac{\text{shrinkage}}{N_r + 1}\right)

    with :math:`\mu_i^r, s_i^r` the mean and variance of the :math:`N_r` rows of class r so far and
    :math:`\mu_i, v_i` those of all t rows, weighted by `sample_weight`. For the intercept c, a
    feature with the same value in every row, it is the prior, :math:`c \log(N_r / t)`. With all
    weights 1, the learner is a naive Bayes classifier. The view does not depend on the units of a
    feature. It is 0 for a class without rows and for features that have been constant.

    Parameters
    ----------
    shrinkage : float from 0 to 1e6, default 2.0
        The shrinkage of variances of classes with few rows towards that of all rows. With larger
        values, they shrink further.
    floor : float from 1e-12 to 1, default 1e-3
        The minimum variance of a class, as a share of that of all rows. With larger values,
        features with a small variance in a class have less influence.
    clip : float from 1e-6 to 1e6, default 8.0
        The largest absolute value. With larger values, single features have more influence.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Means and variances are computed in double, exactly, in one pass. The arguments of g for a class
    are computed when it learns from a row, once per feature, so that :math:`v_i` in :math:`v_i^r`
    is that of the latest row of class r; they are computed for all classes when the number of
    trials reaches a power of two, or when a feature ceases to be constant. A row then costs two
    subtractions, two multiplications and two comparisons per feature and class, and four logarithms
    and roots per feature. Memory: 28 bytes per feature and class. Not zero at zero: for dense rows
    only.

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
        keep_number(self, "shrinkage", least=0, most=1e6)
        keep_number(self, "floor", least=1e-12, most=1)
        keep_number(self, "clip", least=1e-6, most=1e6)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The shrinkage, the floor and the clip."""
        return (self.shrinkage, self.floor, self.clip)
