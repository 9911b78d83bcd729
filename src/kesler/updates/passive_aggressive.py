"""Passive-aggressive rules: the least step that satisfies the most violated constraint."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kesler.errors import KeslerError
from kesler.parts.constraints import Selection
from kesler.updates.rule import AggressiveRule


def passive_aggressive_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write min(limit, loss / (norm + softness)); along a norm of 0 no step has an effect."""
    limit, variant = weight * parameters[0], parameters[1]
    softness = 0.5 / limit if variant == 2 else 0.0
    if squared_norms[0] + softness > 0:
        steps[0] = losses[0] / (squared_norms[0] + softness)
    if variant == 1 and (steps[0] > limit or squared_norms[0] == 0):
        steps[0] = limit


@dataclass(frozen=True)
class PassiveAggressive(AggressiveRule):
    r"""The least step that satisfies the most violated constraint, capped or softened by C.

    With s the class with the highest score other than y,
    :math:`\ell = 1 - (h(x, y) - h(x, s)) > 0` and :math:`d = \phi(x, y) - \phi(x, s)`, the step
    along d is

    .. math::
        \alpha = \ell / \|d\|^2 \;(0), \qquad \min(C, \ell / \|d\|^2) \;(\text{I}), \qquad
        \ell / (\|d\|^2 + 1 / 2C) \;(\text{II}).

    Parameters
    ----------
    C : float > 0, default 1.0
        Aggressiveness. Larger values fit each row more closely; smaller ones average over more
        rows and are more robust to noise. Variant 0 ignores it. It is multiplied by the
        `sample_weight` of the row.
    variant : 0, 1 or 2, default 1
        The original rule, PA-I (capped) or PA-II (softened).

    Raises
    ------
    KeslerError
        If C is not a finite number above 0, or variant is not 0, 1 or 2.

    Notes
    -----
    With one hypothesis per class this is Max-MP of Amit et al. (2006), with a shared one Max-SP.
    Costs O(nnz k) per row to score and O(nnz) per update.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Section 3 and Eq. 52.

    Examples
    --------
    >>> from kesler.updates import PassiveAggressive
    >>> PassiveAggressive(C=0.01)
    PassiveAggressive(C=0.01, variant=1)
    """

    variant: int = 1

    constraints: ClassVar[Selection] = "worst"
    requires = "norms"
    steps = staticmethod(passive_aggressive_steps)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in (0, 1, 2):
            raise KeslerError(
                f"PassiveAggressive(variant={self.variant!r}): choose 0 (plain), 1 (PA-I) or "
                "2 (PA-II)"
            )
        object.__setattr__(self, "variant", int(self.variant))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The aggressiveness and the variant."""
        return (self.C, float(self.variant))


@dataclass(frozen=True)
class PredictionBased(PassiveAggressive):
    r"""The step of a passive-aggressive rule on the predicted class, where that is wrong.

    .. math:: \ell = \text{margin}(y, \hat y) - (h(x, y) - h(x, \hat y)), \quad \hat y \ne y

    Where costs of confusions or a tree make margins differ, :class:`PassiveAggressive` moves along
    the class of the largest loss instead, which need not be the predicted one, and also where the
    prediction is right by less than the margin.

    Parameters
    ----------
    C, variant : as in :class:`PassiveAggressive`; variant 0 is the rule of the source.

    Raises
    ------
    KeslerError
        If C is not a finite number above 0, or variant is not 0, 1 or 2.

    Notes
    -----
    Costs O(nnz k) per row to score and O(nnz) per mistake. It moves on mistakes alone, so that it
    makes fewer updates, and mostly more mistakes.

    References
    ----------
    Dekel, Keshet and Singer (2004), Figure 2; Crammer et al. (2006), Section 10, as the
    prediction-based update.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> from kesler.updates import PredictionBased
    >>> OnlineClassifier("multi", update=PredictionBased(variant=0), tree="/").update
    PredictionBased(C=1.0, variant=0)
    """

    constraints = "predicted"
