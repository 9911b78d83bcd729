"""Dual coordinate ascent for the multiclass SVM, given a kernel matrix."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.batch.pairwise import MOST_STEPS, SHARE, find_pair, gap_of, step
from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_TABLE,
    INT,
    INTS,
    inlined,
    kernel,
)
from kesler.compiled.kernels.supports import call_double

# The results of a sweep: the worst violation, and the sum of contributions to the gap.
WORST, GAP = range(2)


@inlined
def solve_coupled(coupling, squared, gradients, alphas, y, most, violation, pair):
    """Maximise the dual over one example, whose Gram matrix is `squared` times the coupling."""
    target = SHARE * violation
    for _ in range(MOST_STEPS):
        high, low = pair[0], pair[1]
        curvature = coupling[high, high] + coupling[low, low] - 2.0 * coupling[high, low]
        distance = step(violation, max(squared * curvature, 0.0), alphas, y, most, pair)
        for r in range(gradients.shape[0]):
            gradients[r] += distance * squared * (coupling[low, r] - coupling[high, r])
        violation = find_pair(gradients, alphas, y, most, pair)
        if violation <= target:
            return


@kernel(
    types.void(
        *(DOUBLE_TABLE, DOUBLE_TABLE, INTS, INTS, DOUBLES),
        *(DOUBLE_TABLE, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLES),
    )
)
def sweep_gram(kernel_table, coupling, order, codes, caps, margins, scores, alphas, found):
    """Visit examples where <Phi(x, r), Phi(z, s)> = coupling[r, s] K(x, z).

    kernel_table : (rows, rows), values of K; scores : (rows, classes), updated with the duals; the
    other arguments are as in `sweep` of `coupled_ascent`.
    """
    n_classes = margins.shape[0]
    gradients, raised = np.empty(n_classes), np.empty(n_classes)
    moved, pair = np.empty(n_classes), np.empty(2, np.int64)
    movers = np.empty(n_classes, np.int64)
    found[:] = 0.0
    for o in range(order.shape[0]):
        i = order[o]
        y, most, duals, squared = codes[i], caps[i], alphas[i], kernel_table[i, i]
        for r in range(n_classes):
            gradients[r] = scores[i, r] + margins[y, r]
            moved[r] = duals[r]
        violation = find_pair(gradients, duals, y, most, pair)
        found[WORST] = max(found[WORST], violation)
        found[GAP] += gap_of(gradients, duals, y, most)
        if violation == 0.0:
            continue
        solve_coupled(coupling, squared, gradients, duals, y, most, violation, pair)
        n_movers = 0
        for r in range(n_classes):
            raised[r] = 0.0
            for s in range(n_classes):
                raised[r] += coupling[r, s] * (duals[s] - moved[s])
            if raised[r] != 0.0:
                movers[n_movers] = r
                n_movers += 1
        for j in range(scores.shape[0]):
            similarity = kernel_table[i, j]
            for a in range(n_movers):
                scores[j, movers[a]] += similarity * raised[movers[a]]


@kernel(
    types.void(INT, FLOAT_TABLE, FLOAT_TABLE, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLES, DOUBLE_TABLE)
)
def compare_rows(address, views, panel, inner, distances, parameters, out):
    """Set out[i, s] = K of the i-th view and the s-th column of the panel.

    address : address of the loop over k in float64; views : (rows, features) and panel : (features,
    others), for kernels of vectors; inner, distances : (rows, others), <x, z> and ||x - z||^2;
    parameters : (4,).
    """
    for i in range(out.shape[0]):
        call_double(address, views[i], panel, inner[i], distances[i], parameters, out[i])
