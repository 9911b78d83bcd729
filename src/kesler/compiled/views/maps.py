"""The loops around a feature map phi_i(x, r), compiled once for each of its functions g.

    maps/frequency.py: g  ->  here, `map_address`: a template, by the statistic of g  ->  `run`

A template is compiled with one global, g, replaced. It collects the statistics that g reads in a
named tuple, whose class selects the helpers below; `run` contains the loops. The statistics of the
classes are stored in layers of shape (features, classes); a map reads one layer, or three
consecutive ones, and a level of each feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    always_inlined,
    are_finite,
    by_address,
    by_class,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.jit.simd import (
    HALF,
    SIMD_WIDTH,
    first_of,
    load,
    load_half,
    padded,
    store,
    whole_lines,
)
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

# The tasks of `run`; not literals, since Numba compiles a helper once more for each literal.
PROJECT, PRODUCTS, SQUARED_NORMS, PHI, TABLE = np.arange(5)
# For so many eights of classes, each is processed for all features before the next.
FEW = 4
LOWEST = -1e30  # lower bound of the logarithm of a density


class Kept(NamedTuple):
    """The statistics of classes and features; see `kesler.state.records.Statistics`."""

    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Operands(NamedTuple):
    """The factors of the views and the output arrays; see `run`."""

    vectors: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    out: npt.NDArray[np.float32]
    products: npt.NDArray[np.float64]


KEPT = types.NamedTuple((FLOAT_STACK, FLOAT_TABLE, FLOAT_TABLE, DOUBLE_TABLE), Kept)
OPERANDS = types.NamedTuple((FLOAT_TABLE, FLOATS, FLOATS, DOUBLES), Operands)

# task, indices, values, stored, layer, k, parameters, operands
MAP = types.void(INT, INDICES, FLOATS, KEPT, INT, INT, FLOATS, OPERANDS)
call_map = by_address(MAP)


# ---- what a map reads ----------------------------------------------------------------------------


class Statistics(NamedTuple):
    """A statistic of each feature and class, and the number of rows of each class."""

    sums: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]


class Shares(NamedTuple):
    """The numbers of rows of each class, and of all rows, that have a feature; their divisors."""

    counts: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Ratios(NamedTuple):
    """As `Shares`, for maps that depend on the ratio of both shares only."""

    counts: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Moments(NamedTuple):
    """The parameters of a Gaussian for each feature and class, and for each feature."""

    centres: npt.NDArray[np.float32]
    sharpness: npt.NDArray[np.float32]
    heights: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


def g(*arguments: Any) -> Any:
    """Stand for the function of the map, which `instantiate` inserts."""
    raise NotImplementedError


def of_statistic(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, q), where p is the statistic of the class."""
    inputs = Statistics(stored.statistics[layer], stored.totals[layer])
    run(inputs, g, task, indices, values, k, parameters, operands)


