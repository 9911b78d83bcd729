"""CrammerSingerClassifier: the multiclass support vector machine, as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

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
from kesler.batch.estimator import ClassScores, scores_of
from kesler.batch.scorers import (
    JointScorer,
    KernelScorer,
    Telling,
    is_per_class,
    parts_of,
    rows_of,
    solve_svm,
)
from kesler.data.labels import plain
from kesler.data.rows import MAX_FEATURES
from kesler.errors import KeslerError
from kesler.parts.costs import Costs
from kesler.parts.hypotheses import Part
from kesler.parts.kernels import resolve_kernel
from kesler.parts.kernels.mercer import MercerKernel
from kesler.parts.maps.feature_map import FeatureMap

Self = TypeVar("Self", bound="CrammerSingerClassifier")
Doubles = npt.NDArray[np.float64]


class CrammerSingerClassifier(ClassScores, ClassifierMixin, BaseEstimator):
    r"""The multiclass support vector machine of Crammer and Singer, one slack a row.

    .. math::
        \min_W \tfrac12 \|W\|_F^2 + \sum_i C_i \max_r
        \left[ \delta(y_i, r) + \langle w_r - w_{y_i}, x_i \rangle \right], \quad
        \delta(y, y) = 0

    solved to a duality gap: what is reported is never further from the optimum than that.

    Parameters
    ----------
    C : float > 0, default 1.0
        What a unit of loss costs; :math:`C_i` is C times the weight of the row and of its class.
        Larger values fit the rows more closely and take longer.
    hypotheses : "multi", "single", "hybrid", part or list of parts, default "multi"
        Which classes share which weights: one vector for each class, one for all over a feature
        map, both, or any list of :class:`~kesler.hypotheses.PerClass`,
        :class:`~kesler.hypotheses.Shared` and :class:`~kesler.hypotheses.Grouped`.
    feature_map : "auto", name or map, default "auto"
        The view of a row that the shared vector of "single" and "hybrid" has, as
        :class:`~kesler.OnlineClassifier` takes it; "auto" is "frequency" for sparse rows and
        "distance" for dense ones.
    kernel : "rbf", "polynomial", "linear", kernel or None, default None
        A Mercer kernel of :mod:`kesler.kernels` or the user's own, in place of inner products of
        rows; for hypotheses without feature maps. None is for weights.
    sigma : "auto" or float above 0, default "auto"
        The variance of "rbf"; others don't look at it. Larger values: smoother boundaries. "auto"
        is 0.04 times the median squared distance between training rows.
    delta : float, 0 or more, default 1.0
        The margin that the right class must lead by. Larger values make larger weights.
    costs : mapping {(right, wrong): cost}, callable or None, default None
        What it costs to predict one class where another is right, 1 unless told: the margin is
        delta times that. See :class:`~kesler.costs.Costs`.
    class_weight : mapping {label: weight}, "balanced" or None, default None
        Weights of classes, 0 or more, 1 unless told; "balanced" is n_rows / (n_classes * rows of
        the class).
    fit_intercept : bool, default True
        Whether each class has a threshold: the weight of one more feature, the same in all rows.
    regularise_intercept : bool, default True
        Whether thresholds are regularised as the other weights are. Without, they are as large as
        the rows ask for, of sum 0, and the optimum does not change where all rows are moved alike;
        it takes about twice as long. For "multi" without a kernel.
    intercept_scaling : float > 0, default 1.0
        The value of that feature. Larger values regularise the thresholds less and take longer;
        where they are not regularised it is not looked at.
    tol : float > 0, default 1e-3
        The relative duality gap, (primal - dual) / primal, at which to stop. Smaller values are
        more exact and take longer.
    max_iter : int, 1 or more, default 1000
        How often each row is visited at most, in the mean.
    order : "random" or "cyclic", default "random"
        In which order a pass visits rows: a new random one each time, or that of the data.
    random_state : int, RandomState or None, default None
        Where random orders come from; an int gives the same model each time.
    warm_start : bool, default False
        Whether `fit` begins with the dual variables of the last `fit` instead of weights 0, row by
        row: of the same rows, or of rows that begin with the same. They are scaled to the new C
        and weights; rows beyond, and those whose label is another, begin anew.

    Attributes
    ----------
    coef_ : float64 array of shape (n_classes, n_features)
        The weights; two classes have two rows, each the other's opposite if costs are symmetric.
    intercept_ : float64 array of shape (n_classes,)
        The thresholds; zeros without `fit_intercept`. Like `coef_`, of "multi" without a kernel
        alone.
    weights_ : list of arrays of shape (n_features, n_hypotheses)
        Of other hypotheses: one array a part, the constant feature before all others.
    support_ : int64 array of shape (n_supports,)
        With a kernel, the rows that scores are sums over.
    dual_coef_ : float64 array of shape (n_supports, n_classes)
        With a kernel, what each of them counts in the score of each class.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    objective_, dual_objective_ : float
        The primal objective at `coef_`, and the dual one; the optimum lies between them.
    duality_gap_ : float
        Their difference, relative to the primal objective.
    n_iter_ : int
        Visits of rows in numbers of rows, rounded up: most visits are of rows that still move.
    converged_ : bool
        Whether `duality_gap_` is `tol` or less.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, a kernel meets a feature map or more than 16,384 rows,
        sparse rows meet a map or a kernel that looks at zeros, there are fewer than two classes, or
        no row weighs anything. What scikit-learn's validation refuses is a ValueError.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` came before `tol`.

    Notes
    -----
    Dual coordinate ascent: the sub-problem of one row is solved exactly, the projection of a vector
    onto a simplex; passes over the rows that hold most of the duality gap alternate with passes
    over all. Where a pass brings little more than the next, dual variables are given Nesterov's
    momentum, and the weights are the mean of those after the passes so far, recent ones first;
    else they are the last ones. They are stretched by the factor, close to 1, that suits the primal
    objective best. A visit costs O(nnz k), and less where few classes move; memory while it learns
    is 16 bytes for each weight and 16 for each row and class, of which `warm_start` keeps 8. Values
    are taken as they come, float32 or float64; weights are float64. Dense rows of mostly zeros are
    copied as sparse ones.

    An intercept that is not regularised is found by proximal steps, each the regularised problem
    with costs that the last intercept moved; the dual variables of a step are repaired, so that no
    class gains mass, before the gap is taken.

    Other hypotheses and kernels have solvers of their own, :mod:`kesler.batch.coupled` and
    :mod:`kesler.batch.coupled`, in which the sub-problem of a row is solved by pairwise
    steps; rows are then taken in float32. What maps know of classes is computed once, over the
    training rows, as an online learner would have it after them. Over a map a visit costs
    O(nnz k) evaluations of it; with a kernel memory is 8 bytes for each two rows.

    `sample_weight` of a row is worth as many copies of it, up to `tol`.

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
        self.C = C
        self.hypotheses = hypotheses
        self.feature_map = feature_map
        self.kernel = kernel
        self.sigma = sigma
        self.delta = delta
        self.costs = costs
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.regularise_intercept = regularise_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.order = order
        self.random_state = random_state
        self.warm_start = warm_start

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Solve the problem of these rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        y : labels of shape (n_rows,)
        sample_weight : array of shape (n_rows,) or None, default None
            Weights of rows, 0 or more; they multiply C.
        start : fitted classifier or None, default None
            A learner of the same classes to begin from, an :class:`~kesler.OnlineClassifier` or
            any that has a `decision_function`. It holds no dual variables, so that only which rows
            it is least sure of is taken from it, the likely support vectors. That spares a pass or
            none: the first pass finds as much. For "multi" without a kernel; `warm_start` is then
            not looked at.

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
            raise KeslerError(f"X has {X.shape[1]} columns: Kesler takes less than {MAX_FEATURES}")
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise KeslerError(
                f"y holds one class, {plain(classes[0])!r}: a classifier needs rows of two or more"
            )
        bounds = self._bounds(X, y, classes, codes, sample_weight)
        targets: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "duals": self._first_duals(classes, codes, bounds),
        }
        margins, random = self._margins(classes), check_random_state(self.random_state)
        if self._is_linear_per_class():
            problem = SlackProblem(X, codes, bounds, margins)
            if start is not None:
                scores, constant = scores_of(start, X, classes), self._constant()
                targets["duals"] = duals_from_scores(problem, scores, constant)
            optimum = self._solve(
                problem, classes, order=self.order, random_state=random, **targets
            )
            return self._keep(optimum, optimum.duals, classes, codes)
        found, duals, scorer = solve_svm(
            self._telling(X, classes, codes, sample_weight),
            parts_of(self.hypotheses, self.feature_map, dense=not sparse.issparse(X)),
            None if self.kernel is None else resolve_kernel(self.kernel, self.sigma),
            bounds,
            margins,
            shuffle=random.permutation if self.order == "random" else np.sort,
            **targets,
        )
        self._keep_scorer(scorer)
        return self._keep(found, duals, classes, codes)

    def _scores(self, X: Any) -> Doubles:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if hasattr(self, "_scorer"):
            return self._scorer.scores(X)
        scores: Doubles = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores

    # ---- what is to be solved ---------------------------------------------------------------

    def _require_parameters(self) -> None:
        for name in ("C", "intercept_scaling", "tol"):
            _require_number(name, getattr(self, name), above_zero=True)
        _require_number("delta", self.delta, above_zero=False)
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise KeslerError(f"max_iter={self.max_iter!r} must be a whole number, 1 or more")
        if self.fit_intercept and not (self.regularise_intercept or self._is_linear_per_class()):
            raise KeslerError(
                'an intercept that is not regularised is for hypotheses="multi" without a kernel: '
                "leave regularise_intercept=True, with a large intercept_scaling, for others"
            )
        if self.order not in ("random", "cyclic"):
            raise KeslerError(f'order={self.order!r} must be "random" or "cyclic"')

    def _is_linear_per_class(self) -> bool:
        return self.kernel is None and is_per_class(self.hypotheses)

    def _telling(
        self,
        X: Any,
        classes: npt.NDArray[Any],
        codes: npt.NDArray[np.int64],
        sample_weight: Any,
    ) -> Telling:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return Telling(rows_of(X), classes.tolist(), codes, weights, constant)

    def _bounds(
        self,
        X: Any,
        y: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        codes: npt.NDArray[np.int64],
        sample_weight: Any,
    ) -> Doubles:
        """Return the C_i."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        of_classes = compute_class_weight(self.class_weight, classes=classes, y=y)
        bounds: Doubles = self.C * weights * of_classes[codes]
        if (bounds < 0).any():
            row = int(np.flatnonzero(bounds < 0)[0])
            raise KeslerError(
                f"row {row} weighs {weights[row]:g} and its class {of_classes[codes[row]]:g}: "
                "weights must be 0 or more"
            )
        if not bounds.any():
            raise KeslerError("no row has a weight above 0, so there is nothing to learn from")
        return bounds

    def _margins(self, classes: npt.NDArray[Any]) -> Doubles:
        """Return delta(y, r) for each pair of classes."""
        labels = classes.tolist()
        table = np.zeros((len(labels), len(labels)))
        costs = Costs({} if self.costs is None else self.costs)
        unknown = [label for label in costs.labels if label not in labels]
        if unknown:
            raise KeslerError(f"costs name the label {unknown[0]!r}, which no row has")
        costs.fill(table, labels, 0, self.delta)
        return table

    def _solve(self, problem: SlackProblem, classes: npt.NDArray[Any], **targets: Any) -> Optimum:
        """Solve the problem with such an intercept as there is to be, and keep the weights."""
        if not self.fit_intercept:
            optimum = solve(problem, **targets)
            self._keep_weights(optimum.weights, np.zeros(problem.n_classes))
        elif self.regularise_intercept:
            optimum = solve(
                replace(problem, X=with_constant(problem.X, self.intercept_scaling)), **targets
            )
            weights, constant = optimum.weights[:, :-1], optimum.weights[:, -1]
            self._keep_weights(weights, self.intercept_scaling * constant)
        else:
            found = solve_with_free_intercept(
                problem, centre=self._last_intercept(classes), **targets
            )
            self._keep_weights(found.weights, found.intercept)
            return found
        return optimum

    def _constant(self) -> float:
        """Return the value of the feature whose weight is a regularised threshold, 0 for none."""
        return self.intercept_scaling if self.fit_intercept and self.regularise_intercept else 0.0

    def _last_intercept(self, classes: npt.NDArray[Any]) -> Doubles | None:
        """Return the thresholds of the last fit, if it was of the same classes."""
        known = self.warm_start and hasattr(self, "intercept_")
        return self.intercept_ if known and np.array_equal(classes, self.classes_) else None

    # ---- what was found ---------------------------------------------------------------------

    def _first_duals(
        self, classes: npt.NDArray[Any], codes: npt.NDArray[np.int64], bounds: Doubles
    ) -> Doubles | None:
        """Return dual variables scaled to new bounds, None to begin anew.

        Each row keeps its shares of the last time, if it has the same label now.
        """
        if not (self.warm_start and hasattr(self, "_shares")):
            return None
        shares = np.zeros((len(codes), len(classes)))
        shares[np.arange(len(codes)), codes] = 1.0
        old_classes, old_codes, old = self._shares
        n = min(len(codes), len(old_codes))
        if np.array_equal(classes, old_classes):
            same = np.flatnonzero(codes[:n] == old_codes[:n])
            shares[same] = old[same]
        return shares * bounds[:, None]

    def _forget(self) -> None:
        """Forget what other hypotheses have left."""
        for name in ("coef_", "intercept_", "weights_", "support_", "dual_coef_", "_scorer"):
            self.__dict__.pop(name, None)

    def _keep_weights(self, weights: Doubles, intercept: Doubles) -> None:
        self._forget()
        self.coef_, self.intercept_ = np.ascontiguousarray(weights), intercept

    def _keep_scorer(self, scorer: JointScorer | KernelScorer) -> None:
        self._forget()
        self._scorer = scorer
        if isinstance(scorer, KernelScorer):
            self.support_, self.dual_coef_ = scorer.numbers, scorer.coefficients
        else:
            self.weights_ = scorer.hypotheses.weights_of_parts(scorer.weights)

    def _keep(
        self: Self,
        optimum: DualSolution,
        duals: Doubles,
        classes: npt.NDArray[Any],
        codes: npt.NDArray[np.int64],
    ) -> Self:
        self.classes_ = classes
        self.objective_, self.dual_objective_ = optimum.objective, optimum.dual_objective
        self.duality_gap_ = optimum.relative_gap
        self.n_iter_ = math.ceil(optimum.n_passes)
        self.converged_ = optimum.converged
        self.__dict__.pop("_shares", None)
        if self.warm_start:
            self._shares = classes, codes, _shares_of(duals, codes)
        if not self.converged_:
            self._warn()
        return self

    def _warn(self) -> None:
        warnings.warn(
            f"the relative duality gap is {self.duality_gap_:.2g} after {self.n_iter_} passes over "
            f"the rows, above tol={self.tol:g}: raise max_iter={self.max_iter}, bring the features "
            "to like scales, or take a smaller C or a larger tol",
            ConvergenceWarning,
            stacklevel=4,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _require_number(name: str, value: Any, *, above_zero: bool) -> None:
    least = np.nextafter(0.0, 1.0) if above_zero else 0.0
    if isinstance(value, (int, float, np.number)) and least <= value < math.inf:
        return
    capacity = "above 0" if above_zero else "0 or more"
    raise KeslerError(f"{name}={value!r} must be a finite number, {capacity}")


def _shares_of(duals: Doubles, codes: npt.NDArray[np.int64]) -> Doubles:
    """Return the dual variables as parts of their sum; a row that weighs nothing begins anew."""
    shares = duals.copy()
    idle = np.flatnonzero(shares.sum(axis=1) == 0)
    shares[idle, codes[idle]] = 1.0
    return shares / shares.sum(axis=1, keepdims=True)
