"""The theorems: how many mistakes a rule makes at most, whatever comes, beside any fixed weights.

Each is of learners that begin with no weights. A trial in which a class is met, or that compares no
classes, makes no mistake, moves nothing and counts no loss: it is on neither side of the proofs,
however the views phi_t(x, r) change from trial to trial. In the others the answer may be one class,
a label set or a ranking: the proofs go through with d = phi(x, r) - phi(x, s) of any pair of which
r must outscore s, and with the largest hinge loss of a trial's pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.algorithms import RivalStep
from kesler.errors import KeslerError
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
    """

    n_compared: int
    loss: Array
    squared_loss: Array
    squared_norm: Array
    view: float
    difference: float
    sharing: int


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


def theorems_of(rule: UpdateRule) -> tuple[Theorem, ...]:
    """Return the theorems that bound the mistakes of a rule.

    Raises
    ------
    KeslerError
        If there is none.

    Examples
    --------
    >>> [theorem.name for theorem in theorems_of(SimPerc())]
    ['Theorem 1 of Amit et al. (2006)']
    """
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
