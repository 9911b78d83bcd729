"""What a trial reads and moves: arrays in tuples, as Numba takes them.

Every array is feature-major, (feature, hypothesis) or (feature, class), so that the inner loops run
over classes in contiguous memory.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit import (
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    INT_TABLE,
    INTS,
    allocating,
)

# Columns of the table of parts.
KIND, MAP, STATISTIC, OFFSET, WIDTH = range(5)
# How the classes of a part own hypotheses.
PER_CLASS, SHARED, GROUPED = range(3)
# What is kept of each class.
FIRST, MEAN, FREQUENCY = range(3)
# Which constraints a rule is given.
PREDICTED, WORST, MISTAKEN, VIOLATED, ALL, GROWING = range(6)
# What a rule sees of them beside their losses.
LOSSES, NORMS, GRAM = range(3)
# Classes come in full vectors: float32 numbers in a 64-byte cache line.
LANES = 16
# Counters.
TRIALS, MISTAKES, FIRST_SEEN, NOT_FINITE = range(4)
# Beyond this many, float32 could no longer add one: the statistics of such a class stand still.
FULL = 2.0**24
# A rule that is handed a growing set of constraints gets no further one that is violated by less.
EXACT = 1e-6
# The largest amount that a trial may add to a weight: float32 ends at 3e38.
LARGEST = 1e37


class Learner(NamedTuple):
    """All that a trial reads and moves; see `machine.py` for who owns it.

    weights : (features, hypotheses); statistics : (kinds, features, classes);
    totals : (kinds, classes), by which statistics are divided; kinds : (kinds,);
    parts : (parts, 5), columns as named above; map_parameters : (parts, 4);
    member_starts : (parts, classes + 1) and members : hypotheses of each class of grouped parts;
    rule : address, constraints, sight; rule_parameters : of the rule; counters : (4,).
    """

    weights: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    kinds: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    map_parameters: npt.NDArray[np.float32]
    member_starts: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    rule: npt.NDArray[np.int64]
    rule_parameters: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]


class Scratch(NamedTuple):
    """Room for one trial, made once a call: nothing is allocated within a trial."""

    scores: npt.NDArray[np.float32]
    column: npt.NDArray[np.float32]
    vectors: npt.NDArray[np.float32]
    narrow: npt.NDArray[np.float32]
    phi: npt.NDArray[np.float32]
    other: npt.NDArray[np.float32]


class Solver(NamedTuple):
    """The constraints of a trial, what the rule sees of them and the steps that it takes."""

    chosen: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    norms: npt.NDArray[np.float64]
    steps: npt.NDArray[np.float64]
    gram: npt.NDArray[np.float64]
    columns: npt.NDArray[np.float32]


LEARNER = types.NamedTuple(
    (
        FLOAT_TABLE,
        FLOAT_STACK,
        FLOAT_TABLE,
        INTS,
        INT_TABLE,
        FLOAT_TABLE,
        INT_TABLE,
        INTS,
        INTS,
        DOUBLES,
        INTS,
    ),
    Learner,
)


@allocating
def make_scratch(learner, indptr):
    """Room for the longest row and all classes."""
    longest, wide = 0, False
    for i in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_classes = learner.member_starts.shape[1] - 1
    width = n_classes
    for part in range(learner.parts.shape[0]):
        width = max(width, learner.parts[part, WIDTH])
        if learner.parts[part, MAP] != 0 and learner.parts[part, KIND] != SHARED:
            wide = True
    return Scratch(
        np.empty(n_classes, np.float32),
        np.empty(width, np.float32),
        # Two columns at least: one column means one vector for all classes.
        np.empty((longest if wide else 0, max(2, n_classes)), np.float32),
        np.empty((longest, 1), np.float32),
        np.empty(longest, np.float32),
        np.empty(longest, np.float32),
    )


@allocating
def make_solver(learner, n_classes):
    """Room for the constraints that the rule may be given, and for what it sees of them."""
    selection, sight = learner.rule[1], learner.rule[2]
    most = 1 if selection == PREDICTED or selection == WORST else n_classes
    n_columns = 0
    if sight == GRAM:
        n_columns = most + 1
    elif sight == NORMS and most > 1:
        n_columns = 2
    return Solver(
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty((most, most) if sight == GRAM else (most, 0)),
        np.empty((n_columns, n_classes), np.float32),
    )
