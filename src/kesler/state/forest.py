"""The state of a forest: declared as that of a learner is.

Axes: "tree"; "node", the nodes of a tree in the order of their levels; "leaf", those without
children; "slot", the rows from which trees are grown; "feature"; "class".
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, Given, record
from kesler.state.records import MOST_ROWS

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64

IN_LEAF = 4  # classes that a leaf counts
# Below so many rows (of the last tree twice as many) a tree is grown again after a quarter more.
FEW = 256
# The number of rows so far, that of random numbers drawn, that of features, and the most rows from
# which trees are grown, 0 before the first row (a record of NumPy has a size of its own).
GROWN = record(n_rows="i8", n_drawn="i8", n_features="i8", limit="i8")


class Forest(NamedTuple):
    """Trees whose leaves count classes, in place of weights.

    features, cuts, children : the feature of a node, -1 for a leaf; the largest value that goes to
    its first child; its first child, which the second one follows, or the number of the leaf;
    owners, amounts : the classes of the rows in a leaf, and the sums of their weights; n_nodes,
    n_leaves : of each tree; due : the number of rows at which a tree is grown again; rows, codes,
    weights : the last rows, in a ring, feature by feature; priors : the sum of the weights of the
    rows of each class; odds : the probability that one of the features up to this one is drawn,
    empty if all are drawn alike.
    """

    features: Annotated[Any, Field(i4, ("tree", "node"), at_least=-1)]
    cuts: Annotated[Any, Field(f4, ("tree", "node"))]
    children: Annotated[Any, Field(i4, ("tree", "node"), at_least=0, at_most="node")]
    owners: Annotated[Any, Field(i4, ("tree", "leaf", IN_LEAF), index_into="class")]
    amounts: Annotated[Any, Field(f8, ("tree", "leaf", IN_LEAF), at_least=0.0)]
    n_nodes: Annotated[Any, Field(i8, ("tree",), at_least=1, at_most="node")]
    n_leaves: Annotated[Any, Field(i8, ("tree",), at_least=1, at_most="leaf")]
    due: Annotated[Any, Field(i8, ("tree",), at_least=1, at_most=MOST_ROWS)]
    rows: Annotated[Any, Field(f4, ("feature", "slot"), allows_nan=True)]
    codes: Annotated[Any, Field(i4, ("slot",), index_into="class")]
    weights: Annotated[Any, Field(f8, ("slot",), at_least=0.0)]
    priors: Annotated[Any, Field(f8, ("class",), at_least=0.0)]
    grown: Annotated[Any, Field(GROWN, at_least=0, at_most=MOST_ROWS)]
    odds: Annotated[Any, Given(f8)]
