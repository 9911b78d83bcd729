"""Squared norms and inner products of a trial's views, plain and under a preconditioner.

Where most classes are updated, the loops run over classes in contiguous memory ("wide"); elsewhere
the pass of `moves.py` visits the weights along a direction, in hypotheses of any kind.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import squared_length, squared_norm, whole_lines, with_power
from kesler.compiled.trial.choices import step_cost
from kesler.compiled.trial.records import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    FEATURES,
    FIXED,
    GATHER,
    GIVEN,
    GROWING,
    ITSELF,
    LARGEST,
    MEASURE,
    MOVE,
    NO_UNIT,
    NOTHING,
    ONE,
    ORDERED,
    PER_CLASS,
    THE_REST,
    is_vs_rest,
    n_candidates,
    n_common,
    n_hypotheses,
    takes_one,
)
from kesler.compiled.trial.rules import call_gradient
from kesler.compiled.trial.variants import (
    gram_column,
    gram_diagonal,
    has_preconditioner,
    measure_preconditioned,
    pair_norm,
    preconditioned_column,
)
from kesler.compiled.views.given import (
    add_given_products,
    given_distance,
    given_length,
    with_distance_powers,
    with_given_powers,
)
from kesler.compiled.views.maps import PRODUCTS, SQUARED_NORMS
from kesler.compiled.weights.links import note_change
from kesler.compiled.weights.moves import (
    add_coefficient,
    forget_coefficients,
    move_part,
    sum_coefficients,
)
from kesler.compiled.weights.ordered import (
    add_ordered_products,
    ordered_length,
    ordered_pair_norm,
    squared_length_of_rest,
    with_ordered_powers,
)
from kesler.compiled.weights.preconditioners import gathers_gradients
from kesler.compiled.weights.projections import projected_norm
from kesler.compiled.weights.scores import clear, of_map, phi_of
from kesler.compiled.weights.second_order import (
    add_second_moments,
    find_direction,
    is_second_order,
)
from kesler.compiled.weights.wide import (
    add_view_lengths,
    change_widely,
    is_wide,
    is_wide_part,
    spread_coefficients,
)


@always_inlined
def dense_pair_norm(learner, indices, values, y, s, scratch):
    """Return ||phi(x, y) - phi(x, s)||^2 over all hypotheses, in the norm of the geometry."""
    total, exponent = 0.0, learner.link.exponent
    n = indices.shape[0]
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            if exponent == 2:
                total += ordered_pair_norm(learner, squared_length_of_rest(values), values, y, s)
            else:
                total = with_ordered_powers(learner, values, y, s, exponent, total)
            continue
        common = n_common(learner, part, y, s)
        own = n_hypotheses(learner, part, y) - common
        others = n_hypotheses(learner, part, s) - common
        if learner.parts.map[part] == ITSELF:
            if exponent == 2:
                total += (own + others) * squared_length(values)
            else:
                for j in range(n):
                    total = with_power(total, np.float64(values[j]), own + others, exponent)
            continue
        if learner.parts.map[part] == GIVEN:
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
    if exponent == 2:
        return learner.link.factor * total
    return squared_norm(total, exponent, learner.link.factor)


@always_inlined
def dense_gram_column(learner, indices, values, s, k, scratch, out):
    """Compute out[r] = <phi(x, r), phi(x, s)> over the hypotheses that r and s share, for r < k."""
    clear(out, k)
    plain = squared_length(values)
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            add_ordered_products(learner, squared_length_of_rest(values), values, s, k, out)
            continue
        if learner.parts.map[part] == ITSELF:
            for r in range(k):
                out[r] += n_common(learner, part, r, s) * plain
            continue
        if learner.parts.map[part] == GIVEN:
            add_given_products(learner, part, s, k, scratch.views, out)
            continue
        weights, products = scratch.phi[: indices.shape[0]], scratch.products
        phi_of(learner, part, indices, values, s, scratch, weights)
        clear(products, k)
        n_known = min(k, learner.counts.n_classes)
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


@always_inlined
def dense_gram_diagonal(learner, indices, values, k, scratch, out):
    """Compute out[r] = ||phi(x, r)||^2 over the hypotheses of class r, for r < k."""
    clear(out, k)
    for part in range(learner.parts.kind.shape[0]):
        measure_views(learner, part, indices, values, k, scratch)
        for r in range(k):
            out[r] += n_hypotheses(learner, part, r) * scratch.products[r]


@inlined
def measure_views(learner, part, indices, values, k, scratch):
    """Compute products[r] = ||phi(x, r)||^2 in one hypothesis of the part, for r < k."""
    products = scratch.products
    if learner.parts.map[part] > GIVEN:
        clear(products, k)
        of_map(
            learner,
            part,
            SQUARED_NORMS,
            indices,
            values,
            scratch.vectors,
            values[:0],
            min(k, learner.counts.n_classes),
            scratch.phi,
            products,
        )
        return
    plain = squared_length(values)
    for r in range(k):
        if learner.parts.map[part] == GIVEN:
            products[r] = given_length(scratch.views, r)
        elif learner.parts.kind[part] == ORDERED:
            products[r] = ordered_length(learner, squared_length_of_rest(values), values, r)
        else:
            products[r] = plain


@always_inlined
def measure_norms(learner, indices, values, k, m, scratch, solver):
    """Compute norms[j] = ||d_j||^2, d_j = phi(x, r_j) - phi(x, s_j), for the chosen pairs."""
    if has_preconditioner(learner):
        measure_preconditioned(learner, indices, values, k, m, scratch, solver)
        return
    if learner.link.is_exact:
        for j in range(m):
            solver.norms[j] = projected_norm(learner, indices, values, j, scratch, solver)
        return
    if is_vs_rest(learner.rule.selection):
        measure_classes(learner, indices, values, k, m, scratch, solver)
        return
    # Pairs of neighbouring ranks have different better classes: no Gram column would be reused.
    if is_pair_by_pair(learner, m, solver):
        for j in range(m):
            solver.norms[j] = pair_norm(
                learner, indices, values, solver.better[j], solver.worse[j], scratch
            )
        return
    diagonal, column = solver.columns[0], solver.columns[1]
    gram_diagonal(learner, indices, values, k, scratch, diagonal)
    owner = -1
    for j in range(m):
        r, s = solver.better[j], solver.worse[j]
        if r != owner:  # pairs with the same better class are consecutive
            gram_column(learner, indices, values, r, k, scratch, column)
            owner = r
        squared = max(0.0, diagonal[r] + diagonal[s] - 2.0 * column[s])
        solver.norms[j] = learner.link.factor * squared


@always_inlined
def measure_classes(learner, indices, values, k, m, scratch, solver):
    """Compute norms[j] = ||phi(x, r_j)||^2 for the classes that are compared with the rest."""
    if learner.link.exponent == 2:
        gram_diagonal(learner, indices, values, k, scratch, solver.columns[0])
    for j in range(m):
        r = max(solver.better[j], solver.worse[j])
        if learner.link.exponent == 2:
            solver.norms[j] = learner.link.factor * solver.columns[0, r]
        else:
            solver.norms[j] = class_norm(learner, indices, values, r, scratch)


@inlined
def class_norm(learner, indices, values, r, scratch):
    """Return ||phi(x, r)||^2 over all hypotheses, in the norm of the link."""
    total, exponent, n = 0.0, learner.link.exponent, indices.shape[0]
    for part in range(learner.parts.kind.shape[0]):
        times = n_hypotheses(learner, part, r)
        if learner.parts.map[part] == ITSELF:
            total = with_powers(values, n, times, exponent, total)
        elif learner.parts.map[part] == GIVEN:
            total = with_given_powers(scratch.views, r, times, exponent, total)
        else:
            phi_of(learner, part, indices, values, r, scratch, scratch.phi)
            total = with_powers(scratch.phi, n, times, exponent, total)
    return squared_norm(total, exponent, learner.link.factor)


@inlined
def with_powers(view, n, times, exponent, total):
    """Add the first n values of a view, `times` times, to the sum of powers of a norm."""
    for j in range(n):
        total = with_power(total, np.float64(view[j]), times, exponent)
    return total


@always_inlined
def is_pair_by_pair(learner, m, solver):
    """Return whether norms are computed for each pair alone."""
    if takes_one(learner.rule.selection) or learner.link.exponent != 2:
        return True
    return m == 1 or solver.ranks.order.shape[0] > 0


@inlined
def measure_gram(learner, indices, values, k, start, m, scratch, solver):
    """Compute gram[i, j] = <d_i, d_j> for the pairs i from `start` to m - 1 and all j <= i."""
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
    """Return the increase of score(r) - score(s) by a step of 1 along a pair, given its columns."""
    columns = solver.columns
    up = columns[better, r] - columns[better, s]
    return up - (columns[worse, r] - columns[worse, s])


@inlined
def column_of(learner, indices, values, r, k, scratch, solver):
    """Return the index of the Gram column of class r, which is computed once per trial."""
    if solver.slots[r] < 0:
        slot = solver.status[0].n_columns
        if has_preconditioner(learner):
            preconditioned_column(learner, indices, values, r, k, scratch, solver, slot)
        else:
            gram_column(learner, indices, values, r, k, scratch, solver.columns[slot])
        solver.slots[r] = slot
        solver.owners[slot] = r
        solver.status[0].n_columns = slot + 1
    return solver.slots[r]


@inlined
def forget_columns(solver):
    """Reset the Gram columns for the next trial."""
    for slot in range(solver.status[0].n_columns):
        solver.slots[solver.owners[slot]] = -1
    solver.status[0].n_columns = 0


@always_inlined
def dense_has_metric(learner):
    """Return whether weights have individual step sizes."""
    return learner.preconditioner.kind != EUCLIDEAN or learner.preconditioner.unit != NO_UNIT


# ---- before the update ---------------------------------------------------------------------------


@always_inlined
def dense_rescale(learner, indices, values, weight):
    """Measure the length of the row and its features; return whether weights have changed."""
    return learner.preconditioner.unit != NO_UNIT and measure_row(learner, indices, values, weight)


@inlined
def measure_row(learner, indices, values, weight):
    """Update the gain of the step sizes and the scales; return whether a scale has grown."""
    rates, length, has_grown = learner.preconditioner.rates, 0.0, False
    for j in range(indices.shape[0]):
        share = np.float64(values[j])
        if learner.preconditioner.unit == FEATURES and share != 0:
            has_grown |= rescale_feature(learner, indices[j], abs(values[j]))
            share /= np.float64(learner.preconditioner.scales[indices[j]])
        length += share * share
    rates.n_scaled += weight
    rates.scaled_length += weight * length
    if rates.scaled_length > 0:
        rates.gain = rates.n_scaled / rates.scaled_length
    return has_grown


@inlined
def rescale_feature(learner, i, size):
    """Reduce the weights of a feature if it is larger than ever (Ross et al. 2013, Alg. 2).

    Scores are then as if all its values had been measured in the larger unit. Return whether it is
    larger than ever.
    """
    if size <= learner.preconditioner.scales[i]:
        return False
    ratio = learner.preconditioner.scales[i] / size
    if learner.preconditioner.kind != ADAPTIVE:
        ratio *= ratio
    for c in range(learner.weights.values.shape[1]):
        before = learner.weights.values[i, c]
        learner.weights.values[i, c] *= ratio
        if learner.weights.states.shape[0]:
            note_change(learner, i, c, before)
    learner.preconditioner.scales[i] = size
    return True


@always_inlined
def dense_gather_gradient(learner, indices, values, k, m, weight, scratch, solver):
    """Add the square of the gradient of the loss to the evidence, before any step is measured.

    A second-order preconditioner computes the direction of the steps instead.
    """
    if is_second_order(learner):
        find_direction(learner, values, scratch)
    if gathers_gradients(learner):
        gather_squares(learner, indices, values, k, m, weight, scratch, solver)


@inlined
def gather_squares(learner, indices, values, k, m, weight, scratch, solver):
    """Add the square of the gradient with respect to each class and weight to the evidence."""
    if learner.rule.gradient == 0:
        for j in range(m):
            solver.steps[j] = step_cost(learner.rule, solver.better[j], solver.worse[j])
    else:
        call_gradient(
            learner.rule.gradient, learner.rule.parameters, solver.losses[:m], solver.steps[:m]
        )
    n_moved = sum_coefficients(m, solver)
    learner.preconditioner.walk.task = GATHER
    learner.preconditioner.rates.share = weight * learner.decay.row.weight
    wide = is_wide(learner, solver)
    if wide:
        spread_coefficients(n_moved, k, scratch, solver)
    for part in range(learner.parts.kind.shape[0]):
        if wide and is_wide_part(learner, part, solver):
            change_widely(learner, part, indices, values, k, scratch)
        elif learner.parts.kind[part] == ORDERED:
            move_part(learner, part, indices, values, n_moved, scratch, solver)
        else:
            gather_by_class(learner, part, indices, values, n_moved, scratch, solver)
    learner.preconditioner.walk.task = MOVE
    forget_coefficients(n_moved, solver)


@inlined
def gather_by_class(learner, part, indices, values, n_moved, scratch, solver):
    """Add the square of each class's term of the gradient, even where terms cancel in the sum."""
    moved = solver.moved
    for i in range(n_moved):
        moved[0], moved[i] = moved[i], moved[0]
        move_part(learner, part, indices, values, ONE, scratch, solver)
        moved[0], moved[i] = moved[i], moved[0]


