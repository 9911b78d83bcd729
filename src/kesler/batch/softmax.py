"""SoftmaxClassifier: multinomial logistic regression."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from kesler.batch.design import DensePerClass, Design, PerClassDesign, SparsePerClass
from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.estimator import ClassScores, linear_weights_of, row_weights
from kesler.batch.frozen import JointDesign
from kesler.batch.newton import SmoothObjective, SoftmaxObjective, approach, flat_share, minimise
from kesler.batch.scorers import JointScorer, Telling, is_per_class, parts_of
from kesler.data.matrices import validate_data
from kesler.errors import (
    KeslerError,
    integer_of,
    keep_settings,
    number_of,
    require_choice,
    require_unasked,
    warn,
)
from kesler.hypotheses import Part
from kesler.maps.feature_map import FeatureMap

Self = TypeVar("Self", bound="SoftmaxClassifier")
Floats = npt.NDArray[np.float64]

MARGINS = {"softmax": 0.0, "margin-softmax": 1.0}
# Products with the Hessian are in float32: sums of squares must stay well below 1e38.
MOST_CURVATURE = 1e32
MOST_PARAMETER = 1e15


class SoftmaxClassifier(ClassScores, ClassifierMixin, BaseEstimator):
    r"""Multinomial logistic regression, the maximum a posteriori weights for a Gaussian prior.

    .. math:: \min_{W, b} \; C \sum_i c_i \, \ell(h(x_i), y_i) + \tfrac12 \|W\|^2, \quad
        h(x) = W x + b

    with the loss "softmax" or "margin-softmax", respectively,

    .. math:: \ell(h, y) = \ln \sum_r e^{(h_r - h_y) / \sigma}, \qquad
        \ell(h, y) = \ln \sum_r e^{[r \ne y] + (h_r - h_y) / \sigma}

    Parameters
    ----------
    C : float > 0, default 1.0
        The weight of the losses relative to the norm. Larger values fit the rows more closely and
        take longer.
    sigma : float > 0, default 1.0
        The temperature. Larger values make probabilities more even for the same scores; as sigma
        goes to 0, the class with the highest score gets probability 1.
    loss : "softmax" or "margin-softmax", default "softmax"
        With a margin, the scores of wrong classes are raised by 1.
    penalty : "l2" or None, default "l2"
        None leaves the norm out. The optimum is then at infinity if the classes are linearly
        separable, and C has no effect.
    hypotheses : "multi", "single", "hybrid", part or list of parts, default "multi"
        The weights that classes share: one vector per class, one for all classes over a feature
        map, both, or any list of :class:`~kesler.hypotheses.PerClass`,
        :class:`~kesler.hypotheses.Shared` and :class:`~kesler.hypotheses.Grouped`.
    feature_map : "auto", name or map, default "auto"
        The feature map of the shared vector, as in :class:`~kesler.OnlineClassifier`; "auto" is
        "frequency" for sparse rows and "distance" for dense ones.
    fit_intercept : bool, default True
        Whether scores have an intercept b, which is not regularised.
    class_weight : mapping, "balanced" or None, default None
        Weights of classes, multiplied with `sample_weight`; "balanced" gives all classes the same
        total weight.
    tol : float > 0, default 1e-4
        The gradient's norm, as a share of that at W = 0, at which to stop. Smaller values come
        closer to the optimum; at 1e-4 the objective is usually within 1e-5 of it.
    max_iter : int > 0, default 100
        Maximum number of Newton steps.
    warm_start : bool, default False
        Whether `fit` starts from the last solution, if it has the same shape, instead of 0.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features)
    intercept_ : array of shape (n_classes,)
        Like `coef_`, only for "multi".
    weights_ : list of arrays of shape (n_features, n_hypotheses)
        For other hypotheses: one array per part, with the constant feature first.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_iter_ : int
        Number of passes of dual ascent plus Newton steps.
    objective_, gradient_norm_ : float
        The final objective and the norm of its gradient, the latter as a share of that at W = 0.
    converged_ : bool
        Whether `gradient_norm_` is at most `tol`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, there is one class only, all weights are 0, sparse rows
        are used with a map that needs zeros, or features are so large (1e12) that sums of their
        squares overflow float32.

    Warns
    -----
    ConvergenceWarning
        If the solver does not converge within `max_iter` steps.

    Notes
    -----
    The solver first makes passes of dual coordinate ascent, as long as each gains much, and then
    takes Newton steps. Each step is computed by conjugate gradients in float32, at O(nnz k) per
    iteration for k classes; gradients are in float64. The preconditioner is the Hessian's diagonal
    or, for up to 1,500 features, its class blocks, estimated from the rows with most curvature. Two
    classes are equivalent to binary logistic regression with C twice as large, where w_1 = -w_0 is
    half its weight vector. Intercepts sum to 0, since a common shift has no effect.

    Rows with the same features and label are one row with the sum of their weights, so that a
    `sample_weight` of n gives the same result as n copies of the row. Their order is that of their
    first copies, or of a hash of their values if weights differ within a class.

    The class statistics of maps are computed once, by an online pass over these rows, which are
    then converted to float32.

    References
    ----------
    Lin, Weng and Keerthi (2008), "Trust region Newton method for large-scale logistic regression";
    Shalev-Shwartz, Wexler and Shashua (2011), "ShareBoost", the loss with a margin.

    Examples
    --------
    >>> from kesler import SoftmaxClassifier
    >>> model = SoftmaxClassifier().fit([[0, 1], [1, 0], [1, 1]], ["a", "b", "c"])
    >>> model.predict([[0, 2]]).tolist(), model.predict_proba([[0, 2]]).round(2).tolist()
    (['a'], [[0.53, 0.12, 0.35]])
    """

    _scorer: JointScorer | None = None  # of hypotheses over feature maps

    def __init__(
        self,
        C: float = 1.0,
        *,
        sigma: float = 1.0,
        loss: Literal["softmax", "margin-softmax"] = "softmax",
        penalty: Literal["l2"] | None = "l2",
        hypotheses: str | Part | list[Part] = "multi",
        feature_map: str | FeatureMap = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        warm_start: bool = False,
    ) -> None:
        keep_settings(self, locals())

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None, start: Any = None) -> Self:
        """Fit the model to training rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Processed in float32 if it is float32, else in float64.
        y : array of shape (n_rows,)
            Labels.
        sample_weight : array of shape (n_rows,) or None, default None
            The weight of each row, 0 or more; 2 is equivalent to the row twice, and 0 to leaving
            it out.
        start : fitted classifier or None, default None
            A classifier of the same classes whose scores are linear in the rows. Newton's method
            starts from its weights, scaled to minimise the objective. With few features this saved
            up to three quarters of the time; with many (text, pixels) it took longer than the
            passes of dual ascent that it replaces. For "multi"; `warm_start` is then ignored.

        Returns
        -------
        The estimator itself.
        """
        self._require_parameters()
        if start is not None and not is_per_class(self.hypotheses):
            raise KeslerError('start is for hypotheses="multi": leave it out')
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        rows = DistinctRows.of(X, y, row_weights(X, sample_weight))
        classes, counts = rows.classes, self.C * rows.counts(self.class_weight)
        require_moderate(largest_in(X), float(counts.sum()))
        design = self._design(X, rows)
        objective = SoftmaxObjective(
            design,
            rows.codes,
            counts,
            len(classes),
            self._ridge(design.weights_shape(1)[0], 0 if isinstance(design, JointDesign) else -1),
            MARGINS[self.loss],
        )
        if start is None:
            first, n_passes = self._begin(objective, classes)
        else:
            first, n_passes = self._from(start, rows.of_rows(X), objective, classes), 0
        self.classes_ = classes
        return self._solve(objective, first, n_passes)

    def _solve(self: Self, objective: SmoothObjective, first: Floats, n_passes: int) -> Self:
        """Minimise an objective and set the fitted attributes."""
        solution = minimise(objective, first, self.tol, self.max_iter)
        self._keep(getattr(objective, "design", None), self.sigma * solution.weights)
        self.n_iter_, self.objective_ = n_passes + solution.n_iter, solution.value
        self.gradient_norm_, self.converged_ = solution.gradient_norm, solution.converged
        self._warn_if_not_converged()
        return self

    def _keep(self, design: Design | None, weights: Floats) -> None:
        """Set the weight attributes of the hypotheses, and remove those of a previous fit."""
        for name in ("coef_", "intercept_", "weights_", "_scorer"):
            self.__dict__.pop(name, None)
        if isinstance(design, JointDesign):
            self._scorer = JointScorer(design.hypotheses, weights)
            self.weights_ = design.hypotheses.weights_of_parts(weights)
            return
        self.coef_ = np.ascontiguousarray(weights[: self.n_features_in_].T)
        bias = weights[-1] if self.fit_intercept else np.zeros(len(self.classes_))
        self.intercept_ = bias - bias.mean()

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of `predict_proba`."""
        scores = self._scores(X)
        leads = scores - scores.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # as sigma goes to 0, other probabilities go to 0
            return np.asarray(log_softmax(leads / self.sigma, axis=1))

    def predict_proba(self, X: Any, new: bool = False) -> Floats:
        """Return the probability of each class, softmax(h(x) / sigma), in the order of `classes_`.

        The formula is the same for both losses.

        Parameters
        ----------
        X : rows as in `fit`.
        new : False
            The probability of a class to come is not estimated.

        Raises
        ------
        KeslerError
            If `new` is True.
        """
        require_unasked(self, new=new)
        return np.asarray(np.exp(self.predict_log_proba(X)))

    _probabilities = predict_proba

    def _scores(self, X: Any) -> Floats:
        X = self._rows(X)
        if self._scorer is not None:
            return self._scorer.scores(X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _design(self, X: Any, rows: DistinctRows) -> Design:
        is_dense = not sparse.issparse(X)
        if not is_per_class(self.hypotheses):
            parts = parts_of(self.hypotheses, self.feature_map, dense=is_dense)
            return Telling.of(X, rows, float(self.fit_intercept)).design(parts)
        if is_dense:
            return DensePerClass(rows.of_rows(X), self.fit_intercept)
        return SparsePerClass(summed(rows.of_rows(X)), self.fit_intercept)

    def _ridge(self, n_features: int, constant: int) -> Floats:
        """Return the ridge for weights of scores / sigma: sigma^2, but 0 for the intercept."""
        ridge = np.full((n_features, 1), float(self.sigma) ** 2 if self.penalty else 0.0)
        if self.fit_intercept:
            ridge[constant] = 0
        return ridge

    def _begin(self, objective: SoftmaxObjective, classes: npt.NDArray[Any]) -> tuple[Floats, int]:
        """Return the initial weights, and the number of passes over the rows to compute them."""
        shape = objective.design.weights_shape(len(classes))
        last = self._last_weights() if self.warm_start else None
        if last is not None and last.shape == shape and np.array_equal(self.classes_, classes):
            return np.asarray(last / self.sigma), 0
        if self.penalty is None or not isinstance(objective.design, PerClassDesign):
            return np.zeros(shape), 0
        return approach(objective, self.tol, self.max_iter)

    def _from(
        self, start: Any, X: Any, objective: SoftmaxObjective, classes: npt.NDArray[Any]
    ) -> Floats:
        """Return the weights of another learner, scaled to minimise the objective."""
        weights, constants = linear_weights_of(start, X, classes)
        direction = np.vstack([weights, constants]) if self.fit_intercept else weights
        line = objective.at(np.zeros_like(direction)).along(direction)
        return line.at(flat_share(line)).weights if line.slope(0.0) < 0 else 0 * direction

    def _last_weights(self) -> Floats | None:
        """Return the last solution in the shape of a design's weights, None if there is none."""
        if self._scorer is not None:
            return self._scorer.weights
        if not hasattr(self, "coef_"):
            return None
        constant = [self.intercept_] if self.fit_intercept else []
        return np.vstack([self.coef_.T, *constant])

    def _require_parameters(self) -> None:
        for name in ("C", "sigma", "tol"):
            number_of(name, getattr(self, name), above=0, most=MOST_PARAMETER)
        integer_of("max_iter", self.max_iter, 1)
        require_choice("loss", self.loss, MARGINS)
        require_choice("penalty", self.penalty, ("l2", None))

    def _warn_if_not_converged(self) -> None:
        if not self.converged_:
            warn(
                f"the gradient's norm is {self.gradient_norm_:.1e} times that at 0, above "
                f"tol={self.tol:g}, after {self.n_iter_} steps: raise max_iter or tol, scale "
                "features to similar ranges, or lower C",
                ConvergenceWarning,
            )


def summed(X: Any) -> Any:
    """Return sparse rows without duplicate entries."""
    rows: Any = sparse.csr_array(X)
    rows.sum_duplicates()
    return rows


def largest_in(X: Any) -> float:
    """Return the largest absolute value of a feature."""
    stored: Any = X
    values = stored.data if sparse.issparse(X) else stored
    return float(max(values.max(), -values.min())) if values.size else 0.0


def require_moderate(largest: float, total: float) -> None:
    """Raise if the largest feature, squared and times the total weight, may overflow float32."""
    if largest * largest * total > MOST_CURVATURE:
        raise KeslerError(
            f"features as large as {largest:.1e}, squared and summed over the rows times C, may "
            "overflow float32: scale features to about 1, or lower C"
        )
