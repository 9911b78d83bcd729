"""The inner product of the rows themselves."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.kernels.mercer import MercerKernel


def linear(inner, distance):
    """Return <x, z>."""
    return inner


@dataclass(frozen=True)
class Linear(MercerKernel):
    r"""The inner product itself: predictions as without a kernel, only slower.

    .. math:: K(x, z) = \langle x, z \rangle

    Notes
    -----
    Costs O(nnz) a support vector. To see what a kernel gains, or for rows of very many features.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006), Section 2.

    Examples
    --------
    >>> from kesler.kernels import Linear
    >>> Linear().parameters
    ()
    """

    k = staticmethod(linear)
