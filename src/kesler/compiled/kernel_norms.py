"""Squared norms and inner products of a trial's views, in the space of a Mercer kernel."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.kernels import call_double
from kesler.compiled.learner import MAP
from kesler.compiled.members import n_common, n_hypotheses
from kesler.compiled.metrics import (
    gather_gradient,
    has_metric,
    leave_evidence,
    measure_in_metric,
    rescale,
)
from kesler.compiled.norms import gram_column, gram_diagonal, pair_norm
from kesler.compiled.prefetch import fetch_ahead
from kesler.compiled.scores import clear, compute_phi
from kesler.compiled.statistics import inherit, list_features
from kesler.compiled.supports import DOUBLE, KernelLearner
from kesler.compiled.wide import choose_loops


@inlined
def similarity(learner, one, other, scratch):
    """Return K(one, other), in double: what counts are differences, which cancel."""
    n = one.shape[0]
    inner, distance = 0.0, 0.0
    for j in range(n):
        a, b = np.float64(one[j]), np.float64(other[j])
        inner += a * b
        distance += (a - b) * (a - b)
        scratch.pair[j, 0] = other[j]
    scratch.one[0, 0], scratch.one[1, 0] = inner, distance
    call_double(
        learner.kernel[DOUBLE],
        one,
        scratch.pair[:n],
        scratch.one[0],
        scratch.one[1],
        scratch.doubles,
        scratch.one[2],
    )
    return scratch.one[2, 0]


@inlined
def view_of(learner, part, indices, values, r, scratch, out):
    """Return the view that class r has of x, written to `out` if it is not x itself."""
    if learner.parts[part, MAP] == 0:
        return values
    compute_phi(learner, part, indices, values, r, scratch, out)
    return out


@inlined
def own_similarity(learner, part, indices, values, r, scratch):
    """Return K(phi(x, r), phi(x, r))."""
    view = view_of(learner, part, indices, values, r, scratch, scratch.phi[: indices.shape[0]])
    return similarity(learner, view, view, scratch)


@gram_column.register(KernelLearner)
def kernel_gram_column(learner, indices, values, s, k, scratch, out):
    """out[r] = <Phi(x, r), Phi(x, s)> over the hypotheses that classes r and s share, r < k."""
    clear(out, k)
    n = indices.shape[0]
    for part in range(learner.parts.shape[0]):
        of_s = view_of(learner, part, indices, values, s, scratch, scratch.phi[:n])
        for r in range(k):
            common = n_common(learner, part, r, s)
            if common:
                of_r = view_of(
                    learner, part, indices, values, r, scratch, scratch.views[0, 1 : n + 1]
                )
                out[r] += common * similarity(learner, of_r, of_s, scratch)


@gram_diagonal.register(KernelLearner)
def kernel_gram_diagonal(learner, indices, values, k, scratch, out):
    """out[r] = ||Phi(x, r)||^2 over the hypotheses of class r, r < k."""
    clear(out, k)
    for part in range(learner.parts.shape[0]):
        for r in range(k):
            times = n_hypotheses(learner, part, r)
            if times:
                out[r] += times * own_similarity(learner, part, indices, values, r, scratch)


@pair_norm.register(KernelLearner)
def kernel_pair_norm(learner, indices, values, y, s, scratch):
    """||Phi(x, y) - Phi(x, s)||^2 over all hypotheses, for one pair."""
    total, n = 0.0, indices.shape[0]
    for part in range(learner.parts.shape[0]):
        of_y = view_of(learner, part, indices, values, y, scratch, scratch.phi[:n])
        of_s = view_of(learner, part, indices, values, s, scratch, scratch.views[0, 1 : n + 1])
        total += n_hypotheses(learner, part, y) * similarity(learner, of_y, of_y, scratch)
        total += n_hypotheses(learner, part, s) * similarity(learner, of_s, of_s, scratch)
        total -= 2.0 * n_common(learner, part, y, s) * similarity(learner, of_y, of_s, scratch)
    return max(0.0, total)


# ---- what weights alone have: step sizes of their own, a virtual class ---------------------------


@has_metric.register(KernelLearner)
@rescale.register(KernelLearner)
def no(learner, *arguments):
    """Support vectors have no step sizes of their own, and no units."""
    return False


@measure_in_metric.register(KernelLearner)
@gather_gradient.register(KernelLearner)
@leave_evidence.register(KernelLearner)
@inherit.register(KernelLearner)
@list_features.register(KernelLearner)
@choose_loops.register(KernelLearner)
@fetch_ahead.register(KernelLearner)
def nothing(learner, *arguments):
    """Do nothing: a machine over a kernel refuses what would have it done."""
