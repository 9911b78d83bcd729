"""RecallTree: a router tree that leads each row to a few classes it may be of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from kesler.decompositions.binary import BinaryProblem, Examples, copy_of, margins, teach_binary

Numbers = npt.NDArray[np.intp]
Counts = dict[int, float]


@dataclass
class RecallNode:
    """A node: the classes of the rows that came by, and which way its router sends rows.

    Parameters
    ----------
    depth : int
        How many routers a row has asked that is here.
    counts : dict of class numbers to weights
        The rows of each class that came by.
    children : (int, int) or None
        Left and right.
    router : binary learner or None
        Positive is right; without one all rows go left.
    """

    depth: int
    counts: Counts = field(default_factory=dict)
    children: tuple[int, int] | None = None
    router: Any = None

    def candidates(self, most: int) -> list[int]:
        """Return the classes that came by most, the one met first among equals."""
        return sorted(self.counts, key=lambda code: (-self.counts[code], code))[:most]

    def recall_bound(self, most: int) -> float:
        """Return a lower bound on how probably a row that comes here is of a candidate."""
        total = sum(self.counts.values())
        if not total:
            return -math.inf
        share = sum(self.counts[code] for code in self.candidates(most)) / total
        return share - math.sqrt(share * (1 - share) / total) - 1 / total


class RecallTree:
    """A tree that grows, and learns to keep the rows of a class together, block by block.

    Parameters
    ----------
    estimator : binary classifier with `partial_fit`
        A clone of it is the router of each node.
    weighted : bool
        Whether its `partial_fit` takes weights.
    """

    def __init__(self, estimator: Any, *, weighted: bool) -> None:
        self.estimator = estimator
        self.weighted = weighted
        self.nodes = [RecallNode(depth=0)]

    def copy(self) -> RecallTree:
        """Return a tree that knows what this one does and goes its own way."""
        made = RecallTree(self.estimator, weighted=self.weighted)
        made.nodes = [
            RecallNode(node.depth, node.counts.copy(), node.children, copy_of(node.router))
            for node in self.nodes
        ]
        return made

    def learn(self, examples: Examples, max_depth: int) -> None:
        """Teach the routers on the way of each row, down to a depth, and count who came by."""
        waiting = [(0, np.arange(len(examples.codes)))]
        while waiting:
            number, rows = waiting.pop()
            node, here = self.nodes[number], examples[rows]
            _count(node.counts, here)
            if len(rows) and node.depth < max_depth:
                self._teach_router(node, here)
                waiting += self._sent(node, here.X, rows)

    def recount(self, examples: Examples) -> None:
        """Count anew which classes come by each node, as its routers are now."""
        for node in self.nodes:
            node.counts.clear()
        waiting = [(0, np.arange(len(examples.codes)))]
        while waiting:
            number, rows = waiting.pop()
            node, here = self.nodes[number], examples[rows]
            _count(node.counts, here)
            if len(rows) and node.children is not None:
                waiting += self._sent(node, here.X, rows)

    def ends(self, X: Any, most: int) -> Numbers:
        """Return the node at which the candidates of each row are taken.

        A row goes on as long as the child's bound on the recall of its candidates is higher.
        """
        found = np.empty(X.shape[0], dtype=np.intp)
        waiting = [(0, np.arange(X.shape[0]))]
        while waiting:
            number, rows = waiting.pop()
            found[rows] = number
            node = self.nodes[number]
            if len(rows) and self._next(node, most):
                sent = self._sent(node, X[rows], rows)
                waiting += [each for each in sent if each[0] in self._next(node, most)]
        return found

    def evaluations(self, most: int) -> int:
        """Return the most routers and candidates that one row can meet."""
        found, waiting = 0, [0]
        while waiting:
            node = self.nodes[waiting.pop()]
            onward = self._next(node, most)
            asked = node.depth + (1 if onward else 0)
            found = max(found, asked + len(node.candidates(most)))
            waiting += onward
        return found

    def _next(self, node: RecallNode, most: int) -> list[int]:
        """Return the children that rows go on to."""
        here = node.recall_bound(most)
        children = node.children or ()
        return [child for child in children if self.nodes[child].recall_bound(most) > here]

    def _teach_router(self, node: RecallNode, here: Examples) -> None:
        """Teach a router on which side the code length of the classes grows less."""
        if node.children is None:
            node.children = len(self.nodes), len(self.nodes) + 1
            self.nodes += [RecallNode(node.depth + 1), RecallNode(node.depth + 1)]
        left, right = (self.nodes[child].counts for child in node.children)
        gains = right_gains(left, right, here)
        decisive = np.flatnonzero(gains)
        if not len(decisive):
            return
        if node.router is None:
            node.router = clone(self.estimator)
        importance = abs(gains[decisive]) if self.weighted else None
        problem = BinaryProblem(here.X[decisive], gains[decisive] > 0, importance)
        teach_binary(node.router, problem)

    def _sent(self, node: RecallNode, X: Any, rows: Numbers) -> list[tuple[int, Numbers]]:
        """Return the rows that go left and those that go right, by the child's number."""
        left, right = node.children or (0, 0)
        if node.router is None:
            return [(left, rows), (right, rows[:0])]
        goes_right = margins(node.router, X) > 0
        return [(left, rows[~goes_right]), (right, rows[goes_right])]


def right_gains(left: Counts, right: Counts, here: Examples) -> npt.NDArray[np.float64]:
    """Return, of each row, how many nats shorter the classes are told if it goes right, not left.

    The code length of a node that n rows have come to, c of them of each class, is n log n -
    sum c log c. Each row then counts where it should have gone.

    Examples
    --------
    >>> rows = Examples(np.zeros((3, 1)), np.array([0, 1, 0], dtype=np.int32))
    >>> right_gains({}, {}, rows).round(2).tolist()
    [0.0, 1.39, -1.39]
    """
    sides = left.copy(), right.copy()
    totals = [sum(side.values()) for side in sides]
    gains = np.empty(len(here.codes))
    for row, (code, weight) in enumerate(_weighted(here)):
        costs = [
            _growth(total, weight) - _growth(side.get(code, 0.0), weight)
            for side, total in zip(sides, totals, strict=True)
        ]
        gains[row] = costs[0] - costs[1]
        to = int(gains[row] > 0)
        sides[to][code] = sides[to].get(code, 0.0) + weight
        totals[to] += weight
    return gains


def _growth(n: float, by: float) -> float:
    """Return by how much n log n grows."""
    return (n + by) * math.log(n + by) - (n * math.log(n) if n else 0.0)


def _count(counts: Counts, here: Examples) -> None:
    for code, weight in _weighted(here):
        counts[code] = counts.get(code, 0.0) + weight


def _weighted(here: Examples) -> Iterator[tuple[int, float]]:
    """Yield the class and the weight of each row."""
    weights = np.ones(len(here.codes)) if here.weights is None else here.weights
    return zip(here.codes.tolist(), weights.tolist(), strict=True)
