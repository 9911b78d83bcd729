"""ClassTree: a tree whose leaves are classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Grouping = Callable[[list[int]], list[list[int]]]


@dataclass
class ClassTree:
    """Inner nodes with their children, and leaves with their classes. The root is node 0.

    Parameters
    ----------
    children : dict of int to list of int
        The children of each inner node.
    leaves : dict of int to int
        The class of each leaf.

    Examples
    --------
    >>> tree = ClassTree.grown([0, 1, 2, 3], lambda some: [some[::2], some[1::2]], 9)
    >>> tree.children, tree.members(1), tree.n_evaluations
    ({0: [1, 4], 1: [2, 3], 4: [5, 6]}, [0, 2], 2)
    >>> tree.split_leaf(3, 4)
    >>> tree.nested(list("abcde"))
    (('a', ('c', 'e')), ('b', 'd'))
    """

    children: dict[int, list[int]] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def grown(classes: Sequence[int], group: Grouping, max_depth: int) -> ClassTree:
        """Return the tree of classes that are grouped and grouped again, at most so often.

        At the last level each class is a group.
        """
        tree = ClassTree()
        tree._grow(list(classes), group, max_depth)
        return tree

    def _grow(self, classes: list[int], group: Grouping, depth_left: int) -> int:
        """Add a node above these classes, and return its number."""
        node = self._n_nodes
        if len(classes) == 1:
            self.leaves[node] = classes[0]
            return node
        self.children[node] = []
        groups = group(classes) if depth_left > 1 else [[each] for each in classes]
        for each in groups:
            self.children[node].append(self._grow(each, group, depth_left - 1))
        return node

    def split_leaf(self, leaf: int, newcomer: int) -> None:
        """Put a class beside the one of a leaf, below a node that takes the leaf's place."""
        labels = self.leaves.pop(leaf), newcomer
        self.children[leaf] = []
        for label in labels:
            self.children[leaf].append(child := self._n_nodes)
            self.leaves[child] = label

    def leaf_of(self, label: int) -> int:
        """Return the leaf of a class."""
        return next(leaf for leaf, each in self.leaves.items() if each == label)

    def members(self, node: int) -> list[int]:
        """Return the classes at or below a node, from left to right."""
        if node in self.leaves:
            return [self.leaves[node]]
        return [label for child in self.children[node] for label in self.members(child)]

    @property
    def n_evaluations(self) -> int:
        """The most learners on a way down: one at a node with two children, else one a child."""
        return self._evaluations(0)

    def _evaluations(self, node: int) -> int:
        if node in self.leaves:
            return 0
        return self.n_learners(node) + max(self._evaluations(c) for c in self.children[node])

    def n_learners(self, node: int) -> int:
        """Return how many binary learners an inner node has."""
        n_children = len(self.children[node])
        return 1 if n_children == 2 else n_children

    def nested(self, labels: Sequence[Any], node: int = 0) -> Any:
        """Return the tree as tuples in tuples of labels."""
        if node in self.leaves:
            return labels[self.leaves[node]]
        return tuple(self.nested(labels, child) for child in self.children[node])

    @property
    def _n_nodes(self) -> int:
        return len(self.children) + len(self.leaves)
