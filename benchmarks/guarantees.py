"""What fixed share guarantees of an ensemble on any rows, and what its runs made of it.

With N experts, the members and their two pools, a share alpha and T rows of classes seen before,
the log-loss of the ensemble is at most that of any member plus

    ln N - (T - 1) ln(1 - alpha + alpha / N)

since its weights are those of Bayes' rule for a prior in which the best expert stays with
probability 1 - alpha + alpha / N (Herbster and Warmuth 1998). Its mistakes are at most
`mistake_bound_`, which is the least such sum over all sequences of experts, divided by ln 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kesler import OnlineClassifier
from kesler.evaluation.results import ProgressiveResult
from kesler.learner.ensemble import EnsembleLearner

ROUNDING = 1e-6
"""By how much rounding may change a sum of log-losses, relative to it."""


@dataclass(frozen=True)
class Guarantee:
    """A run of an ensemble, its best member, and the most that the bounds allow.

    Parameters
    ----------
    learner, name : str
        The learner and the set.
    order : int
        The number of the order of rows, 0 for that of the set.
    mistakes, mistakes_of_best : int
    most_mistakes : float
        Of the ensemble, as `mistake_bound_` says.
    loss, loss_of_best, most_loss : float
        Sums of log-losses.
    """

    learner: str
    name: str
    order: int
    mistakes: int
    mistakes_of_best: int
    most_mistakes: float
    loss: float
    loss_of_best: float
    most_loss: float

    @property
    def run(self) -> str:
        """What the run is called."""
        return f"{self.learner} on {self.name}" + (f", order {self.order}" if self.order else "")


def guarantee_of(
    learner: str, name: str, order: int, model: OnlineClassifier, result: ProgressiveResult
) -> Guarantee | None:
    """Return what is guaranteed of a run; None unless the model shares weights among experts."""
    ensemble = model._learner
    if not (isinstance(ensemble, EnsembleLearner) and ensemble.shares):
        return None
    of_targets = result.probabilities[:, 1]
    losses = -np.log(of_targets[~np.isnan(of_targets)])
    best, bound = float(ensemble.stored["losses"].min()), ensemble.mistake_bound
    assert bound is not None
    allowed = best + regret(len(losses), len(ensemble.stored["weights"]), ensemble.share)
    return Guarantee(
        learner,
        name,
        order,
        mistakes=result.n_mistakes,
        mistakes_of_best=min(ensemble.mistakes_of_members),
        most_mistakes=bound,
        loss=float(losses.sum()),
        loss_of_best=best,
        most_loss=allowed * (1 + ROUNDING),
    )


def regret(n_rows: int, n_experts: int, share: float) -> float:
    """Return by how much fixed share may exceed the log-loss of the best expert.

    Examples
    --------
    >>> round(regret(1, 4, 0.003), 4), round(regret(1001, 4, 0.003), 4)
    (1.3863, 3.6388)
    """
    stays = 1 - share + share / n_experts
    return math.log(n_experts) - max(0, n_rows - 1) * math.log(stays)
