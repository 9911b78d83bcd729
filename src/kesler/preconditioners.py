"""Preconditioners: one step size for each weight."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kesler.codes import Follows, StepUnit, code_of
from kesler.errors import KeslerError, keep_number
from kesler.parts.user_part import UserPart, part_of, require_function

__all__ = [
    "PRECONDITIONERS",
    "AdaGrad",
    "CoinBetting",
    "Confidence",
    "CustomMetric",
    "DistanceAdaGrad",
    "Euclidean",
    "Preconditioner",
    "ScaleFree",
    "SecondOrder",
    "SoftConfidence",
    "preconditioner",
    "resolve_preconditioner",
]

_OF_UNIT: dict[str, tuple[str, ...]] = {
    "none": (),
    "rows": ("rates",),
    "features": ("rates", "scales"),
}
_LARGEST_VALUE = "measures each feature in units of its largest value"

Rate = Callable[..., float]
"""f(evidence) or f(evidence, q), which returns the step size of a weight."""


@dataclass(frozen=True)
class Preconditioner:
    """The step sizes of the weights.

    Steps and their norms depend on them: a trial adds alpha rate d to the weights along
    d = phi(x, y) - phi(x, s), and a rule that requires norms receives sum_i rate_i d_i^2.

    Attributes
    ----------
    follows : the source of the rates, by its name in :class:`kesler.codes.Follows`.
    unit : the units of the rates: "none", "rows" or "features".
    keeps : the arrays of its state, by their names in :class:`kesler.state.records.Preconditioner`;
        without any, every weight has the same step size.
    is_measured : whether evidence depends on the step.
    is_paced : whether all step sizes are multiples of one that follows the distance from the
        initial weights, whatever the eta or C of the rule.
    has_bets : whether weights are bets on the sign of the next gradient, which depend on gradients
        only, not on the lengths of the steps of the rule.
    is_full : whether steps follow a matrix of all pairs of features instead of step sizes.
    of_plain_views : what it does with each feature of x, which views that depend on the class do
        not allow; "" if it takes any view.
    no_decay : why weights cannot decay, "" if they can.
    no_mean : why the weights of several learners have no mean, "" if they have one.
    function : a user-defined function of evidence that returns the rate, None for built-in
        preconditioners.
    """

    follows: ClassVar[str] = "nothing"
    unit: ClassVar[str] = "none"
    keeps: ClassVar[tuple[str, ...]] = ()
    is_measured: ClassVar[bool] = False
    is_paced: ClassVar[bool] = False
    has_bets: ClassVar[bool] = False
    is_full: ClassVar[bool] = False
    of_plain_views: ClassVar[str] = ""
    no_decay: ClassVar[str] = ""
    no_mean: ClassVar[str] = ""
    function: ClassVar[Rate | None] = None

    @property
    def codes(self) -> list[int]:
        """The numbers of the preconditioner in the compiled trial."""
        follows, unit = code_of(Follows, self.follows), code_of(StepUnit, self.unit)
        return [follows, unit, int(self.is_measured)]

    @property
    def parameter(self) -> float:
        """The number from which evidence is computed."""
        return 1.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers passed to the compiled trial."""
        return (self.parameter,)

    @property
    def is_euclidean(self) -> bool:
        """Whether every weight has the same step size."""
        return not self.keeps


@dataclass(frozen=True)
class Euclidean(Preconditioner):
    """The same step size for all weights.

    Examples
    --------
    >>> Euclidean().is_euclidean
    True
    """


@dataclass(frozen=True)
class AdaGrad(Preconditioner):
    r"""Step sizes that shrink with the squared gradients of the weight so far.

    .. math:: G_i \mathrel{+}= \sum_r (g_r \phi_i(x, r))^2, \quad \text{rate}_i = 1 / \sqrt{G_i}

    over the classes r that share the weight, with g the gradient of the loss of the rule by the
    scores: 1 along each constraint unless the rule defines another. G includes the row before its
    step.

    Parameters
    ----------
    length_free : bool, default False
        Whether rates are divided by the root of the mean of ||x||^2 over the rows so far, so that
        streams with longer rows do not have longer steps.
    scale_free : bool, default False
        Whether rates are also divided by the largest |x_i| so far, and lengths are measured in
        these units, so that the units of features have no effect; for plain views of x only.

    Notes
    -----
    Memory: 4 bytes per weight. A trial with an update costs a square root per updated weight.

    References
    ----------
    Duchi, Hazan and Singer (2011), diagonal AdaGrad; Ross, Mineiro and Langford (2013), NAG.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> OnlineClassifier(update="softmax", preconditioner=AdaGrad()).preconditioner
    AdaGrad(length_free=False, scale_free=False)
    """

    length_free: bool = False
    scale_free: bool = False

    follows = "gradients"

    @property
    def unit(self) -> str:  # type: ignore[override]
        """The units of the rates."""
        return "features" if self.scale_free else "rows" if self.length_free else "none"

    @property
    def keeps(self) -> tuple[str, ...]:  # type: ignore[override]
        """The evidence of each weight, and what the unit is computed from."""
        return ("evidence", *_OF_UNIT[self.unit])

    @property
    def of_plain_views(self) -> str:  # type: ignore[override]
        """A largest value, if rates are in units of features."""
        return _LARGEST_VALUE if self.scale_free else ""


