"""One-vs-one: one binary learner per pair of classes."""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from kesler.data.labels import Label
from kesler.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    Floats,
    all_margins,
    copy_of,
    fit_all,
    margins,
    teach_all,
)
from kesler.errors import keep_settings, require_choice

Decoding = Literal["majority", "tournament", "margins"]
DECODINGS = ("majority", "tournament", "margins")


class OneVsOne(Decomposition):
    r"""One-vs-one: one binary learner per pair of classes, trained on the rows of these two only.

    With :math:`f_{rs}(x) = -f_{sr}(x)` above 0 if class r wins against s, the decodings are

    .. math::
        \text{majority:} \; \arg\max_r |\{s : f_{rs}(x) > 0\}|, \qquad
        \text{margins:} \; \arg\max_r \sum_{s \ne r} f_{rs}(x)

    and a tournament: neighbours play against each other, winners and classes without an opponent
    advance to the next round, and the last class left is the prediction. If each learner separates
    its pair of classes, all decodings but "margins" are right: the right class wins all its pairs.

    Parameters
    ----------
    estimator : scikit-learn classifier or None, default None
        The binary learner, as in :class:`~kesler.OneVsRest`.
    decoding : "majority", "tournament" or "margins", default "majority"
        How the pairs are combined. "majority" evaluates all pairs and is the most robust to wrong
        ones; "margins" adds up their margins; "tournament" evaluates n_classes - 1 pairs only, and
        one wrong pair eliminates a class.
    n_jobs : int or None, default None
        Number of binary learners that are fitted, or predict, in parallel, as in joblib.

    Attributes
    ----------
    estimators_ : list of n_classes (n_classes - 1) / 2 fitted binary learners.
    pairs_ : list of pairs of labels
        The classes of each learner: the first is positive and was seen before the second.
    classes_, classes_by_code_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OneVsRest`.
    n_evaluations_ : int
        Binary learners evaluated per prediction: n_classes - 1 in a tournament, else all.

    Raises
    ------
    KeslerError
        If `decoding` is unknown, and as for :class:`~kesler.OneVsRest`.

    Notes
    -----
    Among classes with equal numbers of votes, the larger sum of margins wins; among equal sums, the
    class seen first. In a pair, a margin of 0 counts for the class seen first. In a tournament,
    classes have the order of `classes_`.

    The score of `decision_function` is the sum of margins, or the number of votes plus that sum
    squashed to less than a third. With "tournament" there is no `decision_function`.

    `partial_fit` stores no rows. Instead, it trains one more learner for each class, on the rows of
    that class only, and the pairs of a new class start from copies of these learners. So the
    learners are the same as if all classes had been declared in advance. After `fit`, these
    learners are unfitted, and the pairs of a new class are trained on later rows only.

    `fit` costs as much as n_classes - 1 binary learners on all rows, if their cost is linear.

    References
    ----------
    Knerr, Personnaz and Dreyfus (1990), pairs; Friedman (1996), majority; Hastie and Tibshirani
    (1998), confidence; Platt, Cristianini and Shawe-Taylor (2000), n_classes - 1 evaluations.

    Examples
    --------
    >>> from kesler import OneVsOne
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["ape", "bee", "cat", "dog"] * 5
    >>> animals = OneVsOne().fit(X, y)
    >>> animals.predict([[0.0], [2.9]]).tolist(), animals.n_evaluations_
    (['ape', 'dog'], 6)
    >>> animals.set_params(decoding="tournament").n_evaluations_
    3
    """

    def __init__(
        self, estimator: Any = None, decoding: Decoding = "majority", n_jobs: int | None = None
    ) -> None:
        keep_settings(self, locals())

    @property
    def pairs_(self) -> list[tuple[Label, Label]]:
        """The two labels of each learner, the positive one first."""
        labels = self._known().labels
        return [(labels[first], labels[second]) for first, second in pairs(len(labels))]

    @property
    def n_evaluations_(self) -> int:
        """Number of binary learners evaluated per prediction."""
        n_classes = len(self._known())
        return n_classes - 1 if self.decoding == "tournament" else len(self.estimators_)

    def _why_unscored(self) -> str | None:
        return "a tournament has one winner" if self.decoding == "tournament" else None

    def _fit(self, examples: Examples) -> None:
        require_choice("decoding", self.decoding, DECODINGS)
        problems, n_problems = self._problems(examples), len(pairs(len(self._table)))
        self.estimators_ = fit_all(self._learner(), problems, n_problems, self.n_jobs)
        self._alone = [clone(self._learner()) for _ in self._table.labels]

    def _teach(self, examples: Examples, n_before: int) -> None:
        require_choice("decoding", self.decoding, DECODINGS)
        n_classes = len(self._table)
        old, alone = (self.estimators_, self._alone) if n_before else ([], [])
        alone = [*alone, *(clone(self._learner()) for _ in range(n_before, n_classes))]
        new = [copy_of(alone[first]) for first, _ in pairs(n_classes)[len(old) :]]
        of_classes = (_of_classes(examples, code) for code in range(n_classes))
        problems = chain(self._problems(examples), of_classes)
        taught = teach_all([*old, *new, *alone], problems, self.n_jobs)
        self.estimators_, self._alone = taught[:-n_classes], taught[-n_classes:]

    def _problems(self, examples: Examples) -> Any:
        return (_of_classes(examples, *pair) for pair in pairs(len(self._table)))

    def _winners(self, X: Any) -> npt.NDArray[np.intp]:
        require_choice("decoding", self.decoding, DECODINGS)
        return self._champions(X) if self.decoding == "tournament" else super()._winners(X)

    def _scores(self, X: Any) -> Floats:
        require_choice("decoding", self.decoding, DECODINGS)
        n_classes = len(self._table)
        found = all_margins(self.estimators_, X, self.n_jobs)
        sides = incidence(n_classes)
        sums: Floats = found @ sides
        if self.decoding == "margins":
            return sums
        votes: Floats = (np.where(found >= 0, 1.0, -1.0) @ sides + (n_classes - 1)) / 2
        return votes + sums / (3 * (np.abs(sums) + 1))

    def _champions(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the winner of each row's tournament."""
        players = np.tile(np.array(self._table.order, dtype=np.intp), (X.shape[0], 1))
        while players.shape[1] > 1:
            n_matches = players.shape[1] // 2
            matches = [players[:, 2 * m : 2 * m + 2] for m in range(n_matches)]
            winners = [self._match_winners(X, match) for match in matches]
            players = np.column_stack([*winners, players[:, 2 * n_matches :]])
        return players[:, 0]

    def _match_winners(self, X: Any, match: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the winner of the two classes in each row; each learner is evaluated once."""
        first, second = match.min(axis=1), match.max(axis=1)
        indices = pair_index(first, second)
        wins = np.empty(len(match), dtype=bool)
        for index in np.unique(indices):
            rows = np.flatnonzero(indices == index)
            wins[rows] = margins(self.estimators_[index], X[rows]) >= 0
        return np.where(wins, first, second)


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of class numbers, those of the class seen last at the end.

    Examples
    --------
    >>> pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(first, second) for second in range(n_classes) for first in range(second)]


def pair_index(first: Any, second: Any) -> Any:
    """Return the position of a pair in `pairs`, where first < second."""
    return second * (second - 1) // 2 + first


def incidence(n_classes: int) -> sparse.csr_array:
    """Return 1 at the first and -1 at the second class of each pair: (n_pairs, n_classes)."""
    columns = np.array(pairs(n_classes), dtype=np.intp).reshape(-1)
    n_pairs = len(columns) // 2
    rows = np.repeat(np.arange(n_pairs), 2)
    signs = np.tile([1.0, -1.0], n_pairs)
    return sparse.csr_array((signs, (rows, columns)), shape=(n_pairs, n_classes))


def _of_classes(examples: Examples, *codes: int) -> BinaryProblem:
    """Return the rows of these classes, with those of the first as positive."""
    within = examples[np.flatnonzero(np.isin(examples.codes, codes))]
    return within.problem(within.codes == codes[0])
