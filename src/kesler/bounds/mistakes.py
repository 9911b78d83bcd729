"""Mistake bounds: theorems evaluated on a run, for a competitor found in hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.evaluation.competitors import (
    Competition,
    Competitor,
    Theorem,
    competitions,
    theorems_of,
)
from kesler.evaluation.replay import Replay
from kesler.evaluation.results import LabelResult, ProgressiveResult
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.targets import Targets
from kesler.online.base import OnlineLearner
from kesler.online.contract import unfitted
from kesler.online.defaults import has_trees
from kesler.queries import resolve_query
from kesler.readers.stream import Block

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RatingsBound:
    """The bounds of linear-max learners on ratings, for one competitor.

    Attributes
    ----------
    delta : float
        The smallest margin of the competitor, score(right class) - score(another), over all trials.
    perceptron : float
        s^2 ||u||^2 / delta^2, where s is the largest norm of a difference of ratings of two classes
        compared in a trial; infinite unless delta > 0.
    weighted_majority : float
        2 ln n / delta^2, for u scaled to sum to 1 and alpha^2 = (1 + delta) / (1 - delta);
        infinite unless delta > 0, no weight is negative and ratings differ by at most 1.
    weights : float64 array of shape (n_subexperts,)
        The competitor u, which sums to 1 if it was found in hindsight.
    """

    delta: float
    perceptron: float
    weighted_majority: float
    weights: Array


def weighted_majority_bound(n: int, delta: float) -> float:
    r"""Return the mistake bound of WMA with the optimal step size for a margin.

    .. math:: M \le \frac{2 \ln n}{\delta^2}, \quad \alpha^2 = \frac{1 + \delta}{1 - \delta}

    Parameters
    ----------
    n : int > 0
        Number of sub-experts, with ratings in [0, 1], or of attributes.
    delta : float
        The smallest margin of weights u >= 0 that sum to 1; the bound is infinite unless it is
        above 0.

    References
    ----------
    Littlestone (1989); Mesterharm (2001), Section 4.2.

    Examples
    --------
    >>> round(weighted_majority_bound(100, 0.5), 2)
    36.84
    """
    return 2 * math.log(n) / delta**2 if delta > 0 else math.inf


def ratings_bound(
    ratings: npt.ArrayLike, y: npt.ArrayLike, competitor: npt.ArrayLike | None = None
) -> RatingsBound:
    r"""Evaluate the bounds of the linear-max Perceptron and of WMA on a stream of ratings.

    .. math:: \delta = \min_t \min_{j \ne y_t} \sum_i u_i (x_{t,i}^{y_t} - x_{t,i}^j)

    Parameters
    ----------
    ratings : array of shape (n_trials, n_classes, n_subexperts)
        The rating of each class by each sub-expert; in [0, 1] for WMA.
    y : int array of shape (n_trials,)
        The right class of each trial.
    competitor : array of shape (n_subexperts,) or None, default None
        The weights u. None computes the non-negative weights of sum 1 with the largest delta by
        linear programming, whose memory grows with trials times classes times sub-experts.

    Raises
    ------
    KeslerError
        If shapes do not match, or a number is not finite.

    References
    ----------
    Mesterharm (2001), Sections 4.1 and 4.2.

    Examples
    --------
    >>> ratings = [[[1, 0, 1], [0, 1, 1]], [[0, 1, 0], [1, 1, 1]]]
    >>> found = ratings_bound(ratings, [0, 1])
    >>> found.delta, found.weights.tolist(), round(found.weighted_majority, 2)
    (1.0, [1.0, 0.0, 0.0], 2.2)
    """
    differences = _differences(np.asarray(ratings, dtype=np.float64), np.asarray(y))
    n = differences.shape[1]
    u = _widest(differences) if competitor is None else np.asarray(competitor, dtype=np.float64)
    if u.shape != (n,) or not np.isfinite(u).all():
        raise KeslerError(f"the competitor must hold {n} finite weights, one for each sub-expert")
    delta = float((differences @ u).min())
    square = float((differences**2).sum(axis=1).max() * (u @ u))
    total = float(u.sum())
    is_mean = (u >= 0).all() and total > 0 and abs(differences).max() <= 1
    return RatingsBound(
        delta=delta,
        perceptron=square / delta**2 if delta > 0 else math.inf,
        weighted_majority=weighted_majority_bound(n, delta / total) if is_mean else math.inf,
        weights=u,
    )


def _differences(ratings: Array, y: npt.NDArray[np.int64]) -> Array:
    """Return x^y - x^j for every trial and j != y, (n_pairs, n_subexperts)."""
    if ratings.ndim != 3 or y.shape != ratings.shape[:1] or not np.isfinite(ratings).all():
        raise KeslerError(
            f"ratings have shape {ratings.shape} and y {y.shape}: give finite ratings of shape "
            "(n_trials, n_classes, n_subexperts) and one right class for each trial"
        )
    k = ratings.shape[1]
    if k < 2 or not len(y) or y.min() < 0 or y.max() >= k:
        raise KeslerError(
            f"y must name one of the classes 0 to {k - 1} in each trial, 2 or more of them"
        )
    others = np.arange(k) != y[:, None]
    all_differences = ratings[np.arange(len(y)), y][:, None] - ratings
    found: Array = all_differences[others]
    return found


def _widest(differences: Array) -> Array:
    """Return u >= 0 of sum 1 that maximises delta subject to differences @ u >= delta."""
    n_pairs, n = differences.shape
    from scipy.optimize import linprog

    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-differences, np.ones(n_pairs)]),
        b_ub=np.zeros(n_pairs),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
    )
    u = np.maximum(np.array(found.x)[:n], 0.0)
    widest: Array = u / u.sum()
    return widest


@dataclass(frozen=True, slots=True)
class MistakeBound:
    """A theorem evaluated on a run.

    Attributes
    ----------
    theorem : str
        Name of the theorem.
    bound : float
        Upper bound on the number of mistakes; infinite if the theorem needs a competitor without
        loss and none was found.
    n_mistakes : int
        Number of mistakes made.
    n_compared : int
        Number of trials that compare classes, which is a trivial bound.
    loss : float
        L, the sum over these trials of the competitor's largest hinge loss,
        max(0, 1 - (score(r) - score(s))).
    squared_norm : float
        ||u||^2, summed over all hypotheses of the competitor.
    radius : float
        R of the theorem: for Fink et al. twice the largest norm of phi^t(x, r), for the others the
        largest norm of phi(x, r) - phi(x, s) over all hypotheses.
    sharing : int
        rho, the largest number of hypotheses that contain a class.

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

    @property
    def is_vacuous(self) -> bool:
        """Whether the bound is not below the number of trials, so that it says nothing."""
        return self.bound >= self.n_compared

    def to_json(self) -> dict[str, Any]:
        """Return the bound as a JSON object, with None for infinity."""
        return {
            "theorem": self.theorem,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "is_vacuous": self.is_vacuous,
            "loss": self.loss,
            "squared_norm": self.squared_norm,
            "radius": self.radius,
            "sharing": self.sharing,
        }

    def __str__(self) -> str:
        if not math.isfinite(self.bound):
            return (
                f"{self.n_mistakes:,} mistakes; {self.theorem} needs a competitor without loss, "
                "and none was found"
            )
        vacuous = ": no fewer than there are trials, so the bound is vacuous"
        return (
            f"{self.n_mistakes:,} mistakes, at most {self.bound:,.1f} by {self.theorem}, "
            f"whose competitor has a loss of {self.loss:,.4g} and a squared norm of "
            f"{self.squared_norm:,.4g} (R = {self.radius:.4g}, rho = {self.sharing}; "
            f"{self.n_compared:,} trials compared classes){vacuous if self.is_vacuous else ''}"
        )


