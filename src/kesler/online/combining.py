"""Combining: the learner of an ensemble, and what an ensemble takes."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from kesler.errors import KeslerError
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.learner import Learner
from kesler.online.columns import OF_ESTIMATOR
from kesler.online.contract import Estimator, unfitted


def ensemble_of(
    learners: Sequence[Estimator],
    *,
    dense: bool,
    **combination: Any,
) -> EnsembleLearner:
    """Return the learner of an ensemble; its members are unfitted copies of `learners`."""
    inner = [unfitted(learner)._new_learner(dense=dense) for learner in learners]
    members = [each for each in inner if isinstance(each, Learner)]
    estimators = [type(learner).__name__ for learner in learners]
    return EnsembleLearner(members, estimators, **combination)


def require_only(learner: Estimator, name: str) -> None:
    """Raise if parameters are set that an ensemble does not use."""
    given = learner.get_params(deep=False)
    for other, parameter in signature(type(learner)).parameters.items():
        if other not in (name, *OF_ESTIMATOR) and given[other] != parameter.default:
            raise KeslerError(
                f"{other}={given[other]!r} has no effect on an ensemble, whose learners have their "
                f"own settings: omit it, or set it for the learners in {name}=[...]"
            )
