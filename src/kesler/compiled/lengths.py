"""Lengths: sums of squares, and of the powers of other norms, the largest number among them."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.lanes import LANES, load, spread, total_of


@inlined
def squared_length(values):
    """Return ||x||^2, as double."""
    total = 0.0
    for j in range(values.shape[0]):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


@inlined
def squared_length_from(numbers, first, n):
    """Return the sum of the squares of numbers of type double from one to before the n-th.

    By lines, so that no square waits for the sum of those before.
    """
    line, in_lines, total = spread(0.0), first + (n - first) // LANES * LANES, 0.0
    for j in range(first, in_lines, LANES):
        some = load(numbers, j)
        line = line + some * some
    for j in range(in_lines, n):
        total += numbers[j] * numbers[j]
    return total_of(line) + total


@inlined
def largest(phi):
    """Return the largest |phi_j|, NaN if one is NaN.

    Without their signs the bits of numbers, read as integers, are in the order of the numbers, and
    those of NaN come last: of integers LLVM finds the largest a vector at a time.
    """
    bits, most = phi.view(np.int32), np.int32(0)
    for j in range(bits.shape[0]):
        most = max(most, np.int32(bits[j] & np.int32(0x7FFFFFFF)))
    return np.float64(np.int32(most).view(np.float32))


@inlined
def with_power(total, value, times, exponent):
    """Add a number, so many times, to the sum of powers of a norm, or to the largest."""
    if times == 0:
        return total
    if exponent == np.inf:
        return max(total, abs(value))
    return total + times * abs(value) ** exponent


@inlined
def squared_norm(total, exponent, factor):
    """Return factor ||d||^2, given the sum of powers of d."""
    if exponent == np.inf:
        return factor * total * total
    return factor * total ** (2.0 / exponent)
