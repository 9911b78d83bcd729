"""What a link is, and how a user makes one."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from kesler.errors import KeslerError
from kesler.parts.description import describe, describe_custom, reduce_custom, require_function

WEIGHT, MASS, SCALE, EXTENT, ROOM = range(5)
"""What `geometry` is asked for, see :class:`Link`."""

Geometry = Callable[..., float]


@dataclass(frozen=True)
class Link:
    r"""The geometry of a learner: how weights follow from the sums that updates make.

    .. math:: v \mathrel{+}= \sum_r c_r \phi(x, r), \quad w = \text{scale} \cdot f(v)

    f is applied to each number. The scale, one for all weights, is a function of a sum over all of
    them, so that a step costs O(nnz) whatever their number. To keep numbers in range, both are
    computed relative to a reference, which is raised when a v outgrows it.

    Attributes
    ----------
    geometry : the compiled part, a plain function ``geometry(task, v, reference, q)`` of numbers:
        WEIGHT, f(v); MASS, what v adds to the sum; SCALE, the factor, given the sum as v; EXTENT,
        the size of v, of which the largest becomes the reference; ROOM, whether f(v) is in range.
    normalised : whether there is a scale.
    exponent, factor : steps are measured by factor ||d||^2 in the norm of this exponent, the dual
        of the one in which the geometry is strongly convex; exponent None if that is not known.
    """

    geometry: ClassVar[Geometry]
    normalised: ClassVar[bool] = True

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that `geometry` is given as q."""
        return ()

    @property
    def exponent(self) -> float | None:
        """The exponent of the norm of differences of views."""
        return None

    @property
    def factor(self) -> float:
        """What its square is multiplied by."""
        return 1.0

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)


@dataclass(frozen=True)
class Linear(Link):
    r"""The link of the Euclidean geometry: weights are the sums themselves, w = v.

    Notes
    -----
    The learner keeps no sums beside its weights: nothing is added to the cost of a trial.

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
        """The Euclidean norm."""
        return 2.0


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomLink(Link):
    """A user's own link, made by :func:`link_function`; pass it as ``link=``."""

    function: Callable[..., float]
    values: tuple[float, ...] = ()
    normalised: Literal[False] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        require_function(self.function, "a link")
        n_arguments = len(inspect.signature(self.function).parameters)
        if n_arguments not in (1, 2):
            raise KeslerError(
                f"the link {self!r} takes {n_arguments} arguments: write f(v), or f(v, q) with "
                "the parameters in q"
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers given by :meth:`with_parameters`."""
        return self.values

    @property
    def at_zero(self) -> float:
        """The weight that a learner begins with."""
        q = (self.values,) if len(inspect.signature(self.function).parameters) == 2 else ()
        try:
            weight = float(self.function(0.0, *q))
        except ArithmeticError as error:
            weight, why = math.nan, f" ({error})"
        else:
            why = ""
        if not math.isfinite(weight):
            raise KeslerError(
                f"the link {self!r} is no finite number at 0{why}, where weights begin: let f(0) "
                "be one"
            )
        return weight

    def with_parameters(self, *values: float) -> CustomLink:
        """Return the same link with other numbers in q."""
        return replace(self, values=tuple(float(value) for value in values))

    def describe(self) -> dict[str, Any]:
        """Return the name of the function and the parameters."""
        return describe_custom(self.function, self.values)

    def __reduce__(self) -> Any:
        return reduce_custom(self, self.function)

    def __repr__(self) -> str:
        return f"{self.function.__qualname__}{self.values or ''}"


def link_function(
    function: Callable[..., float] | None = None, *, parameters: tuple[float, ...] = ()
) -> Any:
    r"""Make a link of a plain Python function; it runs compiled, cached in its own file.

    .. math:: w = f(v), \quad v \mathrel{+}= \sum_r c_r \phi(x, r)

    Learners with such a link are the quasi-additive algorithms.

    Parameters
    ----------
    function : f(v) or f(v, q), of a float64 and an array of parameters, not decreasing in v.
        Weights begin at f(0).
    parameters : numbers handed to the function as q.

    Returns
    -------
    CustomLink
        For use as a decorator, with parameters or without.

    Raises
    ------
    KeslerError
        If it is no plain function of one or two arguments; on first use, if Numba cannot compile
        it. A step that would make a weight no number is not taken, and reported as an error.

    Notes
    -----
    Nothing is known of its geometry, so that only rules that look at losses alone can be used with
    it. Called once for each weight that moves.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997); Mesterharm (2001), Section 4.3.

    Examples
    --------
    >>> from kesler import OnlineClassifier, link_function
    >>> @link_function
    ... def cubic(v):
    ...     return v * v * v
    >>> OnlineClassifier(update="perceptron", link=cubic).link
    cubic
    """

    def decorate(function: Callable[..., float]) -> CustomLink:
        return CustomLink(function=function, values=tuple(float(p) for p in parameters))

    return decorate if function is None else decorate(function)
