"""Asking where the doubt is largest, for a given share of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kesler.parts.queries.query import Past, Query, Said, require_share

RATE = 0.05
"""How much one label more raises the rank from which rows are asked for."""


@dataclass(frozen=True)
class LabelBudget(Query):
    r"""Ask for a share of the rows, those about which the doubt is largest.

    With the probabilities p1 and p2 of the two most probable classes and that of a new class,

    .. math:: d = 1 - (p_1 - p_2) (1 - p_{new}), \quad q = \operatorname{rank}(d), \quad
        \text{ask if } q \ge \eta (\text{asked} - \text{share} \cdot \text{offered})

    where q is the share of the last 256 doubts below d, ties broken at random, and eta = .05.

    Parameters
    ----------
    share : float above 0, at most 1, default 0.2
        The share of rows whose label is asked for.
    seed : int, 0 or more, default 0
        The seed of the random draws that break ties.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Of the first t rows offered, for every t and any stream,

    .. math:: \text{share} \cdot (t - 1) \le \text{asked} \le \text{share} \cdot t
        + 1/\eta + 1 - \text{share}

    so that the first rows, of which the learner knows little, may take up to 20 labels beforehand.
    A row is asked for only if the right-hand side of the rule is at most q, which is at most 1, and
    left out only if it is above q, which is at least 0. Doubts are ranked, not compared with a
    fixed threshold, so that the rule needs no scale of doubt. A row costs O(k) for k classes.

    The measure was chosen among six, on 23 streams (`papers/results/few_labels_queries.md`).

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier(label_budget=0.2)  # stands for LabelBudget(0.2)
    >>> for x, y in [({"cash": 1}, "spam"), ({"lunch": 1}, "work")] * 100:
    ...     if model.query_one(x):
    ...         model = model.learn_one(x, y)
    >>> model.n_offered_, 40 <= model.n_asked_ <= 61
    (199, True)
    """

    share: float = 0.2

    ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", require_share("label budget: share", self.share))

    def doubt(self, said: Said) -> float:
        """Return 1 - (p1 - p2)(1 - p_new), from 0 to 1."""
        return 1.0 - said.lead * (1.0 - said.new)

    def asks(self, said: Said, past: Past, draw: float) -> bool:
        """Return whether the rank of the doubt is high enough for what has been asked so far."""
        ahead = RATE * (past.n_asked - self.share * past.n_offered)
        return self._rank(self.doubt(said), past, draw) >= ahead

    def _rank(self, doubt: float, past: Past, draw: float) -> float:
        """Return the share of the last doubts below this one, from 0 to 1; 1 without any."""
        doubts = past.doubts
        if not len(doubts):
            return 1.0
        below = int(np.count_nonzero(doubts < doubt))
        equal = int(np.count_nonzero(doubts == doubt))
        return (below + draw * equal) / len(doubts)
