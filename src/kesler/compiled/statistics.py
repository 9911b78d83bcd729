"""Statistics: what is kept of the instances of each class."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import by_learner, inlined
from kesler.compiled.learner import (
    FIRST,
    FREQUENCY,
    FULL,
    KIND,
    MEAN,
    NO_INSTANCE,
    OFFSET,
    PER_CLASS,
    VIRTUAL,
)
from kesler.compiled.worth import WORTH


@inlined
def join(learner, y):
    """Let a class begin without an instance: all that is kept of it is 0."""
    for i in range(learner.kinds.shape[0]):
        if learner.kinds[i] <= FREQUENCY:
            learner.totals[i, y] = NO_INSTANCE


@by_learner
def inherit(learner, y):
    """Let class y keep what the virtual class has learnt, and the next virtual one begin there."""
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == PER_CLASS:
            column = learner.parts[part, OFFSET] + y
            for j in range(learner.listed[0]):
                i = learner.listed[1 + j]
                learner.weights[i, column + 1] = learner.weights[i, column]
                if learner.evidence.shape[0]:
                    learner.evidence[i, column + 1] = learner.evidence[i, column]
                for n in range(learner.states.shape[0]):
                    learner.states[n, i, column + 1] = learner.states[n, i, column]


@by_learner
def list_features(learner, indices):
    """List the features that are new: those alone have weights for a class to inherit."""
    if learner.newcomers[0] == VIRTUAL:
        for j in range(indices.shape[0]):
            i = indices[j]
            if not learner.is_listed[i]:
                learner.is_listed[i] = True
                learner.listed[0] += 1
                learner.listed[learner.listed[0]] = i


@inlined
def take_in(learner, indices, values, y, weight):
    """Add the row to what is kept of class y, after the trial: a trial sees the past only."""
    share = np.float32(weight)
    for i in range(learner.kinds.shape[0]):
        kind, sums = learner.kinds[i], learner.statistics[i]
        if kind == FIRST:
            if learner.totals[i, y] == NO_INSTANCE:
                learner.totals[i, y] = 1
                for j in range(indices.shape[0]):
                    sums[indices[j], y] = values[j]
        elif kind > FREQUENCY or learner.totals[i, y] + share > FULL * learner.forgetting[WORTH]:
            continue
        elif kind == MEAN:
            add_to_mean(learner, i, indices, values, y, share)
        else:
            learner.totals[i, y] += share
            for j in range(indices.shape[0]):
                if values[j] != 0:
                    sums[indices[j], y] += share


@inlined
def add_to_mean(learner, i, indices, values, y, share):
    """Add share x to a sum, keeping what float32 rounds off in the last layer (Kahan 1965).

    A plain sum of a million rows would be off by a hundredth.
    """
    last = learner.kinds.shape[0] - 1
    sums, rests = learner.statistics[i], learner.statistics[last]
    learner.totals[i, y], learner.totals[last, y] = summed(
        learner.totals[i, y], share, learner.totals[last, y]
    )
    for j in range(indices.shape[0]):
        f = indices[j]
        if values[j] != 0:  # whether a row lists its zeros must not matter
            sums[f, y], rests[f, y] = summed(sums[f, y], share * values[j], rests[f, y])


@inlined
def summed(total, value, rest):
    """Return total + value, and what was rounded up in it."""
    carried = value - rest
    raised = total + carried
    return raised, (raised - total) - carried
