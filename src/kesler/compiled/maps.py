"""The loops around a feature map phi_i(x, r), made once for each function of it.

What is kept of each class stands in layers of (feature, class); a map looks at one of them, or at
three that follow each other, and at a level of each feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    by_address,
    callback_address,
    instantiate,
)
from kesler.compiled.lanes import LANES, first_of, load, store
from kesler.compiled.learner import (
    COUNT,
    MET,
    ORIGIN,
    OTHERS,
    OWN,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    PSEUDO,
)

PROJECT, PRODUCTS, SQUARED_NORMS, PHI, TABLE = np.arange(5)  # no literals, as in `learner.py`
LOWEST = -1e30  # of the logarithm of a density

# task, indices, values, vectors, statistics, totals, divisors, pooled, layer, k, parameters, out,
# products
MAP = types.void(
    *(INT, INDICES, FLOATS, FLOAT_TABLE, FLOAT_STACK, FLOAT_TABLE, FLOAT_TABLE, DOUBLE_TABLE),
    *(INT, INT, FLOATS, FLOATS, DOUBLES),
)
call_map = by_address(MAP)


def g(*arguments: Any) -> Any:
    """Stand for the map's own function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def ahead(x: Any, feature: Any, pooled: Any) -> Any:
    """Stand for what is computed once a feature: what takes the place of x, and the level."""
    raise NotImplementedError


def at(*arguments: Any) -> Any:
    """Stand for phi_i(x, r)."""
    raise NotImplementedError


def look(array: Any, row: Any, column: Any) -> Any:
    """Stand for a look at a number of a table, or at the line of sixteen that begins with it."""
    raise NotImplementedError


def fill(*arguments: Any) -> Any:
    """Stand for the loop over the classes of a row of the table."""
    raise NotImplementedError


def map_loops(  # type: ignore[no-untyped-def]
    task,
    indices,
    values,
    vectors,
    statistics,
    totals,
    divisors,
    pooled,
    layer,
    k,
    parameters,
    out,
    products,
):
    """Add to `out` or `products`, for row x.

    PROJECT: out[r] += <u^r, phi(x, r)> for r < k, u^r = vectors[:, r] (or its only column);
    PRODUCTS: products[r] += <u, phi(x, r)> for r < k, u the only column;
    SQUARED_NORMS: products[r] += ||phi(x, r)||^2 for r < k;
    PHI: out[j] = phi(x, k) at the j-th entry of the row;
    TABLE: vectors[j, r] = phi(x, r) at the j-th entry of the row, for r < k, in columns by whole
    lines; those behind the last class hold 0 as before.
    """
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    last = statistics.shape[0] - 1
    second, third = statistics[min(layer + 1, last)], statistics[min(layer + 2, last)]
    kept = (statistics[layer], second, third, totals[layer], divisors)
    # Unsigned indices spare the loops the question whether they count from the end.
    n, stop = indices.shape[0], np.uintp(k)
    if task == PROJECT and vectors.shape[1] == 1:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            u = vectors[j, 0]
            for r in range(stop):
                out[r] += u * at(x, level, f, r, kept, q)
    elif task == PROJECT:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            for r in range(stop):
                out[r] += vectors[j, r] * at(x, level, f, r, kept, q)
    elif task == PRODUCTS:
        # In double: what counts are differences of such products, which cancel.
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            v = np.float64(vectors[j, 0])
            for r in range(stop):
                products[r] += v * np.float64(np.float32(at(x, level, f, r, kept, q)))
    elif task == SQUARED_NORMS:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            for r in range(stop):
                phi = np.float64(np.float32(at(x, level, f, r, kept, q)))
                products[r] += phi * phi
    elif task == TABLE:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            fill(vectors, j, x, level, f, k, kept, q)
    else:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            out[j] = at(x, level, f, stop, kept, q)


def fill_each(vectors, j, x, level, f, k, kept, q):  # type: ignore[no-untyped-def]
    """vectors[j, r] = phi_i(x, r), r < k."""
    row = np.uintp(j)
    for r in range(np.uintp(k)):
        vectors[row, r] = at(x, level, f, r, kept, q)


