"""Mercer kernels: inner products in an implicit feature space."""

from __future__ import annotations

from typing import Literal

from kesler.kernels.mercer import CustomKernel, MercerKernel, mercer_kernel
from kesler.kernels.polynomial import Linear, Polynomial
from kesler.kernels.rbf import RBF
from kesler.parts.user_part import part_of

__all__ = [
    "KERNELS",
    "RBF",
    "CustomKernel",
    "Linear",
    "MercerKernel",
    "Polynomial",
    "mercer_kernel",
    "resolve_kernel",
]

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
    if isinstance(kernel, str) and kernel == "rbf":
        return RBF(sigma)
    more = (
        ", None for weights, or in Python a kernel of kesler.kernels or a function decorated with "
        "kesler.mercer_kernel"
    )
    return part_of("kernel", kernel, MercerKernel, KERNELS, more)
