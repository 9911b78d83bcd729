"""Theorems on mistakes, and the competitors: fixed weights to which a learner is compared.

All theorems assume learners with zero initial weights. A trial in which a class appears for the
first time, or that compares no classes, makes no mistake and no update and adds no loss: the proofs
ignore it, even if the feature maps phi_t(x, r) change from trial to trial. In the other trials the
target may be one class, a label set or a ranking: the proofs hold for d = phi(x, r) - phi(x, s) of
any pair in which r must outscore s, and for the largest hinge loss over the pairs of a trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.algorithms.quasi_additive import RivalStep
from kesler.errors import KeslerError
from kesler.evaluation.replay import Replay
from kesler.hypotheses import Grouped, PerClass
from kesler.learner.learner import Learner
from kesler.links.exponential import Exponential
from kesler.links.link import Linear, Link
from kesler.online.base import OnlineLearner
from kesler.queries.margin import MarginQuery
from kesler.queries.query import Query
from kesler.updates.mira import MIRA
from kesler.updates.passive_aggressive import PassiveAggressive
from kesler.updates.perceptron import Perceptron
from kesler.updates.rule import UpdateRule
from kesler.updates.simultaneous import ConProj, SimPerc

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Competition:
    """The quantities in the theorems, for a stream and competitors; arrays hold one entry each.

    Parameters
    ----------
    n_compared : number of trials that compare classes.
    loss, squared_loss, squared_norm : for each competitor: the sum of its hinge losses, the sum of
        their squares, and ||u||^2.
    view, difference : the largest norms of phi^t(x, r) and phi(x, r) - phi(x, s).
    sharing : the largest number of hypotheses that contain a class.
    sum_of_sizes : for each competitor, the sum of its absolute weights.
    entropy : the entropy of the absolute weights, which does not depend on the scale.
    largest : the largest entry of phi(x, r) - phi(x, s).
    n_weights : number of weights after the stream.
    """

    n_compared: int
    loss: Array
    squared_loss: Array
    squared_norm: Array
    view: float
    difference: float
    sharing: int
    sum_of_sizes: Array
    entropy: float
    largest: float
    n_weights: int


@dataclass(frozen=True, slots=True)
class Theorem:
    """A bound on the mistakes of a rule.

    Parameters
    ----------
    name : str
    bound : function of a competition and the rule's C that returns a bound for each competitor.
    radius : function of a competition that returns R.
    """

    name: str
    bound: Callable[[Competition, float], Array]
    radius: Callable[[Competition], float] = lambda of: of.difference


def fink(of: Competition, C: float) -> Array:
    r"""L + C + sqrt(L C), C = rho R^2 ||u||^2, R = 2 max ||phi^t(x, r)||."""
    complexity = of.sharing * 4 * of.view**2 * of.squared_norm
    return of.loss + complexity + np.sqrt(of.loss * complexity)


def separable(of: Competition, C: float) -> Array:
    r"""R^2 ||u||^2 for a competitor without loss, R = max ||phi(x, r) - phi(x, s)||.

    In Mesterharm's notation s^2 ||u||^2 / delta^2, for u scaled to delta = 1.
    """
    return np.where(of.loss == 0, of.difference**2 * of.squared_norm, np.inf)


def simultaneous(of: Competition, C: float) -> Array:
    r"""(||u||^2 / 2 + C L) / (C - C^2 R^2 / 2) at its minimum over C.

    The predictions of SimPerc do not depend on C, so the theorem holds for any C.
    """
    half = of.difference**2 * of.squared_norm / 2
    return of.loss + half + np.sqrt(half * (half + 2 * of.loss))


def projected(of: Competition, C: float) -> Array:
    r"""(||u||^2 / 2 + C L) / (c - c^2 R^2 / 2) with c = min(C, 1 / R^2).

    A trial increases the dual by at least
    :math:`\max_{0 \le \alpha \le C} \alpha \ell - \alpha^2 \|d\|^2 / 2`, where :math:`\ell \ge 1`
    for a mistaken constraint; this is at least the increase of the step c. For C up to 1 / R^2 this
    is the corollary of Amit et al.; for larger C, where the corollary grows and is defined up to
    2 / R^2 only, it equals max(R^2, 1 / C) (||u||^2 + 2 C L) of Crammer et al.
    """
    square = of.difference**2
    c = min(C, 1 / square) if square else C
    return (of.squared_norm / 2 + C * of.loss) / (c - c * c * square / 2)


def softened(of: Competition, C: float) -> Array:
    r"""(R^2 + 1 / 2C) (||u||^2 + 2 C sum of squared losses)."""
    return (of.difference**2 + 0.5 / C) * (of.squared_norm + 2 * C * of.squared_loss)


def multiplicative(of: Competition, eta: float, *, balanced: bool) -> Array:
    r"""(ln N - H(u) + eta L_delta) / (eta delta - ln cosh(eta nu)) for u of L1 norm 1.

    N is the number of weights, twice the number of features if the link is balanced, nu the largest
    |z_i| and :math:`L_\delta = \sum_t \max(0, \delta - \langle u, z_t \rangle)`. Proof: a mistake
    multiplies the sum of weights by
    :math:`\sum_i w_i e^{\eta z_i} / \sum_i w_i \le \cosh(\eta \nu)`, since the exponential is
    convex and :math:`\langle w, z \rangle \le 0`, while
    :math:`\ln \sum_i w_i \ge \eta \sum_t \langle u, z_t \rangle + H(u)`, with H the entropy.
    Without loss, for ratings in [0, 1] and with :math:`\alpha^2 = (1 + \delta) / (1 - \delta)`,
    it is at most Mesterharm's 2 ln(n) / delta^2.
    """
    n = 2 * of.n_weights if balanced else of.n_weights
    shrink = np.log(np.cosh(min(eta * of.largest, 700.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = eta / of.sum_of_sizes - shrink
        bound = (np.log(n) - of.entropy + eta * of.loss / of.sum_of_sizes) / gain
    return np.where((of.sum_of_sizes > 0) & (gain > 0), bound, float(of.n_compared))


LINEAR = Linear()
FINK = Theorem("Theorem 1 of Fink et al. (2006)", fink, lambda of: 2 * of.view)
PERCEPTRON = Theorem("the linear-max Perceptron bound of Mesterharm (2001)", separable)
SIMULTANEOUS = Theorem("Theorem 1 of Amit et al. (2006)", simultaneous)
CONSERVATIVE = Theorem("Corollary 1 of Amit et al. (2006)", projected)
EXACT = Theorem("the proof of Theorem 1 of Amit et al. (2006)", projected)
AGGRESSIVE = (
    Theorem("Theorem 2 of Crammer et al. (2006)", separable),
    Theorem("Theorem 4 of Crammer et al. (2006)", projected),
    Theorem("Theorem 5 of Crammer et al. (2006)", softened),
)


def selective(of: Competition, b: float) -> Array:
    r"""(1 + R^2 / 2b) L + (2b + R^2)^2 / 8b ||u||^2, of the expected mistakes.

    The proof is that of :class:`~kesler.queries.MarginQuery`.
    """
    square = of.difference**2
    return (1 + square / (2 * b)) * of.loss + (2 * b + square) ** 2 / (8 * b) * of.squared_norm


def theorems_of(
    rule: UpdateRule, link: Link = LINEAR, query: Query | None = None
) -> tuple[Theorem, ...]:
    """Return the theorems that bound the mistakes of a rule under a link.

    Parameters
    ----------
    query : the rule of asking, if only the rows asked for are learnt.

    Raises
    ------
    KeslerError
        If no theorem is known.

    Examples
    --------
    >>> [theorem.name for theorem in theorems_of(SimPerc())]
    ['Theorem 1 of Amit et al. (2006)']
    """
    if query is not None:
        return (_selective(rule, link, query),)
    if not isinstance(link, Linear):
        return (_multiplicative(rule, link),)
    if isinstance(rule, PassiveAggressive):
        return (AGGRESSIVE[rule.variant],)
    known: dict[type[UpdateRule], tuple[Theorem, ...]] = {
        Perceptron: (FINK, PERCEPTRON),
        RivalStep: (
            FINK,
            PERCEPTRON,
        ),  # it also updates on ties, with steps of any length: at least the mistakes
        SimPerc: (SIMULTANEOUS,),
        ConProj: (CONSERVATIVE,),
        MIRA: (EXACT,),
    }
    if type(rule) not in known:
        raise KeslerError(
            f"Kesler has no theorem that bounds the mistakes of {rule!r}: there are bounds for "
            "perceptron, pa, pa1, pa2, simperc, conproj and mira"
        )
    return known[type(rule)]


def _selective(rule: UpdateRule, link: Link, query: Query) -> Theorem:
    is_known = type(rule) is Perceptron and isinstance(link, Linear)
    if not is_known or not isinstance(query, MarginQuery):
        raise KeslerError(
            f"Kesler has no theorem that bounds the mistakes of {rule!r} under {link!r} with "
            f"{query!r}: with a label budget there is one for MarginQuery with the Perceptron"
        )
    b, name = query.b, "Theorem 1 of Cesa-Bianchi et al. (2006), in expectation"
    return Theorem(name, lambda of, C: selective(of, b))


def _multiplicative(rule: UpdateRule, link: Link) -> Theorem:
    if not isinstance(link, Exponential) or type(rule) not in (Perceptron, RivalStep):
        raise KeslerError(
            f"Kesler has no theorem that bounds the mistakes of {rule!r} under {link!r}: there are "
            "bounds for the Perceptron under the exponential link, which is WMA or balanced "
            "Winnow, and for more rules under the linear link"
        )
    rate = rule.rate if isinstance(rule, RivalStep) else 1.0
    eta = math.log(link.alpha) * rate
    name = "balanced Winnow" if link.balanced else "WMA"
    return Theorem(
        f"the linear-max bound of {name}, Mesterharm (2001)",
        lambda of, C: multiplicative(of, eta, balanced=link.balanced),
        lambda of: of.largest,
    )


Competitor = Literal["hindsight"] | OnlineLearner | Sequence[npt.ArrayLike]

# The search in hindsight: values of C of PA-I, in units of the step with margin 1 for the largest
# difference; numbers of passes after which weights are evaluated; weights averaged in each pass.
CAPS = (0.01, 0.1, 1.0, 100.0)
LOOKS = (1, 3, 10)
# Exponentiated gradient: sums of all weights, and the factor of a step.
TOTALS, ALPHA = (2.0, 5.0, 10.0, 30.0, 100.0), 1.5
PIECES = 16


def competitions(
    replay: Replay, learner: OnlineLearner, competitor: Competitor
) -> Iterator[Competition]:
    """Yield the quantities in the theorems for the given competitors.

    Raises
    ------
    KeslerError
        If `competitor` is unknown, or has other hypotheses than the run.
    """
    inner = replay.learner(PassiveAggressive())
    _go_through(replay, inner)
    replay.find_largest(inner)
    if not isinstance(competitor, str):
        _give(inner, competitor, learner, positive=_must_be_positive(replay.link))
        yield _competition(replay, inner, replay.measure(inner), lambda margins: np.ones(1))
        return
    if competitor != "hindsight":
        raise KeslerError(
            f"competitor={competitor!r} is not known: give 'hindsight', an estimator of the same "
            "hypotheses, or a list of arrays, one for each part"
        )
    for margins in _in_hindsight(replay, inner):
        yield _competition(replay, inner, margins, _scales)


def _competition(
    replay: Replay, inner: Learner, margins: Array, scales_of: Callable[[Array], Array]
) -> Competition:
    """Return the losses and norms of weights, given their margins, at several scales.

    The worst pair of a trial is the same at every scale a, so the loss of the scaled weights is
    max(0, 1 - a margin): sums over the sorted margins below 1 / a.
    """
    ordered, scales = np.sort(margins), scales_of(margins)
    sums, squares = (np.concatenate([[0.0], np.cumsum(ordered**p)]) for p in (1, 2))
    with np.errstate(divide="ignore"):
        n = np.searchsorted(ordered, 1 / scales)
    view, difference = np.sqrt(replay.squared_lengths).tolist()
    squared = n - 2 * scales * sums[n] + scales**2 * squares[n]
    return Competition(
        n_compared=len(margins),
        loss=np.maximum(0.0, n - scales * sums[n]),
        squared_loss=np.maximum(0.0, squared),
        squared_norm=scales**2 * float(np.square(inner.weights, dtype=np.float64).sum()),
        view=view,
        difference=difference,
        sharing=_sharing(inner),
        sum_of_sizes=scales * float(np.abs(inner.weights).sum(dtype=np.float64)),
        entropy=_entropy(inner),
        largest=replay.largest,
        n_weights=inner.n_weights,
    )


def _scales(margins: Array) -> Array:
    """Return the scales to try: 0, those at which the loss of a trial becomes 0, and some between.

    Bounds are smooth between them. Scales are slightly above 1 / margin, so that rounding leaves
    no loss.
    """
    kinks = (1 + 1e-9) / margins[margins > 1e-30]
    if not len(kinks):
        return np.zeros(1)
    between = np.geomspace(kinks.min() / 100, kinks.max(), 100)
    return np.concatenate([[0.0], kinks, between])


def _in_hindsight(replay: Replay, inner: Learner) -> Iterator[Array]:
    """Yield the margins of the weights after several passes; `inner` holds the weights."""
    inner.weights[:] = 0
    yield replay.measure(inner)
    for searcher in _searchers(replay):
        _go_through(replay, searcher)
        for n_passes in range(1, LOOKS[-1] + 1):
            means = _means_of_pass(replay, searcher)
            if n_passes in LOOKS:
                for weights, mean in zip(inner.hypothesis_weights(), means, strict=True):
                    weights[:] = mean
                if _must_be_positive(replay.link):
                    _make_positive(inner)
                yield replay.measure(inner)


def _searchers(replay: Replay) -> Iterator[Learner]:
    """Yield learners whose weights may be good competitors under the link of the run."""
    longest, largest = replay.squared_lengths[1], replay.largest
    for cap in CAPS:
        yield replay.learner(PassiveAggressive(cap / longest if longest else cap))
    if isinstance(replay.link, Exponential) and largest:
        # Larger sums of weights reach larger margins.
        for total in TOTALS:
            link = replace(replay.link, alpha=ALPHA, total=total / largest)
            yield replay.learner(PassiveAggressive(), link)


def _means_of_pass(replay: Replay, inner: Learner) -> list[Array]:
    """Run a learner over the trials; return the means of its weights during the pass."""
    totals: list[Any] = [0.0] * len(inner.parts)
    n = 0
    for _ in replay.learn(inner, PIECES):
        n += 1
        now = [weights * inner.scale for weights in inner.hypothesis_weights()]
        totals = [total + each for total, each in zip(totals, now, strict=True)]
    return [total / n for total in totals]


def _go_through(replay: Replay, inner: Learner) -> None:
    """Run a learner over the trials, so that it has seen all classes and features."""
    for _ in replay.learn(inner):
        pass


def _entropy(inner: Learner) -> float:
    """Return the entropy of the absolute weights, scaled to sum to 1."""
    from scipy.stats import entropy

    sizes = np.abs(inner.weights[inner.weights != 0].astype(np.float64))
    return float(entropy(sizes)) if len(sizes) else 0.0


def _must_be_positive(link: Link) -> bool:
    """Return whether weights under the link, and hence competitors, must be positive."""
    return isinstance(link, Exponential) and not link.balanced


def _make_positive(inner: Learner) -> None:
    """Make weights non-negative; a constant added to all classes does not change margins."""
    for part, weights in zip(inner.parts, inner.hypothesis_weights(), strict=True):
        if isinstance(part, PerClass) and part.feature_map is None:
            weights -= np.minimum(weights.min(axis=1, keepdims=True), 0)
        np.maximum(weights, 0, out=weights)


def _sharing(inner: Learner) -> int:
    """Return rho, the largest number of hypotheses that contain a class."""
    counts = np.zeros(len(inner.classes), dtype=np.int64)
    for part, classes in zip(inner.parts, inner.memberships, strict=True):
        counts += [len(c) for c in classes] if isinstance(part, Grouped) else 1
    return int(counts.max(initial=0))


# ---- given weights ------------------------------------------------------------------------------


def _give(inner: Learner, competitor: Any, learner: OnlineLearner, *, positive: bool) -> None:
    """Set the weights of a learner that has seen the stream to those of a competitor."""
    given = inner.hypothesis_weights()
    if isinstance(competitor, OnlineLearner):
        weights = _aligned(inner, competitor, learner)
    else:
        weights = [np.asarray(each, dtype=np.float32) for each in competitor]
    shapes, wanted = [w.shape for w in weights], [w.T.shape for w in given]
    if shapes != wanted:
        raise KeslerError(
            f"the competitor has weights of shapes {shapes}, but the hypotheses of the run need "
            f"{wanted}: give one array (n_hypotheses, n_features) for each part"
        )
    for into, each in zip(given, weights, strict=True):
        into[:] = each.T
    if positive and any((each < 0).any() for each in given):
        raise KeslerError(
            "the competitor has weights below 0, but all weights of the learner are positive: give "
            "positive weights, or a learner with balanced=True"
        )


def _aligned(
    inner: Learner, competitor: OnlineLearner, learner: OnlineLearner
) -> list[npt.NDArray[np.float32]]:
    """Return the weights of another model in the order of classes and features of this run."""
    from kesler.online.linear_weights import single

    other = single(competitor._fitted())
    if other.parts != inner.parts or other.constant != inner.constant:
        raise KeslerError(
            "the competitor has other hypotheses than the run: give an estimator of the same "
            "hypotheses, feature map and intercept"
        )
    features = _places(_feature_names(learner, inner), _feature_names(competitor, other))
    weights = []
    for i, here in enumerate(inner.hypothesis_weights()):
        found = np.zeros_like(here)
        hypotheses = _places(_hypothesis_names(inner, i), _hypothesis_names(other, i))
        there: Any = other.hypothesis_weights()[i]
        if hasattr(there, "toarray"):  # sparse weights
            there = there.toarray()
        found[np.ix_(features[0], hypotheses[0])] = there[np.ix_(features[1], hypotheses[1])]
        weights.append(found.T)
    return weights


def _places(here: list[Any], there: list[Any]) -> tuple[list[int], list[int]]:
    """Return the positions in each list of the names that both contain."""
    places = {name: i for i, name in enumerate(there)}
    both = [(i, places[name]) for i, name in enumerate(here) if name in places]
    return [i for i, _ in both], [j for _, j in both]


def _feature_names(learner: OnlineLearner, inner: Learner) -> list[Any]:
    """Return the names or numbers of the features, after the constant feature."""
    vocabulary = learner.vocabulary_
    n = inner.n_named_features
    names = list(range(n)) if vocabulary is None else vocabulary.names[:n]
    return [("constant",), *names] if inner.constant else names


def _hypothesis_names(inner: Learner, i: int) -> list[Any]:
    """Return the names of the hypotheses of a part: labels, groups, or None."""
    part = inner.parts[i]
    if isinstance(part, Grouped):
        return list(inner.groups[i])
    if isinstance(part, PerClass):
        return [*((n,) for n in range(inner.classes.n_virtual)), *inner.classes.labels]
    return [None]
