"""ShareBoostClassifier: a forward selection of few features for all classes."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.estimator import row_weights
from kesler.batch.softmax import MARGINS, summed
from kesler.data.matrices import validate_data
from kesler.dictionaries.dictionary import Dictionary, fitted
from kesler.dictionaries.registry import resolve_dictionary
from kesler.errors import KeslerError, integer_of, keep_settings, number_of, require_choice, warn
from kesler.progress import progress
from kesler.sharing.certificates import Certificate, certified
from kesler.sharing.few_features import FewFeatures
from kesler.sharing.greedy import RULES, Greedy, Round
from kesler.sharing.penalties import (
    Frobenius,
    NoPenalty,
    Penalty,
    SmoothAbsolute,
    SmoothLargest,
    SmoothLength,
)
from kesler.sharing.training_rows import LocalRows, Task, TrainingRows

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class Path(list[Round]):
    """The rounds of a fit, in order.

    Examples
    --------
    >>> from kesler.sharing.shareboost import Path
    >>> from kesler.sharing.greedy import Round
    >>> path = Path([Round(3, 1, 0.9, 0.4, 0.01, None, 5), Round(0, 2, 0.7, 0.3, 0.02, None, 6)])
    >>> path.table()["loss"].tolist()
    [0.9, 0.7]
    """

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of a table by name, as `pandas.DataFrame` accepts them.

        A validation error that was not computed is NaN.
        """
        rows = [asdict(each) for each in self]
        table = {name: np.array([row[name] for row in rows]) for name in Round.__annotations__}
        return table | {"validation_error": table["validation_error"].astype(np.float64)}

    @property
    def best(self) -> int:
        """The number of rounds with the lowest validation error; among equals, the fewest."""
        return 1 + int(np.argmin(self.table()["validation_error"]))


@dataclass(eq=False)
class PutAside:
    """Validation rows, on which every round is evaluated.

    Parameters
    ----------
    dictionary : Dictionary
        A fitted dictionary.
    X : validated rows.
    codes : int64 array of shape (n_rows,)
        Their classes by number, -1 for classes that the training rows do not have.
    """

    dictionary: Dictionary
    X: Any
    codes: Ints
    _columns: list[Floats] = field(default_factory=list)

    def error(self, candidates: Ints, weights: Floats) -> float:
        """Return the error rate after further candidates are chosen."""
        self._columns.append(self.dictionary.columns(self.X, candidates))
        scores = np.hstack(self._columns) @ weights[1:] + weights[0]
        return float((scores.argmax(axis=1) != self.codes).mean())


Self = TypeVar("Self", bound="ShareBoostClassifier")

PENALTIES: dict[str | None, Callable[[float, float], Penalty]] = {
    None: lambda alpha, beta: NoPenalty(),
    "frobenius": lambda alpha, beta: Frobenius(alpha),
    "1-1": SmoothAbsolute,
    "inf-1": SmoothLargest,
    "2-1": SmoothLength,
}
SCALES = ("spread", None)


