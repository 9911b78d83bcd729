"""The quasi-additive algorithms: steps along z, and weights that follow by a link."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.errors import KeslerError, keep_number
from kesler.links.link import Linear, Link
from kesler.updates.rule import UpdateRule

LINEAR = Linear()


def rival_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Take a step if y does not win: with a margin of 0, if the loss is not below 0."""
    if losses[0] >= 0:
        steps[0] = weight * parameters[0]


@dataclass(frozen=True)
class RivalStep(UpdateRule):
    """The rule of the quasi-additive algorithms: a step unless y outscores its best rival."""

    rate: float = 1.0

    constraints = "rival"
    requires = "losses"
    heeds_margin = False
    margin = 0.0
    steps = staticmethod(rival_steps)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The length of a step."""
        return (self.rate,)


@dataclass(frozen=True)
class QuasiAdditive:
    r"""Add z to sums on mistakes; the weights follow from the sums by a link.

    .. math:: v \mathrel{+}= a z \text{ if } \langle w, z \rangle \le 0, \quad w = f(v)

    Parameters
    ----------
    link : Link, default Linear()
        The geometry: linear gives the Perceptron, Exponential(alpha, balanced=False) WMA,
        Exponential(alpha) balanced Winnow, PNorm(p) the p-norm Perceptron.
    rate : float > 0, default 1.0
        a, the length of a step. Without effect for the linear link and p-norms; with others,
        larger values learn faster and are less robust to noise.

    Raises
    ------
    KeslerError
        If link is not a Link, or rate is not a finite number above 0.

    Notes
    -----
    The bounds of Mesterharm (2001), Sections 4.1 and 4.2, hold for :class:`~kesler.LinearMax` with
    the Perceptron and WMA; see :func:`~kesler.mistake_bound`.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997); Mesterharm (2001), Section 4.

    Examples
    --------
    >>> from kesler.algorithms import QuasiAdditive
    >>> QuasiAdditive()
    QuasiAdditive(link=Linear(), rate=1.0)
    """

    link: Link = LINEAR
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.link, Link):
            raise KeslerError(
                f"QuasiAdditive(link={self.link!r}): give a link of kesler.links, or a function "
                "decorated with kesler.link_function"
            )
        keep_number(self, "rate", ", since it is the length of a step", above=0)

    @property
    def rule(self) -> RivalStep:
        """The rule that takes the steps."""
        return RivalStep(self.rate)