@dataclass(frozen=True)
class DistanceAdaGrad(AdaGrad):
    r"""AdaGrad with a step size that is found: the distance of the weights from the initial ones.

    .. math:: \text{rate}_i = \eta_t / \sqrt{G_i}, \quad \eta_t = \max\Bigl(\eta_{t - 1},
        \sqrt{\frac{\sum_i \sqrt{G_i} (w_i - w_{0, i})^2}{2 \sum_i \sqrt{G_i}}}\Bigr)

    with G as in :class:`AdaGrad`; :math:`\eta` is computed after 1, 2, ..., 8, 10, 12, 15, ...
    trials, a quarter more each time. Neither the eta nor the C of the rule has an
    effect: both are 1 in units of :math:`\eta_t`.

    Parameters
    ----------
    length_free, scale_free : as in :class:`AdaGrad`
    start : float > 0, default 0.1
        The first :math:`\eta`. With larger values, learning begins faster; values above the best
        constant step size are never reduced.

    Raises
    ------
    KeslerError
        If start is not a finite number above 0.

    Notes
    -----
    For every u, with convex losses l, plain gradient steps and neither unit,

    .. math:: \sum_t \eta_t (l_t(w_t) - l_t(u)) \le \sum_i \sqrt{G_i}
        \bigl(\tfrac12 \max_t (w_{t, i} - u_i)^2 + \eta_T^2\bigr)

    by the proof of AdaGrad, since :math:`\eta_t` never decreases. For a constant :math:`\eta` the
    right side over :math:`\eta` is smallest at the root above, with u in place of w.

    Costs a pass over all weights each time that :math:`\eta` is computed, 20 times in the first
    100 trials and 40 in the first 10,000; between these, trials cost what they cost with AdaGrad.

    References
    ----------
    Ivgi, Hinder and Carmon (2023), DoG, distance over gradients; Duchi, Hazan and Singer (2011).

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> OnlineClassifier(update="pa1", preconditioner="distance-adagrad").fit([[1], [-1]] * 5,
    ...     [0, 1] * 5).predict([[2], [-3]]).tolist()
    [0, 1]
    """

    start: float = 0.1

    is_paced = True

    @property
    def keeps(self) -> tuple[str, ...]:  # type: ignore[override]
        """The state of AdaGrad, and the size of all steps."""
        return (*super().keeps, "pace")

    def __post_init__(self) -> None:
        keep_number(self, "start", ", since it is the first step size", above=0)

    @property
    def parameter(self) -> float:
        """The first step size."""
        return self.start


@dataclass(frozen=True)
class ScaleFree(Preconditioner):
    r"""Step sizes in units of the largest value of each feature so far.

    .. math:: \text{rate}_i = \frac{t}{N} \frac{1}{s_i^2}, \quad s_i = \max_{t' \le t} |x_{t', i}|,
        \quad N = \sum_{t' \le t} \sum_i (x_{t', i} / s_i)^2

    When s_i grows, the weight is divided by the square of the ratio of growth.

    Notes
    -----
    For plain views of x only. Memory: 4 bytes per feature.

    References
    ----------
    Ross, Mineiro and Langford (2013), Algorithm 2 (NG).

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> X, y = [[1e6, 1.0], [2e6, -1.0]] * 20, ["a", "b"] * 20
    >>> OnlineClassifier("multi", update="hinge", preconditioner=ScaleFree()).fit(X,
    ...     y).predict(X[:2])
    array(['a', 'b'], dtype='<U1')
    """

    unit = "features"
    keeps = _OF_UNIT["features"]
    of_plain_views = _LARGEST_VALUE


