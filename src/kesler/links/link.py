"""The base class of links, and a decorator for user-defined ones."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

from kesler.errors import KeslerError
from kesler.parts.user_part import UserPart, require_function

WEIGHT, MASS, SCALE, EXTENT, ROOM = range(5)
"""The tasks of `geometry`, see :class:`Link`."""

Geometry = Callable[..., float]


@dataclass(frozen=True)
class Link:
    r"""The geometry of a learner: how weights follow from the sums of the updates.

    .. math:: v \mathrel{+}= \sum_r c_r \phi(x, r), \quad w = \text{scale} \cdot f(v)

    f is applied to each number. The scale of all weights is a function of one sum over them, so
    that a step costs O(nnz), whatever their number. To prevent overflow, both are computed relative
    to a reference, which is raised when a v exceeds its range.

    Attributes
    ----------
    geometry : the function that is compiled, a plain function ``geometry(task, v, reference, q)``
        of numbers. It returns for WEIGHT f(v); for MASS the term of v in the sum; for SCALE the
        factor, given the sum as v; for EXTENT the size of v, the largest of which becomes the
        reference; for ROOM whether f(v) is in range.
    normalised : whether weights are scaled.
    is_exact : whether steps are exact projections; else they are measured by the norm.
    exponent, factor : steps are measured by factor ||d||^2 in the norm of this exponent, the dual
        of the norm in which the geometry is strongly convex; exponent None if it is unknown.
    """

    geometry: ClassVar[Geometry]
    normalised: ClassVar[bool] = True

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers passed to `geometry` as q."""
        return ()

    @property
    def exponent(self) -> float | None:
        """The exponent of the norm of differences of views."""
        return None

    @property
    def factor(self) -> float:
        """The factor of the squared norm."""
        return 1.0

    @property
    def is_exact(self) -> bool:
        """Whether steps are exact projections."""
        return False

    @property
    def is_odd(self) -> bool:
        """Whether f(-v) = -f(v), so that scores are 0 at first, and above and below 0 alike."""
        return True


@dataclass(frozen=True)
class Linear(Link):
    r"""The link of the Euclidean geometry: weights are the sums themselves, w = v.

    Notes
    -----
    The learner stores no sums beside its weights, and the link adds no cost to a trial.

    References
    ----------
    Rosenblatt (1958).

    Examples
    --------
    >>> from kesler.links import Linear
    >>> Linear().exponent
    2.0
    """

    normalised = False

    @property
    def exponent(self) -> float:
        """The exponent of the Euclidean norm."""
        return 2.0


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomLink(UserPart, Link):
    """A user-defined link, made by :func:`link_function`; pass it as ``link=``."""

    function: Callable[..., float]
    exponent: float | None = None
    factor: float = 1.0
    normalised: Literal[False] = False  # type: ignore[misc]

    kind = "link"
    field = "function"

    def __post_init__(self) -> None:
        require_function(self.function, "a link")
        n_arguments = len(inspect.signature(self.function).parameters)
        if n_arguments not in (1, 2):
            raise KeslerError(
                f"the link {self!r} takes {n_arguments} arguments: write f(v), or f(v, q) with "
                "the parameters in q"
            )
        if self.exponent is not None and not self.exponent >= 1:
            raise KeslerError(
                f"the link {self!r} has exponent={self.exponent!r}: give the exponent of a norm, a "
                "number of 1 or more, or infinity for the maximum, or None if it is unknown"
            )
        if not 0 < self.factor < math.inf:
            raise KeslerError(
                f"the link {self!r} has factor={self.factor!r}: give a finite number above 0, by "
                "which squared norms are multiplied"
            )

    @property
    def at_zero(self) -> float:
        """The initial weight, f(0)."""
        weight = self._at(0.0)
        if not (isinstance(weight, Real) and math.isfinite(weight)):
            raise KeslerError(
                f"{self.full_name} is no finite number at 0, but f(0) is the initial weight: "
                "define f(0) as a finite number"
            )
        return float(weight)

    @property
    def is_odd(self) -> bool:
        """Whether f(-v) = -f(v) at 0 and at numbers from 1 / 64 to 16, where these are numbers."""
        tried = (0.0, *(2.0**e for e in range(-6, 5)))
        return all(_are_opposite(self._beyond(v), self._beyond(-v)) for v in tried)

    def _beyond(self, v: float) -> float:
        """Return f(v), and infinity where Python raises an error for what float64 cannot hold."""
        try:
            return float(self._at(v))
        except KeslerError as error:
            if isinstance(error.__cause__, OverflowError):
                return math.inf
            raise
        except OverflowError:  # an integer of Python
            return math.inf

    def _at(self, v: float) -> Any:
        """Return f(v)."""
        from kesler.parts.trial_calls import result_of

        q = (self.values,) if len(inspect.signature(self.function).parameters) == 2 else ()
        return result_of(self, v, *q)


def _are_opposite(up: float, down: float) -> bool:
    """Return whether two results are of opposite signs and equal size, as far as they are known."""
    if math.isnan(up) or math.isnan(down) or (math.isinf(up) and math.isinf(down)):
        return True
    return math.isclose(up, -down, rel_tol=1e-9)


def link_function(
    function: Callable[..., float] | None = None,
    *,
    parameters: tuple[float, ...] = (),
    exponent: float | None = None,
    factor: float = 1.0,
) -> Any:
    r"""Make a link of a plain Python function, which is compiled and cached.

    .. math:: w = f(v), \quad v \mathrel{+}= \sum_r c_r \phi(x, r)

    Learners with such a link are the quasi-additive algorithms.

    Parameters
    ----------
    function : f(v) or f(v, q), of a float64 and an array of parameters, non-decreasing in v. The
        initial weight is f(0).
    parameters : numbers passed to the function as q.
    exponent : exponent of the norm in which differences of views are measured, 1 or more, or
        infinity for the maximum; None if it is unknown. Rules that require norms need it.
    factor : factor of the squared norm, above 0. The bounds of these rules hold if the sum F of the
        integrals of f satisfies F(v + d) <= F(v) + <w, d> + factor ||d||^2 / 2; for exponent 2 that
        is a bound on the slope of f.

    Returns
    -------
    CustomLink
        For use as a decorator, with parameters or without.

    Raises
    ------
    KeslerError
        If it is not a plain function of one or two arguments, or the norm is none; on first use, if
        it fails in a trial call (see :mod:`kesler.parts.trial_calls`) or Numba cannot compile it. A
        step for which it raises an error, or that would make a weight not finite, is not taken, and
        raises an error; the steps of the other weights of the row are taken.

    Notes
    -----
    Without an exponent only rules that require losses alone can be used. Rules that compare each
    class with the rest, such as "ovr-squared", require f(-v) = -f(v), which is looked at for v = 0
    and powers of 2 from 1 / 64 to 16. The function is called once for each updated weight.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997); Mesterharm (2001), Section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from kesler import OnlineClassifier, link_function
    >>> @link_function
    ... def cubic(v):
    ...     return v * v * v
    >>> OnlineClassifier(update="perceptron", link=cubic).link
    cubic
    >>> @link_function(exponent=2.0, factor=2.0)
    ... def steep_at_zero(v):
    ...     return v + np.tanh(v)
    >>> OnlineClassifier(update="pa1", link=steep_at_zero).link
    steep_at_zero
    """

    def decorate(function: Callable[..., float]) -> CustomLink:
        return CustomLink(
            function=function,
            values=tuple(float(p) for p in parameters),
            exponent=None if exponent is None else float(exponent),
            factor=float(factor),
        )

    return decorate if function is None else decorate(function)
