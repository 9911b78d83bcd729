"""Z-scores of measurements."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.codes import Method
from kesler.errors import keep_number
from kesler.preprocessing.method import Preprocessing


@dataclass(frozen=True)
class ZScores(Preprocessing):
    r"""For measurements: the z-score of each feature, over the rows so far with the row itself.

    .. math:: x'_i = \min(c, \max(-c, (x_i - m_i) / s_i)), \quad
        m_i = \frac{1}{t} \sum_{\tau \le t} x_{\tau i}, \quad
        s_i^2 = \frac{1}{t} \sum_{\tau \le t} (x_{\tau i} - m_i)^2

    The last of the t rows is the row itself, counted as one row; after the learner has learnt from
    it, a row of weight w counts as w rows. A feature that has been constant gives 0, and so does
    every feature of the first row. One that is missing (NaN) gives 0, and changes neither mean nor
    deviation. The feature of the intercept is unchanged.

    Parameters
    ----------
    clip : float > 0, default 4.0
        The largest value, c. With larger values, outliers have more influence.

    Raises
    ------
    KeslerError
        If clip is not a finite number above 0.

    Notes
    -----
    For dense rows only, since zeros also change. Mean and deviation are updated in float64
    (Welford), so that a large mean loses no precision. For these, values further than 30 deviations
    from the mean are clipped, so that one erroneous value does not hide all later ones. Costs a
    root and two divisions per row and feature. Memory: 24 bytes per feature.

    References
    ----------
    Welford (1962), "Note on a method for calculating corrected sums of squares and products"; with
    weights West (1979).

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> leaves = OnlineClassifier(preprocessing="z-scores").fit([[1, 9], [2, 9], [6, 9]], [0, 1, 1])
    >>> leaves.preprocessing_
    ZScores(clip=4.0)
    """

    clip: float = 4.0

    method = Method.Z_SCORES
    zero_at_zero = False
    takes_missing = True
    n_statistics = 2  # the mean, and the sum of squared deviations from it

    def __post_init__(self) -> None:
        keep_number(self, "clip", above=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The largest value."""
        return (self.clip,)
