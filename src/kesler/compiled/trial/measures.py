"""Quantities of a stream in the theorems: leads of fixed weights, and lengths of views."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import DOUBLES, inlined, kernel
from kesler.compiled.jit.pointers import dereference, dereference_with, hold
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.choices import choose, lead_of, worst_pair
from kesler.compiled.trial.facts import MEASURED
from kesler.compiled.trial.preprocessing import is_preprocessed, preprocess, remember
from kesler.compiled.trial.records import (
    BLOCKS,
    ENCODED_TARGETS,
    make_scratch,
    make_solver,
    n_hypotheses,
)
from kesler.compiled.trial.trial import meet
from kesler.compiled.trial.variants import find_views, score, set_levels
from kesler.compiled.weights.norms import forget_columns, measure_norms, measure_views

# The measured lengths of the views of a stream.
VIEW, DIFFERENCE = range(2)

measured = dereference_with(MEASURED)


@inlined
def longest_view(learner, indices, values, k, scratch):
    """Return the largest ||phi^t(x, r)||^2 over the classes r < k and their hypotheses t."""
    largest, products = 0.0, scratch.products
    for part in range(learner.parts.kind.shape[0]):
        measure_views(learner, part, indices, values, k, scratch)
        for r in range(k):
            if n_hypotheses(learner, part, r) > 0:
                largest = max(largest, products[r])
    return largest


@inlined
def longest_difference(learner, indices, values, k, highest, scratch, solver):
    """Return the largest ||phi(x, r) - phi(x, s)||^2 over the pairs that the target compares."""
    m = choose(learner.rule, scratch.scores, k, highest, solver)
    measure_norms(learner, indices, values, k, m, scratch, solver)
    largest = 0.0
    for j in range(m):
        largest = max(largest, solver.norms[j])
    return largest


@inlined
def measure_all(learner, rows, encoded, leads, squared_lengths, scratch, solver):
    """Measure all rows, one after the other."""
    for t in range(rows.indptr.shape[0] - 1):
        row = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        x = values
        if is_preprocessed(learner):
            preprocess(learner, row, values, scratch)
            x = scratch.conditioned[: values.shape[0]]
        codes = encoded.codes[encoded.indptr[t] : encoded.indptr[t + 1]]
        levels = encoded.levels[encoded.indptr[t] : encoded.indptr[t + 1]]
        k = learner.counts.n_classes
        find_views(learner, rows.ratings, t, k, scratch)
        score(learner, row, x, k, scratch, scratch.scores)
        highest = set_levels(learner, codes, levels, encoded.shape.rest, k, solver)
        r, s = worst_pair(scratch.scores, k, solver, highest)
        leads[t] = np.inf
        if r >= 0:
            leads[t] = lead_of(scratch.scores, r, s)
            view = longest_view(learner, row, x, k, scratch)
            difference = longest_difference(learner, row, x, k, highest, scratch, solver)
            forget_columns(solver)
            squared_lengths[VIEW] = max(squared_lengths[VIEW], view)
            squared_lengths[DIFFERENCE] = max(squared_lengths[DIFFERENCE], difference)
        learner.counts.n_trials += 1  # the updates of statistics depend on it
        meet(learner, row, x, codes, levels, 1.0, scratch.out)
        remember(learner, row, values, codes, levels, 1.0)


@kernel(types.void(LEARNER_RECORD, BLOCKS, ENCODED_TARGETS, DOUBLES, DOUBLES))
def measure(learner, rows, encoded, leads, squared_lengths):
    """Run the trials without updates of the weights.

    leads[t] is set to score(r) - score(s) of the worst pair of trial t, infinity if there is no
    pair; squared_lengths[VIEW] and [DIFFERENCE] are raised to the largest ||phi^t(x, r)||^2 and
    ||phi(x, r) - phi(x, s)||^2 in a trial with a pair.
    """
    learner_, rows_, encoded_ = measured(learner), dereference(rows), dereference(encoded)
    scratch = make_scratch(learner_, rows_)
    solver = make_solver(learner_, scratch.scores.shape[0], encoded_)
    outputs = leads, squared_lengths
    measure_all(learner_, rows_, encoded_, *outputs, dereference(scratch), dereference(solver))
    hold(scratch, solver)
