"""Choice of the pairs of classes (r, s), where r should outscore s, that a rule receives."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.trial.records import (
    ALL,
    GROWING,
    MISTAKEN,
    NOT_COMPARED,
    ONE_VS_REST,
    PREDICTED,
    RIVAL,
    THE_REST,
    VIOLATED,
    is_vs_rest,
    takes_one,
)

TIED = 2.0**-20  # lead relative to the scores up to which they tie: rounding leaves as much


@always_inlined
def dense_set_levels(learner, codes, levels, rest, k, solver):
    """Write the level of each known class: that of the target, or `rest` for classes it omits.

    Classes of a lower level must outscore those of a higher one. Classes of level NOT_COMPARED and
    classes that this target is the first to name take no part. Return the highest level.
    """
    if solver.ranks.order.shape[0]:
        return set_distances(codes[0], k, solver)
    highest = rest
    for r in range(k):
        solver.levels[r] = rest
    for i in range(codes.shape[0]):
        if codes[i] < k:
            solver.levels[codes[i]] = levels[i]
            highest = max(highest, levels[i])
    return highest


@inlined
def set_distances(y, k, solver):
    """Set the level of each known rank to its distance from y; none is compared if y is new."""
    for r in range(k):
        solver.levels[r] = NOT_COMPARED
        if y < k:
            solver.levels[r] = abs(solver.ranks.positions[r] - solver.ranks.positions[y])
    return k - 1


@always_inlined
def worst_pair(scores, k, solver, highest):
    """Return the pair with the largest score difference in the wrong order, (-1, -1) if none.

    Ties go to the pair that the order of first instances puts in the wrong order: of the better
    classes the one seen last, of the worse ones the one seen first. The cost is O(k + levels^2),
    O(k) for ranks.
    """
    if solver.ranks.order.shape[0]:
        return worst_neighbours(scores, k, solver)
    lowest, top = solver.lowest, solver.top
    for level in range(highest + 1):
        lowest[level] = -1
        top[level] = -1
    for r in range(k):
        level = solver.levels[r]
        if level == NOT_COMPARED:
            continue
        if lowest[level] < 0 or scores[r] <= scores[lowest[level]]:
            lowest[level] = r
        if top[level] < 0 or scores[r] > scores[top[level]]:
            top[level] = r
    better, worse, worst = -1, -1, 0.0
    for level in range(highest):
        for below in range(level + 1, highest + 1):
            r, s = lowest[level], top[below]
            if r >= 0 and s >= 0:
                lead = lead_of(scores, r, s)
                swapped = better >= 0 and better < worse and s < r
                if better < 0 or lead < worst or (lead == worst and swapped):
                    better, worse, worst = r, s, lead
    return better, worse


@inlined
def names_one(codes, levels, rest, solver):
    """Return whether a target names one class, and all other classes are to be below it."""
    is_best = codes.shape[0] == 1 and levels[0] == 0
    return is_best and rest == 1 and solver.ranks.order.shape[0] == 0


@inlined
def names_the_best(y, k, highest, solver):
    """Return whether all other classes are to be below y, the only class that a target names."""
    return highest == 1 and y < k and solver.levels[y] == 0 and solver.ranks.order.shape[0] == 0


@inlined
def most_violated(rule, scores, k, solver, highest):
    """Return the pair of the largest slack: the worst pair, unless costs differ (then O(k^2))."""
    if rule.margins.shape[1] == 1:
        return worst_pair(scores, k, solver, highest)
    better, worse, most = -1, -1, 0.0
    for r in range(k):
        if solver.levels[r] == NOT_COMPARED or solver.levels[r] == highest:
            continue
        for s in range(k):
            if solver.levels[s] > solver.levels[r]:
                slack = step_cost(rule, r, s) * loss_of(rule, scores, r, s)
                if better < 0 or slack > most:
                    better, worse, most = r, s, slack
    return better, worse


@always_inlined
def select(rule, scores, k, highest, solver, r, s):
    """Choose the pairs that a rule receives, given the worst pair (r, s); return their number."""
    selection = rule.selection
    if not takes_one(selection) and selection != GROWING:
        return choose(rule, scores, k, highest, solver)
    if selection == PREDICTED:
        if not is_ahead(scores, s, r):
            return 0
    elif selection != RIVAL:
        if rule.margins.shape[1] > 1:  # else the worst pair is the one of the largest loss
            r, s = most_violated(rule, scores, k, solver, highest)
        if loss_of(rule, scores, r, s) <= 0:
            return 0
    solver.better[0], solver.worse[0] = r, s
    solver.losses[0] = loss_of(rule, scores, r, s)
    return 1


@inlined
def choose(rule, scores, k, highest, solver):
    """Choose all pairs of a kind, grouped by their better class; return their number."""
    m = 0
    if is_vs_rest(rule.selection):
        return choose_each(rule, scores, k, highest, solver)
    if solver.ranks.order.shape[0]:
        for i in range(k - 1):
            r, s = neighbours(i, solver)
            m = choose_pair(rule, scores, r, s, m, solver)
        return m
    for r in range(k):
        level = solver.levels[r]
        if level == NOT_COMPARED or level == highest:
            continue
        for s in range(k):
            if solver.levels[s] > level:
                m = choose_pair(rule, scores, r, s, m, solver)
    return m


@inlined
def choose_each(rule, scores, k, highest, solver):
    """Choose a pair with the rest for each class: the better half of the levels is above it.

    The level in the middle is that of the rest itself. Every pair is written, and overwritten by
    the next one unless it was chosen, since a branch would often be mispredicted.
    """
    m, margin, takes_all = 0, rule.margins[0, 0], rule.selection == ONE_VS_REST
    for r in range(k):
        level, score = solver.levels[r], np.float64(scores[r])
        is_above = 2 * level < highest
        loss = margin - (score if is_above else -score)
        solver.better[m] = r if is_above else THE_REST
        solver.worse[m] = THE_REST if is_above else r
        solver.losses[m] = loss
        is_compared = level != NOT_COMPARED and 2 * level != highest
        m += is_compared and (takes_all or loss > 0)
    return m


@inlined
def choose_pair(rule, scores, r, s, m, solver):
    """Add a pair to the m chosen ones if it is of the kind; return the new number of pairs."""
    selection, loss = rule.selection, loss_of(rule, scores, r, s)
    if (
        selection == ALL
        or (selection == VIOLATED and loss > 0)
        or (selection == MISTAKEN and is_not_behind(scores, s, r))
    ):
        solver.better[m], solver.worse[m], solver.losses[m] = r, s, loss
        return m + 1
    return m


@inlined
def neighbours(i, solver):
    """Return rank i and the next rank, the one nearer to the target first."""
    r, s = solver.ranks.order[i], solver.ranks.order[i + 1]
    return (r, s) if solver.levels[r] < solver.levels[s] else (s, r)


@inlined
def worst_neighbours(scores, k, solver):
    """Return the worst pair of neighbouring ranks, with ties as in `worst_pair`."""
    better, worse, worst = -1, -1, 0.0
    for i in range(k - 1):
        r, s = neighbours(i, solver)
        if solver.levels[r] == NOT_COMPARED:
            continue
        lead = lead_of(scores, r, s)
        swapped = better >= 0 and better < worse and s < r
        if better < 0 or lead < worst or (lead == worst and swapped):
            better, worse, worst = r, s, lead
    return better, worse


@inlined
def is_ahead(scores, s, r):
    """Return whether s would be predicted before r; ties go to the class seen first."""
    return scores[s] > scores[r] or (scores[s] == scores[r] and s < r)


@inlined
def is_not_behind(scores, s, r):
    """Return whether the score of s is at least that of r, up to rounding of float32 sums."""
    size = abs(np.float64(scores[r])) + abs(np.float64(scores[s]))
    return lead_of(scores, r, s) <= TIED * size


@inlined
def lead_of(scores, r, s):
    """Return score(r) - score(s) in float64."""
    return np.float64(scores[r]) - np.float64(scores[s])


@inlined
def loss_of(rule, scores, r, s):
    """Return margin(r, s) - (score(r) - score(s)).

    A rule has one margin for all pairs, one for each worse class, or one for each pair.
    """
    margins = rule.margins
    if margins.shape[1] == 1:
        return margins[0, 0] - lead_of(scores, r, s)
    if rule.scales_steps:
        return rule.margin - lead_of(scores, r, s)
    return margins[r if margins.shape[0] > 1 else 0, s] - lead_of(scores, r, s)


@inlined
def step_cost(rule, r, s):
    """Return the factor of the largest step along a pair, 1 unless costs limit steps."""
    return rule.margins[r, s] if rule.scales_steps else 1.0
