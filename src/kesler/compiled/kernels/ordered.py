"""Ordered parts over a kernel: one direction for all ranks, and thresholds between them.

With the known ranks in order, numbered from 0, phi(x, r) contains r times the features of the
kernel of x, without the constant feature, and this feature once for each of the r thresholds below
r (:mod:`kesler.compiled.weights.ordered`).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.kernels.exact import similarity
from kesler.compiled.kernels.scores import set_direction_view
from kesler.compiled.kernels.supports import PROJECTRON, enter, stays_small, store
from kesler.compiled.trial.records import ORDERED
from kesler.compiled.trial.variants import is_averaged, project
from kesler.compiled.weights.ordered import (
    add_ordered_products,
    begin_threshold,
    largest_ordered_step,
    ordered_length,
    ordered_pair_norm,
    place_rank,
)
from kesler.compiled.weights.scores import clear


@inlined
def square_along(learner, values, view, scratch):
    """Return K(x, x) without the constant feature, and write x without it to `view`."""
    for j in range(values.shape[0]):
        view[j] = values[j]
    view[0] = 0
    return similarity(learner, view, view, scratch)


@inlined
def add_products_along(learner, values, s, k, scratch, out):
    """Add <Phi(x, r), Phi(x, s)> to out[r], for r < k."""
    square = square_along(learner, values, scratch.phi[: values.shape[0]], scratch)
    add_ordered_products(learner, square, values, s, k, out)


@inlined
def pair_norm_along(learner, values, r, s, scratch):
    """Return ||Phi(x, r) - Phi(x, s)||^2."""
    square = square_along(learner, values, scratch.phi[: values.shape[0]], scratch)
    return ordered_pair_norm(learner, square, values, r, s)


@inlined
def length_along(learner, values, r, scratch):
    """Return ||Phi(x, r)||^2."""
    square = square_along(learner, values, scratch.phi[: values.shape[0]], scratch)
    return ordered_length(learner, square, values, r)


@inlined
def movable_along(learner, values, n_moved, scratch, solver):
    """Return whether no score of x itself changes by more than LARGEST; False for NaN."""
    view = scratch.phi[: values.shape[0]]
    square = square_along(learner, values, view, scratch)
    return stays_small(largest_ordered_step(learner, n_moved, solver), view, square)


@inlined
def move_along(learner, part, indices, values, scratch, solver):
    """Add coefficient Phi(x, r) of every class r, or the projection of its part along x."""
    along = move_thresholds(learner, part, np.float64(values[0]), solver)
    set_direction_view(learner, indices, values, scratch)
    view, size = scratch.stored[: indices.shape[0]], scratch.sizes[0]
    if learner.weights.policy >= PROJECTRON:
        clear(scratch.column, scratch.column.shape[0])
        scratch.column[0] = np.float32(along)
        project(learner, part, indices, view, size, scratch, solver)
    elif along != 0:
        store(learner, part, indices, view, size)
        enter(learner, part, 0, np.float32(along))


@inlined
def move_thresholds(learner, part, constant, solver):
    """Change each threshold by the sum of the coefficients of the ranks above it.

    Return the sum of these sums, the coefficient of x along the direction.
    """
    above, along = 0.0, 0.0
    for i in range(learner.counts.n_classes - 1, 0, -1):
        r = learner.ranks.order[i]
        above += solver.coefficients[r]
        along += above
        learner.weights.thresholds[part, 0, r] += above * constant
        if is_averaged(learner):
            moved = learner.counts.n_trials * above * constant
            learner.weights.thresholds[part, 1, r] += moved
    return along


@always_inlined
def kernel_insert_rank(learner, y, out):
    """Insert a new rank, class y, at its position among the y known ones, with a threshold."""
    place_rank(learner, y)
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED and y > 1:
            for i in range(2):  # an average covers as many trials as those of its neighbours
                begin_threshold(learner, learner.weights.thresholds[part, i], 0, y)
