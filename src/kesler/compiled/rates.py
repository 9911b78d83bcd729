"""Rates: the step size of each weight in a metric, and what a change of a weight means there.

A walk over the weights that a direction touches (`moves.move`) serves three tasks: it moves them,
it adds the squares of the direction to the evidence beside them, or it measures the direction.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import always_inlined, inlined
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

STEEPEST = 1e15  # of what is multiplied by 1 / sqrt(evidence) yet, which float32 is to hold


@always_inlined
def rate_of(kind, evidence):
    """Return the step size of a weight that has so much evidence beside it."""
    if kind == ADAPTIVE:
        return np.float32(1) / np.sqrt(evidence) if evidence > 0 else np.float32(0)
    if kind == CONFIDENT:
        return np.float32(1) / (np.float32(1) + evidence)
    return np.float32(1)


@always_inlined
def scale_of(learner, feature):
    """Return what the rates of a feature's weights are multiplied by."""
    if learner.metric[UNIT] == NO_UNIT:
        return np.float32(1)
    gain, scale = learner.metric_numbers[GAIN], 1.0
    if learner.metric[UNIT] == FEATURES:
        scale = np.float64(learner.scales[feature])
        if scale == 0:
            return np.float32(0)
    if learner.metric[METRIC] == ADAPTIVE:
        return np.float32(min(np.sqrt(gain) / scale, STEEPEST))
    return np.float32(min(gain / scale / scale, LARGEST))


@always_inlined
def gathered(evidence, share, amount):
    """Return the evidence beside a weight with so many times the square of an amount."""
    return min(evidence + share * (amount * amount), np.float32(LARGEST))


@inlined
def step_in_metric(learner, feature, column, amount):
    """Return what an amount adds to a weight; for other tasks do these, and return 0."""
    kind, task = learner.metric[METRIC], learner.metric[TASK]
    if kind == EUCLIDEAN and learner.metric[UNIT] == NO_UNIT and task == MOVE:
        return amount
    evidence = np.float32(0)
    if kind != EUCLIDEAN:
        evidence = learner.evidence[feature, column]
    if task == GATHER:
        # In double: the square of what float32 holds may be infinite, the share of it too little.
        share = learner.metric_numbers[SHARE]
        grown = gathered(np.float64(evidence), share, np.float64(amount))
        learner.evidence[feature, column] = grown
        return np.float32(0)
    step = amount * (rate_of(kind, evidence) * scale_of(learner, feature))
    if task == MOVE:
        return step
    learner.metric_numbers[TOTAL] += np.float64(amount) * np.float64(step)
    return np.float32(0)
