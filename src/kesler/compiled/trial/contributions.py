"""Contributions of the entries of rows to the scores of some classes."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.jit.decorators import DOUBLE_STACK, INT, INTS, inlined, kernel
from kesler.compiled.jit.pointers import dereference, hold, pointer_reader
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.preprocessing import is_preprocessed, preprocess
from kesler.compiled.trial.records import BLOCKS, make_scratch
from kesler.compiled.trial.variants import add_contributions, find_views, prepare

CONTRIBUTIONS = types.void(INT, BLOCKS, INTS, DOUBLE_STACK, DOUBLE_STACK)

learner_at = pointer_reader(LEARNER_RECORD)


@inlined
def explain_all(learner, rows, codes, scratch, out, given):
    """Write the contributions of all rows, one after the other."""
    k = learner.counts.n_classes
    for t in range(rows.indptr.shape[0] - 1):
        row = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        x = values
        if is_preprocessed(learner):
            preprocess(learner, row, values, scratch)
            x = scratch.conditioned[: values.shape[0]]
        prepare(learner, row, x, scratch)
        find_views(learner, rows.ratings, t, k, scratch)
        add_contributions(learner, row, x, codes, scratch, rows.indptr[t], out, given)


@kernel(CONTRIBUTIONS)
def explain(learner, rows, codes, out, given):
    """Write the contributions of entries to the scores of classes, given a learner's address.

    codes : (classes,), numbers of known classes; out : (entries, classes, 2), zeros, which receives
    the contributions by hypotheses of the class or its groups, and by those of all classes; given :
    (ratings, classes, 2), zeros, which receives those of the ratings.
    """
    learner_, rows_ = learner_at(learner), dereference(rows)
    scratch = make_scratch(learner_, rows_)
    explain_all(learner_, rows_, codes, dereference(scratch), out, given)
    hold(scratch)
