"""Bounds on the distance of mistakes in a tree of classes, evaluated on a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.evaluation.results import ProgressiveResult
from kesler.evaluation.validation import progressive_validate
from kesler.hypotheses import Grouped, PerClass
from kesler.learner.learner import Learner
from kesler.links.link import Linear
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import unfitted
from kesler.trees.tree import Tree
from kesler.updates.passive_aggressive import PassiveAggressive

Array = npt.NDArray[np.float64]

STRENGTHS = (0.01, 0.1, 1.0)
"""The C of the learners of which competitors are the last weights."""
SCALES = np.geomspace(0.05, 20, 25)
"""The factors of these weights that are tried."""
PASSES = 3


@dataclass(frozen=True, slots=True)
class TreeBound:
    """A bound on the sum of the distances of mistakes in a tree, evaluated on a run.

    Attributes
    ----------
    theorem : str
        Name of the theorem.
    bound : float
        Upper bound on the sum of the distances.
    distance : float
        The sum of the distances of predictions from their targets, over the mistakes.
    n_trials : int
        Number of trials.
    loss : float
        The sum over the trials of the competitor's largest loss; of its square for "pa" and "pa2".
    squared_norm : float
        ||u||^2, summed over the nodes.
    radius : float
        The largest norm of phi(x, r) - phi(x, s): of x, times the root of the distance of r and s.

    Examples
    --------
    >>> print(TreeBound("Theorem 1", 80.0, 12.0, 98, 0.0, 2.5, 3.0))
    distances of 12 in 98 trials, at most 80.0 by Theorem 1, whose competitor has a loss of 0 and \
