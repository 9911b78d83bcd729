"""The base class of feature maps, and a decorator for user-defined ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, overload

import numpy as np

from kesler.errors import KeslerError
from kesler.maps.view import View
from kesler.parts.user_part import UserPart, require_function

Statistic = Literal["first", "mean", "frequency", "contrast"]
"""The statistic p^r: the first instance of class r; the mean of its instances so far; the share of
its instances so far in which feature i is not zero; that share, and the one of all other rows."""

Elementwise = Callable[..., Any]


@dataclass(frozen=True)
class FeatureMap(View):
    """The view that class r has of an instance, phi_i(x, r) = g(x_i, p_i^r).

    p^r is a statistic of the instances of class r before this trial. To write a map, see
    :func:`feature_map`.

    Attributes
    ----------
    statistic : the statistic p^r: "first", "mean", "frequency" or "contrast"; "moments" only for
        :class:`GaussianRatio`, whose g receives numbers computed from mean and variance.
    zero_at_zero : whether g(0, p) = 0 for every p, so that zeros of sparse rows may be omitted.
    g : the function that is compiled, a plain function g(x, p, q) of float32; q holds `parameters`.
    """

    statistic: ClassVar[Statistic | Literal["moments"]]
    g: ClassVar[Elementwise]

    @property
    def looks_at(self) -> str:
        """The kind of arguments that the compiled loops pass to g."""
        return self.statistic


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomMap(UserPart, FeatureMap):
    """A user-defined map, made by :func:`feature_map`; pass it as ``feature_map=``."""

    g: Elementwise  # type: ignore[misc]
    statistic: Statistic = "mean"  # type: ignore[misc]
    zero_at_zero: bool = False  # type: ignore[misc]

    kind = "feature map"
    field = "g"

    def __post_init__(self) -> None:
        require_function(self.g, "a feature map")
        if self.statistic not in get_args(Statistic):
            names = ", ".join(get_args(Statistic))
            raise KeslerError(f"statistic={self.statistic!r} is not known: choose one of {names}")
        if len(self.values) > 4:
            raise KeslerError(
                f"a feature map takes at most 4 parameters, not {len(self.values)}: write other "
                "constants into the function"
            )
        if self.zero_at_zero:
            self._require_zero_at_zero()

    def _require_zero_at_zero(self) -> None:
        from kesler.parts.trial_calls import result_of

        q = tuple(np.float32(v) for v in (*self.values, 0, 0, 0, 0)[:4])
        n_shares = 2 if self.statistic == "contrast" else 1
        arguments = (q,) if self.g.__code__.co_argcount == 2 + n_shares else ()
        for p in (0.0, 0.01, 0.5, 1.0, -1.0, 3.0):
            shares = (p, 0.5)[:n_shares]
            value = result_of(self, np.float32(0), *map(np.float32, shares), *arguments)
            if value != 0:
                listed = ", ".join(map(str, shares))
                raise KeslerError(
                    f"{self!r} is declared zero at zero, but g(0, {listed}) = {value}: declare "
                    "zero_at_zero=False, or let g return 0 where x is 0"
                )


@overload
def feature_map(function: Elementwise) -> CustomMap: ...
@overload
def feature_map(
    *, statistic: Statistic = ..., zero_at_zero: bool = ..., parameters: tuple[float, ...] = ...
) -> Callable[[Elementwise], CustomMap]: ...
def feature_map(
    function: Elementwise | None = None,
    *,
    statistic: Statistic = "mean",
    zero_at_zero: bool = False,
    parameters: tuple[float, ...] = (),
) -> Any:
    r"""Make a feature map of a plain Python function, which is compiled and cached.

    .. math:: \phi_i(x, r) = g(x_i, p_i^r)

    Parameters
    ----------
    function : the function, if the decorator is written without parentheses.
    statistic : the statistic p^r: "first" (the first instance of class r), "mean" (of its instances
        so far), "frequency" (the share of its instances so far in which feature i is not zero) or
        "contrast" (that share, and the one of the instances of all other classes: the function is
        then g(x, p, others) or g(x, p, others, q)).
    zero_at_zero : whether g(0, p) = 0 for every p. Only such a map supports sparse rows, whose
        zeros are skipped. Checked at a few points.
    parameters : up to four numbers; if given, the function is g(x, p, q), q a tuple of 4 float32.

    Returns
    -------
    A decorator that turns ``g(x, p)`` or ``g(x, p, q)``, of float32 scalars, into a map.

    Raises
    ------
    KeslerError
        If the statistic is unknown, there are more than four parameters, or the map is declared
        zero at zero but is not; on first use, if the function fails in a trial call (see
        :mod:`kesler.parts.trial_calls`) or Numba cannot compile it; later, if it raises an error or
        returns a number that is not finite. The row is not learnt.

    Notes
    -----
    The function is called once for each non-zero and class, inlined in the loop over classes.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Eqs. 4, 9 and 10.

    Examples
    --------
    >>> from kesler import feature_map
    >>> @feature_map(statistic="mean")
    ... def squared_distance(x, p):
    ...     return -(x - p) * (x - p)
    >>> squared_distance.zero_at_zero
    False
    """

    def decorate(function: Elementwise) -> CustomMap:
        values = tuple(float(p) for p in parameters)
        return CustomMap(g=function, statistic=statistic, zero_at_zero=zero_at_zero, values=values)

    return decorate if function is None else decorate(function)
