"""Trials, one after the other: score, predict, choose constraints, compute steps, update."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import stay_apart
from kesler.compiled.trial.calibration import calibrate, median_rank, nearest_class
from kesler.compiled.trial.choices import (
    is_ahead,
    is_not_behind,
    loss_of,
    most_violated,
    names_one,
    names_the_best,
    select,
    step_cost,
    worst_pair,
)
from kesler.compiled.trial.cost_vectors import charge, is_costly, price
from kesler.compiled.trial.decay import fade, grow
from kesler.compiled.trial.forgetting import age
from kesler.compiled.trial.label_sets import learn_set, move_to_decide, tell_set
from kesler.compiled.trial.preprocessing import is_preprocessed, preprocess, remember
from kesler.compiled.trial.records import (
    DISTANCE,
    EXACT,
    F1,
    GRAM,
    GROWING,
    INHERIT,
    MEDIAN,
    NORMS,
    NOTHING,
    REGISTER,
    n_candidates,
)
from kesler.compiled.trial.rules import call_rule
from kesler.compiled.trial.variants import (
    best,
    best_but,
    choose_loops,
    fetch_ahead,
    find_views,
    finite,
    gather_gradient,
    has_capacity,
    has_fault,
    inherit,
    insert_rank,
    is_averaged,
    is_movable,
    judge,
    keep_pace,
    keep_up,
    leave_evidence,
    list_features,
    meet_features,
    meet_hypotheses,
    move,
    prepare,
    rescale,
    run_algorithm,
    score,
    score_by_means,
    set_levels,
    settle,
)
from kesler.compiled.views.statistics import join, take_in, take_in_pooled, weigh_classes
from kesler.compiled.weights.moves import forget_coefficients, sum_coefficients
from kesler.compiled.weights.norms import forget_columns, measure_gram, measure_norms
from kesler.compiled.weights.scores import clear


@always_inlined
def find_steps(learner, indices, values, k, m, weight, highest, scratch, solver):
    """Compute the step of the rule along each chosen pair; return the number of pairs."""
    selection, requirement = learner.rule.selection, learner.rule.requires
    clear(solver.steps, m)
    if requirement == NORMS:
        measure_norms(learner, indices, values, k, m, scratch, solver)
    elif requirement == GRAM:
        measure_gram(learner, indices, values, k, NOTHING, m, scratch, solver)
    if learner.rule.scales_steps:
        ask_rule_in_costs(learner, m, weight, solver)
    else:
        ask_rule(learner, m, weight, solver)
    # The optimum over all pairs mostly depends on a few: start with the worst and add the one that
    # the step leaves most violated, until none is violated more than the chosen ones.
    while (
        selection == GROWING
        and m < solver.steps.shape[0]
        and add_most_violated(learner.rule, scratch.scores, k, m, highest, solver)
    ):
        m += 1
        measure_gram(learner, indices, values, k, m - 1, m, scratch, solver)
        ask_rule(learner, m, weight, solver)
    return m


@always_inlined
def ask_rule(learner, m, weight, solver):
    """Call the rule, which writes the first m steps."""
    call_rule(
        learner.rule.address,
        learner.rule.parameters,
        weight,
        solver.losses[:m],
        solver.norms[:m],
        solver.gram[:m],
        solver.steps[:m],
    )


@inlined
def ask_rule_in_costs(learner, m, weight, solver):
    """Call the rule so that its longest step along a pair is as many times as long as its cost.

    With alpha = cost beta, the limit C cost of alpha is C of beta, whose direction is cost d.
    """
    for j in range(m):
        cost = step_cost(learner.rule, solver.better[j], solver.worse[j])
        solver.losses[j] *= cost
        solver.norms[j] *= cost * cost
    ask_rule(learner, m, weight, solver)
    for j in range(m):
        solver.steps[j] *= step_cost(learner.rule, solver.better[j], solver.worse[j])


@inlined
def add_most_violated(rule, scores, k, m, highest, solver):
    """Add the pair that the steps leave violated more than any chosen one, if there is one.

    The violation of every pair follows from the scores after the steps.
    """
    for r in range(k):
        solver.after[r] = np.float64(scores[r])
    for j in range(m):
        better, worse = solver.slots[solver.better[j]], solver.slots[solver.worse[j]]
        for r in range(k):
            rise = solver.columns[better, r] - solver.columns[worse, r]
            solver.after[r] += solver.steps[j] * rise
    slack = 0.0
    for j in range(m):
        slack = max(slack, loss_of(rule, solver.after, solver.better[j], solver.worse[j]))
    r, s = most_violated(rule, solver.after, k, solver, highest)
    if r < 0 or loss_of(rule, solver.after, r, s) <= slack + EXACT:
        return False
    solver.better[m], solver.worse[m] = r, s
    solver.losses[m] = loss_of(rule, scores, r, s)
    solver.steps[m] = 0
    return True


@always_inlined
def learn_from(learner, indices, values, k, weight, highest, r, s, scratch, solver):
    """Choose constraints, compute steps and update, given the levels and the worst pair (r, s).

    Nothing is done if no pair is compared (r < 0).
    """
    if r < 0:
        return
    m = select(learner.rule, scratch.scores, k, highest, solver, r, s)
    if m and learner.algorithm.address != 0:
        run_algorithm(learner, indices, values, scratch, solver)
    elif m:
        choose_loops(learner, m, k, scratch, solver)
        gather_gradient(learner, indices, values, k, m, weight, scratch, solver)
        m = find_steps(learner, indices, values, k, m, weight, highest, scratch, solver)
        n_moved = sum_coefficients(m, solver)
        grow(learner, n_moved, solver)
        movable = is_movable(learner, indices, values, n_moved, scratch, solver)
        if movable:
            move(learner, indices, values, n_moved, scratch, solver)
        else:
            learner.counts.n_not_finite += 1
        forget_coefficients(n_moved, solver)
        forget_columns(solver)
        if movable:
            leave_evidence(learner, indices, values, m, weight, scratch, solver)


@always_inlined
def dense_judge(learner, codes, k, highest, scratch, solver):
    """Return the worst pair, (-1, -1) if there is none or a score is not finite."""
    if note_odd(learner, scratch.scores, k):
        return -1, -1
    if codes.shape[0] == 1 and names_the_best(codes[0], k, highest, solver):
        s = best_but(learner, scratch.scores, k, codes[0])
        return (np.int64(codes[0]), s) if s >= 0 else (-1, -1)
    return worst_pair(scratch.scores, k, solver, highest)


@inlined
def note_odd(learner, scores, k):
    """Return whether a score is not finite, and count that."""
    if finite(learner, scores, k):
        return False
    learner.counts.n_not_finite += 1
    return True


@always_inlined
def brings_new(learner, codes):
    """Return whether a target names a class for the first time."""
    for i in range(codes.shape[0]):
        if codes[i] >= learner.counts.n_classes:
            return True
    return False


@inlined
def join_new(learner, codes, out):
    """Add the new classes of a target to the learner."""
    for i in range(codes.shape[0]):
        y = np.int64(codes[i])
        if y >= learner.counts.n_classes:
            learner.counts.n_classes = y + 1
            join(learner, y)
            meet_hypotheses(learner, y, out)
            if learner.settings.on_new_class == INHERIT:
                inherit(learner, y)
            if learner.ranks.order.shape[0]:
                insert_rank(learner, y, out)
    if learner.statistics.pooled.shape[1]:
        weigh_classes(learner)


@always_inlined
def meet(learner, indices, values, codes, levels, weight, out):
    """Add new classes, and add the row to the statistics of the best classes of the target."""
    if brings_new(learner, codes):
        join_new(learner, codes, out)
    for i in range(codes.shape[0]):
        y = np.int64(codes[i])
        if levels[i] == 0:
            take_in(learner, indices, values, y, weight)
    if learner.statistics.pooled.shape[1]:
        take_in_pooled(learner, indices, values, codes, levels, weight)
    settle(learner, out)


@inlined
def learn_all(learner, rows, encoded, predictions, scores, probabilities, scratch, solver):
    """Run one trial per row; return how many rows were learnt.

    They are all, unless the capacity is exhausted or a user-defined function fails.
    """
    stay_apart()
    fetch_ahead(learner, rows, NOTHING, learner.counts.n_classes, scratch)
    for t in range(rows.indptr.shape[0] - 1):
        row = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
        if not has_capacity(learner, row):
            return t
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        codes = encoded.codes[encoded.indptr[t] : encoded.indptr[t + 1]]
        levels = encoded.levels[encoded.indptr[t] : encoded.indptr[t + 1]]
        if learner.settings.has_costs:
            price(learner, encoded, t)
        weight = encoded.row_weights[t] if encoded.row_weights.shape[0] else 1.0
        k = learner.counts.n_classes
        fetch_ahead(learner, rows, t + 1, k, scratch)
        x = values
        if is_preprocessed(learner):
            preprocess(learner, row, values, scratch)
            x = scratch.conditioned[: values.shape[0]]
        keep_up(learner, row, x, scratch)
        averaged = is_averaged(learner)
        if averaged:
            predict_by_means(learner, rows, t, row, x, scratch)
        else:
            score_candidates(learner, rows, t, row, x, scratch)
        winner = best(learner, scratch.scores, k)
        predictions[t] = decide(learner, scratch.scores, k, winner)
        if ends_here(learner, scratch):
            return t
        keep(learner, scratch.scores, k, scores, t)
        if not was_learnt(encoded, t):
            said = predictions[t]
            calibrate_on(learner, k, winner, said, codes, probabilities, t, scratch, solver)
        meet_features(learner, row, k, scratch)
        list_features(learner, row)
        # A trial is a mistake if the worse class of a pair would be predicted first: if one class
        # is to be above all others, any other prediction is a mistake.
        rest, highest, r, s = encoded.shape.rest, NOTHING, NOTHING, NOTHING
        imperfect = False
        if learner.settings.on_new_class != REGISTER and names_one(codes, levels, rest, solver):
            mistaken = codes[0] < k and codes[0] != predictions[t]
            if codes[0] < k:
                imperfect = is_matched(learner, scratch.scores, k, codes[0])
        else:
            highest = set_levels(learner, codes, levels, rest, k, solver)
            r, s = judge(learner, codes, k, highest, scratch, solver)
            mistaken = r >= 0 and is_ahead(scratch.scores, s, r)
            imperfect = r >= 0 and is_not_behind(scratch.scores, s, r)
            if learner.settings.has_sets:
                tell_set(learner, scratch.scores, k, probabilities, t)
                learn_set(learner, scratch.scores, k, solver.levels)
            if learner.settings.decision == DISTANCE:
                mistaken = codes[0] < k and codes[0] != predictions[t]
            if learner.settings.has_costs:
                mistaken = r >= 0 and is_costly(predictions[t], codes, levels)
                charge(learner, predictions[t], encoded, t)
        has_grown = rescale(learner, row, x, weight * learner.decay.row.weight)
        if learner.settings.on_new_class != REGISTER or has_grown or averaged:
            has_joined = learner.settings.on_new_class != REGISTER and brings_new(learner, codes)
            if has_joined or has_grown:
                note_odd(learner, scratch.scores, k)
            if has_joined:
                join_new(learner, codes, scratch.out)
            if has_joined or has_grown or averaged:
                score_candidates(learner, rows, t, row, x, scratch)
            k = n_candidates(learner)
            highest = set_levels(learner, codes, levels, rest, k, solver)
            r, s = judge(learner, codes, k, highest, scratch, solver)
        learn_from(learner, row, x, k, weight, highest, r, s, scratch, solver)
        if ends_here(learner, scratch):
            return t
        if was_learnt(encoded, t):
            settle(learner, scratch.out)
            continue
        learner.counts.n_trials += 1
        learner.counts.n_mistakes += mistaken
        learner.imperfect.n_trials += imperfect
        keep_pace(learner)
        age(learner, row.shape[0], scratch)
        counted = weight * learner.decay.row.weight
        meet(learner, row, x, codes, levels, counted, scratch.out)
        remember(learner, row, values, codes, levels, counted)
    return rows.indptr.shape[0] - 1


@always_inlined
def is_matched(learner, scores, k, y):
    """Return whether another class has at least the score of y."""
    s = best_but(learner, scores, k, np.int64(y))
    return s >= 0 and is_not_behind(scores, s, np.int64(y))


@always_inlined
def was_learnt(encoded, t):
    """Return whether row t is learnt again: neither counted nor added to any statistics."""
    return encoded.again.shape[0] != 0 and encoded.again[t]


@always_inlined
def ends_here(learner, scratch):
    """Return whether a user-defined function has failed, and trials are to end with that."""
    return learner.settings.ends_at_faults != 0 and has_fault(learner, scratch)


@inlined
def dense_has_fault(learner, scratch):
    """Return whether the fault word of a part is set."""
    found = learner.rule.parameters[-1] != 0 or learner.link.parameters[-1] != 0
    found = found or learner.preconditioner.parameters[-1] != 0
    for part in range(learner.parts.kind.shape[0]):
        found = found or learner.parts.map_parameters[part, -1] != 0
    return found


@always_inlined
def dense_has_capacity(learner, indices):
    """Return True: capacity for all rows has been allocated before."""
    return True


@inlined
def score_candidates(learner, rows, t, indices, values, scratch):
    """Score row t for all classes so far, including a virtual one."""
    k = n_candidates(learner)
    find_views(learner, rows.ratings, t, k, scratch)
    score(learner, indices, values, k, scratch, scratch.scores)
    fade(learner, k, scratch.scores)


@inlined
def predict_by_means(learner, rows, t, indices, values, scratch):
    """Score row t as `score_candidates` does, by the means of the weights."""
    k = n_candidates(learner)
    find_views(learner, rows.ratings, t, k, scratch)
    score_by_means(learner, indices, values, k, scratch, scratch.scores)


@inlined
def calibrate_on(learner, k, winner, said, codes, probabilities, t, scratch, solver):
    """Update the calibration, where targets are single classes."""
    if learner.settings.is_calibrated:
        calibrate(
            learner,
            scratch.scores,
            k,
            winner,
            said,
            codes[0],
            solver.exponentials,
            probabilities,
            t,
        )


@inlined
def decide(learner, scores, k, winner):
    """Return the class that is predicted, given the one of the highest score."""
    if learner.settings.decision == MEDIAN:
        return median_rank(learner, scores, k, winner)
    if learner.settings.decision == DISTANCE:
        return nearest_class(learner, scores, k, winner)
    return winner


@inlined
def keep(learner, row_scores, k, scores, t):
    """Copy the scores of one row, if they are requested.

    Those of labels are moved so that the predicted labels are above the threshold.
    """
    if scores.shape[0]:
        for r in range(k):
            scores[t, r] = row_scores[r]
        if learner.settings.decision == F1:
            move_to_decide(learner, row_scores, k, scores[t])


@inlined
def score_all(learner, rows, predictions, scores, probabilities, scratch):
    """Score and predict all rows, one after the other."""
    stay_apart()
    k = learner.counts.n_classes
    fetch_ahead(learner, rows, NOTHING, k, scratch)
    for t in range(rows.indptr.shape[0] - 1):
        row = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        fetch_ahead(learner, rows, t + 1, k, scratch)
        x = values
        if is_preprocessed(learner):
            preprocess(learner, row, values, scratch)
            x = scratch.conditioned[: values.shape[0]]
        prepare(learner, row, x, scratch)
        find_views(learner, rows.ratings, t, k, scratch)
        if is_averaged(learner):
            score_by_means(learner, row, x, k, scratch, scratch.scores)
        else:
            score(learner, row, x, k, scratch, scratch.scores)
        fade(learner, k, scratch.scores)
        predictions[t] = decide(learner, scratch.scores, k, best(learner, scratch.scores, k))
        keep(learner, scratch.scores, k, scores, t)
        if learner.settings.has_sets:
            tell_set(learner, scratch.scores, k, probabilities, t)
