"""Trials of learners whose hypotheses are forests: score, predict, count the class in each leaf."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.forest.growth import LEAF, add_to_leaf, grow, is_first
from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import INT, inlined, kernel
from kesler.compiled.jit.pointers import pointer_reader, put
from kesler.compiled.jit.record_types import FOREST_LEARNER_RECORD
from kesler.compiled.jit.simd import whole_lines
from kesler.compiled.trial.calibration import calibrate
from kesler.compiled.trial.records import Blocks, EncodedTargets, Ratings
from kesler.compiled.trial.tasks import Kernels, task_at
from kesler.compiled.weights.scores import dense_best, dense_best_but
from kesler.state.forest import FEW, IN_LEAF

__all__ = ["Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]

PART = 0.1  # of a row, that a leaf holds of all classes
LONGEST = 4  # times the ring, after which a tree is grown again at the latest

learner_at = pointer_reader(FOREST_LEARNER_RECORD)


def kernels_for(learner: Any) -> Kernels:
    """Return the kernels, which all forests share."""
    return kernels()


@recipe
@cache
def kernels() -> Kernels:
    """Return the kernels."""
    return Kernels(*(kernel(types.void(INT, INT))(each) for each in (_learn, _predict)))


@kernel(types.void(FOREST_LEARNER_RECORD, INT))
def write_arguments(learner, address):
    """Write a learner to an address, from which the other kernels read it."""
    put(learner, address)


@inlined
def leaf_of(forest, tree, values):
    """Return the leaf of a row; features that the row does not list are missing."""
    node = np.int64(0)
    while forest.features[tree, node] != LEAF:
        feature = forest.features[tree, node]
        goes_first = feature < values.shape[0] and is_first(
            values[feature], forest.cuts[tree, node]
        )
        node = np.int64(forest.children[tree, node]) + (0 if goes_first else 1)
    return forest.children[tree, node]


@inlined
def score_classes(forest, values, k, leaves, shares, scores):
    """Set scores to the logarithms of the mean shares of k classes in the leaves of a row.

    Each leaf holds a PART of a row of mean weight more, of all classes as often as they came.
    leaves : (trees,), receives the leaf of the row in each; shares : scratch.
    """
    n_trees, weight, of_all = forest.due.shape[0], 0.0, 0.0
    for r in range(k):
        shares[r] = 0.0
        weight += forest.priors[r]
    mean = weight / max(1, forest.grown.n_rows)
    for tree in range(n_trees):
        leaf, amount = leaf_of(forest, tree, values), PART * mean
        leaves[tree] = leaf
        owners, amounts = forest.owners[tree, leaf], forest.amounts[tree, leaf]
        for i in range(IN_LEAF):
            amount += amounts[i]
        of_all += PART * mean / amount
        for i in range(IN_LEAF):
            shares[owners[i]] += amounts[i] / amount
    for r in range(k):
        prior = (forest.priors[r] + mean) / (weight + k * mean)
        scores[r] = np.float32(math.log((shares[r] + of_all * prior) / n_trees))


@inlined
def absorb(forest, values, leaves, y, weight):
    """Add a row to its leaf in each tree and to the ring."""
    for tree in range(forest.features.shape[0]):
        add_to_leaf(forest, tree, leaves[tree], y, weight)
    grown = forest.grown
    slot = grown.n_rows % grown.limit
    for j in range(grown.n_features):
        forest.rows[j, slot] = values[j] if j < values.shape[0] else np.float32(np.nan)
    forest.codes[slot], forest.weights[slot] = y, weight
    forest.priors[y] += weight
    grown.n_rows += 1


@inlined
def grow_due(forest):
    """Grow the trees that are due."""
    n_rows, n_trees = forest.grown.n_rows, forest.due.shape[0]
    for tree in range(n_trees):
        if n_rows >= forest.due[tree]:
            grow(forest, tree)
            forest.due[tree] = n_rows + pause_after(forest.grown, tree / n_trees)


@inlined
def pause_after(grown, turn):
    """Return after how many more rows a tree is grown again; its turn is from 0 to 1.

    From `FEW` rows on, these are as many as there were.
    """
    if grown.n_rows < FEW * (1 + turn):
        return max(1, grown.n_rows // 4)
    return min(grown.n_rows, LONGEST * grown.limit)


def _learn(learner, task):
    """Run one trial per row, given the addresses of a learner and of a task.

    Trees may be due without one, where the rows of a set have ended.
    """
    learner_, task_ = learner_at(learner), task_at(task)
    forest, rows, encoded = learner_.weights, task_.rows, task_.encoded
    capacity = whole_lines(forest.priors.shape[0])
    shares, exponentials = np.zeros(capacity), np.zeros(capacity, np.float32)
    scores, leaves = np.zeros(capacity, np.float32), np.zeros(forest.due.shape[0], np.int64)
    grow_due(forest)
    for t in range(rows.indptr.shape[0] - 1):
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        y = np.int64(encoded.codes[encoded.indptr[t]])
        weight = encoded.row_weights[t] if encoded.row_weights.shape[0] else 1.0
        k = learner_.counts.n_classes
        score_classes(forest, values, k, leaves, shares, scores)
        winner = dense_best(learner_, scores, k)
        task_.predictions[t] = winner
        for r in range(k if task_.scores.shape[0] else 0):
            task_.scores[t, r] = scores[r]
        calibrate(learner_, scores, k, winner, winner, y, exponentials, task_.probabilities, t)
        learner_.counts.n_trials += 1
        if y < k:
            learner_.counts.n_mistakes += winner != y
            rival = dense_best_but(learner_, scores, k, y)
            learner_.imperfect.n_trials += rival >= 0 and scores[rival] >= scores[y]
        else:
            learner_.counts.n_classes = y + 1
        absorb(forest, values, leaves, y, weight)
        grow_due(forest)


def _predict(learner, task):
    """Score rows as `_learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    forest, rows, k = learner_.weights, task_.rows, learner_.counts.n_classes
    capacity = whole_lines(forest.priors.shape[0])
    shares, scores = np.zeros(capacity), np.zeros(capacity, np.float32)
    leaves = np.zeros(forest.due.shape[0], np.int64)
    for t in range(rows.indptr.shape[0] - 1):
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        score_classes(forest, values, k, leaves, shares, scores)
        task_.predictions[t] = dense_best(learner_, scores, k)
        for r in range(k if task_.scores.shape[0] else 0):
            task_.scores[t, r] = scores[r]
