"""The oracle of label sets whose pairs have costs, and of labels below the nodes of a tree.

Written from Amit et al. (2006), Section 3 and Figure 2, in plain float64 NumPy: the score of a
label, or of the threshold, is <w, phi(x, r)> of one expanded vector, and w moves along the violated
constraints of each row, or along the most violated one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import reference
from reference import Array

THRESHOLD = "the threshold"
Constraint = tuple[Any, Any, float]


class Nodes:
    """Vectors of the nodes of a tree, of which phi(x, r) repeats x for those above label r."""

    def __init__(self, above: dict[Any, list[Any]], width: int) -> None:
        self.above, self.width = above, width
        self.names = sorted({node for nodes in above.values() for node in nodes}, key=str)

    def phi(self, x: Array, label: Any) -> Array:
        table = np.zeros((len(self.names), self.width))
        for node in self.above[label]:
            table[self.names.index(node)] = x
        return table.ravel()


def constraints(
    known: Sequence[Any], y: Sequence[Any], cost: Callable[[Any, Any], float]
) -> list[Constraint]:
    """Relevant labels over the threshold, it over the others, and labels over labels by costs."""
    relevant, others = [r for r in known if r in y], [s for s in known if s not in y]
    found = [(THRESHOLD, s, 1.0) for s in others]
    for r in relevant:
        found += [(r, THRESHOLD, 1.0), *((r, s, cost(r, s)) for s in others)]
    return found


def reference_sets_run(
    X: Array,
    sets: Sequence[Sequence[Any]],
    nodes: Nodes,
    cost: Callable[[Any, Any], float],
    rule: str,
    C: float,
) -> Array:
    """One pass, in which a label is known from its first row, without constraints; return w."""
    known: list[Any] = []
    w: Array = np.zeros(len(nodes.phi(X[0], THRESHOLD)))
    for x, y in zip(X, sets, strict=True):
        demanded = constraints(known, y, cost)
        D = np.array([nodes.phi(x, r) - nodes.phi(x, s) for r, s, _ in demanded])
        D = D.reshape(len(demanded), len(w))
        losses = np.array([margin for *_, margin in demanded]) - D @ w
        along = np.flatnonzero(losses > 0)
        if rule in reference.names_of(reference.most_violated):
            along = along[np.argsort(-losses[along], kind="stable")][:1]
        if len(along):
            d = D[along]
            gram = d @ d.T
            w = w + reference.RULES[rule](losses[along], gram.diagonal(), gram, C) @ d
        known += [label for label in y if label not in known]
    return w
