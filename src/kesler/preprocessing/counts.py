"""Counts of words: damped, weighted by rarity, and scaled to rows of length 1."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.codes import Method
from kesler.errors import require_flag
from kesler.preprocessing.method import Preprocessing


@dataclass(frozen=True)
class Counts(Preprocessing):
    r"""For words and other counts: logarithms of counts, weights for rare features, unit length.

    .. math::
        u_i = \operatorname{sign}(x_i) (1 + \ln |x_i|) \;\text{ if } |x_i| \ge 1,
        \text{ else } x_i; \qquad
        v_i = u_i \sqrt{\ln \frac{t + 1}{n_i + 1/2}} \sqrt{\frac{1}{10} +
        \frac{[D_i]_+}{n_i + 3}}; \qquad x'_i = v_i / \|v\|

    with the first root for `idf` and the second for `information`, t the number of rows so far and
    n_i that of those in which feature i was not 0; a row of weight w counts as w rows. The feature
    of the intercept is unchanged, and excluded from the length. The information gained,

    .. math::
        D_i = \sum_r n_i^r \ln \frac{n_i^r}{n_i} - \sum_{\tau: x_{\tau i} \ne 0} \ln
        p_\tau(y_\tau),

    is n_i times the divergence of the classes of these rows, n_i^r of class r, from the shares p of
    the classes among all rows, each share as it was at the time of the row. A row of several labels
    adds the mean of what it would add with each.

    Parameters
    ----------
    damped : bool, default True
        Whether counts are replaced by 1 + ln(count), so that repetitions count less.
    idf : bool, default False
        Whether to increase features that are not 0 in few rows only. It helps if classes differ by
        rare words (20 newsgroups) and harms if they differ by common ones (webkb).
    unit : bool, default True
        Whether to scale each row to length 1, so that long rows do not outweigh short ones. A row
        of zeros is unchanged.
    information : bool, default False
        Whether to increase features that occur in rows of few classes, and in several rows. It
        helps on mail, news and other texts of many words, most of which say little.

    Raises
    ------
    KeslerError
        If an argument is not a bool.

    Notes
    -----
    Costs one logarithm per row for each value above 1 in size and, with idf, one for each
    non-zero; with information, a root for each non-zero and four logarithms when it is learnt.
    Memory: 8 bytes per feature with idf, 16 with information, which also counts the rows of each
    class as :class:`~kesler.maps.Contrast` does (4 bytes per feature and class; once, with both).
    Learners trained separately add up what each has gained.

    References
    ----------
    Salton and Buckley (1988), "Term-weighting approaches in automatic text retrieval"; Debole and
    Sebastiani (2003), "Supervised term weighting for automated text categorization".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Counts
    >>> mail = OnlineClassifier("multi", preprocessing=Counts(idf=True))
    >>> mail.learn_one({"cash": 3.0}, "spam").learn_one({"lunch": 1.0}, "work").preprocessing_
    Counts(damped=True, idf=True, unit=True, information=False)
    """

    damped: bool = True
    idf: bool = False
    unit: bool = True
    information: bool = False

    method = Method.COUNTS
    zero_at_zero = True

    def __post_init__(self) -> None:
        for name in vars(self):
            require_flag(self, name)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The four arguments, 1 for True."""
        return float(self.damped), float(self.idf), float(self.unit), float(self.information)

    @property
    def n_statistics(self) -> int:
        """The number of rows in which the feature is not 0, and the information gained."""
        return 2 if self.information else int(self.idf)

    @property
    def statistics_of_classes(self) -> frozenset[str]:
        """With information, the number of rows of each class in which the feature is not 0."""
        return frozenset({"contrast"} if self.information else ())
