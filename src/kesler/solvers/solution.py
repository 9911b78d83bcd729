"""How good a solver's answer is."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Objectives at the end of a search; the optimum lies between them.

    Parameters
    ----------
    objective, dual_objective : float
    n_passes : float
        Visits of rows, in numbers of rows; or sweeps, those that left out some included.
    converged : bool
        Whether the gap is as small as was asked for.
    """

    objective: float
    dual_objective: float
    n_passes: float
    converged: bool

    @property
    def relative_gap(self) -> float:
        """The duality gap over the primal objective."""
        gap = self.objective - self.dual_objective
        return gap / abs(self.objective) if self.objective else 0.0


def is_small(gap: float, objective: float, tol: float) -> bool:
    """Whether a duality gap is as small as was asked for."""
    return bool(gap <= tol * abs(objective))


def require_solvable(
    caps: npt.NDArray[np.float64], margins: npt.NDArray[np.float64], tol: float, max_iter: int
) -> None:
    """Raise a sentence if a number is out of the range that the solvers name."""
    if not (np.isfinite(caps) & (caps >= 0)).all():
        raise KeslerError("C of each row must be a finite number, 0 or more")
    if not (np.isfinite(margins) & (margins >= 0)).all() or margins.diagonal().any():
        raise KeslerError("margins must be finite, 0 between a class and itself, 0 or more else")
    if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
        raise KeslerError(f"tol={tol!r} must be a finite number above 0")
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise KeslerError(f"max_iter={max_iter!r} must be a whole number from 1 on")
