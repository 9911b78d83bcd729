"""Thresholds: where several lines of numbers are cut, the cuts of all lines numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Cuts of several lines, those of each in ascending order.

    Parameters
    ----------
    values : float64 array of shape (n_cuts,)
    firsts : int64 array of shape (n_lines + 1,)
        The cuts of line j are number firsts[j] to firsts[j + 1] - 1; a line may have none.
    """

    values: npt.NDArray[np.float64]
    firsts: Ints

    @classmethod
    def between(cls, lines: Iterable[Floats], most: int | None) -> Thresholds:
        """Cut each line between its distinct numbers, at up to `most` quantiles if that is given.

        Each cut has numbers on both of its sides.
        """
        cuts = [_cuts(line, most) for line in lines]
        firsts = np.cumsum([0, *map(len, cuts)], dtype=np.int64)
        return cls(np.concatenate([np.empty(0), *cuts]), firsts)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> Ints:
        """How many cuts each line has."""
        return np.diff(self.firsts)

    @property
    def bin_type(self) -> np.dtype[Any]:
        """The smallest type of the numbers of bins."""
        return np.min_scalar_type(int(self.counts.max(initial=0)))

    def lines(self, cuts: Ints) -> Ints:
        """Return the line of each of some cuts."""
        return np.searchsorted(self.firsts, cuts, side="right") - 1

    def bins(self, line: int, numbers: Floats) -> Ints:
        """Return how many of a line's cuts are at or below each number.

        A number is below cut t of the line just if its bin is t or less.
        """
        cuts = self.values[self.firsts[line] : self.firsts[line + 1]]
        return np.searchsorted(cuts, numbers, side="right")


def _cuts(line: Floats, most: int | None) -> npt.NDArray[np.float64]:
    line = np.sort(line)
    places = np.flatnonzero(line[1:] > line[:-1]) + 1
    if most is not None and len(places) > most:
        wanted = len(line) * np.arange(1, most + 1) / (most + 1)
        nearest = np.searchsorted(places, wanted)
        places = places[np.unique(np.minimum(nearest, len(places) - 1))]
    return middles(line[places - 1].astype(np.float64), line[places].astype(np.float64))


def middles(
    below: npt.NDArray[np.float64], above: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return numbers above each one below, and at most as large as the one above it."""
    # Half of each, for their sum may overflow. The middle of neighbours may be rounded to the
    # lower one.
    middle = below / 2 + above / 2
    return np.where(middle > below, middle, above)
