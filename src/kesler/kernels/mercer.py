"""The base class of Mercer kernels, and a decorator for user-defined ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, overload

from kesler.errors import KeslerError
from kesler.parts.user_part import UserPart, require_function

Arguments = Literal["products", "vectors"]
"""The arguments of a kernel function: <x, z> and ||x - z||^2, or the vectors x and z."""

Similarity = Callable[..., Any]


@dataclass(frozen=True)
class MercerKernel:
    """An inner product K(x, z) in some space, symmetric and positive semi-definite.

    Attributes
    ----------
    of : "products" for a function k(inner, distance, q) of the inner product <x, z> and the squared
        distance ||x - z||^2, as for nearly every common kernel: both are computed in one pass over
        the features for many z at once, and ignore zeros, so that rows may be sparse. "vectors" for
        any function k(x, z, q) of the vectors.
    k : the function that is compiled, a plain function; q holds `parameters`.
    """

    of: ClassVar[Arguments] = "products"
    k: ClassVar[Similarity]

    @property
    def share(self) -> float:
        """Sigma over the median squared distance, with q[0] = 1 / (2 sigma); 0 if fixed."""
        return 0.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """At most four numbers, passed to k as q."""
        return ()


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomKernel(UserPart, MercerKernel):
    """A user-defined kernel, made by :func:`mercer_kernel`; pass it as ``kernel=``."""

    k: Similarity  # type: ignore[misc]
    of: Arguments = "vectors"  # type: ignore[misc]

    kind = "Mercer kernel"
    field = "k"

    def __post_init__(self) -> None:
        require_function(self.k, "a Mercer kernel")
        if self.of not in get_args(Arguments):
            names = ", ".join(get_args(Arguments))
            raise KeslerError(f"of={self.of!r} is not known: choose one of {names}")
        if len(self.values) > 4:
            raise KeslerError(
                f"a Mercer kernel takes at most 4 parameters, not {len(self.values)}: write "
                "other constants into the function"
            )


@overload
def mercer_kernel(function: Similarity) -> CustomKernel: ...
@overload
def mercer_kernel(
    *, of: Arguments = ..., parameters: tuple[float, ...] = ...
) -> Callable[[Similarity], CustomKernel]: ...
def mercer_kernel(
    function: Similarity | None = None,
    *,
    of: Arguments = "vectors",
    parameters: tuple[float, ...] = (),
) -> Any:
    r"""Make a kernel of a plain Python function, which is compiled and cached.

    .. math:: h(x, r) = \sum_j \beta_{j,r} K(x_j, x)

    Parameters
    ----------
    function : the function, if the decorator is written without parentheses.
    of : arguments of the function. "vectors": x and z, float32 arrays of shape (n_features,), for
        dense rows only. "products": the numbers <x, z> and ||x - z||^2, which is much faster and
        also supports sparse rows.
    parameters : up to four numbers; if given, the function has a third argument q, a tuple of 4.

    Returns
    -------
    A decorator that turns ``k(x, z)`` or ``k(inner, distance)``, or either with ``q``, into a
    kernel. It is not checked that the kernel is symmetric and positive semi-definite: if it is not,
    squared norms may be negative, and are then treated as 0.

    Raises
    ------
    KeslerError
        If `of` is unknown or there are more than four parameters; on first use, if the function
        fails in a trial call (see :mod:`kesler.parts.trial_calls`) or Numba cannot compile it;
        later, if it raises an error, uses an index out of range or returns a number that is not
        finite. The row is not learnt.

    Notes
    -----
    The function is called once for each support vector and row (and class, with a feature map).
    For squared norms it is called with float64 arguments.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 4.

    Examples
    --------
    >>> from kesler import OnlineClassifier, mercer_kernel
    >>> @mercer_kernel(parameters=(2.0,))
    ... def overlap(x, z, q):
    ...     total = 0.0
    ...     for i in range(x.shape[0]):
    ...         total += min(abs(x[i]), abs(z[i]), q[0])
    ...     return total
    >>> OnlineClassifier("multi", kernel=overlap.with_parameters(1.0)).kernel
    overlap(1.0,)
    """

    def decorate(function: Similarity) -> CustomKernel:
        return CustomKernel(k=function, of=of, values=tuple(float(p) for p in parameters))

    return decorate if function is None else decorate(function)
