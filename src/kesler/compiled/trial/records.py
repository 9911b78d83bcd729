"""What a trial reads and moves: arrays in tuples, as Numba takes them.

Every array is feature-major, (feature, hypothesis) or (feature, class), so that the inner loops run
over classes in contiguous memory.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOATS,
    INDICES,
    INTS,
    allocating,
    inlined,
)
from kesler.compiled.jit.simd import cut, length_of, whole_lines
from kesler.compiled.trial.preprocessing import NONE
from kesler.state.records import Ranks

# What stands in the column MAP where no map is called: the view of x is x itself, or it is given
# with the example. Addresses are never so small.
ITSELF, GIVEN = range(2)
# How the classes of a part own hypotheses.
PER_CLASS, SHARED, GROUPED, ORDERED = range(4)
# What is kept of each class.
FIRST, MEAN, FREQUENCY, CONTRAST, CENTRE, SHARPNESS, HEIGHT, ROUNDED_OFF = range(8)
# What is kept of each feature over all rows: how often it is not zero; its mean, the squares about
# it, what classes' centres are relative to, and the Gaussian that follows.
COUNT, POOLED_MEAN, POOLED_SQUARES, ORIGIN, POOLED_SHARPNESS, POOLED_HEIGHT = range(6)
# What counts of a class and of all others are divided by, whether the class has a row, and what
# part of all rows a pseudo-row is.
OWN, OTHERS, SEEN, PSEUDO = range(4)
# Which constraints a rule is given.
PREDICTED, WORST, MISTAKEN, VIOLATED, ALL, GROWING, RIVAL, ONE_VS_REST, VIOLATED_VS_REST = range(9)
# The virtual class of score 0 that stands for the rest in a pair.
THE_REST = -1
# What `counts` of a solver tells: Gram columns in use, whether the trial's loops run over classes,
# and whether it has too few pairs for loops over the views of all classes.
IN_USE, WIDE, FEW = range(3)
# The level of a class that an answer says nothing about, where that means nothing.
NOT_COMPARED = -1
# What a rule sees of them beside their losses.
LOSSES, NORMS, GRAM = range(3)
# What answers share: the level of classes left out, the most pairs, the number of levels.
REST, PAIRS, LEVELS = range(3)
# Where the scale of all weights comes from.
NO_SCALE, LINK_SCALE, OWN_SCALE = range(3)
# What the step size of a weight follows from: nothing, the squares of its gradients, or evidence
# for it; in units of what it is; what a walk over weights does; how evidence follows from steps.
EUCLIDEAN, ADAPTIVE, CONFIDENT = range(3)
NO_UNIT, ROWS, FEATURES = range(3)
MOVE, GATHER, MEASURE = range(3)
FIXED, MEASURED = range(2)
# What the first instance of a class does: only join, be learnt from, be learnt from with the
# weights of a virtual class to begin with.
WAIT, LEARN, VIRTUAL = range(3)
# Beyond this many, float32 could no longer add one: the statistics of such a class stand still.
FULL = 2.0**24
# What the statistics of a class without an instance are divided by; lost in the sum with the first.
NO_INSTANCE = np.float32(1e-30)
# A rule that is handed a growing set of constraints gets no further one that is violated by less.
EXACT = 1e-6
# Numbers that helpers are called with: Numba compiles a helper once more for each literal.
NOTHING, ONE = np.int64(0), np.int64(1)
# The largest amount that a trial may add to a weight: float32 ends at 3e38.
LARGEST = 1e37


class Views(NamedTuple):
    """The views phi(x, r) that a row is given with: entries begins[r] to ends[r].

    begins, ends : (classes,); indices, values : (entries,), of all rows; sums : as in
    `LearnerRecord`.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float64]


class Scratch(NamedTuple):
    """Room for one trial, made once a call: nothing is allocated within a trial.

    wide, lengths : (classes,), coefficients and squared norms of all classes; scales : (longest
    row,), what rates are multiplied by; conditioned, exact : (longest row,) if rows are
    conditioned; shared_rates : (parts, longest row); rates : (parts, longest row, classes), if they
    are adaptive and wanted again; packed : (parts, half as many), those of the classes `chosen`, or
    of a shared part their views; chosen : (1 + classes,), how many these are and which (see
    `wide.choose_loops`); amounts : (parts, longest row), what the views add to weights that are
    wanted again; tables : (parts, longest row, classes), these views, zeros behind the known
    classes; entries : (longest row,), their numbers; upcoming : (2,), where among the words of all
    rows those of the next one begin and end, if what scores this row is to ask for their weights;
    held : what the others are cut out of.
    """

    scores: npt.NDArray[np.float32]
    wide: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.float32]
    column: npt.NDArray[np.float32]
    phi: npt.NDArray[np.float32]
    other: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    conditioned: npt.NDArray[np.float32]
    vectors: npt.NDArray[np.float32]
    shared_rates: npt.NDArray[np.float32]
    rates: npt.NDArray[np.float32]
    packed: npt.NDArray[np.float32]
    amounts: npt.NDArray[np.float32]
    products: npt.NDArray[np.float64]
    out: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    exact: npt.NDArray[np.float64]
    positions: npt.NDArray[np.int64]
    upcoming: npt.NDArray[np.int64]
    chosen: npt.NDArray[np.int64]
    tables: npt.NDArray[np.float32]
    entries: npt.NDArray[np.int32]
    views: Views
    words: npt.NDArray[np.int32]
    held: Any


