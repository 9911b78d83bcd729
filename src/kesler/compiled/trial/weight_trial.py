"""Trials of learners whose hypotheses are rows of a weight table."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

from numba import types

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import INT, kernel, with_globals
from kesler.compiled.jit.pointers import (
    Facts,
    dereference,
    dereference_with,
    hold,
    pointer_reader,
    put,
)
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial import facts
from kesler.compiled.trial.records import Blocks, EncodedTargets, Ratings, make_scratch, make_solver
from kesler.compiled.trial.tasks import Kernels, task_at
from kesler.compiled.trial.trial import learn_all, score_all

__all__ = ["Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]


@kernel(types.void(LEARNER_RECORD, INT))
def write_arguments(learner, address):
    """Write a learner to an address, from which the other kernels read it."""
    put(learner, address)


def kernels_for(learner: Any) -> Kernels:
    """Return the kernels for a learner, given its record."""
    return kernels(next(n for n, each in facts.VARIANTS.items() if facts.hold(each, learner)))


@recipe
@cache
def kernels(name: str) -> Kernels:
    """Return the kernels of a variant, compiled for its facts."""
    return compiled_for(name, facts.VARIANTS[name])


def compiled_for(name: str, known: Facts, **values: Any) -> Kernels:
    """Return the kernels below, compiled for facts, with other values of some of their globals."""
    values |= {
        "learner_at": pointer_reader(LEARNER_RECORD, known),
        "dereference_solver": dereference_with(Facts(f for f in known if f[0].startswith("ranks"))),
    }
    label = f"{name}_{zlib.crc32(str(known).encode()):x}"
    found = (with_globals(each, label, values) for each in (_learn, _predict))
    return Kernels(*(kernel(types.void(INT, INT))(each) for each in found))


# These globals of the functions below differ between variants.
learner_at = pointer_reader(LEARNER_RECORD)
dereference_solver = dereference


def _learn(learner, task):
    """Run one trial per row, given the addresses of a learner and of a task (see `Task`)."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.encoded)
    outputs = task_.predictions, task_.scores, task_.probabilities
    scratch_, solver_ = dereference(scratch), dereference_solver(solver)
    learn_all(learner_, task_.rows, task_.encoded, *outputs, scratch_, solver_)
    hold(scratch, solver)


def _predict(learner, task):
    """Score rows as `_learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    outputs = task_.predictions, task_.scores, task_.probabilities
    score_all(learner_, task_.rows, *outputs, dereference(scratch))
    hold(scratch)
