"""Squared norms and inner products of d = phi(x, r) - phi(x, s), over all hypotheses."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.given import (
    add_given_products,
    given_distance,
    given_length,
    with_distance_powers,
    with_given_powers,
)
from kesler.compiled.jit import always_inlined, by_learner, inlined
from kesler.compiled.learner import (
    FIRST_SEEN,
    GIVEN,
    IN_USE,
    ITSELF,
    KIND,
    MAP,
    ORDERED,
    is_vs_rest,
)
from kesler.compiled.lengths import squared_length, squared_norm, with_power
from kesler.compiled.maps import PRODUCTS, SQUARED_NORMS
from kesler.compiled.members import n_common, n_hypotheses
from kesler.compiled.metrics import has_metric, measure_in_metric
from kesler.compiled.ordered import add_ordered_products, ordered_length, ordered_pair_norm
from kesler.compiled.scores import clear, of_map, phi_of


@by_learner
def pair_norm(learner, indices, values, y, s, scratch):
    """||phi(x, y) - phi(x, s)||^2 over all hypotheses, in the norm of the learner's geometry."""
    total, exponent = 0.0, learner.geometry[0]
    n = indices.shape[0]
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == ORDERED:
            total += ordered_pair_norm(learner, values, y, s)
            continue
        common = n_common(learner, part, y, s)
        own = n_hypotheses(learner, part, y) - common
        others = n_hypotheses(learner, part, s) - common
        if learner.parts[part, MAP] == ITSELF:
            if exponent == 2:
                total += (own + others) * squared_length(values)
            else:
                for j in range(n):
                    total = with_power(total, np.float64(values[j]), own + others, exponent)
            continue
        if learner.parts[part, MAP] == GIVEN:
            views = scratch.views
            if exponent == 2:
                total += own * given_length(views, y) + others * given_length(views, s)
                total += common * given_distance(views, y, s)
            else:
                total = with_given_powers(views, y, own, exponent, total)
                total = with_given_powers(views, s, others, exponent, total)
                total = with_distance_powers(views, y, s, common, exponent, total)
            continue
        phi_of(learner, part, indices, values, y, scratch, scratch.phi)
        phi_of(learner, part, indices, values, s, scratch, scratch.other)
        for j in range(n):
            a, b = np.float64(scratch.phi[j]), np.float64(scratch.other[j])
            if exponent == 2:
                total += own * (a * a) + others * (b * b) + common * ((a - b) * (a - b))
            else:
                total = with_power(total, a, own, exponent)
                total = with_power(total, b, others, exponent)
                total = with_power(total, a - b, common, exponent)
    return total if exponent == 2 else squared_norm(total, exponent, learner.geometry[1])


@by_learner
def gram_column(learner, indices, values, s, k, scratch, out):
    """out[r] = <phi(x, r), phi(x, s)> over the hypotheses that classes r and s share, r < k."""
    clear(out, k)
    plain = squared_length(values)
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == ORDERED:
            add_ordered_products(learner, values, s, k, out)
            continue
        if learner.parts[part, MAP] == ITSELF:
            for r in range(k):
                out[r] += n_common(learner, part, r, s) * plain
            continue
        if learner.parts[part, MAP] == GIVEN:
            add_given_products(learner, part, s, k, scratch.views, out)
            continue
        weights, products = scratch.phi[: indices.shape[0]], scratch.products
        phi_of(learner, part, indices, values, s, scratch, weights)
        clear(products, k)
        n_known = min(k, learner.counters[FIRST_SEEN])
        of_map(
            learner,
            part,
            PRODUCTS,
            indices,
            values,
            scratch.vectors,
            weights,
            n_known,
            scratch.other,
            products,
        )
        for r in range(k):
            out[r] += n_common(learner, part, r, s) * products[r]


