"""Dual coordinate ascent for the multiclass SVM over joint features."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.batch.joint import (
    JOINT,
    LISTED,
    add_features,
    make_row_buffer,
    set_gram,
    set_scores,
    set_views,
)
from kesler.compiled.batch.pairwise import MOST_STEPS, SHARE, find_pair, gap_of, lead_of, step
from kesler.compiled.jit.decorators import DOUBLE_TABLE, DOUBLES, INTS, inlined, kernel

# The results of a sweep: the worst violation, and the sum of contributions to the gap.
WORST, GAP = range(2)


@inlined
def ensure_gram(joint, s, values, row_buffer, gram, is_set):
    """Compute a column of the example's Gram matrix unless it is already set."""
    if is_set[s] == 0:
        set_gram(joint, s, values, row_buffer, gram[s])
        is_set[s] = 1


@inlined
def solve_example(
    joint, values, row_buffer, gradients, alphas, y, most, violation, pair, gram, is_set
):
    """Maximise the dual over one example, with all others fixed."""
    target = SHARE * violation
    for r in range(is_set.shape[0]):
        is_set[r] = 0
    for _ in range(MOST_STEPS):
        high, low = pair[0], pair[1]
        ensure_gram(joint, high, values, row_buffer, gram, is_set)
        ensure_gram(joint, low, values, row_buffer, gram, is_set)
        curvature = gram[high, high] + gram[low, low] - 2.0 * gram[high, low]
        distance = step(violation, max(curvature, 0.0), alphas, y, most, pair)
        for r in range(gradients.shape[0]):
            gradients[r] += distance * (gram[low, r] - gram[high, r])
        violation = find_pair(gradients, alphas, y, most, pair)
        if violation <= target:
            return


@kernel(
    types.void(
        *(JOINT, LISTED, INTS, INTS, DOUBLES, DOUBLE_TABLE, DOUBLES),
        *(DOUBLE_TABLE, DOUBLE_TABLE, INTS, DOUBLES),
    )
)
def sweep(joint, rows, order, codes, caps, margins, threshold, weights, alphas, is_active, found):
    """Visit examples in the given order, and solve the sub-problem of each.

    codes : (rows,), the right classes; caps : (rows,), C of each row; margins : (classes, classes),
    required margins of right classes over others; threshold : (1,), an example at a corner with a
    larger lead becomes inactive; weights, alphas : are updated; found : (2,), the results named
    above, before the updates.
    """
    row_buffer, n_classes = make_row_buffer(joint, rows), margins.shape[0]
    gradients, before = np.empty(n_classes), np.empty(n_classes)
    gram, is_set = np.empty((n_classes, n_classes)), np.empty(n_classes, np.int64)
    pair = np.empty(2, np.int64)
    found[:] = 0.0
    for o in range(order.shape[0]):
        i = order[o]
        y, most, duals = codes[i], caps[i], alphas[i]
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, row_buffer)
        set_scores(joint, weights, indices, values, row_buffer, gradients)
        for r in range(n_classes):
            gradients[r] += margins[y, r]
            before[r] = duals[r]
        violation = find_pair(gradients, duals, y, most, pair)
        found[WORST] = max(found[WORST], violation)
        found[GAP] += gap_of(gradients, duals, y, most)
        if violation == 0.0:
            if lead_of(gradients, duals, y, most) > threshold[0]:
                is_active[i] = 0
            continue
        solve_example(
            joint, values, row_buffer, gradients, duals, y, most, violation, pair, gram, is_set
        )
        for r in range(n_classes):
            before[r] = duals[r] - before[r]
        add_features(joint, before, 1, indices, values, row_buffer, weights)


@kernel(types.void(JOINT, LISTED, INTS, DOUBLES, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLES))
def sum_losses(joint, rows, codes, caps, margins, weights, alphas, sums):
    """Write the sums of C max_r (margin + score(r) - score(y)), and of alpha times margin."""
    row_buffer, scores = make_row_buffer(joint, rows), np.empty(margins.shape[0])
    sums[:] = 0.0
    for i in range(codes.shape[0]):
        y, start, stop = codes[i], rows.indptr[i], rows.indptr[i + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        set_views(joint, indices, values, row_buffer)
        set_scores(joint, weights, indices, values, row_buffer, scores)
        worst = 0.0
        for r in range(scores.shape[0]):
            worst = max(worst, margins[y, r] + scores[r] - scores[y])
            sums[1] += alphas[i, r] * margins[y, r]
        sums[0] += caps[i] * worst
