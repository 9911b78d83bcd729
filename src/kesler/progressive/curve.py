"""The curve: mistakes so far against trials, thinned so that a run of any length fits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_POINTS = 2000


class Curve:
    """Mistakes so far, kept after every s-th trial and the last one.

    s is the smallest power of two that leaves at most 2,000 points: 1 for a short run, 16 for
    20,000 trials, so that memory does not grow with the run.

    Attributes
    ----------
    n_trials, n_mistakes : int
        Trials and mistakes so far.

    Examples
    --------
    >>> curve = Curve()
    >>> curve.extend(np.array([False, True, True]))
    >>> curve.trials.tolist(), curve.mistakes.tolist()
    ([1, 2, 3], [0, 1, 2])
    """

    def __init__(self) -> None:
        self.n_trials = 0
        self.n_mistakes = 0
        self._stride = 1
        self._kept: list[int] = []

    def extend(self, wrong: npt.NDArray[np.bool_]) -> None:
        """Append trials, given which of them were mistakes."""
        sums = self.n_mistakes + np.cumsum(wrong, dtype=np.int64)
        to_next = -(self.n_trials + 1) % self._stride
        self._kept.extend(sums[to_next :: self._stride].tolist())
        self.n_trials += len(wrong)
        self.n_mistakes += int(np.count_nonzero(wrong))
        while len(self._kept) > MAX_POINTS:
            self._kept = self._kept[1::2]
            self._stride *= 2

    @property
    def trials(self) -> npt.NDArray[np.int64]:
        """The trials of the points, counted from 1."""
        kept = self._stride * np.arange(1, len(self._kept) + 1, dtype=np.int64)
        return np.append(kept, self.n_trials) if self._ends_between else kept

    @property
    def mistakes(self) -> npt.NDArray[np.int64]:
        """Mistakes so far at each point."""
        kept = np.array(self._kept, dtype=np.int64)
        return np.append(kept, self.n_mistakes) if self._ends_between else kept

    @property
    def _ends_between(self) -> bool:
        return self.n_trials % self._stride != 0
