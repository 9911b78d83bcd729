"""Joint features Phi(x, r) of hypotheses whose maps are frozen, in double: for batch solvers."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit import (
    DOUBLE_STACK,
    DOUBLE_TABLE,
    FLOAT_STACK,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT,
    INT_TABLE,
    INTS,
    allocating,
    inlined,
    kernel,
)
from kesler.compiled.lanes import whole_lines
from kesler.compiled.learner import ITSELF, KIND, MAP, OFFSET, PER_CLASS, SHARED, WIDTH
from kesler.compiled.maps import TABLE
from kesler.compiled.products import add_products
from kesler.compiled.scores import clear, of_map


class Joint(NamedTuple):
    """What joint features are computed from; nothing of it moves.

    parts, map_parameters, member_starts, members, statistics, totals, divisors, pooled : as in
    `kesler.compiled.learner.Learner`, classes by whole lines, members of every part; common :
    (parts, classes, classes), how many hypotheses of a part two classes have in common.
    """

    parts: npt.NDArray[np.int64]
    map_parameters: npt.NDArray[np.float32]
    member_starts: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    common: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    divisors: npt.NDArray[np.float32]
    pooled: npt.NDArray[np.float64]


class Listed(NamedTuple):
    """Rows, as in `kesler.rows.Rows`."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class Desk(NamedTuple):
    """Room for one row.

    views : (parts, entries, classes), phi(x, r) at each entry, of parts with a map; column :
    (hypotheses of a part,); products : (classes,); movers : (classes,), those that move.
    """

    views: npt.NDArray[np.float32]
    column: npt.NDArray[np.float64]
    products: npt.NDArray[np.float64]
    movers: npt.NDArray[np.int64]


JOINT = types.NamedTuple(
    (
        *(INT_TABLE, FLOAT_TABLE, INT_TABLE, INTS, DOUBLE_STACK),
        *(FLOAT_STACK, FLOAT_TABLE, FLOAT_TABLE, DOUBLE_TABLE),
    ),
    Joint,
)
LISTED = types.NamedTuple((INTS, INDICES, FLOATS), Listed)


