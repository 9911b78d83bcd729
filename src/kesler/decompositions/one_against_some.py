"""OneAgainstSome: a recall tree picks a few classes, whose scorers decide."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from kesler.decompositions.binary import (
    BinaryProblem,
    Examples,
    copy_of,
    margins,
    require_learner,
    teach_binary,
)
from kesler.decompositions.recall_tree import RecallTree
from kesler.decompositions.unscored import Unscored
from kesler.errors import KeslerError

BLOCK_ROWS, ROWS_A_CLASS = 256, 8  # what is learnt of a block is seen by the next one


class OneAgainstSome(Unscored):
    r"""A router tree picks a few of the classes, and each of these is scored: O(log K) in all.

    Routers, one binary learner a node, send a row down a tree. At the node where it stops, the
    candidates are the classes whose rows came by most; a binary learner for each class of all
    scores them, and the highest score wins. A router learns to send a row of class y where that
    makes the classes of the children easier to tell: with the code length
    :math:`L(n) = n \log n - \sum_k n_k \log n_k` of the :math:`n_k` rows of each class,

    .. math:: \text{right if } L(n^l + e_y) - L(n^l) > L(n^r + e_y) - L(n^r),

    with the difference as the importance. The scorers of the candidates learn from rows whose class
    is among them: it against these some.

    Parameters
    ----------
    estimator : binary classifier with `partial_fit`
        That of both routers and scorers, such as ``SGDClassifier()``.
    n_candidates : int, 1 or more, or None, default None
        The most classes that are scored. Larger values: the right class is more often among them;
        slower. None is for ceil(log2 K) + 1, which grows with the classes.
    n_passes : int, 1 or more, default 5
        How often `fit` goes over the rows, each time in another order. Larger values: closer to
        what the learners converge to, slower.
    random_state : int, RandomState or None, default 0
        What shuffles the rows in `fit`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels met so far, sorted.
    n_evaluations_ : int
        The most routers and scorers that one prediction asks: at most 2 ceil(log2 K) + 1, unless
        `n_candidates` says otherwise.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If the learner has no `partial_fit`, a parameter is out of its range, all rows that `fit` is
        given are of one class, or weights are given that the learner does not take.

    Notes
    -----
    The tree is at most ceil(log2 K) deep and grows with the classes; nodes are made when rows come
    to them. A row stops where the next node promises no better recall: the share of its candidates
    among the rows that came by, less its standard error and 1/n. With few classes that is the root,
    and the classifier is one-against-all.

    Simplified from the source: rows are learnt in blocks of 256, or 8 K if that is more, so that
    what one teaches is seen by the next block, and `partial_fit` of the same rows in other batches
    gives another model; scorers see the row's features only, not the nodes of its path; the bound
    on recall has no constant to be tuned. After each pass of `fit` the classes that come by each
    node are counted anew. Of a learner whose `partial_fit` takes no `sample_weight` all rows of a
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
        self.estimator = estimator
        self.n_candidates = n_candidates
        self.n_passes = n_passes
        self.random_state = random_state

    _tree: RecallTree
    _scorers: dict[int, Any]

    def _fit(self, examples: Examples) -> None:
        self._begin()
        rng = check_random_state(self.random_state)
        for _ in range(self.n_passes):
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
        """Teach the scorers of each row's candidates, if its class is among them."""
        considered = self._considered(block.X)
        heard = considered[np.arange(len(block.codes)), block.codes]
        for code in np.flatnonzero(considered[heard].any(axis=0)).tolist():
            some = block[np.flatnonzero(heard & considered[:, code])]
            if code not in self._scorers:
                self._scorers[code] = clone(self._learner())
            teach_binary(
                self._scorers[code], BinaryProblem(some.X, some.codes == code, some.weights)
            )

    def _considered(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return which classes are candidates of each row, shape (n_rows, n_classes)."""
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
        """The most routers and scorers that one prediction asks."""
        self._known()
        return self._tree.evaluations(self._most)

    @property
    def _most(self) -> int:
        """How many candidates a row may have."""
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
                f"estimator={learner!r} has no partial_fit, but routers and scorers learn online: "
                "give one that has, such as SGDClassifier()"
            )
        for name in ("n_candidates", "n_passes"):
            value = getattr(self, name)
            if name == "n_candidates" and value is None:
                continue
            if not (isinstance(value, int) and value >= 1):
                raise KeslerError(f"{name}={value!r} must be a whole number, 1 or more")


def log2_ceil(n: int) -> int:
    """Return the least d of which 2**d is n or more.

    Examples
    --------
    >>> [log2_ceil(n) for n in (1, 2, 3, 4, 5, 1024, 1025)]
    [0, 1, 2, 2, 3, 10, 11]
    """
    return (n - 1).bit_length()
