"""The base class of rules of asking, and a decorator for user-defined ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError, keep_integer, number_of
from kesler.parts.user_part import UserPart, require_function

Probability = Callable[..., float]
"""probability(parameters, margin, confidence, new): returns the probability of asking."""

_MASK = 2**64 - 1


class RowEstimates(NamedTuple):
    """What a learner says of a row before its label is known.

    Of label sets, margin and lead are those of the label that is most in doubt: its distance from
    the threshold, and the difference of the probabilities that it is relevant and that it is not;
    confidence is the probability that all labels are right, were they independent; new is 0.

    Parameters
    ----------
    margin : float
        The highest score minus the second, 0 or more; 0 with one known class.
    lead : float
        The highest probability minus the second, from 0 to 1; 1 with one known class.
    confidence : float
        The estimated probability that the prediction is right; without estimates of uncertainty,
        the probability of the predicted class.
    new : float
        The probability that the class has not been seen; 0 without estimates of uncertainty.
    """

    margin: float
    lead: float
    confidence: float
    new: float


class Past(NamedTuple):
    """What a rule remembers: numbers of rows offered and asked for, and the last doubts."""

    n_offered: int
    n_asked: int
    doubts: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A rule that decides for which rows a label is asked.

    A rule with a `probability` asks at random with it; another one overrides `asks`. It receives
    neither features nor labels. To write one, see :func:`query_rule`.

    Parameters
    ----------
    seed : int, 0 or more, default 0
        The seed of the random draws. A draw depends on it and the number of rows offered only, so
        that a model that is saved and loaded asks for the same rows.

    Attributes
    ----------
    ranks : whether the rule remembers its doubts about the last rows.
    """

    seed: int = 0

    ranks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keep_integer(self, "seed", 0)

    def probability(self, estimates: RowEstimates) -> float:
        """Return the probability of asking for a row with these estimates."""
        raise NotImplementedError

    def doubt(self, estimates: RowEstimates) -> float:
        """Return the doubt about a row, 0 or more, if the rule ranks doubts."""
        raise NotImplementedError

    def asks(self, estimates: RowEstimates, past: Past, draw: float) -> bool:
        """Return whether to ask, given a random number that is uniform on [0, 1)."""
        return draw < self.probability(estimates)

    def draw(self, number: int) -> float:
        """Return random number `number`, uniform on [0, 1).

        Examples
        --------
        >>> from kesler.queries import RandomQuery
        >>> RandomQuery(0.2).draw(0).__round__(4), RandomQuery(0.2, seed=1).draw(0).__round__(4)
        (0.0233, 0.3237)
        """
        return uniform(_start_of(self.seed), number)


@cache
def _start_of(seed: int) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def uniform(start: int, number: int) -> float:
    """Return a number on [0, 1): output `number` of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = (start + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return float((z ^ (z >> 31)) >> 11) * 2.0**-53


def require_share(name: str, share: Any) -> float:
    """Return a share of rows as a float; raise unless it is above 0 and at most 1."""
    why = ": it is the share of rows whose label is asked for, such as 0.2"
    return number_of(name, share, why, above=0, most=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomQuery(UserPart, Query):
    """A user-defined rule, made by :func:`query_rule`; pass it as ``label_budget=``."""

    function: Probability

    kind = "query rule"
    field = "function"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_function(self.function, "a query rule")

    def probability(self, estimates: RowEstimates) -> float:
        """Return what the function returns; raise unless it is a probability."""
        arguments = np.array(self.values), estimates.margin, estimates.confidence, estimates.new
        try:
            found = self.function(*arguments)
        except Exception as error:
            raise KeslerError(
                f"{self.full_name} raised {type(error).__name__} ({error}) for "
                f"{_named(estimates)}; the row was not counted: correct the function"
            ) from error
        if not isinstance(found, (Real, np.bool_)) or not 0 <= float(found) <= 1:
            raise KeslerError(
                f"{self.full_name} returned {found!r} for {_named(estimates)}, but it must return "
                "a probability, from 0 to 1; the row was not counted: correct the function"
            )
        return float(found)


def _named(of: RowEstimates) -> str:
    """Return the arguments of a call as a text."""
    return f"margin={of.margin:g}, confidence={of.confidence:g}, new={of.new:g}"


@overload
def query_rule(function: Probability) -> CustomQuery: ...
@overload
def query_rule(*, parameters: tuple[float, ...] = ...) -> Callable[[Probability], CustomQuery]: ...
def query_rule(function: Probability | None = None, *, parameters: tuple[float, ...] = ()) -> Any:
    r"""Make a rule of asking of a plain Python function, which is called as it is.

    A label is asked for with the probability that the function returns,
    :math:`P(\text{ask}) = f(\text{margin}, \text{confidence}, p_{new})`.

    Parameters
    ----------
    function : the function, if the decorator is written without parentheses.
    parameters : numbers passed to the function as an array.

    Returns
    -------
    A decorator that turns ``function(parameters, margin, confidence, new)`` into a rule. The
    margin is the highest score minus the second; confidence and new are the estimated
    probabilities that the prediction is right and that the class is new. The function returns a
    number from 0 to 1.

    Raises
    ------
    KeslerError
        On first use, if the function fails in a trial call (see :mod:`kesler.parts.trial_calls`);
        later, if it raises an error or returns anything but a number from 0 to 1. The row is then
        not counted as offered.

    Notes
    -----
    The function is called once for each row offered, in Python.

    Examples
    --------
    >>> from kesler import OnlineClassifier, query_rule
    >>> @query_rule(parameters=(0.5,))
    ... def unsure(parameters, margin, confidence, new):
    ...     return 1.0 if confidence < parameters[0] else 0.05
    >>> OnlineClassifier(label_budget=unsure.with_parameters(0.9)).label_budget
    unsure(0.9,)
    """

    def decorate(function: Probability) -> CustomQuery:
        return CustomQuery(function=function, values=tuple(float(p) for p in parameters))

    return decorate if function is None else decorate(function)
