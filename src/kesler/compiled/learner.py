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

from kesler.compiled.conditioning import METHOD, NONE
from kesler.compiled.jit import (
    BOOL_TABLE,
    BOOLS,
    DOUBLE_STACK,
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INT_TABLE,
    INTS,
    allocating,
    inlined,
)
from kesler.compiled.lanes import whole_lines
from kesler.compiled.slices import cut, length_of

# Columns of the table of parts.
KIND, MAP, STATISTIC, OFFSET, WIDTH = range(5)
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
OWN, OTHERS, MET, PSEUDO = range(4)
# How variances and counts of classes are smoothed; the value of the constant feature, 0 for none.
SHRINKAGE, FLOOR, PSEUDO_ROWS, PRIOR = range(4)
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
# What is known of the order of ranks: the place of each class among all that Python knows, the
# classes met by now from the lowest to the highest, and the number of each among these.
PLACE, ORDER, POSITION = range(3)
# Counters.
TRIALS, MISTAKES, FIRST_SEEN, NOT_FINITE = range(4)
# Numbers of a link: the sum behind its scale, the largest that it was since all was computed anew,
# what weights are relative to, the scale, and whether all is to be computed anew.
# An algorithm that moves weights by itself has the numbers from FACTOR on, the scale first.
SUM, PEAK, REFERENCE, FACTOR, STALE = range(5)
# Where the scale of all weights comes from.
NO_SCALE, LINK_SCALE, OWN_SCALE = range(3)
# What the step size of a weight follows from, by its number in `metric`: nothing, the squares of
# its gradients, or the evidence for it; and in units of what it is.
EUCLIDEAN, ADAPTIVE, CONFIDENT = range(3)
# Numbers of `metric`: of the above, what rates are in units of, what a walk over weights does, and
# how evidence follows from steps.
METRIC, UNIT, TASK, EVIDENCE = range(4)
NO_UNIT, ROWS, FEATURES = range(3)
MOVE, GATHER, MEASURE = range(3)
FIXED, MEASURED = range(2)
# Numbers of `metric_numbers`: what was measured, what squares are multiplied by, and rates; the
# rows and the sum of their scaled squared lengths so far, from which that follows.
TOTAL, SHARE, GAIN, N_SCALED, SCALED_LENGTH = range(5)
# What the first instance of a class does: only join, be learnt from, be learnt from with the
# weights of a virtual class to begin with.
WAIT, LEARN, VIRTUAL = range(3)
# Columns of `met`.
N_MET_FEATURES, N_MET_HYPOTHESES = range(2)
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