@dataclass(frozen=True)
class Confidence(Preconditioner):
    r"""A variance for each weight, which shrinks with each update (as in AROW, diagonal).

    .. math:: \text{rate}_i = \Sigma_i, \quad 1 / \Sigma_i = 1 + \sum_t d_{t, i}^2 / r

    over the trials with an update.

    Parameters
    ----------
    r : float > 0, default 1.0
        The variance of the noise. With larger values, variances shrink more slowly.

    Raises
    ------
    KeslerError
        If r is not a finite number above 0.

    Notes
    -----
    Memory: 4 bytes per weight. Variances are never negative, since their inverses are summed.

    References
    ----------
    Crammer, Kulesza and Dredze (2009), adaptive regularization of weight vectors.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> OnlineClassifier(update="pa1", preconditioner="confidence").fit([[1], [-1]], [0,
    ...     1]).preconditioner
    'confidence'
    """

    r: float = 1.0

    follows = "evidence"
    keeps = ("evidence",)

    def __post_init__(self) -> None:
        keep_number(self, "r", ", since it is the variance of the noise", above=0)

    @property
    def parameter(self) -> float:
        """The variance of the noise."""
        return self.r


@dataclass(frozen=True)
class SoftConfidence(Preconditioner):
    r"""The variances of soft confidence-weighted learning, as a diagonal matrix.

    .. math:: 1 / \Sigma_i \mathrel{+}= \frac{\alpha \phi}{\sqrt u} d_i^2, \quad
        \sqrt u = \tfrac12 (\sqrt{\alpha^2 v^2 \phi^2 + 4 v} - \alpha v \phi), \quad v = d' \Sigma d

    The rules "scw1" and "scw2" require it.

    Parameters
    ----------
    phi : float > 0
        The quantile of the required confidence. With larger values, variances shrink faster.

    References
    ----------
    Wang, Zhao and Hoi (2012), exact soft confidence-weighted learning, Proposition 1.

    Examples
    --------
    >>> from kesler.updates import SCW
    >>> round(SCW(eta=0.75).preconditioner.phi, 6)
    0.67449
    """

    phi: float

    follows = "evidence"
    keeps = ("evidence",)
    is_measured = True

    def __post_init__(self) -> None:
        keep_number(self, "phi", ", since it is a quantile above the median", above=0)

    @property
    def parameter(self) -> float:
        """The quantile."""
        return self.phi


@dataclass(frozen=True)
class CoinBetting(Preconditioner):
    r"""Steps without a parameter: each weight is a share of the wealth won with it so far.

    .. math:: w_i = w_{0, i} + \frac{\max(-1, \min(1, \theta_i / \hat S_i))}{2 \hat S_i} \eta_i,
        \quad \hat S_i^2 = \sum_{s < t} g_{s, i}^2 + M_i^2, \quad
        \theta_i = -\sum_{s < t} g_{s, i}, \quad
        \eta_i = 1 - \sum_{s < t} g_{s, i} (w'_{s, i} - w_{0, i})

    with w' the weight under the M of the row that it is learnt from, which may be larger than that
    of the rows before, g the gradient of the loss of the rule and :math:`w_0` the initial weights.
    :math:`M_i` is the largest :math:`|\phi_i|` so far in an updated hypothesis, times the largest
    coefficient of a class in any trial so far, which :math:`|g_i|` does not exceed. A trial adds
    the change of w. Neither the units of features nor those of losses matter.

    Notes
    -----
    For rules that step along the gradient of a loss: "perceptron", "margin-perceptron", "simperc",
    "hinge", "softmax", "logistic", "ovr-squared", "ovr-logistic" and "ovr-hinge". Their eta, C and
    `invariant` have no effect, since weights depend on gradients only; `sample_weight` multiplies
    these. Other rules compute steps from norms under step sizes, of which there are none here.

    For every u, the losses exceed those of u by at most

    .. math:: \sum_i \Bigl(1 + 2 |u_i - w_{0, i}| \hat S_i \Bigl[\ln
        \frac{3 |u_i - w_{0, i}| \hat S_i^3}{M_{1, i}^2} - 1\Bigr]_+ \Bigr)
        + \sum_{t, i} g_{t, i} (w_{t, i} - w'_{t, i})

    over the weights updated so far, with :math:`M_1` at the first update. The last sum is over
    updates that increase M: it is 0 in the source, which
    knows a row before it computes the weights.

    Memory: 24 bytes per weight. An update takes two square roots, and loops run over weights one by
    one: with many classes, trials take several times as long as with "adagrad".

    References
    ----------
    Kempka, Kotlowski and Warmuth (2019), Algorithm 2 (ScInOL2); Orabona and Pal (2016), coin
    betting.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier("multi", update="softmax", preconditioner="coin-betting")
    >>> model.fit([[1e6, 0], [0, 1e-6]] * 5, ["a", "b"] * 5).predict([[1e6, 0], [0, 1e-6]]).tolist()
    ['a', 'b']
    """

    follows = "bets"
    keeps = ("evidence", "bets", "sums", "winnings", "sizes")
    has_bets = True
    no_decay = "computes them from the wealth won so far"
    no_mean = "has a wealth for each weight, won one row after the other"