def mistake_bound(
    run: ProgressiveResult | LabelResult | OnlineLearner,
    X: Any = None,
    y: Any = None,
    *,
    competitor: Competitor = "hindsight",
) -> MistakeBound:
    r"""Evaluate the mistake bound of a learner's update rule on a run.

    For example, for the Perceptron with any hypotheses and maps (Fink et al. 2006, Theorem 1),

    .. math:: M \le L + C + \sqrt{L C}, \quad C = \rho R^2 \sum_t \|u^t\|^2, \quad
        L = \sum_i \max_{r \ne y_i} (1 - h_u(x_i, y_i) + h_u(x_i, r))_+

    for every competitor u. The smallest bound found is returned.

    Parameters
    ----------
    run : result of progressive_validate, or estimator
        A run that started with an unfitted learner. An estimator is not changed: an unfitted copy
        learns X and y.
    X, y : as in the `partial_fit` of the estimator
        Required if `run` is an estimator, else not allowed.
    competitor : "hindsight", estimator or list of arrays, default "hindsight"
        The weights u. "hindsight" tries averaged weights of passes of PA-I over the same trials for
        several C, each at the best scale for the theorem, and u = 0, for which L is the number of
        trials that compare classes. An estimator with the same hypotheses provides its weights. A
        list holds an array of shape (n_hypotheses, n_features) for each part: classes in the order
        in which they were seen, after the threshold of label sets; groups in the order in which
        they were seen; the constant feature of the intercepts before the other features.

    Returns
    -------
    MistakeBound

    Raises
    ------
    KeslerError
        If no theorem bounds the mistakes of the rule under its link, confusions have costs, rows
        have weights other than 0 and 1, the learner was fitted before the run, or the competitor
        has other hypotheses.

    Notes
    -----
    "perceptron": Fink et al. (2006), Theorem 1, or Mesterharm (2001), Section 4.1, if a competitor
    has no loss and this bound is smaller. "simperc": Amit et al. (2006), Theorem 1, with the best
    C, since its predictions do not depend on C. "conproj", "pa1", "mira": Amit et al. (2006),
    Corollary 1, combined with Crammer et al. (2006), Theorem 4; see :func:`projected`. The
    Perceptron under the exponential link, which is WMA or balanced Winnow: Mesterharm (2001),
    Section 4.2, for any alpha and with noise; see :func:`multiplicative`. "pa", "pa2": Crammer et
    al. (2006), Theorems 2 (a competitor without loss) and 5. All of them hold for label sets and
    rankings, where a mistake is an imperfect prediction. "simproj" has no bound. With a label
    budget, the Perceptron with :class:`~kesler.queries.MarginQuery`: Cesa-Bianchi, Gentile and
    Zaniboni (2006), Theorem 1, on the expected mistakes on rows whose class the learner knows.

    Over a Mercer kernel with fixed parameters, for one hypothesis per class: "perceptron" without a
    budget, or within a :class:`~kesler.budgets.Budget` of the policies "forgetron" and
    "projectron", and :class:`~kesler.updates.MarginPerceptron` within "projectron++":

    .. math:: M \le L + D + \|u\| \left( \Delta + \sqrt{(1 + \Sigma) S} \right)

    with sums of the run: S of squared norms of updates, :math:`\Delta` of norms of projection
    errors, D of the coefficients removed (less those gained from right predictions),
    :math:`\Sigma` of :math:`(1 - \phi_t) / (1 + \phi_t)`. The Forgetron also has the bound
    :math:`2 R^2 \|u\|^2 + 4 L` of Dekel et al. (2008) for budgets B of 83 or more, kernels of
    constant K(x, x) and :math:`R \|u\| \le \sqrt{(B + 1) / \ln(B + 1)} / 4`. Competitors are
    two passes of PA-I without a budget.

    "banditron" and "soba" of :class:`~kesler.BanditClassifier`: Kakade et al. (2008), Theorem 1,
    and Beygelzimer et al. (2017), Theorem 1, on the expected number of mistakes; competitors are
    found in hindsight.

    The search takes 40 passes over the rows at the speed of the learner, 2 s for the 20,000 rows of
    LETTER, and stores the rows in memory.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006); Amit, Shalev-Shwartz and Singer (2006);
    Mesterharm (2001); Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006); Dekel,
    Shalev-Shwartz and Singer (2008); Orabona, Keshet and Caputo (2009).

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
        _require_no_budget(run)
        if X is None or y is None:
            raise KeslerError(
                "an estimator needs rows to learn: give X and y, or the result of a run"
            )
        learner = unfitted(run)
        if learner.explores:
            return _bandit_bound(learner, learner._blocks(X, y))
        return _bound(learner, learner._blocks(X, y), None, competitor)
    if not isinstance(run, (ProgressiveResult, LabelResult)):
        raise KeslerError(
            f"mistake_bound needs a result of progressive_validate, or an online learner with X "
            f"and y, not {type(run).__name__}"
        )
    if X is not None or y is not None:
        raise KeslerError("a result contains its rows: give X and y with an estimator only")
    given = run.run
    if given is None or not given.fresh:
        raise KeslerError(
            "the learner was fitted before the run, but theorems need learners that start with "
            "zero weights: validate an unfitted one"
        )
    learner = unfitted(given.estimator)
    blocks = learner._blocks(given.X, given.y, given.sample_weight, given.classes)
    if learner.explores:
        return _bandit_bound(learner, blocks)
    # The theorem on asking is about rows whose class the learner knows.
    n_mistakes = getattr(run, "n_mistakes_of_known", run.n_mistakes)
    return _bound(learner, blocks, n_mistakes, competitor)


def _bandit_bound(learner: Any, blocks: Any) -> MistakeBound:
    """Return the bound of a learner under bandit feedback, which repeats its run."""
    from kesler.bounds.bandits import best_bound, run_of

    run = run_of(learner, blocks)
    theorem, found = best_bound(run)
    mistakes = run.learner.n_mistakes, run.n_rows
    return MistakeBound(
        theorem, found.bound, *mistakes, found.loss, found.squared_norm, run.radius, sharing=1
    )


def _require_no_budget(learner: OnlineLearner) -> None:
    """Raise if an estimator asks for labels, as it would learn all rows here."""
    if learner.label_budget is not None:
        raise KeslerError(
            "an estimator with a label budget learns the rows that it asks for: give the result of "
            "progressive_validate"
        )


def bound_on_blocks(
    learner: OnlineLearner, blocks: Iterable[Block], n_mistakes: int
) -> MistakeBound:
    """Return the bound of a run over blocks of single-label rows, as readers yield them.

    Parameters
    ----------
    learner : the learner of the run; only its parameters are used.
    blocks : all rows that it learnt, from the first.
    n_mistakes : the number of its mistakes.
    """
    targets = ((each.rows, Targets.of_classes(each.labels), each.weights) for each in blocks)
    return _bound(unfitted(learner), targets, n_mistakes, "hindsight")


def _bound(
    learner: OnlineLearner,
    blocks: Iterable[Any],
    n_mistakes: int | None,
    competitor: Competitor,
) -> MistakeBound:
    """Return the bound of an unfitted learner on a run, whose mistakes are counted if not given."""
    read = ((rows.with_presence(), *targets) for rows, *targets in blocks)
    if learner.kernel is not None:
        return _bound_over_kernel(learner, list(read), n_mistakes, competitor)
    if has_trees(learner.get_params(deep=False)):
        raise KeslerError(
            f"no theorem bounds the mistakes of {learner.update!r}, which counts rows in trees: "
            'evaluate the bound of another update rule, such as "pa1"'
        )
    replay = Replay(learner, read)
    if n_mistakes is None:
        n_mistakes = _count_mistakes(replay)
    query = resolve_query(learner.label_budget)
    theorems, C = theorems_of(replay.rule, replay.link, query), getattr(replay.rule, "C", 1.0)
    return min(
        (
            _least(theorem, competition, C, n_mistakes)
            for competition in competitions(replay, learner, competitor)
            for theorem in theorems
        ),
        key=lambda found: found.bound,
    )


def _bound_over_kernel(
    learner: OnlineLearner, blocks: list[Any], n_mistakes: int | None, competitor: Competitor
) -> MistakeBound:
    """Return the bound of a learner over a kernel."""
    from kesler.bounds.kernels import least_bound

    if not isinstance(competitor, str) or competitor != "hindsight":
        raise KeslerError(
            f"competitor={competitor!r} has weights, and over a kernel competitors are sums over "
            'support vectors: give competitor="hindsight"'
        )
    if not any(len(rows) for rows, *_ in blocks):
        raise KeslerError("there is no row: a mistake bound needs at least one")
    made = learner._prepared(dense=blocks[0][0].dense)
    assert isinstance(made, KernelLearner)
    name, bound, n, n_compared, loss, square, radius = least_bound(made, blocks, n_mistakes)
    return MistakeBound(name, bound, n, n_compared, loss, square, radius, 1)


def _least(theorem: Theorem, of: Competition, C: float, n_mistakes: int) -> MistakeBound:
    """Return the smallest bound of a theorem over all competitors."""
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
    """Return the number of mistakes of the learner over the trials."""
    learner = replay.learner(replay.rule, replay.link)
    for _ in replay.learn(learner):
        pass
    return learner.n_mistakes
