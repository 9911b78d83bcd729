"""Contributions of the entries of rows, of learners whose weights are in sparse rows."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.jit.decorators import kernel
from kesler.compiled.jit.pointers import dereference, hold
from kesler.compiled.trial.contributions import CONTRIBUTIONS, explain_all
from kesler.compiled.weights.sparse_trial import learner_at, make_sparse_scratch


@kernel(CONTRIBUTIONS)
def explain(learner, rows, codes, out, given):
    """Write contributions as `kesler.compiled.trial.contributions.explain` does."""
    learner_, rows_ = learner_at(learner), dereference(rows)
    scratch = make_sparse_scratch(learner_, rows_.indptr)
    explain_all(learner_, rows_, codes, dereference(scratch), out, given)
    hold(scratch)
