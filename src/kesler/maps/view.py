"""The base class of views of an instance, and the view that is part of the example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kesler.errors import KeslerError

Unseen = Callable[[Any, Any, Any], Any]
"""unseen(label, ratings, weights): the ratings of a class that has not been seen."""


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

    Parameters
    ----------
    unseen : function or None, default None
        With ``on_new_class="unseen"``, the ratings of a class that has not been seen yet, for the
        step of its first row: ``unseen(label, ratings, weights)``, of the label that turns out
        right, the float64 ratings of the known classes in the row, of shape (classes, sub-experts),
        in the order of their first rows, and the weights of the sub-experts, returns one number for
        all sub-experts or one for each. Kinds of unseen classes are told apart by the label. None
        is one number that loses every vote, see :class:`~kesler.LinearMax`.

    Raises
    ------
    KeslerError
        If `unseen` is no function; while learning, if it raises an error or returns something else.
        The rows before are then learnt.

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

    unseen: Unseen | None = None

    zero_at_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unseen is not None and not callable(self.unseen):
            raise KeslerError(
                f"SubExperts(unseen={self.unseen!r}): give a function of the label, the ratings "
                "and the weights, or None"
            )

    def __repr__(self) -> str:
        return "SubExperts()" if self.unseen is None else f"SubExperts(unseen={self.unseen!r})"
