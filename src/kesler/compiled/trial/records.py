"""Rows, targets and scratch arrays of a trial, in named tuples for compiled code.

Arrays are feature-major, (feature, hypothesis) or (feature, class), so that inner loops run over
classes in contiguous memory.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.codes import (
    Decision,
    Follows,
    NewClass,
    PartKind,
    Requirement,
    Selection,
    Statistic,
    StepUnit,
)
from kesler.compiled.jit.decorators import (
    BOOLS,
    DOUBLES,
    FLOATS,
    INDICES,
    INTS,
    allocating,
    inlined,
)
from kesler.compiled.jit.record_types import record_type
from kesler.compiled.jit.simd import cut, length_of, whole_lines
from kesler.compiled.trial.preprocessing import NONE
from kesler.compiled.weights.second_order import is_second_order
from kesler.state.records import SOLVER_STATUS, TARGET_SHAPE, Ranks

# The code of a map that is not called: the view of x is x itself, or it is given with the row.
# Addresses are never so small.
ITSELF, GIVEN = range(2)
# How the classes of a part own hypotheses.
PER_CLASS = int(PartKind.PERCLASS)
SHARED = int(PartKind.SHARED)
GROUPED = int(PartKind.GROUPED)
ORDERED = int(PartKind.ORDERED)
# The statistics of each class.
FIRST = int(Statistic.FIRST)
MEAN = int(Statistic.MEAN)
FREQUENCY = int(Statistic.FREQUENCY)
CONTRAST = int(Statistic.CONTRAST)
CENTRE = int(Statistic.CENTRE)
SHARPNESS = int(Statistic.SHARPNESS)
HEIGHT = int(Statistic.HEIGHT)
ROUNDED_OFF = int(Statistic.ROUNDED_OFF)
# The statistics of each feature over all rows: the number of non-zeros, the mean, the squared
# deviations from it, the origin of the centres of classes, and the resulting Gaussian.
COUNT, POOLED_MEAN, POOLED_SQUARES, ORIGIN, POOLED_SHARPNESS, POOLED_HEIGHT = range(6)
# The divisors of the counts of a class and of all others, whether the class has a row, and the
# share of all rows that a pseudo-row is.
OWN, OTHERS, SEEN, PSEUDO = range(4)
# Which constraints a rule receives.
PREDICTED = int(Selection.PREDICTED)
WORST = int(Selection.WORST)
MISTAKEN = int(Selection.MISTAKEN)
VIOLATED = int(Selection.VIOLATED)
ALL = int(Selection.ALL)
GROWING = int(Selection.GROWING)
RIVAL = int(Selection.RIVAL)
ONE_VS_REST = int(Selection.ONE_VS_REST)
VIOLATED_VS_REST = int(Selection.VIOLATED_VS_REST)
# The virtual class of score 0 that represents the rest in a pair.
THE_REST = -1
# The level of a class that a target does not compare with any other.
NOT_COMPARED = -1
# What a rule reads of the constraints besides their losses.
LOSSES = int(Requirement.LOSSES)
NORMS = int(Requirement.NORMS)
GRAM = int(Requirement.GRAM)
# Which part defines the scale of all weights.
NO_SCALE, LINK_SCALE, OWN_SCALE = range(3)
# What step sizes are computed from: nothing, squared gradients, or evidence; their units; the task
# of a pass over weights; how steps add evidence.
EUCLIDEAN = int(Follows.NOTHING)
ADAPTIVE = int(Follows.GRADIENTS)
CONFIDENT = int(Follows.EVIDENCE)
NO_UNIT = int(StepUnit.NONE)
ROWS = int(StepUnit.ROWS)
FEATURES = int(StepUnit.FEATURES)
MOVE, GATHER, MEASURE = range(3)
FIXED, MEASURED = range(2)
# What happens at the first instance of a class; the ratings of unseen classes are given with rows.
REGISTER = int(NewClass.REGISTER)
LEARN = int(NewClass.LEARN)
INHERIT = int(NewClass.INHERIT)
# Above this count float32 cannot represent an increment by 1: the statistics no longer change.
FULL = 2.0**24
# The divisor of the statistics of a class without instances; negligible beside one instance.
NO_INSTANCE = np.float32(1e-30)
# Constraints violated by less are not added to a growing set.
EXACT = 1e-6
# Arguments of helpers, since Numba compiles a helper again for each literal.
NOTHING, ONE = np.int64(0), np.int64(1)
# Views of a row for at most so many classes are stored: of 80 features they take 40 kB.
FEW_CLASSES = 128
# The largest amount that a trial may add to a weight; float32 ends at 3e38.
LARGEST = 1e37


# How a prediction follows from the scores: the highest, the median rank, labels by their F1, or the
# class of the least expected distance in a tree.
SCORE = int(Decision.SCORE)
MEDIAN = int(Decision.MEDIAN)
F1 = int(Decision.F1)
DISTANCE = int(Decision.DISTANCE)


class Views(NamedTuple):
    """The views phi(x, r) given with a row: entries begins[r] to ends[r].

    begins, ends : (classes,); indices, values : (entries,), of all rows; sums : the scratch buffer
    `given_sums` of the learner.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float64]