@by_learner
def gram_diagonal(learner, indices, values, k, scratch, out):
    """out[r] = ||phi(x, r)||^2 over the hypotheses of class r, r < k."""
    clear(out, k)
    for part in range(learner.parts.shape[0]):
        measure_views(learner, part, indices, values, k, scratch)
        for r in range(k):
            out[r] += n_hypotheses(learner, part, r) * scratch.products[r]


@inlined
def measure_views(learner, part, indices, values, k, scratch):
    """products[r] = ||phi(x, r)||^2 in one hypothesis of the part, r < k."""
    products = scratch.products
    if learner.parts[part, MAP] > GIVEN:
        clear(products, k)
        of_map(
            learner,
            part,
            SQUARED_NORMS,
            indices,
            values,
            scratch.vectors,
            values[:0],
            min(k, learner.counters[FIRST_SEEN]),
            scratch.phi,
            products,
        )
        return
    plain = squared_length(values)
    for r in range(k):
        if learner.parts[part, MAP] == GIVEN:
            products[r] = given_length(scratch.views, r)
        elif learner.parts[part, KIND] == ORDERED:
            products[r] = ordered_length(learner, values, r)
        else:
            products[r] = plain


@always_inlined
def measure_norms(learner, indices, values, k, m, scratch, solver):
    """norms[j] = ||d_j||^2, d_j = phi(x, r_j) - phi(x, s_j), for the chosen pairs."""
    if has_metric(learner):
        measure_in_metric(learner, indices, values, k, m, scratch, solver)
        return
    if is_vs_rest(learner.rule[1]):
        gram_diagonal(learner, indices, values, k, scratch, solver.columns[0])
        for j in range(m):
            solver.norms[j] = solver.columns[0, max(solver.better[j], solver.worse[j])]
        return
    # Pairs of neighbours have each a better class of its own, and no use for a Gram column.
    if m == 1 or learner.geometry[0] != 2 or solver.ranks.shape[1]:
        for j in range(m):
            solver.norms[j] = pair_norm(
                learner, indices, values, solver.better[j], solver.worse[j], scratch
            )
        return
    diagonal, column = solver.columns[0], solver.columns[1]
    gram_diagonal(learner, indices, values, k, scratch, diagonal)
    of = -1
    for j in range(m):
        r, s = solver.better[j], solver.worse[j]
        if r != of:  # pairs of one better class stand in a row
            gram_column(learner, indices, values, r, k, scratch, column)
            of = r
        solver.norms[j] = max(0.0, diagonal[r] + diagonal[s] - 2.0 * column[s])


@inlined
def measure_gram(learner, indices, values, k, start, m, scratch, solver):
    """gram[i, j] = <d_i, d_j> for the pairs from `start` to m - 1 with all before them."""
    for i in range(start, m):
        better = column_of(learner, indices, values, solver.better[i], k, scratch, solver)
        worse = column_of(learner, indices, values, solver.worse[i], k, scratch, solver)
        for j in range(i + 1):
            inner = gain(solver, better, worse, solver.better[j], solver.worse[j])
            solver.gram[i, j] = inner
            solver.gram[j, i] = inner
        solver.norms[i] = solver.gram[i, i]


@inlined
def gain(solver, better, worse, r, s):
    """Return how much a step of 1 along a pair, given its columns, parts the scores of r and s."""
    columns = solver.columns
    up = columns[better, r] - columns[better, s]
    return up - (columns[worse, r] - columns[worse, s])


@inlined
def column_of(learner, indices, values, r, k, scratch, solver):
    """Return which of the columns is the Gram column of class r, which is computed once a trial."""
    if solver.slots[r] < 0:
        slot = solver.counts[IN_USE]
        gram_column(learner, indices, values, r, k, scratch, solver.columns[slot])
        solver.slots[r] = slot
        solver.owners[slot] = r
        solver.counts[IN_USE] = slot + 1
    return solver.slots[r]


@inlined
def forget_columns(solver):
    """Make room for the columns of the next trial."""
    for slot in range(solver.counts[IN_USE]):
        solver.slots[solver.owners[slot]] = -1
    solver.counts[IN_USE] = 0
