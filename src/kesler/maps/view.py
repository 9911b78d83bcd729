"""The base class of views of an instance, and the view that is part of the example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class View:
    """The view that one class has of an example, phi(x, r).

    Attributes
    ----------
    zero_at_zero : whether a feature with value 0 has no effect, so that zeros of sparse rows may be
        omitted.
    """

    zero_at_zero: ClassVar[bool]

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of the view, at most four numbers."""
        return ()


@dataclass(frozen=True)
class SubExperts(View):
    r"""The ratings that sub-experts give a class, which are part of the example.

    .. math:: \phi(x, r) = (x_1^r, \dots, x_n^r), \quad
        h(x, r) = \langle w, \phi(x, r) \rangle = \sum_i w_i x_i^r

    with :math:`x_i^r` the rating that sub-expert i gives class r: see :class:`kesler.Ratings`.
    With :class:`~kesler.hypotheses.Shared`, there is one weight per sub-expert: the learner learns
    which sub-experts to trust. With :class:`~kesler.hypotheses.PerClass`, there is one per
    sub-expert and class: it learns which to trust for each class.

    Notes
    -----
    A class without ratings in an example has rating 0 from every sub-expert. New sub-experts may
    appear at any time, with the initial weight; ratings of classes that have not been seen are
    ignored, so that these are never predicted.

    Costs O(ratings) per row.

    References
    ----------
    Mesterharm (2001), Sections 2, 5.3, 6.1 and 6.2.

    Examples
    --------
    Sub-experts that are wrong lose weight: the second always contradicts the first.

    >>> from kesler import OnlineClassifier
    >>> council = OnlineClassifier("sub-experts", update="perceptron")
    >>> for label, other in [("spam", "work"), ("work", "spam"), ("work", "spam")]:
    ...     council = council.learn_one({label: [1, 0], other: [0, 1]}, label)
    >>> council.predict_one({"spam": [0, 1], "work": [1, 0]}), council.n_mistakes_
    ('work', 1)
    """

    zero_at_zero: ClassVar[bool] = True
