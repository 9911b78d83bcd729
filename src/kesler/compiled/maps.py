"""The loops around a feature map phi_i(x, r), made once for each function of it.

What is kept of each class stands in layers of (feature, class); a map looks at one of them, or at
three that follow each other, and at a level of each feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from kesler.compiled.lanes import LANES, first_of, load, spread, store
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

# task, indices, values, vectors, weights, statistics, totals, divisors, pooled, layer, k,
# parameters, out, products
MAP = types.void(
    *(INT, INDICES, FLOATS, FLOAT_TABLE, FLOATS, FLOAT_STACK, FLOAT_TABLE, FLOAT_TABLE),
    *(DOUBLE_TABLE, INT, INT, FLOATS, FLOATS, DOUBLES),
)
call_map = by_address(MAP)


def g(*arguments: Any) -> Any:
    """Stand for the map's own function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def ahead(x: Any, feature: Any, pooled: Any) -> Any:
    """Stand for what is computed once a feature: what takes the place of x, and the level."""
    raise NotImplementedError


def beside(*arguments: Any) -> Any:
    """Stand for what is looked at once a class."""
    raise NotImplementedError


def at(*arguments: Any) -> Any:
    """Stand for phi_i(x, r)."""
    raise NotImplementedError


def look(array: Any, row: Any, column: Any) -> Any:
    """Stand for a look at a number of a table, or at the line of sixteen that begins with it."""
    raise NotImplementedError


def fill(*arguments: Any) -> Any:
    """Stand for the loops that fill a table."""
    raise NotImplementedError


