"""What a view of an instance is, and the one that is given with the example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kesler.parts.description import describe


@dataclass(frozen=True)
class View:
    """What one class sees of an example, phi(x, r).

    Attributes
    ----------
    zero_at_zero : whether a feature of value 0 counts for nothing, so that zeros of sparse rows may
        be left out.
    """

    zero_at_zero: ClassVar[bool]

    @property
    def parameters(self) -> tuple[float, ...]:
        """At most four numbers that the view depends on."""
        return ()

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)


@dataclass(frozen=True)
class SubExperts(View):
    r"""What sub-experts say of a class, as the example tells.

    .. math:: \phi(x, r) = (x_1^r, \dots, x_n^r), \quad
        h(x, r) = \langle w, \phi(x, r) \rangle = \sum_i w_i x_i^r

    with :math:`x_i^r` the rating that sub-expert i gives class r: see :class:`kesler.Ratings`.
    Under :class:`~kesler.hypotheses.Shared`, there is one weight a sub-expert, and the learner
    finds out whom to trust. Under :class:`~kesler.hypotheses.PerClass`, one a sub-expert and class:
    whom to trust in what.

    Notes
    -----
    A class that an example does not rate has the rating 0 by all. Sub-experts may appear at any
    time, each with the weight that all began with; ratings of classes that have not been seen count
    for nothing, so these are never predicted.

    Costs O(ratings) a row.

    References
    ----------
    Mesterharm (2001), Sections 2, 5.3, 6.1 and 6.2.

    Examples
    --------
    Whoever is wrong loses weight: the second sub-expert always says the opposite of the first.

    >>> from kesler import OnlineClassifier
    >>> council = OnlineClassifier("sub-experts", update="perceptron")
    >>> for label, other in [("spam", "work"), ("work", "spam"), ("work", "spam")]:
    ...     council = council.learn_one({label: [1, 0], other: [0, 1]}, label)
    >>> council.predict_one({"spam": [0, 1], "work": [1, 0]}), council.n_mistakes_
    ('work', 1)
    """

    zero_at_zero: ClassVar[bool] = True
