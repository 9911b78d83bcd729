"""LabelTree: a tree of classes, grouped by how often they are confused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.cluster import KMeans

from kesler.batch.distinct_rows import DistinctRows
from kesler.decompositions.binary import (
    BinaryProblem,
    Codes,
    Decomposition,
    Examples,
    Floats,
    all_margins,
    copy_of,
    fit_all,
    teach_all,
)
from kesler.errors import integer_of, keep_settings

Grouping = Callable[[list[int]], list[list[int]]]


@dataclass
class ClassTree:
    """A tree of inner nodes with children and leaves with classes. The root is node 0.

    Parameters
    ----------
    children : dict of int to list of int
        The children of each inner node.
    leaves : dict of int to int
        The class of each leaf.

    Examples
    --------
    >>> tree = ClassTree.enlarged([0, 1, 2, 3], lambda some: [some[::2], some[1::2]], 9)
    >>> tree.children, tree.members(1), tree.n_evaluations
    ({0: [1, 4], 1: [2, 3], 4: [5, 6]}, [0, 2], 2)
    >>> tree.split_leaf(3, 4)
    >>> tree.nested(list("abcde"))
    (('a', ('c', 'e')), ('b', 'd'))
    """

    children: dict[int, list[int]] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def enlarged(classes: Sequence[int], group: Grouping, max_depth: int) -> ClassTree:
        """Return a tree that groups classes recursively, at most `max_depth` times.

        At the last level, each class is a group.
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

    def split_leaf(self, leaf: int, new: int) -> None:
        """Replace a leaf by an inner node with two leaves: the leaf's class and a new class."""
        labels = self.leaves.pop(leaf), new
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
        """Maximum number of learners on a path: 1 per binary node, else 1 per child."""
        return self._evaluations(0)

    def _evaluations(self, node: int) -> int:
        if node in self.leaves:
            return 0
        return self.n_learners(node) + max(self._evaluations(c) for c in self.children[node])

    def n_learners(self, node: int) -> int:
        """Return the number of binary learners of an inner node."""
        n_children = len(self.children[node])
        return 1 if n_children == 2 else n_children

    def nested(self, labels: Sequence[Any], node: int = 0) -> Any:
        """Return the tree as nested tuples of labels."""
        if node in self.leaves:
            return labels[self.leaves[node]]
        return tuple(self.nested(labels, child) for child in self.children[node])

    @property
    def _n_nodes(self) -> int:
        return len(self.children) + len(self.leaves)


N_STARTS = 10
WEAKEST = 1e-6  # minimum affinity as a share of the largest, for classes that are never confused


def held_out_confusions(
    estimator: Any, examples: Examples, n_classes: int, n_folds: int, n_jobs: int | None
) -> Floats:
    """Return the confusion matrix of one-vs-rest learners on held-out rows.

    Parameters
    ----------
    estimator : binary classifier
    examples : rows, their classes and weights.
    n_classes : int
    n_folds : int, 2 or more
        Number of folds, stratified by class; each fold is held out once.
    n_jobs : int or None

    Returns
    -------
    Array of shape (n_classes, n_classes): the share of rows of class i that are predicted as class
    j. Its rows sum to 1, or to 0 for classes without rows.
    """
    folds = folds_of(examples, n_folds)
    counts = np.zeros((n_classes, n_classes))
    for fold in range(n_folds):
        held, rest = (
            examples[np.flatnonzero(folds == fold)],
            examples[np.flatnonzero(folds != fold)],
        )
        present = np.unique(rest.codes)
        if not len(held.codes) or not len(present):
            continue
        problems = (rest.problem(rest.codes == code) for code in present)
        learners = fit_all(estimator, problems, len(present), n_jobs)
        predicted = present[all_margins(learners, held.X, n_jobs).argmax(axis=1)]
        weights = 1.0 if held.weights is None else held.weights
        np.add.at(counts, (held.codes, predicted), weights)
    totals = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=counts, where=totals > 0)
    return shares


