"""Which messages are filed without asking: those among whose like few were filed wrongly."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kesler.evaluation.confidence import RiskCoverage, require_share, upper_limits
from kesler.mail.threads import KINDS

__all__ = ["Filing"]

FEWEST, EVERY = 50, 25
"""Messages before the first threshold, and between two."""
CERTAINTY = 0.8
"""How certain it must be that the error of what is filed is below the wished one."""
FEWEST_MISTAKES = 3
"""The mistakes that the wished error must allow among the messages that were sure enough.

Both were chosen on the mail of seven Enron users (`benchmarks/mail.py`): with less, more than the
wished share is filed wrongly where few messages are sure."""
KEPT = 0.97
"""What an earlier message in a folder counts, compared with the next one."""


class Filing:
    r"""Chooses the messages that are filed, so that at most a wished share is filed wrongly.

    How sure a prediction is depends on its confidence :math:`c`, on the share :math:`p` of recent
    predictions of its folder that were right, and on the share :math:`a` of four facts (the thread,
    the people, the series, the sender) whose last folder it is:

    .. math:: \ln\frac{c}{1 - c} + \ln\frac{p}{1 - p} + a.

    A message is filed if that is at least the threshold: the lowest one at which the error of the
    messages so far was below the wished one with certainty 0.8 (by the upper limit of Clopper and
    Pearson), and which so many of them reached that the wished error allows three mistakes. All
    messages count whose folder is known by now, filed or not.

    Parameters
    ----------
    error : float in [0, 1), default 0.02
        The share of the filed messages that may be wrong. Larger values file more, and earlier:
        with 0.02 nothing is filed before 150 messages were sure, with 0 nothing at all. It holds
        for messages like those before; where folders change, more may be wrong.

    Attributes
    ----------
    threshold : float
        The least sureness that is filed, infinite before 50 messages are learnt; it is chosen anew
        after each 25 more.

    Raises
    ------
    KeslerError
        If `error` is no such number.

    Notes
    -----
    The choice of a threshold sorts all messages that were learnt.

    Examples
    --------
    >>> filing = Filing(error=0.1)
    >>> for i in range(200):
    ...     sure = filing.sureness(0.9 if i % 3 else 0.4, "bills", {})
    ...     filing.learn(sure, "bills", right=i % 3 > 0)
    >>> [filing.files(filing.sureness(each, "bills", {})) for each in (0.95, 0.4)]
    [True, False]
    """

    def __init__(self, error: float = 0.02) -> None:
        require_share(error)
        self.error = error
        self._threshold, self._n_seen = math.inf, 0
        self._sureness, self._wrong = list[float](), list[bool]()
        self._counts: dict[str, tuple[float, float]] = {}

    def sureness(self, confidence: float, folder: str, row: Mapping[str, float]) -> float:
        """Return how sure it is that a message belongs to the folder predicted.

        Parameters
        ----------
        confidence : the learner's, from 0 to 1.
        folder : the prediction.
        row : the message, as `row_of` returns it.
        """
        n_right, n = self._counts.get(folder, (0.0, 0.0))
        n_agreeing = sum(f"{kind} in:{folder}" in row for kind in KINDS)
        own = math.log((confidence + 1e-9) / (1 - confidence + 1e-3))
        return own + math.log((n_right + 1) / (n - n_right + 1)) + n_agreeing / len(KINDS)

    @property
    def threshold(self) -> float:
        """The least sureness that is filed."""
        n = len(self._wrong)
        if n >= FEWEST and n >= self._n_seen + EVERY:
            self._threshold, self._n_seen = self._chosen(), n
        return self._threshold

    def files(self, sureness: float) -> bool:
        """Return whether a message is filed."""
        return sureness >= self.threshold

    def learn(self, sureness: float, folder: str, right: bool) -> None:
        """Learn whether a prediction of this sureness was right."""
        n_right, n = self._counts.get(folder, (0.0, 0.0))
        self._counts[folder] = (KEPT * n_right + right, KEPT * n + 1)
        self._sureness.append(sureness)
        self._wrong.append(not right)

    def _chosen(self) -> float:
        curve = RiskCoverage.of(self._sureness, self._wrong)
        limits = upper_limits(curve.n_wrong, curve.n_answered, 1 - CERTAINTY)
        is_known = self.error * curve.n_answered >= FEWEST_MISTAKES
        low = curve.thresholds[is_known & (limits <= self.error)]
        return float(low[-1]) if len(low) else math.inf
