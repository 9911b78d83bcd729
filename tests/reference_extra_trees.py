"""Trees over the last rows in plain Python: the reference of `ExtraTrees`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_TRIES, JUDGES, PLACES = 16, 128, 4
PART = 0.1  # of a row of mean weight, of all classes, in each leaf
MASK = 2**64 - 1
Leaf = list[list[float]]  # places of a class and its amount


@dataclass
class Node:
    """A node that asks whether x[feature] <= cut, or a leaf if it has no feature."""

    feature: int | None = None
    cut: float = 0.0
    first: Node | None = None
    second: Node | None = None
    places: Leaf = field(default_factory=lambda: [[0, 0.0] for _ in range(PLACES)])

    def leaf(self, x: Any) -> Node:
        node = self
        while node.feature is not None:
            child = node.first if x[node.feature] <= node.cut else node.second
            assert child is not None
            node = child
        return node

    def count(self, code: int, weight: float) -> None:
        for place in self.places:
            if place[0] == code and place[1] > 0:
                place[1] += weight
                return
        least = min(range(PLACES), key=lambda i: self.places[i][1])
        self.places[least] = [code, weight]

    def amounts(self, k: int) -> Any:
        """Return the weight of the rows of each class."""
        found = np.zeros(k)
        for code, amount in self.places:
            found[code] += amount
        return found


class Reference:
    """Trees over the last rows: codes of classes are the numbers of their first appearance."""

    def __init__(self, n_features: int, n_trees: int, n_rows: int, weights: Any = None) -> None:
        self.d, self.T = n_features, n_trees
        self.size = min(n_rows, max(64, 2**25 // n_features))
        self.odds = None if weights is None else np.cumsum(weights) / np.sum(weights)
        self.tries = min(MOST_TRIES, round(2 * math.sqrt(n_features)))
        self.trees = [Node() for _ in range(n_trees)]
        self.due = [math.ceil(4 * 2 ** (t / n_trees)) for t in range(n_trees)]
        self.slots: dict[int, tuple[Any, int, float]] = {}
        self.priors: list[float] = []
        self.n = self.n_drawn = 0

    # ---- answers

    def scores(self, x: Any) -> Any:
        k, x = len(self.priors), np.asarray(x, dtype=np.float32)
        mean = sum(self.priors) / max(1, self.n)
        priors = (np.array(self.priors) + mean) / (sum(self.priors) + k * mean)
        amounts = np.array([tree.leaf(x).amounts(k) for tree in self.trees])
        of_leaves = amounts.sum(axis=1, keepdims=True) + PART * mean
        shares = (amounts + PART * mean * priors) / of_leaves
        return np.log(shares.mean(axis=0)).astype(np.float32)

    def predict(self, x: Any) -> int:
        return int(np.argmax(self.scores(x))) if self.priors else -1

    # ---- rows

    def learn(self, x: Any, code: int, weight: float = 1.0) -> None:
        x = np.asarray(x, dtype=np.float32)
        if code == len(self.priors):
            self.priors.append(0.0)
        for tree in self.trees:
            tree.leaf(x).count(code, weight)
        self.slots[self.n % self.size] = (x, code, weight)
        self.priors[code] += weight
        self.n += 1
        for t in range(self.T):
            if self.n >= self.due[t]:
                self.trees[t] = self.grown()
                self.due[t] = self.n + self.pause(t)

    def pause(self, t: int) -> int:
        n = self.n
        return max(1, n // 4) if n < 256 * (1 + t / self.T) else min(n, 4 * self.size)

    # ---- trees

    def draw(self) -> float:
        self.n_drawn += 1
        x = self.n_drawn * 0x9E3779B97F4A7C15 & MASK
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        return ((x ^ x >> 31) >> 11) / 2**53

    def draw_feature(self) -> int:
        u = self.draw()
        return int(u * self.d) if self.odds is None else int(np.argmax(self.odds > u))

    def grown(self) -> Node:
        rows = [self.slots[i] for i in range(min(self.n, self.size))]
        self.X = np.array([x for x, _, _ in rows])
        self.codes = np.array([code for _, code, _ in rows])
        self.weights = np.array([weight for _, _, weight in rows])
        order, root = list(range(len(rows))), Node()
        waiting = [(root, 0, len(rows))]
        for node, start, end in waiting:
            if not self.split(node, order[start:end]):
                for i in order[start:end]:
                    node.count(int(self.codes[i]), self.weights[i])
                continue
            middle = self.partition(node, order, start, end)
            node.first, node.second = Node(), Node()
            waiting += [(node.first, start, middle), (node.second, middle, end)]
        return root

    def partition(self, node: Node, order: list[int], start: int, end: int) -> int:
        last = end - 1
        while start <= last:
            if self.X[order[start], node.feature] <= node.cut:
                start += 1
            else:
                order[start], order[last] = order[last], order[start]
                last -= 1
        return start

    def split(self, node: Node, rows: list[int]) -> bool:
        """Choose the cut of a node; return whether there is one."""
        if len(set(self.codes[rows].tolist())) == 1:
            return False
        judges = rows[:: 1 + (len(rows) - 1) // JUDGES]
        best, n_tried = 0.0, 0
        for _ in range(4 * self.tries):
            feature = self.draw_feature()
            cut = self.cut(self.X[judges, feature])
            if cut is None:
                continue
            n_tried += 1
            worth = self.worth(judges, feature, cut)
            if (1 - 1e-12) * worth > best:
                best, node.feature, node.cut = worth, feature, cut
            if n_tried == self.tries or best >= (1 - 1e-12) * self.weights[judges].sum():
                break
        return node.feature is not None

    def cut(self, values: Any) -> Any:
        known = values[~np.isnan(values)]
        has_missing = len(known) < len(values)
        if not len(known) or (known.min() == known.max() and not has_missing):
            return None
        lowest, highest = float(known.min()), float(known.max())
        cut = np.float32(lowest + self.draw() * (highest - lowest))
        return known.min() if cut >= known.max() and not has_missing else cut

    def worth(self, judges: list[int], feature: int, cut: Any) -> float:
        first = self.X[judges, feature] <= cut
        sums = [
            np.bincount(self.codes[judges][side], self.weights[judges][side])
            for side in (first, ~first)
        ]
        if any(each.sum() == 0 for each in sums):
            return 0.0
        return float(sum((each**2).sum() / each.sum() for each in sums))
