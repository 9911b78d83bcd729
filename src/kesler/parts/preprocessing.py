"""Preprocessing of a row before its trial, with statistics of the rows so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from kesler.errors import KeslerError
from kesler.parts.description import describe

COUNTS, Z_SCORES, RANGES = 1, 2, 3
"""Numbers of the methods, as in `kesler.compiled.trial.preprocessing`; 0 is no preprocessing."""


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of a row before its trial, part of the learner and of its model file.

    Attributes
    ----------
    method : the number of the method in compiled code.
    zero_at_zero : whether a feature with value 0 remains 0, so that zeros of sparse rows may be
        omitted.
    """

    method: ClassVar[int]
    zero_at_zero: ClassVar[bool]

    @property
    def statistics_of_classes(self) -> frozenset[str]:
        """The statistics of classes that it reads, as feature maps name them."""
        return frozenset()

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers passed to the compiled loops."""
        raise NotImplementedError

    @property
    def n_statistics(self) -> int:
        """Number of statistics that are stored for each feature."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as stored in a model file."""
        return describe(self)


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

    method = COUNTS
    zero_at_zero = True

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, bool):
                raise KeslerError(f"Counts({name}={value!r}): give True or False")

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


@dataclass(frozen=True)
class ZScores(Preprocessing):
    r"""For measurements: the z-score of each feature, over the rows so far with the row itself.

    .. math:: x'_i = \min(c, \max(-c, (x_i - m_i) / s_i)), \quad
        m_i = \frac{1}{t} \sum_{\tau \le t} x_{\tau i}, \quad
        s_i^2 = \frac{1}{t} \sum_{\tau \le t} (x_{\tau i} - m_i)^2

    The last of the t rows is the row itself, counted as one row; after the learner has learnt from
    it, a row of weight w counts as w rows. A feature that has been constant gives 0, and so does
    every feature of the first row. The feature of the intercept is unchanged.

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
    For dense rows only, since zeros change too. Mean and deviation are updated in float64
    (Welford), so that a large mean loses no precision. For these, values further than 30 deviations
    from the mean are clipped, so that one erroneous value does not hide all later ones. Costs a
    root and two divisions per row and feature. Memory: 16 bytes per feature.

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

    method = Z_SCORES
    zero_at_zero = False
    n_statistics = 2  # the mean, and the sum of squared deviations from it

    def __post_init__(self) -> None:
        clip = self.clip
        if isinstance(clip, bool) or not (isinstance(clip, Real) and 0 < clip < math.inf):
            raise KeslerError(f"ZScores(clip={clip!r}): clip must be a finite number above 0")
        object.__setattr__(self, "clip", float(clip))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The largest value."""
        return (self.clip,)


@dataclass(frozen=True)
class Ranges(Preprocessing):
    r"""For distances: each feature relative to its first value, in units of its range so far.

    .. math:: x'_i = \frac{x_i - x_{1i}}{\max_{\tau \le t} x_{\tau i}
        - \min_{\tau \le t} x_{\tau i}}

    The last of the t rows is the row itself. A feature that has been constant gives 0, and so does
    every feature of the first row. The feature of the intercept is unchanged.

    With a kernel, the support vectors are rescaled, too: when a range has grown, inner products and
    distances are recomputed in the new units, in `predict` as well as in the next trial.

    Raises
    ------
    KeslerError
        On first use, for sparse rows, and with a kernel of whole vectors or with a feature map,
        whose values cannot be rescaled.

    Notes
    -----
    For dense rows only, since zeros change too. Distances do not depend on the value that is
    subtracted; subtracting the first preserves precision if all values are far from 0. Values above
    1e36 count as 1e36, ranges below 1e-36 as 0, and values more than 1,000 ranges beyond their
    range are clipped to that, so that one erroneous row does not hide all others. A range never
    shrinks: one erroneous value hides its feature permanently, while :class:`ZScores` forget it.
    Costs a division per row and feature; with a kernel, a row that widens a range costs one more
    pass over the support vectors. Memory: 24 bytes per feature.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> leaves = OnlineClassifier("multi", kernel="rbf", on_new_class="learn",
    ...     preprocessing="ranges")
    >>> leaves.fit([[1, 900], [2, 700], [6, 100]], [0, 0, 1]).predict([[5, 200]]).tolist()
    [1]
    """

    method = RANGES
    zero_at_zero = False
    parameters = ()
    n_statistics = 3  # the first, the smallest and the largest value


PREPROCESSINGS: dict[str, Callable[[], Preprocessing | None]] = {
    "none": lambda: None,
    "counts": Counts,
    "idf": lambda: Counts(idf=True),
    "information": lambda: Counts(information=True),
    "z-scores": ZScores,
    "ranges": Ranges,
}
"""The preprocessings by their names in estimators and on the command line."""


def resolve_preprocessing(
    choice: str | Preprocessing | None, *, dense: bool, by_distance: bool = False
) -> Preprocessing | None:
    """Return the preprocessing of this name, or itself; "auto" depends on the kind of the rows.

    "auto" is :class:`Counts` for rows that list only non-zeros (text, counts). For rows that list
    every feature it is :class:`Ranges` if distances can be recomputed, `by_distance`, and
    :class:`ZScores` otherwise.

    Examples
    --------
    >>> resolve_preprocessing("auto", dense=True), resolve_preprocessing("none", dense=True)
    (ZScores(clip=4.0), None)
    """
    if choice is None or isinstance(choice, Preprocessing):
        return choice
    if isinstance(choice, str) and choice == "auto":
        for_dense = Ranges() if by_distance else ZScores()
        return for_dense if dense else Counts()
    if isinstance(choice, str) and choice in PREPROCESSINGS:
        return PREPROCESSINGS[choice]()
    raise KeslerError(
        f"preprocessing={choice!r} is not known: choose one of auto, {', '.join(PREPROCESSINGS)}, "
        "None, or an object of kesler.preprocessing"
    )
