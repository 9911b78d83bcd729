"""MixedNormClassifier: few features for all classes by a convex mixed norm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kesler.baselines.mixed_norm_problem import (
    NORMS,
    ColumnModel,
    MatrixColumns,
    MixedNorm,
    MixedNormName,
    MixedNormProblem,
    SingleColumns,
)
from kesler.baselines.proximal import Optimum, solve
from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.estimator import row_weights
from kesler.batch.softmax import MARGINS, summed
from kesler.data.labels import plain
from kesler.data.matrices import validate_data
from kesler.dictionaries.dictionary import Columns, Dictionary, fitted
from kesler.dictionaries.registry import resolve_dictionary
from kesler.errors import KeslerError, integer_of, keep_settings, number_of, require_choice, warn
from kesler.progress import progress
from kesler.sharing.few_features import FewFeatures

Self = TypeVar("Self", bound="MixedNormClassifier")
Doubles = npt.NDArray[np.float64]

# The largest absolute feature value, so that sums of squares do not overflow.
MOST_MAGNITUDE = 1e100


class MixedNormClassifier(FewFeatures):
    r"""Multinomial logistic regression with a mixed norm that selects few features.

    .. math:: \min_{W, b} \; \frac{\sum_i c_i \, \ell(W x_i + b, y_i)}{\sum_i c_i}
        + \alpha \sum_j \|W_{\cdot j}\|

    with the loss "margin-softmax" or "softmax", respectively,

    .. math:: \ell(h, y) = \ln \sum_r e^{[r \ne y] + h_r - h_y}, \qquad
        \ell(h, y) = \ln \sum_r e^{h_r - h_y}

    and the norm over the classes :math:`\max_r |W_{rj}|` ("inf-1") or
    :math:`(\sum_r W_{rj}^2)^{1/2}` ("2-1"). Both exclude features for
    all classes at once.
    This is the convex relaxation of the problem that :class:`~kesler.ShareBoostClassifier` solves
    greedily.

    Parameters
    ----------
    alpha : float > 0, default 0.01
        The weight of the norm relative to the mean loss. Larger values choose fewer features (none
        from `alpha_max_` on) and are solved faster.
    norm : "inf-1", "2-1" or "1-1", default "inf-1"
        "inf-1" penalises only the largest absolute weight of a feature, so many classes share this
        magnitude; "2-1" shrinks the weights of a feature proportionally. "1-1" is the L1 norm
        of all weights: it makes single weights zero, and features seldom, for comparison.
    loss : "margin-softmax" or "softmax", default "margin-softmax"
        With a margin, the scores of wrong classes are raised by 1.
    dictionary : "columns", "stumps", "products", "templates" or Dictionary, default "columns"
        The candidates: the features themselves, or features that a
        :class:`~kesler.dictionaries.Dictionary` of single columns derives from them. Candidates are
        processed in blocks; only the columns that may have a nonzero weight are stored.
    fit_intercept : bool, default True
        Whether scores have an intercept b, which is not penalised.
    class_weight : mapping, "balanced" or None, default None
        Weights of classes, multiplied with `sample_weight`; "balanced" gives all classes the same
        total weight.
    tol : float > 0, default 1e-4
        The duality gap, as a share of the objective, at which to stop. Smaller values are more
        exact and take longer.
    max_iter : int, 1 or more, default 1000
        Maximum number of proximal steps.
    warm_start : bool, default False
        Whether `fit` starts from the last solution, if candidates and classes are the same.

    Attributes
    ----------
    support_ : int64 array of shape (n_chosen,)
        The candidates with nonzero weights, sorted.
    coef_ : float64 array of shape (n_classes, n_chosen)
        Their weights.
    intercept_ : float64 array of shape (n_classes,)
        The intercepts, with mean 0.
    alpha_max_ : float
        The smallest alpha that chooses no feature: the largest dual norm of the gradient at W = 0
        and the best b.
    loss_, objective_, dual_objective_ : float
        The mean loss, the final objective, and a lower bound on its minimum.
    duality_gap_ : float
        (objective_ - dual_objective_) / objective_.
    n_iter_ : int
        Number of proximal steps.
    converged_ : bool
        Whether `duality_gap_` is at most `tol`.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    dictionary_ : Dictionary
        The fitted dictionary.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, there is one class only, a class has no row of weight
        above 0, or a candidate is a group of columns. scikit-learn's validation raises ValueError,
        for example for NaN.

    Warns
    -----
    ConvergenceWarning
        If the solver does not converge within `max_iter` steps.

    Notes
    -----
    The solver takes accelerated proximal steps over a growing set of columns, in the metric of
    their weighted Gram matrix. Columns are added by the size of their gradients, in one pass over
    all candidates per round, and a few rounds per alpha. With s columns in the set (about three
    times those chosen), a step costs O(n_rows s n_classes), and the occasional Gram matrix
    O(n_rows s^2); memory is 8 bytes per row and column of the set, which is dense even for sparse
    rows.

    With an intercept, constant features have weight 0. For identical features, any split of the
    weight between them is optimal, and one is returned. Classes with a single row need no special
    treatment. For two classes, the rows of W are negatives of each other up to a constant that does
    not change the objective.

    References
    ----------
    Duchi and Singer (2009), "Boosting with structural sparsity", the problem; Beck and Teboulle
    (2009), acceleration; O'Donoghue and Candes (2015), restarts; Quattoni, Carreras, Collins and
    Darrell (2009), the projection that "inf-1" needs.

    Examples
    --------
    >>> from kesler import MixedNormClassifier
    >>> X = [[0, 2, 1], [0, 3, 1], [2, 0, 1], [3, 0, 0], [0, 0, 1], [-1, 0, 0]]
    >>> model = MixedNormClassifier(alpha=0.1).fit(X, list("aabbcc"))
    >>> model.predict([[0, 4, 0]]).tolist(), model.get_support().tolist()
    (['a'], [True, True, False])
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        norm: MixedNormName = "inf-1",
        loss: Literal["margin-softmax", "softmax"] = "margin-softmax",
        dictionary: str | Dictionary = "columns",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        keep_settings(self, locals())

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels.
        sample_weight : array of shape (n_rows,) or None, default None
            The weight of each row, 0 or more; 2 is equivalent to the row twice, and 0 to leaving
            it out.

        Returns
        -------
        The estimator itself.
        """
        last = self._last() if self.warm_start else None
        problem = self._prepare(X, y, sample_weight)
        start = self._start(last, problem)
        optimum = solve(problem, float(self.alpha), start, self.tol, int(self.max_iter))
        return self._keep(optimum, problem.alpha_max)

    def path(
        self: Self,
        X: Any,
        y: Any,
        alphas: int | Iterable[float] = 100,
        *,
        eps: float = 1e-3,
        n_features: int | None = None,
        sample_weight: Any = None,
    ) -> list[Self]:
        """Return classifiers for decreasing alpha, each started from the one before.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        alphas : int, 2 or more, or numbers above 0, default 100
            The number of values, spaced evenly on a log scale from `alpha_max_`, which chooses
            nothing, to eps times that; or the values themselves. The estimator's `alpha` is
            ignored.
        eps : float, above 0 and below 1, default 1e-3
            The ratio of the last alpha to `alpha_max_`. Smaller values end with more features.
        n_features : int or None, default None
            Stop after the first classifier with at least this many features.

        Returns
        -------
        list of fitted classifiers
            `support_`, `loss_` and `duality_gap_` of each describe the path.

        Raises
        ------
        KeslerError
            As `fit`, or if an alpha is out of range, or if `alpha_max_` is 0.
        """
        prepared = clone(self)
        problem = prepared._prepare(X, y, sample_weight)
        alpha_max, model = problem.alpha_max, ColumnModel.empty(problem.n_classes)
        found: list[Self] = []
        path = _descending(alphas, alpha_max, eps)
        with progress("path", "alphas", len(path)) as task:
            for alpha in task.count(path):
                optimum = solve(problem, alpha, model, self.tol, int(self.max_iter))
                model = optimum.model
                each = clone(self).set_params(alpha=alpha)
                each.__dict__.update({k: v for k, v in vars(prepared).items() if k.endswith("_")})
                found.append(each._keep(optimum, alpha_max))
                if n_features is not None and len(model.columns) >= n_features:
                    break
        return found

    # ---- the problem ------------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> MixedNormProblem:
        """Validate the input and return the problem over the rows of weight above 0."""
        self._require_parameters()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        _require_moderate(X)
        distinct = DistinctRows.of(X, y, row_weights(X, sample_weight))
        counts, rows = self._counts(distinct), distinct.of_rows(X)
        rows = summed(rows) if sparse.issparse(X) else rows
        self.classes_, self.dtype_ = distinct.classes, X.dtype
        self.dictionary_: Dictionary = fitted(
            resolve_dictionary(self.dictionary), rows, distinct.y, counts
        )
        is_plain = isinstance(self.dictionary_, Columns)
        return MixedNormProblem(
            MatrixColumns(rows) if is_plain else SingleColumns(self.dictionary_.pool(rows)),
            distinct.codes,
            counts / counts.sum(),
            len(distinct.classes),
            MixedNorm(self.norm),
            MARGINS[self.loss],
            bool(self.fit_intercept),
        )

    def _counts(self, rows: DistinctRows) -> Doubles:
        """Return the weights of rows."""
        counts = rows.counts(self.class_weight)
        if not counts.all():
            label = plain(rows.y[np.flatnonzero(counts == 0)[0]])
            raise KeslerError(f"class_weight of {label!r} is 0: leave its rows out")
        return counts

    def _require_parameters(self) -> None:
        for name in ("alpha", "tol"):
            number_of(name, getattr(self, name), above=0)
        integer_of("max_iter", self.max_iter, 1)
        require_choice("norm", self.norm, NORMS)
        require_choice("loss", self.loss, MARGINS)

    # ---- the solution -----------------------------------------------------------------------

    def _last(self) -> tuple[npt.NDArray[Any], int, ColumnModel] | None:
        """Return the classes, number of candidates and model of the last `fit`, or None."""
        if not hasattr(self, "support_"):
            return None
        weights = np.ascontiguousarray(self.coef_.T)
        model = ColumnModel(self.support_, weights, self.intercept_)
        return self.classes_, self.dictionary_.n_candidates_, model

    def _start(
        self, last: tuple[npt.NDArray[Any], int, ColumnModel] | None, problem: MixedNormProblem
    ) -> ColumnModel:
        if last is not None:
            classes, n_candidates, model = last
            if n_candidates == problem.columns.n_columns and np.array_equal(classes, self.classes_):
                return model
        return ColumnModel.empty(problem.n_classes)

    def _keep(self: Self, optimum: Optimum, alpha_max: float) -> Self:
        model = optimum.model
        self.support_ = model.columns
        self.coef_ = np.ascontiguousarray(model.weights.T)
        self.intercept_ = model.intercepts - model.intercepts.mean()
        self.alpha_max_, self.loss_ = alpha_max, optimum.loss
        self.objective_, self.dual_objective_ = optimum.objective, optimum.dual_objective
        self.duality_gap_ = optimum.relative_gap
        self.n_iter_, self.converged_ = int(optimum.n_passes), optimum.converged
        if not self.converged_:
            warn(
                f"the relative duality gap at alpha={self.alpha:g} is {self.duality_gap_:.1e}, "
                f"above tol={self.tol:g}, after {self.n_iter_} steps: raise max_iter, tol or "
                "alpha, or scale features to similar ranges",
                ConvergenceWarning,
            )
        return self


def _require_moderate(X: Any) -> None:
    stored: Any = X
    values = stored.data if sparse.issparse(X) else X
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    if largest > MOST_MAGNITUDE:
        raise KeslerError(
            f"features as large as {largest:.1e} have sums of squares that may overflow: scale "
            "features to about 1"
        )


def _descending(alphas: int | Iterable[float], alpha_max: float, eps: float) -> list[float]:
    """Return the alphas of a path, the largest first."""
    if isinstance(alphas, Iterable):
        given = sorted(alphas, reverse=True)
        return [number_of("an alpha of alphas", alpha, above=0) for alpha in given]
    n_alphas = integer_of("alphas", alphas, 2, why=", or a sequence of numbers")
    eps = number_of("eps", eps, above=0, below=1)
    if alpha_max == 0:
        raise KeslerError(
            "no candidate distinguishes the classes, so alpha_max is 0 and there is no path: give "
            "features that are not constant"
        )
    return [float(alpha) for alpha in np.geomspace(alpha_max, eps * alpha_max, n_alphas)]
