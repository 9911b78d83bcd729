"""Measurements in units of their range, for distances."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.codes import Method
from kesler.errors import require_flag, require_weights
from kesler.preprocessing.method import Preprocessing, in_mean_square


@dataclass(frozen=True)
class Ranges(Preprocessing):
    r"""For distances: each feature relative to its first value, in units of its range so far.

    .. math:: x'_i = \frac{x_i - x_{1i}}{\max_{\tau \le t} x_{\tau i}
        - \min_{\tau \le t} x_{\tau i}}

    The last of the t rows is the row itself. A feature that has been constant gives 0, and so does
    every feature of the first row. The feature of the intercept is unchanged. A missing value (NaN)
    is the middle of the range so far, 0 in the first row.

    With `information`, features by which the classes differ have larger parts in the distances
    of a kernel: each is multiplied by

    .. math:: w_i = \sqrt{\frac{q_i}{\bar q}}, \quad
        q_i = \frac{1}{50} + c + \frac{\bar r}{10} + r_i, \quad
        r_i = \Big[\frac{\sum_k n_k (m_{ki} - m_i)^2}{n s_i^2} - c\Big]_+, \quad
        c = \frac{k - 1}{n - 1}

    where a bar stands for the mean over the features that vary, m and s for means and deviations so
    far, and n for numbers of rows: of class k, of k classes, or of all. The ratio, the squared
    correlation ratio, is the share of the variance of a feature that the classes explain, and c is
    its expectation for a feature that says nothing of them. Weights are computed again at least
    eight times while the number of rows doubles.

    Parameters
    ----------
    information : bool, default False
        Whether features have these weights. It helps where many columns say nothing, and it hides
        columns that say something only together with others.
    weights : tuple of float, 0 or more, or None, default None
        The weight of each feature, by which :math:`x'_i` is multiplied as well, scaled so that the
        mean of their squares is 1. Features of larger weight have larger parts in distances. None
        for equal weights.

    With a kernel, the support vectors are also rescaled: when a range has grown, inner products and
    distances are recomputed in the new units, in `predict` as well as in the next trial.

    Raises
    ------
    KeslerError
        If `information` is not a bool, or weights are not numbers of 0 or more. On first use, if
        rows have another number of features than weights, for sparse rows, and with a kernel of
        whole vectors or with a feature map, whose values cannot be rescaled; with `information`,
        also without a kernel.

    Notes
    -----
    For dense rows only, since zeros also change. Distances do not depend on the value that is
    subtracted; subtracting the first preserves precision if all values are far from 0. Values above
    1e36 count as 1e36, ranges below 1e-36 as 0, and values more than 1,000 ranges beyond their
    range are clipped to that, so that one erroneous row does not hide all others. A range never
    shrinks: one erroneous value hides its feature permanently, while :class:`ZScores` forget it.
    Costs a division per row and feature; with a kernel, a row that widens a range costs one more
    pass over the support vectors. Memory: 24 bytes per feature; with `information` 24 more, and 8
    for each class.

    References
    ----------
    Pearson (1905), "On the general theory of skew correlation and non-linear regression", the
    correlation ratio; Wettschereck, Aha and Mohri (1997), "A review and empirical evaluation of
    feature weighting methods for a class of lazy learning algorithms".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> leaves = OnlineClassifier("multi", kernel="rbf", on_new_class="learn",
    ...     preprocessing="ranges")
    >>> leaves = leaves.partial_fit([[1, 900], [2, 700], [6, 100]], [0, 0, 1])
    >>> leaves.predict([[5, 200]]).tolist()
    [1]
    """

    information: bool = False
    weights: tuple[float, ...] | None = None

    method = Method.RANGES
    zero_at_zero = False
    takes_missing = True
    n_statistics = 3  # the first, the smallest and the largest value

    def __post_init__(self) -> None:
        require_flag(self, "information")
        require_weights(self)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The weights, whose mean square is 1; none if they are equal."""
        return () if self.weights is None else in_mean_square(self.weights)
