"""Joint features Phi(x, r) of hypotheses with fixed maps, in float64, for batch solvers."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_STACK,
    DOUBLE_TABLE,
    FLOATS,
    INDICES,
    INT,
    INTS,
    allocating,
    inlined,
    kernel,
)
from kesler.compiled.jit.record_types import tuple_type
from kesler.compiled.jit.simd import whole_lines
from kesler.compiled.trial.records import ITSELF, PER_CLASS, SHARED
from kesler.compiled.views.maps import TABLE
from kesler.compiled.weights.scores import add_products, clear, of_map
from kesler.state.fields import Given
from kesler.state.records import Parts


class FrozenStatistics(NamedTuple):
    """The statistics that maps use, as in `kesler.state.records.Statistics`."""

    sums: Annotated[Any, Given(np.float32, 3)]
    totals: Annotated[Any, Given(np.float32, 2)]
    divisors: Annotated[Any, Given(np.float32, 2)]
    pooled: Annotated[Any, Given(np.float64, 2)]


class Joint(NamedTuple):
    """The constant data from which joint features are computed.

    parts, statistics : as in `kesler.state.records`, with classes padded to whole lines and the
    members of each part; common : (parts, classes, classes), the number of hypotheses of a part
    that two classes share.
    """

    parts: Parts
    statistics: FrozenStatistics
    common: Annotated[Any, Given(np.float64, 3)]


class Listed(NamedTuple):
    """Rows, as in `kesler.data.rows.Rows`."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class RowBuffer(NamedTuple):
    """Buffers for one row.

    views : (parts, entries, classes), phi(x, r) at each entry, for parts with a map; column :
    (hypotheses of a part,); products : (classes,); movers : (classes,), classes with a nonzero
    coefficient.
    """

    views: npt.NDArray[np.float32]
    column: npt.NDArray[np.float64]
    products: npt.NDArray[np.float64]
    movers: npt.NDArray[np.int64]


JOINT = tuple_type(Joint)
LISTED = types.NamedTuple((INTS, INDICES, FLOATS), Listed)