@dataclass(frozen=True)
class SecondOrder(Preconditioner):
    r"""Steps along P x, with P the inverse of the second moments of the rows so far.

    .. math:: P = (\lambda I + \sum_t x_t x_t')^{-1}, \quad w \mathrel{+}= \alpha P x, \quad
        \|x\|_P^2 = x' P x

    over the rows with an update, each added after its step. With the rule "least-squares" it is
    ridge regression of the indicators of the classes, exactly the optimum over the rows so far;
    with "perceptron" a variant of the second-order Perceptron; with "pa2" a rule in the manner of
    AROW with a full matrix that all classes share.

    With a half-life of h rows, the second moments decay in place of the weights, and the ridge is
    kept. After each row, with :math:`\gamma = 2^{-1/h}`,

    .. math:: P^{-1} \leftarrow \gamma P^{-1}, \qquad
        P^{-1} \leftarrow P^{-1} + s_i e_i e_i', \quad
        w \leftarrow w - \frac{s_i w_i}{1 + s_i P_{ii}} P e_i

    for the next :math:`\lceil n / h \rceil` of the n features i in turn, with the s_i that makes
    the ridge of feature i :math:`\lambda` again: as a row :math:`\sqrt{s_i} e_i` with target 0.
    Least squares is then recursive least squares with a forgetting factor,

    .. math:: w = \arg\min_w \sum_i \lambda_i w_i^2
        + \sum_t \gamma^{T - t} (y_t - \langle w, x_t \rangle)^2, \quad
        \lambda / 2 < \lambda_i \le \lambda.

    Parameters
    ----------
    ridge : float > 0, default 1.0
        :math:`\lambda`. Larger values give smaller weights: use more for noise.

    Raises
    ------
    KeslerError
        If ridge is not a finite number above 0; with sparse rows, feature maps, thresholds of
        ranks, links or algorithms.

    Notes
    -----
    For dense rows of some hundreds of features: a row costs O(n^2) for n features, 20 us for 400,
    however many classes there are, and memory is 8 n^2 bytes. With a half-life it costs
    O((n^2 + n k) (1 + n / h)): use half-lives of n rows or more. In float64, since P subtracts
    squares. Up to the ridge, neither units nor linear transformations of the features have an
    effect.

    With least squares and targets of +1 and -1, the errors before each update obey an identity,

    .. math:: \sum_t \frac{(y_t - \langle w_{t-1}, x_t \rangle)^2}{1 + x_t' P_{t-1} x_t}
        = \min_w \Big( \lambda \|w\|^2 + \sum_t (y_t - \langle w, x_t \rangle)^2 \Big).

    References
    ----------
    Cesa-Bianchi, Conconi and Gentile (2005), "A second-order Perceptron algorithm", of which the
    Perceptron with this preconditioner is a variant: each step keeps the P of its time; Zhdanov and
    Kalnishkan (2013), "An identity for kernel ridge regression", for the identity; Vovk (2001) and
    Azoury and Warmuth (2001) for the bounds that follow from it; Gay (1996), "Dynamically
    regularized fast recursive least squares", for the ridge that is renewed feature by feature.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> X, y = [[1.0, 100.0], [1.1, 90.0], [0.9, 100.1]] * 20, ["a", "b", "a"] * 20
    >>> model = OnlineClassifier("multi", update="least-squares", preconditioner=SecondOrder(0.1))
    >>> model.fit(X, y).predict(X[:3]).tolist()
    ['a', 'b', 'a']
    """

    ridge: float = 1.0

    follows = "second moments"
    keeps = ("inverse",)
    is_full = True
    of_plain_views = "has one matrix for the features of x"
    no_mean = "has a matrix that has no mean"

    def __post_init__(self) -> None:
        why = ", since the matrix of the first rows has no inverse without it"
        keep_number(self, "ridge", why, above=0)

    @property
    def parameter(self) -> float:
        """The ridge."""
        return self.ridge


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomMetric(UserPart, Preconditioner):
    """A user-defined preconditioner, made by :func:`preconditioner`.

    Pass it as ``preconditioner=``.
    """

    function: Rate  # type: ignore[misc]

    follows = "function"
    keeps = ("evidence",)
    kind = "preconditioner"
    field = "function"

    def __post_init__(self) -> None:
        require_function(self.function, "a preconditioner")
        n_arguments = len(inspect.signature(self.function).parameters)
        if n_arguments not in (1, 2):
            raise KeslerError(
                f"the preconditioner {self!r} takes {n_arguments} arguments: write f(evidence), or "
                "f(evidence, q) with the parameters in q"
            )


