"""Mistake bounds: what a theorem promised of a run, for a competitor found in hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kesler.bounds.competitors import Competitor, competitions
from kesler.bounds.theorems import Competition, Theorem, theorems_of
from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.estimators.members import unfitted
from kesler.estimators.replay import Replay
from kesler.estimators.told import Told
from kesler.progressive import ProgressiveResult
from kesler.progressive.label_results import LabelResult
from kesler.readers import Block


@dataclass(frozen=True, slots=True)
class MistakeBound:
    """A theorem evaluated on a run.

    Attributes
    ----------
    theorem : str
        Which theorem it is.
    bound : float
        The most mistakes that it allows; infinite if it asks for a competitor without loss and
        none was found.
    n_mistakes : int
        The mistakes that were made.
    n_compared : int
        Trials in which there were classes to compare: no bound need be higher.
    loss : float
        L, the sum over these trials of the competitor's largest hinge loss,
        max(0, 1 - (score(r) - score(s))).
    squared_norm : float
        ||u||^2, summed over all of its hypotheses.
    radius : float
        R of the theorem: twice the longest view phi^t(x, r) of a class for Fink's, the longest
        difference phi(x, r) - phi(x, s) over all hypotheses for the others.
    sharing : int
        rho, the most hypotheses that a class belongs to.

    Examples
    --------
    >>> print(MistakeBound("Theorem 1 of Fink et al. (2006)", 47.2, 12, 98, 3.25, 2.5, 3.0, 1))
    12 mistakes, at most 47.2 by Theorem 1 of Fink et al. (2006), whose competitor has a loss \
