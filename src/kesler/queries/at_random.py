"""Asking at random, whatever the learner says."""

from __future__ import annotations

from dataclasses import dataclass

from kesler.queries.query import Query, RowEstimates, require_share


@dataclass(frozen=True)
class RandomQuery(Query):
    r"""Ask for each row with the same probability, :math:`P(\text{ask}) = \text{share}`.

    Parameters
    ----------
    share : float above 0, at most 1, default 0.2
        With larger values more labels are asked for.
    seed : int, 0 or more, default 0
        The seed of the random draws.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    The baseline of the other rules: what is learnt is a random sample of the stream, so that
    estimates of uncertainty are those of all rows. A row costs O(1).

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> from kesler.queries import RandomQuery
    >>> rows, labels = [[0.0], [1.0]] * 50, ["low", "high"] * 50
    >>> result = progressive_validate(
    ...     OnlineClassifier("multi", update="pa1"), rows, labels, label_budget=RandomQuery(0.1)
    ... )
    >>> 5 < result.n_asked < 20
    True
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", require_share("RandomQuery: share", self.share))

    def probability(self, estimates: RowEstimates) -> float:
        """Return the share."""
        return self.share
