"""A bank: what several learners predicted, combined row by row."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.calibration import calibrate
from kesler.compiled.jit import (
    DOUBLE_STACK,
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_TABLE,
    INDICES,
    INT_TABLE,
    INTS,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.lanes import whole_lines
from kesler.compiled.learner import FIRST_SEEN, MISTAKES, TRIALS
from kesler.compiled.scores import best

# How members are combined.
MAJORITY, BEST, MIXTURE = range(3)
# Parameters: the discount of the past, what a wrong vote is multiplied by.
DISCOUNT, DEMOTION = range(2)
# The least probability that a member is taken to have given an answer.
LEAST = 1e-30


class Bank(NamedTuple):
    """What is kept of the members, in their order.

    rule : (1,), how they are combined; parameters : (2,), as named above; losses : (members,),
    discounted errors or log-losses, or all errors of votes; weights : (members,), of votes
    and probabilities; counters, calibration : as in `kesler.compiled.learner`.
    """

    rule: npt.NDArray[np.int64]
    parameters: npt.NDArray[np.float64]
    losses: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]
    calibration: npt.NDArray[np.float64]


BANK = types.NamedTuple((INTS, DOUBLES, DOUBLES, DOUBLES, INTS, DOUBLES), Bank)


@inlined
def followed(losses):
    """Return the member of the smallest loss, the first among equals."""
    member = 0
    for i in range(1, losses.shape[0]):
        if losses[i] < losses[member]:
            member = i
    return member


@always_inlined
def blend(bank, winners, chances, t, k, scores):
    """Score the k classes of row t: by votes, by the member followed, or by probabilities."""
    rule, n_members = bank.rule[0], bank.losses.shape[0]
    if k == 0:
        return
    for r in range(k):
        scores[r] = 0.0
    if rule == BEST:
        member = followed(bank.losses)
        for r in range(k):
            scores[r] = chances[member, t, 2 + r]
        return
    for i in range(n_members):
        if rule == MAJORITY:
            scores[winners[i, t]] += bank.weights[i]
        else:
            for r in range(k):
                scores[r] += bank.weights[i] * chances[i, t, 2 + r]


@always_inlined
def judge(bank, winners, chances, t, y):
    """Let an answer of a known class count for or against each member."""
    rule = bank.rule[0]
    for i in range(bank.losses.shape[0]):
        wrong = 1.0 if winners[i, t] != y else 0.0
        if rule == MAJORITY:
            bank.losses[i] += wrong
        elif rule == BEST:
            bank.losses[i] = bank.parameters[DISCOUNT] * bank.losses[i] + wrong
        else:
            surprise = -math.log(max(LEAST, chances[i, t, 1]))
            bank.losses[i] = bank.parameters[DISCOUNT] * bank.losses[i] + surprise
    weigh(bank)


@inlined
def weigh(bank):
    """Set the weights that follow from the losses; they sum to 1."""
    lowest = bank.losses[followed(bank.losses)]
    rate = 1.0
    if bank.rule[0] == MAJORITY:
        rate = -math.log(bank.parameters[DEMOTION])
    total = 0.0
    for i in range(bank.losses.shape[0]):
        bank.weights[i] = math.exp(-rate * (bank.losses[i] - lowest))
        total += bank.weights[i]
    for i in range(bank.losses.shape[0]):
        bank.weights[i] /= total


@kernel(types.void(BANK, INT_TABLE, DOUBLE_STACK, INDICES, INDICES, FLOAT_TABLE, DOUBLE_TABLE))
def combine(bank, winners, chances, codes, predictions, scores, probabilities):
    """Combine what members said of rows before each answer, which then judges them.

    winners : (members, rows), the classes that they predicted; chances : (members, rows,
    2 + classes), probabilities as `calibrate` writes them; codes : (rows,), the answers;
    predictions, scores, probabilities : as in `kesler.compiled.weight_trial.learn`.
    """
    n_classes = chances.shape[2] - 2
    blended, room = np.empty(n_classes), whole_lines(n_classes)
    votes, exponentials = np.zeros(room, np.float32), np.empty(room, np.float32)
    for t in range(codes.shape[0]):
        k, y = bank.counters[FIRST_SEEN], codes[t]
        blend(bank, winners, chances, t, k, blended)
        predictions[t] = best(bank, blended, k)
        if k and bank.rule[0] == BEST:
            predictions[t] = winners[followed(bank.losses), t]
        for r in range(k):
            votes[r] = np.float32(blended[r])
            if scores.shape[0]:
                scores[t, r] = votes[r]
        if bank.rule[0] == MAJORITY:
            calibrate(bank, votes, k, predictions[t], y, exponentials, probabilities, t)
        elif probabilities.shape[0]:
            known = y < k
            probabilities[t, 0] = blended[predictions[t]] if known else np.nan
            probabilities[t, 1] = blended[y] if known else np.nan
        bank.counters[TRIALS] += 1
        if y < k:
            bank.counters[MISTAKES] += predictions[t] != y
            judge(bank, winners, chances, t, y)
        else:
            bank.counters[FIRST_SEEN] = y + 1
