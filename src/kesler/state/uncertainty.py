"""The state of estimates of uncertainty: declared as that of a learner is.

Axes: "class"; "member", the learners whose scores are evidence; "slot", the rows remembered;
"input", the features of these rows.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, record
from kesler.state.records import MOST_ROWS

f4, f8, i4 = np.float32, np.float64, np.int32

COVERAGES = (0.8, 0.9, 0.95, 0.99)
"""The coverages for which a threshold is tracked; those of others are interpolated."""

MOST_REMEMBERED = 1000  # rows
# What each rank adds to the score of a class in a prediction set, from the third to the twelfth: a
# score without bound would be above thresholds that move by small steps, where there are many
# classes. The largest score follows.
PENALTY, MOST_PENALISED = 0.04, 10
LARGEST_SCORE = 1 + PENALTY * MOST_PENALISED
# Thresholds: the present one, and the mean of the last ones.
CURRENT, MEAN = 0, 1
N_PRIORS, N_HALF_LIVES = 9, 4
# What is measured of the scores of a member: the highest, how far it stands out, its lead.
N_MEASURES = 3
# The evidence of a new class: 1, the logit of the prior, the first two measures, the nearest row.
N_EVIDENCE = 5

# What is traced of each row: the probability of a new class, confidence, the probability of the
# predicted class among the known ones, and for each coverage whether the set contained the target,
# and its size; the same for sets by class.
NEW, CONFIDENCE, PREDICTED, COVERED, SIZE = 0, 1, 2, 3, 3 + len(COVERAGES)
BY_CLASS = 2 * len(COVERAGES)
N_TRACED = 3 + 4 * len(COVERAGES)

# The number of rows so far and of the classes that one row has had.
ARRIVALS = record(n_rows="f8", n_once="f8")
# The rows that the memory has seen, and their number as a weight of the moments of features.
REMEMBERED = record(n_rows="i8")


class Arrivals(NamedTuple):
    """How often new classes have come.

    priors : the weight of each estimate of the probability of a new class; decayed : the discounted
    numbers of new classes and of rows, for each half-life; n_rows : rows of each class.
    """

    counts: Annotated[Any, Field(ARRIVALS, when="is_of_classes", at_least=0.0)]
    priors: Annotated[Any, Field(f8, (N_PRIORS,), when="is_of_classes", at_least=0.0)]
    decayed: Annotated[Any, Field(f8, (N_HALF_LIVES, 2), when="is_of_classes", at_least=0.0)]
    n_rows: Annotated[Any, Field(f8, ("class",), when="is_of_classes", at_least=0.0)]


class Memory(NamedTuple):
    """The last rows, and the moments of all rows: the sum and the sum of squares about the mean.

    weights, covariance : the logistic regression on the log distance to the nearest row, whose
    logit is the evidence.
    """

    counts: Annotated[Any, Field(REMEMBERED, when="remembers", at_least=0, at_most=MOST_ROWS)]
    rows: Annotated[Any, Field(f4, ("slot", "input"), when="remembers")]
    codes: Annotated[Any, Field(i4, ("slot",), when="remembers", index_into="class")]
    moments: Annotated[Any, Field(f8, ("input", 2), when="remembers")]
    weights: Annotated[Any, Field(f8, (2,), when="remembers")]
    covariance: Annotated[Any, Field(f8, (2, 2), when="remembers")]


class Uncertainties(NamedTuple):
    """The complete state of the estimates.

    spread : the number, the mean and the squared deviations of each measure of the scores of each
    member; new_class, new_class_covariance : the weights and the covariance of the regression of a
    new class; mixed : the weights of the prior, of the initial regression and of the learnt one;
    confidence, confidence_covariance : those of the regression of a right prediction; thresholds :
    the bounds on the scores of classes in a set for each coverage, now and in the mean; by_class :
    those to which offsets are added; offsets : for each class; of_new : for a new class; others :
    the thresholds of intervals of ranks, or of surely relevant labels.
    """

    arrivals: Arrivals
    spread: Annotated[Any, Field(f8, ("member", N_MEASURES, 3), when="is_of_classes")]
    new_class: Annotated[Any, Field(f8, (N_EVIDENCE,), when="is_of_classes")]
    new_class_covariance: Annotated[Any, Field(f8, (N_EVIDENCE, N_EVIDENCE), when="is_of_classes")]
    mixed: Annotated[Any, Field(f8, (3,), when="is_of_classes", at_least=0.0)]
    confidence: Annotated[Any, Field(f8, (3,), when="is_of_classes")]
    confidence_covariance: Annotated[Any, Field(f8, (3, 3), when="is_of_classes")]
    thresholds: Annotated[Any, Field(f8, (len(COVERAGES), 2), when="is_of_classes")]
    by_class: Annotated[Any, Field(f8, (len(COVERAGES), 2), when="is_of_classes")]
    offsets: Annotated[Any, Field(f8, ("class", len(COVERAGES)), when="is_of_classes")]
    of_new: Annotated[Any, Field(f8, (len(COVERAGES),), when="is_of_classes")]
    others: Annotated[Any, Field(f8, (len(COVERAGES), 2), when="is_of_others")]
    memory: Memory
