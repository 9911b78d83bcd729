"""The loops around a feature map phi_i(x, r) = g(x_i, p_i^r), made once for each g."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit import (
    DOUBLES,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    by_address,
    callback_address,
    instantiate,
)

PROJECT, PRODUCTS, SQUARED_NORMS, PHI, TABLE = range(5)

# task, indices, values, vectors, statistics, totals, k, parameters, out, products
MAP = types.void(
    INT, INDICES, FLOATS, FLOAT_TABLE, FLOAT_TABLE, FLOATS, INT, FLOATS, FLOATS, DOUBLES
)
call_map = by_address(MAP)


def g(x: Any, p: Any, q: Any) -> Any:
    """Stand for the elementwise function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def map_loops(  # type: ignore[no-untyped-def]
    task, indices, values, vectors, statistics, totals, k, parameters, out, products
):
    """Add to `out` or `products`, for row x with the statistic p^r = statistics[:, r] / totals[r].

    PROJECT: out[r] += <u^r, phi(x, r)> for r < k, u^r = vectors[:, r] (or its only column);
    PRODUCTS: products[r] += <u, phi(x, r)> for r < k, u the only column;
    SQUARED_NORMS: products[r] += ||phi(x, r)||^2 for r < k;
    PHI: out[j] = phi(x, k) at the j-th entry of the row;
    TABLE: vectors[j, r] = phi(x, r) at the j-th entry of the row, for r < k.
    """
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    if task == PROJECT and vectors.shape[1] == 1:
        for j in range(indices.shape[0]):
            x, u, sums = values[j], vectors[j, 0], statistics[indices[j]]
            for r in range(k):
                out[r] += u * g(x, sums[r] / totals[r], q)
    elif task == PROJECT:
        for j in range(indices.shape[0]):
            x, us, sums = values[j], vectors[j], statistics[indices[j]]
            for r in range(k):
                out[r] += us[r] * g(x, sums[r] / totals[r], q)
    elif task == PRODUCTS:
        # In double: what counts are differences of such products, which cancel.
        for j in range(indices.shape[0]):
            x, u, sums = values[j], np.float64(vectors[j, 0]), statistics[indices[j]]
            for r in range(k):
                products[r] += u * np.float64(np.float32(g(x, sums[r] / totals[r], q)))
    elif task == SQUARED_NORMS:
        for j in range(indices.shape[0]):
            x, sums = values[j], statistics[indices[j]]
            for r in range(k):
                phi = np.float64(np.float32(g(x, sums[r] / totals[r], q)))
                products[r] += phi * phi
    elif task == TABLE:
        for j in range(indices.shape[0]):
            x, sums = values[j], statistics[indices[j]]
            for r in range(k):
                vectors[j, r] = g(x, sums[r] / totals[r], q)
    else:
        for j in range(indices.shape[0]):
            out[j] = g(values[j], statistics[indices[j], k] / totals[k], q)


def without_parameters(x, p, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p)  # type: ignore[call-arg]


@cache
def map_address(function: Callable[..., Any]) -> int:
    """Return the address of the loops around g(x, p) or g(x, p, q), q a tuple of 4 numbers."""
    if function.__code__.co_argcount == 2:
        function = instantiate(without_parameters, "g", function)
    return callback_address(instantiate(map_loops, "g", function), MAP)