def fill_lines(vectors, j, x, level, f, k, kept, q):  # type: ignore[no-untyped-def]
    """Do the same sixteen classes at a time, and leave zeros behind the last."""
    for r in range(0, k, LANES):
        line = at(x, level, f, r, kept, q)
        store(vectors, j * vectors.shape[1] + r, first_of(line, k - r))


def one_at(array, row, column):  # type: ignore[no-untyped-def]
    """Look at one number."""
    return array[row, column]


def line_at(array, row, column):  # type: ignore[no-untyped-def]
    """Look at the sixteen that begin with it."""
    return load(array, np.intp(row) * array.shape[1] + column)


def as_it_is(x, feature, pooled):  # type: ignore[no-untyped-def]
    """Return x; the feature has no level."""
    return x, x


def with_count(x, feature, pooled):  # type: ignore[no-untyped-def]
    """Return x and how often the feature was not zero, in all rows."""
    return x, np.float32(pooled[feature, COUNT])


def with_density(x, feature, pooled):  # type: ignore[no-untyped-def]
    """Return x as seen from the origin, and the logarithm of its density among all rows."""
    value = np.float64(x)
    off = (value - pooled[feature, POOLED_MEAN]) * pooled[feature, POOLED_SHARPNESS]
    level = max(pooled[feature, POOLED_HEIGHT] - off * off, LOWEST)
    return np.float32(value - pooled[feature, ORIGIN]), np.float32(level)


def of_statistic(x, level, f, r, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p), p the statistic of the class."""
    return g(x, kept[0][f, r] / kept[3][r], q)


def of_contrast(x, level, f, r, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p'), the shares of rows of the class and of all others, smoothed."""
    own, divisors = kept[0][f, r], kept[4]
    pseudo = level * divisors[PSEUDO, r]
    nothing, all_of_them = np.float32(0), np.float32(1)
    # Divisions, since equal shares are then equal in every bit, and cancel to nothing.
    others = max((level - own + pseudo) / divisors[OTHERS, r], nothing)
    share = (own + pseudo) / divisors[OWN, r]
    return g(x, min(share, all_of_them), min(others, all_of_them), q)


def of_ratio(x, level, f, r, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p') of a g that looks at p / p' alone: both multiplied by their divisors."""
    own, divisors = look(kept[0], f, r), kept[4]
    pseudo = look(divisors, PSEUDO, r) * level
    others = (level - own + pseudo) * look(divisors, OWN, r)
    return g(x, (own + pseudo) * look(divisors, OTHERS, r), others, q)


def of_moments(x, level, f, r, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, level, centre, sharpness, height), 0 for a class without rows."""
    return kept[4][MET, r] * g(x, level, kept[0][f, r], kept[1][f, r], kept[2][f, r], q)


def without_parameters(x, p, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p)


def contrast_without_parameters(x, p, rest, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p, rest)


# What a map looks at once a feature and for each class; how a g without parameters is called.
LOOKS: dict[str, tuple[Callable[..., Any], ...]] = {
    "contrast": (with_count, of_contrast, contrast_without_parameters),
    "ratio": (with_count, of_ratio, contrast_without_parameters),
    "moments": (with_density, of_moments, without_parameters),
}
BY_LINES = ("ratio",)
"""Where a g is made of arithmetic alone, in which a line of numbers may stand for one."""


@cache
def map_address(function: Callable[..., Any], looks_at: str) -> int:
    """Return the address of the loops around a map's function, given what it looks at."""
    once, each, plain = LOOKS.get(looks_at, (as_it_is, of_statistic, without_parameters))
    if function.__code__.co_argcount == plain.__code__.co_argcount - 1:
        function = instantiate(plain, "g", function)
    each = instantiate(each, "g", function)
    of_one = instantiate(each, "look", one_at)
    by_lines = looks_at in BY_LINES
    of_some = instantiate(each, "look", line_at) if by_lines else of_one
    row = instantiate(fill_lines if by_lines else fill_each, "at", of_some, allocates=False)
    loops = instantiate(map_loops, "ahead", once, allocates=False)
    loops = instantiate(loops, "at", of_one, allocates=False)
    loops = instantiate(loops, "fill", row, allocates=False)
    return callback_address(loops, MAP, allocates=False)