class Learner(NamedTuple):
    """All that a trial reads and moves; see `machine.py` for who owns it.

    weights : (features, hypotheses); states : (kinds, features, hypotheses), what is kept beside
    each weight: the sums behind a link, or those of an average;
    statistics : (kinds, features, classes); totals : (kinds, classes), by which they are divided;
    kinds : (kinds,), of statistics;
    parts : (parts, 5), columns as named above; map_parameters : (parts, 4);
    member_starts : (parts, classes + 1) and members : hypotheses of each class of grouped parts;
    ranks : (3, classes), rows as named above; (3, 0) where classes have no order;
    rule : address, constraints, sight, address of the gradient (0 for 1 along each constraint);
    rule_parameters : of the rule; margins : (1, 1), or
    (classes, classes) where they differ; counters : (4,);
    link : address (0 for none), where the scale comes from; link_parameters : of the link;
    geometry : exponent and factor of the norm of differences; numbers : as named above; is_met :
    (features, parts), the features that have weights in the sum of a link; met : (parts, 2), how
    many features and how many hypotheses of each part those are; algorithm : (1,), the address of
    one that moves weights by itself, 0 for none; flat_weights, flat_states : the same weights and
    states, as it sees them; sums : (features,) if a part has a given view, zeros between trials;
    metric, metric_numbers : numbers as named above; metric_parameters : (1,), of evidence;
    evidence : (features, hypotheses), what is known beside each weight; scales : (features,), the
    largest |x_i| so far; newcomers : (1,), what the first instance of a class does; listed :
    (1 + features,), with a virtual class the features met so far behind their number, is_listed :
    (features,), whether a feature is among them;
    pooled : (features, 6), columns as named above, (features, 0) if no map looks at them; moments :
    (2, classes, features), means and squares about them; amounts : (1 + classes,), the weight of
    all rows and of each class's; divisors : (4, classes) and smoothing : (4,), as named above;
    calibration : (4,), see `kesler.compiled.calibration`, or (0,) if answers are of many classes;
    conditioning, conditioning_parameters : what is done to rows, as in `conditioning.py`; past :
    (features, numbers), what it keeps of the rows so far, past_rows : (1,), how many those are;
    forgetting : (3,), as in `worth.py`; beginnings : (parts,), what weights fade to.
    """

    weights: npt.NDArray[np.float32]
    states: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32]
    kinds: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    map_parameters: npt.NDArray[np.float32]
    member_starts: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    rule: npt.NDArray[np.int64]
    rule_parameters: npt.NDArray[np.float64]
    margins: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]
    link: npt.NDArray[np.int64]
    link_parameters: npt.NDArray[np.float64]
    geometry: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.float64]
    is_met: npt.NDArray[np.bool_]
    met: npt.NDArray[np.int64]
    algorithm: npt.NDArray[np.int64]
    flat_weights: npt.NDArray[np.float32]
    flat_states: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]
    metric: npt.NDArray[np.int64]
    metric_numbers: npt.NDArray[np.float64]
    metric_parameters: npt.NDArray[np.float64]
    evidence: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    newcomers: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]
    is_listed: npt.NDArray[np.bool_]
    pooled: npt.NDArray[np.float64]
    moments: npt.NDArray[np.float64]
    amounts: npt.NDArray[np.float64]
    divisors: npt.NDArray[np.float32]
    smoothing: npt.NDArray[np.float64]
    calibration: npt.NDArray[np.float64]
    conditioning: npt.NDArray[np.int64]
    conditioning_parameters: npt.NDArray[np.float64]
    past: npt.NDArray[np.float64]
    past_rows: npt.NDArray[np.float64]
    forgetting: npt.NDArray[np.float64]
    beginnings: npt.NDArray[np.float64]


class Views(NamedTuple):
    """The views phi(x, r) that a row is given with: entries begins[r] to ends[r].

    begins, ends : (classes,); indices, values : (entries,), of all rows; sums : as in `Learner`.
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

    ranks : as in `Learner`; levels, lowest, top : (classes,), of the answer;
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
    ranks: npt.NDArray[np.int64]
    held: Any


class Ratings(NamedTuple):
    """Ratings, as in `kesler.ratings.Ratings`; all empty if the rows bring none.

    codes : the number of each rated class, -1 if it has not been met.
    """

    starts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class Blocks(NamedTuple):
    """Rows, as in `kesler.rows.Rows`."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    ratings: Ratings


class Heard(NamedTuple):
    """Answers, as in `kesler.answers.Answers`; row_weights may be empty (all 1)."""

    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    shape: npt.NDArray[np.int64]
    row_weights: npt.NDArray[np.float64]


RATINGS = types.NamedTuple((INTS, INTS, INTS, INDICES, FLOATS), Ratings)
BLOCKS = types.NamedTuple((INTS, INDICES, FLOATS, RATINGS), Blocks)
HEARD = types.NamedTuple((INTS, INDICES, INDICES, INTS, DOUBLES), Heard)
LEARNER = types.NamedTuple(
    (
        FLOAT_TABLE,
        DOUBLE_STACK,
        FLOAT_STACK,
        FLOAT_TABLE,
        INTS,
        INT_TABLE,
        FLOAT_TABLE,
        INT_TABLE,
        INTS,
        INT_TABLE,
        INTS,
        DOUBLES,
        DOUBLE_TABLE,
        INTS,
        INTS,
        DOUBLES,
        DOUBLES,
        DOUBLES,
        BOOL_TABLE,
        INT_TABLE,
        INTS,
        FLOATS,
        DOUBLE_TABLE,
        DOUBLES,
        INTS,
        DOUBLES,
        DOUBLES,
        FLOAT_TABLE,
        FLOATS,
        INTS,
        INTS,
        BOOLS,
        DOUBLE_TABLE,
        DOUBLE_STACK,
        DOUBLES,
        FLOAT_TABLE,
        DOUBLES,
        DOUBLES,
        INTS,
        DOUBLES,
        DOUBLE_TABLE,
        DOUBLES,
        DOUBLES,
        DOUBLES,
    ),
    Learner,
)


