"""Training rows seen through a dictionary, as solvers that weigh each column want them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.dictionary import Ints, Pool
from kesler.errors import KeslerError
from kesler.solvers.mixed_norms import MixedNorm

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SingleColumns:
    """A pool whose candidates are columns each, made a block at a time.

    Parameters
    ----------
    pool : Pool

    Raises
    ------
    KeslerError
        If a candidate is a group of columns.
    """

    pool: Pool

    def __post_init__(self) -> None:
        for block in self.pool.blocks():
            widths = self.pool.dictionary.widths(block)
            if (widths != 1).any():
                grouped = int(block[(widths != 1).argmax()])
                raise KeslerError(
                    f"candidate {grouped} of {type(self.pool.dictionary).__name__} is a group of "
                    f"{widths.max()} columns, but a mixed norm weighs each column by itself: give "
                    "a dictionary of single columns, or choose groups by ShareBoostClassifier"
                )

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.pool.X.shape[0])

    @property
    def n_columns(self) -> int:
        """How many candidates there are."""
        return self.pool.n_candidates

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each candidate's part of a gradient.

        That of "inf-1" is the score by which ShareBoost chooses, which a pool may know a faster
        way to.
        """
        if not norm.euclidean:
            return np.concatenate([scores for _, scores in self.pool.scores(coefficients)])
        parts = (self.take(block).T @ coefficients for block in self.pool.blocks())
        return np.concatenate([norm.dual_sizes(part) for part in parts])

    def take(self, chosen: Ints) -> Doubles:
        """Return some candidates."""
        if not len(chosen):
            return np.empty((self.n_rows, 0))
        return np.ascontiguousarray(self.pool.columns(chosen), dtype=np.float64)