class ShareBoostClassifier(FewFeatures):
    r"""ShareBoost: a linear classifier on few features, the same for all classes.

    .. math:: \min_{W, b} \; \sum_i c_i \ln \sum_r e^{[r \ne y_i] + h_r(x_i) - h_{y_i}(x_i)}
        + \Omega(W), \quad h(x) = W x + b, \quad \sum_i c_i = 1,

    with few nonzero columns of W. ShareBoost starts without features; each round chooses the
    candidate j with the largest gradient of the loss L, and then solves for the weights of all
    chosen candidates again:

    .. math:: j = \arg\max_j \; \Big\| \frac{\partial L}{\partial w_j} \Big\|_1 \Big/ t_j.

    Parameters
    ----------
    n_features_to_select : int > 0, default 10
        Number of candidates, or groups of candidates, to choose. Fewer are chosen, with a warning,
        if all that are left are constant, repeat chosen ones, or have no gradient. More features
        fit the training rows more closely and make predictions more expensive.
    dictionary : "columns", "stumps", "products", "pieces", "templates" or Dictionary
        The candidates: the features themselves, or features that a
        :class:`~kesler.dictionaries.Dictionary` derives from them.
    choice : "gradient", "line", "column" or "full", default "gradient"
        The criterion by which candidates are chosen: the gradient g, or the lowest objective over
        W + a g e_j' for numbers a, over W + u e_j' for vectors u, or over all weights of the chosen
        candidates and this one. Later rules fit better with the same number of features and take
        longer: the last three solve a problem for each candidate in each round.
    shortlist : int > 0 or None, default None
        Number of candidates with the largest gradients that the last three rules consider; None is
        all. Smaller values take less time.
    scale : "spread" or None, default "spread"
        The divisor t of gradients. With "spread", t^2 is the candidate's variance plus 0.025 times
        its squared largest deviation from its mean: units of measurement then have no effect, and
        candidates that are rarely nonzero are not overrated. None is 1, as in the source for
        features in [-1, 1].
    groups : int array of shape (n_candidates,) or None, default None
        The group of each candidate: a round chooses the group with the largest sum of gradients.
    loss : "margin-softmax" or "softmax", default "margin-softmax"
        Whether the scores of wrong classes are raised by 1, as above, or not.
    penalty : None, "frobenius", "1-1", "inf-1" or "2-1", default None
        Omega: 0, alpha times the sum of all squared weights, or a smooth approximation of alpha
        times the sum over features j of all absolute weights (L1), of the largest one or of the
        length of w_j:

        .. math:: \alpha \sum_{jr} \tfrac1\beta \ln \cosh \beta w_{rj}, \qquad
            \alpha \sum_j \tfrac1\beta \ln \Big( \tfrac1{2k} \sum_r
            e^{\beta w_{rj}} + e^{-\beta w_{rj}} \Big), \qquad
            \alpha \sum_j \sqrt{\|w_j\|^2 + \beta^{-2}} - \beta^{-1}.
    alpha : float > 0, default 1e-3
        Strength of the penalty. Larger values give smaller weights.
    beta : float > 0, default 100.0
        Sharpness of the approximations. Larger values are closer to the norms and take longer.
    bias : bool, default True
        Whether scores have an intercept b, which is not penalised.
    class_weight : mapping, "balanced" or None, default None
        Weights of classes, multiplied with `sample_weight`.
    tol : float > 0, default 1e-4
        The estimated excess of the objective over its minimum at which to stop a round, as a share
        of the objective (plus a hundredth of the objective at weights 0). Smaller values take
        longer.
    max_iter : int > 0, default 200
        Maximum number of steps to solve for weights in a round.
    n_rounds_no_change : int > 0 or None, default None
        Stop after this many rounds without a lower error on `eval_set`, and keep the round with the
        lowest error. None disables early stopping and keeps the last round.
    warm_start : bool, default False
        Whether `fit` continues from the last `fit` on the same rows instead of starting over.

    Attributes
    ----------
    support_ : int array of shape (n_chosen,)
        The chosen candidates in the order of choice.
    coef_ : array of shape (n_classes, n_columns)
        Weights of the columns of the chosen candidates, in that order.
    intercept_ : array of shape (n_classes,)
        0 without a bias.
    dictionary_ : Dictionary
        The fitted dictionary.
    path_ : list of Round
        All rounds, each with its candidate (with `groups`, the group), the loss, the gradient of
        the choice, the seconds since the start, and the error on `eval_set`. `path_.table()`
        returns them as columns.
    n_rounds_ : int
        Number of rounds of the classifier: all of the path, unless it stopped early.
    n_iter_ : int
        Number of steps to solve for weights, in all rounds.
    converged_ : bool
        Whether all rounds reached `tol`.
    dtype_ : dtype
        The precision of the rows of `fit`, float64 or float32; that of X in an export to ONNX.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, there is one class only, all weights are 0, or `groups`
        does not have one element per candidate.

    Warns
    -----
    UserWarning
        If fewer candidates are chosen than requested.
    ConvergenceWarning
        If a round does not converge within `max_iter` steps.

    Notes
    -----
    A round costs O(m d k) for m rows, d candidates (of one column) and k classes, and about ten
    steps of O(m n k) after n choices. Memory holds the columns of chosen candidates in the
    precision of X, and the weights after each round, 4 n^2 k bytes. Features given as float32 or as
    a memory map are not converted; sparse rows stay sparse. Rows with the same features and label
    are one row with the sum of their weights: rows are copied only if some repeat or weights
    differ within a class. A multiple of a chosen column is never
    chosen, and neither is a constant if there is a bias.

    As a scikit-learn selector it orders candidates by their numbers: `transform` returns the chosen
    ones in this order.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), "ShareBoost: Efficient multiclass learning with
    feature sharing".

    Examples
    --------
    >>> from kesler import ShareBoostClassifier
    >>> X = [[0, 1, 5], [1, 0, 5], [1, 1, 5], [0, 2, 5]]
    >>> model = ShareBoostClassifier(2, penalty="frobenius").fit(X, ["a", "b", "c", "a"])
    >>> model.support_.tolist(), model.at(1).support_.tolist(), model.predict([[0, 3, 5]]).tolist()
    ([0, 1], [0], ['a'])
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        *,
        dictionary: str | Dictionary = "columns",
        choice: Literal["gradient", "line", "column", "full"] = "gradient",
        shortlist: int | None = None,
        scale: Literal["spread"] | None = "spread",
        groups: Any = None,
        loss: Literal["margin-softmax", "softmax"] = "margin-softmax",
        penalty: Literal["frobenius", "1-1", "inf-1", "2-1"] | None = None,
        alpha: float = 1e-3,
        beta: float = 100.0,
        bias: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        n_rounds_no_change: int | None = None,
        warm_start: bool = False,
    ) -> None:
        keep_settings(self, locals())

    _weights: list[Floats]
    notes_: dict[str, Any]

    # ---- fitting --------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Self:
        """Choose candidates and solve for their weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels.
        sample_weight : array of shape (n_rows,) or None, default None
            The weight of each row, 0 or more; 2 is equivalent to the row twice, and 0 to leaving
            it out.
        eval_set : (X, y) or None, default None
            Validation rows, on which every round is evaluated. Rows with labels that the training
            rows do not have count as errors.

        Returns
        -------
        The estimator itself.
        """
        self._require_parameters(eval_set)
        goes_on = self.warm_start and hasattr(self, "path_")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=not goes_on
        )
        distinct = DistinctRows.of(X, y, row_weights(X, sample_weight))
        X = distinct.of_rows(X)
        X, labels, counts = _weighted(
            summed(X) if sparse.issparse(X) else X,
            distinct.codes,
            distinct.counts(self.class_weight),
        )
        classes, self.dtype_ = distinct.classes, X.dtype
        if goes_on:
            self._require_same(classes)
        else:
            dictionary = resolve_dictionary(self.dictionary)
            self._begin(fitted(dictionary, X, classes[labels], counts), classes)
        task = Task(labels, counts / counts.sum(), len(classes), MARGINS[self.loss])
        rows = LocalRows(self.dictionary_.pool(X), task)
        return self._choose(rows, eval_set, goes_on=goes_on)

    def _begin(self, dictionary: Dictionary, classes: npt.NDArray[Any]) -> None:
        """Reset the path."""
        self.dictionary_, self.classes_ = dictionary, classes
        self.path_, self._chosen = Path(), np.empty(0, dtype=np.int64)
        self.n_iter_, self.converged_ = 0, True

    def _choose(self: Self, rows: TrainingRows, eval_set: Any, *, goes_on: bool) -> Self:
        """Choose candidates on training rows, which may be distributed."""
        names, groups = self._numbered_groups()
        greedy = self._greedy(rows, groups)
        aside = None if eval_set is None else self._put_aside(eval_set)
        self._run(greedy, names, aside, goes_on=goes_on)
        self._warn(greedy)
        return self

    def _greedy(self, rows: TrainingRows, groups: Ints | None) -> Greedy:
        return Greedy(
            rows,
            len(self.classes_),
            PENALTIES[self.penalty](float(self.alpha), float(self.beta)),
            rule=self.choice,
            shortlist=None if self.shortlist is None else int(self.shortlist),
            scaled=self.scale is not None,
            bias=bool(self.bias),
            groups=groups,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )

    def _run(
        self, greedy: Greedy, names: Ints | None, aside: PutAside | None, *, goes_on: bool
    ) -> None:
        """Add rounds to the path, and keep the last or the best one."""
        if goes_on and self.path_:
            units = [each.candidate for each in self.path_]
            numbers = units if names is None else np.searchsorted(names, units).tolist()
            greedy.resume(numbers, self._weights[-1])
            self._judge_again(aside)
        else:
            self._weights = [greedy.weights]
        wanted = self.n_features_to_select - len(self.path_)
        with progress("ShareBoost", "features", wanted) as task:
            for each in task.count(islice(greedy.rounds(), wanted)):
                self._add(each, greedy, names, aside)
                if self._is_stale():
                    break
        self.converged_ = self.converged_ and greedy.all_converged
        self.n_iter_ = max(1, self.n_iter_)
        self._keep(self.path_.best if self._stops_early() else len(self.path_))

    def _add(self, each: Round, greedy: Greedy, names: Ints | None, aside: PutAside | None) -> None:
        """Add a round to the path, with its error on the validation rows."""
        self._weights.append(greedy.weights)
        error, new = None, greedy.chosen[len(self._chosen) :]
        if aside is not None:
            error = aside.error(new, self._weights[-1])
        name = each.candidate if names is None else int(names[each.candidate])
        self.path_.append(replace(each, candidate=name, validation_error=error))
        self._chosen = greedy.chosen
        self.n_iter_ += each.n_steps

    def _judge_again(self, aside: PutAside | None) -> None:
        """Evaluate the rounds of an earlier fit on the validation rows of this one."""
        begun = 0
        for number, each in enumerate(self.path_):
            new, begun = self._chosen[begun : each.n_chosen], each.n_chosen
            error = None if aside is None else aside.error(new, self._weights[number + 1])
            self.path_[number] = replace(each, validation_error=error)

    def _stops_early(self) -> bool:
        return self.n_rounds_no_change is not None and len(self.path_) > 0

    def _is_stale(self) -> bool:
        """Return whether the error has not fallen for `n_rounds_no_change` rounds."""
        patience = self.n_rounds_no_change
        return patience is not None and len(self.path_) - self.path_.best >= patience

    def _keep(self, n_rounds: int) -> None:
        """Set the attributes of the classifier after some rounds of the path."""
        n_chosen = self.path_[n_rounds - 1].n_chosen if n_rounds else 0
        weights = self._weights[n_rounds]
        self.n_rounds_, self.support_ = n_rounds, self._chosen[:n_chosen]
        self.coef_, self.intercept_ = np.ascontiguousarray(weights[1:].T), weights[0]

    def at(self: Self, n: int) -> Self:
        """Return the classifier after the first n rounds of the path.

        Raises
        ------
        KeslerError
            If n is not between 1 and the length of the path.
        """
        check_is_fitted(self)
        n = integer_of("n", n, 1, len(self.path_), ", the number of rounds of this fit")
        model = copy.copy(self)
        model.n_features_to_select = n
        model.path_, model._weights = Path(self.path_[:n]), self._weights[: n + 1]
        model._chosen = self._chosen[: self.path_[n - 1].n_chosen]
        model.n_iter_ = max(1, sum(each.n_steps for each in model.path_))
        model._keep(int(n))
        return model

    # ---- files ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], **notes: Any) -> None:
        """Write the model and its whole path to a file, without pickle.

        Parameters
        ----------
        path : file to write; an existing file is replaced as a whole.
        notes : values that JSON can hold; `load` returns them as `notes_`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        KeslerError
            If labels are neither numbers nor text, the dictionary is of a class of your own, or the
            file cannot be written.

        Notes
        -----
        The file is of the size of the weights after every round, 4 n^2 k bytes for n chosen
        features and k classes, and of the candidates of the dictionary.
        """
        from kesler.sharing.saving import save

        save(self, path, notes)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Return the model that `save` wrote, with the same scores bit for bit.

        Raises
        ------
        KeslerError
            If the file is missing, cut off, damaged, of a newer version, or of another estimator.

        Examples
        --------
        >>> import tempfile
        >>> from kesler import ShareBoostClassifier
        >>> path = tempfile.mkdtemp() + "/few.kesler"
        >>> ShareBoostClassifier(1).fit([[0.0], [1.0]], ["no", "yes"]).save(path, source="lab")
        >>> model = ShareBoostClassifier.load(path)
        >>> model.predict([[0.9]]).tolist(), model.notes_
        (['yes'], {'source': 'lab'})
        """
        from kesler.sharing.saving import load

        found: Self = load(cls, path)
        return found

    # ---- guarantees -----------------------------------------------------------------------------

    def certificate(
        self, W: Any, X: Any, y: Any, sample_weight: Any = None, *, delta: float = 0.05
    ) -> Certificate:
        """Return the bounds of Theorems 1 and 2 of the source for this fit, with the actual values.

        The theorems assume that weights are optimal after each round; they are optimal to `tol`.

        Parameters
        ----------
        W : array of shape (n_classes, n_columns)
            Any weights of the columns of all candidates, with whose loss that of the fit is
            compared.
        X, y, sample_weight : the arguments of `fit`.
        delta : float in (0, 1), default 0.05
            The probability with which the bound of Theorem 1 may fail.

        Raises
        ------
        KeslerError
            If a column that is chosen or has a nonzero weight in W is not within [-1, 1], the
            theorems do not cover the fit (they need scale=None, penalty=None, no groups or
            shortlist, and choice="gradient", "column" or "full"), or W has the wrong shape.
        """
        rows, y = self._rows(X), np.asarray(y)
        self._require_labels(y, rows, "y")
        distinct = DistinctRows.of(rows, y, row_weights(rows, sample_weight))
        if not np.array_equal(distinct.classes, self.classes_):
            raise KeslerError(
                "y has other labels than the fit, in rows of weight above 0: give the training rows"
            )
        counts = distinct.counts(self.class_weight)
        task = Task(distinct.codes, counts / counts.sum(), len(self.classes_), MARGINS[self.loss])
        return certified(self, task, distinct.of_rows(rows), W, delta)

    # ---- inputs ---------------------------------------------------------------------------------

    def _numbered_groups(self) -> tuple[Ints | None, Ints | None]:
        """Return the names of the groups and each candidate's group from 0; None without groups."""
        if self.groups is None:
            return None, None
        groups, n_candidates = np.asarray(self.groups), self.dictionary_.n_candidates_
        if groups.shape != (n_candidates,) or groups.dtype.kind not in "iu":
            raise KeslerError(
                f"groups is an array of {groups.dtype} of shape {groups.shape}: give a whole "
                f"number for each of the {n_candidates} candidates"
            )
        names, numbers = np.unique(groups, return_inverse=True)
        return names, numbers.astype(np.int64)

    def _put_aside(self, eval_set: Any) -> PutAside:
        X, y = eval_set
        rows = self._rows(X)
        return PutAside(self.dictionary_, rows, self._codes(y, rows, "eval_set's y"))

    def _codes(self, y: Any, rows: Any, name: str) -> Ints:
        """Return class numbers of labels, -1 for labels that the training rows do not have."""
        y = np.asarray(y)
        self._require_labels(y, rows, name)
        numbers = {label: code for code, label in enumerate(self.classes_.tolist())}
        return np.array([numbers.get(label, -1) for label in y.tolist()], dtype=np.int64)

    def _require_labels(self, y: npt.NDArray[Any], rows: Any, name: str) -> None:
        if y.ndim != 1:
            raise KeslerError(f"{name} has shape {y.shape}: give one label for each row")
        check_consistent_length(rows, y)

    def _require_same(self, classes: npt.NDArray[Any]) -> None:
        if not np.array_equal(classes, self.classes_):
            raise KeslerError(
                "warm_start=True continues the last fit, but these rows have other classes: "
                "give the same rows, or fit a new estimator"
            )
        if self.n_features_to_select < len(self.path_):
            raise KeslerError(
                f"n_features_to_select={self.n_features_to_select} is less than the "
                f"{len(self.path_)} rounds that warm_start=True continues from: use at("
                f"{self.n_features_to_select}), or choose a larger number"
            )

    def _require_parameters(self, eval_set: Any) -> None:
        for name in ("n_features_to_select", "max_iter"):
            integer_of(name, getattr(self, name), 1)
        for name in ("alpha", "beta", "tol"):
            number_of(name, getattr(self, name), above=0)
        known = {"choice": RULES, "scale": SCALES, "loss": MARGINS, "penalty": PENALTIES}
        for name, values in known.items():
            require_choice(name, getattr(self, name), values)
        for name in ("shortlist", "n_rounds_no_change"):
            if getattr(self, name) is not None:
                integer_of(name, getattr(self, name), 1, why=", or None")
        if self.n_rounds_no_change is not None and eval_set is None:
            raise KeslerError(
                "n_rounds_no_change needs validation rows: give fit eval_set=(X, y), or leave "
                "n_rounds_no_change out"
            )

    def _warn(self, greedy: Greedy) -> None:
        if not self.converged_:
            warn(
                f"the weights of a round did not converge to tol={self.tol:g} within "
                f"{self.max_iter} steps: raise max_iter or tol",
                ConvergenceWarning,
            )
        if len(self.path_) < self.n_features_to_select and not self._is_stale():
            unit = "candidates" if self.groups is None else "groups"
            warn(
                f"{len(self.path_)} were chosen, not n_features_to_select="
                f"{self.n_features_to_select}: of {greedy.n_units} {unit}, the others are "
                "constant, repeat those chosen, or have no gradient",
                UserWarning,
            )


def _weighted(X: Any, labels: Ints, counts: Floats) -> tuple[Any, Ints, Floats]:
    """Return the rows of weight above 0 with their labels and weights."""
    positive = counts > 0
    if positive.all():
        return X, labels, counts
    return X[positive], labels[positive], counts[positive]
