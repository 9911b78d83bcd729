"""Run: what a record of progressive validation was made of, so that more can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kesler.estimators.base import OnlineLearner
from kesler.estimators.members import unfitted


@dataclass(frozen=True, slots=True)
class Run:
    """The arguments of a run: references, not copies.

    Parameters
    ----------
    estimator : OnlineLearner
        Unfitted, of the settings of the one that learnt.
    X, y, sample_weight, classes : as they were given.
    fresh : bool
        Whether the learner had learnt nothing before.
    """

    estimator: OnlineLearner
    X: Any
    y: Any
    sample_weight: Any
    classes: Any
    fresh: bool

    @staticmethod
    def of(estimator: OnlineLearner, X: Any, y: Any, sample_weight: Any, classes: Any) -> Run:
        """Return the run that is about to begin."""
        fresh = not estimator.__sklearn_is_fitted__()
        return Run(unfitted(estimator), X, y, sample_weight, classes, fresh)
