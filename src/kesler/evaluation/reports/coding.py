"""Scored rows: predictions and targets as numbers of classes, from any evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.evaluation.confidence import RiskCoverage

if TYPE_CHECKING:
    from kesler.evaluation.results import ProgressiveResult

Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows with their predictions, classes by number.

    Parameters
    ----------
    labels : list
        The label of each class.
    predicted, answers : int32 arrays of shape (n_rows,)
        The number of the class predicted, -1 for none, and of the target.
    unseen : bool array of shape (n_rows,)
        Whether the method had not seen the class of the row, so that it could not predict it; such
        rows are no mistakes.
    confidences : float64 array of shape (n_rows,)
        The confidence in each prediction, NaN where there is none.
    of_targets : float64 array of shape (n_rows,)
        The probability of each target, NaN where there is none.
    learns : bool
        Whether the method learnt from each row after its prediction.
    estimates : bool, default False
        Whether confidences take the probability of a new class into account, so that rows of unseen
        classes count as wrong in the error by confidence.
    places : int32 array of shape (n_rows,) or None, default None
        The place of each target among the classes by score, 1 for the highest; any number for rows
        of unseen classes. None if the method scores no classes.
    """

    labels: Sequence[Label]
    predicted: Codes
    answers: Codes
    unseen: Mask
    confidences: Doubles
    of_targets: Doubles
    learns: bool
    estimates: bool = False
    places: Codes | None = None

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def seen(self) -> Mask:
        """The rows of classes that could be predicted."""
        return ~self.unseen

    @property
    def right(self) -> Mask:
        """The rows predicted right."""
        mask: Mask = (self.predicted == self.answers) & ~self.unseen
        return mask

    @property
    def wrong(self) -> Mask:
        """The rows with a mistake."""
        mask: Mask = (self.predicted != self.answers) & ~self.unseen
        return mask

    @property
    def known(self) -> Mask:
        """The rows of classes that could be predicted whose prediction has a confidence."""
        mask: Mask = ~np.isnan(self.confidences) & ~self.unseen
        return mask

    def risk_coverage(self) -> RiskCoverage:
        """Return the error by confidence; raise KeslerError if no row has one."""
        asked = None if self.estimates else self.seen
        return RiskCoverage.of(self.confidences, self.wrong | self.unseen, asked)


def scored_rows(result: ProgressiveResult) -> ScoredRows:
    """Return the trials of a result; raise KeslerError if there are none."""
    if not result.n_trials:
        raise KeslerError(
            "there are no trials to report: validate on rows of which at least one has a weight "
            "above 0"
        )
    labels, predicted, answers = coded(result)
    confidences = np.where(predicted >= 0, result.confidences, np.nan)
    return ScoredRows(
        labels,
        predicted,
        answers,
        _first_seen(result, predicted, answers),
        confidences,
        result.probabilities[:, 1],
        learns=True,
        estimates=result.uncertainty is not None,
        places=result.places,
    )


def coded(result: ProgressiveResult) -> tuple[list[Label], Codes, Codes]:
    """Return the labels of a result, and its predictions and targets as their numbers.

    Labels are numbered in the order of their first rows; those that were only predicted follow.
    """
    codes = dict[Any, int]()
    answers = [codes.setdefault(label, len(codes)) for label in result.targets.tolist()]
    none = result.no_prediction
    said = [
        -1 if label == none else codes.setdefault(label, len(codes))
        for label in result.predictions.tolist()
    ]
    return list(codes), np.array(said, dtype=np.int32), np.array(answers, dtype=np.int32)


def first_seen_in(result: ProgressiveResult) -> Mask:
    """Return a mask of the trials whose class had not been seen before."""
    _, predicted, answers = coded(result)
    return _first_seen(result, predicted, answers)


def _first_seen(result: ProgressiveResult, predicted: Codes, answers: Codes) -> Mask:
    """Return the first rows of the classes that were not known before the run.

    A method that continues knows classes from earlier runs. Of their first rows in this run, those
    predicted wrongly are mistakes, which first rows of new classes are not.
    """
    first = np.zeros(len(answers), dtype=np.bool_)
    first[np.unique(answers, return_index=True)[1]] = True
    if int(first.sum()) == result.n_first_seen:
        return first
    new: Mask = first & ~result.wrong & (predicted != answers)
    return new