def preconditioner(function: Rate | None = None, *, parameters: tuple[float, ...] = ()) -> Any:
    r"""Make a preconditioner of a plain Python function, which is compiled and cached.

    .. math:: G_i \mathrel{+}= \sum_r (g_r \phi_i(x, r))^2, \quad \text{rate}_i = f(G_i)

    with the evidence G of :class:`AdaGrad`, whose f is 1 / sqrt(G).

    Parameters
    ----------
    function : f(evidence) or f(evidence, q), of a float64 above 0 and an array of parameters; it
        returns the step size of the weight, 0 or more. It is 0 for a weight without evidence.
    parameters : numbers passed to the function as q.

    Returns
    -------
    CustomMetric
        For use as a decorator, with parameters or without.

    Raises
    ------
    KeslerError
        If it is not a plain function of one or two arguments; on first use, if it fails in a trial
        call (see :mod:`kesler.parts.trial_calls`) or Numba cannot compile it. A step for which it
        raises an error or returns a rate that is negative or not finite is not taken, and raises
        an error; the steps of the other weights of the row are taken.

    Notes
    -----
    Memory: 4 bytes per weight. The function is called for each weight of a direction, once for the
    norm and once for the step: a trial takes longer than with the built-in preconditioners.

    References
    ----------
    Duchi, Hazan and Singer (2011), diagonal matrices.

    Examples
    --------
    >>> from kesler import OnlineClassifier, preconditioner
    >>> @preconditioner(parameters=(0.25,))
    ... def dwindling(evidence, q):
    ...     return (1.0 + evidence) ** -q[0]
    >>> OnlineClassifier(update="softmax",
    ...     preconditioner=dwindling.with_parameters(0.5)).preconditioner
    dwindling(0.5,)
    """

    def decorate(function: Rate) -> CustomMetric:
        return CustomMetric(function=function, values=tuple(float(p) for p in parameters))

    return decorate if function is None else decorate(function)


EUCLIDEAN = Euclidean()

PRECONDITIONERS: dict[str, Callable[[], Preconditioner]] = {
    "euclidean": Euclidean,
    "adagrad": AdaGrad,
    "distance-adagrad": DistanceAdaGrad,
    "scale-free": ScaleFree,
    "scale-free-adagrad": lambda: AdaGrad(scale_free=True),
    "confidence": Confidence,
    "coin-betting": CoinBetting,
    "second-order": SecondOrder,
}
"""The preconditioners by their names in estimators and on the command line."""


def resolve_preconditioner(
    preconditioner: str | Preconditioner, own: Preconditioner | None = None
) -> Preconditioner:
    """Return the preconditioner of this name, or the preconditioner itself.

    "auto" is that of the rule, or Euclidean.

    Raises
    ------
    KeslerError
        If the name is unknown, or another preconditioner is combined with a rule that has its own.

    Examples
    --------
    >>> resolve_preconditioner("adagrad"), resolve_preconditioner("auto")
    (AdaGrad(length_free=False, scale_free=False), Euclidean())
    """
    if isinstance(preconditioner, str) and preconditioner == "auto":
        return own or EUCLIDEAN
    more = (
        ", auto, or in Python a preconditioner of kesler.preconditioners or a function decorated "
        "with kesler.preconditioner"
    )
    found = part_of("preconditioner", preconditioner, Preconditioner, PRECONDITIONERS, more)
    if own is not None and found != own:
        raise KeslerError(
            f"preconditioner={found!r}: the rule computes its steps from the variances "
            f"of {own!r}, which it brings along: "
            'leave preconditioner="auto", or choose another rule'
        )
    return found
