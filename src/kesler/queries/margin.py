"""Asking by the margin of the scores, with a bound on the expected number of mistakes."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_number
from kesler.queries.query import Query, RowEstimates


@dataclass(frozen=True)
class MarginQuery(Query):
    r"""Ask with a probability that falls with the margin of the scores.

    .. math:: P(\text{ask}) = \frac{b}{b + m}, \quad m = \max_r h(x, r) - \max_{s \ne \hat y}
        h(x, s)

    Parameters
    ----------
    b : float above 0, default 1.0
        With larger values more labels are asked for. Its unit is that of the scores: half the
        squared length of a difference of two rows is a good start.
    seed : int, 0 or more, default 0
        The seed of the random draws.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    With the Perceptron, the expected number of mistakes on rows of known classes is at most

    .. math:: \left(1 + \frac{R^2}{2b}\right) L + \frac{(2b + R^2)^2}{8b} \|u\|^2

    for every u, with its hinge losses L as in :func:`~kesler.mistake_bound`, which evaluates it,
    and R the largest length of :math:`z = \phi(x, y) - \phi(x, s)`. Proof: the update of a mistake
    moves the squared distance to cu, c > 0, by
    :math:`\tfrac12 \|cu - w\|^2 - \tfrac12 \|cu - w - z\|^2 = \langle cu - w, z \rangle
    - \tfrac12 \|z\|^2 \ge c (1 - \ell) + m - R^2/2`, since the predicted class outscores y by at
    least the margin m. Over all updates this is at most :math:`c^2 \|u\|^2 / 2`; with
    :math:`c = b + R^2/2` a mistaken row that was asked for contributes b + m, and is asked for with
    probability b / (b + m), so that it contributes b in expectation. With two classes and z = 2yx
    this is the theorem of the source. A row costs O(k) for k classes.

    References
    ----------
    Cesa-Bianchi, Gentile and Zaniboni (2006), "Worst-case analysis of selective sampling for linear
    classification", Theorem 1.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.queries import MarginQuery
    >>> model = OnlineClassifier("multi", update="perceptron", label_budget=MarginQuery(0.5))
    >>> for x, y in [([1, 0], "a"), ([0, 1], "b"), ([1, 0], "a"), ([0, 1], "b")] * 5:
    ...     if model.query_one(x):
    ...         model = model.learn_one(x, y)
    >>> model.n_offered_ > model.n_asked_
    True
    """

    b: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_number(self, "b", above=0)

    def probability(self, estimates: RowEstimates) -> float:
        """Return b / (b + margin)."""
        return self.b / (self.b + estimates.margin)
