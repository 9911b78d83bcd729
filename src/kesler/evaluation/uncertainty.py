"""The estimates of uncertainty for each row of a run, before its target was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.online.training import Trials
from kesler.state.uncertainty import BY_CLASS, CONFIDENCE, COVERAGES, COVERED, NEW, PREDICTED, SIZE

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UncertaintyTrace:
    """The probabilities of new classes, confidences and prediction sets of a run.

    Attributes
    ----------
    table : float64 array of shape (n_trials, n_traced)
        The estimates for each row, as compiled code writes them; NaN where there are none. Of label
        sets only prediction sets are traced, and of ranks none by class.

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> rows, y = [{"cash": 1}, {"team": 1}] * 100, ["spam", "work"] * 100
    >>> trace = progressive_validate(OnlineClassifier(), rows, y).uncertainty
    >>> trace.new[:2].round(1).tolist(), bool(trace.new[-1] < 0.02)
    ([1.0, 0.7], True)
    >>> trace.sizes(0.99).max().item()
    3.0
    """

    table: Doubles

    @property
    def new(self) -> Doubles:
        """The probability that the class of each row was new."""
        return self.table[:, NEW]

    @property
    def confidence(self) -> Doubles:
        """The probability that each prediction was right; 0 where there was none."""
        return self.table[:, CONFIDENCE]

    @property
    def predicted(self) -> Doubles:
        """The probability of each predicted class among the known ones; 0 where there was none."""
        return self.table[:, PREDICTED]

    def covered(self, coverage: float = 0.9, *, by_class: bool = False) -> npt.NDArray[np.bool_]:
        """Return whether each prediction set contained the target.

        Parameters
        ----------
        coverage : 0.8, 0.9, 0.95 or 0.99, default 0.9
        by_class : bool, default False
            Whether sets have a threshold for each class.
        """
        return self.table[:, _column(COVERED, coverage, by_class=by_class)] > 0

    def sizes(self, coverage: float = 0.9, *, by_class: bool = False) -> Doubles:
        """Return the number of classes in each prediction set; parameters as for `covered`."""
        return self.table[:, _column(SIZE, coverage, by_class=by_class)]


def trace_of(trials: Trials) -> UncertaintyTrace | None:
    """Return the estimates of trials; None if uncertainty was not estimated."""
    return UncertaintyTrace(trials.traces) if len(trials.traces) else None


def _column(first: int, coverage: float, *, by_class: bool) -> int:
    """Return the column of a trace for a tracked coverage."""
    if coverage not in COVERAGES:
        tracked = ", ".join(map(str, COVERAGES))
        raise KeslerError(f"coverage={coverage!r} was not tracked during the run: choose {tracked}")
    return first + COVERAGES.index(coverage) + (BY_CLASS if by_class else 0)
