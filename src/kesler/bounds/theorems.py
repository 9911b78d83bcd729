"""The theorems: how many mistakes a rule makes at most, whatever comes, beside any fixed weights.

Each is of learners that begin with no weights. A trial in which a class is met, or that compares no
classes, makes no mistake, moves nothing and counts no loss: it is on neither side of the proofs,
however the views phi_t(x, r) change from trial to trial. In the others the answer may be one class,
a label set or a ranking: the proofs go through with d = phi(x, r) - phi(x, s) of any pair of which
r must outscore s, and with the largest hinge loss of a trial's pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.algorithms import RivalStep
from kesler.errors import KeslerError
from kesler.links import Exponential, Linear, Link
from kesler.updates import MIRA, ConProj, PassiveAggressive, Perceptron, SimPerc, UpdateRule

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Competition:
    """What a theorem is evaluated on: a stream, and competitors, one entry each in the arrays.

    Parameters
    ----------
    n_compared : trials in which there were classes to compare.
    loss, squared_loss, squared_norm : of each competitor: the sums of its hinge losses and of their
        squares, and ||u||^2.
    view, difference : the longest phi^t(x, r) and phi(x, r) - phi(x, s).
    sharing : the most hypotheses that a class belongs to.
    sum_of_sizes : of each competitor, the sum of its absolute weights.
    entropy : of the sizes of a competitor's weights, whatever its scale.
    largest : the largest entry of phi(x, r) - phi(x, s).
    n_weights : how many weights the stream brings along.
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
    bound : function of a competition and the rule's C, to an entry for each competitor.
    radius : function of a competition, to R.
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

    In Mesterharm's words s^2 ||u||^2 / delta^2, u scaled to delta = 1.
    """
    return np.where(of.loss == 0, of.difference**2 * of.squared_norm, np.inf)


def simultaneous(of: Competition, C: float) -> Array:
    r"""(||u||^2 / 2 + C L) / (C - C^2 R^2 / 2) at the C that makes it least.

    The predictions of SimPerc do not depend on C, so that the theorem holds with any.
    """
    half = of.difference**2 * of.squared_norm / 2
    return of.loss + half + np.sqrt(half * (half + 2 * of.loss))


def projected(of: Competition, C: float) -> Array:
    r"""(||u||^2 / 2 + C L) / (c - c^2 R^2 / 2) with c = min(C, 1 / R^2).

    A trial raises the dual by :math:`\max_{0 \le \alpha \le C} \alpha \ell - \alpha^2 \|d\|^2 / 2`
    at least, where :math:`\ell \ge 1` for a constraint that is mistaken: by what the step c would
    raise it, or more. Up to C = 1 / R^2 this is Amit's corollary as it stands; beyond, where that
    grows and ends at 2 / R^2, it is the same as Crammer's max(R^2, 1 / C) (||u||^2 + 2 C L).
    """
    square = of.difference**2
    c = min(C, 1 / square) if square else C
    return (of.squared_norm / 2 + C * of.loss) / (c - c * c * square / 2)


def softened(of: Competition, C: float) -> Array:
    r"""(R^2 + 1 / 2C) (||u||^2 + 2 C sum of squared losses)."""
    return (of.difference**2 + 0.5 / C) * (of.squared_norm + 2 * C * of.squared_loss)


def multiplicative(of: Competition, eta: float, *, balanced: bool) -> Array:
    r"""(ln N - H(u) + eta L_delta) / (eta delta - ln cosh(eta nu)), u of a sum of sizes of 1.

    N is the number of weights, twice that of features where each stands beside its negative, nu the
    largest |z_i| and :math:`L_\delta = \sum_t \max(0, \delta - \langle u, z_t \rangle)`. The proof:
    a mistake multiplies the sum of weights by
    :math:`\sum_i w_i e^{\eta z_i} / \sum_i w_i \le \cosh(\eta \nu)`, the exponential being convex
    and :math:`\langle w, z \rangle \le 0`, while u keeps
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


def theorems_of(rule: UpdateRule, link: Link = LINEAR) -> tuple[Theorem, ...]:
    """Return the theorems that bound the mistakes of a rule under a link.

    Raises
    ------
    KeslerError
        If there is none.

    Examples
    --------
    >>> [theorem.name for theorem in theorems_of(SimPerc())]
    ['Theorem 1 of Amit et al. (2006)']
    """
    if not isinstance(link, Linear):
        return (_multiplicative(rule, link),)
    if isinstance(rule, PassiveAggressive):
        return (AGGRESSIVE[rule.variant],)
    known: dict[type[UpdateRule], tuple[Theorem, ...]] = {
        Perceptron: (FINK, PERCEPTRON),
        RivalStep: (FINK, PERCEPTRON),  # steps of any length, on ties as well: more than mistakes
        SimPerc: (SIMULTANEOUS,),
        ConProj: (CONSERVATIVE,),
        MIRA: (EXACT,),
    }
    if type(rule) not in known:
        raise KeslerError(
            f"Kesler knows no theorem that bounds the mistakes of {rule!r}: there are bounds for "
            "perceptron, pa, pa1, pa2, simperc, conproj and mira"
        )
    return known[type(rule)]


def _multiplicative(rule: UpdateRule, link: Link) -> Theorem:
    if not isinstance(link, Exponential) or type(rule) not in (Perceptron, RivalStep):
        raise KeslerError(
            f"Kesler knows no theorem that bounds the mistakes of {rule!r} under {link!r}: there "
            "are bounds for the Perceptron under the exponential link, WMA and balanced Winnow "
            "that is, and for more rules under the linear one"
        )
    eta = math.log(link.alpha) * getattr(rule, "rate", 1.0)
    name = "balanced Winnow" if link.balanced else "WMA"
    return Theorem(
        f"the linear-max bound of {name}, Mesterharm (2001)",
        lambda of, C: multiplicative(of, eta, balanced=link.balanced),
        lambda of: of.largest,
    )
