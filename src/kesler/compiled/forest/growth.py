"""Growth of trees from rows: cuts at random of random features, of which a node takes the best.

A cut is the better, the higher the sum over its two sides of the squared weights of classes over
the weight of the side: the Gini impurity is then least (Geurts, Ernst and Wehenkel 2006). Missing
values, NaN, go to the second child.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.compiled.jit.decorators import allocating, always_inlined, inlined
from kesler.compiled.trial.expansion import UNSEEDED, random_share
from kesler.state.forest import IN_LEAF

LEAF = -1
MOST_JUDGED = 128  # rows of a node by which its cuts are judged
MOST_TRIED = 16  # features for which a node tries a cut
ALL_BUT_NOTHING = 1 - 1e-12  # of a worth, so that rounding decides nothing
TRIES = 4  # draws for each feature that is tried, as those of features without two values are void


class Node(NamedTuple):
    """What is gathered of the rows of a node by which cuts are judged.

    places, codes, weights, values : the slot, class and weight of each, and its value of a feature;
    first, totals : the weights of each class on the first side of a cut, and of all rows; the first
    side is empty between two cuts.
    """

    places: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]
    values: npt.NDArray[np.float32]
    first: npt.NDArray[np.float64]
    totals: npt.NDArray[np.float64]


@always_inlined
def draw(forest):
    """Return a random number from 0 to 1."""
    forest.grown.n_drawn += 1
    return random_share(forest.grown.n_drawn, UNSEEDED)


@always_inlined
def is_first(value, cut):
    """Return whether a value goes to the first child."""
    return value <= cut


@inlined
def add_to_leaf(forest, tree, leaf, y, weight):
    """Add a row to the classes of a leaf; the one of least weight gives way if there are more."""
    owners, amounts = forest.owners[tree, leaf], forest.amounts[tree, leaf]
    place = 0
    for i in range(IN_LEAF):
        if amounts[i] > 0 and owners[i] == y:
            amounts[i] += weight
            return
        if amounts[i] < amounts[place]:
            place = i
    owners[place], amounts[place] = y, weight


@inlined
def is_pure(forest, order, start, end):
    """Return whether rows are of one class."""
    for i in range(start + 1, end):
        if forest.codes[order[i]] != forest.codes[order[start]]:
            return False
    return True


@inlined
def gather(forest, order, start, end, node):
    """Gather rows of a node by which cuts are judged, evenly spaced; return their number."""
    step = 1 + (end - start - 1) // MOST_JUDGED
    n = 0
    for i in range(start, end, step):
        y = forest.codes[order[i]]
        node.places[n], node.codes[n], node.weights[n] = order[i], y, forest.weights[order[i]]
        node.first[y], node.totals[y] = 0.0, 0.0
        n += 1
    for i in range(n):
        node.totals[node.codes[i]] += node.weights[i]
    return n


@inlined
def random_feature(forest):
    """Return a feature at random, by its weight if features have any."""
    share, odds = draw(forest), forest.odds
    if odds.shape[0] == 0:
        return np.int64(share * forest.grown.n_features)
    low, high = 0, odds.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if share >= odds[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def random_cut(forest, feature, n, node):
    """Return whether n rows differ in a feature, and a cut between its extremes at random.

    The values of the feature are gathered.
    """
    lowest, highest, n_missing = np.float32(np.inf), np.float32(-np.inf), 0
    for i in range(n):
        value = forest.rows[feature, node.places[i]]
        node.values[i] = value
        if np.isnan(value):
            n_missing += 1
        else:
            lowest, highest = min(lowest, value), max(highest, value)
    if not (lowest < highest or (n_missing and lowest == highest)):
        return False, np.float32(0)
    least, most = np.float64(lowest), np.float64(highest)
    cut = np.float32(least + draw(forest) * (most - least))
    return True, lowest if cut >= highest and not n_missing else cut


@inlined
def worth_of(cut, n, node, squares):
    """Return the worth of a cut: the sum of squared weights of classes over weights, of two sides.

    It is at most the weight of all rows, which it is where the rows of each side are of one class.
    squares : the sum of squared weights of classes over all rows.
    """
    weight_first, weight_second, of_first, shared = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        # Without branches, as half of these would be foreseen wrongly.
        weight, y = node.weights[i], node.codes[i]
        moved = weight if is_first(node.values[i], cut) else 0.0
        of_first += moved * (2.0 * node.first[y] + moved)
        shared += moved * node.totals[y]
        node.first[y] += moved
        weight_first += moved
        weight_second += weight - moved
    for i in range(n):
        node.first[node.codes[i]] = 0.0
    if weight_first <= 0 or weight_second <= 0:
        return 0.0
    # Of a class with weight t, of which f are on the first side: (t - f)^2 = t^2 - 2 t f + f^2.
    return of_first / weight_first + (squares - 2.0 * shared + of_first) / weight_second


@inlined
def choose_cut(forest, order, start, end, node):
    """Return the feature and the cut of the most worth among random ones; LEAF without any."""
    n_features, n_tried, n = forest.grown.n_features, 0, gather(forest, order, start, end, node)
    most_tried = min(MOST_TRIED, round(2.0 * math.sqrt(n_features)))
    chosen, chosen_cut, most, possible, squares = LEAF, np.float32(0), 0.0, 0.0, 0.0
    for i in range(n):
        possible += node.weights[i]
        squares += node.weights[i] * node.totals[node.codes[i]]
    for _ in range(TRIES * most_tried):
        feature = random_feature(forest)
        differ, cut = random_cut(forest, feature, n, node)
        if differ:
            worth = worth_of(cut, n, node, squares)
            if ALL_BUT_NOTHING * worth > most:
                chosen, chosen_cut, most = feature, cut, worth
            n_tried += 1
        if n_tried == most_tried or most >= ALL_BUT_NOTHING * possible:
            break
    return chosen, chosen_cut


@inlined
def partition(forest, order, start, end, feature, cut):
    """Sort rows so that those of the first child come first; return the place of the others."""
    last = end - 1
    while start <= last:
        if is_first(forest.rows[feature, order[start]], cut):
            start += 1
        else:
            order[start], order[last] = order[last], order[start]
            last -= 1
    return start


@inlined
def end_in_leaf(forest, tree, node, order, start, end):
    """Make a node a leaf of these rows."""
    leaf = forest.n_leaves[tree]
    forest.n_leaves[tree] += 1
    forest.features[tree, node], forest.cuts[tree, node] = LEAF, 0
    forest.children[tree, node] = leaf
    for i in range(IN_LEAF):
        forest.owners[tree, leaf, i], forest.amounts[tree, leaf, i] = 0, 0.0
    for i in range(start, end):
        add_to_leaf(forest, tree, leaf, forest.codes[order[i]], forest.weights[order[i]])


@allocating
def make_node(n_rows, n_classes):
    """Allocate what is gathered of so many rows of a node."""
    return Node(
        np.empty(n_rows, np.int64),
        np.empty(n_rows, np.int32),
        np.empty(n_rows),
        np.empty(n_rows, np.float32),
        np.zeros(n_classes),
        np.zeros(n_classes),
    )


@allocating
def grow(forest, tree):
    """Grow a tree again from the rows in the ring, until the rows of each leaf are of one class."""
    n = np.int64(min(forest.grown.n_rows, forest.grown.limit))
    order, starts, ends = np.arange(n), np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64)
    gathered = make_node(MOST_JUDGED, forest.priors.shape[0])
    forest.n_nodes[tree], forest.n_leaves[tree] = 1, 0
    ends[0] = n
    node = 0
    while node < forest.n_nodes[tree]:
        start, end = starts[node], ends[node]
        feature, cut = LEAF, np.float32(0)
        if not is_pure(forest, order, start, end):
            feature, cut = choose_cut(forest, order, start, end, gathered)
        if feature == LEAF:
            end_in_leaf(forest, tree, node, order, start, end)
        else:
            child = forest.n_nodes[tree]
            forest.n_nodes[tree] += 2
            forest.features[tree, node], forest.cuts[tree, node] = feature, cut
            forest.children[tree, node] = child
            middle = partition(forest, order, start, end, feature, cut)
            starts[child], ends[child] = start, middle
            starts[child + 1], ends[child + 1] = middle, end
        node += 1
