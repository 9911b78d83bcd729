"""One trial after the other: score, predict, constrain, update, move."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.choices import choose, loss_against
from kesler.compiled.jit import DOUBLES, FLOAT_TABLE, FLOATS, INDICES, INTS, inlined, kernel
from kesler.compiled.learner import (
    EXACT,
    FIRST_SEEN,
    GRAM,
    GROWING,
    LEARNER,
    MISTAKES,
    NORMS,
    NOT_FINITE,
    TRIALS,
    Learner,
    make_scratch,
    make_solver,
)
from kesler.compiled.moves import is_movable, move
from kesler.compiled.norms import measure_gram, measure_norms
from kesler.compiled.rules import call_rule
from kesler.compiled.scores import best, clear, score
from kesler.compiled.statistics import take_in

__all__ = ["Learner", "learn", "predict"]


@inlined
def find_steps(learner, indices, values, y, k, m, weight, scratch, solver):
    """Ask the rule how far to go along each chosen constraint; return how many there are."""
    selection, sight = learner.rule[1], learner.rule[2]
    clear(solver.steps, m)
    if sight == NORMS:
        measure_norms(learner, indices, values, y, k, solver.chosen, m, scratch, solver)
    elif sight == GRAM:
        measure_gram(learner, indices, values, y, k, 0, m, scratch, solver)
    ask_rule(learner, m, weight, solver)
    # The optimum over all k - 1 constraints mostly rests on a few: begin with the worst and add
    # the one that the step leaves most violated, until none is violated beyond the chosen ones.
    while selection == GROWING and m < k - 1 and add_most_violated(scratch.scores, y, k, m, solver):
        m += 1
        measure_gram(learner, indices, values, y, k, m - 1, m, scratch, solver)
        ask_rule(learner, m, weight, solver)
    return m


@inlined
def ask_rule(learner, m, weight, solver):
    """Let the rule fill the first m steps."""
    call_rule(
        learner.rule[0],
        learner.rule_parameters,
        weight,
        solver.losses[:m],
        solver.norms[:m],
        solver.gram[:m],
        solver.steps[:m],
    )


@inlined
def add_most_violated(scores, y, k, m, solver):
    """Add the class whose constraint the step leaves violated more than any chosen one's."""
    slack = 0.0
    for i in range(m):
        loss = solver.losses[i]
        for j in range(m):
            loss -= solver.gram[i, j] * solver.steps[j]
        slack = max(slack, loss)
    worst, found = slack + EXACT, -1
    for s in range(k):
        loss = loss_against(scores, y, s)
        taken = s == y
        for j in range(m):
            taken |= s == solver.chosen[j]
            gain = np.float64(solver.columns[0, y]) - np.float64(solver.columns[0, s])
            gain += np.float64(solver.columns[j + 1, s]) - np.float64(solver.columns[j + 1, y])
            loss -= solver.steps[j] * gain
        if not taken and loss > worst:
            worst, found = loss, s
    if found >= 0:
        solver.chosen[m] = found
        solver.losses[m] = loss_against(scores, y, found)
        solver.steps[m] = 0
    return found >= 0


@inlined
def finite(scores, k):
    """Whether every score is a number."""
    total = 0.0
    for r in range(k):
        total += np.float64(scores[r])
    return np.isfinite(total)


@inlined
def learn_from(learner, indices, values, y, predicted, k, weight, scratch, solver):
    """Constrain, update and move for the answer y to a row that has just been scored."""
    if not finite(scratch.scores, k):
        learner.counters[NOT_FINITE] += 1
        return
    m = choose(scratch.scores, k, y, predicted, learner.rule[1], solver.chosen, solver.losses)
    if m == 0:
        return
    m = find_steps(learner, indices, values, y, k, m, weight, scratch, solver)
    if is_movable(learner, indices, values, y, solver.chosen, solver.steps, m, scratch):
        move(learner, indices, values, y, solver.chosen, solver.steps, m, scratch)
    else:
        learner.counters[NOT_FINITE] += 1


@inlined
def learn_all(learner, indptr, indices, values, codes, row_weights, predictions, scratch, solver):
    """Run a trial a row."""
    for t in range(indptr.shape[0] - 1):
        row = indices[indptr[t] : indptr[t + 1]]
        x = values[indptr[t] : indptr[t + 1]]
        weight = row_weights[t] if row_weights.shape[0] else 1.0
        y = np.int64(codes[t])
        k = learner.counters[FIRST_SEEN]
        score(learner, row, x, k, scratch, scratch.scores)
        predicted = best(scratch.scores, k, -1)
        predictions[t] = predicted
        learner.counters[TRIALS] += 1
        is_first = y == k
        if is_first:
            learner.counters[FIRST_SEEN] += 1
        else:
            learner.counters[MISTAKES] += predicted != y
            learn_from(learner, row, x, y, predicted, k, weight, scratch, solver)
        take_in(learner, row, x, y, weight, is_first)


@inlined
def score_all(learner, indptr, indices, values, scores, predictions, scratch):
    """Score and predict a row after the other."""
    k = learner.counters[FIRST_SEEN]
    for t in range(indptr.shape[0] - 1):
        row = indices[indptr[t] : indptr[t + 1]]
        x = values[indptr[t] : indptr[t + 1]]
        score(learner, row, x, k, scratch, scratch.scores)
        predictions[t] = best(scratch.scores, k, -1)
        if scores.shape[0]:
            for r in range(k):
                scores[t, r] = scratch.scores[r]


@kernel(types.void(LEARNER, INTS, INDICES, FLOATS, INDICES, DOUBLES, INDICES))
def learn(learner, indptr, indices, values, codes, row_weights, predictions):
    """Run a trial a row; codes are the answers, row_weights may be empty (all 1).

    predictions[i] becomes the class predicted before the answer was heard, -1 if none was known.
    """
    scratch = make_scratch(learner, indptr)
    solver = make_solver(learner, scratch.scores.shape[0])
    learn_all(learner, indptr, indices, values, codes, row_weights, predictions, scratch, solver)


@kernel(types.void(LEARNER, INTS, INDICES, FLOATS, FLOAT_TABLE, INDICES))
def predict(learner, indptr, indices, values, scores, predictions):
    """Score rows, changing nothing; `scores` may have no rows if only predictions are asked."""
    scratch = make_scratch(learner, indptr)
    score_all(learner, indptr, indices, values, scores, predictions, scratch)
