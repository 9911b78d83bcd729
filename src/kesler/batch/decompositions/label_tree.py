"""LabelTree: a tree of classes, grouped by which of them are confused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.cluster import KMeans

from kesler.batch.decompositions.binary import (
    BinaryProblem,
    Codes,
    Examples,
    Floats,
    Unscored,
    all_margins,
    copy_of,
    fit_all,
    teach_all,
)
from kesler.errors import KeslerError

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


N_STARTS = 10
WEAKEST = 1e-6  # as a share of the strongest affinity: classes never confused go anywhere


def held_out_confusions(
    estimator: Any, examples: Examples, n_classes: int, n_folds: int, n_jobs: int | None
) -> Floats:
    """Return how often rows of class i are taken for class j by one-vs-rest learners of other rows.

    Parameters
    ----------
    estimator : binary classifier
    examples : rows, their classes and weights.
    n_classes : int
    n_folds : int, 2 or more
        Rows are dealt to so many folds, those of each class in turn; each fold is held out once.
    n_jobs : int or None

    Returns
    -------
    Array of shape (n_classes, n_classes); rows sum to 1, or to 0 for classes without rows.
    """
    folds = dealt(examples.codes, n_folds)
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
        learners = fit_all(estimator, problems, n_jobs)
        taken_for = present[all_margins(learners, held.X, n_jobs).argmax(axis=1)]
        weights = 1.0 if held.weights is None else held.weights
        np.add.at(counts, (held.codes, taken_for), weights)
    totals = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=counts, where=totals > 0)
    return shares


def dealt(codes: Codes, n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: the rows of a class go round.

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
    r"""Return groups of classes such that confusions are within them (Ng, Jordan and Weiss 2002).

    The affinity is :math:`A = (C + C^\top) / 2`; k-means clusters the rows, scaled to length 1, of
    the leading eigenvectors of :math:`D^{-1/2} A D^{-1/2}`.

    Parameters
    ----------
    confusions : array of shape (n_classes, n_classes)
    n_groups : int from 2 to n_classes

    Returns
    -------
    List of 2 to `n_groups` arrays of class numbers, each sorted, by their first.

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


class LabelTree(Unscored):
    r"""A tree over the classes that leaves those often confused together as long as it can.

    One-vs-rest learners say on rows held out from them how often class i is taken for class j,
    :math:`C_{ij}`. The classes are split into groups between which :math:`A = (C + C^\top) / 2` is
    small, by spectral clustering, each group again, down to single classes. At each inner node
    binary learners choose among its children, and a prediction follows the choices from the root.

    Parameters
    ----------
    estimator : binary classifier or None, default None
        Any in scikit-learn's manner; None is logistic regression.
    n_children : int, 2 or more, default 2
        Into how many groups a node is split. Larger values: a lower tree with fewer choices that
        can go wrong, and more learners asked at each.
    max_depth : int, 1 or more, or None, default None
        After so many choices the class is found: the nodes of the last level have a child for each
        of their classes. Larger values: fewer learners asked if splits are even; None is for no
        limit, 1 is one-vs-rest.
    n_folds : int, 2 or more, default 3
        Into how many parts the rows are dealt, each held out once. Larger values: confusions nearer
        to those of a learner of all rows, at n_folds K binary problems.
    n_jobs : int or None, default None
        How many learners learn at once; as in joblib.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    tree_ : tuple
        The tree as tuples in tuples of labels.
    confusions_ : float64 array of shape (n_classes, n_classes)
        C, in the order of `classes_`; 0 for classes that came later.
    n_evaluations_ : int
        The most binary learners on a way down: 1 at a node with two children, else one a child.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, all rows are of one class, or the learner is no binary
        classifier or takes no weights though some are given.

    Notes
    -----
    Simplified from the source: the learners of the nodes are independent of each other, those of a
    node each against its other children on all rows of its classes, where the source optimises
    them all for the loss of the tree; and it embeds labels besides. Splits need not be even: a
    class never confused may be split off alone. So `n_evaluations_` lies between about log2 K and
    K - 1; `max_depth` bounds the choices.

    `partial_fit` makes the tree from its first rows, so these should be many. A class that appears
    later shares the leaf to which most of its first rows are sent, which is split in two.

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
        self.estimator = estimator
        self.n_children = n_children
        self.max_depth = max_depth
        self.n_folds = n_folds
        self.n_jobs = n_jobs

    _tree: ClassTree
    _learners: dict[int, list[Any]]

    def _fit(self, examples: Examples) -> None:
        self._plant(examples)
        problems = list(self._problems(examples))
        found = fit_all(self._learner(), [problem for _, problem in problems], self.n_jobs)
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
        """Make the tree from what is confused in these rows."""
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
        """Yield each binary problem of each inner node: whether a row's class is below a child."""
        for node, children in self._tree.children.items():
            here = examples[np.isin(examples.codes, self._tree.members(node))]
            for child in children[: self._tree.n_learners(node)]:
                yield node, here.problem(np.isin(here.codes, self._tree.members(child)))

    def _begun(self, node: int) -> list[Any]:
        """Return learners for a node that may be taught: copies of those there are, or new ones."""
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
        """Return which child of a node each row is sent to; the first without learners."""
        if node not in self._learners:
            return np.zeros(X.shape[0], dtype=np.intp)
        scores = all_margins(self._learners[node], X, None)
        if scores.shape[1] == 1:
            scores = np.hstack([scores, -scores])
        return scores.argmax(axis=1)

    @property
    def tree_(self) -> Any:
        """The tree as tuples in tuples of labels."""
        return self._tree.nested(self._known().labels)

    @property
    def confusions_(self) -> Floats:
        """The share of rows of each class that are taken for each, in the order of `classes_`."""
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
        """The most binary learners on a way from the root to a leaf."""
        self._known()
        return self._tree.n_evaluations

    def _require_parameters(self) -> None:
        for name, least in (("n_children", 2), ("n_folds", 2), ("max_depth", 1)):
            value = getattr(self, name)
            if name == "max_depth" and value is None:
                continue
            if not (isinstance(value, int) and value >= least):
                raise KeslerError(f"{name}={value!r} must be a whole number, {least} or more")