a squared norm of 2.5 (R = 3)
    """

    theorem: str
    bound: float
    distance: float
    n_trials: int
    loss: float
    squared_norm: float
    radius: float

    def __str__(self) -> str:
        return (
            f"distances of {self.distance:,.4g} in {self.n_trials:,} trials, at most "
            f"{self.bound:,.1f} by {self.theorem}, whose competitor has a loss of {self.loss:,.4g} "
            f"and a squared norm of {self.squared_norm:,.4g} (R = {self.radius:.4g})"
        )


def tree_bound(
    run: ProgressiveResult | OnlineClassifier, X: Any = None, y: Any = None
) -> TreeBound:
    r"""Evaluate the bound of Dekel, Keshet and Singer on a run with a tree of classes.

    For every u whose scores have the margins :math:`\sqrt{\gamma(y_i, r)}` on all trials,

    .. math:: \sum_i \gamma(y_i, \hat y_i) \le \sum_i \ell_i^2 \le R^2 \sum_v \|u^v\|^2, \quad
        R^2 = \max_{i, r} \gamma(y_i, r) \|x_i\|^2

    where :math:`\ell_i` are the losses of the passive-aggressive learner ("pa"). The smallest bound
    found over competitors u is returned.

    Parameters
    ----------
    run : result of progressive_validate, or OnlineClassifier
        A run that started with an unfitted learner. An estimator is not changed: an unfitted copy
        learns X and y.
    X, y : as in the `partial_fit` of the estimator
        Required if `run` is an estimator, else not allowed.

    Returns
    -------
    TreeBound

    Raises
    ------
    KeslerError
        If the rule is neither "pa", "pa1" or "pa2" nor one of these on predictions, its costs are
        not the distances in a tree or scale steps, or the learner has hypotheses over feature maps,
        preprocessing, a half-life, a kernel, a preconditioner, averages, or another effect of first
        rows than "register".

    Notes
    -----
    Theorem 1 of the source needs a competitor without loss. With the losses
    :math:`\ell^*_i = \max_r (\sqrt{\gamma(y_i, r)} - h_u(x_i, y_i) + h_u(x_i, r))_+` of any u, its
    proof gives, after Crammer et al. (2006), for d_i the difference of the trial:

    - "pa": :math:`R^2 (L + \sqrt{L^2 + \|u\|^2})^2, \; L^2 = \sum_i \ell_i^{*2} / \|d_i\|^2`, which
      is that of the source if L = 0;
    - "pa1": :math:`\max(R^2, \sqrt{\gamma_{\max}} / C) (\|u\|^2 + 2 C \sum_i \ell^*_i)`;
    - "pa2": :math:`(R^2 + 1 / 2C) (\|u\|^2 + 2 C \sum_i \ell_i^{*2})`.

    Competitors are u = 0 and the last weights of three passes of PA-I for three C, each with 25
    factors. Memory O(n_rows n_classes).

    References
    ----------
    Dekel, Keshet and Singer (2004), Theorem 1; Crammer et al. (2006), Theorems 2 to 5.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.bounds import tree_bound
    >>> X, y = [[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 5, ["a.x", "a.y", "b"] * 5
    >>> found = tree_bound(OnlineClassifier("multi", update="pa", tree="."), X, y)
    >>> found.distance <= found.bound
    True
    """
    result = _result_of(run, X, y)
    of = result.run
    assert of is not None and isinstance(of.estimator, OnlineClassifier)
    trials = _Trials.of(of.estimator, of.X, of.y)
    distance = result.tree_loss * result.n_trials
    found = [_bound(trials, *each, distance) for each in _competitors(trials, of)]
    return min(found, key=lambda each: each.bound)


def _result_of(run: Any, X: Any, y: Any) -> ProgressiveResult:
    """Return the result of a run from the first row."""
    if isinstance(run, OnlineClassifier):
        if X is None or y is None:
            raise KeslerError("an estimator needs rows to learn: give X and y, or a result")
        found: ProgressiveResult = progressive_validate(unfitted(run), X, y)
        return found
    if not isinstance(run, ProgressiveResult) or X is not None or y is not None:
        raise KeslerError(
            "tree_bound needs a result of progressive_validate, or a classifier with X and y"
        )
    if run.run is None or not run.run.fresh or run.run.sample_weight is not None:
        raise KeslerError(
            "the theorem is for a learner that starts with zero weights, and rows of weight 1: "
            "validate an unfitted one, without sample_weight"
        )
    return run


@dataclass(frozen=True)
class _Trials:
    """The trials of a run: for each, which classes were known, and what it demanded.

    learner : with every class of the run; codes : of the targets; n_known : classes before each
    trial; squares : squared norms of rows; margins, distances : tables of classes, the second with
    the number of hypotheses in which two classes differ.
    """

    learner: Learner
    codes: npt.NDArray[np.int64]
    n_known: npt.NDArray[np.int64]
    squares: Array
    margins: Array
    distances: Array

    @staticmethod
    def of(estimator: OnlineClassifier, X: Any, y: Any) -> _Trials:
        model = unfitted(estimator)
        codes = model._run_trials(X, y).codes.astype(np.int64)
        learner = _covered(model._learner)
        pieces = [_squares(rows.with_presence()) for rows in model._input.rows_to_score(model, X)]
        k = len(learner.classes)
        n_known = np.concatenate([[0], np.maximum.accumulate(codes)[:-1] + 1])
        squares = np.concatenate(pieces) + learner.constant**2
        margins = learner.stored["rule.margins"][:k, :k]
        return _Trials(learner, codes, n_known, squares, margins, _differences(learner))

    @property
    def compared(self) -> npt.NDArray[np.int64]:
        """The trials of a known class with another known class."""
        return np.flatnonzero((self.codes < self.n_known) & (self.n_known > 1))

    def of_rivals(self, table: Array, at: npt.NDArray[np.int64], other: float) -> Array:
        """Return the entries of known rivals of each trial, `other` elsewhere."""
        own = self.codes[at]
        found = table[own] if len(table) == len(self.margins) else table
        classes = np.arange(found.shape[1])
        is_rival = (classes < self.n_known[at][:, None]) & (classes != own[:, None])
        return np.where(is_rival, found, other)


def _squares(rows: Any) -> Array:
    """Return the squared norm of each row."""
    sums = np.concatenate([[0.0], np.cumsum(rows.values.astype(np.float64) ** 2)])
    found: Array = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return np.maximum(found, 0.0)


def _covered(learner: Any) -> Learner:
    """Return a learner that the theorem covers; raise KeslerError for others."""
    single = "it is no single learner of weight vectors"
    if not isinstance(learner, Learner):
        reasons = {single: True}
    else:
        given = None if learner.costs is None else learner.costs.given
        reasons = {
            "costs are not the distances in a tree": not isinstance(given, Tree),
            "costs scale steps": learner.costs_scale_steps,
            "the rule is not pa, pa1 or pa2": not isinstance(learner.rule, PassiveAggressive),
            "hypotheses have maps": not all(
                isinstance(part, (Grouped, PerClass)) and part.feature_map is None
                for part in learner.parts
            ),
            single: not learner.has_weights,
        }
    reasons |= {} if any(reasons.values()) else _of_trials(learner)
    for reason, holds in reasons.items():
        if holds:
            raise KeslerError(
                f"the theorem on trees does not cover this learner, since {reason}: use "
                'OnlineClassifier("multi", update="pa", tree=...)'
            )
    covered: Learner = learner
    return covered


def _of_trials(learner: Learner) -> dict[str, bool]:
    """Return what else the theorem does not cover, and whether the learner has it."""
    return {
        "rows are preprocessed": learner.preprocessing is not None,
        "it forgets": learner.half_life is not None,
        "rows are learnt again": learner.replay is not None,
        "it predicts by means of weights": learner.averaged,
        "its link or its preconditioner has another geometry": not (
            isinstance(learner.link, Linear) and learner.preconditioner.is_euclidean
        ),
        "it learns from first rows of classes": learner.on_new_class != "register",
    }


def _differences(learner: Learner) -> Array:
    """Return ||phi(x, r) - phi(x, s)||^2 / ||x||^2 for each pair of classes."""
    k = len(learner.classes)
    found = np.zeros((k, k))
    for part, members in zip(learner.parts, learner.memberships, strict=True):
        if isinstance(part, PerClass):
            found += 2.0 * (1.0 - np.eye(k))
            continue
        owned = np.zeros((k, 1 + max((c for m in members for c in m), default=0)))
        for code, columns in enumerate(members):
            owned[code, columns] = 1.0
        found += np.abs(owned[:, None] - owned[None]).sum(axis=2)
    return found


def _competitors(trials: _Trials, of: Any) -> Iterator[tuple[Array, float]]:
    """Yield the scores of competitors, of shape (n_rows, n_classes), and their squared norms."""
    yield np.zeros((len(trials.codes), len(trials.margins))), 0.0
    for C in STRENGTHS:
        model = unfitted(of.estimator).set_params(update=PassiveAggressive(C=C, variant=1))
        model.set_params(C=None, epochs=PASSES).fit(of.X, of.y)
        weights = model._learner.hypothesis_weights()
        norm = sum(
            float((np.asarray(w, dtype=np.float64) ** 2).sum()) for w in map(_dense, weights)
        )
        yield model._scores(of.X).astype(np.float64), float(norm)


def _dense(weights: Any) -> Any:
    return weights.toarray() if hasattr(weights, "toarray") else weights


def _bound(trials: _Trials, scores: Array, squared_norm: float, distance: float) -> TreeBound:
    """Return the smallest bound over the scales of a competitor."""
    rule, at = trials.learner.rule, trials.compared
    assert isinstance(rule, PassiveAggressive)
    bound, name = _THEOREMS[rule.variant]
    lengths = trials.squares[at]
    of_pairs = trials.of_rivals(trials.distances, at, 0.0).max(axis=1) * lengths
    largest = float(of_pairs.max(initial=0.0))
    least = trials.of_rivals(trials.distances, at, np.inf).min(axis=1) * lengths
    gaps = scores[at, trials.codes[at]][:, None] - scores[at]
    demanded = trials.of_rivals(trials.margins, at, -np.inf)
    farthest = float(trials.margins.max(initial=0.0))
    found = []
    for scale in _scales(gaps, demanded) if squared_norm else (1.0,):
        losses = np.maximum((demanded - scale * gaps).max(axis=1, initial=0.0), 0.0)
        square = scale**2 * squared_norm
        value = bound(losses, least, square, largest, rule.C, farthest)
        loss = losses.sum() if rule.variant == 1 else (losses**2).sum()
        found.append(
            TreeBound(
                name, value, distance, len(trials.codes), float(loss), square, math.sqrt(largest)
            )
        )
    return min(found, key=lambda each: each.bound)


def _scales(gaps: Array, demanded: Array) -> list[float]:
    """Return the scales to try: among them the least one without loss, if there is one."""
    asked = np.isfinite(demanded)
    scales: list[float] = SCALES.tolist()
    if not asked.any() or (gaps[asked] <= 0).any():
        return scales
    return [*scales, float((demanded[asked] / gaps[asked]).max()) * (1 + 1e-9)]


def _hard(losses: Array, least: Array, norm: float, largest: float, C: float, far: float) -> float:
    """R^2 (L + sqrt(L^2 + ||u||^2))^2; rows without features are never learnt, and add theirs."""
    moved = least > 0
    total = float((losses[moved] ** 2 / least[moved]).sum())
    return largest * (math.sqrt(total) + math.sqrt(total + norm)) ** 2 + float(
        (losses[~moved] ** 2).sum()
    )


def _soft(losses: Array, least: Array, norm: float, largest: float, C: float, far: float) -> float:
    """max(R^2, sqrt(gamma_max) / C) (||u||^2 + 2 C sum of losses)."""
    still = float((losses[least == 0] ** 2).sum())
    return max(largest, far / C) * (norm + 2 * C * float(losses.sum())) + still


def _squared(
    losses: Array, least: Array, norm: float, largest: float, C: float, far: float
) -> float:
    """(R^2 + 1 / 2C) (||u||^2 + 2 C sum of squared losses)."""
    return (largest + 0.5 / C) * (norm + 2 * C * float((losses**2).sum()))


_THEOREMS: dict[int, tuple[Callable[..., float], str]] = {
    0: (_hard, "Theorem 1 of Dekel, Keshet and Singer (2004), with losses"),
    1: (_soft, "the theorem on PA-I of Crammer et al. (2006), on a tree"),
    2: (_squared, "the theorem on PA-II of Crammer et al. (2006), on a tree"),
}
