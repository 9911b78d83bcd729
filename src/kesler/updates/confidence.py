"""Confidence-weighted rules: the step depends on the variances of the weights."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from kesler.errors import KeslerError, keep_number
from kesler.preconditioners import (
    Confidence,
    Preconditioner,
    SoftConfidence,
)
from kesler.updates.rule import AggressiveRule, UpdateRule


def arow_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Compute the loss over the sum of the variances of the margin and of the noise."""
    steps[0] = losses[0] / (squared_norms[0] + parameters[0] / weight)


def scw1_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Compute the least step that makes the margin probable enough, at most C."""
    C, phi = weight * parameters[0], parameters[1]
    margin, variance = -losses[0], squared_norms[0]
    if variance > 0 and phi * math.sqrt(variance) > margin:
        psi, zeta = 1.0 + 0.5 * phi * phi, 1.0 + phi * phi
        root = math.sqrt(0.25 * (margin * phi * phi) ** 2 + variance * phi * phi * zeta)
        steps[0] = min(C, max(0.0, (root - margin * psi) / (variance * zeta)))


def scw2_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Compute the step of SCW-II, which C softens instead of capping it."""
    C, phi = weight * parameters[0], parameters[1]
    margin, variance = -losses[0], squared_norms[0]
    if variance > 0 and phi * math.sqrt(variance) > margin:
        n = variance + 0.5 / C
        inner = (phi * margin * variance) ** 2 + 4.0 * n * variance * (n + variance * phi * phi)
        top = phi * math.sqrt(inner) - margin * (2.0 * n + phi * phi * variance)
        steps[0] = max(0.0, top / (2.0 * (n * n + n * variance * phi * phi)))


@dataclass(frozen=True)
class AROW(UpdateRule):
    r"""Adaptive regularisation of weights: one variance per weight, a margin not enforced.

    .. math:: w \mathrel{+}= \frac{\ell}{d' \Sigma d + r} \Sigma d, \quad
        1 / \Sigma_i \mathrel{+}= d_i^2 / r

    along the constraint with the largest loss, :math:`d = \phi(x, y) - \phi(x, s)`,
    :math:`\ell = 1 - h(x, y) + h(x, s) > 0`.

    Parameters
    ----------
    r : float > 0, default 1.0
        The variance of the noise. With larger values, steps are smaller and variances shrink more
        slowly. It is divided by the `sample_weight` of the row.

    Raises
    ------
    KeslerError
        If r is not a finite number above 0.

    Notes
    -----
    The matrix is diagonal. Costs O(nnz k) per row to score and O(nnz) per step.

    References
    ----------
    Crammer, Kulesza and Dredze (2009), Figure 1.

    Examples
    --------
    >>> AROW(r=0.1).preconditioner
    Confidence(r=0.1)
    """

    r: float = 1.0

    constraints = "worst"
    requires = "norms"
    steps = staticmethod(arow_steps)

    def __post_init__(self) -> None:
        keep_number(self, "r", ", since it is the variance of the noise", above=0)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The variance of the noise."""
        return (self.r,)

    @property
    def preconditioner(self) -> Preconditioner:
        """The variances of the weights."""
        return Confidence(self.r)


@dataclass(frozen=True)
class SCW(AggressiveRule):
    r"""Soft confidence-weighted: a step that makes the margin positive with probability eta.

    .. math:: \min_{w, \Sigma} D_{KL}(N(w, \Sigma) \| N(w_t, \Sigma_t)) + C \, \xi \;(\text{I})
        \text{ or } C \, \xi^2 \;(\text{II}), \quad \xi = [\phi \sqrt{d' \Sigma d} - w \cdot d]_+

    along d of the rival with the highest score; :math:`\phi = \Phi^{-1}(\eta)`.

    Parameters
    ----------
    C : float > 0, default 1.0
        Aggressiveness. Larger values fit each row more closely. It is multiplied by the
        `sample_weight` of the row.
    eta : float in (0.5, 1), default 0.9
        The required probability. With larger values, margins are wider and variances shrink
        faster.
    variant : 1 or 2, default 1
        SCW-I (capped by C) or SCW-II (softened).

    Raises
    ------
    KeslerError
        If C, eta or variant is out of range.

    Notes
    -----
    The matrix is diagonal. Costs O(nnz k) per row to score and O(nnz) per step.

    References
    ----------
    Wang, Zhao and Hoi (2012), Propositions 1 and 2.

    Examples
    --------
    >>> SCW(variant=2)
    SCW(C=1.0, eta=0.9, variant=2)
    """

    eta: float = 0.9
    variant: int = 1

    constraints = "rival"
    requires = "norms"
    heeds_margin = False
    margin = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        why = ", since it is the required probability of a margin above 0"
        keep_number(self, "eta", why, above=0.5, below=1)
        if self.variant not in (1, 2):
            raise KeslerError(f"SCW(variant={self.variant!r}): variant must be 1 or 2")

    @property
    def steps(self):  # type: ignore[override]
        """The function that is compiled."""
        return scw1_steps if self.variant == 1 else scw2_steps

    @property
    def parameters(self) -> tuple[float, ...]:
        """The aggressiveness and the quantile of eta."""
        return (self.C, self.preconditioner.parameter)

    @property
    def preconditioner(self) -> Preconditioner:
        """The variances of the weights."""
        return SoftConfidence(NormalDist().inv_cdf(self.eta))
