"""Slices: short arrays cut out of one lie side by side, and none in another."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types

from kesler.compiled.jit.decorators import FLOATS, INT, INTS, kernel
from kesler.compiled.jit.simd import cut, length_of


@kernel(INT(INT, INT))
def capacity_for(n, k):
    """Return how long the array is that `fill` cuts."""
    return length_of((n, (k, n), 0, (2, k, n)))


@kernel(types.void(INT, INT, FLOATS, INTS))
def fill(n, k, array, sizes):
    """Write 1, 2 and 3 to all of the slices of an array, and their sizes."""
    one, table, nothing, stack = cut(array, (n, (k, n), 0, (2, k, n)))
    for i in range(n):
        one[i] += 1
    for i in range(k):
        for j in range(n):
            table[i, j] += 2
            stack[0, i, j] += 3
            stack[1, i, j] += 3
    sizes[0], sizes[1], sizes[2], sizes[3] = one.size, table.size, nothing.size, stack.size


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 40), st.integers(0, 5))
def test_slices_lie_side_by_side(n, k):
    array, sizes = np.zeros(capacity_for(n, k), dtype=np.float32), np.zeros(4, dtype=np.int64)
    fill(n, k, array, sizes)
    lengths = [n, k * n, 0, 2 * k * n]
    lines = [-(-length // 16) * 16 for length in lengths]
    assert sizes.tolist() == lengths and len(array) == sum(lines)
    expected = [
        np.pad(np.full(a, i), (0, b - a))
        for i, a, b in zip((1, 2, 0, 3), lengths, lines, strict=True)
    ]
    assert np.array_equal(array, np.concatenate(expected))
