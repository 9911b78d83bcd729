"""Given views: phi(x, r) is the vector of the ratings of class r by the sub-experts of the row.

All costs are linear in the number of ratings of the classes involved: no lists of ratings are
merged, and `sums` is the only array with an entry for each sub-expert.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import with_power
from kesler.compiled.trial.decay import decay_offset_of
from kesler.compiled.trial.records import GROUPED, PER_CLASS, is_member, n_common
from kesler.compiled.weights.links import begin_walk, change


@always_inlined
def dense_find_views(learner, ratings, t, k, scratch):
    """Find the ratings that row t has for each of the first k classes: none if it is not rated."""
    views = scratch.views
    if ratings.starts.shape[0] == 0:
        return
    for r in range(k):
        views.begins[r], views.ends[r] = 0, 0
    for j in range(ratings.starts[t], ratings.starts[t + 1]):
        r = ratings.codes[j]
        if 0 <= r and r < k:
            views.begins[r], views.ends[r] = ratings.indptr[j], ratings.indptr[j + 1]


# ---- scores --------------------------------------------------------------------------------------


@inlined
def project(indices, values, start, stop, weights, column):
    """Return the sum of x_j weights[i_j, column].

    Four entries per iteration shorten the chain of dependent additions. Unsigned indices spare the
    test for negative ones.
    """
    j, end, c = np.uintp(start), np.uintp(stop), np.uintp(column)
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    total = np.float32(0)
    while j + four <= end:
        i1, i2 = np.uintp(indices[j]), np.uintp(indices[j + one])
        i3, i4 = np.uintp(indices[j + two]), np.uintp(indices[j + three])
        pair = values[j] * weights[i1, c] + values[j + one] * weights[i2, c]
        total += pair + (values[j + two] * weights[i3, c] + values[j + three] * weights[i4, c])
        j += four
    while j < end:
        total += values[j] * weights[np.uintp(indices[j]), c]
        j += one
    return total


@inlined
def add_given_scores(learner, part, k, views, scores):
    """Add the scores of a part whose view of x is given."""
    kind, offset = learner.parts.kind[part], learner.parts.offset[part]
    indices, values, weights = views.indices, views.values, learner.weights.values
    for r in range(k):
        start, stop = views.begins[r], views.ends[r]
        if kind == GROUPED:
            starts = learner.parts.member_starts
            for m in range(starts[part, r], starts[part, r + 1]):
                column = offset + learner.parts.members[m]
                scores[r] += project(indices, values, start, stop, weights, column)
        else:
            column = offset + r if kind == PER_CLASS else offset
            scores[r] += project(indices, values, start, stop, weights, column)
            decay_offset = decay_offset_of(learner, part)
            if decay_offset != 0:
                for j in range(start, stop):
                    scores[r] += decay_offset * values[j]


# ---- norms ---------------------------------------------------------------------------------------


@inlined
def spread(views, r, coefficient):
    """Add coefficient phi(x, r) to `sums`."""
    for j in range(views.begins[r], views.ends[r]):
        views.sums[views.indices[j]] += coefficient * np.float64(views.values[j])


@inlined
def take_squares(views, r):
    """Return the sum of squares of `sums` where class r is rated, and set these entries to 0."""
    total = 0.0
    for j in range(views.begins[r], views.ends[r]):
        i = views.indices[j]
        total += views.sums[i] * views.sums[i]
        views.sums[i] = 0
    return total


@inlined
def given_length(views, r):
    """Return ||phi(x, r)||^2."""
    total = 0.0
    for j in range(views.begins[r], views.ends[r]):
        total += np.float64(views.values[j]) * np.float64(views.values[j])
    return total


@inlined
def given_distance(views, r, s):
    """Return ||phi(x, r) - phi(x, s)||^2."""
    spread(views, r, 1.0)
    spread(views, s, -1.0)
    return take_squares(views, r) + take_squares(views, s)


@inlined
def with_given_powers(views, r, times, exponent, total):
    """Add phi(x, r), `times` times, to the sum of powers of a norm."""
    for j in range(views.begins[r], views.ends[r]):
        total = with_power(total, np.float64(views.values[j]), times, exponent)
    return total


@inlined
def with_distance_powers(views, r, s, times, exponent, total):
    """Add phi(x, r) - phi(x, s), `times` times, to the sum of powers of a norm."""
    spread(views, r, 1.0)
    spread(views, s, -1.0)
    for c in (r, s):
        for j in range(views.begins[c], views.ends[c]):
            total = with_power(total, views.sums[views.indices[j]], times, exponent)
            views.sums[views.indices[j]] = 0
    return total


@inlined
def add_given_products(learner, part, s, k, views, out):
    """Add <phi(x, r), phi(x, s)> to out[r] over the hypotheses that r and s share, for r < k."""
    spread(views, s, 1.0)
    for r in range(k):
        product = 0.0
        for j in range(views.begins[r], views.ends[r]):
            product += views.sums[views.indices[j]] * np.float64(views.values[j])
        out[r] += n_common(learner, part, r, s) * product
    take_squares(views, s)


# ---- updates -------------------------------------------------------------------------------------


@inlined
def largest_given(views, r):
    """Return the largest |phi_i(x, r)|; ratings are finite."""
    size = 0.0
    for j in range(views.begins[r], views.ends[r]):
        size = max(size, np.float64(abs(views.values[j])))
    return size


@inlined
def add_given_sum(learner, part, column, n_moved, scratch, solver):
    """Update a hypothesis that classes share by the sum of their updates, each weight once."""
    walk = begin_walk(learner)
    group, views = column - learner.parts.offset[part], scratch.views
    for i in range(n_moved):
        r = solver.moved[i]
        if learner.parts.kind[part] != GROUPED or is_member(learner, part, r, group):
            spread(views, r, solver.coefficients[r])
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(views.begins[r], views.ends[r]):
            f = views.indices[j]
            if views.sums[f] != 0:
                amount = np.float32(views.sums[f])
                change(learner, walk, f, column, amount, views.values[j], scratch.out)
                views.sums[f] = 0


@inlined
def add_given_view(learner, column, r, scratch, solver):
    """Update the hypothesis that belongs to class r alone."""
    walk = begin_walk(learner)
    views, coefficient = scratch.views, np.float32(solver.coefficients[r])
    for j in range(views.begins[r], views.ends[r]):
        view = views.values[j]
        change(learner, walk, views.indices[j], column, coefficient * view, view, scratch.out)
