"""OneAgainstSome: a recall tree selects a few candidate classes, which are then scored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from kesler.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    copy_of,
    margins,
    require_learner,
    teach_binary,
)
from kesler.errors import KeslerError, integer_of, keep_settings
from kesler.progress import progress

Numbers = npt.NDArray[np.intp]
Counts = dict[int, float]


@dataclass
class RecallNode:
    """A node with the number of rows of each class that reached it, and its router.

    Parameters
    ----------
    depth : int
        The number of routers on the path from the root.
    counts : dict of class numbers to weights
        The total weight of the rows of each class that reached the node.
    children : (int, int) or None
        Left and right.
    router : binary learner or None
        Sends a row right if positive; without a router, all rows go left.
    """

    depth: int
    counts: Counts = field(default_factory=dict)
    children: tuple[int, int] | None = None
    router: Any = None

    def candidates(self, most: int) -> list[int]:
        """Return the most frequent classes; among equals, the class seen first."""
        return sorted(self.counts, key=lambda code: (-self.counts[code], code))[:most]

    def recall_bound(self, most: int) -> float:
        """Return a lower bound on the probability that a row at this node is of a candidate."""
        total = sum(self.counts.values())
        if not total:
            return -math.inf
        share = sum(self.counts[code] for code in self.candidates(most)) / total
        return share - math.sqrt(share * (1 - share) / total) - 1 / total


class RecallTree:
    """A growing tree, trained in blocks of rows to keep the rows of a class together.

    Parameters
    ----------
    estimator : binary classifier with `partial_fit`
        A clone of it is the router of each node.
    weighted : bool
        Whether its `partial_fit` accepts weights.
    """

    def __init__(self, estimator: Any, *, weighted: bool) -> None:
        self.estimator = estimator
        self.weighted = weighted
        self.nodes = [RecallNode(depth=0)]

    def copy(self) -> RecallTree:
        """Return an independent copy of the tree."""
        made = RecallTree(self.estimator, weighted=self.weighted)
        made.nodes = [
            RecallNode(node.depth, node.counts.copy(), node.children, copy_of(node.router))
            for node in self.nodes
        ]
        return made

    def learn(self, examples: Examples, max_depth: int) -> None:
        """Train the routers on the path of each row, down to a depth, and update the counts."""
        waiting = [(0, np.arange(len(examples.codes)))]
        while waiting:
            number, rows = waiting.pop()
            node, here = self.nodes[number], examples[rows]
            _count(node.counts, here)
            if len(rows) and node.depth < max_depth:
                self._teach_router(node, here)
                waiting += self._sent(node, here.X, rows)

    def recount(self, examples: Examples) -> None:
        """Recompute the counts of each node with the current routers."""
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
        """Return the node from which the candidates of each row are taken.

        A row descends as long as the child's bound on the recall of its candidates is higher.
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
        """Return the maximum number of routers and candidates evaluated per row."""
        found, waiting = 0, [0]
        while waiting:
            node = self.nodes[waiting.pop()]
            onward = self._next(node, most)
            asked = node.depth + (1 if onward else 0)
            found = max(found, asked + len(node.candidates(most)))
            waiting += onward
        return found

    def _next(self, node: RecallNode, most: int) -> list[int]:
        """Return the children to which rows descend."""
        here = node.recall_bound(most)
        children = node.children or ()
        return [child for child in children if self.nodes[child].recall_bound(most) > here]

    def _teach_router(self, node: RecallNode, here: Examples) -> None:
        """Train a router to choose the side on which the code length of the classes grows less."""
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
    """Return, for each row, the code length in nats saved by sending it right instead of left.

    The code length of a node with n rows, c of them of each class, is n log n - sum c log c. Each
    row is then added to the counts of the better side.

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
    """Return the increase of n log n."""
    return (n + by) * math.log(n + by) - (n * math.log(n) if n else 0.0)


def _count(counts: Counts, here: Examples) -> None:
    for code, weight in _weighted(here):
        counts[code] = counts.get(code, 0.0) + weight


def _weighted(here: Examples) -> Iterator[tuple[int, float]]:
    """Yield the class and the weight of each row."""
    weights = np.ones(len(here.codes)) if here.weights is None else here.weights
    return zip(here.codes.tolist(), weights.tolist(), strict=True)


BLOCK_ROWS, ROWS_A_CLASS = 256, 8  # block sizes: the next block uses the updated learners


class OneAgainstSome(Decomposition):
    r"""A tree that selects a few candidate classes, and a scorer per class: O(log K) evaluations.

    Routers, one binary learner per node, send a row down a tree. At the node where the row stops,
    the candidates are the most frequent classes of the rows that reached the node. Each class has
    a scorer, also a binary learner, and the candidate with the highest score wins. A router is
    trained to send a row of class y to the side on which it increases the code length
    :math:`L(n) = n \log n - \sum_k n_k \log n_k` of the counts :math:`n_k` of each class less,

    .. math:: \text{right if } L(n^l + e_y) - L(n^l) > L(n^r + e_y) - L(n^r),

    with the difference as the importance. The scorers of a row's candidates are trained on the row
    if its class is among them: one against some.

    Parameters
    ----------
    estimator : binary classifier with `partial_fit`
        The learner of routers and scorers, such as ``SGDClassifier()``.
    n_candidates : int, 1 or more, or None, default None
        Maximum number of classes that are scored. With larger values, the right class is more often
        among them, and predictions are slower. None is ceil(log2 K) + 1, which grows with K.
    n_passes : int, 1 or more, default 5
        Number of passes that `fit` makes over the rows, each in another order. Larger values come
        closer to the learners' limits and take longer.
    random_state : int, RandomState or None, default 0
        Controls the order of the rows in `fit`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels seen so far, sorted.
    n_evaluations_ : int
        Maximum number of routers and scorers evaluated per prediction: at most
        2 ceil(log2 K) + 1 with the default `n_candidates`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If the learner has no `partial_fit`, a parameter is out of its range, all rows given to
        `fit` are of one class, or weights are given that the learner does not accept.

    Notes
    -----
    The tree has a depth of at most ceil(log2 K) and grows with the number of classes; nodes are
    created when rows reach them. A row stops where the next node has no higher bound on recall: the
    share of its candidates among the rows that reached it, minus the standard error and 1/n. With
    few classes that is the root, and the classifier is one-against-all.

    This simplifies the source. Rows are processed in blocks of 256, or of 8 K if that is more: the
    next block uses the updated learners, and `partial_fit` on the same rows in other batches gives
    another model. Scorers see only the features of the row, not the nodes of its path. The bound on
    recall has no tuning constant. After each pass of `fit`, the class counts of all nodes are
    recomputed. If `partial_fit` of the learner does not accept `sample_weight`, all rows of a
    router have the same importance.

    References
    ----------
    Daume, Karampatziakis, Langford and Mineiro (2016), "Logarithmic time one-against-some".

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from kesler import OneAgainstSome
    >>> X, y = np.repeat(np.eye(32), 20, axis=0), np.repeat(np.arange(32), 20)
    >>> some = OneAgainstSome(SGDClassifier(random_state=0)).fit(X, y)
    >>> bool(some.score(X, y) > 0.9), some.n_evaluations_ <= 11
    (True, True)
    """

    def __init__(
        self,
        estimator: Any,
        n_candidates: int | None = None,
        n_passes: int = 5,
        random_state: Any = 0,
    ) -> None:
        keep_settings(self, locals())

    _tree: RecallTree
    _scorers: dict[int, Any]

    def _why_unscored(self) -> str:
        return "a prediction evaluates few of the learners"

    def _fit(self, examples: Examples) -> None:
        self._begin()
        rng = check_random_state(self.random_state)
        with progress("one against some", "passes", self.n_passes) as task:
            for _ in task.count(range(self.n_passes)):
                self._learn(examples[rng.permutation(len(examples.codes))])
                self._tree.recount(examples)

    def _teach(self, examples: Examples, n_before: int) -> None:
        if n_before:
            self._tree = self._tree.copy()
            self._scorers = {code: copy_of(each) for code, each in self._scorers.items()}
        else:
            self._begin()
        self._learn(examples)

    def _begin(self) -> None:
        self._require_parameters()
        learner = self._learner()
        weighted = "sample_weight" in signature(learner.partial_fit).parameters
        self._tree = RecallTree(learner, weighted=weighted)
        self._scorers = {}

    def _learn(self, examples: Examples) -> None:
        size = max(BLOCK_ROWS, ROWS_A_CLASS * len(self._table))
        for start in range(0, len(examples.codes), size):
            block = examples[np.arange(start, min(start + size, len(examples.codes)))]
            self._tree.learn(block, log2_ceil(len(self._table)))
            self._teach_scorers(block)

    def _teach_scorers(self, block: Examples) -> None:
        """Train the scorers of each row's candidates, if its class is among them."""
        considered = self._considered(block.X)
        encoded = considered[np.arange(len(block.codes)), block.codes]
        for code in np.flatnonzero(considered[encoded].any(axis=0)).tolist():
            some = block[np.flatnonzero(encoded & considered[:, code])]
            if code not in self._scorers:
                self._scorers[code] = clone(self._learner())
            teach_binary(
                self._scorers[code], BinaryProblem(some.X, some.codes == code, some.weights)
            )

    def _considered(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return whether each class is a candidate of each row, shape (n_rows, n_classes)."""
        ends = self._tree.ends(X, self._most)
        considered = np.zeros((X.shape[0], len(self._table)), dtype=np.bool_)
        for end in np.unique(ends):
            candidates = self._tree.nodes[end].candidates(self._most)
            considered[np.ix_(ends == end, candidates)] = True
        return considered

    def _winners(self, X: Any) -> npt.NDArray[np.intp]:
        considered = self._considered(X)
        scores = np.where(considered, np.finfo(np.float64).min, -np.inf)
        for code, scorer in self._scorers.items():
            rows = np.flatnonzero(considered[:, code])
            if len(rows):
                scores[rows, code] = margins(scorer, X[rows])
        return scores.argmax(axis=1)

    @property
    def estimators_(self) -> list[Any]:
        """The binary learners: the routers of inner nodes, and a scorer for each class."""
        self._known()
        routers = [node.router for node in self._tree.nodes if node.router is not None]
        return [*routers, *self._scorers.values()]

    @property
    def n_evaluations_(self) -> int:
        """Maximum number of routers and scorers evaluated per prediction."""
        self._known()
        return self._tree.evaluations(self._most)

    @property
    def _most(self) -> int:
        """Maximum number of candidates per row."""
        if self.n_candidates is not None:
            return self.n_candidates
        return log2_ceil(len(self._table)) + 1

    def _learner(self) -> Any:
        return self.estimator

    def _require_parameters(self) -> None:
        learner = self._learner()
        require_learner(learner)
        if not hasattr(learner, "partial_fit"):
            raise KeslerError(
                f"estimator={learner!r} has no partial_fit, but routers and scorers are trained "
                "online: give a learner with partial_fit, such as SGDClassifier()"
            )
        integer_of("n_passes", self.n_passes, 1)
        if self.n_candidates is not None:
            integer_of("n_candidates", self.n_candidates, 1)


def log2_ceil(n: int) -> int:
    """Return the smallest d for which 2**d is n or more.

    Examples
    --------
    >>> [log2_ceil(n) for n in (1, 2, 3, 4, 5, 1024, 1025)]
    [0, 1, 2, 2, 3, 10, 11]
    """
    return (n - 1).bit_length()
