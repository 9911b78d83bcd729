"""The base class of linear-threshold algorithms, and a decorator for user-defined ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, overload

from kesler.errors import KeslerError
from kesler.parts.user_part import UserPart, require_function
from kesler.updates.rule import UpdateRule, no_steps

Update = Callable[..., None]
"""update(parameters, positions, z, margin, weights, states, numbers): changes the last three."""

MOST_STATES = 4
FEWEST_NUMBERS, MOST_NUMBERS = UpdateRule.n_numbers, 1 << 24


@dataclass(frozen=True)
class ThresholdAlgorithm(UpdateRule):
    """A learner of two classes that receives instances z of label 1, predicted if <w, z> > 0.

    In a multiclass trial, z is the view of the right class minus that of its best rival, so that
    any such algorithm becomes a multiclass learner. To write one, see :func:`threshold_algorithm`.

    Attributes
    ----------
    update : the function that is compiled, a plain function of arrays.
    """

    update: ClassVar[Update]

    constraints = "rival"
    requires = "losses"
    heeds_margin = False
    steps = staticmethod(no_steps)


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomAlgorithm(UserPart, ThresholdAlgorithm):
    """A user-defined algorithm, made by :func:`threshold_algorithm`."""

    update: Update  # type: ignore[misc]
    begins_at: float = 0.0  # type: ignore[misc]
    n_states: int = 0  # type: ignore[misc]
    n_numbers: int = FEWEST_NUMBERS  # type: ignore[misc]

    kind = "linear-threshold algorithm"
    field = "update"

    def __post_init__(self) -> None:
        require_function(self.update, "a linear-threshold algorithm")
        if not math.isfinite(self.begins_at):
            raise KeslerError(f"{self!r}: begins_at={self.begins_at!r} must be a finite number")
        if self.n_states not in range(MOST_STATES + 1):
            raise KeslerError(
                f"{self!r}: n_states={self.n_states!r} must be an integer from 0 to {MOST_STATES}"
            )
        is_whole = isinstance(self.n_numbers, Integral) and not isinstance(self.n_numbers, bool)
        if not (is_whole and FEWEST_NUMBERS <= self.n_numbers <= MOST_NUMBERS):
            raise KeslerError(
                f"{self!r}: n_numbers={self.n_numbers!r} must be an integer from {FEWEST_NUMBERS} "
                f"to {MOST_NUMBERS:,}"
            )


@overload
def threshold_algorithm(function: Update) -> CustomAlgorithm: ...
@overload
def threshold_algorithm(
    *,
    begins_at: float = ...,
    n_states: int = ...,
    n_numbers: int = ...,
    parameters: tuple[float, ...] = ...,
) -> Callable[[Update], CustomAlgorithm]: ...
def threshold_algorithm(
    function: Update | None = None,
    *,
    begins_at: float = 0.0,
    n_states: int = 0,
    n_numbers: int = FEWEST_NUMBERS,
    parameters: tuple[float, ...] = (),
) -> Any:
    r"""Make a linear-threshold algorithm of a plain Python function, which is compiled.

    The function is called in every trial with an instance z of label 1 and may change the weights;
    most algorithms do so only if :math:`\langle w, z \rangle \le 0`:

    .. math:: w := f(w, z), \quad z = \phi(x, y) - \phi(x, s), \; s = \arg\max_{r \ne y} h(x, r)

    Parameters
    ----------
    function : the function, if the decorator is written without parentheses.
    begins_at : the initial weight of features not yet seen; 0 for an algorithm that multiplies all
        weights itself instead of the scale.
    n_states : the number of values stored beside each weight, from 0 to 4; they are initially 0.
    n_numbers : the number of values for its own use, from 8 to 2^24. With more of them an algorithm
        keeps the instances of earlier trials, :math:`w := f(w, z_1, \dots, z_t)`: "Write your own"
        has a support vector machine over sub-experts. Each costs 8 bytes, and some 1 ns a trial.
    parameters : numbers passed to the function as an array.

    Returns
    -------
    A decorator that turns ``function(parameters, positions, z, margin, weights, states, numbers)``
    into an algorithm. z, float64 of shape (n,), has the non-zeros of the instance, and positions
    their indices: ``weights[positions[j]]`` (float32, all weights) belongs to z[j], as does
    ``states[i, positions[j]]`` (float64). numbers are `n_numbers` float64 for its own use,
    initially 0 except for numbers[0], the scale: the learnt weights are numbers[0] * weights, so
    that all of them can be shrunk in O(1). margin is numbers[0] <weights, z>.

    Raises
    ------
    KeslerError
        If an argument is out of range; on first use, if the function fails in a trial call (see
        :mod:`kesler.parts.trial_calls`) or Numba cannot compile it; later, if it raises an error,
        uses an index out of range or writes a number that is not finite. The weights of the row and
        their states are then restored.

    Notes
    -----
    The function is called once per trial, at O(n) for most algorithms. The position
    of a sub-expert is the same in all trials; those of weights of classes change when their table
    grows. Finite numbers that it
    writes to weights of other rows are not checked.

    References
    ----------
    Mesterharm (2001), Section 2.

    Examples
    --------
    >>> from kesler import LinearMax, threshold_algorithm
    >>> @threshold_algorithm(parameters=(0.5,))
    ... def lazy(parameters, positions, z, margin, weights, states, numbers):
    ...     if margin <= 0:
    ...         for j in range(len(z)):
    ...             weights[positions[j]] += parameters[0] * z[j]
    >>> LinearMax(lazy.with_parameters(0.25)).algorithm
    lazy(0.25,)
    """

    def decorate(function: Update) -> CustomAlgorithm:
        return CustomAlgorithm(
            update=function,
            begins_at=float(begins_at),
            n_states=n_states,
            n_numbers=n_numbers,
            values=tuple(float(p) for p in parameters),
        )

    return decorate if function is None else decorate(function)
