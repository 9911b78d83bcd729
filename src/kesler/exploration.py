"""Exploration: with which probability each class is shown, where only the shown one is judged."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from kesler.codes import Showing
from kesler.errors import KeslerError, integer_of, keep_number

__all__ = [
    "EXPLORATIONS",
    "Exploration",
    "Greedy",
    "InverseGap",
    "Uniform",
    "resolve_exploration",
]

MOST_SEEDS = 2**63


@dataclass(frozen=True)
class Exploration:
    """How the class to show is drawn from the scores.

    Attributes
    ----------
    kind : the number of the kind in compiled code.
    """

    kind: ClassVar[int]

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that compiled code reads."""
        return ()


@dataclass(frozen=True)
class Greedy(Exploration):
    r"""Show the class of the highest score.

    .. math:: P(r) = 1[r = \arg\max_s h(x, s)]

    Notes
    -----
    A class that has never been right still has the score 0 under one-vs-rest rules, and classes
    that were wrong on similar rows have scores below: each is tried once before any is repeated.

    References
    ----------
    Bietti, Agarwal and Langford (2021), "A contextual bandit bake-off".

    Examples
    --------
    >>> Greedy()
    Greedy()
    """

    kind = Showing.GREEDY


@dataclass(frozen=True)
class Uniform(Exploration):
    r"""Show the class of the highest score, and now and then any class.

    .. math:: P(r) = (1 - \gamma_t) \, 1[r = \hat y_t] + \frac{\gamma_t}{k}, \quad
        \gamma_t = \min(1, \gamma t^{-a})

    Parameters
    ----------
    gamma : float above 0, at most 1, default 0.05
        The probability of exploring in the first trial. Larger values learn more of other classes,
        and show more wrong ones.
    decay : float of 0 or more, default 0.0
        The power a of the number of the trial that it decreases with; 0 for not at all, as the
        theorems on :class:`~kesler.updates.Banditron` and :class:`~kesler.updates.SOBA` assume.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Costs O(k) per row.

    References
    ----------
    Kakade, Shalev-Shwartz and Tewari (2008), Banditron.

    Examples
    --------
    >>> Uniform(0.1)
    Uniform(gamma=0.1, decay=0.0)
    """

    gamma: float = 0.05
    decay: float = 0.0

    kind = Showing.UNIFORM

    def __post_init__(self) -> None:
        keep_number(self, "gamma", above=0, most=1)
        keep_number(self, "decay", least=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """Gamma and its decay."""
        return self.gamma, self.decay


@dataclass(frozen=True)
class InverseGap(Exploration):
    r"""Show each class the more often, the nearer its score is to the highest.

    .. math:: P(r) = \frac{1}{k + \lambda_t (h(x, \hat y) - h(x, r))} \text{ for } r \ne \hat y,
        \quad P(\hat y) = 1 - \sum_{r \ne \hat y} P(r), \quad \lambda_t = \lambda t^a

    Parameters
    ----------
    scale : float above 0, default 3.0
        The factor lambda. Larger values explore less.
    power : float of 0 or more, default 0.5
        The power a of the number of the trial. Larger values explore less as rows go by.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    Gaps are those of the scores as they are: made for one-vs-rest rules, whose scores are near 1
    for the right class and near -1 for wrong ones. Costs O(k) per row.

    References
    ----------
    Abe and Long (1999); Foster and Rakhlin (2020), SquareCB.

    Examples
    --------
    >>> InverseGap(10)
    InverseGap(scale=10.0, power=0.5)
    """

    scale: float = 3.0
    power: float = 0.5

    kind = Showing.INVERSE_GAP

    def __post_init__(self) -> None:
        keep_number(self, "scale", above=0)
        keep_number(self, "power", least=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The scale and the power."""
        return self.scale, self.power


EXPLORATIONS: dict[str, type[Exploration]] = {
    "greedy": Greedy,
    "uniform": Uniform,
    "inverse-gap": InverseGap,
}
"""The explorations by their names in `BanditClassifier`."""


def resolve_exploration(choice: Any) -> Exploration:
    """Return the exploration that a parameter stands for: a name, gamma, or itself.

    Raises
    ------
    KeslerError
        If it is neither, or gamma is out of its range.

    Examples
    --------
    >>> resolve_exploration("greedy"), resolve_exploration(0.1)
    (Greedy(), Uniform(gamma=0.1, decay=0.0))
    """
    if isinstance(choice, Exploration):
        return choice
    if isinstance(choice, str) and choice in EXPLORATIONS:
        return EXPLORATIONS[choice]()
    if isinstance(choice, Real) and not isinstance(choice, bool):
        return Uniform(float(choice))
    raise KeslerError(
        f"exploration={choice!r} is not known: choose one of {', '.join(EXPLORATIONS)}, the gamma "
        "of uniform exploration, or an object of kesler.exploration"
    )


def require_seed(seed: Any) -> int:
    """Return a seed; raise KeslerError unless it is an integer from 0 to 2^63 - 1.

    Examples
    --------
    >>> require_seed(7)
    7
    """
    return integer_of("seed", seed, 0, MOST_SEEDS - 1)
