"""Simultaneous projections: averaged steps along all violated constraints."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.updates.rule import AggressiveRule


def equal_steps(parameters, weight, losses, squared_norms, gram, steps):
    """Write C / m for each of m constraints."""
    m = losses.shape[0]
    for j in range(m):
        steps[j] = weight * parameters[0] / m


def averaged_projections(parameters, weight, losses, squared_norms, gram, steps):
    """Write min(C, loss / norm) / m for each of m constraints."""
    m = losses.shape[0]
    limit = weight * parameters[0]
    for j in range(m):
        if limit * squared_norms[j] > losses[j]:
            steps[j] = losses[j] / squared_norms[j] / m
        else:
            steps[j] = limit / m


@dataclass(frozen=True)
class SimPerc(AggressiveRule):
    r"""The simultaneous Perceptron: equal steps along every mistaken constraint.

    .. math:: \alpha_s = C / |M|, \quad M = \{s : \text{score}(x, s) \ge \text{score}(x, y)\}

    Parameters
    ----------
    C : float > 0, default 1.0
        Total length of the steps. Predictions do not depend on it, except if rounding breaks ties
        of scores. It is multiplied by the `sample_weight` of the row.

    Raises
    ------
    KeslerError
        If C is not a finite number above 0.

    Notes
    -----
    Mistakes are bounded by :math:`(\tfrac12 \|u\|^2 + C L) / (C - \tfrac12 C^2 R^2)` (Theorem 1).
    Costs O(nnz k) per row.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 4.

    Examples
    --------
    >>> from kesler.updates import SimPerc
    >>> SimPerc(C=0.1)
    SimPerc(C=0.1)
    """

    constraints = "mistaken"
    requires = "losses"
    heeds_margin = False
    steps = staticmethod(equal_steps)


@dataclass(frozen=True)
class ConProj(AggressiveRule):
    r"""Conservative simultaneous projections, averaged over the mistaken constraints.

    .. math:: \alpha_s = \min(C, \ell_s / \|d_s\|^2) / |M|, \quad
        M = \{s : \text{score}(x, s) \ge \text{score}(x, y)\}

    Parameters
    ----------
    C : float > 0, default 1.0
        Aggressiveness: the longest single projection. Larger values fit each row more closely.
        It is multiplied by the `sample_weight` of the row.

    Raises
    ------
    KeslerError
        If C is not a finite number above 0.

    Notes
    -----
    Satisfies the bound of :class:`SimPerc` (Corollary 1). Costs O(nnz k) per row.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 4.

    Examples
    --------
    >>> from kesler.updates import ConProj
    >>> ConProj()
    ConProj(C=1.0)
    """

    constraints = "mistaken"
    requires = "norms"
    steps = staticmethod(averaged_projections)


@dataclass(frozen=True)
class SimProj(AggressiveRule):
    r"""Soft simultaneous projections, averaged over all constraints with a loss.

    .. math:: \alpha_s = \min(C, \ell_s / \|d_s\|^2) / |\Gamma|, \quad \Gamma = \{s : \ell_s > 0\}

    Parameters
    ----------
    C : float > 0, default 1.0
        Aggressiveness: the longest single projection. Larger values fit each row more closely.
        It is multiplied by the `sample_weight` of the row.

    Raises
    ------
    KeslerError
        If C is not a finite number above 0.

    Notes
    -----
    The most accurate of the three rules on mail at C = 0.01. Costs O(nnz k) per row.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 4 and Eq. 3.

    Examples
    --------
    >>> from kesler.updates import SimProj
    >>> SimProj(C=0.01)
    SimProj(C=0.01)
    """

    constraints = "violated"
    requires = "norms"
    steps = staticmethod(averaged_projections)
