"""Mercer kernels: inner products in an implicit feature space."""

from kesler.parts.kernels import KERNELS, resolve_kernel
from kesler.parts.kernels.mercer import CustomKernel, MercerKernel, mercer_kernel
from kesler.parts.kernels.polynomial import Linear, Polynomial
from kesler.parts.kernels.rbf import RBF

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
