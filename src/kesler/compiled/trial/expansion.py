"""Expansion of dense rows into blocks of features, with running statistics of their inputs."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import (
    BOOLS,
    DOUBLES,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    allocating,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.record_types import tuple_type
from kesler.compiled.trial.preprocessing import MEAN, SQUARES, is_missing, score_with, with_value
from kesler.compiled.trial.relevance import (
    RELEVANCE,
    add_value,
    fade,
    has_relevance,
    in_distances,
    weigh_if_due,
)
from kesler.state.records import MOST_SAMPLED, Expansion

EXPANSION = tuple_type(Expansion)
# Quantiles are recomputed when the number of rows has grown by this factor.
GROWTH = 1.5
ROOT_OF_TWO = np.float32(math.sqrt(2))
FULL_TURN = np.float32(1 / (2 * math.pi))
HALF = np.float32(0.5)
NO_BIN = -1  # of an input that is missing
# The random numbers of the sample (Steele, Lea and Flood 2014, SplitMix64).
GOLDEN, FIRST_FACTOR, SECOND_FACTOR = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
UNSEEDED = np.uint64(0)


@inlined
def write_constant(constant, index, value):
    """Write the feature of the intercept, if there is one; return how many entries it takes."""
    if constant == 0:
        return 0
    index[0], value[0] = 0, np.float32(constant)
    return 1


# ---- z-scores ------------------------------------------------------------------------------------


@inlined
def score_inputs(expansion, row, z):
    """Write the z-scores of the inputs; return the mean squared length with this row included."""
    amount, clip, length = expansion.seen.amount, expansion.clip, 0.0
    for j in range(row.shape[0]):
        score = 0.0
        if not is_missing(row[j]):
            n_known = amount - expansion.missing[j]
            score = score_with(expansion.moments, j, np.float64(row[j]), n_known, 1.0)
        z[j] = np.float32(min(clip, max(-clip, score)))
        length += np.float64(z[j]) * np.float64(z[j])
    return (expansion.seen.squared_length + length) / (amount + 1)


@inlined
def write_scores(first, z, index, value, n):
    """Write the z-scores as features."""
    for j in range(z.shape[0]):
        index[n + j], value[n + j] = first + j, z[j]
    return n + z.shape[0]


# ---- random Fourier features ---------------------------------------------------------------------


@inlined
def project(z, factor, weights, projection, phases, out):
    """Set out[k] to the phase plus the factor times the projection of z, of weighted inputs."""
    for k in range(out.shape[0]):
        out[k] = phases[k]
    for j in range(z.shape[0]):
        add_multiple(in_distances(weights, j, factor * z[j]), projection[j], out)


@inlined
def add_multiple(factor, row, out):
    """Add a multiple of a row."""
    for k in range(out.shape[0]):
        out[k] += factor * row[k]


@inlined
def write_cosines(first, angles, index, value):
    """Write sqrt(2) cos of angles, by Taylor polynomials in a quarter turn around 0 and pi."""
    for k in range(angles.shape[0]):
        index[k] = first + k
        value[k] = ROOT_OF_TWO * cosine(angles[k])


@always_inlined
def cosine(angle):
    """Return cos(angle) with an error below 1e-6, without a branch so that the loop vectorises.

    Turns are counted in float32; angles are a few hundred at most. cos(2 pi u) = 1 - 2 sin(pi u)^2,
    with the Taylor polynomial of the sine up to pi / 2.
    """
    turns = angle * FULL_TURN
    u = (turns - np.floor(turns + HALF)) * np.float32(math.pi)
    s = u * u
    p = np.float32(-2.3889859e-8)
    p = p * s + np.float32(2.7525562e-6)
    p = p * s + np.float32(-1.9840874e-4)
    p = p * s + np.float32(8.3333310e-3)
    p = p * s + np.float32(-1.6666667e-1)
    sine = u + u * s * p
    return np.float32(1) - np.float32(2) * sine * sine


# ---- bins and pairs ------------------------------------------------------------------------------


@always_inlined
def bin_of(edges, n_edges, value):
    """Return the number of the edges below a value, NO_BIN if it is missing."""
    if is_missing(value):
        return NO_BIN
    low, high = 0, n_edges
    while low < high:
        middle = (low + high) // 2
        if value > edges[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def write_bins(expansion, row, lists_zeros, index, value, n):
    """Write the bin of each input, with all others as zeros if `lists_zeros`."""
    width = expansion.edges.shape[1] + 1
    for j in range(row.shape[0]):
        chosen = bin_of(expansion.edges[j], expansion.n_edges[j], row[j])
        n = write_one_of(expansion.bins + j * width, chosen, width, lists_zeros, index, value, n)
    return n


@inlined
def write_pairs(expansion, row, lists_zeros, index, value, n):
    """Write the cell of each pair of inputs, with all others as zeros if `lists_zeros`."""
    width, members = expansion.pair_edges.shape[1] + 1, expansion.members
    edges, n_edges = expansion.pair_edges, expansion.n_pair_edges
    for i in range(members.shape[0]):
        a, b = members[i, 0], members[i, 1]
        one, other = bin_of(edges[a], n_edges[a], row[a]), bin_of(edges[b], n_edges[b], row[b])
        cell = NO_BIN if one == NO_BIN or other == NO_BIN else one * width + other
        first = expansion.pairs + i * width * width
        n = write_one_of(first, cell, width * width, lists_zeros, index, value, n)
    return n


@always_inlined
def write_one_of(first, chosen, width, lists_zeros, index, value, n):
    """Write a feature of value 1, with the zeros of the others if `lists_zeros`.

    If it is NO_BIN, all are 0.
    """
    if not lists_zeros:
        index[n], value[n] = first + max(chosen, 0), np.float32(chosen != NO_BIN)
        return n + 1
    for b in range(width):
        index[n + b], value[n + b] = first + b, np.float32(1 if b == chosen else 0)
    return n + width


# ---- statistics ----------------------------------------------------------------------------------


@inlined
def remember_inputs(expansion, row, z, weight):
    """Add a row to the statistics of the inputs."""
    seen, length = expansion.seen, 0.0
    if expansion.decay != 1:
        fade_inputs(expansion)
    for j in range(row.shape[0]):
        length += np.float64(z[j]) * np.float64(z[j])
        if is_missing(row[j]):
            expansion.missing[j] += weight
            continue
        n_known = seen.amount - expansion.missing[j]
        moments = with_value(expansion.moments, j, np.float64(row[j]), n_known, weight)
        expansion.moments[j, MEAN], expansion.moments[j, SQUARES] = moments
    seen.amount += weight
    seen.squared_length += weight * length
    seen.n_rows += 1
    if expansion.sample.shape[1]:
        add_to_sample(expansion, row)
        if seen.n_rows >= seen.next:
            find_edges(expansion)
            seen.next = next_time(expansion)


@inlined
def remember_class(expansion, relevance, z, y, weight):
    """Add the z-scores of a row of class y to what the classes explain of the inputs."""
    if expansion.decay != 1:
        fade(relevance, expansion.decay)
    for j in range(z.shape[0]):
        add_value(relevance, j, np.float64(z[j]), y, weight)
    relevance.amounts[y] += weight
    weigh_if_due(relevance, np.int64(expansion.seen.n_rows), 1.0)


@inlined
def fade_inputs(expansion):
    """Multiply the weights of all earlier rows by the decay."""
    expansion.seen.amount *= expansion.decay
    expansion.seen.squared_length *= expansion.decay
    for j in range(expansion.moments.shape[0]):
        expansion.moments[j, SQUARES] *= expansion.decay
        expansion.missing[j] *= expansion.decay


@inlined
def next_time(expansion):
    """Return the number of rows at which quantiles are next recomputed."""
    n_rows = expansion.seen.n_rows
    later = max(n_rows + 1, math.floor(GROWTH * n_rows))
    if expansion.decay == 1:
        return later
    return min(later, n_rows + max(1.0, math.floor(0.5 / (1 - expansion.decay))))


@inlined
def add_to_sample(expansion, row):
    """Add a row to the sample, in the place of a random one if the sample is full.

    Without a half-life each row is in the sample with the same probability; with one, the
    probability falls with the age of the row.
    """
    seen = expansion.seen
    place = np.int64(seen.n_sampled)
    if place < MOST_SAMPLED:
        seen.n_sampled += 1
    else:
        chance = max(MOST_SAMPLED / seen.n_rows, MOST_SAMPLED * (1 - expansion.decay))
        place = np.int64(random_share(seen.n_rows, UNSEEDED) * MOST_SAMPLED / min(1.0, chance))
    if 0 <= place < MOST_SAMPLED:
        for j in range(row.shape[0]):
            expansion.sample[place, j] = row[j]


@inlined
def random_share(number, seed):
    """Return a random number from 0 to 1 that depends on this number and a seed only."""
    x = seed + np.uint64(number) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST_FACTOR
    x = (x ^ (x >> np.uint64(27))) * SECOND_FACTOR
    x = x ^ (x >> np.uint64(31))
    return np.float64(x >> np.uint64(11)) / 2.0**53


@allocating
def find_edges(expansion):
    """Recompute the edges of all bins from what is known of the sample."""
    n = np.int64(min(expansion.seen.n_sampled, float(MOST_SAMPLED)))
    sampled = np.empty(n, np.float32)
    for j in range(expansion.sample.shape[1]):
        n_known = 0
        for i in range(n):
            if not is_missing(expansion.sample[i, j]):
                sampled[n_known] = expansion.sample[i, j]
                n_known += 1
        values = sampled[:n_known]
        if n_known:
            values.sort()
            expansion.n_edges[j] = edges_between(values, expansion.edges[j])
            expansion.n_pair_edges[j] = edges_between(values, expansion.pair_edges[j])


@inlined
def edges_between(values, edges):
    """Write the edges between bins with equal shares of sorted values; return their number.

    If there are no more values than bins, edges are in the middle between values.
    """
    n_distinct, n = 1, 0
    for i in range(1, values.shape[0]):
        n_distinct += values[i] != values[i - 1]
    if n_distinct <= edges.shape[0] + 1:
        for i in range(1, values.shape[0]):
            if values[i] != values[i - 1]:
                edges[n] = between(values[i - 1], values[i])
                n += 1
        return n
    for b in range(edges.shape[0]):
        place = (b + 1) * values.shape[0] // (edges.shape[0] + 1)
        edge = between(values[place - 1], values[place])
        if n == 0 or edge > edges[n - 1]:
            edges[n] = edge
            n += 1
    return n


@inlined
def between(lower, upper):
    """Return the middle of two values, at least the lower and below the upper if they differ."""
    middle = np.float32(0.5 * np.float64(lower) + 0.5 * np.float64(upper))
    return lower if middle >= upper else middle


# ---- rows ---------------------------------------------------------------------------------------


@kernel(
    types.void(
        EXPANSION,
        RELEVANCE,
        FLOAT_TABLE,
        INDICES,
        DOUBLES,
        BOOLS,
        types.boolean,
        types.boolean,
        INDICES,
        FLOATS,
        INT,
    )
)
def expand(
    expansion,
    relevance,
    rows,
    codes,
    weights,
    again,
    learns,
    lists_zeros,
    indices,
    values,
    n_entries,
):
    """Write the features of rows, n_entries for each; add the rows to the statistics if `learns`.

    rows : (n_rows, n_inputs); codes : the classes of the rows, if they are learnt and inputs have
    weights that follow from these; weights : (n_rows,), or empty if all are 1; again : (n_rows,),
    whether a row has been learnt before, or empty if none has; lists_zeros : whether the bins that
    an input is not in are listed, with value 0; indices, values : (n_rows * n_entries,).
    """
    n_inputs, n_projected = rows.shape[1], expansion.phases.shape[0]
    z, phases = np.zeros(n_inputs, np.float32), np.zeros(n_projected, np.float32)
    for t in range(rows.shape[0]):
        weight = weights[t] if weights.shape[0] else 1.0
        row, start = rows[t], t * n_entries
        index, value = indices[start : start + n_entries], values[start : start + n_entries]
        mean_length = score_inputs(expansion, row, z)
        n = write_constant(expansion.constant, index, value)
        if expansion.scores >= 0:
            n = write_scores(expansion.scores, z, index, value, n)
        if expansion.bins >= 0:
            n = write_bins(expansion, row, lists_zeros, index, value, n)
        if expansion.fourier >= 0:
            scale = np.sqrt(2 * expansion.bandwidth * mean_length)
            factor = np.float32(1 / scale) if scale > 0 else np.float32(0)
            project(z, factor, relevance.weights, expansion.projection, expansion.phases, phases)
            write_cosines(expansion.fourier, phases, index[n:], value[n:])
            n += n_projected
        if expansion.pairs >= 0:
            write_pairs(expansion, row, lists_zeros, index, value, n)
        if learns and not (again.shape[0] and again[t]):
            remember_inputs(expansion, row, z, weight)
            if has_relevance(relevance):
                remember_class(expansion, relevance, z, codes[t], weight)