class Solver(NamedTuple):
    """The constraints of a trial, what the rule sees of them and the steps that it takes.

    levels, lowest, top : (classes,), of the answer;
    better, worse, losses, norms, steps : (pairs,);
    gram : (pairs, pairs); columns, owners : Gram columns and the class of each; slots : (classes,),
    where the column of a class is, -1 if nowhere; counts : (3,), numbers as named above;
    coefficients, is_moved, moved : (classes,), what the steps add to each class, and which;
    after : (classes,), the scores that the steps would lead to; exponentials : (classes,), of the
    scores; held : what the others are cut out of.
    """

    levels: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    top: npt.NDArray[np.int64]
    better: npt.NDArray[np.int64]
    worse: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
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
    held: Any


class Ratings(NamedTuple):
    """Ratings, as in `kesler.data.ratings.Ratings`; all empty if the rows bring none.

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
    """Answers, as in `kesler.learner.targets.Answers`; row_weights may be empty (all 1)."""

    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    shape: npt.NDArray[np.int64]
    row_weights: npt.NDArray[np.float64]


RATINGS = types.NamedTuple((INTS, INTS, INTS, INDICES, FLOATS), Ratings)
BLOCKS = types.NamedTuple((INTS, INDICES, FLOATS, RATINGS), Blocks)
ENCODED_TARGETS = types.NamedTuple((INTS, INDICES, INDICES, INTS, DOUBLES), EncodedTargets)


@allocating
def make_scratch(learner, rows):
    """Room for the longest row and all classes."""
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
    if learner.algorithm.address != 0:
        ratings = rows.ratings
        for t in range(ratings.starts.shape[0] - 1):
            first, last = ratings.starts[t], ratings.starts[t + 1]
            n_positions = max(n_positions, ratings.indptr[last] - ratings.indptr[first])
        n_positions = max(n_positions, longest) * most_hypotheses(learner, n_classes)
    n_conditioned = 0 if learner.preprocessing.method == NONE else longest
    n_vectors, n_stored = longest if wide else 0, n_parts if keeps_views(learner) else 0
    is_rated = asks_for_all(learner.rule.selection) and learner.preconditioner.kind == ADAPTIVE
    of_classes = (n_classes, n_classes, n_classes, width)
    of_row = (longest, longest, longest, n_conditioned, (n_vectors, n_classes))
    n_rated, rates = n_parts if is_rated else 0, (n_parts, longest)
    rated, packed = (n_rated, longest, n_classes), (n_rated, longest * n_classes // 2)
    floats = (*of_classes, *of_row, rates, rated, packed, (n_stored, longest))
    doubles = (n_classes, 1, n_positions, n_conditioned)
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
def is_vs_rest(selection):
    """Whether each class is set apart from the rest."""
    return selection == ONE_VS_REST or selection == VIOLATED_VS_REST


@inlined
def asks_for_all(selection):
    """Whether a rule asks for every class, so that loops may run over all of them."""
    return selection == ALL or is_vs_rest(selection)


@inlined
def keeps_views(learner):
    """Whether the views that a shared part scores are wanted again, since all classes move."""
    if not asks_for_all(learner.rule.selection):
        return False
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.map[part] > GIVEN and learner.parts.kind[part] == SHARED:
            return learner.weights.states.shape[0] == 0
    return False


@inlined
def most_hypotheses(learner, n_classes):
    """Return a bound on how many hypotheses two classes belong to."""
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
    """Room for the constraints that the rule may be given, and for what it sees of them."""
    selection, requirement = learner.rule.selection, learner.rule.requires
    most = encoded.shape[PAIRS]
    if selection == PREDICTED or selection == WORST or selection == RIVAL:
        most = 1
    elif is_vs_rest(selection):
        most = n_classes
    elif selection == GROWING:
        # An optimum needs no more pairs than classes; some of those tried on the way drop to 0.
        most = min(most, 4 * n_classes)
    most_levels = encoded.shape[LEVELS]
    n_columns = 0
    if requirement == GRAM:
        n_columns = n_classes
    elif requirement == NORMS and most > 1:
        n_columns = 2
    n_others, n_after = (most, n_classes) if requirement == GRAM else (0, 0)
    of_pairs, of_columns = (most, most, most, (most, n_others)), (n_columns, n_classes)
    doubles = (*of_pairs, of_columns, n_classes, n_after)
    integers = (n_classes, most_levels, most_levels, most, most, n_columns, n_classes, 3, n_classes)
    held = (
        np.zeros(length_of(integers), np.int64),
        np.zeros(length_of(doubles)),
        np.zeros(n_classes, np.bool_),
        np.empty(n_classes, np.float32),
    )
    others = (held[2], held[3], learner.ranks, held)
    solver = Solver(*(cut(held[0], integers) + cut(held[1], doubles) + others))
    solver.slots[:] = -1
    return solver


@inlined
def groups_of(learner, part, r):
    """Return where the groups of class r begin and end; one that was not seen has none yet."""
    start = learner.parts.member_starts[part, r]
    if r >= learner.counts.n_classes:
        return start, start
    return start, learner.parts.member_starts[part, r + 1]


@inlined
def n_hypotheses(learner, part, r):
    """Return how many hypotheses of the part class r owns."""
    if learner.parts.kind[part] != GROUPED:
        return 1
    start, end = groups_of(learner, part, r)
    return end - start


@inlined
def n_common(learner, part, r, s):
    """Return how many hypotheses of the part classes r and s share."""
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
    """Whether class r belongs to a group of the part."""
    start, end = groups_of(learner, part, r)
    for m in range(start, end):
        if learner.parts.members[m] == group:
            return True
    return False


@inlined
def n_candidates(learner):
    """Return how many classes there are by now, a virtual one included."""
    return learner.counts.n_classes + (learner.settings.on_new_class == VIRTUAL)
