"""Lengths: sums of squares, and of the powers of other norms."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined


@inlined
def squared_length(values):
    """Return ||x||^2, as double."""
    total = 0.0
    for j in range(values.shape[0]):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


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