# ---- norms ---------------------------------------------------------------------------------------


@always_inlined
def dense_measure_in_metric(learner, indices, values, k, m, scratch, solver):
    """Compute norms[j] = <d_j, d_j> under the preconditioner, for the chosen pairs."""
    if is_second_order(learner):
        for j in range(m):
            times = n_unshared(learner, solver.better[j], solver.worse[j])
            solver.norms[j] = times * learner.preconditioner.rates.total
        return
    measure_pairs(learner, indices, values, k, m, scratch, solver)


@inlined
def n_unshared(learner, r, s):
    """Return the number of hypotheses that one of two classes, or of a class and the rest, has."""
    total = 0
    for part in range(learner.parts.kind.shape[0]):
        if r == THE_REST or s == THE_REST:
            total += n_hypotheses(learner, part, max(r, s))
        else:
            own = n_hypotheses(learner, part, r) + n_hypotheses(learner, part, s)
            total += own - 2 * n_common(learner, part, r, s)
    return total


@inlined
def measure_pairs(learner, indices, values, k, m, scratch, solver):
    """Compute norms[j] = <d_j, d_j>, part by part."""
    clear(solver.norms, m)
    wide = is_wide(learner, solver)
    for part in range(learner.parts.kind.shape[0]):
        if not (wide and is_wide_part(learner, part, solver)):
            for j in range(m):
                solver.norms[j] += walked_norm(learner, part, indices, values, j, scratch, solver)
        elif is_vs_rest(learner.rule.selection):
            clear(scratch.lengths, whole_lines(k))
            add_view_lengths(learner, part, indices, values, k, THE_REST, scratch)
            for j in range(m):
                solver.norms[j] += scratch.lengths[max(solver.better[j], solver.worse[j])]
        else:
            add_pair_norms(learner, part, indices, values, k, m, scratch, solver)