class Scratch(NamedTuple):
    """Scratch arrays of a trial, allocated once per call.

    wide, lengths : (classes,), coefficients and squared norms of all classes; scales : (longest
    row,), factors of the step sizes; conditioned, exact : (longest row,), the preprocessed row;
    direction, exact_direction, exact_values : (longest row,), of a second-order preconditioner;
    shared_rates : (parts, longest row), step sizes of shared hypotheses; rates : (parts, longest
    row, classes), adaptive step sizes that are used again; packed : (parts, half as many), those of
    the classes `chosen`, or the views of these classes for a shared part; chosen : (1 + classes,),
    the number of these classes and the classes (see `wide.choose_loops`); amounts : (parts, longest
    row), the updates of weights along views that are used again; tables : (parts, longest row,
    classes), these views, with zeros after the known classes; entries : (longest row,), the numbers
    0, 1, ...; upcoming : (2,), start and end of the next row among the indices of all rows, if its
    weights are to be prefetched; held : the arrays that the others are views of.
    """

    scores: npt.NDArray[np.float32]
    wide: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.float32]
    column: npt.NDArray[np.float32]
    phi: npt.NDArray[np.float32]
    other: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    conditioned: npt.NDArray[np.float32]
    direction: npt.NDArray[np.float32]
    vectors: npt.NDArray[np.float32]
    shared_rates: npt.NDArray[np.float32]
    rates: npt.NDArray[np.float32]
    packed: npt.NDArray[np.float32]
    amounts: npt.NDArray[np.float32]
    products: npt.NDArray[np.float64]
    out: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    exact: npt.NDArray[np.float64]
    exact_values: npt.NDArray[np.float64]
    exact_direction: npt.NDArray[np.float64]
    positions: npt.NDArray[np.int64]
    upcoming: npt.NDArray[np.int64]
    chosen: npt.NDArray[np.int64]
    tables: npt.NDArray[np.float32]
    entries: npt.NDArray[np.int32]
    views: Views
    words: npt.NDArray[np.int32]
    held: Any


class Solver(NamedTuple):
    """The constraints of a trial, the arguments of the rule and its steps.

    levels, lowest, top : (classes,), of the target;
    better, worse, losses, norms, steps : (pairs,);
    gram : (pairs, pairs); columns, owners : Gram columns and the class of each; slots : (classes,),
    the index of the column of each class, -1 if there is none; status : one record,
    :data:`kesler.state.records.SOLVER_STATUS`; coefficients, is_moved, moved : (classes,), the
    coefficients of the updates of each class, and which classes are updated; after : (classes,),
    the scores after the steps; exponentials : (classes,), of the scores; held : the arrays that the
    others are views of.
    """

    levels: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    top: npt.NDArray[np.int64]
    better: npt.NDArray[np.int64]
    worse: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    moved: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    norms: npt.NDArray[np.float64]
    steps: npt.NDArray[np.float64]
    gram: npt.NDArray[np.float64]
    columns: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    is_moved: npt.NDArray[np.bool_]
    exponentials: npt.NDArray[np.float32]
    ranks: Ranks
    status: Any
    held: Any


