"""Preconditioners: one step size for each weight."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

from kesler.errors import KeslerError
from kesler.parts.description import describe, describe_custom, reduce_custom, require_function

Rate = Callable[..., float]
"""f(evidence) or f(evidence, q): the step size of a weight."""


@dataclass(frozen=True)
class Preconditioner:
    """What the step size of each weight follows from.

    Steps and their norms are measured in it: a trial adds alpha rate d to the weights along
    d = phi(x, y) - phi(x, s), and a rule that looks at norms is told sum_i rate_i d_i^2.

    Attributes
    ----------
    follows : "nothing", "gradients" or "evidence", what rates follow from.
    unit : "none", "rows" or "features", in units of what rates are.
    is_measured : whether evidence depends on the step.
    function : a user's function of evidence that returns the rate, None for our own metrics.
    """

    follows: ClassVar[str] = "nothing"
    unit: ClassVar[str] = "none"
    is_measured: ClassVar[bool] = False
    function: ClassVar[Rate | None] = None

    @property
    def codes(self) -> list[int]:
        """The numbers by which the compiled trial knows the preconditioner."""
        follows = ("nothing", "gradients", "evidence").index(self.follows)
        unit = ("none", "rows", "features").index(self.unit)
        return [follows, unit, int(self.is_measured)]

    @property
    def parameter(self) -> float:
        """The number that evidence is made with."""
        return 1.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that the compiled trial is given."""
        return (self.parameter,)

    @property
    def has_evidence(self) -> bool:
        """Whether step sizes follow from evidence that is stored for each weight."""
        return self.follows != "nothing"

    @property
    def has_units(self) -> bool:
        """Whether step sizes are in units of rows or of features."""
        return self.unit != "none"

    @property
    def has_scales(self) -> bool:
        """Whether step sizes are in units of the largest value of each feature."""
        return self.unit == "features"

    @property
    def is_euclidean(self) -> bool:
        """Whether every weight has the same step size."""
        return not self.has_evidence and not self.has_units

    def describe(self) -> dict[str, Any]:
        """Return the name and the parameters, as a model file keeps them."""
        return describe(self)


@dataclass(frozen=True)
class Euclidean(Preconditioner):
    """One step size for all weights.

    Examples
    --------
    >>> Euclidean().is_euclidean
    True
    """


@dataclass(frozen=True)
class AdaGrad(Preconditioner):
    r"""Steps shrink where gradients were large.

    .. math:: G_i \mathrel{+}= \sum_r (g_r \phi_i(x, r))^2, \quad \text{rate}_i = 1 / \sqrt{G_i}

    over the classes r that share the weight, with g the gradient of the rule's loss by the scores:
    1 along each constraint unless the rule has another. G takes in the row before its step.

    Parameters
    ----------
    length_free : bool, default False
        Whether rates are divided by the root of the mean of ||x||^2 over the rows so far, so that
        streams of longer rows have no longer steps.
    scale_free : bool, default False
        Whether rates are divided by the largest |x_i| so far, too, and lengths are measured in
        these units, so that those of features do not matter; for plain views of x only.

    Notes
    -----
    4 bytes a weight. A trial that moves costs a square root for each weight that it touches.

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
        """What rates are in units of."""
        return "features" if self.scale_free else "rows" if self.length_free else "none"


@dataclass(frozen=True)
class ScaleFree(Preconditioner):
    r"""Every feature in units of its largest value so far.

    .. math:: \text{rate}_i = \frac{t}{N} \frac{1}{s_i^2}, \quad s_i = \max_{t' \le t} |x_{t', i}|,
        \quad N = \sum_{t' \le t} \sum_i (x_{t', i} / s_i)^2

    A weight is divided by the square of the growth when s_i grows.

    Notes
    -----
    For plain views of x. 4 bytes a feature.

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


@dataclass(frozen=True)
class Confidence(Preconditioner):
    r"""A variance for each weight, smaller the more rows moved it (AROW's, diagonal).

    .. math:: \text{rate}_i = \Sigma_i, \quad 1 / \Sigma_i = 1 + \sum_t d_{t, i}^2 / r

    over the trials that moved.

    Parameters
    ----------
    r : float > 0, default 1.0
        The variance of the noise. Larger values: variances shrink more slowly.

    Raises
    ------
    KeslerError
        If r is not a finite number above 0.

    Notes
    -----
    4 bytes a weight. Variances are never negative, since it is their inverses that add up.

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

    def __post_init__(self) -> None:
        require_above_zero(self, "r", "it is the variance of the noise")

    @property
    def parameter(self) -> float:
        """The variance of the noise."""
        return self.r


@dataclass(frozen=True)
class SoftConfidence(Preconditioner):
    r"""The variances of soft confidence-weighted learning, diagonal.

    .. math:: 1 / \Sigma_i \mathrel{+}= \frac{\alpha \phi}{\sqrt u} d_i^2, \quad
        \sqrt u = \tfrac12 (\sqrt{\alpha^2 v^2 \phi^2 + 4 v} - \alpha v \phi), \quad v = d' \Sigma d

    The rules "scw1" and "scw2" bring it along.

    Parameters
    ----------
    phi : float > 0
        The quantile of the confidence wanted. Larger values: variances shrink faster.

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
    is_measured = True

    def __post_init__(self) -> None:
        require_above_zero(self, "phi", "it is a quantile above the median")

    @property
    def parameter(self) -> float:
        """The quantile."""
        return self.phi


