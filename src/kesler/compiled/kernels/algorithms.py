"""Linear-threshold algorithms over a kernel.

The weights w and the instance z = Phi(x, r) - Phi(x, s) of a trial span a plane. An algorithm whose
updates depend on inner products alone leaves w in it, and is called with the coordinates of both:
the first is along w, or along z while w is 0. What it writes says by which factor w is multiplied
and which multiple of z is added.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import allocating, always_inlined, inlined
from kesler.compiled.trial.rules import call_algorithm
from kesler.compiled.trial.variants import is_movable, move, pair_norm
from kesler.compiled.weights.moves import forget_coefficients, sum_coefficients

# Of `algorithm.numbers`: the scale of the weights, and the sum of their squares before it.
SCALE, SQUARES = range(2)


@always_inlined
def kernel_run_algorithm(learner, indices, values, scratch, solver):
    """Call the algorithm with z = Phi(x, r) - Phi(x, s) of the single chosen pair."""
    run_apart(learner, indices, values, scratch, solver)


@allocating
def run_apart(learner, indices, values, scratch, solver):
    """Do so in code that may allocate arrays."""
    r, s = solver.better[0], solver.worse[0]
    margin = np.float64(scratch.scores[r]) - np.float64(scratch.scores[s])
    square = pair_norm(learner, indices, values, r, s, scratch)
    if not (abs(margin) < np.inf and square < np.inf):
        learner.counts.n_not_finite += 1
        return
    if square == 0:
        return
    numbers = learner.algorithm.numbers.copy()
    keep, add = run_in_plane(learner, margin, math.sqrt(square))
    if keep == 1 and add == 0:
        return
    solver.steps[0] = add
    n_moved = sum_coefficients(1, solver)
    if is_movable(learner, indices, values, n_moved, scratch, solver):
        multiply_coefficients(learner, keep)
        move(learner, indices, values, n_moved, scratch, solver)
    else:
        learner.algorithm.numbers[:] = numbers
        learner.counts.n_not_finite += 1
    forget_coefficients(n_moved, solver)


@allocating
def run_in_plane(learner, margin, length):
    """Call the algorithm with coordinates; return the factors of w and of z in the new weights."""
    numbers = learner.algorithm.numbers
    weights, z, positions = np.zeros(2, np.float32), np.zeros(2), np.arange(2)
    weights[0] = math.sqrt(numbers[SQUARES])
    norm = numbers[SCALE] * np.float64(weights[0])
    z[0] = margin / norm if norm > 0 else length
    if norm > 0:
        z[1] = math.sqrt(max(0.0, length * length - z[0] * z[0]))
    call_algorithm(
        learner.algorithm.address,
        learner.rule.parameters,
        positions,
        z,
        margin,
        weights,
        np.zeros((0, 2)),
        numbers,
    )
    along = numbers[SCALE] * np.float64(weights[0])
    if not norm > 0:
        return 1.0, along / length
    add = numbers[SCALE] * np.float64(weights[1]) / z[1] if z[1] > 0 else 0.0
    return (along - add * z[0]) / norm, add


@inlined
def multiply_coefficients(learner, factor):
    """Multiply all coefficients of support vectors."""
    weights = learner.weights
    for part in range(learner.parts.kind.shape[0]):
        for e in range(weights.entry_starts[part, weights.following[part]]):
            weights.coefficients[part, e] *= factor
