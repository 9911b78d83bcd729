"""Probabilities of labels, and the threshold of the best F1, learnt from each label set.

See `kesler.learner.calibration` for the model.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.trial.calibration import (
    COLDEST,
    DISCOUNT,
    HOTTEST,
    LARGEST_ODDS,
    probability,
)

# The virtual label that is the threshold, and the levels of relevant labels, of the threshold and
# of irrelevant labels.
THE_THRESHOLD = 0
RELEVANT, OF_THRESHOLD, IRRELEVANT = range(3)
# The discount of the information of offsets, and what is added to it.
SLOW, PRIOR = 0.999, 5.0
# The bound of the amounts by which scores are moved; float32 ends at 3e38.
LARGEST_MOVE = 1e30


@inlined
def temper_set(learner, scores, k):
    """Return the inverse temperature, initially the one that puts the furthest label at 2."""
    calibration = learner.sets.calibration
    if calibration.information > 0:
        return calibration.inverse
    furthest, threshold = 0.0, np.float64(scores[THE_THRESHOLD])
    for r in range(THE_THRESHOLD + 1, k):
        furthest = max(furthest, abs(np.float64(scores[r]) - threshold))
    return 2.0 / furthest if 0 < furthest and furthest < np.inf else 0.0


@inlined
def bounded(value, largest):
    """Return the nearest value within [-largest, largest]."""
    return max(-largest, min(largest, value))


@inlined
def height(inverse, scores, r):
    """Return beta times the score of a label above the threshold."""
    above = np.float64(scores[r]) - np.float64(scores[THE_THRESHOLD])
    return bounded(inverse * above, LARGEST_ODDS)


@inlined
def odds_to_beat(calibration):
    """Return the log-odds of half of the F1 so far."""
    return math.log(calibration.hits / (calibration.named - calibration.hits))


@inlined
def tell_set(learner, scores, k, probabilities, t):
    """Write the probability of each label, 0 for the threshold, if requested."""
    if probabilities.shape[0] == 0:
        return
    inverse, offsets = temper_set(learner, scores, k), learner.sets.offsets
    for r in range(min(k, probabilities.shape[1])):
        odds = height(inverse, scores, r) + offsets[r]
        probabilities[t, r] = probability(odds) if r != THE_THRESHOLD else 0.0


@inlined
def move_to_decide(learner, scores, k, moved):
    """Move scores so that a label is above the threshold if its odds are above those to beat."""
    if k == 0:
        return
    inverse, offsets = temper_set(learner, scores, k), learner.sets.offsets
    unit = 1.0 / inverse if inverse > 0 else 1.0
    to_beat = odds_to_beat(learner.sets.calibration)
    moved[THE_THRESHOLD] += np.float32(bounded(to_beat * unit, LARGEST_MOVE))
    for r in range(THE_THRESHOLD + 1, k):
        moved[r] += np.float32(bounded(offsets[r] * unit, LARGEST_MOVE))


@inlined
def learn_set(learner, scores, k, levels):
    """Learn from the levels of the labels; nothing if a score is not finite."""
    calibration, offsets = learner.sets.calibration, learner.sets.offsets
    inverse = temper_set(learner, scores, k)
    for r in range(k):
        if not np.isfinite(scores[r]):
            return
    if calibration.information == 0 and inverse > 0:
        calibration.inverse, calibration.information = inverse, 1.0
    to_beat, slope, information = odds_to_beat(calibration), 0.0, 0.0
    for r in range(THE_THRESHOLD + 1, k):
        if levels[r] == RELEVANT or levels[r] == IRRELEVANT:
            is_relevant, z = levels[r] == RELEVANT, height(inverse, scores, r)
            odds = z + offsets[r]
            p = probability(odds)
            count(calibration, odds > to_beat, is_relevant)
            error, variance = is_relevant - p, p * (1.0 - p)
            slope += error * z
            information += variance * z * z
            learner.sets.evidence[r] = SLOW * learner.sets.evidence[r] + variance
            offsets[r] += error / (learner.sets.evidence[r] + PRIOR)
    if inverse > 0:
        calibration.information = DISCOUNT * calibration.information + information
        step = bounded(slope / (calibration.information + 1.0), 1.0)
        found = calibration.inverse * math.exp(step)
        calibration.inverse = min(COLDEST, max(HOTTEST, found))


@inlined
def count(calibration, is_predicted, is_relevant):
    """Add the prediction for a label to the counts of the F1."""
    calibration.hits += is_predicted and is_relevant
    calibration.named += int(is_predicted) + int(is_relevant)
