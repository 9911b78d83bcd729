"""Answers: what is heard after a prediction, as levels of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

NOTHING_SAID = -1
"""The level of classes that an answer does not compare with any other."""

Kind = Literal["class", "levels", "rank"]
"""What an answer is, and which pairs of classes it compares.

class : one right class, with every other.
levels : any levels, each class with those of another level.
rank : one right rank. Of known ranks in order, each is compared with its neighbours only: the one
    nearer to the right rank must outscore the other (Amit et al. 2006, Section 3).
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """For each row, the classes that it names and the level of each: lower must outscore higher.

    One class at level 0 and the rest at level 1 is the multiclass answer; the relevant labels at 0
    and the rest at 1 the multilabel one; the places of a ranking are levels themselves.

    Parameters
    ----------
    indptr : int64 array of shape (n_rows + 1,)
        Where the classes of each row begin and end.
    codes : int32 array of shape (n_named,)
        The numbers of the classes named; a new class has the next number.
    levels : int32 array of shape (n_named,)
        Their levels, 0 or more; NOTHING_SAID for classes that are only met.
    rest : int
        The level of known classes that an answer leaves out; it may be NOTHING_SAID.

    Examples
    --------
    >>> Answers.of_classes(np.array([0, 1, 0], dtype=np.int32)).n_levels
    2
    """

    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    rest: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @staticmethod
    def of_classes(codes: npt.NDArray[np.int32]) -> Answers:
        """One right class a row."""
        indptr = np.arange(len(codes) + 1, dtype=np.int64)
        return Answers(indptr, codes, np.zeros(len(codes), dtype=np.int32), rest=1)

    @property
    def n_levels(self) -> int:
        """One more than the highest level."""
        return int(max(self.levels.max(initial=0), self.rest)) + 1

    def most_pairs(self, n_classes: int) -> int:
        """Return a bound on the pairs that one answer can demand among so many classes."""
        if self.n_levels == 2 and self.rest == 1:
            named = int(np.diff(self.indptr).max(initial=1))
            return max(1, min(named * n_classes, n_classes * n_classes // 4 + 1))
        return max(1, n_classes * (n_classes - 1) // 2)
