"""The state of a learner: the records that compiled code reads and writes.

Allocation, growth, saving, restoring, copies, the types of compiled code and the validation of
model files follow from these declarations (:mod:`kesler.state.fields`). Each entry is a setting
(`int`, `float`), an array computed from the parts of a learner (`Given`), or a stored array
(`Field`).

Axes: "feature", the features seen so far; "row", the rows of the weight table, each a feature or a
sub-expert; "hypothesis", the columns of the weight table; "class"; "part", the parts of the
hypotheses; "statistic", the running statistics of each class; "number", the running statistics of
preprocessing; "input", the features of rows before their expansion; "measured", these or, without
an expansion, the features; "edge", "pair_edge", the inner edges of bins; "projected", the random
features; "slot", the rows kept for replay; "own number", the values that an algorithm has for its
own use; "state", the additional values stored for each weight; "better", the classes if confusions
have costs, else 1; "worse", the classes if confusions or the targets have costs, else 1.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, Given, record

MOST_ROWS = 2**62  # of a count in a model file: counts go on from there

f4, f8, i4, i8, flag = np.float32, np.float64, np.int32, np.int64, np.bool_

# The numbers of trials, mistakes and classes so far; n_not_finite counts the steps skipped since
# the last report because they were not finite.
COUNTS = record(n_trials="i8", n_mistakes="i8", n_classes="i8", n_not_finite="i8")
# The number of trials in which a class that should be below another one was not.
IMPERFECT = record(n_trials="i8")
# The costs of what was predicted so far, where targets are costs.
CHARGED = record(total="f8")
# The number of features listed, whose weights a new class inherits.
LISTS = record(n_listed="i8")
# The inverse temperature, its Fisher information (0 before the first informative row), the number
# of targets that the scores did not explain and the number of all targets; all but the first are
# discounted.
CALIBRATION = record(inverse="f8", information="f8", lapses="f8", n_targets="f8")
UNCALIBRATED = (1.0, 0.0, 1.0, 50.0)
# The class of the last target, -1 if the next row does not follow it.
LAST = record(target="i8")
# Whether the last class comes again: what the log-odds in the pool are multiplied by and what is
# added to them, or the sums of the squared derivatives by both.
REPETITION = record(factor="f8", addend="f8")
# Label sets: the inverse temperature and its Fisher information (0 before the first informative
# row), the number of labels that were predicted rightly, and the sum of the numbers of labels
# predicted and of relevant ones; F1 is twice the ratio of the two.
SET_CALIBRATION = record(inverse="f8", information="f8", hits="f8", named="f8")
UNCALIBRATED_SETS = (1.0, 0.0, 1.0, 4.0)
# The scale of a link: the mass (a sum over all weights), its peak since the last recomputation, the
# reference that weights are relative to, the scale itself, and whether it must be recomputed.
SCALE = record(mass="f8", peak="f8", reference="f8", value="f8", is_stale="f8")
# Means of weights whose link has a scale: the sum of the scales after each trial since the sums of
# all weights were brought up to date, and the sum until then of a weight that was never updated.
MEANS = record(passed="f8", begun="f8")
# Preconditioners: the measured total, the factor of squared gradients, the gain of the step sizes,
# and the number of rows and the sum of their scaled squared lengths, which determine the gain.
RATES = record(total="f8", share="f8", gain="f8", n_scaled="f8", scaled_length="f8")
# The task of a pass over the weights: update them, accumulate evidence, or measure a norm.
WALK = record(task="i8")
# Step sizes that follow the distance from the initial weights: the size of all of them in units of
# the first one, and the number of trials after which it is computed again.
PACE = record(factor="f8", due="f8")
# Coin betting: the largest coefficient of a class in any trial so far.
BETS = record(largest="f8")
# The number of rows that preprocessing has seen.
SEEN = record(n_rows="f8")
# The rows that an expansion has seen: the sum of their weights, that of their weighted squared
# lengths, their number, the number of them in the sample, and the number of rows at which quantiles
# are next recomputed.
SEEN_INPUTS = record(amount="f8", squared_length="f8", n_rows="f8", n_sampled="f8", next="f8")
MOST_SAMPLED = 512  # rows that quantiles are computed from
# The number of rows that were offered to the reservoir of a replay.
OFFERED = record(n_rows="i8")
# Exploration: the number of classes drawn so far, which determines the random numbers. Of SOBA: the
# sum of m, and the sum of z^T A^-1 z, which its bound contains.
DRAWS = record(n_drawn="i8", margin="f8", spread="f8")
# Not stored: the number of classes that trials are to know from the start, and the probability with
# which the class was shown that feedback is on, 0 if the target is given instead.
GIVEN = record(n_known="i8", probability="f8")
# The sum of the sample weights of all rows.
TOTAL = record(amount="f8")
# The decayed weight of the last row and its square root; 1 without a half-life.
ROW = record(weight="f8", root="f8")
# Sparse rows: the units of entries and the rows of the table in use, and how many more of each the
# last trial required.
POOL = record(n_units="i8", n_rows="i8", more_units="i8", more_rows="i8")
# The number of classes that have a weight for a feature of the row, the class of highest score, and
# the number of rows of the task that were processed before the capacity was exhausted.
REACH = record(n_reached="i8", winner="i8", n_done="i8")
# Sigma as a multiple of the median squared distance (0 if sigma is fixed), that median, the number
# of distances that it is the median of, and the number of rows.
BANDWIDTH = record(share="f8", median="f8", n_distances="f8", n_rows="f8")
# Not stored: the level of classes that a target leaves out, the largest number of pairs and the
# number of levels of a block of targets.
TARGET_SHAPE = record(rest="i8", most_pairs="i8", n_levels="i8")
# Not stored: the number of Gram columns of a trial, whether its loops run over all classes, and
# whether it has too few pairs for loops over the views of all classes.
SOLVER_STATUS = record(n_columns="i8", is_wide="?", has_few="?")


# ---- weights: one of three records ---------------------------------------------------------------


class TableWeights(NamedTuple):
    """Dense weight table of shape (rows, hypotheses), so that the inner loops run over classes.

    states : for each weight, the sum that a link is applied to, and those from which its mean is
    computed, or what an algorithm stores; flat, flat_states : flattened views of the
    weights and states, for algorithms; initial : for each part, the initial weight, towards which
    weights decay; given_sums : scratch buffer for ratings, zero between trials; lists, listed,
    is_listed : with a virtual class, the features seen so far.
    """

    values: Annotated[
        Any, Field(f4, ("row", "hypothesis"), aligned=True, fill="fill_weights", mixed="mean")
    ]
    states: Annotated[
        Any, Field(f8, ("state", "row", "hypothesis"), when="n_states", fill="fill_states")
    ]
    flat: Annotated[Any, Given(f4)]
    flat_states: Annotated[Any, Given(f8, 2)]
    initial: Annotated[Any, Given(f8)]
    given_sums: Annotated[Any, Given(f8)]
    lists: Annotated[Any, Field(LISTS, saved=False)]
    listed: Annotated[Any, Field(i8, ("row",), when="n_virtual", saved=False)]
    is_listed: Annotated[Any, Field(flag, ("row",), when="n_virtual", saved=False)]


class SparseRows(NamedTuple):
    """Sparse weights: entries for those pairs of feature and class that have a weight.

    heads : start of the last run of a feature, in units of SIMD_WIDTH entries, or its row in the
    table; counts : number of entries of a feature, or IN_TABLE; owners, values : class and weight
    of each entry, class -1 after the last; links : start of the previous run of the same feature,
    stored at the start of a run; spare : the first free run of each size, in powers of two;
    table : dense rows of the features with many entries; row 0 holds zeros.
    """

    heads: Annotated[Any, Field(i4, ("feature",))]
    counts: Annotated[Any, Field(i4, ("feature",))]
    owners: Annotated[Any, Field(i4, ("entry",))]
    values: Annotated[Any, Field(f4, ("entry",))]
    links: Annotated[Any, Field(i4, ("unit",))]
    spare: Annotated[Any, Field(i8, (32,))]
    table: Annotated[Any, Field(f4, ("table row", "class"))]
    pool: Annotated[Any, Field(POOL, initial=(0, 1, 0, 0))]


class SavedRows(NamedTuple):
    """Sparse weights in a model file: the rows of a sparse matrix, one for each feature.

    starts : where the entries of each feature begin; classes, weights : class and weight of each
    entry.
    """

    starts: Annotated[Any, Field(i8, ("start",), at_least=0, at_most="saved entry")]
    classes: Annotated[Any, Field(i4, ("saved entry",), index_into="class")]
    weights: Annotated[Any, Field(f4, ("saved entry",))]


class Reached(NamedTuple):
    """Scratch arrays of a trial over sparse weights, not kept between trials.

    A class is reached if it has a weight for a feature of the row. scores : zero between trials
    except for the classes reached; marks : whether a class is reached, eight classes in each of
    mark_words; reached : the classes reached, in the order of their first instances; lanes :
    partial sums; coefficients, is_moved, exponentials : as in `Solver`.
    """

    scores: Annotated[Any, Field(f4, ("class",))]
    marks: Annotated[Any, Field(np.uint8, ("class in words",))]
    mark_words: Annotated[Any, Given(np.uint64)]
    reached: Annotated[Any, Field(i8, ("class",))]
    reach: Annotated[Any, Field(REACH)]
    coefficients: Annotated[Any, Field(f8, ("class",))]
    is_moved: Annotated[Any, Field(flag, ("class",))]
    exponentials: Annotated[Any, Field(f4, ("class",))]
    lanes: Annotated[Any, Field(f8, (32,))]


class SparseWeights(NamedTuple):
    """Weights in sparse rows, and the scratch arrays of one trial."""

    rows: SparseRows
    trial: Reached


class RecentRows(NamedTuple):
    """The last 64 rows, if sigma is estimated from the distances between rows.

    panel : all features of each row (dense rows); features, values, lengths : the non-zeros of each
    row (sparse rows).
    """

    panel: Annotated[Any, Field(f4, ("recent feature", 64), when="share")]
    features: Annotated[Any, Field(i8, (64, "longest"), when="share", index_into="feature")]
    values: Annotated[Any, Field(f4, (64, "longest"), when="share")]
    lengths: Annotated[Any, Field(i8, (64,), when="share", at_least=0, at_most="longest")]
    squared_norms: Annotated[Any, Field(f4, (64,), when="share", at_least=0.0)]
    bandwidth: Annotated[Any, Field(BANDWIDTH, when="share", at_least=0.0)]


class SupportVectors(NamedTuple):
    """Hypotheses over a Mercer kernel: sums over entries of coefficient Phi(support vector).

    Dense support vectors are stored in panels, sparse ones as lists of non-zeros.

    panels : dense support vectors; starts, features, values : sparse support vectors;
    entry_starts, owners, coefficients : the hypotheses that contain a support vector, and its
    coefficient in each; states : for the means of the coefficients, the sum of the steps of each,
    each times the number of trials before it; thresholds : of ordered parts, minus the threshold
    below each class, in units of the constant feature, and the same sum of its steps; oldest,
    following : indices of the oldest support vector in use and of the next one; places : scratch
    buffer, 0 between rows, else 1 + the position of a feature in the
    row; single, double : addresses of the kernel function in float32, for scores, and in float64,
    for norms; budget : maximum number of support vectors of a part, 0 for unlimited; policy, eta :
    of :class:`kesler.budgets.Budget`; parameters : parameters of the kernel, of which the
    first is set by the bandwidth; sums : for mistake bounds, with the columns named in
    `kesler.compiled.kernels.removals`; inverse, widths : the inverse of the Gram matrix of the
    support vectors, and the first parameter of the kernel in it; lists_all : whether every row
    lists all features; work, whole, every : scratch buffers, and the numbers of all features.
    """

    panels: Annotated[Any, Field(f4, ("part", "panel", "panel feature", 64))]
    starts: Annotated[Any, Field(i8, ("part", "list"), at_least=0, at_most="value")]
    features: Annotated[Any, Field(i8, ("part", "value"), index_into="feature")]
    values: Annotated[Any, Field(f4, ("part", "value"))]
    squared_norms: Annotated[Any, Field(f4, ("part", "support"))]
    entry_starts: Annotated[Any, Field(i8, ("part", "entry list"), at_least=0, at_most="entry")]
    owners: Annotated[Any, Field(i8, ("part", "entry"), at_least=0)]
    coefficients: Annotated[Any, Field(f4, ("part", "entry"))]
    states: Annotated[Any, Field(f8, ("part", "entry"), when="is_averaged")]
    thresholds: Annotated[Any, Field(f8, ("part", 2, "rank"), when="is_ordered")]
    oldest: Annotated[Any, Field(i8, ("part",), at_least=0, at_most="support")]
    following: Annotated[Any, Field(i8, ("part",), at_least=0, at_most="support")]
    places: Annotated[Any, Given(i8)]
    single: int
    double: int
    budget: int
    policy: int
    eta: float
    in_panels: int
    parameters: Annotated[Any, Given(f8)]
    sums: Annotated[Any, Field(f8, ("part", 7), when="is_measured")]
    inverse: Annotated[Any, Field(f8, ("part", "basis", "basis"), when="projects")]
    widths: Annotated[Any, Field(f8, ("part",), when="projects", at_least=0.0)]
    lists_all: int
    work: Annotated[Any, Given(f8, 2)]
    whole: Annotated[Any, Given(f4)]
    every: Annotated[Any, Given(i4)]
    recent: RecentRows


# ---- records of every learner --------------------------------------------------------------------


class Settings(NamedTuple):
    """How the first instance of a class is treated, and whether probabilities are calibrated.

    decision : how a prediction follows from the scores; has_sets : whether targets are label sets;
    has_costs : whether targets are costs of classes;
    ends_at_faults : whether trials end when a user-defined function has failed; predictor : the
    address of the learner with the means of the weights after each trial, which then predicts; 0 if
    the weights themselves do.
    """

    on_new_class: int
    is_calibrated: int
    decision: int
    has_sets: int
    has_costs: int
    ends_at_faults: int
    predictor: int


class Parts(NamedTuple):
    """The parts of the hypotheses: how classes share weights, and over which features.

    kind : how classes share the hypotheses of a part; map : address of the feature map, or ITSELF
    or GIVEN; statistic : index of the first statistic that the map reads; offset, width : the
    columns of the part; member_starts, of shape (parts, classes + 1), members : the hypotheses of
    each class of grouped parts.
    """

    kind: Annotated[Any, Given(i8)]
    map: Annotated[Any, Given(i8)]
    statistic: Annotated[Any, Given(i8)]
    offset: Annotated[Any, Given(i8)]
    width: Annotated[Any, Given(i8)]
    map_parameters: Annotated[Any, Given(f4, 2)]
    member_starts: Annotated[Any, Given(i8, 2)]
    members: Annotated[Any, Given(i8)]


class TreeNodes(NamedTuple):
    """The nodes above each class in the tree of classes, where predictions follow its distances.

    starts, of shape (classes + 1,), members : the nodes of each class; masses : scratch, the
    probability of the classes below each node.
    """

    starts: Annotated[Any, Given(i8)]
    members: Annotated[Any, Given(i8)]
    masses: Annotated[Any, Given(f8)]


class Statistics(NamedTuple):
    """Running statistics of the instances of each class and of all rows.

    kinds : kinds of the statistics; sums, totals : sums, and the totals that they are divided by;
    pooled : statistics of all rows, with the columns named in `kesler.compiled.trial.records`;
    moments : means and sums of squared deviations; amounts, total : sums of the sample weights of
    the rows of each class and of all rows; divisors : rows as named there; shrinkage, floor,
    pseudo_rows : smoothing of variances and counts; prior : the value of the constant feature, 0
    for none.
    """

    kinds: Annotated[Any, Given(i8)]
    sums: Annotated[
        Any, Field(f4, ("statistic", "feature", "class"), aligned=True, when="statistics")
    ]
    totals: Annotated[Any, Field(f4, ("statistic", "class"), when="statistics")]
    pooled: Annotated[Any, Field(f8, ("feature", "pooled"), when="n_pooled")]
    moments: Annotated[Any, Field(f8, (2, "class", "feature"), when="has_moments")]
    amounts: Annotated[Any, Field(f8, ("class",), when="n_pooled", at_least=0.0)]
    total: Annotated[Any, Field(TOTAL, when="n_pooled", at_least=0.0)]
    divisors: Annotated[Any, Field(f4, (4, "class"), when="n_pooled", at_least=0.0)]
    shrinkage: float
    floor: float
    pseudo_rows: float
    prior: float


class Ranks(NamedTuple):
    """The order of classes in ordinal learners.

    places : rank of each class among all labels; order : the classes seen so far, from the lowest
    to the highest; positions : rank of each class among the classes seen so far.
    """

    places: Annotated[Any, Field(i8, ("class",), when="has_order", saved=False)]
    order: Annotated[Any, Field(i8, ("class",), when="has_order", saved=False)]
    positions: Annotated[Any, Field(i8, ("class",), when="has_order", saved=False)]


class Rule(NamedTuple):
    """The update rule.

    address : address of the function that computes the steps; selection : which constraints it
    receives; requires : which arguments it reads; gradient : address of the gradient function, 0 if
    the gradient is 1 along each constraint; scales_steps : whether costs of confusions limit steps
    and leave margins as they are; margin : that of a cost of 1; margins : one margin for
    all pairs of classes, one for each pair, or, if targets are costs, one for each worse class,
    which a trial writes; if costs limit steps, they themselves.
    """

    address: int
    selection: int
    requires: int
    gradient: int
    scales_steps: int
    parameters: Annotated[Any, Given(f8)]
    margin: float
    margins: Annotated[Any, Field(f8, ("better", "worse"), saved=False, fill="fill_margins")]


class Link(NamedTuple):
    """The link: how weights follow from the accumulated updates.

    address : address of the link function, 0 for the linear link; scale_source : which part defines
    the scale of the weights; is_exact : whether steps are those of exact projections; exponent,
    factor : of the norm that steps are measured in; is_seen :
    the features whose weights are included in the mass; n_features, n_hypotheses : the numbers of
    features and hypotheses of each part that are included; means : for averages of the weights.
    """

    address: int
    scale_source: int
    is_exact: int
    parameters: Annotated[Any, Given(f8)]
    exponent: float
    factor: float
    scale: Annotated[Any, Field(SCALE, when="is_normalised")]
    is_seen: Annotated[Any, Field(flag, ("row", "part"), when="is_normalised")]
    n_features: Annotated[
        Any, Field(i8, ("part",), when="is_normalised", at_least=0, at_most="row")
    ]
    n_hypotheses: Annotated[
        Any, Field(i8, ("part",), when="is_normalised", at_least=0, at_most="hypothesis")
    ]
    means: Annotated[Any, Field(MEANS, when="has_scaled_means")]


class Algorithm(NamedTuple):
    """A linear-threshold algorithm, which updates the weights itself.

    address : address of the update function, 0 for none; numbers : state variables, of which the
    scale of the weights is the first.
    """

    address: int
    numbers: Annotated[Any, Field(f8, ("own number",), when="rule.update")]


class Preconditioner(NamedTuple):
    """The step size of each weight.

    kind : what the step sizes are computed from; unit : the unit of the step sizes; is_paced :
    whether they follow the distance from the initial weights;
    evidence_rule : how a step adds evidence; parameter : parameter of the evidence; address,
    parameters : a user-defined function and its parameters; evidence : evidence of each weight;
    scales : the largest absolute value of each feature so far; inverse : the lower triangle of the
    inverse of the second moments of rows; pace : the factor of all step sizes; bets, sums,
    winnings, sizes : of coin betting, for each weight the sum of the amounts, the wealth beyond the
    initial one, and the largest amount that may occur.
    """

    kind: int
    unit: int
    is_paced: int
    evidence_rule: int
    parameter: float
    address: int
    parameters: Annotated[Any, Given(f8)]
    walk: Annotated[Any, Field(WALK, saved=False)]
    rates: Annotated[
        Any, Field(RATES, initial=(0.0, 0.0, 1.0, 0.0, 0.0), when="rates in preconditioner.keeps")
    ]
    evidence: Annotated[
        Any,
        Field(
            f4,
            ("row", "hypothesis"),
            aligned=True,
            when="evidence in preconditioner.keeps",
            at_least=0.0,
            mixed="mean",
        ),
    ]
    scales: Annotated[
        Any,
        Field(f4, ("row",), when="scales in preconditioner.keeps", at_least=0.0, mixed="largest"),
    ]
    inverse: Annotated[
        Any, Field(f8, ("row", "row"), when="inverse in preconditioner.keeps", fill="fill_inverse")
    ]
    pace: Annotated[
        Any,
        Field(
            PACE,
            initial=(1.0, 1.0),
            when="pace in preconditioner.keeps",
            at_least=1.0,
            mixed="largest",
        ),
    ]
    bets: Annotated[Any, Field(BETS, when="bets in preconditioner.keeps", at_least=0.0)]
    sums: Annotated[Any, Field(f8, ("row", "hypothesis"), when="sums in preconditioner.keeps")]
    winnings: Annotated[
        Any,
        Field(f8, ("row", "hypothesis"), when="winnings in preconditioner.keeps", at_least=-1.0),
    ]
    sizes: Annotated[
        Any, Field(f4, ("row", "hypothesis"), when="sizes in preconditioner.keeps", at_least=0.0)
    ]


class Preprocessing(NamedTuple):
    """Preprocessing of rows, and its running statistics of earlier rows.

    method : number of the method, 0 for none; n_constant : number of leading features that are not
    preprocessed; statistics : running statistics of each feature, with columns that depend on the
    method; missing : the sum of the weights of the rows in which a feature was missing.
    """

    method: int
    n_constant: int
    parameters: Annotated[Any, Given(f8)]
    statistics: Annotated[Any, Field(f8, ("feature", "number"), when="preprocessing")]
    missing: Annotated[Any, Field(f8, ("feature",), when="has_z_scores", at_least=0.0, new=True)]
    seen: Annotated[Any, Field(SEEN, when="preprocessing", at_least=0.0)]


class Expansion(NamedTuple):
    """Expansion of rows into blocks of features, with statistics of their inputs.

    scores, bins, fourier, pairs : the first feature of each block, -1 if there is none; constant :
    the value of the feature of the intercept, 0 for none; clip : of z-scores; bandwidth : of random
    features; decay : the factor of the weights of rows at each row, 1 without a half-life; moments
    : mean and sum of squared deviations of each input; missing : the sum of the weights of the rows
    in which an input was missing; sample : rows that quantiles are computed from; edges, n_edges :
    upper edges of the bins of each input but the last, and their number; pair_edges, n_pair_edges :
    those of the bins of pairs; members : the two inputs of each pair; projection, phases : random.
    """

    scores: int
    bins: int
    fourier: int
    pairs: int
    constant: float
    clip: float
    bandwidth: float
    decay: float
    moments: Annotated[Any, Field(f8, ("input", 2), when="expansion")]
    missing: Annotated[Any, Field(f8, ("input",), when="expansion", at_least=0.0, new=True)]
    sample: Annotated[Any, Field(f4, (MOST_SAMPLED, "input"), when="has_sample", allows_nan=True)]
    edges: Annotated[Any, Field(f4, ("input", "edge"), when="has_sample")]
    n_edges: Annotated[Any, Field(i8, ("input",), when="has_sample", at_least=0, at_most="edge")]
    pair_edges: Annotated[Any, Field(f4, ("input", "pair_edge"), when="has_sample")]
    n_pair_edges: Annotated[
        Any, Field(i8, ("input",), when="has_sample", at_least=0, at_most="pair_edge")
    ]
    members: Annotated[Any, Given(i8, 2)]
    projection: Annotated[
        Any,
        Field(f4, ("input", "projected"), when="expansion", saved=False, fill="fill_projection"),
    ]
    phases: Annotated[
        Any, Field(f4, ("projected",), when="expansion", saved=False, fill="fill_phases")
    ]
    seen: Annotated[Any, Field(SEEN_INPUTS, when="expansion", at_least=0.0)]


class Relevance(NamedTuple):
    """How much of each feature, or of each input of an expansion, the classes explain.

    sums : of the values of a feature in the rows of each class; squares : of all its values;
    amounts : of the weights of the rows of each class; weights : of the features in distances;
    of_norms : the weights in the squared norms of support vectors; prior : factors of the weights,
    empty if all are 1.
    """

    sums: Annotated[Any, Field(f8, ("measured", "class"), when="is_informed")]
    squares: Annotated[Any, Field(f8, ("measured",), when="is_informed", at_least=0.0)]
    amounts: Annotated[Any, Field(f8, ("class",), when="is_informed", at_least=0.0)]
    weights: Annotated[
        Any,
        Field(
            f8, ("measured",), when="is_informed", at_least=0.0, mixed="mean", fill="fill_with_ones"
        ),
    ]
    of_norms: Annotated[
        Any,
        Field(f8, ("measured",), when="has_informed_norms", at_least=0.0, fill="fill_with_ones"),
    ]
    prior: Annotated[Any, Given(f8)]


class Replay(NamedTuple):
    """Replay: a reservoir of earlier rows, of which some are learnt again after each new row.

    rows : inputs, as rows are given, where they are expanded; codes, weights : their classes and
    sample weights; offered : the number of rows so far, which determines the random numbers.
    """

    rows: Annotated[Any, Field(f4, ("slot", "input"), when="keeps_table", allows_nan=True)]
    codes: Annotated[Any, Field(i4, ("slot",), when="replay", index_into="class")]
    weights: Annotated[Any, Field(f8, ("slot",), when="replay", at_least=0.0)]
    offered: Annotated[Any, Field(OFFERED, when="replay", at_least=0, at_most=MOST_ROWS)]


class SavedLists(NamedTuple):
    """Rows of a reservoir in a model file, where rows are not expanded.

    starts : where the entries of each row begin; features, values : of each entry.
    """

    starts: Annotated[Any, Field(i8, ("start",), at_least=0, at_most="kept entry")]
    features: Annotated[Any, Field(i4, ("kept entry",), index_into="feature")]
    values: Annotated[Any, Field(f4, ("kept entry",), allows_nan=True)]


class Decay(NamedTuple):
    """Decay: the weight of a row is `growth` times the weight of the previous row."""

    growth: float
    row: Annotated[Any, Field(ROW, initial=(1.0, 1.0), when="half_life", at_least=0.0)]


class LabelSets(NamedTuple):
    """The probabilities of labels, if targets are label sets.

    calibration : what all labels share; offsets : the log-odds that are added for each label;
    evidence : the Fisher information of each offset.
    """

    calibration: Annotated[
        Any,
        Field(
            SET_CALIBRATION,
            initial=UNCALIBRATED_SETS,
            when="has_sets",
            at_least=0.0,
            mixed="mean",
        ),
    ]
    offsets: Annotated[Any, Field(f8, ("class",), when="has_sets", mixed="mean")]
    evidence: Annotated[Any, Field(f8, ("class",), when="has_sets", at_least=0.0)]


class Exploration(NamedTuple):
    """Exploration and feedback, if a learner is told only whether the class that it shows is right.

    kind, parameters : how the class to show is drawn; feedback : the rule of feedback; is_weighted
    : whether rows count by the inverse of the probability of the shown class; seed : of the random
    numbers; pending : how often each class was shown without feedback so far; of SOBA, inverse :
    the inverse of A over pairs of class and feature, less its initial value; diagonal : that of A,
    less its initial value; direction : scratch.
    """

    kind: int
    feedback: int
    is_weighted: int
    seed: int
    parameters: Annotated[Any, Given(f8)]
    draws: Annotated[Any, Field(DRAWS, when="explores", at_least=0, at_most=MOST_ROWS)]
    given: Annotated[Any, Field(GIVEN, when="explores", saved=False)]
    pending: Annotated[Any, Field(i8, ("class",), when="explores", at_least=0)]
    inverse: Annotated[
        Any,
        Field(
            f8,
            ("class", "feature", "class", "feature"),
            when="has_full_feedback",
        ),
    ]
    diagonal: Annotated[
        Any,
        Field(
            f8,
            ("class", "feature"),
            when="has_diagonal_feedback",
            at_least=0.0,
        ),
    ]
    direction: Annotated[
        Any, Field(f8, ("class", "feature"), when="has_full_feedback", saved=False)
    ]


class LearnerRecord(NamedTuple):
    """The complete state that a trial reads and writes; `weights` is one of three records."""

    counts: Annotated[Any, Field(COUNTS, at_least=0, at_most=MOST_ROWS)]
    imperfect: Annotated[Any, Field(IMPERFECT, at_least=0, at_most=MOST_ROWS, new=True)]
    settings: Settings
    weights: TableWeights
    parts: Parts
    statistics: Statistics
    ranks: Ranks
    rule: Rule
    link: Link
    algorithm: Algorithm
    preconditioner: Preconditioner
    preprocessing: Preprocessing
    expansion: Expansion
    relevance: Relevance
    replay: Replay
    calibration: Annotated[
        Any, Field(CALIBRATION, initial=UNCALIBRATED, when="is_calibrated", mixed="mean")
    ]
    sets: LabelSets
    charged: Annotated[Any, Field(CHARGED, when="has_costs", at_least=0.0)]
    decay: Decay
    exploration: Exploration
    tree: TreeNodes


class EnsembleRecord(NamedTuple):
    """The state of an ensemble, with one value for each member or expert.

    rule : how members are combined; discount : discount factor of the past; demotion : factor that
    the vote of a wrong member is multiplied by; share : part of the weights that is shared among
    all experts, which are the members, their pool and the pool that knows the last class; losses :
    discounted errors or log losses, or the number of errors for votes; weights : weights of the
    votes and probabilities; paths : the least loss of a sequence of experts that ends with each;
    is_ordered : whether rows follow each other; exponents, slopes : the exponents of the members in
    their pool, and the sums of squared derivatives by them; last, repetition, repetition_squares :
    what the last expert knows.
    """

    rule: int
    discount: float
    demotion: float
    share: float
    is_ordered: int
    counts: Annotated[Any, Field(COUNTS, at_least=0, at_most=MOST_ROWS)]
    losses: Annotated[Any, Field(f8, ("member",), at_least=0.0)]
    weights: Annotated[Any, Field(f8, ("expert",), at_least=0.0)]
    paths: Annotated[Any, Field(f8, ("expert",), when="shares", at_least=0.0)]
    exponents: Annotated[Any, Field(f8, ("member",), when="shares", at_least=0.0)]
    slopes: Annotated[Any, Field(f8, ("member",), when="shares", at_least=1.0)]
    last: Annotated[Any, Field(LAST, initial=(-1,), when="shares", at_least=-1)]
    repetition: Annotated[Any, Field(REPETITION, initial=(1.0, 0.0), when="shares")]
    repetition_squares: Annotated[Any, Field(REPETITION, initial=(1, 1), when="shares", at_least=1)]
    calibration: Annotated[Any, Field(CALIBRATION, initial=UNCALIBRATED)]
