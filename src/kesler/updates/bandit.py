"""Rules that learn from being told whether the class that was shown is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from kesler.codes import Feedback
from kesler.errors import keep_number, require_flag
from kesler.parts.constraints import Selection
from kesler.updates.rule import UpdateRule, no_steps


@dataclass(frozen=True)
class FeedbackRule(UpdateRule):
    """A rule whose steps depend on the class that was shown, and on whether it was right."""

    constraints: ClassVar[Selection] = "one-vs-rest"
    requires = "losses"
    steps = staticmethod(no_steps)


@dataclass(frozen=True)
class Banditron(FeedbackRule):
    r"""The Perceptron for bandit feedback, with an unbiased estimate of its update.

    .. math:: w^r \mathrel{+}= \phi(x, r) \left(\frac{1[\tilde y = y] \, 1[\tilde y = r]}
        {P(\tilde y)} - 1[\hat y = r]\right)

    with the class :math:`\hat y` of the highest score and the class :math:`\tilde y` that was
    shown; the target y itself is not used.

    Notes
    -----
    With uniform exploration and rows of length 1 at most, the expected number of mistakes is at
    most

    .. math:: L + \gamma T + 3 \max\{k D / \gamma, \sqrt{D \gamma T}\} + \sqrt{k D L / \gamma},
        \quad D = 2 \|U\|_F^2

    for every competitor U of hinge loss L. Costs O(nnz k) per row to score and O(nnz) to update.

    References
    ----------
    Kakade, Shalev-Shwartz and Tewari (2008), "Efficient bandit algorithms for online multiclass
    prediction", Theorem 1.

    Examples
    --------
    >>> Banditron()
    Banditron()
    """

    feedback = Feedback.BANDITRON


@dataclass(frozen=True)
class SOBA(FeedbackRule):
    r"""The second-order Banditron.

    If the shown class :math:`\tilde y` is right, and :math:`\bar y` is the best other class,

    .. math:: g = \frac{1}{P(\tilde y)} (e_{\bar y} - e_{\tilde y}) \otimes x, \quad
        z = \sqrt{P(\tilde y)} \, g, \quad
        m = \frac{\langle z, W \rangle^2 + 2 \langle g, W \rangle}{1 + z^T A^{-1} z}

    and, unless m and the sum of m of all earlier updates are below 0 together,

    .. math:: A \mathrel{+}= z z^T, \quad \theta \mathrel{-}= g, \quad W = A^{-1} \theta

    Parameters
    ----------
    a : float > 0, default 1.0
        The initial A is a times the identity. Larger values make the first steps smaller.
    diagonal : bool, default False
        Whether only the diagonal of A is kept, as in the experiments of the source: O(nnz) per
        update. If False, A has (k d)^2 entries for k classes and d features, and an update costs
        as much; the theorem is on this version.

    Raises
    ------
    KeslerError
        If a is not a finite number above 0, or diagonal is not a bool.

    Notes
    -----
    With uniform exploration, the expected number of mistakes is at most

    .. math:: \sum_t \ell_\eta(U, x_t, y_t) + \frac{a \eta}{2 - \eta} \|U\|_F^2 + \gamma T
        + \frac{k}{\gamma \eta (2 - \eta)} \sum_t E[z_t^T A_t^{-1} z_t]

    for every U and 0 < eta <= 1, with the loss of margin c
    :math:`\ell_\eta = \max(0, 1 - \frac{2 c}{2 - \eta} + \frac{\eta c^2}{2 - \eta})`, which is
    squared hinge loss for eta = 1 up to margins of 1. The last sum grows with the logarithm of T.

    References
    ----------
    Beygelzimer, Orabona and Zhang (2017), "Efficient online bandit multiclass learning with
    O(sqrt T) regret", Algorithm 1 and Theorem 1.

    Examples
    --------
    >>> SOBA(diagonal=True)
    SOBA(a=1.0, diagonal=True)
    """

    a: float = 1.0
    diagonal: bool = False

    feedback = Feedback.SECOND_ORDER

    def __post_init__(self) -> None:
        keep_number(self, "a", above=0)
        require_flag(self, "diagonal")

    @property
    def second_moments(self) -> Literal["diagonal", "matrix"]:  # type: ignore[override]
        """Which part of A is kept."""
        return "diagonal" if self.diagonal else "matrix"

    @property
    def parameters(self) -> tuple[float, ...]:
        """The initial diagonal of A."""
        return (self.a,)


FEEDBACK_RULES: dict[str, Callable[..., UpdateRule]] = {"banditron": Banditron, "soba": SOBA}
"""The rules by their names in `BanditClassifier`."""