of 3.25 and a squared norm of 2.5 (R = 3, rho = 1; 98 trials compared classes)
    """

    theorem: str
    bound: float
    n_mistakes: int
    n_compared: int
    loss: float
    squared_norm: float
    radius: float
    sharing: int

    def to_json(self) -> dict[str, Any]:
        """Return the bound as JSON can hold it: None for what is infinite."""
        return {
            "theorem": self.theorem,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "loss": self.loss,
            "squared_norm": self.squared_norm,
            "radius": self.radius,
            "sharing": self.sharing,
        }

    def __str__(self) -> str:
        if not math.isfinite(self.bound):
            return (
                f"{self.n_mistakes:,} mistakes; {self.theorem} asks for a competitor without loss, "
                "and none was found"
            )
        return (
            f"{self.n_mistakes:,} mistakes, at most {self.bound:,.1f} by {self.theorem}, "
            f"whose competitor has a loss of {self.loss:,.4g} and a squared norm of "
            f"{self.squared_norm:,.4g} (R = {self.radius:.4g}, rho = {self.sharing}; "
            f"{self.n_compared:,} trials compared classes)"
        )


def mistake_bound(
    run: ProgressiveResult | LabelResult | OnlineLearner,
    X: Any = None,
    y: Any = None,
    *,
    competitor: Competitor = "hindsight",
) -> MistakeBound:
    r"""Evaluate the theorem of a learner's rule on a run, beside the mistakes that it made.

    For the Perceptron (Fink et al. 2006, Theorem 1), for instance, over any hypotheses and maps,

    .. math:: M \le L + C + \sqrt{L C}, \quad C = \rho R^2 \sum_t \|u^t\|^2, \quad
        L = \sum_i \max_{r \ne y_i} (1 - h_u(x_i, y_i) + h_u(x_i, r))_+

    for every competitor u: the least bound found is given.

    Parameters
    ----------
    run : result of progressive_validate, or estimator
        A run that began with a learner that had learnt nothing. An estimator is not changed: one of
        its settings learns X and y.
    X, y : as in the `partial_fit` of the estimator
        Needed, and allowed, with an estimator only.
    competitor : "hindsight", estimator or list of arrays, default "hindsight"
        Whose weights u are. "hindsight": found by passes of PA-I over the same trials, at several
        aggressivenesses, averaged, each scaled as suits the theorem; u = 0 is among them, for
        which L is the number of trials that compare classes. An estimator of the same hypotheses:
        its weights. A list: an array of shape (n_hypotheses, n_features) for each of the parts;
        classes in the order in which they were met, after the threshold of label sets, groups in
        theirs, and the constant feature of the intercepts before the others.

    Returns
    -------
    MistakeBound

    Raises
    ------
    KeslerError
        If no theorem bounds the rule's mistakes under its link, confusions have costs,
        rows have weights other than 0 and 1, the learner had learnt something before, or the
        competitor has other hypotheses.

    Notes
    -----
    "perceptron": Fink et al. (2006), Theorem 1, or Mesterharm (2001), Section 4.1, where a
    competitor has no loss and it is less. "simperc": Amit et al. (2006), Theorem 1, with the best
    C, on which its predictions do not depend. "conproj", "pa1", "mira": Amit et al. (2006),
    Corollary 1, and Crammer et al. (2006), Theorem 4, made one; see :func:`projected`. The
    Perceptron under the exponential link, WMA or balanced Winnow: Mesterharm (2001), Section 4.2,
    for any alpha and with noise; see :func:`multiplicative`. "pa", "pa2":
    Crammer et al. (2006), Theorems 2 (a competitor without loss) and 5. All of them hold for label
    sets and rankings, of which a mistake is an imperfect prediction. "simproj" has none.

    The search takes 40 passes over the rows at the learner's pace, 2 s for the 20,000 of LETTER,
    and the rows in memory.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006); Amit, Shalev-Shwartz and Singer (2006);
    Mesterharm (2001); Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006).

    Examples
    --------
    >>> from kesler import OnlineClassifier, mistake_bound, progressive_validate
    >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]] * 5, ["a", "b", "b", "a"] * 5
    >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
    >>> found = mistake_bound(result)
    >>> found.n_mistakes, round(found.bound, 2), found.theorem
    (1, 2.0, 'the linear-max Perceptron bound of Mesterharm (2001)')
    """
    if isinstance(run, OnlineLearner):
        if X is None or y is None:
            raise KeslerError("an estimator learns rows of its own: give X and y, or a result")
        learner = unfitted(run)
        replay = Replay(learner, learner._blocks(X, y))
        return _bound(replay, learner, _count_mistakes(replay), competitor)
    if not isinstance(run, (ProgressiveResult, LabelResult)):
        raise KeslerError(
            f"mistake_bound is of what progressive_validate returns, or of an online learner with "
            f"X and y, not of {type(run).__name__}"
        )
    if X is not None or y is not None:
        raise KeslerError("a result knows its rows: give X and y with an estimator only")
    given = run.run
    if given is None or not given.fresh:
        raise KeslerError(
            "the run went on with what its learner knew, and theorems are of learners that begin "
            "with no weights: validate an unfitted one"
        )
    learner = unfitted(given.estimator)
    blocks = learner._blocks(given.X, given.y, given.sample_weight, given.classes)
    return _bound(Replay(learner, blocks), learner, run.n_mistakes, competitor)


def bound_on_blocks(
    learner: OnlineLearner, blocks: Iterable[Block], n_mistakes: int
) -> MistakeBound:
    """Return the bound of a run over blocks of rows of single classes, as readers yield them.

    Parameters
    ----------
    learner : the learner of the run; only its settings are looked at.
    blocks : all rows that it learnt, from its beginning.
    n_mistakes : how many mistakes it made.
    """
    told = ((each.rows, Told.of_classes(each.labels), each.weights) for each in blocks)
    return _bound(Replay(unfitted(learner), told), learner, n_mistakes, "hindsight")


def _bound(
    replay: Replay, learner: OnlineLearner, n_mistakes: int, competitor: Competitor
) -> MistakeBound:
    theorems, C = theorems_of(replay.rule, replay.link), getattr(replay.rule, "C", 1.0)
    return min(
        (
            _least(theorem, competition, C, n_mistakes)
            for competition in competitions(replay, learner, competitor)
            for theorem in theorems
        ),
        key=lambda found: found.bound,
    )


def _least(theorem: Theorem, of: Competition, C: float, n_mistakes: int) -> MistakeBound:
    """Return the least bound that a theorem gives with any of the competitors."""
    bounds = theorem.bound(of, C)
    best = int(np.argmin(bounds))
    return MistakeBound(
        theorem=theorem.name,
        bound=float(bounds[best]),
        n_mistakes=n_mistakes,
        n_compared=of.n_compared,
        loss=float(of.loss[best]),
        squared_norm=float(of.squared_norm[best]),
        radius=theorem.radius(of),
        sharing=of.sharing,
    )


def _count_mistakes(replay: Replay) -> int:
    """Return the mistakes that the learner makes when it goes through the trials."""
    machine = replay.machine(replay.rule, replay.link)
    for _ in replay.learn(machine):
        pass
    return machine.n_mistakes
