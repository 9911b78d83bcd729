"""Similarities in float64: of two views, and of a vector and the stored support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.kernels.supports import PANEL, call_double
from kesler.compiled.trial.preprocessing import RANGES

# Rows of `weights.work`: similarities, coefficients of a projection, and those of one panel.
SIMILARITIES, PROJECTION, INNER, DISTANCES, OUT = range(5)


@inlined
def similarity(learner, one, other, scratch):
    """Return K(one, other) in float64, since callers take differences, which cancel."""
    n = one.shape[0]
    inner, distance = 0.0, 0.0
    for j in range(n):
        a, b = np.float64(one[j]), np.float64(other[j])
        inner += a * b
        distance += (a - b) * (a - b)
        scratch.pair[j, 0] = other[j]
    scratch.one[0, 0], scratch.one[1, 0] = inner, distance
    call_double(
        learner.weights.double,
        one,
        scratch.pair[:n],
        scratch.one[0],
        scratch.one[1],
        scratch.doubles,
        scratch.one[2],
    )
    return scratch.one[2, 0]


@inlined
def unit_of(learner, scratch, j):
    """Return the unit of feature j of a row, by which stored vectors are multiplied."""
    if learner.preprocessing.method == RANGES:
        return np.float64(scratch.units[j])
    return 1.0


@inlined
def multiply_exactly(learner, indices, view, size, table, scratch):
    """Compute <view, u_s> and ||view - u_s||^2 for the support vectors of a panel."""
    inner, distances = learner.weights.work[INNER], learner.weights.work[DISTANCES]
    for s in range(PANEL):
        inner[s], distances[s] = 0.0, 0.0
    for j in range(indices.shape[0]):
        unit, i = unit_of(learner, scratch, j), np.uintp(indices[j])
        a = np.float64(view[j]) * unit
        for s in range(np.uintp(PANEL)):
            inner[s] += a * (np.float64(table[i, s]) * unit)
    # A row lists all features that have units, but it may leave out zeros otherwise.
    n = indices.shape[0] if learner.weights.lists_all else table.shape[0]
    for j in range(n):
        unit = unit_of(learner, scratch, j)
        i = np.uintp(indices[j]) if learner.weights.lists_all else np.uintp(j)
        for s in range(np.uintp(PANEL)):
            b = np.float64(table[i, s]) * unit
            distances[s] += b * b
    for s in range(PANEL):
        distances[s] = max(0.0, size + distances[s] - 2.0 * inner[s])


@inlined
def multiply_lists_exactly(learner, part, first, m, view, size):
    """Compute the same for m support vectors that are stored as lists, from `first` on."""
    inner, distances = learner.weights.work[INNER], learner.weights.work[DISTANCES]
    for s in range(m):
        product, square = 0.0, 0.0
        for e in range(
            learner.weights.starts[part, first + s], learner.weights.starts[part, first + s + 1]
        ):
            place = learner.weights.places[learner.weights.features[part, e]]
            value = np.float64(learner.weights.values[part, e])
            square += value * value
            if place:
                product += np.float64(view[place - 1]) * value
        inner[s] = product
        distances[s] = max(0.0, size + square - 2.0 * product)


@inlined
def note_features(learner, indices, one):
    """Write 1 + the position of each feature of a vector, or 0 if `one` is 0."""
    for j in range(indices.shape[0]):
        learner.weights.places[indices[j]] = one * (j + 1)


@inlined
def squared_length(learner, indices, view, scratch):
    """Return the squared norm of a vector in float64."""
    total = 0.0
    for j in range(indices.shape[0]):
        a = np.float64(view[j]) * unit_of(learner, scratch, j)
        total += a * a
    return total


@inlined
def compare_exactly(learner, part, indices, view, first, stop, scratch):
    """Set the similarities to K(view, u_s) for the support vectors from `first` to `stop`."""
    similarities, out = learner.weights.work[SIMILARITIES], learner.weights.work[OUT]
    size = squared_length(learner, indices, view, scratch)
    if not learner.weights.in_panels:
        note_features(learner, indices, 1)
    for panel in range(first // PANEL, (stop + PANEL - 1) // PANEL):
        begin = panel * PANEL
        m = min(PANEL, stop - begin)
        table = learner.weights.panels[part, panel if learner.weights.in_panels else 0]
        if learner.weights.in_panels:
            multiply_exactly(learner, indices, view, size, table, scratch)
        else:
            multiply_lists_exactly(learner, part, begin, m, view, size)
        call_double(
            learner.weights.double,
            view,
            table,
            learner.weights.work[INNER],
            learner.weights.work[DISTANCES],
            scratch.doubles,
            out[:m],
        )
        for s in range(max(first, begin), begin + m):
            similarities[s - first] = out[s - begin]
    if not learner.weights.in_panels:
        note_features(learner, indices, 0)


@inlined
def gather(learner, part, s, indices):
    """Return the features and the values of a support vector that is stored in a panel.

    indices : the features of the current row, which are returned if rows list all features.
    """
    panel, whole = learner.weights.panels[part, s // PANEL], learner.weights.whole
    features = indices if learner.weights.lists_all else learner.weights.every
    for j in range(features.shape[0]):
        whole[j] = panel[features[j], s % PANEL]
    return features, whole[: features.shape[0]]


@inlined
def compare_stored(learner, part, s, indices, first, stop, scratch):
    """Set the similarities to K(u_s, u_i) for the support vectors i from `first` to `stop`.

    indices : the features of the current row.
    """
    if learner.weights.in_panels:
        features, view = gather(learner, part, s, indices)
        compare_exactly(learner, part, features, view, first, stop, scratch)
    else:
        start, end = learner.weights.starts[part, s], learner.weights.starts[part, s + 1]
        listed = learner.weights.features[part, start:end]
        values = learner.weights.values[part, start:end]
        compare_exactly(learner, part, listed, values, first, stop, scratch)
