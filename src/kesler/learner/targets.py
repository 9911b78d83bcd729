"""Targets, given after each prediction: as users write them, and encoded as levels of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.sparse_rows import joined

NOTHING_SAID = -1
"""The level of classes that a target does not compare with any other."""

Kind = Literal["class", "levels", "sets", "rank", "costs"]
"""The kind of a target, and the pairs of classes that it compares.

class : one right class, compared with every other.
levels : any levels; each class is compared with those of other levels.
sets : three levels, those of relevant labels, of the threshold and of irrelevant labels.
rank : one right rank. Each known rank is compared with its neighbours in the order only: the one
    nearer to the right rank must outscore the other (Amit et al. 2006, Section 3).
costs : a cost of each class. The cheapest classes must outscore each of the others that are named,
    by a margin in proportion to the difference of their costs.
"""

NO_COSTS = np.empty(0)


Decision = Literal["score", "median", "f1", "distance"]
"""How a prediction follows from the scores.

score : the class of the highest score; of label sets, the labels that outscore the threshold.
median : the median of the probabilities of ranks, which minimises the expected absolute error.
f1 : the labels whose probability is above half of the micro-averaged F1 so far.
distance : the class of the least expected distance in the tree of classes, by the probabilities.
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """Encoded targets: the classes named in each row, and their levels; lower must outscore higher.

    A multiclass target has one class at level 0 and the rest at 1; a multilabel target, the
    relevant labels at 0 and the rest at 1; in a ranking, the places are the levels.

    Parameters
    ----------
    indptr : int64 array of shape (n_rows + 1,)
        Where the classes of each row begin and end.
    codes : int32 array of shape (n_named,)
        The numbers of the named classes; a new class has the next number.
    levels : int32 array of shape (n_named,)
        Their levels, 0 or more; NOTHING_SAID for classes that only become known.
    rest : int
        The level of known classes that a target does not name; it may be NOTHING_SAID.
    costs : float64 array of shape (n_named,) or (0,)
        The cost of each named class, if targets are costs; the cheapest are at level 0, the others
        at 1.
    single : bool
        Whether each row names one class, which is right.

    Examples
    --------
    >>> Answers.of_classes(np.array([0, 1, 0], dtype=np.int32)).n_levels
    2
    """

    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    rest: int
    costs: npt.NDArray[np.float64] = field(default_factory=lambda: NO_COSTS)
    single: bool = False

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def first(self, n_rows: int) -> Answers:
        """Return the targets of the first rows."""
        return replace(self, indptr=self.indptr[: n_rows + 1])

    @staticmethod
    def of_classes(codes: npt.NDArray[np.int32]) -> Answers:
        """Return targets of one right class per row."""
        indptr = np.arange(len(codes) + 1, dtype=np.int64)
        levels = np.zeros(len(codes), dtype=np.int32)
        return Answers(indptr, codes, levels, rest=1, costs=NO_COSTS, single=True)

    @property
    def n_levels(self) -> int:
        """The highest level plus 1."""
        if self.single:
            return 2
        return int(max(self.levels.max(initial=0), self.rest)) + 1

    def most_pairs(self, n_classes: int) -> int:
        """Return an upper bound on the pairs that one target compares among n classes."""
        if self.single:
            return max(1, min(n_classes, n_classes * n_classes // 4 + 1))
        if (self.n_levels == 2 and self.rest == 1) or len(self.costs):
            return max(1, min(self._most_named * n_classes, n_classes * n_classes // 4 + 1))
        return max(1, n_classes * (n_classes - 1) // 2)

    @property
    def _most_named(self) -> int:
        """The largest number of classes that a target names, of costs only the cheapest."""
        if len(self.costs):
            return int(np.add.reduceat(self.levels == 0, self.indptr[:-1], dtype=np.int64).max())
        return int(np.diff(self.indptr).max(initial=1))


@dataclass(frozen=True)
class Targets:
    """Targets as users write them: the labels of each row and their levels, as in `Answers`.

    Parameters
    ----------
    indptr : int64 array of shape (n_rows + 1,)
        Where the labels of each row begin and end.
    labels : list of n_named labels
    levels : int32 array of shape (n_named,)
    rest : int
        The level of known labels that a row does not name; it may be NOTHING_SAID.
    columns : tuple of labels
        Labels that are known whether or not rows name them: the columns of a table.
    threshold : int or None
        The level of the virtual class number 0 in every row; None if there is none.
    costs : float64 array of shape (n_named,) or (0,)
        As in `Answers`.

    Examples
    --------
    >>> targets = Targets.of_lists([["b"], ["a", "b"]], [[0], [0, 0]], rest=2, threshold=1)
    >>> encoded = targets.answers(np.array([1, 2, 1], dtype=np.int32))
    >>> encoded.codes.tolist(), encoded.levels.tolist()
    ([0, 1, 0, 2, 1], [1, 0, 1, 0, 0])
    """

    indptr: npt.NDArray[np.int64]
    labels: list[Label]
    levels: npt.NDArray[np.int32]
    rest: int
    columns: tuple[Label, ...] = ()
    threshold: int | None = None
    costs: npt.NDArray[np.float64] = field(default_factory=lambda: NO_COSTS)

    @staticmethod
    def of_classes(labels: list[Label]) -> Targets:
        """Return targets of one right class per row."""
        encoded = Answers.of_classes(np.empty(len(labels), dtype=np.int32))
        return Targets(encoded.indptr, labels, encoded.levels, encoded.rest, costs=NO_COSTS)

    @staticmethod
    def of_lists(
        labels: list[list[Label]], levels: list[list[int]], rest: int, threshold: int | None = None
    ) -> Targets:
        """Return targets from a list of labels per row, and the list of their levels."""
        indptr = np.cumsum([0, *map(len, labels)], dtype=np.int64)
        named = [label for row in labels for label in row]
        flat = np.array([level for row in levels for level in row], dtype=np.int32)
        return Targets(indptr, named, flat, rest, threshold=threshold)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: slice) -> Targets:
        """Return a slice of consecutive rows; the same object if these are all."""
        n_rows = len(self.indptr) - 1
        start, stop, _ = rows.indices(n_rows)
        if start == 0 and stop == n_rows:
            return self
        indptr = self.indptr[start : max(start, stop) + 1]
        named = slice(int(indptr[0]), int(indptr[-1]))
        return replace(
            self,
            indptr=indptr - indptr[0],
            labels=self.labels[named],
            levels=self.levels[named],
            costs=self.costs[named],
        )

    def take(self, numbers: npt.NDArray[np.int64]) -> Targets:
        """Return the rows of these numbers, in this order."""
        lengths = np.diff(self.indptr)[numbers]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        labels = [self.labels[i] for i in taken.tolist()]
        costs = self.costs[taken] if len(self.costs) else self.costs
        return replace(self, indptr=indptr, labels=labels, levels=self.levels[taken], costs=costs)

    @staticmethod
    def concatenate(pieces: Sequence[Targets]) -> Targets:
        """Return the targets of pieces of the same kind, at least one, one after another."""
        if len(pieces) == 1:
            return pieces[0]
        return replace(
            pieces[0],
            indptr=joined([piece.indptr for piece in pieces]),
            labels=[label for piece in pieces for label in piece.labels],
            levels=np.concatenate([piece.levels for piece in pieces]),
            costs=np.concatenate([piece.costs for piece in pieces]),
        )

    # Not `functools.cached_property`, which holds a lock of the process in Python 3.11: a process
    # forked in that moment would wait for it without end.

    @property
    def names(self) -> list[Any]:
        """All labels named, those of the columns first."""
        own = vars(self)
        if "_all" not in own:
            own["_all"] = [*self.columns, *self.labels]
        found: list[Any] = own["_all"]
        return found

    @property
    def distinct(self) -> list[Any]:
        """The distinct labels in `names`; all of `names` if one is not hashable (refused later)."""
        own = vars(self)
        if "_distinct" not in own:
            own["_distinct"] = self._without_repetitions()
        found: list[Any] = own["_distinct"]
        return found

    def _without_repetitions(self) -> list[Any]:
        try:
            return list(dict.fromkeys(self.names))
        except TypeError:
            return self.names

    def table(self, labels: list[Any]) -> npt.NDArray[np.int32]:
        """Return the level of each of these labels in each row, shape (n_rows, n_labels)."""
        table = np.full((len(self), len(labels)), self.rest, dtype=np.int32)
        column_of = {label: column for column, label in enumerate(labels)}
        columns = np.array([column_of.get(label, -1) for label in self.labels], dtype=np.int64)
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        known = columns >= 0
        table[rows[known], columns[known]] = self.levels[known]
        return table

    def answers(self, codes: npt.NDArray[np.int32]) -> Answers:
        """Return the encoded targets, given the numbers of `names`.

        The first row also names every column, at the level `rest`, so that all become known.
        """
        n = len(self.columns)
        first = np.zeros(n, dtype=np.int64)
        named = np.insert(codes[n:], first, codes[:n])
        levels = np.insert(self.levels, first, self.rest)
        indptr = self.indptr + n
        indptr[0] = 0
        if self.threshold is not None:
            named = np.insert(named, indptr[:-1], 0)
            levels = np.insert(levels, indptr[:-1], self.threshold)
            indptr = indptr + np.arange(len(indptr))
        return Answers(indptr, named, levels, self.rest, self.costs)