def of_contrast(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, p', q) of the shares of rows of the class and of all others."""
    inputs = Shares(stored.statistics[layer], stored.divisors, stored.pooled)
    run(inputs, g, task, indices, values, k, parameters, operands)


def of_ratio(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, p, p', q) that depends on p / p' only and accepts SIMD lines."""
    inputs = Ratios(stored.statistics[layer], stored.divisors, stored.pooled)
    run(inputs, g, task, indices, values, k, parameters, operands)


def of_moments(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops of a g(x, level, centre, sharpness, height, q)."""
    layers = stored.statistics
    inputs = Moments(
        layers[layer], layers[layer + 1], layers[layer + 2], stored.divisors, stored.pooled
    )
    run(inputs, g, task, indices, values, k, parameters, operands)


def without_parameters(x, p, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p)


def contrast_without_parameters(x, p, rest, q):  # type: ignore[no-untyped-def]
    """Call a g that takes no parameters."""
    return g(x, p, rest)


def loops(*arguments: Any) -> None:
    """Stand for the loops around a user-defined g, which `instantiate` inserts."""
    raise NotImplementedError


def guarded(task, indices, values, stored, layer, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run the loops around a user-defined g; if it fails, write NaN and set the fault word.

    It fails if it raises an error, or if a result is not finite.
    """
    n, failed = indices.shape[0], False
    try:
        loops(task, indices, values, stored, layer, k, parameters, operands)
    except Exception:
        failed = True
    if task == TABLE:
        for j in range(n):
            failed = failed or not are_finite(operands.vectors[j, :k])
        if failed:
            operands.vectors[:n, :k] = np.nan
    if task == PRODUCTS or task == SQUARED_NORMS:
        failed = spoiled(operands.products[:k], failed)
    elif task == PHI:
        failed = spoiled(operands.out[:n], failed)
    elif task == PROJECT or operands.weights.shape[0] > 0:
        failed = spoiled(operands.out[:k], failed)
    if failed:
        parameters[-1] = 1


@inlined
def spoiled(results, failed):  # type: ignore[no-untyped-def]
    """Write NaN to results if the function failed or one is not finite; return whether it did."""
    failed = failed or not are_finite(results)
    if failed:
        results[:] = np.nan
    return failed


# For each statistic, the template, and the function that calls a g without parameters.
TEMPLATES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "first": (of_statistic, without_parameters),
    "mean": (of_statistic, without_parameters),
    "frequency": (of_statistic, without_parameters),
    "contrast": (of_contrast, contrast_without_parameters),
    "ratio": (of_ratio, contrast_without_parameters),
    "moments": (of_moments, without_parameters),
}


@recipe
@cache
def map_address(function: Callable[..., Any], looks_at: str, *, custom: bool) -> int:
    """Return the address of the loops around a map's function, given the statistic it reads."""
    template, plain = TEMPLATES[looks_at]
    takes_q = function.__code__.co_argcount != plain.__code__.co_argcount - 1
    if not takes_q:
        function = instantiate(plain, "g", function, checked=custom)
    loops = instantiate(template, "g", function, checked=custom and takes_q)
    if custom:
        loops = instantiate(guarded, "loops", loops, allocates=False)
    return callback_address(loops, MAP, allocates=False)


# ---- once per feature: the value that g receives as x, and the level -----------------------------


@always_inlined
def without_level(inputs, x, feature):  # type: ignore[no-untyped-def]
    """Return x; the feature has no level."""
    return x, x


@always_inlined
def with_count(inputs, x, feature):  # type: ignore[no-untyped-def]
    """Return x and the number of all rows in which the feature is not zero."""
    return x, np.float32(inputs.pooled[feature, COUNT])


@always_inlined
def with_density(inputs, x, feature):  # type: ignore[no-untyped-def]
    """Return x relative to the origin, and the logarithm of its density among all rows."""
    pooled, value = inputs.pooled, np.float64(x)
    off = (value - pooled[feature, POOLED_MEAN]) * pooled[feature, POOLED_SHARPNESS]
    level = max(pooled[feature, POOLED_HEIGHT] - off * off, LOWEST)
    return np.float32(value - pooled[feature, ORIGIN]), np.float32(level)


at_feature = by_class(
    {Statistics: without_level, Shares: with_count, Ratios: with_count, Moments: with_density}
)

# ---- once per class ------------------------------------------------------------------------------


@always_inlined
def its_total(inputs, r):  # type: ignore[no-untyped-def]
    """Return the number of rows of the class."""
    return inputs.totals[r]


@always_inlined
def its_divisors(inputs, r):  # type: ignore[no-untyped-def]
    """Return the share of pseudo-rows and the divisors of the counts of the class and others."""
    divisors = inputs.divisors
    return divisors[PSEUDO, r], divisors[OWN, r], divisors[OTHERS, r]


@always_inlined
def their_divisors(inputs, r):  # type: ignore[no-untyped-def]
    """Return the same as `its_divisors`, for the eight classes from r on."""
    divisors = inputs.divisors
    return half_at(divisors, PSEUDO, r), half_at(divisors, OWN, r), half_at(divisors, OTHERS, r)


@always_inlined
def seen_flag(inputs, r):  # type: ignore[no-untyped-def]
    """Return 1 if the class has rows, else 0."""
    return inputs.divisors[SEEN, r]


@always_inlined
def half_at(array, row, column):  # type: ignore[no-untyped-def]
    """Return the eight numbers of a row from a column on."""
    return load_half(array, np.intp(row) * array.shape[1] + column)


at_class = by_class(
    {Statistics: its_total, Shares: its_divisors, Ratios: its_divisors, Moments: seen_flag}
)

# ---- phi_i(x, r) ---------------------------------------------------------------------------------


@always_inlined
def at_statistic(inputs, g, x, level, f, r, total, q):  # type: ignore[no-untyped-def]
    """Return g(x, p), where p is the statistic of the class."""
    return g(x, inputs.sums[f, r] / total, q)


@always_inlined
def at_shares(inputs, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p') of the smoothed shares of rows of the class and of all others."""
    own, pseudo = inputs.counts[f, r], level * divisors[0]
    zero, one = np.float32(0), np.float32(1)
    # Divisions, not products: equal shares are then equal in every bit, and their difference is 0.
    others = max((level - own + pseudo) / divisors[2], zero)
    share = (own + pseudo) / divisors[1]
    return g(x, min(share, one), min(others, one), q)


@always_inlined
def at_ratio(inputs, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return g(x, p, p') of a g that depends on p / p' only: both times the product of divisors."""
    return in_ratio(g, x, level, inputs.counts[f, r], divisors, q)


@always_inlined
def at_ratios(inputs, g, x, level, f, r, divisors, q):  # type: ignore[no-untyped-def]
    """Return the same as `at_ratio`, for the eight classes from r on."""
    return in_ratio(g, x, level, half_at(inputs.counts, f, r), divisors, q)


@always_inlined
def in_ratio(g, x, level, own, divisors, q):  # type: ignore[no-untyped-def]
    """Return g of the counts of one class or of eight."""
    pseudo = divisors[0] * level
    others = (level - own + pseudo) * divisors[1]
    return g(x, (own + pseudo) * divisors[2], others, q)


@always_inlined
def at_moments(inputs, g, x, level, f, r, is_seen, q):  # type: ignore[no-untyped-def]
    """Return g(x, level, centre, sharpness, height), 0 for a class without rows."""
    centre, sharpness, height = inputs.centres[f, r], inputs.sharpness[f, r], inputs.heights[f, r]
    return is_seen * g(x, level, centre, sharpness, height, q)


at = by_class({Statistics: at_statistic, Shares: at_shares, Ratios: at_ratio, Moments: at_moments})

# ---- the loops -----------------------------------------------------------------------------------


@always_inlined
def run(inputs, g, task, indices, values, k, parameters, operands):  # type: ignore[no-untyped-def]
    """Run one of the tasks for row x, with results in `out`, `products` or `vectors`.

    PROJECT: out[r] += <u^r, phi(x, r)> for r < k, where u^r is `weights`, or vectors[:, r] if that
    is empty;
    PRODUCTS: products[r] += <weights, phi(x, r)> for r < k;
    SQUARED_NORMS: products[r] += ||phi(x, r)||^2 for r < k;
    PHI: out[j] = phi(x, k) at entry j of the row;
    TABLE: vectors[j, r] = phi(x, r) at entry j of the row, for r < k, and if `weights` is not empty
    out[r] += <weights, phi(x, r)>. Both process whole lines of classes; after the last class the
    table still holds 0.
    """
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    vectors, weights, out, products = operands
    # Unsigned indices spare the loops the test for negative ones.
    n, stop = indices.shape[0], np.uintp(k)
    if task == PROJECT and weights.shape[0] > 0:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = at_feature(inputs, values[j], f)
            u = weights[j]
            for r in range(stop):
                out[r] += u * at(inputs, g, x, level, f, r, at_class(inputs, r), q)
    elif task == PROJECT:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = at_feature(inputs, values[j], f)
            for r in range(stop):
                out[r] += vectors[j, r] * at(inputs, g, x, level, f, r, at_class(inputs, r), q)
    elif task == PRODUCTS:
        # In float64, since callers take differences of such products, which cancel.
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = at_feature(inputs, values[j], f)
            v = np.float64(weights[j])
            for r in range(stop):
                products[r] += v * np.float64(
                    np.float32(at(inputs, g, x, level, f, r, at_class(inputs, r), q))
                )
    elif task == SQUARED_NORMS:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = at_feature(inputs, values[j], f)
            for r in range(stop):
                phi = np.float64(np.float32(at(inputs, g, x, level, f, r, at_class(inputs, r), q)))
                products[r] += phi * phi
    elif task == TABLE:
        fill(inputs, g, indices, values, k, q, operands)
    else:
        for j in range(n):
            f = np.uintp(indices[j])
            x, level = at_feature(inputs, values[j], f)
            out[j] = at(inputs, g, x, level, f, stop, at_class(inputs, stop), q)


@always_inlined
def fill_each(inputs, g, indices, values, k, q, operands):  # type: ignore[no-untyped-def]
    """Set vectors[j, r] to phi_i(x, r) at entry j, for r < k; with weights, sum the products."""
    vectors, weights, out = operands.vectors, operands.weights, operands.out
    n, width = indices.shape[0], padded(k)
    last = whole_lines(k) - SIMD_WIDTH
    for j in range(np.uintp(n)):
        f = np.uintp(indices[j])
        x, level = at_feature(inputs, values[j], f)
        for r in range(np.uintp(width)):
            vectors[j, r] = at(inputs, g, x, level, f, r, at_class(inputs, r), q)
        if k < width:
            end = np.intp(j) * vectors.shape[1] + last
            store(vectors, end, first_of(load(vectors, end), k - last))
    for r in range(0, k if weights.shape[0] > 0 else 0, SIMD_WIDTH):
        total = load(out, r)
        for j in range(n):
            total = total + load(vectors, j * vectors.shape[1] + r) * weights[np.uintp(j)]
        store(out, r, total)


@always_inlined
def fill_halves(inputs, g, indices, values, k, q, operands):  # type: ignore[no-untyped-def]
    """Do the same for eight classes at a time, and leave zeros after the last class.

    Eight, since the divisions take most of the time: of 20 classes, whole lines would divide for
    32. Where there are few classes, the divisors and the sums of eight stay in registers for all
    features. For more, a feature is processed for all classes, in the order of memory.
    """
    vectors, weights, out = operands.vectors, operands.weights, operands.out
    is_summed = weights.shape[0] > 0
    if k <= FEW * HALF:
        for r in range(0, k, HALF):
            divisors, total = their_divisors(inputs, r), load_half(out, r)
            for j in range(indices.shape[0]):
                f = np.uintp(indices[j])
                x, level = at_feature(inputs, values[j], f)
                views = first_of(at_ratios(inputs, g, x, level, f, r, divisors, q), k - r)
                store(vectors, j * vectors.shape[1] + r, views)
                if is_summed:
                    total = total + views * weights[np.uintp(j)]
            if is_summed:
                store(out, r, total)
    else:
        for j in range(indices.shape[0]):
            f, row = np.uintp(indices[j]), j * vectors.shape[1]
            x, level = at_feature(inputs, values[j], f)
            for r in range(0, k, HALF):
                views = at_ratios(inputs, g, x, level, f, r, their_divisors(inputs, r), q)
                views = first_of(views, k - r)
                store(vectors, row + r, views)
                if is_summed:
                    store(out, r, load_half(out, r) + views * weights[np.uintp(j)])


fill = by_class({Statistics: fill_each, Shares: fill_each, Ratios: fill_halves, Moments: fill_each})