@inlined
def add_pair_norms(learner, part, indices, values, k, m, scratch, solver):
    """Add <d_j, d_j> in the hypotheses of a wide part to norms[j]."""
    owner = THE_REST
    for j in range(m):
        r, s = solver.better[j], solver.worse[j]
        if r != owner:  # pairs with the same better class are consecutive
            clear(scratch.lengths, whole_lines(k))
            add_view_lengths(learner, part, indices, values, k, r, scratch)
            owner = r
        solver.norms[j] += scratch.lengths[s]


@inlined
def walked_norm(learner, part, indices, values, j, scratch, solver):
    """Return <d, d> of pair j in one part, weight by weight."""
    n_moved = add_pair(j, 0, solver)
    return measured(learner, part, indices, values, n_moved, scratch, solver)


@inlined
def measured(learner, part, indices, values, n_moved, scratch, solver):
    """Return <d, d> in one part, d being the sum of the listed coefficients times phi(x, r)."""
    learner.preconditioner.walk.task = MEASURE
    learner.preconditioner.rates.total = 0
    move_part(learner, part, indices, values, n_moved, scratch, solver)
    learner.preconditioner.walk.task = MOVE
    forget_coefficients(n_moved, solver)
    return learner.preconditioner.rates.total


@always_inlined
def dense_preconditioned_column(learner, indices, values, s, k, scratch, solver, slot):
    """Compute columns[slot, r] = <phi(x, r), phi(x, s)> under the preconditioner, for r < k.

    It is (||a + b||^2 - ||a - b||^2) / 4, so that a pass over the weights measures it.
    """
    column = solver.columns[slot]
    clear(column, k)
    if is_second_order(learner):
        for part in range(learner.parts.kind.shape[0]):
            for r in range(k):
                column[r] += n_common(learner, part, r, s) * learner.preconditioner.rates.total
        return
    for part in range(learner.parts.kind.shape[0]):
        is_ordered = learner.parts.kind[part] == ORDERED
        for r in range(k):
            if is_ordered or n_common(learner, part, r, s):
                above = combined(learner, part, indices, values, r, s, 1.0, scratch, solver)
                below = combined(learner, part, indices, values, r, s, -1.0, scratch, solver)
                column[r] += 0.25 * (above - below)


