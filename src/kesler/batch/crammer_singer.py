"""CrammerSingerClassifier: the multiclass support vector machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.dual_ascent import (
    DualSolution,
    Optimum,
    Order,
    SlackProblem,
    duals_from_scores,
    solve,
    solve_with_free_intercept,
    with_constant,
)
from kesler.batch.estimator import ClassScores, row_weights, scores_of
from kesler.batch.scorers import (
    JointScorer,
    KernelScorer,
    Telling,
    is_per_class,
    parts_of,
    solve_svm,
)
from kesler.costs import Costs
from kesler.data.matrices import validate_data
from kesler.data.rows import MAX_FEATURES
from kesler.errors import KeslerError, integer_of, keep_settings, number_of, require_choice, warn
from kesler.hypotheses import Part
from kesler.kernels import resolve_kernel
from kesler.kernels.mercer import MercerKernel
from kesler.maps.feature_map import FeatureMap

Self = TypeVar("Self", bound="CrammerSingerClassifier")
Doubles = npt.NDArray[np.float64]


class CrammerSingerClassifier(ClassScores, ClassifierMixin, BaseEstimator):
    r"""The multiclass support vector machine of Crammer and Singer, with one slack per row.

    .. math::
        \min_W \tfrac12 \|W\|_F^2 + \sum_i C_i \max_r
        \left[ \delta(y_i, r) + \langle w_r - w_{y_i}, x_i \rangle \right], \quad
        \delta(y, y) = 0

    solved to a given duality gap, which bounds the distance of the objective from its optimum.

    Parameters
    ----------
    C : float > 0, default 1.0
        The cost of a unit of loss; :math:`C_i` is C times the weight of the row and of its class.
        Larger values fit the rows more closely and take longer.
    hypotheses : "multi", "single", "hybrid", part or list of parts, default "multi"
        The weights that classes share: one vector per class, one for all classes over a feature
        map, both, or any list of :class:`~kesler.hypotheses.PerClass`,
        :class:`~kesler.hypotheses.Shared` and :class:`~kesler.hypotheses.Grouped`.
    feature_map : "auto", name or map, default "auto"
        The feature map of the shared vector of "single" and "hybrid", as in
        :class:`~kesler.OnlineClassifier`; "auto" is "frequency" for sparse rows and "distance" for
        dense ones.
    kernel : "rbf", "polynomial", "linear", kernel or None, default None
        A Mercer kernel from :mod:`kesler.kernels`, or a custom one, in place of inner products of
        rows; for hypotheses without feature maps. None solves for weights.
    sigma : "auto" or float above 0, default "auto"
        The variance of "rbf"; ignored by other kernels. Larger values give smoother boundaries.
        "auto" is 0.04 times the median squared distance between training rows.
    delta : float, 0 or more, default 1.0
        The margin by which the right class must lead. Larger values give larger weights.
    costs : mapping {(right, wrong): cost}, callable or None, default None
        The cost of predicting one class where another is right, 1 by default: the margin is delta
        times the cost. See :class:`~kesler.costs.Costs`.
    class_weight : mapping {label: weight}, "balanced" or None, default None
        Weights of classes, 0 or more, 1 by default; "balanced" is n_rows / (n_classes * rows of
        the class), where a row counts with its weight.
    fit_intercept : bool, default True
        Whether each class has an intercept: the weight of a constant feature.
    regularise_intercept : bool, default True
        Whether intercepts are regularised like the other weights. If False, they are unrestricted
        except for their sum, which is 0, and the optimum is invariant to a shift of all rows; this
        takes about twice as long. False requires "multi" without a kernel.
    intercept_scaling : float > 0, default 1.0
        The value of the constant feature. Larger values regularise the intercepts less and take
        longer; ignored if intercepts are not regularised.
    tol : float > 0, default 1e-3
        The relative duality gap, (primal - dual) / primal, at which to stop. Smaller values are
        more exact and take longer.
    max_iter : int, 1 or more, default 1000
        Maximum number of visits per row, on average.
    order : "random" or "cyclic", default "random"
        The order in which a pass visits the rows: a new random order each time, or a fixed one,
        that of the data if the weights of each class are equal.
    random_state : int, RandomState or None, default None
        Controls the random orders; an int gives reproducible models.
    warm_start : bool, default False
        Whether `fit` starts from the dual variables of the last `fit` instead of weights 0. The
        rows must be the same, possibly followed by further ones. Dual variables are scaled to the
        new C and weights; those of new rows, and of rows with another label, start afresh.

    Attributes
    ----------
    coef_ : float64 array of shape (n_classes, n_features)
        The weights; two classes have two rows, which are negatives of each other if costs are
        symmetric.
    intercept_ : float64 array of shape (n_classes,)
        The intercepts; zeros without `fit_intercept`. Like `coef_`, only for "multi" without a
        kernel.
    weights_ : list of arrays of shape (n_features, n_hypotheses)
        For other hypotheses: one array per part, with the constant feature first.
    support_ : int64 array of shape (n_supports,)
        With a kernel, the numbers of the support rows; of copies, that of the first.
    dual_coef_ : float64 array of shape (n_supports, n_classes)
        With a kernel, the coefficients of the support rows in the score of each class.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    objective_, dual_objective_ : float
        The primal objective at `coef_`, and the dual one; the optimum lies between them.
    duality_gap_ : float
        Their difference, relative to the primal objective.
    n_iter_ : int
        Number of visits divided by the number of rows, rounded up; most visits are of rows whose
        dual variables still change.
    converged_ : bool
        Whether `duality_gap_` is `tol` or less.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, a kernel is used with a feature map or more than 16,384
        rows, sparse rows are used with a map or kernel that needs zeros, there are fewer than two
        classes, or all weights are 0. scikit-learn's validation raises ValueError.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` is reached before `tol`.

    Notes
    -----
    The solver is dual coordinate ascent. It solves the sub-problem of one row exactly, by
    projecting a vector onto a simplex; passes over the rows with most of the duality gap alternate
    with passes over all rows. If a pass gains little more than the next, the dual variables are
    extrapolated with Nesterov's momentum, and the reported weights are an average over the passes
    with more weight on recent ones; otherwise they are the last ones. The reported weights are
    scaled by the factor, close to 1, that minimises the primal objective. A visit costs O(nnz k),
    and less if few classes change. Fitting takes 16 bytes per weight and 16 per row and class, of
    which `warm_start` keeps 8. Rows may be float32 or float64 without a copy; weights are float64.
    Dense rows with mostly zeros are copied as sparse ones.

    Unregularised intercepts are found by proximal steps. Each solves the regularised problem with
    costs shifted by the last intercepts; the dual variables of a step are then projected onto the
    constraint that no class gains mass, to evaluate the gap.

    Other hypotheses and kernels use the solvers of :mod:`kesler.batch.coupled`, which solve the
    sub-problem of a row by pairwise steps; rows are converted to float32. The class statistics of
    maps are computed once, by an online pass over the training rows. With a map, a visit costs
    O(nnz k) evaluations of it; with a kernel, memory is 8 bytes per pair of rows.

    Rows with the same features and label are one row with the sum of their weights, so that a
    `sample_weight` of n gives the same result as n copies of the row. Distinct rows are in the
    order of their first copies, or of a hash of their values if weights differ within a class;
    medians are over distinct rows.

    References
    ----------
    Crammer and Singer (2001), the problem and its dual; Keerthi, Sundararajan, Chang, Hsieh and
    Lin (2008), a sequential dual method; Osokin et al. (2016), the gap as the sum of shares;
    Nesterov (1983), momentum; Shamir and Zhang (2013), the mean; Rockafellar (1976), proximal
    steps.

    Examples
    --------
    >>> from kesler import CrammerSingerClassifier
    >>> X, y = [[0, 2], [1, 3], [2, 0], [3, 1], [-2, -2], [-3, -2]], list("aabbcc")
    >>> model = CrammerSingerClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0, 4], [-4, -4]]).tolist(), model.duality_gap_ <= 1e-3
    (['a', 'c'], True)
    """

    _scorer: JointScorer | KernelScorer | None = None  # of other hypotheses than "multi"
    _shares: Any = None  # of the last dual variables, for a warm start

    def __init__(
        self,
        C: float = 1.0,
        *,
        hypotheses: str | Part | list[Part] = "multi",
        feature_map: str | FeatureMap = "auto",
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        delta: float = 1.0,
        costs: Mapping[Any, float] | Callable[[Any, Any], float] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        regularise_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        order: Order = "random",
        random_state: Any = None,
        warm_start: bool = False,
    ) -> None:
        keep_settings(self, locals())

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Fit the model to training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        y : labels of shape (n_rows,)
        sample_weight : array of shape (n_rows,) or None, default None
            Weights of rows, 0 or more, which multiply C; 2 is equivalent to the row twice, and 0 to
            leaving it out.
        start : fitted classifier or None, default None
            A classifier of the same classes to start from: an :class:`~kesler.OnlineClassifier` or
            any other with a `decision_function`. It has no dual variables, so it only determines
            the likely support vectors: the rows with its smallest margins. This saves at most one
            pass, since the first pass finds as much. For "multi" without a kernel; `warm_start` is
            then ignored.

        Returns
        -------
        The estimator itself.
        """
        self._require_parameters()
        if start is not None and not self._is_linear_per_class():
            raise KeslerError('start is for hypotheses="multi" without a kernel: leave it out')
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )
        if X.shape[1] >= MAX_FEATURES:
            raise KeslerError(
                f"X has {X.shape[1]} columns: give fewer than {MAX_FEATURES}, Kesler's maximum"
            )
        rows = DistinctRows.of(X, y, row_weights(X, sample_weight))
        classes, codes = rows.classes, rows.codes
        bounds = self.C * rows.counts(self.class_weight)
        options: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "duals": self._first_duals(rows, bounds),
        }
        margins, random = self._margins(classes), check_random_state(self.random_state)
        if self._is_linear_per_class():
            problem = SlackProblem(rows.of_rows(X), codes, bounds, margins, rows.numbers)
            if start is not None:
                scores, constant = scores_of(start, problem.X, classes), self._constant()
                options["duals"] = duals_from_scores(problem, scores, constant)
            optimum = self._solve(
                problem, classes, order=self.order, random_state=random, **options
            )
            return self._keep(optimum, optimum.duals, rows)
        found, duals, scorer = solve_svm(
            self._telling(X, rows),
            parts_of(self.hypotheses, self.feature_map, dense=not sparse.issparse(X)),
            None if self.kernel is None else resolve_kernel(self.kernel, self.sigma),
            bounds,
            margins,
            shuffle=random.permutation if self.order == "random" else np.sort,
            **options,
        )
        self._keep_scorer(scorer, rows)
        return self._keep(found, duals, rows)

    def _scores(self, X: Any) -> Doubles:
        X = self._rows(X)
        if self._scorer is not None:
            return self._scorer.scores(X)
        scores: Doubles = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores

    # ---- the problem ------------------------------------------------------------------------

    def _require_parameters(self) -> None:
        for name in ("C", "intercept_scaling", "tol"):
            number_of(name, getattr(self, name), above=0)
        number_of("delta", self.delta, least=0)
        integer_of("max_iter", self.max_iter, 1)
        if self.fit_intercept and not (self.regularise_intercept or self._is_linear_per_class()):
            raise KeslerError(
                'regularise_intercept=False needs hypotheses="multi" without a kernel: use '
                "regularise_intercept=True with a large intercept_scaling instead"
            )
        require_choice("order", self.order, ("random", "cyclic"))

    def _is_linear_per_class(self) -> bool:
        return self.kernel is None and is_per_class(self.hypotheses)

    def _telling(self, X: Any, rows: DistinctRows) -> Telling:
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return Telling.of(X, rows, constant)

    def _margins(self, classes: npt.NDArray[Any]) -> Doubles:
        """Return delta(y, r) for each pair of classes."""
        labels = classes.tolist()
        table = np.zeros((len(labels), len(labels)))
        costs = Costs({} if self.costs is None else self.costs)
        unknown = [label for label in costs.labels if label not in labels]
        if unknown:
            raise KeslerError(
                f"costs contain the label {unknown[0]!r}, which no row has: leave it out"
            )
        costs.fill(table, labels, 0, self.delta)
        return table

    def _solve(self, problem: SlackProblem, classes: npt.NDArray[Any], **options: Any) -> Optimum:
        """Solve the problem with the kind of intercept that is configured, and set the weights."""
        if not self.fit_intercept:
            optimum = solve(problem, **options)
            self._keep_weights(optimum.weights, np.zeros(problem.n_classes))
        elif self.regularise_intercept:
            optimum = solve(
                replace(problem, X=with_constant(problem.X, self.intercept_scaling)), **options
            )
            weights, constant = optimum.weights[:, :-1], optimum.weights[:, -1]
            self._keep_weights(weights, self.intercept_scaling * constant)
        else:
            found = solve_with_free_intercept(
                problem, centre=self._last_intercept(classes), **options
            )
            self._keep_weights(found.weights, found.intercept)
            return found
        return optimum

    def _constant(self) -> float:
        """Return the value of the feature whose weight is a regularised intercept, 0 for none."""
        return self.intercept_scaling if self.fit_intercept and self.regularise_intercept else 0.0

    def _last_intercept(self, classes: npt.NDArray[Any]) -> Doubles | None:
        """Return the intercepts of the last fit, if it had the same classes."""
        known = self.warm_start and hasattr(self, "intercept_")
        return self.intercept_ if known and np.array_equal(classes, self.classes_) else None

    # ---- the solution -----------------------------------------------------------------------

    def _first_duals(self, rows: DistinctRows, bounds: Doubles) -> Doubles | None:
        """Return the last dual variables scaled to new bounds, or None without a warm start.

        A distinct row keeps the last shares of its first copy if its label is unchanged.
        """
        if not self.warm_start or self._shares is None:
            return None
        shares = np.eye(len(rows.classes))[rows.codes]
        old_classes, old_rows, old = self._shares
        if np.array_equal(rows.classes, old_classes):
            known = np.flatnonzero(rows.numbers < len(old_rows.members))
            before = old_rows.members[rows.numbers[known]]
            same = (before >= 0) & (old_rows.codes[before] == rows.codes[known])
            shares[known[same]] = old[before[same]]
        return shares * bounds[:, None]

    def _forget(self) -> None:
        """Remove the attributes of a previous fit."""
        for name in ("coef_", "intercept_", "weights_", "support_", "dual_coef_", "_scorer"):
            self.__dict__.pop(name, None)

    def _keep_weights(self, weights: Doubles, intercept: Doubles) -> None:
        self._forget()
        self.coef_, self.intercept_ = np.ascontiguousarray(weights), intercept

    def _keep_scorer(self, scorer: JointScorer | KernelScorer, rows: DistinctRows) -> None:
        self._forget()
        self._scorer = scorer
        if isinstance(scorer, KernelScorer):
            self.support_, self.dual_coef_ = rows.numbers[scorer.numbers], scorer.coefficients
        else:
            self.weights_ = scorer.hypotheses.weights_of_parts(scorer.weights)

    def _keep(self: Self, optimum: DualSolution, duals: Doubles, rows: DistinctRows) -> Self:
        self.classes_ = rows.classes
        self.objective_, self.dual_objective_ = optimum.objective, optimum.dual_objective
        self.duality_gap_ = optimum.relative_gap
        self.n_iter_ = math.ceil(optimum.n_passes)
        self.converged_ = optimum.converged
        shares = (rows.classes, rows, _shares_of(duals, rows.codes)) if self.warm_start else None
        self._shares = shares
        if not self.converged_:
            self._warn()
        return self

    def _warn(self) -> None:
        warn(
            f"the relative duality gap is {self.duality_gap_:.2g} after {self.n_iter_} passes over "
            f"the rows, above tol={self.tol:g}: raise max_iter={self.max_iter}, scale the features "
            "to similar ranges, or choose a smaller C or a larger tol",
            ConvergenceWarning,
        )


def _shares_of(duals: Doubles, codes: npt.NDArray[np.int64]) -> Doubles:
    """Return the dual variables divided by their sum; rows of weight 0 start afresh."""
    shares = duals.copy()
    idle = np.flatnonzero(shares.sum(axis=1) == 0)
    shares[idle, codes[idle]] = 1.0
    return shares / shares.sum(axis=1, keepdims=True)
