"""Training rows seen through frozen hypotheses: a linear map from weights to scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kesler.rows import Rows
from kesler.solvers.design import Design, Floats
from kesler.solvers.frozen import FrozenHypotheses
from kesler.solvers.preconditioners import Diagonal


@dataclass(frozen=True, eq=False)
class JointDesign(Design):
    """The joint features of training rows, computed whenever they are asked for.

    Parameters
    ----------
    hypotheses : FrozenHypotheses
    rows : Rows
        As `FrozenHypotheses.as_seen` returns them.

    Notes
    -----
    Nothing is copied: memory is that of the rows and of the frozen hypotheses. All products are
    computed in double, whatever their type.
    """

    hypotheses: FrozenHypotheses
    rows: Rows

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """How many rows there are."""
        return len(self.rows)

    def weights_shape(self, n_classes: int) -> tuple[int, int]:
        """Return (n_features, n_hypotheses)."""
        return self.hypotheses.shape

    def forward(self, weights: Floats) -> Floats:
        """Return the score of each class for each row, shape (n_rows, n_classes)."""
        return self.hypotheses.scores(self.rows, weights).astype(weights.dtype, copy=False)

    def adjoint(self, coefficients: Floats) -> Floats:
        """Return sum over i and r of c[i, r] Phi(x_i, r), of the weights' shape."""
        weights = self.hypotheses.adjoint(self.rows, coefficients)
        return weights.astype(coefficients.dtype, copy=False)

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield all rows at once: what does not stay in the cache are the weights."""
        yield slice(0, self.n_rows), self

    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Diagonal:
        """Return the inverse of a diagonal, that of the Hessian if no two classes share weights."""
        squares = self.hypotheses.adjoint(self.rows, curvatures, power=2)
        return Diagonal(squares + ridge)

    @property
    def single(self) -> JointDesign:
        """The same design, which takes directions in float32 as they are."""
        return self
