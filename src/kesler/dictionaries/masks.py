"""Masks: where in an image a template may answer, and how much an answer counts there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

# Weights below this are none.
FAINT = 0.02
# Centres stand from this share of the sides to as far from their ends.
MARGIN = 0.1


@dataclass(frozen=True, eq=False)
class Mask:
    """Weights of places, kept where they are not faint.

    Parameters
    ----------
    shape : (int, int)
        Of the places of a patch's top left corner.
    places : int64 array
        Those that count, numbered row by row.
    weights : float32 array of the same length
    """

    shape: tuple[int, int]
    places: Ints
    weights: Singles

    @classmethod
    def about(cls, shape: tuple[int, int], centre: tuple[float, float], width: float) -> Mask:
        """Return a Gaussian about a centre of so many standard deviations of places, not faint."""
        rows, columns = np.indices(shape)
        squares = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
        weights = np.exp(-squares / (2 * width**2)).ravel()
        places = np.flatnonzero(weights >= min(FAINT, weights.max()))
        return cls(shape, places.astype(np.int64), weights[places].astype(np.float32))

    @property
    def least(self) -> float:
        """The least that a template may answer: 0 from places left out, if there are any."""
        return 0.0 if len(self.places) < self.shape[0] * self.shape[1] else -np.inf

    def image(self) -> npt.NDArray[np.float64]:
        """Return the weights of all places."""
        weights = np.zeros(self.shape)
        weights.flat[self.places] = self.weights
        return weights


def grid_of_masks(shape: tuple[int, int], n_side: int, width: float) -> list[Mask]:
    """Return masks whose centres make a grid of n_side by n_side.

    `width` is their standard deviation as a share of the longer side.
    """
    sides = [np.linspace(MARGIN, 1 - MARGIN, n_side) if n_side > 1 else [0.5]] * 2
    deviation = max(width * max(shape), 1e-3)
    return [
        Mask.about(shape, (row * (shape[0] - 1), column * (shape[1] - 1)), deviation)
        for row in sides[0]
        for column in sides[1]
    ]