@allocating
def make_scratch(learner, rows):
    """Room for the longest row and all classes."""
    longest, wide = 0, False
    for i in range(rows.indptr.shape[0] - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    longest = whole_lines(longest)
    n_classes, n_parts = learner.member_starts.shape[1] - 1, learner.parts.shape[0]
    width = n_classes
    for part in range(n_parts):
        width = max(width, learner.parts[part, WIDTH])
        if learner.parts[part, MAP] > GIVEN and learner.parts[part, KIND] != SHARED:
            wide = True
    n_positions = 0
    if learner.algorithm[0] != 0:
        ratings = rows.ratings
        for t in range(ratings.starts.shape[0] - 1):
            first, last = ratings.starts[t], ratings.starts[t + 1]
            n_positions = max(n_positions, ratings.indptr[last] - ratings.indptr[first])
        n_positions = max(n_positions, longest) * most_hypotheses(learner, n_classes)
    n_conditioned = 0 if learner.conditioning[METHOD] == NONE else longest
    n_vectors, n_kept = longest if wide else 0, n_parts if keeps_views(learner) else 0
    is_rated = asks_for_all(learner.rule[1]) and learner.metric[METRIC] == ADAPTIVE
    of_classes = (n_classes, n_classes, n_classes, width)
    of_row = (longest, longest, longest, n_conditioned, (n_vectors, n_classes))
    n_rated, rates = n_parts if is_rated else 0, (n_parts, longest)
    rated, packed = (n_rated, longest, n_classes), (n_rated, longest * n_classes // 2)
    floats = (*of_classes, *of_row, rates, rated, packed, (n_kept, longest))
    doubles = (n_classes, 1, n_positions, n_conditioned)
    integers = (n_classes, n_classes, n_positions, 2, 1 + n_classes)
    held = (
        np.empty(length_of(floats), np.float32),
        np.empty(length_of(doubles)),
        np.zeros(length_of(integers), np.int64),
        np.zeros((n_kept, longest, n_classes), np.float32),
        np.arange(longest).astype(np.int32),
    )
    begins, ends, positions, upcoming, chosen = cut(held[2], integers)
    views = Views(begins, ends, rows.ratings.indices, rows.ratings.values, learner.sums)
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
    if not asks_for_all(learner.rule[1]):
        return False
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] > GIVEN and learner.parts[part, KIND] == SHARED:
            return learner.states.shape[0] == 0
    return False


@inlined
def most_hypotheses(learner, n_classes):
    """Return a bound on how many hypotheses two classes belong to."""
    total = 0
    for part in range(learner.parts.shape[0]):
        most = 1
        for r in range(n_classes):
            most = max(most, learner.member_starts[part, r + 1] - learner.member_starts[part, r])
        total += 2 * most
    return total


@allocating
def make_solver(learner, n_classes, heard):
    """Room for the constraints that the rule may be given, and for what it sees of them."""
    selection, sight = learner.rule[1], learner.rule[2]
    most = heard.shape[PAIRS]
    if selection == PREDICTED or selection == WORST or selection == RIVAL:
        most = 1
    elif is_vs_rest(selection):
        most = n_classes
    elif selection == GROWING:
        # An optimum needs no more pairs than classes; some of those tried on the way drop to 0.
        most = min(most, 4 * n_classes)
    most_levels = heard.shape[LEVELS]
    n_columns = 0
    if sight == GRAM:
        n_columns = n_classes
    elif sight == NORMS and most > 1:
        n_columns = 2
    n_others, n_after = (most, n_classes) if sight == GRAM else (0, 0)
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
