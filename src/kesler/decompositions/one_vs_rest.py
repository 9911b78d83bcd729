"""One-vs-rest: one binary learner per class."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from kesler.decompositions.binary import (
    Decomposition,
    Examples,
    Floats,
    all_margins,
    copy_of,
    fit_all,
    teach_all,
)
from kesler.errors import keep_settings


class OneVsRest(Decomposition):
    r"""One-vs-rest: one binary learner per class, trained against all other classes.

    .. math:: \hat y = \arg\max_r f_r(x)

    where :math:`f_r` is trained on rows of class r as positive and all others as negative. It can
    be right on all rows only if each class is separable from the union of the others, and it
    compares margins of learners that are trained independently.

    Parameters
    ----------
    estimator : scikit-learn classifier or None, default None
        The binary learner; None is ``LogisticRegression(max_iter=1000)``. Its margin is its
        `decision_function`; without one, p(1) - p(0) from its `predict_proba`; without either, its
        prediction as -1 or 1, which makes ties frequent.
    n_jobs : int or None, default None
        Number of binary learners that are fitted, or predict, in parallel, as in joblib.

    Attributes
    ----------
    estimators_ : list of n_classes fitted binary learners, in the order of `classes_`.
    classes_ : array of the labels seen, sorted.
    classes_by_code_ : the labels in the order in which they were seen.
    n_evaluations_ : int
        Binary learners evaluated per prediction: n_classes.
    n_features_by_round_ : list of int
        For binary learners that choose one candidate per round: the number of candidates that all
        classes use together.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If `fit` is given rows of one class only, a label has an unsupported type, the estimator is
        not a classifier, or `sample_weight` is given and the estimator does not accept it.

    Notes
    -----
    Among equal margins, the class seen first wins; `fit` sees the classes in the order of
    `classes_`. Rows of weight 0 are left out. Two classes also have two learners.

    `partial_fit` stores no rows. Instead, it trains one more learner on every row as negative, and
    a new class starts from a copy of that learner, since all earlier rows are of other classes. So
    the learners are the same as if all classes had been declared in advance. After `fit`, that
    learner is unfitted, and the learner of a new class is trained on later rows only.

    `fit` costs n_classes fits of the binary learner on all rows, a prediction n_classes
    evaluations.

    References
    ----------
    Rifkin and Klautau (2004), "In defense of one-vs-all classification".

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from kesler import OneVsRest
    >>> animals = OneVsRest(Perceptron())
    >>> animals.partial_fit([[1, 0, 0], [0, 1, 0]], ["cat", "dog"]).n_evaluations_
    2
    >>> animals.partial_fit([[0, 0, 1]], ["newt"]).predict([[0, 0, 1], [1, 0, 0]]).tolist()
    ['newt', 'cat']
    """

    def __init__(self, estimator: Any = None, n_jobs: int | None = None) -> None:
        keep_settings(self, locals())

    @property
    def estimators_(self) -> list[Any]:
        """The binary learners, in the order of `classes_`."""
        return [self._learners[code] for code in self._known().order]

    @property
    def n_evaluations_(self) -> int:
        """Number of binary learners evaluated per prediction."""
        return len(self._known())

    @property
    def n_features_by_round_(self) -> list[int]:
        """Number of candidates that all classes together use after 1, 2, ... rounds of each.

        For binary learners that choose one candidate per round and record it in `path_`, as
        :class:`~kesler.ShareBoostClassifier` does. A learner with fewer rounds stays as it is after
        its last.

        Raises
        ------
        AttributeError
            If the binary learners have no `path_`.
        """
        chosen = [[step.candidate for step in learner.path_] for learner in self.estimators_]
        rounds = range(1, max(map(len, chosen)) + 1)
        return [len({each for path in chosen for each in path[:t]}) for t in rounds]

    def _fit(self, examples: Examples) -> None:
        problems = (examples.problem(examples.codes == code) for code in range(len(self._table)))
        self._learners = fit_all(self._learner(), problems, len(self._table), self.n_jobs)
        self._rest = clone(self._learner())

    def _teach(self, examples: Examples, n_before: int) -> None:
        old, rest = (self._learners, self._rest) if n_before else ([], clone(self._learner()))
        new = [copy_of(rest) for _ in range(len(self._table) - n_before)]
        codes = [*range(len(self._table)), -1]  # no row has class -1
        problems = (examples.problem(examples.codes == code) for code in codes)
        *self._learners, self._rest = teach_all([*old, *new, rest], problems, self.n_jobs)

    def _scores(self, X: Any) -> Floats:
        return all_margins(self._learners, X, self.n_jobs)