@allocating
def make_desk(joint, rows):
    """Return room for the longest of the rows."""
    longest, widest = 0, 1
    for i in range(rows.indptr.shape[0] - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    for part in range(joint.parts.shape[0]):
        widest = max(widest, joint.parts[part, WIDTH])
    n_classes = joint.common.shape[1]
    n_viewed = joint.parts.shape[0] if joint.statistics.shape[0] else 0
    return Desk(
        np.empty((n_viewed, longest, whole_lines(n_classes)), np.float32),
        np.empty(widest),
        np.empty(n_classes),
        np.empty(n_classes, np.int64),
    )


@inlined
def has_map(joint, part):
    """Whether the classes of a part see x each in its own way."""
    return joint.parts[part, MAP] != ITSELF


@inlined
def set_views(joint, indices, values, desk):
    """views[part, j, r] = phi(x, r) at the j-th entry."""
    n_classes = joint.common.shape[1]
    for part in range(joint.parts.shape[0]):
        if has_map(joint, part):
            view, none = desk.views[part], values[:0]
            of_map(joint, part, TABLE, indices, values, view, none, n_classes, none, desk.products)


@inlined
def set_scores(joint, weights, indices, values, desk, scores):
    """scores[r] = <W, Phi(x, r)>, of the row whose views are set."""
    clear(scores, scores.shape[0])
    for part in range(joint.parts.shape[0]):
        if has_map(joint, part):
            add_viewed_scores(joint, part, weights, indices, desk, scores)
        elif joint.parts[part, KIND] == PER_CLASS:
            offset = joint.parts[part, OFFSET]
            add_products(indices, values, indices[:0], weights, offset, scores.shape[0], scores)
        else:
            add_grouped_scores(joint, part, weights, indices, values, desk.column, scores)


@inlined
def add_grouped_scores(joint, part, weights, indices, values, column, scores):
    """Add the scores of a part without a map: each hypothesis is asked once."""
    width = joint.parts[part, WIDTH]
    clear(column, width)
    offset = joint.parts[part, OFFSET]
    add_products(indices, values, indices[:0], weights, offset, width, column)
    for r in range(scores.shape[0]):
        for m in range(joint.member_starts[part, r], joint.member_starts[part, r + 1]):
            scores[r] += column[joint.members[m]]


@inlined
def add_viewed_scores(joint, part, weights, indices, desk, scores):
    """Add the scores of a part with a map."""
    offset, is_shared = joint.parts[part, OFFSET], joint.parts[part, KIND] == SHARED
    for j in range(indices.shape[0]):
        row, view = weights[indices[j]], desk.views[part, j]
        if is_shared:
            u = row[offset]
            for r in range(np.uintp(scores.shape[0])):
                scores[r] += u * view[r]
        else:
            for r in range(scores.shape[0]):
                for m in range(joint.member_starts[part, r], joint.member_starts[part, r + 1]):
                    scores[r] += row[offset + joint.members[m]] * view[r]


@inlined
def list_movers(coefficients, movers):
    """List the classes whose coefficient is not 0; return how many."""
    n = 0
    for r in range(coefficients.shape[0]):
        if coefficients[r] != 0.0:
            movers[n] = r
            n += 1
    return n


@inlined
def add_features(joint, coefficients, power, indices, values, desk, weights):
    """W += sum over r of coefficients[r] Phi(x, r)^power, 1 or 2; the row's views are set."""
    n_movers = list_movers(coefficients, desk.movers)
    if n_movers == 0:
        return
    for part in range(joint.parts.shape[0]):
        offset, mapped = joint.parts[part, OFFSET], has_map(joint, part)
        for j in range(indices.shape[0]):
            row, phi = weights[indices[j]], np.float64(values[j])
            for a in range(n_movers):
                r = desk.movers[a]
                if mapped:
                    phi = np.float64(desk.views[part, j, r])
                rise = coefficients[r] * (phi if power == 1 else phi * phi)
                for m in range(joint.member_starts[part, r], joint.member_starts[part, r + 1]):
                    row[offset + joint.members[m]] += rise


@inlined
def set_gram(joint, s, values, desk, gram):
    """gram[r] = <Phi(x, r), Phi(x, s)>, of the row whose views are set."""
    clear(gram, gram.shape[0])
    for part in range(joint.parts.shape[0]):
        if has_map(joint, part):
            set_products(desk.views[part], s, values.shape[0], desk.products)
        else:
            squared = 0.0
            for j in range(values.shape[0]):
                squared += np.float64(values[j]) * np.float64(values[j])
            for r in range(gram.shape[0]):
                desk.products[r] = squared
        for r in range(gram.shape[0]):
            gram[r] += joint.common[part, r, s] * desk.products[r]


@inlined
def set_products(views, s, n, products):
    """products[r] = <phi(x, r), phi(x, s)> over n entries."""
    clear(products, products.shape[0])
    for j in range(n):
        view = views[j]
        v = np.float64(view[s])
        for r in range(np.uintp(products.shape[0])):
            products[r] += v * np.float64(view[r])


@kernel(types.void(JOINT, LISTED, DOUBLE_TABLE, DOUBLE_TABLE))
def score_rows(joint, rows, weights, scores):
    """scores[i, r] = <W, Phi(x_i, r)>."""
    desk = make_desk(joint, rows)
    for i in range(scores.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, desk)
        set_scores(joint, weights, indices, values, desk, scores[i])


@kernel(types.void(JOINT, LISTED, DOUBLE_TABLE, INT, DOUBLE_TABLE))
def add_rows(joint, rows, coefficients, power, weights):
    """W += sum over i and r of coefficients[i, r] Phi(x_i, r)^power, 1 or 2."""
    desk = make_desk(joint, rows)
    for i in range(coefficients.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, desk)
        add_features(joint, coefficients[i], power, indices, values, desk, weights)


@kernel(types.void(JOINT, LISTED, DOUBLE_STACK))
def gram_rows(joint, rows, grams):
    """grams[i, r, s] = <Phi(x_i, r), Phi(x_i, s)>."""
    desk = make_desk(joint, rows)
    for i in range(grams.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, desk)
        for s in range(grams.shape[1]):
            set_gram(joint, s, values, desk, grams[i, s])