@allocating
def make_row_buffer(joint, rows):
    """Return buffers for the longest of the rows."""
    longest, widest = 0, 1
    for i in range(rows.indptr.shape[0] - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    for part in range(joint.parts.kind.shape[0]):
        widest = max(widest, joint.parts.width[part])
    n_classes = joint.common.shape[1]
    n_viewed = joint.parts.kind.shape[0] if joint.statistics.sums.shape[0] else 0
    return RowBuffer(
        np.empty((n_viewed, longest, whole_lines(n_classes)), np.float32),
        np.empty(widest),
        np.empty(n_classes),
        np.empty(n_classes, np.int64),
    )


@inlined
def has_map(joint, part):
    """Return whether a part has a map, so that views differ between classes."""
    return joint.parts.map[part] != ITSELF


@inlined
def set_views(joint, indices, values, row_buffer):
    """Set views[part, j, r] = phi(x, r) at the j-th entry."""
    n_classes = joint.common.shape[1]
    for part in range(joint.parts.kind.shape[0]):
        if has_map(joint, part):
            view, none = row_buffer.views[part], values[:0]
            of_map(
                joint,
                part,
                TABLE,
                indices,
                values,
                view,
                none,
                n_classes,
                none,
                row_buffer.products,
            )


@inlined
def set_scores(joint, weights, indices, values, row_buffer, scores):
    """Set scores[r] = <W, Phi(x, r)> for the row whose views are set."""
    clear(scores, scores.shape[0])
    for part in range(joint.parts.kind.shape[0]):
        if has_map(joint, part):
            add_viewed_scores(joint, part, weights, indices, row_buffer, scores)
        elif joint.parts.kind[part] == PER_CLASS:
            offset = joint.parts.offset[part]
            add_products(indices, values, indices[:0], weights, offset, scores.shape[0], scores)
        else:
            add_grouped_scores(joint, part, weights, indices, values, row_buffer.column, scores)


@inlined
def add_grouped_scores(joint, part, weights, indices, values, column, scores):
    """Add the scores of a part without a map; each hypothesis is evaluated once."""
    width, starts = joint.parts.width[part], joint.parts.member_starts
    clear(column, width)
    offset = joint.parts.offset[part]
    add_products(indices, values, indices[:0], weights, offset, width, column)
    for r in range(scores.shape[0]):
        for m in range(starts[part, r], starts[part, r + 1]):
            scores[r] += column[joint.parts.members[m]]


@inlined
def add_viewed_scores(joint, part, weights, indices, row_buffer, scores):
    """Add the scores of a part with a map."""
    offset, is_shared = joint.parts.offset[part], joint.parts.kind[part] == SHARED
    starts = joint.parts.member_starts
    for j in range(indices.shape[0]):
        row, view = weights[indices[j]], row_buffer.views[part, j]
        if is_shared:
            u = row[offset]
            for r in range(np.uintp(scores.shape[0])):
                scores[r] += u * view[r]
        else:
            for r in range(scores.shape[0]):
                for m in range(starts[part, r], starts[part, r + 1]):
                    scores[r] += row[offset + joint.parts.members[m]] * view[r]


@inlined
def list_movers(coefficients, movers):
    """List the classes with nonzero coefficients; return their number."""
    n = 0
    for r in range(coefficients.shape[0]):
        if coefficients[r] != 0.0:
            movers[n] = r
            n += 1
    return n


@inlined
def add_features(joint, coefficients, power, indices, values, row_buffer, weights):
    """Add sum over r of coefficients[r] Phi(x, r)^power to W, with power 1 or 2 and views set."""
    n_movers, starts = list_movers(coefficients, row_buffer.movers), joint.parts.member_starts
    if n_movers == 0:
        return
    for part in range(joint.parts.kind.shape[0]):
        offset, mapped = joint.parts.offset[part], has_map(joint, part)
        for j in range(indices.shape[0]):
            row, phi = weights[indices[j]], np.float64(values[j])
            for a in range(n_movers):
                r = row_buffer.movers[a]
                if mapped:
                    phi = np.float64(row_buffer.views[part, j, r])
                rise = coefficients[r] * (phi if power == 1 else phi * phi)
                for m in range(starts[part, r], starts[part, r + 1]):
                    row[offset + joint.parts.members[m]] += rise


@inlined
def set_gram(joint, s, values, row_buffer, gram):
    """Set gram[r] = <Phi(x, r), Phi(x, s)> for the row whose views are set."""
    clear(gram, gram.shape[0])
    for part in range(joint.parts.kind.shape[0]):
        if has_map(joint, part):
            set_products(row_buffer.views[part], s, values.shape[0], row_buffer.products)
        else:
            squared = 0.0
            for j in range(values.shape[0]):
                squared += np.float64(values[j]) * np.float64(values[j])
            for r in range(gram.shape[0]):
                row_buffer.products[r] = squared
        for r in range(gram.shape[0]):
            gram[r] += joint.common[part, r, s] * row_buffer.products[r]


@inlined
def set_products(views, s, n, products):
    """Set products[r] = <phi(x, r), phi(x, s)> over n entries."""
    clear(products, products.shape[0])
    for j in range(n):
        view = views[j]
        v = np.float64(view[s])
        for r in range(np.uintp(products.shape[0])):
            products[r] += v * np.float64(view[r])


@kernel(types.void(JOINT, LISTED, DOUBLE_TABLE, DOUBLE_TABLE))
def score_rows(joint, rows, weights, scores):
    """Set scores[i, r] = <W, Phi(x_i, r)>."""
    row_buffer = make_row_buffer(joint, rows)
    for i in range(scores.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, row_buffer)
        set_scores(joint, weights, indices, values, row_buffer, scores[i])


@kernel(types.void(JOINT, LISTED, DOUBLE_TABLE, INT, DOUBLE_TABLE))
def add_rows(joint, rows, coefficients, power, weights):
    """Add sum over i and r of coefficients[i, r] Phi(x_i, r)^power to W, with power 1 or 2."""
    row_buffer = make_row_buffer(joint, rows)
    for i in range(coefficients.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, row_buffer)
        add_features(joint, coefficients[i], power, indices, values, row_buffer, weights)


@kernel(types.void(JOINT, LISTED, DOUBLE_STACK))
def gram_rows(joint, rows, grams):
    """Set grams[i, r, s] = <Phi(x_i, r), Phi(x_i, s)>."""
    row_buffer = make_row_buffer(joint, rows)
    for i in range(grams.shape[0]):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, row_buffer)
        for s in range(grams.shape[1]):
            set_gram(joint, s, values, row_buffer, grams[i, s])