def map_loops(  # type: ignore[no-untyped-def]
    task,
    indices,
    values,
    vectors,
    weights,
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

    PROJECT: out[r] += <u^r, phi(x, r)> for r < k, u^r = weights, or vectors[:, r] without;
    PRODUCTS: products[r] += <weights, phi(x, r)> for r < k;
    SQUARED_NORMS: products[r] += ||phi(x, r)||^2 for r < k;
    PHI: out[j] = phi(x, k) at the j-th entry of the row;
    TABLE: vectors[j, r] = phi(x, r) at the j-th entry of the row, for r < k, and if there are
    weights out[r] += <weights, phi(x, r)>. Both go by whole lines of classes; behind the last one
    the table holds 0 as before.
    """
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    last = statistics.shape[0] - 1
    second, third = statistics[min(layer + 1, last)], statistics[min(layer + 2, last)]
    kept = (statistics[layer], second, third, totals[layer], divisors)
    # Unsigned indices spare the loops the question whether they count from the end.
    n, stop = indices.shape[0], np.uintp(k)
    if task == PROJECT and weights.shape[0] > 0:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            u = weights[j]
            for r in range(stop):
                out[r] += u * at(x, level, f, r, beside(kept, r), kept, q)
    elif task == PROJECT:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            for r in range(stop):
                out[r] += vectors[j, r] * at(x, level, f, r, beside(kept, r), kept, q)
    elif task == PRODUCTS:
        # In double: what counts are differences of such products, which cancel.
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            v = np.float64(weights[j])
            for r in range(stop):
                products[r] += v * np.float64(
                    np.float32(at(x, level, f, r, beside(kept, r), kept, q))
                )
    elif task == SQUARED_NORMS:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            for r in range(stop):
                phi = np.float64(np.float32(at(x, level, f, r, beside(kept, r), kept, q)))
                products[r] += phi * phi
    elif task == TABLE:
        fill(vectors, weights, indices, values, pooled, k, kept, q, out)
    else:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(values[j], f, pooled)
            out[j] = at(x, level, f, stop, beside(kept, stop), kept, q)


def fill_each(vectors, weights, indices, values, pooled, k, kept, q, out):  # type: ignore[no-untyped-def]
    """vectors[j, r] = phi_i(x, r) at the j-th entry, r < k; with weights, sum the products."""
    n = indices.shape[0]
    for j in range(np.uintp(n)):
        f = np.uintp(indices[j])
        x, level = ahead(values[j], f, pooled)
        for r in range(np.uintp(k)):
            vectors[j, r] = at(x, level, f, r, beside(kept, r), kept, q)
    for r in range(0, k if weights.shape[0] > 0 else 0, LANES):
        total = load(out, r)
        for j in range(n):
            total = total + load(vectors, j * vectors.shape[1] + r) * weights[np.uintp(j)]
        store(out, r, total)


def fill_lines(vectors, weights, indices, values, pooled, k, kept, q, out):  # type: ignore[no-untyped-def]
    """Do the same sixteen classes at a time, and leave zeros behind the last.

    Of two lines at most, what is looked at once a class stays in registers, and so do the sums.
    Where there are more, the lines of a feature come one after the other, as memory has them.
    """
    is_summed = weights.shape[0] > 0
    if k <= 2 * LANES:
        s = LANES if LANES < k else 0
        of_class, of_other = beside(kept, 0), beside(kept, s)
        total, other_total = spread(np.float32(0)), spread(np.float32(0))
        if is_summed:
            total, other_total = load(out, 0), load(out, s)
        for j in range(indices.shape[0]):
            f, row = np.uintp(indices[j]), j * vectors.shape[1]
            x, level = ahead(values[j], f, pooled)
            line = first_of(at(x, level, f, 0, of_class, kept, q), k)
            other = first_of(at(x, level, f, s, of_other, kept, q), k - s)
            store(vectors, row, line)
            store(vectors, row + s, other)
            if is_summed:
                total = total + line * weights[np.uintp(j)]
                other_total = other_total + other * weights[np.uintp(j)]
        if is_summed:
            store(out, 0, total)
            store(out, s, other_total)
    else:
        for j in range(indices.shape[0]):
            f, row = np.uintp(indices[j]), j * vectors.shape[1]
            x, level = ahead(values[j], f, pooled)
            for r in range(0, k, LANES):
                line = first_of(at(x, level, f, r, beside(kept, r), kept, q), k - r)
                store(vectors, row + r, line)
                if is_summed:
                    store(out, r, load(out, r) + line * weights[np.uintp(j)])


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


def its_total(kept, r):  # type: ignore[no-untyped-def]
    """Look at how many rows of the class there were."""
    return kept[3][r]


def its_divisors(kept, r):  # type: ignore[no-untyped-def]
    """Look at the share of pseudo-rows, and what counts of the class and others are divided by."""
    divisors = kept[4]
    return look(divisors, PSEUDO, r), look(divisors, OWN, r), look(divisors, OTHERS, r)


def whether_met(kept, r):  # type: ignore[no-untyped-def]
    """Look at whether there were rows of the class, 0 or 1."""
    return kept[4][MET, r]


def of_statistic(x, level, f, r, total, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p), p the statistic of the class."""
    return g(x, kept[0][f, r] / total, q)


def of_contrast(x, level, f, r, divisors, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p'), the shares of rows of the class and of all others, smoothed."""
    own, pseudo = kept[0][f, r], level * divisors[0]
    nothing, all_of_them = np.float32(0), np.float32(1)
    # Divisions, since equal shares are then equal in every bit, and cancel to nothing.
    others = max((level - own + pseudo) / divisors[2], nothing)
    share = (own + pseudo) / divisors[1]
    return g(x, min(share, all_of_them), min(others, all_of_them), q)


def of_ratio(x, level, f, r, divisors, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p') of a g that looks at p / p' alone: both multiplied by their divisors."""
    own, pseudo = look(kept[0], f, r), divisors[0] * level
    others = (level - own + pseudo) * divisors[1]
    return g(x, (own + pseudo) * divisors[2], others, q)


def of_moments(x, level, f, r, is_met, kept, q):  # type: ignore[no-untyped-def]
    """Return g(x, level, centre, sharpness, height), 0 for a class without rows."""
    return is_met * g(x, level, kept[0][f, r], kept[1][f, r], kept[2][f, r], q)


def without_parameters(x, p, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p)


def contrast_without_parameters(x, p, rest, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p, rest)


# What a map looks at once a feature, once a class and for each of both; how a g without parameters
# is called.
LOOKS: dict[str, tuple[Callable[..., Any], ...]] = {
    "contrast": (with_count, its_divisors, of_contrast, contrast_without_parameters),
    "ratio": (with_count, its_divisors, of_ratio, contrast_without_parameters),
    "moments": (with_density, whether_met, of_moments, without_parameters),
}
BY_LINES = ("ratio",)
"""Where a g is made of arithmetic alone, in which a line of numbers may stand for one."""


@cache
def map_address(function: Callable[..., Any], looks_at: str) -> int:
    """Return the address of the loops around a map's function, given what it looks at."""
    of_statistics = as_it_is, its_total, of_statistic, without_parameters
    *looks, plain = LOOKS.get(looks_at, of_statistics)
    if function.__code__.co_argcount == plain.__code__.co_argcount - 1:
        function = instantiate(plain, "g", function)
    looks[-1] = instantiate(looks[-1], "g", function)
    template, at_table = (fill_lines, line_at) if looks_at in BY_LINES else (fill_each, one_at)
    filled = with_looks(template, looks, at_table)
    loops = instantiate(with_looks(map_loops, looks, one_at), "fill", filled, allocates=False)
    return callback_address(loops, MAP, allocates=False)


def with_looks(
    loops: Callable[..., Any], looks: Sequence[Callable[..., Any]], at_table: Callable[..., Any]
) -> Callable[..., Any]:
    """Return loops that look at features, at classes and at both, at tables by one or by lines."""
    by_feature, by_class, at_both = looks
    loops = instantiate(loops, "ahead", by_feature, allocates=False)
    loops = instantiate(loops, "beside", instantiate(by_class, "look", at_table), allocates=False)
    return instantiate(loops, "at", instantiate(at_both, "look", at_table), allocates=False)