@inlined
def combined(learner, part, indices, values, r, s, sign, scratch, solver):
    """Return <d, d> of d = phi(x, r) + sign phi(x, s) in one part."""
    n_moved = add_coefficient(solver, r, 1.0, NOTHING)
    n_moved = add_coefficient(solver, s, sign, n_moved)
    return measured(learner, part, indices, values, n_moved, scratch, solver)


@inlined
def add_pair(j, n_moved, solver):
    """Add 1 and -1 to the coefficients of the classes of pair j; the rest has no weights."""
    if solver.better[j] != THE_REST:
        n_moved = add_coefficient(solver, solver.better[j], 1.0, n_moved)
    if solver.worse[j] != THE_REST:
        n_moved = add_coefficient(solver, solver.worse[j], -1.0, n_moved)
    return n_moved


# ---- after the update ----------------------------------------------------------------------------


@always_inlined
def dense_keep_pace(learner):
    """Compute the size of all steps again, each time that a quarter more trials have passed."""
    if (
        learner.preconditioner.is_paced
        and learner.counts.n_trials >= learner.preconditioner.pace.due
    ):
        renew_pace(learner)


@inlined
def n_paced(learner, part):
    """Return how many columns of a part may hold weights of known classes."""
    if learner.parts.kind[part] == PER_CLASS:
        return n_candidates(learner)
    if learner.parts.kind[part] == ORDERED:
        return 1 + learner.counts.n_classes
    return learner.parts.width[part]


