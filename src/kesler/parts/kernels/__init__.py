"""Mercer kernels: inner products in an implicit feature space."""

from __future__ import annotations

from typing import Literal

from kesler.errors import KeslerError
from kesler.parts.kernels.mercer import MercerKernel
from kesler.parts.kernels.polynomial import Linear, Polynomial
from kesler.parts.kernels.rbf import RBF

KERNELS: dict[str, type[MercerKernel]] = {
    "rbf": RBF,
    "polynomial": Polynomial,
    "linear": Linear,
}
"""The kernels by the names that `OnlineClassifier` and the command line accept."""


def resolve_kernel(
    kernel: str | MercerKernel, sigma: float | Literal["auto"] = "auto"
) -> MercerKernel:
    """Return the kernel for a name, or the kernel itself; `sigma` is the parameter of "rbf".

    Examples
    --------
    >>> resolve_kernel("rbf", 0.07), resolve_kernel("polynomial")
    (RBF(sigma=0.07), Polynomial(degree=3, constant=1.0, scale=1.0))
    """
    if isinstance(kernel, MercerKernel):
        return kernel
    if isinstance(kernel, str) and kernel == "rbf":
        return RBF(sigma)
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    raise KeslerError(
        f"kernel={kernel!r} is not known: choose one of {', '.join(KERNELS)}, a kernel of "
        "kesler.kernels, a function decorated with kesler.mercer_kernel, or None for weights"
    )
