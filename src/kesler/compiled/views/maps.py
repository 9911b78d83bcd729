"""The loops around a feature map phi_i(x, r), made once for each function g of it.

    maps/frequency.py: g  ->  here, `map_address`: a template, by what g looks at  ->  `run`

A template is compiled with one global replaced, g. It says what of a class is looked at, as a tuple
of its own class, and `run` has the loops. What is kept of each class stands in layers of (feature,
class); a map looks at one of them, or at three that follow each other, and at a level of a feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    always_inlined,
    by_address,
    by_class,
    callback_address,
    instantiate,
)
from kesler.compiled.jit.simd import SIMD_WIDTH, first_of, load, spread, store
from kesler.compiled.trial.records import (
    COUNT,
    ORIGIN,
    OTHERS,
    OWN,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    PSEUDO,
    SEEN,
)

PROJECT, PRODUCTS, SQUARED_NORMS, PHI, TABLE = np.arange(5)  # no literals, as in `learner.py`
LOWEST = -1e30  # of the logarithm of a density


class Kept(NamedTuple):
    """What is kept of classes and features; see `learner.Learner`."""

    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Operands(NamedTuple):
    """What views are multiplied by, and where results go; see `run`."""

    vectors: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    out: npt.NDArray[np.float32]
    products: npt.NDArray[np.float64]


KEPT = types.NamedTuple((FLOAT_STACK, FLOAT_TABLE, FLOAT_TABLE, DOUBLE_TABLE), Kept)
OPERANDS = types.NamedTuple((FLOAT_TABLE, FLOATS, FLOATS, DOUBLES), Operands)

# task, indices, values, kept, layer, k, parameters, operands
MAP = types.void(INT, INDICES, FLOATS, KEPT, INT, INT, FLOATS, OPERANDS)
call_map = by_address(MAP)


# ---- what a map looks at -------------------------------------------------------------------------


class Statistics(NamedTuple):
    """A statistic of each feature and class, and how many rows of the class there were."""

    sums: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]


class Shares(NamedTuple):
    """How many rows of a class have a feature, and of all rows; what both are divided by."""

    counts: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Ratios(NamedTuple):
    """As `Shares`, of maps that look at the ratio of both alone."""

    counts: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Moments(NamedTuple):
    """What follows from mean and variance of each feature and class, and of each feature."""

    centres: npt.NDArray[np.float32]
    sharpness: npt.NDArray[np.float32]
    heights: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


def g(*arguments: Any) -> Any:
    """Stand for the map's own function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def of_statistic(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, q), p the statistic of the class."""
    looks = Statistics(stored.statistics[layer], stored.totals[layer])
    run(looks, g, task, indices, values, k, parameters, operands)


