"""The linear kernel and the polynomial kernel."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import keep_integer, keep_number
from kesler.kernels.mercer import MercerKernel


def linear(inner, distance):
    """Return <x, z>."""
    return inner


@dataclass(frozen=True)
class Linear(MercerKernel):
    r"""The inner product: the same predictions as without a kernel, but slower.

    .. math:: K(x, z) = \langle x, z \rangle

    Notes
    -----
    O(nnz) per support vector. Use it as a baseline for other kernels, or for rows with very many
    features.

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


def polynomial(inner, distance, q):
    """Return (q[1] <x, z> + q[2]) to the power of q[0]."""
    base = q[1] * inner + q[2]
    power = base
    for _ in range(int(q[0]) - 1):
        power = power * base
    return power


@dataclass(frozen=True)
class Polynomial(MercerKernel):
    r"""A power of the inner product; its features are all products of up to `degree` features.

    .. math:: K(x, z) = (\text{scale} \langle x, z \rangle + \text{constant})^{\text{degree}}

    Parameters
    ----------
    degree : int from 1 on, default 3
        Maximum number of features in a product. Larger values give more flexible boundaries and
        larger kernel values.
    constant : float >= 0, default 1.0
        Larger values give products of fewer features more weight; with 0 only products of `degree`
        features remain.
    scale : float > 0, default 1.0
        Factor of the inner products. With 1 / n_features and features of absolute value up to 1,
        powers do not grow.

    Raises
    ------
    KeslerError
        If a number is out of its range.

    Notes
    -----
    O(nnz + degree) per support vector.

    References
    ----------
    Aizerman, Braverman and Rozonoer (1964); Vapnik (1998), Section 10.

    Examples
    --------
    >>> from kesler.kernels import Polynomial
    >>> Polynomial(degree=2)
    Polynomial(degree=2, constant=1.0, scale=1.0)
    """

    degree: int = 3
    constant: float = 1.0
    scale: float = 1.0

    k = staticmethod(polynomial)

    def __post_init__(self) -> None:
        keep_integer(self, "degree", 1)
        keep_number(self, "scale", above=0)
        keep_number(self, "constant", ", or the kernel is not an inner product", least=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The degree, the scale and the constant."""
        return (float(self.degree), self.scale, self.constant)