@inlined
def renew_pace(learner):
    """Set the size of the steps to that at which the bound of AdaGrad is smallest, if it is larger.

    It is the root of half the mean of the squared distances from the initial weights, weighted by
    the roots of the evidence.
    """
    pull, total = 0.0, 0.0
    for part in range(learner.parts.kind.shape[0]):
        start, origin = learner.parts.offset[part], learner.weights.initial[part]
        for i in range(learner.weights.values.shape[0]):
            for c in range(start, start + n_paced(learner, part)):
                evidence = np.float64(learner.preconditioner.evidence[i, c])
                if evidence > 0:
                    distance = np.float64(learner.weights.values[i, c]) - origin
                    root = np.sqrt(evidence)
                    pull += root * (distance * distance)
                    total += root
    pace = learner.preconditioner.pace
    pace.due = np.float64(learner.counts.n_trials + max(1, learner.counts.n_trials // 4))
    if total > 0:
        size = np.sqrt(pull / (2.0 * total)) / learner.decay.row.weight
        pace.factor = max(pace.factor, min(size, LARGEST) / learner.preconditioner.parameter)


@always_inlined
def dense_leave_evidence(learner, indices, values, m, weight, scratch, solver):
    """Add the evidence of the trial to the weights along its constraints, after the update."""
    if is_second_order(learner):
        add_second_moments(learner, values, weight, scratch)
    if learner.preconditioner.kind == CONFIDENT:
        add_evidence(learner, indices, values, m, weight, scratch, solver)


@inlined
def add_evidence(learner, indices, values, m, weight, scratch, solver):
    """Add the square of the direction of the update to the evidence, weighted by its confidence."""
    share = weight / learner.preconditioner.parameter
    if learner.preconditioner.evidence_rule != FIXED:
        share = soft_evidence(solver.steps[0], solver.norms[0], learner.preconditioner.parameter)
    n_moved = NOTHING
    # Of growing constraints the first, the worst, is the one whose loss counts: steps along the
    # others are not unique where they are linearly dependent.
    is_growing = learner.rule.selection == GROWING
    for j in range(ONE if is_growing else m):
        if solver.steps[j] > 0 or is_growing:
            n_moved = add_pair(j, n_moved, solver)
    learner.preconditioner.walk.task = GATHER
    learner.preconditioner.rates.share = share * learner.decay.row.weight
    for part in range(learner.parts.kind.shape[0]):
        move_part(learner, part, indices, values, n_moved, scratch, solver)
    learner.preconditioner.walk.task = MOVE
    forget_coefficients(n_moved, solver)


@inlined
def soft_evidence(step, variance, phi):
    """Return alpha phi / sqrt(u), added to 1 / Sigma (Wang, Zhao and Hoi 2012, Prop. 1)."""
    moved = step * variance * phi
    # sqrt(u) = (sqrt(a^2 + 4 v) - a) / 2 cancels after a long step; its inverse as computed, with
    # the conjugate, does not.
    twice = np.sqrt(moved * moved + 4.0 * variance) + moved
    return 0.5 * step * phi * twice / variance if variance > 0 else 0.0
