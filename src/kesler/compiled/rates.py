"""Rates: the step size of each weight in a metric, and what a change of a weight means there.

A walk over the weights that a direction touches (`moves.move`) serves three tasks: it moves them,
it adds the squares of the direction to the evidence beside them, or it measures the direction.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kesler.compiled.jit import always_inlined
from kesler.compiled.learner import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    FEATURES,
    GAIN,
    GATHER,
    LARGEST,
    METRIC,
    MOVE,
    NO_UNIT,
    SHARE,
    TASK,
    TOTAL,
    UNIT,
)
from kesler.compiled.worth import ROOT, WORTH


class Walk(NamedTuple):
    """What a walk does, and all that its steps go by: the same from the first weight to the last.

    Read once, since each weight that is written might be any of it, for all that LLVM knows. It is
    plain where weights are what amounts are added to as they are.
    """

    is_plain: bool
    task: int
    kind: int
    unit: int
    share: float
    worth: np.float32
    root: float
    gain: float


@always_inlined
def begin_walk(learner):
    """Return what the next walk over weights goes by."""
    task, kind, unit = learner.metric[TASK], learner.metric[METRIC], learner.metric[UNIT]
    as_they_are = task == MOVE and kind == EUCLIDEAN and unit == NO_UNIT
    return Walk(
        as_they_are and learner.states.shape[0] == 0,
        task,
        kind,
        unit,
        learner.metric_numbers[SHARE],
        np.float32(learner.forgetting[WORTH]),
        learner.forgetting[ROOT],
        learner.metric_numbers[GAIN],
    )


STEEPEST = 1e15  # of what is multiplied by 1 / sqrt(evidence) yet, which float32 is to hold


@always_inlined
def rate_of(kind, evidence, worth):
    """Return the step size of a weight that has so much evidence beside it.

    Evidence is kept so many times as a row counts; `scale_of` brings that in where it is a factor.
    """
    if kind == ADAPTIVE:
        return np.float32(1) / np.sqrt(evidence) if evidence > 0 else np.float32(0)
    if kind == CONFIDENT:
        return worth / (worth + evidence)
    return np.float32(1)


@always_inlined
def scale_of(learner, walk, feature):
    """Return what the rates of a feature's weights are multiplied by."""
    root = walk.root  # squares of gradients are kept so many times squared
    if walk.unit == NO_UNIT:
        return np.float32(root if walk.kind == ADAPTIVE else 1.0)
    gain, scale = walk.gain, 1.0
    if walk.unit == FEATURES:
        scale = np.float64(learner.scales[feature])
        if scale == 0:
            return np.float32(0)
    if walk.kind == ADAPTIVE:
        return np.float32(root * min(np.sqrt(gain) / scale, STEEPEST))
    return np.float32(min(gain / scale / scale, LARGEST))


@always_inlined
def gathered(evidence, share, amount):
    """Return the evidence beside a weight with so many times the square of an amount."""
    return min(evidence + share * (amount * amount), np.float32(LARGEST))


@always_inlined
def step_in_metric(learner, walk, feature, column, amount):
    """Return what an amount adds to a weight; for other tasks do these, and return 0."""
    kind, task = walk.kind, walk.task
    if kind == EUCLIDEAN and walk.unit == NO_UNIT and task == MOVE:
        return amount
    evidence = np.float32(0)
    if kind != EUCLIDEAN:
        evidence = learner.evidence[feature, column]
    if task == GATHER:
        # In double: the square of what float32 holds may be infinite, the share of it too little.
        grown = gathered(np.float64(evidence), walk.share, np.float64(amount))
        learner.evidence[feature, column] = grown
        return np.float32(0)
    step = amount * (rate_of(kind, evidence, walk.worth) * scale_of(learner, walk, feature))
    if task == MOVE:
        return step
    learner.metric_numbers[TOTAL] += np.float64(amount) * np.float64(step)
    return np.float32(0)