def folds_of(examples: Examples, n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row, the same for copies, and -1 for rows of weight 0."""
    weights = np.ones(len(examples.codes)) if examples.weights is None else examples.weights
    rows = DistinctRows.of(examples.X, examples.codes, weights)
    return np.where(rows.members < 0, -1, dealt(rows.codes.astype(np.int32), n_folds)[rows.members])


def dealt(codes: Codes, n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: the rows of each class are assigned in turn.

    Examples
    --------
    >>> dealt(np.array([0, 0, 1, 0, 1], dtype=np.int32), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    by_class = np.argsort(codes, kind="stable")
    _, starts, counts = np.unique(codes[by_class], return_index=True, return_counts=True)
    places = np.arange(len(codes)) - np.repeat(starts, counts)
    folds = np.empty(len(codes), dtype=np.intp)
    folds[by_class] = places % n_folds
    return folds


def spectral_groups(confusions: Floats, n_groups: int) -> list[npt.NDArray[np.intp]]:
    r"""Group classes by spectral clustering of their confusions (Ng, Jordan and Weiss 2002).

    The affinity is :math:`A = (C + C^\top) / 2`; k-means clusters the rows, scaled to length 1, of
    the leading eigenvectors of :math:`D^{-1/2} A D^{-1/2}`.

    Parameters
    ----------
    confusions : array of shape (n_classes, n_classes)
    n_groups : int from 2 to n_classes

    Returns
    -------
    List of 2 to `n_groups` sorted arrays of class numbers, ordered by their first element.

    Examples
    --------
    >>> C = np.array([[8, 0, 2, 0], [0, 7, 0, 3], [1, 0, 9, 0], [0, 4, 1, 5]]) / 10
    >>> [group.tolist() for group in spectral_groups(C, 2)]
    [[0, 2], [1, 3]]
    """
    affinity = (confusions + confusions.T) / 2
    np.fill_diagonal(affinity, 0.0)
    affinity += WEAKEST * (affinity.max() or 1.0)
    scale = 1 / np.sqrt(affinity.sum(axis=1))
    leading = np.linalg.eigh(affinity * np.outer(scale, scale))[1][:, -n_groups:]
    places = leading / np.linalg.norm(leading, axis=1, keepdims=True)
    if len(np.unique(places.round(9), axis=0)) < n_groups:
        return np.array_split(np.arange(len(places)), n_groups)
    groups = KMeans(n_groups, n_init=N_STARTS, random_state=0).fit(places).labels_
    found = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return sorted(found, key=lambda group: int(group[0]))


class LabelTree(Decomposition):
    r"""A tree of binary learners that separates rarely confused classes first.

    One-vs-rest learners estimate on held-out rows how often class i is predicted as class j,
    :math:`C_{ij}`. Spectral clustering splits the classes into groups between which
    :math:`A = (C + C^\top) / 2` is small, and each group again, down to single classes. At each
    inner node, binary learners choose one of its children; a prediction follows these choices from
    the root.

    Parameters
    ----------
    estimator : binary classifier or None, default None
        Any scikit-learn-compatible classifier; None is logistic regression.
    n_children : int, 2 or more, default 2
        Number of groups into which a node is split. Larger values give a shallower tree with fewer
        choices that can be wrong, and more learners per choice.
    max_depth : int, 1 or more, or None, default None
        Maximum number of choices per prediction: nodes of the last level have one child for each of
        their classes. Larger values evaluate fewer learners if splits are even; None is no limit,
        1 is one-vs-rest.
    n_folds : int, 2 or more, default 3
        Number of folds for the held-out confusions. With larger values they are closer to those of
        learners of all rows, at the cost of n_folds K binary problems.
    n_jobs : int or None, default None
        Number of learners that are fitted in parallel, as in joblib.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    tree_ : tuple
        The tree as nested tuples of labels.
    confusions_ : float64 array of shape (n_classes, n_classes)
        C, in the order of `classes_`; 0 for classes that `partial_fit` added later.
    n_evaluations_ : int
        Maximum number of binary learners per prediction: on a path from the root, 1 for each node
        with two children, else 1 per child.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, all rows are of one class, the learner is not a binary
        classifier, or weights are given that the learner does not accept.

    Notes
    -----
    This simplifies the source. The source optimises all learners for the loss of the tree and also
    embeds labels. Here, learners are trained independently: each separates one child of a node
    from the node's other children, on all rows of the node's classes. Splits need not be even: a
    class that is never confused may be split off alone. So `n_evaluations_` lies between about
    log2 K and K - 1; `max_depth` bounds the number of choices.

    `partial_fit` builds the tree from its first call, which should therefore have many rows. For a
    class that appears later, the leaf to which most of its first rows are sent is split in two.

    References
    ----------
    Bengio, Weston and Grangier (2010), "Label embedding trees for large multi-class tasks"; Ng,
    Jordan and Weiss (2002), "On spectral clustering".

    Examples
    --------
    >>> from kesler import LabelTree
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["cat", "dog", "oak", "elm"], 50)
    >>> centres = {"cat": [0, 0], "dog": [1, 0], "oak": [0, 9], "elm": [1, 9]}
    >>> X = np.array([centres[label] for label in y]) + rng.normal(scale=0.5, size=(200, 2))
    >>> LabelTree().fit(X, y).tree_
    (('cat', 'dog'), ('elm', 'oak'))
    """

    def __init__(
        self,
        estimator: Any = None,
        n_children: int = 2,
        max_depth: int | None = None,
        n_folds: int = 3,
        n_jobs: int | None = None,
    ) -> None:
        keep_settings(self, locals())

    _tree: ClassTree
    _learners: dict[int, list[Any]]

    def _why_unscored(self) -> str:
        return "a prediction evaluates few of the learners"

    def _fit(self, examples: Examples) -> None:
        self._plant(examples)
        problems = list(self._problems(examples))
        found = fit_all(
            self._learner(), [problem for _, problem in problems], len(problems), self.n_jobs
        )
        self._learners = self._by_node(problems, found)

    def _teach(self, examples: Examples, n_before: int) -> None:
        if n_before:
            self._tree = deepcopy(self._tree)
            self._place_new_classes(examples, n_before)
        else:
            self._plant(examples)
            self._learners = {}
        problems = list(self._problems(examples))
        begun = {node: self._begun(node) for node in self._tree.children}
        learners = [each for node, _ in problems for each in [begun[node].pop(0)]]
        found = teach_all(learners, [problem for _, problem in problems], self.n_jobs)
        self._learners = self._by_node(problems, found)

    def _plant(self, examples: Examples) -> None:
        """Build the tree from the confusions on these rows."""
        self._require_parameters()
        n_classes = len(self._table)
        self._confusions = held_out_confusions(
            self._learner(), examples, n_classes, self.n_folds, self.n_jobs
        )

        def group(classes: list[int]) -> list[list[int]]:
            among = self._confusions[np.ix_(classes, classes)]
            groups = spectral_groups(among, min(self.n_children, len(classes)))
            return [[classes[i] for i in each] for each in groups]

        self._tree = ClassTree.enlarged(self._table.order, group, self.max_depth or n_classes)

    def _place_new_classes(self, examples: Examples, n_before: int) -> None:
        """Split, for each new class, the leaf to which most of its rows are sent."""
        for code in range(n_before, len(self._table)):
            sent = self._winners(examples.X[np.flatnonzero(examples.codes == code)])
            self._tree.split_leaf(self._tree.leaf_of(int(np.bincount(sent).argmax())), code)

    def _problems(self, examples: Examples) -> Iterator[tuple[int, BinaryProblem]]:
        """Yield the binary problems of each inner node: whether a row's class is below a child."""
        for node, children in self._tree.children.items():
            here = examples[np.isin(examples.codes, self._tree.members(node))]
            for child in children[: self._tree.n_learners(node)]:
                yield node, here.problem(np.isin(here.codes, self._tree.members(child)))

    def _begun(self, node: int) -> list[Any]:
        """Return learners to update for a node: copies of its learners, or new ones."""
        known = self._learners.get(node, [None] * self._tree.n_learners(node))
        return [clone(self._learner()) if each is None else copy_of(each) for each in known]

    @staticmethod
    def _by_node(
        problems: list[tuple[int, BinaryProblem]], learners: list[Any]
    ) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for (node, _), learner in zip(problems, learners, strict=True):
            found.setdefault(node, []).append(learner)
        return found

    def _winners(self, X: Any) -> npt.NDArray[np.intp]:
        found: npt.NDArray[np.intp] = np.zeros(X.shape[0], dtype=np.intp)
        waiting = [(0, np.arange(X.shape[0]))]
        while waiting:
            node, rows = waiting.pop()
            if node in self._tree.leaves:
                found[rows] = self._tree.leaves[node]
            elif len(rows):
                chosen = self._choices(node, X[rows])
                children = enumerate(self._tree.children[node])
                waiting += [(child, rows[chosen == i]) for i, child in children]
        return found

    def _choices(self, node: int, X: Any) -> npt.NDArray[np.intp]:
        """Return the child to which a node sends each row; without learners, the first."""
        if node not in self._learners:
            return np.zeros(X.shape[0], dtype=np.intp)
        scores = all_margins(self._learners[node], X, None)
        if scores.shape[1] == 1:
            scores = np.hstack([scores, -scores])
        return scores.argmax(axis=1)

    @property
    def tree_(self) -> Any:
        """The tree as nested tuples of labels."""
        return self._tree.nested(self._known().labels)

    @property
    def confusions_(self) -> Floats:
        """The share of rows of class i predicted as class j, in the order of `classes_`."""
        order = self._known().order
        n_new = len(order) - len(self._confusions)
        return np.pad(self._confusions, (0, n_new))[np.ix_(order, order)]

    @property
    def estimators_(self) -> list[Any]:
        """The binary learners of all inner nodes."""
        self._known()
        return [each for learners in self._learners.values() for each in learners]

    @property
    def n_evaluations_(self) -> int:
        """Maximum number of binary learners evaluated per prediction."""
        self._known()
        return self._tree.n_evaluations

    def _require_parameters(self) -> None:
        integer_of("n_children", self.n_children, 2)
        integer_of("n_folds", self.n_folds, 2)
        if self.max_depth is not None:
            integer_of("max_depth", self.max_depth, 1)
