"""Counts of words: damped, weighted by rarity, and scaled to rows of length 1."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import KeslerError
from kesler.parts.preprocessing.method import COUNTS, Preprocessing


@dataclass(frozen=True)
class Counts(Preprocessing):
    r"""For words and other counts: logarithms of counts, weights for rare features, unit length.

    .. math::
        u_i = \operatorname{sign}(x_i) (1 + \ln |x_i|) \;\text{ if } |x_i| \ge 1,
        \text{ else } x_i; \qquad
        v_i = u_i \sqrt{\ln \frac{t + 1}{n_i + 1/2}}; \qquad x'_i = v_i / \|v\|

    with t the number of rows so far and n_i that of those in which feature i was not 0; a row of
    weight w counts as w rows. The feature of the intercept is unchanged, and excluded from the
    length.

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

    Raises
    ------
    KeslerError
        If an argument is not a bool.

    Notes
    -----
    Costs one logarithm per row for each value above 1 in size and, with idf, one for each
    non-zero. Memory: 8 bytes per feature with idf.

    References
    ----------
    Salton and Buckley (1988), "Term-weighting approaches in automatic text retrieval".

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.preprocessing import Counts
    >>> mail = OnlineClassifier("multi", preprocessing=Counts(idf=True))
    >>> mail.learn_one({"cash": 3.0}, "spam").learn_one({"lunch": 1.0}, "work").preprocessing_
    Counts(damped=True, idf=True, unit=True)
    """

    damped: bool = True
    idf: bool = False
    unit: bool = True

    method = COUNTS
    zero_at_zero = True

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, bool):
                raise KeslerError(f"Counts({name}={value!r}): give True or False")

    @property
    def parameters(self) -> tuple[float, ...]:
        """The three arguments, 1 for True."""
        return float(self.damped), float(self.idf), float(self.unit)

    @property
    def n_statistics(self) -> int:
        """1 with idf, for the number of rows in which the feature is not 0."""
        return int(self.idf)
