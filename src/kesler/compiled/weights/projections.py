"""Exact projections under the exponential link: the step after which one constraint is satisfied.

A rule divides the loss of a constraint by its squared norm. With the loss divided by the exact step
in place of this norm, every such rule takes exact steps, limited as it limits them.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.trial.choices import lead_of
from kesler.compiled.trial.rules import gather
from kesler.compiled.trial.variants import pair_norm
from kesler.compiled.weights.links import EXTENT, MASS, SCALE, WEIGHT, ask, call_link

NEAR = 1e-12  # relative distance from the margin at which the search ends
MOST_TRIES = 200  # of a search, which bisection alone would end after some 60


@inlined
def projected_norm(learner, indices, values, j, scratch, solver):
    """Return the loss of pair j by its exact step, 0 if no step is long enough.

    Without a loss, or along a view of zeros, return the norm.
    """
    r, s, loss = solver.better[j], solver.worse[j], solver.losses[j]
    norm = pair_norm(learner, indices, values, r, s, scratch)
    if not (loss > 0 and norm > 0):
        return norm
    n = gather(learner, indices, values, r, s, scratch)
    margin = loss + lead_of(scratch.scores, r, s)
    if largest_margin(learner, n, scratch) <= margin:
        return 0.0
    return loss / exact_step(learner, n, margin, loss / norm, scratch)


@inlined
def largest_margin(learner, n, scratch):
    """Return the limit of the margin along the n listed values for ever longer steps, 0 at least.

    It is the sum of all weights times the largest value; paired weights have either sign.
    """
    are_paired = ask(learner, WEIGHT, 0.0, scratch.out) == 0
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(scratch.z[i]) if are_paired else scratch.z[i])
    return learner.link.parameters[1] * largest


@inlined
def exact_step(learner, n, margin, step, scratch):
    """Return the step to a margin, given a first guess: bisection, and Newton's steps within it."""
    rest = mass_of_others(learner, n, scratch)
    low, high = 0.0, np.inf
    for _ in range(MOST_TRIES):
        found, slope = margin_after(learner, n, step, rest, scratch)
        if abs(found - margin) <= NEAR * margin:
            return step
        if found < margin:
            low = step
        else:
            high = step
        better = step + (margin - found) / slope if slope > 0 else np.inf
        if low < better < min(high, 8.0 * step):
            step = better
        else:
            step = 2.0 * step if high == np.inf else 0.5 * (low + high)
    return step


@inlined
def mass_of_others(learner, n, scratch):
    """Return the mass of the weights that are not listed."""
    rest, sums = learner.link.scale.mass, learner.weights.flat_states
    for i in range(n):
        rest -= ask(learner, MASS, sums[0, scratch.positions[i]], scratch.out)
    return max(rest, 0.0)


@inlined
def margin_after(learner, n, step, rest, scratch):
    """Return the margin along the listed values after a step, and its derivative by the step.

    Weights are relative to the largest of them after the step, so that none overflows.
    """
    link, out, z = learner.link, scratch.out, scratch.z
    sums, positions, before = learner.weights.flat_states, scratch.positions, link.scale.reference
    top = before
    for i in range(n):
        v = sums[0, positions[i]] + step * z[i]
        call_link(link.address, EXTENT, v, top, link.parameters, out)
        top = max(top, out[0])
    mass, margin, bend = rest * np.exp(before - top), 0.0, 0.0
    for i in range(n):
        v = sums[0, positions[i]] + step * z[i]
        call_link(link.address, WEIGHT, v, top, link.parameters, out)
        margin += z[i] * out[0]
        call_link(link.address, MASS, v, top, link.parameters, out)
        mass += out[0]
        bend += z[i] * z[i] * out[0]
    call_link(link.address, SCALE, mass, top, link.parameters, out)
    rate, total, scale = link.parameters[0], link.parameters[1], out[0]
    margin *= scale
    return margin, rate * (scale * bend - margin * margin / total)
