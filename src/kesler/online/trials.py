"""The results of a run of trials."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.learner.events import NO_PROBABILITIES
from kesler.learner.targets import Kind
from kesler.learner.uncertainty import NO_TRACES

_SORTED = (
    "the rows are sorted by class, and a learner of streams then predicts the last classes far too "
    "often: shuffle rows and labels before fit, for example with sklearn.utils.shuffle(X, y)"
)


@dataclass(frozen=True, slots=True)
class Trials:
    """The results of a run of trials, classes by number.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,)
        The class of highest score before the target was used, -1 if no class was known.
    codes : int32 array
        The classes named by the targets, one row after the other.
    scores : float32 array of shape (n_rows, n_classes) or (0, 0)
        The score of each class before the target was used, NaN for classes not known by then;
        filled only with ``keep_scores=True``.
    probabilities : float64 array of shape (n_rows, 2) or (0, 2)
        The probabilities of the predicted class and of the target, before the target was used;
        NaN where that class was not known; filled only with ``keep_probabilities=True``.
    traces : float64 array of shape (n_rows, n_traced) or (0, 0)
        What was said of the uncertainty of each row before the target was used; see
        :mod:`kesler.compiled.trial.uncertainty`. Filled only with ``keep_traces=True`` and if
        uncertainty is estimated.
    """

    predictions: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float64]
    traces: npt.NDArray[np.float64]

    def warn_if_sorted(self, answer: Kind) -> None:
        """Warn if each of several classes comes in one run, with 20 rows of a class on average."""
        if answer not in ("class", "rank"):
            return
        n_classes = len(np.unique(self.codes))
        n_runs = 1 + np.count_nonzero(np.diff(self.codes))
        if 1 < n_classes == n_runs and len(self.codes) >= 20 * n_classes:
            warnings.warn(_SORTED, stacklevel=4)  # of the caller of a public method

    @staticmethod
    def concatenate(pieces: list[Trials], n_classes: int) -> Trials:
        """Concatenate runs of trials; the scores are padded with NaN to `n_classes` columns."""
        if len(pieces) == 1 and pieces[0].scores.shape[1] in (0, n_classes):
            return pieces[0]
        none = np.empty(0, dtype=np.int32)
        capacities = [(0, n_classes - each.scores.shape[1]) for each in pieces]
        scores = [
            np.pad(each.scores, ((0, 0), capacity), constant_values=np.nan)
            for each, capacity in zip(pieces, capacities, strict=True)
        ]
        return Trials(
            np.concatenate([none, *(each.predictions for each in pieces)]),
            np.concatenate([none, *(each.codes for each in pieces)]),
            np.concatenate([np.empty((0, n_classes), dtype=np.float32), *scores]),
            np.concatenate([NO_PROBABILITIES, *(each.probabilities for each in pieces)]),
            np.concatenate([each.traces for each in pieces]) if pieces else NO_TRACES,
        )