class Ratings(NamedTuple):
    """Ratings, as in `kesler.data.ratings.Ratings`; all arrays are empty if there are none.

    codes : the number of each rated class, -1 if it has not been seen.
    """

    starts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class Blocks(NamedTuple):
    """Rows, as in `kesler.data.rows.Rows`."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    ratings: Ratings


class EncodedTargets(NamedTuple):
    """Targets, as in `kesler.learner.targets.Answers`; row_weights may be empty (all 1).

    shape : see :data:`kesler.state.records.TARGET_SHAPE`; again : whether a row has been learnt
    before, so that it is learnt without being counted; empty if no row has; costs : that of each
    code, empty if targets are no costs.
    """

    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    shape: Any
    row_weights: npt.NDArray[np.float64]
    again: npt.NDArray[np.bool_]
    costs: npt.NDArray[np.float64]


RATINGS = types.NamedTuple((INTS, INTS, INTS, INDICES, FLOATS), Ratings)
BLOCKS = types.NamedTuple((INTS, INDICES, FLOATS, RATINGS), Blocks)
ENCODED_TARGETS = types.NamedTuple(
    (INTS, INDICES, INDICES, record_type(TARGET_SHAPE), DOUBLES, BOOLS, DOUBLES), EncodedTargets
)


@allocating
def make_scratch(learner, rows):
    """Allocate scratch arrays for the longest row and all classes."""
    longest, wide = 0, False
    for i in range(rows.indptr.shape[0] - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    longest = whole_lines(longest)
    n_classes, n_parts = learner.parts.member_starts.shape[1] - 1, learner.parts.kind.shape[0]
    width = n_classes
    for part in range(n_parts):
        width = max(width, learner.parts.width[part])
        if learner.parts.map[part] > GIVEN and learner.parts.kind[part] != SHARED:
            wide = True
    n_positions = 0
    if learner.algorithm.address != 0 or learner.link.is_exact:
        ratings = rows.ratings
        for t in range(ratings.starts.shape[0] - 1):
            first, last = ratings.starts[t], ratings.starts[t + 1]
            n_positions = max(n_positions, ratings.indptr[last] - ratings.indptr[first])
        n_positions = max(n_positions, longest) * most_hypotheses(learner, n_classes) + n_classes
    n_conditioned = 0 if learner.preprocessing.method == NONE else longest
    n_vectors, n_stored = longest if wide else 0, n_parts if keeps_views(learner, n_classes) else 0
    is_rated = asks_for_all(learner.rule.selection) and learner.preconditioner.kind == ADAPTIVE
    of_classes = (n_classes, n_classes, n_classes, width)
    n_directed = longest if is_second_order(learner) else 0
    of_row = (longest, longest, longest, n_conditioned, n_directed, (n_vectors, n_classes))
    n_rated, rates = n_parts if is_rated else 0, (n_parts, longest)
    rated, packed = (n_rated, longest, n_classes), (n_rated, longest * n_classes // 2)
    floats = (*of_classes, *of_row, rates, rated, packed, (n_stored, longest))
    doubles = (n_classes, 1, n_positions, n_conditioned, n_directed, n_directed)
    integers = (n_classes, n_classes, n_positions, 2, 1 + n_classes)
    held = (
        np.empty(length_of(floats), np.float32),
        np.empty(length_of(doubles)),
        np.zeros(length_of(integers), np.int64),
        np.zeros((n_stored, longest, n_classes), np.float32),
        np.arange(longest).astype(np.int32),
    )
    begins, ends, positions, upcoming, chosen = cut(held[2], integers)
    views = Views(
        begins, ends, rows.ratings.indices, rows.ratings.values, learner.weights.given_sums
    )
    others = (positions, upcoming, chosen, held[3], held[4], views, rows.indices, held)
    return Scratch(*(cut(held[0], floats) + cut(held[1], doubles) + others))


@inlined
def takes_one(selection):
    """Return whether a rule receives one constraint at most."""
    return selection == PREDICTED or selection == WORST or selection == RIVAL


@inlined
def is_vs_rest(selection):
    """Return whether each class is compared with the rest."""
    return selection == ONE_VS_REST or selection == VIOLATED_VS_REST


@inlined
def asks_for_all(selection):
    """Return whether a rule receives constraints of every class."""
    return selection == ALL or is_vs_rest(selection)


@inlined
def keeps_views(learner, n_classes):
    """Return whether the views of a shared part are stored, since they are used again.

    They are where all classes move, and where there are so few classes that the views of a row
    stay in the cache of a core.
    """
    if n_classes > FEW_CLASSES and not asks_for_all(learner.rule.selection):
        return False
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.map[part] > GIVEN and learner.parts.kind[part] == SHARED:
            return learner.weights.states.shape[0] == 0
    return False


@inlined
def most_hypotheses(learner, n_classes):
    """Return a bound on the number of hypotheses of two classes."""
    total = 0
    for part in range(learner.parts.kind.shape[0]):
        most = 1
        for r in range(n_classes):
            most = max(
                most,
                learner.parts.member_starts[part, r + 1] - learner.parts.member_starts[part, r],
            )
        total += 2 * most
    return total


@allocating
def make_solver(learner, n_classes, encoded):
    """Allocate arrays for the constraints that the rule may receive, and for its arguments."""
    selection, requirement = learner.rule.selection, learner.rule.requires
    most = encoded.shape.most_pairs
    if takes_one(selection):
        most = 1
    elif is_vs_rest(selection):
        most = n_classes
    elif selection == GROWING:
        # An optimum needs no more pairs than classes; others drop to 0 on the way.
        most = min(most, 4 * n_classes)
    most_levels = encoded.shape.n_levels
    n_columns = 0
    if requirement == GRAM:
        n_columns = n_classes
    elif requirement == NORMS and most > 1:
        n_columns = 2
    n_others, n_after = (most, n_classes) if requirement == GRAM else (0, 0)
    of_pairs, of_columns = (most, most, most, (most, n_others)), (n_columns, n_classes)
    doubles = (*of_pairs, of_columns, n_classes, n_after)
    integers = (n_classes, most_levels, most_levels, most, most, n_columns, n_classes, n_classes)
    held = (
        np.zeros(length_of(integers), np.int64),
        np.zeros(length_of(doubles)),
        np.zeros(n_classes, np.bool_),
        np.empty(n_classes, np.float32),
        np.zeros(1, SOLVER_STATUS),
    )
    others = (held[2], held[3], learner.ranks, held[4], held)
    solver = Solver(*(cut(held[0], integers) + cut(held[1], doubles) + others))
    solver.slots[:] = -1
    return solver


@inlined
def groups_of(learner, part, r):
    """Return the start and end of the groups of class r; an unseen class has none."""
    start = learner.parts.member_starts[part, r]
    if r >= learner.counts.n_classes:
        return start, start
    return start, learner.parts.member_starts[part, r + 1]


@inlined
def n_hypotheses(learner, part, r):
    """Return the number of hypotheses of the part that class r owns."""
    if learner.parts.kind[part] != GROUPED:
        return 1
    start, end = groups_of(learner, part, r)
    return end - start


@inlined
def n_common(learner, part, r, s):
    """Return the number of hypotheses of the part that classes r and s share."""
    kind = learner.parts.kind[part]
    if kind == PER_CLASS:
        return 1 if r == s else 0
    if kind == SHARED:
        return 1
    common = 0
    i, i_end = groups_of(learner, part, r)
    j, j_end = groups_of(learner, part, s)
    while i < i_end and j < j_end:
        if learner.parts.members[i] == learner.parts.members[j]:
            common += 1
            i += 1
            j += 1
        elif learner.parts.members[i] < learner.parts.members[j]:
            i += 1
        else:
            j += 1
    return common


@inlined
def is_member(learner, part, r, group):
    """Return whether class r belongs to a group of the part."""
    start, end = groups_of(learner, part, r)
    for m in range(start, end):
        if learner.parts.members[m] == group:
            return True
    return False


@inlined
def n_candidates(learner):
    """Return the number of known classes, a virtual one included."""
    return learner.counts.n_classes + (learner.settings.on_new_class == INHERIT)