@dataclass(frozen=True, kw_only=True, repr=False)
class CustomMetric(Preconditioner):
    """A user's own preconditioner, made by :func:`preconditioner`.

    Pass it as ``preconditioner=``.
    """

    function: Rate  # type: ignore[misc]
    values: tuple[float, ...] = ()

    follows = "gradients"

    def __post_init__(self) -> None:
        require_function(self.function, "a preconditioner")
        n_arguments = len(inspect.signature(self.function).parameters)
        if n_arguments not in (1, 2):
            raise KeslerError(
                f"the preconditioner {self!r} takes {n_arguments} arguments: write f(evidence), or "
                "f(evidence, q) with the parameters in q"
            )

    @property
    def codes(self) -> list[int]:
        """The numbers by which the compiled trial knows that there is a function to call."""
        return [3, 0, 0]

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers given by :meth:`with_parameters`."""
        return self.values

    def with_parameters(self, *values: float) -> CustomMetric:
        """Return the same preconditioner with other numbers in q."""
        return replace(self, values=tuple(float(value) for value in values))

    def describe(self) -> dict[str, Any]:
        """Return the name of the function and the parameters."""
        return describe_custom(self.function, self.values)

    def __reduce__(self) -> Any:
        return reduce_custom(self, self.function)

    def __repr__(self) -> str:
        return f"{self.function.__qualname__}{self.values or ''}"


def preconditioner(function: Rate | None = None, *, parameters: tuple[float, ...] = ()) -> Any:
    r"""Make a preconditioner of a plain Python function; it runs compiled, cached in its own file.

    .. math:: G_i \mathrel{+}= \sum_r (g_r \phi_i(x, r))^2, \quad \text{rate}_i = f(G_i)

    with evidence G as :class:`AdaGrad` gathers it, whose f is 1 / sqrt(G).

    Parameters
    ----------
    function : f(evidence) or f(evidence, q), of a float64 above 0 and an array of parameters; it
        returns the step size of the weight, 0 or more. A weight without evidence has none.
    parameters : numbers handed to the function as q.

    Returns
    -------
    CustomMetric
        For use as a decorator, with parameters or without.

    Raises
    ------
    KeslerError
        If it is no plain function of one or two arguments; on first use, if Numba cannot compile
        it. A step of a rate below 0, or one that is no number, is not taken, and reported as an
        error.

    Notes
    -----
    4 bytes a weight. Called once for each weight that a direction touches, when its norm is
    measured and when it moves: a trial takes longer than in the preconditioners that have names.

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
    "scale-free": ScaleFree,
    "scale-free-adagrad": lambda: AdaGrad(scale_free=True),
    "confidence": Confidence,
}
"""The preconditioners by the names that estimators and the command line take."""


def resolve_preconditioner(
    preconditioner: str | Preconditioner, own: Preconditioner | None = None
) -> Preconditioner:
    """Return the preconditioner for a name, or the preconditioner itself.

    "auto" is the rule's own, or Euclidean.

    Raises
    ------
    KeslerError
        If the name is not known, or a rule that brings a preconditioner along is given another one.

    Examples
    --------
    >>> resolve_preconditioner("adagrad"), resolve_preconditioner("auto")
    (AdaGrad(length_free=False, scale_free=False), Euclidean())
    """
    if isinstance(preconditioner, str) and preconditioner == "auto":
        return own or EUCLIDEAN
    if isinstance(preconditioner, str) and preconditioner in PRECONDITIONERS:
        preconditioner = PRECONDITIONERS[preconditioner]()
    if not isinstance(preconditioner, Preconditioner):
        raise KeslerError(
            f"preconditioner={preconditioner!r} is not known: choose one of auto, "
            f"{', '.join(PRECONDITIONERS)}, a preconditioner "
            "of kesler.preconditioners, or a function decorated with kesler.preconditioner"
        )
    if own is not None and preconditioner != own:
        raise KeslerError(
            f"preconditioner={preconditioner!r}: the rule measures its steps in {own!r}, which it "
            "brings along: "
            'leave preconditioner="auto", or choose another rule'
        )
    return preconditioner


def require_above_zero(part: Any, name: str, why: str) -> None:
    """Raise unless a parameter is a finite number above 0; keep it as a float."""
    value: Any = getattr(part, name)
    if not (isinstance(value, Real) and math.isfinite(value) and float(value) > 0):
        raise KeslerError(
            f"{type(part).__name__}({name}={value!r}): {name} must be a finite number above 0, "
            f"since {why}"
        )
    object.__setattr__(part, name, float(value))
