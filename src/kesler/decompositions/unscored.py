"""Unscored: decompositions that find a class on the way, without a score for each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.decompositions.binary import Decomposition


class Unscored(Decomposition):
    """A decomposition that asks a few of its binary learners only, and so has no scores."""

    @abstractmethod
    def _winners(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the number of the class that each row is said to be of."""

    def _scores(self, X: Any) -> npt.NDArray[np.float64]:
        raise AssertionError("a decomposition without scores was asked for them")

    @property
    def decision_function(self) -> Any:
        """Not there: most classes are never asked about."""
        raise AttributeError(f"{type(self).__name__} has no score for each class: use predict")
