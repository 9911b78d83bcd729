"""Preprocessing: what is done to a row before the trial, from the rows before it only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from kesler.errors import KeslerError
from kesler.parts.description import describe

COUNTS, Z_SCORES, RANGES = 1, 2, 3
"""Numbers of the methods, as in `kesler.compiled.trial.preprocessing`; 0 is none."""


@dataclass(frozen=True)
class Preprocessing:
    """What is done to a row before the trial: part of the learner and of its model file.

    Attributes
    ----------
    method : the number by which the compiled loops know it.
    zero_at_zero : whether a feature of value 0 stays 0, so that zeros of sparse rows may be left
        out.
    """

    method: ClassVar[int]
    zero_at_zero: ClassVar[bool]

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that the compiled loops are given."""
        raise NotImplementedError

    @property
    def n_statistics(self) -> int:
        """How many numbers are kept of each feature."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)


@dataclass(frozen=True)
class Counts(Preprocessing):
    r"""For words and other counts: repetitions damped, rare features raised, rows of length 1.

    .. math::
        u_i = \operatorname{sign}(x_i) (1 + \ln |x_i|) \;\text{ if } |x_i| \ge 1,
        \text{ else } x_i; \qquad
        v_i = u_i \sqrt{\ln \frac{t + 1}{n_i + 1/2}}; \qquad x'_i = v_i / \|v\|

    with t the rows so far and n_i those of them in which feature i was not 0; a row of weight w
    counts as w rows. The intercept's feature stays as it is, and out of the length.

    Parameters
    ----------
    damped : bool, default True
        Whether the second occurrence counts less than the first.
    idf : bool, default False
        Whether to raise features that few rows had. It helps where classes differ by rare words
        (20 newsgroups), and harms where they differ by common ones (webkb).
    unit : bool, default True
        Whether to scale each row to length 1, without which long rows outweigh short ones. A row
        of zeros stays one.

    Raises
    ------
    KeslerError
        If an argument is not a bool.

    Notes
    -----
    A row costs one logarithm for each value beyond 1 and, with idf, one for each non-zero; idf
    keeps 8 bytes a feature.

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
        """What is done, 1 for yes."""
        return float(self.damped), float(self.idf), float(self.unit)

    @property
    def n_statistics(self) -> int:
        """The number of rows that had the feature, if it is asked for."""
        return int(self.idf)


@dataclass(frozen=True)
class ZScores(Preprocessing):
    r"""For measurements: each feature in deviations from its mean, over the rows so far and itself.

    .. math:: x'_i = \min(c, \max(-c, (x_i - m_i) / s_i)), \quad
        m_i = \frac{1}{t} \sum_{\tau \le t} x_{\tau i}, \quad
        s_i^2 = \frac{1}{t} \sum_{\tau \le t} (x_{\tau i} - m_i)^2

    The last of the t rows is the row itself, as one row; once it has been learnt from, a row of
    weight w counts as w rows. A feature that has been constant gives 0, and so does every feature
    of the first row. The intercept's feature stays as it is.

    Parameters
    ----------
    clip : float > 0, default 4.0
        The largest value, c. Larger values trust outliers more.

    Raises
    ------
    KeslerError
        If clip is not a finite number above 0.

    Notes
    -----
    For dense rows only: zeros move too. Mean and deviation are updated in float64 (Welford), so
    that a large mean costs no digits. In them, what is further than 30 deviations from the mean
    counts as that far, lest one broken value hide all later ones. 16 bytes a
    feature; a row costs a root and two divisions a feature.

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
    n_statistics = 2  # the mean, and the sum of squares about it

    def __post_init__(self) -> None:
        clip = self.clip
        if isinstance(clip, bool) or not (isinstance(clip, Real) and 0 < clip < math.inf):
            raise KeslerError(
                f"ZScores(clip={clip!r}): the largest value must be a finite number above 0"
            )
        object.__setattr__(self, "clip", float(clip))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The largest value."""
        return (self.clip,)


@dataclass(frozen=True)
class Ranges(Preprocessing):
    r"""For distances: each feature from its first value on, in units of its range so far.

    .. math:: x'_i = \frac{x_i - x_{1i}}{\max_{\tau \le t} x_{\tau i}
        - \min_{\tau \le t} x_{\tau i}}

    The last of the t rows is the row itself. A feature that has been constant gives 0, and so does
    every feature of the first row. The intercept's feature stays as it is.

    Over a kernel the rows that were learnt from follow: whenever a range has grown, inner products
    and distances are taken anew in the new units, of `predict` as of the trial that follows.

    Raises
    ------
    KeslerError
        On first use, for sparse rows, and over a kernel that is given whole vectors or has a
        feature map, whose values cannot follow.

    Notes
    -----
    For dense rows only: zeros move too. Which value is subtracted matters to no distance; it costs
    no digits where all values are far from 0. Beyond 1e36 values count as 1e36, and below 1e-36
    ranges count as 0; a value counts as no further than 1,000 ranges beyond its range, so that one
    broken row does not hide all others. The range never shrinks: one broken value hides its feature
    for good, where :class:`ZScores` forget it. 24 bytes a feature; a row costs a division a
    feature and, over a kernel, one that widens a range costs one more pass over the support
    vectors.

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
    n_statistics = 3  # the first value, the least and the greatest


PREPROCESSINGS: dict[str, Callable[[], Preprocessing | None]] = {
    "none": lambda: None,
    "counts": Counts,
    "idf": lambda: Counts(idf=True),
    "z-scores": ZScores,
    "ranges": Ranges,
}
"""The preprocessings by the names that estimators and the command line take."""


def resolve_preprocessing(
    choice: str | Preprocessing | None, *, dense: bool, by_distance: bool = False
) -> Preprocessing | None:
    """Return the preprocessing for a name, or itself; "auto" looks at the kind of the rows.

    "auto" is :class:`Counts` for rows of which only non-zeros are listed (text, counts). For rows
    that list every feature it is :class:`Ranges` where they can be compared anew, `by_distance`,
    and :class:`ZScores` elsewhere.

    Examples
    --------
    >>> resolve_preprocessing("auto", dense=True), resolve_preprocessing("none", dense=True)
    (ZScores(clip=4.0), None)
    """
    if choice is None or isinstance(choice, Preprocessing):
        return choice
    if isinstance(choice, str) and choice == "auto":
        measured = Ranges() if by_distance else ZScores()
        return measured if dense else Counts()
    if isinstance(choice, str) and choice in PREPROCESSINGS:
        return PREPROCESSINGS[choice]()
    raise KeslerError(
        f"preprocessing={choice!r} is not known: choose one of auto, {', '.join(PREPROCESSINGS)}, "
        "None, or an object of kesler.preprocessing"
    )