def of_contrast(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, p', q), the shares of rows of the class and of all others."""
    looks = Shares(stored.statistics[layer], stored.divisors, stored.pooled)
    run(looks, g, task, indices, values, k, parameters, operands)


def of_ratio(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, p', q) that looks at p / p' alone, and takes a line for one."""
    looks = Ratios(stored.statistics[layer], stored.divisors, stored.pooled)
    run(looks, g, task, indices, values, k, parameters, operands)


def of_moments(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, level, centre, sharpness, height, q)."""
    layers = stored.statistics
    looks = Moments(
        layers[layer], layers[layer + 1], layers[layer + 2], stored.divisors, stored.pooled
    )
    run(looks, g, task, indices, values, k, parameters, operands)


def without_parameters(x, p, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p)


def contrast_without_parameters(x, p, rest, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p, rest)


# The template by what a g looks at, and how one without parameters is called.
TEMPLATES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "first": (of_statistic, without_parameters),
    "mean": (of_statistic, without_parameters),
    "frequency": (of_statistic, without_parameters),
    "contrast": (of_contrast, contrast_without_parameters),
    "ratio": (of_ratio, contrast_without_parameters),
    "moments": (of_moments, without_parameters),
}


@cache
def map_address(function: Callable[..., Any], looks_at: str) -> int:
    """Return the address of the loops around a map's function, given what it looks at."""
    template, plain = TEMPLATES[looks_at]
    if function.__code__.co_argcount == plain.__code__.co_argcount - 1:
        function = instantiate(plain, "g", function)
    loops = instantiate(template, "g", function)
    return callback_address(loops, MAP, allocates=False)


# ---- once a feature: what takes the place of x, and the level ------------------------------------


@always_inlined
def as_it_is(looks, x, feature):  # type: ignore[no-untyped-def]
    """Return x; the feature has no level."""
    return x, x


@always_inlined
def with_count(looks, x, feature):  # type: ignore[no-untyped-def]
    """Return x and how often the feature was not zero, in all rows."""
    return x, np.float32(looks.pooled[feature, COUNT])


@always_inlined
def with_density(looks, x, feature):  # type: ignore[no-untyped-def]
    """Return x as seen from the origin, and the logarithm of its density among all rows."""
    pooled, value = looks.pooled, np.float64(x)
    off = (value - pooled[feature, POOLED_MEAN]) * pooled[feature, POOLED_SHARPNESS]
    level = max(pooled[feature, POOLED_HEIGHT] - off * off, LOWEST)
    return np.float32(value - pooled[feature, ORIGIN]), np.float32(level)


ahead = by_class(
    {Statistics: as_it_is, Shares: with_count, Ratios: with_count, Moments: with_density}
)

# ---- once a class --------------------------------------------------------------------------------


@always_inlined
def its_total(looks, r):  # type: ignore[no-untyped-def]
    """Look at how many rows of the class there were."""
    return looks.totals[r]


@always_inlined
def its_divisors(looks, r):  # type: ignore[no-untyped-def]
    """Look at the share of pseudo-rows, and what counts of the class and others are divided by."""
    divisors = looks.divisors
    return divisors[PSEUDO, r], divisors[OWN, r], divisors[OTHERS, r]


@always_inlined
def their_divisors(looks, r):  # type: ignore[no-untyped-def]
    """Look at the same of the sixteen classes from r on."""
    divisors = looks.divisors
    return line_at(divisors, PSEUDO, r), line_at(divisors, OWN, r), line_at(divisors, OTHERS, r)


@always_inlined
def whether_seen(looks, r):  # type: ignore[no-untyped-def]
    """Look at whether there were rows of the class, 0 or 1."""
    return looks.divisors[SEEN, r]


@always_inlined
def line_at(array, row, column):  # type: ignore[no-untyped-def]
    """Look at the sixteen numbers that begin with one."""
    return load(array, np.intp(row) * array.shape[1] + column)


beside = by_class(
    {Statistics: its_total, Shares: its_divisors, Ratios: its_divisors, Moments: whether_seen}
)

# ---- phi_i(x, r) ---------------------------------------------------------------------------------


@always_inlined
def at_statistic(looks, g, x, level, f, r, total, q):  # type: ignore[no-untyped-def]
    """Return g(x, p), p the statistic of the class."""
    return g(x, looks.sums[f, r] / total, q)


@always_inlined
def at_shares(looks, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p'), the shares of rows of the class and of all others, smoothed."""
    own, pseudo = looks.counts[f, r], level * divisors[0]
    nothing, all_of_them = np.float32(0), np.float32(1)
    # Divisions, since equal shares are then equal in every bit, and cancel to nothing.
    others = max((level - own + pseudo) / divisors[2], nothing)
    share = (own + pseudo) / divisors[1]
    return g(x, min(share, all_of_them), min(others, all_of_them), q)


@always_inlined
def at_ratio(looks, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p') of a g that looks at p / p' alone: both multiplied by their divisors."""
    return in_ratio(g, x, level, looks.counts[f, r], divisors, q)


@always_inlined
def at_ratios(looks, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return the same for the sixteen classes from r on."""
    return in_ratio(g, x, level, line_at(looks.counts, f, r), divisors, q)


@always_inlined
def in_ratio(g, x, level, own, divisors, q):  # type: ignore[no-untyped-def]
    """Return g of counts, those of one class or of sixteen."""
    pseudo = divisors[0] * level
    others = (level - own + pseudo) * divisors[1]
    return g(x, (own + pseudo) * divisors[2], others, q)


@always_inlined
def at_moments(looks, g, x, level, f, r, is_seen, q):  # type: ignore[no-untyped-def]
    """Return g(x, level, centre, sharpness, height), 0 for a class without rows."""
    centre, sharpness, height = looks.centres[f, r], looks.sharpness[f, r], looks.heights[f, r]
    return is_seen * g(x, level, centre, sharpness, height, q)


at = by_class({Statistics: at_statistic, Shares: at_shares, Ratios: at_ratio, Moments: at_moments})

# ---- the loops -----------------------------------------------------------------------------------


@always_inlined
def run(looks, g, task, indices, values, k, parameters, operands):  # type: ignore[no-untyped-def]
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
    vectors, weights, out, products = operands
    # Unsigned indices spare the loops the question whether they count from the end.
    n, stop = indices.shape[0], np.uintp(k)
    if task == PROJECT and weights.shape[0] > 0:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(looks, values[j], f)
            u = weights[j]
            for r in range(stop):
                out[r] += u * at(looks, g, x, level, f, r, beside(looks, r), q)
    elif task == PROJECT:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(looks, values[j], f)
            for r in range(stop):
                out[r] += vectors[j, r] * at(looks, g, x, level, f, r, beside(looks, r), q)
    elif task == PRODUCTS:
        # In double: what counts are differences of such products, which cancel.
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(looks, values[j], f)
            v = np.float64(weights[j])
            for r in range(stop):
                products[r] += v * np.float64(
                    np.float32(at(looks, g, x, level, f, r, beside(looks, r), q))
                )
    elif task == SQUARED_NORMS:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(looks, values[j], f)
            for r in range(stop):
                phi = np.float64(np.float32(at(looks, g, x, level, f, r, beside(looks, r), q)))
                products[r] += phi * phi
    elif task == TABLE:
        fill(looks, g, indices, values, k, q, operands)
    else:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = ahead(looks, values[j], f)
            out[j] = at(looks, g, x, level, f, stop, beside(looks, stop), q)


@always_inlined
def fill_each(looks, g, indices, values, k, q, operands):  # type: ignore[no-untyped-def]
    """vectors[j, r] = phi_i(x, r) at the j-th entry, r < k; with weights, sum the products."""
    vectors, weights, out = operands.vectors, operands.weights, operands.out
    n = indices.shape[0]
    for j in range(np.uintp(n)):
        f = np.uintp(indices[j])
        x, level = ahead(looks, values[j], f)
        for r in range(np.uintp(k)):
            vectors[j, r] = at(looks, g, x, level, f, r, beside(looks, r), q)
    for r in range(0, k if weights.shape[0] > 0 else 0, SIMD_WIDTH):
        total = load(out, r)
        for j in range(n):
            total = total + load(vectors, j * vectors.shape[1] + r) * weights[np.uintp(j)]
        store(out, r, total)


@always_inlined
def fill_lines(looks, g, indices, values, k, q, operands):  # type: ignore[no-untyped-def]
    """Do the same sixteen classes at a time, and leave zeros behind the last.

    Of two lines at most, what is looked at once a class stays in registers, and so do the sums.
    Where there are more, the lines of a feature come one after the other, as memory has them.
    """
    vectors, weights, out = operands.vectors, operands.weights, operands.out
    is_summed = weights.shape[0] > 0
    if k <= 2 * SIMD_WIDTH:
        s = SIMD_WIDTH if SIMD_WIDTH < k else 0
        of_class, of_other = their_divisors(looks, 0), their_divisors(looks, s)
        total, other_total = spread(np.float32(0)), spread(np.float32(0))
        if is_summed:
            total, other_total = load(out, 0), load(out, s)
        for j in range(indices.shape[0]):
            f, row = np.uintp(indices[j]), j * vectors.shape[1]
            x, level = ahead(looks, values[j], f)
            line = first_of(at_ratios(looks, g, x, level, f, 0, of_class, q), k)
            other = first_of(at_ratios(looks, g, x, level, f, s, of_other, q), k - s)
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
            x, level = ahead(looks, values[j], f)
            for r in range(0, k, SIMD_WIDTH):
                views = at_ratios(looks, g, x, level, f, r, their_divisors(looks, r), q)
                line = first_of(views, k - r)
                store(vectors, row + r, line)
                if is_summed:
                    store(out, r, load(out, r) + line * weights[np.uintp(j)])


fill = by_class({Statistics: fill_each, Shares: fill_each, Ratios: fill_lines, Moments: fill_each})
