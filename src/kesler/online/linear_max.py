"""LinearMax: a multiclass learner built from any linear-threshold algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kesler.algorithms import Algorithm, resolve_algorithm
from kesler.algorithms.quasi_additive import QuasiAdditive, RivalStep
from kesler.errors import keep_settings
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import OnNewClass
from kesler.learner.support_vectors import Limit
from kesler.links.link import Linear
from kesler.links.p_norm import PNorm
from kesler.maps.feature_map import FeatureMap
from kesler.online.classifier import OnlineClassifier
from kesler.online.making import Maker, Settings
from kesler.preprocessing import Preprocessing

if TYPE_CHECKING:
    from kesler.queries.query import Query


class _AlgorithmMaker(Maker):
    """Makes learners of the parameter `algorithm`."""

    def moves(self, given: Settings, chosen: Settings) -> dict[str, Any]:
        algorithm = resolve_algorithm(given["algorithm"])
        moves: dict[str, Any] = {"on_new_class": given["on_new_class"]}
        if isinstance(algorithm, QuasiAdditive):
            is_plain = given["kernel"] is not None and algorithm.link == PNorm(2)
            link = Linear() if is_plain else algorithm.link
            return {**moves, "rule": algorithm.rule, "link": link}
        return {**moves, "rule": algorithm, "link": Linear()}

    def in_use(self, given: Settings, learner: Any) -> dict[str, Any]:
        algorithm = learner.rule
        if isinstance(algorithm, RivalStep):
            algorithm = QuasiAdditive(learner.link, algorithm.rate)
        return {**super().in_use(given, learner), "algorithm": algorithm}


class LinearMax(OnlineClassifier):
    r"""A multiclass learner built from any algorithm that learns linear thresholds.

    For each row the algorithm receives one instance of label 1, the feature map of the right class
    minus that of its best rival:

    .. math:: z = \phi(x, \rho) - \phi(x, A), \quad
        A = \begin{cases} \lambda_1 & \rho \ne \lambda_1 \\ \lambda_2 & \rho = \lambda_1 \end{cases}

    with :math:`\lambda_1, \lambda_2` the classes of highest and second highest score. The learner
    makes no more mistakes than the algorithm makes on these instances, so every mistake bound of
    the algorithm also holds for the multiclass learner.

    Parameters
    ----------
    algorithm : "perceptron", "wma", "winnow", "p-norm", "romma", "alma", "alma-p" or algorithm, \
default "winnow"
        An object of :mod:`kesler.algorithms`, for instance ``QuasiAdditive(Exponential(1.5))``, or
        a user-defined one, see :func:`~kesler.threshold_algorithm`. "wma" learns positive weights
        only and is intended for sub-experts; "winnow" is its balanced form.
    hypotheses : "multi", "single", "hybrid", "sub-experts" or list of parts, default "multi"
        How classes share weights, as in :class:`~kesler.OnlineClassifier`. "sub-experts" is the
        setting of the source, with ratings of the classes given with each row; "multi" converts
        each feature to one sub-expert for each class (Mesterharm 2001, Section 5.2).
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The feature map of a shared vector; not used by "multi".
    preprocessing, label_budget
        As in :class:`~kesler.OnlineClassifier`.
    kernel, sigma, budget
        As in :class:`~kesler.OnlineClassifier`: the algorithm then moves sums over stored rows.
        For the algorithms that inner products determine: "perceptron", p-norms with p = 2, "romma"
        and "alma". The last two sum up the norm of the weights, so that they need a number as
        `sigma` and take no budget.
    on_new_class : "register", "learn", "inherit" or "unseen", default "register"
        The effect of the first row of a class. "register", "learn" and "inherit" are those of
        :class:`~kesler.OnlineClassifier`; with "learn", z is the view of the new class minus that
        of the predicted one. "unseen", for hypotheses "sub-experts", is the step of the source
        for classes that appear late (Section 6.2), :math:`z = x^\infty - x^{\lambda_1}`: all
        sub-experts give all unseen classes one rating, low enough that these lose. It is the mean
        of the ratings of the class of lowest score, weighted by the sub-experts' weights, less a
        thousandth of the range of the ratings; within that range, so that :math:`|z_i|` remains
        bounded. Sub-experts that rate no known class in the row do not rate unseen ones. With
        weights of both signs no rating in the range may be low enough. Other ratings, which may
        differ from sub-expert to sub-expert and from one kind of class to another, are set by
        ``Shared(SubExperts(unseen=...))``, see :class:`~kesler.maps.SubExperts`.

    Attributes
    ----------
    classes_, n_trials_, n_mistakes_, n_imperfect_, feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is unknown, if rows have weights other than 0 and 1 and the algorithm is not
        quasi-additive, or for the reasons given in :class:`~kesler.OnlineClassifier`.

    Notes
    -----
    A row costs O(nnz k) to score for k classes, plus the cost of the algorithm on z, which is
    O(nnz) for all algorithms of :mod:`kesler.algorithms`. For quasi-additive algorithms
    `sample_weight` is the length of the step. With a kernel a row costs its comparison with each
    support vector, and an update of "romma" or "alma" multiplies all their coefficients. Where the
    kernel cannot separate the rows, those of "romma" grow and cancel, and rounding to float32 makes
    other steps of it than with weights.

    References
    ----------
    Mesterharm (2001), "Transforming linear-threshold learning algorithms into multi-class linear
    learning algorithms".

    Examples
    --------
    >>> from kesler import LinearMax
    >>> animals = LinearMax("romma").fit([[1, 0], [0, 1], [1, 0]], ["cat", "dog", "cat"])
    >>> animals.predict([[1, 0]]).tolist()
    ['cat']
    """

    _maker: ClassVar[Maker] = _AlgorithmMaker(OnlineClassifier.answer)

    def __init__(
        self,
        algorithm: str | Algorithm = "winnow",
        hypotheses: str | Part | list[Part] = "multi",
        feature_map: str | FeatureMap = "auto",
        preprocessing: str | Preprocessing | None = None,
        on_new_class: OnNewClass = "register",
        label_budget: float | Query | None = None,
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: Limit = None,
    ) -> None:
        keep_settings(self, locals())
