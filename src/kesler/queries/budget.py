"""Asking where the doubt is largest, for a given share of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kesler.queries.query import Past, Query, RowEstimates, require_share

# The labels that may be asked for ahead of the share: always, and at first for so many rows more.
AHEAD, ROWS_AHEAD, N_FIRST = 20.0, 200.0, 500.0


def allowance(n_offered: int, share: float) -> float:
    """Return how many labels may be asked for ahead of the share after this many rows.

    Examples
    --------
    >>> [allowance(n, share=0.2) for n in (0, 250, 500, 10_000)]
    [60.0, 40.0, 20.0, 20.0]
    """
    return AHEAD + ROWS_AHEAD * share * max(0.0, 1.0 - n_offered / N_FIRST)


@dataclass(frozen=True)
class LabelBudget(Query):
    r"""Ask for a share of the rows, those about which the doubt is largest.

    With the probabilities p1 and p2 of the two most probable classes and that of a new class,

    .. math:: d = 1 - (p_1 - p_2) (1 - p_{new}), \quad q = \operatorname{rank}(d), \quad
        \text{ask if } q \, a_t \ge \text{asked} - \text{share} \cdot t, \quad
        a_t = 20 + 200 \, \text{share} \max(0, 1 - t / 500)

    after t rows, where q is the share of the last 256 doubts below d, ties broken at random, and
    :math:`a_t` the number of labels that may be asked for ahead.

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

    .. math:: \text{share} \cdot (t - 1) \le \text{asked} \le \text{share} \cdot t + a_t + 1

    so that no more than 21 labels are asked for ahead from row 500 on, and at a share of 20 % no
    more than 61 before. A row is asked for only if what is ahead is at most :math:`q a_t \le a_t`,
    and left out only if it is above 0; at a row that is left out :math:`a_t` falls by less than
    what is ahead. Early labels are worth more, as all later rows profit from them. Doubts are
    ranked, not compared with a fixed threshold, so that the rule needs no scale of doubt. A row
    costs O(k) for k classes.

    The measure was compared with others on 23 sets, `papers/results/few_labels_queries.md`.

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
        object.__setattr__(self, "share", require_share("LabelBudget: share", self.share))

    def doubt(self, estimates: RowEstimates) -> float:
        """Return 1 - (p1 - p2)(1 - p_new), from 0 to 1."""
        return 1.0 - estimates.lead * (1.0 - estimates.new)

    def asks(self, estimates: RowEstimates, past: Past, draw: float) -> bool:
        """Return whether the rank of the doubt is high enough for what has been asked so far."""
        ahead = past.n_asked - self.share * past.n_offered
        rank = self._rank(self.doubt(estimates), past, draw)
        return rank * allowance(past.n_offered, self.share) >= ahead

    def _rank(self, doubt: float, past: Past, draw: float) -> float:
        """Return the share of the last doubts below this one, from 0 to 1; 1 without any."""
        doubts = past.doubts
        if not len(doubts):
            return 1.0
        below = int(np.count_nonzero(doubts < doubt))
        equal = int(np.count_nonzero(doubts == doubt))
        return (below + draw * equal) / len(doubts)
